"""The score counts what a test noticed, excuses only what is listed, and can be too low."""

import json
import re
from pathlib import Path

import pytest

from tools import mutation
from tools.files import ToolError

ROOT = Path(__file__).parents[2]
CHANGES = {
    "fltutils.fit.x_line__mutmut_1": "- y = a + b\n+ y = a - b",
    "fltutils.fit.x_line__mutmut_2": "- size = 100\n+ size = 101",
}
RULE = {"where": "fltutils.fit.x_line", "change": r"size = \d+", "reason": "accurate either way"}
TINY = {
    "fltutils/__init__.py": "",
    "fltutils/add.py": "def add(a, b):\n    return a + b\n\n\ndef idle(a):\n    return a * 2\n",
    "tests/__init__.py": "",
    "tests/fltutils/__init__.py": "",
    "tests/fltutils/test_add.py": """from fltutils.add import add, idle

def test_add():
    assert add(2, 1) == 3
    idle(1)
""",
    "pyproject.toml": """[tool.mutmut]
source_paths = ["fltutils/"]
pytest_add_cli_args_test_selection = ["tests/fltutils"]
""",
}


def test_what_is_equivalent_is_left_out_of_the_score() -> None:
    found = mutation.record(CHANGES, 8, [RULE])
    assert (found["mutants"], found["killed"], found["score"]) == (10, 8, round(8 / 9, 4))
    assert found["equivalent"] == {"fltutils.fit.x_line__mutmut_2": "accurate either way"}
    assert found["survived"] == ["fltutils.fit.x_line__mutmut_1"]


@pytest.mark.parametrize("part", [{"where": "fltutils.span"}, {"change": "size = x"}])
def test_an_excuse_without_a_survivor_is_refused(part: dict[str, str]) -> None:
    with pytest.raises(ToolError, match=r"mutation\.toml: no survivor of fltutils"):
        mutation.record(CHANGES, 8, [RULE | part])


def test_a_low_score_is_red() -> None:
    mutation.check(mutation.record(CHANGES, 18, []))
    with pytest.raises(ToolError, match=r"mutation score 0\.895: at least 0\.9"):
        mutation.check(mutation.record(CHANGES, 17, []))


def test_the_committed_score_adds_up_and_is_high_enough() -> None:
    found = json.loads((ROOT / "book/_generated/mutation.json").read_text())
    assert re.fullmatch(r"[0-9a-f]{40}", found["commit"])
    counted = found["mutants"] - len(found["equivalent"])
    assert counted == found["killed"] + len(found["survived"])
    assert found["score"] == round(found["killed"] / counted, 4)
    assert all(len(reason) > 20 for reason in found["equivalent"].values())
    mutation.check(found)


@pytest.mark.slow
@pytest.mark.nightly
def test_mutmut_finds_the_change_that_no_test_notices(tmp_path: Path) -> None:
    for name, text in TINY.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    folder = mutation.prepare(tmp_path)
    mutation.run(folder)
    found = mutation.results(folder)
    assert {name: found[name] for name in sorted(found)} == {
        "fltutils.add.x_add__mutmut_1": "killed",
        "fltutils.add.x_idle__mutmut_1": "survived",
        "fltutils.add.x_idle__mutmut_2": "survived",
    }
    text = mutation.change(folder, "fltutils.add.x_idle__mutmut_1")
    assert text == "- return a * 2\n+ return a / 2"
