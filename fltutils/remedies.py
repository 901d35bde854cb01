"""What may keep a network from memory: one list, from which every chapter takes what applies.

A remedy changes the problem that a loop trains on, the rule, or the size of the step. All take the
data of `signal_noise` and the power q of the activation. Early stopping is none of them: it is a
choice among the steps, and can be granted to all.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from fltutils import check, models, signal_noise, span
from fltutils.rules import Params
from fltutils.signal_noise import SignalNoise
from fltutils.train import Problem, State, train

Tensor = torch.Tensor
Pull = Callable[[Tensor, SignalNoise], Tensor]


def pulled(problem: Problem, g: Pull, q: int) -> Problem:
    """The problem with pulls g(f, data), (R, n), in place of those of its loss."""

    def descent(f: Tensor, A: Tensor, data: SignalNoise) -> Params:
        return (models.pull(A, data.y, g(f, data), q),)

    return problem._replace(descent=descent)


def smoothed(f: Tensor, data: SignalNoise, p: float) -> Tensor:
    """The pulls of both labels, with weights 1 - p and p."""
    right, wrong = (models.downhill(f, y) for y in (data.y_obs, -data.y_obs))
    return (1 - p) * right + p * wrong


def smoothing(data: SignalNoise, q: int, p: float) -> Problem:
    """Label smoothing: the mean of fresh flips at rate p, without their noise."""
    return pulled(signal_noise.problem(data, q=q), lambda f, data: smoothed(f, data, p), q)


def drawn(
    rngs: list[span.Rng], draw: Callable[[span.Rng], np.ndarray]
) -> Iterator[dict[str, Tensor]]:
    """What every run draws anew at each step, as the data's weight."""
    while True:
        yield {"weight": torch.from_numpy(np.stack([draw(rng) for rng in rngs]))}


def pull_noise(data: SignalNoise, q: int, p: float) -> Problem:
    """Smoothing, and N(0, p (1 - p)) on every sample's pull: flips' mean and variance."""
    n, size = data.y.shape[1], (p * (1 - p)) ** 0.5

    def g(f: Tensor, data: SignalNoise) -> Tensor:
        mean = smoothed(f, data, p)
        return mean if data.weight is None else mean + data.y * data.weight / n

    problem = pulled(signal_noise.problem(data, q=q), g, q)

    def draws(data: SignalNoise) -> Iterator[dict[str, Tensor]]:
        rngs = [span.stream(data.seed, int(i), "remedies: noise on pulls") for i in data.run]
        return drawn(rngs, lambda rng: size * rng.standard_normal(n))

    return problem._replace(loss=_plain, draws=draws)


def _plain(f: Tensor, data: SignalNoise) -> Tensor:
    """The loss, whatever a step draws as weight."""
    return models.logistic(f, data.y_obs)


def gradient_noise(data: SignalNoise, q: int, size: float) -> Problem:
    """N(0, size^2) on every coordinate of the gradient.

    Its part beside data and start, which could only do harm, is left out in its favour.
    """
    problem = signal_noise.problem(data, q=q, in_span=False)
    shape = data.W0.shape[1:]

    def descent(f: Tensor, A: Tensor, data: SignalNoise) -> Params:
        assert problem.descent is not None
        (D,) = problem.descent(f, A, data._replace(weight=None))
        return (D if data.weight is None else D + data.weight,)

    def draws(data: SignalNoise) -> Iterator[dict[str, Tensor]]:
        rngs = [span.stream(data.seed, int(i), "remedies: gradient noise") for i in data.run]
        return drawn(rngs, lambda rng: size * rng.standard_normal(shape))

    return problem._replace(descent=descent, loss=_plain, draws=draws)


def decay(data: SignalNoise, q: int, strength: float, eta: float) -> Problem:
    """Weight decay beside the step: w <- (1 - strength) w."""
    problem = signal_noise.problem(data, q=q, in_span=False)

    def outputs(params: Params, data: SignalNoise) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        f, A = problem.outputs(params, data)
        return f, (A, params[0])

    def descent(f: Tensor, cache: tuple[Tensor, Tensor], data: SignalNoise) -> Params:
        assert problem.descent is not None
        (D,) = problem.descent(f, cache[0], data)
        return (D - strength / eta * cache[1],)

    return problem._replace(outputs=outputs, descent=descent)


