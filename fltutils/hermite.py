"""Hermite expansions: coefficients, the leap index, the staircase of subspaces.

H_j is the probabilists' Hermite polynomial, E[H_i(z) H_j(z)] = j! if i = j and 0 otherwise for a
standard Gaussian z. A function f has coefficients mu_j = E[f(z) H_j(z)], and

    f(z) = sum_j (mu_j / j!) H_j(z).
"""

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import pairwise, product
from math import factorial, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fltutils import check, span

Function = Callable[..., np.ndarray]
ZERO = 1e-9  # below it, times the size of f, a coefficient counts as zero
DEGREE = 20  # rounding leaves mu_j an error of 1e-16 sqrt(j!): 1e-7 of the size of f at 20
NODES = 350  # beyond it numpy's Gauss-Hermite weights overflow
POINTS = 10**7  # of a tensor rule: more do not fit into a laptop's memory
TRIES = (300_000, 1_000_000, 4_000_000)  # points of a quadrature that looks for a stair


class Rule(NamedTuple):
    """E[f(z)] = sum_i weight_i f(node_i) for a standard Gaussian z."""

    node: np.ndarray
    weight: np.ndarray


def polynomials(z: ArrayLike, degree: int) -> np.ndarray:
    """H_0(z), ..., H_degree(z), stacked first: H_{j+1} = z H_j - j H_{j-1}."""
    z = np.asarray(z, dtype=np.float64)
    H = [np.ones_like(z), z]
    for j in range(1, degree):
        H.append(z * H[j] - j * H[j - 1])
    return np.stack(H[: check.count("degree", degree, 0) + 1])


def _up_to(degree: int, rule: Rule) -> np.ndarray:
    """H_0, ..., H_degree at the nodes of a rule that can tell them apart."""
    high = min(DEGREE, len(rule.node) - 1)
    return polynomials(rule.node, check.count("degree", degree, 0, high))


def gauss_hermite(count: int) -> Rule:
    """Exact for polynomials of degree below 2 count; right for smooth functions."""
    node, weight = np.polynomial.hermite_e.hermegauss(check.count("count", count, 1, NODES))
    return Rule(node, weight / weight.sum())


def with_kinks(kinks: Sequence[float], count: int = 80, reach: float = 12.0) -> Rule:
    """Gauss-Legendre between the kinks, for functions that are smooth on either side of each."""
    reach = float(check.positive("reach", reach))
    inside = np.sort(check.finite("kinks", kinks).ravel())
    if (np.abs(inside) >= reach).any():
        raise ValueError(f"kinks = {inside.tolist()}: kinks must lie within reach = {reach:g} of 0")
    ends = [-reach, *inside, reach]
    x, w = np.polynomial.legendre.leggauss(check.count("count", count))
    halves = [((b - a) / 2, (a + b) / 2) for a, b in pairwise(ends)]
    node = np.concatenate([h * x + middle for h, middle in halves])
    weight = np.concatenate([h * w for h, _ in halves]) * np.exp(-(node**2) / 2)
    return Rule(node, weight / weight.sum())


def coefficients(f: Function, degree: int, rule: Rule | None = None) -> np.ndarray:
    """mu_j = E[f(z) H_j(z)] for j = 0, ..., degree."""
    rule = rule or gauss_hermite(100)
    return _up_to(degree, rule) @ (rule.weight * check.finite("f(z)", f(rule.node)))


def leap(links: Sequence[Function], degree: int = 12, rule: Rule | None = None) -> int:
    """The leap index of sum_k sigma*_k(<w*_k, x>): the least j >= 1 with some mu_{k,j} not zero."""
    rule = rule or gauss_hermite(100)
    for j in range(1, degree + 1):
        if relevant(links, j, rule).any():
            return j
    raise ValueError(f"links: all coefficients of degree 1 to {degree} are zero")


def relevant(links: Sequence[Function], j: int, rule: Rule | None = None) -> np.ndarray:
    """Which w*_k have mu_{k,j} not zero: they span U*_j."""
    rule = rule or gauss_hermite(100)
    mu = np.stack([coefficients(link, j, rule) for link in links])
    size = max(float(rule.weight @ link(rule.node) ** 2) ** 0.5 for link in links)
    return np.abs(mu[:, j]) > ZERO * max(size, 1.0)


def grid(rule: Rule, r: int) -> Rule:
    """The tensor rule in R^r: nodes (count^r, r)."""
    count = len(rule.node)
    if count**r > POINTS:
        raise ValueError(f"r = {r}: {count}^{r} points of quadrature, at most {POINTS:.0e} fit")
    index = np.indices((count,) * r).reshape(r, count**r).T
    return Rule(rule.node[index], rule.weight[index].prod(1))


