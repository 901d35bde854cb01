"""Forward functions against sums written out, gradients against autograd and differences."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fltutils import models
from tests.fltutils import plain
from tests.fltutils.batches import batch

shapes: Callable[..., Any] = st.tuples(
    st.integers(1, 7),  # n
    st.integers(1, 5),  # m
    st.integers(2, 12),  # d, also below 1 + n + 2m
    st.integers(0, 10**4),  # seed
)
powers = st.sampled_from([1, 2, 3])


def sizes(shape: tuple[int, int, int, int], runs: int = 2) -> list[plain.Problem]:
    n, m, d, seed = shape
    return [plain.problem(seed + i, n, m, d, sigma0=0.5) for i in range(runs)]


def test_one_neuron_by_hand() -> None:
    z = torch.tensor([-2.0, 0.0, 3.0], dtype=torch.float64)
    assert [models.act(z, q).tolist() for q in (1, 2, 3)] == [[0, 0, 3], [0, 0, 9], [0, 0, 27]]
    assert [models.slope(z, q).tolist() for q in (1, 2, 3)] == [[0, 0, 1], [0, 0, 6], [0, 0, 27]]


@given(shapes, powers)
def test_the_network_is_its_formula(shape: tuple[int, int, int, int], q: int) -> None:
    problems = sizes(shape)
    s = batch(problems)
    f = models.cnn(s.W0, s.y[..., None] * s.mu[:, None], s.xi, q)
    A = s.W0 @ s.X.transpose(1, 2)[:, None]
    torch.testing.assert_close(models.cnn_from_products(A, s.y, q), f, rtol=1e-11, atol=1e-12)
    for i, p in enumerate(problems):
        torch.testing.assert_close(f[i], plain.outputs(p.W0, p, q), rtol=1e-11, atol=1e-12)


def descent(s: Any, q: int) -> torch.Tensor:
    """-grad L_S at W0 in R^d, from `pull` and `downhill`."""
    A = s.W0 @ s.X.transpose(1, 2)[:, None]
    f = models.cnn_from_products(A, s.y, q)
    return models.pull(A, s.y, models.downhill(f, s.y_obs), q) @ s.X[:, None]


@given(shapes, powers)
def test_gradients_are_those_of_autograd(shape: tuple[int, int, int, int], q: int) -> None:
    problems = sizes(shape)
    D = descent(batch(problems), q)
    for i, p in enumerate(problems):
        torch.testing.assert_close(D[i], -plain.gradient(p.W0, p, q), rtol=1e-10, atol=1e-12)


@given(shapes, powers)
def test_gradients_are_limits_of_differences(shape: tuple[int, int, int, int], q: int) -> None:
    """Central differences along a random direction; a ReLU within reach of a kink is left out."""
    (p,) = sizes(shape, runs=1)
    D = descent(batch([p]), q)[0]
    V = torch.from_numpy(np.random.default_rng(shape[-1]).standard_normal(p.W0.shape))
    h = 1e-5
    products = p.W0 @ torch.cat([p.mu[None], p.xi]).T
    reach = V.norm() * torch.cat([p.mu[None], p.xi]).norm(dim=1).max() * h
    if q == 1 and products.abs().min() < reach:
        return
    difference = (plain.loss(p.W0 + h * V, p, q) - plain.loss(p.W0 - h * V, p, q)) / (2 * h)
    slope = float((-D * V).sum())
    assert math.isclose(slope, float(difference), rel_tol=1e-5, abs_tol=1e-7)


@given(shapes, powers, st.integers(0, 99))
def test_pull_is_linear_in_what_pulls(shape: tuple[int, int, int, int], q: int, seed: int) -> None:
    """`pull` alone: the pullback of f by any g, against autograd."""
    s = batch(sizes(shape))
    g = torch.from_numpy(np.random.default_rng(seed).standard_normal(s.y.shape))
    A = (s.W0 @ s.X.transpose(1, 2)[:, None]).requires_grad_()
    (by_autograd,) = torch.autograd.grad((g * models.cnn_from_products(A, s.y, q)).sum(), A)
    C = models.pull(A.detach(), s.y, g, q)
    torch.testing.assert_close(C, by_autograd, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("q", [1, 2, 3])
def test_a_dead_neuron_is_not_pulled(q: int) -> None:
    A = torch.zeros(1, 2, 1, 3, dtype=torch.float64)
    y = torch.ones(1, 2, dtype=torch.float64)
    assert (models.pull(A, y, y, q) == 0).all()


@pytest.mark.parametrize("size", [0.0, 30.0, 800.0])
def test_the_loss_does_not_overflow(size: float) -> None:
    f = torch.tensor([[size, -size]], dtype=torch.float64)
    y = torch.ones_like(f)
    expected = (math.log1p(math.exp(-size)) * 2 + size) / 2
    assert float(models.logistic(f, y)) == pytest.approx(expected, rel=1e-12)
    assert torch.isfinite(models.downhill(f, y)).all()
