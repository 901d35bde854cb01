"""One update rule, one function.

A rule maps (params, D, state, eta, here) to new (params, state). The parameters are a tuple of
tensors, runs first, and a rule works leaf by leaf. D is the descent direction, minus the gradient
of the loss at params; eta is (R,), one rate a run; `here` computes a descent elsewhere, and norms.
GD, momentum and SAM stay in the span of the data. Sign-GD, Adam and their kin see coordinates.
"""

import inspect
import math
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import torch

from fltutils import check

Tensor = torch.Tensor
Params = tuple[Tensor, ...]
State = tuple[Any, ...]
Rate = Annotated[float, 1.0]  # an option in [0, 1)
Size = Annotated[float, math.inf]  # an option in [0, inf)


class Here(NamedTuple):
    """What a rule may ask of the loss as this step sees it."""

    descent: Callable[[Params], Params]  # params -> -grad L
    norm: Callable[[Params], Tensor]  # Euclidean norm of a direction, (R,)


def per_run(value: Tensor, leaf: Tensor) -> Tensor:
    """(R,) as (R, 1, ..., 1), to multiply a leaf."""
    return value.view(-1, *(1,) * (leaf.dim() - 1))


def along(params: Params, eta: Tensor, D: Params) -> Params:
    """w + eta D."""
    return tuple(torch.addcmul(w, per_run(eta, w), d) for w, d in zip(params, D, strict=True))


def gd(params: Params, D: Params, state: State, eta: Tensor, here: Here) -> tuple[Params, State]:
    """w <- w - eta grad L(w)."""
    return along(params, eta, D), state


def momentum(
    params: Params, D: Params, state: State, eta: Tensor, here: Here, *, beta: Rate = 0.9
) -> tuple[Params, State]:
    """v <- beta v - grad L(w);  w <- w + eta v."""
    v = tuple(beta * old + d for old, d in zip(state, D, strict=True)) if state else D
    return along(params, eta, v), v


def sam(
    params: Params, D: Params, state: State, eta: Tensor, here: Here, *, tau: Size
) -> tuple[Params, State]:
    """w <- w - eta grad L(w + tau grad L(w) / ||grad L(w)||)."""
    norm = here.norm(D)
    climb = torch.where(norm > 0, tau / norm, 0.0)
    return along(params, eta, here.descent(along(params, -climb, D))), state


def sign_gd(
    params: Params, D: Params, state: State, eta: Tensor, here: Here
) -> tuple[Params, State]:
    """w <- w - eta sign(grad L(w)), coordinate by coordinate."""
    return along(params, eta, tuple(d.sign() for d in D)), state


def adam(
    params: Params,
    D: Params,
    state: State,
    eta: Tensor,
    here: Here,
    *,
    beta1: Rate = 0.9,
    beta2: Rate = 0.999,
    eps: Size = 1e-8,
) -> tuple[Params, State]:
    """Adam with bias correction: w <- w - eta m-hat / (sqrt(v-hat) + eps)."""
    zeros = tuple(torch.zeros_like(d) for d in D)
    ms, vs, t = state or (zeros, zeros, 0)
    t += 1
    ms = tuple(torch.lerp(m, d, 1 - beta1) for m, d in zip(ms, D, strict=True))
    vs = tuple(torch.addcmul(beta2 * v, d, d, value=1 - beta2) for v, d in zip(vs, D, strict=True))
    hats = ((m / (1 - beta1**t), v / (1 - beta2**t)) for m, v in zip(ms, vs, strict=True))
    return along(params, eta, tuple(m / (v.sqrt() + eps) for m, v in hats)), (ms, vs, t)


def signum(
    params: Params, D: Params, state: State, eta: Tensor, here: Here, *, beta: Rate = 0.9
) -> tuple[Params, State]:
    """Signed momentum: m <- beta m + (1 - beta) (-grad L(w));  w <- w + eta sign(m)."""
    old = state or tuple(torch.zeros_like(d) for d in D)
    ms = tuple(beta * m + (1 - beta) * d for m, d in zip(old, D, strict=True))
    return along(params, eta, tuple(m.sign() for m in ms)), ms


def adamw(
    params: Params, D: Params, state: State, eta: Tensor, here: Here, *, decay: Size
) -> tuple[Params, State]:
    """Adam with decoupled weight decay: w <- w - eta (m-hat / (sqrt(v-hat) + eps) + decay w)."""
    stepped, state = adam(params, D, state, eta, here)
    return along(stepped, -decay * eta, params), state


Rule = Callable[..., tuple[Params, State]]
RULES: dict[str, Rule] = {
    "gd": gd, "momentum": momentum, "sam": sam, "sign_gd": sign_gd, "adam": adam,
    "signum": signum, "adamw": adamw,
}  # fmt: skip
SEES_COORDINATES = {"sign_gd", "adam", "signum", "adamw"}


def check_options(rule: str, options: dict[str, Any]) -> None:
    """Options that the rule's signature has, each a number in its range; none missing."""
    signature = inspect.signature(RULES[rule]).parameters.values()
    allowed = {p.name: p for p in signature if p.kind is p.KEYWORD_ONLY}
    for name, value in options.items():
        if name not in allowed:
            names = ", ".join(allowed) or "none"
            raise TypeError(
                f"{name} = {value!r}: neither train nor rule {rule!r} has it; the rule has: {names}"
            )
        (below,) = allowed[name].annotation.__metadata__
        check.shape(name, check.rate(name, value, below), ())
    for name, option in allowed.items():
        if option.default is option.empty and name not in options:
            raise TypeError(f"rule {rule!r} needs the option {name}")
