"""timings.json: CPU seconds of each chapter's last run, rounded up to change seldom."""

import argparse
import math
from pathlib import Path

from tools import chapters as book
from tools.execute import last_report
from tools.files import ToolError, read_derived, write_json

STEP = 5


def measured(root: Path, name: str) -> int:
    """The seconds of a chapter's last default run."""
    report = last_report(root / "_build/executed", name)
    if not report:
        raise ToolError(f"{name} was never executed here: run `make book`")
    return STEP * math.ceil(report["cpu_seconds"] / STEP)


def add_missing(root: Path) -> None:
    """Give each chapter that has no timing yet its first one; the others stay."""
    known: dict[str, int] = read_derived(root / "book/_generated/timings.json", {})
    names = book.chapters(root)
    if set(names) - set(known):
        seconds = {name: known.get(name) or measured(root, name) for name in names}
        write_json(root / "book/_generated/timings.json", seconds)


def main(argv: list[str]) -> None:
    """Write the file from the reports of the last execution, or name the notebooks by it."""
    parser = argparse.ArgumentParser(prog="python -m tools timings")
    parser.add_argument("--longest", action="store_true", help="name notebooks, longest first")
    root = Path.cwd()
    if parser.parse_args(argv).longest:
        stored: dict[str, int] = read_derived(root / "book/_generated/timings.json", {})
        names = sorted(book.chapters(root), key=lambda name: -stored.get(name, 999))
        print(*(f"book/{name}.ipynb" for name in names))
        return
    seconds = {name: measured(root, name) for name in book.chapters(root)}
    write_json(root / "book/_generated/timings.json", seconds)
    print(", ".join(f"{name}: {value} s" for name, value in seconds.items()))
