"""Coordinates: Bartlett's law, the fallback to R^d, and the basis of real data."""

import re
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fltutils import measure, signal_noise, span, train


@given(st.integers(1, 12), st.integers(0, 10**9), st.integers(0, 99))
def test_bartlett_is_lower_triangular_with_a_positive_diagonal(
    rows: int, more: int, seed: int
) -> None:
    L = span.bartlett(span.stream(seed, 0, "test"), rows, rows + more)
    assert L.shape == (rows, rows)
    assert (np.triu(L, 1) == 0).all()
    assert (L.diagonal() > 0).all()


@pytest.mark.parametrize("D", [3, 7, 1000])
def test_bartletts_gram_has_the_moments_of_wishart(D: int) -> None:
    """E G = D I; Var G_ij = D, Var G_ii = 2 D; within five standard errors."""
    rng, size = span.stream(D, 0, "test"), 6000
    L = np.stack([span.bartlett(rng, 3, D) for _ in range(size)])
    G = L @ L.transpose(0, 2, 1)
    variance = D * (1 + np.eye(3))
    assert (np.abs(G.mean(0) - D * np.eye(3)) < 5 * np.sqrt(variance / size)).all()
    kurtosis = 3 + 12 / D + 6  # generous: a chi-square's is 3 + 12 / D, a product's less than 9
    assert (np.abs(G.var(0) / variance - 1) < 5 * np.sqrt(kurtosis / size)).all()


def test_many_bartletts_are_drawn_at_once() -> None:
    L = span.bartlett(span.stream(0, 0, "test"), 3, 9, (2, 5))
    assert L.shape == (2, 5, 3, 3)
    assert (np.triu(L, 1) == 0).all()
    assert (L.diagonal(axis1=2, axis2=3) > 0).all()
    assert len(np.unique(L[..., 2, 1])) == 10


def test_bartlett_needs_as_many_dimensions_as_rows() -> None:
    with pytest.raises(ValueError, match="D = 2: D must be at least the number of rows, 3"):
        span.bartlett(span.stream(0, 0, "test"), 3, 2)


@given(st.integers(1, 8), st.integers(2, 40), st.integers(1, 8), st.booleans())
def test_patches_and_weights_have_r_coordinates(n: int, d: int, k: int, projected: bool) -> None:
    r = span.dimension(n, d, k)
    assert r == min(d, 1 + n + k)
    rng = span.stream(0, 0, "test")
    xi, W = span.noise(rng, n, d, k, projected), span.weights(rng, n, d, k)
    assert xi.shape == (n, r)
    assert W.shape == (k, r)
    assert np.isfinite(xi).all()
    assert np.isfinite(W).all()
    assert (xi[:, 0] == 0).all() == projected
    if r < d:
        assert (xi[:, 1 + n :] == 0).all()  # data are zero where the weights stand alone


@pytest.mark.parametrize("d", [9, 10, 11, 500])  # r = 9, at the edge, just beyond, far beyond
def test_the_vectors_have_the_gram_matrix_of_gaussians(d: int) -> None:
    """E<v, v> = d (d - 1 off mu), E<v, v'> = 0, Var<v, v'> as in R^d; five standard errors."""
    n, k, size = 4, 5, 4000
    rng = span.stream(d, 1, "test")
    xi = np.stack([span.noise(rng, n, d, k, True) for _ in range(size)])
    W = np.stack([span.weights(rng, n, d, k) for _ in range(size)])
    V = np.concatenate([xi, W], 1)
    G = V @ V.transpose(0, 2, 1)
    off = np.r_[np.full(n, d - 1.0), np.full(k, float(d))]  # degrees of freedom
    variance = np.minimum.outer(off, off) * (1 + np.eye(n + k))
    assert (np.abs(G.mean(0) - np.diag(off)) < 5 * np.sqrt(variance / size)).all()
    assert (np.abs(G.var(0) / variance - 1) < 5 * np.sqrt(10.0 / size)).all()


def test_noise_off_and_on_the_signal_share_all_but_one_coordinate() -> None:
    off = span.noise(span.stream(3, 0, "test"), 5, 100, 4, True)
    on = span.noise(span.stream(3, 0, "test"), 5, 100, 4, False)
    assert (off[:, 1:] == on[:, 1:]).all()
    assert on[:, 0].std() > 0


@given(st.integers(1, 5), st.integers(1, 4), st.integers(0, 30), st.integers(0, 99))
def test_the_basis_keeps_all_inner_products(n: int, k: int, more: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    d = 1 + n + k + more
    V = rng.standard_normal((1 + n + k, d))
    Q = span.basis(V[0], V[1 : 1 + n], V[1 + n :])
    assert Q.shape == (d, 1 + n + k)
    np.testing.assert_allclose(Q.T @ Q, np.eye(1 + n + k), atol=1e-12)
    np.testing.assert_allclose(V @ Q @ Q.T, V, atol=1e-11)


def test_streams_differ_in_seed_run_use_and_step_and_repeat() -> None:
    names: list[tuple[Any, ...]] = [
        (4, 5, "a"), (5, 5, "a"), (4, 6, "a"), (4, 5, "b"), (5, 4, "a"),
        (4, 5, "a", 0), (4, 5, "a", 1), (4, 5, "a", 1, 0),
    ]  # fmt: skip
    draws = {float(span.stream(*name).random()) for name in names}
    assert len(draws) == len(names)
    assert span.stream(4, 5, "a", 1).random() == span.stream(4, 5, "a", 1).random()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ((-1, 0, "a"), "seed = -1: seed must be a whole number >= 0"),
        ((None, 0, "a"), "seed = None: seed must be a whole number >= 0"),
        ((0, -1, "a"), "run = -1: run must be a whole number >= 0"),
        ((0, 0, "a", 1, 0.5), "step = 0.5: step must be a whole number >= 0"),
        ((0, 0, 1), "use = 1: use must be a text"),
    ],
)
def test_a_stream_without_a_name_is_refused(name: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        span.stream(*name)


def test_no_two_uses_share_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """Data, label noise and fresh samples ask for three names."""
    asked: list[str] = []
    stream = span.stream

    def noted(seed: int, run: int, use: str, *steps: int) -> span.Rng:
        asked.append(use)
        return stream(seed, run, use, *steps)

    monkeypatch.setattr(span, "stream", noted)
    s = signal_noise.draw(n=4, d=9, mu=1.0, m=1, sigma0=0.1)
    problem = signal_noise.problem(s, label_noise=0.1, batch=2)
    measure.test_error(train.train(problem, eta=0.1, steps=2).last, q=1)
    assert len(asked) == len(set(asked)) == 3


def test_a_stream_is_a_spawned_child_of_the_seed() -> None:
    """The same in every version of the book: prose and digits depend on it."""
    child = np.random.SeedSequence(7, spawn_key=(3, zlib.crc32(b"data"), 2))
    assert span.stream(7, 3, "data", 2).random() == np.random.default_rng(child).random()
