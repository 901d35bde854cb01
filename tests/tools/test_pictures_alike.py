"""Pictures are compared in blocks: a moved point is seen, another processor's edges are not."""

import base64
import hashlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from tools.execute import TABLES
from tools.pictures_alike import alike, fault, pixels

TABLE = "1,a,1,0.3333,\n"
X, Y = np.random.default_rng(0).normal(size=(2, 30))


def png(array: np.ndarray) -> str:
    """Pixels as a base64 PNG."""
    buffer = io.BytesIO()
    Image.fromarray(array.astype(np.uint8)).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def drawn(x: np.ndarray = X, y: np.ndarray = Y, width: float = 6.0) -> str:
    """Thirty faint points and a line."""
    figure = Figure(figsize=(width, 4.0))
    axes = figure.subplots()
    axes.set(xlim=(-3, 3), ylim=(-3, 3))
    axes.plot(x, y, "o", markersize=4, alpha=0.6)
    axes.plot(np.sort(x), np.sort(y))
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return base64.b64encode(buffer.getvalue()).decode()


@pytest.mark.parametrize("point", range(0, 30, 7))
def test_one_moved_point_of_thirty_is_seen(point: int) -> None:
    moved = Y + 0.3 * (np.arange(30) == point)
    assert not alike(drawn(), drawn(y=moved))


def test_rounding_is_not_seen() -> None:
    assert alike(drawn(), drawn())
    assert alike(drawn(), drawn(X * (1 + 1e-9), Y * (1 - 1e-9)))


def test_other_edges_are_not_seen() -> None:
    picture = pixels(drawn())
    assert picture is not None
    edges = np.abs(np.diff(picture, axis=0, prepend=255.0)).max(-1, keepdims=True) > 0
    noise = np.random.default_rng(1).uniform(-20, 20, picture.shape)
    assert alike(drawn(), png(np.clip(picture + edges * noise, 0, 255)))


@pytest.mark.parametrize("other", [drawn(width=6.1), "iVBORw0KGgo=", "not base64!"])
def test_another_size_or_no_picture_is_seen(other: str) -> None:
    assert not alike(drawn(), other)


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """What a cell with a figure puts out, and the table that it leaves."""
    monkeypatch.setenv(TABLES, str(tmp_path))

    def output(light: str, table: str = "", **metadata: Any) -> dict[str, Any]:
        light = base64.b64encode(light.encode()).decode()
        (tmp_path / f"{hashlib.sha256(base64.b64decode(light)).hexdigest()}.csv").write_text(table)
        data = {"image/png": light}
        return nbformat.v4.new_output("display_data", data=data, metadata=metadata)

    return output


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ([("light", TABLE)], ""),
        ([("light", "1,a,1,0.3334,\n")], ""),
        ([("light", "1,a,1,0.335,\n")], "the numbers of the picture differ"),
        ([("light", "1,b,1,0.3333,\n")], "the numbers of the picture differ"),
        ([("light", "")], "the numbers of the picture differ"),
        ([("other", TABLE)], "the picture shows something else"),
        ([], "stored: [('display_data', ['image/png'], {})], of this run: []"),
    ],
)
def test_each_fault_of_a_picture_is_told(
    shown: Callable[..., dict[str, Any]], found: list[tuple[str, str]], told: str
) -> None:
    assert fault([shown("light")], [shown(*one) for one in found], TABLE) == told


def test_another_size_of_a_picture_is_told(shown: Callable[..., dict[str, Any]]) -> None:
    told = fault([shown("light")], [shown("light", width=2)], "")
    assert told.endswith("of this run: [('display_data', ['image/png'], {'width': 2})]")
