"""The page's run in torch: the same random numbers, the same steps, the same records.

Every integer of the generator (sfc32) and every uniform is the same to the bit. Normals and chi
variables go through log, log1p, sin, cos and pow, whose last bit differs between C libraries and
JavaScript engines; a chi draw is accepted by a comparison, which such a bit flips about once in
10^15 draws.
"""

import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import torch

from .models import Form, Model, Step

MASK = 0xFFFFFFFF


class Stream(NamedTuple):
    """The draws of one array."""

    bits: Callable[[], int]
    uniform: Callable[[], float]
    normal: Callable[[], float]
    chi: Callable[[float], float]


def stream(seed: int, use: int) -> Stream:
    """sfc32 from (seed, use), with Box and Muller's normals and Marsaglia and Tsang's gamma."""
    state = [seed & MASK, use & MASK, 0x9E3779B9, 1]
    spare: list[float] = []

    def bits() -> int:
        a, b, c, count = state
        t = (a + b + count) & MASK
        state[0] = b ^ (b >> 9)
        state[1] = (c + (c << 3)) & MASK
        state[2] = (((c << 21) | (c >> 11)) + t) & MASK
        state[3] = (count + 1) & MASK
        return t

    def uniform() -> float:
        return (bits() + 0.5) / 4294967296

    def normal() -> float:
        if spare:
            return spare.pop()
        r, phi = math.sqrt(-2 * math.log(uniform())), 2 * math.pi * uniform()
        spare.append(r * math.sin(phi))
        return r * math.cos(phi)

    def chi(df: float) -> float:
        shape = df / 2
        lift = uniform() ** (1 / shape) if shape < 1 else 1.0
        d = (shape + 1 if shape < 1 else shape) - 1 / 3
        c = 1 / math.sqrt(9 * d)
        while True:
            x = normal()
            t = c * x
            v = (1 + t) * (1 + t) * (1 + t)
            if t <= -1:
                continue
            u = uniform()
            if u < 1 - 0.0331 * x * x * x * x or math.log(u) < 0.5 * x * x + d * (
                3 * math.log1p(t) - t * (3 + t * (3 + t))
            ):
                return math.sqrt(2 * d * v * lift)

    for _ in range(16):
        bits()
    return Stream(bits, uniform, normal, chi)


def linear(form: Form, values: Mapping[str, float]) -> float:
    """The value of a linear form; "d^kappa" is the whole number nearest to that power."""

    def value(name: str) -> float:
        base, _, power = name.partition("^")
        known = {"1": 1.0, **values}
        return math.floor(known[base] ** known[power] + 0.5) if power else known[name]

    return sum(k * value(name) for name, k in form.items())


def draw(
    model: Model, spec: Mapping[str, Any], params: Mapping[str, float], random: Stream
) -> torch.Tensor:
    """A random array, the next of its stream."""
    shape = [int(linear(model.sizes[s], params)) for s in spec["shape"]]
    df = linear(spec.get("df", {}), params)
    out = [0.0] * math.prod(shape)
    for i in range(len(out)):
        if spec["law"] == "chi":
            out[i] = random.chi(df - i)
        elif spec["law"] == "uniform":
            out[i] = random.uniform()
        elif spec["law"] == "normal" or i % shape[1] < i // shape[1]:
            out[i] = random.normal()
    return torch.tensor(out, dtype=torch.float64).reshape(shape)


def draws(model: Model, params: Mapping[str, float]) -> dict[str, torch.Tensor]:
    """The random arrays that a run starts with, each from its own stream."""
    return {name: next(arrays) for name, arrays in sources(model, params).items()}


def sources(model: Model, params: Mapping[str, float]) -> dict[str, Iterator[torch.Tensor]]:
    """Every array of a run from its own stream: its first draw, its second, ..."""

    def endless(use: int, spec: Mapping[str, Any]) -> Iterator[torch.Tensor]:
        random = stream(int(params["seed"]), use)
        while True:
            yield draw(model, spec, params, random)

    return {name: endless(use, spec) for use, (name, spec) in enumerate(model.draws.items())}


def call(step: Step, env: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """A step on the names it asks for."""
    return step(*(env[name] for name in inspect.signature(step).parameters))


def replay(model: Model, params: Mapping[str, float], records: int = 60) -> dict[str, Any]:
    """The records of a run: times, and curves as lists of numbers or of lists."""
    env = {k: torch.tensor(float(v), dtype=torch.float64) for k, v in params.items()}
    arrays = sources(model, params)
    env |= {name: next(drawn) for name, drawn in arrays.items()}
    anew = [name for name, spec in model.draws.items() if spec.get("anew")]
    for step in model.init:
        env |= call(step, env)
    T = int(params["steps"])
    times = sorted({k * T // records for k in range(records + 1)})
    curves: dict[str, list[Any]] = {}
    for t in range(T + 1):
        if t in times:
            for step in model.measure:
                for name, value in call(step, env).items():
                    curves.setdefault(name, []).append(value.tolist())
        if t < T:
            for step in model.step:
                env |= call(step, env)
            env |= {name: next(arrays[name]) for name in anew}
    return {"times": times, "curves": curves, "env": env}
