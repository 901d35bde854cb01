"""Sequences of one signal token and L - 1 noise tokens, and an attention head trained on them.

Lengths are in units of sigma sqrt(d), a noise token's length, so that SNR = |mu|. Gradient descent
on W_Q, W_K and v = W_V w_o never leaves the span of the training tokens, so T coordinates hold the
tokens, whatever d is. The head sees inner products of queries and keys only, so 2T more hold
these, whatever their width is. Both are drawn by Bartlett's law (`span`).

With the rows of X the T different tokens and G = X X', the queries of all tokens are Q_0 + G A
when W_Q = W_Q(0) + X' A, and likewise keys and values: parameters are these coefficients.
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike

from fltutils import attention, check, models, span
from fltutils.rules import Params
from fltutils.train import Problem, State

Tensor = torch.Tensor


class Tokens(NamedTuple):
    """R training sets of n sequences of L tokens, with R heads to be trained; h coordinates."""

    X: Tensor  # (R, T, T)  the s signals, then the noise tokens, sample by sample
    lead: Tensor  # (R, n, s)  the signal token of sample i is sum_j lead_ij X_j
    y: Tensor  # (R, n)  labels
    W_Q: Tensor  # (R, T, h)  initial weights where the training tokens are
    W_K: Tensor  # (R, T, h)
    v: Tensor  # (R, T)
    G: Tensor  # (R, T, T)  <x_a, x_b>
    Q: Tensor  # (R, T, h)  queries, keys and values of all tokens before training
    K: Tensor  # (R, T, h)
    V: Tensor  # (R, T)
    scale: Tensor  # (R, 2)  standard deviation of the entries of W_Q, W_K; of v
    run: Tensor  # (R,)
    loud: float  # length of the first noise token; of the others: 1
    L: int
    d: int
    width: int
    seed: int


def block(n: int, L: int) -> int:
    """How many runs of these sizes train at once, so that their coefficients stay in the cache."""
    return max(1, 2**15 // (2 + n * (L - 1)) ** 2)


def draw(
    *,
    n: int,
    L: int,
    d: int,
    width: int,
    snr: ArrayLike,
    theta: ArrayLike,
    start: ArrayLike = 0.0,
    loud: float = 1.0,
    signals: int = 2,
    plus: ArrayLike | None = None,
    runs: ArrayLike = 1,
    seed: int = 0,
) -> Tokens:
    """Draw training sets and initial weights, each run from its own stream.

    snr, theta and start are numbers or arrays, one a run: the signals' length, the mean square
    length of a noise token's query at the start, and the standard deviation of its value there.
    There are 2 signals, one a class, or 1, which negative samples show with a minus sign, or n of
    them, one a sample. The first `plus` labels (half of them by default) are +1, the others -1.
    """
    n, L, seed = check.count("n", n, 2), check.count("L", L, 2), check.count("seed", seed, 0)
    if signals not in (1, 2, n):
        raise ValueError(f"signals = {signals!r}: signals must be 1, 2 or n = {n}")
    T = signals + n * (L - 1)
    d, width = check.count("d", d, T + L - 1), check.count("width", width)
    h = 2 * T if width >= 2 * (T + L - 1) else width
    loud = float(check.positive("loud", loud))
    identity = np.arange(check.count("runs", runs)) if np.ndim(runs) == 0 else runs
    identity = check.whole("runs", identity, 0)
    R = len(identity)
    ups = np.broadcast_to(check.whole("plus", n // 2 if plus is None else plus, 1), R)
    if ups.max() > n - 1:
        raise ValueError(f"plus = {ups.max()}: plus must be a whole number from 1 to {n - 1}")
    norm, reach, first = (
        np.broadcast_to(check.at_least(name, value, 0.0), R)
        for name, value in (("snr", snr), ("theta", theta), ("start", start))
    )
    length = np.r_[np.ones(signals), np.tile(np.r_[loud, np.ones(L - 2)], n)]
    X, W, v = np.zeros((R, T, T)), np.empty((R, 2 * T, h)), np.empty((R, T))
    for i, run in enumerate(identity):
        rng = span.stream(seed, int(run), "tokens: data and start")
        X[i, signals:, signals:] = span.bartlett(rng, T - signals, d - signals) / np.sqrt(d)
        X[i, range(signals), range(signals)] = norm[i]
        W[i] = span.bartlett(rng, 2 * T, width) if h < width else rng.standard_normal((2 * T, h))
        v[i] = rng.standard_normal(T)
    y = np.where(np.arange(n) < ups[:, None], 1.0, -1.0)
    lead = {1: y[..., None], 2: np.stack([y > 0, y < 0], 2), n: np.tile(np.eye(n), (R, 1, 1))}
    scale = np.stack([np.sqrt(reach / width), first], 1)
    return given(
        X * length[:, None], lead[signals], y, scale[:, :1, None] * W[:, :T],
        scale[:, :1, None] * W[:, T:], scale[:, 1:] * v, scale=scale, run=identity, loud=loud,
        L=L, d=d, width=width, seed=seed,
    )  # fmt: skip


def given(
    X: ArrayLike, lead: ArrayLike, y: ArrayLike, W_Q: ArrayLike, W_K: ArrayLike, v: ArrayLike, *,
    scale: ArrayLike, run: ArrayLike, loud: float, L: int, d: int, width: int, seed: int,
) -> Tokens:  # fmt: skip
    """A batch from its arrays, with what follows from them."""
    arrays = (torch.tensor(np.asarray(a, dtype=np.float64)) for a in (X, lead, y, W_Q, W_K, v))
    x, signal, labels, w_q, w_k, value = arrays
    return Tokens(
        x, signal, labels, w_q, w_k, value, x @ x.transpose(1, 2), x @ w_q, x @ w_k,
        (x @ value[..., None])[..., 0], torch.tensor(np.asarray(scale, dtype=np.float64)),
        torch.tensor(np.asarray(run)), loud, L, d, width, seed,
    )  # fmt: skip


def of_samples(A: Tensor, lead: Tensor, L: int) -> Tensor:
    """Of rows (R, T, h), one a token, those of each sample's tokens: (R, n, L, h)."""
    s, n = lead.shape[-1], lead.shape[-2]
    noise = A[..., s:, :].unflatten(-2, (n, L - 1))
    return torch.cat([(lead @ A[..., :s, :])[..., None, :], noise], -2)


