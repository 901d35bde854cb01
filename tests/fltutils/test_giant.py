"""Giant steps: constants against autograd, the law of the coordinates, memory, ridge."""

import re
import tracemalloc

import numpy as np
import pytest
import torch

from fltutils import giant, hermite, span


def target(a, b):
    return a + a * a - 1 + 0.5 * a * b


def everywhere(p=16, d=30, r=2, seed=0):
    """A network in all d coordinates, off its symmetric start, with biases."""
    rng = np.random.default_rng(seed)
    net = giant.start(p, d, r, rng, whole=True)
    return net._replace(W=net.W + 0.1 * rng.standard_normal(net.W.shape), b=rng.standard_normal(p))


def batch(net, n, key):
    X = giant.batch(net, n, key)
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
    X, y = batch(net, 700, (1, 2, "a", 3))
    D = giant.descent(net, act, target, 700, (1, 2, "a", 3), chunk=64)
    assert np.allclose(D, -autograd(net, same, X, y), atol=1e-13)
    stepped = giant.step(net, act, target, 700, 3.0, (1, 2, "a", 3), chunk=64)
    assert np.allclose(stepped.W, net.W + 3.0 * D, atol=1e-13)
    assert np.allclose(giant.move(net, D, 3.0).W, stepped.W, atol=1e-13)


def spied(act):
    """The activation, and what it is asked: (value or slope, number of neurons)."""
    asked = []

    def noted(name):
        return lambda z: asked.append((name, z.shape[1])) or getattr(act, name)(z)

    return giant.Activation(noted("value"), noted("slope")), asked


def off(net, name, at):
    """The network with one number of W, a or b a little off."""
    array = getattr(net, name).copy()
    array[at] += 1e-9
    return net._replace(**{name: array})


@pytest.mark.parametrize(("act", "same"), ACTS)
@pytest.mark.parametrize("remove", [-1, 0, 1])
def test_a_symmetric_start_takes_half_of_its_neurons(act, same, remove):
    """f = 0, so no value is asked for; the gradient is that of autograd on the whole network."""
    net, key = giant.start(16, 30, 2, rng(), biases=(0.0, 1.0), whole=True), (1, 2, "a")
    spy, asked = spied(act)
    D = giant.descent(net, spy, target, 300, key, chunk=90, remove=remove)
    assert set(asked) == {("slope", 8)}
    X, y = batch(net, 300, key)
    if remove >= 0:
        y = y - y.mean() - (X @ (y @ X / 300) if remove else 0)
    assert np.allclose(D, -autograd(net, same, X, y), atol=1e-13)


ASYMMETRIC = {
    "a second step": lambda net: giant.step(net, giant.RELU, target, 200, 9.0, (0, 0, "a", 0)),
    "a weight": lambda net: off(net, "W", (3, 4)),
    "a bias": lambda net: off(net, "b", 5),
    "the second layer": lambda net: off(net, "a", 7),
    "equal signs": lambda net: net._replace(a=np.abs(net.a)),
    "an odd number": lambda net: net._replace(
        W=np.insert(net.W, 8, 0.1, 0), a=np.insert(net.a, 8, 0), b=np.insert(net.b, 8, 0)
    ),
    "another order": lambda net: net._replace(W=np.roll(net.W, 1, 0)),
}


@pytest.mark.parametrize("name", ASYMMETRIC)
def test_a_network_without_symmetry_takes_all_of_them(name):
    net = ASYMMETRIC[name](giant.start(16, 30, 2, rng(), biases=(0.0, 1.0), whole=True))
    spy, asked = spied(giant.CUBIC)
    D = giant.descent(net, spy, target, 300, (0, 0, "a", 1), chunk=90)
    assert set(asked) == {("slope", len(net.a)), ("value", len(net.a))}
    X, y = batch(net, 300, (0, 0, "a", 1))
    assert np.allclose(D, -autograd(net, ACTS[1][1], X, y), atol=1e-13)


def test_the_mirror_is_the_same_in_few_coordinates():
    """A weight off by nothing but rounding takes all neurons, and gives the same step."""
    net = giant.start(12, 200, 2, rng())
    near = net._replace(W=net.W * (1 + 1e-15 * np.arange(12)[:, None]))
    half, whole = (giant.descent(x, giant.RELU, target, 150, (0, 0, "a")) for x in (net, near))
    assert half.shape == whole.shape == (12, net.W.shape[1] + 6)
    assert np.allclose(half, whole, atol=1e-12)


