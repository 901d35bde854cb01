"""What may keep a network from memory: one list, from which every chapter takes what applies.

A plain step is w <- w + eta sum_i g_i grad f(x_i), g_i = -dL/df(x_i) the pull of sample i. A remedy
changes the pulls, the samples or neurons that a step sees, the rule, or the size of the step; the
function that makes it holds its equation. `REMEDIES` has them by name, for the data of
`signal_noise`; what asks for nothing but weights (`decayed`, and every rule) takes any problem.
Early stopping is a choice among the steps of a training, and can be granted to all: `stopped`.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from fltutils import check, models, signal_noise, span
from fltutils.rules import Params, along
from fltutils.signal_noise import SignalNoise
from fltutils.train import Problem, State, norm, train

Tensor = torch.Tensor
Pull = Callable[[Tensor, SignalNoise], Tensor]
Table = Any  # an xarray.Dataset


def pulled(problem: Problem, g: Pull, q: int) -> Problem:
    """The problem with pulls g(f, data), (R, n), in place of those of its loss."""

    def descent(f: Tensor, A: Tensor, data: SignalNoise) -> Params:
        return (signal_noise.direction(models.pull(A, data.y, g(f, data), q), data),)

    return problem._replace(descent=descent)


def smoothed(f: Tensor, data: SignalNoise, p: float) -> Tensor:
    """The pulls of both labels, with weights 1 - p and p."""
    right, wrong = (models.downhill(f, y, data.weight) for y in (data.y_obs, -data.y_obs))
    return (1 - p) * right + p * wrong


def absolute(f: Tensor, data: SignalNoise) -> Tensor:
    """The pulls of the mean absolute error 1 - sigma(y f), doubled: at first the logistic ones."""
    m = data.y_obs * f
    return models.downhill(f, data.y_obs, data.weight) * 2 * torch.sigmoid(m)


def smoothing(problem: Problem, q: int, p: float) -> Problem:
    """Label smoothing, g <- (1 - p) g(y) + p g(-y): the mean of fresh flips at rate p."""
    return pulled(problem, lambda f, data: smoothed(f, data, p), q)


def drawing(
    problem: Problem,
    source: Callable[[int, int], span.Rng],
    draw: Callable[[span.Rng], np.ndarray],
    labels: bool = True,
) -> Problem:
    """The problem whose steps also draw `drawn`, each run from its source (seed, run).

    labels: what is drawn leaves the outputs alone.
    """

    def draws(data: SignalNoise) -> Iterator[dict[str, Tensor]]:
        rngs = [source(data.seed, int(i)) for i in data.run]
        others = problem.draws(data) if problem.draws else None
        while True:
            fields = next(others) if others else {}
            yield fields | {"drawn": torch.from_numpy(np.stack([draw(rng) for rng in rngs]))}

    return problem._replace(draws=draws, draws_labels=problem.draws_labels and labels)


def pull_noise(problem: Problem, q: int, p: float) -> Problem:
    """g <- (1 - p) g(y) + p g(-y) + y z, z from N(0, p (1 - p)): flips' mean and variance."""
    n, size = problem.data.y.shape[1], (p * (1 - p)) ** 0.5

    def g(f: Tensor, data: SignalNoise) -> Tensor:
        mean = smoothed(f, data, p)
        if data.drawn is None:
            return mean
        z = data.drawn if data.weight is None else data.weight * data.drawn
        return mean + data.y * z / n

    return drawing(
        pulled(problem, g, q),
        lambda seed, run: span.stream(seed, run, "remedies: noise on pulls"),
        lambda rng: size * rng.standard_normal(n),
    )


def gradient_noise(problem: Problem, size: float) -> Problem:
    """-grad L <- -grad L + N(0, size^2) on every coordinate of the weights.

    Its part beside data and start, which could only do harm, is left out in its favour.
    """
    shape = problem.start[0].shape[1:]

    def descent(f: Tensor, A: Tensor, data: SignalNoise) -> Params:
        assert problem.descent is not None
        (D,) = problem.descent(f, A, data)
        return (D if data.drawn is None else D + data.drawn,)

    return drawing(
        problem._replace(descent=descent),
        lambda seed, run: span.stream(seed, run, "remedies: gradient noise"),
        lambda rng: size * rng.standard_normal(shape),
    )


