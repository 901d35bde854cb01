"""The lab on the second layer, against `giant.readout` and `hermite` on the page's draws."""

import numpy as np
import pytest

from fltutils import giant, hermite
from tests.labs.compare import apart
from tests.labs.test_physics import Params
from tools.labs import configs
from tools.labs.models import MODELS
from tools.labs.replay import draws, replay

pytestmark = pytest.mark.slow
MODEL = MODELS["readout"]
RUNS: list[Params] = [
    {"seed": 4, "steps": 12, "kappa": 1, "d": 15, "p": 9, "k": 0, "length": 2, "lam": 0.01},
    {"seed": 5, "steps": 12, "kappa": 1.2, "d": 12, "p": 20, "k": 1, "length": 1.5, "lam": 0.1},
    {"seed": 6, "steps": 12, "kappa": 1.1, "d": 16, "p": 10, "k": 2, "length": 3, "lam": 0.02},
]


def H2(z: np.ndarray) -> np.ndarray:
    return hermite.polynomials(z, 2)[2]


def terms(x1: np.ndarray, x2: np.ndarray, x3: np.ndarray) -> np.ndarray:
    """The five terms of the chapter, (5, n)."""
    four, five = x1 * H2(x2) * x3 / 2**0.5, H2(x2) * H2(x3) / 2
    return np.stack([x1, H2(x2) / 2**0.5, x1 * x2, four, five])


def f_star(*x: np.ndarray) -> np.ndarray:
    return terms(*x).sum(0)


def planted(params: Params, k: int) -> giant.Net:
    """`planted` of the chapter on the page's draws."""
    raw = {name: x.numpy() for name, x in draws(MODEL, params).items()}
    u = raw["U"][:, :k].copy()
    u *= params["length"] / np.maximum(np.linalg.norm(u, axis=1, keepdims=True), 1e-9)
    rest = np.hstack([raw["R"][:, k:], raw["W0"]]) / params["d"] ** 0.5
    b = (params["length"] if k else 1) * raw["beta"]
    return giant.Net(np.hstack([u, rest]), np.zeros(len(b)), b, int(params["d"]), 3)


def blocks(params: Params, count: int) -> list[np.ndarray]:
    raw = draws(MODEL, params)
    both = np.concatenate([raw["X"].numpy(), raw["Z"].numpy()], 2)
    return list(both[:count])


@pytest.mark.parametrize("params", RUNS)
@pytest.mark.parametrize("random", [False, True])
def test_the_fit_and_its_risk_are_the_packages(
    params: Params, random: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, raw = replay(MODEL, params, records=12), draws(MODEL, params)
    net = planted(params, 0 if random else int(params["k"]))
    X = np.hstack([raw["X_test"].numpy(), raw["Z_test"].numpy()])
    t, m = terms(*X[:, :3].T), raw["X"].shape[1]
    assert m == round(params["d"] ** params["kappa"])
    for step in (1, 5, 12):
        monkeypatch.setattr(giant, "batches", lambda *_, step=step: iter(blocks(params, step)))
        rng = np.random.default_rng(0)
        fitted = giant.readout(net, giant.RELU, f_star, step * m, params["lam"], rng)
        out = giant.outputs(fitted, giant.RELU, X)
        alpha = np.linalg.lstsq(t.T, out, rcond=None)[0]
        risk = ((1 - alpha) ** 2).sum() + np.mean((out - alpha @ t) ** 2)
        curves = {key: curve[step] for key, curve in run["curves"].items()}
        assert curves["risk_random" if random else "risk"] == pytest.approx(risk, rel=1e-8)
        assert curves["seen"] == step * m
        assert curves["spare"] == step * m / params["p"]
        if not random:
            share = 1 - (1 - alpha) ** 2
            assert apart(share, curves["captured"]) < 1e-7
            told = [curves[f"s{i}"] for i in range(1, 6)]
            assert np.abs(share - told).max() <= 0.005 + 1e-9
            assert curves["bought"] == pytest.approx(share[(0, 2, 3)[int(params["k"])]], rel=1e-6)


@pytest.mark.parametrize("k", [0, 1, 2])
@pytest.mark.parametrize("p", [8, 20])
def test_what_theory_allows_is_the_energy_that_is_left(k: int, p: int) -> None:
    params = RUNS[0] | {"k": k, "p": p, "steps": 0}
    curves, U = replay(MODEL, params)["curves"], np.eye(3)[:, :k]
    wide, rule = int(p >= params["d"]), hermite.gauss_hermite(8)
    left = [hermite.energy_above(lambda *x, i=i: terms(*x)[i], U, wide, rule) for i in range(5)]
    assert curves["allowed"][0] == pytest.approx(1 - np.array(left), abs=1e-9)
    assert curves["floor"][0] == pytest.approx(hermite.energy_above(f_star, U, wide, rule))
    nothing = hermite.energy_above(f_star, np.zeros((3, 0)), wide, rule)
    assert curves["floor_random"][0] == pytest.approx(nothing)


def test_width_brings_the_linear_term_at_the_labs_sizes() -> None:
    """Means over three seeds: x1 x2 is got by p = 4d neurons, and not by p = d / 3."""
    base = configs.load("second_layer")["params"]
    wide, few = (
        np.mean([
            replay(MODEL, base | change | {"seed": seed}, records=1)["curves"]["captured"][-1]
            for seed in range(3)
        ], axis=0)
        for change in ({"d": 20, "p": 80}, {"d": 30, "p": 10, "kappa": 1.2})
    )  # fmt: skip
    assert wide[0] > 0.95
    assert wide[2] > 0.7
    assert few[0] > 0.9
    assert few[2] < 0.4
    assert max(*wide[[1, 3, 4]], *few[[1, 3, 4]]) < 0.3
