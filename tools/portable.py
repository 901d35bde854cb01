"""The portable notebook beside each source: executed, in plain Markdown, with an install cell."""

import argparse
import copy
import difflib
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from tools import address, readers
from tools import chapters as book
from tools.execute import count_cells
from tools.files import ToolError, write_atomic

PLACE = Path("_build/portable")
ADDRESS = re.compile(r'(?m)^SOURCE = os\.environ\.get\("FLTUTILS_SOURCE", ".*"\)$')
OWN_LINK = re.compile(r"\[([^\]]*)\]\(https://[\w-]+\.github\.io/[^)\s]+\.html[^)\s]*\)")
HIDDEN = {
    "hide-input": ("source_hidden",),
    "hide-output": ("outputs_hidden",),
    "hide-cell": ("source_hidden", "outputs_hidden"),
}
PATHS = re.compile(
    r"(?<![\w.:/-])/(?:home|root|tmp|Users|usr|var|opt|mnt)/[^\s<>]+|\b0x[0-9a-f]{8,}\b"
)
INSTALL = """\
# Colab starts here: one thread for BLAS (two are slower) and the book's helper package, where it is
# not installed yet.
import importlib.util
import os
import subprocess
import sys

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")
SOURCE = os.environ.get("FLTUTILS_SOURCE", "{source}")
if importlib.util.find_spec("fltutils") is None:
    if not SOURCE:
        raise ModuleNotFoundError(
            "fltutils is not installed and this copy of the book knows no address to install it"
            " from: set FLTUTILS_SOURCE to one pip understands (git+https://…), or clone the book"
        )
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", SOURCE]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"pip could not install {{SOURCE}}:\\n{{done.stderr}}")
    importlib.invalidate_caches()"""


def install_cell(source: str) -> NotebookNode:
    """The first code cell: it never touches numpy, torch or matplotlib (--no-deps)."""
    return new_code_cell(INSTALL.format(source=source), metadata={"tags": ["install"]})


def machine(root: Path, cell: NotebookNode) -> Iterator[str]:
    """What the outputs of a cell tell of this machine: it would differ on another."""
    own = [re.escape(name) for name in (f"{root}", f"{Path.home()}/", socket.gethostname()) if name]
    address = re.compile(rf"{PATHS.pattern}|(?<![\w-])(?:{'|'.join(own)})(?![\w-])")
    for output in cell.outputs:
        data = output.get("data", {})
        kept = [value for kind, value in data.items() if not kind.startswith("image/")]
        for text in map(str, [*kept, output.get("text", "")]):
            if found := address.search(text):
                yield f"an output of this cell holds {found[0]!r}, an address of this machine"


def plain_code(cell: NotebookNode) -> NotebookNode:
    """A code cell with its tags, hidden parts in the form Jupyter and Colab understand."""
    tags = book.tags(cell)
    hidden = {name: True for tag in tags for name in HIDDEN.get(tag, ())}
    view = "form" if "source_hidden" in hidden else ""  # Colab's word for it
    figure = cell.metadata.get("mystnb", {}).get("figure", {}).get("name")  # nbval finds its table
    words = {"tags": tags, "jupyter": hidden, "cellView": view, "figure": figure}
    metadata = {name: word for name, word in words.items() if word}
    return new_code_cell(cell.source, metadata=metadata, outputs=copy.deepcopy(cell.outputs))


def faults(root: Path, name: str, executed: NotebookNode) -> Iterator[str]:
    """What the outputs of a chapter should not hold."""
    for number, cell in enumerate(book.code_cells(executed), 1):
        for what in machine(root, cell):
            yield f"book/{name}.md:{book.cell_line(root, name, number)}: {what}"


def portable(root: Path, name: str, executed: NotebookNode) -> NotebookNode:
    """The portable form of an executed chapter, whose Markdown the site build has left."""
    code = iter([install_cell(address.source(root)), *map(plain_code, book.code_cells(executed))])
    cells: list[NotebookNode] = []
    for text in readers.read_json(root / PLACE / f"{name}.json"):
        if text is None and not any(cell.cell_type == "code" for cell in cells):
            cells.append(next(code))
        cells.append(next(code) if text is None else new_markdown_cell(text))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    nb = nbformat.v4.new_notebook(cells=cells, metadata=metadata)
    count_cells(nb)
    book.stable_ids(nb)
    book.code_cells(nb)[0].id = "install"
    nbformat.validate(nb)
    return nb


def write(root: Path, ran: dict[str, NotebookNode]) -> None:
    """Write the notebooks under _build; every fault of every chapter in one error."""
    if found := [fault for name, nb in ran.items() for fault in faults(root, name, nb)]:
        raise ToolError("\n".join(found))
    for name, nb in ran.items():
        text = nbformat.writes(portable(root, name, nb)) + "\n"
        write_atomic(root / PLACE / f"{name}.ipynb", text)


def comparable(nb: NotebookNode) -> list[str]:
    """Lines to compare: no address, no link to it, no outputs, the same by construction."""
    nb = copy.deepcopy(nb)
    for cell in book.code_cells(nb):
        if cell.id == "install":
            cell.source = ADDRESS.sub("SOURCE = …", cell.source)
        cell.outputs = []
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            cell.source = OWN_LINK.sub(r"\1", cell.source)
    book.stable_ids(nb)
    return str(nbformat.writes(nb)).split("\n")


def check(root: Path) -> None:
    """Raise where a committed notebook's prose or code is not what its source gives.

    Its outputs are nbval's to check: it runs the committed code and compares.
    """
    stale, names = [], book.chapters(root)
    for name in names:
        file = f"book/{name}.ipynb"
        made, committed = (readers.read_notebook(root / f) for f in (PLACE / f"{name}.ipynb", file))
        heads = f"{file} (committed)", f"{file} (from book/{name}.md)"
        old, new = comparable(committed), comparable(made)
        lines = difflib.unified_diff(old, new, *heads, n=1, lineterm="")
        if diff := [line[:160] for line in lines]:
            more = [f"… {len(diff) - 40} lines more"] if len(diff) > 40 else []
            head = f"{file} is stale; run `make book` and commit it"
            stale.append("\n".join([head, *diff[:40], *more]))
    if stale:
        raise ToolError("\n\n".join(stale))
    print(f"{len(names)} notebooks are what their sources give")


def main(argv: list[str]) -> None:
    """Write or check the portable notebooks, which the build of the site makes."""
    from tools import site  # it loads Sphinx

    parser = argparse.ArgumentParser(prog="python -m tools portable")
    parser.add_argument("--check", action="store_true", help="compare with the committed files")
    args = parser.parse_args(argv)
    site.ensure(Path.cwd(), committed=args.check)
    if args.check:
        check(Path.cwd())
