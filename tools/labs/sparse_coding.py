"""The lab on sparse coding: the chapter's network on the page's samples, every number a tensor.

The dictionary is the identity and all votes are +1, which by symmetry is every balanced case. Six
thousand samples come in fifteen batches, which training goes through again and again.
"""

import torch

from fltutils import models

Tensor = torch.Tensor
LOWER, UPPER = 1.5, 2.5  # c1 - c2 and c1 + c2
SHOWN = 6  # samples that the page draws


def samples(U: Tensor, Z: Tensor, k: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
    """x = z + xi and y: the k lowest of a row of uniforms are active, later digits give signs."""
    rank = (U[..., :, None] > U[..., None, :]).to(U.dtype).sum(-1)
    digits = U * 65536
    z = (rank < k).to(U.dtype) * torch.sign(digits - torch.floor(digits) - 0.5)
    return z + sigma * Z, torch.sign(z.sum(-1))


def soft(a: Tensor, b: Tensor) -> Tensor:
    """ReLU(a - b) - ReLU(-a - b)."""
    return torch.relu(a - b) - torch.relu(-a - b)


def length(W: Tensor) -> Tensor:
    return torch.sqrt((W * W).sum(1))


def answers(W: Tensor, x: Tensor, beta: Tensor) -> Tensor:
    """What each neuron says of each sample, (n, m)."""
    return soft(x @ W.t(), beta * length(W))


def overlaps(W: Tensor) -> Tensor:
    return W / length(W)[:, None]


def leaders(h: Tensor) -> Tensor:
    """1 at the largest overlap of each row."""
    return (h >= h.amax(1, keepdim=True)).to(h.dtype)


def start(
    U: Tensor, Z: Tensor, U_test: Tensor, Z_test: Tensor, V: Tensor, k: Tensor, sigma: Tensor,
    d: Tensor, size: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """Samples, weights of length `size`, and the pattern that leads each neuron."""
    X, y = samples(U, Z, k, sigma)
    X_test, y_test = samples(U_test, Z_test, k, sigma)
    W = size / torch.sqrt(d) * V
    return {
        "X": X, "y": y, "X_test": X_test, "y_test": y_test, "W": W,
        "first": leaders(overlaps(W)),
    }  # fmt: skip


def learn(X: Tensor, y: Tensor, W: Tensor, beta: Tensor, rate: Tensor) -> dict[str, Tensor]:
    """One step on the first batch, which then goes to the end."""
    x = X[0]
    s = answers(W, x, beta)
    g = models.downhill(s.sum(1), y[0])
    push = ((s != 0).to(s.dtype) * g[:, None]).t() @ x
    return {
        "W": W + rate * push,
        "X": torch.cat([X[1:], X[:1]]),
        "y": torch.cat([y[1:], y[:1]]),
    }


def look(
    W: Tensor, first: Tensor, X_test: Tensor, y_test: Tensor, beta: Tensor, d: Tensor
) -> dict[str, Tensor]:
    """The good sets, and who reads fresh samples right."""
    h = overlaps(W)
    level = h * torch.abs(h) * d / torch.log(d)
    above = (torch.abs(level) >= LOWER).to(h.dtype).sum(1)
    good = ((level.amax(1) >= UPPER) & (above < 2)).to(h.dtype)
    kept = (leaders(h) * first).sum(1)
    told = answers(W, X_test, beta).sum(1)
    right = (y_test * told > 0).to(h.dtype)
    linear = (y_test * X_test.sum(1) > 0).to(h.dtype)
    return {
        "seen": X_test[:SHOWN].flatten(),
        "y": y_test[:SHOWN],
        "answers": told[:SHOWN],
        "h": h.flatten(),
        "columns": 1 * d,
        "sure": good.sum(),
        "potential": (above > 0).to(h.dtype).sum(),
        "several": (above > 1).to(h.dtype).sum(),
        "tickets": (kept * good).sum() / good.sum(),
        "covered": (h.amax(0) > 0.8).to(h.dtype).mean(),
        "lead": h.amax(1).mean(),
        "accuracy": right.mean(),
        "linear": linear.mean(),
    }
