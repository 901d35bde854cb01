"""The batched training loop. It knows no data model.

A `Problem` says where the parameters start, what the network puts out on the data and what that
costs. All runs of a batch advance together, in a leading axis of every tensor; the gradient of the
sum of their losses is each one's own.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import torch
from numpy.typing import ArrayLike

from fltutils import check
from fltutils.rules import RULES, SEES_COORDINATES, Here, Params, check_options

Tensor = torch.Tensor
Data = Any  # a named tuple of tensors, runs first; what is not a tensor belongs to all runs


class Problem(NamedTuple):
    """R networks and what they are trained on.

    The data are complete without draws: the loss that stops a run, and what recorders see, are
    those of the data themselves. What differs between runs stands in start or data, not in a
    closure: there the runs that have stopped are left out. `outputs` changes nothing in place.
    """

    start: Params  # the parameters: a tuple of tensors, runs first
    data: Data
    outputs: Callable[[Params, Data], tuple[Tensor, Any]]  # f (R, ...), and what descent re-uses
    loss: Callable[[Tensor, Data], Tensor]  # (f, data) -> (R,)
    # Fields of the data that each step sees anew: flips, mini-batches, diffusion noise, negatives.
    draws: Callable[[Data], Iterator[dict[str, Tensor]]] | None = None
    descent: Callable[[Tensor, Any, Data], Params] | None = None  # -grad L; autograd if None
    norm: Callable[[Params, Data], Tensor] | None = None  # of a direction, (R,); Euclid's if None
    sees_coordinates: bool = True  # the parameters are weights: sign-GD and Adam mean something
    draws_labels: bool = False  # draws leave the outputs alone, which are computed once a step


class State(NamedTuple):
    """What a recorder sees: one step of all runs."""

    params: Params
    f: Tensor  # outputs on the data
    data: Data


class Trained(NamedTuple):
    """R trained networks."""

    last: State
    loss: Tensor  # (R,)
    steps: Tensor  # (R,)  steps taken: fewer than asked where a run stopped early
    history: dict[str, Tensor]  # recorder -> (T, R, ...); a stopped run keeps its last value
    times: Tensor  # (T,)  the steps of the history


Recorder = Callable[[State], Tensor]
KEPT = 0.75  # of a batch: below it the runs that have stopped are left out, which copies the rest


class _Look(NamedTuple):
    """The network at some parameters; where autograd is to go back, with the graph."""

    leaves: Params
    f: Tensor
    cache: Any
    loss: Tensor


class _Batch(NamedTuple):
    """The runs under way: who they are, which still count, and where they stand."""

    which: Tensor  # (B,)
    live: Tensor  # (B,)  a run that has stopped goes along until enough have: see KEPT
    params: Params
    state: tuple[Any, ...]  # of the rule
    rate: Tensor  # (B,)
    data: Data


def pick(tree: Any, index: Tensor) -> Any:
    """The runs that index picks, of every tensor in a tuple of tuples."""
    if isinstance(tree, Tensor):
        return tree[index]
    if not isinstance(tree, tuple):
        return tree
    parts = [pick(part, index) for part in tree]
    return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)


def norm(D: Params) -> Tensor:
    """The Euclidean norm of a direction, (R,)."""
    return torch.stack([d.reshape(len(d), -1).square().sum(1) for d in D]).sum(0).sqrt()


def _runs(problem: Problem) -> int:
    """How many runs there are: every tensor of start and data has one entry a run."""
    if not isinstance(problem, Problem):
        kind = type(problem).__name__
        raise TypeError(f"problem is a {kind}: it must be a Problem, as signal_noise.problem gives")
    start, data = problem.start, problem.data
    if not isinstance(start, tuple) or not all(
        isinstance(p, Tensor) and p.dim() and p.is_floating_point() for p in start
    ):
        raise TypeError("start must be a tuple of floating-point tensors, runs first")
    if not hasattr(data, "_fields"):
        raise TypeError(f"data is a {type(data).__name__}: data must be a named tuple")
    named = {f"start[{i}]": p for i, p in enumerate(start)}
    named |= {f"data.{name}": x for name, x in data._asdict().items() if isinstance(x, Tensor)}
    R = len(start[0])
    for name, tensor in named.items():
        check.shape(name, tensor, (R, *tensor.shape[1:]))
    return R


def _look(problem: Problem, params: Params, data: Data, graph: bool = False) -> _Look:
    leaves = tuple(p.detach().requires_grad_(graph) for p in params)
    with torch.set_grad_enabled(graph):
        f, cache = problem.outputs(leaves, data)
        loss = problem.loss(f, data)
    check.shape("loss(f, data)", loss, (len(params[0]),))
    return _Look(leaves, f, cache, loss)


def _descent(problem: Problem, look: _Look, data: Data) -> Params:
    """-grad L, run by run."""
    if problem.descent is None:
        found = torch.autograd.grad(look.loss.sum(), look.leaves, allow_unused=True)
        for i, g in enumerate(found):
            if g is None:
                raise ValueError(f"start[{i}] does not enter the loss: leave it out of start")
        return tuple(-g for g in found)
    D = problem.descent(look.f, look.cache, data)
    if [d.shape for d in D] != [p.shape for p in look.leaves]:
        shapes = [tuple(d.shape) for d in D]
        raise ValueError(f"descent gives shapes {shapes}: they must be those of the parameters")
    return D


def _here(problem: Problem, data: Data) -> Here:
    """What a rule may ask of this step."""
    auto = problem.descent is None
    return Here(
        lambda params: _descent(problem, _look(problem, params, data, auto), data),
        norm if problem.norm is None else lambda D: problem.norm(D, data),  # type: ignore[misc]
    )


def train(
    problem: Problem,
    *,
    rule: str = "gd",
    eta: ArrayLike,
    steps: int,
    stop: float | None = None,
    record: Mapping[str, Recorder] | None = None,
    every: int = 1,
    **options: float,
) -> Trained:
    """Train all runs for `steps` steps of `rule`.

    eta is a number or one a run. A run whose loss on the data is <= stop is frozen there. Recorders
    see the state at steps 0, every, 2 every, ... `options` are the rule's own. Where the problem
    draws, each step descends on what it drew; loss and recorders see the data themselves.
    """
    R, auto = _runs(problem), problem.descent is None
    steps, every = check.count("steps", steps, 0), check.count("every", every)
    check.one_of("rule", rule, RULES)
    check_options(rule, options)
    if rule in SEES_COORDINATES and not problem.sees_coordinates:
        raise ValueError(
            f"rule = {rule!r}: {rule} sees coordinates, and the parameters of this problem are not "
            "weights in R^d; give a problem whose parameters are"
        )
    given = check.at_least("eta", eta, 0.0)
    if given.ndim:
        check.shape("eta", given, (R,))
    if stop is not None:
        check.shape("stop", check.positive("stop", stop), ())
    level = -torch.inf if stop is None else float(stop)
    eta_of = torch.tensor(given, dtype=problem.start[0].dtype).expand(R)

    batch = _Batch(
        torch.arange(R), torch.ones(R, dtype=torch.bool), tuple(p.detach() for p in problem.start),
        (), eta_of, problem.data,
    )  # fmt: skip
    drawn = problem.draws(problem.data) if problem.draws else None
    ends = tuple(p.clone() for p in batch.params)
    end_loss = torch.empty(R, dtype=ends[0].dtype)
    end_step = torch.full((R,), steps)
    rows: dict[str, list[Tensor]] = {name: [] for name in record or {}}
    latest: dict[str, Tensor] = {}
    times: list[int] = []

    for t in range(steps + 1):
        on_time, ended, look = bool(record) and t % every == 0, False, None
        if drawn is None or on_time or stop is not None or t == steps:
            again = drawn is None or problem.draws_labels
            look = _look(problem, batch.params, batch.data, graph=auto and again)
            _refuse_divergence(look, batch, t, eta_of)
            loss = look.loss.detach()
            done = batch.live if t == steps else batch.live & (loss <= level)
            ended = bool(done.any())
            if record and (on_time or ended):
                latest = _noted(record, latest, look, batch, R)
            if on_time:
                times.append(t)
                for name, row in latest.items():
                    rows[name].append(row)
            if ended:
                for whole, part in zip((*ends, end_loss), (*batch.params, loss), strict=True):
                    whole[batch.which[done]] = part[done]
                end_step[batch.which[done]] = t
                batch = batch._replace(live=batch.live & ~done)
                if not batch.live.any():
                    break
        batch = _stepped(problem, batch, look, drawn, t, eta_of, rule, options)
        del look  # its tensors make room for those of the next step: 10 % of a small step's time
        if ended and batch.live.sum() <= KEPT * len(batch.live):
            batch = pick(batch, batch.live)

    last = State(ends, _look(problem, ends, problem.data).f.detach(), problem.data)
    history = {name: torch.stack(values) for name, values in rows.items()}
    return Trained(last, end_loss, end_step, history, torch.tensor(times))


def _noted(
    record: Mapping[str, Recorder], latest: dict[str, Tensor], look: _Look, batch: _Batch, R: int
) -> dict[str, Tensor]:
    """The newest row of each recorder, for all R runs: a stopped run keeps its last value."""
    now, rows = State(batch.params, look.f.detach(), batch.data), {}
    for name, recorder in record.items():
        value = recorder(now)
        if not isinstance(value, Tensor) or value.shape[:1] != batch.which.shape:
            raise TypeError(
                f"record[{name!r}] gives {value!r:.60}: it must give a tensor with one entry a run"
            )
        if name in latest:
            rows[name] = latest[name].clone()
            rows[name][batch.which[batch.live]] = value[batch.live]
        else:
            rows[name] = value.clone()
    return rows


def _stepped(
    problem: Problem,
    batch: _Batch,
    look: _Look | None,
    drawn: Iterator[dict[str, Tensor]] | None,
    t: int,
    eta: Tensor,
    rule: str,
    options: dict[str, float],
) -> _Batch:
    """The runs of a batch after one step, on the data or on what it draws."""
    seen, auto = batch.data, problem.descent is None
    if drawn is not None:
        fields = next(drawn, None)
        if fields is None:
            raise ValueError(f"draws ended at step {t}: they must go on")
        if len(batch.which) < len(eta):
            fields = {name: pick(value, batch.which) for name, value in fields.items()}
        seen = batch.data._replace(**fields)
        if look is not None and problem.draws_labels:
            look = look._replace(loss=problem.loss(look.f, seen))
        else:
            look = _look(problem, batch.params, seen, graph=auto)
        _refuse_divergence(look, batch, t, eta)
    assert look is not None
    D = _descent(problem, look, seen)
    del look
    here = _here(problem, seen)
    params, state = RULES[rule](batch.params, D, batch.state, batch.rate, here, **options)
    return batch._replace(params=params, state=state)


def _refuse_divergence(look: _Look, batch: _Batch, t: int, eta: Tensor) -> None:
    """Name the first run whose outputs or loss are not finite."""
    f = look.f.detach()
    if torch.isfinite(f.sum() + look.loss.detach().sum()):
        return  # where only the sum overflows, what follows finds nothing
    fine = torch.isfinite(f).reshape(len(f), -1).all(1) & torch.isfinite(look.loss.detach())
    fine |= ~batch.live
    if not fine.all():
        bad = int(batch.which[~fine][0])
        raise FloatingPointError(
            f"run {bad} diverged at step {t}: eta = {float(eta[bad]):g} is too large; "
            "try a smaller eta"
        )
