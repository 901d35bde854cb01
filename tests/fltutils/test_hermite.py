"""Hermite expansions: closed forms, the leap index, the staircase."""

import re
from itertools import pairwise
from math import erf, factorial

import numpy as np
import pytest

from fltutils import hermite

PHI0 = 1 / np.sqrt(2 * np.pi)


def H(j):
    return lambda z: hermite.polynomials(z, j)[j]


def test_polynomials_are_orthogonal():
    rule = hermite.gauss_hermite(20)
    values = hermite.polynomials(rule.node, 6)
    gram = (values * rule.weight) @ values.T
    assert np.allclose(gram, np.diag([1, 1, 2, 6, 24, 120, 720]), atol=1e-9)


def test_polynomials_by_hand():
    z = np.array([-1.5, 0.0, 2.0])
    expected = [np.ones(3), z, z**2 - 1, z**3 - 3 * z]
    assert np.allclose(hermite.polynomials(z, 3), expected)
    assert hermite.polynomials(z, 0).shape == (1, 3)


def test_relu_has_its_closed_form():
    rule = hermite.with_kinks([0.0])
    c = hermite.coefficients(lambda z: np.maximum(z, 0), 6, rule)
    assert np.allclose(c, [PHI0, 0.5, PHI0, 0, -PHI0, 0, 3 * PHI0], atol=1e-10)


@pytest.mark.parametrize("b", [-1.0, 0.3, 1.0])
def test_shifted_relu_has_its_closed_form(b):
    """c_j = (-1)^j H_{j-2}(b) phi(b) for j >= 2."""
    rule = hermite.with_kinks([-b])
    c = hermite.coefficients(lambda z: np.maximum(z + b, 0), 5, rule)
    density = np.exp(-b * b / 2) * PHI0
    expected = [(-1) ** j * hermite.polynomials(b, j - 2)[j - 2] * density for j in range(2, 6)]
    assert np.allclose(c[2:], expected, atol=1e-10)


def test_exponential_and_cosine_have_their_closed_forms():
    """E[exp(tz) H_j] = t^j exp(t^2/2); the real part at t = i gives the cosine."""
    assert np.allclose(hermite.coefficients(np.exp, 6), np.exp(0.5), rtol=1e-10)
    e = np.exp(-0.5)
    assert np.allclose(hermite.coefficients(np.cos, 4), [e, 0, -e, 0, e], atol=1e-12)


def test_leap_and_relevant_directions():
    assert hermite.leap((np.tanh, H(2))) == 1
    assert hermite.leap((np.cos, H(3))) == 2
    assert hermite.relevant((np.cos, H(3), lambda z: 2.0 + 0 * z), 2).tolist() == [
        True,
        False,
        False,
    ]
    with pytest.raises(ValueError, match="all coefficients"):
        hermite.leap((lambda z: 1.0 + 0 * z,))


def test_the_leap_is_sought_up_to_a_degree_by_a_rule():
    assert hermite.leap((H(5),), degree=5) == 5
    with pytest.raises(ValueError, match="all coefficients of degree 1 to 4 are zero"):
        hermite.leap((H(5),), degree=4)
    assert hermite.leap((H(3),), rule=hermite.gauss_hermite(2)) == 1  # two nodes: H_3 is -2 H_1
    assert hermite.relevant((H(3),), 1, hermite.gauss_hermite(2)).tolist() == [True]


def test_small_links_are_not_taken_for_zero():
    assert hermite.leap((lambda z: 1e-6 * z + H(2)(z),)) == 1


def test_multi_index_coefficients():
    table = hermite.multi(lambda x, y: x + 2 * x * H(2)(y) + 3, 2, 3)
    assert table.shape == (4, 4)
    expected = np.zeros((4, 4))
    expected[0, 0], expected[1, 0], expected[1, 2] = 3, 1, 4
    assert np.allclose(table, expected, atol=1e-9)


