"""The lab on in-context learning, against the chapter's own functions on the page's draws."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from fltutils import attention
from tests.fltutils.test_chapters import definitions
from tests.labs.compare import apart
from tests.labs.test_physics import Params
from tools.labs.models import MODELS
from tools.labs.prompts import ANSWER, READOUT, SILENT
from tools.labs.replay import replay, sources

pytestmark = pytest.mark.slow
Tensor = torch.Tensor
MODEL = MODELS["prompts"]
RUNS: list[Params] = [
    {"seed": 3, "steps": 90, "n": 8, "examples": 6, "m": 8, "start": 0.4, "ahead": 0, "b": 0.6,
     "sigma": 0.05, "rate": 1},
    {"seed": 4, "steps": 60, "n": 12, "examples": 8, "m": 16, "start": 0.3, "ahead": -1.2, "b": 0.9,
     "sigma": 0.1, "rate": 1.5},
]  # fmt: skip
ASKED = torch.tensor([1.0, -1.0], dtype=torch.float64)


def chapter(params: Params) -> dict[str, Any]:
    """The chapter's network and its two numbers, at the sizes of the page."""
    p, L = 2 * int(params["m"]), int(params["examples"])
    names = ("vectors", "look", "neurons", "outputs", "pulls", "error", "two_numbers", "omega")
    return definitions(
        "in_context", *names, attention=attention, ASKED=ASKED, K=1, L=L, ETA=params["rate"],
        VOTES=ASKED.repeat_interleave(p // 2) / p**0.5, spread_square=lambda L: (L - 2) / L**2,
    )  # fmt: skip


def prompts(own: dict[str, Any], params: Params, *raw: Any) -> Any:
    """Prompts of the page's next draws as the chapter's batch of one run."""
    U, *noises = (next(x) for x in raw)
    n = len(U)
    y = torch.where(U > 0.5, 1.0, -1.0).double()
    y[:, 0], y[:, 1] = 1.0, -1.0
    k = torch.zeros(n, 1, dtype=torch.long)
    words, said, query = (params["sigma"] * Z for Z in noises)
    X = own["vectors"](k, y, 1.0, params["b"], words)
    Y = own["vectors"](k, y, 1.0, ANSWER, said)
    Q = own["vectors"](k, ASKED.expand(n, 2), 1.0, params["b"], query)
    return SimpleNamespace(X=X[None], Y=Y[None], Q=Q[None], y=y, weight=1.0)


@pytest.mark.parametrize("params", RUNS)
def test_the_run_is_the_chapters(params: Params) -> None:
    own, raw, steps = chapter(params), sources(MODEL, params), int(params["steps"])
    W = READOUT * next(raw["W"])
    s = (W[:, 0] > 0).double().mean()
    W_O = torch.cat([W, W])
    W_O[:, 1] = own["VOTES"] * params["ahead"] * params["start"] / s**0.5
    eye = params["start"] * torch.eye(W.shape[1], dtype=torch.float64)
    now = eye[None], eye[None], W_O[None]
    test = prompts(own, params, *(raw[x + "_test"] for x in "UXYQ"))
    expected: dict[str, list[Tensor]] = {}
    for _ in range(steps + 1):
        f, (S, _, _) = own["outputs"](now, test)
        alike = test.y[:, None] * ASKED[:, None] > 0
        W_Q, W_K, _ = now
        values = {
            "beta_Q": W_Q[0, 1, 1],
            "beta_K": W_K[0, 1, 1],
            "alpha": W_Q[0, 0, 0],
            "alpha_K": W_K[0, 0, 0],
            "agree": (S[0] * alike).sum(-1).mean(),
            "error": own["error"](f * (f.abs() > SILENT))[0],
            "strength": params["b"] ** 2 * (W_K[0].T @ W_Q[0])[1, 1],
        }
        for name, value in values.items():
            expected.setdefault(name, []).append(value)
        batch = prompts(own, params, *(raw[x] for x in ("U", "Z_X", "Z_Y", "Z_Q")))
        f, cache = own["outputs"](now, batch)
        pull = own["pulls"](f, cache, batch, now)
        now = tuple(w + params["rate"] * g for w, g in zip(now, pull, strict=True))
    run = replay(MODEL, params, records=steps)["curves"]
    for name, told in expected.items():
        assert apart(torch.stack(told), run[name]) < 1e-9, name
    z = torch.stack(expected["strength"])
    assert float(z[-1] / z[0] - 1) ** 2 > 0.04
    x = SimpleNamespace(
        b=params["b"], d=ANSWER, start=params["start"], ahead=params["ahead"], c=1.0
    )
    told_z = own["two_numbers"](x, s[None, None], steps)[:, 0, 0]
    low = told_z < 0.45
    assert (
        apart(told_z[low].sqrt() / params["b"], torch.tensor(run["law"], dtype=torch.float64)[low])
        < 1e-9
    )
    for name, curve in (("doubled", z), ("foretold", told_z)):
        first = next((t for t in range(steps + 1) if curve[t] > 4 * curve[0]), 0)
        assert run[name][-1] == first, name


def test_the_shown_prompt_has_its_good_words_first() -> None:
    params = RUNS[0] | {"steps": 150}
    run = replay(MODEL, params, records=3)["curves"]
    plus, minus = (torch.tensor(run[name][-1]) for name in ("plus", "minus"))
    assert float(plus[:3].sum()) == pytest.approx(run["good"][-1])
    assert float(plus[:3].sum()) > 0.9
    assert float(minus[3:].sum()) > 0.9
