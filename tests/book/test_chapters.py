"""The chapters' sources: code that fits a page, figures with words, prose without typed numbers."""

import base64
import json
import re
import subprocess
import sys
from pathlib import Path

import jupytext
import pytest

from tools.chapters import chapters
from tools.pictures import CHAPTER

ROOT = Path(__file__).parents[2]
CHAPTERS = chapters(ROOT)
SMALL = re.compile(r"(?:font|label)size=([\d.]+)")


def code_cells(name: str) -> list:
    notebook = jupytext.read(ROOT / "book" / f"{name}.md")
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.parametrize("name", CHAPTERS)
def test_code_is_formatted_at_80_columns(name: str, tmp_path: Path) -> None:
    for i, cell in enumerate(code_cells(name)):
        (tmp_path / f"cell_{i:02d}.py").write_text(cell.source + "\n")
    command = [
        sys.executable,
        "-m",
        "ruff",
        "format",
        "--isolated",
        "--diff",
        "--line-length",
        "80",
    ]
    run = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout
    wide = [
        line for cell in code_cells(name) for line in cell.source.splitlines() if len(line) > 100
    ]
    assert not wide, "\n".join(wide)


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_cell_shows_one_figure(name: str) -> None:
    figures = [cell for cell in code_cells(name) if "plots.show(" in cell.source]
    assert figures
    for cell in figures:
        assert cell.source.count("plots.show(") == 1, "one figure a cell"


@pytest.mark.parametrize("name", CHAPTERS)
def test_the_first_code_cell_holds_the_parameters(name: str) -> None:
    first = code_cells(name)[0]
    assert first.metadata.get("tags") == ["parameters"]
    for parameter in ("seed", "scale"):
        assert re.search(rf"^{parameter} = ", first.source, re.M)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_front_picture_is_the_figure_of_its_chapter(theme: str) -> None:
    picture = base64.b64encode((ROOT / f"book/_assets/front-{theme}.png").read_bytes()).decode()
    notebook = json.loads((ROOT / "book" / f"{CHAPTER}.ipynb").read_text())
    outputs = [o for cell in notebook["cells"] for o in cell.get("outputs", [])]
    shown = [o.get("data", {}).get("image/png", "").strip() for o in outputs]
    shown += [o.get("metadata", {}).get("fltutils", {}).get("dark", "") for o in outputs]
    assert picture in shown, "run `python -m tools pictures`"


@pytest.mark.parametrize("name", CHAPTERS)
def test_no_text_of_a_figure_is_below_eight_points(name: str) -> None:
    """Eight are ten pixels on a phone, as tests/fltutils/test_plots.py says."""
    sizes = [float(size) for c in code_cells(name) for size in SMALL.findall(c.source)]
    assert min(sizes, default=8) >= 8
