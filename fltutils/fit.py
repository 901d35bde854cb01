"""Lines, crossings and their quality: what a figure's theory is compared with."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


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


def crossing(x: ArrayLike, y: ArrayLike, level: float) -> np.ndarray:
    """Where the last axis of y first falls through level as x > 0 grows (log x); nan if never."""
    xs = np.log(np.asarray(x, dtype=np.float64))
    ys = np.asarray(y, dtype=np.float64)
    down = (ys[..., :-1] > level) & (ys[..., 1:] <= level)
    i = down.argmax(-1)
    above = np.take_along_axis(ys, i[..., None], -1)[..., 0]
    under = np.take_along_axis(ys, i[..., None] + 1, -1)[..., 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (above - level) / (above - under)
    return np.where(down.any(-1), np.exp(xs[i] + share * (xs[i + 1] - xs[i])), np.nan)


def r2_about(y: ArrayLike, prediction: ArrayLike) -> float:
    """1 - E(y - prediction)^2 / Var(y): the share of the variance that a prediction explains."""
    ys, guess = np.asarray(y, dtype=np.float64), np.asarray(prediction, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(1 - ((ys - guess) ** 2).mean() / ys.var())
