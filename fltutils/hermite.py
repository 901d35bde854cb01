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

from fltutils import check

Function = Callable[..., np.ndarray]
ZERO = 1e-9  # below it, times the size of f, a coefficient counts as zero
DEGREE = 20  # rounding leaves mu_j an error of 1e-16 sqrt(j!): 1e-7 of the size of f at 20
NODES = 350  # beyond it numpy's Gauss-Hermite weights overflow
POINTS = 10**7  # of a tensor rule: more do not fit into a laptop's memory


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
    (Q, k), m = _rotated(U), len(rule.node)
    r = len(Q)
    table, _ = _values(f, Q, rule)
    out, inside = grid(rule, r - k), grid(rule, k).weight
    mean = table.reshape(m**k, -1) @ (out.weight[:, None] * out.node)  # (m^k, r - k)
    return np.sqrt(inside)[:, None] * mean @ Q[:, k:].T


def staircase(
    f: Function, r: int, steps: int, rule: Rule | None = None, tolerance: float = 1e-6
) -> list[np.ndarray]:
    """U*_0, ..., U*_steps as orthonormal columns in R^r.

    U*_{t+1} = U*_t + span{mu_{U*_t, x}(f) : x in U*_t}: what is linear once U*_t is known. The
    rank is that of the coefficients, by their singular values relative to the size of f.
    """
    spaces = [np.zeros((r, 0))]
    size = float(np.sqrt(multi(lambda *x: f(*x) ** 2, r, 0, rule).item()))
    for _ in range(check.count("steps", steps, 0)):
        U = spaces[-1]
        if U.shape[1] < r:
            _, s, rows = np.linalg.svd(conditional(f, U, rule), full_matrices=False)
            U = np.hstack([U, rows[s > tolerance * size].T])
        spaces.append(U)
    return spaces


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
