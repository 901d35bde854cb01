"""The lab on diffusion: a denoiser and a classifier on the same two-patch data.

The chapter's model with sigma^2 d/n = 1, in blocks of its coordinates: a neuron's components along
the two signals (S), along the coordinates of the noise patches (N) and outside the data (V). A step
of the page is two of the chapter's gradient steps, of the same length; the classifier's two are
of four times the chapter's length and stop at loss 0.01. The chapter's four numbers run beside.
"""

import torch
from torch.func import grad

Tensor = torch.Tensor
PI = 3.141592653589793
START, RATE = 0.1, 0.05  # the denoiser's, as in the chapter
SMALL, PACE = 0.02, 0.08  # the classifier's start and step
FITTED = 0.01


def clocks(n: Tensor, m: Tensor, snr: Tensor, lam: Tensor) -> dict[str, Tensor]:
    """Noise level, length that the weights reach, step sizes; n SNR^2 = x."""
    x = n * snr * snr
    alpha, beta = torch.sqrt(lam / (1 + lam)), torch.sqrt(1 / (1 + lam))
    mean = torch.sqrt(x / 2 + 1)  # length of the mean of all patches
    length = torch.exp(torch.log(alpha * mean / (3 * torch.sqrt(m) * beta * beta * beta)) / 3)
    return {
        "x": x,
        "alpha": alpha,
        "beta": beta,
        "mu": torch.sqrt(x),
        "first": START * length,
        "eta": RATE * torch.sqrt(m) / (4 * alpha * beta * mean * length),
        "eta_c": PACE / torch.clamp(x, min=2.0),
        "loss_c": 0 * n,
        "t": 0 * n,
    }


