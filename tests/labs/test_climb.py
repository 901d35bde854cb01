"""The lab on SAM, against `train`, `measure` and the chapter's own functions."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from fltutils import measure, models, signal_noise, train
from tests.fltutils.test_chapters import definitions
from tests.labs.compare import FOLDER, apart
from tests.labs.test_coordinates import fed
from tests.labs.test_physics import Params
from tools.labs import climb, configs
from tools.labs.batches import deal
from tools.labs.models import MODELS, Model
from tools.labs.replay import draws, replay, sources

pytestmark = pytest.mark.slow
MODEL = MODELS["climb"]
RUNS: list[Params] = [
    {"seed": 3, "steps": 40, "n": 12, "m": 4, "d": 300, "mu": 2.5, "sigma0": 0.5, "flip": 0.2,
     "rate": 0.6, "batch": 5, "tau": 0.2, "span": 0.3},
    {"seed": 5, "steps": 30, "n": 9, "m": 5, "d": 2000, "mu": 5, "sigma0": 0.3, "flip": 0.3,
     "rate": 1.2, "batch": 9, "tau": 0.05, "span": 5},
]  # fmt: skip


def coordinates(model: Model, params: Params) -> signal_noise.SignalNoise:
    """A run's data and start, in the page's coordinates, as `given` takes them."""
    env = replay(model, params | {"steps": 0})["env"]
    X, W0, y, y_obs = (env[name].numpy()[None] for name in ("X", "W0", "y", "y_obs"))
    return signal_noise.given(X[:, 0], X[:, 1:], y, W0, y_obs=y_obs)


def errors(s: train.State, E: torch.Tensor, q: int) -> torch.Tensor:
    """The network itself on fresh samples: the signal, and noise E without a part along it."""
    W, mu = signal_noise.weights(s), s.data.mu
    xi = E.clone()
    xi[:, 0] = 0.0  # mu is the first axis
    both = [
        label * models.cnn(W, (label * mu)[:, None].expand(-1, len(E), -1), xi[None], q)
        for label in (1.0, -1.0)
    ]
    return measure.error(torch.cat(both, 1))


def phase(params: Params) -> int:
    """Steps after which gamma would be 1 at its first speed, as in the chapter, times span."""
    p = params
    first = 4 * p["d"] / (p["rate"] * p["batch"] * (1 - 2 * p["flip"]) * p["mu"] ** 2)
    return math.floor(p["span"] * first + 0.5)


@pytest.mark.parametrize("params", RUNS)
def test_each_record_is_the_packages(params: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    """SAM for the phase and SGD after it, and SGD alone, on the same batches."""
    n, steps = int(params["n"]), int(params["steps"])
    eta, change = params["rate"] * params["m"] * params["batch"] / params["d"], phase(params)
    fed(monkeypatch, "climb", params)
    E, data = draws(MODEL, params)["E"], coordinates(MODEL, params)
    assert (data.y != data.y_obs).any()
    batch = None if params["batch"] == n else int(params["batch"])
    problem = signal_noise.problem(data, batch=batch)
    record = {
        "test_error": lambda s: errors(s, E, 1),
        "train_error": measure.train_error,
        "gamma": lambda s: measure.gamma(s).mean((1, 2)),
        "rho": lambda s: measure.rho(s).clamp(min=0).sum(-1).mean((1, 2)),
        "memorised": lambda s: ((s.data.y != s.data.y_obs) & (s.data.y_obs * s.f > 0)).sum(1),
    }
    alone = train.train(problem, eta=eta, steps=steps, record=record).history

    def part(start: train.Problem, count: int, tau: float) -> train.Trained:
        return train.train(start, rule="sam", eta=eta, steps=count, tau=tau, record=record)

    rows = problem.draws(data) if problem.draws else None  # goes on from one phase to the next
    going = problem._replace(draws=(lambda _: rows) if rows else None)
    first = part(going, min(change, steps), params["tau"])
    then = part(going._replace(start=first.last.params), steps - min(change, steps), 0.0)
    found = replay(MODEL, params, records=steps)["curves"]
    assert found["phase"][-1] == change
    for key in record:
        both = torch.cat([first.history[key], then.history[key][1:]])[:, 0]
        assert apart(both, found[key]) < 1e-9, key
        if key in ("test_error", "gamma", "rho"):
            assert apart(alone[key][:, 0], found[f"{key}_sgd"]) < 1e-9, key
    flips = float((data.y != data.y_obs).sum())
    assert found["flips"] == [flips] * (steps + 1)
    speed = eta * (1 - 2 * params["flip"]) * params["mu"] ** 2 / (4 * params["m"])
    assert apart(speed * np.arange(steps + 1), found["gamma_theory"]) < 1e-12


@pytest.mark.parametrize("params", RUNS)
def test_who_is_awake_is_what_the_chapters_climb_leaves(params: Params) -> None:
    """Products of own-label neurons above zero, before the first step's climb and at its top."""
    chapter = definitions("sharpness_aware", "pulls", "push", "climbed")
    chapter["climbed"].__globals__.update(models=models, signal_noise=signal_noise)
    data = signal_noise.with_products(coordinates(MODEL, params))
    assert data.A0 is not None
    B, n = int(params["batch"]), int(params["n"])
    rank = next(sources(MODEL, params)["R"]).argsort().argsort()
    weight = (rank < B).double() * n / B
    A = data.A0.view(1, 2, int(params["m"]), 1 + n)
    data = data._replace(weight=weight[None])
    C = chapter["push"](A, chapter["pulls"](A, data), data)
    top = chapter["climbed"](A, C, data, params["tau"])
    run = replay(MODEL, params | {"steps": 1}, records=1)["curves"]
    for key, products in (("before", A), ("top", top)):
        own = torch.where(data.y_obs[:, None] > 0, products[:, 0, :, 1:], products[:, 1, :, 1:])
        share = (own > 0).double().mean(1)[0]
        start = torch.tensor(run[key][0], dtype=share.dtype)
        assert apart(torch.where(weight > 0, share, start), run[key][1]) < 1e-12, key
    assert run["awake"][1] < run["awake_before"][1]


