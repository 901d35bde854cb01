"""The cells that a claim needs: none too few, and none that only draw."""

import ast
import copy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tools import chapters as book
from tools import claims, execute, mutants, slices
from tools.execute import Task
from tools.files import ToolError

ROOT = Path(__file__).parents[2]
EVERY = mutants.wanted(ROOT, book.chapters(ROOT))


@pytest.mark.parametrize(
    ("code", "kept"),
    [
        ("x = 1; y = 2; CLAIM", [0, 2]),
        ("x = 1; x = 2; CLAIM", [1, 2]),
        ("x = 1; x = x + 1; CLAIM", [0, 1, 2]),
        ("x = [1]; x.append(2); CLAIM", [0, 1, 2]),
        ("x = [1]; x[0] = 2; CLAIM", [0, 1, 2]),
        ("x = [1]; x[0].y.z = 2; CLAIM", [0, 1, 2]),
        ("x = 1; x += 1; CLAIM", [0, 1, 2]),
        ("x = {}; del x['b']; CLAIM", [0, 1, 2]),
        ("x = {}; fill(x); CLAIM", [0, 1, 2]),
        ("import show; x = {}; show.draw(x); CLAIM", [1, 3]),
        ("x = 1\nif y: x = 2\nCLAIM", [0, 1, 2]),
        ("x = 1\nfor x in range(3): pass\nCLAIM", [0, 1, 2]),
        ("i = 1; x = [i for i in range(3)]; CLAIM", [1, 2]),
        ("n = 1; x = [n for i in range(3)]; CLAIM", [0, 1, 2]),
        ("n = 1\ndef f(n): return n\nx = f(2); CLAIM", [1, 2, 3]),
        ("n = 1\ndef f(): return n\nn = 2; x = f(); CLAIM", [1, 2, 3, 4]),
        ("n = 1\ndef f(k=n): return k\nn = 2; x = f(); CLAIM", [0, 1, 3, 4]),
        ("n = 1; x = (lambda: n)(); CLAIM", [0, 1, 2]),
        ("g = 1\ndef f(): return g()\ndef g(): return h\nh = 1; x = f(); CLAIM", [1, 2, 3, 4, 5]),
        ("c = []\ndef f(): c.append(1)\nf(); x = len(c); CLAIM", [0, 1, 2, 3, 4]),
        ("from claims import claim; x = 1; claim('b', x); CLAIM", [0, 1, 3]),
        ("n = 1\ndef g(): return n\n@claim('a')\ndef f(): return g()", [0, 1, 2]),
        ("n = 1\n@claim('a', unlike={'b': lambda: n})\ndef f(): return 2", [0, 1]),
        ("n = 1\n@experiment()\ndef g(): return n\n@claim('a')\ndef f(): return 2", [2]),
    ],
)
def test_what_a_claim_needs(code: str, kept: list[int]) -> None:
    body = ast.parse(code.replace("CLAIM", "claim('a', x)")).body
    assert slices.again(body, ("a",), {}) == kept


BASE = """
from claims import claim
seed = 1
import math
def draw(n): return [seed] * n
def scale(x): return [rate * one for one in x]
rate = 2
data = draw(3)
more = [len(data)]
more.append(5)
out = scale(data)
last = sum(out)
claim("a", last)
claim("b", more)
out = scale(out)
claim("c", out)
"""


def lines(*changes: tuple[str, str]) -> str:
    """The base program with changes."""
    text = BASE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize(
    ("changes", "claim", "rerun"),
    [
        ([], "a", ["claim('a', last)"]),
        ([("import math", "import math, math")], "a", ["claim('a', last)"]),
        ([("sum(out)", "max(out)")], "a",
         ["out = scale(data)", "last = max(out)", "claim('a', last)"]),  # out was bound again
        ([("rate = 2", "rate = 3")], "b", ["claim('b', more)"]),
        ([("rate = 2", "rate = 3")], "c",
         ["rate = 3", "out = scale(data)", "out = scale(out)", "claim('c', out)"]),
        ([("append(5)", "append(6)")], "b",
         ["more = [len(data)]", "more.append(6)", "claim('b', more)"]),
        ([("[seed]", "[seed + 1]")], "b",
         ["def draw(n):\n    return [seed + 1] * n", "data = draw(3)", "more = [len(data)]",
          "more.append(5)", "claim('b', more)"]),
    ],
)  # fmt: skip
def test_what_runs_again(changes: list[tuple[str, str]], claim: str, rerun: list[str]) -> None:
    base, held = ast.parse(BASE).body, dict[str, str]()
    for step in slices.steps(base):
        held |= step.leaves
    body = ast.parse(lines(*changes)).body
    found = [ast.unparse(body[i]) for i in slices.again(body, (claim,), held)]
    assert [line for line in found if "import" not in line] == rerun


def test_mutants_one_after_another_in_one_kernel_measure_what_each_would_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mutated = {
        "steep": (lines(("rate = 2", "rate = 7")), ("a", "c")),
        "long": (lines(("draw(3)", "draw(4)"), ("append(5)", "append(1)")), ("a", "b", "c")),
        "other": (lines(("[seed]", "[seed, seed]"), ("sum(out)", "max(out)")), ("a", "b")),
        "none": (BASE, ("a", "b", "c")),
    }

    def notebook(code: str) -> Any:
        return new_notebook(cells=[new_code_cell(line) for line in code.strip().split("\n")])

    found: dict[str, Any] = {}
    kernel: dict[str, Any] = {"claim": lambda name, x: found.update({name: copy.copy(x)})}
    monkeypatch.setitem(sys.modules, "claims", SimpleNamespace(claim=kernel["claim"]))
    exec(BASE, kernel)
    whole = {name: (notebook(code), ids) for name, (code, ids) in mutated.items()}
    for cell, (code, ids) in zip(
        slices.trials(notebook(BASE), whole), mutated.values(), strict=True
    ):
        found.clear()
        exec(cell.source, kernel)
        inside = dict(found)
        exec(code, {})
        assert inside == {name: found[name] for name in ids}, cell.metadata


def test_a_claim_that_no_cell_names_is_an_error() -> None:
    with pytest.raises(ToolError, match="no cell names the claim a"):
        slices.again([], ("a",), {})


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("name", sorted({claim["chapter"] for claim in EVERY}))
def test_mutants_after_the_chapter_measure_what_their_whole_runs_measure(
    name: str, tmp_path: Path
) -> None:
    for path in (ROOT / "book", ROOT / "fltutils", *ROOT.glob("requirements*.txt")):
        (tmp_path / path.name).symlink_to(path)  # a root alone: two runs in one tree collide
    ids = {c["id"]: c["mutant"] for c in EVERY if c["chapter"] == name}
    whole = [Task(name, {}, tmp_path / mutant, mutant) for mutant in sorted({*ids.values()})]
    after = Task(name, {}, tmp_path / "after", trials=mutants.trials(ROOT, name))
    assert not execute.failures(execute.run_all(tmp_path, [after, *whole], 1))

    def measured(task: Task, which: str) -> dict[str, Any]:
        nb = claims.stored(tmp_path, name, task.out)
        return {claim["id"]: claim for _, claim in claims.emitted(nb, claims.CLAIM, which)}

    differ = {}
    for task in whole:
        alone, there = measured(task, ""), measured(after, task.mutant)
        own = {claim for claim, mutant in ids.items() if mutant == task.mutant}
        differ |= {i: (alone[i], there[i]) for i in own if alone[i] != there[i]}
    assert differ == {}
