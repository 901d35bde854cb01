"""Each remedy against the one line that says what it does to a step."""

import numpy as np
import pytest
import torch

from fltutils import models, remedies, signal_noise, train
from fltutils.signal_noise import SignalNoise

Q, P, ETA = 2, 0.2, 0.05


def drawn(runs: int = 3) -> SignalNoise:
    return signal_noise.draw(n=12, d=300, mu=2.0, m=4, sigma0=0.05, runs=runs, seed=1)


def after(problem: train.Problem, steps: int = 1) -> torch.Tensor:
    """The neurons' products with data after some steps."""
    state = train.train(problem, eta=ETA, steps=steps).last
    return signal_noise.products(state)


def plain(data: SignalNoise, steps: int = 1) -> torch.Tensor:
    return after(signal_noise.problem(data, q=Q), steps)


@pytest.mark.parametrize("name", remedies.REMEDIES)
def test_every_remedy_trains_and_moves_the_network(name: str) -> None:
    data = drawn()
    problem, size, options = remedies.REMEDIES[name]
    options = options | ({"tau": 0.1} if name == "SAM" else {})
    run = train.train(problem(data, Q, P, ETA), eta=size * ETA, steps=3, **options)
    A = signal_noise.products(run.last)
    assert bool(A.isfinite().all())
    assert not torch.allclose(A, plain(data, steps=0))


def test_smoothing_pulls_as_flips_do_on_average() -> None:
    data, f = drawn(), torch.linspace(-2, 2, 36).reshape(3, 12).double()
    flipped = models.downhill(f, -data.y_obs)
    mean = (1 - P) * models.downhill(f, data.y_obs) + P * flipped
    assert torch.allclose(remedies.smoothed(f, data, P), mean)


def test_noise_on_pulls_has_the_variance_of_flips() -> None:
    data = drawn(1)
    draws = remedies.pull_noise(data, Q, P).draws
    assert draws is not None
    stream = draws(data)
    seen = torch.stack([next(stream)["weight"] for _ in range(4000)])
    assert seen.var() == pytest.approx(P * (1 - P), rel=0.03)


def test_weight_decay_shrinks_and_steps() -> None:
    data = drawn()
    found = after(remedies.decay(data, Q, 0.1, ETA))
    assert torch.allclose(found, plain(data) - 0.1 * plain(data, steps=0))


def test_dropout_of_none_is_descent_and_of_many_is_mostly_still() -> None:
    data = drawn()
    assert torch.allclose(after(remedies.masked(data, Q, 0.0)), plain(data))
    moved = (after(remedies.masked(data, Q, 0.9)) - plain(data, steps=0)).abs().amax(-1) > 0
    assert 0 < float(moved.double().mean()) < 0.5


def test_flips_that_stay_are_a_share_of_the_labels() -> None:
    data = drawn(200)
    wrong = (remedies.flipped_once(data, P).y_obs != data.y_obs).double()
    assert float(wrong.mean()) == pytest.approx(P, abs=0.03)
    again = remedies.flipped_once(data, P).y_obs
    assert np.array_equal(again, remedies.flipped_once(data, P).y_obs)


def test_noise_on_the_gradient_is_as_large_as_said() -> None:
    data = drawn(1)
    draws = remedies.gradient_noise(data, Q, 0.3).draws
    assert draws is not None
    stream = draws(data)
    seen = torch.stack([next(stream)["weight"] for _ in range(200)])
    assert float(seen.std()) == pytest.approx(0.3, rel=0.02)


def test_small_losses_alone_goes_on_without_the_samples_that_are_rejected() -> None:
    data = signal_noise.draw(n=40, d=4000, mu=40.0, m=6, sigma0=1e-4, flip=0.2, runs=3, seed=1)
    eta = 0.04 * 40 * 6 / 4000
    problem = remedies.small_losses(data, 1, eta)
    flipped = data.y != data.y_obs
    assert torch.equal(problem.data.weight == 0, flipped)
    then = train.train(signal_noise.problem(data), eta=eta, steps=25).last  # T = 1
    assert torch.allclose(problem.start[0], then.params[0], rtol=0.1, atol=1e-3)
    late = train.train(problem, eta=eta, steps=300).last
    assert ((data.y_obs * late.f > 0) == ~flipped).all()
