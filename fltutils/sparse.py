"""Sparse noise with a trace of the signal, for rules that see coordinates.

A sample is x_i = [y_i mu, xi_i] with mu = e_1 and

    xi_i = xi~_i - alpha y_i mu,    xi~_i ~ N(0, length^2 / s) on s coordinates of its own.

No two samples share a noise coordinate, so that 1 + n s columns hold a training run. A rule that
takes every product <w, xi~_i> along the same path as if the patch had one coordinate, of size
||xi~_i||_2 (descent) or ||xi~_i||_1 (signs, and Adam without its epsilon), needs 1 + n of them.
"""

import numpy as np
import torch
from numpy.typing import ArrayLike

from fltutils import check, measure, models, signal_noise, span
from fltutils.signal_noise import SignalNoise

Tensor = torch.Tensor


def patches(y: np.ndarray, xi: np.ndarray, alpha: float) -> np.ndarray:
    """xi_i as rows (n, 1 + n s), from labels (n,) and noise (n, s): the trace comes first."""
    n, s = xi.shape
    noise = np.zeros((n, n, s))
    noise[range(n), range(n)] = xi
    return np.concatenate([-alpha * y[:, None], noise.reshape(n, n * s)], 1)


def folded(xi: np.ndarray, W0: np.ndarray, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Noise (n, 1) of size ||xi~_i||_p, and weights (2, m, 1 + n) with the same products."""
    size = np.linalg.norm(xi, p, 1)
    products = (W0[..., 1:].reshape(*W0.shape[:2], *xi.shape) * xi).sum(-1)
    return size[:, None], np.concatenate([W0[..., :1], products / size], -1)


def _rows(runs: ArrayLike, s: ArrayLike, alpha: ArrayLike) -> list[tuple[int, int, float]]:
    """Each run's identity, and its own s and alpha."""
    identity = np.arange(check.count("runs", runs)) if np.ndim(runs) == 0 else runs
    identity, s = check.whole("runs", identity, 0), check.whole("s", s, 1)
    table = np.broadcast_arrays(identity, s, check.finite("alpha", alpha))
    return [(int(run), int(k), float(a)) for run, k, a in zip(*table, strict=True)]


def draw(
    *,
    n: int,
    s: ArrayLike,
    m: int,
    sigma0: float,
    alpha: ArrayLike,
    length: float = 1.0,
    norm: int | None = None,
    runs: ArrayLike = 1,
    seed: int = 0,
) -> SignalNoise:
    """Training sets and initial weights; s and alpha are numbers, or one a run.

    With `norm` every patch is folded to one coordinate, of its size in that norm: 1 or 2.
    """
    n, m = check.count("n", n), check.count("m", m)
    size = float(check.positive("length", length))
    scale = float(check.at_least("sigma0", sigma0, 0.0))
    if norm not in (None, 1, 2):
        raise ValueError(f"norm = {norm!r}: norm must be 1, 2 or None")
    parts, rows = [], _rows(runs, s, alpha)
    for run, k, trace in rows:
        rng = span.stream(seed, run, "sparse: data and start")
        y, xi = rng.choice([-1.0, 1.0], n), rng.standard_normal((n, k))
        W0 = scale * rng.standard_normal((2, m, 1 + n * k))
        xi *= size / k**0.5
        if norm is not None:
            xi, W0 = folded(xi, W0, norm)
        parts.append((np.eye(1, W0.shape[2])[0], patches(y, xi, trace), y, W0))
    mu, rows_of_noise, y, W0 = (np.stack(part) for part in zip(*parts, strict=True))
    data = signal_noise.given(mu, rows_of_noise, y, W0, projected=False, seed=seed)
    return data._replace(run=torch.tensor([run for run, _, _ in rows]))


def unseen(
    *,
    s: ArrayLike,
    m: int,
    sigma0: float,
    length: float = 1.0,
    samples: int = 100,
    runs: ArrayLike = 1,
    seed: int = 0,
) -> Tensor:
    """<w, xi~> on fresh samples, (R, samples, 2, m): their noise meets the start alone."""
    samples, parts = check.count("samples", samples), []
    for run, k, _ in _rows(runs, s, 0.0):
        rng = span.stream(seed, run, "sparse: fresh samples")
        size = sigma0 * length * (rng.chisquare(k, (samples, 1, 1)) / k) ** 0.5
        parts.append(size * rng.standard_normal((samples, 2, m)))
    return torch.from_numpy(np.stack(parts))


def margins(w: Tensor, noise: Tensor, alpha: Tensor | float, y: float, q: int = 3) -> Tensor:
    """y f on fresh samples of class y, (..., samples).

    From the weights on coordinate 1, w (..., 2, m), and <w, xi~> (..., samples, 2, m).
    """
    w = w[..., None, :, :]
    F = (models.act(y * w, q) + models.act(noise - alpha * y * w, q)).mean(-1)
    return y * (F[..., 0] - F[..., 1])


def errors(W: Tensor, noise: Tensor, alpha: ArrayLike, q: int = 3) -> Tensor:
    """The test error of class +1 and of class -1, (R, 2), of weights W (R, 2, m, r)."""
    trace = torch.tensor(np.broadcast_to(check.finite("alpha", alpha), len(W)).copy())
    of_class = (margins(W[..., 0], noise, trace[:, None, None, None], y, q) for y in (1, -1))
    return torch.stack([measure.error(f) for f in of_class], 1)
