"""Ten seeds that the code draws: what fell is told, new code has new ones; a history of nights."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tools import margins
from tools.files import write_json
from tools.readers import read_json

Edit = Callable[[str, str, str], None]


@pytest.mark.slow
def test_margins_are_stored_and_what_fell_is_told(
    built: Path, edit: Edit, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(built)
    monkeypatch.setattr(margins, "SEEDS", 2)
    assert margins.stale(built) == ["waves", "tides"]
    assert margins.main([]) == 0
    waves = read_json(built / margins.STORE)["waves"]
    first, second = margins.drawn(margins.form(built, "waves"))
    assert waves["claims"] == {"kou.waves": {str(first): 9.0, str(second): 9.0}}
    assert margins.stale(built) == []
    edit("book/tides.md", "holds=turning", "holds=seed == 0")
    assert margins.stale(built) == ["tides"]
    assert margins.main([]) == 1
    (seed, _) = margins.drawn(margins.form(built, "tides"))
    assert f"kou.tides (book/tides.md) fails at seed {seed}" in capsys.readouterr().out
    assert read_json(built / margins.STORE)["waves"] == waves


def test_new_code_draws_new_seeds_and_new_layout_does_not(tiny: Path, edit: Edit) -> None:
    code = margins.form(tiny, "tides")
    edit("book/tides.md", "holds=turning, ", "holds = turning,")
    edit("book/tides.md", "# Tides", "# High tides")
    edit("book/tides.md", "turning = False", "turning = None")  # a mutant is not the chapter
    figure = 'turning = True\n\n\ndef draw():\n    """A figure."""\n'
    edit("book/tides.md", "turning = True", figure)
    assert margins.form(tiny, "tides") == code
    edit("book/tides.md", "turning = True", "turning = 1")
    assert not set(margins.drawn(margins.form(tiny, "tides"))) & set(margins.drawn(code))


def test_an_expected_failure_is_no_fall_and_a_rival_within_the_bounds_is(built: Path) -> None:
    def stored(value: object) -> dict[str, object]:
        return {"waves": {"claims": {"kou.waves": {"5": value}}}}

    assert margins.fallen(built, stored(None)) == []
    assert margins.fallen(built, stored("rivalled")) == [
        "kou.waves (book/waves.md) rivalled at seed 5"
    ]
    path = built / "book/claims.toml"
    path.write_text(path.read_text().replace('mutant = "off"', 'expected = "fails"\nreason = "r"'))
    assert margins.fallen(built, stored("fails")) == []
    assert margins.fallen(built, stored(4.0)) == ["kou.waves (book/waves.md) 4.0 at seed 5"]


def test_a_history_grows_by_a_line_a_run(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tiny)
    for seed in (3, 4):
        row = {"id": "kou.waves", "margin": 5.0 + seed}
        write_json(tiny / f"_build/fresh/{seed}/claims.json", [row])
    path = tiny / "_build/history/margins.jsonl"
    assert margins.main(["--append", str(path)]) == 0
    assert margins.main(["--append", str(path)]) == 0
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["seed"] for line in lines] == [3, 4, 3, 4]
    assert lines[1]["margins"] == {"kou.waves": 9.0}
