"""An experiment over named axes.

An experiment is a pure function of named parameters, one of which is `run`, the identity of one
run, or `runs`, an array of them. `over(f, runs=20, d=[100, 400])` calls it wherever its axes meet
and gives a table, an xarray.DataArray with the dimensions run and d; what f gives under several
names becomes an xarray.Dataset.
"""

import inspect
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from fltutils import check
from fltutils import store as stores
from fltutils.train import Trained

Experiment = Callable[..., Any]
Table = Any  # xarray.DataArray or xarray.Dataset
Part = xr.Variable  # dimensions by name and values, of the rows of one block
AXES = (list, range, np.ndarray, xr.DataArray)  # what spans an axis; anything else is one value


class Plan(NamedTuple):
    """How `over` calls an experiment."""

    block: int | Callable[..., int] | None = None  # rows at once, or how many for its parameters
    per_run: tuple[str, ...] = ()  # parameters that may be arrays with one entry a row
    version: int = 1  # of what it computes: stored blocks of another one do not count


def experiment(
    *,
    block: int | Callable[..., int] | None = None,
    per_run: tuple[str, ...] = (),
    version: int = 1,
) -> Callable[[Experiment], Experiment]:
    """Say how `over` calls the function below.

    Rows, a run at one point of the axes in `per_run`, are worked off `block` at a time. The size of
    a block belongs to the experiment and not to the machine, so that its digits do not depend on
    where it ran. Raise `version` by hand when the experiment computes something else.
    """

    def mark(f: Experiment) -> Experiment:
        names = list(inspect.signature(f).parameters)
        if unknown := [name for name in per_run if name not in names]:
            raise ValueError(f"per_run: {f.__name__} has no parameter {unknown[0]!r}")
        asked = list(inspect.signature(block).parameters) if callable(block) else []
        if lost := [name for name in asked if name not in names]:
            raise ValueError(f"block: it asks for {lost[0]!r}, which {f.__name__} does not take")
        vars(f)["plan"] = Plan(block, per_run, check.count("version", version))
        return f

    return mark


def over(
    f: Experiment,
    *,
    runs: int | list[int] | range | np.ndarray = 1,
    executor: Executor | None = None,
    store: str | Path | None = None,
    **given: Any,
) -> Table:
    """The table of f over the axes given: lists, ranges and arrays. Other values are passed on.

    `runs` is their number, or their identities. What was computed once is taken from memory.
    An executor with the `submit` of concurrent.futures, or Dask's `client.get_executor()`, works on
    blocks side by side; a `store` is a folder that keeps each block once it is finished, by the
    name, version and parameters of f, so that a run that was killed goes on where it stopped.
    """
    plan, names = getattr(f, "plan", Plan()), inspect.signature(f).parameters
    if unknown := [name for name in given if name not in names or name in ("run", "runs")]:
        allowed = ", ".join(name for name in names if name not in ("run", "runs"))
        raise TypeError(f"{f.__name__} has no parameter {unknown[0]!r}; it has: {allowed}")
    if not {"run", "runs"} & set(names):
        raise TypeError(f"{f.__name__} must take `run`, or `runs`, and draw by it")
    identities = check.whole(
        "runs", np.arange(check.count("runs", runs)) if np.ndim(runs) == 0 else runs, 0
    )
    axes = {name: np.asarray(value) for name, value in given.items() if isinstance(value, AXES)}
    for name, values in axes.items():
        check.shape(name, values, (None,))
        if not len(values):
            raise ValueError(f"{name} = []: an axis needs a value")
    fixed = {name: value for name, value in given.items() if name not in axes}
    tasks = list(_tasks(f, plan, identities, axes, fixed))
    memory: dict[str, dict[str, Part]] = vars(f).setdefault("memory", {})
    keys = [_key(task) for task in tasks]
    new = {key: task for key, task in zip(keys, tasks, strict=True) if key not in memory}
    found = _work(f, plan, list(new.values()), executor, store)
    memory |= dict(zip(new, found, strict=True))
    return _table([memory[key] for key in keys], plan, identities, axes)


