"""The lab on emergence: two gradient steps on the neurons, then the readout alone.

The chapter's model in the basis of the patterns, with p_0 = 1/2 and output weights drawn as for
gamma = 1/4. Of the parameters w alone moves in the two steps: the page's batches have a surplus of
one label, which biases would learn; the chapter's batches have none. The second step smooths with
logistic noise of the chapter's variance, where the chapter has Gaussian noise. Both steps are taken
at the start of a run; record 0 looks at the neurons before, 1 after one step, 2 and later after
two, and from there on each step of the page is four of the readout's, on 600 samples of its own,
with the chapter's momentum and step size 1. Network 0 reads the learned neurons, network 1 the
neurons as drawn.
"""

import torch

Tensor = torch.Tensor
SECOND = 20.0  # eta_2: lengths, not biases, spread the kinks, and few neurons do
PI = 3.141592653589793
SHOWN = 6  # samples that the page draws


def patterns(A: Tensor, S: Tensor, V: Tensor, gamma: Tensor) -> Tensor:
    """The relevant patterns, 0 or 1: with probability 2 gamma all alike, (n, k)."""
    alone, alike = (A < 0.5).to(A.dtype), (V < 0.5).to(A.dtype)
    return torch.where((S < 2 * gamma)[:, None], alike[:, None], alone)


def label(front: Tensor) -> Tensor:
    """+1 where the count is odd, -1 where it is even."""
    return -torch.sign(torch.cos(PI * front.sum(1)))


def inputs(front: Tensor, B: Tensor, spread: Tensor) -> Tensor:
    """x: centred, of mean square length one, (n, d)."""
    return (torch.cat([front, (B < 0.5).to(B.dtype)], 1) - 0.5) / spread


def act(z: Tensor) -> Tensor:
    """The truncated ReLU."""
    return torch.clamp(z, 0.0, 1.0)


def hard(z: Tensor) -> Tensor:
    """Its slope."""
    return ((z > 0) & (z < 1)).to(z.dtype)


def smooth(z: Tensor, k: Tensor) -> Tensor:
    """The slope smoothed by logistic noise of variance 1/k^3."""
    scale = 3**0.5 / PI / (k * torch.sqrt(k))
    return torch.sigmoid(z / scale) - torch.sigmoid((z - 1) / scale)


def smooth_act(z: Tensor, k: Tensor) -> Tensor:
    """The activation, smoothed by the same noise."""
    scale = 3**0.5 / PI / (k * torch.sqrt(k))
    low, high = (torch.nn.functional.softplus(u / scale) for u in (z, z - 1))
    return scale * (low - high)


def heard(w: Tensor, b: Tensor, a: Tensor, x: Tensor, y: Tensor, k: Tensor) -> Tensor:
    """y, and 0 where the smoothed network satisfies the hinge."""
    return torch.where(y * (smooth_act(x @ w.t() + b, k) @ a) > 1, 0 * y, y)


