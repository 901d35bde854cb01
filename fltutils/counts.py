"""Labels that count patterns, inputs with or without structure, and the network that learns them.

phi in {0, 1}^D says which patterns a sample has; the first k are relevant, and y = 1 where an odd
number of them is there. With probability 2 gamma a sample has all of them or none. The network

    g(x) = sum_i a_i sigma(<w_i, x> + b_i),    sigma(z) = min(1, max(0, z))

stands in the basis of the patterns.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch

from fltutils import check, span


class Case(NamedTuple):
    """The sizes of an experiment."""

    n: int = 4000  # samples of a step
    gamma: float = 0.25  # half the share of structured samples
    D: int = 100  # patterns
    k: int = 5  # relevant ones
    p0: float = 0.5  # how often one of the others is there
    m: int = 50  # pairs of neurons


class Net(NamedTuple):
    """A network; neurons in pairs, the second half of each array mirrors the first."""

    w: np.ndarray  # (2m, D)
    b: np.ndarray  # (2m,)
    a: np.ndarray  # (2m,)


def patterns(rng: span.Rng, n: int, c: Case) -> np.ndarray:
    """phi, (n, D), of zeros and ones."""
    phi = (rng.random((n, c.D)) < c.p0).astype(np.float64)
    structured, all_of_them = rng.random((2, n, 1))
    alone = rng.random((n, c.k)) < 0.5
    phi[:, : c.k] = np.where(structured < 2 * c.gamma, all_of_them < 0.5, alone)
    return phi


def label(phi: np.ndarray, k: int) -> np.ndarray:
    """y, +1 where the number of relevant patterns is odd, -1 where it is even."""
    return 2 * (phi[:, :k].sum(1) % 2) - 1


def variance(c: Case) -> float:
    """The sum of the variances of all entries of phi."""
    return c.k / 4 + (c.D - c.k) * c.p0 * (1 - c.p0)


def normalise(phi: np.ndarray, c: Case) -> np.ndarray:
    """x of mean zero and mean square length one."""
    mean = np.where(np.arange(c.D) < c.k, 0.5, c.p0)
    return (phi - mean) / variance(c) ** 0.5


@lru_cache(maxsize=16)
def sample(
    run: int, use: int, c: Case, n: int | None = None, balanced: bool = True, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """x and y of n samples, each label as often as the other; every use has its own."""
    n = check.count("n", n or c.n)
    sizes = c.D, c.k, n, round(1e6 * c.gamma), round(1e6 * c.p0)
    rng = span.stream(seed, run, "counts: samples", use, *sizes)
    if not balanced:
        phi = patterns(rng, n, c)
        return normalise(phi, c), label(phi, c.k)
    phi = patterns(rng, n + 20 * int(n**0.5) + 100, c)
    y = label(phi, c.k)
    kept = [np.flatnonzero(y == sign)[: n // 2] for sign in (1, -1)]
    if min(map(len, kept)) < n // 2:
        raise ValueError(f"{c}: labels are too uneven for batches of both; ask balanced=False")
    order = rng.permutation(np.concatenate(kept))
    return normalise(phi[order], c), y[order]


@lru_cache(maxsize=2)
def all_inputs(c: Case) -> tuple[np.ndarray, np.ndarray]:
    """Every x, (2^D, D), and y times its probability."""
    phi = ((np.arange(2**c.D)[:, None] >> np.arange(c.D)) & 1).astype(np.float64)
    count = phi[:, : c.k].sum(1)
    alike = (count == 0) | (count == c.k)
    others = np.where(phi[:, c.k :], c.p0, 1 - c.p0).prod(1)
    weight = (1 - 2 * c.gamma) / 2**c.k + c.gamma * alike
    return normalise(phi, c), label(phi, c.k) * weight * others


def begin(run: int, c: Case, seed: int = 0) -> Net:
    """w ~ N(0, 1/k^2), b ~ N(0, 1/k^4), a ~ N(0, variance^2 / (gamma k^2)^2), then their mirrors.

    Without structure a is drawn as for gamma = 1/4.
    """
    rng = span.stream(seed, run, "counts: start", c.D, c.k, c.m)
    w = rng.standard_normal((c.m, c.D)) / c.k
    b = rng.standard_normal(c.m) / c.k**2
    a = rng.standard_normal(c.m) * variance(c) / ((c.gamma or 0.25) * c.k**2)
    return Net(np.concatenate([w, w]), np.concatenate([b, b]), np.concatenate([a, -a]))


def act(z: np.ndarray) -> np.ndarray:
    """sigma, the ReLU that saturates."""
    return np.clip(z, 0, 1)


def answers(net: Net, x: np.ndarray) -> np.ndarray:
    """What the neurons say, (n, 2m)."""
    return act(x @ net.w.T + net.b)


def normal_cdf(z: np.ndarray | float) -> np.ndarray:
    """Phi."""
    return np.asarray(torch.special.ndtr(torch.as_tensor(z, dtype=torch.float64)).numpy())


def smooth(z: np.ndarray, xi: float) -> np.ndarray:
    """E sigma(z + xi N(0, 1))."""
    if xi == 0:
        return act(z)
    low, high = (
        u * normal_cdf(u / xi) + xi * np.exp(-((u / xi) ** 2) / 2) / (2 * np.pi) ** 0.5
        for u in (z, z - 1)
    )
    return low - high


def slope(z: np.ndarray, xi: float) -> np.ndarray:
    """The derivative of `smooth`: the gate of a neuron."""
    if xi == 0:
        return ((z > 0) & (z < 1)).astype(np.float64)
    return normal_cdf(z / xi) - normal_cdf((z - 1) / xi)


def cosine(w: np.ndarray, k: int) -> np.ndarray:
    """cos of the angle of each neuron with the sum of the relevant patterns, (2m,)."""
    return w[:, :k].sum(1) / k**0.5 / np.linalg.norm(w, axis=1)


def tangent(w: np.ndarray, k: int) -> np.ndarray:
    """tan of the same angle, exact where it is tiny; negative beyond a right angle."""
    along = w[:, :k].mean(1)
    across = w.copy()
    across[:, :k] -= along[:, None]
    return np.linalg.norm(across, axis=1) / (along * k**0.5)


def altered(nets: list[Net], state: str) -> Net:
    """A network before, after one step or after two, or the last with something taken away."""
    last, size = nets[2], np.linalg.norm(nets[2].w, axis=1, keepdims=True)
    short = np.median(np.linalg.norm(nets[1].w, axis=1))
    states = {
        "before": nets[0],
        "one step": nets[1],
        "one step, stretched": nets[1]._replace(w=nets[1].w * np.median(size) / short),
        "two steps": last,
        "no biases": last._replace(b=0 * last.b),
        "one length": last._replace(w=last.w / size * np.median(size)),
    }
    return states[check.one_of("state", state, tuple(states))]


def random_features(
    rng: span.Rng, width: int, c: Case, size: float
) -> Callable[[np.ndarray], np.ndarray]:
    """Neurons drawn as in `begin`, as a function of x; their weights and biases times a size."""
    W, b = rng.standard_normal((width, c.D)) / c.k, rng.standard_normal(width) / c.k**2
    return lambda x: act(size * (x @ W.T + b))


def tangent_features(net: Net, x: np.ndarray) -> np.ndarray:
    """Derivatives of g in a, b and w, (n, m (D + 2)); mirror images add nothing new.

    A bias counts as one pattern does.
    """
    m = len(net.b) // 2
    z = x @ net.w[:m].T + net.b[:m]
    gate = slope(z, 0) * net.a[:m] / np.abs(net.a).mean()
    by_w = (gate[:, :, None] * x[:, None]).reshape(len(x), -1)
    return np.concatenate([act(z), gate / x.shape[1] ** 0.5, by_w], 1)


def chart(w: np.ndarray, k: int) -> np.ndarray:
    """Places in the plane of the neurons, of the sum of the relevant patterns and of minus it.

    (2m + 2, 2): classical scaling of their cosines.
    """
    star = (np.arange(w.shape[1]) < k) / k**0.5
    points = np.vstack([w / np.linalg.norm(w, axis=1, keepdims=True), star, -star])
    values, vectors = np.linalg.eigh(points @ points.T)
    places = vectors[:, :-3:-1] * np.maximum(values[:-3:-1], 0) ** 0.5
    return np.asarray(places * np.where(places[-2] < 0, -1, 1))


def zeros_and_ones(rng: span.Rng) -> tuple[np.ndarray, np.ndarray]:
    """The digits 0 and 1 of scikit-learn in a random order, (360, 64), with labels -1 and 1.

    Centred and scaled as their first 240.
    """
    from sklearn.datasets import load_digits  # type: ignore[import-untyped]

    images, truth = load_digits(return_X_y=True)
    order = rng.permutation(np.flatnonzero(truth < 2))
    x, y = images[order] - images[order][:240].mean(0), 2.0 * truth[order] - 1
    return x / x[:240].var(0).sum() ** 0.5, y