def _key(parameters: Mapping[str, Any], stored: bool = False) -> str:
    """Parameters as text: numbers, words and lists by value, functions by what they are."""

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray | np.generic | xr.DataArray):
            return np.asarray(value).tolist()
        if inspect.isfunction(value) and not stored:
            return f"{value.__qualname__} {id(value)}"
        raise TypeError(f"a parameter is {value!r:.60}: it must be a number, a word or a list")

    return json.dumps(dict(sorted(parameters.items())), default=plain)


def _tasks(
    f: Experiment,
    plan: Plan,
    identities: np.ndarray,
    axes: Mapping[str, np.ndarray],
    fixed: Mapping[str, Any],
) -> Iterator[dict[str, Any]]:
    """The calls of f, in the order of the axes: those that differ within a block come last."""
    outer = [name for name in axes if name not in plan.per_run]
    inner = [name for name in axes if name in plan.per_run]
    for point in itertools.product(*(axes[name].tolist() for name in outer)):
        cell = {**fixed, **dict(zip(outer, point, strict=True))}
        if "run" in inspect.signature(f).parameters:
            for run in identities.tolist():
                yield {**cell, "run": run}
            continue
        mesh = np.meshgrid(*(axes[name] for name in inner), identities, indexing="ij")
        rows = {name: m.ravel() for name, m in zip((*inner, "runs"), mesh, strict=True)}
        size = _block(f, plan, cell) or mesh[-1].size
        for first in range(0, mesh[-1].size, size):
            yield {**cell, **{name: r[first : first + size] for name, r in rows.items()}}


def _block(f: Experiment, plan: Plan, cell: Mapping[str, Any]) -> int | None:
    """The rows of a block at one point of the axes."""
    if not callable(plan.block):
        return plan.block
    defaults = {n: p.default for n, p in inspect.signature(f).parameters.items()}
    return plan.block(*((defaults | {**cell})[n] for n in inspect.signature(plan.block).parameters))


def _parts(f: Experiment, task: Mapping[str, Any]) -> dict[str, Part]:
    """What a call gives, under its names, with `run` as the first dimension."""
    value = f(**task)
    lead = ("run",) if "runs" in task else ()
    parts = {}
    for name, one in value.items() if isinstance(value, Mapping) else {"": value}.items():
        if isinstance(one, xr.DataArray):
            part = xr.Variable(one.dims, one.values)
            part.attrs = {dim: one[dim].values for dim in one.dims if dim in one.coords}
        else:
            array = np.asarray(one, dtype=np.float64)
            if array.ndim != len(lead):
                raise ValueError(
                    f"{f.__name__} gives {name or 'values'} of shape {array.shape}: "
                    "name the axes beside `run`, by an xarray.DataArray"
                )
            part = xr.Variable(lead, array)
        if lead and (part.dims[:1] != lead or part.shape[0] != len(task["runs"])):
            raise ValueError(
                f"{f.__name__} gives {name or 'values'} with {dict(part.sizes)}: "
                f"the first dimension must be `run`, of {len(task['runs'])}"
            )
        parts[name] = (
            part if lead else xr.Variable(("run", *part.dims), part.values[None], part.attrs)
        )
    return parts


