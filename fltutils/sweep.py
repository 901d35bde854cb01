"""A map over independent runs, stored as they finish.

The cells of a sweep are dictionaries of parameters. In process by default; any executor with the
`submit` of concurrent.futures spreads them over cores, a cluster or a cloud. With a store, every
finished cell is one file, written whole, named by the cell's parameters and the code that computed
it: a killed sweep resumes and loses nothing.
"""

import dis
import functools
import hashlib
import inspect
import json
import marshal
import os
import sysconfig
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, as_completed
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import fltutils

Cell = Mapping[str, Any]


def key(function: Callable[..., Any], cell: Cell) -> str:
    """A name for a cell's result: it changes with the parameters, the function and the package.

    A function counts with all that it uses: helpers, constants, modules of the user's, recursively.
    """
    package = [path.read_text() for path in sorted(_folder().glob("*.py"))]
    text = json.dumps([package, *_used((function, *sorted(cell.items())), {})])
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _plain(value: Any) -> Any:
    """An array as a list, entry by entry (its repr leaves entries out); anything else as repr."""
    return value.tolist() if hasattr(value, "tolist") else repr(value)


def _folder() -> Path:
    return Path(fltutils.__file__).parent


def _own(file: str) -> bool:
    """Is this a file of the user's? The package counts as a whole, what is installed by name."""
    installed = [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")]
    path = Path(file).resolve()
    return not any(path.is_relative_to(folder.resolve()) for folder in (_folder(), *installed))


def _source(function: FunctionType) -> str:
    """The text of a function, or, where it was made without a file, what it was compiled to."""
    try:
        return inspect.getsource(function)
    except OSError:
        return marshal.dumps(function.__code__).hex()


def _names(code: CodeType) -> set[str]:
    """The global names that a function's code reads, in nested functions too."""
    read = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
    return read.union(*(_names(c) for c in code.co_consts if isinstance(c, CodeType)))


def _used(value: Any, seen: dict[int, Any]) -> Iterator[Any]:
    """What a value is, and what its parts, or the functions in it, use; each function once."""
    parts: Iterable[Any] = ()
    if id(value) in seen:
        return
    if inspect.isfunction(value):
        yield value.__qualname__
        if _own(value.__code__.co_filename):
            yield _source(value)
            inner = inspect.getclosurevars(value).nonlocals
            space = {**value.__globals__, **inner}
            names = sorted({*_names(value.__code__), *inner} & space.keys())
            parts = [value.__defaults__, value.__kwdefaults__, *((n, space[n]) for n in names)]
    elif inspect.ismodule(value):
        file = getattr(value, "__file__", None)
        yield value.__name__
        if file and _own(file):
            yield Path(file).read_text()
            parts = [v for _, v in sorted(vars(value).items()) if inspect.ismodule(v)]
    elif inspect.isclass(value):
        yield value.__qualname__
        parts = [v for _, v in sorted(vars(value).items()) if inspect.isfunction(v)]
    elif inspect.ismethod(value):
        parts = (value.__func__, value.__self__)
    elif isinstance(value, functools.partial):
        parts = (value.func, value.args, value.keywords)
    elif callable(value) and hasattr(value, "__wrapped__"):  # functools.cache and its like
        parts = (value.__wrapped__,)
    elif isinstance(value, dict):
        yield len(value)
        parts = value.items()
    elif isinstance(value, list | tuple):
        yield len(value)
        parts = value
    elif hasattr(value, "__dict__") and type(value).__repr__ is object.__repr__:
        yield type(value).__qualname__
        parts = [type(value), vars(value)]
    else:
        yield _plain(value)
        return
    seen[id(value)] = value  # kept: the id of an object that is gone may come again
    for part in parts:
        yield from _used(part, seen)


def write_whole(path: Path, text: str) -> None:
    """Write a file so that it is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "w") as part:
            part.write(text)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def sweep(
    function: Callable[..., Any],
    cells: Iterable[Cell],
    *,
    executor: Executor | None = None,
    store: Path | str | None = None,
) -> list[Any]:
    """[function(**cell) for cell in cells], in that order; results must be JSON if stored."""
    if store and Path(store).exists() and not Path(store).is_dir():
        raise ValueError(f"store = {str(store)!r}: store must be a folder, this is a file")
    cells = list(cells)
    results: dict[int, Any] = {}
    paths = [Path(store) / f"{key(function, c)}.json" if store else None for c in cells]

    def finish(i: int, value: Any) -> None:
        path = paths[i]
        if path is not None:
            text = json.dumps(value)
            write_whole(path, text)
            value = json.loads(text)  # the same whether computed now or read later
        results[i] = value

    todo = []
    for i, path in enumerate(paths):
        if path is not None and path.exists():
            results[i] = json.loads(path.read_text())
        else:
            todo.append(i)
    if executor is None:
        for i in todo:
            finish(i, function(**cells[i]))
    else:
        futures = {executor.submit(function, **cells[i]): i for i in todo}
        try:
            for future in as_completed(futures):
                finish(futures[future], future.result())
        except BaseException:
            for future, i in futures.items():  # stop the rest, but keep what has finished
                over = not future.cancel() and future.done() and i not in results
                if over and future.exception() is None:
                    finish(i, future.result())
            raise
    return [results[i] for i in range(len(cells))]
