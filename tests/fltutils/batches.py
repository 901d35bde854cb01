"""Problems of `plain` as batches of fltutils."""

from typing import Any

import torch

from fltutils import signal_noise, span, train
from fltutils.rules import SEES_COORDINATES
from fltutils.signal_noise import SignalNoise, given
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


def trained(
    data: SignalNoise, *, rule: str = "gd", q: int = 1, label_noise: float = 0.0,
    batch: int | None = None, **options: Any,
) -> train.Trained:  # fmt: skip
    """A batch trained on its coefficients, or on its weights where the rule sees coordinates."""
    problem = signal_noise.problem(
        data, q=q, label_noise=label_noise, batch=batch, in_span=rule not in SEES_COORDINATES
    )
    return train.train(problem, rule=rule, **options)
