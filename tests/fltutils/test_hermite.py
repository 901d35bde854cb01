"""Hermite expansions: closed forms, the leap index, the staircase."""

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
]


@pytest.mark.parametrize(("f", "r", "dims"), STAIRS)
def test_staircase_dimensions(f, r, dims):
    spaces = hermite.staircase(f, r, 3)
    assert [U.shape[1] for U in spaces] == dims
    for U in spaces:
        assert np.allclose(U.T @ U, np.eye(U.shape[1]))


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


def test_energy_above_is_conditional_variance_and_parseval():
    f, none, first = STAIRS[0][0], np.zeros((2, 0)), np.eye(2)[:, :1]
    assert [hermite.energy_above(f, none, k) for k in (0, 1, 2)] == pytest.approx(
        [6, 4, 0], abs=1e-8
    )
    assert hermite.energy_above(f, first, 0) == pytest.approx(3)
    assert hermite.energy_above(f, np.eye(2), 0) == pytest.approx(0, abs=1e-9)
