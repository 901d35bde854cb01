"""A browser for the tests of the site: one that is there, else one that can be installed."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.files import ToolError

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
]  # a GPU that is not there need not be imitated
MAC = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")


def runs(path: str) -> bool:
    """Whether this is a browser that starts."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def existing() -> str:
    """A browser of this machine; empty where there is none."""
    found = [os.environ.get("CHROMIUM_PATH", ""), *map(shutil.which, NAMES), str(MAC)]
    return next((path for path in found if path and runs(path)), "")


def playwrights() -> str:
    """Playwright's own browser, where it is installed; empty otherwise."""
    code = (
        "from playwright.sync_api import sync_playwright as s\n"
        "with s() as p: print(p.chromium.executable_path)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    path = done.stdout.strip()
    return path if path and runs(path) else ""


def quietly(*command: str) -> None:
    """Run a command; what it says goes to stderr, stdout is for the path."""
    subprocess.run(command, stdout=sys.stderr, check=False)


def install() -> Iterator[str]:
    """Ask Playwright for its browser, then the system's package manager, which takes root."""
    root = os.geteuid() == 0 and shutil.which("apt-get")
    extra = ["--with-deps"] if root else []
    quietly(sys.executable, "-m", "playwright", "install", *extra, "chromium")
    yield playwrights()
    if root:
        quietly("apt-get", "update")
        quietly("apt-get", "install", "--yes", "--no-install-recommends", "chromium")
        yield existing()


def main(argv: list[str]) -> None:
    """Print the path of a browser that starts."""
    if path := existing() or playwrights() or next(filter(None, install()), ""):
        print(path)
        return
    raise ToolError(
        "no Chromium here and none could be installed; install Chromium or Chrome, or set"
        " CHROMIUM_PATH to one"
    )