def test_chunks_do_not_matter_beyond_the_draw():
    """The same samples in other chunks: a generator fills rows in order."""
    net = everywhere()
    a, b = (giant.descent(net, giant.RELU, target, 500, (0, 0, "a"), chunk=c) for c in (500, 37))
    assert np.allclose(a, b, atol=1e-13)


@pytest.mark.parametrize("degree", [0, 1])
def test_removed_degrees_are_the_batch_estimates(degree):
    net = everywhere()
    X, y = batch(net, 400, (4, 5, "a"))
    left = y - y.mean() - (X @ (y @ X / 400) if degree else 0)
    D = giant.descent(net, giant.RELU, target, 400, (4, 5, "a"), chunk=100, remove=degree)
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
            net = giant.step(net, giant.RELU, target, 2 * d, 2.0 * p, (7, run, "a", t, int(whole)))
        gram = net.W @ net.W.T
        _, y, f = giant.on_fresh(net, giant.RELU, target, 500, np.random.default_rng(run))
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
    X, y = batch(net, n, (3, 0, "a"))
    g = y[:, None] * giant.RELU.slope(X @ net.W.T) * net.a / 6
    D = giant.descent(net, giant.RELU, target, n, (3, 0, "a"))
    outside = D[:, c:] @ D[:, c:].T
    expected = (400 - c) * g.T @ g / n**2
    assert np.allclose(outside, expected, atol=0.35 * np.abs(expected).max())
    assert np.allclose(D[:, :c], g.T @ X / n, atol=1e-13)


def test_coordinates_stay_few():
    net = giant.start(10, 10**6, 2, np.random.default_rng(0))
    for t in range(4):
        net = giant.step(net, giant.RELU, target, 50, 5.0, (0, 0, "a", t))
        assert net.W.shape[1] <= 2 + 10
    assert np.isfinite(net.W).all()


def test_rotation_keeps_lengths_products_and_overlaps():
    net = giant.start(6, 500, 2, np.random.default_rng(0))
    net = giant.step(net, giant.RELU, target, 800, 12.0, (0, 0, "a", 1))
    D = giant.descent(net, giant.RELU, target, 800, (0, 0, "a", 2))
    full = 3.0 * D
    full[:, : net.W.shape[1]] += net.W
    moved = giant.move(net, D, 3.0)
    assert moved.W.shape[1] < full.shape[1]
    assert np.allclose(moved.W @ moved.W.T, full @ full.T)
    assert np.allclose(moved.W[:, :2], full[:, :2])


def test_first_step_follows_the_overlap_formula():
    """Leap one: <w1 - w0, w*> = eta a c_1 mu_1 / p, up to sqrt(1/n)."""
    net = giant.start(8, 1000, 1, np.random.default_rng(0))
    after = giant.step(net, giant.CUBIC, lambda x: 0.7 * x, 200_000, 8.0, (0, 0, "a"))
    c = hermite.coefficients(giant.CUBIC.value, 1)[1]
    assert np.allclose(after.W[:, 0] - net.W[:, 0], net.a * c * 0.7, atol=0.03)


def test_memory_does_not_grow_with_the_batch():
    net = giant.start(64, 256, 2, np.random.default_rng(0), whole=True)

    def peak(n):
        tracemalloc.start()
        giant.step(net, giant.RELU, target, n, 1.0, (0, 0, "a"), chunk=128)
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    assert peak(16 * 256) < 1.05 * peak(256)


def test_progress_is_told():
    told = []
    net = giant.start(4, 50, 2, np.random.default_rng(0))
    giant.descent(
        net, giant.RELU, target, 1000, (0, 0, "a"), chunk=300,
        progress=lambda done, n: told.append((done, n)),
    )  # fmt: skip
    assert told == [(300, 1000), (600, 1000), (900, 1000), (1000, 1000)]


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


def test_activations_are_their_hermite_expansions():
    """The cubic has coefficients 1, 1, 1 and no mean; ReLU is flat at its kink."""
    assert np.allclose(hermite.coefficients(giant.CUBIC.value, 4), [0, 1, 1, 1, 0], atol=1e-12)
    assert np.allclose(hermite.coefficients(giant.CUBIC.slope, 3), [1, 1, 1, 0], atol=1e-12)
    z = np.array([-2.0, 0.0, 3.0])
    assert giant.RELU.value(z).tolist() == [0, 0, 3]
    assert giant.RELU.slope(z).tolist() == [0, 0, 1]


