"""The lab on kernels and features, against the chapter's own functions on the page's draws."""

from typing import Any

import numpy as np
import pytest

from fltutils import giant, hermite
from tests.fltutils.test_chapters import definitions
from tests.labs.compare import apart
from tests.labs.test_physics import Params
from tools.labs import configs, kernels
from tools.labs.models import MODELS
from tools.labs.replay import draws, replay

pytestmark = pytest.mark.slow
MODEL = MODELS["kernels"]
TANH = giant.Activation(np.tanh, lambda z: 1 - np.tanh(z) ** 2)
RUNS: list[Params] = [
    {"seed": 4, "steps": 3, "n": 120, "d": 12, "width": 20, "eta": 18, "linear": 1},
    {"seed": 5, "steps": 4, "n": 200, "d": 10, "width": 30, "eta": 2, "linear": 0.4},
    {"seed": 6, "steps": 2, "n": 60, "d": 16, "width": 10, "eta": 60, "linear": 0},
]


@pytest.fixture(scope="module")
def chapter() -> dict[str, Any]:
    z, weight = hermite.gauss_hermite(100)
    mu = float(hermite.coefficients(np.tanh, 1)[1])
    floor = float(weight @ np.tanh(z) ** 2 - mu**2)
    assert mu == pytest.approx(kernels.C_1, rel=1e-9)
    assert floor == pytest.approx(kernels.FLOOR, rel=1e-8)
    names = ("features", "pull", "ridge", "direction", "spike", "lean")
    known = {"MU_1": {"tanh": mu}, "FLOOR": {"tanh": floor}, "noise": kernels.NOISE}
    return definitions("kernel_vs_features", *names, ACTS={"tanh": TANH}, **known)


def test_the_chapters_step_is_that_of_the_package(chapter: dict[str, Any]) -> None:
    rng = np.random.default_rng(3)
    W, a, key = rng.standard_normal((8, 30)) / 30**0.5, rng.standard_normal(8), (1, 2, "a batch")
    net = giant.Net(W, a * 8**0.5, np.zeros(8), 30, 1)
    X = giant.batch(net, 50, key)
    step = 3 * chapter["pull"](W, a, X, np.tanh(X[:, 0]))
    other = giant.step(net, TANH, np.tanh, 50, 3 * 8**0.5, key)
    assert np.abs(W + step - other.W).max() < 1e-12


def link(z: np.ndarray, linear: float) -> np.ndarray:
    return np.tanh(z) + (linear - 1) * kernels.C_1 * z


@pytest.mark.parametrize("params", RUNS)
def test_the_step_the_fit_and_the_spectrum_are_the_chapters(
    params: Params, chapter: dict[str, Any]
) -> None:
    raw = {name: x.numpy() for name, x in draws(MODEL, params).items()}
    run, linear = replay(MODEL, params, records=int(params["steps"])), params["linear"]
    d, width = int(params["d"]), int(params["width"])
    W, a = raw["W0"] / d**0.5, raw["A0"] / width**0.5
    y = link(raw["X"][:, 0], linear) + kernels.NOISE * raw["e"]
    y_fit = link(raw["X_fit"][:, 0], linear) + kernels.NOISE * raw["e_fit"]
    f = link(raw["X_test"][:, 0], linear)
    bend = np.mean(link(raw["X_test"][:, 0], 0) ** 2)
    G = chapter["pull"](W, a, raw["X"], y)
    assert apart(G, run["env"]["G"]) < 1e-11
    lambdas = np.array([0.005, 0.02, 0.08, 0.3])

    def risk(Phi: np.ndarray, Psi: np.ndarray) -> float:
        weights = chapter["ridge"](Phi, y_fit, lambdas)
        return float(((Psi @ weights - f[:, None]) ** 2).mean(0).min() / bend)

    curves = run["curves"]
    assert curves["risk_line"][0] == pytest.approx(risk(raw["X_fit"], raw["X_test"]), rel=1e-9)
    for t, eta in enumerate(curves["step_size"]):
        share = t / params["steps"]
        assert eta == pytest.approx(kernels.START * (params["eta"] / kernels.START) ** share)
        moved = W + eta * G
        features = [chapter["features"](X, moved) for X in (raw["X_fit"], raw["X_test"])]
        assert curves["risk"][t] == pytest.approx(risk(*features), rel=1e-8)
        _, s, Vt = np.linalg.svd(moved)
        few = min(d, width)
        assert np.abs(np.array(curves["values"][t])[:few] - s).max() < 1e-9 * s[0]
        assert curves["cosine"][t] == pytest.approx(Vt[0, 0] ** 2, rel=1e-6, abs=1e-9)
        assert curves["second"][t] == pytest.approx(s[1], rel=1e-9)
    start = [chapter["features"](X, W) for X in (raw["X_fit"], raw["X_test"])]
    assert curves["risk_random"][0] == pytest.approx(risk(*start), rel=1e-8)


@pytest.mark.parametrize("params", RUNS[:1])
def test_theory_is_that_of_the_chapter(params: Params, chapter: dict[str, Any]) -> None:
    run = replay(MODEL, params, records=int(params["steps"]))
    curves = run["curves"]
    length, share = chapter["direction"](params["d"], params["n"])
    ratio = params["width"] / params["d"]
    assert float(run["env"]["samples"]) == params["n"] / params["d"]
    assert float(run["env"]["reached"]) == pytest.approx(curves["visible"][-1], rel=1e-9)
    for t, eta in enumerate(curves["step_size"]):
        theta = np.array(eta * kernels.C_1 * length**0.5)
        top, cosine = chapter["spike"](theta, ratio), chapter["lean"](theta, ratio, share)
        assert curves["top_theory"][t] == pytest.approx(float(top), rel=1e-9)
        assert curves["cosine_theory"][t] == pytest.approx(float(cosine), abs=1e-9)
        assert curves["visible"][t] == pytest.approx(float(theta / ratio**0.25), rel=1e-9)
        assert curves["edge"][t] == pytest.approx(1 + ratio**0.5, rel=1e-9)
        assert curves["turn"][t] == pytest.approx(eta / params["width"] ** 0.5, rel=1e-9)


def test_at_the_labs_size_a_giant_step_passes_the_floor_and_a_small_one_does_not() -> None:
    """Means over eight seeds, and the alignment where theory has it."""
    base = configs.load("kernel_vs_features")["params"]
    found = {}
    for eta in (1, 5, 36):
        runs = [
            replay(MODEL, base | {"seed": seed, "eta": eta}, records=1)["curves"]
            for seed in range(8)
        ]
        found[eta] = {key: np.mean([r[key][-1] for r in runs]) for key in runs[0]}
    assert found[36]["risk"] < 0.4
    for eta in (1, 5):
        assert found[eta]["risk"] > 1.1 * found[eta]["risk_line"]
        assert found[eta]["risk_line"] > 1
    assert found[1]["cosine"] < 0.05
    assert found[36]["cosine"] == pytest.approx(found[36]["cosine_theory"], abs=0.03)
    assert found[36]["top"] == pytest.approx(found[36]["top_theory"], rel=0.1)
