"""The claims register, the exercises, the mutants and the fresh seeds: each guard can fail."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tools import claims, fresh, mutants
from tools.files import ToolError
from tools.readers import read_json

Edit = Callable[[str, str, str], None]
WAVES = "_build/executed/waves.ipynb"
TIDES = "_build/executed/tides.ipynb"


def test_a_sound_book_passes_and_lists_every_claim(built: Path) -> None:
    claims.collect(built)
    table = read_json(built / "_build/claims.json")
    assert [(row["id"], row["verdict"]) for row in table] == [
        ("kou.waves", "holds"),
        ("kou.tides", "holds"),
        ("kou.later", "planned"),
    ]
    needed = "id chapter source statement predicted bound measured margin seeds verdict kind rivals"
    needed += " label read"
    assert all(sorted(row) == sorted(needed.split()) for row in table)
    claims.collect(built, committed=True)
    assert read_json(built / "_build/claims.json") == table


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        (
            "book/claims.toml",
            'id = "kou.tides"',
            'id = "kou.tide"',
            "kou.tides is evaluated, but no {claim} directive",
        ),
        ("book/claims.toml", 'id = "kou.tides"', 'id = "kou.tide"', "kou.tide is registered, but"),
        ("book/claims.toml", 'id = "kou.later"', 'id = "kou.tides"', "registered twice"),
        ("book/claims.toml", 'chapter = "tides"', 'chapter = "waves"', "registered in waves, eval"),
        ("book/claims.toml", 'source = "seminar"', 'source = "talk"', "has source 'talk'; allowed"),
        ("book/claims.toml", "falsifier = ", "falsifies = ", "lacks falsifier"),
        ("book/claims.toml", 'id = "kou.later"', 'id = "a"\nfree = 1', "a has 'free'; allowed"),
        ("book/claims.toml", 'mutant = "off"', 'expected = "fails"', "gives no reason"),
        ("book/claims.toml", 'mutant = "off"', 'expected = "f"', "expects 'f'"),
        (TIDES, "kou.tides", "kou.waves", "kou.waves is evaluated twice"),
        (TIDES, '"verdict": "holds"', '"verdict": "fails"', "kou.tides fails: predicted 1, meas"),
        (TIDES, '"margin": 5.0', '"margin": 3.9', "kou.tides: margin 3.9 standard errors, at leas"),
        (
            TIDES,
            '"excluded": true',
            '"excluded": false',
            "kou.tides: the rival 'none' .0.0. is not",
        ),
        (TIDES, '"rivals": [', '"rivals": [], "was": [', "kou.tides faces no rival: name the theo"),
        (TIDES, '"kind": "theorem"', '"kind": "identity"', "1 of 2 claims are identities, over a"),
        (WAVES, '"passed": false', '"passed": true', "exercise waves.one .* the stub passes"),
        (WAVES, '"passed": true', '"passed": false', "exercise waves.one .* the solution fails"),
        (WAVES, '"solution"', '"answer"', "checked in a cell tagged neither"),
        (WAVES, '"solution"', '"exercise"', "the solution is missing"),
    ],
)
def test_each_fault_is_red(
    built: Path, edit: Edit, file: str, old: str, new: str, message: str
) -> None:
    edit(file, old, new)
    with pytest.raises(ToolError, match=message):
        claims.collect(built)


def test_a_claim_without_margin_is_judged_by_its_verdict_alone(built: Path, edit: Edit) -> None:
    edit(TIDES, '"margin": 5.0', '"margin": null')
    claims.collect(built)


def test_an_expected_failure_passes_and_a_recovery_is_red(built: Path, edit: Edit) -> None:
    edit(
        "book/claims.toml",
        'theorem = "Theorem 2"',
        'theorem = ""\nexpected = "fails"\nreason = "r"',
    )
    with pytest.raises(ToolError, match=r"kou\.tides holds"):
        claims.collect(built)
    edit(TIDES, '"verdict": "holds"', '"verdict": "fails"')
    claims.collect(built)
    assert [claim["id"] for claim in mutants.wanted(built, ["waves", "tides"])] == ["kou.waves"]


@pytest.mark.slow
def test_mutants_kill_and_survivors_are_named(
    built: Path, edit: Edit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(built)
    edit("book/tides.md", "turning = False", "turning = True")
    with pytest.raises(ToolError, match=r"^kou\.tides survives under its mutant 'off'$"):
        mutants.main([])
    assert read_json(built / "_build/mutants.json") == [
        {"id": "kou.waves", "mutant": "off", "result": "killed"},
        {"id": "kou.tides", "mutant": "off", "result": "survives"},
    ]


@pytest.mark.parametrize(("margin", "verdict"), [(None, "rivalled"), (2.0, "holds")])
def test_at_a_fresh_seed_a_rival_within_the_bounds_fells_a_claim(
    built: Path, margin: float | None, verdict: str
) -> None:
    nb = claims.stored(built, "tides", built / "_build/executed")
    for _, record in claims.emitted(nb, claims.CLAIM):
        record["rivals"][0].update(excluded=False, margin=margin)
    assert claims.verdicts(nb) == {"kou.tides": verdict}


@pytest.mark.slow
def test_a_fresh_seed_tries_the_mutants_in_the_same_kernels(
    built: Path, edit: Edit, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(built)
    assert fresh.main(["--seed", "7", "--mutants"]) == 0
    assert "mutants: all 2 claims fail under theirs" in capsys.readouterr().out
    assert claims.verdicts(claims.stored(built, "tides", built / "_build/fresh/7")) == {
        "kou.tides": "holds"
    }


@pytest.mark.parametrize(
    ("record", "result"),
    [
        ({"verdict": "fails", "finite": True}, "killed"),
        ({"verdict": "fails", "finite": False}, "measures nothing finite"),
        ({"verdict": "fails"}, "measures nothing finite"),
        ({"verdict": "holds", "finite": True}, "survives"),
        (None, "is not evaluated"),
    ],
)
def test_only_finite_numbers_that_are_refuted_kill(
    record: dict[str, Any] | None, result: str
) -> None:
    assert mutants.result(record) == result


def test_a_claim_without_mutant_is_red(built: Path, edit: Edit) -> None:
    edit("book/claims.toml", 'mutant = "off"', "")
    with pytest.raises(ToolError, match=r"without a mutant: kou\.waves, kou\.tides"):
        mutants.wanted(built, ["waves", "tides"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("holds", "code", "told"),
    [
        ("True", 0, "2 holds"),
        ("seed != 7", 0, r"kou\.tides \(book/tides\.md\) fails at seed 7, not at 8 nor 9"),
        ("seed != 7 and seed != 9", 1, r"kou\.tides .* fails at seed 7, and again at \[9\]"),
    ],
)
def test_a_fresh_seed(
    built: Path, edit: Edit, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], holds: str, code: int, told: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(built)
    edit("book/tides.md", "holds=turning", f"holds={holds}")
    assert fresh.main(["--seed", "7"]) == code
    assert "fresh seed: 7" in (out := capsys.readouterr().out)
    assert re.search(told, out)
    table = read_json(built / "_build/fresh/7/claims.json")
    assert [row["verdict"] for row in table].count("planned") == 1


@pytest.mark.slow
def test_an_expected_failure_that_recovers_at_fresh_seeds_is_red(
    built: Path, edit: Edit, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(built)
    failure = 'theorem = "Theorem 2"\nexpected = "fails"\nreason = "r"'
    edit("book/claims.toml", 'theorem = "Theorem 2"', failure)
    assert fresh.main(["--seed", "7"]) == 1
    assert (
        "kou.tides (book/tides.md) holds at seed 7, and again at [8, 9]" in capsys.readouterr().out
    )


def test_the_seed_is_drawn_from_the_commit(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fresh.address, "git", lambda *_: "f" * 40)
    assert fresh.drawn(built) == int("f" * 40, 16) % 10**6
    monkeypatch.setattr(fresh.address, "git", lambda *_: "0" * 40)
    assert fresh.drawn(built) == 1
    monkeypatch.setattr(fresh.address, "git", lambda *_: "")
    with pytest.raises(ToolError, match="git commit"):
        fresh.drawn(built)


def test_a_seed_that_is_no_number_is_an_error(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(built)
    with pytest.raises(ToolError, match=r"seed '-3' is not allowed; give a whole number"):
        fresh.main(["--seed=-3"])