def start(
    Z: Tensor, chi: Tensor, S0: Tensor, N0: Tensor, B: Tensor, chi_w: Tensor, C0: Tensor,
    D0: Tensor, first: Tensor, n: Tensor, m: Tensor, d: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """Noise patches, labels, shares, weights, the four numbers."""
    L = (torch.tril(Z, -1) + torch.diag(chi)) * torch.sqrt(n / d)
    order = torch.tril(0 * (C0 @ C0.t()) + 1).sum(1)  # 1 ... 2m
    scale, small = first / torch.sqrt(d), SMALL / torch.sqrt(n)
    return {
        "L": L,
        "p": torch.cat([0 * S0[0] + 0.5, 0 * chi + 1 / n]),
        "S": scale * S0,
        "N": scale * N0,
        "V": scale * (torch.tril(B, -1) + torch.diag(chi_w)),
        "CS": small * C0,
        "CN": small * D0,
        "y": -torch.cos(PI * torch.tril(0 * Z + 1).sum(1)),
        "j": 1 - 2 * (order > m + 0.5).to(order.dtype),
        "u": torch.stack([scale, scale, first, first]),
    }


def products(S: Tensor, N: Tensor, L: Tensor, mu: Tensor) -> Tensor:
    """Products of the patches, signals first, with all neurons, (K, neurons)."""
    return torch.cat([mu * S.t(), L @ N.t()])


def slopes(
    Z: Tensor, G: Tensor, p: Tensor, beta: Tensor, m: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The chapter's closed form: the loss's slopes in products, Gram matrix and lengths."""
    C, lengths = beta * beta * G, torch.diagonal(G)
    s = Z * Z + beta * beta * lengths
    pZ, ps = p[:, None] * Z, p[:, None] * s
    pull = 4 * beta / torch.sqrt(m)
    ZZ, sG = pZ.t() @ Z, ps @ G
    in_Z = (4 * Z * sG + 8 * pZ @ (C * G)) / m - pull * p[:, None] * lengths
    M = ps.t() @ s + 4 * (ZZ + C) * C  # the shares of two patches sum to 2
    in_G = (M + 4 * (ZZ + 2 * C) * C) / m
    in_lengths = 2 * beta * beta * sG.sum(0) / m - pull * pZ.sum(0)
    return in_Z, in_G, in_lengths


def denoise(
    S: Tensor, N: Tensor, V: Tensor, L: Tensor, p: Tensor, mu: Tensor, alpha: Tensor, beta: Tensor,
    eta: Tensor, m: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """A step of the denoiser."""
    Z = alpha * products(S, N, L, mu)
    G = S @ S.t() + N @ N.t() + V @ V.t()
    in_Z, in_G, in_l = slopes(Z, G, p, beta, m)
    inner, own = 2 * in_G, 2 * in_l[:, None]
    S, N, V = (
        S - eta * (alpha * mu * in_Z[:2].t() + inner @ S + own * S),
        N - eta * (alpha * in_Z[2:].t() @ L + inner @ N + own * N),
        V - eta * (inner @ V + own * V),
    )
    return {"S": S, "N": N, "V": V}


def four_number_loss(
    u: Tensor, n: Tensor, m: Tensor, mu: Tensor, alpha: Tensor, beta: Tensor
) -> Tensor:
    """The chapter's function of the same name."""
    y2 = 2 * u[0] * u[0] + n * u[1] * u[1]
    own = y2 + ((m - 1) * u[2] * u[2] + u[3] * u[3]) / m
    other = y2 + (u[3] * u[3] - u[2] * u[2]) / m
    D, C = beta * beta * own, beta * beta * other
    total = 0 * y2
    for z in (alpha * u[0] * mu, alpha * u[1] * torch.sqrt(n)):
        same = (z * z + D) * (z * z + D)
        total = total + (same + 4 * z * z * D + 2 * D * D) * own
        total = total + (m - 1) * (same + 4 * z * z * C + 2 * C * C) * other
        total = total - 4 * beta * torch.sqrt(m) * z * own
    return total


def foretell(
    u: Tensor, n: Tensor, m: Tensor, mu: Tensor, alpha: Tensor, beta: Tensor, eta: Tensor, t: Tensor
) -> dict[str, Tensor]:
    """A step of the four numbers; two of all make one of the page's."""
    copies = torch.stack([2 * m, n * m, m - 1, 0 * m + 1])
    u = u - eta * grad(four_number_loss)(u, n, m, mu, alpha, beta) / copies
    return {"u": u, "t": t + 0.5}


def answers(A: Tensor, y: Tensor, j: Tensor, m: Tensor) -> tuple[Tensor, Tensor]:
    """Products with the sample's signal, and the network's output."""
    signal = torch.where((y > 0)[:, None], A[:1], A[1:2])
    f = ((signal * signal + A[2:] * A[2:]) * j).sum(1) / m
    return signal, f


def classify(
    CS: Tensor, CN: Tensor, L: Tensor, y: Tensor, j: Tensor, mu: Tensor, eta_c: Tensor, n: Tensor,
    m: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """A step of the classifier, none once its loss is small."""
    A = products(CS, CN, L, mu)
    signal, f = answers(A, y, j, m)
    loss = torch.nn.functional.softplus(-y * f).mean()
    go = (loss > FITTED).to(y.dtype)
    g = (torch.sigmoid(-y * f) * y)[:, None] * j * 2
    on, off = (y > 0).to(y.dtype)[:, None], (y < 0).to(y.dtype)[:, None]
    sums = torch.stack([(g * signal * on).sum(0), (g * signal * off).sum(0)], 1)
    CS = CS + go * eta_c * mu * sums / n
    CN = CN + go * eta_c * ((g * A[2:]).t() @ L) / n
    return {"CS": CS, "CN": CN, "loss_c": loss}


def look(
    S: Tensor, N: Tensor, CS: Tensor, CN: Tensor, L: Tensor, y: Tensor, j: Tensor, u: Tensor,
    mu: Tensor, x: Tensor, lam: Tensor, n: Tensor, m: Tensor, t: Tensor, loss_c: Tensor,
    alpha: Tensor, beta: Tensor, E: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """What each network knows of signal and noise; the denoiser's ratio beside theory's.

    `shown` are the two patches of the first sample, its signal and its noise, each clean and
    noised, along the two signals and the first noise patches.
    """
    at = torch.arange(E.shape[1]).to(E.dtype)
    signal = (torch.abs(at - (1 - y[0]) / 2) < 0.5).to(E.dtype) * mu
    noise = (torch.abs(at - 2) < 0.5).to(E.dtype) * torch.sqrt(n)
    shown = torch.stack([signal, alpha * signal + beta * E[0], noise, alpha * noise + beta * E[1]])
    A, B = products(S, N, L, mu), products(CS, CN, L, mu)
    of = torch.cat([j[:1], j[-1:], y])  # the class of a patch
    own = (of[:, None] * j > 0).to(y.dtype)
    known, learned = (A * A).mean(1), (B * B * own).sum(1) / m
    d_signal, d_noise = torch.sqrt(known[:2].mean()), torch.sqrt(known[2:].mean())
    c_signal, c_noise = torch.sqrt(learned[:2].mean()), torch.sqrt(learned[2:].mean())
    told_signal, told_noise = torch.abs(u[0]) * mu, torch.abs(u[1]) * torch.sqrt(n)
    return {
        "time": t + 1,
        "d_signal": d_signal,
        "d_noise": d_noise,
        "c_signal": c_signal,
        "c_noise": c_noise,
        "told_signal": told_signal,
        "told_noise": told_noise,
        "ratio_d": d_signal / d_noise,
        "ratio_c": c_signal / c_noise,
        "share": c_signal / (c_signal + c_noise),
        "half": x / 2,
        "told_ratio": told_signal / torch.clamp(told_noise, min=1e-30),
        "c": 1 * x,
        "strongest": lam * torch.clamp(x / 2, min=1.0),
        "loss_c": 1 * loss_c,
        "shown": shown.flatten(),
        "d_parts": torch.sqrt(known),
        "c_parts": torch.sqrt(learned),
    }
