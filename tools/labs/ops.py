"""The table of ATen ops that the compiler knows, and what each is in JavaScript.

A Value is a tensor that is not there yet: a shape, and the tree of its entry at an index.
Indices, sizes and conditions are sympy expressions of loop variables and named sizes. A tree is

    ("js", text)               a constant or a number that the step is given
    ("index", e)               an index as a number
    ("load", buffer, e)        an entry of a buffer
    ("op", template, trees)    an element-wise op
    ("if", condition, then, otherwise)
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch

aten = torch.ops.aten
Expr = Any  # sympy.Expr
Tree = tuple[Any, ...]
Index = tuple[Expr, ...]


class UnsupportedError(ValueError):
    """The step uses something that the compiler does not know."""


@dataclass(frozen=True)
class Value:
    """A tensor, as the tree of its entry at an index."""

    shape: Index
    at: Callable[[Index], Tree]


# Element-wise: the JavaScript of one entry; {0}, {1}, ... are the arguments in ATen's order.

POINTWISE = {
    "add": "{0} + {1}", "sub": "{0} - {1}", "rsub": "{1} - {0}", "mul": "{0} * {1}",
    "div": "{0} / {1}", "neg": "-{0}", "reciprocal": "1 / {0}", "abs": "Math.abs({0})",
    "floor": "Math.floor({0})",
    "sign": "Math.sign({0})", "sgn": "Math.sign({0})", "sqrt": "Math.sqrt({0})",
    "rsqrt": "1 / Math.sqrt({0})", "pow": "rt.pow({0}, {1})",
    "exp": "Math.exp({0})", "expm1": "Math.expm1({0})", "log": "Math.log({0})",
    "log1p": "Math.log1p({0})", "sin": "Math.sin({0})", "cos": "Math.cos({0})",
    "acos": "Math.acos({0})", "special_ndtri": "rt.ndtri({0})",
    "tanh": "Math.tanh({0})", "sigmoid": "1 / (1 + Math.exp(-{0}))",
    "relu": "({0} < 0 ? 0 : {0})", "maximum": "Math.max({0}, {1})",
    "minimum": "Math.min({0}, {1})", "clamp": "rt.clamp({0}, {1}, {2})",
    "clamp_min": "Math.max({0}, {1})",
    "clamp_max": "Math.min({0}, {1})", "eq": "+({0} === {1})", "ne": "+({0} !== {1})",
    "lt": "+({0} < {1})", "le": "+({0} <= {1})", "gt": "+({0} > {1})", "ge": "+({0} >= {1})",
    "logical_not": "+({0} === 0)",
    "bitwise_not": "+({0} === 0)", "logical_and": "+({0} !== 0 && {1} !== 0)",
    "bitwise_and": "+({0} !== 0 && {1} !== 0)", "logical_or": "+({0} !== 0 || {1} !== 0)",
    "bitwise_or": "+({0} !== 0 || {1} !== 0)",
    "where": "{0} ? {1} : {2}", "softplus": "rt.softplus({0}, {1}, {2})",
    "softplus_backward": "{0} * rt.dsoftplus({1}, {2}, {3})",
    "threshold_backward": "{1} <= {2} ? 0 : {0}", "sigmoid_backward": "{0} * (1 - {1}) * {1}",
    "tanh_backward": "{0} * (1 - {1} * {1})",
}  # fmt: skip
BOOLEAN = {"eq", "ne", "lt", "le", "gt", "ge", "logical_not", "logical_and", "logical_or"}
BOOLEAN |= {"bitwise_not", "bitwise_and", "bitwise_or"}  # of truth values, as & and | and ~ are
SAME = {"clone", "detach", "_to_copy"}
FILL = {"zeros", "ones", "zeros_like", "ones_like", "new_zeros", "new_ones", "full"}
FILL |= {"full_like", "scalar_tensor"}
REDUCE = {
    "sum": ("0", "+"), "mean": ("0", "+"), "amax": ("-Infinity", "max"),
    "amin": ("Infinity", "min"), "max": ("-Infinity", "max"), "min": ("Infinity", "min"),
}  # fmt: skip
DEFAULTS = {"softplus": (1.0, 20.0), "clamp": (None, None)}  # of arguments that ATen leaves out
KINDS = {torch.float64: "+{0}", torch.int64: "Math.trunc(+{0})", torch.bool: "+({0} !== 0)"}
PRODUCTS = {"mm", "bmm", "mv", "dot", "addmm", "baddbmm"}
# What torch itself rewrites in terms of the ops above, before the compiler sees it.
DECOMPOSE = [
    aten._softmax, aten._softmax_backward_data, aten._log_softmax, aten.logsumexp,
    aten._log_softmax_backward_data, aten.log_sigmoid_forward, aten.log_sigmoid_backward,
    aten.addcmul, aten.addcdiv, aten.lerp, aten.leaky_relu,
    aten.leaky_relu_backward, aten.linalg_vector_norm, aten.masked_fill,
    aten.eye, aten.stack, aten.new_full,
]  # fmt: skip


# Views: the index into the argument of the entry at index i of the result.


def broadcast(x: Value, i: Index) -> Tree:
    """The entry of x that broadcasting puts at index i."""
    tail = i[len(i) - len(x.shape) :]
    return x.at(tuple(sympy.S.Zero if n == 1 else k for k, n in zip(tail, x.shape, strict=True)))


def strides(shape: Index) -> list[Expr]:
    """Row-major strides."""
    return [sympy.prod(shape[k + 1 :]) for k in range(len(shape))]


def linear(i: Index, shape: Index) -> Expr:
    """The position of index i in a row-major buffer."""
    return sum((k * s for k, s in zip(i, strides(shape), strict=True)), sympy.S.Zero)


def _put(i: Index, dim: int, e: Any) -> Index:
    return (*i[:dim], sympy.sympify(e), *i[dim:][1:])


def _if(shape: Index, ask: Callable[[Index], Any], at: Callable[[Index], Tree]) -> Value:
    return Value(shape, lambda i: ("if", ask(i), at(i), ("js", "0")))


def _count(k: Any, n: Expr) -> Expr:
    """A position counted from the front, as Python counts."""
    return k + n if sympy.sympify(k).is_negative else sympy.sympify(k)


def _permute(shape: Index, x: Value, dims: Iterable[int]) -> Value:
    order = [d % len(shape) for d in dims]
    return Value(shape, lambda i: x.at(tuple(i[order.index(k)] for k in range(len(i)))))


def _transpose(shape: Index, x: Value, a: int, b: int) -> Value:
    dims = list(range(len(shape)))
    dims[a], dims[b] = dims[b], dims[a]
    return _permute(shape, x, dims)


def _slice(shape: Index, x: Value, dim: int = 0, start: Any = 0, end: Any = 0,
           step: Any = 1) -> Value:  # fmt: skip
    first = _count(start or 0, x.shape[dim])
    return Value(shape, lambda i: x.at(_put(i, dim % len(i), first + step * i[dim])))


def _select(shape: Index, x: Value, dim: int, k: Any) -> Value:
    k, dim = _count(k, x.shape[dim]), dim % len(x.shape)
    return Value(shape, lambda i: x.at((*i[:dim], k, *i[dim:])))


def _diagonal(shape: Index, x: Value, offset: int = 0, a: int = 0, b: int = 1) -> Value:
    if offset or len(x.shape) != 2:
        raise UnsupportedError("only the main diagonal of a matrix is supported")
    return Value(shape, lambda i: x.at((i[0], i[0])))


def _to_diagonal(shape: Index, x: Value, *_: Any) -> Value:
    if len(shape) != 2 or shape[0] != x.shape[0]:
        raise UnsupportedError("only the main diagonal of a matrix is supported")
    return _if(shape, lambda i: sympy.Eq(i[0], i[1]), lambda i: x.at(i[:1]))


def _slice_backward(shape: Index, g: Value, _: Any, dim: int, start: Any, end: Any,
                    step: int) -> Value:  # fmt: skip
    n, first, dim = g.shape[dim], _count(start, shape[dim]), dim % len(shape)
    if step != 1:
        raise UnsupportedError(f"step = {step}: must be 1")
    if n == shape[dim]:
        return g

    def inside(i: Index) -> Any:
        above = True if first == 0 else i[dim] >= first
        return sympy.And(above, True if first + n == shape[dim] else i[dim] < first + n)

    return _if(shape, inside, lambda i: g.at(_put(i, dim, i[dim] - first)))


def _select_backward(shape: Index, g: Value, _: Any, dim: int, k: Any) -> Value:
    k, dim = _count(k, shape[dim]), dim % len(shape)
    return _if(shape, lambda i: sympy.Eq(i[dim], k), lambda i: g.at((*i[:dim], *i[dim + 1 :])))


def _cat(shape: Index, parts: Sequence[Value], dim: int = 0) -> Value:
    dim, n = dim % len(shape), parts[0].shape[dim]
    if len(parts) == 1:
        return parts[0]
    rest = _cat(_put(shape, dim, shape[dim] - n), parts[1:], dim)
    return Value(shape, lambda i: (
        "if", i[dim] < n, parts[0].at(i), rest.at(_put(i, dim, i[dim] - n))))  # fmt: skip


def _flip(shape: Index, x: Value, dims: Sequence[int]) -> Value:
    over = {d % len(shape) for d in dims}
    return Value(
        shape, lambda i: x.at(tuple(shape[d] - 1 - k if d in over else k for d, k in enumerate(i)))
    )


VIEWS: dict[str, Callable[..., Value]] = {
    "t": lambda shape, x: _permute(shape, x, range(len(shape))[::-1]),
    "transpose": _transpose,
    "permute": _permute,
    "expand": lambda shape, x, sizes: Value(shape, lambda i: broadcast(x, i)),
    "slice": _slice,
    "select": _select,
    "diagonal": _diagonal,
    "diag_embed": _to_diagonal,
    "flip": _flip,
    "cat": _cat,
    "tril": lambda shape, x, k=0: _if(shape, lambda i: i[-1] <= i[-2] + k, x.at),
    "triu": lambda shape, x, k=0: _if(shape, lambda i: i[-1] >= i[-2] + k, x.at),
    "slice_backward": _slice_backward,
    "select_backward": _select_backward,
    "diagonal_backward": _to_diagonal,
    "arange": lambda shape, *a: Value(shape, lambda i: ("index", i[0] + (*a[:-1], 0)[0])),
}
RESHAPES = {"view", "squeeze", "unsqueeze", "_unsafe_view"}
INDEXED = set(VIEWS) | RESHAPES | SAME
