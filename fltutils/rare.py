"""Errors too rare to count, by importance sampling.

A network of the signal-noise model errs where the class that should be silent answers louder than
the signal. It sees noise through 2m jointly Gaussian numbers z with covariance C. These are drawn
around t C a, a the mean over the loud class and t such that the network just errs there, and every
draw is weighted by the ratio of the two densities, exp(t^2 a'Ca / 2 - t a'z).
"""

import math

import torch

from fltutils import check, measure, models, signal_noise, span
from fltutils.train import State

Tensor = torch.Tensor
HALVINGS = 60  # of the interval that holds t


def log_error(
    s: State, *, q: int, samples: int = 400, reused: bool = False, near: int = 8
) -> Tensor:
    """log L_D^{0-1} on fresh noise, (R,).

    With `reused` a sample's noise is a training patch plus fresh noise. Of each class the `near`
    patches are looked at on which it answers loudest; the others are left out.
    """
    samples, near = check.count("samples", samples), check.count("near", near)
    (along, W), data = measure.seen(s), s.data
    R, m = len(W), along.shape[-1]
    scaled = data.sigma[:, None, None] * W
    cov = scaled @ scaled.transpose(1, 2)
    root = torch.linalg.qr(scaled.transpose(1, 2), mode="r").R  # root' root = cov
    root = root * torch.where(root.diagonal(dim1=1, dim2=2) < 0, -1.0, 1.0)[..., None]
    rngs = [span.stream(data.seed, int(run), "rare: errors") for run in data.run]
    drawn = [torch.from_numpy(rng.standard_normal((samples, 2 * m))) for rng in rngs]
    E = (torch.stack(drawn) @ root)[:, None]  # (R, 1, samples, 2m)
    F = models.act(torch.stack([along, -along], 1), q).mean(-1)  # (R, y, j)
    old = torch.zeros(R, 1, 2 * m, dtype=W.dtype)
    if reused:
        old = signal_noise.products(s)[..., 1:].flatten(1, 2).transpose(1, 2)
    found = []
    for j in (0, 1):  # the class that answers too loudly, at the label of the other
        level = (F[:, 1 - j, 1 - j] - F[:, 1 - j, j])[:, None]
        base = nearest(old, louder(old, j, q), near)
        a = torch.zeros(2 * m, dtype=W.dtype)
        a[j * m : (j + 1) * m] = 1 / m
        push = (cov @ a)[:, None]
        t = tilt(base, push, level, j, q)[..., None]
        z = E + t[..., None] * push[:, :, None]
        weight = t * (t * (push @ a)[..., None] / 2 - z @ a)
        errs = louder(base[:, :, None] + z, j, q) >= level[..., None]
        found.append(weight.masked_fill(~errs, -torch.inf).flatten(1))
    return torch.cat(found, 1).logsumexp(1) - math.log(2 * samples * old.shape[1])


def louder(A: Tensor, j: int, q: int) -> Tensor:
    """How much louder class j answers than the other to products A (..., 2m)."""
    F = models.act(A.unflatten(-1, (2, -1)), q).mean(-1)
    return F[..., j] - F[..., 1 - j]


def nearest(old: Tensor, loud: Tensor, near: int) -> Tensor:
    """The patches (R, near, 2m) on which a class is loudest."""
    which = loud.topk(min(near, loud.shape[1]), dim=1).indices
    return old.gather(1, which[..., None].expand(-1, -1, old.shape[-1]))


def tilt(base: Tensor, push: Tensor, level: Tensor, j: int, q: int) -> Tensor:
    """The least t >= 0 at which class j is louder by `level` at base + t push, (R, near)."""
    low = torch.zeros(base.shape[:2], dtype=base.dtype)
    high = low + 1.0
    for _ in range(HALVINGS):
        short = louder(base + high[..., None] * push, j, q) < level
        high = torch.where(short, 2 * high, high)
    for _ in range(HALVINGS):
        t = (low + high) / 2
        short = louder(base + t[..., None] * push, j, q) < level
        low, high = torch.where(short, t, low), torch.where(short, high, t)
    return low
