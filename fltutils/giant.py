"""Giant steps: a two-layer network, Gaussian data, large-batch gradient steps.

The network is f(x) = (1/p) sum_i a_i act(<w_i, x> + b_i), the data x ~ N(0, I_d) with labels
y = f*(<w*_1, x>, ..., <w*_r, x>) for orthonormal w*_k, the loss 1/2 (y - f)^2.

Training sees x through <w_i, x> and <w*_k, x> only. So weights are kept in orthonormal
coordinates: the first r along the w*_k, then as many as the weights need. A fresh sample is
standard Gaussian there. The gradient leaves these coordinates along new directions, the data's
own; given the rest it is Gaussian there, and its Gram matrix is known. Nothing has d entries
unless p is as large as d.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fltutils import check, span

Function = Callable[..., np.ndarray]
Progress = Callable[[int, int], None]
Key = tuple[Any, ...]  # (seed, run, use, *steps): the names of a step's random streams


class Activation(NamedTuple):
    """sigma and its derivative."""

    value: Function
    slope: Function


RELU = Activation(lambda z: np.maximum(z, 0.0), lambda z: (z > 0).astype(np.float64))
CUBIC = Activation(  # H_1 + H_2 / 2 + H_3 / 6: coefficients 1, 1, 1
    lambda z: z + (z * z - 1) / 2 + (z * z - 3) * z / 6, lambda z: 1 + z + (z * z - 1) / 2
)


class Net(NamedTuple):
    """A two-layer network in coordinates whose first r axes are w*_1, ..., w*_r."""

    W: np.ndarray  # (p, c)  weights; in the d - c coordinates left out all are zero
    a: np.ndarray  # (p,)    second layer
    b: np.ndarray  # (p,)    biases
    d: int  # dimension of the inputs
    r: int  # directions of the target


def start(
    p: int, d: int, r: int, rng: span.Rng, *, biases: ArrayLike = 0.0, whole: bool = False
) -> Net:
    """Rows uniform on the sphere, a = +-1, symmetrised: w_{p+1-i} = w_i, a_{p+1-i} = -a_i.

    So f = 0 at the start. Half of the rows are drawn, in r + p/2 coordinates (Bartlett), or in
    all d if `whole` or if d is no larger. `biases` are dealt out in turn to the drawn rows.
    """
    p, d, r = check.count("p", p, 2), check.count("d", d), check.count("r", r)
    if p % 2:
        raise ValueError(f"p = {p}: p must be even, so that neurons pair up")
    if r > d:
        raise ValueError(f"r = {r}: r must be at most d = {d}")
    half = p // 2
    shared = check.finite("biases", biases).ravel()
    if not 1 <= len(shared) <= half:
        raise ValueError(f"biases: {len(shared)} of them; p / 2 = {half} neurons take 1 to {half}")
    V = rng.standard_normal((half, r))
    rest = rng.standard_normal((half, d - r)) if whole else gaussian(rng, half, d - r)
    W = np.hstack([V, rest])
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    a = rng.choice([-1.0, 1.0], half)
    b = np.resize(shared, half)
    return Net(np.vstack([W, W[::-1]]), np.append(a, -a[::-1]), np.append(b, b[::-1]), d, r)


def gaussian(rng: span.Rng, rows: int, D: int) -> np.ndarray:
    """Standard Gaussian rows of R^D up to rotation: (rows, min(rows, D))."""
    return span.bartlett(rng, rows, D) if rows <= D else rng.standard_normal((rows, D))


def _symmetric(net: Net) -> bool:
    """w_{p+1-i} = w_i, b_{p+1-i} = b_i, a_{p+1-i} = -a_i, so that f = 0: true of a start only."""
    pairs = (net.W, net.W[::-1]), (net.b, net.b[::-1]), (net.a, -net.a[::-1])
    return len(net.a) % 2 == 0 and all(np.array_equal(x, y) for x, y in pairs)


def _activation(act: Activation) -> Activation:
    if not isinstance(act, Activation):
        raise ValueError(f"act = {act!r}: act must be an Activation(value, slope), both functions")
    return act


def outputs(net: Net, act: Activation, X: np.ndarray) -> np.ndarray:
    """f(x) for rows x of X."""
    return _activation(act).value(X @ net.W.T + net.b) @ net.a / len(net.a)


def batches(net: Net, n: int, rng: span.Rng, chunk: int) -> Iterator[np.ndarray]:
    """n fresh samples in the coordinates of the network, `chunk` at a time."""
    n, chunk = check.count("n", n), check.count("chunk", chunk)
    for first in range(0, n, chunk):
        yield rng.standard_normal((min(chunk, n - first), net.W.shape[1]))


def labels(f_star: Function, X: np.ndarray, r: int) -> np.ndarray:
    """y = f*(x_1, ..., x_r)."""
    y = check.finite("f_star(x)", f_star(*X[:, :r].T))
    if y.ndim:
        check.shape("f_star(x)", y, (len(X),))
    return np.broadcast_to(y, (len(X),))


def _stream(key: Key, what: str) -> span.Rng:
    """The generator of one of the draws of a step."""
    match key:
        case (seed, run, str(use), *steps):
            return span.stream(seed, run, f"{use}: {what}", *steps)
    raise ValueError(f"key = {key!r}: key must be (seed, run, 'name of the use', *steps)")


def batch(net: Net, n: int, key: Key) -> np.ndarray:
    """The samples on which `descent` with this key works, (n, c), all at once."""
    return _stream(key, "batch").standard_normal((check.count("n", n), net.W.shape[1]))


def descent(
    net: Net,
    act: Activation,
    f_star: Function,
    n: int,
    key: Key,
    *,
    remove: int = -1,
    chunk: int = 2048,
    progress: Progress | None = None,
) -> np.ndarray:
    """Minus the gradient of (1/2n) sum_mu (y_mu - f(x_mu))^2 in W, (p, c + new coordinates).

    Row i is (1/n) sum_mu (y_mu - f(x_mu)) (a_i/p) act'(<w_i, x_mu> + b_i) x_mu. The batch is drawn
    chunk by chunk from streams that `key` names; no array has n rows. remove = 0 or 1 takes the
    estimated Hermite degrees 0, or 0 and 1, off the labels; degree 1 needs c = d, all coordinates.
    `progress` is told the samples done and to do.
    A symmetric network takes half of the neurons: their mirrors' rows are minus theirs.
    """
    act = _activation(act)
    p, c = net.W.shape
    mirrored = _symmetric(net)
    W, b, a = (x[: p // 2] if mirrored else x for x in (net.W, net.b, net.a))
    if remove not in (-1, 0, 1):
        raise ValueError(f"remove = {remove}: remove must be -1 (nothing), 0 or 1")
    if remove == 1 and c < net.d:
        raise ValueError(f"remove = 1: the network must hold all d = {net.d} coordinates, not {c}")

    def labelled() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The batch, the same in every pass."""
        for X in batches(net, n, _stream(key, "batch"), chunk):
            yield X, labels(f_star, X, net.r)

    mean, linear = 0.0, np.zeros(c)
    if remove >= 0:
        for X, y in labelled():
            mean += y.sum() / n
            if remove:
                linear += y @ X / n
    outside = net.d - c
    D, K, done = np.zeros(W.shape), np.zeros((len(a), len(a) if outside else 0)), 0
    for X, y in labelled():
        y = y - mean - X @ linear
        Z = X @ W.T + b
        g = act.slope(Z)
        g *= (y if mirrored else y - act.value(Z) @ a / p)[:, None]
        g *= a / p
        D += g.T @ X
        if outside:
            K += g.T @ g
        done += len(X)
        if progress is not None:
            progress(done, n)
    D /= n
    if outside:
        L = _root(K)
        D = np.hstack([D, L @ gaussian(_stream(key, "outside"), L.shape[1], outside) / n])
    return np.vstack([D, -D[::-1]]) if mirrored else D


