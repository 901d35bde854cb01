"""The lab on virtual covariance: one hidden layer of tanh, full batches, every number a tensor.

Twelve inputs of which the first two decide the label; the second layer is fixed. Beside the actual
change of W'W the virtual shifts of all steps are added up.
"""

import torch

from fltutils import models

Tensor = torch.Tensor
ROOT = 12**0.5  # of the number of inputs
SHOWN = 5  # samples that the page draws


def start(X: Tensor, V: Tensor, Z: Tensor, U: Tensor, size: Tensor, m: Tensor) -> dict[str, Tensor]:
    """Labels, weights of length `size`, readouts, and no shift yet."""
    W = size * V / ROOT
    return {
        "y": torch.sign(X[:, 0] + X[:, 1]),
        "W": W,
        "W0": 1 * W,
        "v": Z / torch.sqrt(m),
        "u": U / ROOT,
        "S": 0 * (W.t() @ W),
    }


def outputs(W: Tensor, v: Tensor, u: Tensor, X: Tensor, skip: Tensor) -> tuple[Tensor, Tensor]:
    """f (n,), with a connection of strength `skip` past the matrix; and the units (n, m)."""
    a = torch.tanh(X @ W.t())
    return a @ v + skip * (X @ u), a


def gradients(
    W: Tensor, v: Tensor, u: Tensor, X: Tensor, y: Tensor, skip: Tensor
) -> tuple[Tensor, Tensor]:
    """Of the mean logistic loss: G (m, p) in the weights, g (n, p) in the inputs."""
    f, a = outputs(W, v, u, X, skip)
    pull = models.downhill(f[None], y[None])[0]
    delta = -pull[:, None] * v * (1 - a * a)
    return delta.t() @ X, delta @ W - skip * pull[:, None] * u


def shift(h: Tensor, g: Tensor, gamma: Tensor) -> Tensor:
    """cov(h+) - cov(h), summed over the samples."""
    up = h - gamma * g
    return up.t() @ up - h.t() @ h


def learn(
    X: Tensor, y: Tensor, W: Tensor, v: Tensor, u: Tensor, S: Tensor, rate: Tensor, skip: Tensor
) -> dict[str, Tensor]:
    """A step of gradient descent, and the virtual shift that it would ask for."""
    G, g = gradients(W, v, u, X, y, skip)
    return {"W": W - rate * G, "S": S + shift(X, g, rate)}


def size_of(M: Tensor) -> Tensor:
    return torch.sqrt((M * M).sum())


def look(
    X: Tensor, y: Tensor, W: Tensor, W0: Tensor, v: Tensor, u: Tensor, S: Tensor, skip: Tensor
) -> dict[str, Tensor]:
    """Actual and virtual change: sizes, their difference, and the diagonals."""
    A = W.t() @ W - W0.t() @ W0
    f, _ = outputs(W, v, u, X, skip)
    grown = torch.diagonal(A)
    return {
        "seen": X[:SHOWN].flatten(),
        "y": y[:SHOWN],
        "answers": f[:SHOWN],
        "loss": models.logistic(f[None], y[None])[0],
        "actual": size_of(A),
        "virtual": size_of(S),
        "apart": size_of(A - S),
        "gap": size_of(A - S) / size_of(A),
        "grown": 1 * grown,
        "asked": 1 * torch.diagonal(S),
        "lead": grown[:2].amin() - grown[2:].amax(),
    }
