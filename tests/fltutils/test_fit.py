"""Lines and crossings whose answer is known."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from fltutils import fit

x = np.linspace(1.0, 3.0, 9)
size = st.floats(-100, 100)


@given(size, size)
def test_a_line_is_found_exactly(slope: float, offset: float) -> None:
    found = fit.line(x, slope * x + offset)
    assert float(found.slope) == pytest.approx(slope, abs=1e-10)
    assert float(found.offset) == pytest.approx(offset, abs=1e-10)
    if abs(slope) > 1e-3:
        assert float(found.r2) == pytest.approx(1.0)


@given(st.integers(0, 999))
def test_the_fit_is_that_of_numpy(seed: int) -> None:
    y = np.random.default_rng(seed).standard_normal((3, 2, 9))
    found = fit.line(x, y)
    assert found.slope.shape == found.offset.shape == found.r2.shape == (3, 2)
    for i in np.ndindex(3, 2):
        slope, offset = np.polyfit(x, y[i], 1)
        assert found.slope[i] == pytest.approx(slope)
        assert found.offset[i] == pytest.approx(offset)
        assert found.r2[i] == pytest.approx(np.corrcoef(x, y[i])[0, 1] ** 2)
        assert found.r2[i] == pytest.approx(fit.r2_about(y[i], slope * x + offset))


def test_entries_that_are_not_finite_are_left_out() -> None:
    y = 2 * x + 1
    y[[0, 4]] = np.nan, np.inf
    assert float(fit.line(x, y).slope) == pytest.approx(2)
    assert float(fit.line(x, y).r2) == pytest.approx(1)
    xs = x.copy()
    xs[[1, 5]] = np.nan, np.inf
    clean = y.copy()
    clean[[0, 4]] = 2 * x[[0, 4]] + 1
    assert float(fit.line(xs, y).slope) == pytest.approx(2)
    assert float(fit.line(xs, clean).offset) == pytest.approx(1)
    assert np.isnan(fit.line(x, np.full(9, np.nan)).slope)


@given(st.floats(1.1, 999.0), st.floats(-0.9, 0.9))
def test_a_crossing_is_found_on_a_log_axis(at: float, level: float) -> None:
    """y = level + log(at / x), falling: it passes the level at x = at."""
    xs = np.geomspace(1.0, 1000.0, 7)
    assert float(fit.crossing(xs, level + np.log(at / xs), level)) == pytest.approx(at)


def test_the_first_fall_counts_and_none_is_nan() -> None:
    ys = [[1, 0, 1, 0], [0, 1, 1, 0], [1, 1, 1, 1], [0, 0, 0, 0], [0, 1, 1, 1]]
    found = fit.crossing([1, 10, 100, 1000], ys, 0.5)
    np.testing.assert_allclose(found, [10**0.5, 10**2.5, np.nan, np.nan, np.nan])
    falling = [[0.9, 0.3, 0.1], [0.8, 0.7, 0.2]]  # shares 2/3 of the first step, 2/5 of the second
    np.testing.assert_allclose(fit.crossing([1, 10, 100], falling, 0.5), [10 ** (2 / 3), 10**1.4])
    assert float(fit.crossing([1, 10, 100], [1, 0.5, 0], 0.5)) == pytest.approx(
        10
    )  # it falls onto the level
    assert np.isnan(fit.crossing([1, 10], [0.5, 0], 0.5))  # it does not fall from it


def test_a_prediction_explains_all_or_nothing() -> None:
    y = np.array([0.0, 1.0, 2.0])
    assert fit.r2_about(y, y) == 1.0
    assert fit.r2_about(y, np.full(3, 1.0)) == 0.0
    assert fit.r2_about(y, 2 - y) < 0


def table(values: np.ndarray, **axes: list[float]) -> xr.DataArray:
    """Values over two runs and axes, the runs in the middle: a table's order is its own."""
    found = xr.DataArray(values, dims=("run", *axes), coords={"run": [5, 7], **axes})
    return found.transpose(*list(axes)[:1], "run", *list(axes)[1:])


D = np.array([10.0, 100.0, 1000.0])
K = np.array([1.0, 2.0])
POWERS = np.array([[-0.5, 1.0], [0.25, 0.0]])  # of a run, at a k
falls = table(3 * D[None, :, None] ** POWERS[:, None, :], d=D.tolist(), k=K.tolist())


