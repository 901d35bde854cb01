"""Whether two pictures show the same; as a plugin of pytest, nbval compares pictures too.

`python -m pytest --nbval -p tools.pictures_alike`: nbval itself leaves PNGs out.
"""

import base64
import binascii
import io
import re
import zlib
from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
import pytest
from nbval.plugin import IPyNbCell
from PIL import Image

BLOCK = 16  # pixels: about what a marker covers
NUMBER = re.compile(r"(?<=,)-?\d[\d.e+-]*(?=[,\n])")  # in a table
CHANGE = 12.0  # of 255, mean over a block: rounding of edges makes less, a moved marker more


def pixels(data: str) -> np.ndarray | None:
    """The pixels of a base64 PNG."""
    try:
        with Image.open(io.BytesIO(base64.b64decode(data))) as image:
            return np.asarray(image.convert("RGBA"), dtype=float)
    except (OSError, binascii.Error, SyntaxError):  # PIL raises SyntaxError on a broken PNG
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


def pictures(outputs: list[Any]) -> Iterator[tuple[str, str]]:
    """Every picture of a cell, in each form, with what to call it."""
    for output in outputs:
        if light := output.get("data", {}).get("image/png"):
            yield "the picture", light
        forms = output.get("metadata", {}).get("fltutils", {})
        for form, data in sorted(forms.items()):  # a stored notebook has them in this order
            if form != "data":
                yield f"the {form} form of the picture", data


def tables(outputs: list[Any]) -> list[str]:
    """The numbers of a cell's pictures."""
    packed = [o.get("metadata", {}).get("fltutils", {}).get("data") for o in outputs]
    return [zlib.decompress(base64.b64decode(data)).decode() for data in packed if data]


def near(ours: str, theirs: str) -> bool:
    """Whether two tables are the same but for the last of their digits."""
    a, b = (np.array(NUMBER.findall(text), dtype=float) for text in (ours, theirs))
    words = NUMBER.sub("#", ours) == NUMBER.sub("#", theirs)
    return words and np.allclose(a, b, rtol=2e-3, atol=1e-6 * np.abs(a).max(initial=0.0))


def shape(outputs: list[Any]) -> list[Any]:
    """What nbval leaves out of a cell's displays besides pictures: their types and metadata."""
    return [
        (output.output_type, {k: v for k, v in output.metadata.items() if k != "fltutils"})
        for output in outputs
        if "data" in output
    ]


def faults(reference: list[Any], found: list[Any]) -> list[str]:
    """The pictures of a cell that do not show what the stored ones show."""
    stored, made = list(pictures(reference)), list(pictures(found))
    if [name for name, _ in stored] != [name for name, _ in made]:
        return [f"stored pictures in all forms: {len(stored)}, of this run: {len(made)}"]
    if shape(reference) != shape(found):
        return [f"stored: {shape(reference)}, of this run: {shape(found)}"]
    if not all(map(near, tables(reference), tables(found))):
        return ["the numbers of the picture differ"]
    pairs = zip(stored, made, strict=True)
    return [f"{name} shows something else" for (name, a), (_, b) in pairs if not alike(a, b)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Compare a notebook cell's pictures after nbval has compared the rest."""
    yield
    if isinstance(item, IPyNbCell) and (found := faults(item.cell.outputs, item.test_outputs)):
        item.raise_cell_error("Cell outputs differ", "\n".join(found))
