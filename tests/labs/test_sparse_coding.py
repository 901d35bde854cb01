"""The lab on sparse coding, against the chapter's own functions on the page's draws."""

import ast
from typing import Any

import jupytext
import numpy as np
import pytest
import torch

from fltutils import models
from tests.labs.compare import ROOT, apart
from tests.labs.test_physics import Params
from tools.chapters import live
from tools.labs import sparse_coding
from tools.labs.models import MODELS
from tools.labs.replay import draws, replay

pytestmark = pytest.mark.slow
MODEL = MODELS["sparse_coding"]
RUNS: list[Params] = [
    {"seed": 3, "steps": 40, "d": 12, "m": 10, "k": 3, "sigma": 0.2, "beta": 0.4, "size": 0.5,
     "rate": 6},
    {"seed": 4, "steps": 20, "d": 9, "m": 14, "k": 1, "sigma": 0.3, "beta": 0, "size": 0.3,
     "rate": 4},
]  # fmt: skip


@pytest.fixture(scope="module")
def chapter() -> dict[str, Any]:
    """The chapter's network, step and good sets, with their constants."""
    notebook = jupytext.reads(live(ROOT / "book" / "sparse_coding.md"), fmt="md:myst")
    space: dict[str, Any] = {"np": np, "torch": torch}
    wanted = {"soft", "outputs", "C1, C2", "level", "potential", "sure"}
    for cell in (c.source for c in notebook.cells if c.cell_type == "code"):
        for node in ast.parse(cell).body:
            name = getattr(node, "name", "")
            if isinstance(node, ast.Assign):
                name = ast.unparse(node.targets[0]).strip("()")
            if name in wanted:
                wanted.remove(name)
                exec(compile(ast.Module([node], []), "sparse_coding.md", "exec"), space)
    assert not wanted
    return space


def number(x: float) -> torch.Tensor:
    return torch.tensor(x, dtype=torch.float64)


def unit(W: torch.Tensor) -> np.ndarray:
    return (W / W.norm(dim=1, keepdim=True)).numpy()


def codes(U: np.ndarray, k: float) -> np.ndarray:
    """The k lowest of each row, with signs by the digits after the sixteenth bit."""
    z = np.zeros_like(U)
    places = np.argsort(U, -1)[..., : int(k)]
    signs = np.where((U * 65536) % 1 > 0.5, 1.0, -1.0)
    np.put_along_axis(z, places, np.take_along_axis(signs, places, -1), -1)
    return z


@pytest.mark.parametrize("params", RUNS)
def test_a_run_is_the_chapters(chapter: dict[str, Any], params: Params) -> None:
    run, raw = replay(MODEL, params, records=4), draws(MODEL, params)
    sets = []
    for tail in ("", "_test"):
        z = codes(raw[f"U{tail}"].numpy(), params["k"])
        x = z + params["sigma"] * raw[f"Z{tail}"].numpy()
        sets.append((torch.from_numpy(x), torch.from_numpy(np.sign(z.sum(-1)))))
    (X, y), (X_test, y_test) = sets
    W = params["size"] / params["d"] ** 0.5 * raw["V"]
    first = unit(W).argmax(-1)
    for t in range(int(params["steps"]) + 1):
        if t in run["times"]:
            seen = {key: curve[run["times"].index(t)] for key, curve in run["curves"].items()}
            h = unit(W)
            assert apart(torch.from_numpy(h).flatten(), seen["h"]) < 1e-9
            good = chapter["sure"](h).any(-1)
            assert seen["sure"] == int(good.sum())
            inside = chapter["potential"](h).sum(-1)
            assert seen["potential"] == int((inside > 0).sum())
            assert seen["several"] == int((inside > 1).sum())
            kept = (h.argmax(-1) == first)[good].mean() if good.any() else np.nan
            assert seen["tickets"] == pytest.approx(float(kept), nan_ok=True)
            assert seen["covered"] == pytest.approx(float((h > 0.8).any(0).mean()))
            f = chapter["outputs"](W, X_test, params["beta"] * W.norm(dim=1))[0]
            assert seen["accuracy"] == pytest.approx(float((f * y_test > 0).double().mean()))
            linear = (X_test.sum(-1) * y_test > 0).double().mean()
            assert seen["linear"] == pytest.approx(float(linear))
        x, labels = X[t % 15], y[t % 15]
        f, up, down = chapter["outputs"](W, x, params["beta"] * W.norm(dim=1))
        g = models.downhill(f, labels)
        W = W + params["rate"] * (up + down).T @ (g[:, None] * x)


def test_codes_have_their_law() -> None:
    U = draws(MODEL, RUNS[0])["U"].flatten(0, 1)
    x, y = sparse_coding.samples(U, 0 * U, number(3.0), number(0.0))
    assert torch.equal(x.abs().sum(-1), torch.full((len(x),), 3.0, dtype=x.dtype))
    assert torch.equal(y, torch.sign(x.sum(-1)))
    share = x.abs().mean(0)
    assert float((share - 3 / 12).abs().max()) < 5 * (0.25 * 0.75 / len(x)) ** 0.5
    assert abs(float(x.sum())) < 5 * (3 * len(x)) ** 0.5


def test_the_gradient_is_that_of_the_loss() -> None:
    """Thresholds move with the weights and are not differentiated."""
    raw = draws(MODEL, RUNS[0])
    X, y = sparse_coding.samples(raw["U"], raw["Z"], number(3.0), number(0.2))
    W = (0.3 * raw["V"]).requires_grad_()
    b = 0.4 * sparse_coding.length(W).detach()
    f = sparse_coding.soft(X[0] @ W.t(), b).sum(1)
    (gradient,) = torch.autograd.grad(models.logistic(f[None], y[:1]).sum(), W)
    told = sparse_coding.learn(X, y, W.detach(), number(0.4), number(1.0))
    assert apart(W.detach() - gradient, told["W"]) < 1e-12
