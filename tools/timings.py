"""book/timings.json: CPU seconds of each chapter's last run, rounded up to change seldom."""

import math
from pathlib import Path

from tools import chapters as book
from tools.files import ToolError, read_json, write_json

STEP = 5


def main(argv: list[str]) -> None:
    """Write the file from the reports of the last execution."""
    root = Path.cwd()
    seconds = {}
    for name in book.chapters(root):
        report = read_json(root / "_build/executed" / f"{name}.json")
        if report is None:
            raise ToolError(f"{name} was never executed here: run `make book`")
        seconds[name] = STEP * math.ceil(report["cpu_seconds"] / STEP)
    write_json(root / "book/timings.json", seconds)
    print(", ".join(f"{name}: {value} s" for name, value in seconds.items()))
