"""The data models: shapes, laws, streams, and what they refuse."""

import re
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fltutils import signal_noise, span, train

SIZES: dict[str, Any] = {"n": 5, "d": 50, "mu": 2.0, "m": 2, "sigma0": 0.1}


@given(st.integers(1, 7), st.integers(2, 60), st.integers(1, 4), st.integers(1, 3), st.booleans())
def test_shapes(n: int, d: int, m: int, runs: int, projected: bool) -> None:
    s = signal_noise.draw(
        n=n, d=d, mu=2.0, m=m, sigma0=0.1, flip=0.2, runs=runs, projected=projected
    )
    r = span.dimension(n, d, 2 * m)
    assert s.mu.shape == (runs, r)
    assert s.xi.shape == (runs, n, r)
    assert s.y.shape == s.y_obs.shape == (runs, n)
    assert s.W0.shape == (runs, 2, m, r)
    assert s.X.shape == (runs, 1 + n, r)
    assert all(v.dtype == torch.float64 for v in (s.mu, s.xi, s.y, s.y_obs, s.W0, s.sigma))
    assert s.embedded == (r < d)
    assert ((s.xi @ s.mu[:, :, None]) == 0).all() == projected
    assert (s.y.abs() == 1).all()
    assert (s.y_obs.abs() == 1).all()


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=4, unique=True), st.integers(0, 99))
def test_a_run_does_not_know_its_batch(runs: list[int], seed: int) -> None:
    together = signal_noise.draw(**SIZES, flip=0.3, runs=runs, seed=seed)
    for i, run in enumerate(runs):
        alone = signal_noise.draw(**SIZES, flip=0.3, runs=[run], seed=seed)
        for a, b in zip(alone, train.pick(together, torch.tensor([i])), strict=True):
            assert torch.equal(a, b) if torch.is_tensor(a) else a == b


def test_a_number_of_runs_is_their_identities_from_zero() -> None:
    assert signal_noise.draw(**SIZES, runs=3).run.tolist() == [0, 1, 2]


def test_every_run_may_have_its_own_numbers() -> None:
    s = signal_noise.draw(
        n=5, m=2, runs=[7, 7, 7], d=[100, 100, 10**9], mu=[1.0, 2.0, 1.0],
        sigma=[1.0, 3.0, 1.0], sigma0=[0.1, 0.2, 0.1],
    )  # fmt: skip
    assert s.mu[:, 0].tolist() == [1.0, 2.0, 1.0]
    assert s.sigma.tolist() == [1.0, 3.0, 1.0]
    torch.testing.assert_close(s.xi[1], 3 * s.xi[0], rtol=1e-12, atol=0)
    torch.testing.assert_close(s.W0[1], 2 * s.W0[0], rtol=1e-12, atol=0)
    length = s.xi[2].square().sum(-1)
    assert ((length / 1e9 - 1).abs() < 1e-3).all()  # ||xi||^2 = d (1 + O(d^-1/2))


def test_labels_are_balanced_and_flipped_at_their_rate() -> None:
    """Five standard errors over 40 000 labels."""
    rates = np.repeat([0.0, 0.1, 0.49], 400)
    s = signal_noise.draw(**{**SIZES, "n": 100}, flip=rates, runs=1200)
    share = (s.y != s.y_obs).double().view(3, -1).mean(1)
    assert share[0] == 0
    for found, p in zip(share[1:], (0.1, 0.49), strict=True):
        assert abs(found - p) < 5 * (p * (1 - p) / 40_000) ** 0.5
    assert abs(s.y.mean()) < 5 / 120_000**0.5


def test_runs_that_fall_back_to_small_d_need_one_d() -> None:
    with pytest.raises(ValueError, match=r"d = \[6, 50\]: runs with d < 1 \+ n \+ 2m need one d"):
        signal_noise.draw(**{**SIZES, "d": [6, 50]}, runs=2)


def test_initial_weights_have_their_size_in_r_d() -> None:
    """E ||w||^2 = sigma0^2 d, in few coordinates and in all; five standard errors."""
    for d in (12, 1000):
        s = signal_noise.draw(n=3, d=d, mu=1.0, m=4, sigma0=0.3, runs=500)
        assert s.embedded == (d > 12)
        size = s.W0.square().sum(-1) / (0.09 * d)
        assert abs(size.mean() - 1) < 5 * (2 / d / size.numel()) ** 0.5


def test_a_batch_is_embedded_if_one_run_is() -> None:
    s = signal_noise.draw(n=3, d=[8, 100], mu=1.0, m=2, sigma0=0.1, runs=2)
    assert s.embedded


