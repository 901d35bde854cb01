"""The loop knows no data model: a softmax transformer of three tensors, with draws, by autograd."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from fltutils import rules, train

R, N, TOKENS, D, H = 3, 8, 4, 5, 6
RULES: dict[str, dict[str, Any]] = {
    "gd": {}, "momentum": {"beta": 0.8}, "sam": {"tau": 0.1}, "sign_gd": {}, "adam": {}
}  # fmt: skip
TORCH = {"gd": torch.optim.SGD, "adam": torch.optim.Adam}


class Prompts(NamedTuple):
    """Sequences of tokens with a label."""

    X: torch.Tensor  # (R, N, TOKENS, D)
    y: torch.Tensor  # (R, N)
    scale: float = 0.5  # of all runs


def tensors(seed: int, *shapes: tuple[int, ...]) -> tuple[torch.Tensor, ...]:
    rng = np.random.default_rng(seed)
    return tuple(torch.from_numpy(rng.standard_normal(shape)) for shape in shapes)


def outputs(params: rules.Params, data: Prompts) -> tuple[torch.Tensor, None]:
    """Attention on the first token, then a linear value: (R, N)."""
    Q, K, v = params
    query = data.X[:, :, :1] @ Q[:, None]
    keys = data.X @ K[:, None]
    weight = (data.scale * query @ keys.transpose(2, 3)).softmax(-1)
    return (weight @ data.X).squeeze(2).matmul(v[..., None]).squeeze(-1), None


def loss(f: torch.Tensor, data: Prompts) -> torch.Tensor:
    return torch.nn.functional.softplus(-data.y * f).mean(-1)


def problem(runs: int = R, **more: Any) -> train.Problem:
    """`runs` transformers, each on its own prompts."""
    start = tensors(0, (R, D, H), (R, D, H), (R, D))
    (X,) = tensors(1, (R, N, TOKENS, D))
    y = torch.sign(X[:, :, 0, 0])
    start, data = train.pick((start, Prompts(X, y)), torch.arange(runs))
    return train.Problem(start, data, outputs, loss, **more)


def by_hand(i: int, rule: str, steps: int, eta: float, **options: float) -> rules.Params:
    """Run i alone, with torch's optimisers or a loop."""
    p = problem()
    leaves = [leaf[i : i + 1].clone().requires_grad_() for leaf in p.start]
    data = train.pick(p.data, torch.tensor([i]))

    def gradient(at: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad(loss(outputs(tuple(at), data)[0], data).sum(), at)

    if rule in TORCH:
        optimiser = TORCH[rule](leaves, lr=eta)
        for _ in range(steps):
            for leaf, g in zip(leaves, gradient(leaves), strict=True):
                leaf.grad = g
            optimiser.step()
        return tuple(leaf.detach() for leaf in leaves)
    velocity = [torch.zeros_like(leaf) for leaf in leaves]
    for _ in range(steps):
        g = gradient(leaves)
        if rule == "sam":
            length = sum(x.square().sum() for x in g) ** 0.5
            up = [w + options["tau"] * x / length for w, x in zip(leaves, g, strict=True)]
            g = gradient([w.detach().requires_grad_() for w in up])
        if rule == "sign_gd":
            g = tuple(x.sign() for x in g)
        velocity = [options.get("beta", 0) * v + x for v, x in zip(velocity, g, strict=True)]
        leaves = [
            (w - eta * v).detach().requires_grad_() for w, v in zip(leaves, velocity, strict=True)
        ]
    return tuple(leaf.detach() for leaf in leaves)


@pytest.mark.parametrize("rule", RULES)
def test_a_transformer_of_three_tensors_trains_as_by_hand(rule: str) -> None:
    eta = 0.01 if rule in ("sign_gd", "adam") else 0.3
    together = train.train(problem(), rule=rule, eta=eta, steps=20, **RULES[rule])
    for i in range(R):
        for ours, theirs in zip(
            together.last.params, by_hand(i, rule, 20, eta, **RULES[rule]), strict=True
        ):
            torch.testing.assert_close(ours[i : i + 1], theirs, rtol=1e-10, atol=1e-12)


def test_a_closed_form_is_the_gradient_that_it_replaces() -> None:
    """The descent of a linear model, from the cache of its outputs."""

    def linear(params: rules.Params, data: Prompts) -> tuple[torch.Tensor, torch.Tensor]:
        first = data.X[:, :, 0]
        return (first @ params[2][..., None]).squeeze(-1), first

    def descent(f: torch.Tensor, first: torch.Tensor, data: Prompts) -> rules.Params:
        g = data.y * torch.sigmoid(-data.y * f) / f.shape[1]
        Q, K, _ = problem().start
        return (0 * Q[: len(f)], 0 * K[: len(f)], (g[:, None] @ first).squeeze(1))

    auto = problem()._replace(
        outputs=lambda p, d: (linear(p, d)[0] + 0 * (p[0].sum() + p[1].sum()), None)
    )
    closed = problem()._replace(outputs=linear, descent=descent)
    a, b = (
        train.train(p, rule="sam", tau=0.1, eta=[0.1, 0.5, 0.02], steps=30, stop=0.45)
        for p in (auto, closed)
    )
    assert len(set(a.steps.tolist())) > 1
    assert torch.equal(a.steps, b.steps)
    torch.testing.assert_close(a.last.f, b.last.f, rtol=1e-10, atol=1e-12)


def drawn(data: Prompts) -> Iterator[dict[str, torch.Tensor]]:
    """Fresh noise on the tokens of every run, as diffusion draws it."""
    rng = np.random.default_rng(3)
    while True:
        noise = rng.standard_normal((R, N, TOKENS, D))[: len(data.y)]
        yield {"X": data.X + 0.3 * torch.from_numpy(noise)}


def test_each_step_descends_on_what_it_drew() -> None:
    run = train.train(problem(draws=drawn), eta=0.3, steps=12)
    params, noisy = problem().start, drawn(problem().data)
    for _ in range(12):
        leaves = [leaf.clone().requires_grad_() for leaf in params]
        data = problem().data._replace(**next(noisy))
        g = torch.autograd.grad(loss(outputs(tuple(leaves), data)[0], data).sum(), leaves)
        params = tuple(w - 0.3 * x for w, x in zip(params, g, strict=True))
    for ours, theirs in zip(run.last.params, params, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


def test_loss_and_recorders_see_the_data_themselves() -> None:
    seen = []

    def recorder(s: train.State) -> torch.Tensor:
        seen.append(s.data)
        return loss(s.f, s.data)

    p = problem(draws=drawn)
    run = train.train(p, eta=0.1, steps=6, every=3, record={"loss": recorder})
    assert all(torch.equal(data.X, p.data.X) for data in seen)
    torch.testing.assert_close(run.history["loss"][-1], run.loss)
    assert run.times.tolist() == [0, 3, 6]


def test_draws_go_on_for_the_runs_that_have_not_stopped() -> None:
    """A run's path is the same beside runs that stop early."""
    p = problem(draws=drawn)
    eta = torch.tensor([3.0, 0.3, 0.01]).double().numpy()
    stopped = train.train(p, eta=eta, steps=25, stop=0.35)
    assert len(set(stopped.steps.tolist())) > 1
    for i, steps in enumerate(stopped.steps.tolist()):
        alone = train.train(p, eta=eta, steps=steps)
        for ours, theirs in zip(stopped.last.params, alone.last.params, strict=True):
            torch.testing.assert_close(ours[i], theirs[i], rtol=1e-10, atol=1e-12)


def test_outputs_may_have_any_shape() -> None:
    """A loss of vectors: one a run."""
    p = problem()._replace(
        outputs=lambda params, data: (data.X @ params[0][:, None], None),
        loss=lambda f, data: (f - 1).square().mean((1, 2, 3)),
    )
    p = p._replace(start=p.start[:1])
    run = train.train(p, eta=0.1, steps=5)
    assert run.last.f.shape == (R, N, TOKENS, H)
    with pytest.raises(FloatingPointError, match=r"run 1 diverged at step \d+: eta = 1e\+200"):
        train.train(p, eta=[0.1, 1e200, 0.1], steps=5)


def test_a_rule_that_sees_coordinates_asks_for_them() -> None:
    with pytest.raises(ValueError, match="rule = 'adam': adam sees coordinates"):
        train.train(problem(sees_coordinates=False), rule="adam", eta=0.1, steps=1)


def one(p: train.Problem) -> torch.Tensor:
    return p.start[0][:1]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"loss": lambda f, d: loss(f, d).mean()}, "loss(f, data) has shape (): loss(f, data) must"),
    ({"loss": lambda f, d: f.square()}, f"loss(f, data) has shape ({R}, {N}): loss(f, data) must"),
    ({"start": tensors(0, (R, D))[0]}, "start must be a tuple of floating-point tensors"),
    ({"start": list(problem().start)}, "start must be a tuple of floating-point tensors"),
    ({"start": (torch.ones(R, D, dtype=torch.int64),)}, "start must be a tuple of floating-point"),
    ({"start": (*problem().start[:2], torch.ones(R + 1, D))}, "start[2] has shape (4, 5)"),
    ({"data": problem().data._asdict()}, "data is a dict: data must be a named tuple"),
    ({"data": problem().data._replace(y=torch.ones(N))}, "data.y has shape (8,): data.y must have"),
    ({"start": (*problem().start, torch.ones(R, 2))}, "start[3] does not enter the loss"),
    ({"descent": lambda f, c, d: problem().start[:2]}, "descent gives shapes [(3, 5, 6)"),
    ({"descent": lambda f, c, d: (one(problem()),) * 3}, "descent gives shapes [(1, 5, 6)"),
    ({"draws": lambda d: iter([{}])}, "draws ended at step 1: they must go on"),
]  # fmt: skip


