"""Coordinates in which the dimension does not matter.

Gradient descent on a model that sees its inputs through inner products only never leaves the span
of its initial weights and its data. In orthonormal coordinates of that span,

    coordinate 0           the signal mu,
    coordinates 1 .. n     the noise patches xi_1, ..., xi_n,
    the last k             what the k initial weight vectors have beside them,

the problem in R^d is the same problem in R^r, r = 1 + n + k, and the coordinates can be drawn
directly, whatever d is.
"""

import zlib

import numpy as np

from fltutils import check

Rng = np.random.Generator


def stream(seed: int, run: int, use: str, *steps: int) -> Rng:
    """The generator of one run for one named use, and perhaps a step: no two uses share one."""
    if not isinstance(use, str):
        raise ValueError(f"use = {use!r}: use must be a text")
    seed, run = check.count("seed", seed, 0), check.count("run", run, 0)
    key = run, zlib.crc32(use.encode()), *(check.count("step", t, 0) for t in steps)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def dimension(n: int, d: int, k: int) -> int:
    """r = 1 + n + k coordinates hold mu, n noise patches and k weights; r = d if d is smaller."""
    return min(d, 1 + n + k)


def bartlett(rng: Rng, rows: int, D: int, many: tuple[int, ...] = ()) -> np.ndarray:
    """L of the LQ decomposition of a Gaussian rows x D matrix: normals below, chi on the diagonal.

    Row i has N(0, 1) entries before the diagonal and a chi variable with D - i degrees of freedom
    on it (i = 0, ..., rows - 1), all independent. `many` are the leading axes of several draws.
    """
    if D < rows:
        raise ValueError(f"D = {D}: D must be at least the number of rows, {rows}")
    L = np.tril(rng.standard_normal((*many, rows, rows)), -1)
    diagonal = np.arange(rows)
    L[..., diagonal, diagonal] = np.sqrt(rng.chisquare(D - diagonal, size=(*many, rows)))
    return L


def noise(rng: Rng, n: int, d: int, k: int, projected: bool) -> np.ndarray:
    """n standard Gaussian patches of R^d (orthogonal to mu if projected), in the r coordinates."""
    r = dimension(n, d, k)
    xi = np.zeros((n, r))
    if r < d:
        xi[:, 1 : 1 + n] = bartlett(rng, n, d - 1)
    else:
        xi[:, 1:] = rng.standard_normal((n, d - 1))
    if not projected:
        xi[:, 0] = rng.standard_normal(n)
    return xi


def weights(rng: Rng, n: int, d: int, k: int) -> np.ndarray:
    """k standard Gaussian weight vectors of R^d, in the r coordinates."""
    r = dimension(n, d, k)
    if r == d:
        return rng.standard_normal((k, d))
    W = np.zeros((k, r))
    W[:, : 1 + n] = rng.standard_normal((k, 1 + n))
    W[:, 1 + n :] = bartlett(rng, k, d - 1 - n)
    return W


def basis(mu: np.ndarray, xi: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Q (d, r), orthonormal columns that span a real mu (d,), xi (n, d) and W (k, d), by QR."""
    return np.linalg.qr(np.vstack([mu[None], xi, W]).T)[0]
