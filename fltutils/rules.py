"""One update rule, one function.

A rule maps (params, D, state, space, eta) to new (params, state). D is the descent direction,
minus the gradient of the loss at params; `space` measures it and computes it elsewhere; eta is
(R, 1, 1, 1). GD, momentum and SAM stay in the span of the data and may run on coefficients.
Sign-GD and Adam see coordinates: they run on the weights, in R^d.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

Tensor = torch.Tensor
State = tuple[Tensor, ...]


class Space(NamedTuple):
    """What the training loop knows of the parameters: coefficients on the data, or weights."""

    start: Tensor  # parameters at step 0
    products: Callable[[Tensor], Tensor]  # params -> A = <w, [mu, xi_1..xi_n]>
    lift: Callable[[Tensor], Tensor]  # coefficients of a direction -> direction in this space
    norm: Callable[[Tensor], Tensor]  # Euclidean norm in R^d of a direction, (R, 1, 1, 1)
    descent: Callable[[Tensor], Tensor] = torch.neg  # params -> -grad L at this step's labels


def gd(params: Tensor, D: Tensor, state: State, space: Space, eta: Tensor) -> tuple[Tensor, State]:
    """w <- w - eta grad L(w)."""
    return torch.addcmul(params, eta, D), state


def momentum(
    params: Tensor, D: Tensor, state: State, space: Space, eta: Tensor, *, beta: float = 0.9
) -> tuple[Tensor, State]:
    """v <- beta v - grad L(w);  w <- w + eta v."""
    v = D if not state else beta * state[0] + D
    return torch.addcmul(params, eta, v), (v,)


def sam(
    params: Tensor, D: Tensor, state: State, space: Space, eta: Tensor, *, tau: float
) -> tuple[Tensor, State]:
    """w <- w - eta grad L(w + tau grad L(w) / ||grad L(w)||)."""
    norm = space.norm(D)
    climb = torch.where(norm > 0, tau / norm.clamp(min=torch.finfo(norm.dtype).tiny), 0.0)
    return torch.addcmul(params, eta, space.descent(params - climb * D)), state


def sign_gd(
    params: Tensor, D: Tensor, state: State, space: Space, eta: Tensor
) -> tuple[Tensor, State]:
    """w <- w - eta sign(grad L(w)), coordinate by coordinate."""
    return torch.addcmul(params, eta, D.sign()), state


def adam(
    params: Tensor,
    D: Tensor,
    state: State,
    space: Space,
    eta: Tensor,
    *,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
) -> tuple[Tensor, State]:
    """Adam with bias correction: w <- w - eta m-hat / (sqrt(v-hat) + eps)."""
    m, v, t = state or (
        torch.zeros_like(D),
        torch.zeros_like(D),
        torch.zeros_like(D[:, :1, :1, :1]),
    )
    m, v, t = beta1 * m + (1 - beta1) * D, beta2 * v + (1 - beta2) * D * D, t + 1
    m_hat, v_hat = m / (1 - beta1**t), v / (1 - beta2**t)
    return torch.addcmul(params, eta, m_hat / (v_hat.sqrt() + eps)), (m, v, t)


Rule = Callable[..., tuple[Tensor, Any]]
RULES: dict[str, Rule] = {
    "gd": gd, "momentum": momentum, "sam": sam, "sign_gd": sign_gd, "adam": adam
}  # fmt: skip
SEES_COORDINATES = {"sign_gd", "adam"}
