"""Each remedy against the one line that says what it does to a step."""

from typing import NamedTuple

import numpy as np
import pytest
import torch
import xarray as xr

from fltutils import measure, models, remedies, signal_noise, train
from fltutils.signal_noise import SignalNoise

Q, P, ETA, D = 2, 0.2, 0.05, 300


def drawn(runs: int = 3) -> SignalNoise:
    return signal_noise.draw(n=12, d=D, mu=2.0, m=4, sigma0=0.05, runs=runs, seed=1)


def after(problem: train.Problem, steps: int = 1, **options: float) -> torch.Tensor:
    """The neurons' products with data after some steps."""
    state = train.train(problem, **{"eta": ETA, "steps": steps} | options).last  # type: ignore[arg-type]
    return signal_noise.products(state)


def plain(data: SignalNoise, batch: int | None = None, in_span: bool = True) -> train.Problem:
    return signal_noise.problem(data, q=Q, batch=batch, in_span=in_span)


def changes(problem: train.Problem) -> torch.Tensor:
    """What a step of a problem adds to the products."""
    return after(problem) - after(problem, 0)


@pytest.mark.parametrize("batch", [None, 6])
@pytest.mark.parametrize("name", remedies.REMEDIES)
def test_every_remedy_trains_and_moves_the_network(name: str, batch: int | None) -> None:
    data, (change, size, options) = drawn(), remedies.REMEDIES[name]
    if options.get("rule") in train.SEES_COORDINATES:
        data = signal_noise.in_space(data, D)
    options = {**options, **({"tau": 0.1} if name == "SAM" else {})}
    alone = "batches" in name or name == "small losses alone"
    more = {} if batch is None or alone else {"batch": batch}
    run = train.train(change(data, Q, P, ETA, **more), eta=size * ETA, steps=3, **options)
    A = signal_noise.products(run.last)
    assert bool(A.isfinite().all())
    assert not torch.allclose(A, after(plain(data), 0))


def test_smoothing_pulls_as_flips_do_on_average() -> None:
    data, f = drawn(), torch.linspace(-2, 2, 36).reshape(3, 12).double()
    data = data._replace(weight=torch.rand(3, 12).double())
    flipped = models.downhill(f, -data.y_obs, data.weight)
    mean = (1 - P) * models.downhill(f, data.y_obs, data.weight) + P * flipped
    assert torch.allclose(remedies.smoothed(f, data, P), mean)


def test_smoothing_sees_the_mini_batch() -> None:
    problem = remedies.smoothing(plain(drawn(), batch=6), Q, P)
    assert problem.draws is not None
    weight = next(problem.draws(problem.data))["weight"]
    (theta,) = train.train(problem, eta=ETA, steps=1).last.params
    seen = theta[..., 1:].abs().amax((1, 2)) > 0
    assert torch.equal(seen, weight > 0)


def test_noise_on_pulls_has_the_variance_of_flips() -> None:
    problem = remedies.pull_noise(plain(drawn(1)), Q, P)
    assert problem.draws is not None
    stream = problem.draws(problem.data)
    seen = torch.stack([next(stream)["drawn"] for _ in range(4000)])
    assert seen.var() == pytest.approx(P * (1 - P), rel=0.03)


def test_noise_on_pulls_is_a_pull_of_its_own() -> None:
    data = drawn()
    problem = remedies.pull_noise(plain(data, batch=6), Q, P)
    smooth = remedies.smoothing(plain(data, batch=6), Q, P)
    assert problem.draws is not None
    fields = next(problem.draws(problem.data))
    seen = problem.data._replace(**fields)
    f, A = problem.outputs(problem.start, problem.data)
    assert problem.descent is not None
    assert smooth.descent is not None
    (mean,), (found,) = smooth.descent(f, A, seen), problem.descent(f, A, seen)
    pull = data.y * fields["weight"] * fields["drawn"] / 12
    assert torch.allclose(found - mean, models.pull(A, data.y, pull, Q))


def test_weight_decay_shrinks_and_steps() -> None:
    problem = plain(drawn(), in_span=False)
    found = after(remedies.decayed(problem, 0.1 / ETA))
    assert torch.allclose(found, after(problem) - 0.1 * after(problem, 0))


def test_the_list_decays_by_a_thousandth_a_step() -> None:
    data = drawn()
    found = after(remedies.REMEDIES["weight decay"].problem(data, Q, P, ETA))
    assert torch.allclose(found, after(plain(data)) - 1e-3 * after(plain(data), 0))


class Line(NamedTuple):
    x: torch.Tensor


