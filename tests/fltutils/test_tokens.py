"""Sequences and the head on them: the same as in R^d, with all its weights, by autograd."""

import re
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fltutils import attention, models, span, tokens, train
from tests.fltutils import plain

Tensor = torch.Tensor
SIZES: dict[str, Any] = {
    "n": 4, "L": 3, "d": 60, "width": 40, "snr": 0.7, "theta": 2.0, "start": 0.3,
}  # fmt: skip
few = settings(max_examples=12)
kinds = st.tuples(
    st.integers(2, 5), st.integers(2, 4), st.sampled_from([1, 2, 0]), st.sampled_from([3, 200]),
    st.integers(0, 99),
)  # fmt: skip


def batch(kind: tuple[int, int, int, int, int], **more: Any) -> tokens.Tokens:
    n, L, signals, width, seed = kind
    sizes = {"n": n, "L": L, "signals": signals or n, "width": width, "seed": seed, "runs": 2}
    return tokens.draw(**SIZES | sizes | {"loud": 1.5} | more)


def direct(params: tuple[Tensor, ...], data: tokens.Tokens) -> Tensor:
    """f with the matrices themselves, token by token of each sample."""
    W_Q, W_K, v = params
    X = tokens.of_samples(data.X, data.lead, data.L)
    S = torch.softmax((X @ W_Q[:, None]) @ (X @ W_K[:, None]).transpose(2, 3), -1)
    return (S @ (X @ v[:, None, :, None]))[..., 0].mean(-1)


def matrices(params: tuple[Tensor, ...], data: tokens.Tokens) -> list[Tensor]:
    """W_Q, W_K and v where the training tokens are."""
    Xt, (A, B, b) = data.X.transpose(1, 2), params
    return [data.W_Q + Xt @ A, data.W_K + Xt @ B, data.v + (Xt @ b[..., None])[..., 0]]


