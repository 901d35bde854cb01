"""Execution: what runs again and what does not, and how a failure is told."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import psutil
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tools import chapters as book
from tools import execute, outputs
from tools.execute import Task
from tools.files import ToolError
from tools.readers import read_json

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


def the_key(root: Path, **parameters: Any) -> str:
    """The key of a run of tides."""
    return execute.cache_key(root, book.read_source(root, "tides"), parameters)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("book/tides.md", "emit.claim", "emit. claim"),
        ("book/tides.md", ":tags: [parameters]\n", ""),
        ("fltutils/moon.py", "5.0", "6.0"),
        ("fltutils/tide.py", ".moon", " .moon"),
        ("requirements.txt", "2.4.6", "2.4.7"),
    ],
)
def test_the_key_of_a_run_depends_on(tiny: Path, edit: Edit, name: str, old: str, new: str) -> None:
    key = the_key(tiny)
    edit(name, old, new)
    assert the_key(tiny) != key


def test_the_key_of_a_run_depends_on_parameters_python_and_the_names_of_modules(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [the_key(tiny), the_key(tiny, seed=0), the_key(tiny, seed=1), the_key(tiny, seed="0")]
    monkeypatch.setattr("platform.python_version", lambda: "3.99.0")
    keys.append(the_key(tiny))
    (tiny / "fltutils/moon").mkdir()
    (tiny / "fltutils/moon.py").rename(tiny / "fltutils/moon/__init__.py")
    assert len({*keys, the_key(tiny)}) == 6


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
    edit("book/waves.md", "alt: A line", "alt: A straight line")
    assert ran(built) == set()
    nb = nbformat.read(built / "_build/executed/waves.ipynb", as_version=4)
    assert "One promise" in nb.cells[0].source
    figure = next(cell for cell in nb.cells if "mystnb" in cell.metadata)
    assert figure.metadata.mystnb.image.alt.startswith("A straight line")
    assert "image/png" in figure.outputs[0].data


def cells(*sources: str) -> nbformat.NotebookNode:
    """A notebook of code cells."""
    return new_notebook(cells=[new_code_cell(source) for source in sources])


def test_outputs_of_other_code_are_refused() -> None:
    with pytest.raises(ToolError, match="a run of other code: 'b', 'c'"):
        execute.graft(cells("a", "b"), cells("a", "c"))


def test_pieces_of_one_stream_are_joined_and_two_streams_stay_two() -> None:
    pieces = [("stdout", "a"), ("stdout", "b"), ("stderr", "c"), ("stdout", "d")]
    merged = execute.merge_streams([new_output("stream", name=n, text=t) for n, t in pieces])
    assert [(o.name, o.text) for o in merged] == [
        ("stdout", "ab"),
        ("stderr", "c"),
        ("stdout", "d"),
    ]


@pytest.mark.parametrize("name", ["waves.json", "waves.ipynb"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: f"<<<<<<< HEAD\n{text}",
        lambda text: text.replace("1", "2"),
        lambda text: "[]",
    ],
)
def test_a_damaged_or_edited_run_is_no_run(
    built: Path, name: str, damage: Callable[[str], str]
) -> None:
    path = built / "_build/executed" / name
    path.write_text(damage(path.read_text()))
    source = book.read_source(built, "waves")
    task = Task("waves", {}, built / "_build/executed")
    assert not execute.cached(task, source, execute.cache_key(built, source, {}))
    with pytest.raises(ToolError, match=r"waves\.md was not executed in its present state"):
        outputs.executed(built, "waves")


@pytest.mark.slow
def test_damage_under_build_heals(built: Path) -> None:
    (built / "_build/executed/tides.json").write_text("{")
    (built / "_build/executed/waves.ipynb").write_bytes(b"\xff")
    assert ran(built) == {"waves", "tides"}
    assert ran(built) == set()


@pytest.mark.parametrize("jobs", [0, -1])
def test_a_number_of_processes_below_one_is_refused(tiny: Path, jobs: int) -> None:
    with pytest.raises(ToolError, match=f"--jobs {jobs} is not allowed; give a whole number ≥ 1"):
        execute.run_all(tiny, [], jobs)


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


def test_a_worker_that_died_of_a_full_disk_is_told(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = execute.Run(Task("waves", {}, tiny), book.read_source(tiny, "waves"), "", tiny)
    (tiny / "log").write_text("killed")
    assert execute.finish(tiny, run) == {"failure": "waves: the worker died\nkilled"}
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=4096))
    with pytest.raises(OSError, match=f"No space left on device: '{tiny}'"):
        execute.finish(tiny, run)


def test_an_unknown_parameter_is_an_error(tiny: Path) -> None:
    with pytest.raises(ToolError, match=r"'sed' \(value 3\).*'waves'; allowed: seed"):
        execute.run_all(tiny, [Task("waves", {"sed": 3}, tiny / "_build/run")])


def test_an_unknown_mutant_is_an_error(tiny: Path) -> None:
    with pytest.raises(ToolError, match=r"book/waves\.md: no mutant 'of'; allowed: off"):
        execute.run_all(tiny, [Task("waves", {}, tiny / "_build/run", "of")])


def test_a_mutant_runs_its_cells_in_place_of_the_ones_before(tiny: Path) -> None:
    plain, mutated = (book.read_source(tiny, "tides", name) for name in ("", "off"))
    shown = [[cell.source.split("\n")[-1] for cell in book.code_cells(n)] for n in (plain, mutated)]
    claim = 'emit.claim("kou.tides", holds=turning, margin=tide.HEIGHT)'
    assert shown == [["seed = 0", f"turning = {value}", claim] for value in (True, False)]
    assert [book.tags(cell) for cell in book.code_cells(mutated)] == [["parameters"], [], []]
    assert book.cell_line(tiny, "tides", 3) == 35


@pytest.mark.slow
def test_a_fault_of_a_mutant_is_told_as_such(tiny: Path, edit: Edit) -> None:
    edit("book/tides.md", "turning = False", "turning = 1 / 0")
    task = Task("tides", {}, tiny / "_build/run", trials=(("off", ("kou.tides",)),))
    (fault,) = execute.failures(execute.run_all(tiny, [task]))
    assert "(the mutant off of book/tides.md): ZeroDivisionError" in fault


@pytest.mark.slow
def test_parameters_reach_the_chapter(built: Path) -> None:
    task = Task("waves", {"seed": 3}, built / "_build/run")
    assert not execute.failures(execute.run_all(built, [task]))
    text = (built / "_build/run/waves.ipynb").read_text()
    assert "3.42" in text
    assert book.INJECTED in text
    assert execute.run_all(built, [task])[task.title]["cached"]


@pytest.mark.slow
@pytest.mark.parametrize("draft", [True, False])
def test_a_draft_says_so_to_the_chapter(tiny: Path, edit: Edit, draft: bool) -> None:
    edit(
        "book/tides.md",
        "turning = True",
        f'turning = True\nimport os\nassert {draft} == ("{execute.DRAFT}" in os.environ)',
    )
    task = Task("tides", {}, tiny / "_build/run", draft=draft)
    assert not execute.failures(execute.run_all(tiny, [task]))


def test_cpu_and_wall_seconds_are_kept(built: Path) -> None:
    report = read_json(built / "_build/executed/waves.json")
    assert 0 < report["cpu_seconds"] < 60
    assert 0 < report["wall_seconds"] < 60


def words(process: psutil.Process) -> list[str]:
    """The command of a process; none where it has ended meanwhile (as a zombie, too)."""
    with suppress(psutil.NoSuchProcess):
        return list(process.cmdline())
    return []


def wait_for_kernel(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The worker and its kernel, once the kernel runs."""
    for _ in range(200):
        family = psutil.Process(process.pid).children(recursive=True)
        if any("ipykernel_launcher" in words(child) for child in family):
            return family
        time.sleep(0.05)
    raise AssertionError("no kernel came up")


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_run_leaves_nothing(built: Path, edit: Edit, how: signal.Signals) -> None:
    edit("book/waves.md", "emit.figure()", "import time\ntime.sleep(60)")
    (built / "_build/.lock").touch()
    before = sorted(str(path) for path in built.rglob("*"))
    process = command(built, "execute", "waves")
    family = wait_for_kernel(process)
    sockets = Path(next(words(p)[-1] for p in family if "tools.worker" in words(p))).parent
    assert list(sockets.iterdir())
    process.send_signal(how)
    process.communicate(timeout=10)
    assert process.returncode == (130 if how != signal.SIGKILL else -how)
    _, alive = psutil.wait_procs(family, timeout=10)
    assert not alive
    assert not sockets.exists()
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
