"""Ridge regression that is tuned, and descent on the hinge loss."""

import numpy as np
import pytest

from fltutils import readout


def problem(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(seed).standard_normal((n, 4))
    return x, np.sign(x @ [1.0, -2, 0, 0.5] + 0.1)


def test_ridge_solves_its_normal_equations() -> None:
    x, y = problem(60)
    x = 3 * x + 1
    lambdas = np.array([0.1, 2.0])
    beta, offset = readout.ridge(x, y, lambdas)
    mean, scale = x.mean(0), x.std(0).mean()
    Z = (x - mean) / scale
    for lam, b, o in zip(lambdas, beta.T, offset, strict=True):
        right = np.linalg.solve(Z.T @ Z / 60 + lam * np.eye(4), Z.T @ (y - y.mean()) / 60)
        assert b * scale == pytest.approx(right)
        assert o == pytest.approx(y.mean() - mean @ b)


def test_a_tuned_readout_is_fitted_on_one_set_and_judged_on_another() -> None:
    fit, choose, test = (problem(400, seed) for seed in range(3))
    found = readout.tuned(fit, choose, test, lambda x: x)
    assert found["accuracy"] > 0.95
    assert found["hinge"] < 0.3
    shuffled = fit[0], np.random.default_rng(9).permutation(fit[1])
    worse = readout.tuned(shuffled, choose, test, lambda x: x)
    assert worse["hinge"] > 0.7
    turned = readout.tuned(fit, choose, (test[0], -test[1]), lambda x: x)
    assert turned["accuracy"] == pytest.approx(1 - found["accuracy"])


def test_descent_is_momentum_on_the_hinge_loss() -> None:
    F, y = problem(50)
    seen = readout.descent(F, y, 0.3, 6, every=2)
    assert seen.shape == (4, 4)
    a = speed = np.zeros(4)
    for t in range(1, 7):
        pulls = [(s * (f @ a) < 1) * s * f for f, s in zip(F, y, strict=True)]
        speed = 0.9 * speed + np.mean(pulls, 0)
        a = a + 0.3 * speed
        if t % 2 == 0:
            assert seen[t // 2] == pytest.approx(a)
