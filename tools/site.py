"""Render _build/html from stored outputs: nothing is executed, a warning is a fault."""

import argparse
import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from myst_nb.core.read import read_myst_markdown_notebook
from nbformat import NotebookNode

from tools import chapters, claims
from tools.files import ToolError, write_atomic
from tools.lighten import lighten
from tools.names import OWN_TYPES

JUPYTER_BOOK = "from jupyter_book.cli.main import main; main(prog_name='jupyter-book')"


def with_outputs(source: NotebookNode, run: NotebookNode, name: str) -> NotebookNode:
    """The chapter as Sphinx reads it, with the outputs of the same code cells in a run.

    The run may hold more cells (papermill's parameters, the install cell), never fewer.
    """
    waiting = [cell for cell in run.cells if cell.cell_type == "code"]
    for count, cell in enumerate(chapters.code_cells(source), 1):
        while waiting and waiting[0].source.strip() != cell.source.strip():
            waiting.pop(0)
        if not waiting:
            line = source.cells.index(cell)
            where = source.metadata["source_map"][line] + 1
            raise ToolError(
                f"book/{name}.md line {where}: code cell {count} has no stored output: "
                "run `make book`"
            )
        found = waiting.pop(0)
        cell.outputs, cell.execution_count = found.outputs, found.execution_count
    if "language_info" in run.metadata:
        source.metadata["language_info"] = run.metadata["language_info"]
    return source


def take_dark_twins(nb: NotebookNode, folder: Path) -> None:
    """Move each figure's dark form into a file named for its light form; drop our own types."""
    for cell in chapters.code_cells(nb):
        for output in cell.outputs:
            data = output.get("data", {})
            dark = output.get("metadata", {}).pop("fltutils", {}).get("dark")
            if dark and "image/png" in data:
                light = hashlib.sha256(base64.b64decode(data["image/png"])).hexdigest()
                write_atomic(folder / f"{light}.png", base64.b64decode(dark))
            for kind in [kind for kind in data if kind.startswith(OWN_TYPES)]:
                del data[kind]


def fill_cache(root: Path, names: list[str], committed: bool) -> None:
    """A fresh jupyter-cache and fresh dark twins from the stored notebooks."""
    for folder in (root / "_build" / ".jupyter_cache", root / "_build" / "dark"):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    folder = root / ("book" if committed else "_build/executed")
    cache = get_cache(str(root / "_build" / ".jupyter_cache"))
    for name in names:
        text = chapters.live(root / "book" / f"{name}.md")
        source = read_myst_markdown_notebook(text, add_source_map=True)
        nb = with_outputs(source, claims.stored(root, name, folder), name)
        take_dark_twins(nb, root / "_build" / "dark")
        cache.cache_notebook_bundle(CacheBundleIn(nb, name), check_validity=False, overwrite=True)


def run_sphinx(root: Path, output: Path) -> None:
    """Build every page anew under `output`; a warning or a cache miss is an error."""
    shutil.rmtree(output, ignore_errors=True)
    command = [sys.executable, "-c", JUPYTER_BOOK, "build", "book", "--config", "_config.yml"]
    command += ["--toc", str(root / "_toc.yml"), "--path-output", str(output)]
    command += ["-n", "-W", "--keep-going"]
    environment = os.environ | {"NO_COLOR": "1"}
    environment["PYTHONPATH"] = str(Path(__file__).parents[1])  # the extensions use tools
    done = subprocess.run(
        command,
        cwd=root,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    write_atomic(root / "_build" / "site.log", done.stdout)
    if done.returncode or "Executing notebook" in done.stdout:
        raise ToolError(f"the site did not build\n{faults(done.stdout, root)}")


def faults(log: str, root: Path) -> str:
    """The lines of a Sphinx log that say what is wrong."""
    plain = re.sub(r"\x1b\[[\d;]*m", "", log).replace(f"{root}{os.sep}", "")
    marks = ("WARNING", "ERROR", "CRITICAL", "rror:", "error!")
    lines = [line for line in plain.splitlines() if any(mark in line for mark in marks)]
    return "\n".join(lines or plain.splitlines()[-20:])


def downloads(root: Path, names: list[str], site: Path) -> None:
    """Offer the portable notebooks, with their outputs, where the pages link to."""
    for name in names:
        portable = root / "book" / f"{name}.ipynb"
        if not portable.exists():
            raise ToolError(f"book/{name}.ipynb is missing: run `make book`")
        shutil.copy(portable, site / "_sources" / portable.name)


def swap(new: Path, place: Path) -> None:
    """Put a finished folder at its place: at no moment does a half-written site stand there."""
    old = place.with_name(f"{place.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if place.exists():
        os.replace(place, old)
    os.replace(new, place)
    shutil.rmtree(old, ignore_errors=True)


def build(root: Path, committed: bool = False) -> Path:
    """Render the site from the last run, or from the committed notebooks."""
    names = chapters.chapters(root)
    claims.collect(root, committed=committed)
    fill_cache(root, names, committed)
    work = root / "_build" / ".site"
    run_sphinx(root, work)
    fresh = work / "_build" / "html"
    downloads(root, names, fresh)
    lighten(fresh)
    swap(fresh, root / "_build" / "html")
    shutil.rmtree(work)
    return root / "_build" / "html"


def main(argv: list[str]) -> int:
    """Render the site and say where it is."""
    parser = argparse.ArgumentParser(prog="python -m tools site", description=__doc__)
    parser.add_argument("--committed", action="store_true", help="from the committed notebooks")
    start = time.monotonic()
    # `make book` trusts this mark; it sets it again for a site of the last run.
    (Path.cwd() / "_build/site.json").unlink(missing_ok=True)
    site = build(Path.cwd(), parser.parse_args(argv).committed)
    print(f"site: {site.relative_to(Path.cwd())}/index.html ({time.monotonic() - start:.1f} s)")
    return 0
