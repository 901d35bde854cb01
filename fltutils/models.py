"""Forward functions, as formulas.

The two-layer convolutional network on two patches is

    f(W, x) = F_{+1}(x) - F_{-1}(x),
    F_j(x) = (1/m) sum_r [ act(<w_{j,r}, x^(1)>) + act(<w_{j,r}, x^(2)>) ],   act(z) = ReLU(z)^q.
"""

import torch
from torch.nn.functional import softplus

Tensor = torch.Tensor
SIGN = torch.tensor([1.0, -1.0], dtype=torch.float64)  # the sign of the second layer: j


def act(z: Tensor, q: int | Tensor) -> Tensor:
    """ReLU(z)^q; q is a tensor where one graph is traced for every q."""
    h = torch.relu(z)
    return h if isinstance(q, int) and q == 1 else h**q


def slope(z: Tensor, q: int) -> Tensor:
    """d/dz ReLU(z)^q, with slope 0 at 0."""
    return (z > 0).to(z.dtype) if q == 1 else q * act(z, q - 1)


def cnn(W: Tensor, x1: Tensor, x2: Tensor, q: int | Tensor) -> Tensor:
    """f(W, x) for W (R, 2, m, r) and patches x1, x2 (R, n, r): (R, n)."""
    F = sum(act(W @ x.transpose(-1, -2)[:, None], q).mean(2) for x in (x1, x2))
    return F[:, 0] - F[:, 1]  # type: ignore[index]


def cnn_from_products(A: Tensor, y: Tensor, q: int | Tensor) -> Tensor:
    """f(W, x_i) at x_i = [y_i mu, xi_i] from the inner products A = <w, [mu, xi_1..xi_n]>.

    A is (R, 2, m, 1 + n) and y is (R, n). The signal patch takes two values only, one a label.
    """
    noise = act(A[..., 1:], q).sum(2)
    plus, minus = act(A[..., :1], q).sum(2), act(-A[..., :1], q).sum(2)
    F = noise + torch.where(y[:, None] > 0, plus, minus)
    return (F[:, 0] - F[:, 1]) / A.shape[2]


def pull(A: Tensor, y: Tensor, g: Tensor, q: int) -> Tensor:
    """C with  sum_i g_i grad_w f(x_i) = sum_k C_k x_k  over x_0 = mu, x_k = xi_k; g is (R, n)."""
    gj = SIGN.to(g.dtype)[:, None, None] * g[:, None, None] / A.shape[2]  # (R, 2, 1, n)
    C = torch.empty_like(A)
    if q == 1:
        torch.ops.aten.threshold_backward.grad_input(
            gj.expand_as(A[..., 1:]), A[..., 1:], 0.0, grad_input=C[..., 1:]
        )
    else:
        torch.mul(slope(A[..., 1:], q), gj, out=C[..., 1:])
    one = (y > 0).to(g.dtype)[:, None, None]
    a = A[..., 0]
    C[..., 0] = slope(a, q) * (gj * one).sum(-1) - slope(-a, q) * (gj * (1 - one)).sum(-1)
    return C


def logistic(f: Tensor, y: Tensor, weight: Tensor | None = None) -> Tensor:
    """L_S = (1/n) sum_i weight_i log(1 + exp(-y_i f_i)), one a run."""
    each = softplus(-y * f)
    return (each if weight is None else weight * each).mean(-1)


def downhill(f: Tensor, y: Tensor, weight: Tensor | None = None) -> Tensor:
    """-dL_S/df_i = weight_i y_i / (n (1 + exp(y_i f_i)))."""
    g = y * torch.sigmoid(-y * f) / f.shape[-1]
    return g if weight is None else weight * g