def line(descent: bool) -> train.Problem:
    """Two runs of f = w x + b with the loss f^2 / 2; its gradient by hand, or by autograd."""
    x = torch.tensor([1.0, 2.0]).double()

    def outputs(params: train.Params, data: Line) -> tuple[torch.Tensor, None]:
        return params[0] * data.x + params[1], None

    def by_hand(f: torch.Tensor, cache: None, data: Line) -> train.Params:
        return -f * data.x, -f

    start = torch.tensor([1.0, -1.0]).double(), torch.tensor([0.5, 2.0]).double()
    loss = lambda f, data: f.square() / 2  # noqa: E731
    return train.Problem(start, Line(x), outputs, loss, descent=by_hand if descent else None)


@pytest.mark.parametrize("descent", [True, False])
@pytest.mark.parametrize("rule", ["gd", "adam", "sam"])
def test_decay_takes_any_problem_and_rule(rule: str, descent: bool) -> None:
    """As the same rule on the loss with (weight / 2) ||w||^2 in it."""
    inner, options = line(descent), {"tau": 0.1} if rule == "sam" else {}

    def outputs(params: train.Params, data: Line) -> tuple[torch.Tensor, None]:
        f, _ = inner.outputs(params, data)
        return torch.stack([f, *params], 1), None

    def loss(seen: torch.Tensor, data: Line) -> torch.Tensor:
        return (seen[:, 0].square() + 0.3 * seen[:, 1:].square().sum(1)) / 2

    whole = inner._replace(outputs=outputs, loss=loss, descent=None)
    found, told = (
        train.train(p, rule=rule, eta=0.1, steps=4, **options).last.params
        for p in (remedies.decayed(inner, 0.3), whole)
    )
    assert all(torch.allclose(a, b) for a, b in zip(found, told, strict=True))


def test_coupled_and_decoupled_decay_agree_for_descent_and_differ_for_adam() -> None:
    start = line(True).start[0]
    coupled = train.train(remedies.decayed(line(True), 0.3), rule="adam", eta=0.1, steps=1)
    apart = train.train(line(True), rule="adamw", decay=0.3, eta=0.1, steps=1)
    adam = train.train(line(True), rule="adam", eta=0.1, steps=1)
    assert torch.allclose(apart.last.params[0], adam.last.params[0] - 0.03 * start)
    assert not torch.allclose(apart.last.params[0], coupled.last.params[0])


def test_dropout_of_none_is_descent_and_of_many_is_mostly_still() -> None:
    problem = plain(drawn())
    assert torch.allclose(after(remedies.masked(problem, Q, 0.0)), after(problem))
    moved = changes(remedies.masked(problem, Q, 0.9)).abs().amax(-1) > 0
    assert 0 < float(moved.double().mean()) < 0.5


def test_dropout_is_the_gradient_of_the_masked_network() -> None:
    problem = remedies.masked(plain(drawn(), batch=6, in_span=False), Q, 0.5)
    assert problem.draws is not None
    fields = next(problem.draws(problem.data))
    assert fields["drawn"].unique().tolist() == pytest.approx([0.0, 0.5 ** (-1 / Q)])
    by_autograd = problem._replace(
        data=problem.data._replace(**fields), draws=None, descent=None, norm=None
    )
    data = by_autograd.data
    theta = changes(by_autograd)
    W = signal_noise.problem(drawn(), q=Q, in_span=False).start[0]
    A = signal_noise.products(train.State((W,), data.y, data))
    f = models.cnn_from_products(A * data.drawn, data.y, Q)
    C = models.pull(A * data.drawn, data.y, models.downhill(f, data.y_obs, data.weight), Q)
    G = (data.X @ data.X.mT)[:, None]
    assert torch.allclose(theta, ETA * (C * data.drawn) @ G)


def test_a_random_climb_has_its_length_and_is_where_the_gradient_is_taken() -> None:
    problem = plain(drawn(), in_span=False)
    climb = remedies.shaken(problem, 0.7)
    assert climb.draws is not None
    assert problem.descent is not None
    kick = next(climb.draws(climb.data))["drawn"]
    assert torch.allclose(kick.square().sum((1, 2, 3)).sqrt(), torch.tensor(0.7).double())
    (W,) = problem.start
    (D,) = problem.descent(*problem.outputs((W + kick,), problem.data), problem.data)
    (found,) = train.train(climb, eta=ETA, steps=1).last.params
    assert torch.allclose(found, W + ETA * D)
    assert torch.equal(climb.outputs((W,), climb.data)[0], problem.outputs((W,), climb.data)[0])


