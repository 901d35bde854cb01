"""Run chapters with papermill, one process a core; a run that would repeat itself is re-used."""

import argparse
import ast
import copy
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import psutil
from nbformat import NotebookNode

from tools import chapters as book
from tools.files import ToolError, digest, read_json, write_atomic, write_json

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
NOISE = ("papermill", "execution")


@dataclass(frozen=True)
class Task:
    """A chapter to run, with which parameters, and the folder its notebook goes to."""

    chapter: str
    parameters: dict[str, Any]
    out: Path

    @property
    def title(self) -> str:
        """How messages call it."""
        extra = ", ".join(f"{name}={value}" for name, value in self.parameters.items())
        return f"{self.chapter} ({extra})" if extra else self.chapter


@dataclass
class Run:
    """A task under way in a worker process."""

    task: Task
    source: NotebookNode
    key: str
    folder: Path
    process: subprocess.Popen[bytes]
    start: float


def check_parameters(nb: NotebookNode, chapter: str, parameters: dict[str, Any]) -> None:
    """Raise where a parameter is not assigned in the chapter's parameters cell."""
    allowed = book.parameter_names(nb)
    for name in parameters:
        if name not in allowed:
            raise ToolError(
                f"unknown parameter {name!r} (value {parameters[name]!r}) for chapter {chapter!r};"
                f" allowed: {', '.join(allowed) or 'none, it has no cell tagged `parameters`'}"
            )


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
            while book.INJECTED in book.tags(ran[0]):
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


def store(task: Task, source: NotebookNode, executed: NotebookNode, report: dict[str, Any]) -> None:
    """Write the normalised notebook, then the report that vouches for it."""
    text = nbformat.writes(graft(source, executed)) + "\n"
    path = task.out / f"{task.chapter}.ipynb"
    if not path.exists() or path.read_text() != text:
        write_atomic(path, text)
    if read_json(report_path(task)) != report:
        write_json(report_path(task), report)


def report_path(task: Task) -> Path:
    """Where a task's report stands."""
    return task.out / f"{task.chapter}.json"


def cached(task: Task, source: NotebookNode, key: str) -> bool:
    """Re-use the last run where its key matches, under the present prose; True if so."""
    report = read_json(report_path(task), {})
    path = task.out / f"{task.chapter}.ipynb"
    if report.get("key") != key or not path.exists():
        return False
    store(task, source, nbformat.read(path, as_version=4), report)
    return True