def masked(data: SignalNoise, q: int, rate: float) -> Problem:
    """At each step every neuron is left out with probability `rate`, the others count for more."""
    problem = signal_noise.problem(data, q=q)
    keep = 1 - float(check.rate("rate", rate, below=1.0))
    shape = (*data.W0.shape[1:3], 1)

    def seen(A: Tensor, data: SignalNoise) -> Tensor:
        return A if data.weight is None else A * data.weight

    def outputs(params: Params, data: SignalNoise) -> tuple[Tensor, Tensor]:
        A = signal_noise.products(State(params, data.y, data))
        return models.cnn_from_products(seen(A, data), data.y, q), A

    def descent(f: Tensor, A: Tensor, data: SignalNoise) -> Params:
        C = models.pull(seen(A, data), data.y, models.downhill(f, data.y_obs), q)
        return (seen(C, data),)

    def draws(data: SignalNoise) -> Iterator[dict[str, Tensor]]:
        rngs = [span.stream(data.seed, int(i), "remedies: dropout") for i in data.run]
        return drawn(rngs, lambda rng: (rng.random(shape) < keep) / keep ** (1 / q))

    return problem._replace(
        outputs=outputs, descent=descent, loss=_plain, draws=draws, draws_labels=False
    )


def flipped_once(data: SignalNoise, p: float) -> SignalNoise:
    """The data with a share p of the labels wrong, once and for all."""
    n = data.y.shape[1]
    rngs = [span.stream(data.seed, int(run), "remedies: flips that stay") for run in data.run]
    wrong = np.stack([rng.random(n) < p for rng in rngs])
    return data._replace(y_obs=torch.where(torch.from_numpy(wrong), -data.y, data.y))


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
    """How to train: the problem, the step in units of the plain one, options of the loop."""

    problem: Callable[..., Problem]  # of data, q, p (rate of flips), eta
    step: float = 1.0
    options: Mapping[str, Any] = {}


def _plain_problem(data: SignalNoise, q: int, p: float, eta: Any) -> Problem:
    return signal_noise.problem(data, q=q)


def _flips(data: SignalNoise, q: int, p: float, eta: Any) -> Problem:
    return signal_noise.problem(data, q=q, label_noise=p)


def _as_long_as_flips(data: SignalNoise, q: int, p: float, eta: Any) -> Problem:
    """Noise on the gradient as long as that of flips, at the margin where these rest."""
    n, m = data.y.shape[1], data.W0.shape[2]
    return gradient_noise(data, q, (2 * p * (1 - p) * np.log((1 - p) / p) / (n * m**2)) ** 0.5)


REMEDIES = {
    "gradient descent": Remedy(_plain_problem),
    "momentum": Remedy(_plain_problem, options={"rule": "momentum"}),
    "steps 10 times as large": Remedy(_plain_problem, 10.0),
    "mini-batches of 10": Remedy(lambda data, q, p, eta: signal_noise.problem(data, q=q, batch=10)),
    "mini-batches of 1": Remedy(
        lambda data, q, p, eta: signal_noise.problem(data, q=q, batch=1), 2.5
    ),
    "label smoothing": Remedy(lambda data, q, p, eta: smoothing(data, q, p)),
    "weight decay": Remedy(lambda data, q, p, eta: decay(data, q, 1e-3, eta)),
    "weight decay of 0.05": Remedy(lambda data, q, p, eta: decay(data, q, 0.05, eta)),
    "small losses alone": Remedy(lambda data, q, p, eta: small_losses(data, q, eta)),
    "flips that stay": Remedy(
        lambda data, q, p, eta: signal_noise.problem(flipped_once(data, p), q=q)
    ),
    "noise on the gradient": Remedy(_as_long_as_flips),
    "dropout of half": Remedy(lambda data, q, p, eta: masked(data, q, 0.5)),
    "dropout of 9 in 10": Remedy(lambda data, q, p, eta: masked(data, q, 0.9)),
    "noise on the pulls": Remedy(lambda data, q, p, eta: pull_noise(data, q, p)),
    "fresh flips": Remedy(_flips),
    "flips, steps a quarter": Remedy(_flips, 0.25),
    "SAM": Remedy(_plain_problem, options={"rule": "sam"}),  # its radius is the experiment's
}
