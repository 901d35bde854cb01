"""Softmax attention: torch's own, the gradient by autograd, and what follows from the form."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention

from fltutils import attention

Tensor = torch.Tensor
sizes = st.tuples(st.integers(2, 6), st.integers(1, 5), st.integers(0, 10**6))


def drawn(L: int, h: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    rng = torch.Generator().manual_seed(seed)
    q, k = (torch.randn(3, 4, L, h, generator=rng, dtype=torch.float64) for _ in range(2))
    return q, k, torch.randn(3, 4, L, generator=rng, dtype=torch.float64)


@given(sizes)
def test_a_head_is_torchs_attention(size: tuple[int, int, int]) -> None:
    q, k, v = drawn(*size)
    S = attention.weights(q, k)
    torch.testing.assert_close(S.sum(-1), torch.ones_like(v))
    own = scaled_dot_product_attention(q, k, v[..., None], scale=1.0)[..., 0]
    torch.testing.assert_close(attention.answers(S, v), own)
    torch.testing.assert_close(attention.output(S, v), own.mean(-1))


@given(sizes)
def test_the_pulls_are_the_gradient(size: tuple[int, int, int]) -> None:
    q, k, v = (x.requires_grad_() for x in drawn(*size))
    a = q @ k.transpose(-1, -2)
    g = v.detach()[..., 0]
    f = attention.output(torch.softmax(a, -1), v)
    by_a, by_v = torch.autograd.grad((g * f).sum(), (a, v))
    E, bar = attention.pulls(attention.weights(q, k).detach(), v.detach(), g)
    torch.testing.assert_close(E, by_a, rtol=1e-10, atol=1e-14)
    torch.testing.assert_close(bar, by_v, rtol=1e-10, atol=1e-14)


def test_equal_values_pull_no_score() -> None:
    q, k, v = drawn(4, 3, 0)
    E, _ = attention.pulls(attention.weights(q, k), torch.ones_like(v), v[..., 0])
    assert float(E.abs().max()) < 1e-15
