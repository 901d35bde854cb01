"""The lab on contrastive learning: the chapter's encoders on the page's draws, one run.

The same images train one encoder beside copies of themselves and another one beside captions.
Lengths are in units of sigma sqrt(d): a signal has length SNR, a noise patch about one; the
temperature is one and a step is a tenth of the chapter's clock. Beside the networks run the
chapter's laws, which stop when the first of their two numbers is one.
"""

import torch

Tensor = torch.Tensor
STEP = 0.1


def patches(Z: Tensor, chi: Tensor, g: Tensor, d: Tensor) -> Tensor:
    """Noise patches, (n, k): mu's coordinate first, then Bartlett's."""
    return torch.cat([g[:, None], torch.tril(Z, -1) + torch.diag(chi)], 1) / torch.sqrt(d)


def start(
    U: Tensor, Z: Tensor, chi: Tensor, g: Tensor, V: Tensor, Z2: Tensor, chi2: Tensor, g2: Tensor,
    V2: Tensor, d: Tensor, snr: Tensor, ratio: Tensor, s: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """Patches of both modalities, half of the labels each, and weights of size s."""
    rank = (U[:, None] > U[None]).to(U.dtype).sum(1)
    y = torch.sign(2 * rank - U.shape[0] + 1)
    X, X2 = patches(Z, chi, g, d), patches(Z2, chi2, g2, d)
    length = torch.sqrt(snr / U.shape[0])
    W, B = s * V, s * V2
    b, c = W @ X.t(), B @ X2.t()
    return {
        "y": y, "X": X, "X2": X2, "length": length, "length2": ratio * length,
        "W1": 1 * W, "W": W, "B": B,
        "la1": length * W[:, 0], "lb1": 1 * b,
        "la": length * W[:, 0], "lc": ratio * length * B[:, 0], "lb": b, "le": c,
        "race": snr * ratio / 2, "race1": snr / 2, "critical": 2 / snr,
    }  # fmt: skip


def answers(W: Tensor, X: Tensor, y: Tensor, length: Tensor) -> Tensor:
    """ReLU of the products with the signal patch and with the noise patch, (2, n, m)."""
    return torch.relu(torch.stack([y[:, None] * (length * W[:, 0])[None], X @ W.t()]))


def similarity(H: Tensor, K: Tensor) -> Tensor:
    return (H[0] @ K[0].t() + H[1] @ K[1].t()) / H.shape[2]


def pulls(S: Tensor, y: Tensor) -> Tensor:
    """delta_ij - P_ij: the partner and the samples of the other label."""
    rows = torch.arange(y.shape[0])
    own = (rows[:, None] == rows[None]).to(y.dtype)
    seen = own + (y[:, None] * y[None] < 0).to(y.dtype)
    shifted = S - S.amax(1, keepdim=True)
    E = seen * torch.exp(shifted)
    return own - E / E.sum(1, keepdim=True)


def push(F: Tensor, H: Tensor, K: Tensor, X: Tensor, y: Tensor, length: Tensor) -> Tensor:
    """Minus the gradient, times n m tau, (m, k)."""
    signal = (F @ K[0]) * (H[0] > 0).to(F.dtype)
    noise = (F @ K[1]) * (H[1] > 0).to(F.dtype)
    along = length * (y[:, None] * signal).sum(0)
    beside = torch.zeros_like(X[0])[None, 1:] + 0 * along[:, None]
    return torch.cat([along[:, None], beside], 1) + noise.t() @ X


def learn(
    W1: Tensor, W: Tensor, B: Tensor, X: Tensor, X2: Tensor, y: Tensor, length: Tensor,
    length2: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """One step of the encoder alone, and of the two."""
    H1 = answers(W1, X, y, length)
    H, K = answers(W, X, y, length), answers(B, X2, y, length2)
    S = similarity(H, K)
    alone = push(pulls(similarity(H1, H1), y), H1, H1, X, y, length)
    return {
        "W1": W1 + STEP * alone,
        "W": W + STEP * push(pulls(S, y), H, K, X, y, length),
        "B": B + STEP * push(pulls(S.t(), y), K, H, X2, y, length2),
    }


def rms(a: Tensor) -> Tensor:
    return torch.sqrt((a * a).mean())


def law(
    la1: Tensor, lb1: Tensor, la: Tensor, lc: Tensor, lb: Tensor, le: Tensor, y: Tensor,
    n: Tensor, snr: Tensor, ratio: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """The linear laws of signal and noise, as long as neither is of order one."""
    rows = torch.arange(y.shape[0])
    own = (rows[:, None] == rows[None]).to(y.dtype)
    seen = own + (y[:, None] * y[None] < 0).to(y.dtype)
    F = own - seen / seen.sum(1, keepdim=True)
    kept = 1 - 2 / (n + 2)
    pace = STEP * kept * snr / 2
    up1, up, down = (torch.relu(t) @ F.t() for t in (lb1, le, lb))
    on1 = (torch.maximum(rms(la1), rms(torch.relu(lb1))) < 1).to(y.dtype)
    on = (torch.maximum(rms(la), rms(torch.relu(lb))) < 1).to(y.dtype)
    return {
        "la1": la1 + on1 * pace * la1,
        "lb1": lb1 + on1 * STEP * (lb1 > 0).to(y.dtype) * up1,
        "la": la + on * pace * lc,
        "lc": lc + on * pace * ratio * ratio * la,
        "lb": lb + on * STEP * (lb > 0).to(y.dtype) * up,
        "le": le + on * STEP * (le > 0).to(y.dtype) * down,
    }


def look(
    W1: Tensor, W: Tensor, B: Tensor, X: Tensor, X2: Tensor, y: Tensor, length: Tensor,
    length2: Tensor, la1: Tensor, lb1: Tensor, la: Tensor, lb: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """Sizes of signal and noise with one modality and with two; per neuron with two.

    `found` is the chance that the softmax gives each image's own caption.
    """
    S = similarity(answers(W, X, y, length), answers(B, X2, y, length2))
    b1, b = torch.relu(W1 @ X.t()), torch.relu(W @ X.t())
    signal, noise = rms(length * W[:, 0]), rms(b)
    signal1, noise1 = rms(length * W1[:, 0]), rms(b1)
    return {
        "signal": signal,
        "noise": noise,
        "signal1": signal1,
        "noise1": noise1,
        "law_signal": rms(la),
        "law_noise": rms(torch.relu(lb)),
        "law_signal1": rms(la1),
        "law_noise1": rms(torch.relu(lb1)),
        "share": signal / (signal + noise),
        "share1": signal1 / (signal1 + noise1),
        "big": torch.maximum(signal, noise),
        "big1": torch.maximum(signal1, noise1),
        "a": torch.abs(length * W[:, 0]),
        "b": b.amax(1),
        "y": 1 * y,
        "found": 1 - torch.diagonal(pulls(S, y)),
        "leads": (torch.abs(length * W[:, 0]) > b.amax(1)).to(b.dtype).sum(),
    }