def start(
    A1: Tensor, B1: Tensor, S1: Tensor, V1: Tensor, A2: Tensor, B2: Tensor, S2: Tensor, V2: Tensor,
    W0: Tensor, beta: Tensor, alpha: Tensor, d: Tensor, k: Tensor, n: Tensor, gamma: Tensor,
    eta: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """The network before, after one step and after two; what theory says of it."""
    spread = torch.sqrt(d) / 2
    a = alpha * d / (k * k)  # d/4 = the square of sigma tilde; gamma = 1/4
    w = torch.cat([W0, W0]) / k
    b, a = torch.cat([beta, beta]) / (k * k), torch.cat([a, -a])
    front1, front2 = patterns(A1, S1, V1, gamma), patterns(A2, S2, V2, gamma)
    x1, y1 = inputs(front1, B1, spread), label(front1)
    x2, y2 = inputs(front2, B2, spread), label(front2)
    one = eta * a[:, None] * ((y1[:, None] * hard(x1 @ w.t() + b)).t() @ x1 / n)
    left = heard(one, b, a, x2, y2, k)
    two = SECOND * a[:, None] * ((left[:, None] * smooth(x2 @ one.t() + b, k)).t() @ x2 / n)
    V = (d - k) / 4 + (k - 1) * (1 - 2 * gamma) / 4
    safe = torch.clamp(gamma, min=1e-9)
    return {
        "w0": w,
        "w1": one,
        "w2": two,
        "b": b,
        "silent": (left == 0).to(d.dtype).mean(),
        "tilt": (d - k) / (4 * n * k * safe * safe),
        "theory": 1 / torch.sqrt(1 + V / (n * k * safe * safe)),
        "random": torch.sqrt(2 / (PI * d)),
        "spread": spread,
        "a": torch.cat([0 * a[None], 0 * a[None]]),
        "v": torch.cat([0 * a[None], 0 * a[None]]),
        "t": 0 * d,
    }


def features(
    A3: Tensor, B3: Tensor, S3: Tensor, V3: Tensor, A4: Tensor, B4: Tensor, S4: Tensor, V4: Tensor,
    w0: Tensor, w2: Tensor, b: Tensor, spread: Tensor, gamma: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """Outputs of the neurons on the readout's samples and on the test's; of one threshold."""
    front3, front4 = patterns(A3, S3, V3, gamma), patterns(A4, S4, V4, gamma)
    x3, x4, y4 = inputs(front3, B3, spread), inputs(front4, B4, spread), label(front4)
    return {
        "F": act(x3 @ w2.t() + b),
        "F0": act(x3 @ w0.t() + b),
        "T": act(x4 @ w2.t() + b),
        "T0": act(x4 @ w0.t() + b),
        "y3": label(front3),
        "y4": y4,
        "majority": (y4 * (front4.mean(1) - 0.5) > 0).to(y4.dtype).mean(),
    }


def descent(F: Tensor, y: Tensor, a: Tensor) -> Tensor:
    """Minus the gradient of the hinge loss in a."""
    return torch.where(y * (F @ a) < 1, y, 0 * y) @ F / F.shape[0]


def tick(F: Tensor, F0: Tensor, y3: Tensor, a: Tensor, v: Tensor, t: Tensor) -> dict[str, Tensor]:
    """The next record; after the second, four steps of momentum 0.9 for both readouts."""
    on = (t >= 2).to(t.dtype)
    for _ in range(4):
        pulls = torch.stack([descent(F, y3, a[0]), descent(F0, y3, a[1])])
        v = 0.9 * v + on * pulls
        a = a + v
    return {"a": a, "v": v, "t": t + 1}


def correct(T: Tensor, y: Tensor, a: Tensor) -> Tensor:
    """Accuracy; a network that says nothing guesses."""
    g = y * (T @ a)
    return ((g > 0).to(y.dtype) + (g == 0).to(y.dtype) / 2).mean()


def look(
    w0: Tensor, w1: Tensor, w2: Tensor, T: Tensor, T0: Tensor, y4: Tensor, a: Tensor, t: Tensor,
    k: Tensor, theory: Tensor, random: Tensor, majority: Tensor, silent: Tensor, A1: Tensor,
    alpha: Tensor, A4: Tensor, B4: Tensor, S4: Tensor, V4: Tensor, gamma: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """Cosines with the sum of A and with what its first pattern has beside it; accuracies."""
    w = torch.where(t < 1, w0, torch.where(t < 2, w1, w2))
    size = torch.clamp(torch.sqrt((w * w).sum(1)), min=1e-30)  # all samples may be silent
    front = w[:, : A1.shape[1]]
    total = front.sum(1)
    along = total / torch.sqrt(k) / size
    beside = (front[:, 0] - total / k) / torch.sqrt(1 - 1 / k) / size
    return {
        "relevant": patterns(A4[:SHOWN], S4[:SHOWN], V4[:SHOWN], gamma).flatten(),
        "others": (B4[:SHOWN] < 0.5).to(B4.dtype).flatten(),
        "y": y4[:SHOWN],
        "answers": (T @ a[0])[:SHOWN],
        "time": t + 1 + 3 * torch.clamp(t - 2, min=0.0),
        "c1": along,
        "c2": beside,
        "along": torch.abs(along).mean(),
        "signed": (torch.sign(torch.cat([alpha, -alpha])) * along).mean(),
        "peak": (torch.abs(w).amax(1) / size).mean(),
        "accuracy": correct(T, y4, a[0]),
        "accuracy_drawn": correct(T0, y4, a[1]),
        "theory": 1 * theory,
        "single": 1 / torch.sqrt(k),
        "random": 1 * random,
        "majority": 1 * majority,
        "silent": 1 * silent,
    }