def test_a_fit_on_a_table_takes_one_axis_away_and_keeps_the_others() -> None:
    for found in (fit.exponent(falls, "d"), fit.exponent(falls.astype("float32"), "d")):
        assert set(found.dims) == {"run", "k"}
        assert found.run.values.tolist() == [5, 7]
        np.testing.assert_allclose(found.transpose("run", "k"), POWERS, atol=1e-6)
    lines = table(POWERS[:, None, :] * D[:, None] + 7, d=D.tolist(), k=K.tolist())
    np.testing.assert_allclose(fit.slope(lines, "d").transpose("run", "k"), POWERS, atol=1e-12)
    assert float(fit.slope(lines.mean("run").sel(k=2.0), "d")) == pytest.approx(0.5)


def test_a_level_is_met_on_a_log_axis() -> None:
    meeting = fit.meets(table(np.log(D / [[50.0], [20.0]]), d=D.tolist()), "d", 0.0)
    np.testing.assert_allclose(meeting, [50.0, 20.0])
    share = np.array([0.4 / 0.6, np.nan])  # the second run begins above the level and never falls
    found = fit.crossing(table(np.array([[0.9, 0.3], [0.6, 0.55]]), d=[10.0, 1000.0]), "d", 0.5)
    assert found.dims == ("run",)
    np.testing.assert_allclose(found, 10 * 100**share)


def test_octaves_count_what_is_at_least_a_level_with_lines_between() -> None:
    rates = 2.0 ** np.arange(-2, 3)
    rows = [[0.0, 1.0, 1.0, 0.5, 0.0], [0.7, 0.7, 0.9, 0.7, 0.8], [0.0, 0.1, 0.2, 0.3, 0.6]]
    table = xr.DataArray(rows, dims=("run", "gamma"), coords={"gamma": rates})
    found = fit.octaves(table, "gamma", 0.7)
    assert found.dims == ("run",)
    assert found.values == pytest.approx([0.3 + 1 + 0.6, 4, 0])
    falls_and_rises = xr.DataArray([1.0, 0.5, 1.0], dims="gamma", coords={"gamma": [1.0, 2, 8]})
    assert float(fit.octaves(falls_and_rises, "gamma", 0.75)) == pytest.approx(0.5 + 1)


@pytest.mark.parametrize("f", [fit.slope, fit.exponent, lambda t, axis: fit.meets(t, axis, 1)])
def test_an_axis_must_be_there_with_its_values(f: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="axis = 'n': the table has values of d, run, k"):
        f(falls, "n")
    with pytest.raises(ValueError, match="axis = 'd': the table has values of run, k"):
        f(falls.drop_vars("d"), "d")


def test_the_farthest_is_told_by_its_mean_and_keeps_its_runs() -> None:
    off = table(np.array([[1.0, 0.0, 3.0], [1.2, 5.0, -3.5]]), which=[0.0, 1.0, 2.0])
    np.testing.assert_allclose(fit.farthest(off), [0.0, 5.0])  # the mean of the third is -0.25
    np.testing.assert_allclose(fit.farthest(off, 2.0), [1.0, -5.5])
    assert fit.farthest(off).dims == ("run",)
    both = table(np.arange(8.0).reshape(2, 2, 2) - 9, a=[0.0, 1.0], b=[0.0, 1.0])
    np.testing.assert_allclose(fit.farthest(both), [-9, -5])
    alone = table(np.array([[1.0], [2.0]]), which=[0.0])[0]
    np.testing.assert_allclose(fit.farthest(alone, 0.5), [0.5, 1.5])


def test_what_a_run_gives_no_number_for_does_not_hide_behind_the_others() -> None:
    off = table(np.array([[9.0, 0.0], [9.0, np.nan]]), which=[0.0, 1.0])
    assert np.isnan(fit.farthest(off)).any()


def test_least_and_most_go_by_their_means_and_miss_no_gap() -> None:
    values = table(np.array([[1.0, 0.0, 3.0], [1.2, 5.0, -3.5]]), which=[0.0, 1.0, 2.0])
    np.testing.assert_allclose(fit.least(values), [3.0, -3.5])
    np.testing.assert_allclose(fit.most(values), [0.0, 5.0])
    gap = table(np.array([[9.0, 0.0], [9.0, np.nan]]), which=[0.0, 1.0])
    assert np.isnan(fit.least(gap)).any() and np.isnan(fit.most(gap)).any()


def test_pairs_in_order_count_ties_as_one_half_and_leave_gaps_out() -> None:
    low = xr.DataArray([[1.0, 2.0, np.nan], [5.0, 5.0, 5.0]], dims=("run", "sample"))
    high = xr.DataArray([[2.0, np.nan, 3.0], [1.0, 1.0, 1.0]], dims=("run", "sample"))
    found = fit.in_order(low, high, "sample")
    assert found.dims == ("run",)
    np.testing.assert_allclose(found, [3.5 / 4, 0.0])
