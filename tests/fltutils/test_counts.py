"""Data with structure and without, the smoothed activation, angles and features."""

import numpy as np
import pytest
import torch

from fltutils import counts, span
from fltutils.counts import Case, Net


def test_structured_samples_have_all_relevant_patterns_or_none() -> None:
    phi = counts.patterns(np.random.default_rng(0), 20000, Case(gamma=0.5, D=12, p0=0.2))
    assert set(phi[:, :5].sum(1)) == {0, 5}
    assert phi[:, 5:].mean() == pytest.approx(0.2, abs=0.01)
    phi = counts.patterns(np.random.default_rng(1), 40000, Case(gamma=0.15, D=12))
    y = counts.label(phi, 5)
    gamma = (y[:, None] * phi).mean(0) - y.mean() * phi.mean(0)
    assert gamma == pytest.approx(np.where(np.arange(12) < 5, 0.15, 0), abs=0.02)


def test_inputs_are_centred_with_mean_square_length_one() -> None:
    c = Case(gamma=0.3, D=20, p0=0.1)
    x, y = counts.sample(0, 0, c, 8000)
    assert x.mean(0) == pytest.approx(0, abs=0.01)
    assert (x**2).sum(1).mean() == pytest.approx(1, abs=0.03)
    assert y.sum() == 0
    assert y[:100].std() > 0.5  # in no order


def test_every_use_and_every_size_has_samples_of_its_own() -> None:
    c = Case(n=50, D=12)
    drawn = [
        counts.sample(0, 0, c), counts.sample(0, 1, c), counts.sample(1, 0, c),
        counts.sample(0, 0, c._replace(gamma=0.2)), counts.sample(0, 0, c, seed=1),
    ]  # fmt: skip
    assert len({x.tobytes() for x, _ in drawn}) == len(drawn)
    assert counts.sample(0, 0, c)[0] is drawn[0][0]


def test_uneven_labels_are_refused_where_both_are_asked_for() -> None:
    with pytest.raises(ValueError, match="balanced=False"):
        counts.sample(0, 0, Case(n=4000, k=4, gamma=0.5))
    _, y = counts.sample(0, 0, Case(n=4000, k=4), balanced=False)
    assert y.mean() == pytest.approx(-0.5, abs=0.05)


def test_all_inputs_carry_their_probability() -> None:
    c = Case(gamma=0.2, D=8, k=3, p0=0.3)
    x, weighted = counts.all_inputs(c)
    assert np.abs(weighted).sum() == pytest.approx(1)
    assert weighted.sum() == pytest.approx(0)
    mean = weighted @ x * counts.variance(c) ** 0.5
    assert mean == pytest.approx(np.where(np.arange(8) < 3, 0.2, 0), abs=1e-12)


def test_a_network_begins_as_zero() -> None:
    c = Case(D=10, m=6)
    net = counts.begin(0, c)
    x, _ = counts.sample(0, 0, c, 30)
    assert counts.answers(net, x) @ net.a == pytest.approx(0, abs=1e-12)
    without = counts.begin(0, c._replace(gamma=0.0))
    assert without.a == pytest.approx(net.a)


@pytest.mark.parametrize("xi", [0.05, 0.5])
def test_smoothing_is_a_mean_over_noise_and_slope_its_derivative(xi: float) -> None:
    z = np.linspace(-1, 2, 13)
    noise = np.random.default_rng(0).standard_normal(200000)
    assert counts.smooth(z, xi) == pytest.approx(
        [counts.act(u + xi * noise).mean() for u in z], abs=5e-3
    )
    step = 1e-6
    rate = (counts.smooth(z + step, xi) - counts.smooth(z - step, xi)) / (2 * step)
    assert counts.slope(z, xi) == pytest.approx(rate, abs=1e-6)
    assert counts.smooth(z, 0) == pytest.approx(counts.act(z))


def test_tangent_and_cosine_are_of_one_angle() -> None:
    w = np.random.default_rng(0).standard_normal((7, 9))
    cos, tan = counts.cosine(w, 4), counts.tangent(w, 4)
    assert np.sign(tan) * (1 + tan**2) ** -0.5 == pytest.approx(cos)
    near = np.array([[1.0, 1.0, 1e-12]])
    assert counts.tangent(near, 2) == pytest.approx([1e-12 / 2**0.5])


def test_tangent_features_are_the_derivatives_of_the_network() -> None:
    rng = np.random.default_rng(0)
    w, b, a = rng.standard_normal((3, 5)), rng.standard_normal(3), rng.standard_normal(3)
    x = rng.standard_normal((4, 5))
    net = Net(np.vstack([w, w]), np.append(b, b), np.append(a, -a))
    found = counts.tangent_features(net, x)
    W, B = torch.tensor(w, requires_grad=True), torch.tensor(b, requires_grad=True)
    A, size = torch.tensor(a, requires_grad=True), np.abs(a).mean()
    for row, features in zip(x, found, strict=True):
        g = torch.clamp(W @ torch.tensor(row) + B, 0, 1) @ A
        by_w, by_b, by_a = torch.autograd.grad(g, (W, B, A))
        told = torch.cat([by_a, by_b / size / 5**0.5, by_w.ravel() / size])
        assert features == pytest.approx(told.numpy())


def test_the_chart_keeps_cosines_of_points_in_a_plane() -> None:
    turn = np.linspace(0, 6, 5)
    star, beside = np.array([1.0, 1, 0]) / 2**0.5, np.array([0, 0, 1.0])
    w = np.cos(turn)[:, None] * star + np.sin(turn)[:, None] * beside
    places = counts.chart(3 * w, 2)
    points = np.vstack([w, star, -star])
    assert places @ places.T == pytest.approx(points @ points.T)
    assert places[-2, 0] >= 0


def test_digits_are_zeros_and_ones_scaled_by_the_first() -> None:
    x, y = counts.zeros_and_ones(span.stream(0, 0, "test"))
    assert x.shape == (360, 64)
    assert set(y) == {-1, 1}
    assert x[:240].mean(0) == pytest.approx(0, abs=1e-12)
    assert x[:240].var(0).sum() == pytest.approx(1)


def test_what_is_taken_away_leaves_the_rest() -> None:
    nets = [counts.begin(run, Case(D=10, m=6)) for run in range(3)]
    last = nets[2]
    assert counts.altered(nets, "before") is nets[0]
    bare, even = counts.altered(nets, "no biases"), counts.altered(nets, "one length")
    assert not bare.b.any()
    assert (bare.w == last.w).all()
    lengths = np.linalg.norm(even.w, axis=1)
    assert lengths == pytest.approx(np.median(np.linalg.norm(last.w, axis=1)))
    assert counts.cosine(even.w, 5) == pytest.approx(counts.cosine(last.w, 5))
    nets[1] = nets[1]._replace(w=1e-3 * nets[1].w)
    long = counts.altered(nets, "one step, stretched")
    assert np.median(np.linalg.norm(long.w, axis=1)) == pytest.approx(lengths[0])
    with pytest.raises(ValueError, match="state"):
        counts.altered(nets, "three steps")


def test_random_features_have_the_size_asked_for() -> None:
    c, x = Case(D=8), np.zeros((1, 8))
    one, ten = (counts.random_features(np.random.default_rng(0), 500, c, s) for s in (1, 10))
    assert one(x).shape == (1, 500)
    assert ten(x) == pytest.approx(np.clip(10 * one(x), 0, 1))
