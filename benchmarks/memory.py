"""Peak memory of the batches that chapters make: `python -m benchmarks.memory [CHAPTER …]`.

Each chapter runs in a process of its own, without its figures. Before a cell begins, what the last
one left goes back to the system, so that the peak of a cell is that of its own largest batch and of
what every process of the book holds: torch, xarray and matplotlib are 350 MB of it.
"""

import ctypes
import gc
import json
import linecache
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tools import chapters as book

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
IN_BLOCKS = "fltutils.grid"  # what a chapter imports whose experiments are worked off in blocks


class Peak(NamedTuple):
    """The cell of a chapter that needs most memory."""

    peak: int  # bytes
    place: str  # file and line


def begin() -> None:
    """Give back to the system what is free, and count the peak from here."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    RESET.write_text("5")


def peak() -> int:
    """Peak resident bytes of this process since it began to count."""
    return int(re.findall(r"VmHWM:\s+(\d+) kB", STATUS.read_text())[0]) * 1024


def cells(root: Path, name: str) -> list[int]:
    """The peak of every code cell of a chapter; exercises and their solutions have none."""
    space: dict[str, Any] = {"__name__": "__main__"}
    found = []
    for count, cell in enumerate(book.code_cells(book.read_source(root, name)), 1):
        begin()
        if not {"exercise", "solution"} & set(book.tags(cell)):
            file = f"<{name}, code cell {count}>"
            linecache.cache[file] = (len(cell.source), None, cell.source.splitlines(True), file)
            exec(compile(cell.source, file, "exec"), space)
        found.append(peak())
    return found


def of_chapter(root: Path, name: str) -> Peak:
    """The largest peak of a chapter, which runs in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.memory", "--cells", name]
    env = os.environ | {"FLTUTILS_DRAFT": "1"}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=root, env=env)
    peaks = json.loads(done.stdout.splitlines()[-1])
    most = max(peaks)
    return Peak(most, f"book/{name}.md:{book.cell_line(root, name, peaks.index(most) + 1)}")


def largest() -> Peak:
    """The largest peak of the chapters that work in blocks."""
    root = Path.cwd()
    texts = {name: (root / f"book/{name}.md").read_text() for name in book.chapters(root)}
    return max(of_chapter(root, name) for name, text in texts.items() if IN_BLOCKS in text)


def main(argv: list[str]) -> None:
    """Tell the peaks of chapters, all by default; `--cells NAME` is what their processes run."""
    root = Path.cwd()
    if argv[:1] == ["--cells"]:
        os.chdir(root / "book")
        print("\n" + json.dumps(cells(root, argv[1])))
        return
    for name in book.chosen(root, argv):
        found = of_chapter(root, name)
        print(f"{found.peak / 1e6:6.0f} MB  {found.place}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
