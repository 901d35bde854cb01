"""The models: random numbers, recorded runs, and the scripts that the build wrote."""

import functools
import json
import math
from typing import Any

import numpy as np
import pytest
import torch

from tests.labs.compare import FOLDER, ROOT, apart
from tools.labs import build
from tools.labs.models import MODELS
from tools.labs.replay import draws, replay, stream

SCRIPTS = [(FOLDER / f"{name}.js").read_text() for name in MODELS]
RUNS = [
    (name, run)
    for name in MODELS
    for run in json.loads((ROOT / "tests/labs/fixtures" / f"{name}.json").read_text())
]


def test_the_scripts_are_what_the_steps_give_now(capsys: pytest.CaptureFixture[str]) -> None:
    assert build.main(["--check"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize(("name", "run"), RUNS)
def test_node_replays_the_recorded_runs(node: Any, name: str, run: dict[str, Any]) -> None:
    sizes = {k: v for k, v in run["params"].items() if k in MODELS[name].trace}
    assert all(MODELS[name].trace[k] != v for k, v in sizes.items())
    call = {"what": "run", "model": name, "params": run["params"], "options": {"records": 4}}
    got = node(SCRIPTS, [call])[0]
    assert got["times"] == run["times"]
    for key, curve in run["curves"].items():
        assert apart(curve, got["curves"][key]) < 1e-12, key


@pytest.mark.parametrize(("name", "run"), RUNS)
def test_torch_replays_the_recorded_runs(name: str, run: dict[str, Any]) -> None:
    got = replay(MODELS[name], run["params"], records=4)
    for key, curve in run["curves"].items():
        assert apart(curve, got["curves"][key]) < 1e-11, key


def test_python_and_javascript_draw_the_same_numbers(node: Any) -> None:
    laws: list[list[Any]] = [["bits"]] * 2000 + [["uniform"]] * 500 + [["normal"]] * 3001
    laws += [["chi", df] for df in (1, 1.5, 2, 3, 10, 1999, 1e5, 999_999_999) for _ in range(200)]
    for seed, use in ((0, 0), (1, 3), (4294967295, 7)):
        got = node([], [{"what": "stream", "seed": seed, "use": use, "laws": laws}])[0]
        random = stream(seed, use)
        want = [getattr(random, law)(*df) for law, *df in laws]
        assert got[:2500] == want[:2500]
        for u, v in zip(want[2500:], got[2500:], strict=True):
            assert abs(u - v) <= 4e-15 * abs(u) + 1e-300


def test_the_numbers_have_their_laws() -> None:
    random, count = stream(5, 1), 40_000
    bits = np.array([random.bits() for _ in range(count)], dtype=np.uint32)
    ones = ((bits[:, None] >> np.arange(32, dtype=np.uint32)) & 1).mean(0)
    assert np.abs(ones - 0.5).max() < 4.5 * 0.5 / math.sqrt(count)
    z = np.array([random.normal() for _ in range(count)])
    for power, moment, sd in ((1, 0, 1), (2, 1, math.sqrt(2)), (3, 0, math.sqrt(15)),
                              (4, 3, math.sqrt(96))):  # fmt: skip
        assert abs((z**power).mean() - moment) < 4.5 * sd / math.sqrt(count)
    assert abs((z[:-1] * z[1:]).mean()) < 4.5 / math.sqrt(count)
    for df in (1, 3, 40, 1e6, 1e9):
        square = np.array([random.chi(df) for _ in range(4000)]) ** 2
        assert abs(square.mean() - df) < 4.5 * math.sqrt(2 * df / 4000)
        spread = math.sqrt((2 + 12 / df) / 4000)
        assert abs(square.var() / (2 * df) - 1) < 4.5 * spread


def test_streams_of_different_arrays_and_seeds_are_unrelated() -> None:
    def sample(seed: int, use: int) -> np.ndarray:
        random = stream(seed, use)
        return np.array([random.normal() for _ in range(4000)])

    base = sample(1, 0)
    for other in (sample(2, 0), sample(1, 1), sample(0, 1)):
        assert abs((base * other).mean()) < 4.5 / math.sqrt(4000)


def test_more_samples_keep_the_first_ones() -> None:
    params = dict(MODELS["signal_noise"].fixtures[0])
    few, many = (draws(MODELS["signal_noise"], params | {"n": n}) for n in (6, 9))
    assert torch.equal(few["Z"], many["Z"][:6, :6])
    for name in ("U", "F", "chi", "V", "E"):
        assert torch.equal(few[name], many[name][: len(few[name])]), name


def test_the_gram_form_is_gradient_descent_in_r_d() -> None:
    """One run in the full space: the weights, the test noise and the loss agree step by step."""
    from fltutils import lab

    params = {"seed": 3, "steps": 30, "n": 8, "m": 3, "d": 40, "mu": 2.0, "sigma": 1.0,
              "sigma0": 0.5, "flip": 0.2, "rate": 0.3, "q": 2.0}  # fmt: skip
    run = replay(MODELS["signal_noise"], params, records=30)
    env = run["env"]
    n, m, r = 8, 3, 6
    raw = draws(MODELS["signal_noise"], params)
    L = torch.tril(raw["Z"], -1) + torch.diag(raw["chi"])
    own = torch.tril(raw["B"], -1) + torch.diag(raw["chi_w"])
    zero = torch.zeros(n, 1, dtype=torch.float64)
    xi = torch.cat([zero, L, torch.zeros(n, r, dtype=torch.float64)], 1)
    W = 0.5 / math.sqrt(40) * torch.cat([raw["V"].t(), own], 1)
    mu = torch.zeros(1 + n + r, dtype=torch.float64)
    mu[0] = 2.0
    s, y = env["s"], env["y"]
    a = torch.tensor([1.0] * m + [-1.0] * m, dtype=torch.float64) / m

    def loss(W: torch.Tensor) -> torch.Tensor:
        f = a @ (torch.relu(s * (W @ mu)[:, None]) ** 2 + torch.relu(W @ xi.t()) ** 2)
        return torch.nn.functional.softplus(-y * f).mean()

    for t in range(31):
        assert abs(float(loss(W)) - run["curves"]["loss"][t]) < 1e-12
        W = W - env["eta"] * torch.func.grad(loss)(W)
    W0 = 0.5 / math.sqrt(40) * torch.cat([raw["V"].t(), own], 1)
    Z = torch.cat([mu[None], xi])
    C = torch.linalg.lstsq(Z.t(), (W - W0).t()).solution.t()
    last = lab.descend(*(env[k] for k in ("C", "A0", "G", "s", "y", "a", "q", "eta")))["C"]
    assert apart(C.tolist(), last.tolist()) < 1e-10


def test_the_labs_step_is_the_step_of_the_chapters() -> None:
    """The same data and start through fltutils.train: coefficients, outputs and errors agree."""
    from fltutils import data, measure, train

    for q, flip in ((1, 0.2), (3, 0.0)):
        params = {"seed": 5, "steps": 40, "n": 12, "m": 4, "d": 300, "mu": 4.0, "sigma": 1.5,
                  "sigma0": 0.3, "flip": flip, "rate": 0.2, "q": float(q)}  # fmt: skip
        run = replay(MODELS["signal_noise"], params, records=40)
        env, raw = run["env"], draws(MODELS["signal_noise"], params)
        n, m = 12, 4
        L = 1.5 * (torch.tril(raw["Z"], -1) + torch.diag(raw["chi"]))
        own = torch.tril(raw["B"], -1) + torch.diag(raw["chi_w"])
        xi = torch.cat([torch.zeros(n, 1), L, torch.zeros(n, 2 * m)], 1).double()
        W0 = 0.3 / math.sqrt(300) * torch.cat([raw["V"].t(), own], 1)
        mu = torch.zeros(1 + n + 2 * m, dtype=torch.float64)
        mu[0] = 4.0
        batch = data.given(
            mu[None],
            xi[None],
            env["s"][None],
            W0.view(1, 2, m, -1),
            y_obs=env["y"][None],
            sigma=1.5,
        )
        trained = train.train(
            batch, q=q, eta=float(env["eta"]), steps=40, record={"L": measure.train_loss}
        )
        losses = trained.history["L"][:, 0]
        assert apart(losses.tolist(), run["curves"]["loss"]) < 1e-12
        assert apart(trained.last.params.view(2 * m, -1).tolist(), env["C"].tolist()) < 1e-12


def test_the_giant_step_is_the_gradient_step_in_explicit_coordinates() -> None:
    """Three directions and one coordinate a neuron: autograd gives M, and S but for the outside."""
    from fltutils import giant_lab

    rng = torch.Generator().manual_seed(4)
    n, p, d = 60, 10, 200
    draw = functools.partial(torch.randn, generator=rng, dtype=torch.float64)
    M, L = draw(p, 3) / 3, torch.tril(draw(p, p)) / 3
    a, b = torch.sign(draw(p)), 2 * (draw(p) > 0).double()
    X, Z, B, chi = draw(n, 3), draw(n, p), draw(p, p), draw(p).abs() * (d - 3 - p) ** 0.5
    eta, *c = torch.tensor([2.0 * p, 1.0, 0.5, -1.0, 0.7, 0.3], dtype=torch.float64)
    S = L @ L.t()
    got = giant_lab.giant_step(M, S, a, b, X, Z, B, chi, eta, *c)

    inputs = torch.cat([X, Z], 1)
    W = torch.cat([M, giant_lab.root(S)], 1).requires_grad_()
    f = torch.relu(inputs @ W.t() + b) @ a / p
    loss = ((giant_lab.target(X, *c) - f) ** 2).mean() / 2
    (grad,) = torch.autograd.grad(loss, W)
    moved = (W - eta * grad).detach()
    assert torch.allclose(got["M"], moved[:, :3], rtol=1e-10, atol=1e-12)

    slope = (inputs @ W.t() + b > 0).double()
    pull = ((giant_lab.target(X, *c) - f)[:, None] * slope * a).detach() * eta / (p * n)
    R = giant_lab.root(pull.t() @ pull) @ (torch.tril(B, -1) + torch.diag(chi))
    inside = moved[:, 3:] @ moved[:, 3:].t()
    assert torch.allclose(got["S"], inside + R @ R.t(), rtol=1e-9, atol=1e-11)
