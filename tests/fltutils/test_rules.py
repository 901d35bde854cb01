"""Update rules against torch's optimisers and against loops written out."""

import re
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fltutils import signal_noise
from tests.fltutils import plain
from tests.fltutils.batches import batch, trained

STEPS = 25
few = settings(max_examples=8)
cases = st.tuples(st.integers(0, 10**4), st.sampled_from([1, 2, 3]))


def ours(p: plain.Problem, q: int, rule: str, eta: float, **options: float) -> torch.Tensor:
    """The weights after STEPS steps of a rule of fltutils."""
    return signal_noise.weights(
        trained(batch([p]), q=q, rule=rule, eta=eta, steps=STEPS, **options).last
    )[0]


def assert_same(W: torch.Tensor, V: torch.Tensor, W0: torch.Tensor) -> None:
    """Equal to 1e-10 of the distance travelled."""
    assert float((V - W0).norm()) > 0
    assert float((W - V).norm() / (V - W0).norm()) < 1e-10


@few
@given(cases)
def test_gd_is_sgd_of_torch(case: tuple[int, int]) -> None:
    p, q = plain.problem(case[0]), case[1]
    V = plain.optimise(p, q, STEPS, torch.optim.SGD, lr=0.05)
    assert_same(ours(p, q, "gd", 0.05), V, p.W0)


@few
@given(cases, st.floats(0, 0.95))
def test_momentum_is_sgd_of_torch_with_momentum(case: tuple[int, int], beta: float) -> None:
    p, q = plain.problem(case[0]), case[1]
    V = plain.optimise(p, q, STEPS, torch.optim.SGD, lr=0.01, momentum=beta)
    assert_same(ours(p, q, "momentum", 0.01, beta=beta), V, p.W0)


@few
@given(cases, st.floats(0.01, 0.3))
def test_sam_takes_its_second_gradient_uphill(case: tuple[int, int], tau: float) -> None:
    p, q = plain.problem(case[0]), case[1]
    assert_same(ours(p, q, "sam", 0.05, tau=tau), plain.descend(p, q, 0.05, STEPS, tau=tau), p.W0)


@few
@given(cases)
def test_sign_gd_is_a_loop_over_signs(case: tuple[int, int]) -> None:
    p, q = plain.problem(case[0]), case[1]
    W = p.W0.clone()
    for _ in range(STEPS):
        W = W - 0.002 * plain.gradient(W, p, q).sign()
    assert_same(ours(p, q, "sign_gd", 0.002), W, p.W0)


@few
@given(cases, st.floats(0.5, 0.95), st.floats(0.8, 0.999))
def test_adam_is_adam_of_torch(case: tuple[int, int], beta1: float, beta2: float) -> None:
    p, q = plain.problem(case[0]), case[1]
    V = plain.optimise(p, q, STEPS, torch.optim.Adam, lr=0.002, betas=(beta1, beta2), eps=1e-6)
    W = ours(p, q, "adam", 0.002, beta1=beta1, beta2=beta2, eps=1e-6)
    assert_same(W, V, p.W0)


@few
@given(cases, st.floats(0.0, 2.0))
def test_adamw_is_adamw_of_torch(case: tuple[int, int], decay: float) -> None:
    p, q = plain.problem(case[0]), case[1]
    V = plain.optimise(p, q, STEPS, torch.optim.AdamW, lr=0.002, weight_decay=decay)
    assert_same(ours(p, q, "adamw", 0.002, decay=decay), V, p.W0)


@few
@given(cases, st.floats(0.0, 0.95))
def test_signum_is_a_loop_over_signs_of_momentum(case: tuple[int, int], beta: float) -> None:
    p, q = plain.problem(case[0]), case[1]
    W, m = p.W0.clone(), torch.zeros_like(p.W0)
    for _ in range(STEPS):
        m = beta * m + (1 - beta) * plain.gradient(W, p, q)
        W = W - 0.002 * m.sign()
    assert_same(ours(p, q, "signum", 0.002, beta=beta), W, p.W0)


def test_adams_defaults_are_those_of_torch() -> None:
    p = plain.problem(3)
    p = p._replace(mu=1e-5 * p.mu, xi=1e-5 * p.xi)  # gradients so small that eps is felt
    V = plain.optimise(p, 1, STEPS, torch.optim.Adam, lr=0.002)
    assert_same(ours(p, 1, "adam", 0.002), V, p.W0)
    assert_same(ours(plain.problem(3), 1, "momentum", 0.01),
                plain.optimise(plain.problem(3), 1, STEPS, torch.optim.SGD, lr=0.01, momentum=0.9),
                p.W0)  # fmt: skip


@few
@given(cases)
def test_sign_gd_is_adam_without_memory(case: tuple[int, int]) -> None:
    p, q = plain.problem(case[0]), case[1]
    W = ours(p, q, "adam", 0.002, beta1=0.0, beta2=0.0, eps=1e-300)
    assert_same(W, ours(p, q, "sign_gd", 0.002), p.W0)


@few
@given(cases)
def test_momentum_and_sam_without_their_parameter_are_gd(case: tuple[int, int]) -> None:
    p, q = plain.problem(case[0]), case[1]
    V = ours(p, q, "gd", 0.05)
    assert_same(ours(p, q, "momentum", 0.05, beta=0.0), V, p.W0)
    assert_same(ours(p, q, "sam", 0.05, tau=0.0), V, p.W0)


@pytest.mark.parametrize("rule", ["gd", "momentum", "sam", "sign_gd", "adam", "signum", "adamw"])
def test_a_network_without_gradient_stays(rule: str) -> None:
    """At zero weights every ReLU is off; SAM must not divide by the norm of nothing."""
    p = plain.problem(0)
    options = {"sam": {"tau": 0.1}, "adamw": {"decay": 0.1}}.get(rule, {})
    assert torch.equal(ours(p._replace(W0=0 * p.W0), 1, rule, 0.1, **options), 0 * p.W0)


BAD: list[tuple[str, dict[str, Any], type[Exception], str]] = [
    ("sam", {"tau": -0.1}, ValueError, "tau = -0.1: tau must be in [0, inf)"),
    ("sam", {"tau": float("nan")}, ValueError, "tau = nan: tau must be in [0, inf)"),
    ("sam", {}, TypeError, "rule 'sam' needs the option tau"),
    ("momentum", {"beta": 1.0}, ValueError, "beta = 1.0: beta must be in [0, 1)"),
    ("momentum", {"beta": -0.5}, ValueError, "beta = -0.5: beta must be in [0, 1)"),
    ("adam", {"beta2": 1.5}, ValueError, "beta2 = 1.5: beta2 must be in [0, 1)"),
    ("adam", {"eps": float("inf")}, ValueError, "eps = inf: eps must be in [0, inf)"),
    (
        "gd",
        {"tau": 0.1},
        TypeError,
        "neither train nor rule 'gd' has it; the rule has: none",
    ),
    (
        "adam",
        {"beta": 0.9},
        TypeError,
        "neither train nor rule 'adam' has it; the rule has: beta1",
    ),
    ("momentum", {"beta": [0.5, 0.9]}, ValueError, "beta has shape (2,): beta must have shape ()"),
]


@pytest.mark.parametrize(("rule", "options", "error", "message"), BAD)
def test_options_are_refused(
    rule: str, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    s = signal_noise.draw(n=4, d=100, mu=2.0, m=2, sigma0=0.1)
    s = s._replace(embedded=False)
    with pytest.raises(error, match=re.escape(message)):
        trained(s, rule=rule, eta=0.1, steps=2, **options)
