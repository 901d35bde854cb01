"""The lab on label noise GD: two networks on the same data from the same start, in one run.

Number 0 sees each label flipped anew with probability p at each step, number 1 the true labels.
Beside them runs the chapter's law of two numbers a sample, on the same flips.
"""

import torch
from torch.func import grad

from fltutils import measure, models, rules, signal_noise
from fltutils.train import State

from . import signal_noise as lab
from .climb import pair

Tensor = torch.Tensor


def start(
    U: Tensor, F: Tensor, Z: Tensor, chi: Tensor, V: Tensor, B: Tensor, chi_w: Tensor,
    d: Tensor, signal: Tensor, sigma0: Tensor, kappa: Tensor, p: Tensor, m: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """Data at n SNR^2 = signal, the step eta = kappa n m / (2 d), and where the law starts."""
    one, n = torch.ones_like(d), U.shape[0]
    mu = torch.sqrt(signal * d / n)
    out = lab.sample(U, F, Z, chi, V, B, chi_w, mu, one, sigma0 / torch.sqrt(d), 0 * one)
    A, y = out["A0"][None], out["y"]
    Z0, M0 = answers(A, y)
    return out | {
        "C": 0 * out["A0"].expand(2, -1, -1, -1),
        "eta": kappa * n * m / (2 * d),
        "Z_law": torch.cat([Z0, Z0]),
        "M_law": torch.cat([M0, M0]),
        "throw": kappa * (1 - p),
    }


def answers(A: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """What each class answers to its signal (R, 2), and that of y_i to sample i's noise (R, n)."""
    a = A[..., 0]
    Z = models.act(torch.stack([a[:, 0], -a[:, 1]], 1), 2).mean(-1)
    noise = A[..., 1:]
    M = models.act(torch.where(y > 0, noise[:, 0], noise[:, 1]), 2).mean(1)
    return Z, M


def descend(
    C: Tensor, A0: Tensor, G: Tensor, y: Tensor, R: Tensor, p: Tensor, eta: Tensor, kappa: Tensor,
    signal: Tensor, Z_law: Tensor, M_law: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """A step of either network, and of the law: sqrt(Z) and sqrt(M) grow by 1 + kappa times pulls.

    A factor below zero is a neuron thrown over zero: it answers no more.
    """
    eps = torch.stack([torch.where(R < p, -torch.ones_like(R), torch.ones_like(R)), 1 + 0 * R])
    data = pair(A0, G, y, y)._replace(y_obs=eps * y)

    def gain(A: Tensor) -> Tensor:
        return -models.logistic(models.cnn_from_products(A, data.y, 2), data.y_obs).sum()

    D = grad(gain)(signal_noise.products(State((C,), y, data)))
    n = y.shape[0]
    sides = torch.stack([(y > 0).to(y.dtype), (y < 0).to(y.dtype)])
    margin = M_law + Z_law @ sides
    g = eps * torch.sigmoid(-eps * margin)
    up = torch.relu(1 + kappa * signal / n * (g @ sides.t()))
    kick = torch.relu(1 + kappa * g)
    return {
        "C": rules.along((C,), eta.expand(2), (D,))[0],
        "Z_law": Z_law * up * up,
        "M_law": M_law * kick * kick,
    }


def look(
    C: Tensor, A0: Tensor, G: Tensor, X: Tensor, W0: Tensor, y: Tensor, E: Tensor, p: Tensor,
    kappa: Tensor, sigma0: Tensor, d: Tensor, m: Tensor, Z_law: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """Signal, memory, losses and errors of both networks, with the law, the floor and the bound."""
    s = State((C,), y, pair(A0, G, y, y, X, W0))
    A = signal_noise.products(s)
    s = s._replace(f=models.cnn_from_products(A, s.data.y, 2))
    Z, M = answers(A, y)
    rho = measure.rho(s)
    mine = torch.where(y > 0, rho[:, 0], rho[:, 1])
    memory, loss = (mine * mine).mean((1, 2)), measure.train_loss(s)
    wrong = models.logistic(s.f, -y)
    signal, law = torch.sqrt(Z).mean(1), torch.sqrt(Z_law).mean(1)
    errs, hold = lab.fresh_errors(s, E, 2), torch.log((1 - p) / p)
    return {
        "signal_flips": 1 * signal[0],
        "signal_gd": 1 * signal[1],
        "law_flips": 1 * law[0],
        "law_gd": 1 * law[1],
        "enough": torch.sqrt(1.2815515655446004 * fresh_noise(y.shape[0], d, m, sigma0, hold)),
        "Z": 1 * Z[0],
        "M": 1 * M[0],
        "from_signal": Z[0].mean(),
        "from_memory": M[0].mean(),
        "memory": 1 * memory[0],
        "memory_gd": 1 * memory[1],
        "held": hold + kappa / 2 * ((1 - 2 * p) * hold - 1),
        "hold": 1 * hold,
        "loss_gd": 1 * loss[1],
        "loss": (1 - p) * loss[0] + p * wrong[0],
        "floor": -p * torch.log(p) - (1 - p) * torch.log(1 - p),
        "test_error": 1 * errs[0],
        "test_error_gd": 1 * errs[1],
    }


def fresh_noise(n: int, d: Tensor, m: Tensor, s: Tensor, M: Tensor) -> Tensor:
    """The chapter's standard deviation of f on fresh noise, at memories M."""
    v = s * s + n * M / (2 * d)
    theta = torch.acos(n * M / (2 * d) / torch.pi / v)
    both = 3 * torch.sin(theta) * torch.cos(theta)
    both = both + (torch.pi - theta) * (1 + 2 * torch.cos(theta) ** 2)
    shared = both / (2 * torch.pi) - 0.25
    return v * torch.sqrt(2 * (1.25 / m + (1 - 1 / m) * shared))
