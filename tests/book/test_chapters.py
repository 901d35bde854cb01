"""The chapters' sources: code that fits a page, figures with words, prose without typed numbers."""

import ast
import re
from pathlib import Path

import jupytext
import pytest

from tools import forms, outputs
from tools.chapters import CELL, chapters, live
from tools.format import COLUMNS, formatted, parts
from tools.pictures import CHAPTER, FIGURE

ROOT = Path(__file__).parents[2]
CHAPTERS = chapters(ROOT)
DRAWN = ("plots.show", "charts.")
SMALL = re.compile(r"(?:font|label)size=([\d.]+)")


def code_cells(name: str) -> list:
    notebook = jupytext.read(ROOT / "book" / f"{name}.md")
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.parametrize("name", CHAPTERS)
def test_code_is_laid_out_as_a_person_would_write_it(name: str) -> None:
    path = ROOT / "book" / f"{name}.md"
    assert formatted(path) == path.read_text(), f"run `make format`: book/{name}.md"
    cells = CELL.finditer(path.read_text())
    code = "".join(parts(path, cell[2])[1] for cell in cells)
    bare = re.sub(r'"""(?s:.*?)"""', "", code)  # a docstring wraps on the page
    wide = [line for line in bare.splitlines() if len(line) > COLUMNS]
    assert not wide, "\n".join(wide)


def test_arguments_fill_the_line(tmp_path: Path) -> None:
    cell = "```{code-cell} ipython3\n:tags: [mutant-off]\n\n%s\n```\n\nProse ( a,b ).\n"
    path = tmp_path / "page.md"
    path.write_text(cell % "f(\n    1,\n    2,\n)\n\n")
    assert formatted(path) == cell % "f(1, 2)"


@pytest.mark.parametrize(("mutant", "runs"), [("", 0), ("one", 1), ("two", 22), ("other", 0)])
def test_two_mutants_may_follow_one_cell(tmp_path: Path, mutant: str, runs: int) -> None:
    cell, path = "```{code-cell} ipython3\n%s\nx = %d\n```\n\n", tmp_path / "page.md"
    tags = ["", ":tags: [mutant-one]\n", ":tags: [mutant-two]\n"]
    path.write_text("".join(cell % one for one in zip(tags, (0, 1, 22), strict=True)))
    page = live(path, mutant)
    assert page.count("\n") == path.read_text().count("\n")
    assert re.findall(r"x = (\d+)", page) == [str(runs)]


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_cell_shows_one_figure(name: str) -> None:
    figures = [cell for cell in code_cells(name) if "figure" in cell.metadata.get("mystnb", {})]
    assert figures
    for cell in figures:
        body = ast.parse(cell.source).body
        said = [ast.unparse(node) for node in body if isinstance(node, ast.Expr)]
        drawn = [code for code in said if code.startswith(DRAWN)]
        assert len(drawn) == 1, "one figure a cell"


@pytest.mark.parametrize("name", CHAPTERS)
def test_the_first_code_cell_holds_the_parameters(name: str) -> None:
    first = code_cells(name)[0]
    assert first.metadata.get("tags") == ["parameters"]
    assert re.search(r"^seed = ", first.source, re.M)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_front_picture_is_the_figure_of_its_chapter(theme: str) -> None:
    front = (ROOT / f"book/_generated/assets/front-{theme}.png").read_bytes()
    light = dict(forms.pictures(outputs.committed(ROOT, CHAPTER)))[FIGURE]
    dark = (forms.folder(ROOT, CHAPTER) / f"{FIGURE}.dark.png").read_bytes()
    assert front == {"light": light, "dark": dark}[theme], "run `python -m tools pictures`"


@pytest.mark.parametrize("name", CHAPTERS)
def test_no_text_of_a_figure_is_below_eight_points(name: str) -> None:
    """Eight are ten pixels on a phone, as tests/fltutils/test_plots.py says."""
    sizes = [float(size) for c in code_cells(name) for size in SMALL.findall(c.source)]
    assert min(sizes, default=8) >= 8
