"""The lab on contrastive learning, against the chapter's own functions on the page's draws."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from tests.fltutils.test_chapters import definitions
from tests.labs.compare import apart
from tests.labs.test_physics import Params
from tools.labs.models import MODELS
from tools.labs.replay import draws, replay

pytestmark = pytest.mark.slow
MODEL = MODELS["contrastive"]
RUNS: list[Params] = [
    {"seed": 3, "steps": 140, "n": 12, "m": 6, "d": 1e12, "snr": 0.5, "ratio": 8, "s": 0.001},
    {"seed": 4, "steps": 60, "n": 20, "m": 5, "d": 400, "snr": 3, "ratio": 1, "s": 0.1},
]


class Modality(NamedTuple):
    """The chapter's."""

    x: torch.Tensor
    W0: torch.Tensor
    partner: None = None


@pytest.fixture(scope="module")
def chapter() -> dict[str, Any]:
    names = ("labels", "answers", "similarity", "pulls", "push", "opposite", "train", "along",
             "overlaps", "rms", "law_signal", "law_noise")  # fmt: skip
    # what the definitions ask for at their definition
    return definitions("contrastive", *names, everybody=None, DT=0.1, Modality=Modality)


def modality(raw: dict[str, np.ndarray], use: str, y: np.ndarray, p: Params) -> Modality:
    """A modality from the page's draws, its samples in the chapter's order of labels."""
    n, length = int(p["n"]), (p["snr"] / p["n"]) ** 0.5 * (p["ratio"] if use else 1.0)
    xi = np.zeros((n, 1 + n))
    xi[:, 0] = raw[f"g{use}"]
    for i in range(n):
        xi[i, 1 : 1 + i], xi[i, 1 + i] = raw[f"Z{use}"][i, :i], raw[f"chi{use}"][i]
    signal = np.zeros_like(xi)
    signal[:, 0] = length * y
    order = np.argsort(-y, kind="stable").reshape(2, -1).T.flatten()
    x = np.stack([signal, xi / p["d"] ** 0.5])[:, order]
    return Modality(torch.from_numpy(x)[None], torch.from_numpy(p["s"] * raw[f"V{use}"])[None])


@pytest.mark.parametrize("params", RUNS)
def test_a_run_is_the_chapters(chapter: dict[str, Any], params: Params) -> None:
    run = replay(MODEL, params, records=5)
    raw = {k: v.numpy() for k, v in draws(MODEL, params).items()}
    rank = np.argsort(np.argsort(raw["U"]))
    y = np.where(rank >= params["n"] / 2, 1.0, -1.0)
    first, second = (modality(raw, use, y, params) for use in ("", "2"))
    for k, t in enumerate(run["times"]):
        seen = {key: curve[k] for key, curve in run["curves"].items()}
        until = t * 0.1
        W, _, _ = chapter["train"](first, second, until)
        alone, _, _ = chapter["train"](first, None, until)
        for weights, tail in ((W, ""), (alone, "1")):
            signal = chapter["along"](weights, first)
            noise = chapter["overlaps"](weights, first).clamp(min=0)
            assert apart(chapter["rms"](signal, 1), seen[f"signal{tail}"]) < 1e-8
            assert apart(chapter["rms"](noise, (1, 2)), seen[f"noise{tail}"]) < 1e-8
            if not tail:
                assert apart(signal.abs().flatten(), seen["a"]) < 1e-8
                assert apart(noise.amax(2).flatten(), seen["b"]) < 1e-8
                ahead = (signal.abs() > noise.amax(2)).sum()
                assert seen["leads"] == int(ahead)
            share = seen[f"signal{tail}"] / (seen[f"signal{tail}"] + seen[f"noise{tail}"])
            assert seen[f"share{tail}"] == pytest.approx(share)
            assert seen[f"big{tail}"] == max(seen[f"signal{tail}"], seen[f"noise{tail}"])
        for other, tail in ((second, ""), (first, "1")):
            laws = [chapter[f"law_{what}"](first, other, t)[:, 0] for what in ("signal", "noise")]
            small = torch.maximum(*laws) < 1
            stop = int(small.sum()) if not small.all() else t
            for law, what in zip(laws, ("signal", "noise"), strict=True):
                assert apart(law[stop], seen[f"law_{what}{tail}"]) < 1e-8
        assert float(run["env"]["race"]) == pytest.approx(params["snr"] * params["ratio"] / 2)
        assert float(run["env"]["race1"]) == pytest.approx(params["snr"] / 2)
        assert float(run["env"]["critical"]) == pytest.approx(2 / params["snr"])


def test_the_push_is_the_gradient(chapter: dict[str, Any]) -> None:
    """Minus n m times the gradient of InfoNCE, partners held constant, by autograd."""
    rng = np.random.default_rng(0)
    n, m, r = 8, 5, 11
    x, x2 = (torch.from_numpy(rng.standard_normal((2, 2, n, r))) for _ in range(2))
    W, V = (torch.from_numpy(rng.standard_normal((2, m, r))) for _ in range(2))
    negatives = chapter["opposite"](n)
    W.requires_grad_()
    H, K = chapter["answers"](W, x), chapter["answers"](V, x2)
    S = torch.einsum("Rpir,Rpjr->Rij", H, K) / m
    loss = -torch.diagonal(
        S - S.masked_fill(~(negatives | torch.eye(n, dtype=torch.bool)), -torch.inf)
        .logsumexp(2, keepdim=True),
        dim1=1, dim2=2,
    ).mean(1)  # fmt: skip
    (grad,) = torch.autograd.grad(loss.sum(), W)
    F = chapter["pulls"](chapter["similarity"](H, K), negatives)
    assert apart(chapter["push"](F, H, K, x), -n * m * grad) < 1e-10
