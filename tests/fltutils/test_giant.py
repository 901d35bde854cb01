"""Giant steps: constants against autograd, the law of the coordinates, memory, ridge."""

import tracemalloc

import numpy as np
import pytest
import torch

from fltutils import giant, hermite


def target(a, b):
    return a + a * a - 1 + 0.5 * a * b


def everywhere(p=16, d=30, r=2, seed=0):
    """A network in all d coordinates, off its symmetric start, with biases."""
    rng = np.random.default_rng(seed)
    net = giant.start(p, d, r, rng, whole=True)
    return net._replace(W=net.W + 0.1 * rng.standard_normal(net.W.shape), b=rng.standard_normal(p))


def batch(net, n, stream, chunk):
    X = np.concatenate(list(giant.batches(net, n, np.random.default_rng(stream), chunk)))
    return X, giant.labels(target, X, net.r)


def autograd(net, act, X, y):
    W = torch.tensor(net.W, requires_grad=True)
    f = act(torch.tensor(X) @ W.T + torch.tensor(net.b)) @ torch.tensor(net.a) / len(net.a)
    (0.5 * (torch.tensor(y) - f) ** 2).mean().backward()
    return W.grad.numpy()


ACTS = [
    (giant.RELU, torch.relu),
    (giant.CUBIC, lambda z: z + (z**2 - 1) / 2 + (z**3 - 3 * z) / 6),
]


@pytest.mark.parametrize(("act", "same"), ACTS)
def test_descent_is_minus_the_gradient(act, same):
    net = everywhere()
    X, y = batch(net, 700, (1, 2, 3), 64)
    D = giant.descent(net, act, target, 700, (1, 2, 3), chunk=64)
    assert np.allclose(D, -autograd(net, same, X, y), atol=1e-13)
    stepped = giant.step(net, act, target, 700, 3.0, (1, 2, 3), chunk=64)
    assert np.allclose(stepped.W, net.W + 3.0 * D, atol=1e-13)
    assert np.allclose(giant.move(net, D, 3.0).W, stepped.W, atol=1e-13)


def test_chunks_do_not_matter_beyond_the_draw():
    """The same samples in other chunks: a generator fills rows in order."""
    net = everywhere()
    a, b = (giant.descent(net, giant.RELU, target, 500, (0, 0, 1), chunk=c) for c in (500, 37))
    assert np.allclose(a, b, atol=1e-13)


@pytest.mark.parametrize("degree", [0, 1])
def test_removed_degrees_are_the_batch_estimates(degree):
    net = everywhere()
    X, y = batch(net, 400, (4, 5, 6), 100)
    left = y - y.mean() - (X @ (y @ X / 400) if degree else 0)
    D = giant.descent(net, giant.RELU, target, 400, (4, 5, 6), chunk=100, remove=degree)
    assert np.allclose(D, -autograd(net, torch.relu, X, left), atol=1e-13)


def test_start_is_symmetric_and_silent():
    net = giant.start(12, 50, 3, np.random.default_rng(0), biases=(0.0, 1.0))
    assert np.allclose(np.linalg.norm(net.W, axis=1), 1)
    assert np.array_equal(net.W, net.W[::-1])
    assert np.array_equal(net.a, -net.a[::-1])
    assert np.array_equal(net.b, net.b[::-1])
    X = np.random.default_rng(1).standard_normal((9, net.W.shape[1]))
    assert np.abs(giant.outputs(net, giant.RELU, X)).max() < 1e-14
    assert net.W.shape == (12, 3 + 6)  # never d


def statistics(p, d, whole, runs, T=2):
    """Learned share, length, mean product of neurons and risk after T steps, one row a run."""
    rows = []
    for run in range(runs):
        net = giant.start(p, d, 2, np.random.default_rng([7, run, whole]), whole=whole)
        for t in range(T):
            net = giant.step(net, giant.RELU, target, 2 * d, 2.0 * p, (7, run, 10 + 2 * t + whole))
        gram = net.W @ net.W.T
        _, y, f = giant.on_fresh(net, giant.RELU, target, 2000, np.random.default_rng(run))
        rows.append(
            [giant.share(net).mean(), np.trace(gram) / p, gram.mean(), np.mean((y - f) ** 2)]
        )
    return np.array(rows)


def test_few_coordinates_have_the_law_of_all():
    """Means over many runs agree within five standard errors, spreads within a quarter."""
    few, all_ = (statistics(8, 60, whole, 400) for whole in (False, True))
    error = np.sqrt((few.var(0) + all_.var(0)) / 400)
    assert (np.abs(few.mean(0) - all_.mean(0)) < 5 * error).all()
    few, all_ = (np.percentile(x, 80, 0) - np.percentile(x, 20, 0) for x in (few, all_))
    assert np.allclose(few, all_, rtol=0.3)


