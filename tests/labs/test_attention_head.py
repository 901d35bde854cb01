"""The lab on attention, against `train` on `tokens` and the head written out."""

from statistics import NormalDist

import numpy as np
import pytest
import torch

from fltutils import models, tokens, train
from tests.labs.compare import apart
from tests.labs.test_physics import Params, bartlett
from tools.labs import configs
from tools.labs.attention_head import FRESH
from tools.labs.models import MODELS
from tools.labs.replay import draws, linear, replay

pytestmark = pytest.mark.slow
Tensor = torch.Tensor
MODEL, EVERY = MODELS["attention_head"], 10
RUNS: list[Params] = [
    {"seed": 4, "steps": 60, "n": 6, "snr": 0.9, "theta": 60, "start": 0.01, "d": 2e15,
     "width": 1e9, "rate": 0.3},
    {"seed": 5, "steps": 40, "n": 9, "snr": 0.4, "theta": 8, "start": 0.4, "d": 90, "width": 150,
     "rate": 0.5},
]  # fmt: skip


def all_rows(params: Params) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Training and fresh tokens, and W_Q, W_K, v, in the coordinates of all of them."""
    raw, t = draws(MODEL, params), 2 + 3 * int(params["n"])
    rows = t + FRESH
    X = torch.zeros(rows, rows, dtype=torch.float64)
    X[0, 0] = X[1, 1] = params["snr"]
    X[2:, 2:] = torch.from_numpy(bartlett(raw["Z"], raw["chi"])) / params["d"] ** 0.5
    W = (
        torch.from_numpy(bartlett(raw["B"], raw["chi_w"]))
        * (params["theta"] / params["width"]) ** 0.5
    )
    W_Q = torch.cat([W[:t], W[2 * t : 2 * t + FRESH]])
    W_K = torch.cat([W[t : 2 * t], W[2 * t + FRESH :]])
    v = torch.cat([raw["v_signal"], raw["v_noise"].flatten(), raw["v_fresh"]])
    return X, W_Q, W_K, params["start"] * v


def in_package(params: Params) -> tokens.Tokens:
    """The training part as the package's batch of one run."""
    n, t = int(params["n"]), 2 + 3 * int(params["n"])
    X, W_Q, W_K, v = (x[:t] for x in all_rows(params))
    y = np.where(np.arange(n) < n / 2, 1.0, -1.0)
    lead = np.stack([y > 0, y < 0], 1).astype(float)
    scale = [[(params["theta"] / params["width"]) ** 0.5, params["start"]]]
    return tokens.given(
        X[None, :, :t], lead[None], y[None], W_Q[None, :, : 2 * t], W_K[None, :, : 2 * t], v[None],
        scale=scale, run=[0], loud=1.0, L=4, d=int(params["d"]), width=int(params["width"]), seed=0,
    )  # fmt: skip


