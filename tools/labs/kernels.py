"""The lab on kernels and features: one gradient step of any size, and ridge regression on top.

The network is that of the chapter, f(x) = (1/sqrt N) sum_i a_i tanh(<w_i, x>), in all d
coordinates, the first along beta*. The gradient is taken once; record t looks at the step size
eta_t, which goes from START to `eta`. Risks are those of the best of four penalties, in units of
the floor on the same fresh samples, which takes most of their noise away.
"""

import torch

Tensor = torch.Tensor
C_1 = 0.6057055096021866  # E[z tanh(z)]
FLOOR = 0.027415326035756856  # E[tanh(z)^2] - C_1^2
NOISE = 0.1
START = 0.2  # the first step size
SHOWN = 6  # samples that the page draws


def link(z: Tensor, linear: Tensor) -> Tensor:
    """tanh with this share of its linear part; what is beyond it stays."""
    return torch.tanh(z) + (linear - 1) * C_1 * z


def features(X: Tensor, W: Tensor) -> Tensor:
    """tanh(<w_i, x>) / sqrt N, (n, N)."""
    return torch.tanh(X @ W.t()) / (W.shape[0] * torch.ones_like(X[0, 0])) ** 0.5


def solve(A: Tensor, v: Tensor) -> Tensor:
    """The solution of A a = v for A positive definite."""
    return torch.cholesky_solve(v[:, None], torch.linalg.cholesky(A))[:, 0]


def least(
    Phi: Tensor, y: Tensor, Psi: Tensor, f: Tensor, bend: Tensor
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Ridge regression with the best of four penalties: its risk over the floor, its answers."""
    A, v = Phi.t() @ Phi / Phi.shape[0], Phi.t() @ y / Phi.shape[0]
    eye = torch.diag(torch.ones_like(v)) / Phi.shape[1]
    best, chosen = torch.inf * bend, f
    for lam in (0.005, 0.02, 0.08, 0.3):
        told = Psi @ solve(A + lam * eye, v)
        risk = (told - f).square().mean() / bend
        chosen = torch.where(risk < best, told, chosen)
        best = torch.minimum(risk, best)
    return best, chosen


def spectrum(W: Tensor) -> tuple[Tensor, Tensor]:
    """Singular values, the largest first, and cos^2 of the first right vector with beta*.

    With fewer neurons than dimensions some are zero, to rounding.
    """
    e, U = torch.linalg.eigh(W.t() @ W)
    return torch.sqrt(torch.where(e > 1e-9, e, 0 * e)).flip(0), U[0, -1] * U[0, -1]


def start(
    W0: Tensor, A0: Tensor, X: Tensor, e: Tensor, X_fit: Tensor, e_fit: Tensor, X_test: Tensor,
    d: Tensor, width: Tensor, n: Tensor, eta: Tensor, linear: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """The network, its gradient, and what does not depend on the step."""
    W, a = W0 / torch.sqrt(d), A0 / torch.sqrt(width)
    y = link(X[:, 0], linear) + NOISE * e
    y_fit, f_test = link(X_fit[:, 0], linear) + NOISE * e_fit, link(X_test[:, 0], linear)
    h = torch.tanh(X @ W.t())
    residual = y - h @ a / torch.sqrt(width)
    G = (residual[:, None] * (1 - h * h) * a).t() @ X / n
    slope = linear * C_1
    length = torch.sqrt(slope * slope + d / n * (slope * slope + FLOOR + NOISE * NOISE))
    relative = torch.exp(torch.log(width / d) / 4)  # theta_c
    values, _ = spectrum(W)
    beyond = link(X_test[:, 0], 0 * linear)
    bend = (beyond * beyond).mean()
    return {
        "W": W,
        "G": G,
        "y_fit": y_fit,
        "f_test": f_test,
        "bend": bend,
        "before": values,
        "unit": C_1 * length,
        "share": slope * slope / (length * length),
        "random": least(features(X_fit, W), y_fit, features(X_test, W), f_test, bend)[0],
        "line": least(X_fit, y_fit, X_test, f_test, bend)[0],
        "root": torch.sqrt(width),
        "samples": n / d,
        "relative": relative,
        "reached": eta * C_1 * length / relative,
        "t": 0 * d,
    }


def tick(t: Tensor) -> dict[str, Tensor]:
    """A record later."""
    return {"t": t + 1}


def look(
    W: Tensor, G: Tensor, X_fit: Tensor, y_fit: Tensor, X_test: Tensor, f_test: Tensor,
    bend: Tensor, before: Tensor, unit: Tensor, share: Tensor, random: Tensor, line: Tensor,
    root: Tensor, relative: Tensor, t: Tensor, steps: Tensor, eta: Tensor, d: Tensor, width: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """Spectrum and risk after a step of size eta_t; the chapter's equations of the spike."""
    step = START * torch.exp(t / torch.clamp(steps, min=1) * torch.log(eta / START))
    moved = W + step * G
    values, cosine = spectrum(moved)
    theta, psi = step * unit, width / d
    square = theta * theta
    seen = (theta > relative).to(d.dtype)
    edge = 1 + torch.sqrt(psi)
    risk, told = least(features(X_fit, moved), y_fit, features(X_test, moved), f_test, bend)
    top = torch.sqrt((1 + square) * (psi + square)) / theta
    overlap = (square * square - psi) / (square * (1 + square))
    return {
        "step_size": 1 * step,
        "values": values,
        "start_values": 1 * before,
        "top": values[0],
        "second": values[1],
        "top_theory": seen * top + (1 - seen) * edge,
        "edge": edge,
        "cosine": cosine,
        "cosine_theory": seen * overlap * share,
        "visible": theta / relative,
        "turn": step / root,
        "risk": risk,
        "seen": X_test[:SHOWN].flatten(),
        "target": f_test[:SHOWN],
        "answers": told[:SHOWN],
        "risk_random": 1 * random,
        "risk_line": 1 * line,
        "floor": 1 + 0 * line,
        "square_root": 1 * root,
    }
