"""The numbers that a figure draws, read off its axes: a table that a reader can download.

One row a point, four digits. What has no row is counted: text, arrows, shading.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import LineCollection, PathCollection, QuadMesh
from matplotlib.container import ErrorbarContainer
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

HEAD = "panel,series,x,y,value"
Row = tuple[Any, ...]


def line(artist: Line2D) -> Iterator[Row]:
    """The points of a line; one that crosses the whole panel has a single number."""
    x, y = (np.asarray(values, dtype=float) for values in artist.get_data())
    assert artist.axes is not None
    across, up = artist.get_transform().contains_branch_seperately(artist.axes.transData)
    if across and up:
        yield from zip(x, y, strict=True)
    elif across or up:
        yield (x[0], "") if across else ("", y[0])


def cells(x: Sequence[float], y: Sequence[float], z: Any) -> Iterator[Row]:
    """The cells of a map: where each is, and its value."""
    for j, i in np.ndindex(len(y), len(x)):
        yield x[i], y[j], z[j, i]


def points(artist: Artist) -> Iterator[Row]:
    """The rows of an artist; none where it draws no numbers."""
    if isinstance(artist, Line2D):
        yield from line(artist)
    elif isinstance(artist, QuadMesh) and "centres" in vars(artist):  # plots.phase
        x, y = vars(artist)["centres"]
        yield from cells(x, y, artist.get_array())
    elif isinstance(artist, AxesImage):
        rows, columns = artist.get_size()
        yield from cells(range(columns), range(rows), artist.get_array())
    elif isinstance(artist, PathCollection):
        yield from map(tuple, np.asarray(artist.get_offsets(), dtype=float))
    elif isinstance(artist, LineCollection):
        yield from (tuple(point) for ends in artist.get_segments() for point in ends)
    elif isinstance(artist, Rectangle):
        yield artist.get_x() + artist.get_width() / 2, artist.get_y() + artist.get_height()


def names(ax: Axes) -> dict[Artist, str]:
    """What each artist of a panel shows: the legend's words, else its place among them."""
    found = {}
    for place, artist in enumerate([*ax.lines, *ax.collections, *ax.images, *ax.patches], 1):
        label = str(artist.get_label())
        plain = not label or label.startswith(("_child", "_nolegend", "_,"))
        found[artist] = f"series {place}" if plain else label.lstrip("_")
    for box in ax.containers:
        if not str(box.get_label()).startswith("_container"):
            found |= dict.fromkeys(box.get_children(), str(box.get_label()))
        if isinstance(box, ErrorbarContainer):
            for cap in box[1]:
                del found[cap]
            found |= dict.fromkeys(box[2], f"{box.get_label()}, ends of the bars")
    return found


def digits(number: Any) -> str:
    """Four digits; nothing where there is no number."""
    return f"{number:.4g}" if isinstance(number, float | int | np.number) else ""


def quoted(text: str) -> str:
    """A field of a table, in quotation marks where it holds a comma or some of its own."""
    return '"' + text.replace('"', '""') + '"' if {",", '"'} & set(text) else text


def ends(axis: Axis) -> str:
    """What an axis is, and what its numbers stand for where its ticks are words."""
    told = getattr(axis.get_major_formatter(), "func", None)
    words = told.args[0] if isinstance(told, partial) else {}  # as set_ticks(places, words) left it
    parts = [axis.get_label_text(), *(f"{place:g} = {word}" for place, word in words.items())]
    return ", ".join(filter(None, parts))


def table(axes: Sequence[Axes]) -> str:
    """The rows of all panels, below a line on each: its title and what its axes are."""
    head, rows = [], [HEAD]
    panels = [ax for ax in axes if ax.get_label() != "<colorbar>"]
    for number, ax in enumerate(panels, 1):
        words = {"title": ax.get_title(), "x": ends(ax.xaxis), "y": ends(ax.yaxis)}
        told = "; ".join(f"{key}: {text}" for key, text in words.items() if text)
        head.append(" ".join(f"# panel {number}: {told}".split()))
        left: Counter[str] = Counter(type(text).__name__ for text in ax.texts)
        for artist, name in names(ax).items():
            found = list(points(artist))
            left[type(artist).__name__] += not found
            for row in found:
                fields = [str(number), quoted(name), *map(digits, row)]
                rows.append(",".join(fields + [""] * (5 - len(fields))))
        if told := ", ".join(f"{count} {kind}" for kind, count in sorted(left.items()) if count):
            head[-1] += f"; without numbers here: {told}"
    return "\n".join([*head, *rows]) + "\n"