def test_coordinates_are_turned_only_where_that_saves_some():
    net = giant.start(6, 500, 2, np.random.default_rng(0))
    D = giant.descent(net, giant.RELU, target, 800, (0, 0, "a", 1))
    assert D.shape == (6, 5 + 3)  # mirrored neurons: three new directions, 8 = r + p
    moved = giant.move(net, D, 2.0)
    assert np.array_equal(moved.W, 2.0 * D + np.pad(net.W, ((0, 0), (0, 3))))
    turned = giant.step(moved, giant.RELU, target, 800, 1.0, (0, 0, "a", 2)).W
    assert turned.shape == (6, 8)
    assert np.allclose(np.triu(turned[:, 2:], 1), 0)  # unique: lower triangular,
    assert (np.diag(turned[:, 2:]) > 0).all()  # with a positive diagonal


def learner(**changed):
    """A network in few coordinates, and what a step on it takes."""
    net = giant.start(4, 50, 2, np.random.default_rng(0))
    take = {"net": net, "act": giant.RELU, "f_star": target, "n": 9, "key": (0, 0, "a")}
    return take | changed


def rng():
    return np.random.default_rng(0)


def fresh(**changed):
    take = {k: v for k, v in learner(**changed).items() if k != "key"}
    return take | {"rng": rng()}


