"""The batched training loop and its recorders.

With x_0 = mu and x_k = xi_k, a weight vector that stays in the span is w = w_0 + sum_k theta_k x_k,
and the network sees it through A = <w, x_k> = A_0 + theta G, G the Gram matrix. So the loop moves
theta; a rule that sees coordinates moves w itself. All runs of a batch advance together.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import torch
from numpy.typing import ArrayLike

from fltutils import check, models, span
from fltutils.data import SignalNoise, select
from fltutils.rules import RULES, SEES_COORDINATES, Space

Tensor = torch.Tensor


class Snapshot(NamedTuple):
    """What a recorder sees: one step of all runs."""

    A: Tensor  # (R, 2, m, 1 + n)  inner products <w, [mu, xi_1..xi_n]>
    params: Tensor  # coefficients theta (R, 2, m, 1 + n), or weights (R, 2, m, r)
    f: Tensor  # (R, n)            outputs on the training inputs
    data: SignalNoise
    in_span: bool  # True: params are coefficients


class Trained(NamedTuple):
    """R trained networks."""

    last: Snapshot
    loss: Tensor  # (R,)  training loss on the observed labels
    steps: Tensor  # (R,)  steps taken: fewer than asked where a run stopped early
    history: dict[str, Tensor]  # recorder -> (T, R, ...); a stopped run keeps its last value
    times: Tensor  # (T,)  the steps of the history


Recorder = Callable[[Snapshot], Tensor]


def weights(snapshot: Snapshot) -> Tensor:
    """W (R, 2, m, r) of a snapshot."""
    if not snapshot.in_span:
        return snapshot.params
    return snapshot.data.W0 + snapshot.params @ snapshot.data.X[:, None]


def loss(f: Tensor, y_obs: Tensor) -> Tensor:
    """L_S = (1/n) sum_i log(1 + exp(-y_i f(x_i))), one a run."""
    return torch.nn.functional.softplus(-y_obs * f).mean(-1)


def downhill(f: Tensor, y_obs: Tensor, weight: Tensor | float = 1.0) -> Tensor:
    """-dL_S/df_i = weight_i y_i / (n (1 + exp(y_i f_i)))."""
    return weight * y_obs * torch.sigmoid(-y_obs * f) / f.shape[-1]


def _space(data: SignalNoise, q: int, labels: list[Any], in_span: bool) -> Space:
    """The space of coefficients on the data (in_span) or of the weights themselves."""
    space = _coefficients(data) if in_span else _weights(data)

    def descent(params: Tensor) -> Tensor:
        A = space.products(params)
        f = models.cnn_from_products(A, data.y, q)
        return space.lift(models.pull(A, data.y, downhill(f, *labels), q))

    return space._replace(descent=descent)


def _coefficients(data: SignalNoise) -> Space:
    """theta, with A = A_0 + theta G and ||theta X||^2 = <theta G, theta>."""
    X, (R, _, m, r) = data.X, data.W0.shape
    k, rows = 2 * m, X.shape[1]
    G = X @ X.transpose(1, 2)
    A0 = data.W0.view(R, k, r) @ X.transpose(1, 2)

    def products(theta: Tensor) -> Tensor:
        return torch.baddbmm(A0, theta.view(R, k, rows), G).view(R, 2, m, rows)

    def norm(C: Tensor) -> Tensor:
        squared = (C * (C.view(R, k, rows) @ G).view_as(C)).sum((1, 2, 3), keepdim=True)
        return squared.clamp(min=0).sqrt()

    return Space(torch.zeros_like(A0).view(R, 2, m, rows), products, lambda C: C, norm)


def _weights(data: SignalNoise) -> Space:
    """W, with A = W X'."""
    X = data.X[:, None]
    return Space(
        start=data.W0.clone(),
        products=lambda W: W @ X.transpose(2, 3),
        lift=lambda C: C @ X,
        norm=lambda D: D.square().sum((1, 2, 3), keepdim=True).sqrt(),
    )


def _noisy_labels(
    data: SignalNoise, label_noise: float, batch: int | None
) -> Iterator[tuple[Tensor, Tensor]]:
    """Labels and weights of each step: fresh flips at rate label_noise, mini-batches of size batch.

    Every run draws from its own stream. A mini-batch is the next `batch` samples of a random order,
    a new order an epoch.
    """
    R, n = data.y.shape
    rngs = [span.stream(data.seed, int(i), "training") for i in data.run]
    order = [rng.permutation(n) for rng in rngs]
    at = 0
    while True:
        labels, weight = data.y_obs.clone(), torch.ones(R, n, dtype=data.y.dtype)
        if label_noise:
            keep = [torch.from_numpy(rng.random(n) >= label_noise) for rng in rngs]
            labels = torch.where(torch.stack(keep), labels, -labels)
        if batch is not None:
            if at + batch > n:
                order, at = [rng.permutation(n) for rng in rngs], 0
            weight.zero_()
            for i in range(R):
                weight[i, torch.from_numpy(order[i][at : at + batch])] = n / batch
            at += batch
        yield labels, weight