STAIRS = [
    (lambda a, b: a + H(2)(a) + b - H(2)(b), 2, [0, 1, 2, 2]),
    (lambda a, b: a + H(2)(a) + b + H(2)(b), 2, [0, 1, 1, 1]),
    (lambda a, b, c: a + a * b + a * c, 3, [0, 1, 2, 2]),
    (lambda a, b, c: a + a * b + H(3)(a) * c, 3, [0, 1, 3, 3]),
    (lambda a, b, c: a + a * b + b * c, 3, [0, 1, 2, 3]),
    (lambda a, b, c: a + a * b * c, 3, [0, 1, 1, 1]),
    (lambda a, b: H(2)(a) + a * b, 2, [0, 0, 0, 0]),
    (lambda a: a, 1, [0, 1, 1, 1]),
    (lambda a: H(3)(a), 1, [0, 0, 0, 0]),
    (lambda a, b, c: a + b * c, 3, [0, 1, 1, 1]),
    (lambda a, b, c: a + a * b + H(3)(c) / 3, 3, [0, 1, 2, 2]),
    (lambda a, b, c: a + a * b + H(2)(c), 3, [0, 1, 2, 2]),
    (lambda a, b, c: a + 1e-3 * a * b + H(2)(c), 3, [0, 1, 2, 2]),
    (lambda a, b, c: a + a * b + (a**2 - 1) * c, 3, [0, 1, 3, 3]),
    (lambda a, b: a + H(10)(b) / 1e3, 2, [0, 1, 1, 1]),
    (lambda a, b: a + H(12)(a) * b / 1e4, 2, [0, 1, 2, 2]),
    (lambda a, b: a + H(16)(a) * b / 1e6, 2, [0, 1, 2, 2]),  # zero at sixteen nodes
    (lambda a, b: 1e8 + a + a * b, 2, [0, 1, 2, 2]),  # a constant is no size
    (lambda a, b: 1e12 + a + 0 * b, 2, [0, 1, 1, 1]),
    (lambda a, b: 1e-9 * (a + a * b), 2, [0, 1, 2, 2]),
    (lambda a, b: 3.0, 2, [0, 0, 0, 0]),
    (lambda a, b: 0.1 + 0 * a, 2, [0, 0, 0, 0]),
    (lambda a, b, c, d: a + a * b + b * c + c * d, 4, [0, 1, 2, 3]),
    (lambda a, b, c, d: sum(z + H(2)(z) for z in (a, b, c, d)), 4, [0, 1, 1, 1]),
    (lambda a, b, c, d: a + a * b + a * b * c + a * b * c * d, 4, [0, 1, 2, 3]),
    (lambda a, b, c, d: a + b * (a + c) + b * d, 4, [0, 1, 2, 3]),
    (lambda a, b, c, d, e: a + a * b + b * c + c * d + d * e, 5, [0, 1, 2, 3]),
]


def relu(z):
    return np.maximum(z, 0)


