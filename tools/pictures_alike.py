"""Whether two pictures show the same; as a plugin of pytest, nbval compares pictures too.

`python -m pytest --nbval -p tools.pictures_alike`: nbval itself leaves PNGs out.
"""

import base64
import hashlib
import io
import os
import re
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nbval.plugin import IPyNbCell
from PIL import Image

from tools.execute import TABLES
from tools.forms import folder

BLOCK = 16  # pixels: about what a marker covers
NUMBER = re.compile(r"(?<=,)-?\d[\d.e+-]*(?=[,\n])")  # in a table
CHANGE = 12.0  # of 255, mean over a block: rounding of edges makes less, a moved marker more


def pixels(data: str) -> np.ndarray | None:
    """The pixels of a base64 PNG."""
    try:
        with Image.open(io.BytesIO(base64.b64decode(data))) as image:
            return np.asarray(image.convert("RGBA"), dtype=float)
    except (OSError, ValueError, SyntaxError):  # PIL raises SyntaxError on a broken PNG
        return None


def change(a: np.ndarray, b: np.ndarray) -> float:
    """The largest mean difference in a block, by the channel that differs most."""
    apart = np.abs(a - b).max(-1)
    rows, columns = apart.shape
    total = np.add.reduceat(apart, range(0, rows, BLOCK), 0)
    total = np.add.reduceat(total, range(0, columns, BLOCK), 1)
    return float(total.max()) / BLOCK**2


def alike(ours: str, theirs: str) -> bool:
    """Whether two base64 PNGs have one size and show the same everywhere."""
    if ours == theirs:
        return True
    a, b = pixels(ours), pixels(theirs)
    return a is not None and b is not None and a.shape == b.shape and change(a, b) < CHANGE


def near(ours: str, theirs: str) -> bool:
    """Whether two tables are the same but for the last of their digits."""
    a, b = (np.array(NUMBER.findall(text), dtype=float) for text in (ours, theirs))
    words = NUMBER.sub("#", ours) == NUMBER.sub("#", theirs)
    return words and np.allclose(a, b, rtol=2e-3, atol=1e-6 * np.abs(a).max(initial=0.0))


def table(path: Path) -> str:
    """The numbers of a picture; empty where it has none."""
    return path.read_text(encoding="utf-8") if path.exists() else ""


def drawn(light: str) -> str:
    """The numbers of a picture of this run."""
    stem = hashlib.sha256(base64.b64decode(light)).hexdigest()
    return table(Path(os.environ[TABLES], f"{stem}.csv"))


def shown(outputs: list[Any]) -> tuple[list[Any], list[str]]:
    """What nbval leaves out of a cell's displays: types and metadata, and the pictures."""
    displays = [output for output in outputs if "data" in output]
    kinds = [(output.output_type, sorted(output.data), output.metadata) for output in displays]
    return kinds, [o.data["image/png"] for o in displays if "image/png" in o.data]


def fault(reference: list[Any], found: list[Any], numbers: str) -> str:
    """In what a cell's pictures are not the stored ones, which have these numbers."""
    (stored, before), (made, after) = shown(reference), shown(found)
    if stored != made:
        return f"stored: {stored}, of this run: {made}"
    if not near(numbers, "".join(map(drawn, after))):
        return "the numbers of the picture differ"
    return "" if all(map(alike, before, after)) else "the picture shows something else"


def pytest_configure(config: Any) -> None:
    """Have the figures of notebooks leave their numbers in a folder."""
    if config.getoption("nbval", False):
        place = tempfile.TemporaryDirectory()
        config.add_cleanup(place.cleanup)
        os.environ[TABLES] = place.name


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Compare a notebook cell's pictures after nbval has compared the rest."""
    yield
    if isinstance(item, IPyNbCell):
        place = folder(item.path.parents[1], item.path.stem)
        numbers = table(place / f"{item.cell.metadata.get('figure')}.csv")
        if told := fault(item.cell.outputs, item.test_outputs, numbers):
            item.raise_cell_error("Cell outputs differ", told)