def decayed(problem: Problem, weight: float) -> Problem:
    """Coupled weight decay, L + (weight / 2) ||w||^2: -grad L <- -grad L - weight w, for any rule.

    For any problem whose parameters are weights. A plain step then shrinks them to 1 - eta weight,
    as decoupled decay does; where a rule rescales gradients the two differ, and decoupled decay is
    the rule's own: "adamw".
    """

    def outputs(params: Params, data: Any) -> tuple[Tensor, Any]:
        f, cache = problem.outputs(params, data)
        return f, (cache, params)

    def descent(f: Tensor, cache: Any, data: Any) -> Params:
        inner, params = cache
        D = _downhill(problem, params, data) if problem.descent is None else None
        D = D or problem.descent(f, inner, data)  # type: ignore[misc]
        return tuple(d - weight * w for d, w in zip(D, params, strict=True))

    return problem._replace(outputs=outputs, descent=descent)


def _downhill(problem: Problem, params: Params, data: Any) -> Params:
    """-grad L by autograd."""
    with torch.enable_grad():
        leaves = tuple(w.detach().requires_grad_() for w in params)
        loss = problem.loss(problem.outputs(leaves, data)[0], data)
        return tuple(-g for g in torch.autograd.grad(loss.sum(), leaves))


def masked(problem: Problem, q: int, rate: float) -> Problem:
    """Dropout, <w, x> <- b <w, x>: b is 0 with probability `rate` for each neuron at each step.

    Else it is (1 - rate)^(-1/q), so that outputs keep their mean.
    """
    keep = 1 - float(check.rate("rate", rate, below=1.0))
    shape = (*problem.data.W0.shape[1:3], 1)

    def seen(A: Tensor, data: SignalNoise) -> Tensor:
        return A if data.drawn is None else A * data.drawn

    def outputs(params: Params, data: SignalNoise) -> tuple[Tensor, Tensor]:
        A = signal_noise.products(State(params, data.y, data))
        return models.cnn_from_products(seen(A, data), data.y, q), A

    def descent(f: Tensor, A: Tensor, data: SignalNoise) -> Params:
        C = models.pull(seen(A, data), data.y, models.downhill(f, data.y_obs, data.weight), q)
        return (signal_noise.direction(seen(C, data), data),)

    return drawing(
        problem._replace(outputs=outputs, descent=descent),
        lambda seed, run: span.stream(seed, run, "remedies: dropout"),
        lambda rng: (rng.random(shape) < keep) / keep ** (1 / q),
        labels=False,
    )


def shaken(problem: Problem, length: float) -> Problem:
    """-grad L(w) <- -grad L(w + length u), u a random unit vector of the r coordinates a step.

    For problems on weights. As a climb of SAM's length that does not know where uphill is.
    """
    shape = problem.start[0].shape[1:]

    def outputs(params: Params, data: SignalNoise) -> tuple[Tensor, Any]:
        at = params if data.drawn is None else (params[0] + data.drawn,)
        return problem.outputs(at, data)

    def unit(rng: span.Rng) -> np.ndarray:
        u = rng.standard_normal(shape)
        return np.asarray(length * u / np.sqrt((u**2).sum()))

    return drawing(
        problem._replace(outputs=outputs),
        lambda seed, run: span.stream(seed, run, "remedies: random climb"),
        unit,
        labels=False,
    )


def climbed(problem: Problem, tau: float) -> Problem:
    """-grad L(w) <- -grad L(w + tau grad L / ||grad L||): the climb of SAM, for any rule."""

    def outputs(params: Params, data: Any) -> tuple[Tensor, Any]:
        f, cache = problem.outputs(params, data)
        return f, (cache, params)

    def descent(f: Tensor, cache: Any, data: Any) -> Params:
        inner, params = cache
        assert problem.descent is not None
        D = problem.descent(f, inner, data)
        length = norm(D) if problem.norm is None else problem.norm(D, data)
        climb = torch.where(length > 0, tau / length, 0.0)
        above = along(params, -climb, D)
        return problem.descent(*problem.outputs(above, data), data)

    return problem._replace(outputs=outputs, descent=descent)


def flipped_once(data: SignalNoise, p: float) -> SignalNoise:
    """The data with a share p of the labels wrong, once and for all."""
    n = data.y.shape[1]
    rngs = [span.stream(data.seed, int(run), "remedies: flips that stay") for run in data.run]
    wrong = np.stack([rng.random(n) < p for rng in rngs])
    return data._replace(y_obs=torch.where(torch.from_numpy(wrong), -data.y_obs, data.y_obs))


def stopped(table: Table, by: str) -> Table:
    """Early stopping: what a training recorded at the step at which `by` is least, run by run.

    `by` is an error or a loss on held-out samples that no test sees, as `measure.held_out_loss`.
    """
    return table.isel(step=table[by].argmin("step"))