ROUGH = [  # not polynomials: kinks, jumps, poles near the axis
    (lambda a, b: relu(a) + relu(b), 2, [0, 1, 1, 1]),
    (lambda a, b, c: relu(a) + relu(b) + relu(c), 3, [0, 1, 1, 1]),
    (lambda a, b: relu(a) + relu(1.01 * b), 2, [0, 1, 2, 2]),
    (lambda a, b: relu(a - 1) + relu(b - 1), 2, [0, 1, 1, 1]),
    (lambda a, b: relu(a) + 0.9 * relu(-a) + relu(b) + 0.9 * relu(-b), 2, [0, 1, 1, 1]),
    (lambda a, b: relu(a) * relu(b), 2, [0, 1, 1, 1]),
    (lambda a, b: np.maximum(a, b), 2, [0, 1, 1, 1]),
    (lambda a, b: abs(a) + a / 2 + abs(b) + b / 2, 2, [0, 1, 1, 1]),
    (lambda a, b, c: sum(abs(z) + z / 2 for z in (a, b, c)), 3, [0, 1, 1, 1]),
    (lambda a, b: a * abs(b), 2, [0, 1, 1, 1]),
    (lambda a, b: a + (abs(a) - (2 / np.pi) ** 0.5) * b, 2, [0, 1, 2, 2]),
    (lambda a, b: a + H(2)(a) * relu(b), 2, [0, 1, 2, 2]),
    (lambda a, b: a + relu(a - 3) * b, 2, [0, 1, 2, 2]),  # seen by one sample in a thousand
    (lambda a, b, c: np.sqrt(a * a + b * b + c * c) + a, 3, [0, 1, 1, 1]),
    (lambda a, b: np.sign(a) + np.sign(a) * b, 2, [0, 1, 2, 2]),
    (lambda a, b, c: np.tanh(a), 3, [0, 1, 1, 1]),  # two idle directions
    (lambda a, b, c: sum(np.tanh(3 * z) + H(2)(z) for z in (a, b, c)), 3, [0, 1, 1, 1]),
    (lambda a, b, c, d: sum(np.tanh(z) + H(2)(z) / 2 for z in (a, b, c, d)), 4, [0, 1, 1, 1]),
    (lambda a, b: 1 / (1 + np.exp(-5 * a)) + a * b, 2, [0, 1, 2, 2]),
    (lambda a, b: np.exp(a) + H(2)(b), 2, [0, 1, 1, 1]),
    (lambda a, b: np.cos(a) * np.cos(b), 2, [0, 0, 0, 0]),
    (lambda a, b: a + np.sin(20 * a) * b, 2, [0, 1, 2, 2]),
]
UNDECIDED = [  # quadrature does not resolve these; what is true stands beside them
    (lambda a, b: np.sign(a) + np.sign(b), 2, [0, 1, 1, 1]),
    (lambda a, b: np.floor(a) + b * b, 2, [0, 1, 1, 1]),
    (lambda a, b, c, d: relu(a) + relu(b) + relu(c) + relu(d), 4, [0, 1, 1, 1]),
    (lambda a, b: np.sin(a) ** 2 + np.cos(a) ** 2, 2, [0, 0, 0, 0]),
    (lambda a, b, c: a + 1e-5 * a * b + abs(c), 3, [0, 1, 2, 2]),
    (lambda a, b: np.exp(a * a / 5) + b, 2, [0, 1, 1, 1]),
    (lambda a, b: np.log(abs(a)) + b, 2, [0, 1, 1, 1]),
    (lambda a, b: H(2)(a) + (1 < b) * (b < 1.01), 2, [0, 1, 1, 1]),
]


def test_a_part_that_is_thinner_than_the_nodes_are_dense_is_seen():
    """A box between the nodes of three Gauss-Hermite rules, which all find nothing there."""
    f = lambda a, b: (1 < a) * (a < 1.2) * (1 < b) * (b < 1.2) + H(2)(b)  # noqa: E731
    assert dimensions(f, 2) == [0, 1, 2, 2]


def rotated(f, r, number=3):
    Q = np.linalg.qr(np.random.default_rng(number).standard_normal((r, r)))[0]
    return lambda *x: f(*(Q.T @ np.array(x)))


def dimensions(f, r, **options):
    spaces = hermite.staircase(f, r, 3, **options)
    for small, large in pairwise(spaces):
        assert np.allclose(large.T @ large, np.eye(large.shape[1]))
        assert np.allclose(large @ large.T @ small, small, atol=1e-5)
    return [U.shape[1] for U in spaces]


@pytest.mark.parametrize(("f", "r", "dims"), STAIRS + ROUGH)
def test_staircase_dimensions(f, r, dims):
    assert dimensions(f, r) == dims


SLOWLY = [pytest.param(*case, marks=pytest.mark.nightly) for case in ROUGH[1:]]


@pytest.mark.parametrize(("f", "r", "dims"), [*STAIRS, ROUGH[0], *SLOWLY])
def test_rotating_a_target_keeps_its_dimensions(f, r, dims):
    assert dimensions(rotated(f, r), r) == dims


@pytest.mark.nightly  # the finest quadratures take seconds
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("f", "r", "dims"), UNDECIDED)
def test_the_staircase_is_right_or_undecided(f, r, dims, turned):
    try:
        assert dimensions(rotated(f, r) if turned else f, r) == dims
    except ValueError as error:
        assert "undecided" in str(error)  # noqa: PT017


@pytest.mark.parametrize("k", [0, 2, 3])
def test_a_larger_tolerance_decides_what_kinks_and_jumps_leave_open(k):
    f, r, dims = UNDECIDED[k] if k < 3 else ROUGH[1]
    assert dimensions(f, r, tolerance=0.01) == dims


