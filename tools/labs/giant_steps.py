"""The lab on giant steps: a small network in coordinates, stepped as the chapter steps it.

For its dynamics a network is its overlaps
M = <w_i, w*_k> (p, 3) with two directions of the target and a third that the target ignores, and
the Gram matrix S (p, p) of what its weights have beside them. A fresh batch is seen through
x_k = X (n, 3) and <w_i, x> = M X' + L Z', S = L L', Z (n, p) standard Gaussian. The gradient's
part outside has covariance K between neurons in each of the d - 3 - p coordinates that are left;
its Gram matrix is R B B' R', R R' = K, B lower triangular (Bartlett). So d is a number.
"""

import torch

from .chapter import functions

Tensor = torch.Tensor
(pulls,) = functions("staircase", "pulls")


def target(
    X: Tensor, linear1: Tensor, linear2: Tensor, square1: Tensor, square2: Tensor, cross: Tensor
) -> Tensor:
    """y = l1 x1 + l2 x2 + s1 H2(x1) + s2 H2(x2) + c x1 x2."""
    x1, x2 = X[:, 0], X[:, 1]
    squares = square1 * (x1 * x1 - 1) + square2 * (x2 * x2 - 1)
    return linear1 * x1 + linear2 * x2 + squares + cross * x1 * x2


def start(
    V: Tensor, B0: Tensor, chi0: Tensor, U: Tensor, F: Tensor, bias: Tensor, rate: Tensor
) -> dict[str, Tensor]:
    """Rows uniform on the sphere, signs a, biases 0 or `bias`; mirrored, so that f = 0."""
    W = torch.tril(B0, -1) + torch.diag(chi0)
    length = torch.sqrt((V * V).sum(1, keepdim=True) + (W * W).sum(1, keepdim=True))
    M, W, a = V / length, W / length, torch.sign(U - 0.5)
    b = torch.where(F > 0.5, bias, 0 * bias)
    both = torch.cat([W, W])
    return {
        "M": torch.cat([M, M]),
        "S": both @ both.t(),
        "a": torch.cat([a, -a]),
        "b": torch.cat([b, b]),
        "eta": 2 * V.shape[0] * rate,
    }


def root(S: Tensor) -> Tensor:
    """L with L L' = S up to 1e-8 of its size: mirrored neurons make S singular."""
    size = torch.diagonal(S).mean()
    return torch.linalg.cholesky(S + 1e-8 * size * torch.diag(torch.ones_like(S[0])))


def giant_step(
    M: Tensor, S: Tensor, a: Tensor, b: Tensor, X1: Tensor, Z1: Tensor, B1: Tensor, chi1: Tensor,
    eta: Tensor, linear1: Tensor, linear2: Tensor, square1: Tensor, square2: Tensor, cross: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """One step on a fresh batch, by the chapter's own pulls."""
    L, y = root(S), target(X1, linear1, linear2, square1, square2, cross)
    W, X = torch.cat([M, L], 1), torch.cat([X1, Z1], 1)
    g = pulls(W, a, b, X, y) * (eta / X1.shape[0])
    W = W + g.t() @ X
    inside, beside = W[:, : M.shape[1]], W[:, M.shape[1] :]
    R = root(g.t() @ g) @ (torch.tril(B1, -1) + torch.diag(chi1))
    return {"M": 1 * inside, "S": beside @ beside.t() + R @ R.t()}


def next_batch(
    X2: Tensor, X3: Tensor, X4: Tensor, Z2: Tensor, Z3: Tensor, Z4: Tensor,
    B2: Tensor, B3: Tensor, B4: Tensor, chi2: Tensor, chi3: Tensor, chi4: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """Every step has its own batch: the next ones move up."""
    return {
        "X1": 1 * X2, "X2": 1 * X3, "X3": 1 * X4, "Z1": 1 * Z2, "Z2": 1 * Z3, "Z3": 1 * Z4,
        "B1": 1 * B2, "B2": 1 * B3, "B3": 1 * B4,
        "chi1": 1 * chi2, "chi2": 1 * chi3, "chi3": 1 * chi4,
    }  # fmt: skip


def cosines(
    M: Tensor, S: Tensor, X1: Tensor, dots: Tensor, d: Tensor, linear1: Tensor, linear2: Tensor,
    square1: Tensor, square2: Tensor, cross: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """Root mean square cosines along v* = (l1, l2), across it, and with the third direction.

    Without a linear part v* is the first direction. Those of each neuron with w*_1 and w*_2.

    Given <v*, x> the target is linear in the direction across with slope
    `stair` = 2 (s2 - s1) v1 v2 + c (v1^2 - v2^2): that is what a second step can learn.
    """
    size = torch.sqrt(linear1 * linear1 + linear2 * linear2)
    safe = torch.where(size > 0, size, 1 + size)
    v1, v2 = torch.where(size > 0, linear1 / safe, 0 * safe + 1), linear2 / safe
    m = M / torch.sqrt((M * M).sum(1, keepdim=True) + torch.diagonal(S)[:, None])
    along, across = m[:, 0] * v1 + m[:, 1] * v2, m[:, 1] * v1 - m[:, 0] * v2
    one = torch.ones_like(d)
    return {
        "along": torch.sqrt((along * along).mean()),
        "across": torch.sqrt((across * across).mean()),
        "third": torch.sqrt((m[:, 2] * m[:, 2]).mean()),
        "first": 1 * m[:, 0],
        "second": 1 * m[:, 1],
        "x1": 1 * dots[:, 0],
        "x2": 1 * dots[:, 1],
        "y": target(dots, linear1, linear2, square1, square2, cross),
        "random": 1 / torch.sqrt(d),
        "linear": size,
        "stair": torch.abs(2 * (square2 - square1) * v1 * v2 + cross * (v1 * v1 - v2 * v2)),
        "batch": X1.shape[0] * one,
    }