def small_losses(data: SignalNoise, q: int, eta: Any) -> Problem:
    """Descent on the samples whose loss is at most log 2 at T = eta sigma^2 d t / (n m) = 1.

    Training goes on from there, without the others.
    """
    n, m = data.y.shape[1], data.W0.shape[2]
    lengths = data.xi.square().sum(2).mean(1).numpy()
    steps = max(1, round(float(np.mean(n * m / (np.asarray(eta) * lengths)))))
    problem = signal_noise.problem(data, q=q)
    then = train(problem, eta=eta, steps=steps).last
    kept = (data.y_obs * then.f >= 0).to(data.y.dtype)
    return problem._replace(start=then.params, data=problem.data._replace(weight=kept))


class Remedy(NamedTuple):
    """How to train: the problem, the step in units of the plain one, rule and options of the loop.

    `problem` takes data, q, p (the rate of flips), eta, and perhaps `batch`, of mini-batches, or
    `in_span=False`, for rules that see coordinates.
    """

    problem: Callable[..., Problem]
    step: float = 1.0
    options: Mapping[str, Any] = {}


def _plain(data: SignalNoise, q: int, *_: Any, **how: Any) -> Problem:
    return signal_noise.problem(data, q=q, **how)


def _weights(data: SignalNoise, q: int, *_: Any, **how: Any) -> Problem:
    return signal_noise.problem(data, q=q, **{**how, "in_span": False})


def _flips(data: SignalNoise, q: int, p: float, eta: Any = None, **how: Any) -> Problem:
    return signal_noise.problem(data, q=q, label_noise=p, **how)


def _as_long_as_flips(data: SignalNoise, p: float) -> float:
    """The size of noise on a coordinate that is as long as that of flips at their margin."""
    n, m = data.y.shape[1], data.W0.shape[2]
    return float((2 * p * (1 - p) * np.log((1 - p) / p) / (n * m**2)) ** 0.5)


# SAM's radius and the step of what sees coordinates are the experiment's; the latter asks for data
# in R^d, as signal_noise.in_space gives.
REMEDIES = {
    "gradient descent": Remedy(_plain),
    "momentum": Remedy(_plain, options={"rule": "momentum"}),
    "steps a tenth as large": Remedy(_plain, 0.1),
    "steps 3 times as large": Remedy(_plain, 3.0),
    "steps 10 times as large": Remedy(_plain, 10.0),
    "mini-batches of 10": Remedy(lambda data, q, p, eta, **b: _plain(data, q, batch=10, **b)),
    "mini-batches of 1": Remedy(lambda data, q, p, eta, **b: _plain(data, q, batch=1, **b), 2.5),
    "label smoothing": Remedy(lambda data, q, p, eta, **b: smoothing(_plain(data, q, **b), q, p)),
    "mean absolute error": Remedy(
        lambda data, q, p, eta, **b: pulled(_plain(data, q, **b), absolute, q)
    ),
    "weight decay": Remedy(
        lambda data, q, p, eta, **b: decayed(_weights(data, q, **b), 1e-3 / eta)
    ),
    "weight decay of 0.05": Remedy(
        lambda data, q, p, eta, **b: decayed(_weights(data, q, **b), 0.05 / eta)
    ),
    "small losses alone": Remedy(lambda data, q, p, eta: small_losses(data, q, eta)),
    "flips that stay": Remedy(lambda data, q, p, eta, **b: _plain(flipped_once(data, p), q, **b)),
    "noise on the gradient": Remedy(
        lambda data, q, p, eta, **b: gradient_noise(
            _weights(data, q, **b), _as_long_as_flips(data, p)
        )
    ),
    "noise on the pulls": Remedy(
        lambda data, q, p, eta, **b: pull_noise(_plain(data, q, **b), q, p)
    ),
    "dropout of half": Remedy(lambda data, q, p, eta, **b: masked(_plain(data, q, **b), q, 0.5)),
    "dropout of 9 in 10": Remedy(lambda data, q, p, eta, **b: masked(_plain(data, q, **b), q, 0.9)),
    "fresh flips": Remedy(_flips),
    "flips, steps a quarter": Remedy(_flips, 0.25),
    "SAM": Remedy(_plain, options={"rule": "sam"}),
    "sign-GD": Remedy(_weights, options={"rule": "sign_gd"}),
    "Adam": Remedy(_weights, options={"rule": "adam"}),
    "Adam, coupled decay": Remedy(
        lambda data, q, p, eta, **b: decayed(_weights(data, q, **b), 1e-3),
        options={"rule": "adam"},
    ),
    "Adam, decoupled decay": Remedy(_weights, options={"rule": "adamw", "decay": 0.1}),
}