def test_what_is_undecided_is_said_with_its_numbers():
    with pytest.raises(ValueError, match=r"f: step 2 is undecided: quadratures disagree by \S+ of"):
        hermite.staircase(UNDECIDED[0][0], 2, 3)
    with pytest.raises(ValueError, match=r"the tolerance is 1e-05"):
        hermite.staircase(UNDECIDED[0][0], 2, 3, tolerance=1e-5)
    with pytest.raises(ValueError, match="f: step 1 is undecided"):  # H_3 by two nodes is -2 H_1
        hermite.staircase(H(3), 1, 1, hermite.gauss_hermite(2))


@pytest.mark.parametrize(
    "f",
    [
        lambda a, b: np.exp(a * a / 3) + b,
        lambda a, b: a * np.exp(a * a / 3) + b,
        lambda a, b: np.exp(b * b / 2) + a,
        lambda a, b: np.exp(a * b) + a,
    ],
)
@pytest.mark.parametrize("turned", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_a_target_without_second_moment_is_refused(f, turned):
    with pytest.raises(ValueError, match=r"f: step 1 is undecided: quadratures find E\[f\^2\] = "):
        hermite.staircase(rotated(f, 2) if turned else f, 2, 2)


@pytest.mark.parametrize("f", [lambda a, b: np.log(a) + b, lambda a, b: a * np.nan, np.divide])
def test_a_target_that_is_not_finite_is_refused_without_a_warning(f):
    with pytest.raises(ValueError, match=re.escape("f(x) = nan: f(x) must be finite")):
        hermite.staircase(f if f is not np.divide else lambda a, b: 0 * a / (b - b), 2, 2)


def test_a_given_rule_is_compared_with_three_others():
    f, r, dims = STAIRS[4]
    assert dimensions(f, r, rule=hermite.gauss_hermite(9)) == dims
    nodes = []

    def seen(a, b):
        nodes.append(len(a))
        return a + a * b

    hermite.staircase(seen, 2, 1, hermite.gauss_hermite(7))
    assert nodes == [7**2, 26**2, 24**2, 546**2]


def test_no_evaluation_without_a_step():
    spaces = hermite.staircase(lambda *_: np.nan, 2, 0)
    assert [U.shape for U in spaces] == [(2, 0)]


def test_staircase_turns_with_the_target():
    """Rotating the directions rotates the subspaces."""
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    f = STAIRS[4][0]
    turned = hermite.staircase(lambda *x: f(*(Q.T @ np.array(x))), 3, 3)
    for U, V in zip(hermite.staircase(f, 3, 3), turned, strict=True):
        assert np.allclose(Q @ U @ U.T @ Q.T, V @ V.T, atol=1e-8)


def test_first_stair_of_a_target_that_is_no_polynomial():
    """f = sin(a) + cos(a) b has U_1 along (E cos, E cos): Stein on both."""
    U = hermite.staircase(lambda a, b: np.sin(a) + np.cos(a) * b, 2, 1)[1]
    assert np.allclose(np.abs(U[:, 0]), 0.5**0.5, atol=1e-8)


def test_conditional_is_the_mean_gradient():
    """f = x1 x2 + H_2(x2) x3 given x1: the gradient off x1 is (x1 + 2 x2 x3, H_2(x2)), mean x1."""
    rule = hermite.gauss_hermite(9)
    mu = hermite.conditional(lambda x, y, z: x * y + H(2)(y) * z, np.eye(3)[:, :1], rule)
    expected = np.zeros((9, 3))
    expected[:, 1] = rule.node * rule.weight**0.5
    assert np.allclose(mu, expected)
    nothing = hermite.conditional(lambda x, y, z: 3 * x - y, np.zeros((3, 0)), rule)
    assert np.allclose(nothing, [[3, -1, 0]])


@pytest.mark.parametrize(("slope", "found"), [(1e-4, 1), (1e-8, 0)])
def test_a_stair_is_told_from_rounding_relative_to_the_target(slope, found):
    for size in (1e-3, 1.0, 1e3):
        spaces = hermite.staircase(lambda a, b: size * (slope * a + H(2)(b)), 2, 1)  # noqa: B023
        assert spaces[1].shape == (2, found)


def test_energy_above_is_conditional_variance_and_parseval():
    f, none, first = STAIRS[0][0], np.zeros((2, 0)), np.eye(2)[:, :1]
    assert [hermite.energy_above(f, none, k) for k in (0, 1, 2)] == pytest.approx(
        [6, 4, 0], abs=1e-8
    )
    assert hermite.energy_above(f, first, 0) == pytest.approx(3)
    assert hermite.energy_above(f, np.eye(2), 0) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("turned", [False, True])
def test_energy_above_sums_the_squared_coefficients(turned):
    """sum mu_alpha^2 / alpha! over the degrees above: every degree up to four has a part."""
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))[0] if turned else np.eye(3)
    parts = {  # degree off the first direction: (value, squared norm)
        0: (lambda a, b, c: 1.5 * H(2)(a), 4.5),
        1: (lambda a, b, c: 2 * b - a * c, 4 + 1),
        2: (lambda a, b, c: H(2)(b) + 3 * b * c - a * H(2)(c), 2 + 9 + 2),
        3: (lambda a, b, c: H(3)(c) + H(2)(b) * c, 6 + 2),
        4: (lambda a, b, c: 0.5 * H(2)(b) * H(2)(c) + 0.1 * H(4)(b), 1 + 0.24),
    }

    def f(*x):
        return sum(part(*(Q.T @ np.array(x))) for part, _ in parts.values())

    for k in range(5):
        above = sum(square for degree, (_, square) in parts.items() if degree > k)
        found = hermite.energy_above(f, Q[:, :1], k, EIGHT)
        assert found == pytest.approx(above, abs=1e-9)
    plain = [
        9 / 2 + 4 + 1 + 2 + 9 + 2 + 6 + 2 + 1 + 0.24 - low for low in (0, 4, 4 + 4.5 + 1 + 2 + 9)
    ]
    whole = [
        hermite.energy_above(f, np.zeros((3, 0)), k, hermite.gauss_hermite(8)) for k in range(3)
    ]
    assert whole == pytest.approx(plain)


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 7])
def test_what_is_left_of_a_target_that_is_no_polynomial(degree):
    """exp(t z - t^2 / 2) = sum t^j H_j / j!: what is left is a tail of exp(t^2)."""
    t = 1.3
    tail = sum(t ** (2 * j) / factorial(j) for j in range(degree + 1, 40))
    f = lambda z, _: np.exp(t * z - t * t / 2)  # noqa: E731
    found = hermite.energy_above(f, np.eye(2)[:, 1:], degree, hermite.gauss_hermite(40))
    assert found == pytest.approx(tail, rel=1e-9)


