"""The lab on Adam: `fltutils.rules` on sparse noise, coordinate by coordinate.

No two samples share a noise coordinate, as in the theorem. So a neuron is its weight w on the
signal's coordinate and, for each sample, its weights V on the s coordinates of that sample; where
no sample is, no rule moves a weight, and a fresh sample sees the start. The rules are
`rules.gd`, `rules.sign_gd` and `rules.adam`, with a leading run axis of size one.
"""

import torch
from torch.func import grad

from fltutils import measure, models, rules, sparse

from .chapter import functions

Tensor = torch.Tensor
noise_speed, share = functions("adam_vs_gd", "noise_speed", "share")
STEP = (10.0, 3e-3, 3e-3)  # of GD, sign-GD and Adam, as in the chapter
POWER = 3
FITTED = 0.01  # the training loss at which the chapter stops


class Count:
    """The number of a step: a tensor, which `rules.adam` may count up."""

    def __init__(self, steps: Tensor) -> None:
        self.steps = steps

    def __add__(self, more: int) -> "Count":
        return Count(self.steps + more)

    def __rpow__(self, base: float) -> Tensor:
        return base**self.steps


def start(
    U: Tensor, Z: Tensor, W0: Tensor, V0: Tensor, R: Tensor, batch: Tensor, s: Tensor,
    length: Tensor, alpha: Tensor, sigma0: Tensor, rule: Tensor, rate: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """Labels, noise of length about `length` on s coordinates a sample, weights, the step.

    The ratio is sqrt(alpha) times noise over signal, as signs make them grow: it is 1 on the first
    line of the chapter's eq-lines (a map needs it above 0). GD gets that of sign descent.
    """
    n = U.shape[0]
    xi = length / torch.sqrt(s) * Z
    kept = torch.where(rule > 1.5, share(batch, n, "adam"), share(batch, n, "sign_gd"))
    grown = noise_speed(s, length / torch.sqrt(s)) * kept
    eta = torch.where(rule < 0.5, STEP[0] * rate, STEP[1] * rate)
    return {
        "y": torch.sign(U - 0.5),
        "xi": xi,
        "w": sigma0 * W0[None],
        "V": sigma0 * V0[None],
        "m_w": 0 * W0[None],
        "m_V": 0 * V0[None],
        "v_w": 0 * W0[None],
        "v_V": 0 * V0[None],
        "order": 1 * R,
        "dealt": 0 * s,
        "clock": 0 * s,
        "taken": 0 * s,
        "eta": eta,
        "grown": grown,
        "votes": length * length / n,
        "ratio": torch.sqrt(alpha.clamp(min=1e-6)) * grown,
    }


def products(w: Tensor, V: Tensor, xi: Tensor, y: Tensor, alpha: Tensor) -> Tensor:
    """<w, [mu, xi_1..xi_n]> (1, 2, m, 1 + n); the trace of sample i is -alpha y_i."""
    own = (V * xi).sum(-1) - alpha * y * w[..., None]
    return torch.cat([w[..., None], own], -1)


def pull(
    w: Tensor, V: Tensor, xi: Tensor, y: Tensor, alpha: Tensor, weight: Tensor
) -> dict[str, Tensor]:
    """-grad L in the products, on the batch; `go` is 1 until all samples are fitted."""

    def gain(A: Tensor) -> Tensor:
        return -models.logistic(
            models.cnn_from_products(A, y[None], POWER), y[None], weight[None]
        ).sum()

    A = products(w, V, xi, y, alpha)
    loss = models.logistic(models.cnn_from_products(A, y[None], POWER), y[None])[0]
    return {"D": grad(gain)(A), "go": (loss > FITTED).to(loss.dtype)}


def move(
    w: Tensor, V: Tensor, m_w: Tensor, m_V: Tensor, v_w: Tensor, v_V: Tensor, clock: Tensor,
    taken: Tensor, D: Tensor, go: Tensor, xi: Tensor, y: Tensor, alpha: Tensor, eta: Tensor,
    rule: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """A step of the rule: 0 GD, 1 sign-GD, 2 Adam; none where all samples are fitted."""

    def gain(params: rules.Params) -> Tensor:
        return (D * products(params[0], params[1], xi, y, alpha)).sum()

    params, step = (w, V), eta[None]
    down = grad(gain)(params)
    gd, _ = rules.gd(params, down, (), step, None)  # type: ignore[arg-type]
    sign, _ = rules.sign_gd(params, down, (), step, None)  # type: ignore[arg-type]
    state = ((m_w, m_V), (v_w, v_V), Count(clock))
    adam, (ms, vs, _) = rules.adam(params, down, state, step, None)  # type: ignore[arg-type]

    def chosen(k: int) -> Tensor:
        moved = torch.where(rule < 0.5, gd[k], torch.where(rule < 1.5, sign[k], adam[k]))
        return torch.where(go > 0, moved, params[k])

    return {
        "w": chosen(0), "V": chosen(1), "m_w": ms[0], "m_V": ms[1], "v_w": vs[0], "v_V": vs[1],
        "clock": clock + 1, "taken": taken + go,
    }  # fmt: skip


def look(
    w: Tensor, V: Tensor, xi: Tensor, y: Tensor, alpha: Tensor, sigma0: Tensor, s: Tensor,
    length: Tensor, E: Tensor, Xi: Tensor, taken: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """Losses and errors, on fresh samples too; signal and noise of every neuron.

    A fresh sample has noise Xi on coordinates that nobody moved, which a neuron sees as
    sigma0 |xi| E; it is looked at with either label.
    """
    A = products(w, V, xi, y, alpha)
    f = models.cnn_from_products(A, y[None], POWER)
    w = w[0]
    rest = sigma0 * length / torch.sqrt(s) * torch.sqrt((Xi * Xi).sum(1))[:, None, None] * E

    z = torch.cat([w[:1], -w[1:]])
    awake = torch.relu(A[0, :, :, 1:])
    mine = torch.stack([(y > 0).to(y.dtype), (y < 0).to(y.dtype)])[:, None]
    push = torch.sqrt(alpha * (awake * awake * mine).sum(2) / mine.sum(2))
    plus, minus = (sparse.margins(w, rest, alpha, y, POWER) for y in (1.0, -1.0))
    return {
        "y": 1 * y,
        "trace": -alpha * y,
        "coarse": length / torch.sqrt(s),
        "answers": 1 * f[0],
        "loss": models.logistic(f, y[None])[0],
        "train_error": measure.error(y * f)[0],
        "test_error": measure.error(torch.cat([plus, minus])[None])[0],
        "error_plus": measure.error(plus[None])[0],
        "error_minus": measure.error(minus[None])[0],
        "signal": z.flatten(),
        "noise": push.flatten(),
        "ahead": (push > torch.relu(z)).to(z.dtype).sum(),
        "taken": 1 * taken,
    }
