"""One papermill run in a process of its own.

`python -m tools.worker IN OUT PARAMETERS REPORT CWD SOCKETS`
"""

import json
import os
import resource
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import Any

import nbformat
import psutil
from papermill.engines import NBClientEngine, papermill_engines
from papermill.exceptions import PapermillExecutionError, strip_color
from papermill.execute import execute_notebook

from tools.files import write_atomic
from tools.kernels import private
from tools.names import INJECTED


def follow(parent: int, *places: Path) -> None:
    """When the process that started us is gone: take down the kernel, our folders, and us."""
    while os.getppid() == parent:
        time.sleep(0.5)
    for child in psutil.Process().children(recursive=True):
        child.kill()
    for place in places:
        shutil.rmtree(place, ignore_errors=True)  # another worker may be removing it, too
    os._exit(1)


class Engine(NBClientEngine):
    """Papermill's engine, but it saves a notebook at the end alone, not twice a cell."""

    @classmethod
    def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, **given: Any) -> None:
        """Run the cells; whatever happens in them, papermill saves what there is then."""
        place, nb_man.output_path = nb_man.output_path, None
        try:
            super().execute_managed_notebook(nb_man, kernel_name, **given)
        finally:
            nb_man.output_path = place


papermill_engines.register("at-the-end", Engine)


def last_cell(target: Path) -> int:
    """How many code cells of the source had begun."""
    if not target.exists():
        return 0
    cells = [c for c in nbformat.read(target, as_version=4).cells if c.cell_type == "code"]
    own = [c for c in cells if INJECTED not in c.metadata.get("tags", [])]
    begun = [i for i, c in enumerate(own, 1) if c.metadata.papermill.start_time]
    return max(begun, default=0)


def main() -> None:
    """Run the notebook; write what happened, a failure included, to REPORT."""
    source, target, parameters, report, cwd, sockets = sys.argv[1:]
    written = Path(report).absolute()  # papermill works in `cwd`, and stays there if ours is gone
    family = (os.getppid(), Path.cwd().parent, Path(sockets).parent)
    threading.Thread(target=follow, args=family, daemon=True).start()
    start = time.monotonic()
    failure: dict[str, object] = {}
    try:
        execute_notebook(
            source, target, parameters=json.loads(parameters), kernel_name="python3",
            engine_name="at-the-end", progress_bar=False, cwd=cwd, config=private(Path(sockets)),
        )  # fmt: skip
    except PapermillExecutionError as error:
        lines = strip_color("\n".join(error.traceback)).splitlines()[-12:]
        failure = {"error": f"{error.ename}: {error.evalue}", "traceback": "\n".join(lines)}
    except Exception as error:  # a kernel that died, a kernel that never started
        failure = {"error": f"{type(error).__name__}: {error}", "traceback": ""}
    if failure:
        failure["cell"] = last_cell(Path(target))
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    outcome = {
        "wall_seconds": round(time.monotonic() - start, 2),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 2),
        "failure": failure or None,
    }
    write_atomic(written, json.dumps(outcome))


if __name__ == "__main__":
    main()
