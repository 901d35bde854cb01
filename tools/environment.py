"""Make .venv from requirements.lock: `python3 tools/environment.py`, standard library only.

A stamp in .venv holds a hash of everything the environment is made from. It is written last, so
an interrupted set-up is taken up again by the next run.
"""

from __future__ import annotations  # an older Python must reach the message

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST = (3, 11)
INPUTS = ("requirements.lock", "pyproject.toml")


def stamp(root: Path) -> str:
    """What the environment is made from, in one hash."""
    total = hashlib.sha256(sys.version.encode())
    for name in INPUTS:
        total.update((root / name).read_bytes())
    return total.hexdigest()


def works(python: Path) -> bool:
    """Whether this interpreter is one of our Python version and has pip."""
    code = "import pip, sys; print(*sys.version_info[:2])"
    if not python.exists():
        return False
    done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    return done.stdout.split() == [str(part) for part in sys.version_info[:2]]


def run(*command: str | Path) -> None:
    """Run a step of the set-up; stop with its name where it fails."""
    if subprocess.run(command).returncode:
        step = " ".join(map(str, command))
        sys.exit(f"error: this step of the set-up failed; run it again:\n  {step}")


def make(root: Path) -> None:
    """Bring .venv to the state of the lock, whatever state it was left in."""
    venv = root / ".venv"
    mark = venv / ".stamp"
    wanted = stamp(root)
    python = venv / "bin" / "python"
    if mark.exists() and mark.read_text() == wanted and works(python):
        os.utime(mark)
        return
    mark.unlink(missing_ok=True)
    if not works(python):
        print("environment: a new .venv (about a minute and 1.5 GB)", flush=True)
        shutil.rmtree(venv, ignore_errors=True)
        run(sys.executable, "-m", "venv", venv)
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    print("environment: packages of requirements.lock", flush=True)
    run(*pip, "-r", root / "requirements.lock")
    run(*pip, "--no-deps", "--editable", root)
    temporary = mark.with_suffix(".tmp")
    temporary.write_text(wanted)
    os.replace(temporary, mark)
    print("environment: ready")


def main() -> None:
    """Check the Python version, then make the environment."""
    if sys.version_info < OLDEST:
        found = ".".join(str(part) for part in sys.version_info[:3])
        sys.exit(
            f"error: this book needs Python {OLDEST[0]}.{OLDEST[1]} or newer; {sys.executable} is"
            f" {found}. Say which one to use: make PYTHON=/path/to/python3.11 …"
        )
    try:
        make(Path(__file__).resolve().parents[1])
    except KeyboardInterrupt:
        sys.exit("\ninterrupted: the next run takes the set-up up again")


if __name__ == "__main__":
    main()