def _rotated(U: np.ndarray) -> tuple[np.ndarray, int]:
    """Q (r, r), the k orthonormal columns of U, then a basis of their complement; and k."""
    U = check.orthonormal("U", U, None)
    k = U.shape[1]
    return np.hstack([U, np.linalg.svd(U, full_matrices=True)[0][:, k:]]), k


def _values(f: Function, Q: np.ndarray, rule: Rule) -> tuple[np.ndarray, Rule]:
    """f(x_1, ..., x_r) on the tensor rule in the coordinates Q, one axis a coordinate."""
    r = len(Q)
    z = grid(rule, r)
    values = check.finite("f(x)", f(*(z.node @ Q.T).T))
    return np.broadcast_to(values, len(z.node)).reshape((len(rule.node),) * r), z


def multi(f: Function, r: int, degree: int, rule: Rule | None = None) -> np.ndarray:
    """mu_alpha = E[f(x) H_alpha(x)] for all multi-indices alpha with entries up to degree."""
    rule = rule or gauss_hermite(24)
    weighted = _up_to(degree, rule) * rule.weight
    table, _ = _values(f, np.eye(check.count("r", r)), rule)
    for _ in range(r):  # each pass turns the first axis into an index and puts it last
        table = np.moveaxis(np.tensordot(weighted, table, (1, 0)), 0, -1)
    return table


def conditional(f: Function, U: np.ndarray, rule: Rule | None = None) -> np.ndarray:
    """mu_{U,x}(f) = E_{x_perp}[x_perp f(x + x_perp)] at points x of U, one a row, in R^r.

    Rows carry the square root of their quadrature weight: the sum of their squares is E|mu|^2.
    By Stein's lemma the coefficient is E[grad f] over the complement.
    """
    rule = rule or gauss_hermite(24)
    (Q, k), r = _rotated(U), len(U)
    return _pulls(f, Q, grid(rule, k), grid(rule, r - k))[0]


