"""One figure in two themes and two widths.

A chapter writes a function that draws on axes; `show` calls it for a light page and, where a site
is made, for a dark one, and for each once more with its panels below one another, as a phone shows
them. Colours are Okabe and Ito's, safe for the colour-blind, and no meaning hangs on colour alone:
lines also differ in dash, points in marker.
"""

import base64
import builtins
import hashlib
import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.rcsetup import cycler
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter
from PIL import Image

from fltutils import drawn

BLUE, ORANGE, GREEN, PINK, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9"
GREY, BROWN = "#6B6B6B", "#8C564B"
CYCLE = (BLUE, ORANGE, GREEN, PINK, SKY)
_DARK = {
    BLUE: "#5AB4F0", ORANGE: "#FF8A3D", GREEN: "#2FD0A5", PINK: "#E6A5CB", SKY: "#9AD8FF",
    GREY: "#B0B0B0", BROWN: "#C49C94",
}  # fmt: skip
_THEMES = {"light": ("#ffffff", "#1a1a1a", "#d0d0d0"), "dark": ("#121212", "#e8e8e8", "#3d3d3d")}
_theme = "light"
PIXELS = 150  # an inch, as a page shows them; a picture has twice as many
PAGE = 774  # pixels of a page's column, which shrinks what is wider
FORMS = ("dark", "light-narrow", "dark-narrow")  # besides the light one
PHONE, LOWEST, HIGHEST = 3.6, 2.5, 2.9  # inches: a phone's column, and a panel's height there


def ink() -> str:
    """The colour of text and of theory's lines on the current page."""
    return _THEMES[_theme][1]


def colour(c: str) -> str:
    """A colour of the cycle as the current page shows it."""
    return _DARK.get(c, c) if _theme == "dark" else c


def _style(theme: str) -> Any:
    back, fore, grid = _THEMES[theme]
    cycle = [c if theme == "light" else _DARK[c] for c in CYCLE]
    return {
        "figure.facecolor": back, "axes.facecolor": back, "savefig.facecolor": back,
        "text.color": fore, "axes.labelcolor": fore, "axes.edgecolor": fore,
        "xtick.color": fore, "ytick.color": fore, "grid.color": grid, "legend.labelcolor": fore,
        "axes.grid": True, "grid.linewidth": 0.6, "axes.axisbelow": True,
        "axes.spines.top": False, "axes.spines.right": False,
        "font.size": 10, "axes.titlesize": 10, "legend.fontsize": 9, "legend.frameon": False,
        "lines.linewidth": 1.8, "image.cmap": "cividis", "font.family": "DejaVu Sans",
        "mathtext.fontset": "dejavusans", "axes.prop_cycle": cycler(color=cycle),
    }  # fmt: skip


def displayed(size: tuple[float, float]) -> tuple[int, int]:
    """Pixels of a page that a figure of so many inches takes."""
    scale = min(PIXELS, PAGE / size[0])
    return round(size[0] * scale), round(size[1] * scale)


def sharp(width: float) -> float:
    """Pixels an inch of a figure so wide: two for each that a page or a phone shows."""
    return 2 * min(PIXELS, (PAGE if width > PHONE else PAGE / 2) / width)


