"""The lab on Adam, against `train`, `rules`, `measure` and the chapter's own functions."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from fltutils import measure, signal_noise, sparse, train
from tests.labs.compare import FOLDER, apart
from tests.labs.test_physics import Params
from tools.labs import configs
from tools.labs.models import MODELS
from tools.labs.replay import draws, replay, sources

pytestmark = pytest.mark.slow
MODEL = MODELS["coordinates"]
RULES = ("gd", "sign_gd", "adam")
RUNS: list[Params] = [
    {"seed": 3, "steps": 40, "n": 9, "m": 4, "s": 12, "length": 1, "alpha": 0.2, "sigma0": 0.01,
     "batch": 9, "rule": 0, "rate": 1.5},
    {"seed": 4, "steps": 60, "n": 12, "m": 3, "s": 10, "length": 1.5, "alpha": 0.3, "sigma0": 0.02,
     "batch": 5, "rule": 1, "rate": 0.5},
    {"seed": 5, "steps": 60, "n": 10, "m": 5, "s": 15, "length": 1, "alpha": 0.2, "sigma0": 0.01,
     "batch": 3, "rule": 2, "rate": 1},
    {"seed": 6, "steps": 50, "n": 8, "m": 4, "s": 9, "length": 2, "alpha": 0, "sigma0": 0.01,
     "batch": 8, "rule": 2, "rate": 2},
]  # fmt: skip


class Page:
    """A run's generator of orders and flips, from the uniforms that a page draws a step."""

    def __init__(self, model: str, params: Params) -> None:
        self.steps = int(params["n"]) // int(params.get("batch", params["n"]))  # an epoch
        self.R = sources(MODELS[model], params)["R"]
        self.orders: Iterator[torch.Tensor] = itertools.islice(
            sources(MODELS[model], params)["R"], 0, None, self.steps
        )

    def permutation(self, n: int) -> np.ndarray:
        return next(self.orders).argsort().numpy()

    def random(self, size: tuple[int, int]) -> np.ndarray:
        """Those of so many steps; past the last step of the run, what is never used."""
        ahead = [row.numpy() for row in itertools.islice(self.R, size[0])]
        return np.stack(ahead + [np.zeros(size[1])] * (size[0] - len(ahead)))


def fed(monkeypatch: pytest.MonkeyPatch, model: str, params: Params) -> None:
    """`signal_noise` draws its batches and flips from the page."""
    monkeypatch.setattr(signal_noise.span, "stream", lambda *_: Page(model, params))


def dense(params: Params) -> signal_noise.SignalNoise:
    """The page's run in the chapter's columns: coordinate 1, then s for each sample."""
    p, raw = params, {k: v.numpy() for k, v in draws(MODEL, params).items()}
    y = np.where(raw["U"] > 0.5, 1.0, -1.0)
    xi = sparse.patches(y, p["length"] / p["s"] ** 0.5 * raw["Z"], p["alpha"])
    W0 = np.concatenate([raw["W0"][..., None], raw["V0"].reshape(2, int(p["m"]), -1)], 2)
    mu = np.eye(1, xi.shape[1])
    return signal_noise.given(mu, xi[None], y[None], p["sigma0"] * W0[None], projected=False)


def rate(params: Params) -> float:
    return params["rate"] * (10.0 if params["rule"] == 0 else 3e-3)


