"""An experiment over named axes.

An experiment is a pure function of named parameters, one of which is `run`, the identity of one
run, or `runs`, an array of them. `over(f, runs=20, d=[100, 400])` calls it wherever its axes meet
and gives a table, an xarray.DataArray with the dimensions run and d; what f gives under several
names becomes an xarray.Dataset.
"""

import inspect
import itertools
import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, as_completed
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import xarray as xr

from fltutils import check
from fltutils import store as stores
from fltutils.train import Trained

Experiment = Callable[..., Any]
Table = Any  # xarray.DataArray or xarray.Dataset
Part = xr.Variable  # dimensions by name and values, of the rows of one block
Parts = dict[str, Part]  # what one call gave, under its names
Key = tuple[Any, ...]  # a call's parameters as text, and the functions among them
AXES = (list, range, np.ndarray, xr.DataArray)  # what spans an axis; anything else is one value


MEMORY: WeakKeyDictionary[Experiment, dict[Key, Parts]] = WeakKeyDictionary()


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
        if (per_run or block is not None) and "runs" not in names:
            raise ValueError(f"per_run, block: {f.__name__} must take `runs`, many at once")
        asked = list(inspect.signature(block).parameters) if callable(block) else []
        if lost := [name for name in asked if name not in names]:
            raise ValueError(f"block: it asks for {lost[0]!r}, which {f.__name__} does not take")
        if rows := [name for name in asked if name in ("runs", *per_run)]:
            raise ValueError(f"block: it asks for {rows[0]!r}, which differs from row to row")
        if block is not None and not callable(block):
            check.count("block", block)
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

    `runs` is their number, or their identities. What was computed once is taken from memory, as
    long as f is the same function: define it anew where something else that it uses has changed.
    An executor with the `submit` of concurrent.futures, or Dask's `client.get_executor()`, works on
    blocks side by side; a `store` is a folder that keeps each block once it is finished, by the
    name, version and parameters of f, so that a run that was killed goes on where it stopped.
    """
    plan = getattr(f, "plan", Plan())
    _refuse(f, given)
    identities = check.whole(
        "runs", np.arange(check.count("runs", runs)) if np.ndim(runs) == 0 else runs, 0
    )
    check.shape("runs", identities, (None,))
    if len(set(identities.tolist())) < len(identities):
        raise ValueError(f"runs = {identities.tolist()}: a run counts once")
    axes = {name: np.asarray(value) for name, value in given.items() if isinstance(value, AXES)}
    for name, values in axes.items():
        check.shape(name, values, (None,))
        if not len(values):
            raise ValueError(f"{name} = []: an axis needs a value")
    fixed = {name: value for name, value in given.items() if name not in axes}
    tasks = list(_tasks(f, plan, identities, axes, fixed))
    keys = [_key(_defaults(f) | task) for task in tasks]  # a default that is given is the same call
    memory = MEMORY.setdefault(f, {})
    _work(f, plan, dict(zip(keys, tasks, strict=True)), memory, executor, store)
    return _table(f, [memory[key] for key in keys], plan, identities, axes)


def _refuse(f: Experiment, given: Mapping[str, Any]) -> None:
    """Raise where f cannot be called so."""
    names = list(inspect.signature(f).parameters)
    own = [name for name in names if name not in ("run", "runs")]
    if len(names) - len(own) != 1:
        raise TypeError(f"{f.__name__} must take `run`, or `runs`, and draw by it")
    if unknown := [name for name in given if name not in own]:
        raise TypeError(f"{f.__name__} has no parameter {unknown[0]!r}; it has: {', '.join(own)}")
    if lacking := [name for name in own if name not in {**_defaults(f), **given}]:
        raise TypeError(f"{f.__name__} needs {lacking[0]!r}: it has no value of its own")


def _key(parameters: Mapping[str, Any], stored: bool = False) -> Key:
    """Parameters as text, numbers, words and lists by value; functions as they are."""
    functions: list[Experiment] = []

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray | np.generic | xr.DataArray):
            return np.asarray(value).tolist()
        if stored or not callable(value):
            raise TypeError
        functions.append(value)
        return {"function": len(functions)}

    texts = []
    for name, value in sorted(parameters.items()):
        try:
            texts.append(f"{name}: {json.dumps(value, default=plain)}")
        except TypeError:
            more = ": what is kept in a file needs a name" if stored else ", or a function"
            raise TypeError(
                f"{name} = {value!r:.60}: {name} must be numbers, words or lists of them{more}"
            ) from None
    return "; ".join(texts), *functions


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
        size = mesh[-1].size if plan.block is None else _block(f, plan, cell)
        for first in range(0, mesh[-1].size, size):
            yield {**cell, **{name: r[first : first + size] for name, r in rows.items()}}


def _block(f: Experiment, plan: Plan, cell: Mapping[str, Any]) -> int:
    """The rows of a block at one point of the axes."""
    if not callable(plan.block):
        return int(plan.block or 1)
    of_f = _defaults(f) | {**cell}
    asked = inspect.signature(plan.block).parameters
    return check.count("block", plan.block(*(of_f[name] for name in asked)))


def _defaults(f: Experiment) -> dict[str, Any]:
    """What the parameters of f are unless they are given."""
    return {
        name: p.default
        for name, p in inspect.signature(f).parameters.items()
        if p.default is not p.empty
    }


def _parts(f: Experiment, task: Mapping[str, Any]) -> Parts:
    """What a call gives, under its names, with `run` as the first dimension."""
    value = f(**task)
    lead = ("run",) if "runs" in task else ()
    parts = {}
    for name, one in value.items() if isinstance(value, Mapping) else {"": value}.items():
        if isinstance(one, xr.DataArray):
            part = xr.Variable(one.dims, np.asarray(one.values, dtype=np.float64))
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
    tasks: Mapping[Key, dict[str, Any]],
    memory: dict[Key, Parts],
    executor: Executor | None,
    store: str | Path | None,
) -> None:
    """Put the parts of every task into memory, each when it is finished.

    Stored ones are read, the others computed; a store gets what was only in memory.
    """
    names, version = {}, {"version": plan.version}
    if store:
        known = _defaults(f) | version
        names = {key: _key(known | task, stored=True)[0] for key, task in tasks.items()}
    with stores.opened(store, f.__name__) if store else nullcontext() as kept:

        def finish(key: Key, parts: Parts) -> None:
            memory[key] = parts
            if kept:
                stores.write(kept, names[key], parts)

        done = {key: stores.read(kept, names[key]) for key in tasks} if kept else {}
        done = {key: parts for key, parts in done.items() if parts}
        for key in tasks:
            if key in memory and key not in done:
                finish(key, memory[key])
        if new := {key: parts for key, parts in done.items() if key not in memory}:
            key = secrets.choice(list(new))  # another one each time, so that none hides
            _hold(f, tasks[key], new[key], store)
            memory |= new
        todo = {key: task for key, task in tasks.items() if key not in memory}
        if executor is None:
            for key, task in todo.items():
                finish(key, _parts(f, task))
        elif todo:
            _spread(f, todo, executor, finish)


def _hold(f: Experiment, task: dict[str, Any], then: Parts, store: str | Path | None) -> None:
    """Compute a stored block again: what a version does not tell, its numbers do."""
    if not stores.alike(_parts(f, task), then):
        raise ValueError(
            f"store = {str(store)!r}: {f.__name__} gives other numbers now than it stored there, "
            f"at {_key(task)[0]:.200}: raise its version, or remove {f.__name__}.db"
        )


def _shipped(f: bytes, task: bytes, call: str) -> Parts:
    """A call in another process, of functions that may stand in a notebook.

    Dask gives the last answer, also a fault, to what is asked again: each call has a name.
    """
    import cloudpickle

    return _parts(cloudpickle.loads(f), cloudpickle.loads(task))


def _spread(
    f: Experiment,
    tasks: Mapping[Key, dict[str, Any]],
    executor: Executor,
    finish: Callable[[Key, Parts], None],
) -> None:
    """Give tasks to an executor; where one fails, the others are called off and the done kept."""
    import cloudpickle

    shipped, call = cloudpickle.dumps(f), secrets.token_hex(8)
    futures = {
        executor.submit(_shipped, shipped, cloudpickle.dumps(task), call): key
        for key, task in tasks.items()
    }
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
    f: Experiment,
    found: list[Parts],
    plan: Plan,
    identities: np.ndarray,
    axes: Mapping[str, np.ndarray],
) -> Table:
    """The parts of all tasks as one table: run, the axes, then what a part has beside."""
    ordered = [n for n in axes if n not in plan.per_run] + [n for n in axes if n in plan.per_run]
    sizes = [*(len(axes[name]) for name in ordered), len(identities)]
    tables = {}
    for name, first in found[0].items():
        for parts in found:
            if name not in parts or not _same_form(parts[name], first):
                forms = [dict(p[name].sizes) if name in p else None for p in (found[0], parts)]
                raise ValueError(
                    f"{f.__name__} gives {name or 'values'} with {forms[0]} at one point of the "
                    f"axes and {forms[1]} at another, or other coordinates: it must be of one form"
                )
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


def _same_form(one: Part, other: Part) -> bool:
    """Whether two parts have the same dimensions, sizes and coordinates beside the runs."""
    return (
        one.dims == other.dims
        and one.shape[1:] == other.shape[1:]
        and one.attrs.keys() == other.attrs.keys()
        and all(np.array_equal(one.attrs[d], other.attrs[d]) for d in one.attrs)
    )


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
    means = table.coarsen(run=R // count).reduce(np.mean)  # hides no run without a value
    return means.assign_coords(run=np.arange(count))