def _root(K: np.ndarray) -> np.ndarray:
    """L with L L' = K, positive semi-definite: Cholesky without the columns of zero pivots."""
    L, columns = np.zeros_like(K), 0
    for j in range(len(K)):
        column = K[:, j] - L[:, :columns] @ L[j, :columns]
        if column[j] > 1e-10 * K[j, j]:
            L[:, columns] = column / np.sqrt(column[j])
            columns += 1
    return L[:, :columns]


def move(net: Net, D: np.ndarray, eta: float) -> Net:
    """W + eta D."""
    return _moved(net, check.number("eta", eta) * D)


def _moved(net: Net, W: np.ndarray) -> Net:
    """W, which is changed in place, plus the old weights.

    Once there are more than r + p coordinates, a rotation that leaves the first r alone saves some.
    """
    p, c = net.W.shape
    W[:, :c] += net.W
    if W.shape[1] > max(c, net.r + p):
        R = np.linalg.qr(W[:, net.r :].T, mode="r")
        sign = np.where(np.diag(R) < 0, -1.0, 1.0)
        W = np.hstack([W[:, : net.r], (sign[:, None] * R).T])
    return net._replace(W=W)


def step(
    net: Net,
    act: Activation,
    f_star: Function,
    n: int,
    eta: float,
    key: Key,
    **options: Any,
) -> Net:
    """w_i <- w_i - eta grad_i on n fresh samples: one giant step. Options are those of descent."""
    rate = check.number("eta", eta)
    D = descent(net, act, f_star, n, key, **options)
    D *= rate
    return _moved(net, D)