def of_tokens(D: Tensor, lead: Tensor) -> Tensor:
    """The transpose of `of_samples`: what the samples ask of each token, (R, T, h)."""
    return torch.cat([lead.transpose(-1, -2) @ D[..., 0, :], D[..., 1:, :].flatten(-3, -2)], -2)


def seen(params: Params, data: Tokens) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys (R, n, L, h) and values (R, n, L) of the training samples."""
    A, B, b = params
    rows = (data.Q + data.G @ A, data.K + data.G @ B, data.V[..., None] + data.G @ b[..., None])
    q, k, v = (of_samples(x, data.lead, data.L) for x in rows)
    return q, k, v[..., 0]


def outputs(params: Params, data: Tokens) -> tuple[Tensor, tuple[Tensor, ...]]:
    """f (R, n), and queries, keys, values and attention."""
    q, k, v = seen(params, data)
    S = attention.weights(q, k)
    return attention.output(S, v), (q, k, v, S)


def descent(f: Tensor, cache: tuple[Tensor, ...], data: Tokens) -> Params:
    """Minus the gradient, as coefficients on the tokens."""
    q, k, v, S = cache
    E, a = attention.pulls(S, v, models.downhill(f, data.y))
    asked = (E @ k, E.transpose(-1, -2) @ q, a[..., None])
    D_Q, D_K, D_v = (of_tokens(D, data.lead) for D in asked)
    return D_Q, D_K, D_v[..., 0]


def norm(D: Params, data: Tokens) -> Tensor:
    """||D|| in R^d, (R,): ||X' C||^2 = <C, G C>."""
    leaves = [C if C.dim() == 3 else C[..., None] for C in D]
    return torch.stack([(C * (data.G @ C)).sum((1, 2)) for C in leaves]).sum(0).clamp(min=0).sqrt()