@few
@given(kinds)
def test_descent_on_coefficients_is_gradient_descent_on_the_weights(
    kind: tuple[int, int, int, int, int],
) -> None:
    data = batch(kind)
    eta, steps = 0.3, 6
    run = train.train(tokens.problem(data), eta=eta, steps=steps)
    W = [w.clone().requires_grad_() for w in (data.W_Q, data.W_K, data.v)]
    for _ in range(steps):
        loss = models.logistic(direct(tuple(W), data), data.y).sum()
        grads = torch.autograd.grad(loss, W)
        W = [(w - eta * g).detach().requires_grad_() for w, g in zip(W, grads, strict=True)]
    for own, theirs in zip(matrices(run.last.params, data), W, strict=True):
        torch.testing.assert_close(own, theirs.detach(), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(run.last.f, direct(tuple(W), data).detach(), rtol=1e-9, atol=1e-12)


@few
@given(kinds)
def test_the_norm_of_a_direction_is_that_in_r_d(kind: tuple[int, int, int, int, int]) -> None:
    data = batch(kind)
    D = tuple(x + 1.0 for x in tokens.problem(data).start)
    moved = matrices(D, data)
    start = (data.W_Q, data.W_K, data.v)
    square = sum((w - w0).flatten(1).square().sum(1) for w, w0 in zip(moved, start, strict=True))
    torch.testing.assert_close(tokens.norm(D, data), square.sqrt())


@given(kinds)
def test_tokens_of_samples_and_back(kind: tuple[int, int, int, int, int]) -> None:
    """of_tokens is the transpose of of_samples: <A', D> = <A, D'>."""
    data = batch(kind)
    A = data.X + 1.0
    D = tokens.of_samples(data.X @ data.X, data.lead, data.L)
    left = (tokens.of_samples(A, data.lead, data.L) * D).sum()
    torch.testing.assert_close(left, (A * tokens.of_tokens(D, data.lead)).sum())


def test_signal_tokens_are_the_samples_own() -> None:
    for signals in (1, 2, 4):
        data = tokens.draw(**SIZES, signals=signals, plus=3)
        first = tokens.of_samples(data.X, data.lead, data.L)[0, :, 0]
        assert data.y[0].tolist() == [1.0, 1.0, 1.0, -1.0]
        cosines = first @ first.T / 0.49
        wanted = {1: data.y[0, :, None] * data.y[0], 2: (data.y[0, :, None] == data.y[0]).double()}
        torch.testing.assert_close(cosines, wanted.get(signals, torch.eye(4).double()))


def test_each_run_has_labels_of_its_own() -> None:
    """How many are positive changes the labels, and whose signal is whose, and nothing else."""
    alike, own = (tokens.draw(**SIZES, runs=3, plus=plus) for plus in (2, [1, 2, 3]))
    assert own.y.tolist() == [[1.0, -1, -1, -1], [1, 1, -1, -1], [1, 1, 1, -1]]
    assert torch.equal(own.lead[..., 0], (own.y > 0).double())
    assert torch.equal(own.X, alike.X)


def test_a_block_is_smaller_for_more_tokens() -> None:
    assert tokens.block(16, 4) == 13
    assert tokens.block(100, 4) == 1


def test_lengths_are_what_they_are_called() -> None:
    """In units of sigma sqrt(d); means over 400 runs within five standard errors."""
    data = tokens.draw(**SIZES | {"n": 3, "d": 500}, loud=2.0, runs=400)
    square = data.G.diagonal(dim1=1, dim2=2)
    torch.testing.assert_close(square[:, :2], torch.full((400, 2), 0.49, dtype=torch.float64))
    noise = square[:, 2:].unflatten(1, (3, 2)).mean((0, 1))
    assert abs(float(noise[0]) / 4 - 498 / 500) < 5 * (2 / 500 / 1200) ** 0.5
    assert abs(float(noise[1]) - 498 / 500) < 5 * (2 / 500 / 1200) ** 0.5
    query = data.Q[:, 2:].square().sum(-1) / square[:, 2:]
    assert abs(float(query.mean()) - 2.0) < 5 * 2.0 * (2 / 40 / 2400) ** 0.5
    value = data.V[:, 2:] / square[:, 2:].sqrt()
    assert abs(float(value.var()) - 0.09) < 5 * 0.09 * (2 / 2400) ** 0.5


def plain_scores(run: int, n: int, L: int, d: int, width: int) -> Tensor:
    """Scores and values before training, drawn in R^d."""
    rng = np.random.default_rng([7, run])
    x = rng.standard_normal((n * (L - 1), d)) / d**0.5
    x[:, :2] = 0
    W_Q, W_K = rng.standard_normal((2, d, width)) * (2.0 / width) ** 0.5
    return torch.from_numpy((x @ W_Q) @ (x @ W_K).T)


@pytest.mark.parametrize("width", [6, 300])
def test_first_scores_have_the_law_of_r_d(width: int) -> None:
    """A score of two noise tokens and one of a token with itself, over 500 draws of each."""
    n, L, d, runs = 2, 3, 30, 500
    data = tokens.draw(n=n, L=L, d=d, width=width, snr=1.0, theta=2.0, runs=runs)
    assert data.W_Q.shape[2] == (6 if width == 6 else 12)
    own = (data.Q @ data.K.transpose(1, 2))[:, 2:, 2:]
    theirs = torch.stack([plain_scores(r, n, L, d, width) for r in range(runs)])
    for i, j in ((0, 0), (0, 1), (3, 1)):
        assert plain.distance(own[:, i, j], theirs[:, i, j]) < plain.critical(runs, runs)


def plain_fresh(s: train.State, run: int, samples: int) -> Tensor:
    """y f of positive fresh sequences: noise and weights in all d coordinates.

    Where no training token is, weights are as they started; each sequence meets its own draw.
    """
    data, rng = s.data, np.random.default_rng([8, run])
    T, d, L = data.X.shape[1], data.d, 3
    scales = [float(data.scale[0, 0])] * 2 + [float(data.scale[0, 1])]
    W = []
    for w, sd in zip(matrices(s.params, data), scales, strict=True):
        own = w[0].reshape(T, -1)
        more = sd * torch.from_numpy(rng.standard_normal((samples, d - T, own.shape[1])))
        W.append(torch.cat([own.expand(samples, -1, -1), more], 1))
    x = rng.standard_normal((samples, L - 1, d)) / d**0.5
    x[..., :2] = 0
    x[:, 0] *= data.loud
    first = torch.zeros(samples, 1, d, dtype=torch.float64)
    first[..., :T] = data.X[0, 0]
    X = torch.cat([first, torch.from_numpy(x)], 1)
    S = torch.softmax((X @ W[0]) @ (X @ W[1]).transpose(1, 2), -1)
    return (S @ (X @ W[2]))[..., 0].mean(1)


def test_fresh_margins_have_the_law_of_r_d() -> None:
    """Trained heads at small d and width, where every part counts: 4 runs, 400 sequences each."""
    sizes = SIZES | {"width": 7, "theta": 6.0, "start": 0.8, "d": 25}
    for run in range(4):
        s = train.train(
            tokens.problem(tokens.draw(**sizes, loud=1.5, runs=[run])), eta=1.0, steps=40
        ).last
        own = tokens.fresh_margins(s, 400)[0, 0]
        assert plain.distance(own, plain_fresh(s, run, 400)) < plain.critical(400, 400)


def test_beyond_the_coordinates_of_training_the_width_has_its_law() -> None:
    """Scores of new tokens with each other: mean square theta^2 / width, whatever h is."""
    for width, h in ((14, 14), (16, 12), (1000, 12)):
        data = tokens.draw(n=2, L=3, d=400, width=width, snr=1.0, theta=2.0, runs=60)
        assert data.W_Q.shape[2] == h
        s = train.train(tokens.problem(data), eta=0.0, steps=0).last
        q, k, _ = tokens.fresh(s, 50)
        scores = (q @ k.transpose(-1, -2))[:, 0, :, 1:, 1:]
        assert q.shape == (60, 2, 50, 3, h if h == width else h + 4)
        square = scores.square()
        error = float(square.mean((1, 2, 3)).std() / 60**0.5)
        assert abs(float(square.mean()) - 4.0 / width) < 5 * error + 0.03 * 4.0 / width


def test_both_labels_meet_the_same_noise() -> None:
    data = tokens.draw(**SIZES, runs=2)
    s = train.train(tokens.problem(data), eta=0.5, steps=5).last
    q, k, v = tokens.fresh(s, 6)
    for x in (q, k, v):
        assert torch.equal(x[:, 0, :, 1:], x[:, 1, :, 1:])
        assert not torch.equal(x[:, 0, :, :1], x[:, 1, :, :1])
    f = attention.output(attention.weights(q, k), v)
    margins = tokens.fresh_margins(s, 6)
    assert torch.equal(margins[:, 0], f[:, 0])
    assert torch.equal(margins[:, 1], -f[:, 1])


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=3, unique=True), st.integers(0, 99))
def test_a_run_does_not_know_its_batch(runs: list[int], seed: int) -> None:
    together = tokens.draw(**SIZES, runs=runs, seed=seed)
    for i, run in enumerate(runs):
        alone = tokens.draw(**SIZES, runs=[run], seed=seed)
        for a, b in zip(alone, train.pick(together, torch.tensor([i])), strict=True):
            assert torch.equal(a, b) if torch.is_tensor(a) else a == b


def test_dimension_and_width_cost_nothing() -> None:
    data = tokens.draw(**SIZES | {"d": 2 * 10**15, "width": 10**9})
    T = 2 + 4 * 2
    assert data.X.shape == (1, T, T)
    assert data.W_Q.shape == (1, T, 2 * T)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"signals": 3}, "signals = 3: signals must be 1, 2 or n = 4"),
        ({"plus": 4}, "plus = 4: plus must be a whole number from 1 to 3"),
        ({"L": 1}, "L = 1: L must be a whole number >= 2"),
        ({"d": 11}, "d = 11: d must be a whole number >= 12"),
        ({"loud": 0}, "loud = 0.0: loud must be finite and > 0"),
    ],
)
def test_bad_sizes_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        tokens.draw(**SIZES | change)


def test_the_start_is_span_s_and_repeats() -> None:
    first, again = (tokens.draw(**SIZES, seed=3) for _ in range(2))
    assert torch.equal(first.X, again.X)
    rng = span.stream(3, 0, "tokens: data and start")
    L = span.bartlett(rng, 8, 58) / 60**0.5
    assert torch.equal(first.X[0, 2:, 2:], torch.from_numpy(L))
