"""Sparse noise: its form, its law, what folding keeps, and what a fresh sample sees."""

from typing import Any

import numpy as np
import pytest
import torch

from fltutils import models, signal_noise, sparse, train

SIZES: dict[str, Any] = {"n": 5, "s": 4, "m": 3, "sigma0": 0.1, "alpha": 0.3}


def test_patches_have_the_trace_first_and_columns_of_their_own() -> None:
    y, xi = np.array([1.0, -1.0, 1.0]), np.arange(1.0, 7.0).reshape(3, 2)
    assert sparse.patches(y, xi, 0.2).tolist() == [
        [-0.2, 1, 2, 0, 0, 0, 0],
        [0.2, 0, 0, 3, 4, 0, 0],
        [-0.2, 0, 0, 0, 0, 5, 6],
    ]


@pytest.mark.parametrize("p", [1, 2])
def test_folding_keeps_products_and_has_the_size(p: int) -> None:
    rng = np.random.default_rng(0)
    y, xi, W0 = np.ones(3), rng.standard_normal((3, 4)), rng.standard_normal((2, 5, 13))
    small, W = sparse.folded(xi, W0, p)
    assert small[:, 0] == pytest.approx((np.abs(xi) ** p).sum(1) ** (1 / p))
    found, told = (v @ sparse.patches(y, x, 0.3).T for v, x in ((W, small), (W0, xi)))
    assert np.allclose(found, told)


def test_a_batch_is_the_equation() -> None:
    data = sparse.draw(**SIZES, length=2.0, runs=400, seed=3)
    assert data.X.shape == (400, 6, 21)
    assert torch.equal(data.mu, torch.eye(21).double()[:1].expand(400, -1))
    assert torch.equal(data.xi[..., 0], -0.3 * data.y)
    assert float(data.y.mean()) == pytest.approx(0, abs=0.1)
    used = data.xi[..., 1:] != 0
    assert bool((used.sum(2) == 4).all())
    assert bool((used.sum(1) == 1).all())
    assert float(data.xi[..., 1:][used].std()) == pytest.approx(2.0 / 4**0.5, rel=0.05)
    assert float(data.W0.std()) == pytest.approx(0.1, rel=0.02)
    assert data.seed == 3
    assert not data.projected


def test_a_run_is_drawn_by_its_identity_and_may_have_its_own_s_and_alpha() -> None:
    many = sparse.draw(**SIZES, norm=1, runs=[4, 7])
    one = sparse.draw(**SIZES, norm=1, runs=[7])
    assert many.run.tolist() == [4, 7]
    assert torch.equal(many.xi[1:], one.xi)
    assert torch.equal(many.W0[1:], one.W0)
    own = sparse.draw(**SIZES | {"s": [4, 9], "alpha": [0.3, 0.5]}, norm=1, runs=[7, 7])
    assert torch.equal(own.xi[:1], one.xi)
    assert torch.equal(own.xi[1, :, 0], -0.5 * own.y[1])
    assert not torch.equal(own.xi[1, :, 1:], own.xi[0, :, 1:])


@pytest.mark.parametrize(
    ("rule", "norm", "options"),
    [("gd", 2, {}), ("momentum", 2, {}), ("sign_gd", 1, {}), ("signum", 1, {}),
     ("adam", 1, {"eps": 1e-30})],
)  # fmt: skip
def test_folded_patches_take_the_same_path(rule: str, norm: int, options: dict[str, float]) -> None:
    A = []
    for p in (None, norm, 3 - norm):
        data = sparse.draw(**SIZES, norm=p, runs=3)
        problem = signal_noise.problem(data, q=3, batch=2, in_span=False)
        run = train.train(problem, rule=rule, eta=0.05, steps=30, **options)
        A.append(signal_noise.products(run.last))
    assert torch.allclose(A[0], A[1], rtol=1e-10, atol=1e-12)
    assert not torch.allclose(A[0], A[2], rtol=1e-3)


def test_what_is_unseen_has_the_law_of_the_start_on_a_fresh_patch() -> None:
    noise = sparse.unseen(s=4, m=3, sigma0=0.1, length=2.0, samples=50, runs=200)
    assert noise.shape == (200, 50, 2, 3)
    assert float(noise.std()) == pytest.approx(0.1 * 2.0, rel=0.03)
    shared = noise.square().mean((2, 3))  # |xi|^2 is shared by the neurons: chi-square of s
    spread = 2 / 4 + (2 / 6) * (1 + 2 / 4)
    assert float(shared.var() / shared.mean() ** 2) == pytest.approx(spread, rel=0.1)
    again = sparse.unseen(s=4, m=3, sigma0=0.1, length=2.0, samples=50, runs=[199])
    assert torch.equal(noise[199:], again)


@pytest.mark.parametrize("y", [1, -1])
def test_margins_are_the_network_on_fresh_samples(y: int) -> None:
    """On a patch whose noise lies on coordinates that no training sample has."""
    rng = np.random.default_rng(1)
    W, xi = (torch.from_numpy(rng.standard_normal(shape)) for shape in ((1, 2, 3, 6), (1, 7, 6)))
    xi[..., 0] = -0.3 * y
    signal = torch.zeros_like(xi)
    signal[..., 0] = y
    told = y * models.cnn(W, signal, xi, 3)
    noise = (xi[..., 1:] @ W[..., 1:].flatten(1, 2).mT).view(1, 7, 2, 3)
    found = sparse.margins(W[..., 0], noise, 0.3, y)
    assert torch.allclose(found, told)


def test_errors_are_shares_of_each_class() -> None:
    W = torch.zeros(2, 2, 3, 6).double()
    W[0, 0, :, 0], W[0, 1, :, 0] = 1.0, -1.0  # run 0 knows the signal, run 1 its negative
    W[1] = -W[0]
    quiet = torch.zeros(2, 4, 2, 3).double()
    assert sparse.errors(W, quiet, 0.2).tolist() == [[0, 0], [1, 1]]
    assert sparse.errors(W, quiet, [0.2, 2.0]).tolist() == [[0, 0], [0, 0]]
    W[0, 1] = 0.0  # no neuron for class -1, and the trace speaks for class +1
    assert sparse.errors(W, quiet, 0.2)[0].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"n": 0}, "n = 0"), ({"s": 2.5}, "s = 2.5"), ({"s": 0}, "s = 0"), ({"m": 0}, "m = 0"),
        ({"sigma0": -1.0}, "sigma0 = -1"), ({"length": 0.0}, "length = 0"),
        ({"alpha": np.nan}, "alpha = nan"), ({"norm": 3}, "norm = 3"), ({"runs": 0}, "runs = 0"),
    ],
)  # fmt: skip
def test_bad_sizes_are_named(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        sparse.draw(**SIZES | wrong)


def test_a_sample_is_needed() -> None:
    with pytest.raises(ValueError, match="samples = 0"):
        sparse.unseen(s=4, m=3, sigma0=0.1, samples=0)
