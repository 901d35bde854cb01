"""A sweep: in order, on any executor, resumed without computing anything twice."""

import functools
import hashlib
import json
import linecache
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import fltutils
from fltutils.sweep import _used, key, sweep, write_whole

CELLS = [{"n": n, "c": c} for n in (1, 2, 3) for c in (0.5, 2.0)]
EXPECTED = [{"sum": cell["n"] + cell["c"]} for cell in CELLS]


def cell(n: int, c: float) -> dict[str, float]:
    return {"sum": n + c}


def logged(n: int, c: float, log: str) -> dict[str, float]:
    """A cell that says that it ran."""
    with open(log, "a") as f:
        f.write(f"{n} {c}\n")
    return {"sum": n + c}


def test_in_process_without_a_store() -> None:
    assert sweep(cell, CELLS) == EXPECTED
    assert sweep(cell, iter(CELLS)) == EXPECTED
    assert sweep(cell, []) == []


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_any_executor_gives_the_same_in_the_same_order(
    pool: Callable[[int], Executor], tmp_path: Path
) -> None:
    with pool(2) as executor:
        assert sweep(cell, CELLS, executor=executor) == EXPECTED
        assert sweep(cell, CELLS, executor=executor, store=tmp_path) == EXPECTED
        assert len(list(tmp_path.glob("*.json"))) == len(CELLS)
        assert sweep(cell, CELLS, executor=executor, store=str(tmp_path)) == EXPECTED


def test_cells_that_finish_out_of_order_come_back_in_order() -> None:
    def slow(i: int) -> int:
        time.sleep(0.02 * (4 - i))
        return i

    with ThreadPoolExecutor(4) as executor:
        assert sweep(slow, [{"i": i} for i in range(4)], executor=executor) == [0, 1, 2, 3]


@pytest.mark.parametrize("threads", [0, 1, 2])
def test_a_failed_sweep_resumes_and_computes_nothing_twice(threads: int, tmp_path: Path) -> None:
    log, mended, store = tmp_path / "log", tmp_path / "mended", tmp_path / "store"

    def fragile(i: int) -> list[int]:
        with log.open("a") as f:
            f.write(f"{i}")
        if i == 3 and not mended.exists():
            time.sleep(0.05)
            raise RuntimeError("the machine is gone")
        return [i]

    def run() -> list[Any]:
        cells = [{"i": i} for i in range(6)]
        if not threads:
            return sweep(fragile, cells, store=store)
        with ThreadPoolExecutor(threads) as executor:
            return sweep(fragile, cells, store=store, executor=executor)

    with pytest.raises(RuntimeError, match="the machine is gone"):
        run()
    done = {json.loads(path.read_text())[0] for path in store.iterdir()}
    assert {0, 1, 2} <= done
    first = log.read_text()
    assert len({int(i) for i in first} - {3} - done) <= threads  # at most what was running is lost
    mended.touch()
    assert run() == [[i] for i in range(6)]
    assert sorted(log.read_text()[len(first) :]) == sorted(str(i) for i in set(range(6)) - done)
    run()
    assert len(log.read_text()) == len(first) + 6 - len(done)