def _work(
    f: Experiment,
    plan: Plan,
    tasks: list[dict[str, Any]],
    executor: Executor | None,
    store: str | Path | None,
) -> list[dict[str, Part]]:
    """The parts of every task, in their order: stored ones are read, the others computed."""
    keys = [_key({"version": plan.version, **task}, stored=True) for task in tasks] if store else []
    with stores.opened(store, f.__name__) as kept:
        done = {i: parts for i, key in enumerate(keys) if (parts := stores.read(kept, key))}
        if done:
            _hold(f, tasks, done, store)

        def finish(i: int, parts: dict[str, Part]) -> None:
            done[i] = parts
            if keys:
                stores.write(kept, keys[i], parts)

        todo = [i for i in range(len(tasks)) if i not in done]
        if executor is None:
            for i in todo:
                finish(i, _parts(f, tasks[i]))
        elif todo:
            _spread(f, {i: tasks[i] for i in todo}, executor, finish)
    return [done[i] for i in range(len(tasks))]


def _hold(
    f: Experiment,
    tasks: list[dict[str, Any]],
    done: Mapping[int, dict[str, Part]],
    store: str | Path | None,
) -> None:
    """Compute one stored block again: what a version does not tell, its numbers do."""
    i = sorted(done)[len(done) * 7919 % 1009 % len(done)]
    if stores.packed(_parts(f, tasks[i])) != stores.packed(done[i]):
        raise ValueError(
            f"store = {str(store)!r}: {f.__name__} gives other numbers now than it stored there "
            "(other code, or another machine): raise its version, or remove its file"
        )


def _shipped(payload: bytes, task: dict[str, Any]) -> dict[str, Part]:
    """A call in another process, of a function that may stand in a notebook."""
    import cloudpickle

    return _parts(cloudpickle.loads(payload), task)


def _spread(
    f: Experiment,
    tasks: Mapping[int, dict[str, Any]],
    executor: Executor,
    finish: Callable[[int, dict[str, Part]], None],
) -> None:
    """Give tasks to an executor; where one fails, the others are called off and the done kept."""
    import cloudpickle

    memory = vars(f).pop("memory")  # tables stay here
    payload = cloudpickle.dumps(f)
    vars(f)["memory"] = memory
    futures = {executor.submit(_shipped, payload, task): i for i, task in tasks.items()}
    waiting = set(futures)
    try:
        for future in as_completed(futures):
            waiting.discard(future)
            finish(futures[future], future.result())
    except BaseException:
        for future in waiting:
            if not future.cancel() and future.done() and not future.exception():
                finish(futures[future], future.result())
        raise


def _table(
    found: list[dict[str, Part]], plan: Plan, identities: np.ndarray, axes: Mapping[str, np.ndarray]
) -> Table:
    """The parts of all tasks as one table: run, the axes, then what a part has beside."""
    ordered = [n for n in axes if n not in plan.per_run] + [n for n in axes if n in plan.per_run]
    sizes = [*(len(axes[name]) for name in ordered), len(identities)]
    tables = {}
    for name, first in found[0].items():
        values = np.concatenate([np.asarray(parts[name].values) for parts in found])
        inside = first.dims[1:]
        array = xr.DataArray(
            values.reshape(*sizes, *first.shape[1:]),
            dims=(*ordered, "run", *inside),
            coords={"run": identities, **axes},
        )
        array = array.assign_coords({d: first.attrs[d] for d in inside if d in first.attrs})
        tables[name] = array.transpose("run", *axes, *inside)
    return tables[""] if set(tables) == {""} else xr.Dataset(tables)


def history(run: Trained, **inside: str) -> dict[str, xr.DataArray]:
    """What the recorders of a training saw: over run, step, and the dimension named for it."""
    step = {"step": run.times.numpy()}
    return {
        name: xr.DataArray(
            rows.transpose(0, 1).numpy(),
            dims=("run", "step", *((inside[name],) if name in inside else ())),
            coords=step,
        )
        for name, rows in run.history.items()
    }


def groups(table: Table, count: int) -> Table:
    """Means over `count` groups of runs: the same dimensions, and so many runs."""
    R = table.sizes["run"]
    if R % check.count("count", count):
        raise ValueError(f"count = {count}: {R} runs do not fall into {count} equal groups")
    return table.coarsen(run=R // count).mean().assign_coords(run=np.arange(count))
