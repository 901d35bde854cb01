"""The first cell holds the sizes that *Play* names, and the chapter runs with others of them."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from tools import chapters, execute, laws

ROOT = Path(__file__).parents[2]
NAMES = laws.named(ROOT)  # the chapters in their present form
LINE = re.compile(r"(?m)^(\w+) = (\S+)  # (.+)$")


def code(name: str) -> list[str]:
    """The code cells of a chapter."""
    return [cell.source for cell in chapters.code_cells(chapters.read_source(ROOT, name))]


def sizes(name: str) -> dict[str, tuple[Any, str]]:
    """What a reader may change: each parameter but the seed, its value and what is said of it."""
    found = LINE.findall(code(name)[0])
    return {key: (ast.literal_eval(value), said) for key, value, said in found if key != "seed"}


def tried(name: str) -> dict[str, Any]:
    """The other values that the first cell proposes."""
    proposed = {key: re.search(r"; try (\S+)$", said) for key, (_, said) in sizes(name).items()}
    return {key: ast.literal_eval(found[1]) for key, found in proposed.items() if found}


@pytest.mark.parametrize("name", NAMES)
def test_play_names_what_the_first_cell_holds(name: str) -> None:
    page = (ROOT / f"book/{name}.md").read_text()
    (play,) = re.findall(r"(?ms)^## Play\n(.*?)^## ", page)
    (sentence,) = re.findall(r"(?s)the first cell (.*?)\.(?:\s|$)", play)
    assert {found.split()[0] for found in re.findall(r"`([^`]+)`", sentence)} == {*sizes(name)}


@pytest.mark.parametrize("name", NAMES)
def test_every_size_says_which_other_value_to_try(name: str) -> None:
    lines = (line for line in ast.parse(code(name)[0]).body if isinstance(line, ast.Assign))
    assigned = {ast.unparse(target) for line in lines for target in line.targets}
    assert assigned == {"seed", *sizes(name)}, "each in a line of its own, with a comment"
    assert list(tried(name)) == list(sizes(name))
    assert all(value != sizes(name)[key][0] for key, value in tried(name).items())


@pytest.mark.parametrize("name", NAMES)
def test_every_size_is_used(name: str) -> None:
    nodes = [node for cell in code(name)[1:] for node in ast.walk(ast.parse(cell))]
    used = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    assert {"seed", *sizes(name)} - used == set()


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("name", NAMES)
def test_the_chapter_runs_with_the_sizes_to_try(name: str, tmp_path: Path) -> None:
    """A claim may fall at other sizes, but no cell may."""
    task = execute.Task(name, tried(name), tmp_path, draft=True)
    assert execute.failures(execute.run_all(ROOT, [task], jobs=1)) == []