def start(root: Path, task: Task, source: NotebookNode, key: str, folder: Path) -> Run:
    """Start a worker for one task; it works in `folder` and nowhere else."""
    folder.mkdir()
    nbformat.write(source, folder / "in.ipynb")
    env = os.environ | dict.fromkeys(THREADS, "1") | {"PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    command = [sys.executable, "-m", "tools.worker", "in.ipynb", "out.ipynb"]
    command += [json.dumps(task.parameters), "report.json", str(root / "book")]
    tools = Path(__file__).parents[1]
    env["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([str(root), str(tools)]))
    process = subprocess.Popen(
        command, cwd=folder, env=env, start_new_session=True,
        stdout=(folder / "log").open("wb"), stderr=subprocess.STDOUT,
    )  # fmt: skip
    return Run(task, source, key, folder, process, time.monotonic())


def finish(root: Path, run: Run) -> dict[str, Any]:
    """Store what a worker made, or say which cell failed and how."""
    if not (run.folder / "report.json").exists():
        log = (run.folder / "log").read_text(errors="replace")[-2000:]
        return {"failure": f"{run.task.title}: the worker died\n{log}"}
    outcome = json.loads((run.folder / "report.json").read_text())
    seconds = {name: outcome[name] for name in ("cpu_seconds", "wall_seconds")}
    if failure := outcome["failure"]:
        cells = book.code_cells(run.source)
        number = failure["cell"]
        first = cells[number - 1].source.split("\n")[0] if number else ""
        where = f"book/{run.task.chapter}.md:{book.cell_line(root, run.task.chapter, number)}"
        text = f"{run.task.title}: code cell {number} `{first}` ({where}): {failure['error']}"
        return seconds | {"failure": f"{text}\n{failure['traceback']}".rstrip()}
    executed = nbformat.read(run.folder / "out.ipynb", as_version=4)
    store(run.task, run.source, executed, {"key": run.key} | seconds)
    return seconds


def stop(run: Run) -> None:
    """Kill a worker and its kernel."""
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
def progress(total: int) -> Iterator[Any]:
    """A live line on a terminal, plain lines elsewhere."""
    tty = sys.stdout.isatty()

    def show(done: int, running: list[Run], news: str = "") -> None:
        if news:
            print(("\r\033[K" if tty else "") + f"[{done}/{total}] {news}", flush=True)
        if tty:
            names = ", ".join(f"{r.task.title} {time.monotonic() - r.start:.0f} s" for r in running)
            print(f"\r\033[K[{done}/{total}] {names}"[:100], end="", flush=True)

    yield show
    if tty:
        print("\r\033[K", end="")


def run_all(root: Path, tasks: list[Task], jobs: int | None = None) -> dict[str, dict[str, Any]]:
    """Run every task that is not cached; {title: seconds and, where it failed, the failure}."""
    results: dict[str, dict[str, Any]] = {}
    waiting = []
    for task in tasks:
        source = book.read_source(root, task.chapter)
        check_parameters(source, task.chapter, task.parameters)
        key = cache_key(root, source, task.parameters)
        if cached(task, source, key):
            results[task.title] = read_json(report_path(task)) | {"cached": True}
        else:
            waiting.append((task, source, key))
    waiting.sort(key=lambda item: -last_seconds(root, item[0].chapter))
    running: list[Run] = []
    limit = jobs or os.cpu_count() or 1
    with tempfile.TemporaryDirectory(prefix="book-") as folder, progress(len(tasks)) as show:
        try:
            for task in tasks:
                if task.title in results:
                    show(len(results), running, f"{task.title}: unchanged")
            while waiting or running:
                while waiting and len(running) < limit:
                    task, source, key = waiting.pop(0)
                    place = Path(folder, str(len(waiting)))
                    running.append(start(root, task, source, key, place))
                    show(len(results), running, f"{task.title}: started")
                time.sleep(0.1)
                for run in [r for r in running if r.process.poll() is not None]:
                    running.remove(run)
                    result = results[run.task.title] = finish(root, run)
                    passed = f"{time.monotonic() - run.start:.1f} s"
                    news = f"FAILED after {passed}" if "failure" in result else f"done in {passed}"
                    show(len(results), running, f"{run.task.title}: {news}")
                show(len(results), running)
        finally:
            for run in running:
                stop(run)
    return results


def last_seconds(root: Path, chapter: str) -> float:
    """CPU seconds of the chapter's last default run; long ones go first."""
    report = read_json(root / "_build/executed" / f"{chapter}.json", {})
    return float(report.get("cpu_seconds", 1e9))


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
    parser.add_argument("--mutant")
    parser.add_argument("--scale")
    parser.add_argument("-p", action="append", default=[], metavar="NAME=VALUE", dest="others")
    parser.add_argument("--out", type=Path, help="default: _build/executed, or _build/run")
    parser.add_argument("--jobs", type=int, help="processes at once (default: one a core)")
    args = parser.parse_args(argv)
    given = {name: getattr(args, name) for name in ("seed", "mutant", "scale")}
    parameters = {name: value for name, value in given.items() if value is not None}
    for other in args.others:
        name, _, value = other.partition("=")
        parameters[name] = literal(value)
    root = Path.cwd()
    out = args.out or root / "_build" / ("run" if parameters else "executed")
    tasks = [Task(name, parameters, out) for name in book.chosen(root, args.chapters)]
    return report(run_all(root, tasks, args.jobs))
