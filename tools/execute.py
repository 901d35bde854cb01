"""Run chapters with papermill, one process a core; a run that would repeat itself is re-used."""

import argparse
import ast
import copy
import errno
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import psutil
from nbformat import NotebookNode

from tools import chapters as book
from tools import kernels, slices
from tools.files import ToolError, digest, read_derived, swap, write_atomic, write_json
from tools.names import INJECTED

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
DRAFT, TABLES, FIGURES = (f"FLTUTILS_{what}" for what in ("DRAFT", "TABLES", "FIGURES"))  # of plots
NOISE = ("papermill", "execution")
ROOM = 1_000_000  # bytes a disk has that is not full


@dataclass(frozen=True)
class Task:
    """A chapter to run, with which parameters, and the folder its notebook goes to.

    It runs under a mutant, or is followed by mutants of its own, each with the claims to try.
    """

    chapter: str
    parameters: dict[str, Any]
    out: Path
    mutant: str = ""
    trials: tuple[tuple[str, tuple[str, ...]], ...] = ()
    draft: bool = False  # no figure is made: its verdicts count

    @property
    def title(self) -> str:
        """How messages call it."""
        given = self.parameters | ({"mutant": self.mutant} if self.mutant else {})
        extra = ", ".join(f"{name}={value}" for name, value in given.items())
        return f"{self.chapter} ({extra})" if extra else self.chapter


@dataclass
class Run:
    """A task, and the worker process it is under way in."""

    task: Task
    source: NotebookNode
    key: str
    folder: Path = Path()
    process: subprocess.Popen[bytes] | None = None
    start: float = 0.0


def check_parameters(nb: NotebookNode, chapter: str, parameters: dict[str, Any]) -> None:
    """Raise where a parameter is not assigned in the chapter's parameters cell."""
    allowed = book.parameter_names(nb)
    for name in parameters:
        if name not in allowed:
            raise ToolError(
                f"unknown parameter {name!r} (value {parameters[name]!r}) for chapter {chapter!r};"
                f" allowed: {', '.join(allowed) or 'none, it has no cell tagged `parameters`'}"
            )


def read_source(root: Path, task: Task) -> NotebookNode:
    """What a task runs: the chapter, under its mutant or before its trials."""
    path = root / "book" / f"{task.chapter}.md"
    known = sorted(book.mutants(path))
    for name in (task.mutant, *(name for name, _ in task.trials)):
        if name and name not in known:
            allowed = ", ".join(known) or "none, it has no such cell"
            raise ToolError(f"book/{task.chapter}.md: no mutant {name!r}; allowed: {allowed}")
    nb = book.read_source(root, task.chapter, task.mutant)
    mutated = {name: (book.read_source(root, task.chapter, name), ids) for name, ids in task.trials}
    nb.cells += slices.trials(nb, mutated)
    return nb


def cache_key(root: Path, nb: NotebookNode, parameters: dict[str, Any]) -> str:
    """What the outputs of a run depend on: code, package modules, lock, Python, parameters."""
    cells = [c.source for c in book.code_cells(nb)]
    placed = [str("parameters" in book.tags(c)) for c in book.code_cells(nb)]
    files = book.closure(root, cells)
    locks = sorted(root.glob("requirements*.txt"))
    return digest([
        *cells, *placed,
        *(str(path.relative_to(root)) for path in files),
        *(path.read_bytes() for path in files),
        *(lock.read_bytes() for lock in locks),
        platform.python_version(),
        json.dumps(parameters, sort_keys=True),
    ])  # fmt: skip


