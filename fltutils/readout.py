"""A linear readout of given features: ridge regression, tuned on samples of its own."""

from collections.abc import Callable

import numpy as np

Samples = tuple[np.ndarray, np.ndarray]
LAMBDAS = np.geomspace(1e-7, 100, 10)
SCALES = np.geomspace(0.1, 30, 30)


def ridge(F: np.ndarray, y: np.ndarray, lambdas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights and offsets, one column a lambda, of features that are centred and of one scale."""
    mean, scale = F.mean(0), F.std(0).mean() + 1e-300
    Z = (F - mean) / scale
    e, U = np.linalg.eigh(Z.T @ Z / len(y))
    along = (U.T @ (Z.T @ (y - y.mean()) / len(y)))[:, None]
    beta = U @ (along / (e.clip(0)[:, None] + lambdas)) / scale
    return beta, y.mean() - mean @ beta


def tuned(
    fit: Samples,
    choose: Samples,
    test: Samples,
    features: Callable[[np.ndarray], np.ndarray],
    lambdas: np.ndarray = LAMBDAS,
) -> dict[str, float]:
    """Hinge loss and accuracy on the last samples of a readout of features of x for labels +-1.

    It is fitted on the first; penalty and scale are those of least hinge loss on the second.
    """
    beta, offset = ridge(features(fit[0]), fit[1], lambdas)
    held, fresh = ((features(x) @ beta + offset) * y[:, None] for x, y in (choose, test))
    loss = np.array([np.maximum(1 - s * held, 0).mean(0) for s in SCALES])
    s, best = np.unravel_index(loss.argmin(), loss.shape)
    g = fresh[:, best]
    return {
        "hinge": float(np.maximum(1 - SCALES[s] * g, 0).mean()),
        "accuracy": float((g > 0).mean()),
    }


def descent(
    F: np.ndarray, y: np.ndarray, eta: float, steps: int, every: int, momentum: float = 0.9
) -> np.ndarray:
    """Weights along gradient descent from zero on the hinge loss of F a, one row every few."""
    a = speed = np.zeros(F.shape[1])
    seen = [a]
    for t in range(1, steps + 1):
        speed = momentum * speed + (y * (y * (F @ a) < 1)) @ F / len(y)
        a = a + eta * speed
        if t % every == 0:
            seen.append(a)
    return np.array(seen)