def fresh_margins(s: train.State, params: Params) -> Tensor:
    """y f on fresh sequences, one by one, with all weights in all coordinates."""
    X, W_Q, W_K, v = all_rows(params)
    t = len(X) - FRESH
    (A, B, b), own = (leaf[0] for leaf in s.params), X[:t]
    W_Q, W_K = W_Q.clone(), W_K.clone()
    W_Q[:, : 2 * t] += own.T @ A
    W_K[:, : 2 * t] += own.T @ B
    v = v + own.T @ b
    found = []
    for label, row in ((1.0, 0), (-1.0, 1)):
        for i in range(FRESH // 3):
            x = torch.stack([X[row], *X[t + 3 * i : t + 3 * i + 3]])
            S = ((x @ W_Q) @ (x @ W_K).T).softmax(1)
            found.append(label * (S @ (x @ v)).mean())
    return torch.stack(found)


def mean_loss(margins: Tensor) -> Tensor:
    return torch.nn.functional.softplus(-margins).mean(-1)


def ahead(r: float, lead: float) -> float:
    """The x > 0 with x (1 + r (1 + x)) = lead, by bisection."""
    low, high = 0.0, lead
    for _ in range(60):
        x = (low + high) / 2
        low, high = (x, high) if x * (1 + r * (1 + x)) < lead else (low, x)
    return low


@pytest.mark.parametrize("params", RUNS)
def test_each_record_of_the_head_is_the_packages(params: Params) -> None:
    steps = int(params["steps"])
    run = replay(MODEL, params, records=steps // EVERY)
    data = in_package(params)

    def look(s: train.State) -> Tensor:
        _, (_, _, v, S) = tokens.outputs(s.params, s.data)
        return torch.cat([S, (s.data.y[..., None] * v)[..., None, :]], 2)

    record = {
        "look": look,
        "loss": lambda s: models.logistic(s.f, s.data.y),
        "margins": lambda s: fresh_margins(s, params)[None],
    }
    eta = params["rate"] * params["n"]
    history = train.train(
        tokens.problem(data), eta=eta, steps=steps, record=record, every=EVERY
    ).history
    S, v = history["look"][:, 0, :, :4], history["look"][:, 0, :, 4]
    loss = history["loss"][:, 0]
    T = params["rate"] * EVERY * torch.arange(len(loss)).double()
    c = params["n"] * params["snr"] ** 2
    margin = -loss.expm1().log()
    expected = {
        "loss": loss,
        "test_loss": mean_loss(history["margins"][:, 0]),
        "error": (history["margins"][:, 0] <= 0).double().mean(1),
        "even": torch.log1p(torch.exp(-margin * c / (c + 6))),
        "on_signal": S[..., 0].mean((1, 2)),
        "to_signal": (S[..., 0].mean(2) > 0.5).double().mean(1),
        "map": S[:, 0].flatten(1),
        "looks": S[:, 0].mean(1),
        "first": S[:, 0, :, 0].mean(1),
        "first_noise": S[:, 0].mean(1)[:, 1:].amax(1),
        "on_noise": S.mean(2)[..., 1:].amax(2).mean(1),
        "signal_value": v[..., 0].mean(1),
        "noise_value": v[..., 1:].amax(2).mean(1),
        "signal_theory": c / 2 * T / 8,
        "noise_theory": T / 8,
    }
    assert set(run["curves"]) == set(expected)
    for key, values in expected.items():
        assert apart(values, run["curves"][key]) < 1e-8, key
    n, d = params["n"], params["d"]
    told = 2 * (
        1 + ahead(3 / (n / 2), 4 * NormalDist().inv_cdf(0.5 ** (1 / 3)) * (3 * n / d) ** 0.5)
    )
    assert float(run["env"]["c"]) == pytest.approx(c)
    assert float(run["env"]["switch"]) == pytest.approx(told, rel=1e-5)
    assert float(run["env"]["ratio"]) == pytest.approx(c / told, rel=1e-5)
    assert 0.01 < float(loss[-1]) < 0.6


@pytest.mark.parametrize("params", RUNS)
def test_the_draws_of_the_head_have_the_packages_degrees_of_freedom(params: Params) -> None:
    """Noise off two signals; queries and keys of all rows share one width."""
    assert linear(MODEL.draws["chi"]["df"], params) == params["d"] - 2
    assert linear(MODEL.draws["chi_w"]["df"], params) == params["width"]
    X, W_Q, W_K, _ = all_rows(params)
    assert float((X[2:, :2]).abs().max()) == 0
    if params["d"] > 1e9:
        assert apart((X[2:] @ X[2:].T).diagonal(), torch.ones(len(X) - 2)) < 1e-6
        square = (W_Q.square().sum(1) + W_K.square().sum(1)) / 2
        assert apart(square, torch.full((len(square),), params["theta"])) < 1e-3


def test_the_linear_rival_of_the_lab_is_the_chapters() -> None:
    """`even` against a head whose attention is never trained, at the same training loss."""
    params = configs.load("transformer_overfitting")["params"] | {"snr": 0.8}
    data = in_package(params)
    problem = tokens.problem(data)

    def descent(f: Tensor, cache: tuple[Tensor, ...], data: tokens.Tokens) -> tuple[Tensor, ...]:
        D_Q, D_K, D_v = tokens.descent(f, cache, data)
        return 0 * D_Q, 0 * D_K, D_v

    still = train.train(problem._replace(descent=descent), eta=8.0, steps=2000, stop=0.02)
    found = float(mean_loss(fresh_margins(still.last, params)))
    c = params["n"] * params["snr"] ** 2
    margin = -float(still.loss.expm1().log())
    assert found == pytest.approx(np.log1p(np.exp(-margin * c / (c + 6))), rel=0.01)