class Ready(Executor):
    """Futures as an executor may leave them when one fails."""

    def __init__(self) -> None:
        self.futures: list[Future[Any]] = []

    def submit(self, function: Callable[..., Any], /, *_: Any, i: int, **__: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if i:  # the first has not begun
            future.set_running_or_notify_cancel()
        if i == 1:
            future.set_result(["done"])
        if i in (2, 3):
            future.set_exception(RuntimeError("the machine is gone"))
        self.futures.append(future)
        return future


def test_what_is_done_is_kept_and_what_waits_is_cancelled(tmp_path: Path) -> None:
    executor = Ready()
    with pytest.raises(RuntimeError, match="the machine is gone"):
        sweep(abs, [{"i": i} for i in range(5)], executor=executor, store=tmp_path)
    assert [f.cancelled() for f in executor.futures] == [True, False, False, False, False]
    assert [json.loads(path.read_text()) for path in tmp_path.iterdir()] == [["done"]]


@pytest.mark.slow
def test_a_killed_sweep_leaves_whole_files_and_resumes(tmp_path: Path) -> None:
    """A real process, killed as the kernel kills, between and inside cells."""
    program = tmp_path / "program.py"
    program.write_text(
        "import os, signal, sys\n"
        "from fltutils.sweep import sweep\n"
        "A, B, C, D, E = range(5)\n"  # in one order, whatever the process's hashes are
        "def cell(i):\n"
        "    print(i, flush=True, file=(None, A, B, C, D, E)[0])\n"
        "    if i == int(os.environ['KILLED_AT']):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return {'value': [i] * 1000}\n"
        "sweep(cell, [{'i': i} for i in range(6)], store=sys.argv[1])\n"
    )
    store = tmp_path / "store"
    ran: list[str] = []
    for killed_at in (2, 5, 9):
        done = subprocess.run(
            [sys.executable, str(program), str(store)],
            capture_output=True,
            text=True,
            env={**os.environ, "KILLED_AT": str(killed_at), "PYTHONHASHSEED": str(killed_at)},
        )
        assert done.returncode == (-signal.SIGKILL if killed_at < 6 else 0), done.stderr
        ran.append(" ".join(done.stdout.split()))
        for path in store.iterdir():
            assert len(json.loads(path.read_text())["value"]) == 1000
    assert ran == ["0 1 2", "2 3 4 5", "5"]


def test_what_is_computed_is_what_is_read_back(tmp_path: Path) -> None:
    """Also where JSON has no word for it: a tuple becomes a list at once, not on the second day."""

    def pair(x: float) -> tuple[float, float]:
        return x, float("nan")

    first, again = (sweep(pair, [{"x": 0.1}], store=tmp_path) for _ in range(2))
    assert repr(first) == repr(again) == "[[0.1, nan]]"


@given(st.floats(allow_nan=False))
def test_floats_survive_the_store(x: float) -> None:
    assert json.loads(json.dumps(x)) == x


def test_a_write_that_fails_leaves_the_old_file_and_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "very" / "deep" / "result.json"
    write_whole(path, "old")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_whole(path, "new")
    assert [p.name for p in path.parent.iterdir()] == ["result.json"]
    assert path.read_text() == "old"


def test_the_key_names_parameters_function_and_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other(n: int, c: float) -> dict[str, float]:
        return {"sum": c + n}

    base = key(cell, CELLS[0])
    assert re.fullmatch("[0-9a-f]{24}", base)
    assert key(cell, dict(reversed(CELLS[0].items()))) == base
    assert len({key(cell, c) for c in CELLS}) == len(CELLS)
    assert key(other, CELLS[0]) != base
    package = tmp_path / "fltutils"
    package.mkdir()
    for path in Path(fltutils.__file__).parent.glob("*.py"):
        (package / path.name).write_text(path.read_text())
    monkeypatch.setattr(fltutils, "__file__", str(package / "__init__.py"))
    assert key(cell, CELLS[0]) == base
    with (package / "rules.py").open("a") as f:
        f.write("# changed\n")
    assert key(cell, CELLS[0]) != base


HELPERS = """
import functools
import numpy as np
import helper
from collections import namedtuple
Pair = namedtuple("Pair", "value slope")
RATE, SIZE, TABLE = 2.0, (1, 2, 2), np.zeros(5000)
ACT = Pair(lambda z: z + 1, None)
class Model:
    def __init__(self, width): self.width = width
    def run(self, x): return x * self.width
MODEL = Model(3)
def far(x): return x * 3
def near(x): return [far(y) for y in x]
@functools.cache
def kept(x): return x - 1
def even(n): return n == 0 or odd(n - 1)
def odd(n): return n != 0 and even(n - 1)
def unused(x): return x
def outer(y):
    def inner(x=RATE, scale=SIZE):
        return near(x), y, helper.twice(x), ACT.value(x), even(x), MODEL.run(x), TABLE, kept(x)
    return inner
work = outer(5)
half = functools.partial(lambda x, y: x / y, y=7)
"""


def worker(source: str, name: str = "work") -> Callable[..., Any]:
    """A function of a cell as a notebook has it: its text is known to linecache alone."""
    file = f"/tmp/ipykernel_1/{hashlib.sha256(source.encode()).hexdigest()}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(source, file, "exec"), space)
    return space[name]


@pytest.fixture
def helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module beside the notebook, and one that it imports."""
    (tmp_path / "helper.py").write_text("import deeper\ndef twice(x): return deeper.two * x\n")
    (tmp_path / "deeper.py").write_text("two = 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("helper", "deeper"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return x * 3", "return x * 4"),  # a helper's helper, in a comprehension
        ("n == 0 or", "n == 2 or"),  # two that call each other
        ("n != 0 and", "n != 1 and"),
        ("z + 1", "z + 2"),  # a function in a tuple
        ("return x - 1", "return x - 2"),  # behind a cache
        ("RATE, SIZE, TABLE = 2.0", "RATE, SIZE, TABLE = 2.5"),  # a default's value
        ("(1, 2, 2)", "(1, 1, 2)"),
        ("np.zeros(5000)", "np.r_[np.zeros(4999), 1e-9]"),
        ("Model(3)", "Model(4)"),
        ("x * self.width", "x + self.width"),
        ("outer(5)", "outer(6)"),  # what a closure holds
    ],
)
@pytest.mark.usefixtures("helper")
def test_the_key_sees_what_the_function_uses(old: str, new: str) -> None:
    assert HELPERS.count(old) == 1
    assert key(worker(HELPERS.replace(old, new)), {}) != key(worker(HELPERS), {})


@pytest.mark.usefixtures("helper")
def test_the_key_does_not_see_what_the_function_does_not_use() -> None:
    same = key(worker(HELPERS), {})
    assert key(worker(HELPERS), {}) == same
    changed = HELPERS.replace("def unused(x): return x", "def unused(x): return -x\nother = 1")
    assert key(worker(changed), {}) == same


def test_the_key_sees_the_modules_beside_the_notebook(helper: Path) -> None:
    before = key(worker(HELPERS), {})
    for name, text in (("deeper", "two = 3\n"), ("helper", "twice = abs\n")):
        (helper / f"{name}.py").write_text(text)
        after = key(worker(HELPERS), {})
        assert after != before
        before = after


@pytest.mark.usefixtures("helper")
def test_the_key_sees_into_functions_of_every_kind() -> None:
    """Partial functions, bound methods, functions without a text, functions as parameters."""
    base, other = HELPERS, HELPERS.replace("y=7", "y=8").replace("x * self.width", "x + self.width")
    assert key(worker(base, "half"), {}) != key(worker(other, "half"), {})
    assert key(worker(base, "MODEL").run, {}) != key(worker(other, "MODEL").run, {})  # type: ignore[attr-defined]
    for name, part in (("half", lambda f: f), ("MODEL", lambda model: model.run)):
        assert key(part(worker(base, name)), {}) == key(part(worker(base, name)), {})
    bare = [eval(f"lambda x: x + {i}") for i in (1, 1, 2)]
    assert key(bare[0], {}) == key(bare[1], {}) != key(bare[2], {})
    keys = [key(cell, {"n": f}) for f in bare]
    assert keys[0] == keys[1] != keys[2]
    values: list[Any] = [
        [[1], 2], [1, [2]], [1, 2], [{1: 2}, {3: 4}], [{1: 2, 3: 4}, {}], object(), object()
    ]  # fmt: skip
    assert len({key(cell, {"n": value}) for value in values}) == len(values)
    looped: list[Any] = [1]
    looped.append(looped)
    assert key(cell, {"n": looped}) != key(cell, {"n": [1]})


def test_what_is_installed_counts_by_name() -> None:
    """Not by its code: another version of numpy computes the same mean."""
    used = list(
        _used(
            (np.mean, json, functools.reduce, worker("import json\ndef work(): json", "work")), {}
        )
    )
    assert "mean" in used
    assert "json" in used
    assert max(len(str(u)) for u in used) < 200


@settings(max_examples=10)
@given(st.integers(0, 4999), st.sampled_from(["numpy", "torch"]))
def test_the_key_sees_every_entry_of_an_array(at: int, kind: str) -> None:
    a = np.zeros(5000)
    b = a.copy()
    b[at] = 1e-12
    wrap: Callable[[np.ndarray], Any] = torch.tensor if kind == "torch" else np.array
    assert key(cell, {"n": wrap(a)}) == key(cell, {"n": wrap(a)})
    assert key(cell, {"n": wrap(a)}) != key(cell, {"n": wrap(b)})


def test_a_store_that_is_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store"
    path.write_text("")
    with pytest.raises(
        ValueError, match=re.escape(f"store = {str(path)!r}: store must be a folder")
    ):
        sweep(cell, CELLS, store=path)
    assert sweep(cell, CELLS, store="") == EXPECTED


def test_a_change_of_parameters_computes_only_what_is_new(tmp_path: Path) -> None:
    log = str(tmp_path / "log.txt")
    cells = [{**c, "log": log} for c in CELLS]
    sweep(logged, cells[:4], store=tmp_path)
    sweep(logged, cells, store=tmp_path)
    sweep(logged, [{**cells[0], "n": 9}], store=tmp_path)
    ran = Path(log).read_text().split("\n")[:-1]
    assert ran == [f"{c['n']} {c['c']}" for c in CELLS] + ["9 0.5"]