REFUSED = [
    (lambda: giant.start(7, 50, 2, rng()), "p = 7: p must be even"),
    (lambda: giant.start(1, 50, 2, rng()), "p = 1: p must be a whole number >= 2"),
    (lambda: giant.start(4, 2, 3, rng()), "r = 3: r must be at most d = 2"),
    (lambda: giant.start(4, 0, 1, rng()), "d = 0: d must be a whole number >= 1"),
    (lambda: giant.start(4, 9, 0, rng()), "r = 0: r must be a whole number >= 1"),
    (lambda: giant.start(4, 9, 2, rng(), biases=(1, 2, 3)), "biases: 3 of them; p / 2 = 2 neurons"),
    (lambda: giant.start(4, 9, 2, rng(), biases=()), "biases: 0 of them"),
    (lambda: giant.start(4, 9, 2, rng(), biases=np.nan), "biases = nan: biases must be finite"),
    (lambda: giant.descent(**learner(), remove=2), "remove = 2: remove must be -1"),
    (lambda: giant.descent(**learner(), remove=1), "remove = 1: the network must hold all d = 50"),
    (lambda: giant.descent(**learner(), chunk=0), "chunk = 0: chunk must be a whole number >= 1"),
    (lambda: giant.descent(**learner(n=0)), "n = 0: n must be a whole number >= 1"),
    (lambda: giant.descent(**learner(n=9.0)), "n = 9.0: n must be a whole number >= 1"),
    (lambda: giant.descent(**learner(act=np.tanh)), "act must be an Activation(value, slope)"),
    (lambda: giant.descent(**learner(f_star=lambda a, b: a * np.nan)), "f_star(x) = nan: f_star"),
    (lambda: giant.descent(**learner(f_star=lambda a, b: a[:3])), "f_star(x) has shape (3,)"),
    *(
        (lambda key=key: giant.descent(**learner(key=key)), f"key = {key!r}: key must be (seed,")
        for key in (5, (0, 0), (0, 0, 1), "seed")
    ),
    (lambda: giant.descent(**learner(key=(0, "a", "b"))), "run = 'a': run must be a whole number"),
    (lambda: giant.descent(**learner(key=(0, 0, "a", "b"))), "step = 'b': step must be a whole nu"),
    (lambda: giant.descent(**learner(key=(0, -1, "a"))), "run = -1: run must be a whole number"),
    (lambda: giant.step(**learner(), eta=np.nan), "eta = nan: eta must be finite"),
    (lambda: giant.step(**learner(), eta="fast"), "eta = 'fast': eta must be finite"),
    (lambda: giant.step(**learner(), eta=[1, 2]), "eta = [1, 2]: eta must be one number"),
    (lambda: giant.move(learner()["net"], np.zeros((4, 4)), np.inf), "eta = inf: eta must be fin"),
    (lambda: giant.batch(learner()["net"], 0, (0, 0, "a")), "n = 0: n must be a whole number"),
    (lambda: giant.outputs(learner()["net"], np.tanh, np.ones((1, 4))), "act must be an Activ"),
    (lambda: giant.on_fresh(**fresh(n=0)), "n = 0: n must be a whole number >= 1"),
    (lambda: giant.on_fresh(**fresh(), chunk=0), "chunk = 0: chunk must be a whole number >= 1"),
    (lambda: giant.readout(**fresh(n=0), lam=1.0), "n = 0: n must be a whole number >= 1"),
    (lambda: giant.readout(**fresh(n=-5), lam=1.0), "n = -5: n must be a whole number >= 1"),
    (lambda: giant.readout(**fresh(), lam=0.0), "lam = 0.0: lam must be finite and > 0"),
    (lambda: giant.readout(**fresh(), lam=[1, 2]), "lam = [1, 2]: lam must be one number"),
    (lambda: giant.readout(**fresh(act=np.tanh), lam=1.0), "act must be an Activation"),
    (lambda: giant.share(learner()["net"], np.ones((2, 1))), "U: columns must be orthonormal"),
    (lambda: giant.share(learner()["net"], np.eye(3)[:, :1]), "U has shape (3, 1)"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_errors_name_the_parameter(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


@pytest.mark.parametrize(
    ("p", "d", "r", "whole"), [(4, 8, 1, False), (6, 4, 2, False), (4, 8, 3, True)]
)
def test_a_start_is_uniform_on_the_sphere(p, d, r, whole):
    """E<w, w*>^2 = 1 / d and E<w, v>^2 = 1 / d for two neurons; fourth moments 3 / d(d + 2)."""
    runs = 8000
    nets = [giant.start(p, d, r, np.random.default_rng([3, i]), whole=whole) for i in range(runs)]
    W = np.stack([net.W[: p // 2] for net in nets])
    for m in (W[..., :r].reshape(runs, -1), (W[:, 0] * W[:, 1]).sum(-1, keepdims=True)):
        assert np.abs(m.mean(0)).max() < 5 / np.sqrt(d * runs)
        assert np.abs((m**2).mean(0) * d - 1).max() < 5 * np.sqrt(2 / runs)
        fourth = 3 / (d * (d + 2))
        assert np.abs((m**4).mean(0) / fourth - 1).max() < 5 * np.sqrt(96 / 9 / runs)
    a = np.stack([net.a[: p // 2] for net in nets])
    assert set(a.ravel()) == {-1.0, 1.0}
    assert np.abs(a.mean(0)).max() < 5 / np.sqrt(runs)


def test_gaussian_rows_have_the_moments_of_d_dimensions():
    """E<g, g> = D and Var<g, g> = 2 D with fewer dimensions than rows and with more."""
    for rows, D in ((3, 2), (3, 3), (3, 40)):
        g = np.stack([giant.gaussian(np.random.default_rng([5, i]), rows, D) for i in range(6000)])
        assert g.shape == (6000, rows, min(rows, D))
        square = (g**2).sum(-1)
        assert np.abs(square.mean(0) - D).max() < 5 * np.sqrt(2 * D / 6000)
        assert np.abs(square.var(0) / (2 * D) - 1).max() < 5 * np.sqrt((2 + 12 / D) / 6000)


def test_every_draw_of_a_step_has_a_stream_of_its_own(monkeypatch):
    """The batch and the part outside: two names."""
    seen = []
    whole = span.stream

    def recorded(seed, run, use, *steps):
        seen.append((seed, run, use, *steps))
        return whole(seed, run, use, *steps)

    monkeypatch.setattr(span, "stream", recorded)
    giant.descent(**learner(key=(4, np.int64(5), "a", 6)))
    assert sorted(seen) == [(4, 5, f"a: {what}", 6) for what in ("batch", "outside")]
    seen.clear()
    giant.batch(learner()["net"], 3, (4, 5, "a", 6))
    assert seen == [(4, 5, "a: batch", 6)]


def test_biases_are_dealt_out_in_turn():
    net = giant.start(10, 20, 1, rng(), biases=(1, 2))
    assert net.b.tolist() == [1, 2, 1, 2, 1, 1, 2, 1, 2, 1]
    assert giant.start(4, 20, 1, rng(), biases=3).b.tolist() == [3] * 4
    assert giant.start(4, 20, 1, rng(), biases=(1, 2)).b.tolist() == [1, 2, 2, 1]


def test_fresh_samples_are_what_the_network_sees():
    net = everywhere()
    U, y, f = giant.on_fresh(net, giant.RELU, target, 50, rng(), chunk=20)
    X = rng().standard_normal((50, 30))
    assert np.array_equal(U, X[:, :2])
    assert np.array_equal(y, target(*X[:, :2].T))
    assert np.allclose(f, np.maximum(X @ net.W.T + net.b, 0) @ net.a / 16)


def test_dependent_neurons_have_a_root_without_their_columns():
    """Mirrored neurons make K singular; its root has as many columns as K has rank."""
    B = np.random.default_rng(0).standard_normal((6, 3))
    K = np.block([[B @ B.T, B @ B.T], [B @ B.T, B @ B.T]])
    L = giant._root(K)
    assert L.shape == (12, 3)
    assert np.allclose(L @ L.T, K)
    assert giant._root(np.zeros((4, 4))).shape == (4, 0)
