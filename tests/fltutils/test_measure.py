"""gamma, rho, losses and errors against their definitions."""

from typing import NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fltutils import measure, models, signal_noise, train
from tests.fltutils import plain
from tests.fltutils.batches import batch, embedded, trained

cases = st.tuples(st.integers(0, 10**4), st.sampled_from([1, 2, 3]))


def recursion(p: plain.Problem, q: int, eta: float, steps: int) -> tuple[torch.Tensor, ...]:
    """gamma and rho by equation (6) of signal_noise.md, on weights that a plain loop moves in R^d.

    With observed labels in g_i, so that a flipped sample pulls gamma back.
    """
    (n, m), W = (len(p.y), p.W0.shape[1]), p.W0.clone()
    gamma, rho = torch.zeros(2, m).double(), torch.zeros(2, m, n).double()
    slope = lambda z: q * z.clamp(min=0) ** (q - 1) * (z > 0)  # noqa: E731
    for _ in range(steps):
        g = p.y_obs * torch.sigmoid(-p.y_obs * plain.outputs(W, p, q))
        for c, j in ((0, 1.0), (1, -1.0)):
            for i in range(n):
                a, b = W[c] @ (p.y[i] * p.mu), W[c] @ p.xi[i]
                gamma[c] += eta / (n * m) * g[i] * p.y[i] * slope(a) * p.mu.square().sum()
                rho[c, :, i] += j * eta / (n * m) * g[i] * slope(b) * p.xi[i].square().sum()
        W = W - eta * plain.gradient(W, p, q)
    return gamma, rho


