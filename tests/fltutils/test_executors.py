"""Blocks side by side: threads, processes and a real Dask cluster give what one process gives.

The experiments stand where a notebook's do: in `__main__`, of which no other process knows.
"""

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from threading import Timer
from typing import Any

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

from fltutils import grid, span
from fltutils.grid import over
from tools import kernels

NOTEBOOK = """
import time
from pathlib import Path
import numpy as np
import xarray as xr
from fltutils import signal_noise, span, train
from fltutils.grid import experiment, over

scale = 0.3

def rate(n, d):
    return scale * n / d

@experiment(block=3, per_run=("x",))
def networks(runs, x=2.0, m=3, n=6, law=rate):
    data = signal_noise.draw(n=n, d=40, mu=x, m=m, sigma0=0.1, runs=runs)
    record = {"f": lambda s: s.f}
    run = train.train(signal_noise.problem(data), eta=law(n, 6), steps=20, record=record, every=5)
    told = xr.DataArray(run.history["f"].transpose(0, 1), dims=("run", "step", "sample"),
                        coords={"step": run.times})
    return {"loss": run.loss, "outputs": told}

def noted(run, folder):
    folder = Path(folder)
    with (folder / "log").open("a") as log:
        print(run, file=log)
    if run == 1 and not (folder / "mended").exists():
        while len(list(folder.glob("done *"))) < 6:  # until the first of them has come back
            time.sleep(0.01)
        raise ZeroDivisionError("run 1")
    time.sleep(0.02 if run else 0)
    value = span.stream(0, run, "a test").random()
    (folder / f"done {run}").touch()
    return value
"""


@pytest.fixture
def notebook() -> dict[str, Any]:
    """The names of a notebook whose cells have run."""
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(NOTEBOOK, space)
    return space


@pytest.fixture
def threads() -> Iterator[Executor]:
    """Two threads."""
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.fixture
def processes() -> Iterator[Executor]:
    """Two processes that inherit nothing."""
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.fixture
def dask(tmp_path: Path) -> Iterator[Executor]:
    """A Dask cluster on this machine, as DESIGN hands one over."""
    from distributed import Client, LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None,
        local_directory=str(tmp_path / "dask"),
    ) as cluster, Client(cluster) as client:  # fmt: skip
        yield client.get_executor()


WAYS = ["threads", *(pytest.param(way, marks=pytest.mark.slow) for way in ("processes", "dask"))]


def same_bytes(space: dict[str, Any], executor: Executor) -> None:
    """Training in blocks, by the notebook's own law and by one that is a parameter."""
    axes = {"runs": 5, "m": [2, 3], "x": [1.0, 2.0]}
    exec("def slow(n, d): return rate(n, d) / 2", space)
    alone = [over(space["networks"], **axes, law=space[law]) for law in ("rate", "slow")]
    exec(NOTEBOOK, space)  # another session's function, which remembers nothing
    for expected, law in zip(alone, ("rate", "slow"), strict=True):
        found = over(space["networks"], **axes, law=space[law], executor=executor)
        assert found.identical(expected)
        for name in expected:
            assert found[name].values.tobytes() == expected[name].values.tobytes()
    assert not alone[0].equals(alone[1])


def stored_by_one(space: dict[str, Any], executor: Executor, folder: Path) -> None:
    """What others computed is written here, and found again."""
    given = {"runs": [0, 2], "folder": str(folder), "store": folder}
    first = over(space["noted"], **given, executor=executor)
    exec(NOTEBOOK, space)
    assert over(space["noted"], **given).identical(first)
    assert len((folder / "log").read_text().split()) == 2 + 1  # one is held to what it gives now


def called_off(space: dict[str, Any], executor: Executor, folder: Path) -> None:
    """Where one fails the others are called off, and what is done is kept."""
    given = {"runs": 40, "folder": str(folder)}
    with pytest.raises(ZeroDivisionError, match="run 1"):
        over(space["noted"], **given, executor=executor)
    begun = (folder / "log").read_text().split()
    assert len(begun) < 30
    kept = {key[0].rsplit(" ", 1)[1] for key in grid.MEMORY[space["noted"]]}
    assert {"0"} <= kept <= set(begun) - {"1"}
    (folder / "mended").touch()
    (folder / "log").unlink()
    table = over(space["noted"], **given, executor=executor)
    again = (folder / "log").read_text().split()
    assert set(again) == {str(run) for run in range(40)} - kept
    drawn = [span.stream(0, run, "a test").random() for run in range(40)]
    assert table.values.tolist() == drawn


@pytest.mark.parametrize("way", WAYS)
def test_every_executor_gives_what_one_process_gives(
    notebook: dict[str, Any], way: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """One test a way: a cluster is slow to come."""
    executor = request.getfixturevalue(way)
    same_bytes(notebook, executor)
    for use in (stored_by_one, called_off):
        folder = tmp_path / use.__name__
        folder.mkdir()
        use(notebook, executor, folder)


@pytest.mark.slow
def test_functions_of_a_real_notebook_run_in_other_processes(tmp_path: Path) -> None:
    ask = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
    there = over(networks, runs=4, m=[2, 3], executor=pool)
grid.MEMORY.clear()
here = over(networks, runs=4, m=[2, 3])
print(networks.__module__, there.identical(here), there.loss.sum().item() > 0)
"""
    cells = [NOTEBOOK, "from fltutils import grid", ask]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    with kernels.sockets() as folder:
        config = kernels.private(Path(folder, "kernel"))
        NotebookClient(book, kernel_name="python3", config=config, timeout=120).execute()
    assert book.cells[-1].outputs[0].text == "__main__ True True\n"


class Backwards(Executor):
    """An executor that answers last what it was asked first."""

    def __init__(self) -> None:
        self.asked: list[Future[Any]] = []

    def submit(self, f: Any, /, *args: Any, **more: Any) -> Future[Any]:
        """What is asked, by a thread of its own."""
        future: Future[Any] = Future()
        self.asked.append(future)
        delay = 0.02 * (7 - len(self.asked))
        Timer(delay, lambda: future.set_result(f(*args, **more))).start()
        return future


def test_the_order_of_answers_does_not_matter() -> None:
    def f(run: int, d: int) -> float:
        return 10.0 * run + d

    executor = Backwards()
    table = over(f, runs=3, d=[1, 2], executor=executor)
    assert len(executor.asked) == 6
    np.testing.assert_array_equal(table, [[1, 2], [11, 12], [21, 22]])