def merge_streams(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Join neighbouring pieces of one stream: where they split depends on timing."""
    merged: list[NotebookNode] = []
    for output in outputs:
        last = merged[-1] if merged else None
        if last and last.output_type == "stream" == output.output_type and last.name == output.name:
            last.text += output.text
        else:
            merged.append(output)
    return merged


def clean(metadata: NotebookNode) -> NotebookNode:
    """Metadata without what a run leaves behind."""
    kept = {k: v for k, v in metadata.items() if k not in NOISE and not (k == "tags" and not v)}
    return nbformat.from_dict(kept)


def count_cells(nb: NotebookNode) -> None:
    """Number the code cells as a run from the top does."""
    for count, cell in enumerate((c for c in nb.cells if c.cell_type == "code"), 1):
        cell.execution_count = count
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = count


def graft(source: NotebookNode, executed: NotebookNode) -> NotebookNode:
    """The source's cells with the outputs of a run of the same code, and nothing of its noise."""
    nb = copy.deepcopy(source)
    nb.nbformat, nb.nbformat_minor = 4, 5
    ran = [cell for cell in executed.cells if cell.cell_type == "code"]
    cells = []
    for cell in nb.cells:
        cell.metadata = clean(cell.metadata)
        if cell.cell_type == "code":
            while INJECTED in book.tags(ran[0]):
                injected = ran.pop(0)
                injected.metadata = clean(injected.metadata)
                cells.append(injected)
            twin = ran.pop(0)
            if twin.source != cell.source:
                raise ToolError(f"a run of other code: {cell.source[:60]!r}, {twin.source[:60]!r}")
            cell.outputs = merge_streams(twin.outputs)
        cells.append(cell)
    nb.cells = cells
    count_cells(nb)
    book.stable_ids(nb)
    return nb


def state(folder: Path, name: str) -> str:
    """One hash of a run's notebook and of the files that its figures left."""
    paths = [folder / f"{name}.ipynb", *sorted((folder / "figures" / name).glob("*"))]
    return digest(x for path in paths if path.exists() for x in (path.name, path.read_bytes()))


def store(task: Task, source: NotebookNode, executed: NotebookNode, report: dict[str, Any]) -> None:
    """Write the normalised notebook, then the report that vouches for it."""
    text = nbformat.writes(graft(source, executed)) + "\n"
    write_atomic(task.out / f"{task.chapter}.ipynb", text)
    known = {"digest": state(task.out, task.chapter)}
    write_json(task.out / f"{task.chapter}.json", report | known)


def last_report(folder: Path, name: str) -> dict[str, Any]:
    """What is known of a chapter's last run; empty where its files are not what that wrote."""
    report: dict[str, Any] = read_derived(folder / f"{name}.json", {})
    return report if report.get("digest") == state(folder, name) else {}


def last_run(folder: Path, name: str, key: str) -> NotebookNode | None:
    """The notebook of a chapter's last run, where that ran the same."""
    if last_report(folder, name).get("key") != key:
        return None
    return nbformat.read(folder / f"{name}.ipynb", as_version=4)


def cached(task: Task, source: NotebookNode, key: str) -> bool:
    """Re-use the last run where its key matches, under the present prose; True if so."""
    executed = last_run(task.out, task.chapter, key)
    if executed is None:
        return False
    store(task, source, executed, last_report(task.out, task.chapter))
    return True


def work(root: Path, run: Run, place: Path, sockets: Path, show: Callable[[str], None]) -> None:
    """Run one task in a worker, which works in a folder of its own and nowhere else."""
    run.start = time.monotonic()
    run.folder = Path(tempfile.mkdtemp(dir=place))
    write_atomic(run.folder / "in.ipynb", nbformat.writes(run.source))
    env = os.environ | dict.fromkeys(THREADS, "1") | {"PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    figures = run.folder / "figures"
    figures.mkdir()
    env |= {DRAFT: "1"} if run.task.draft else dict.fromkeys((TABLES, FIGURES), str(figures))
    command = [sys.executable, "-m", "tools.worker", "in.ipynb", "out.ipynb"]
    command += [json.dumps(run.task.parameters), "report.json", str(root / "book")]
    command += [str(sockets / run.folder.name)]
    tools = Path(__file__).parents[1]
    env["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([str(root), str(tools)]))
    with (run.folder / "log").open("wb") as log:
        run.process = subprocess.Popen(
            command, cwd=run.folder, env=env, start_new_session=True, stdout=log, stderr=log
        )
    show(f"{run.task.title}: started")
    run.process.wait()


def finish(root: Path, run: Run) -> dict[str, Any]:
    """Store what a worker made, or say which cell failed and how."""
    if not (run.folder / "report.json").exists():
        if shutil.disk_usage(run.folder).free < ROOM:  # then its last words are lost, too
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(run.folder))
        log = (run.folder / "log").read_text(errors="replace")[-2000:]
        return {"failure": f"{run.task.title}: the worker died\n{log}"}
    outcome = json.loads((run.folder / "report.json").read_text())
    seconds = {name: outcome[name] for name in ("cpu_seconds", "wall_seconds")}
    if failure := outcome["failure"]:
        cells = book.code_cells(run.source)
        number = failure["cell"]
        first = cells[number - 1].source.split("\n")[0] if number else ""
        where = f"book/{run.task.chapter}.md:{book.cell_line(root, run.task.chapter, number)}"
        if number and (names := book.of_mutants(book.tags(cells[number - 1]))):
            where = f"the mutant {names[0]} of book/{run.task.chapter}.md"
        text = f"{run.task.title}: code cell {number} `{first}` ({where}): {failure['error']}"
        return seconds | {"failure": f"{text}\n{failure['traceback']}".rstrip()}
    executed = nbformat.read(run.folder / "out.ipynb", as_version=4)
    swap(run.folder / "figures", run.task.out / "figures" / run.task.chapter)
    store(run.task, run.source, executed, {"key": run.key} | seconds)
    return seconds


def stop(run: Run) -> None:
    """Kill a worker and its kernel."""
    if run.process is None:
        return
    try:
        family = psutil.Process(run.process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        family = []
    run.process.kill()
    for child in family:
        with suppress(psutil.NoSuchProcess):
            child.kill()
    run.process.wait()


@contextmanager
def progress(total: int, results: dict[str, Any], runs: list[Run]) -> Iterator[Any]:
    """A live line on a terminal, plain lines elsewhere."""
    tty = sys.stdout.isatty()

    def show(news: str = "") -> None:
        head = ("\r\033[K" if tty else "") + f"[{len(results)}/{total}] "
        text = f"{head}{news}\n" if news else ""
        if tty:
            alive = [run for run in runs if run.process and run.process.poll() is None]
            names = [f"{run.task.title} {time.monotonic() - run.start:.0f} s" for run in alive]
            text += (head + ", ".join(names))[:100]
        print(text, end="", flush=True)

    yield show
    if tty:
        print("\r\033[K", end="")


@contextmanager
def workplace(root: Path) -> Iterator[tuple[Path, Path]]:
    """Two empty folders, for workers and for sockets; what a killed run left is gone."""
    work = root / "_build/work"
    shutil.rmtree(work, ignore_errors=True)  # a killed run's worker may be removing it, too
    work.mkdir(parents=True, exist_ok=True)
    with kernels.sockets() as sockets, tempfile.TemporaryDirectory(dir=work) as place:
        yield Path(place), Path(sockets)


def run_all(root: Path, tasks: list[Task], jobs: int | None = None) -> dict[str, dict[str, Any]]:
    """Run every task that is not cached; {title: seconds and, where it failed, the failure}."""
    if jobs is not None and jobs < 1:
        raise ToolError(f"--jobs {jobs} is not allowed; give a whole number ≥ 1")
    results: dict[str, dict[str, Any]] = {}
    runs = []
    for task in tasks:
        source = read_source(root, task)
        check_parameters(source, task.chapter, task.parameters)
        key = cache_key(root, source, task.parameters)
        if cached(task, source, key):
            results[task.title] = last_report(task.out, task.chapter) | {"cached": True}
        else:
            runs.append(Run(task, source, key))
    runs.sort(key=lambda run: -last_seconds(root, run.task.chapter))
    with (
        workplace(root) as places,
        progress(len(tasks), results, runs) as show,
        ThreadPoolExecutor(jobs or os.cpu_count()) as pool,
    ):
        for title in list(results):
            show(f"{title}: unchanged")
        waiting = {pool.submit(work, root, run, *places, show): run for run in runs}
        try:
            while waiting:
                for future in wait(waiting, timeout=1, return_when=FIRST_COMPLETED).done:
                    run = waiting.pop(future)
                    future.result()
                    result = results[run.task.title] = finish(root, run)
                    passed = f"{time.monotonic() - run.start:.1f} s"
                    news = f"FAILED after {passed}" if "failure" in result else f"done in {passed}"
                    show(f"{run.task.title}: {news}")
                show()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            while any(future.running() for future in waiting):
                for run in waiting.values():
                    stop(run)
    return results


def last_seconds(root: Path, chapter: str) -> float:
    """CPU seconds of the chapter's last default run, here or as stored; long ones go first."""
    stored: dict[str, float] = read_derived(root / "book/_generated/timings.json", {})
    report = last_report(root / "_build/executed", chapter)
    return float(report.get("cpu_seconds", stored.get(chapter, 1e9)))


def table(results: dict[str, dict[str, Any]]) -> str:
    """Wall and CPU seconds of every run."""
    width = max([len(title) for title in results] + [7])
    lines = [f"{'chapter':{width}}  {'wall s':>7}  {'CPU s':>7}"]
    for title, result in results.items():
        note = "  unchanged" if result.get("cached") else ""
        note = "  FAILED" if "failure" in result else note
        wall, cpu = result.get("wall_seconds", 0.0), result.get("cpu_seconds", 0.0)
        lines.append(f"{title:{width}}  {wall:7.1f}  {cpu:7.1f}{note}")
    return "\n".join(lines)


def failures(results: dict[str, dict[str, Any]]) -> list[str]:
    """What failed, one text each."""
    return [result["failure"] for result in results.values() if "failure" in result]


def report(results: dict[str, dict[str, Any]]) -> int:
    """Print the timing table and the failures; the exit code."""
    print(table(results))
    for failure in failures(results):
        print(f"\nerror: {failure}", file=sys.stderr)
    return 1 if failures(results) else 0


def literal(text: str) -> Any:
    """A Python literal, else the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def main(argv: list[str]) -> int:
    """Run chapters; 1 where one fails."""
    parser = argparse.ArgumentParser(prog="python -m tools execute")
    parser.add_argument("chapters", nargs="*", help="all of them by default")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--mutant", default="", help="run its cells in place of the ones before")
    parser.add_argument("--scale")
    parser.add_argument("-p", action="append", default=[], metavar="NAME=VALUE", dest="others")
    parser.add_argument("--out", type=Path, help="default: _build/executed, or _build/run")
    parser.add_argument("--jobs", type=int, help="processes at once (default: one a core)")
    args = parser.parse_args(argv)
    if args.seed is not None and args.seed < 0:
        raise ToolError(f"seed {args.seed} is not allowed; give a whole number ≥ 0")
    given = {name: getattr(args, name) for name in ("seed", "scale")}
    parameters = {name: value for name, value in given.items() if value is not None}
    for other in args.others:
        name, _, value = other.partition("=")
        parameters[name] = literal(value)
    root = Path.cwd()
    out = args.out or root / "_build" / ("run" if parameters or args.mutant else "executed")
    names = book.chosen(root, args.chapters)
    tasks = [Task(name, parameters, out, args.mutant) for name in names]
    return report(run_all(root, tasks, args.jobs))
