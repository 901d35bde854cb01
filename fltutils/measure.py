"""gamma, rho, losses and errors.

The signal-noise decomposition of a weight vector is

    w_{j,r} = w_{j,r}(0) + j gamma_{j,r} mu / ||mu||^2 + sum_i rho_{j,r,i} xi_i / ||xi_i||^2.
"""

from collections.abc import Callable

import torch

from fltutils import check, models, span, train
from fltutils.rules import Params, along
from fltutils.signal_noise import products, weights
from fltutils.train import Problem, State

Tensor = torch.Tensor
TINY = torch.finfo(torch.float64).tiny
DRAWN = 2**17  # Gaussians of fresh samples at once: a megabyte


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
    along = square * _theta(s)[..., 0]
    return torch.stack([along[:, 0], -along[:, 1]], 1)


def rho(s: State) -> Tensor:
    """rho_{j,r,i} = ||xi_i||^2 theta_i, (R, 2, m, n)."""
    return s.data.xi.square().sum(-1)[:, None, None] * _theta(s)[..., 1:]


def own(values: Tensor, labels: Tensor) -> Tensor:
    """Of values (R, 2, m, n), those of the neurons of each sample's class: (R, m, n)."""
    return torch.where(labels[:, None] > 0, values[:, 0], values[:, 1])


def forgotten(s: State) -> State:
    """The same networks without their memory: every coefficient of noise is zero."""
    theta = _theta(s).clone()
    theta[..., 1:] = 0.0
    return s._replace(params=(theta,))


def starts(s: State) -> dict[str, Tensor]:
    """The start, in units of the weights: who leads in each class and on each sample's noise.

    M (R, 2) is the highest j <w, mu> of a class, M_i (R, n) the highest <w, xi_i> in a sample's own
    class, both over the standard deviation that theory gives them.
    """
    data = s.data
    A = data.W0 @ data.X.transpose(1, 2)[:, None]
    unit = data.W0[..., 0].std((1, 2))[:, None]
    length, size = data.mu.norm(dim=1)[:, None], data.xi.norm(dim=2)
    M = (models.SIGN[:, None] * A[..., 0]).amax(2) / (unit * length)
    return {"M": M, "M_i": own(A[..., 1:], data.y).amax(1) / (unit * size)}


def train_loss(s: State) -> Tensor:
    """L_S on the observed labels, (R,)."""
    return models.logistic(s.f, s.data.y_obs)


def error(margins: Tensor) -> Tensor:
    """Share of samples whose label has the wrong sign, y f <= 0, (R,)."""
    return (margins <= 0).to(margins.dtype).mean(-1)


def train_error(s: State) -> Tensor:
    """The error on the observed training labels, (R,)."""
    return error(s.data.y_obs * s.f)


def seen(s: State) -> tuple[Tensor, Tensor]:
    """What fresh data see of the weights: <w, mu> (R, 2, m), and w for the noise (R, 2m, r).

    The latter is without its part along mu if the noise is projected.
    """
    W, mu = weights(s), s.data.mu[:, None, None]  # (R, 1, 1, r)
    along = (W * mu).sum(-1, keepdim=True)
    if s.data.projected:
        W = W - along * mu / mu.square().sum(-1, keepdim=True).clamp(min=TINY)
    return along[..., 0], W.flatten(1, 2)