@pytest.mark.parametrize("size", [1e-6, 0.5, 2.0, 1e6])
def test_a_coefficient_is_zero_relative_to_the_largest_link(size):
    """Below 1e-9 of it; a small family of links is measured against one."""
    scale = max(size, 1.0)
    links = [lambda z: size * H(2)(z) / 2**0.5, lambda z: 1.5e-9 * scale * z]
    assert hermite.relevant(links, 1).tolist() == [False, True]
    links[1] = lambda z: 0.7e-9 * scale * z
    assert hermite.relevant(links, 1).tolist() == [False, False]


def test_rules_integrate():
    """Moments 1, 0, 1, 0, 3 of the Gaussian; with kinks, of |z - k| in closed form."""
    for rule in (hermite.gauss_hermite(3), hermite.with_kinks([-1, 2]), hermite.with_kinks([])):
        assert [rule.weight @ rule.node**k for k in range(5)] == pytest.approx([1, 0, 1, 0, 3])
    for count in (1, 7, hermite.NODES):
        rule = hermite.gauss_hermite(count)
        assert rule.node.shape == rule.weight.shape == (count,)
        assert rule.weight.sum() == pytest.approx(1)
    narrow = hermite.with_kinks([0.5], count=20, reach=6)
    assert len(narrow.node) == 40
    assert 5.9 < np.abs(narrow.node).max() < 6
    expected = 2 * np.exp(-1 / 8) * PHI0 + 0.5 * erf(0.5 / 2**0.5)
    assert narrow.weight @ np.abs(narrow.node - 0.5) == pytest.approx(expected, abs=1e-7)
    assert len(hermite.with_kinks([0.0]).node) == 160