BAD: list[tuple[str, Any, str]] = [
    ("n", 0, "n = 0: n must be a whole number >= 1"),
    ("n", 5.0, "n = 5.0: n must be a whole number >= 1"),
    ("n", True, "n = True: n must be a whole number >= 1"),
    ("m", -1, "m = -1: m must be a whole number >= 1"),
    ("m", 2.5, "m = 2.5: m must be a whole number >= 1"),
    ("d", 1, "d = 1.0: d must be finite and >= 2"),
    ("d", -100, "d = -100.0: d must be finite and >= 2"),
    ("d", 2.5, "d = 2.5: d must be a whole number"),
    ("d", np.nan, "d = nan: d must be finite and >= 2"),
    ("d", np.inf, "d = inf: d must be finite and >= 2"),
    ("d", 1e30, "d = 1e+30: d must be a whole number from 2 to 2^53"),
    ("mu", -1.0, "mu = -1.0: mu must be finite and >= 0"),
    ("mu", np.nan, "mu = nan: mu must be finite and >= 0"),
    ("mu", [1.0, 2.0, 3.0], "mu has shape (3,): mu must have shape (2,)"),
    ("mu", "strong", "mu = 'strong': mu must be finite and >= 0"),
    ("sigma", 0.0, "sigma = 0.0: sigma must be finite and > 0"),
    ("sigma", [1.0, np.inf], "sigma = inf: sigma must be finite and > 0"),
    ("sigma0", -0.1, "sigma0 = -0.1: sigma0 must be finite and >= 0"),
    ("flip", 0.5, "flip = 0.5: flip must be in [0, 0.5)"),
    ("flip", -0.1, "flip = -0.1: flip must be in [0, 0.5)"),
    ("flip", np.nan, "flip = nan: flip must be in [0, 0.5)"),
    ("flip", [[0.1, 0.1]], "flip has shape (1, 2): flip must have shape (2,)"),
    ("runs", 0, "runs = 0: runs must be a whole number >= 1"),
    ("runs", 2.0, "runs = 2.0: runs must be a whole number >= 1"),
    ("runs", [0, -1], "runs = -1.0: runs must be finite and >= 0"),
    ("runs", [0.5, 1.0], "runs = 0.5: runs must be a whole number"),
    ("runs", [], "runs = []: runs must be finite and >= 0"),
    ("runs", [[0, 1]], "runs has shape (1, 2): runs must have shape (any,)"),
    ("runs", [4, 4], "runs: 4 is given twice with the same numbers: one run, not two"),
    ("projected", "no", "projected = 'no': projected must be True or False"),
    ("seed", -1, "seed = -1: seed must be a whole number >= 0"),
    ("seed", 0.5, "seed = 0.5: seed must be a whole number >= 0"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "message"), BAD)
def test_signal_noise_refuses(name: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        signal_noise.draw(**{"runs": 2, **SIZES, name: value})


def arrays(R: int = 2, n: int = 3, m: int = 2, r: int = 9) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "mu": rng.standard_normal((R, r)),
        "xi": rng.standard_normal((R, n, r)),
        "y": rng.choice([-1.0, 1.0], (R, n)),
        "W0": rng.standard_normal((R, 2, m, r)),
    }


def test_given_takes_arrays_as_they_are_and_copies_them() -> None:
    a = arrays()
    s = signal_noise.given(**a, sigma=2.0, projected=False, seed=4)
    for name, array in a.items():
        found = getattr(s, name)
        assert torch.equal(found, torch.from_numpy(array))
        array[:] = 0
        assert (found != 0).any()
    assert torch.equal(s.y, s.y_obs)
    assert s.sigma.tolist() == [2.0, 2.0]
    assert (s.seed, s.projected, s.embedded) == (4, False, False)
    assert s.run.tolist() == [0, 1]


WRONG: list[tuple[str, Any, str]] = [
    ("xi", np.zeros((2, 9)), "xi has shape (2, 9): xi must have shape (any, any, any)"),
    ("mu", np.zeros((2, 8)), "mu has shape (2, 8): mu must have shape (2, 9)"),
    ("y", np.ones((2, 4)), "y has shape (2, 4): y must have shape (2, 3)"),
    ("W0", np.zeros((2, 3, 2, 9)), "W0 has shape (2, 3, 2, 9): W0 must have shape (2, 2, any, 9)"),
    ("y_obs", np.ones((1, 3)), "y_obs has shape (1, 3): y_obs must have shape (2, 3)"),
    ("xi", np.full((2, 3, 9), np.nan), "xi = nan: xi must be finite"),
    ("mu", np.full((2, 9), np.inf), "mu = inf: mu must be finite"),
    ("W0", np.full((2, 2, 2, 9), -np.inf), "W0 = -inf: W0 must be finite"),
    ("y", np.zeros((2, 3)), "y = 0.0: y must be +1 or -1"),
    ("y_obs", np.full((2, 3), np.nan), "y_obs = nan: y_obs must be +1 or -1"),
    ("sigma", 0.0, "sigma = 0.0: sigma must be finite and > 0"),
    ("seed", -3, "seed = -3: seed must be a whole number >= 0"),
]


@pytest.mark.parametrize(("name", "value", "message"), WRONG)
def test_given_refuses(name: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        signal_noise.given(**{**arrays(), name: value})


def test_select_keeps_the_order_of_the_index() -> None:
    s = signal_noise.draw(**SIZES, runs=4)
    t = train.pick(s, torch.tensor([2, 0]))
    assert t.run.tolist() == [2, 0]
    assert torch.equal(t.xi, s.xi[[2, 0]])
    assert (t.seed, t.projected, t.embedded) == (s.seed, s.projected, s.embedded)
