"""The chapters' own formulas, taken from their code cells, agree with fltutils."""

import ast
from pathlib import Path
from typing import Any

import jupytext
import numpy as np
import pytest
import torch
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from fltutils import attention, measure, models, signal_noise, tokens, train
from tests.fltutils import plain
from tests.fltutils.batches import batch, trained
from tools.chapters import live

BOOK = Path(__file__).parents[2] / "book"
cases = st.tuples(st.integers(0, 10**4), st.sampled_from([1, 2, 3]))
few = settings(max_examples=10)


def definitions(chapter: str, *names: str, **given: Any) -> dict[str, Any]:
    """The named functions of a chapter's code cells; nothing else of the chapter runs.

    What the functions ask for at their definition is given.
    """
    notebook = jupytext.reads(live(BOOK / f"{chapter}.md"), fmt="md:myst")
    cells = (cell.source for cell in notebook.cells if cell.cell_type == "code")
    found = [
        node
        for source in cells
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and node.name in names
    ]
    assert [node.name for node in found] == list(names), f"{chapter}.md defines each once, in order"
    namespace: dict[str, Any] = {"np": np, "torch": torch} | given
    exec(compile(ast.Module(found, []), f"{chapter}.md", "exec"), namespace)
    return namespace


@pytest.fixture(scope="module")
def sandbox() -> dict[str, Any]:
    return definitions("signal_noise", "draw", "a", "f", "L_S", "gradient_descent")


@pytest.fixture(scope="module")
def wrong_labels() -> dict[str, Any]:
    rows = {"xr": xr, "ROWS": ("run", "sample")}
    return definitions("label_noise", "margins", "speeds", "course", **rows)


@pytest.fixture(scope="module")
def head() -> dict[str, Any]:
    return definitions(
        "transformer_overfitting", "attend", "hear", "head", "head_pulls", "largest", "switch",
        "law",
    )  # fmt: skip


@few
@given(cases)
def test_network_and_loss_of_the_sandbox(sandbox: dict[str, Any], case: tuple[int, int]) -> None:
    p, q = plain.problem(case[0], flip=0.0), case[1]
    s = batch([p])
    chapter = sandbox["f"](p.W0, p.mu, p.xi, p.y, q)
    package = models.cnn(s.W0, s.y[..., None] * s.mu[:, None], s.xi, q)
    torch.testing.assert_close(chapter, package[0], rtol=1e-11, atol=1e-12)
    loss = sandbox["L_S"](p.W0, p.mu, p.xi, p.y, q)
    torch.testing.assert_close(loss, models.logistic(package, s.y)[0], rtol=1e-12, atol=0)


@few
@given(cases)
def test_gradient_descent_of_the_sandbox(sandbox: dict[str, Any], case: tuple[int, int]) -> None:
    p, q = plain.problem(case[0], flip=0.0), case[1]
    W = sandbox["gradient_descent"](p.W0, p.mu, p.xi, p.y, q, 0.05, 20)[-1]
    package = signal_noise.weights(trained(batch([p]), q=q, eta=0.05, steps=20).last)[0]
    assert float((W - package).norm() / (W - p.W0).norm()) < 1e-10


def test_data_of_the_sandbox_have_the_law_of_the_package(sandbox: dict[str, Any]) -> None:
    """Lengths and overlaps of two patches, over 800 draws of each."""
    drawn = [sandbox["draw"](2, 30, 2.0, np.random.default_rng(i), 1.5) for i in range(800)]
    mu, xi, y = (torch.from_numpy(np.stack(v)) for v in zip(*drawn, strict=True))
    s = signal_noise.draw(n=2, d=30, mu=2.0, m=2, sigma0=0.1, sigma=1.5, runs=800)
    assert s.embedded
    assert torch.equal(mu.norm(dim=1), s.mu.norm(dim=1))
    for own, theirs in (
        (xi[:, 0].square().sum(-1), s.xi[:, 0].square().sum(-1)),
        ((xi[:, 0] * xi[:, 1]).sum(-1), (s.xi[:, 0] * s.xi[:, 1]).sum(-1)),
        (y.sum(-1), s.y.sum(-1)),
    ):
        assert plain.distance(own, theirs) < plain.critical(800, 800)
    assert float((xi @ mu[:, :, None]).abs().max()) == 0.0


