"""What a store keeps, under which key, what it notices, and what it says where it cannot."""

import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from fltutils import grid, store
from fltutils.grid import experiment, over

Experiment = Callable[..., Any]


def counted(calls: list[Any], *, shift: float = 0.0, of: float = 1.0, **plan: Any) -> Experiment:
    """An experiment as a new process would define it, which notes its calls."""

    @experiment(**plan)
    def f(runs: np.ndarray, d: float = 1.0, of: float = of) -> Any:
        calls.append((d, list(runs)))
        path = runs[:, None] / 3 + d + (shift if d == 2 else 0.0)
        path = np.hstack([path, np.full_like(path, np.nan)])
        return {"path": xr.DataArray(path, dims=("run", "step"), coords={"step": [0, 9]}),
                "count": xr.DataArray(runs, dims="run")}  # fmt: skip

    return f


def rows(folder: Path, query: str = "select key from blocks order by key") -> list[Any]:
    """What stands in the file."""
    with closing(sqlite3.connect(folder / "f.db", isolation_level=None)) as db:
        return db.execute(query).fetchall()


def test_a_stored_table_is_the_computed_one_and_is_not_computed_again(tmp_path: Path) -> None:
    calls: list[Any] = []
    axes: dict[str, Any] = {"runs": 3, "d": [1.0, 2.0, 3.0]}
    bare = over(counted([], block=2), **axes)
    first = over(counted([], block=2), store=tmp_path / "new" / "folder", **axes)
    again = over(counted(calls, block=2), store=str(tmp_path / "new" / "folder"), **axes)
    assert first.identical(bare)
    assert again.identical(bare)
    for name in bare:
        assert again[name].values.tobytes() == bare[name].values.tobytes()
    assert len(calls) == 1  # a block is held to what it gives now
    assert len(rows(tmp_path / "new" / "folder")) == 6


def test_a_block_is_known_by_name_version_and_all_parameters(tmp_path: Path) -> None:
    calls: list[Any] = []

    def ran(f: Experiment, **given: Any) -> int:
        calls.clear()
        over(f, store=tmp_path, **given)
        return len(calls)

    assert ran(counted(calls)) == 1
    assert ran(counted(calls, version=2)) == 1
    assert ran(counted(calls), d=2.0) == 1
    assert ran(counted(calls), runs=2) == 1
    assert ran(counted(calls, of=5.0)) == 1, "a parameter's own value is one of them"
    assert len(rows(tmp_path)) == 5
    assert ran(counted(calls), d=1.0, of=1.0) == 1, "held to the first, and not stored"
    other = counted(calls)
    other.__name__ = "g"
    assert ran(other) == 1
    assert len(rows(tmp_path)) == 5
    assert (tmp_path / "g.db").exists()


def test_what_is_in_memory_is_stored_too(tmp_path: Path) -> None:
    calls: list[Any] = []
    f = counted(calls)
    over(f, d=[1.0, 2.0])
    over(f, d=[1.0, 2.0, 3.0], store=tmp_path)
    assert len(calls) == 3
    assert len(rows(tmp_path)) == 3


def test_without_a_folder_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in (None, ""):
        over(counted([]), store=folder)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_run_that_was_killed_ends_with_the_bytes_of_one_that_was_not(tmp_path: Path) -> None:
    """Real processes, killed as the kernel kills: in the first block, and in one later on."""
    program = tmp_path / "program.py"
    program.write_text(
        "import hashlib, os, signal, sys\n"
        "import numpy as np\n"
        "from fltutils import span\n"
        "from fltutils.grid import experiment, over\n"
        "@experiment(block=4)\n"
        "def f(runs, d):\n"
        "    print(d, *runs, flush=True)\n"
        "    if len(open(sys.argv[2]).read()) and (d, runs[0]) == (30, 4):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return [span.stream(0, int(r), 'a test').standard_normal(d).sum() for r in runs]\n"
        "table = over(f, runs=10, d=[10, 20, 30], store=sys.argv[1] or None)\n"
        "print(hashlib.sha256(table.values.tobytes()).hexdigest())\n"
    )
    trap = tmp_path / "trap"

    def ran(folder: str, armed: str = "") -> tuple[int, list[str]]:
        trap.write_text(armed)
        command = [sys.executable, str(program), folder, str(trap)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=Path.cwd())
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        return done.returncode, done.stdout.splitlines()

    _, (*blocks, undisturbed) = ran("")
    code, begun = ran(str(tmp_path), "armed")
    assert (code, begun) == (-signal.SIGKILL, blocks[:8])
    assert len(rows(tmp_path)) == 7
    code, (held, *finished, found) = ran(str(tmp_path))
    assert held in blocks[:7]
    assert finished == blocks[7:]
    assert (code, found) == (0, undisturbed)


