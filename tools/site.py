"""Pages and portable notebooks from stored outputs: nothing is executed, a warning is a fault."""

import argparse
import copy
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from nbformat import NotebookNode

from tools import address, chapters, claims, forms, outputs, portable
from tools.files import ToolError, digest, read_derived, swap, write_atomic, write_json
from tools.lighten import lighten
from tools.names import CLAIM, OWN_TYPES

LOCKS = ("requirements.txt", "requirements-torch.txt")
INPUTS = ("book", "_config.yml", "_toc.yml", *LOCKS, "fltutils", "tools")
JUPYTER_BOOK = "from jupyter_book.cli.main import main; main(prog_name='jupyter-book')"


def inputs(root: Path, committed: bool) -> Iterator[Path]:
    """Every file the site is made from, in a fixed order."""
    for place in (root / name for name in INPUTS):
        yield from sorted(path for path in (place, *place.rglob("*")) if path.is_file())
    if not committed:
        yield from (root / "_build/executed" / f"{name}.ipynb" for name in chapters.chapters(root))


def key(root: Path, committed: bool) -> str:
    """What the site is made from, in one hash."""
    paths = [path for path in inputs(root, committed) if path.suffix != ".pyc"]
    names = [str(path.relative_to(root)) for path in paths]
    where = [address.repository(root) or "", address.reference(root), address.commit(root)]
    return digest([*names, *(path.read_bytes() for path in paths), *where])


def bare(nb: NotebookNode) -> NotebookNode:
    """A notebook without what a page does not show: our own types, and the size of a picture.

    What a claim found stands on the page where its directive does.
    """
    nb = copy.deepcopy(nb)
    for cell in chapters.code_cells(nb):
        found = [output.get("data", {}).get(CLAIM, {}) for output in cell.outputs]
        cell.outputs = [
            o for o, claim in zip(cell.outputs, found, strict=True) if "quantity" not in claim
        ]
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


def build(root: Path, committed: bool = False) -> Path:
    """Render pages and notebooks from the last run, or from the committed notebooks."""
    work, place = root / "_build/.site", root / "_build/html"
    fresh = work / "_build/html"
    print(f"claims: {claims.collect(root, committed)}")
    read = outputs.committed if committed else outputs.executed
    ran = {name: read(root, name) for name in chapters.chapters(root)}
    for name, nb in ran.items():
        (forms.check if committed else forms.write)(root, name, nb)
    fill_cache(root, ran)
    run_sphinx(root, work)
    portable.write(root, ran)
    for notebook in (root / f"book/{name}.ipynb" for name in ran):
        if not committed:
            write_atomic(notebook, (root / portable.PLACE / notebook.name).read_bytes())
        shutil.copy(notebook, fresh / "_sources")
    lighten(fresh)
    swap(fresh, place)
    shutil.rmtree(work)
    return place


def ensure(root: Path, committed: bool) -> None:
    """Build pages and notebooks unless they are those of the present files."""
    mark, index, start = root / "_build/site.json", "_build/html/index.html", time.monotonic()
    if (root / index).exists() and read_derived(mark, "") == key(root, committed):
        print(f"site: unchanged, {index}")
        return
    mark.unlink(missing_ok=True)
    build(root, committed)
    write_json(mark, key(root, committed))
    print(f"site: {index} ({time.monotonic() - start:.1f} s)")


def main(argv: list[str]) -> None:
    """Render the site and say where it is."""
    parser = argparse.ArgumentParser(prog="python -m tools site", description=__doc__)
    parser.add_argument("--committed", action="store_true", help="from the committed notebooks")
    ensure(Path.cwd(), parser.parse_args(argv).committed)
