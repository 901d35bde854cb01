"""The lab on virtual covariance, against autograd and the chapter's own functions."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import softplus

from tests.fltutils.test_chapters import definitions
from tests.labs.compare import apart
from tests.labs.test_physics import Params
from tools.labs import virtual_covariance as lab
from tools.labs.models import MODELS
from tools.labs.replay import draws, replay

pytestmark = pytest.mark.slow
MODEL = MODELS["virtual_covariance"]
RUNS: list[Params] = [
    {"seed": 3, "steps": 30, "n": 20, "m": 10, "size": 0.5, "rate": 0.5, "skip": 0},
    {"seed": 4, "steps": 20, "n": 9, "m": 6, "size": 1, "rate": 4, "skip": 0.6},
]


@pytest.fixture(scope="module")
def chapter() -> dict[str, Any]:
    """The chapter's virtual shift and actual change."""
    return definitions("virtual_covariance", "shift", "change")


def number(x: float) -> torch.Tensor:
    return torch.tensor(x, dtype=torch.float64)


def network(p: Params) -> tuple[torch.Tensor, ...]:
    """Inputs, labels, weights and readouts of a run, from its draws."""
    raw = draws(MODEL, p)
    X, root = raw["X"], 12**0.5
    y = torch.sign(X[:, :2].sum(1))
    return X, y, p["size"] / root * raw["V"], raw["Z"] / p["m"] ** 0.5, raw["U"] / root


def slopes(p: Params, X: torch.Tensor, y: torch.Tensor, W: torch.Tensor, v: torch.Tensor,
           u: torch.Tensor) -> tuple[torch.Tensor, ...]:  # fmt: skip
    """Loss and its gradients in weights and inputs, by autograd."""
    W, X = W.detach().requires_grad_(), X.detach().requires_grad_()
    loss = softplus(-y * (torch.tanh(X @ W.T) @ v + p["skip"] * (X @ u))).mean()
    return (loss.detach(), *torch.autograd.grad(loss, (W, X)))


@pytest.mark.parametrize("params", RUNS)
def test_a_run_is_the_chapters(chapter: dict[str, Any], params: Params) -> None:
    run = replay(MODEL, params, records=5)
    X, y, W, v, u = network(params)
    W0, S, gamma = W, torch.zeros(12, 12, dtype=torch.float64), params["rate"]
    for t in range(int(params["steps"]) + 1):
        loss, G, g = slopes(params, X, y, W, v, u)
        if t in run["times"]:
            seen = {key: curve[run["times"].index(t)] for key, curve in run["curves"].items()}
            A = W.T @ W - W0.T @ W0
            assert seen["loss"] == pytest.approx(float(loss), rel=1e-10)
            for key, M in (("actual", A), ("virtual", S), ("apart", A - S)):
                assert seen[key] == pytest.approx(float(M.norm()), rel=1e-9, abs=1e-12)
            assert apart(A.diagonal(), seen["grown"]) < 1e-9
            assert apart(S.diagonal(), seen["asked"]) < 1e-9
            if t:
                assert seen["gap"] == pytest.approx(float((A - S).norm() / A.norm()), rel=1e-8)
            lead = A.diagonal()[:2].min() - A.diagonal()[2:].max()
            assert seen["lead"] == pytest.approx(float(lead), abs=1e-10)
        S = S + chapter["shift"](X[None], g[None], gamma)[0]
        W = W - gamma * G


@pytest.mark.parametrize(("skip", "order"), [(0.0, 2.0), (1.0, 1.0)])
def test_the_exponent_is_the_theorems(chapter: dict[str, Any], skip: float, order: float) -> None:
    X, y, W, v, u = network(RUNS[0])
    G, g = lab.gradients(W, v, u, X, y, number(skip))
    gaps = [
        float((chapter["change"](W, G, c) - lab.shift(X, g, number(c))).norm())
        for c in (1e-3, 1e-2)
    ]
    assert np.log10(gaps[1] / gaps[0]) == pytest.approx(order, abs=0.02)