def train(
    data: SignalNoise,
    *,
    q: int = 1,
    rule: str = "gd",
    eta: ArrayLike,
    steps: int,
    stop: float | None = None,
    record: Mapping[str, Recorder] | None = None,
    every: int = 1,
    label_noise: float = 0.0,
    batch: int | None = None,
    **options: float,
) -> Trained:
    """Train all runs for `steps` steps of `rule` on the logistic loss of the observed labels.

    eta is a number or one a run. A run whose loss is <= stop is frozen there. Recorders see the
    state at steps 0, every, 2 every, ... `label_noise` flips labels anew at each step; `batch`
    makes the steps mini-batch steps; both go with every rule. `options` are the rule's own.
    """
    q, steps, every = (
        check.count("q", q),
        check.count("steps", steps, 0),
        check.count("every", every),
    )
    check.one_of("rule", rule, RULES)
    R, n = data.y.shape
    rate = check.at_least("eta", eta, 0.0)
    if rate.ndim:
        check.shape("eta", rate, (R,))
    check.shape("label_noise", check.rate("label_noise", label_noise, below=0.5), ())
    if stop is not None:
        check.shape("stop", check.positive("stop", stop), ())
    if batch is not None and check.count("batch", batch) > n:
        raise ValueError(f"batch = {batch}: batch must be a whole number from 1 to n = {n}")
    noisy = _noisy_labels(data, label_noise, batch) if label_noise or batch else None

    for name, value in options.items():
        check.rate(name, value, below=1.0 if name.startswith("beta") else float("inf"))

    in_span = rule not in SEES_COORDINATES
    if data.embedded and not in_span:
        raise ValueError(
            f"rule = {rule!r}: {rule} sees coordinates, and these data are drawn in r < d of them; "
            "give it data in R^d (data.given, or d <= 1 + n + 2m)"
        )
    eta_of = torch.tensor(rate).expand(R)
    lr = eta_of.reshape(R, 1, 1, 1)
    labels: list[Any] = [data.y_obs, 1.0]
    here = data
    state: tuple[Tensor, ...] = ()
    space = _space(here, q, labels, in_span)
    params, which = space.start, torch.arange(R)  # `which`: the runs still in the batch
    out_params, out_loss = space.start.clone(), torch.empty(R, dtype=params.dtype)
    out_steps = torch.full((R,), steps)
    rows: dict[str, list[Tensor]] = {name: [] for name in record or {}}
    latest: dict[str, Tensor] = {}
    times: list[int] = []

    for t in range(steps + 1):
        A = space.products(params)
        f = models.cnn_from_products(A, here.y, q)
        if not torch.isfinite(f).all():
            bad = int(which[~torch.isfinite(f).all(1)][0])
            raise FloatingPointError(
                f"run {bad} diverged at step {t}: eta = {float(eta_of[bad]):g} is too large; "
                "try a smaller eta"
            )
        L = loss(f, here.y_obs)
        done = (L <= stop) if stop is not None else torch.zeros_like(L, dtype=torch.bool)
        if t == steps:
            done = torch.ones_like(done)
        if record and (t % every == 0 or done.any()):
            now = Snapshot(A, params, f, here, in_span)
            for name, recorder in record.items():
                latest[name] = _spread(recorder(now), which, latest.get(name), R)
            if t % every == 0:
                times.append(t)
                for name, row in latest.items():
                    rows[name].append(row)
        if done.any():
            out_params[which[done]], out_loss[which[done]] = params[done], L[done]
            out_steps[which[done]] = t
            keep = ~done
            if not keep.any():
                break
            which, params, lr = which[keep], params[keep], lr[keep]
            state = tuple(s[keep] for s in state)
            here, f, A = select(here, keep), f[keep], A[keep]
            space = _space(here, q, labels, in_span)
        if noisy is not None:
            y_step, weight = next(noisy)
            labels[:] = [y_step[which], weight[which]]
        else:
            labels[:] = [here.y_obs, 1.0]
        D = space.lift(models.pull(A, here.y, downhill(f, *labels), q))
        params, state = RULES[rule](params, D, state, space, lr, **options)

    space = _space(data, q, labels, in_span)
    A = space.products(out_params)
    last = Snapshot(A, out_params, models.cnn_from_products(A, data.y, q), data, in_span)
    history = {name: torch.stack(values) for name, values in rows.items()}
    return Trained(last, out_loss, out_steps, history, torch.tensor(times))


def _spread(value: Tensor, which: Tensor, before: Tensor | None, R: int) -> Tensor:
    """A recorder's row for all R runs: a stopped run keeps its last value."""
    if before is None or len(which) == R:
        return value.clone()
    row = before.clone()
    row[which] = value
    return row
