"""Every number that a lab shows, against `measure`, `giant` and `hermite` on the same draws."""

import functools
import itertools
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from fltutils import giant, hermite, measure, models, signal_noise, span, train
from fltutils.signal_noise import SignalNoise
from tests.labs.compare import apart
from tools.labs import configs, giant_steps
from tools.labs import signal_noise as lab
from tools.labs.models import MODELS
from tools.labs.replay import call, draws, linear, replay

Tensor = torch.Tensor
Params = dict[str, float]
EVERY = 10
# Some test errors are neither 0 nor 1/2, some labels are flipped, sigma is not 1.
RUNS: list[Params] = [
    {"seed": 5, "steps": 60, "n": 12, "m": 4, "d": 300, "mu": 3.5, "sigma": 1.5, "sigma0": 0.3,
     "tied": 1, "flip": 0.2, "rate": 0.6, "q": 1},
    {"seed": 6, "steps": 40, "n": 15, "m": 3, "d": 90, "mu": 2, "sigma": 0.4, "sigma0": 0.8,
     "tied": 1, "flip": 0.3, "rate": 0.1, "q": 3},
    {"seed": 3, "steps": 40, "n": 20, "m": 6, "d": 1e6, "mu": 900, "sigma": 2, "sigma0": 0.1,
     "tied": 1, "flip": 0.1, "rate": 0.2, "q": 2},
]  # fmt: skip
GIANT: list[Params] = [
    {"seed": 4, "steps": 3, "kappa": 1.4, "h": 5, "d": 70, "bias": 4, "rate": 3,
     "linear1": 1, "linear2": -0.5, "square1": 1, "square2": -1, "cross": 0.7},
    {"seed": 9, "steps": 4, "kappa": 1.2, "h": 6, "d": 90, "bias": 2, "rate": 1,
     "linear1": 0, "linear2": 0, "square1": 0.5, "square2": 1, "cross": -1},
]  # fmt: skip
THRESHOLDS = {"ratio", "kappa", "c", "snr"}
# held by the tests of each lab's own model
ELSEWHERE = {
    "grown",
    "votes",
    "throw",
    "reached",
    "samples",
    "tilt",
    "race",
    "race1",
    "critical",
    "x",
    "switch",
}


def random_arrays(params: Params) -> dict[str, np.ndarray]:
    return {k: v.numpy() for k, v in draws(MODELS["signal_noise"], params).items()}


def freedom(model: str, name: str, params: Params) -> float:
    """Degrees of freedom of the first entry of a chi array."""
    return linear(MODELS[model].draws[name]["df"], params)


def turned(params: Params) -> SignalNoise:
    """The batch of a lab's run, built from its draws and turned by a random rotation."""
    p, raw = params, random_arrays(params)
    n, m = int(p["n"]), int(p["m"])
    size = 1 + n + 2 * m
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((size, size)))[0]
    xi, W0 = np.zeros((n, size)), np.zeros((2 * m, size))
    for i in range(n):
        xi[i, 1 : 1 + i], xi[i, 1 + i] = raw["Z"][i, :i], raw["chi"][i]
    for i in range(2 * m):
        W0[i, : 1 + n] = raw["V"].reshape(1 + n, 2 * m)[:, i]
        W0[i, 1 + n : 1 + n + i], W0[i, 1 + n + i] = raw["B"][i, :i], raw["chi_w"][i]
    y = np.where(raw["U"] > 0.5, 1.0, -1.0)
    flipped = np.argsort(raw["F"])[: math.floor(p["flip"] * n + 0.5)]
    y_obs = np.where(np.isin(np.arange(n), flipped), -y, y)
    tie = (p["n"] / p["d"]) ** 0.5 if p["tied"] and p["q"] < 2 else 1.0
    W0 *= p["sigma0"] * tie / p["d"] ** 0.5
    return signal_noise.given(
        p["mu"] * Q[None, 0], p["sigma"] * xi[None] @ Q, y[None], (W0 @ Q).reshape(1, 2, m, size),
        y_obs=y_obs[None], sigma=p["sigma"],
    )  # fmt: skip


