"""The lab on features in weights and tasks in prompts: the chapter's network, one run, no samples.

Eight inputs, two features of two cosine neurons each, the attention matrix solved at every step.
"""

import torch

Tensor = torch.Tensor
D, GRID = 8, 24
SHOWN = 5  # examples that the page draws


def axis(j: int) -> Tensor:
    return (torch.arange(D, dtype=torch.float64) == j).to(torch.float64)


def truth(nu: Tensor) -> tuple[Tensor, Tensor]:
    """Weights (4, 8) of the true neurons, and their share (4, 2) in the two features."""
    w = torch.stack([axis(0) - axis(1), axis(0) + axis(1), nu * axis(2), nu * axis(3)])
    one = 0 * nu + 1 / (1 - torch.exp(0 * nu - 2))
    two = 1 / (1 - torch.exp(-nu * nu))
    first, second = (
        torch.stack([one, -one, 0 * one, 0 * one]),
        torch.stack([0 * two, 0 * two, two, -two]),
    )
    return w, torch.stack([first, second], 1)


def waves(w: Tensor, b: Tensor, v: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The two terms of E cos(w x + b) cos(v x + c), and both with sines of b - c and b + c."""
    inner = w @ v.t()
    size = ((w * w).sum(1)[:, None] + (v * v).sum(1)) / 2
    minus, plus = torch.exp(inner - size) / 2, torch.exp(-inner - size) / 2
    near, far = b[:, None] - c, b[:, None] + c
    return (
        minus * torch.cos(near), plus * torch.cos(far),
        minus * torch.sin(near), plus * torch.sin(far),
    )  # fmt: skip


def covariances(
    a: Tensor, w: Tensor, b: Tensor, T: Tensor, A: Tensor, m: Tensor
) -> tuple[Tensor, Tensor]:
    """E h h' and E f h', (2, 2)."""
    near, far, _, _ = waves(w, b, w, b)
    S = a.t() @ (near + far) @ a / (m * m)
    near, far, _, _ = waves(T, 0 * T[:, 0], w, b)
    return S, A.t() @ (near + far) @ a / m


def inverse(S: Tensor) -> Tensor:
    """Of a symmetric 2 by 2 matrix."""
    swapped = torch.stack([
        torch.stack([S[1, 1], -S[0, 1]]), torch.stack([-S[1, 0], S[0, 0]])
    ])  # fmt: skip
    return swapped / (S[0, 0] * S[1, 1] - S[0, 1] * S[1, 0])


def start(Z: Tensor, V: Tensor, U: Tensor, nu: Tensor) -> dict[str, Tensor]:
    """Random neurons beside the true ones; no step has waited yet."""
    T, A = truth(nu)
    return {
        "a": 1 * Z, "w": V / D**0.5, "b": 2 * torch.pi * U, "T": T, "A": A, "waited": 0 * nu,
    }  # fmt: skip


def learn(
    a: Tensor, w: Tensor, b: Tensor, T: Tensor, A: Tensor, waited: Tensor, rate: Tensor, m: Tensor
) -> dict[str, Tensor]:
    """One step on the features, the attention matrix at its minimum."""
    S, C = covariances(a, w, b, T, A, m)
    M = C @ inverse(S)
    loss = 2 - (M * C).sum()
    target = torch.cat([A, -(a @ M.t()) / m]) @ M
    v, c = torch.cat([T, w]), torch.cat([0 * T[:, 0], b])
    near, far, sin_near, sin_far = waves(w, b, v, c)
    pull = a @ target.t()
    back = (pull * (near + far)).sum(1)[:, None] * w
    paused = (torch.abs(loss - 1) < 0.1).to(loss.dtype)
    return {
        "a": a + 2 * rate * ((near + far) @ target),
        "w": w + 2 * rate * ((pull * (near - far)) @ v - back),
        "b": b - 2 * rate * (pull * (sin_near + sin_far)).sum(1),
        "waited": waited + paused,
    }


def look(
    a: Tensor, w: Tensor, b: Tensor, T: Tensor, A: Tensor, X: Tensor, X_other: Tensor,
    waited: Tensor, angle: Tensor, m: Tensor, L: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """What is known, and what a prompt of a new task makes of it.

    Given the features, the readout from L examples is the one from endless ones plus noise of
    covariance Sigma/L, Sigma that of h y: prompts cost tr(G Sigma)/L more in the mean. Sigma is
    taken on examples of its own.
    """
    S, C = covariances(a, w, b, T, A, m)
    G = inverse(S)
    known = torch.diagonal(C @ G @ C.t())
    turn = angle * torch.pi / 180
    beta = torch.stack([torch.cos(turn), torch.sin(turn)])
    y = torch.cos(X @ T.t()) @ (A @ beta)
    h = torch.cos(X @ w.t() + b) @ a / m
    answers = torch.cos(X_other @ T.t()) @ (A @ beta)
    hy = (torch.cos(X_other @ w.t() + b) @ a / m) * answers[:, None]
    off = hy - hy.mean(0)
    left = 1 - (beta * (C @ G @ C.t() @ beta)).sum()
    told = G @ (h.t() @ y / L)
    t = (torch.arange(GRID, dtype=torch.float64) - (GRID - 1) / 2)[:, None] / 4
    line = t * (axis(0) + axis(2)) + (0 * t + 1) * axis(1)
    return {
        "loss": 2 - known.sum(),
        "first": known[0],
        "second": known[1],
        "best": known.amax(0),
        "least": known.amin(0),
        "steps_near_one": 1 * waited,
        "error": (beta * beta).sum() - 2 * (beta * (C @ told)).sum() + (told * (S @ told)).sum(),
        "left": left,
        "expected": left + ((off @ G) * off).sum(1).mean() / L,
        "seen": X[:SHOWN].flatten(),
        "y": y[:SHOWN],
        "true": torch.cos(line @ T.t()) @ (A @ beta),
        "said": torch.cos(line @ w.t() + b) @ (a @ told) / m,
    }
