"""The figures that recur, one call each, from a table with named axes.

Each draws on `ax`, or makes a figure of its own and shows it: `charts.curves(table, "d")`. A table
has a dimension `run`, as `grid.over` gives it; theory is a function of the axis.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis

from fltutils import fit, plots

Table = Any  # an xarray.DataArray
LOOKS: list[tuple[str, Any, str]] = [
    (plots.GREEN, "-", "o"), (plots.PINK, "--", "s"), (plots.SKY, "-.", "^"),
    (plots.GREY, ":", "D"), (plots.BROWN, (0, (5, 1, 1, 1, 1, 1)), "v"),
]  # fmt: skip
LEARNING = re.compile(r"signal|\\gamma")
HARM = re.compile(r"(?<!label-)noise|memory|error|loss|\\rho")


def hue_of(name: str, other: str = plots.GREEN) -> str:
    """Blue for what is learned, orange for harm, in every figure and lab; other for the rest."""
    return plots.BLUE if LEARNING.search(name) else plots.ORANGE if HARM.search(name) else other


def curves(
    table: Table,
    x: str,
    hue: str | None = None,
    *,
    label: str = "{}",
    theory: Callable[..., Any] | None = None,
    told: str = "theory",
    marks: bool = True,
    ax: Axes | None = None,
    size: tuple[float, float] = (4.8, 3.1),
    **settings: Any,
) -> None:
    """Values over an axis: every run a thin line, their mean a thick one, theory dashed.

    With `hue` there is a bundle for each value of a second axis, and `label` names it. `theory` is
    a function of x, and of the value of hue if it takes two. `settings` are those of an axes:
    xscale, ylabel and so on.
    """
    if ax is None:

        def alone(ax: Axes) -> None:
            curves(
                table, x, hue, label=label, theory=theory, told=told, marks=marks, ax=ax, **settings
            )

        return plots.show(alone, size=size)
    at = table[x].values
    parts = (
        [(None, table)] if hue is None else [(v, table.sel({hue: v})) for v in table[hue].values]
    )
    fine = _between(at, settings.get("xscale") == "log")
    for k, (value, part) in enumerate(parts):
        c, dash, mark = LOOKS[k % len(LOOKS)]
        name = label.format(_plain(value) if hue else table.name or "measured")
        c = hue_of(name if hue else str(table.name), c)
        plots.seeds(ax, at, part.transpose("run", x).values, name, c, dash, mark if marks else "")
        if theory is not None and (hue is not None or not k):
            y = theory(fine) if hue is None else theory(fine, value)
            plots.theory(ax, fine, y, told if not k else None)
    ax.set(**{"xlabel": x} | settings)
    if settings.get("xscale") == "log":
        _plainly(ax.xaxis, at)
    if hue is not None or theory is not None or label != "{}":
        ax.legend()
    return None


def _plain(value: Any) -> Any:
    """A value as a label has it: 100 and not 100.0."""
    value = value.item() if hasattr(value, "item") else value
    return int(value) if isinstance(value, float) and value == int(value) else value


def _between(at: np.ndarray, log: bool) -> np.ndarray:
    """Many places from the first to the last of an axis."""
    ends = float(np.min(at)), float(np.max(at))
    return np.geomspace(*ends, 61) if log else np.linspace(*ends, 61)


def agreement(
    told: Table,
    found: Table,
    *,
    names: tuple[str, str] = ("derived", "measured"),
    what: str = "",
    log: bool = False,
    ax: Axes | None = None,
    size: tuple[float, float] = (3.9, 3.1),
) -> None:
    """Measured against derived, a point each, and the diagonal on which they agree."""
    if ax is None:
        return plots.show(
            lambda ax: agreement(told, found, names=names, what=what, log=log, ax=ax), size=size
        )
    x, y = (np.ravel(np.asarray(values, dtype=float)) for values in (told, found))
    both = np.concatenate([x, y])
    both = both[np.isfinite(both)]  # a run may have no number
    both = both if both.size else np.array([0.9, 1.1])
    ends = (both.min() / 1.1, both.max() * 1.1) if log else _widened(both)
    plots.theory(ax, ends, ends, "as derived")
    ax.plot(x, y, "o", ms=5, color=plots.colour(plots.GREEN), label="measured")
    scale = "log" if log else "linear"
    ax.set(xlabel=f"{names[0]} {what}".strip(), ylabel=f"{names[1]} {what}".strip())
    ax.set(xscale=scale, yscale=scale)
    ax.legend()
    return None


def _widened(values: np.ndarray) -> tuple[float, float]:
    room = 0.05 * (values.max() - values.min())
    return values.min() - room, values.max() + room


def phase_diagram(
    table: Table,
    x: str,
    y: str,
    *,
    boundary: Callable[[np.ndarray], Any] | None = None,
    told: str = "predicted",
    level: float | None = None,
    names: tuple[str, str] | None = None,
    ax: Axes | None = None,
    size: tuple[float, float] = (5.2, 4.2),
    **settings: Any,
) -> None:
    """The mean over runs on two log axes, the predicted boundary dashed, dots where it is passed.

    `boundary` gives y for x; `level` is the value whose crossing along y the dots mark. The scale
    is called as the table is.
    """
    if ax is None:
        return plots.show(
            lambda ax: phase_diagram(
                table, x, y, boundary=boundary, told=told, level=level, names=names, ax=ax,
                **settings,
            ),
            size=size,
        )  # fmt: skip
    what, mean = str(table.name or "mean"), table.mean("run").transpose(y, x)
    across, top = mean[x].values, np.ceil(10 * float(mean.max())) / 10
    plots.phase(ax, across, mean[y].values, mean.values, what, (0.0, top))
    if boundary is not None:
        plots.boundary(ax, across, boundary(across), told)
    if level is not None:
        dots = fit.crossing(mean, y, level).values
        plots.dots(ax, across, dots, f"measured, {what} {level:g}")
    ax.set(**dict(zip(("xlabel", "ylabel"), names or (x, y), strict=True)) | settings)
    for axis, at in ((ax.xaxis, across), (ax.yaxis, mean[y].values)):
        _plainly(axis, at, few=0)
    return None


def _plainly(axis: Axis, at: np.ndarray, few: int = 8) -> None:
    """Plain numbers on a log axis of up to three decades: each where they are few, else round."""
    if at.max() < 1000 * at.min():
        plots.ticks(axis, at.tolist() if len(at) < few else _round(at.min(), at.max()))


def _round(low: float, high: float) -> list[float]:
    """The numbers 1, 2 and 5 times a power of ten within limits."""
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    found = [float(f"{k}e{e}") for e in powers for k in (1, 2, 5)]
    return [value for value in found if low * 0.999 <= value <= high * 1.001]


def strips(
    values: Mapping[str, Sequence[Any] | Table],
    *,
    also: Mapping[str, Sequence[Any] | Table] | None = None,
    words: tuple[str, str] = ("at the end", "at its best"),
    ax: Axes | None = None,
    size: tuple[float, float] = (5.2, 3.4),
    **settings: Any,
) -> None:
    """A row of points, one a run, for each name; with `also` a second, open one above it."""
    if ax is None:
        return plots.show(
            lambda ax: strips(values, also=also, words=words, ax=ax, **settings), size=size
        )
    shift = 0.15 if also else 0.0
    for k, (name, x) in enumerate(values.items()):
        c = plots.colour(hue_of(settings.get("xlabel", "")))
        x = np.ravel(np.asarray(x, dtype=float))
        ax.plot(x, np.full(len(x), k + shift), "o", ms=4, color=c, label=f"_{name}, {words[0]}")
        if also:
            best = np.ravel(np.asarray(also[name], dtype=float))
            y = np.full(len(best), k - shift)
            ax.plot(best, y, "o", ms=4, mfc="none", mec=c, label=f"_{name}, {words[1]}")
    ax.set_yticks(range(len(values)), list(values))
    ax.invert_yaxis()
    ax.set(**settings)
    return None
