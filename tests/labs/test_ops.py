"""Every op of the compiler's tables, at two shapes that it was not traced with, against torch."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch.func import grad

from tests.labs.compare import apart
from tools.labs import ops, tojs
from tools.labs.build import algebra

T = torch.Tensor
SHAPES = {"v": "n", "w": "n", "u": "m", "A": "n m", "B": "m k", "C": "n m", "S": "n n", "P": "n m",
          "X": "b n m", "Y": "b m k", "Z": "b n k", "N": "n m"}  # fmt: skip
TRACE = {"n": 5, "m": 7, "k": 3, "b": 11}
SIZES = [{"n": 6, "m": 4, "k": 9, "b": 2}, {"n": 3, "m": 8, "k": 2, "b": 5}]


def spd(A: T) -> T:
    return A @ A.t() + torch.eye(A.shape[0], dtype=A.dtype)


# P is positive, N stays away from 0, s is a number; everything else is normal.
CASES: dict[str, Callable[..., T]] = {
    "add": lambda A, v: A + v[:, None],
    "sub": lambda A, u: A - u,
    "rsub": lambda A: 1 - A,
    "mul": lambda A, C, s: s * A * C,
    "div": lambda A, P: A / P,
    "neg": lambda A: -A,
    "reciprocal": lambda P: P.reciprocal(),
    "abs": lambda A: A.abs(),
    "sign": lambda A: A.sign() + A.sgn(),
    "square": lambda A: A.square() + A**2 + A**3,
    "sqrt": lambda P: P.sqrt() + P.rsqrt(),
    "pow": lambda P, s: P**s + P**1.5 + P ** (s - s) + P ** (s / s + 1),
    "exp": lambda A: A.exp() + A.expm1(),
    "log": lambda P: P.log() + P.log1p(),
    "ndtri": lambda A: torch.special.ndtri(A.sigmoid()),
    "sin": lambda A: A.sin() * A.cos() + A.tanh().acos(),
    "tanh": lambda A: A.tanh() + A.sigmoid(),
    "relu": lambda A: A.relu(),
    "max_min": lambda A, C: torch.maximum(A, C) - torch.minimum(A, C),
    "clamp": lambda A: A.clamp(-0.5, 0.7) + A.clamp(min=0.1) * A.clamp(max=0.2)
    + A.clamp_min(0.3) * A.clamp_max(0.6) + A.masked_fill(A > 0, 2.0),
    "compare": lambda A, C: (
        (A == C).to(A.dtype) + 2 * (A != C) + 4.0 * (A < C).to(A.dtype) + 8.0 * (A <= C).to(A.dtype)
        + 16.0 * (A > 0).to(A.dtype) + 32.0 * (A >= 0).to(A.dtype)),
    "logic": lambda A, C: torch.where(
        ((A > 0) & (C > 0)) | ~(A > 1), A, C) + torch.where(
        torch.logical_and(A > 0, torch.logical_not(C > 0)), A, 0.0) * torch.logical_or(
        A > 0, C > 0).to(A.dtype),
    "where": lambda A, C, s: torch.where(A > s, A, C),
    "softplus": lambda A: F.softplus(30 * A) + F.softplus(A, 2.0, 1.0),
    "grads": lambda A: grad(lambda Z: (
        F.softplus(20 * Z).sum() + Z.relu().square().sum() + Z.sigmoid().sum() + Z.tanh().mean()
        + F.leaky_relu(Z, 0.1).square().sum() + F.logsigmoid(Z).sum()))(A),
    "trunc": lambda A: (10 * A).to(torch.int64).to(A.dtype) + (A > 0).to(A.dtype) + A.bool(),
    "same": lambda A: A.clone().detach() + A.contiguous(),
    "fill": lambda A, v: (
        torch.ones_like(A) + torch.zeros_like(A) + A.new_zeros(A.shape) + A.new_ones(A.shape)
        + torch.full_like(A, 3.0) + A.new_full(A.shape, 2.0) + A + torch.zeros(
        A.shape, dtype=A.dtype) + torch.ones(A.shape, dtype=A.dtype) + torch.full(
        A.shape, 2.5, dtype=A.dtype) + torch.scalar_tensor(2.0, dtype=A.dtype)),
    "t": lambda A: A.t().exp(),
    "transpose": lambda X: X.transpose(0, 2).exp() + X.transpose(-3, -1),
    "permute": lambda X: X.permute(2, 0, 1).exp(),
    "expand": lambda v, A: (v * v)[:, None].expand(A.shape) + A,
    "slice": lambda A: A[1:, :-1] + A[:-1, 1:] + A[1:, 1:],
    "slice_step": lambda u: torch.cat([u[:2], u[-2:]]),
    "select": lambda X: X[1, :, 0] + X[-1][:, -1],
    "diagonal": lambda S: S.diagonal() + torch.diagonal(S.exp()),
    "diag_embed": lambda v: torch.diag(v * v),
    "diagonal_backward": lambda S: grad(lambda Z: Z.diagonal().square().sum())(S),
    "flip": lambda A, B: A.flip(0, 1).exp() + A.flip(-1) + (A.flip(1) @ B.flip(0)).sum(),
    "cat": lambda A, C, v: torch.cat([A, C * C, v[:, None]], 1),
    "stack": lambda v, w: torch.stack([v, w, v * w], 1),
    "tril": lambda A: A.tril(-1) + A.triu(1) + A.tril() + A.triu(),
    "backward": lambda A: grad(
        lambda Z: (Z[1:] * Z[:-1]).sum() + Z[:, 0].square().sum() + Z[1:, 1:].sum()
        + (Z[-1] ** 3).sum())(A),
    "arange": lambda A: A * torch.arange(A.shape[1]) + torch.arange(1, A.shape[1] + 1),
    "view": lambda X: X.reshape(-1) * X.reshape(X.shape[0], -1).reshape(-1),
    "view_permuted": lambda X: X.permute(1, 0, 2).reshape(X.shape[1], -1),
    "squeeze": lambda A, u: (A.unsqueeze(1) * u.unsqueeze(0).unsqueeze(0)).squeeze(1),
    "sum": lambda X: X.sum() + X.sum(1).sum(0).sum() + X.sum((0, 2), keepdim=True),
    "sum_rows": lambda A: A.sum(0, keepdim=True) + A.sum(1, keepdim=True) + A.exp().sum(0),
    "mean": lambda X: X.mean(1) + X.mean() + X.mean((0, 1)),
    "amax": lambda A: A.amax(0) - A.amin(1).amax() + A.max() - A.min(),
    "amax_grad": lambda A: grad(lambda Z: Z.amax(1).square().sum())(A),
    "softmax": lambda A: A.softmax(1) + A.log_softmax(0) + A.logsumexp(1, keepdim=True),
    "softmax_grad": lambda A: grad(lambda Z: (Z.softmax(1) * Z).sum() + (
        Z.log_softmax(0) * Z).sum())(A),
    "norm": lambda A: A / A.norm() + A / torch.linalg.vector_norm(A, dim=1, keepdim=True),
    "addc": lambda A, C, P: torch.addcmul(A, C, P) + torch.addcdiv(A, C, P) + torch.lerp(A, C, 0.3),
    "eye": lambda S: S + torch.eye(S.shape[0], dtype=S.dtype),
    "mm": lambda A, B: A @ B + (2 * A) @ (B - 1),
    "mm_strided": lambda A, C, B: A.t() @ C + (A[:, 1:].t() @ C[:, :-1]).sum(),
    "mm_wide": lambda A: A.t() @ A.exp() + A.t() @ A,
    "addmm": lambda u, A, B, C: torch.addmm(C @ C.t(), A, C.t()),
    "outer": lambda v, u: v[:, None] @ u[None] + v.outer(u),
    "mv": lambda A, u, v: A @ u + v @ A.exp() @ u + v.dot(v * v),
    "bmm": lambda X, Y: X @ Y + (X.exp() @ Y) * 2,
    "bmm_grad": lambda X, Y: grad(lambda Z: (Z @ Y).square().sum())(X),
    "baddbmm": lambda X, Y, Z: torch.baddbmm(Z, X, Y),
    "attention": lambda X: (X @ X.transpose(1, 2)).softmax(-1) @ X,
    "cholesky": lambda A: torch.linalg.cholesky(spd(A)) + torch.linalg.cholesky_ex(spd(A)).L.t()
    + torch.linalg.cholesky(spd(A)[None])[0],
    "eigh": lambda A: torch.linalg.eigh(spd(A))[0]
    + torch.linalg.eigh(spd(A)).eigenvectors ** 2 @ torch.linalg.eigvalsh(spd(A)),
    "floor": lambda A: (3 * A).floor() + A,
    "cholesky_solve": lambda A, u: torch.cholesky_solve(
        A @ u[:, None], torch.linalg.cholesky(spd(A))),
    "reuse": lambda A: (A.exp() + 1).log() * A.exp(),
    "shared": lambda v, A: (v * v + 1)[:, None] * A + (v * v + 1).sum(),
    "number": lambda s, v: s * s + v.sum(),
}  # fmt: skip


def wrap(name: str, fn: Callable[..., T]) -> tojs.Step:
    """fn as a step with its own signature."""
    args = ", ".join(fn.__code__.co_varnames[: fn.__code__.co_argcount])
    space: dict[str, Any] = {"fn": fn}
    exec(f"def op_{name}({args}):\n    return {{'out': fn({args})}}", space)
    return space[f"op_{name}"]


def data(fn: Callable[..., T], sizes: dict[str, int]) -> dict[str, T]:
    gen = torch.Generator().manual_seed(sizes["n"])
    out = {}
    for name in fn.__code__.co_varnames[: fn.__code__.co_argcount]:
        shape = [sizes[s] for s in SHAPES.get(name, "").split()]
        x = torch.randn(shape, generator=gen, dtype=torch.float64)
        out[name] = x.abs() + 0.5 if name in "Ps" else x
    return out


def script(kernels: str) -> str:
    body = algebra(kernels) + kernels
    return f'FeatureLab.model("ops", {{}}, function (kernel, rt) {{\n{body}\n}});'


def test_every_op_agrees_with_torch_at_two_new_shapes(
    node: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[str] = set()
    op_of = tojs._op
    monkeypatch.setattr(tojs, "_op", lambda n: seen.add(op_of(n)) or op_of(n))
    kernels = "".join(
        tojs.compile_step(wrap(name, fn), SHAPES, TRACE) for name, fn in CASES.items()
    )
    calls, want = [], []
    for name, fn in CASES.items():
        for sizes in SIZES:
            x = data(fn, sizes)
            inputs = {k: v.tolist() for k, v in x.items()}
            calls.append(
                {"what": "kernel", "model": "ops", "kernel": f"op_{name}", "sizes": sizes,
                 "inputs": inputs}
            )  # fmt: skip
            want.append(fn(**x).tolist())
    for call, expected, got in zip(calls, want, node([script(kernels)], calls), strict=True):
        where = f"{call['kernel']} at {json.dumps(call['sizes'])}"
        assert "error" not in got, f"{where}: {got}"
        assert apart(expected, got["out"]) < 1e-13, where
    tables = set(ops.POINTWISE) | set(ops.VIEWS) | set(ops.REDUCE) | ops.PRODUCTS
    tables |= ops.FILL | ops.SAME | ops.RESHAPES
    assert tables - seen == set(), "ops of the tables that no case reaches"
