"""The data models."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike

from fltutils import check, span


class SignalNoise(NamedTuple):
    """R training sets of x_i = [y_i mu, xi_i], in r coordinates, with R networks to be trained."""

    mu: torch.Tensor  # (R, r)          signal
    xi: torch.Tensor  # (R, n, r)       noise patches
    y: torch.Tensor  # (R, n)          true labels, +1 or -1
    y_obs: torch.Tensor  # (R, n)          observed labels: y, or -y where flipped
    W0: torch.Tensor  # (R, 2, m, r)    initial weights w_{j,r}: j = +1 first, then j = -1
    sigma: torch.Tensor  # (R,)            scale of the noise
    run: torch.Tensor  # (R,)            identity of the run: its random streams
    seed: int  # of the whole batch
    projected: bool  # True: the noise has no component along mu
    embedded: bool = False  # True: r < d, the axes are not those of R^d

    @property
    def X(self) -> torch.Tensor:
        """(R, 1 + n, r): the vectors x_0 = mu, x_1 = xi_1, ..., x_n = xi_n."""
        return torch.cat([self.mu[:, None], self.xi], 1)


def signal_noise(
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
    sizes = {span.dimension(n, int(dim), k) for dim in dims}
    if len(sizes) > 1:
        raise ValueError(f"d = {np.unique(dims).tolist()}: runs with d < 1 + n + 2m need one d")
    r = sizes.pop()

    signal, xi = np.zeros((R, r)), np.empty((R, n, r))
    y, y_obs, W0 = np.empty((R, n)), np.empty((R, n)), np.empty((R, k, r))
    signal[:, 0] = norm
    for i, run in enumerate(identity):
        rng = span.stream(seed, int(run), "data")
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


def select(data: SignalNoise, index: torch.Tensor) -> SignalNoise:
    """The runs of a batch that index picks."""
    tensors: dict[str, Any] = {k: v[index] for k, v in data._asdict().items() if torch.is_tensor(v)}
    return data._replace(**tensors)


def shuffled(data: SignalNoise) -> SignalNoise:
    """The same batch with each run's observed labels in a random order: nothing left to learn."""
    rngs = [span.stream(data.seed, int(i), "shuffled labels") for i in data.run]
    order = torch.stack([torch.from_numpy(rng.permutation(data.y.shape[1])) for rng in rngs])
    return data._replace(y_obs=data.y_obs.gather(1, order))