@pytest.mark.parametrize(
    "harm",
    ["value = substr(value, 1, length(value) - 8)", "value = x''", "sum = sum + 1",
     "value = cast(replace(hex(value), '00', '01') as blob)", "value = 'text'", "value = null"],
)  # fmt: skip
def test_a_block_that_was_changed_is_noticed_and_computed_again(tmp_path: Path, harm: str) -> None:
    calls: list[Any] = []
    expected = over(counted([]), d=[1.0, 2.0], store=tmp_path)
    rows(tmp_path, f"update blocks set {harm} where key like '%d: 2.0%'")
    assert over(counted(calls), d=[1.0, 2.0], store=tmp_path).identical(expected)
    assert sorted(d for d, _ in calls) == [1.0, 2.0]  # the sound one is held, the other made anew
    calls.clear()
    assert over(counted(calls), d=[1.0, 2.0], store=tmp_path).identical(expected)
    assert len(calls) == 1


def torn(folder: Path) -> Path:
    """A store whose file was cut in two."""
    over(counted([]), runs=2000, store=folder)
    path = folder / "f.db"
    path.write_bytes(path.read_bytes()[:6000])
    return folder


def not_ours(folder: Path) -> Path:
    """A file of another kind in its place."""
    (folder / "f.db").write_text("my notes, which nobody should lose " * 100)
    return folder


def another_table(folder: Path) -> Path:
    """A database of somebody else."""
    with closing(sqlite3.connect(folder / "f.db")) as db:
        db.execute("create table blocks (name text)")
    return folder


def below_a_file(folder: Path) -> Path:
    """A folder that cannot be made."""
    (folder / "file").write_text("")
    return folder / "file" / "store"


def a_folder(folder: Path) -> Path:
    """A folder where the file should be."""
    (folder / "f.db").mkdir()
    return folder


FAULTS = {
    torn: "database disk image is malformed",
    not_ours: "file is not a database",
    another_table: "no such column: sum",
    below_a_file: "Not a directory",
    a_folder: "unable to open database file",
}