def test_new_coordinates_carry_the_right_gram_matrix():
    """Given the part inside, the part outside has Gram matrix (d - c) K on average."""
    net = giant.start(6, 400, 2, np.random.default_rng(0))
    c, n = net.W.shape[1], 300
    X, y = batch(net, n, (3, 0, 1), 2048)
    g = y[:, None] * giant.RELU.slope(X @ net.W.T) * net.a / 6
    D = giant.descent(net, giant.RELU, target, n, (3, 0, 1))
    outside = D[:, c:] @ D[:, c:].T
    expected = (400 - c) * g.T @ g / n**2
    assert np.allclose(outside, expected, atol=0.35 * np.abs(expected).max())
    assert np.allclose(D[:, :c], g.T @ X / n, atol=1e-13)


def test_coordinates_stay_few():
    net = giant.start(10, 10**6, 2, np.random.default_rng(0))
    for t in range(4):
        net = giant.step(net, giant.RELU, target, 50, 5.0, (0, 0, t))
        assert net.W.shape[1] <= 2 + 10
    assert np.isfinite(net.W).all()


def test_rotation_keeps_lengths_products_and_overlaps():
    net = giant.start(6, 500, 2, np.random.default_rng(0))
    net = giant.step(net, giant.RELU, target, 800, 12.0, (0, 0, 1))
    D = giant.descent(net, giant.RELU, target, 800, (0, 0, 2))
    full = 3.0 * D
    full[:, : net.W.shape[1]] += net.W
    moved = giant.move(net, D, 3.0)
    assert moved.W.shape[1] < full.shape[1]
    assert np.allclose(moved.W @ moved.W.T, full @ full.T)
    assert np.allclose(moved.W[:, :2], full[:, :2])


def test_first_step_follows_the_overlap_formula():
    """Leap one: <w1 - w0, w*> = eta a c_1 mu_1 / p, up to sqrt(1/n)."""
    net = giant.start(8, 1000, 1, np.random.default_rng(0))
    after = giant.step(net, giant.CUBIC, lambda x: 0.7 * x, 200_000, 8.0, (0, 0, 1))
    c = hermite.coefficients(giant.CUBIC.value, 1)[1]
    assert np.allclose(after.W[:, 0] - net.W[:, 0], net.a * c * 0.7, atol=0.03)


def test_memory_does_not_grow_with_the_batch():
    net = giant.start(64, 256, 2, np.random.default_rng(0), whole=True)

    def peak(n):
        tracemalloc.start()
        giant.step(net, giant.RELU, target, n, 1.0, (0, 0, 1), chunk=512)
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    assert peak(16 * 2048) < 1.05 * peak(2048)


def test_progress_is_told():
    told = []
    net = giant.start(4, 50, 2, np.random.default_rng(0))
    giant.descent(
        net, giant.RELU, target, 1000, (0, 0, 1), chunk=300,
        progress=lambda done, n: told.append((done, n)),
    )  # fmt: skip
    assert told == [(300, 1000), (600, 1000), (900, 1000), (1000, 1000)]


def test_shuffled_labels_teach_nothing():
    net = giant.start(16, 400, 2, np.random.default_rng(0))
    learned, fooled = (
        giant.share(giant.step(net, giant.RELU, target, 4000, 32.0, (0, 0, 1), shuffle=s)).mean()
        for s in (False, True)
    )
    assert learned > 0.5 > 0.2 > fooled


def test_readout_is_ridge():
    net = everywhere()
    n, lam, p = 300, 0.01, 16
    fitted = giant.readout(net, giant.RELU, target, n, lam, np.random.default_rng(5), chunk=70)
    X = np.concatenate(list(giant.batches(net, n, np.random.default_rng(5), 70)))
    y = giant.labels(target, X, 2)
    a = torch.tensor(fitted.a, requires_grad=True)
    Phi = torch.tensor(giant.RELU.value(X @ net.W.T + net.b)) / p
    loss = (0.5 * (torch.tensor(y) - Phi @ a) ** 2).mean() + lam / p * a.square().sum()
    loss.backward()
    assert a.grad.abs().max() < 1e-10


def test_share_of_a_subspace():
    net = everywhere()
    m = giant.overlaps(net)
    assert np.allclose(giant.share(net), np.linalg.norm(m, axis=1))
    assert np.allclose(giant.share(net, np.array([[0.6], [0.8]])), np.abs(m @ [0.6, 0.8]))


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: giant.start(7, 50, 2, np.random.default_rng(0)), "p = 7"),
        (lambda: giant.start(4, 2, 3, np.random.default_rng(0)), "r = 3"),
        (lambda: giant.descent(everywhere(), giant.RELU, target, 9, (0,), remove=2), "remove = 2"),
        (lambda: giant.descent(
            giant.start(4, 50, 2, np.random.default_rng(0)), giant.RELU, target, 9, (0,), remove=1
        ), "remove = 1"),
    ],
)  # fmt: skip
def test_errors_name_the_parameter(call, word):
    with pytest.raises(ValueError, match=word):
        call()
