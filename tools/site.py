"""Render _build/html from stored outputs: nothing is executed, a warning is a fault."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from itertools import zip_longest
from pathlib import Path

from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from nbformat import NotebookNode

from tools import chapters, claims, forms
from tools.execute import graft
from tools.files import ToolError, swap, write_atomic
from tools.lighten import lighten
from tools.names import CLAIM, OWN_TYPES

JUPYTER_BOOK = "from jupyter_book.cli.main import main; main(prog_name='jupyter-book')"


def stored(root: Path, name: str, committed: bool) -> NotebookNode:
    """The chapter's present prose with the outputs of a stored notebook, if code agrees."""
    folder = "book" if committed else "_build/executed"
    nb, source = claims.stored(root, name, root / folder), chapters.read_source(root, name)
    nb.cells = [cell for cell in chapters.code_cells(nb) if "install" not in chapters.tags(cell)]
    pairs = zip_longest(chapters.code_cells(source), nb.cells)
    for count, (ours, theirs) in enumerate(pairs, 1):
        if not (ours and theirs and ours.source == theirs.source):
            line = chapters.cell_line(root, name, count)
            raise ToolError(
                f"book/{name}.md:{line}: code cell {count} has no stored output: "
                f"{folder}/{name}.ipynb is stale, its code differs: run `make book`"
            )
    return graft(source, nb)


def bare(nb: NotebookNode) -> NotebookNode:
    """A notebook without what a page does not show: our own types, and the size of a picture.

    What a claim found stands on the page where its directive does.
    """
    for cell in chapters.code_cells(nb):
        cell.outputs = [o for o in cell.outputs if "quantity" not in o.get("data", {}).get(CLAIM, {})]
    for output in (output for cell in chapters.code_cells(nb) for output in cell.outputs):
        output.get("metadata", {}).pop("image/png", None)
        data = output.get("data", {})
        for kind in [kind for kind in data if kind.startswith(OWN_TYPES)]:
            del data[kind]
    return nb


def fill_cache(root: Path, ran: dict[str, NotebookNode]) -> None:
    """A fresh jupyter-cache from the stored notebooks."""
    folder = root / "_build/.jupyter_cache"
    shutil.rmtree(folder, ignore_errors=True)
    cache = get_cache(str(folder))
    for name, nb in ran.items():
        bundle = CacheBundleIn(bare(nb), name)
        cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)


def run_sphinx(root: Path, output: Path) -> None:
    """Build every page anew under `output`; a warning or a cache miss is an error."""
    shutil.rmtree(output, ignore_errors=True)
    command = [sys.executable, "-c", JUPYTER_BOOK, "build", "book", "--config", "_config.yml"]
    command += ["--toc", str(root / "_toc.yml"), "--path-output", str(output)]
    command += ["-n", "-W", "--keep-going"]
    # the extensions use tools
    env = os.environ | {"NO_COLOR": "1", "PYTHONPATH": str(Path(__file__).parents[1])}
    pipe = subprocess.PIPE
    done = subprocess.run(
        command, cwd=root, env=env, stdout=pipe, stderr=subprocess.STDOUT, text=True
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


def build(root: Path, committed: bool = False) -> Path:
    """Render the site from the last run, or from the committed notebooks."""
    names, work, place = chapters.chapters(root), root / "_build/.site", root / "_build/html"
    claims.collect(root, committed=committed)
    ran = {name: stored(root, name, committed) for name in names}
    for name, nb in ran.items():
        forms.check(root, name, nb)
    fill_cache(root, ran)
    run_sphinx(root, work)
    fresh = work / "_build/html"
    downloads(root, names, fresh)
    lighten(fresh)
    swap(fresh, place)
    shutil.rmtree(work)
    return place


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
