"""The signal-noise model: x_i = [y_i mu, xi_i] and the two-layer network that is trained on it.

With x_0 = mu and x_k = xi_k, a weight vector that stays in the span is w = w_0 + sum_k theta_k x_k,
and the network sees it through A = <w, x_k> = A_0 + theta G, G the Gram matrix. So parameters are
theta; where a rule sees coordinates they are W itself.
"""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike

from fltutils import check, models, span
from fltutils.rules import Params
from fltutils.train import Problem, State

Tensor = torch.Tensor


class SignalNoise(NamedTuple):
    """R training sets of x_i = [y_i mu, xi_i], in r coordinates, with R networks to be trained."""

    mu: Tensor  # (R, r)          signal
    xi: Tensor  # (R, n, r)       noise patches
    y: Tensor  # (R, n)          true labels, +1 or -1
    y_obs: Tensor  # (R, n)          observed labels: y, or -y where flipped
    W0: Tensor  # (R, 2, m, r)    initial weights w_{j,r}: j = +1 first, then j = -1
    sigma: Tensor  # (R,)            scale of the noise
    run: Tensor  # (R,)            identity of the run: its random streams
    seed: int  # of the whole batch
    projected: bool  # True: the noise has no component along mu
    embedded: bool = False  # True: r < d, the axes are not those of R^d
    weight: Tensor | None = None  # (R, n)     of each sample in the loss: of a mini-batch
    A0: Tensor | None = None  # (R, 2m, 1 + n)     <w_0, x_k>, and ...
    G: Tensor | None = None  # (R, 1 + n, 1 + n)  <x_k, x_l>, where parameters are coefficients
    drawn: Tensor | None = None  # (R, ...)   what a remedy draws anew at each step

    @property
    def X(self) -> Tensor:
        """(R, 1 + n, r): the vectors x_0 = mu, x_1 = xi_1, ..., x_n = xi_n."""
        return torch.cat([self.mu[:, None], self.xi], 1)


