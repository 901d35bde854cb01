"""The book's model in R^d the plain way: one run, a loop, autograd. Nothing here uses fltutils."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch

Tensor = torch.Tensor


class Problem(NamedTuple):
    """One training set in R^d, with a network to be trained."""

    mu: Tensor  # (d,)
    xi: Tensor  # (n, d)
    y: Tensor  # (n,)       true labels
    y_obs: Tensor  # (n,)       observed labels
    W0: Tensor  # (2, m, d)


def problem(
    seed: int,
    n: int = 6,
    m: int = 3,
    d: int = 40,
    *,
    norm_mu: float = 3.0,
    sigma0: float = 0.1,
    flip: float = 0.2,
    projected: bool = True,
) -> Problem:
    """A signal in a random direction, noise off it or not, labels with flips, a Gaussian start."""
    rng = np.random.default_rng([seed, 11])
    mu = rng.standard_normal(d)
    mu *= norm_mu / np.linalg.norm(mu)
    xi = rng.standard_normal((n, d))
    if projected:
        xi -= np.outer(xi @ mu, mu) / norm_mu**2
    y = rng.choice([-1.0, 1.0], n)
    y_obs = np.where(rng.random(n) < flip, -y, y)
    W0 = sigma0 * rng.standard_normal((2, m, d))
    return Problem(*(torch.from_numpy(v) for v in (mu, xi, y, y_obs, W0)))


def forward(W: Tensor, x1: Tensor, x2: Tensor, q: int) -> Tensor:
    """f(W, x) of every sample, patch by patch."""
    F = [
        sum(torch.relu(x @ W[c].T) ** q for x in (x1, x2)).mean(-1)  # type: ignore[union-attr]
        for c in (0, 1)
    ]
    return F[0] - F[1]


def outputs(W: Tensor, p: Problem, q: int) -> Tensor:
    """f(W, x_i) on the training inputs x_i = [y_i mu, xi_i]."""
    return forward(W, p.y[:, None] * p.mu, p.xi, q)


def loss(
    W: Tensor, p: Problem, q: int, labels: Tensor | None = None, rows: Tensor | None = None
) -> Tensor:
    """The logistic loss, averaged over the given rows (all by default)."""
    y = p.y_obs if labels is None else labels
    each = torch.log1p(torch.exp(-y * outputs(W, p, q)))
    return each.mean() if rows is None else each[rows].mean()


def gradient(
    W: Tensor, p: Problem, q: int, labels: Tensor | None = None, rows: Tensor | None = None
) -> Tensor:
    """Its gradient, by autograd."""
    W = W.detach().requires_grad_()
    return torch.autograd.grad(loss(W, p, q, labels, rows), W)[0]


Step = tuple[Tensor | None, Tensor | None]  # labels and rows of a step


def descend(
    p: Problem,
    q: int,
    eta: float,
    steps: int,
    *,
    beta: float = 0.0,
    tau: float = 0.0,
    draws: Iterable[Step] | None = None,
) -> Tensor:
    """W after plain steps: gradient descent, with momentum beta, with SAM's climb tau."""
    W, v = p.W0.clone(), torch.zeros_like(p.W0)
    source = iter(draws) if draws is not None else None
    for _ in range(steps):
        labels, rows = next(source) if source is not None else (None, None)
        g = gradient(W, p, q, labels, rows)
        if tau:
            g = gradient(W + tau * g / g.norm(), p, q, labels, rows)
        v = beta * v + g
        W = W - eta * v
    return W


def optimise(
    p: Problem, q: int, steps: int, optimiser: type[torch.optim.Optimizer], **options: object
) -> Tensor:
    """W after steps of an optimiser of torch."""
    W = p.W0.clone().requires_grad_()
    opt = optimiser([W], **options)  # type: ignore[arg-type]
    for _ in range(steps):
        opt.zero_grad()
        loss(W, p, q).backward()  # type: ignore[no-untyped-call]
        opt.step()
    return W.detach()


def distance(u: Tensor, v: Tensor) -> float:
    """The distance of Kolmogorov and Smirnov between two samples."""
    z = torch.cat([u, v])
    F = [(s[:, None] <= z).double().mean(0) for s in (u, v)]
    return float((F[0] - F[1]).abs().max())


def critical(size_u: int, size_v: int, p: float = 1e-4) -> float:
    """The distance that two samples of one law exceed with probability about p."""
    return float(np.sqrt(-np.log(p / 2) / 2 * (1 / size_u + 1 / size_v)))
