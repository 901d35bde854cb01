"""The lab on features and prompts, against the chapter's own functions."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from tests.fltutils.test_chapters import definitions
from tests.labs.compare import apart
from tests.labs.test_physics import Params
from tools.labs import context as lab
from tools.labs.models import MODELS
from tools.labs.replay import draws, replay

pytestmark = pytest.mark.slow
MODEL = MODELS["context"]
RUNS: list[Params] = [
    {"seed": 3, "steps": 60, "m": 10, "nu": 1.5, "rate": 0.05, "L": 40, "angle": 20},
    {"seed": 4, "steps": 40, "m": 15, "nu": 2.2, "rate": 0.1, "L": 7, "angle": 90},
]
Tensor = torch.Tensor


class Neurons(NamedTuple):
    """The chapter's law of neurons."""

    a: Tensor
    w: Tensor
    b: Tensor


@pytest.fixture(scope="module")
def chapter() -> dict[str, Any]:
    """The chapter's means, loss and steps."""
    return definitions(
        "nonparametric_in_context",
        "waves", "kernel", "covariance", "variances", "features", "attention", "loss", "residual",
        "follow", "velocity", "move", "from_prompt",
        Neurons=Neurons,
    )  # fmt: skip


def true_neurons(nu: float) -> Neurons:
    """sin x1 sin x2 and cos nu x3 - cos nu x4, of variance one, by hand."""
    w, a = torch.zeros(1, 4, 8).double(), torch.zeros(1, 4, 2).double()
    w[0, :2, 0], w[0, 0, 1], w[0, 1, 1], w[0, 2, 2], w[0, 3, 3] = 1, -1, 1, nu, nu
    first = 4 / (1 - np.exp(-2))
    second = 4 / (1 - np.exp(-(nu**2)))
    a[0, :, 0] = torch.tensor([first, -first, 0, 0])
    a[0, :, 1] = torch.tensor([0, 0, second, -second])
    return Neurons(a, w, torch.zeros(1, 4).double())


@pytest.mark.parametrize("params", RUNS)
def test_a_run_is_the_chapters(chapter: dict[str, Any], params: Params) -> None:
    run, raw = replay(MODEL, params, records=5), draws(MODEL, params)
    true = true_neurons(params["nu"])
    p = Neurons(raw["Z"][None], raw["V"][None] / 8**0.5, 2 * np.pi * raw["U"][None])
    turn = params["angle"] * np.pi / 180
    beta = torch.tensor([np.cos(turn), np.sin(turn)])
    x = raw["X"][None]
    waited = 0
    for t in range(int(params["steps"]) + 1):
        value = float(chapter["loss"](p, true))
        if t in run["times"]:
            seen = {key: curve[run["times"].index(t)] for key, curve in run["curves"].items()}
            assert seen["loss"] == pytest.approx(value, abs=1e-9)
            M, C = chapter["attention"](p, true)[0], chapter["covariance"](true, p)[0]
            known = torch.diagonal(M @ C.T)
            assert seen["first"] == pytest.approx(float(known[0]), abs=1e-9)
            assert seen["second"] == pytest.approx(float(known[1]), abs=1e-9)
            y = chapter["features"](true, x)[0] @ beta
            S = chapter["covariance"](p, p)
            told = chapter["from_prompt"](y[None], chapter["features"](p, x), S.inverse())[0, 0]
            error = 1 - 2 * beta @ C @ told + told @ S[0] @ told
            assert seen["error"] == pytest.approx(float(error), abs=1e-8)
            assert seen["left"] == pytest.approx(float(1 - beta @ M @ C.T @ beta), abs=1e-9)
            assert seen["steps_near_one"] == waited
            line = torch.zeros(1, 24, 8).double()
            line[0, :, 0] = line[0, :, 2] = (torch.arange(24) - 11.5) / 4
            line[0, :, 1] = 1
            assert apart(chapter["features"](true, line)[0] @ beta, seen["true"]) < 1e-9
            assert apart(chapter["features"](p, line)[0] @ told, seen["said"]) < 1e-7
        waited += abs(value - 1) < 0.1
        p = chapter["move"](p, chapter["velocity"](p, true), params["rate"])


def test_the_mean_over_prompts_is_what_many_prompts_give(chapter: dict[str, Any]) -> None:
    """At the last record, on 2000 prompts of a length where prompts matter."""
    params = RUNS[0] | {"L": 20}
    run = replay(MODEL, params, records=1)
    env, true = run["env"], true_neurons(params["nu"])
    p = Neurons(env["a"][None], env["w"][None], env["b"][None])
    turn = params["angle"] * np.pi / 180
    beta = torch.tensor([np.cos(turn), np.sin(turn)])
    x = torch.from_numpy(np.random.default_rng(1).standard_normal((2000, int(params["L"]), 8)))
    S, C = chapter["covariance"](p, p), chapter["covariance"](true, p)[0]
    h, y = lab_features(p, x), lab_features(true, x) @ beta
    told = (h * y[..., None]).mean(1) @ S[0].inverse()
    errors = 1 - 2 * told @ (C.T @ beta) + ((told @ S[0]) * told).sum(1)
    assert run["curves"]["left"][-1] < 0.9 * run["curves"]["expected"][-1]
    assert run["curves"]["expected"][-1] == pytest.approx(float(errors.mean()), rel=0.1)


def lab_features(p: Neurons, x: Tensor) -> Tensor:
    """Both features of every example, (prompts, L, 2)."""
    return torch.cos(x @ p.w[0].T + p.b[0]) @ p.a[0] / p.a.shape[1]


def test_the_true_features_have_variance_one() -> None:
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((200000, 8)))
    w, A = lab.truth(torch.tensor(1.7, dtype=torch.float64))
    f = torch.cos(x @ w.T) @ A
    assert apart(torch.eye(2), f.T @ f / len(f)) < 0.02
    assert float(f.mean(0).abs().max()) < 0.02
