"""The lab on diffusion, against the chapter's own functions on the page's draws."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from tests.fltutils.test_chapters import definitions
from tests.labs.compare import apart
from tests.labs.test_physics import Params
from tools.labs import diffusion
from tools.labs.models import MODELS
from tools.labs.replay import draws, replay

pytestmark = pytest.mark.slow
MODEL = MODELS["diffusion"]
RUNS: list[Params] = [
    {"seed": 3, "steps": 60, "n": 8, "m": 4, "d": 1e6, "snr": 0.6, "lam": 1},
    {"seed": 4, "steps": 40, "n": 14, "m": 3, "d": 400, "snr": 0.15, "lam": 8},
]


class Batch(NamedTuple):
    """The chapter's data."""

    X: torch.Tensor
    p: torch.Tensor
    alpha: torch.Tensor
    beta: torch.Tensor


@pytest.fixture(scope="module")
def chapter() -> dict[str, Any]:
    names = ("gradient", "patch_loss", "gram", "four_number_loss", "classes", "push_classes")
    return definitions("diffusion", *names)


def prepared(params: Params) -> tuple[Batch, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Data, the denoiser's weights, the classifier's, and the labels, by the chapter's rules."""
    raw = draws(MODEL, params)
    n, m = int(params["n"]), int(params["m"])
    x, lam = n * params["snr"] ** 2, params["lam"]
    alpha, beta = (lam / (1 + lam)) ** 0.5, (1 + lam) ** -0.5
    xi = (raw["Z"].tril(-1) + torch.diag(raw["chi"])) * (n / params["d"]) ** 0.5
    X = torch.zeros(1, 2 + n, 2 + n + m, dtype=torch.float64)
    X[0, 0, 0] = X[0, 1, 1] = x**0.5
    X[0, 2:, 2 : 2 + n] = xi
    own = raw["B"].tril(-1) + torch.diag(raw["chi_w"])
    length = (alpha * (x / 2 + 1) ** 0.5 / (3 * m**0.5 * beta**3)) ** (1 / 3)
    W = torch.cat([raw["S0"], raw["N0"], own], 1) * (0.1 * length / params["d"] ** 0.5)
    C = torch.cat([raw["C0"], raw["D0"], torch.zeros(2 * m, m)], 1) * (0.02 / n**0.5)
    p = torch.tensor([0.5, 0.5] + [1 / n] * n, dtype=torch.float64)
    y = torch.tensor([1.0, -1.0] * (n // 2), dtype=torch.float64)
    level = [torch.full((1, 1, 1), v, dtype=torch.float64) for v in (alpha, beta)]
    return Batch(X, p, *level), W[None], C[None], y


@pytest.mark.parametrize("params", RUNS)
def test_the_denoiser_is_the_chapters(chapter: dict[str, Any], params: Params) -> None:
    data, W, _, _ = prepared(params)
    n, m = int(params["n"]), int(params["m"])
    run = replay(MODEL, params, records=int(params["steps"]))
    bar = (float(data.X[0, 0, 0]) ** 2 / 2 + 1) ** 0.5
    alpha, beta = float(data.alpha), float(data.beta)
    length = (alpha * bar / (3 * m**0.5 * beta**3)) ** (1 / 3)
    eta = 0.05 * m**0.5 / (4 * alpha * beta * bar * length)
    for _ in range(2 * int(params["steps"])):
        W = W - eta * chapter["gradient"](W, data)
    env = run["env"]
    mine = np.concatenate([env[k] for k in ("S", "N", "V")], -1).reshape(m, 2 + n + m)
    assert apart(W[0].numpy(), mine) < 1e-9
    A = W[0] @ data.X[0].T
    signal, noise = (float(a.square().mean() ** 0.5) for a in (A[:, :2], A[:, 2:]))
    assert run["curves"]["ratio_d"][-1] == pytest.approx(signal / noise, rel=1e-8)
    assert run["curves"]["d_signal"][-1] == pytest.approx(signal, rel=1e-8)
    assert run["curves"]["d_noise"][-1] == pytest.approx(noise, rel=1e-8)
    assert run["curves"]["half"][0] == pytest.approx(n * params["snr"] ** 2 / 2)
    assert run["curves"]["c"][0] == pytest.approx(n * params["snr"] ** 2)
    assert float(env["x"]) == pytest.approx(n * params["snr"] ** 2)
    strongest = params["lam"] * max(1, n * params["snr"] ** 2 / 2)
    assert run["curves"]["strongest"][0] == pytest.approx(strongest)


@pytest.mark.parametrize("params", RUNS)
def test_the_classifier_is_the_chapters(chapter: dict[str, Any], params: Params) -> None:
    data, _, W, y = prepared(params)
    n, m = int(params["n"]), int(params["m"])
    run = replay(MODEL, params, records=int(params["steps"]))
    j = torch.tensor([1.0] * m + [-1.0] * m, dtype=torch.float64)[:, None]
    eta = 0.08 / max(n * params["snr"] ** 2, 2)
    X = data.X
    for _ in range(2 * int(params["steps"])):
        A = W @ X.mT
        loss = torch.nn.functional.softplus(-y * chapter["classes"](A, y, j)).mean()
        if loss > 0.01:
            W = W + eta * (chapter["push_classes"](A, y, y, j) @ X) / n
    A = (W @ X.mT)[0]
    own = (j * y > 0).to(A.dtype)
    signal = torch.cat([A[:m, 0], A[m:, 1]]).square().mean() ** 0.5
    noise = ((A[:, 2:].square() * own).sum() / own.sum()) ** 0.5
    assert run["curves"]["c_signal"][-1] == pytest.approx(float(signal), rel=1e-8)
    assert run["curves"]["c_noise"][-1] == pytest.approx(float(noise), rel=1e-8)
    assert run["curves"]["share"][-1] == pytest.approx(float(signal / (signal + noise)), rel=1e-8)


def test_the_four_numbers_are_the_chapters(chapter: dict[str, Any]) -> None:
    u = torch.tensor([0.3, 0.2, 0.7, 0.5], dtype=torch.float64)
    n, m, mu, alpha, beta = (torch.tensor(v, dtype=torch.float64) for v in (9, 4, 1.7, 0.6, 0.8))
    sizes = {"n": 9, "m": 4, "mu": mu, "xi": 3.0, "alpha": alpha, "beta": beta}
    theirs = chapter["four_number_loss"](*u, sizes)
    assert float(diffusion.four_number_loss(u, n, m, mu, alpha, beta)) == pytest.approx(
        float(theirs), rel=1e-12
    )
    run = replay(MODEL, RUNS[0] | {"steps": 250}, records=1)
    told, found = run["curves"]["told_ratio"][-1], run["curves"]["ratio_d"][-1]
    assert told == pytest.approx(found, rel=0.02)