def _pulls(f: Function, Q: np.ndarray, inside: Rule, out: Rule) -> tuple[np.ndarray, float]:
    """mu_{U,x}(f) at nodes x of U, the first columns of Q, and the standard deviation of f."""
    k = inside.node.shape[1]
    x = (inside.node @ Q[:, :k].T)[:, None] + out.node @ Q[:, k:].T  # (inside, out, r)
    with np.errstate(all="ignore"):
        values = check.finite("f(x)", f(*x.reshape(-1, len(Q)).T))
    table = np.broadcast_to(values, x[..., 0].size).reshape(x.shape[:2])
    table = table - table[len(table) // 2, len(out.weight) // 2]  # a constant costs digits
    table -= inside.weight @ table @ out.weight
    mean = table @ (out.weight[:, None] * out.node)
    size = float(np.sqrt(inside.weight @ table**2 @ out.weight))
    return np.sqrt(inside.weight)[:, None] * mean @ Q[:, k:].T, size


def _even(count: int, reach: float, shift: float = 0.5) -> Rule:
    """The trapezoidal rule: exact to rounding for smooth functions, and not lost at kinks."""
    node = reach * (2 * (np.arange(count) + shift) / count - 1)
    weight = np.exp(-(node**2) / 2)
    return Rule(node, weight / weight.sum())


def _turned(Q: np.ndarray, k: int, rng: span.Rng) -> np.ndarray:
    """Q with the columns after the first k in a random rotation."""
    free = Q.shape[1] - k
    return np.hstack([Q[:, :k], Q[:, k:] @ np.linalg.qr(rng.standard_normal((free, free)))[0]])


def _aligned(V: np.ndarray, first: np.ndarray) -> np.ndarray:
    """The columns of V rotated among themselves, as close to those of `first` as they get."""
    left, _, right = np.linalg.svd(V.T @ first)
    return V @ left @ right


def staircase(
    f: Function, r: int, steps: int, rule: Rule | None = None, tolerance: float = 1e-6
) -> list[np.ndarray]:
    """U*_0, ..., U*_steps as orthonormal columns in R^r.

    U*_{t+1} = U*_t + span{mu_{U*_t, x}(f) : x in U*_t}: what is linear once U*_t is known. The
    rank is that of the coefficients, by their singular values. Quadratures with different nodes
    (the first are those of `rule`, if given), each in a random frame, climb side by side: three,
    and up to three dimensions a fine even one, that sees a part of f which is thinner than their
    nodes are dense. A singular value counts if it exceeds ten times what they disagree by, and
    `tolerance` times the standard deviation of f. It is zero if it is below the latter by more than
    they disagree. Where it is neither, finer nodes try again, twice; then f is undecided, which is
    an error. What lives on less than the even one's spacing may still be missed.
    """
    r, steps = check.count("r", r), check.count("steps", steps, 0)
    tolerance = float(check.positive("tolerance", tolerance))
    for attempt in range(len(TRIES)):
        spaces, doubt = _climb(f, r, steps, rule, tolerance, attempt)
        if not doubt:
            return spaces
    raise ValueError(f"f: step {len(spaces)} is undecided: {doubt}")


def _climb(
    f: Function, r: int, steps: int, rule: Rule | None, tolerance: float, attempt: int
) -> tuple[list[np.ndarray], str]:
    """The staircase by three quadratures, and the doubt at which it ends."""
    rng, size = span.stream(attempt, r, "hermite: frames"), 0.0
    twins = [np.zeros((r, 0))] * (3 if attempt else 4)  # one basis a quadrature
    spaces, climbs = twins[:1], True
    for _ in range(steps):
        k = twins[0].shape[1]
        if climbs and k < r:
            inside = grid(_even((1, 16, 10, 8, 5, 4)[min(k, 5)], 6.0, 0.31), k)
            inside = inside._replace(node=_turned(inside.node, 0, rng))
            most = (TRIES[attempt] / len(inside.weight)) ** (1 / (r - k))
            rules = _rules(most, attempt > 0)
            rules[0] = rule or rules[0]
            pulls = [
                _pulls(f, _turned(_rotated(U)[0], k, rng), inside, grid(one, r - k))
                for U, one in zip(twins, rules, strict=True)
            ]
            mu, sizes = zip(*pulls, strict=True)
            if not k:
                size, least = max(sizes), min(sizes)
                if size - least > 0.01 * size:
                    return spaces, f"quadratures find E[f^2] = {least**2:.3g} and {size**2:.3g}"
            gap = max(np.linalg.norm(m - mu[0], 2) for m in mu)
            _, s, rows = zip(*[np.linalg.svd(m, full_matrices=False) for m in mu], strict=True)
            s = s[0][: r - k]
            new = s > max(10 * gap, tolerance * size)
            if (~new & (s + gap > tolerance * size)).any():
                return spaces, (
                    f"quadratures disagree by {gap / size:.2g} of the size of f about the next "
                    f"coefficients, the tolerance is {tolerance:.2g}"
                )
            climbs = bool(new.any())
            twins = [
                np.hstack([U, _aligned(V[: sum(new)].T, rows[0][: sum(new)].T)])
                for U, V in zip(twins, rows, strict=True)
            ]
        spaces.append(twins[0])
    return spaces, ""


def _rules(most: float, fine: bool) -> list[Rule]:
    """Three rules of at most so many nodes, none of them at zero; a fourth beside coarse ones.

    That one is even where its nodes are close enough to be exact to ten digits.
    """
    half = max(min(int(most) // 2, 50_000 if fine else 14), 3)
    if fine:
        return [_even(2 * (half - half // 9 * i), 9.0 + i) for i in range(3)]
    dense = min(int(most), 5000) // 2 * 2
    another = _even(dense, 12.0) if dense >= 26 else gauss_hermite(2 * half + 2)
    return [*(gauss_hermite(2 * (half - i)) for i in range(3)), another]


def energy_above(f: Function, U: np.ndarray, degree: int, rule: Rule | None = None) -> float:
    """||P_{U, > degree} f||^2: what is left of f beside polynomials of that degree off U.

    The coefficients of the polynomials may be any functions on U. With degree 0 this is
    E[Var(f | P_U x)].
    """
    rule = rule or gauss_hermite(24)
    (Q, k), H = _rotated(U), _up_to(degree, rule)
    free = len(Q) - k
    table = _values(f, Q, rule)[0].reshape(len(rule.node) ** k, -1)
    inside, out = grid(rule, k).weight, grid(rule, free).weight
    left = table.copy()  # f beside its polynomials, (points of U, points off U)
    for alpha in product(range(degree + 1), repeat=free):
        if sum(alpha) <= degree:
            h = reduce(np.multiply.outer, [H[a] for a in alpha], np.ones(())).ravel()
            left -= np.outer(table @ (out * h), h) / prod(map(factorial, alpha))
    return float(inside @ left**2 @ out)
