"""`python -m tools <command> …`, from the top of the repository."""

import argparse
import importlib
import os
import signal
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tools.files import ToolError, lock

COMMANDS = {
    "book": "execute and render: only what has changed",
    "execute": "run the chapters with papermill into _build/executed",
    "format": "lay out the code of the chapters in 88 columns",
    "portable": "write book/<chapter>.ipynb, with the site (--check: compare)",
    "claims": "check claims and exercises, write _build/claims.json",
    "site": "render _build/html and the notebooks",
    "fresh": "run the book at another seed and compare every verdict",
    "mutants": "run every claim under its mutant: it must fail",
    "laws": "write laws.json: each law changed, some claim of it must notice",
    "margins": "write margins.json: every claim at ten seeds drawn from its chapter's code",
    "mutation": "write mutation.json: how many changes of fltutils a test notices",
    "node": "install the node packages of tests/site",
    "publish": "write the notebooks of the branch that Colab reads",
    "pictures": "write the front page's picture from an executed chapter",
    "timings": "write timings.json from the last execution",
    "chromium": "print the path of a usable browser, install one if need be",
    "address": "print the repository's address and reference",
}
ALONE = {"address", "chromium", "mutation", "node", "pictures"}  # without arguments
APART = {"address", "chromium", "node"}  # these write neither under _build nor under book
BARE = APART | {"pictures", "timings"}  # these need no sound book


def guarded(command: str, run: Callable[[], Any], writes: bool = True) -> int:
    """Run a command under the lock; 1 on a fault of the book or of a file, 130 on an interrupt."""
    for interrupt in (signal.SIGINT, signal.SIGTERM):  # a background shell ignores the first
        signal.signal(interrupt, signal.default_int_handler)
    try:
        with lock(Path.cwd(), command) if writes else nullcontext():
            return int(run() or 0)
    except ToolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: {error.filename or Path.cwd()}: {error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted: nothing half-written, run it again", file=sys.stderr)
        return 130


def main() -> int:
    """Run one command; its exit code."""
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        print("usage: python -m tools <command> …\n")
        print("\n".join(f"  {name:9} {about}" for name, about in COMMANDS.items()))
        return 2
    if not Path("_toc.yml").exists():
        print("error: no _toc.yml here: run this from the top of the repository", file=sys.stderr)
        return 2
    if os.pathsep in str(Path.cwd()):
        print(f"error: {Path.cwd()}: Python's paths cannot hold {os.pathsep!r}", file=sys.stderr)
        return 2
    name, *argv = sys.argv[1:]
    if name in ALONE:
        argparse.ArgumentParser(prog=f"python -m tools {name}").parse_args(argv)

    def run() -> Any:
        if name not in BARE:
            importlib.import_module("tools.inputs").check(Path.cwd())
        return importlib.import_module(f"tools.{name}").main(argv)

    return guarded(f"python -m tools {name}", run, writes=name not in APART)


if __name__ == "__main__":
    sys.exit(main())
