"""The portable notebook beside each source: executed, in plain Markdown, with an install cell."""

import argparse
import ast
import copy
import difflib
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from tools import address, forms, readers
from tools import chapters as book
from tools.execute import cache_key, count_cells, graft, last_run
from tools.files import ToolError, write_if_changed
from tools.labels import Book, cell_lines, figure, read_book
from tools.names import GLUE
from tools.plain import Page, caption, convert, references
from tools.site import stored

ADDRESS = re.compile(r'(?m)^SOURCE = os\.environ\.get\("FLTUTILS_SOURCE", ".*"\)$')
OWN_LINK = re.compile(r"\[([^\]]*)\]\(https://[\w-]+\.github\.io/[^)\s]+\.html\)")
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


def glue_values(nb: NotebookNode) -> dict[str, str]:
    """The values the chapter's cells glued, by name."""
    values = {}
    for output in (output for cell in book.code_cells(nb) for output in cell.outputs):
        name = output.get("metadata", {}).get("scrapbook", {}).get("name")
        if name and GLUE + "text/plain" in output.data:
            values[name] = str(ast.literal_eval(output.data[GLUE + "text/plain"]))
    return values


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


def portable(shared: Book, name: str, executed: NotebookNode) -> NotebookNode:
    """The portable form of an executed chapter; every fault of its prose in one error."""
    page = Page(shared, name, glue_values(executed), address.site(shared.root))
    cells: list[NotebookNode] = []
    path, lines = f"book/{name}.md", cell_lines(shared.root, name)
    shared.md.parse(readers.text(shared.root / path), page.env)  # footnotes stand anywhere
    for cell, line in zip(executed.cells, lines, strict=True):
        if cell.cell_type == "markdown":
            text = convert(page, cell.source, line)
            cells += [new_markdown_cell(text)] if text else []
            continue
        if not any(c.cell_type == "code" for c in cells):
            cells.append(install_cell(address.source(shared.root)))
        cells.append(plain_code(cell))
        picture, words, wrong = figure(cell)
        for what in [*wrong, *machine(shared.root, cell)]:
            page.fault(line, what)
        if words:
            cells.append(new_markdown_cell(caption(page, words, picture, line)))
    if text := references(page):
        cells.append(new_markdown_cell(text))
    if page.found:
        raise ToolError("\n".join(f"{path}:{line}: {what}" for line, what in page.found))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    nb = nbformat.v4.new_notebook(cells=cells, metadata=metadata)
    count_cells(nb)
    book.stable_ids(nb)
    nb.cells[[c.cell_type for c in cells].index("code")].id = "install"
    nbformat.validate(nb)
    return nb


def executed_chapter(root: Path, name: str) -> NotebookNode:
    """The chapter's present prose with the outputs of its last default run, if code agrees."""
    source = book.read_source(root, name)
    executed = last_run(root / "_build/executed", name, cache_key(root, source, {}))
    if executed is None:
        raise ToolError(f"book/{name}.md was not executed in its present state: run `make book`")
    return graft(source, executed)


def derived(root: Path, names: list[str], committed: bool) -> Iterator[tuple[str, NotebookNode]]:
    """Each chapter with its portable notebook; every fault of every chapter in one error."""
    ran = {n: stored(root, n, True) if committed else executed_chapter(root, n) for n in names}
    for name, nb in ran.items():
        (forms.check if committed else forms.write)(root, name, nb)
    shared = read_book(root, committed)
    found = []
    for name, nb in ran.items():
        try:
            yield name, portable(shared, name, nb)
        except ToolError as error:
            found.append(str(error))
    if found:
        raise ToolError("\n".join(found))


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


def check(root: Path, names: list[str]) -> None:
    """Raise where a committed notebook's prose or code is not what its source gives.

    Its outputs are nbval's to check: it runs the committed code and compares.
    """
    stale = []
    for name, nb in derived(root, names, committed=True):
        # Through text and back: joined lines, plain types, as in the committed file.
        fresh = nbformat.reads(nbformat.writes(nb), as_version=4)
        committed = readers.read_notebook(root / "book" / f"{name}.ipynb")
        file, old, new = f"book/{name}.ipynb", comparable(committed), comparable(fresh)
        heads = f"{file} (committed)", f"{file} (from book/{name}.md)"
        lines = difflib.unified_diff(old, new, *heads, n=1, lineterm="")
        if diff := [line[:160] for line in lines]:
            more = [f"… {len(diff) - 40} lines more"] if len(diff) > 40 else []
            head = f"{file} is stale; run `make book` and commit it"
            stale.append("\n".join([head, *diff[:40], *more]))
    if stale:
        raise ToolError("\n\n".join(stale))
    print(f"{len(names)} notebooks are what their sources give")


def write(root: Path, names: list[str]) -> None:
    """Write the portable notebooks that changed."""
    for name, nb in derived(root, names, committed=False):
        text = nbformat.writes(nb) + "\n"
        state = write_if_changed(root / "book" / f"{name}.ipynb", text)
        print(f"book/{name}.ipynb: {'written' if state else 'unchanged'}")


def main(argv: list[str]) -> None:
    """Write or check the portable notebooks."""
    parser = argparse.ArgumentParser(prog="python -m tools portable")
    parser.add_argument("chapters", nargs="*")
    parser.add_argument("--check", action="store_true", help="compare with the committed files")
    args = parser.parse_args(argv)
    root = Path.cwd()
    names = book.chosen(root, args.chapters)
    (check if args.check else write)(root, names)
