"""The lab on one giant step: `fltutils.giant` neuron by neuron, as functions of tensors.

At the start f = 0, so a neuron moves by (eta a_i / (p n)) sum_mu y s'(<w_i, x>) x, whatever the
others do, and its mirror by minus that. It sees x through two directions of the target, X (n, 2),
and the rest of its own weights, Z (n, h), taken orthogonal to the others', which changes the law
of no neuron. Beside these the sum is Gaussian, given its factors g: only its length is drawn, chi
with d - 3 degrees of freedom, that of a row of Bartlett's triangle. So d is a number.
"""

import torch

Tensor = torch.Tensor


def is_leap(leap: Tensor, j: float) -> Tensor:
    """1 where the leap index is j."""
    return (torch.abs(leap - j) < 0.5).to(leap.dtype)


def target(X: Tensor, leap: Tensor, mean: Tensor) -> Tensor:
    """Leap one: 1.5 x1 + H2(x1)/2 + 0.75 x2 - H2(x2)/2; two, three: H_j(x1) + H_j(x2), scaled."""
    x1, x2 = X[:, 0], X[:, 1]
    one = 1.5 * x1 + 0.75 * x2 + (x1 * x1 - x2 * x2) / 2
    two = (x1 * x1 + x2 * x2) / 2 - 1
    three = ((x1 * x1 - 3) * x1 + (x2 * x2 - 3) * x2) / 12**0.5
    return mean + is_leap(leap, 1) * one + is_leap(leap, 2) * two + is_leap(leap, 3) * three


def length(B: Tensor, chi: Tensor) -> Tensor:
    """Lengths of the rows of Bartlett's triangle: Gaussian vectors of R^df."""
    below = torch.tril(B, -1)
    return torch.sqrt((below * below).sum(1) + chi * chi)


def start(
    V: Tensor, B0: Tensor, chi0: Tensor, B1: Tensor, chi1: Tensor, X: Tensor, d: Tensor,
    leap: Tensor, rate: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """Rows uniform on the sphere: overlaps M with the target, the rest's length s.

    eta = rate p d^((leap - 1)/2), and `needed` = d^leap samples are predicted to be enough.
    """
    beside = length(B0, chi0)
    norm = torch.sqrt((V * V).sum(1) + beside * beside)
    n = X.shape[0] * torch.ones_like(d)
    needed = torch.exp(leap * torch.log(d))
    return {
        "M": V / norm[:, None],
        "s": beside / norm,
        "outside": length(B1, chi1),
        "stride": rate * torch.sqrt(needed / d),
        "needed": needed,
        "ratio": n / needed,
        "kappa": torch.log(n) / torch.log(d),
        "t": 0 * d,
    }


def pull(
    X: Tensor, Z: Tensor, M: Tensor, s: Tensor, leap: Tensor, mean: Tensor
) -> dict[str, Tensor]:
    """g = y sigma'(<w_i, x>) for sigma = H1 + H2/2 + H3/6, (n, h)."""
    z = X @ M.t() + Z * s
    return {"g": target(X, leap, mean)[:, None] * (1 + z + (z * z - 1) / 2)}


def tick(t: Tensor) -> dict[str, Tensor]:
    """A record later."""
    return {"t": t + 1}


def look(
    g: Tensor, X: Tensor, Z: Tensor, M: Tensor, s: Tensor, outside: Tensor, stride: Tensor,
    needed: Tensor, t: Tensor, steps: Tensor, d: Tensor, leap: Tensor, mean: Tensor, dots: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """The neurons and their mirrors after a step on the first 4 (n/4)^(t/steps) samples."""
    n = g.shape[0]
    last = 4 * torch.exp(t / steps * torch.log(n * torch.ones_like(d) / 4))
    used = (torch.arange(n, dtype=g.dtype) + 0.5 < last).to(g.dtype)
    seen = used.sum()
    kept = g * used[:, None]
    along, own = kept.t() @ X / seen, (kept * Z).sum(0) / seen
    beside = stride * torch.sqrt((kept * g).sum(0)) / seen * outside
    m = torch.cat([M + stride * along, M - stride * along])
    rest = torch.cat([(s + stride * own) ** 2 + beside**2, (s - stride * own) ** 2 + beside**2])
    c = m / torch.sqrt((m * m).sum(1) + rest)[:, None]
    slant = is_leap(leap, 1) / 5**0.5
    v1 = torch.sqrt(1 - slant * slant)
    on, off = c[:, 0] * v1 + c[:, 1] * slant, c[:, 1] * v1 - c[:, 0] * slant
    return {
        "seen": seen,
        "x1": 1 * dots[:, 0],
        "x2": 1 * dots[:, 1],
        "y": target(dots, leap, mean),
        "c1": c[:, 0],
        "c2": c[:, 1],
        "share": torch.sqrt((c * c).sum(1).mean()),
        "along": torch.sqrt((on * on).mean()),
        "across": torch.sqrt((off * off).mean()),
        "theory": expected(M, stride, seen, d, leap, mean, 1 + 0 * d),
        "noise": expected(M, stride, seen, d, leap, mean, 0 * d),
        "chance": torch.sqrt(2 / d),
        "slope": torch.maximum((torch.log(seen) / torch.log(d) - leap) / 2, 0 * d - 0.5),
        "needed": 1 * needed,
    }


def expected(
    M: Tensor, stride: Tensor, n: Tensor, d: Tensor, leap: Tensor, mean: Tensor, signal: Tensor
) -> Tensor:
    """The share by the chapter's equations of the overlap and of the length; 0 signal: noise alone.

    A mean of the labels stretches the neuron along itself. In V* the noise has E[y^2 x_k^2] for
    E[y^2] elsewhere, both times E[sigma'^2] = 5/2.
    """
    one, two, three = (is_leap(leap, j) for j in (1, 2, 3))
    slope = torch.cat([(1.5 * one)[None], (0.75 * one)[None]])
    add = signal * stride * (slope + two * M + three * 3**0.5 / 2 * M * M)
    each = 2.5 * stride * stride / n
    inside = each * (17.25 * one + 6 * two + 8 * three + (4 * two + 2 * mean) * mean)
    outside = each * (d - 2) * (3.8125 * one + two + three + mean * mean)
    shares, own = [], 1 - (M * M).sum(1)
    for way in (1, -1):
        learned = ((M + way * add) ** 2).sum(1) + inside
        shares.append(learned / (learned + outside + own * (1 + way * stride * mean) ** 2))
    return torch.sqrt(torch.cat(shares).mean())
