"""Chapter code as a person would write it: 88 columns, arguments fill the line."""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from tools import chapters as book
from tools import readers
from tools.files import ToolError, write_if_changed

COLUMNS = 88
RUFF = [
    *(sys.executable, "-m", "ruff", "format", "--isolated", "--quiet"),
    *("--line-length", str(COLUMNS), "--config", "format.skip-magic-trailing-comma = true"),
]


def parts(path: Path, body: str) -> tuple[str, str]:
    """A cell's options with the empty lines after them, and its code."""
    lines = body.split("\n")
    used = book.options(path, body, 1)[1]
    while not lines[used].strip():
        used += 1
    return "\n".join(lines[:used]) + "\n" * bool(used), "\n".join(lines[used:])


def formatted(path: Path) -> str:
    """The chapter with the code of every cell, mutants' and exercises' too, as ruff lays it out."""
    content = readers.text(path)
    cells = list(book.CELL.finditer(content))
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, f"{i:03d}.py") for i in range(len(cells))]
        for file, cell in zip(files, cells, strict=True):
            file.write_text(parts(path, cell[2])[1])
        done = subprocess.run([*RUFF, folder], capture_output=True, text=True)
        if done.returncode:
            raise ToolError(f"{path.name}: ruff cannot format a cell\n{done.stderr}")
        code = [file.read_text() for file in files]
    for cell, new in reversed(list(zip(cells, code, strict=True))):
        body = parts(path, cell[2])[0] + new
        content = content[: cell.start(2)] + body + content[cell.end(2) :]
    return content


def main(argv: list[str]) -> None:
    """Format the code of the chapters named, or of all."""
    parser = argparse.ArgumentParser(prog="python -m tools format")
    parser.add_argument("chapters", nargs="*")
    root = Path.cwd()
    for name in book.chosen(root, parser.parse_args(argv).chapters):
        path = root / "book" / f"{name}.md"
        if write_if_changed(path, formatted(path)):
            print(f"book/{name}.md: formatted")