class Given:
    """A generator whose normals are given."""

    def __init__(self, *arrays: np.ndarray) -> None:
        self.arrays = iter(arrays)

    def standard_normal(self, shape: Any = None, out: np.ndarray | None = None) -> np.ndarray:
        if out is None:
            return next(self.arrays).reshape(shape)
        out[...] = next(self.arrays).reshape(out.shape)
        return out

    def choice(self, values: Any, size: int) -> np.ndarray:
        return next(self.arrays).reshape(size)


def fresh(s: train.State, E: Tensor, y: float, q: int, signal: float = 1.0) -> Tensor:
    """f on fresh samples in all coordinates, whose noise the weights see through E."""
    W = signal_noise.weights(s)
    W, mu, sigma = W[0].flatten(0, 1), s.data.mu[0], s.data.sigma[0]
    off = W - torch.outer(W @ mu, mu) / mu.square().sum()
    Q, R = torch.linalg.qr(off.T)
    xi = sigma * E * torch.sign(R.diagonal()) @ Q.T
    patch = (signal * y * mu).expand(len(E), -1)
    return models.cnn(signal_noise.weights(s), patch[None], xi[None], q)[0]


def race(params: Params, batch: SignalNoise, eta: float) -> Iterator[tuple[float, float]]:
    """Equation (eq-race) of benign_overfitting.md, the first times 1 - 2p: what was added to z."""
    p, q = params, params["q"]
    A = (batch.W0 @ batch.X[:, None].transpose(2, 3))[0]
    z = max(float(A[0, :, 0].max()), float(-A[1, :, 0].min()))
    c = [0 if label > 0 else 1 for label in batch.y_obs[0]]
    z_i = max(float(A[c[i], :, 1 + i].max()) for i in range(len(c)))
    start, start_i = z, z_i
    while True:
        yield z - start, z_i - start_i
        z += eta * q / (4 * p["m"]) * p["mu"] ** 2 * z ** (q - 1) * (1 - 2 * p["flip"])
        z_i += eta * q / (2 * p["n"] * p["m"]) * p["sigma"] ** 2 * p["d"] * z_i ** (q - 1)