def test_law_of_label_noise_is_gradient_descent_on_orthogonal_noise(
    wrong_labels: dict[str, Any],
) -> None:
    """Every margin at every step, for noise patches that do not overlap and a tiny start."""
    n, d, m, c, dT, steps = 12, 400.0, 5, 6.0, 0.1, 60
    rng = np.random.default_rng(5)
    mu, xi = np.zeros((2, 1 + n)), np.zeros((2, n, 1 + n))
    mu[:, 0] = np.sqrt(c * d / n)
    xi[:, :, 1:] = np.sqrt(d) * np.eye(n)
    y, keep = (np.where(rng.random((2, n)) < share, 1.0, -1.0) for share in (0.5, 0.75))
    W0 = 1e-9 * np.abs(rng.standard_normal((2, 2, m, 1 + n)))
    W0[:, :, :, 1:] *= np.sign(rng.random((2, 2, m, n)) - 0.5)
    W0[:, 1, :, 0] *= -1  # on the right side of the signal from the start
    data = signal_noise.given(mu, xi, y, W0, y_obs=y * keep)
    run = train.train(
        signal_noise.problem(data), eta=dT * n * m / d, steps=steps, record={"f": lambda s: s.f}
    )
    on = measure.own(data.W0 @ data.xi.transpose(1, 2)[:, None], data.y_obs) > 0
    alpha = on.double().mean(1)
    assert float(alpha.min()) < 0.5 < float(alpha.max())
    law = wrong_labels["course"](
        data.y, data.y_obs, lambda v, alpha: alpha, alpha, c, dT * steps, dT
    )
    assert int((data.y != data.y_obs).sum()) > 2
    found = data.y_obs * run.history["f"]
    torch.testing.assert_close(torch.tensor(law.margin.values), found, rtol=0, atol=1e-6)


