"""nbval on committed notebooks: an output that does not reproduce is red."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Edit = Callable[[str, str, str], None]
REPOSITORY = Path(__file__).parents[2]


def nbval(root: Path) -> subprocess.CompletedProcess[str]:
    """nbval on one chapter, with the tiny book's own package."""
    command = [sys.executable, "-m", "pytest", "--nbval", "-q", "-p", "tools.kernels"]
    command += ["-p", "no:cacheprovider", f"--rootdir={root}", "-c", os.devnull, "book/tides.ipynb"]
    env = os.environ | {"PYTHONPATH": f"{root}{os.pathsep}{REPOSITORY}"}
    return subprocess.run(command, cwd=root, env=env, capture_output=True, text=True)


@pytest.mark.slow
def test_what_stands_reproduces(built: Path) -> None:
    done = nbval(built)
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [("kou.tides: holds", "kou.tides: held"), ('"verdict": "holds"', '"verdict": 1')],
)
def test_an_edited_output_is_red(built: Path, edit: Edit, old: str, new: str) -> None:
    edit("book/tides.ipynb", old, new)
    done = nbval(built)
    assert done.returncode == 1, done.stdout
    assert "Cell outputs differ" in done.stdout
