"""gamma, rho, losses and errors.

The signal-noise decomposition of a weight vector is

    w_{j,r} = w_{j,r}(0) + j gamma_{j,r} mu / ||mu||^2 + sum_i rho_{j,r,i} xi_i / ||xi_i||^2.
"""

import torch

from fltutils import check, models, span
from fltutils.signal_noise import weights
from fltutils.train import State

Tensor = torch.Tensor
TINY = torch.finfo(torch.float64).tiny


def coefficients(W: Tensor, W0: Tensor, X: Tensor) -> Tensor:
    """theta (R, 2, m, 1 + n) with W - W0 = theta X, by least squares on the rows of X."""
    R, _, m, r = W.shape
    B = (W - W0).reshape(R, 2 * m, r).transpose(1, 2)
    theta = torch.linalg.lstsq(X.transpose(1, 2), B, driver="gelsd").solution
    return theta.transpose(1, 2).reshape(R, 2, m, X.shape[1])


def _theta(s: State) -> Tensor:
    (leaf,), data = s.params, s.data
    return leaf if data.G is not None else coefficients(leaf, data.W0, data.X)


def gamma(s: State) -> Tensor:
    """gamma_{j,r} = j ||mu||^2 theta_0, (R, 2, m)."""
    square = s.data.mu.square().sum(-1)[:, None, None]
    return models.SIGN[:, None] * square * _theta(s)[..., 0]


def rho(s: State) -> Tensor:
    """rho_{j,r,i} = ||xi_i||^2 theta_i, (R, 2, m, n)."""
    return s.data.xi.square().sum(-1)[:, None, None] * _theta(s)[..., 1:]


def train_loss(s: State) -> Tensor:
    """L_S on the observed labels, (R,)."""
    return models.logistic(s.f, s.data.y_obs)


def train_error(s: State) -> Tensor:
    """Share of training samples whose observed label has the wrong sign, (R,)."""
    return (s.data.y_obs * s.f <= 0).to(s.f.dtype).mean(-1)


def fresh_margins(s: State, *, q: int, samples: int = 1000) -> Tensor:
    """y f(x) on fresh data with the true label y, (R, 2 samples).

    The network sees fresh noise through <w, xi>, jointly Gaussian with covariance
    sigma^2 W W' (W without its part along mu if the noise is projected), so 2m numbers are drawn
    a sample, not d. Every draw serves both labels; a run's draws come from its own stream.
    """
    samples = check.count("samples", samples)
    W, data = weights(s), s.data
    R, _, m, _ = W.shape
    mu = data.mu[:, None, None]  # (R, 1, 1, r)
    along = (W * mu).sum(-1, keepdim=True)  # <w, mu>
    if data.projected:
        W = W - along * mu / mu.square().sum(-1, keepdim=True).clamp(min=TINY)
    root = torch.linalg.qr(W.flatten(1, 2).transpose(1, 2), mode="r").R  # root' root = W W'
    root = root * torch.where(root.diagonal(dim1=1, dim2=2) < 0, -1.0, 1.0)[..., None]  # unique
    rngs = [span.stream(data.seed, int(i), "signal-noise: fresh samples") for i in data.run]
    draws = [torch.from_numpy(rng.standard_normal((samples, root.shape[1]))) for rng in rngs]
    A = data.sigma[:, None, None] * (torch.stack(draws) @ root)  # (R, samples, 2m): <w, xi>
    noise = models.act(A, q).view(R, samples, 2, m).mean(-1)
    F = [noise + models.act(y * along[..., 0], q).mean(-1)[:, None] for y in (1.0, -1.0)]
    return torch.cat([y * (f[..., 0] - f[..., 1]) for y, f in zip((1.0, -1.0), F, strict=True)], 1)


def test_error(s: State, *, q: int, samples: int = 1000) -> Tensor:
    """L_D^{0-1} = P(y f(x) <= 0) with the true label y, (R,)."""
    return (fresh_margins(s, q=q, samples=samples) <= 0).to(s.f.dtype).mean(-1)


def test_loss(s: State, *, q: int, samples: int = 1000) -> Tensor:
    """L_D = E log(1 + exp(-y f(x))) with the true label y, (R,)."""
    return torch.nn.functional.softplus(-fresh_margins(s, q=q, samples=samples)).mean(-1)
