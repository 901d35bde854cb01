"""Execution: what runs again and what does not, and how a failure is told."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest

from tools import chapters as book
from tools import execute
from tools.execute import Task
from tools.files import ToolError, read_json

Edit = Callable[[str, str, str], None]
REPOSITORY = Path(__file__).parents[2]


def default_run(root: Path) -> dict[str, dict[str, Any]]:
    """Run both chapters as `make book` does."""
    tasks = [Task(name, {}, root / "_build/executed") for name in ("waves", "tides")]
    return execute.run_all(root, tasks, jobs=2)


def ran(root: Path) -> set[str]:
    """The chapters a default run really executes."""
    return {name for name, result in default_run(root).items() if not result.get("cached")}


def command(root: Path, *arguments: str) -> subprocess.Popen[str]:
    """`python -m tools …` in a tiny book."""
    return subprocess.Popen(
        [sys.executable, "-m", "tools", *arguments],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_nothing_changed_nothing_runs(built: Path) -> None:
    assert ran(built) == set()


@pytest.mark.slow
def test_only_the_changed_chapter_runs(built: Path, edit: Edit) -> None:
    edit("book/tides.md", "seed = 0", "seed = 1")
    assert ran(built) == {"tides"}


@pytest.mark.slow
def test_only_what_imports_a_changed_module_runs(built: Path, edit: Edit) -> None:
    edit("fltutils/moon.py", "5.0", "6.0")  # tides imports tide, which imports moon
    assert ran(built) == {"tides"}


@pytest.mark.slow
def test_a_changed_lock_runs_everything(built: Path, edit: Edit) -> None:
    edit("requirements.txt", "2.4.6", "2.4.7")
    assert ran(built) == {"waves", "tides"}


def test_prose_and_metadata_change_without_a_run(built: Path, edit: Edit) -> None:
    edit("book/waves.md", "A promise", "One promise")
    edit("book/waves.md", "alt: a line", "alt: a straight line")
    assert ran(built) == set()
    nb = nbformat.read(built / "_build/executed/waves.ipynb", as_version=4)
    assert "One promise" in nb.cells[0].source
    figure = next(cell for cell in nb.cells if "mystnb" in cell.metadata)
    assert figure.metadata.mystnb.image.alt == "a straight line"
    assert "image/png" in figure.outputs[0].data


def test_executed_notebooks_carry_no_trace_of_the_run(built: Path) -> None:
    text = (built / "_build/executed/waves.ipynb").read_text()
    assert not [noise for noise in ('"papermill"', "iopub", "/tmp") if noise in text]
    nb = nbformat.reads(text, as_version=4)
    assert len({cell.id for cell in nb.cells}) == len(nb.cells)


@pytest.mark.slow
def test_a_failing_cell_is_named_and_the_others_run(built: Path, edit: Edit) -> None:
    edit("book/waves.md", 'emit.claim("kou.waves"', '1 / 0\nemit.claim("kou.waves"')
    edit("book/tides.md", "seed = 0", "seed = 1")
    results = default_run(built)
    line = (built / "book/waves.md").read_text().split("\n").index("1 / 0")
    failure = results["waves"]["failure"]
    assert f"waves: code cell 4 `1 / 0` (book/waves.md:{line}): ZeroDivisionError" in failure
    assert "\x1b" not in failure
    assert "failure" not in results["tides"]
    assert execute.report(results) == 1
    assert ran(built) == {"waves"}  # a failure is not remembered as a run


@pytest.mark.slow
def test_a_dying_kernel_is_named(built: Path, edit: Edit) -> None:
    edit("book/waves.md", "emit.figure()", "import os\nos._exit(1)")
    assert "waves: code cell 3 `import os`" in default_run(built)["waves"]["failure"]


def test_an_unknown_parameter_is_an_error(tiny: Path) -> None:
    with pytest.raises(ToolError, match=r"'sed' \(value 3\).*'waves'; allowed: seed, mutant"):
        execute.run_all(tiny, [Task("waves", {"sed": 3}, tiny / "_build/run")])


@pytest.mark.slow
def test_parameters_reach_the_chapter(built: Path) -> None:
    task = Task("waves", {"seed": 3}, built / "_build/run")
    assert not execute.failures(execute.run_all(built, [task]))
    text = (built / "_build/run/waves.ipynb").read_text()
    assert "3.42" in text
    assert book.INJECTED in text
    assert execute.run_all(built, [task])[task.title]["cached"]


def test_cpu_and_wall_seconds_are_kept(built: Path) -> None:
    report = read_json(built / "_build/executed/waves.json")
    assert 0 < report["cpu_seconds"] < 60
    assert 0 < report["wall_seconds"] < 60


def wait_for_kernel(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The worker and its kernel, once the kernel runs."""
    for _ in range(200):
        family = psutil.Process(process.pid).children(recursive=True)
        if any("ipykernel_launcher" in " ".join(child.cmdline()) for child in family):
            return family
        time.sleep(0.05)
    raise AssertionError("no kernel came up")


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_run_leaves_nothing(built: Path, edit: Edit, how: signal.Signals) -> None:
    edit("book/waves.md", "emit.figure()", "import time\ntime.sleep(60)")
    before = sorted(str(path) for path in built.rglob("*"))
    process = command(built, "execute", "waves")
    family = wait_for_kernel(process)
    process.send_signal(how)
    process.communicate(timeout=10)
    assert process.returncode == (130 if how != signal.SIGKILL else -how)
    _, alive = psutil.wait_procs(family, timeout=10)
    assert not alive
    assert sorted(str(path) for path in built.rglob("*") if path.suffix != ".pyc") == before
    edit("book/waves.md", "import time\ntime.sleep(60)", "emit.figure()")
    assert ran(built) == set()


def test_a_chapter_absent_from_the_toc_is_an_error(tiny: Path, edit: Edit) -> None:
    edit("_toc.yml", "- file: tides.md\n", "")
    with pytest.raises(ToolError, match=r"book/tides\.md .* absent from _toc\.yml"):
        book.chapters(tiny)


def test_a_page_of_the_toc_that_does_not_exist_is_an_error(tiny: Path, edit: Edit) -> None:
    edit("_toc.yml", "tides.md", "tide.md")
    with pytest.raises(ToolError, match=r"_toc\.yml names tide\.md"):
        book.chapters(tiny)


def test_an_unknown_chapter_is_an_error(tiny: Path) -> None:
    with pytest.raises(ToolError, match="unknown chapter 'wave'; allowed: waves, tides"):
        book.chosen(tiny, ["wave"])


@pytest.mark.slow
def test_the_command_line_tells_progress_and_time(built: Path, edit: Edit) -> None:
    edit("book/tides.md", "seed = 0", "seed = 1")
    process = command(built, "execute")
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, out
    assert "[1/2] waves: unchanged" in out
    assert "[2/2] tides: done in" in out
    assert "CPU s" in out