def overlaps(net: Net) -> np.ndarray:
    """<w_i, w*_k> / ||w_i||, (p, r)."""
    return net.W[:, : net.r] / np.linalg.norm(net.W, axis=1, keepdims=True)


def share(net: Net, U: np.ndarray | None = None) -> np.ndarray:
    """||P_U w_i|| / ||w_i||, (p,), for orthonormal columns U in R^r; all of V* by default."""
    m = overlaps(net)
    return np.linalg.norm(m if U is None else m @ check.orthonormal("U", U, net.r), axis=1)


def normal_equations(
    net: Net, act: Activation, f_star: Function, n: int, rng: span.Rng, *, chunk: int = 2048
) -> tuple[np.ndarray, np.ndarray]:
    """(1/n) Phi' Phi and (1/n) Phi' y for the features phi(x) = act(W x + b) / p, streamed."""
    p = len(net.a)
    A, v, act = np.zeros((p, p)), np.zeros(p), _activation(act)
    for X in batches(net, n, rng, chunk):
        Phi = act.value(X @ net.W.T + net.b) / p
        A += Phi.T @ Phi
        v += Phi.T @ labels(f_star, X, net.r)
    return A / n, v / n


def readout(
    net: Net,
    act: Activation,
    f_star: Function,
    n: int,
    lam: float,
    rng: span.Rng,
    *,
    chunk: int = 2048,
) -> Net:
    """The second layer that minimises (1/2n) sum (y - f)^2 + (lam/p) ||a||^2 on n fresh samples."""
    A, v = normal_equations(net, act, f_star, n, rng, chunk=chunk)
    p = len(v)
    A[np.diag_indices(p)] += 2 * float(check.positive("lam", check.number("lam", lam))) / p
    return net._replace(a=np.linalg.solve(A, v))


def on_fresh(
    net: Net, act: Activation, f_star: Function, n: int, rng: span.Rng, *, chunk: int = 2048
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x_1..x_r (n, r), y (n,) and f(x) (n,) on fresh samples."""
    parts = [
        (X[:, : net.r], labels(f_star, X, net.r), outputs(net, act, X))
        for X in batches(net, n, rng, chunk)
    ]
    U, y, f = (np.concatenate(x) for x in zip(*parts, strict=True))
    return U, y, f
