"""One training run as pure functions of tensors: the steps that the pages run.

The pages run the graphs that PyTorch traces from these functions, their gradient included. They
are `fltutils.train` for one run of plain gradient descent, without a batch axis and with every
number a tensor, so that they can be traced; a test holds the two equal. A training set is
x_i = [s_i mu, xi_i], i = 1..n, with observed label y_i (s_i, or -s_i where it was flipped). The
network has rows w_1..w_2m (j = +1 first) and is its coefficients C on z = [mu, xi_1..xi_n]:

    W = W_0 + C Z,    A = W Z' = A_0 + C G,    G = Z Z',    gradient in W = (gradient in A) Z.
"""

import torch
from torch.func import grad
from torch.nn.functional import softplus

Tensor = torch.Tensor


def act(z: Tensor, q: Tensor) -> Tensor:
    """ReLU(z)^q."""
    return torch.relu(z) ** q


def network(A: Tensor, s: Tensor, a: Tensor, q: Tensor) -> Tensor:
    """f(x_i) = sum_r a_r [act(s_i <w_r, mu>) + act(<w_r, xi_i>)], a = +-1/m.

    The signal patch takes two values only, one for each label.
    """
    signal = torch.where(s > 0, a @ act(A[:, 0], q), a @ act(-A[:, 0], q))
    return signal + a @ act(A[:, 1:], q)


def loss(A: Tensor, s: Tensor, y: Tensor, a: Tensor, q: Tensor) -> Tensor:
    """L = mean_i log(1 + exp(-y_i f(x_i)))."""
    return softplus(-y * network(A, s, a, q)).mean()


def prepare(
    U: Tensor, F: Tensor, Z: Tensor, chi: Tensor, V: Tensor, B: Tensor, chi_w: Tensor,
    d: Tensor, mu: Tensor, sigma: Tensor, sigma0: Tensor, flip: Tensor, rate: Tensor, m: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """Data and initial weights in orthonormal coordinates of their span, by Bartlett.

    Data: L = Z below the diagonal, chi with d-1, d-2, .. degrees of freedom on it; xi = sigma L.
    Weights: V on the data's coordinates, and Bartlett once more on coordinates of their own.
    The step is rate m / max(|mu|^2, sigma^2 d / n).
    """
    s = torch.sign(U - 0.5)
    y = torch.where(F < flip, -s, s)
    xi = sigma * (torch.tril(Z, -1) + torch.diag(chi))
    W = sigma0 / torch.sqrt(d) * V.t()
    own = sigma0 / torch.sqrt(d) * (torch.tril(B, -1) + torch.diag(chi_w))
    gram = xi @ xi.t()
    noise = torch.cat([0 * gram[:1], gram])
    first = torch.cat([mu * mu * torch.ones_like(chi[:1]), 0 * chi])
    j = torch.sign(m - 0.5 - torch.arange(V.shape[1]))
    return {
        "s": s,
        "y": y,
        "a": j / m,
        "eta": rate * m / torch.maximum(mu * mu, sigma * sigma * d / s.shape[0]),
        "A0": torch.cat([mu * W[:, :1], W[:, 1:] @ xi.t()], 1),
        "G": torch.cat([first[:, None], noise], 1),
        "S0": W[:, 1:] @ W[:, 1:].t() + own @ own.t(),
        "C": 0 * W,
    }


def descend(
    C: Tensor, A0: Tensor, G: Tensor, s: Tensor, y: Tensor, a: Tensor, q: Tensor, eta: Tensor
) -> dict[str, Tensor]:
    """W <- W - eta grad L(W), as C <- C - eta (gradient in A)."""
    return {"C": C - eta * grad(loss)(A0 + C @ G, s, y, a, q)}


def theory_start(
    A0: Tensor, G: Tensor, s: Tensor, y: Tensor, a: Tensor, d: Tensor, mu: Tensor, sigma: Tensor,
    q: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """Where the race of two numbers starts, and what the theorems compare with a constant.

    kappa = n |mu|^4 / (sigma^4 d) for ReLU (q = 1), c = n SNR^q for q > 2; ratio is the one that
    q asks for.
    """
    n, j = s.shape[0], torch.sign(a)
    snr = mu / (sigma * torch.sqrt(d))
    own = torch.where(y * j[:, None] > 0, A0[:, 1:], 0.0)
    return {
        "u0": (j * A0[:, 0]).amax(),
        "v0": own.amax(),
        "u": (j * A0[:, 0]).amax(),
        "v": own.amax(),
        "c": n * snr**q,
        "kappa": n * mu**4 / (sigma**4 * d),
        "ratio": torch.where(q < 2, n * mu**4 / (sigma**4 * d), n * snr**q),
        "snr": snr,
    }


def theory(
    u: Tensor, v: Tensor, q: Tensor, eta: Tensor, mu: Tensor, sigma: Tensor, d: Tensor, m: Tensor,
    flip: Tensor, s: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """The race while the loss is flat: u <- u + eta q (1 - 2p) |mu|^2 u^(q-1) / (4m), and
    v <- v + eta q sigma^2 d v^(q-1) / (2 m n): the largest <w, j mu> and the largest <w, xi_i>."""
    n = s.shape[0]
    return {
        "u": u + eta * q * (1 - 2 * flip) * mu * mu * u ** (q - 1) / (4 * m),
        "v": v + eta * q * sigma * sigma * d * v ** (q - 1) / (2 * m * n),
    }


def measure(
    C: Tensor, A0: Tensor, G: Tensor, S0: Tensor, s: Tensor, y: Tensor, a: Tensor, q: Tensor,
    sigma: Tensor, E: Tensor, u: Tensor, v: Tensor, u0: Tensor, v0: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """gamma, rho, losses, and the error on fresh data.

    gamma_r = j C_{r,0} |mu|^2 and rho_{r,i} = C_{r,i} |xi_i|^2 are the coefficients of the
    decomposition. Fresh noise is seen through <w_r, xi> only: Gaussian with covariance
    sigma^2 S, S = W W' = W_0 W_0' + A_0 C' + C A' off mu; every draw serves both labels. The
    signal has won where its part of y f exceeds the spread of the noise's part on fresh data.
    """
    A = A0 + C @ G
    f = network(A, s, a, q)
    each, flipped = softplus(-y * f), (y != s).to(y.dtype)
    j = torch.sign(a)
    gamma = j * C[:, 0] * G[0, 0]
    own = torch.where(y * j[:, None] > 0, C[:, 1:] * torch.diagonal(G)[1:], 0.0)
    S = S0 + A0[:, 1:] @ C[:, 1:].t() + C[:, 1:] @ A[:, 1:].t()
    xi = sigma * E @ torch.linalg.cholesky(S).t()
    noise, plus, minus = act(xi, q) @ a, a @ act(A[:, 0], q), a @ act(-A[:, 0], q)
    wrong = (noise + plus <= 0).to(f.dtype) + (noise + minus >= 0).to(f.dtype)
    return {
        "loss": each.mean(),
        "loss_clean": ((1 - flipped) * each).sum() / (1 - flipped).sum(),
        "loss_flipped": (flipped * each).sum() / flipped.sum(),
        "train_error": (y * f <= 0).to(f.dtype).mean(),
        "test_error": wrong.mean() / 2,
        "signal": (plus - minus) / 2,
        "spread": noise.square().mean().sqrt(),
        "gamma": gamma,
        "gamma_max": gamma.amax(),
        "rho": own.amax(0),
        "rho_max": own.amax(),
        "gamma_theory": u - u0,
        "rho_theory": v - v0,
        "flipped": flipped,
    }