def test_the_switch_is_the_radius_of_the_chapter() -> None:
    """tau* = sigma_0 m sqrt(B), equation (eq-sam-radius), and the step rate m B / d."""
    p = RUNS[0]
    env = replay(MODEL, p | {"steps": 0})["env"]
    star = p["sigma0"] / p["d"] ** 0.5 * p["m"] * p["batch"] ** 0.5
    assert float(env["ratio"]) == pytest.approx(p["tau"] / star, rel=1e-12)
    assert float(env["eta"]) == pytest.approx(p["rate"] * p["m"] * p["batch"] / p["d"], rel=1e-12)


def test_the_share_that_survives_the_first_climb_is_the_tail(node: Any) -> None:
    """2 Q(tau / tau_c), at d of a million, where patches are orthogonal; means of forty starts."""
    base = configs.load("sharpness_aware")["params"] | {"d": 1e6, "batch": 20, "steps": 1}
    critical = base["sigma0"] * (base["m"] * base["batch"] / base["d"]) ** 0.5
    shares = (0.5, 1.0, 2.0)
    runs = [
        {"what": "run", "model": "climb", "params": base | {"seed": seed, "tau": x * critical},
         "options": {"records": 1}}
        for x in shares for seed in range(40)
    ]  # fmt: skip
    done = node([(FOLDER / "climb.js").read_text()], runs)
    left = [run["curves"]["awake"][1] / run["curves"]["awake_before"][1] for run in done]
    found = np.array(left).reshape(3, 40).mean(1)
    for x, share in zip(shares, found, strict=True):
        tail = math.erfc(x / 2**0.5)
        # 4000 own-label products at the start; the length of the gradient varies by a few percent
        assert share == pytest.approx(tail, abs=0.03)


def test_a_batch_is_the_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four epochs: the same samples in the same steps, the same weights."""
    params = RUNS[0]
    fed(monkeypatch, "climb", params)
    data = coordinates(MODEL, params)
    theirs = signal_noise.noisy_labels(data, 0.0, int(params["batch"]))
    uniforms = sources(MODEL, params)["R"]
    dealt, order = torch.zeros(()).double(), next(sources(MODEL, params)["R"])
    for _ in range(8):
        out = deal(next(uniforms), order, dealt, torch.tensor(params["batch"]).double())
        order, dealt = out["order"], out["dealt"]
        assert apart(next(theirs)["weight"][0], out["weight"]) < 1e-15


def test_the_two_networks_share_data_and_start() -> None:
    env = replay(MODEL, RUNS[0] | {"steps": 0})["env"]
    data = climb.pair(*(env[name] for name in ("A0", "G", "y", "y_obs", "X", "W0")))
    for name, value in data._asdict().items():
        if isinstance(value, torch.Tensor):
            assert torch.equal(value[0], value[1]), name
    assert not env["C"].any()
