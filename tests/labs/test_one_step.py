"""The lab on one giant step, against `giant` and `hermite` on the page's draws."""

import numpy as np
import pytest

from fltutils import giant, hermite
from tests.labs.compare import apart
from tests.labs.test_physics import Given, Params, bartlett, freedom
from tools.labs import configs
from tools.labs.models import MODELS
from tools.labs.replay import draws, replay

pytestmark = pytest.mark.slow
MODEL = MODELS["one_step"]
RUNS: list[Params] = [
    {"seed": 4, "steps": 5, "n": 300, "d": 50, "h": 4, "leap": 1, "rate": 3, "mean": 0.5},
    {"seed": 5, "steps": 3, "n": 900, "d": 30, "h": 5, "leap": 2, "rate": 2, "mean": 0},
    {"seed": 6, "steps": 3, "n": 900, "d": 25, "h": 5, "leap": 2, "rate": 1, "mean": 1},
    {"seed": 7, "steps": 4, "n": 2000, "d": 20, "h": 6, "leap": 3, "rate": 0.5, "mean": 0},
]


def H(j: int, z: np.ndarray) -> np.ndarray:
    return hermite.polynomials(z, j)[j]


def target(params: Params) -> giant.Function:
    """The targets of the chapter; at leap three, of variance one."""

    def f_star(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        one = 1.5 * x + H(2, x) / 2 + 0.75 * y - H(2, y) / 2
        two = (H(2, x) + H(2, y)) / 2
        three = (H(3, x) + H(3, y)) / 12**0.5
        return params["mean"] + (one, two, three)[int(params["leap"]) - 1]

    return f_star


@pytest.mark.parametrize("leap", [1, 2, 3])
def test_a_target_has_its_leap_index(leap: int) -> None:
    f = target({"leap": leap, "mean": 0})
    links = (lambda z: f(z, 0 * z), lambda z: f(0 * z, z))
    assert hermite.leap([lambda z, g=g: g(z) - g(0 * z) for g in links]) == leap


@pytest.mark.parametrize("params", RUNS)
def test_the_start_is_the_packages(params: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    raw, env = draws(MODEL, params), replay(MODEL, params)["env"]
    own, h = bartlett(raw["B0"], raw["chi0"]), int(params["h"])

    def rows(rng: object, rows: int, D: int) -> np.ndarray:
        assert (rows, D) == (h, freedom("one_step", "chi0", params))
        return own

    monkeypatch.setattr(giant, "gaussian", rows)
    rng = Given(raw["V"].numpy(), np.ones(h))
    net = giant.start(2 * h, int(params["d"]), 2, rng)  # type: ignore[arg-type]
    assert apart(net.W[:h, :2], env["M"]) < 1e-12
    assert apart(np.linalg.norm(net.W[:h, 2:], axis=1), env["s"]) < 1e-12


@pytest.mark.parametrize("params", RUNS)
def test_each_neuron_moves_as_the_packages_does(
    params: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A neuron and its mirror are a network of two: `giant` takes its step on the page's batch."""
    run, raw = replay(MODEL, params, records=int(params["steps"])), draws(MODEL, params)
    env, curves, h = run["env"], run["curves"], int(params["h"])
    outside = np.linalg.norm(bartlett(raw["B1"], raw["chi1"]), axis=1)
    eta = params["rate"] * 2 * params["d"] ** ((params["leap"] - 1) / 2)
    assert curves["seen"][0] == 4
    assert curves["seen"][-1] == params["n"]
    for t, seen in enumerate(int(n) for n in curves["seen"]):
        nets = []
        for i in range(h):
            row = np.append(env["M"][i], env["s"][i])
            net = giant.Net(np.stack([row, row]), np.array([1.0, -1.0]), np.zeros(2),
                            int(params["d"]), 2)  # fmt: skip
            batch = np.column_stack([raw["X"], raw["Z"][:, i]])[:seen]
            monkeypatch.setattr(giant, "batches", lambda *_, batch=batch: iter([batch]))

            def rows(rng: object, rows: int, D: int, i: int = i) -> np.ndarray:
                assert (rows, D) == (1, freedom("one_step", "chi1", params))
                return outside[i].reshape(1, 1)

            monkeypatch.setattr(giant, "gaussian", rows)
            nets.append(giant.step(net, giant.CUBIC, target(params), seen, eta, (0, 0, "labs")))
        found = np.concatenate([[giant.overlaps(net)[k] for net in nets] for k in (0, 1)])
        assert apart(found[:, 0], curves["c1"][t]) < 1e-10
        assert apart(found[:, 1], curves["c2"][t]) < 1e-10
        share = np.concatenate([giant.share(net) for net in nets])
        assert curves["share"][t] == pytest.approx(np.sqrt(np.mean(share**2)), rel=1e-10)
        mu = hermite.multi(target(params), 2, 1)
        v = np.array([mu[1, 0], mu[0, 1]]) if params["leap"] == 1 else np.eye(2)[0]
        v /= np.linalg.norm(v)
        for key, u in (("along", v), ("across", np.array([-v[1], v[0]]))):
            assert curves[key][t] == pytest.approx(np.sqrt(np.mean((found @ u) ** 2)), rel=1e-10)


@pytest.mark.parametrize("params", RUNS)
def test_the_theory_is_that_of_the_chapter(params: Params) -> None:
    """Overlap and length by Hermite coefficients of target and activation, and the noise in V*."""
    run, leap, d = replay(MODEL, params, records=1), int(params["leap"]), params["d"]
    z = hermite.grid(hermite.gauss_hermite(12), 2)
    y = target(params)(*z.node.T)
    mu = hermite.multi(lambda *x: target(params)(*x) - params["mean"], 2, leap)
    mu = np.array([mu[leap, 0], mu[0, leap]])
    c = hermite.coefficients(giant.CUBIC.value, 3)
    rule = hermite.gauss_hermite(12)
    slope_square = rule.weight @ giant.CUBIC.slope(rule.node) ** 2
    size = params["rate"] * d ** ((leap - 1) / 2)
    M = run["env"]["M"].numpy()
    pull = c[leap] / max(leap - 1, 1) * mu * M ** (leap - 1)
    each = slope_square * size**2 / params["n"]
    inside = each * (z.weight @ (y[:, None] ** 2 * z.node**2)).sum()
    outside = each * (d - 2) * (z.weight @ y**2)
    for key, signal in (("theory", 1), ("noise", 0)):
        shares = []
        for way in (1, -1):
            learned = ((M + way * signal * size * pull) ** 2).sum(1) + inside
            own = (1 - (M**2).sum(1)) * (1 + way * size * c[2] * params["mean"]) ** 2
            shares.append(learned / (learned + outside + own))
        assert run["curves"][key][-1] == pytest.approx(np.sqrt(np.mean(shares)), rel=1e-10)


def test_the_numbers_of_the_sentence() -> None:
    run = replay(MODEL, RUNS[1], records=1)
    env = {k: float(run["env"][k]) for k in ("ratio", "kappa", "needed")}
    assert env["needed"] == pytest.approx(30**2, rel=1e-12)
    assert env["ratio"] == pytest.approx(1, rel=1e-12)
    assert env["kappa"] == pytest.approx(2, rel=1e-12)
    assert run["curves"]["slope"][-1] == pytest.approx(0, abs=1e-12)
    assert run["curves"]["chance"][0] == pytest.approx((2 / 30) ** 0.5, rel=1e-12)


@pytest.mark.parametrize("leap", [1, 2])
def test_ten_seeds_learn_beyond_the_switch_and_not_before(leap: int) -> None:
    """The means over ten seeds stand on either side, and where theory has them."""
    base = configs.load("giant_step")["params"] | {"leap": leap, "d": 40, "steps": 1}
    for factor, low, high in ((0.25, 0.0, 0.55), (4, 0.7, 1.0)):
        runs = [
            replay(MODEL, base | {"seed": seed, "n": round(factor * 40**leap)}, records=1)["curves"]
            for seed in range(10)
        ]
        share, theory = (np.mean([r[key][-1] for r in runs]) for key in ("share", "theory"))
        assert low < share < high
        assert share == pytest.approx(theory, rel=0.15)
