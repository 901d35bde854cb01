"""Lines, crossings and their quality: what a figure's theory is compared with.

What takes a table and the name of one of its axes gives a table without that axis: one value a run.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

Table = Any  # an xarray.DataArray, as `grid.over` gives it


class Line(NamedTuple):
    """y = slope x + offset by least squares; r2 is the share of the variance it explains."""

    slope: np.ndarray
    offset: np.ndarray
    r2: np.ndarray


def line(x: ArrayLike, y: ArrayLike) -> Line:
    """Fit the last axis of y against x; entries that are not finite are left out."""
    ys = np.atleast_2d(np.asarray(y, dtype=np.float64))
    xs = np.broadcast_to(np.asarray(x, dtype=np.float64), ys.shape)
    use = np.isfinite(ys) & np.isfinite(xs)
    count = use.sum(-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean_x = np.where(use, xs, 0).sum(-1, keepdims=True) / count
        mean_y = np.where(use, ys, 0).sum(-1, keepdims=True) / count
        dx, dy = np.where(use, xs - mean_x, 0), np.where(use, ys - mean_y, 0)
        slope = (dx * dy).sum(-1) / (dx * dx).sum(-1)
        offset = mean_y[..., 0] - slope * mean_x[..., 0]
        r2 = 1 - ((dy - slope[..., None] * dx) ** 2).sum(-1) / (dy * dy).sum(-1)
    shape = np.shape(y)[:-1]
    return Line(slope.reshape(shape), offset.reshape(shape), r2.reshape(shape))


def along(table: Table, axis: str, f: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Table:
    """f(x, y) on the axis x of that name and the values y of a table, with that axis last."""
    if axis not in table.dims or axis not in table.coords:
        named = ", ".join(str(name) for name in table.dims if name in table.coords)
        raise ValueError(f"axis = {axis!r}: the table has values of {named or 'no axis'}")
    last = table.transpose(..., axis)
    values = f(last[axis].values.astype(np.float64), last.values.astype(np.float64))
    return last.isel({axis: 0}, drop=True).copy(data=values)


def slope(table: Table, axis: str) -> Table:
    """The slope of a straight line in an axis."""
    return along(table, axis, lambda x, y: line(x, y).slope)


def exponent(table: Table, axis: str) -> Table:
    """The power of an axis that values follow: the slope of their logarithm in its logarithm."""
    return along(table, axis, lambda x, y: line(np.log(x), np.log(y)).slope)


def meets(table: Table, axis: str, level: float) -> Table:
    """Where a straight line through all values, in the logarithm of an axis, meets a level."""

    def at(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        through = line(np.log(x), y)
        return np.exp((level - through.offset) / through.slope)

    return along(table, axis, at)


def octaves(table: Table, axis: str, level: float) -> Table:
    """Over how many octaves of an axis values are at least a level, with straight lines between.

    What lies beyond the first or last value of the axis is not counted.
    """

    def width(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        at = np.log2(x)
        low, high = y[..., :-1] - level, y[..., 1:] - level
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.maximum(low, high) / np.abs(high - low)
        share = np.where((low >= 0) & (high >= 0), 1.0, np.where(low * high < 0, part, 0.0))
        return np.asarray((share * np.diff(at)).sum(-1))

    return along(table, axis, width)


def crossing(x: ArrayLike | Table, y: ArrayLike | str, level: float) -> Any:
    """Where values first fall through a level as x > 0 grows (log x); nan if never.

    `crossing(table, "d", level)`, or `crossing(x, y, level)` with x along the last axis of y.
    """
    if isinstance(y, str):
        return along(x, y, lambda at, values: crossing(at, values, level))
    xs = np.log(np.asarray(x, dtype=np.float64))
    ys = np.asarray(y, dtype=np.float64)
    down = (ys[..., :-1] > level) & (ys[..., 1:] <= level)
    i = down.argmax(-1)
    above = np.take_along_axis(ys, i[..., None], -1)[..., 0]
    under = np.take_along_axis(ys, i[..., None] + 1, -1)[..., 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(down.any(-1), (above - level) / (above - under), np.nan)
    return np.exp(xs[i] + share * (xs[i + 1] - xs[i]))


def in_order(low: Table, high: Table, axis: str) -> Table:
    """The share of pairs in which a value of `low` lies under one of `high`, ties as one half."""
    a, b = low, high.rename({axis: "other"})
    pairs = a.count(axis) * b.count("other")
    return ((a < b).sum((axis, "other")) + (a == b).sum((axis, "other")) / 2) / pairs


def r2_about(y: ArrayLike, prediction: ArrayLike) -> float:
    """1 - E(y - prediction)^2 / Var(y): the share of the variance that a prediction explains."""
    ys, guess = np.asarray(y, dtype=np.float64), np.asarray(prediction, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(1 - ((ys - guess) ** 2).mean() / ys.var())


def farthest(table: Table, target: float = 0.0) -> Table:
    """Of several quantities beside the runs, how far that one is off whose mean is farthest.

    Farthest of all is one that some run gives no number for: it must not hide behind the others.
    """
    return _by_mean(table - target, lambda means: np.abs(means).argmax())


def _by_mean(table: Table, pick: Callable[[np.ndarray], Any]) -> Table:
    """Of several quantities beside the runs the one whose mean over them is picked."""
    others = [name for name in table.dims if name != "run"]
    each = table.stack(each=others) if others else table.expand_dims("each")
    means = each.mean("run", skipna=False).values
    return each.isel(each=int(pick(means))).drop_vars("each", errors="ignore")


def least(table: Table) -> Table:
    """Of several quantities beside the runs the one with the least mean; nan is less than all."""
    return _by_mean(table, np.argmin)


def most(table: Table) -> Table:
    """Of several quantities beside the runs the one with the largest mean; nan is above all."""
    return _by_mean(table, np.argmax)
