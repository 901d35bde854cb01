"""Kernels that start at once do not take each other's address."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools import execute, kernels
from tools.execute import Task

ROOM = 103  # bytes of a socket's path on macOS; Linux has 107

NBVAL = """
from nbval.kernel import RunningKernel
def test_nbval():
    kernel = RunningKernel("python3")
    print(kernel.km.transport, kernel.km.ip)
    kernel.stop()
"""


def test_each_kernel_has_an_address_of_its_own_that_is_short_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / ("deep/" * 20)))
    with kernels.sockets() as first, kernels.sockets() as second:
        assert first != second
        assert len(f"{first}/tmp_abcdefgh-ipc-5") < ROOM


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [3, pytest.param(30, marks=pytest.mark.nightly)])
def test_kernels_that_start_in_pairs_all_live(tiny: Path, pairs: int) -> None:
    for i in range(pairs):
        tasks = [Task(name, {"seed": i}, tiny / f"_build/{i}") for name in ("waves", "tides")]
        assert not execute.failures(execute.run_all(tiny, tasks, jobs=2))


@pytest.mark.slow
def test_a_book_in_a_deep_folder_runs(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.mktemp("deep").joinpath(*["a-folder-with-a-long-name"] * 5)
    shutil.copytree(tiny, root)
    assert not execute.failures(execute.run_all(root, [Task("tides", {}, root / "_build/run")]))


def test_nbval_s_kernels_have_private_sockets_too(tmp_path: Path) -> None:
    (tmp_path / "test_nbval.py").write_text(NBVAL)
    command = [sys.executable, "-m", "pytest", "-s", "-q", "-p", "tools.kernels", str(tmp_path)]
    done = subprocess.run([*command, "-c", os.devnull], capture_output=True, text=True)
    assert "ipc /tmp/book-" in done.stdout, done.stdout
    assert not Path(done.stdout.split("ipc ")[1].split()[0]).parent.exists()