def block(n: int, m: int) -> int:
    """How many runs of these sizes train at once, so that data and coefficients stay in the cache.

    4 MB was best where it was measured, from n = 20 to 200.
    """
    return max(1, 2**19 // ((1 + n) ** 2 + 8 * m * (1 + n)))


def draw(
    *,
    n: int,
    d: ArrayLike,
    mu: ArrayLike,
    m: int,
    sigma0: ArrayLike,
    sigma: ArrayLike = 1.0,
    flip: ArrayLike = 0.0,
    projected: bool = True,
    runs: ArrayLike = 1,
    seed: int = 0,
) -> SignalNoise:
    """Draw training sets x_i = [y_i mu, xi_i] and initial weights, each run from its own stream.

    d, mu (the norm of the signal), sigma (the scale of the noise), sigma0 (of the weights) and
    flip (the rate of flipped labels) are numbers or arrays with one entry a run. `runs` is the
    number of runs, or their identities: a run's draw depends on `seed` and its identity only.
    """
    n, m, seed = check.count("n", n), check.count("m", m), check.count("seed", seed, 0)
    identity = np.arange(check.count("runs", runs)) if np.ndim(runs) == 0 else runs
    identity = check.whole("runs", identity, 0)
    check.shape("runs", identity, (None,))
    R, k = len(identity), 2 * m

    def a_run(name: str, values: np.ndarray) -> np.ndarray:
        if values.ndim:
            check.shape(name, values, (R,))
        return np.broadcast_to(values, R)

    dims = a_run("d", check.whole("d", d, 2))
    norm = a_run("mu", check.at_least("mu", mu, 0.0))
    scale = a_run("sigma", check.positive("sigma", sigma))
    init = a_run("sigma0", check.at_least("sigma0", sigma0, 0.0))
    p = a_run("flip", check.rate("flip", flip, below=0.5))
    if not isinstance(projected, bool):
        raise ValueError(f"projected = {projected!r}: projected must be True or False")
    settings = Counter(zip(identity, dims, norm, scale, init, p, strict=True))
    if twice := [int(row[0]) for row, count in settings.items() if count > 1]:
        raise ValueError(f"runs: {twice[0]} is given twice with the same numbers: one run, not two")
    sizes = {span.dimension(n, int(dim), k) for dim in dims}
    if len(sizes) > 1:
        raise ValueError(f"d = {np.unique(dims).tolist()}: runs with d < 1 + n + 2m need one d")
    r = sizes.pop()

    signal, xi = np.zeros((R, r)), np.empty((R, n, r))
    y, y_obs, W0 = np.empty((R, n)), np.empty((R, n)), np.empty((R, k, r))
    signal[:, 0] = norm
    for i, run in enumerate(identity):
        rng = span.stream(seed, int(run), "signal-noise: data and start")
        y[i] = rng.choice([-1.0, 1.0], n)
        y_obs[i] = np.where(rng.random(n) < p[i], -y[i], y[i])
        xi[i] = scale[i] * span.noise(rng, n, int(dims[i]), k, projected)
        W0[i] = init[i] * span.weights(rng, n, int(dims[i]), k)
    batch = given(
        signal, xi, y, W0.reshape(R, 2, m, r), y_obs=y_obs, projected=projected, seed=seed
    )
    return batch._replace(
        sigma=torch.tensor(scale), run=torch.tensor(identity), embedded=bool((dims > r).any())
    )


def _float64(a: ArrayLike) -> np.ndarray:
    return np.array(a.numpy() if isinstance(a, torch.Tensor) else a, dtype=np.float64)


def given(
    mu: ArrayLike,
    xi: ArrayLike,
    y: ArrayLike,
    W0: ArrayLike,
    *,
    y_obs: ArrayLike | None = None,
    sigma: float = 1.0,
    projected: bool = True,
    seed: int = 0,
) -> SignalNoise:
    """A batch from arrays in any coordinates.

    mu is (R, r), xi (R, n, r), y and y_obs (R, n), W0 (R, 2, m, r).
    """
    signal, patches, labels, start = (_float64(a) for a in (mu, xi, y, W0))
    check.shape("xi", patches, (None, None, None))
    R, n, r = patches.shape
    check.shape("mu", signal, (R, r))
    check.shape("y", labels, (R, n))
    check.shape("W0", start, (R, 2, None, r))
    observed = labels if y_obs is None else _float64(y_obs)
    check.shape("y_obs", observed, (R, n))
    for name, array in (("mu", signal), ("xi", patches), ("W0", start)):
        check.finite(name, array)
    for name, array in (("y", labels), ("y_obs", observed)):
        check.labels(name, array)
    return SignalNoise(
        mu=torch.from_numpy(signal),
        xi=torch.from_numpy(patches),
        y=torch.from_numpy(labels),
        y_obs=torch.from_numpy(observed),
        W0=torch.from_numpy(start),
        sigma=torch.full((R,), float(check.positive("sigma", sigma)), dtype=torch.float64),
        run=torch.arange(R),
        seed=check.count("seed", seed, 0),
        projected=projected,
    )


def in_space(data: SignalNoise, d: int) -> SignalNoise:
    """The same data and start in R^d, for rules that see coordinates.

    The r coordinates become r orthonormal directions of R^d that are drawn at random, all alike: no
    axis of R^d is special. Whoever stays in the span walks the same path in both.
    """
    r = data.mu.shape[1]
    check.count("d", d, r)
    rngs = [span.stream(data.seed, int(i), "signal-noise: directions in R^d") for i in data.run]
    Q = torch.from_numpy(np.stack([np.linalg.qr(g.standard_normal((d, r)))[0].T for g in rngs]))
    return data._replace(
        mu=(data.mu[:, None] @ Q)[:, 0], xi=data.xi @ Q, W0=data.W0 @ Q[:, None],
        embedded=False, A0=None, G=None,
    )  # fmt: skip


def problem(
    data: SignalNoise,
    *,
    q: int = 1,
    label_noise: float = 0.0,
    batch: int | None = None,
    in_span: bool = True,
) -> Problem:
    """The logistic loss of the network with ReLU^q on the observed labels.

    `label_noise` flips labels anew at each step, `batch` makes the steps mini-batch steps (by
    weights of zero: they cost what a full step does). The parameters are the coefficients theta, or
    the weights themselves if not in_span.
    """
    q, n = check.count("q", q), data.y.shape[1]
    check.shape("label_noise", check.rate("label_noise", label_noise, below=0.5), ())
    if batch is not None and check.count("batch", batch) > n:
        raise ValueError(f"batch = {batch}: batch must be a whole number from 1 to n = {n}")
    start = data.W0.clone()
    if in_span:
        data = with_products(data)
        start = torch.zeros_like(data.A0).view(*data.W0.shape[:3], 1 + n)  # type: ignore[arg-type]

    def outputs(params: Params, data: SignalNoise) -> tuple[Tensor, Tensor]:
        A = _products(params, data)
        return models.cnn_from_products(A, data.y, q), A

    def loss(f: Tensor, data: SignalNoise) -> Tensor:
        return models.logistic(f, data.y_obs, data.weight)

    def descent(f: Tensor, A: Tensor, data: SignalNoise) -> Params:
        C = models.pull(A, data.y, models.downhill(f, data.y_obs, data.weight), q)
        return (direction(C, data),)

    def draws(data: SignalNoise) -> Iterator[dict[str, Tensor]]:
        return noisy_labels(data, label_noise, batch)

    return Problem(
        (start,), data, outputs, loss, draws if label_noise or batch else None, descent, norm,
        sees_coordinates=not in_span and not data.embedded, draws_labels=True,
    )  # fmt: skip


def with_products(data: SignalNoise) -> SignalNoise:
    """The batch with A_0 and the Gram matrix G."""
    X, (R, _, m, r) = data.X, data.W0.shape
    Xt = X.transpose(1, 2)
    return data._replace(A0=data.W0.view(R, 2 * m, r) @ Xt, G=X @ Xt)


def products(s: State) -> Tensor:
    """A (R, 2, m, 1 + n) = <w, [mu, xi_1..xi_n]> of a state."""
    return _products(s.params, s.data)


def _products(params: Params, data: SignalNoise) -> Tensor:
    """A_0 + theta G, or W X'."""
    (leaf,) = params
    if data.A0 is None or data.G is None:
        return _times(leaf, data.X.transpose(1, 2))
    return torch.baddbmm(data.A0, leaf.view_as(data.A0), data.G).view_as(leaf)


def direction(C: Tensor, data: SignalNoise) -> Tensor:
    """sum_k C_k x_k in terms of the parameters: C for coefficients, C X for weights."""
    return C if data.G is not None else _times(C, data.X)


def norm(D: Params, data: SignalNoise) -> Tensor:
    """||D|| in R^d, (R,): ||C X||^2 = <C G, C> for coefficients C."""
    (C,) = D
    if data.G is None:
        return C.square().sum((1, 2, 3)).sqrt()
    return (C * (C.flatten(1, 2) @ data.G).view_as(C)).sum((1, 2, 3)).clamp(min=0).sqrt()


def weights(s: State) -> Tensor:
    """W (R, 2, m, r)."""
    (leaf,), data = s.params, s.data
    return leaf if data.G is None else data.W0 + _times(leaf, data.X)


def _times(A: Tensor, B: Tensor) -> Tensor:
    """A B for A (R, 2, m, a) and B (R, a, b), without a copy of B for each class."""
    return torch.bmm(A.flatten(1, 2), B).view(*A.shape[:3], B.shape[2])


def noisy_labels(
    data: SignalNoise, label_noise: float, batch: int | None
) -> Iterator[dict[str, Tensor]]:
    """Labels and weights of each step: fresh flips at rate label_noise, mini-batches of size batch.

    Every run draws from its own stream. A mini-batch is the next `batch` samples of a random order,
    a new order an epoch.
    """
    n = data.y.shape[1]
    rngs = [span.stream(data.seed, int(i), "signal-noise: noisy labels") for i in data.run]
    steps = n // batch if batch else 64  # an epoch, or what is drawn at once
    while True:
        if batch:
            order = torch.from_numpy(np.stack([rng.permutation(n) for rng in rngs]))
            turn = order.argsort() // batch  # the step at which a sample is seen
        if label_noise:
            keep = np.stack([rng.random((steps, n)) for rng in rngs], 1) >= label_noise
            y_obs = torch.where(torch.from_numpy(keep), data.y_obs, -data.y_obs)
        for t in range(steps):
            fields = {"y_obs": y_obs[t]} if label_noise else {}
            if batch:
                fields["weight"] = (turn == t).to(data.y.dtype) * (n / batch)
            yield fields
