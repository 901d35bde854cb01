"""Make .venv from the two requirements files: `python3 tools/environment.py`, no package needed.

A stamp in .venv holds a hash of everything the environment is made from. It is written last, so
an interrupted set-up is taken up again by the next run. A .venv that works keeps its Python;
`make PYTHON=…` replaces it.
"""

from __future__ import annotations  # an older Python must reach the message

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

SUPPORTED = ((3, 11), (3, 13))
TORCH, PACKAGES = "requirements-torch.txt", "requirements.txt"
INPUTS = (TORCH, PACKAGES, "pyproject.toml")


def stamp(root: Path, version: str) -> str:
    """What the environment is made from, in one hash."""
    total = hashlib.sha256(version.encode())
    for name in INPUTS:
        total.update((root / name).read_bytes())
    return total.hexdigest()


def version(python: Path) -> str:
    """The version of an interpreter that has pip; nothing where it does not run."""
    code = "import pip, sys; print(sys.version)"
    if not python.exists():
        return ""
    return subprocess.run([python, "-c", code], capture_output=True, text=True).stdout.strip()


def run(*command: str | Path) -> None:
    """Run a step of the set-up; stop with its name where it fails."""
    if subprocess.run(command).returncode:
        step = " ".join(map(str, command))
        sys.exit(f"error: this step of the set-up failed; run it again:\n  {step}")


def check(root: Path) -> None:
    """Stop where this Python or this folder cannot carry the environment."""
    if not SUPPORTED[0] <= sys.version_info[:2] <= SUPPORTED[1]:
        oldest, newest = (".".join(map(str, pair)) for pair in SUPPORTED)
        found = ".".join(map(str, sys.version_info[:3]))
        sys.exit(
            f"error: this book needs Python {oldest} to {newest}; {sys.executable} is {found}."
            f" Say which one to use: make PYTHON=/path/to/python{newest} …"
        )
    if os.pathsep in str(root):
        sys.exit(
            f"error: {root}: the path contains {os.pathsep!r}, which separates paths in PATH;"
            " move the repository to a folder without it"
        )


def make(root: Path, replace: bool) -> None:
    """Bring .venv to the state of the locks; `replace` one of another Python."""
    venv = root / ".venv"
    mark = venv / ".stamp"
    python = venv / "bin" / "python"
    found = version(python)
    found = "" if replace and found != sys.version else found
    if found and mark.exists() and mark.read_text() == stamp(root, found):
        os.utime(mark)
        return
    mark.unlink(missing_ok=True)
    if not found:
        check(root)
        print("environment: a new .venv (about a minute and 1.9 GB)", flush=True)
        shutil.rmtree(venv, ignore_errors=True)
        run(sys.executable, "-m", "venv", venv)
        found = sys.version
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    for name in (TORCH, PACKAGES):
        print(f"environment: packages of {name}", flush=True)
        run(*pip, "--no-deps", "--require-hashes", "--requirement", root / name)
    run(*pip, "--no-deps", "--no-build-isolation", "--editable", root)
    run(python, "-m", "pip", "check")  # --no-deps cannot see that the locks lack a package
    mark.write_text(stamp(root, found))  # half of one is none
    print("environment: ready")


def main() -> None:
    """Make the environment; a Python that make was given replaces that of .venv."""
    try:
        make(Path(__file__).resolve().parents[1], replace="PYTHON" in os.environ)
    except KeyboardInterrupt:
        sys.exit("\ninterrupted: the next run takes the set-up up again")


if __name__ == "__main__":
    main()
