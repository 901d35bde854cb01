"""Problems of `plain` as batches of fltutils."""

import torch

from fltutils import span
from fltutils.data import SignalNoise, given
from tests.fltutils.plain import Problem


def batch(problems: list[Problem], *, projected: bool = True, seed: int = 0) -> SignalNoise:
    """Problems of one size in R^d, one a run."""
    mu, xi, y, y_obs, W0 = (torch.stack(v).numpy() for v in zip(*problems, strict=True))
    return given(mu, xi, y, W0, y_obs=y_obs, projected=projected, seed=seed)


def basis(p: Problem) -> torch.Tensor:
    """Q (d, r) of mu, xi and the initial weights."""
    return torch.from_numpy(span.basis(p.mu.numpy(), p.xi.numpy(), p.W0.flatten(0, 1).numpy()))


def embedded(p: Problem) -> Problem:
    """The problem in the coordinates of its basis."""
    Q = basis(p)
    return p._replace(mu=p.mu @ Q, xi=p.xi @ Q, W0=p.W0 @ Q)