@pytest.mark.parametrize(("part", "message"), WRONG)
def test_a_wrong_problem_is_refused(part: dict[str, Any], message: str) -> None:
    p = problem()
    if len(part.get("start", ())) == 4:
        part = part | {"outputs": lambda params, data: outputs(params[:3], data)}
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        train.train(p._replace(**part), eta=0.1, steps=3)


def test_the_data_alone_are_no_problem() -> None:
    with pytest.raises(TypeError, match="problem is a Prompts: it must be a Problem"):
        train.train(problem().data, eta=0.1, steps=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("rule", RULES)
def test_float32_stays_float32(rule: str) -> None:
    p = problem()
    start = tuple(leaf.float().requires_grad_() for leaf in p.start)
    p = p._replace(start=start, data=Prompts(p.data.X.float(), p.data.y.float()))
    run = train.train(p, rule=rule, eta=0.01, steps=3, **RULES[rule])
    assert {leaf.dtype for leaf in run.last.params} == {torch.float32}
    assert not any(leaf.requires_grad for leaf in run.last.params)


def test_one_number_a_run_is_enough() -> None:
    """A leaf and outputs of shape (R,), under the rule that needs a norm."""
    p = problem()._replace(
        start=(torch.ones(R).double(),),
        outputs=lambda params, data: (params[0] * data.y[:, 0], None),
        loss=lambda f, data: (f - 2 * data.y[:, 0]).square(),
    )
    run = train.train(p, rule="sam", tau=0.1, eta=0.1, steps=50)
    assert (run.last.f * p.data.y[:, 0] > 1.8).all()


def test_a_draw_may_belong_to_all_runs() -> None:
    """What is no tensor goes to every run, also once some have stopped."""

    def scales(data: Prompts) -> Iterator[dict[str, Any]]:
        while True:
            yield {"scale": 0.4}

    eta = torch.tensor([3.0, 0.3, 0.01]).double().numpy()
    run = train.train(problem(draws=scales), eta=eta, steps=25, stop=0.35)
    assert len(set(run.steps.tolist())) > 1


def test_divergence_on_what_was_drawn_names_run_and_step() -> None:
    def blown_up(data: Prompts) -> Iterator[dict[str, torch.Tensor]]:
        X = data.X.clone()
        yield {"X": X}
        X = X.clone()
        X[1] = torch.inf
        yield {"X": X}

    with pytest.raises(FloatingPointError, match="run 1 diverged at step 1"):
        train.train(problem(draws=blown_up), eta=0.1, steps=5)


def test_a_loss_that_is_not_finite_is_divergence() -> None:
    p = problem()._replace(loss=lambda f, d: loss(f, d) * torch.tensor([1.0, 1.0, torch.nan]))
    with pytest.raises(FloatingPointError, match="run 2 diverged at step 0"):
        train.train(p, eta=0.1, steps=0)


@pytest.mark.parametrize("value", [0.5, torch.zeros(2), None])
def test_a_recorder_gives_one_entry_a_run(value: Any) -> None:
    with pytest.raises(TypeError, match=r"record\['mine'\] gives .* one entry a run"):
        train.train(problem(), eta=0.1, steps=1, record={"mine": lambda s: value})


def test_pick_goes_through_tuples_and_leaves_the_rest() -> None:
    tree = (problem().data, (torch.arange(3), 7), ())
    data, (index, number), nothing = train.pick(tree, torch.tensor([2, 0]))
    assert isinstance(data, Prompts)
    assert data.scale == 0.5
    assert torch.equal(data.y, problem().data.y[[2, 0]])
    assert (index.tolist(), number, nothing) == ([2, 0], 7, ())