@pytest.mark.parametrize("harm", FAULTS)
def test_a_file_that_cannot_be_used_is_told_with_its_path(
    tmp_path: Path, harm: Callable[[Path], Path]
) -> None:
    folder = harm(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    message = f"{folder / 'f.db'}: .*{FAULTS[harm]}.*name a folder .* or remove the file if it is"
    with pytest.raises(OSError, match=message):
        over(counted([]), runs=2000, store=folder)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_disk_that_is_full_is_told_and_what_was_finished_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect

    def small(*args: Any, **more: Any) -> sqlite3.Connection:
        db = connect(*args, **more)
        db.execute("pragma max_page_count = 12")
        return db

    monkeypatch.setattr(store.sqlite3, "connect", small)
    with pytest.raises(OSError, match=r"f\.db: database or disk is full\. Finished blocks are"):
        over(counted([], block=400), runs=4000, store=tmp_path)
    kept = len(rows(tmp_path))
    assert 0 < kept < 10
    monkeypatch.undo()
    calls: list[Any] = []
    over(counted(calls, block=400), runs=4000, store=tmp_path)
    assert len(calls) == 1 + 10 - kept


def test_a_fault_of_the_experiment_is_not_one_of_the_file(tmp_path: Path) -> None:
    def f(run: int) -> float:
        return float(Path("no such data").read_text())

    for folder in (None, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"^\[Errno 2\] No such file .*'no such data'$"):
            over(f, store=folder)


def test_other_numbers_under_the_same_version_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    over(counted([]), d=[1.0, 2.0], store=tmp_path)
    message = (
        f"store = {str(tmp_path)!r}: f gives other numbers now than it stored there, at d: 2.0; "
        "runs: [0]: raise its version, or remove f.db"
    )
    picked: list[int] = []
    monkeypatch.setattr(grid.secrets, "choice", lambda keys: picked.append(len(keys)) or keys[-1])
    changed = counted([], shift=1e-6)
    for _ in range(2):
        with pytest.raises(ValueError, match=re.escape(message)):
            over(changed, d=[1.0, 2.0, 3.0], store=tmp_path)
    assert picked == [2, 2]
    assert len(rows(tmp_path)) == 2, "nothing new beside what is not trusted"
    over(counted([], shift=1e-6, version=2), d=[1.0, 2.0, 3.0], store=tmp_path)


def test_a_change_that_touches_one_block_is_found_sooner_or_later(tmp_path: Path) -> None:
    def until_found() -> None:
        for _ in range(80):  # missed once in 10^14
            over(counted([], shift=1.0), d=[1.0, 2.0, 3.0], store=tmp_path)

    over(counted([]), d=[1.0, 2.0, 3.0], store=tmp_path)
    with pytest.raises(ValueError, match="other numbers now"):
        until_found()


def test_last_digits_of_another_processor_are_no_other_numbers(tmp_path: Path) -> None:
    over(counted([]), d=2.0, store=tmp_path)
    over(counted([], shift=1e-13), d=2.0, store=tmp_path)


@pytest.mark.parametrize("form", ["name", "dims", "sizes", "coordinates"])
def test_blocks_of_another_form_are_not_alike(form: str) -> None:
    one = {"a": xr.Variable(("run", "step"), np.zeros((2, 3)), {"step": [1, 2, 3]})}
    other = {
        "name": {"b": one["a"]},
        "dims": {"a": xr.Variable(("run", "time"), np.zeros((2, 3)), {"step": [1, 2, 3]})},
        "sizes": {"a": xr.Variable(("run", "step"), np.zeros((3, 2)), {"step": [1, 2, 3]})},
        "coordinates": {"a": xr.Variable(("run", "step"), np.zeros((2, 3)), {"step": [1, 2, 4]})},
    }[form]
    assert store.alike(one, one)
    assert not store.alike(one, other)
    assert not store.alike(other, one)


@settings(max_examples=20)
@given(
    st.dictionaries(
        st.text(max_size=5),
        arrays.arrays(np.float64, arrays.array_shapes(min_dims=1, max_dims=3, min_side=0)),
        max_size=3,
    )
)
def test_a_block_is_read_as_it_was_written(values: dict[str, np.ndarray]) -> None:
    block = {
        name: xr.Variable([f"d{i}" for i in range(a.ndim)], a, {"d0": np.arange(len(a))})
        for name, a in values.items()
    }
    back = store.unpacked(store.packed(block))
    assert list(back) == list(block)
    for name, part in block.items():
        assert back[name].dims == part.dims
        assert back[name].values.tobytes() == np.ascontiguousarray(part.values).tobytes()
    assert store.packed(back) == store.packed(block)


def twice(x: float) -> float:
    """A law."""
    return 2 * x


@pytest.mark.parametrize(
    ("f", "given"),
    [
        (lambda run, law=None: 1.0, {"law": twice}),
        (lambda run, law=twice: 1.0, {}),
        (lambda run, law=None: 1.0, {"law": [twice, abs]}),
    ],
)
def test_a_function_is_no_key_of_a_file(tmp_path: Path, f: Any, given: dict[str, Any]) -> None:
    over(f, **given)  # in memory it is
    message = r"law = .*: law must be numbers, words or lists of them: what is kept in a file needs"
    with pytest.raises(TypeError, match=message):
        over(f, store=tmp_path, **given)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def two() -> Iterator[ThreadPoolExecutor]:
    """Two threads."""
    with ThreadPoolExecutor(2) as pool:
        yield pool


def test_two_may_fill_one_store_at_once(tmp_path: Path, two: ThreadPoolExecutor) -> None:
    functions = [counted([], block=1) for _ in range(2)]
    found = list(two.map(lambda f: over(f, runs=30, store=tmp_path), functions))
    assert found[0].identical(found[1])
    assert len(rows(tmp_path)) == 30
    assert os.listdir(tmp_path) == ["f.db"]
