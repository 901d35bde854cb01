"""The cells that a claim needs: none too few, and none that only draw."""

import ast
from pathlib import Path
from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tools import claims, execute, mutants, slices
from tools.execute import Task
from tools.files import ToolError

ROOT = Path(__file__).parents[2]


def pair(claim: dict[str, Any]) -> tuple[str, str]:
    """A claim's chapter and mutant."""
    return claim["chapter"], claim["mutant"]


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
        ("from claims import claim; x = 1; claim('b', x); CLAIM", [1, 3]),
    ],
)
def test_what_a_claim_needs(code: str, kept: list[int]) -> None:
    body = ast.parse(code.replace("CLAIM", "claim('a', x)")).body
    assert sorted(slices.needed(body, ("a",))) == kept


def test_parameters_and_imports_always_stay() -> None:
    first = new_code_cell("n = 1", metadata={"tags": ["parameters"]})
    cells = [first, new_code_cell("%pwd\nimport os\nos.listdir()"), new_code_cell("claim('a', 1)")]
    short = slices.cut(new_notebook(cells=cells), ("a",))
    assert [cell.source for cell in short.cells] == ["n = 1", "import os", "claim('a', 1)"]


def test_a_claim_that_no_cell_names_is_an_error() -> None:
    with pytest.raises(ToolError, match="no cell names the claim a"):
        slices.needed([], ("a",))


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize(("name", "mutant"), sorted({pair(c) for c in mutants.wanted(ROOT)}))
def test_a_cut_run_measures_what_the_whole_run_measures(
    name: str, mutant: str, tmp_path: Path
) -> None:
    ids = tuple(c["id"] for c in mutants.wanted(ROOT) if pair(c) == (name, mutant))
    for path in (ROOT / "book", ROOT / "fltutils", *ROOT.glob("requirements*.txt")):
        (tmp_path / path.name).symlink_to(path)  # a root alone: two runs in one tree collide
    records = []
    for some in ((), ids):
        folder = tmp_path / str(len(some))
        task = Task(name, {"mutant": mutant}, folder, some)
        assert not execute.failures(execute.run_all(tmp_path, [task], 1))
        found = claims.emitted(claims.stored(tmp_path, name, folder), claims.CLAIM)
        records.append({claim["id"]: claim for _, claim in found if claim["id"] in ids})
    assert records[0] == records[1]
    assert set(records[1]) == set(ids)