@settings(max_examples=8)
@given(cases)
def test_gamma_and_rho_follow_the_recursion(case: tuple[int, int]) -> None:
    seed, q = case
    p = plain.problem(seed, n=5, m=2, d=30)
    s = trained(batch([p]), q=q, eta=0.05, steps=15).last
    gamma, rho = recursion(p, q, 0.05, 15)
    torch.testing.assert_close(measure.gamma(s)[0], gamma, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(measure.rho(s)[0], rho, rtol=1e-10, atol=1e-12)


@settings(max_examples=15)
@given(cases, st.booleans())
def test_the_decomposition_gives_the_weights_back(case: tuple[int, int], projected: bool) -> None:
    """Least squares, the loop's own coefficients, and the weights they stand for agree."""
    seed, q = case
    p = plain.problem(seed, n=5, m=2, d=30, projected=projected)
    s = trained(batch([p], projected=projected), q=q, eta=0.05, steps=20).last
    W, (b,) = signal_noise.weights(s), [s.data]
    theta = measure.coefficients(W, b.W0, b.X)
    torch.testing.assert_close(theta, s.params[0], rtol=1e-9, atol=1e-12)
    by_weights = s._replace(params=(W,), data=b._replace(A0=None, G=None))
    torch.testing.assert_close(measure.gamma(by_weights), measure.gamma(s), rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(measure.rho(by_weights), measure.rho(s), rtol=1e-9, atol=1e-11)
    j = torch.tensor([1.0, -1.0]).double()[:, None, None]
    again = (
        p.W0
        + j * measure.gamma(s)[0][..., None] * p.mu / p.mu.square().sum()
        + measure.rho(s)[0] @ (p.xi / p.xi.square().sum(-1, keepdim=True))
    )
    torch.testing.assert_close(again, W[0], rtol=1e-10, atol=1e-12)


def test_signs_of_what_is_learned() -> None:
    """Without flips gamma only grows, rho grows where j = y and falls where not."""
    s = signal_noise.draw(n=10, d=1000, mu=5.0, m=4, sigma0=0.01, runs=3)
    last = trained(s, q=1, eta=0.01, steps=30).last
    assert (measure.gamma(last) > 0).all()
    j = torch.tensor([1.0, -1.0]).double()[None, :, None, None]
    assert (j * s.y[:, None, None] * measure.rho(last) >= 0).all()
    assert (measure.rho(last) != 0).any()


def test_fresh_noise_has_its_scale_and_no_signal_is_no_error() -> None:
    """Brute force in R^d at sigma = 2, and at mu = 0; five standard errors."""
    for norm_mu in (1.5, 0.0):
        p = plain.problem(4, n=8, m=3, d=25, norm_mu=1.5)
        p = p._replace(mu=p.mu * (norm_mu / 1.5))
        s = trained(batch([p])._replace(sigma=torch.tensor([2.0]).double()), eta=0.1, steps=40).last
        W, data = signal_noise.weights(s)[0], s.data
        xi = torch.randn(40_000, 25, generator=torch.Generator().manual_seed(3)).double()
        unit = p.mu / p.mu.norm().clamp(min=1e-300)
        xi = 2.0 * (xi - torch.outer(xi @ unit, unit))
        error = torch.cat(
            [y * plain.forward(W, y * p.mu.expand(40_000, -1), xi, 1) <= 0 for y in (1.0, -1.0)]
        ).double()
        found = measure.test_error(s, q=1, samples=40_000)
        assert data.projected
        assert 0.05 < error.mean() < 0.95
        assert abs(found - error.mean()) < 5 * error.std() * (2 / 40_000) ** 0.5


def one_trained(projected: bool, q: int) -> tuple[plain.Problem, train.State]:
    p = plain.problem(4, n=8, m=3, d=25, norm_mu=1.5, projected=projected)
    return p, trained(batch([p], projected=projected), q=q, eta=0.1, steps=60).last


def brute_force(p: plain.Problem, W: torch.Tensor, q: int, projected: bool) -> torch.Tensor:
    """y f(x) on 40 000 fresh samples in R^d."""
    generator = torch.Generator().manual_seed(7)
    xi = torch.randn(40_000, len(p.mu), generator=generator, dtype=torch.float64)
    if projected:
        xi -= torch.outer(xi @ p.mu, p.mu) / p.mu.square().sum()
    y = torch.randint(0, 2, (40_000,), generator=generator).double() * 2 - 1
    return y * plain.forward(W, y[:, None] * p.mu, xi, q)


@pytest.mark.parametrize("projected", [True, False])
@pytest.mark.parametrize("q", [1, 3])
def test_test_error_and_loss_are_those_of_fresh_samples(projected: bool, q: int) -> None:
    """Against brute force in R^d, the signal in a random direction; five standard errors."""
    p, s = one_trained(projected, q)
    margins = brute_force(p, signal_noise.weights(s)[0], q, projected)
    error, loss = (margins <= 0).double(), torch.nn.functional.softplus(-margins)
    for found, each in (
        (measure.test_error(s, q=q, samples=20_000), error),
        (measure.test_loss(s, q=q, samples=20_000), loss),
    ):
        assert 0.02 < each.mean()
        assert abs(found - each.mean()) < 5 * each.std() * (2 / 40_000) ** 0.5


def test_noise_on_and_off_the_signal_give_different_errors() -> None:
    """The test above can tell: project noise that is not projected, and the error moves."""
    _, s = one_trained(False, 1)
    off = s._replace(data=s.data._replace(projected=True))
    gap = measure.test_error(off, q=1, samples=20_000) - measure.test_error(s, q=1, samples=20_000)
    assert abs(gap) > 0.01


@pytest.mark.parametrize("projected", [True, False])
def test_fresh_samples_do_not_know_the_coordinates(projected: bool) -> None:
    """The very draws agree in R^d and in the coordinates of its basis."""
    p = plain.problem(5, n=6, m=2, d=30, projected=projected)
    a, b = (
        trained(batch([x], projected=projected), q=1, eta=0.1, steps=30).last
        for x in (p, embedded(p))
    )
    torch.testing.assert_close(
        measure.fresh_margins(a, q=1), measure.fresh_margins(b, q=1), rtol=1e-9, atol=1e-11
    )


def test_fresh_samples_scale_with_the_noise() -> None:
    """x100 noise drowns the signal: error one half; at noise 0.01 the signal decides."""
    sizes = {"n": 6, "d": 500, "mu": 3.0, "m": 4, "sigma0": 0.01}
    s = signal_noise.draw(**sizes, sigma=[0.01, 1.0, 100.0], runs=[3, 3, 3])  # type: ignore[arg-type]
    last = trained(s, eta=[0.1, 0.1, 1e-6], steps=30).last
    error = measure.test_error(last, q=1)
    assert error[0] == 0
    assert error[0] <= error[1] < error[2]
    assert abs(error[2] - 0.5) < 0.05


def test_a_batch_of_one_measures_what_a_batch_of_many_does() -> None:
    s = signal_noise.draw(n=6, d=500, mu=3.0, m=4, sigma0=0.01, runs=3)
    many = trained(s, eta=0.05, steps=30).last
    for i in range(3):
        one = trained(train.pick(s, torch.tensor([i])), eta=0.05, steps=30).last
        for f in (measure.test_error, measure.test_loss):
            torch.testing.assert_close(f(one, q=1)[0], f(many, q=1)[i], rtol=1e-12, atol=0)
        torch.testing.assert_close(measure.train_error(one)[0], measure.train_error(many)[i])


def test_runs_are_measured_a_few_at_a_time_to_the_same_bits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    s = signal_noise.draw(n=6, d=500, mu=3.0, m=4, sigma0=0.01, runs=7)
    last = trained(s, eta=0.05, steps=30).last
    at_once = measure.fresh_margins(last, q=3, samples=50)
    assert at_once.shape == (7, 100)
    for drawn in (1, 3 * 50 * 8, 10**6):  # one run, three, all
        monkeypatch.setattr(measure, "DRAWN", drawn)
        assert torch.equal(measure.fresh_margins(last, q=3, samples=50), at_once)


def test_a_network_of_zeros_knows_nothing() -> None:
    s = signal_noise.draw(n=6, d=500, mu=3.0, m=4, sigma0=0.0)
    last = trained(s, eta=0.1, steps=3).last
    assert float(measure.train_error(last)) == 1.0  # f = 0 counts as wrong
    assert float(measure.test_error(last, q=1)) == 1.0
    assert float(measure.test_loss(last, q=1)) == pytest.approx(0.6931471805599453)
    assert (measure.gamma(last) == 0).all()


def test_training_error_counts_observed_labels() -> None:
    s = signal_noise.draw(n=40, d=10**5, mu=1.0, m=20, sigma0=1e-4, flip=0.2, runs=2)
    last = trained(s, eta=1e-3, steps=300).last
    assert (measure.train_error(last) == 0).all()  # memorised, flips too
    clean = (s.y * last.f <= 0).double().mean(1)
    assert torch.equal(clean, (s.y != s.y_obs).double().mean(1))


@pytest.mark.parametrize("samples", [0, 2.5, True])
def test_samples_must_be_a_whole_number(samples: int) -> None:
    _, s = one_trained(True, 1)
    with pytest.raises(ValueError, match=r"samples = .*: samples must be a whole number >= 1"):
        measure.test_error(s, q=1, samples=samples)


def test_reused_noise_is_that_of_training_patches_in_turn_and_fresh_noise() -> None:
    """At a large dimension fresh noise does nothing beside it: the network on its own patches."""
    s = signal_noise.draw(n=12, d=10**12, mu=10**6, m=5, sigma0=1e-9, flip=0.2, runs=2)
    last = trained(s, eta=1e-10, steps=40).last
    A = signal_noise.products(last)
    found = measure.fresh_margins(last, q=1, samples=24, reused=True)
    for k, y in enumerate((1.0, -1.0)):
        f = models.cnn_from_products(A, torch.full_like(last.f, y), 1)
        both = found[:, 24 * k : 24 * (k + 1)]
        for part in (both[:, :12], both[:, 12:]):
            torch.testing.assert_close(part, y * f, rtol=0.01, atol=0.01)
    again = measure.test_error(last, q=1, samples=24, reused=True)
    torch.testing.assert_close(again, measure.error(found))


class Centre(NamedTuple):
    at: torch.Tensor


def bowl(norm: bool = False) -> train.Problem:
    """|w - at|^2 / 2 in the plane, two runs, with its gradient; `norm` counts lengths double."""
    at = torch.tensor([[0.0, 0.0], [1.0, -1.0]]).double()
    start = torch.tensor([[3.0, 4.0], [1.0, 1.0]]).double()
    return train.Problem(
        (start,),
        Centre(at),
        lambda params, data: (params[0] - data.at, None),
        lambda f, data: f.square().sum(1) / 2,
        descent=lambda f, cache, data: (-f,),
        norm=(lambda D, data: 2 * train.norm(D)) if norm else None,
    )


@pytest.mark.parametrize("norm", [False, True])
def test_the_highest_point_of_a_bowl_is_straight_uphill(norm: bool) -> None:
    problem, r = bowl(norm), 0.7
    far = torch.tensor([5.0, 2.0]).double()
    reach = r / (2 if norm else 1)
    told = ((far + reach) ** 2 - far**2) / 2
    assert torch.allclose(measure.rise(problem, problem.start, r), told)
    assert torch.allclose(measure.rise(problem, problem.start, r, climbs=1), told)


def test_an_ascent_goes_round_a_hill_that_it_does_not_see_at_first() -> None:
    """A loss that rises along one axis at first and more along the other further out."""
    start = torch.zeros(1, 2).double()

    def outputs(params: train.Params, data: Centre) -> tuple[torch.Tensor, torch.Tensor]:
        x, y = params[0].T
        return x + 0.1 * y + 4 * y.square(), params[0]

    def descent(f: torch.Tensor, w: torch.Tensor, data: Centre) -> train.Params:
        return (-torch.stack([torch.ones_like(f), 0.1 + 8 * w[:, 1]], 1),)

    hill = train.Problem((start,), Centre(start), outputs, lambda f, data: f, descent=descent)
    angle = torch.linspace(0, 2 * torch.pi, 100_000).double()
    best = (angle.cos() + 0.1 * angle.sin() + 4 * angle.sin().square()).max()
    found = measure.rise(hill, hill.start, 1.0)
    assert measure.rise(hill, hill.start, 1.0, climbs=1) < 0.5 * best
    assert float(found) == pytest.approx(float(best), rel=1e-3)


def test_a_rise_asks_for_a_gradient() -> None:
    with pytest.raises(ValueError, match="descent"):
        measure.rise(bowl()._replace(descent=None), bowl().start, 1.0)
