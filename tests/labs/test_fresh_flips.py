"""The lab on label noise GD, against `train`, `measure` and the chapter's law run beside it."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from fltutils import measure, signal_noise, train
from tests.labs.compare import FOLDER, apart
from tests.labs.test_climb import coordinates, errors
from tests.labs.test_coordinates import fed
from tests.labs.test_physics import Params
from tools.labs import configs
from tools.labs import fresh_flips as lab
from tools.labs.models import MODELS
from tools.labs.replay import draws, replay, sources

pytestmark = pytest.mark.slow
MODEL = MODELS["fresh_flips"]
RUNS: list[Params] = [
    {"seed": 3, "steps": 60, "n": 12, "m": 4, "d": 3000, "signal": 0.6, "sigma0": 0.1, "p": 0.1,
     "kappa": 0.4},
    {"seed": 4, "steps": 40, "n": 9, "m": 6, "d": 1e5, "signal": 2, "sigma0": 0.3, "p": 0.3,
     "kappa": 1.5},
]  # fmt: skip


def trained(params: Params, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, torch.Tensor]]:
    """Both networks by the package, the flips from the page."""
    data, E = coordinates(MODEL, params), draws(MODEL, params)["E"]
    eta = params["kappa"] * params["n"] * params["m"] / (2 * params["d"])
    record = {
        "y": lambda s: s.data.y,
        "answers": lambda s: s.f,
        "Z": lambda s: lab.answers(signal_noise.products(s), s.data.y)[0],
        "M": lambda s: lab.answers(signal_noise.products(s), s.data.y)[1],
        "memory": lambda s: measure.own(measure.rho(s), s.data.y).square().mean((1, 2)),
        "loss": measure.train_loss,
        "test_error": lambda s: errors(s, E, 2),
    }
    fed(monkeypatch, "fresh_flips", params)
    found = {}
    for name, p in (("flips", params["p"]), ("gd", 0.0)):
        problem = signal_noise.problem(data, q=2, label_noise=p)
        run = train.train(problem, eta=eta, steps=int(params["steps"]), record=record)
        found[name] = {key: value[:, 0] for key, value in run.history.items()}
    return found


@pytest.mark.parametrize("params", RUNS)
def test_each_record_is_the_packages(params: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    found = trained(params, monkeypatch)
    run = replay(MODEL, params, records=int(params["steps"]))["curves"]
    flips, gd = found["flips"], found["gd"]
    same = {
        "y": flips["y"], "answers": flips["answers"],
        "signal_flips": flips["Z"].sqrt().mean(1), "signal_gd": gd["Z"].sqrt().mean(1),
        "Z": flips["Z"], "from_signal": flips["Z"].mean(1), "from_memory": flips["M"].mean(1),
        "M": flips["M"], "memory": flips["memory"], "memory_gd": gd["memory"],
        "loss": flips["loss"], "loss_gd": gd["loss"], "test_error": flips["test_error"],
        "test_error_gd": gd["test_error"],
    }  # fmt: skip
    for key, value in same.items():
        assert apart(value, run[key]) < 1e-9, key
    assert set(run) == {*same, "law_flips", "law_gd", "enough", "rest"}
    assert apart(flips["loss"], gd["loss"]) > 0.01  # the two see different labels


@pytest.mark.parametrize("params", RUNS)
def test_the_law_is_equation_two_numbers_on_the_pages_flips(params: Params) -> None:
    data, n = coordinates(MODEL, params), int(params["n"])
    A = (data.W0 @ data.X[:, None].transpose(2, 3)).expand(2, -1, -1, -1)
    y, kappa = data.y.expand(2, -1), params["kappa"]
    Z, M = lab.answers(A, y)
    uniforms, steps = sources(MODEL, params)["R"], int(params["steps"])
    run = replay(MODEL, params, records=steps)["curves"]
    over = 0
    for t in range(steps + 1):
        for k, key in enumerate(("law_flips", "law_gd")):
            assert float(Z[k].sqrt().mean()) == pytest.approx(run[key][t], rel=1e-9), (key, t)
        eps = torch.ones_like(y)
        eps[0] = torch.where(next(uniforms) < params["p"], -1.0, 1.0)
        margin = M + torch.where(y > 0, Z[:, :1], Z[:, 1:])
        g = lab.pull(margin, eps)
        over += int((1 + kappa * g < 0).sum())  # thrown over zero, where ReLU is silent
        Z, M = lab.two_numbers(Z, M, y, g, kappa, params["signal"] / n)
    assert over > 0 or kappa * (1 - params["p"]) < 1


@pytest.mark.parametrize("params", RUNS)
def test_the_balance_and_what_is_enough(params: Params) -> None:
    run, p = replay(MODEL, params | {"steps": 0}), params["p"]
    first = {key: value[0] for key, value in run["curves"].items()}
    assert first["rest"] == pytest.approx(math.log((1 - p) / p), rel=1e-12)
    spread = lab.fresh_noise(*(params[k] for k in ("n", "d", "m", "sigma0")), first["rest"])
    z = torch.special.ndtri(torch.tensor(0.9, dtype=torch.float64))
    assert first["enough"] == pytest.approx(float(z * spread) ** 0.5, rel=1e-12)
    assert float(run["env"]["throw"]) == pytest.approx(params["kappa"] * (1 - p), rel=1e-12)
    mu = (params["signal"] * params["d"] / params["n"]) ** 0.5
    assert float(run["env"]["X"][0, 0]) == pytest.approx(mu, rel=1e-12)


def test_law_and_level_say_what_the_networks_do(node: Any) -> None:
    """Ten seeds: the law within a few percent, the error near 0.1 where the signal is `enough`."""
    base = configs.load("label_noise_gd")["params"]
    runs = [
        {"what": "run", "model": "fresh_flips", "params": base | {"seed": seed}}
        for seed in range(10)
    ]
    done = [run["curves"] for run in node([(FOLDER / "fresh_flips.js").read_text()], runs)]
    law = [c["law_flips"][-1] / c["signal_flips"][-1] for c in done]
    assert np.abs(np.log(law)).max() < 0.1
    at = []
    for c in done:
        k = int(np.argmax(np.array(c["signal_flips"]) > c["enough"][0]))
        at.append(c["test_error"][k])
    assert 0.05 < np.mean(at) < 0.2  # classes differ, and the mean of sqrt Z stands for both
