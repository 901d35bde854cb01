"""The lab on emergence, against the chapter's own functions on the page's draws."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from fltutils import counts
from fltutils.counts import Case, Net
from tests.fltutils.test_chapters import definitions
from tests.labs.compare import apart
from tests.labs.test_physics import Params
from tools.labs import configs, emergence
from tools.labs.models import MODELS
from tools.labs.replay import draws, replay

pytestmark = pytest.mark.slow
MODEL = MODELS["emergence"]
RUNS: list[Params] = [
    {"seed": 3, "steps": 8, "n": 300, "d": 20, "k": 5, "m": 6, "gamma": 0.25, "eta": 0.001},
    {"seed": 4, "steps": 5, "n": 90, "d": 14, "k": 3, "m": 9, "gamma": 0.1, "eta": 3},
    {"seed": 5, "steps": 4, "n": 200, "d": 16, "k": 7, "m": 4, "gamma": 0, "eta": 0.01},
]


def logistic(z: np.ndarray, xi: float) -> np.ndarray:
    """The chapter's slope; the lab's noise is logistic, of the same variance."""
    if xi == 0:
        return ((z > 0) & (z < 1)).astype(float)
    scale = xi * 3**0.5 / np.pi
    return 1 / (1 + np.exp(-z / scale)) - 1 / (1 + np.exp(-(z - 1) / scale))


def softened(z: np.ndarray, xi: float) -> np.ndarray:
    """The activation with the lab's noise."""
    if xi == 0:
        return counts.act(z)
    scale = xi * 3**0.5 / np.pi
    low, high = (np.logaddexp(0, u / scale) for u in (z, z - 1))
    return np.asarray(scale * (low - high))


class Uniforms:
    """A generator whose numbers are the page's, in the order in which the chapter asks."""

    def __init__(self, raw: dict[str, np.ndarray], use: str) -> None:
        A, B, S, V = (raw[name + use] for name in "ABSV")
        self.left = [np.concatenate([A, B], 1), np.stack([S, V])[..., None], A]

    def random(self, shape: tuple[int, ...]) -> np.ndarray:
        numbers = self.left.pop(0)
        assert numbers.shape == shape
        return numbers


def uniforms(raw: dict[str, np.ndarray], use: str) -> Any:
    """In the place of a generator."""
    return Uniforms(raw, use)


