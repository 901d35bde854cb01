"""The batched loop: exact in any coordinates, run by run, stopped, recorded, and its refusals."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fltutils import measure, signal_noise, train
from fltutils.signal_noise import SignalNoise
from tests.fltutils import plain
from tests.fltutils.batches import basis, batch, embedded, trained

VARIANTS: dict[str, dict[str, Any]] = {
    "gd": {},
    "momentum": {"rule": "momentum", "beta": 0.8},
    "sam": {"rule": "sam", "tau": 0.1},
    "label noise": {"label_noise": 0.2},
    "mini-batches": {"batch": 4},
    "all at once": {"rule": "sam", "tau": 0.05, "label_noise": 0.2, "batch": 3},
}
COORDINATES: dict[str, dict[str, Any]] = {
    "sign-GD": {"rule": "sign_gd", "label_noise": 0.1, "eta": 0.002},
    "Adam": {"rule": "adam", "batch": 4, "eta": 0.002},
}


def draws(s: SignalNoise, run: int, variant: dict[str, Any]) -> Iterator[plain.Step] | None:
    """The labels and the mini-batches that the loop draws for a run."""
    p, size = variant.get("label_noise", 0.0), variant.get("batch")
    if not p and size is None:
        return None
    steps = signal_noise.noisy_labels(s, p, size)
    return (
        (
            fields.get("y_obs", s.y_obs)[run],
            None if size is None else fields["weight"][run].nonzero()[:, 0],
        )
        for fields in steps
    )


@pytest.mark.parametrize("name", VARIANTS)
@settings(max_examples=6)
@given(st.integers(0, 10**4), st.sampled_from([1, 2, 3]))
def test_the_embedding_is_exact_path_by_path(name: str, seed: int, q: int) -> None:
    """A plain loop in R^d passes through Q W_r(t), the loop in the coordinates of Q."""
    variant, steps = VARIANTS[name], 30
    problems = [plain.problem(seed + i, n=7, m=3, d=40) for i in range(2)]
    s = batch([embedded(p) for p in problems], seed=seed)
    W_r = signal_noise.weights(trained(s, q=q, eta=0.05, steps=steps, **variant).last)
    for i, p in enumerate(problems):
        W = plain.descend(
            p, q, 0.05, steps, beta=variant.get("beta", 0.0), tau=variant.get("tau", 0.0),
            draws=draws(s, i, variant),
        )  # fmt: skip
        Q, moved = basis(p), (W - p.W0).norm()
        assert moved > 0
        assert (W @ Q - W_r[i]).norm() / moved < 1e-10
        assert (W_r[i] @ Q.T - W).norm() / moved < 1e-10


def trained_in_law(direct: SignalNoise, drawn: SignalNoise) -> list[float]:
    """Distances of the two populations: test error, mean gamma, largest rho after training."""
    found = []
    for s in (direct, drawn):
        last = trained(s, q=1, eta=0.3, steps=40).last
        found.append(
            [
                measure.test_error(last, q=1, samples=200),
                measure.gamma(last).mean((1, 2)),
                measure.rho(last).amax((1, 2, 3)),
            ]
        )
    return [plain.distance(u, v) for u, v in zip(*found, strict=True)]


def populations(d: int, projected: bool, size: int = 500) -> tuple[SignalNoise, SignalNoise]:
    """Problems drawn in R^d, and batches that fltutils draws."""
    problems = [plain.problem(i, d=d, flip=0.1, projected=projected) for i in range(size)]
    drawn = signal_noise.draw(
        n=6, d=d, mu=3.0, m=3, sigma0=0.1, flip=0.1, projected=projected, runs=size, seed=1
    )
    return batch(problems, projected=projected), drawn


@pytest.mark.parametrize(("d", "projected"), [(40, True), (40, False), (13, True), (9, True)])
def test_drawn_coordinates_have_the_law_of_r_d(d: int, projected: bool) -> None:
    """Also at the edge d = 1 + n + k = 13, and below it, where coordinates are those of R^d."""
    direct, drawn = populations(d, projected)
    assert drawn.embedded == (d > 13)
    assert drawn.X.shape[-1] == min(d, 13)
    assert max(trained_in_law(direct, drawn)) < plain.critical(500, 500)


def test_the_law_tells_dimensions_apart() -> None:
    """The test above can fail: at another d the populations differ."""
    direct, _ = populations(40, True)
    _, drawn = populations(80, True)
    assert max(trained_in_law(direct, drawn)) > 2 * plain.critical(500, 500)


def problems_in_d(size: int = 4) -> SignalNoise:
    return batch([plain.problem(i, n=7, m=3, d=30) for i in range(size)], seed=5)


@pytest.mark.parametrize("stop", [None, 0.55])
@pytest.mark.parametrize("name", [*VARIANTS, *COORDINATES])
def test_a_batch_of_one_is_a_batch_of_many(name: str, stop: float | None) -> None:
    variant: dict[str, Any] = {"eta": 0.05, **{**VARIANTS, **COORDINATES}[name]}
    together = problems_in_d()
    many = trained(together, q=2, steps=30, stop=stop, **variant)
    assert stop is None or many.steps.min() < many.steps.max()
    for i in range(4):
        one = trained(train.pick(together, torch.tensor([i])), q=2, steps=30, stop=stop, **variant)
        assert one.steps[0] == many.steps[i]
        torch.testing.assert_close(one.loss[0], many.loss[i], rtol=1e-12, atol=1e-13)
        torch.testing.assert_close(one.last.f[0], many.last.f[i], rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(
            one.last.params[0][0], many.last.params[0][i], rtol=1e-12, atol=1e-12
        )


def assert_same_leaves(one: train.Trained, many: train.Trained, i: int, atol: float) -> None:
    """The one run of a batch of one ends where run i of the other does."""
    for a, b in zip(one.last.params, many.last.params, strict=True):
        torch.testing.assert_close(a[0], b[i], rtol=1e-12, atol=atol)


def test_rates_may_differ_between_runs() -> None:
    together = problems_in_d(3)
    many = trained(together, eta=[0.0, 0.05, 0.1], steps=10)
    assert torch.equal(signal_noise.weights(many.last)[0], together.W0[0])
    for i, eta in ((1, 0.05), (2, 0.1)):
        one = trained(train.pick(together, torch.tensor([i])), eta=eta, steps=10)
        torch.testing.assert_close(
            one.last.params[0][0], many.last.params[0][i], rtol=1e-12, atol=1e-14
        )


RECORD: dict[str, train.Recorder] = {
    "loss": measure.train_loss,
    "gamma": measure.gamma,
    "f": lambda s: s.f,
}
STOPPED = [
    {"eta": [0.2, 0.1, 0.05, 0.0]},
    {"eta": [0.1, 0.02, 0.01, 0.0], "rule": "momentum", "label_noise": 0.1, "batch": 4},
    {"eta": [0.02, 0.01, 0.005, 0.0], "rule": "adam"},
]


@pytest.mark.parametrize("variant", STOPPED, ids=["gd", "noisy momentum", "adam"])
def test_a_run_that_stops_is_frozen_there(variant: dict[str, Any]) -> None:
    """A stopped run is a run of exactly that many steps; the last one never stops."""
    s, steps, stop = problems_in_d(), 60, 0.4
    many = trained(s, q=1, steps=steps, stop=stop, record=RECORD, every=4, **variant)
    taken = many.steps.tolist()
    assert len(set(taken)) == 4
    assert taken[3] == steps
    assert (many.loss[:3] <= stop).all()
    assert many.loss[3] > stop
    assert many.times.tolist() == list(range(0, steps + 1, 4))
    for i, t in enumerate(taken):
        alone = train.pick(s, torch.tensor([i]))
        rest = {k: v for k, v in variant.items() if k != "eta"}
        one = trained(alone, q=1, steps=t, eta=variant["eta"][i], record=RECORD, every=1, **rest)
        assert (one.history["loss"][:-1] > stop).all()
        torch.testing.assert_close(
            one.last.params[0][0], many.last.params[0][i], rtol=1e-12, atol=1e-13
        )
        torch.testing.assert_close(one.loss[0], many.loss[i], rtol=1e-12, atol=1e-13)
        at = many.times.clamp(max=t)  # the history follows the run, then keeps where it stopped
        for name, series in many.history.items():
            torch.testing.assert_close(
                series[:, i], one.history[name][at, 0], rtol=1e-12, atol=1e-13
            )


@pytest.mark.parametrize("auto", [False, True])
@pytest.mark.parametrize("rule", ["gd", "adam"])
def test_outputs_that_draws_leave_alone_are_computed_once_a_step(auto: bool, rule: str) -> None:
    """The same runs either way; a run that stops on the way included."""
    data = signal_noise.draw(n=8, d=14, mu=2.0, m=3, sigma0=0.1, runs=4, seed=3)
    known = signal_noise.problem(data, batch=3, label_noise=0.1, in_span=False)
    calls = [0, 0]

    def counted(i: int) -> train.Problem:
        def outputs(params: Any, data: Any) -> Any:
            calls[i] += 1
            return known.outputs(params, data)

        descent = None if auto else known.descent
        return known._replace(outputs=outputs, descent=descent, draws_labels=bool(i))

    def run(i: int) -> train.Trained:
        eta = 0.5 if rule == "gd" else 0.02
        seen = {"loss": measure.train_loss}
        return train.train(counted(i), rule=rule, eta=eta, steps=40, stop=0.3, record=seen, every=7)

    plainly, once = run(0), run(1)
    assert 0 < plainly.steps.min() < plainly.steps.max()
    assert torch.equal(plainly.steps, once.steps)
    assert torch.equal(plainly.last.params[0], once.last.params[0])
    assert torch.equal(plainly.history["loss"], once.history["loss"])
    assert calls[1] < 0.75 * calls[0]  # once more where a run stops


def test_when_all_have_stopped_the_loop_ends() -> None:
    s = problems_in_d(2)
    run = trained(s, eta=0.1, steps=10**9, stop=0.6, record={"f": lambda s: s.f})
    assert len(run.times) == int(run.steps.max()) + 1 < 1000
    at_once = trained(s, eta=0.1, steps=10, stop=100.0)
    assert at_once.steps.tolist() == [0, 0]
    assert torch.equal(signal_noise.weights(at_once.last), s.W0)


@pytest.mark.parametrize("every", [1, 3, 7, 100])
def test_recorders_see_every_so_many_steps(every: int) -> None:
    s = problems_in_d(2)
    run = trained(s, q=2, eta=0.05, steps=20, record=RECORD, every=every)
    assert run.times.tolist() == list(range(0, 21, every))
    assert {k: v.shape for k, v in run.history.items()} == {
        "loss": (len(run.times), 2),
        "gamma": (len(run.times), 2, 2, 3),
        "f": (len(run.times), 2, 7),
    }
    for t, loss, f in zip(run.times.tolist(), run.history["loss"], run.history["f"], strict=True):
        there = trained(s, q=2, eta=0.05, steps=t)
        torch.testing.assert_close(there.loss, loss, rtol=1e-12, atol=0)
        torch.testing.assert_close(there.last.f, f, rtol=1e-12, atol=1e-14)


def test_no_steps_and_no_recorders() -> None:
    s = problems_in_d(2)
    run = trained(s, eta=0.1, steps=0)
    assert torch.equal(signal_noise.weights(run.last), s.W0)
    assert run.history == {}
    assert run.times.tolist() == []
    torch.testing.assert_close(run.loss, measure.train_loss(run.last))


def test_a_snapshot_agrees_with_itself() -> None:
    s = problems_in_d(2)
    for variant in ({"rule": "gd"}, {"rule": "adam"}):
        last = trained(s, eta=0.01, steps=15, **variant).last  # type: ignore[arg-type]
        assert (last.data.G is not None) == (variant["rule"] == "gd")
        W = signal_noise.weights(last)
        A = signal_noise.products(last)
        torch.testing.assert_close(A, W @ s.X.transpose(1, 2)[:, None], rtol=0, atol=1e-12)


@settings(max_examples=5)
@given(st.integers(0, 99), st.integers(1, 7))
def test_an_epoch_of_mini_batches_takes_no_sample_twice(seed: int, size: int) -> None:
    s = problems_in_d(2)._replace(seed=seed)
    steps = signal_noise.noisy_labels(s, 0.0, size)
    for _ in range(3):
        epoch = torch.stack([next(steps)["weight"] for _ in range(7 // size)])
        assert ((epoch > 0).sum(0) <= 1).all()
        assert ((epoch > 0).sum(-1) == size).all()
        torch.testing.assert_close(epoch.sum(-1), torch.full_like(epoch[..., 0], 7.0))


def test_label_noise_flips_at_its_rate_and_never_keeps_a_flip() -> None:
    s = signal_noise.draw(n=100, d=200, mu=1.0, m=1, sigma0=0.1, flip=0.1, runs=20)
    steps = signal_noise.noisy_labels(s, 0.3, None)
    flips = torch.stack([next(steps)["y_obs"] != s.y_obs for _ in range(50)]).double()
    assert abs(flips.mean() - 0.3) < 5 * (0.21 / flips.numel()) ** 0.5
    again = (flips[1:] * flips[:-1]).mean()  # independent of the step before: p^2
    assert abs(again - 0.09) < 5 * (0.09 / flips.numel()) ** 0.5


@pytest.mark.parametrize("rule", ["gd", "momentum"])
def test_divergence_names_run_step_and_eta(rule: str) -> None:
    s = problems_in_d(3)
    with pytest.raises(FloatingPointError) as caught:
        trained(s, q=3, rule=rule, eta=[0.01, 0.02, 4000.0], steps=100)
    found = re.fullmatch(
        r"run 2 diverged at step (\d+): eta = 4000 is too large; try a smaller eta",
        str(caught.value),
    )
    assert found
    assert 0 < int(found[1]) <= 100


def test_divergence_is_named_after_others_have_stopped() -> None:
    s = problems_in_d(3)
    start = trained(s, q=3, eta=0.01, steps=0).loss
    s = train.pick(s, start.argsort())  # run 0 has stopped at step 0, the others have not
    stop = float(start.min())
    with pytest.raises(FloatingPointError, match=r"run 2 diverged at step \d+: eta = 5000 is"):
        trained(s, q=3, eta=[0.1, 1e-6, 5000.0], steps=100, stop=stop)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"q": 0}, "q = 0: q must be a whole number >= 1"),
    ({"q": 1.5}, "q = 1.5: q must be a whole number >= 1"),
    ({"q": True}, "q = True: q must be a whole number >= 1"),
    (
        {"rule": "newton"},
        "rule = 'newton': rule must be one of 'adam', 'adamw', 'gd', 'momentum', 'sam', 'sign_gd'",
    ),
    ({"eta": -0.1}, "eta = -0.1: eta must be finite and >= 0"),
    ({"eta": float("nan")}, "eta = nan: eta must be finite and >= 0"),
    ({"eta": [0.1, float("inf"), 0.1]}, "eta = inf: eta must be finite and >= 0"),
    ({"eta": [0.1, 0.1]}, "eta has shape (2,): eta must have shape (3,)"),
    ({"eta": [[0.1]]}, "eta has shape (1, 1): eta must have shape (3,)"),
    ({"steps": -1}, "steps = -1: steps must be a whole number >= 0"),
    ({"steps": 10.0}, "steps = 10.0: steps must be a whole number >= 0"),
    ({"every": 0}, "every = 0: every must be a whole number >= 1"),
    ({"stop": 0.0}, "stop = 0.0: stop must be finite and > 0"),
    ({"stop": float("nan")}, "stop = nan: stop must be finite and > 0"),
    ({"stop": [0.1, 0.1, 0.1]}, "stop has shape (3,): stop must have shape ()"),
    ({"label_noise": 0.5}, "label_noise = 0.5: label_noise must be in [0, 0.5)"),
    ({"label_noise": -0.2}, "label_noise = -0.2: label_noise must be in [0, 0.5)"),
    ({"label_noise": [0.1, 0.1]}, "label_noise has shape (2,): label_noise must have shape ()"),
    ({"batch": 0}, "batch = 0: batch must be a whole number >= 1"),
    ({"batch": 2.0}, "batch = 2.0: batch must be a whole number >= 1"),
    ({"batch": 8}, "batch = 8: batch must be a whole number from 1 to n = 7"),
]


@pytest.mark.parametrize(("bad", "message"), BAD)
def test_train_refuses(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        trained(problems_in_d(3), **{"eta": 0.1, "steps": 2, **bad})


@pytest.mark.parametrize("rule", ["sign_gd", "adam"])
def test_rules_that_see_coordinates_refuse_drawn_ones(rule: str) -> None:
    """In r < d coordinates they would be other algorithms; where r = d they are themselves."""
    make: Callable[..., SignalNoise] = signal_noise.draw
    sizes: dict[str, Any] = {"n": 4, "mu": 2.0, "m": 2, "sigma0": 0.1}
    with pytest.raises(ValueError, match=rf"rule = '{rule}': {rule} sees coordinates"):
        trained(make(d=100, **sizes), rule=rule, eta=0.01, steps=2)
    assert trained(make(d=9, **sizes), rule=rule, eta=0.01, steps=2).steps.tolist() == [2]


def test_the_cost_does_not_know_the_dimension() -> None:
    shapes = set()
    for d in (10**3, 10**6, 10**15):
        s = signal_noise.draw(n=5, d=d, mu=2.0, m=2, sigma0=0.1)
        run = trained(s, eta=1e-3 / d, steps=3)
        shapes.add((s.X.shape, run.last.params[0].shape))
        assert torch.isfinite(run.loss).all()
    assert len(shapes) == 1