@pytest.mark.parametrize("params", RUNS)
def test_each_record_is_the_packages(params: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    data, n, batch = dense(params), int(params["n"]), int(params["batch"])
    fed(monkeypatch, "coordinates", params)
    problem = signal_noise.problem(data, q=3, batch=batch if batch < n else None, in_span=False)
    raw, steps = draws(MODEL, params), int(params["steps"])
    size = params["sigma0"] * params["length"] / params["s"] ** 0.5
    rest = size * raw["Xi"].norm(dim=1)[:, None, None] * raw["E"]

    def fresh(s: train.State, label: float) -> torch.Tensor:
        """The package's margins of samples whose noise nobody touched."""
        w = signal_noise.weights(s)[..., 0]
        return sparse.margins(w, rest[None], params["alpha"], label)

    def signal(s: train.State) -> torch.Tensor:
        w = signal_noise.weights(s)[..., 0]
        return torch.stack([w[:, 0], -w[:, 1]], 1).flatten(1)

    def push(s: train.State) -> torch.Tensor:
        """The root of the left side of equation (eq-turn), a neuron each."""
        A, y = signal_noise.products(s)[0, ..., 1:], s.data.y[0]
        rows = [A[k][:, y == j].clamp(min=0).square().mean(1) for k, j in ((0, 1.0), (1, -1.0))]
        return (params["alpha"] * torch.stack(rows)).sqrt().flatten()[None]

    record: dict[str, Callable[[train.State], torch.Tensor]] = {
        "y": lambda s: s.data.y,
        "answers": lambda s: s.f,
        "trace": lambda s: -params["alpha"] * s.data.y,
        "coarse": lambda s: torch.full(
            (1,), params["length"] * params["s"] ** -0.5, dtype=torch.float64
        ),
        "loss": measure.train_loss,
        "train_error": measure.train_error,
        "error_plus": lambda s: measure.error(fresh(s, 1.0)),
        "error_minus": lambda s: measure.error(fresh(s, -1.0)),
        "test_error": lambda s: measure.error(torch.cat([fresh(s, 1.0), fresh(s, -1.0)], 1)),
        "signal": signal,
        "noise": push,
        "ahead": lambda s: (push(s) > signal(s).clamp(min=0)).double().sum(1),
    }
    run = train.train(problem, rule=RULES[int(params["rule"])], eta=rate(params), steps=steps,
                      stop=0.01, record=record, every=1)  # fmt: skip
    found = replay(MODEL, params, records=steps)["curves"]
    last = int(run.steps[0])
    for key, value in run.history.items():
        assert apart(value[:, 0], found[key][: last + 1]) < 1e-9, key
    assert found["taken"][-1] == last
    assert set(found) == {*record, "taken"}
    assert found["loss"][-1] == found["loss"][last]  # it stays where training stopped


@pytest.mark.parametrize(("rule", "power"), [(1, 1.0), (2, 0.5)])
def test_what_the_switch_says_is_equations_sign_batch_and_turn(rule: int, power: float) -> None:
    p = RUNS[1] | {"rule": rule, "steps": 0}
    env = replay(MODEL, p)["env"]
    grown = (2 / np.pi) ** 0.5 * p["s"] * (p["length"] * p["s"] ** -0.5)
    grown *= (p["batch"] / p["n"]) ** power
    assert float(env["grown"]) == pytest.approx(grown, rel=1e-12)
    assert float(env["ratio"]) == pytest.approx(p["alpha"] ** 0.5 * grown, rel=1e-12)
    assert float(env["votes"]) == pytest.approx(p["length"] ** 2 / p["n"], rel=1e-12)


@pytest.mark.parametrize("rule", [1, 2])
def test_the_signal_turns_where_the_switch_says(node: Any, rule: int) -> None:
    """Means over ten seeds at half of the switch and at twice it, by B, s and alpha."""
    base = configs.load("adam_vs_gd")["params"] | {"rule": rule}
    at = float(replay(MODEL, base | {"steps": 0})["env"]["ratio"])
    places = {
        "batch": [round(24 * (x / at) ** (1 / (1, 0.5)[rule - 1])) for x in (0.5, 2)],
        "s": [round(40 * (x / at) ** 2) for x in (0.5, 2)],
        "alpha": [0.2 * (x / at) ** 2 for x in (0.5, 2)],
    }
    runs = [
        {"what": "ends", "model": "coordinates", "params": base | {name: v, "seed": seed}}
        for name, values in places.items() for v in values for seed in range(10)
    ]  # fmt: skip
    ends = node([(FOLDER / "coordinates.js").read_text()], runs)
    errors = np.array([end["test_error"] for end in ends]).reshape(len(places), 2, 10).mean(2)
    assert (errors[:, 0] < 0.25).all(), errors
    assert (errors[:, 1] > 0.75).all(), errors
