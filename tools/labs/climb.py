"""The lab on SAM: two networks on the same data, batches and start, in one run.

Number 0 climbs before each step down while the phase lasts, number 1 never does; both are
`rules.sam` on the products, the second with radius 0, which is SGD. Data and start are those of
`tools/labs/signal_noise.py` at sigma = 1.
"""

from typing import Any

import torch
from torch.func import grad

from fltutils import measure, models, rules, signal_noise
from fltutils.signal_noise import SignalNoise
from fltutils.train import State

from . import signal_noise as lab

Tensor = torch.Tensor


def start(
    U: Tensor, F: Tensor, Z: Tensor, chi: Tensor, V: Tensor, B: Tensor, chi_w: Tensor,
    R: Tensor, d: Tensor, mu: Tensor, sigma0: Tensor, flip: Tensor, rate: Tensor, m: Tensor,
    batch: Tensor, tau: Tensor, span: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """Data and start; eta, the steps of the climbing phase and tau* = sigma_0 m sqrt(B)."""
    out = lab.sample(
        U, F, Z, chi, V, B, chi_w, mu, torch.ones_like(d), sigma0 / torch.sqrt(d), flip
    )
    eta = rate * m * batch / d
    critical = sigma0 * torch.sqrt(m * batch / d)
    start, C = awake(out["A0"], out["y_obs"]), 0 * out["A0"].expand(2, -1, -1, -1)
    return out | {
        "C": C,
        "P": 1 * C,
        "before": 1 * start,
        "top": 1 * start,
        "eta": eta,
        "phase": torch.floor(span * 4 * m / (eta * (1 - 2 * flip) * mu * mu) + 0.5),
        "ratio": tau / (critical * torch.sqrt(m)),
        "clock": 0 * d,
        "order": 1 * R,
        "dealt": 0 * d,
    }


def pair(
    A0: Tensor, G: Tensor, y: Tensor, y_obs: Tensor, X: Tensor | None = None,
    W0: Tensor | None = None,
) -> SignalNoise:  # fmt: skip
    """The page's arrays as a batch of two runs; where only products are asked for, without X."""
    X, W0 = (G, A0) if X is None or W0 is None else (X, W0)
    one = lab.batch(X, W0, y, y_obs, torch.ones_like(y[0]))
    whole = one._replace(A0=A0.flatten(0, 1)[None], G=G[None])._asdict().items()
    two: dict[str, Any] = {k: v.expand(2, *v.shape[1:]) for k, v in whole if isinstance(v, Tensor)}
    return one._replace(**two)


def awake(A: Tensor, y_obs: Tensor) -> Tensor:
    """The share of the neurons of a sample's own label that it pushes, (n,), of A (2, m, 1 + n)."""
    return lab.own((A[..., 1:] > 0).to(A.dtype), y_obs).mean(0)


def push(
    P: Tensor, A0: Tensor, G: Tensor, y: Tensor, y_obs: Tensor, weight: Tensor
) -> dict[str, Tensor]:
    """-grad L at P on the batch, and who of the first network's neurons is awake there."""
    data = pair(A0, G, y, y_obs)._replace(weight=weight.expand(2, -1))

    def gain(A: Tensor) -> Tensor:
        f = models.cnn_from_products(A, data.y, 1)
        return -models.logistic(f, data.y_obs, data.weight).sum()

    A = signal_noise.products(State((P,), y, data))
    return {"D": grad(gain)(A), "awake": awake(A[0], y_obs)}


def ascend(
    C: Tensor, D: Tensor, A0: Tensor, G: Tensor, y: Tensor, tau: Tensor, clock: Tensor,
    phase: Tensor, weight: Tensor, awake: Tensor, before: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """Where `rules.sam` asks for the second gradient; outside the phase, and for SGD, at C."""
    data, asked = pair(A0, G, y, y), list[Tensor]()

    def descent(params: rules.Params) -> rules.Params:
        asked.extend(params)
        return params

    now = torch.where(clock < phase, tau, 0 * tau)
    here = rules.Here(descent, lambda D: signal_noise.norm(D, data))
    both = torch.stack([now, 0 * now])
    rules.sam((C,), (D,), (), now.expand(2), here, tau=both)  # type: ignore[arg-type]
    return {"P": asked[0], "before": torch.where(weight > 0, awake, before)}


def descend(
    C: Tensor, D: Tensor, eta: Tensor, clock: Tensor, weight: Tensor, awake: Tensor, top: Tensor
) -> dict[str, Tensor]:
    """The step down from C by the gradient that was found."""
    (C,) = rules.along((C,), eta.expand(2), (D,))
    return {
        "C": C, "P": 1 * C, "top": torch.where(weight > 0, awake, top), "clock": clock + 1,
    }  # fmt: skip


def look(
    C: Tensor, A0: Tensor, G: Tensor, X: Tensor, W0: Tensor, y: Tensor, y_obs: Tensor, E: Tensor,
    eta: Tensor, clock: Tensor, phase: Tensor, flip: Tensor, m: Tensor, mu: Tensor,
    before: Tensor, top: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """Coefficients and errors of both, and the neurons that were awake at their last batch."""
    s = State((C,), y, pair(A0, G, y, y_obs, X, W0))
    f = models.cnn_from_products(signal_noise.products(s), s.data.y, 1)
    s = s._replace(f=f)
    gamma = measure.gamma(s).mean((1, 2))
    rho = measure.rho(s).clamp(min=0).sum(-1).mean((1, 2))
    flipped, errors = (y_obs != y).to(y.dtype), measure.train_error(s)
    errs = lab.fresh_errors(s, E, 1)
    return {
        "y": 1 * y,
        "answers": 1 * f[0],
        "flipped": 1 * flipped,
        "train_error": 1 * errors[0],
        "test_error": 1 * errs[0],
        "test_error_sgd": 1 * errs[1],
        "gamma": 1 * gamma[0],
        "gamma_sgd": 1 * gamma[1],
        "gamma_theory": eta * (1 - 2 * flip) * mu * mu * clock / (4 * m),
        "rho": 1 * rho[0],
        "rho_sgd": 1 * rho[1],
        "before": 1 * before,
        "top": 1 * top,
        "awake_before": before.mean(),
        "awake": top.mean(),
        "flips": flipped.sum(),
        "memorised": (flipped * (y_obs * f[0] > 0).to(y.dtype)).sum(),
        "clock": 1 * clock,
        "phase": 1 * phase,
    }
