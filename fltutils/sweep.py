"""A map over independent runs, stored as they finish.

The cells of a sweep are dictionaries of parameters. In process by default; any executor with the
`submit` of concurrent.futures spreads them over cores, a cluster or a cloud. With a store, every
finished cell is one file, written whole, named by the cell's parameters and the code that computed
it: a killed sweep resumes and loses nothing.
"""

import hashlib
import inspect
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, as_completed
from pathlib import Path
from typing import Any

import fltutils

Cell = Mapping[str, Any]


def key(function: Callable[..., Any], cell: Cell) -> str:
    """A name for a cell's result: it changes with the parameters, the function and the package."""
    code = inspect.getsource(function) + "".join(
        path.read_text() for path in sorted(Path(fltutils.__file__).parent.glob("*.py"))
    )
    text = json.dumps([code, sorted(cell.items())], default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _plain(value: Any) -> Any:
    """An array as a list, entry by entry (its repr leaves entries out); anything else as repr."""
    return value.tolist() if hasattr(value, "tolist") else repr(value)


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