@few
@given(cases)
def test_sam_of_sharpness_aware(case: tuple[int, int]) -> None:
    """One step of the chapter's SAM is one step of the package's."""
    chapter = definitions("sharpness_aware", "pulls", "hears", "push", "climbed", "sam_push")
    chapter["sam_push"].__globals__.update(
        measure=measure, models=models, signal_noise=signal_noise
    )
    problem = signal_noise.problem(batch([plain.problem(case[0], flip=0.3)]))
    A = problem.data.A0.view(*problem.data.W0.shape[:3], -1)
    step = train.train(problem, rule="sam", eta=0.05, steps=1, tau=0.2 * case[1])
    C = chapter["sam_push"](A, problem.data, 0.2 * case[1])
    torch.testing.assert_close(0.05 * C, step.last.params[0], rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("rule", ["sign_gd", "adam"])
def test_coordinates_that_no_sample_touches_stay(rule: str) -> None:
    """What frees the dimension in adam_vs_gd: the used columns alone train the same network."""
    p = plain.problem(2)
    xi = p.xi.clone()
    xi[:, 5:] = 0.0
    mu = torch.zeros_like(p.mu)
    mu[0] = 1.0
    wide, narrow = (
        signal_noise.given(mu[None, :r], xi[None, :, :r], p.y[None], p.W0[None, ..., :r])
        for r in (len(mu), 5)
    )
    W, V = (
        signal_noise.weights(trained(s, q=3, rule=rule, eta=0.01, steps=10).last)[0]
        for s in (wide, narrow)
    )
    assert torch.equal(W[..., 5:], p.W0[..., 5:])
    torch.testing.assert_close(W[..., :5], V, rtol=1e-12, atol=1e-14)


def test_transformer_of_adam_vs_gd() -> None:
    """Against the two tokens, the softmax and the sums written out."""
    chapter = definitions("adam_vs_gd", "heads", "on_data", attention=attention)
    rng = np.random.default_rng(3)
    Q, K, V, X = (
        torch.from_numpy(rng.standard_normal(shape))
        for shape in ((10, 7), (10, 7), (2, 3, 7), (6, 7))
    )
    y = torch.tensor([1.0, -1.0, 1.0, -1.0, 1.0], dtype=torch.float64)
    f, weights = torch.zeros_like(y), torch.zeros(5, 2, 2).double()
    for i in range(5):
        tokens = torch.stack([y[i] * X[0], X[1 + i]])
        for k, x in enumerate(tokens):
            weights[i, k] = ((tokens @ K.T) @ (Q @ x)).softmax(0)
            values = V.mean(1) @ (weights[i, k] @ tokens)
            f[i] += values[0] - values[1]

    class Data:
        pass

    data: Any = Data()
    data.X, data.y = X[None], y[None]
    W = torch.cat([Q, K, V.flatten(0, 1)])[None]
    found, S = chapter["on_data"]((W,), data)
    torch.testing.assert_close(found[0], f, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(S[0], weights, rtol=1e-10, atol=1e-12)


@few
@given(st.integers(0, 10**4))
def test_formulas_of_transformer_overfitting(head: dict[str, Any], seed: int) -> None:
    rng = np.random.default_rng(seed)
    q, k, v = (
        torch.from_numpy(rng.standard_normal(shape)) for shape in ((2, 5, 3, 4),) * 2 + ((2, 5, 3),)
    )
    y = torch.from_numpy(np.sign(rng.standard_normal((2, 5))))
    S = head["attend"](q, k)
    assert torch.equal(S, attention.weights(q, k))
    f = attention.output(S, v)
    torch.testing.assert_close(head["head"](S, v), f, rtol=1e-14, atol=0)
    pulls = attention.pulls(S, v, models.downhill(f, y))
    for own, theirs in zip(head["head_pulls"](S, v, y), pulls, strict=True):
        torch.testing.assert_close(own, theirs, rtol=1e-12, atol=1e-16)


@pytest.mark.parametrize("loud", [1.0, 2.0])
def test_law_of_transformer_overfitting_is_gradient_descent_on_long_queries(
    head: dict[str, Any], loud: float
) -> None:
    """Attention and values of a wide head at every tenth step, for overlapping tokens."""
    n, L, theta, dT, steps = 6, 3, 4000.0, 0.02, 60
    data = tokens.draw(
        n=n, L=L, d=60, width=10**14, snr=0.8, theta=theta, start=0.01, loud=loud, plus=[4, 2],
        runs=2,
    )  # fmt: skip

    def both(s: train.State) -> torch.Tensor:
        _, (_, _, v, S) = tokens.outputs(s.params, s.data)
        return torch.cat([S, v[..., None, :]], 2)

    run = train.train(
        tokens.problem(data), eta=dT * n, steps=steps, record={"both": both}, every=10
    )
    R, T = data.v.shape
    P = tokens.of_samples(torch.eye(T).double().expand(R, T, T), data.lead, L)
    start = data.Q @ data.K.mT, data.V, P, data.G, data.y
    path = head["law"](*start, theta, dT, steps)
    assert len(path) == steps + 1
    for found, (S, v) in zip(run.history["both"], path[::10], strict=True):
        torch.testing.assert_close(v, found[:, :, L], rtol=0.01, atol=1e-4)
        torch.testing.assert_close(S, found[:, :, :L], rtol=0, atol=2e-3)
    assert float(run.history["both"][-1, :, :, :L].amax()) > 0.9


def test_largest_of_gaussians_of_transformer_overfitting(head: dict[str, Any]) -> None:
    """Half of the largest of k are below its median, and one Gaussian's is 0."""
    rng = np.random.default_rng(0)
    for k in (1, 3, 7):
        below = (rng.standard_normal((20_000, k)).max(1) < head["largest"](k)).mean()
        assert abs(below - 0.5) < 0.015
    assert abs(head["largest"](1)) < 1e-12
    assert head["switch"](8, 4, 2, 1000, 3.0) == pytest.approx(18)
