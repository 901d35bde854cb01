"""A parameter is accepted as it is, or refused with its name, its value and what is allowed."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fltutils import check

numbers = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(st.lists(st.floats(min_value=1e-300, allow_infinity=False), min_size=1))
def test_positive_numbers_pass(values: list[float]) -> None:
    out = check.positive("eta", values)
    assert out.dtype == np.float64
    assert out.tolist() == values


@given(numbers, numbers)
def test_at_least_splits_the_line(x: float, low: float) -> None:
    if x >= low:
        assert float(check.at_least("x", x, low)) == x
    else:
        with pytest.raises(ValueError, match=r"x = .*: x must be finite and >= "):
            check.at_least("x", x, low)


@given(st.integers(-(10**6), 10**6), st.integers(-5, 5))
def test_count_takes_whole_numbers(value: int, low: int) -> None:
    if value >= low:
        assert check.count("n", value, low) == value
        assert check.count("n", np.int64(value), low) == value
    else:
        with pytest.raises(ValueError, match=rf"n = {value}: n must be a whole number >= {low}"):
            check.count("n", value, low)


@given(st.floats(-2, 2))
def test_rate_is_a_half_open_interval(p: float) -> None:
    if 0 <= p < 0.5:
        assert float(check.rate("flip", p, below=0.5)) == p
    else:
        with pytest.raises(ValueError, match=r"flip = .*: flip must be in \[0, 0.5\)$"):
            check.rate("flip", p, below=0.5)


@pytest.mark.parametrize("value", [10, 1e6, np.int32(7), np.array([3.0, 1e15])])
def test_whole_numbers_may_be_written_as_floats(value: Any) -> None:
    out = check.whole("d", value, 2)
    assert out.dtype == np.int64
    assert (out == value).all()


Refusal = tuple[Callable[..., object], tuple[Any, ...], str]
REFUSED: list[Refusal] = [
    (check.positive, ("eta", 0.0), "eta = 0.0: eta must be finite and > 0"),
    (check.positive, ("eta", -1), "eta = -1.0: eta must be finite and > 0"),
    (check.positive, ("eta", np.nan), "eta = nan: eta must be finite and > 0"),
    (check.positive, ("eta", [1.0, np.inf]), "eta = inf: eta must be finite and > 0"),
    (check.positive, ("eta", "fast"), "eta = 'fast': eta must be finite and > 0"),
    (check.positive, ("eta", []), "eta = []: eta must be finite and > 0"),
    (check.positive, ("eta", [[1.0], [1.0, 2.0]]), "eta = [[1.0], [1.0, 2.0]]: eta must be"),
    (check.at_least, ("mu", None, 0.0), "mu = nan: mu must be finite and >= 0"),
    (check.count, ("n", 0), "n = 0: n must be a whole number >= 1"),
    (check.count, ("n", 2.0), "n = 2.0: n must be a whole number >= 1"),
    (check.count, ("n", True), "n = True: n must be a whole number >= 1"),
    (check.count, ("n", np.True_), "n = np.True_: n must be a whole number >= 1"),
    (check.count, ("n", "3"), "n = '3': n must be a whole number >= 1"),
    (check.count, ("n", None), "n = None: n must be a whole number >= 1"),
    (check.rate, ("flip", 0.5, 0.5), "flip = 0.5: flip must be in [0, 0.5)"),
    (check.rate, ("flip", [0.1, -0.1], 0.5), "flip = -0.1: flip must be in [0, 0.5)"),
    (check.rate, ("flip", np.nan, 0.5), "flip = nan: flip must be in [0, 0.5)"),
    (check.rate, ("flip", "few", 0.5), "flip = 'few': flip must be in [0, 0.5)"),
    (check.whole, ("d", 2.5, 2), "d = 2.5: d must be a whole number from 2 to 2^53"),
    (check.whole, ("d", 1e30, 2), "d = 1e+30: d must be a whole number from 2 to 2^53"),
    (check.whole, ("d", [5, 1], 2), "d = 1.0: d must be finite and >= 2"),
    (check.count, ("n", 9, 0, 8), "n = 9: n must be a whole number from 0 to 8"),
    (check.count, ("n", -1, 0, 8), "n = -1: n must be a whole number from 0 to 8"),
    (check.finite, ("xi", np.array([0.0, np.nan])), "xi = nan: xi must be finite"),
    (check.finite, ("xi", [1.0, -np.inf]), "xi = -inf: xi must be finite"),
    (check.finite, ("xi", "many"), "xi = 'many': xi must be finite"),
    (check.orthonormal, ("U", np.ones((2, 1)), 2), "U: columns must be orthonormal, these are off"),
    (check.orthonormal, ("U", np.eye(3)[:, [0, 0]], 3), "U: columns must be orthonormal"),
    (check.orthonormal, ("U", 0.5 * np.eye(3), 3), "U: columns must be orthonormal, these are off"),
    (check.orthonormal, ("U", np.eye(3) * (1 + 6e-9), 3), "these are off by 1.2e-08"),
    (check.orthonormal, ("U", np.eye(3), 2), "U has shape (3, 3): U must have shape (2, any)"),
    (check.number, ("eta", [1, 2]), "eta = [1, 2]: eta must be one number"),
    (check.number, ("eta", [3.0]), "eta = [3.0]: eta must be one number"),
    (check.number, ("eta", np.nan), "eta = nan: eta must be finite"),
    (check.orthonormal, ("U", np.eye(2) * np.nan, 2), "U = nan: U must be finite"),
    (check.whole, ("d", 2**53 + 2, 2), "d = 9007199254740994.0: d must be a whole number from 2"),
    (check.labels, ("y", np.array([1.0, 0.0])), "y = 0.0: y must be +1 or -1"),
    (
        check.one_of,
        ("rule", "newton", {"gd", "adam"}),
        "rule = 'newton': rule must be one of 'adam', 'gd'",
    ),
    (
        check.one_of,
        ("mutant", "x", ("", "frozen")),
        "mutant = 'x': mutant must be one of '', 'frozen'",
    ),
    (check.shape, ("y", np.zeros((2, 3)), (2, 4)), "y has shape (2, 3): y must have shape (2, 4)"),
    (check.shape, ("y", np.zeros(2), (2, None)), "y has shape (2,): y must have shape (2, any)"),
    (check.shape, ("y", np.zeros(2), (3,)), "y has shape (2,): y must have shape (3,)"),
]


@pytest.mark.parametrize(("function", "arguments", "message"), REFUSED)
def test_refusals_name_parameter_value_and_what_is_allowed(
    function: Callable[..., object], arguments: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        function(*arguments)


def test_one_of_and_shape_pass() -> None:
    assert check.one_of("mutant", "", ("", "frozen")) == ""
    assert check.count("n", 8, 0, 8) == 8
    assert check.whole("d", 2**53, 2) == 2**53
    assert check.orthonormal("U", [[1], [0]], None).dtype == np.float64
    assert check.orthonormal("U", np.zeros((3, 0)), 3).shape == (3, 0)
    assert check.orthonormal("U", np.eye(3) * (1 + 4e-9), 3).shape == (3, 3)
    assert check.finite("xi", [1, 2]).dtype == np.float64
    assert check.number("eta", np.float32(0.5)) == 0.5
    check.shape("W0", np.zeros((3, 2, 5)), (3, 2, None))