def test_a_tensor_rule_multiplies_weights():
    rule = hermite.grid(hermite.gauss_hermite(3), 2)
    assert rule.node.shape == (9, 2)
    assert rule.weight.sum() == pytest.approx(1)
    assert rule.weight @ (rule.node[:, 0] ** 2 * rule.node[:, 1] ** 4) == pytest.approx(3)


ONE = np.eye(2)[:, :1]
EIGHT, FIVE = hermite.gauss_hermite(8), hermite.gauss_hermite(5)
FULL = "a whole number from 0 to 20"


def first(*x):
    return x[0]


REFUSED = [
    (lambda: hermite.gauss_hermite(1000), "count = 1000: count must be a whole number from 1 to 3"),
    (lambda: hermite.gauss_hermite(351), "count = 351: count must be a whole number from 1 to 350"),
    (lambda: hermite.gauss_hermite(0), "count = 0: count must be a whole number from 1 to 350"),
    (lambda: hermite.coefficients(np.sin, 150), f"degree = 150: degree must be {FULL}"),
    (lambda: hermite.coefficients(np.sin, 21), f"degree = 21: degree must be {FULL}"),
    (lambda: hermite.coefficients(np.sin, 5, FIVE), "degree must be a whole number from 0 to 4"),
    (lambda: hermite.coefficients(np.sin, -1), "degree = -1: degree must be"),
    (lambda: hermite.coefficients(lambda z: z * np.nan, 1), "f(z) = nan: f(z) must be finite"),
    (lambda: hermite.polynomials(0.0, -1), "degree = -1: degree must be a whole number >= 0"),
    (lambda: hermite.with_kinks([99]), "kinks = [99.0]: kinks must lie within reach = 12 of 0"),
    (lambda: hermite.with_kinks([0, -3], reach=3), "kinks = [-3.0, 0.0]: kinks must lie within"),
    (lambda: hermite.with_kinks([np.nan]), "kinks = nan: kinks must be finite"),
    (lambda: hermite.with_kinks([], reach=0), "reach = 0.0: reach must be finite and > 0"),
    (lambda: hermite.with_kinks([], count=0), "count = 0: count must be a whole number >= 1"),
    (lambda: hermite.multi(first, 8, 1), "r = 8: 24^8 points of quadrature, at most 1e+07 fit"),
    (lambda: hermite.multi(first, 0, 1), "r = 0: r must be a whole number >= 1"),
    (lambda: hermite.multi(first, 2, 24), f"degree = 24: degree must be {FULL}"),
    (lambda: hermite.multi(lambda x: np.inf + x, 1, 1), "f(x) = inf: f(x) must be finite"),
    (lambda: hermite.energy_above(first, ONE, 8, EIGHT), "degree must be a whole number from 0"),
    (lambda: hermite.energy_above(first, 2 * ONE, 0), "U: columns must be orthonormal, these are"),
    (lambda: hermite.conditional(first, np.ones((2, 2))), "U: columns must be orthonormal"),
    (lambda: hermite.conditional(first, np.ones(2)), "U has shape (2,): U must have shape (any, a"),
    (lambda: hermite.staircase(first, 2, -1), "steps = -1: steps must be a whole number >= 0"),
    (lambda: hermite.staircase(first, 0, 1), "r = 0: r must be a whole number >= 1"),
    (lambda: hermite.staircase(first, 2, 1, tolerance=0), "tolerance = 0.0: tolerance must be fin"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_errors_name_the_parameter_and_the_limit(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_as_many_points_as_allowed_are_laid_out(monkeypatch):
    monkeypatch.setattr(hermite, "POINTS", 25)
    assert len(hermite.grid(FIVE, 2).weight) == 25
    with pytest.raises(ValueError, match=re.escape("r = 3: 5^3 points of quadrature")):
        hermite.grid(FIVE, 3)


def test_rounding_at_the_highest_degree_is_what_the_limit_says():
    """mu_j of sin is 0 or exp(-1/2) up to sign; the error stays below 1e-6."""
    c = hermite.coefficients(np.sin, hermite.DEGREE)
    expected = [(0, 1, 0, -1)[j % 4] * np.exp(-0.5) for j in range(hermite.DEGREE + 1)]
    assert np.allclose(c, expected, atol=1e-6)