def stacked(
    rows: int, cols: int, size: tuple[float, float]
) -> tuple[int, int, tuple[float, float]]:
    """Rows, columns and size of a figure on a phone: eight points are ten pixels there."""
    panels, ratio = rows * cols, (size[1] / rows) / (size[0] / cols)
    across = 1 if panels < 5 else 2
    down = -(-panels // across)
    height = min(max(PHONE / across * ratio, LOWEST / across), HIGHEST)
    return down, across, (PHONE, down * height)


def relabel(axes: list[Axes], cols: int, across: int) -> None:
    """Give panels that were moved the words that they shared with their row and their column."""
    for place, ax in enumerate(axes):
        column = axes[place % cols :: cols]
        ax.set_title(ax.get_title() or column[0].get_title())
        ax.set_xlabel(ax.get_xlabel() or column[-1].get_xlabel())
        if place % across == 0:
            ax.set_ylabel(ax.get_ylabel() or axes[place - place % cols].get_ylabel())


@contextmanager
def themed(theme: str) -> Iterator[None]:
    """What is drawn meanwhile has the colours of a theme."""
    global _theme
    _theme = theme
    try:
        with mpl.rc_context():
            mpl.rcdefaults()
            mpl.rcParams.update(_style(theme))
            yield
    finally:
        _theme = "light"


def figure(
    draw: Callable[..., None],
    rows: int,
    cols: int,
    size: tuple[float, float],
    narrow: bool = False,
) -> Figure:
    """What `draw(*axes)` gives in the present theme, as wide as a page or as a phone."""
    down, across, inches = stacked(rows, cols, size) if narrow else (rows, cols, size)
    fig = Figure(figsize=inches, dpi=sharp(inches[0]), layout="constrained")
    FigureCanvasAgg(fig)
    axes = fig.subplots(down, across, squeeze=False).flatten().tolist()
    for spare in axes[rows * cols :]:
        spare.remove()
    draw(*axes[: rows * cols])
    if narrow:
        relabel(axes[: rows * cols], cols, across)
    return fig


def render(
    draw: Callable[..., None],
    theme: str,
    rows: int,
    cols: int,
    size: tuple[float, float],
    narrow: bool = False,
) -> Figure:
    """The figure in a theme, in pixels."""
    with themed(theme):
        fig = figure(draw, rows, cols, size, narrow)
        fig.canvas.draw()
    return fig


def png(fig: Figure) -> bytes:
    """A drawn figure in 128 colours, no eye sees more in a plot; the same bytes in every run."""
    buffer, canvas = io.BytesIO(), fig.canvas
    assert isinstance(canvas, FigureCanvasAgg)
    picture = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    picture.quantize(128, dither=Image.Dither.NONE).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def _write(path: Path, content: bytes) -> None:
    """A file, whole or not at all."""
    draft = path.with_suffix(".tmp")
    draft.write_bytes(content)
    draft.replace(path)


def show(
    draw: Callable[..., None],
    rows: int = 1,
    cols: int = 1,
    size: tuple[float, float] = (4.8, 3.1),
) -> None:
    """Display `draw(*axes)` as one picture, that of a light page.

    What a site needs besides goes to folders that the environment names, in files called by the
    picture's sha256: its numbers where FLTUTILS_TABLES is set, its other forms where
    FLTUTILS_FIGURES is. With FLTUTILS_DRAFT, as for runs at other seeds, nobody looks at it: `draw`
    is called, and no pixel is made.
    """
    if os.environ.get("FLTUTILS_DRAFT"):
        with themed("light"):
            figure(draw, rows, cols, size)
        return
    fig = render(draw, "light", rows, cols, size)
    light = png(fig)
    display = getattr(builtins, "display", None)  # IPython puts it there
    if display is not None:
        bundle = {"image/png": base64.b64encode(light).decode(), "text/plain": "<Figure>"}
        shown = dict(zip(("width", "height"), displayed(size), strict=True))
        display(bundle, raw=True, metadata={"image/png": shown})
    stem = hashlib.sha256(light).hexdigest()
    if folder := os.environ.get("FLTUTILS_TABLES"):
        _write(Path(folder, f"{stem}.csv"), drawn.table(fig.axes).encode())
    if folder := os.environ.get("FLTUTILS_FIGURES"):
        for form in FORMS:
            theme, _, narrow = form.partition("-")
            other = render(draw, theme, rows, cols, size, bool(narrow))
            _write(Path(folder, f"{stem}.{form}.png"), png(other))


def seeds(
    ax: Axes, x: Any, ys: Any, label: str, c: str = BLUE, dash: Any = "-", marker: str = ""
) -> None:
    """Every run as a thin line, their mean as a thick one; ys is (runs, len(x))."""
    ys = np.asarray(ys)
    runs = [f"_{label}, run {run}" for run in range(1, len(ys) + 1)]  # no legend shows a _
    ax.plot(x, ys.T, color=colour(c), lw=0.7, alpha=0.35, ls=dash, label=runs)
    ax.plot(x, ys.mean(0), color=colour(c), lw=2.2, ls=dash, marker=marker, ms=5, label=label)


def theory(ax: Axes, x: Any, y: Any, label: str | None = None) -> None:
    """What theory predicts: a dashed line in the colour of the text."""
    ax.plot(x, y, color=ink(), lw=1.6, ls=(0, (4, 2)), label=label, zorder=5)


def phase(
    ax: Axes,
    x: Sequence[float],
    y: Sequence[float],
    z: Any,
    label: str,
    limits: tuple[float, float],
    c: str = ORANGE,
) -> None:
    """A phase diagram on two log axes: z (len(y), len(x)), the stronger the more, with a scale.

    Orange is harm, as it is in labs and curves; for what is learned c is BLUE.
    """
    shades = LinearSegmentedColormap.from_list("shades", [_THEMES[_theme][0], colour(c)])
    mesh = ax.pcolormesh(
        x, y, z, vmin=limits[0], vmax=limits[1], shading="nearest", rasterized=True, cmap=shades
    )
    mesh.set_label(f"_{label}")  # no legend shows a _
    vars(mesh)["centres"] = (x, y)  # for the table of what is drawn
    ax.set(xscale="log", yscale="log")
    ax.grid(False)
    bar = ax.figure.colorbar(mesh, ax=ax, label=label)
    bar.outline.set_edgecolor(ink())


def boundary(ax: Axes, x: Any, y: Any, label: str) -> None:
    """A predicted boundary on a phase diagram, readable on every colour, named below the figure."""
    back, _, _ = _THEMES[_theme]
    outline = [patheffects.Stroke(linewidth=4, foreground=back), patheffects.Normal()]
    ax.plot(x, y, color=ink(), lw=1.8, ls=(0, (4, 2)), path_effects=outline, label=label)
    _legend_below(ax)


def dots(ax: Axes, x: Any, y: Any, label: str) -> None:
    """Measured points of a boundary on a phase diagram, named below the figure."""
    ax.plot(x, y, "o", color="white", ms=5, mec="black", label=label)
    _legend_below(ax)


def _legend_below(ax: Axes) -> None:
    figure = ax.figure
    for old in figure.legends:
        old.remove()
    ncols = 1 if round(figure.bbox.width) == PAGE else 2  # a phone's has one
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=ncols)


def ticks(axis: Axis, values: Sequence[float]) -> None:
    """Ticks at these values of a log axis, written as plain numbers."""
    axis.set_major_locator(FixedLocator(values))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