def test_a_climb_under_descent_is_sam_and_goes_before_any_rule() -> None:
    problem = plain(drawn(), batch=6, in_span=False)
    found = after(remedies.climbed(problem, 0.1), 5)
    sam = train.train(problem, rule="sam", eta=ETA, steps=5, tau=0.1).last
    assert torch.allclose(found, signal_noise.products(sam))
    still = problem._replace(draws=None)
    (W,) = still.start
    assert still.descent is not None
    (D,) = still.descent(*still.outputs((W,), still.data), still.data)
    length = train.norm((D,))[:, None, None, None]
    (above,) = still.descent(*still.outputs((W - 0.1 * D / length,), still.data), still.data)
    climbed = remedies.climbed(still._replace(sees_coordinates=True), 0.1)
    (signs,) = train.train(climbed, rule="sign_gd", eta=ETA, steps=1).last.params
    assert torch.allclose(signs, W + ETA * above.sign())
    flat = remedies.climbed(still._replace(norm=None), 0.1)
    assert torch.allclose(after(flat), after(climbed))


@pytest.mark.parametrize(
    "name",
    ["gradient descent", "mini-batches of 10", "mini-batches of 1", "label smoothing",
     "flips that stay", "noise on the pulls", "dropout of half", "fresh flips"],
)  # fmt: skip
def test_a_remedy_on_weights_walks_the_path_of_its_coefficients(name: str) -> None:
    data, change = drawn(), remedies.REMEDIES[name].problem
    paths = [after(change(data, Q, P, ETA, in_span=x), 5) for x in (True, False)]
    assert torch.allclose(*paths)


def test_flips_that_stay_are_a_share_of_the_labels() -> None:
    data = drawn(200)
    wrong = (remedies.flipped_once(data, P).y_obs != data.y_obs).double()
    assert float(wrong.mean()) == pytest.approx(P, abs=0.03)
    again = remedies.flipped_once(data, P).y_obs
    assert np.array_equal(again, remedies.flipped_once(data, P).y_obs)


def test_noise_on_the_gradient_is_as_large_as_said() -> None:
    problem = plain(drawn(1), in_span=False)
    noisy = remedies.gradient_noise(problem, 0.3)
    assert noisy.draws is not None
    stream = noisy.draws(noisy.data)
    seen = torch.stack([next(stream)["drawn"] for _ in range(200)])
    assert float(seen.std()) == pytest.approx(0.3, rel=0.02)
    first = next(noisy.draws(noisy.data))["drawn"]
    (found,), (still,) = (train.train(p, eta=ETA, steps=1).last.params for p in (noisy, problem))
    assert torch.allclose(found, still + ETA * first)


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


def test_stopped_is_where_the_held_out_samples_say() -> None:
    table = xr.Dataset(
        {
            "held": (("run", "step", "c"), np.array([[[3, 1], [1, 2], [2, 3.0]]] * 2)),
            "error": (("run", "step"), np.array([[0.3, 0.2, 0.1], [0.6, 0.5, 0.4]])),
        },
        coords={"step": [0, 5, 10]},
    )
    found = remedies.stopped(table, "held")
    assert found.error.transpose("run", "c").values.tolist() == [[0.2, 0.3], [0.5, 0.6]]
    assert found.step.transpose("run", "c").values.tolist() == [[5, 0], [5, 0]]


def test_held_out_samples_are_no_test_samples() -> None:
    state = train.train(plain(drawn()), eta=ETA, steps=5).last
    margins = measure.fresh_margins(state, q=Q, samples=50)
    loss = measure.held_out_loss(state, q=Q, samples=50)
    assert loss.shape == (3,)
    assert not torch.allclose(loss, torch.nn.functional.softplus(-margins).mean(1))
    many, test = (
        measure.held_out_loss(state, q=Q, samples=20000),
        measure.test_loss(state, q=Q, samples=20000),
    )
    assert torch.allclose(many, test, rtol=0.02)


def test_in_space_descent_walks_the_same_path_and_no_axis_is_special() -> None:
    data = drawn()
    whole = signal_noise.in_space(data, D)
    assert whole.X.shape == (3, 13, D)
    assert torch.allclose(whole.X @ whole.X.mT, data.X @ data.X.mT)
    assert not whole.embedded
    assert torch.allclose(after(plain(whole, in_span=False), 5), after(plain(data), 5))
    assert float(whole.mu.abs().amax(1).max()) < 0.5 * 2.0
    tested = (measure.test_error(train.train(plain(x, in_span=False), eta=ETA, steps=5).last, q=Q)
              for x in (data, whole))  # fmt: skip
    assert np.allclose(*tested, atol=0.05)
