"""The labs on signal and noise: `fltutils` on the page's arrays, one run, every number a tensor.

What a page runs is the graph that torch traces from these functions and from those of the package
that they call. Beside them stand here the draws of a page, as a batch, and the early theory.
"""

import torch
from torch.func import grad

from fltutils import measure, models, rules, signal_noise
from fltutils.signal_noise import SignalNoise
from fltutils.train import State

from .chapter import functions

Tensor = torch.Tensor
deciding, c_star, signal_speed, noise_speed = functions(
    "benign_overfitting", "deciding", "c_star", "signal_speed", "noise_speed"
)
STOP = 0.05  # the training loss at which the chapter's networks stop


def prepare(
    U: Tensor, F: Tensor, Z: Tensor, chi: Tensor, V: Tensor, B: Tensor, chi_w: Tensor,
    d: Tensor, mu: Tensor, sigma: Tensor, sigma0: Tensor, tied: Tensor, flip: Tensor, rate: Tensor,
    m: Tensor, q: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """Data, initial weights and the step rate m / max(|mu|^2, sigma^2 d / n).

    The initial weights are sigma0 / sqrt(d); where they are tied and q < 2, sigma0 is in units of
    sqrt(n / d), beside which they must be small.
    """
    n = Z.shape[0]
    small = torch.where((q < 2) & (tied > 0), torch.sqrt(n / d), torch.ones_like(d))
    out = sample(U, F, Z, chi, V, B, chi_w, mu, sigma, sigma0 * small / torch.sqrt(d), flip)
    eta = rate * m / torch.maximum(mu * mu, sigma * sigma * d / n)
    return out | {"C": 0 * out["A0"], "eta": eta}


def sample(
    U: Tensor, F: Tensor, Z: Tensor, chi: Tensor, V: Tensor, B: Tensor, chi_w: Tensor,
    mu: Tensor, sigma: Tensor, scale: Tensor, flip: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """Data and weights of size `scale` in the coordinates of `span`: Bartlett's, mu first, V on
    the noise. Of n labels the nearest whole number to flip n is flipped."""
    n, r, half = Z.shape[0], B.shape[0], V.shape[2]
    rank = (F[:, None] > F[None]).to(F.dtype).sum(1)
    y = torch.sign(U - 0.5)
    noise = torch.tril(Z, -1) + torch.diag(chi)
    own = torch.tril(B, -1) + torch.diag(chi_w)
    xi = sigma * torch.cat([Z.new_zeros(n, 1), noise, Z.new_zeros(n, r)], 1)
    X = torch.cat([torch.cat([mu[None], Z.new_zeros(n + r)])[None], xi])
    beside = torch.stack([own[:half], own[half:]])
    W0 = scale * torch.cat([V.permute(1, 2, 0), beside], 2)
    data = signal_noise.with_products(batch(X, W0, y, y, sigma))
    assert data.A0 is not None
    assert data.G is not None
    return {
        "y": y,
        "y_obs": torch.where(rank < torch.floor(flip * n + 0.5), -y, y),
        "X": X,
        "W0": W0,
        "A0": data.A0.view(*V.shape[1:], 1 + n),
        "G": data.G[0],
    }


def batch(X: Tensor, W0: Tensor, y: Tensor, y_obs: Tensor, sigma: Tensor) -> SignalNoise:
    """The page's arrays as a batch of one run, its noise off the signal."""
    return SignalNoise(
        X[:1], X[None, 1:], y[None], y_obs[None], W0[None], sigma[None], y[:1], 0, True, True
    )


def descend(
    C: Tensor, A0: Tensor, G: Tensor, X: Tensor, W0: Tensor, y: Tensor, y_obs: Tensor,
    sigma: Tensor, q: Tensor, eta: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """theta <- theta - eta grad L, by the gradient of L in A."""
    data = batch(X, W0, y, y_obs, sigma)._replace(A0=A0.flatten(0, 1)[None], G=G[None])

    def gain(A: Tensor) -> Tensor:
        return -models.logistic(models.cnn_from_products(A, data.y, q), data.y_obs).sum()

    theta = C[None]
    D = grad(gain)(signal_noise.products(State((theta,), y, data)))
    return {"C": rules.along((theta,), eta[None], (D,))[0][0]}


def fresh_errors(s: State, E: Tensor, q: int) -> Tensor:
    """The errors (R,) on fresh samples whose noise is E (t, w), in the data's own coordinates."""
    along, W = measure.seen(s)
    E = E.expand(len(W), -1, -1)
    parts = measure.fresh_parts(along, W.transpose(1, 2), E, s.data.sigma, q)
    return measure.error(measure.margins(*parts))


def own(values: Tensor, y_obs: Tensor) -> Tensor:
    """Of values (2, m, n), one a neuron and a sample, those of the sample's class: (m, n)."""
    return torch.where(y_obs > 0, values[0], values[1])


def theory_start(
    A0: Tensor, y_obs: Tensor, d: Tensor, mu: Tensor, sigma: Tensor, q: Tensor, m: Tensor
) -> dict[str, Tensor]:
    """Where the race of two numbers starts, and what the theorems compare with a constant.

    kappa = n |mu|^4 / (sigma^4 d) for ReLU (q = 1), c = n SNR^q for q > 2; ratio is the one that q
    asks for, over the boundary that the chapter draws.
    """
    n = y_obs.shape[0]
    snr = mu / (sigma * torch.sqrt(d))
    u = torch.maximum(A0[0, :, 0].amax(), -A0[1, :, 0].amin())
    v = own(A0[..., 1:], y_obs).amax()
    kappa, c = deciding(n, d, mu / sigma), n * snr**q
    return {
        "u0": u, "v0": v, "u": 1 * u, "v": 1 * v, "c": c, "kappa": kappa,
        "ratio": torch.where(q < 2, 2 * kappa, c / c_star(m, STOP, q)), "snr": snr,
    }  # fmt: skip


def theory(
    u: Tensor, v: Tensor, q: Tensor, eta: Tensor, mu: Tensor, sigma: Tensor, d: Tensor, m: Tensor,
    flip: Tensor, y: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """The race while the loss is flat: the largest <w, j mu> and the largest <w, xi_i>."""
    n = y.shape[0]
    beta = signal_speed(eta, q, n * torch.ones_like(eta) / 2, n, m, mu, flip)
    return {
        "u": u + beta * u ** (q - 1),
        "v": v + noise_speed(eta, q, n, m, sigma * sigma * d) * v ** (q - 1),
    }


def look(
    C: Tensor, A0: Tensor, G: Tensor, X: Tensor, W0: Tensor, y: Tensor, y_obs: Tensor,
    sigma: Tensor, q: Tensor, E: Tensor, u: Tensor, v: Tensor, u0: Tensor, v0: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """gamma, rho, losses and errors by `measure`; fresh noise is drawn as E.

    The signal has won where its part of y f exceeds the spread of the noise's part on fresh data;
    fresh is that part of f on ten samples. old_error is the error on noise of training samples.
    """
    data = batch(X, W0, y, y_obs, sigma)._replace(A0=A0.flatten(0, 1)[None], G=G[None])
    s = State((C[None],), y, data)
    s = s._replace(f=models.cnn_from_products(signal_noise.products(s), data.y, q))
    flipped, fits = (y_obs != y).to(y.dtype), (y_obs * s.f[0] > 0).to(y.dtype)
    gamma = measure.gamma(s)[0].flatten()
    rho = own(measure.rho(s)[0], y_obs)
    along, W = measure.seen(s)
    root = torch.linalg.cholesky(W @ W.transpose(1, 2)).transpose(1, 2)
    noise, signal = measure.fresh_parts(along, root, E.flatten(1)[None], data.sigma, q)

    seen = models.act(signal_noise.products(s)[..., 1:], q).mean(2)
    old = measure.margins(seen[:, 0] - seen[:, 1], signal)
    margins = measure.margins(noise, signal)
    plus, minus = margins[:, : noise.shape[1]], margins[:, noise.shape[1] :]

    def loss(kept: Tensor) -> Tensor:
        return models.logistic(s.f, data.y_obs, kept / kept.mean())[0]

    return {
        "loss": measure.train_loss(s)[0],
        "loss_clean": loss(1 - flipped),
        "loss_flipped": loss(flipped),
        "train_error": measure.train_error(s)[0],
        "test_error": measure.error(margins)[0],
        "old_error": measure.error(old)[0],
        "error_plus": measure.error(plus)[0],
        "error_minus": measure.error(minus)[0],
        "signal": (signal[0, 0] - signal[0, 1]) / 2,
        "signal_plus": 1 * signal[0, 0],
        "signal_minus": -signal[0, 1],
        "spread": noise.square().mean().sqrt(),
        "fresh": 1 * noise[0, :10],
        "gamma": gamma,
        "gamma_max": gamma.amax(),
        "rho": rho.amax(0),
        "rho_max": rho.amax(),
        "gamma_theory": u - u0,
        "rho_theory": v - v0,
        "y": 1 * y,
        "answers": 1 * s.f[0],
        "flipped": flipped,
        "flips": flipped.sum(),
        "fit_flipped": (flipped * fits).sum() / flipped.sum(),
    }