def problem(data: Tokens) -> Problem:
    """The logistic loss of the head, in the coefficients of W_Q, W_K and v."""
    start = tuple(torch.zeros_like(x) for x in (data.W_Q, data.W_K, data.v))

    def loss(f: Tensor, data: Tokens) -> Tensor:
        return models.logistic(f, data.y)

    return Problem(start, data, outputs, loss, None, descent, norm, sees_coordinates=False)


def weights(s: State) -> tuple[Tensor, Tensor, Tensor]:
    """W_Q, W_K (R, T, h) and v (R, T, 1) where the training tokens are."""
    (A, B, b), data = s.params, s.data
    Xt = data.X.transpose(1, 2)
    return data.W_Q + Xt @ A, data.W_K + Xt @ B, data.v[..., None] + Xt @ b[..., None]


def fresh(s: State, samples: int = 100) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys (R, 2, samples, L, h') and values (R, 2, samples, L) of fresh sequences.

    Every draw of the noise serves both labels. A fresh token meets the trained weights on the
    training tokens' coordinates, and initial weights that training never touched beside them;
    these are drawn anew for every sequence, which leaves the law of a sequence as it is.
    """
    samples, data = check.count("samples", samples), s.data
    T, k = data.X.shape[1], data.L - 1
    length = torch.tensor([data.loud] + [1.0] * (k - 1), dtype=torch.float64)[:, None]
    W, found = weights(s), list[list[Tensor]]([[], [], []])
    for i, run in enumerate(data.run):
        rng = span.stream(data.seed, int(run), "tokens: fresh sequences")
        z = rng.standard_normal((samples, k, T)) * (np.arange(T) >= data.lead.shape[2])
        own = span.bartlett(rng, k, data.d - T, (samples,))
        inside, beside = (length * torch.from_numpy(x) / data.d**0.5 for x in (z, own))
        new = *untouched(rng, data, samples), rng.standard_normal((samples, k, 1))
        for rows, w, more, scale in zip(found, W, new, data.scale[i, [0, 0, 1]], strict=True):
            here = torch.nn.functional.pad(w[i], (0, more.shape[2] - w.shape[2]))
            noise = inside @ here + beside @ (scale * torch.from_numpy(more))
            first = data.lead[i, [0, -1]] @ (data.X[i] @ here)[: data.lead.shape[2]]
            first = first[:, None, None].expand(2, samples, 1, -1)
            rows.append(torch.cat([first, noise.expand(2, -1, -1, -1)], 2))
    q, key, v = (torch.stack(rows) for rows in found)
    return q, key, v[..., 0]


def untouched(rng: span.Rng, data: Tokens, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Standard Gaussian W_Q, W_K where no training token is, on L - 1 axes for each sequence.

    Their width has the coordinates of the training queries and keys, and what is beside these.
    """
    k, h = data.L - 1, data.W_Q.shape[2]
    W = rng.standard_normal((samples, 2 * k, h))
    if h < data.width:
        W = np.concatenate([W, span.bartlett(rng, 2 * k, data.width - h, (samples,))], 2)
    return W[:, :k], W[:, k:]


def fresh_margins(s: State, samples: int = 100) -> Tensor:
    """y f on fresh sequences, (R, 2, samples): of label +1, of label -1."""
    q, k, v = fresh(s, samples)
    f = attention.output(attention.weights(q, k), v)
    return f * models.SIGN[:, None]