def by_package(params: Params, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    """The records of a lab's run by `train`, `measure` and, on fresh data, the network itself."""
    batch, q, E = turned(params), int(params["q"]), random_arrays(params)["E"]
    eta = params["rate"] * params["m"]
    eta /= max(params["mu"] ** 2, params["sigma"] ** 2 * params["d"] / params["n"])
    E = E.reshape(len(E), -1)
    monkeypatch.setattr(measure.span, "stream", lambda *_: Given(E))
    noise, flipped = torch.tensor(E), (batch.y_obs != batch.y)[0]
    own = torch.where(batch.y_obs > 0, 0, 1)[0]

    def of_own_class(s: train.State) -> Tensor:
        rho = measure.rho(s)
        return torch.stack([rho[0, own[i], :, i].max() for i in range(len(own))])[None]

    def each(s: train.State) -> Tensor:
        return torch.log1p(torch.exp(-batch.y_obs * s.f))

    def effect(s: train.State) -> Tensor:
        """Half of what the sign of the signal patch changes, on average."""
        y_f = [y * fresh(s, noise, y, q) for y in (1.0, -1.0)]
        return torch.cat(y_f).mean()[None]

    def of_class(s: train.State, y: float) -> Tensor:
        return y * fresh(s, noise, y, q)

    def alone(s: train.State, y: float) -> Tensor:
        """What the signal patch adds to y f."""
        return (of_class(s, y) - y * fresh(s, noise, y, q, 0.0)).mean()[None]

    def wrong(s: train.State) -> Tensor:
        return torch.cat([y * fresh(s, noise, y, q) <= 0 for y in (1, -1)]).double().mean()[None]

    def old(s: train.State, y: float) -> Tensor:
        patch = (y * batch.mu[0]).expand(batch.xi.shape[1], -1)
        return y * models.cnn(signal_noise.weights(s), patch[None], batch.xi, q)[0]

    record: dict[str, Callable[[train.State], Tensor]] = {
        "loss": measure.train_loss,
        "loss_clean": lambda s: each(s)[:, ~flipped].mean(1),
        "loss_flipped": lambda s: each(s)[:, flipped].mean(1),
        "train_error": measure.train_error,
        "test_error": lambda s: measure.test_error(s, q=q, samples=len(E)),
        "old_error": lambda s: torch.cat([old(s, y) <= 0 for y in (1, -1)]).double().mean()[None],
        "wrong": wrong,
        "error_plus": lambda s: (of_class(s, 1.0) <= 0).double().mean()[None],
        "error_minus": lambda s: (of_class(s, -1.0) <= 0).double().mean()[None],
        "signal_plus": lambda s: alone(s, 1.0),
        "signal_minus": lambda s: alone(s, -1.0),
        "signal": effect,
        "spread": lambda s: fresh(s, noise, 1.0, q, 0.0).square().mean()[None].sqrt(),
        "fresh": lambda s: fresh(s, noise, 1.0, q, 0.0)[None, :10],
        "gamma": lambda s: measure.gamma(s).flatten(1),
        "gamma_max": lambda s: measure.gamma(s).amax((1, 2)),
        "rho": of_own_class,
        "rho_max": lambda s: of_own_class(s).amax(1),
        "y": lambda s: s.data.y,
        "answers": lambda s: s.f,
        "flipped": lambda s: flipped[None].double(),
        "flips": lambda _: flipped.sum()[None].double(),
        "fit_flipped": lambda s: (batch.y_obs * s.f > 0)[:, flipped].double().mean(1),
    }
    steps = int(params["steps"])
    trained = train.train(
        signal_noise.problem(batch, q=q), eta=eta, steps=steps, record=record, every=EVERY
    )
    found = {name: value[:, 0].tolist() for name, value in trained.history.items()}
    theory = list(itertools.islice(race(params, batch, eta), 0, steps + 1, EVERY))
    found["gamma_theory"], found["rho_theory"] = (list(z) for z in zip(*theory, strict=True))
    return found


@pytest.mark.parametrize("params", RUNS)
def test_each_record_on_signal_and_noise_is_the_packages(
    params: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = replay(MODELS["signal_noise"], params, records=int(params["steps"]) // EVERY)
    found = by_package(params, monkeypatch)
    assert found.pop("wrong") == pytest.approx(found["test_error"], abs=1e-15)
    assert set(run["curves"]) == set(found)
    for key, curve in found.items():
        assert apart(curve, run["curves"][key]) < 1e-9, key
    assert 0 < found["test_error"][-1] < 0.5
    assert any(v > 0 for v in found["train_error"])
    assert 0 < sum(found["flipped"][0]) < params["n"]


@pytest.mark.parametrize("params", RUNS)
def test_the_start_on_signal_and_noise_is_the_packages(params: Params) -> None:
    env = replay(MODELS["signal_noise"], params | {"steps": 0})["env"]
    data = signal_noise.problem(turned(params)).data
    assert apart(data.G[0], env["G"]) < 1e-12
    assert apart(data.A0.view(env["A0"].shape), env["A0"]) < 1e-12
    assert torch.equal(data.y[0], env["y"])
    assert torch.equal(data.y_obs[0], env["y_obs"])


@pytest.mark.parametrize("params", RUNS)
def test_the_draws_on_signal_and_noise_have_the_packages_degrees_of_freedom(
    params: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    bartlett = span.bartlett

    def spy(rng: span.Rng, rows: int, D: int) -> np.ndarray:
        made.append(D)
        return bartlett(rng, rows, D)

    monkeypatch.setattr(span, "bartlett", spy)
    n, m, d = (int(params[name]) for name in ("n", "m", "d"))
    signal_noise.draw(n=n, d=d, m=m, mu=1.0, sigma0=1.0)
    assert made == [freedom("signal_noise", name, params) for name in ("chi", "chi_w")]


@pytest.mark.parametrize("params", RUNS[:2])
def test_the_labs_few_fresh_samples_have_the_law_of_many(params: Params) -> None:
    run = replay(MODELS["signal_noise"], params, records=1)
    problem = signal_noise.problem(turned(params), q=int(params["q"]))
    last = train.train(problem, eta=float(run["env"]["eta"]), steps=int(params["steps"])).last
    many = float(measure.test_error(last, q=int(params["q"]), samples=20_000))
    assert 0.01 < many < 0.49
    gap = abs(run["curves"]["test_error"][-1] - many)
    assert gap < 5 * math.sqrt(many * (1 - many) * (1 / 400 + 1 / 20_000))


@pytest.mark.parametrize("params", RUNS)
def test_the_thresholds_are_those_of_the_chapter(params: Params) -> None:
    """The chapter chooses mu = sigma (k d/n)^(1/4) for ReLU, sigma (c/n)^(1/q) d^(1/2) beyond."""
    env = replay(MODELS["signal_noise"], params | {"steps": 0})["env"]
    env, p, mu = {k: float(env[k]) for k in THRESHOLDS}, params, params["mu"] / params["sigma"]
    assert (env["kappa"] * p["d"] / p["n"]) ** 0.25 == pytest.approx(mu, rel=1e-12)
    assert (env["c"] / p["n"]) ** (1 / p["q"]) * p["d"] ** 0.5 == pytest.approx(mu, rel=1e-12)
    assert env["snr"] == pytest.approx(mu / p["d"] ** 0.5, rel=1e-12)
    line = 0.5 if p["q"] == 1 else float(lab.c_star(p["m"], lab.STOP, p["q"]))
    assert env["ratio"] == pytest.approx(env["kappa" if p["q"] == 1 else "c"] / line, rel=1e-9)


@pytest.mark.parametrize("d", [2000, 10**6, 10**9])
def test_the_predicted_line_of_the_benign_lab_stays_where_d_goes(d: int) -> None:
    """ReLU in the lab errs on either side of k = 1/2 as the chapter's networks do, whatever d."""
    params = configs.load("benign_overfitting")["params"] | {"q": 1, "d": d}
    found = []
    for k in (0.1, 4.0):
        params["mu"] = (k * d / params["n"]) ** 0.25
        run = replay(MODELS["signal_noise"], params, records=1)
        assert float(run["env"]["ratio"]) == pytest.approx(2 * k)
        found.append(run["curves"]["test_error"][-1])
    assert found[0] > 0.25
    assert found[1] < 0.1


@pytest.mark.parametrize("q", [1, 3])
def test_the_early_theory_is_the_pull_of_a_flat_loss(q: int) -> None:
    """A fifth of the labels of each class flipped, all outputs 0: `models.pull` gives the race."""
    n, m, d, mu, sigma, eta, u, v = 20, 3, 500.0, 2.0, 1.5, 0.3, 0.7, 0.4
    y = torch.tensor([1.0, -1.0]).double().repeat(n // 2)[None]
    y_obs = y * torch.tensor([-1.0, -1.0] + [1.0] * 8).double().repeat(2)
    A = torch.zeros(1, 2, m, 1 + n, dtype=torch.float64)
    A[:, 0, :, 0], A[:, 1, :, 0] = u, -u
    A[..., 1:] = v
    C = models.pull(A, y, models.downhill(torch.zeros_like(y), y_obs), q)[0]
    numbers = (u, v, q, eta, mu, sigma, d, m, 0.2)
    found = lab.theory(*(torch.tensor(float(x), dtype=torch.float64) for x in numbers), y[0])
    for j, c in ((1, 0), (-1, 1)):
        up = u + eta * mu**2 * j * C[c, :, 0]
        assert apart(up, found["u"].expand(m)) < 1e-12
        own = v + eta * sigma**2 * d * C[c, :, 1:][:, y_obs[0] == j]
        assert apart(own, found["v"].expand(own.shape)) < 1e-12


@pytest.mark.parametrize("name", configs.names())
def test_no_lab_shows_a_number_that_nothing_here_holds(name: str) -> None:
    config = configs.load(name)
    run = replay(MODELS[config["model"]], config["params"] | {"steps": 0})
    curves = [curve for plot in config["plots"] for curve in plot["curves"]]
    shown = {c["key"] for c in curves} | {c["where"][0] for c in curves if "where" in c}
    if phase := config.get("phase"):
        shown |= {phase["show"], config["switch"]["key"]}
    numbers = {k for k, v in run["env"].items() if not v.dim()} - set(config["params"])
    asked = " ".join(re.findall(r"'if': '[^']*'|{\w+", str(config["sentence"])))
    shown |= set(re.findall(r"\w+", asked)) & numbers
    assert shown <= set(run["curves"]) | THRESHOLDS | ELSEWHERE


# --- giant steps --------------------------------------------------------------------------------


def target(params: Params) -> Callable[..., np.ndarray]:
    """The target by Hermite polynomials; it ignores its third direction."""

    def f_star(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        H_x, H_y = hermite.polynomials(x, 2), hermite.polynomials(y, 2)
        linear = params["linear1"] * H_x[1] + params["linear2"] * H_y[1]
        squares = params["square1"] * H_x[2] + params["square2"] * H_y[2]
        return linear + squares + params["cross"] * H_x[1] * H_y[1]

    return f_star


def directions(params: Params) -> tuple[np.ndarray, float]:
    """v*, the direction of the linear part or else the first, and that part's size."""
    mu = hermite.multi(target(params), 3, 1)
    linear = np.array([mu[1, 0, 0], mu[0, 1, 0], mu[0, 0, 1]])
    size = float(np.linalg.norm(linear))
    return (linear / size if size > 1e-9 else np.eye(3)[0]), size


def net_of(env: dict[str, Tensor], d: float) -> giant.Net:
    """A page's network in coordinates: three directions, then those of its Gram matrix."""
    L = giant_steps.root(env["S"]).numpy()
    assert apart(env["S"], L @ L.T) < 1e-7
    W = np.hstack([env["M"].numpy(), L])
    return giant.Net(W, env["a"].numpy(), env["b"].numpy(), int(d), 3)


def bartlett(B: Tensor, chi: Tensor) -> np.ndarray:
    return np.tril(B.numpy(), -1) + np.diag(chi.numpy())


def cosines(net: giant.Net, params: Params) -> dict[str, Any]:
    """What the lab shows of a network, by `giant` and `hermite`."""
    v, size = directions(params)
    across = np.array([-v[1], v[0], 0.0])
    rms = {
        name: float(np.sqrt(np.mean(giant.share(net, u[:, None]) ** 2)))
        for name, u in (("along", v), ("across", across), ("third", np.eye(3)[2]))
    }
    stair = float(np.linalg.norm(hermite.conditional(target(params), v[:, None])))
    n = round(params["d"] ** params["kappa"])
    rms |= dict(zip(("first", "second"), giant.overlaps(net).T[:2].tolist(), strict=True))
    return rms | {"linear": size, "stair": stair, "batch": n, "random": params["d"] ** -0.5}


class Page:
    """The draws of a page where `giant` asks for its own."""

    batch: np.ndarray
    own: np.ndarray  # Bartlett's, one row a column of the lab's root
    outside: float

    def root(self, root: Callable[[np.ndarray], np.ndarray], K: np.ndarray) -> np.ndarray:
        """The package's root leaves out columns of zero pivots; it takes the rows of the others."""
        L = root(K)
        self.kept = [int(np.flatnonzero(np.abs(c) > 1e-8 * np.abs(c).max())[0]) for c in L.T]
        return L

    def gaussian(self, rng: Any, rows: int, D: int) -> np.ndarray:
        assert (rows, D) == (len(self.kept), self.outside)
        return self.own[self.kept]


@pytest.mark.parametrize("params", GIANT)
def test_each_giant_step_and_record_is_the_packages(
    params: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`giant` is fed the page's batches: gradient, what leaves the coordinates, and cosines."""
    model, d = MODELS["giant_steps"], params["d"]
    run, raw = replay(model, params, records=int(params["steps"])), draws(model, params)
    env = {k: torch.tensor(float(v), dtype=torch.float64) for k, v in params.items()} | raw
    for step in model.init:
        env |= call(step, env)
    n, page = round(d ** params["kappa"]), Page()
    monkeypatch.setattr(giant, "batches", lambda *_: iter([page.batch]))
    monkeypatch.setattr(giant, "gaussian", page.gaussian)
    monkeypatch.setattr(giant, "_root", functools.partial(page.root, giant._root))
    for t in range(1 + int(params["steps"])):
        for key, value in cosines(net_of(env, d), params).items():
            assert run["curves"][key][t] == pytest.approx(value, abs=1e-7), (key, t)
        if t == int(params["steps"]):
            break
        X, Z, B, chi = (raw[f"{name}{t + 1}"] for name in ("X", "Z", "B", "chi"))
        page.batch, page.own = torch.cat([X, Z], 1).numpy(), bartlett(B, chi)
        page.outside = freedom("giant_steps", f"chi{t + 1}", params)
        eta = params["rate"] * len(chi)
        net = giant.step(net_of(env, d), giant.RELU, target(params), n, eta, (0, 0, "labs"))
        for step in model.step:
            env |= call(step, env)
        gram = net.W[:, 3:] @ net.W[:, 3:].T
        exact = 1e-4 if t == 0 else 1e-6  # mirrored neurons: the lab lifts zero pivots by 1e-8
        assert apart(net.W[:, :3], env["M"]) < 1e-9, t
        assert apart(gram, env["S"]) < exact, t
    assert set(run["curves"]) == {*cosines(net, params), "x1", "x2", "y"}


@pytest.mark.parametrize("params", GIANT)
def test_the_giant_start_is_the_packages(params: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    model, h, d = MODELS["giant_steps"], int(params["h"]), int(params["d"])
    raw, env = draws(model, params), replay(model, params | {"steps": 0})["env"]
    own = bartlett(raw["B0"], raw["chi0"])

    def rows(rng: Any, rows: int, D: int) -> np.ndarray:
        assert D == freedom("giant_steps", "chi0", params)
        return own[:rows, :rows]

    monkeypatch.setattr(giant, "gaussian", rows)
    rng: Any = Given(raw["V"].numpy(), np.where(raw["U"] > 0.5, 1.0, -1.0))
    biases = np.where(raw["F"] > 0.5, params["bias"], 0.0)
    net = giant.start(2 * h, d, 3, rng, biases=biases)
    order = [*range(h), *reversed(range(h, 2 * h))]  # the package mirrors, the lab repeats
    assert apart(net.W[order, :3], env["M"]) < 1e-12
    gram = net.W[:, 3:] @ net.W[:, 3:].T
    assert apart(gram[order][:, order], env["S"]) < 1e-12
    assert apart(net.a[order], env["a"]) == 0
    assert apart(net.b[order], env["b"]) == 0


def test_a_random_directions_cosine_is_that_of_the_start() -> None:
    d = 80
    net = giant.start(4000, d, 3, np.random.default_rng(0))
    size = float(np.sqrt(np.mean(giant.overlaps(net)[:2000] ** 2)))
    assert size == pytest.approx(d**-0.5, rel=5 / math.sqrt(2 * 6000))
