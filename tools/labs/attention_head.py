"""The lab on attention: `fltutils.tokens` on the page's arrays, one run, sequences of four tokens.

Lengths are in units of sigma sqrt(d). Training tokens and fresh ones share one Bartlett triangle,
and so do the weights that meet them; training sees the first rows and columns only.
"""

import torch

from fltutils import attention, models, rules, tokens
from fltutils.tokens import Tokens

from .chapter import functions

Tensor = torch.Tensor
FRESH = 24  # noise tokens of eight fresh sequences
(switch,) = functions("transformer_overfitting", "switch")


def prepare(
    v_signal: Tensor, v_noise: Tensor, v_fresh: Tensor, Z: Tensor, chi: Tensor, B: Tensor,
    chi_w: Tensor, snr: Tensor, theta: Tensor, start: Tensor, d: Tensor, width: Tensor,
    rate: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """Tokens, labels and initial weights, half of the labels +1; the step is `rate` of the clock.

    Of fresh noise tokens: P = <x, training tokens>, and queries, keys and values before training.
    `switch` is the chapter's n SNR^2 at which a class switches, `ratio` that of the data over it.
    """
    n, t = v_noise.shape[0] + 0 * snr, v_noise.shape[0] * 3
    y = torch.sign(n / 2 - 0.25 - torch.arange(v_noise.shape[0]).to(snr.dtype))
    lead = torch.stack([(1 + y) / 2, (1 - y) / 2]).t()
    noise = (torch.tril(Z, -1) + torch.diag(chi)) / torch.sqrt(d)
    W = (torch.tril(B, -1) + torch.diag(chi_w)) * torch.sqrt(theta / width)
    own = torch.stack([snr, 0 * snr])
    signals = torch.stack([own, own.flip(0)])
    X = torch.cat([
        torch.cat([signals, v_noise.new_zeros(2, t)], 1),
        torch.cat([v_noise.new_zeros(t, 2), noise[:t, :t]], 1),
    ])  # fmt: skip
    k, h = t + 2, 2 * t + 4
    W_Q, W_K, v = W[:k, :h], W[k:h, :h], start * torch.cat([v_signal, v_noise.flatten()])
    here = torch.cat([v_noise.new_zeros(FRESH, 2), noise[t:, :t]], 1)
    beside, apart = noise[t:, t:], v_noise.new_zeros(FRESH, 2 * FRESH)
    fresh = W[h : h + FRESH], W[h + FRESH :]
    c, told = n * snr * snr, switch(n, n / 2, 4, d)
    QF, KF = (
        torch.cat([here @ w, apart], 1) + beside @ new
        for w, new in zip((W_Q, W_K), fresh, strict=True)
    )
    return {
        "y": y, "lead": lead, "X": X, "G": X @ X.t(), "Q": X @ W_Q, "K": X @ W_K, "V": X @ v,
        "P": here @ X.t(), "QF": QF, "KF": KF,
        "VF": here @ v + start * (beside @ v_fresh),
        "A": 0 * W_Q, "C": 0 * W_K, "b": 0 * v,
        "eta": rate * n, "c": c, "switch": told, "ratio": c / told, "T": 0 * snr,
    }  # fmt: skip


def batch(X: Tensor, lead: Tensor, y: Tensor, G: Tensor, Q: Tensor, K: Tensor, V: Tensor) -> Tokens:
    """The page's arrays as the package's batch, without a run axis; what no step asks for is 0."""
    no = X[0]
    return Tokens(X, lead, y, no, no, no, G, Q, K, V, no, no, 1.0, 4, 0, 0, 0)


def descend(
    A: Tensor, C: Tensor, b: Tensor, X: Tensor, lead: Tensor, y: Tensor, G: Tensor, Q: Tensor,
    K: Tensor, V: Tensor, eta: Tensor, T: Tensor, rate: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """One step of gradient descent on the coefficients of W_Q, W_K and v."""
    data, params = batch(X, lead, y, G, Q, K, V), (A, C, b)
    D = tokens.descent(*tokens.outputs(params, data), data)
    eta_of = eta[None]
    A, C, b = (
        rules.along((w[None],), eta_of, (g[None],))[0][0] for w, g in zip(params, D, strict=True)
    )
    return {"A": A, "C": C, "b": b, "T": T + rate}


def fresh_margins(
    A: Tensor, C: Tensor, b: Tensor, G: Tensor, Q: Tensor, K: Tensor, V: Tensor, P: Tensor,
    QF: Tensor, KF: Tensor, VF: Tensor,
) -> Tensor:  # fmt: skip
    """y f on the fresh sequences, each with both labels: (2, 8)."""
    gap = QF.new_zeros(FRESH, 2 * FRESH)
    found = []
    for row in (0, 1):
        parts = []
        for new, table, w in ((QF, Q, A), (KF, K, C)):
            noise = (new + torch.cat([P @ w, gap], 1)).view(8, 3, -1)
            signal = torch.cat([(table + G @ w)[row], gap[0]])
            parts.append(torch.cat([signal.expand(8, 1, -1), noise], 1))
        v = torch.cat([(V + G @ b)[row].expand(8, 1), (VF + P @ b).view(8, 3)], 1)
        found.append(attention.output(attention.weights(*parts), v))
    return torch.stack([found[0], -found[1]])


def look(
    A: Tensor, C: Tensor, b: Tensor, X: Tensor, lead: Tensor, y: Tensor, G: Tensor, Q: Tensor,
    K: Tensor, V: Tensor, P: Tensor, QF: Tensor, KF: Tensor, VF: Tensor, c: Tensor, T: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """Losses, where the head looks, and what it values.

    `on_signal` is the mean attention on the signal, `on_noise` that on each sample's noise token
    with most, `to_signal` the share of samples that give the signal more than half. Of the first
    sample, `map` is the attention row by row, `first` and `first_noise` its parts. `error` is the
    share of fresh sequences with a wrong sign, `even` the test loss of a linear model at the same
    training loss, by hand, for d without end.
    """
    f, (_, _, v, S) = tokens.outputs((A, C, b), batch(X, lead, y, G, Q, K, V))
    margins = fresh_margins(A, C, b, G, Q, K, V, P, QF, KF, VF)
    loss, values = models.logistic(f, y), y[:, None] * v
    own = S[..., 0].mean(1)
    share, margin = c / (c + 6), -torch.log(torch.expm1(loss))
    return {
        "loss": loss,
        "test_loss": torch.nn.functional.softplus(-margins).mean(),
        "error": (margins <= 0).to(margins.dtype).mean(),
        "even": torch.nn.functional.softplus(-share * margin),
        "on_signal": own.mean(),
        "on_noise": S.mean(1)[:, 1:].amax(1).mean(),
        "to_signal": (own > 0.5).to(own.dtype).mean(),
        "map": 1 * S[0].flatten(),
        "looks": S[0].mean(0),
        "first": S[0, :, 0].mean(),
        "first_noise": S[0].mean(0)[1:].amax(),
        "signal_value": values[:, 0].mean(),
        "noise_value": values[:, 1:].amax(1).mean(),
        "signal_theory": c * T / 16,
        "noise_theory": T / 8,
    }
