"""Rare errors against counting where they can be counted, and against a formula where not."""

import math

import pytest
import torch

from fltutils import measure, rare, signal_noise, train
from fltutils.train import State


def trained(d: int, mu: float, T: float = 60.0, dT: float = 2.0, sigma: float = 1.0) -> State:
    data = signal_noise.draw(
        n=20, d=d, mu=mu, m=5, sigma0=1e-3, flip=0.2, runs=4, seed=3, sigma=sigma
    )
    problem = signal_noise.problem(data)
    return train.train(problem, eta=dT * 100 / (sigma**2 * d), steps=round(T / dT)).last


@pytest.mark.parametrize("reused", [False, True])
@pytest.mark.parametrize("sigma", [1.0, 0.5])
def test_log_errors_are_those_that_counting_finds(reused: bool, sigma: float) -> None:
    s = trained(60, 4.0 * sigma, sigma=sigma)
    counted = measure.test_error(s, q=1, samples=40_000, reused=reused)
    found = rare.log_error(s, q=1, samples=20_000, reused=reused, near=20).exp()
    assert (counted > 0.001).all()
    torch.testing.assert_close(found, counted, rtol=0.12, atol=0.002)


def test_patches_left_out_are_the_harmless_ones() -> None:
    s = trained(4000, 40.0, T=0.5, dT=0.05)
    all_of_them = rare.log_error(s, q=1, reused=True, near=20)
    torch.testing.assert_close(rare.log_error(s, q=1, reused=True), all_of_them, rtol=0.01, atol=0)
    assert (all_of_them < -8).all()


def alone(d: float) -> State:
    """One neuron a class, each with weights (u, w): signal u, and noise of variance w^2 = 1/d."""
    W = torch.tensor([[[[1.0, d**-0.5, 0.0]], [[-1.0, 0.0, d**-0.5]]]], dtype=torch.float64)
    mu, xi = torch.tensor([[1.0, 0.0, 0.0]]).double(), torch.tensor([[[0.0, 1.0, 0.0]]]).double()
    data = signal_noise.given(mu, xi, torch.ones(1, 1), W)
    return State((W,), torch.zeros(1, 1).double(), data)


@pytest.mark.parametrize("q", [1, 2])
def test_errors_beyond_counting_have_the_gaussian_tail(q: int) -> None:
    """The class that should be silent must pass the signal 1 alone: -log P ~ d / 2."""
    d = 1e6
    assert float(rare.log_error(alone(d), q=q)) == pytest.approx(-d / 2, rel=1e-3)


def test_a_patch_that_errs_without_fresh_noise_needs_no_tilt() -> None:
    """Class +1 answers 2 + 2 z to patch and fresh noise z, the signal is 1: at y = -1 z > -1/2."""
    s = alone(1e8)
    W = s.params[0].clone()
    W[0, 0, 0, 1] = 2.0
    found = rare.log_error(s._replace(params=(W,)), q=1, reused=True, samples=4000)
    above = float(torch.special.ndtr(torch.tensor(0.5)))
    assert float(found) == pytest.approx(math.log(above / 2), abs=0.05)


@pytest.mark.parametrize("name", ["samples", "near"])
def test_sizes_are_whole_numbers(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} = 0: {name} must be a whole number >= 1"):
        rare.log_error(alone(100.0), q=1, **{name: 0})
