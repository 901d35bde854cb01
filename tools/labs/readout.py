"""The lab on the second layer: ridge regression on planted and on random features, as tensors.

Weights have all d coordinates: M (p, 3) along the directions of the target, W (p, d - 3) beside
them. A batch comes in twelve blocks, one a step, and the normal equations of `giant.readout` grow
with it; a record solves them and looks at fresh samples. Features are not divided by p here, so
the ridge is 2 lambda p for 2 lambda / p there. The same for random weights, next to it.
"""

import torch

Tensor = torch.Tensor
SHOWN = 6  # samples that the page draws


def terms(X: Tensor) -> Tensor:
    """The five terms of the chapter's target, (n, 5)."""
    x1, x2, x3 = X[:, 0], X[:, 1], X[:, 2]
    h2, h3 = x2 * x2 - 1, x3 * x3 - 1
    half = 0.5**0.5
    return torch.stack([x1, half * h2, x1 * x2, half * x1 * h2 * x3, h2 * h3 / 2]).t()


def is_k(k: Tensor, j: float) -> Tensor:
    """1 where k directions are learned."""
    return (torch.abs(k - j) < 0.5).to(k.dtype)


def plant(
    U: Tensor, R: Tensor, W0: Tensor, beta: Tensor, d: Tensor, p: Tensor, k: Tensor, length: Tensor
) -> dict[str, Tensor]:
    """`planted` of the chapter: k columns of length u, all else Gaussian of variance 1/d."""
    one, two = 1 - is_k(k, 0), is_k(k, 2)
    both = torch.stack([U[:, 0] * one, U[:, 1] * two]).t()
    norm = torch.sqrt((both * both).sum(1))
    planted = length * both / torch.where(norm > 0, norm, 1 + norm)[:, None]
    beside = R / torch.sqrt(d)
    kept = torch.stack([1 - one, 1 - two, 1 + 0 * one])
    zero = torch.zeros_like(R[:, :1])
    return {
        "M": kept * beside + torch.cat([planted, zero], 1),
        "W": W0 / torch.sqrt(d),
        "b": beta * (1 + one * (length - 1)),
        "M_random": beside,
        "A": 0 * W0 @ W0.t(),
        "v": 0 * beta,
        "A_random": 0 * W0 @ W0.t(),
        "v_random": 0 * beta,
        "seen": 0 * d,
        "ratio": p / d,
    }


def features(X: Tensor, Z: Tensor, M: Tensor, W: Tensor, b: Tensor) -> Tensor:
    """ReLU(<w_i, x> + b_i), (n, p)."""
    return torch.relu(X @ M.t() + Z @ W.t() + b)


def fresh(
    X_test: Tensor, Z_test: Tensor, M: Tensor, W: Tensor, b: Tensor, beta: Tensor, M_random: Tensor
) -> dict[str, Tensor]:
    """Features of fresh samples, and the five terms there."""
    return {
        "F": features(X_test, Z_test, M, W, b),
        "F_random": features(X_test, Z_test, M_random, W, beta),
        "T": terms(X_test),
    }


def block(
    X: Tensor, Z: Tensor, M: Tensor, W: Tensor, b: Tensor, beta: Tensor, M_random: Tensor,
    A: Tensor, v: Tensor, A_random: Tensor, v_random: Tensor, seen: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """The normal equations take one more block of samples; the next one moves up."""
    y = terms(X[0]).sum(1)
    learned = features(X[0], Z[0], M, W, b)
    random = features(X[0], Z[0], M_random, W, beta)
    return {
        "A": A + learned.t() @ learned,
        "v": v + learned.t() @ y,
        "A_random": A_random + random.t() @ random,
        "v_random": v_random + random.t() @ y,
        "seen": seen + X.shape[1],
        "X": torch.cat([X[1:], X[:1]]),
        "Z": torch.cat([Z[1:], Z[:1]]),
    }


def solve(A: Tensor, v: Tensor) -> Tensor:
    """The solution of A a = v for A positive definite."""
    return torch.cholesky_solve(v[:, None], torch.linalg.cholesky(A))[:, 0]


def ridge(A: Tensor, v: Tensor, seen: Tensor, lam: Tensor) -> Tensor:
    """The second layer of the chapter's ridge regression, over p."""
    n = torch.clamp(seen, min=1)
    size = 2 * lam * A.shape[0] * n
    return solve(A + size * torch.diag(torch.ones_like(v)), v)


def parts(out: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
    """Least-squares coefficients of the terms in the output, and the mean square of the rest."""
    alpha = solve(t.t() @ t, t.t() @ out)
    rest = out - t @ alpha
    return alpha, (rest * rest).mean()


def look(
    X_test: Tensor, Z_test: Tensor, F: Tensor, F_random: Tensor, T: Tensor, A: Tensor, v: Tensor,
    A_random: Tensor, v_random: Tensor, seen: Tensor, lam: Tensor, p: Tensor, d: Tensor, k: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """Captured shares and risks on fresh samples, and what the theorems allow.

    The floors are the energy above degree 0 off the learned directions, with p >= d above 1.
    """
    told = F @ ridge(A, v, seen, lam)
    alpha, rest = parts(told, T)
    alpha_random, rest_random = parts(F_random @ ridge(A_random, v_random, seen, lam), T)
    wide = (p >= d).to(d.dtype)
    one, two = 1 - is_k(k, 0), is_k(k, 2)
    allowed = torch.stack([torch.maximum(one, wide), two, torch.maximum(two, one * wide),
                           two * wide, 0 * two])  # fmt: skip
    share = 1 - (1 - alpha) ** 2
    whole = torch.floor(100 * share + 0.5) / 100
    return {
        "seen": 1 * seen,
        "directions": X_test[:SHOWN].flatten(),
        "others": Z_test[:SHOWN].flatten(),
        "target": T.sum(1)[:SHOWN],
        "answers": told[:SHOWN],
        "spare": seen / p,
        "captured": share,
        "allowed": allowed,
        "s1": whole[0],
        "s2": whole[1],
        "s3": whole[2],
        "s4": whole[3],
        "s5": whole[4],
        "bought": is_k(k, 0) * share[0] + is_k(k, 1) * share[2] + two * share[3],
        "risk": ((1 - alpha) ** 2).sum() + rest,
        "risk_random": ((1 - alpha_random) ** 2).sum() + rest_random,
        "floor": 5 - allowed.sum(),
        "floor_random": 5 - wide,
    }  # fmt: skip
