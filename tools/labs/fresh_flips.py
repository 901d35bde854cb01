"""The lab on label noise GD: two networks on the same data from the same start, in one run.

Number 0 sees each label flipped anew with probability p at each step, number 1 the true labels.
Beside them runs the chapter's law of two numbers a sample, on the same flips.
"""

import torch
from torch.func import grad

from fltutils import measure, models, rules, signal_noise
from fltutils.train import State

from . import signal_noise as lab
from .chapter import functions
from .climb import pair

Tensor = torch.Tensor
answers, pull, two_numbers, fresh_noise = functions(
    "label_noise_gd", "answers", "pull", "step", "fresh_noise"
)
TENTH = 1.2815515655446004  # a normal variable is above it once in ten times


def start(
    U: Tensor, F: Tensor, Z: Tensor, chi: Tensor, V: Tensor, B: Tensor, chi_w: Tensor,
    d: Tensor, signal: Tensor, sigma0: Tensor, kappa: Tensor, p: Tensor, m: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """Data at n SNR^2 = signal, the step eta = kappa n m / (2 d), and where the law starts."""
    one, n = torch.ones_like(d), U.shape[0]
    mu = torch.sqrt(signal * d / n)
    out = lab.sample(U, F, Z, chi, V, B, chi_w, mu, one, sigma0 / torch.sqrt(d), 0 * one)
    Z0, M0 = answers(out["A0"][None], out["y"][None])
    return out | {
        "C": 0 * out["A0"].expand(2, -1, -1, -1),
        "eta": kappa * n * m / (2 * d),
        "Z_law": torch.cat([Z0, Z0]),
        "M_law": torch.cat([M0, M0]),
        "throw": kappa * (1 - p),
    }


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
    n, both = y.shape[0], data.y
    margin = M_law + torch.where(both > 0, Z_law[:, :1], Z_law[:, 1:])
    Z, M = two_numbers(Z_law, M_law, both, pull(margin, eps), kappa, signal / n)
    return {"C": rules.along((C,), eta.expand(2), (D,))[0], "Z_law": Z, "M_law": M}


def look(
    C: Tensor, A0: Tensor, G: Tensor, X: Tensor, W0: Tensor, y: Tensor, E: Tensor, p: Tensor,
    sigma0: Tensor, d: Tensor, m: Tensor, Z_law: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """Signal, memory, losses and errors of both networks, with the law and where flips balance."""
    s = State((C,), y, pair(A0, G, y, y, X, W0))
    A, both = signal_noise.products(s), s.data.y
    s = s._replace(f=models.cnn_from_products(A, both, 2))
    Z, M = answers(A, both)
    memory = measure.own(measure.rho(s), both).square().mean((1, 2))
    signal, law = torch.sqrt(Z).mean(1), torch.sqrt(Z_law).mean(1)
    loss, errs, rest = measure.train_loss(s), lab.fresh_errors(s, E, 2), torch.log((1 - p) / p)
    return {
        "y": 1 * y,
        "answers": 1 * s.f[0],
        "signal_flips": 1 * signal[0],
        "signal_gd": 1 * signal[1],
        "law_flips": 1 * law[0],
        "law_gd": 1 * law[1],
        "enough": torch.sqrt(TENTH * fresh_noise(y.shape[0], d, m, sigma0, rest)),
        "Z": 1 * Z[0],
        "M": 1 * M[0],
        "from_signal": Z[0].mean(),
        "from_memory": M[0].mean(),
        "memory": 1 * memory[0],
        "memory_gd": 1 * memory[1],
        "rest": 1 * rest,
        "loss": 1 * loss[0],
        "loss_gd": 1 * loss[1],
        "test_error": 1 * errs[0],
        "test_error_gd": 1 * errs[1],
    }
