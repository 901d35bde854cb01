"""The portable notebook beside each source: executed, in plain Markdown, with an install cell."""

import argparse
import ast
import base64
import binascii
import copy
import difflib
import io
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import numpy as np
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell
from PIL import Image

from tools import address, readers
from tools import chapters as book
from tools.execute import cache_key, count_cells, graft, last_run
from tools.files import ToolError, digest, write_if_changed
from tools.labels import Book, captioned, cell_lines, read_book
from tools.plain import Page, caption, check_maths, convert, path, references

GLUE = "application/papermill.record/text/plain"
ADDRESS = re.compile(r'(?m)^SOURCE = os\.environ\.get\("FLTUTILS_SOURCE", ".*"\)$')
HIDDEN = {
    "hide-input": {"source_hidden": True},
    "hide-output": {"outputs_hidden": True},
    "hide-cell": {"source_hidden": True, "outputs_hidden": True},
}
PIXELS = 0.5  # mean difference, of 255, that rounding on another processor may make
INSTALL = """\
# Colab starts here: install the book's helper package. Where it is installed, nothing happens.
import importlib.util
import os
import subprocess
import sys

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


def outputs(nb: NotebookNode) -> Iterator[NotebookNode]:
    """Every output of a notebook."""
    for cell in nb.cells:
        if cell.cell_type == "code":
            yield from cell.outputs


def glue_values(nb: NotebookNode) -> dict[str, str]:
    """The values the chapter's cells glued, by name."""
    values = {}
    for output in outputs(nb):
        name = output.get("metadata", {}).get("scrapbook", {}).get("name")
        if name and GLUE in output.data:
            values[name] = str(ast.literal_eval(output.data[GLUE]))
    return values


def plain_code(cell: NotebookNode) -> NotebookNode:
    """A code cell with its tags, hidden parts in the form Jupyter and Colab understand."""
    metadata: dict[str, object] = {}
    if tags := book.tags(cell):
        metadata["tags"] = tags
    hidden = {name: True for tag in tags for name in HIDDEN.get(tag, {})}
    if hidden:
        metadata["jupyter"] = hidden
    if "source_hidden" in hidden:
        metadata["cellView"] = "form"
    return new_code_cell(cell.source, metadata=metadata, outputs=copy.deepcopy(cell.outputs))


def portable(shared: Book, name: str, executed: NotebookNode) -> NotebookNode:
    """The portable form of an executed chapter; every fault of its prose in one error."""
    page = Page(shared, name, glue_values(executed))
    cells: list[NotebookNode] = []
    lines = cell_lines(shared.root, name, executed)
    for cell, line in zip(executed.cells, lines, strict=True):
        if cell.cell_type == "markdown":
            text = convert(page, cell.source, line)
            cells += [new_markdown_cell(text)] if text else []
            continue
        if not any(c.cell_type == "code" for c in cells):
            cells.append(install_cell(address.source(shared.root)))
        cells.append(plain_code(cell))
        if figure := captioned(cell):
            cells.append(new_markdown_cell(caption(page, str(figure["caption"]), line, line)))
    if text := references(page):
        cells.append(new_markdown_cell(text))
    check_maths(page)
    if page.found:
        raise ToolError("\n".join(f"{path(page)}:{line}: {what}" for line, what in page.found))
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


def derived(root: Path, names: list[str]) -> Iterator[tuple[str, NotebookNode]]:
    """Each chapter with its portable notebook; every fault of every chapter in one error."""
    shared = read_book(root)
    found = []
    for name in names:
        try:
            yield name, portable(shared, name, executed_chapter(root, name))
        except ToolError as error:
            found.append(str(error))
    if found:
        raise ToolError("\n".join(found))


def pixels(data: str) -> np.ndarray | None:
    """The pixels of a base64 PNG."""
    try:
        with Image.open(io.BytesIO(base64.b64decode(data))) as image:
            return np.asarray(image.convert("RGBA"), dtype=float)
    except (OSError, binascii.Error, SyntaxError):  # PIL raises SyntaxError on a broken PNG
        return None


def alike(ours: str, theirs: str) -> bool:
    """Whether two PNGs show the same."""
    a, b = pixels(ours), pixels(theirs)
    if a is None or b is None or a.shape != b.shape:
        return False
    return bool(np.abs(a - b).mean() < PIXELS)


def images(output: NotebookNode) -> Iterator[tuple[NotebookNode, str]]:
    """Where an output keeps a light and a dark PNG."""
    if "image/png" in output.get("data", {}):
        yield output.data, "image/png"
    if "dark" in output.get("metadata", {}).get("fltutils", {}):
        yield output.metadata.fltutils, "dark"


def comparable(nb: NotebookNode, other: NotebookNode) -> list[str]:
    """Lines to compare: no address; an image that shows the same as the other's is that one."""
    nb = copy.deepcopy(nb)
    for cell in nb.cells:
        if cell.id == "install":
            cell.source = ADDRESS.sub("SOURCE = …", cell.source)
    theirs = [place for output in outputs(other) for place in images(output)]
    ours = [place for output in outputs(nb) for place in images(output)]
    for i, (holder, key) in enumerate(ours):
        if i < len(theirs):
            twin = theirs[i][0][theirs[i][1]]
            if holder[key] != twin and alike(holder[key], twin):
                holder[key] = twin
    for holder, key in ours:
        holder[key] = f"<png {digest([holder[key]])[:12]}>"
    return str(nbformat.writes(nb)).split("\n")


def difference(committed: NotebookNode, fresh: NotebookNode, name: str) -> str:
    """The head of the difference between two notebooks; empty where they agree."""
    diff = difflib.unified_diff(
        comparable(committed, fresh), comparable(fresh, committed),
        f"book/{name}.ipynb (committed)", f"book/{name}.ipynb (from book/{name}.md)",
        n=1, lineterm="",
    )  # fmt: skip
    lines = [line[:160] for line in diff]
    more = [f"… {len(lines) - 40} lines more"] if len(lines) > 40 else []
    return "\n".join(lines[:40] + more)


def check(root: Path, names: list[str]) -> None:
    """Raise where a committed notebook is not what its source and its run give."""
    stale = []
    for name, nb in derived(root, names):
        target = root / "book" / f"{name}.ipynb"
        if not target.exists():
            stale.append(f"book/{name}.ipynb is missing")
            continue
        # Through text and back: joined lines, plain types, as in the committed file.
        fresh = nbformat.reads(nbformat.writes(nb), as_version=4)
        if diff := difference(readers.read_notebook(target), fresh, name):
            stale.append(f"book/{name}.ipynb is stale; run `make book` and commit it\n{diff}")
    if stale:
        raise ToolError("\n\n".join(stale))


def write(root: Path, names: list[str]) -> None:
    """Write the portable notebooks that changed."""
    for name, nb in derived(root, names):
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
    if args.check:
        check(root, names)
        print(f"{len(names)} notebooks are what their sources give")
    else:
        write(root, names)