def fresh_parts(
    along: Tensor,
    root: Tensor,
    E: Tensor,
    sigma: Tensor,
    q: int | Tensor,
    old: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The parts of f on fresh data: of the noise (R, samples), of the signal at y = 1, -1 (R, 2).

    root' root = W W', so that sigma E root is <w, xi> for standard Gaussian E (R, samples, 2m);
    `old`, (R, samples, 2, m), is what the neurons answer to a patch beside it.
    """
    A = sigma[:, None, None, None] * (E @ root).view(*E.shape[:2], 2, along.shape[-1])
    A = A if old is None else A + old
    F = models.act(torch.stack([along, -along], 1), q).mean(-1)  # (R, y, j)
    noise = models.act(A, q).mean(-1)
    return noise[..., 0] - noise[..., 1], F[..., 0] - F[..., 1]


def margins(noise: Tensor, signal: Tensor) -> Tensor:
    """y f from its parts, (R, 2 samples): every draw of the noise serves both labels."""
    return torch.cat([signal[:, :1] + noise, -signal[:, 1:] - noise], 1)


def fresh_margins(s: State, *, q: int, samples: int = 1000, reused: bool = False) -> Tensor:
    """y f(x) on fresh data with the true label y, (R, 2 samples).

    The network sees fresh noise through <w, xi>, jointly Gaussian with covariance
    sigma^2 W W' (W without its part along mu if the noise is projected), so 2m numbers are drawn
    a sample, not d. Every draw serves both labels; a run's draws come from its own stream. Runs are
    taken a few at a time, so that their draws stay in the cache and no batch needs a gigabyte.

    With `reused` the noise of a sample is a training patch, each in turn, plus fresh noise.
    """

    def source(run: int) -> span.Rng:
        return span.stream(s.data.seed, run, "signal-noise: fresh samples")

    return _drawn_margins(s, q, samples, source, reused)


def _drawn_margins(
    s: State, q: int, samples: int, source: Callable[[int], span.Rng], reused: bool = False
) -> Tensor:
    """Margins on samples that each run draws from its source."""
    samples = check.count("samples", samples)
    (along, W), data = seen(s), s.data
    root = torch.linalg.qr(W.transpose(1, 2), mode="r").R  # root' root = W W'
    root = root * torch.where(root.diagonal(dim1=1, dim2=2) < 0, -1.0, 1.0)[..., None]  # unique
    at_once = max(1, DRAWN // (samples * root.shape[1]))
    old = products(s)[..., 1:].permute(0, 3, 1, 2) if reused else None
    turn = torch.arange(samples) % data.y.shape[1]
    found = []
    for few in torch.arange(len(root)).split(at_once):
        draws = torch.empty(len(few), samples, root.shape[1], dtype=root.dtype)
        for z, run in zip(draws.numpy(), data.run[few], strict=True):
            source(int(run)).standard_normal(out=z)
        beside = None if old is None else old[few][:, turn]
        parts = fresh_parts(along[few], root[few], draws, data.sigma[few], q, beside)
        found.append(margins(*parts))
    return torch.cat(found)


def test_error(s: State, *, q: int, samples: int = 1000, reused: bool = False) -> Tensor:
    """L_D^{0-1} = P(y f(x) <= 0) with the true label y, (R,)."""
    return error(fresh_margins(s, q=q, samples=samples, reused=reused))


def test_loss(s: State, *, q: int, samples: int = 1000) -> Tensor:
    """L_D = E log(1 + exp(-y f(x))) with the true label y, (R,)."""
    return torch.nn.functional.softplus(-fresh_margins(s, q=q, samples=samples)).mean(-1)


def held_out_loss(s: State, *, q: int, samples: int) -> Tensor:
    """The loss on 2 samples that early stopping may look at, none of them a test sample, (R,)."""

    def source(run: int) -> span.Rng:
        return span.stream(s.data.seed, run, "signal-noise: held-out samples")

    return torch.nn.functional.softplus(-_drawn_margins(s, q, samples, source)).mean(-1)


def rise(problem: Problem, params: Params, r: float, climbs: int = 30) -> Tensor:
    """How much the loss rises within a distance r of params, as far as an ascent finds, (R,).

    The ascent takes a step of r along the gradient, then steps of r / 3, each back into the ball.
    """
    data, descent = problem.data, problem.descent
    if descent is None:
        raise ValueError("problem has no descent: rise needs the gradient in closed form")

    def length(D: Params) -> Tensor:
        found = train.norm(D) if problem.norm is None else problem.norm(D, data)
        return found.clamp(min=TINY)

    here = params
    f, cache = problem.outputs(here, data)
    first = highest = problem.loss(f, data)
    for climb in range(check.count("climbs", climbs)):
        D = descent(f, cache, data)
        here = along(here, -(r if climb == 0 else r / 3) / length(D), D)
        off = tuple(w - at for w, at in zip(here, params, strict=True))
        here = along(params, (r / length(off)).clamp(max=1), off)
        f, cache = problem.outputs(here, data)
        highest = torch.maximum(highest, problem.loss(f, data))
    return highest - first