@pytest.fixture(scope="module")
def chapter(monkeypatch_module: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch_module.setattr(counts, "slope", logistic)
    monkeypatch_module.setattr(counts, "smooth", softened)
    return definitions("emergence", "step", "tangent", counts=counts)


@pytest.fixture(scope="module")
def monkeypatch_module() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


def sizes(params: Params) -> Case:
    p = params
    return Case(int(p["n"]), p["gamma"], int(p["d"]), int(p["k"]), 0.5, int(p["m"]))


def networks(chapter: dict[str, Any], params: Params) -> tuple[list[Net], dict[str, np.ndarray]]:
    """The chapter's three networks from the page's draws."""
    raw, c = {k: v.numpy() for k, v in draws(MODEL, params).items()}, sizes(params)
    a = raw["alpha"] * counts.variance(c) / (0.25 * c.k**2)
    w, b = raw["W0"] / c.k, raw["beta"] / c.k**2
    nets = [Net(*(np.concatenate(pair) for pair in ((w, w), (b, b), (a, -a))))]
    if c.D != 4 * counts.variance(c):
        raise AssertionError("p0 = 1/2 gives D/4")
    for use, eta, xi in (("1", params["eta"], 0), ("2", emergence.SECOND, c.k**-1.5)):
        phi = counts.patterns(uniforms(raw, use), c.n, c)
        x, y = counts.normalise(phi, c), counts.label(phi, c.k)
        nets.append(chapter["step"](nets[-1], x, y, eta, xi, ("w",)))
    return nets, raw


@pytest.mark.parametrize("params", RUNS)
def test_the_two_steps_are_the_chapters(chapter: dict[str, Any], params: Params) -> None:
    nets, _ = networks(chapter, params)
    run = replay(MODEL, params, records=int(params["steps"]))
    k = int(params["k"])
    for t, net in enumerate(nets):
        assert apart(net.w, run["env"][f"w{t}"]) < 1e-11
        cos = counts.cosine(net.w, k)
        assert apart(cos, np.array(run["curves"]["c1"][t])) < 1e-11
        assert run["curves"]["along"][t] == pytest.approx(np.abs(cos).mean(), rel=1e-10)
        unit = net.w / np.linalg.norm(net.w, axis=1, keepdims=True)
        assert run["curves"]["peak"][t] == pytest.approx(np.abs(unit).max(1).mean(), rel=1e-10)
        axis = np.eye(1, unit.shape[1])[0] - (np.arange(unit.shape[1]) < k) / k
        beside = unit @ axis / np.linalg.norm(axis)
        assert apart(beside, np.array(run["curves"]["c2"][t])) < 1e-11
    assert run["curves"]["along"][-1] == run["curves"]["along"][2]
    assert run["curves"]["time"][:4] == [1, 2, 3, 7]
    assert run["curves"]["single"][0] == pytest.approx(k**-0.5)
    assert run["curves"]["random"][0] == pytest.approx((2 / np.pi / params["d"]) ** 0.5)


@pytest.mark.parametrize("params", RUNS)
def test_the_readout_is_the_chapters(chapter: dict[str, Any], params: Params) -> None:
    """Momentum 0.9 on the hinge loss, on the learned neurons and on those drawn."""
    nets, raw = networks(chapter, params)
    run, c = replay(MODEL, params, records=int(params["steps"])), sizes(params)
    data = []
    for use in "34":
        phi = counts.patterns(uniforms(raw, use), 600, c)
        data.append((counts.normalise(phi, c), counts.label(phi, c.k), phi))
    (x, y, _), (x_test, y_test, phi) = data
    vote = 2 * (phi[:, : c.k].sum(1) > c.k / 2) - 1
    assert run["curves"]["majority"][0] == pytest.approx((vote == y_test).mean())
    for net, key in ((nets[2], "accuracy"), (nets[0], "accuracy_drawn")):
        F, T = (counts.act(v @ net.w.T + net.b) for v in (x, x_test))
        a = speed = np.zeros(len(net.b))
        for t, told in enumerate(run["curves"][key]):
            g = T @ a * y_test
            assert told == pytest.approx(((g > 0) + (g == 0) / 2).mean(), abs=2e-3)
            for _ in range(4 * (t >= 2)):
                speed = 0.9 * speed + (y * (y * (F @ a) < 1)) @ F / len(y)
                a = a + speed


@pytest.mark.parametrize("params", RUNS)
def test_theory_is_the_chapters(chapter: dict[str, Any], params: Params) -> None:
    run, c = replay(MODEL, params, records=2), sizes(params)
    if not c.gamma:
        assert run["curves"]["theory"][0] < 1e-6
        return
    tan2 = chapter["tangent"](c)
    assert run["curves"]["theory"][0] == pytest.approx((1 + tan2) ** -0.5, rel=1e-10)
    own = (c.k - 1) * (1 - 2 * c.gamma) / 4 / (c.n * c.k * c.gamma**2)
    assert float(run["env"]["tilt"]) == pytest.approx(tan2 - own, rel=1e-10)


def test_samples_are_silent_where_the_first_step_is_large(chapter: dict[str, Any]) -> None:
    nets, raw = networks(chapter, RUNS[1])
    c = sizes(RUNS[1])
    phi = counts.patterns(uniforms(raw, "2"), c.n, c)
    x, y = counts.normalise(phi, c), counts.label(phi, c.k)
    quiet = y * (softened(x @ nets[1].w.T + nets[1].b, c.k**-1.5) @ nets[1].a) > 1
    run = replay(MODEL, RUNS[1], records=1)
    assert run["curves"]["silent"][0] == pytest.approx(quiet.mean())
    assert quiet.mean() > 0.05


def test_at_the_labs_size_theory_holds_on_average() -> None:
    base = configs.load("emergence")["params"] | {"steps": 2}
    for gamma in (0.25, 0.1, 0.05):
        runs = [
            replay(MODEL, base | {"seed": seed, "gamma": gamma}, records=2)["curves"]
            for seed in range(8)
        ]
        seen = np.mean([r["along"][-1] ** 2 for r in runs])
        assert seen == pytest.approx(runs[0]["theory"][-1] ** 2, abs=0.05)
    still = [replay(MODEL, base | {"seed": s, "gamma": 0}, records=2)["curves"] for s in range(8)]
    assert np.mean([r["along"][-1] for r in still]) < 0.3
