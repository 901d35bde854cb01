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
import zlib
from itertools import zip_longest
from pathlib import Path

from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from nbformat import NotebookNode

from tools import address, chapters, claims
from tools.execute import graft
from tools.files import ToolError, write_atomic
from tools.lighten import lighten
from tools.names import CLAIM, OWN_TYPES

FORMS = {
    "dark": "dark/{}.png",
    "light-narrow": "narrow/{}.light.png",
    "dark-narrow": "narrow/{}.dark.png",
}
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


def provenance(root: Path, name: str, nb: NotebookNode) -> str:
    """Where the numbers of a chapter's figures come from, as the head of their tables."""
    first = next(c for c in chapters.code_cells(nb) if "parameters" in chapters.tags(c))
    lines = [f"chapter {name}", *filter(None, first.source.split("\n"))]
    lines += [f"version {address.commit(root)}"]
    return "".join(f"# {line}\n" for line in lines)


def stated(output: NotebookNode) -> bool:
    """Whether a claim's directive shows what this output says."""
    return "quantity" in output.get("data", {}).get(CLAIM, {})


def take_forms(root: Path, name: str, nb: NotebookNode) -> None:
    """Move a figure's other forms into files named for its light form, its table into its own.

    Our own types of output go.
    """
    build, head = root / "_build", provenance(root, name, nb)
    for cell in chapters.code_cells(nb):
        cell.outputs = [out for out in cell.outputs if not stated(out)]
        for output in cell.outputs:
            data, about = output.get("data", {}), output.get("metadata", {})
            if (forms := about.pop("fltutils", {})) and "image/png" in data:
                about.pop("image/png")  # its size, which the page gives it
                light = hashlib.sha256(base64.b64decode(data["image/png"])).hexdigest()
                for form, place in FORMS.items():
                    path = build / place.format(light)
                    write_atomic(path, base64.b64decode(forms[form]))
                label = cell.metadata["mystnb"]["figure"]["name"]
                table = zlib.decompress(base64.b64decode(forms["data"])).decode()
                write_atomic(build / f"data/{label}.csv", f"# figure {label}\n{head}{table}")
            for kind in [kind for kind in data if kind.startswith(OWN_TYPES)]:
                del data[kind]


def fill_cache(root: Path, names: list[str], committed: bool) -> None:
    """A fresh jupyter-cache, and the figures' other forms, from the stored notebooks."""
    for folder in (".jupyter_cache", "dark", "narrow", "data"):
        shutil.rmtree(root / "_build" / folder, ignore_errors=True)
        (root / "_build" / folder).mkdir(parents=True)
    cache = get_cache(str(root / "_build" / ".jupyter_cache"))
    for name in names:
        nb = stored(root, name, committed)
        take_forms(root, name, nb)
        cache.cache_notebook_bundle(CacheBundleIn(nb, name), check_validity=False, overwrite=True)


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
    names, work, place = chapters.chapters(root), root / "_build/.site", root / "_build/html"
    claims.collect(root, committed=committed)
    fill_cache(root, names, committed)
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
