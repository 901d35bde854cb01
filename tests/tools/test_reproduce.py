"""nbval on committed notebooks: an output that does not reproduce is red."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
Edit = Callable[[str, str, str], None]


def nbval(root: Path, name: str) -> subprocess.CompletedProcess[str]:
    """nbval on one chapter as `make test` runs it, with the tiny book's own package."""
    command = [sys.executable, "-m", "pytest", "--nbval", "-q", "-p", "no:cacheprovider"]
    command += [f"--rootdir={root}", "-c", os.devnull, f"book/{name}.ipynb"]
    command += ["-p", "tools.kernels", "-p", "tools.pictures_alike"]
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(root), str(REPOSITORY)])}
    return subprocess.run(command, cwd=root, env=env, capture_output=True, text=True)


@pytest.mark.slow
def test_what_stands_reproduces(built: Path) -> None:
    done = nbval(built, "waves")
    assert done.returncode == 0, done.stdout
    assert "7 passed" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [("kou.tides: holds", "kou.tides: held"), ('"verdict": "holds"', '"verdict": 1')],
)
def test_an_edited_output_is_red(built: Path, edit: Edit, old: str, new: str) -> None:
    edit("book/tides.ipynb", old, new)
    done = nbval(built, "tides")
    assert done.returncode == 1, done.stdout
    assert "Cell outputs differ" in done.stdout


@pytest.mark.slow
def test_another_picture_is_red(built: Path, edit: Edit) -> None:
    edit("book/waves.ipynb", '"image/png": "', '"image/png": "another')
    done = nbval(built, "waves")
    assert done.returncode == 1, done.stdout
    assert "the picture shows something else" in done.stdout
    assert "1 failed, 6 passed" in done.stdout


@pytest.mark.slow
def test_another_table_is_red(built: Path, edit: Edit) -> None:
    edit("book/_generated/figures/waves/fig-waves.csv", "0.5", "0.6")
    done = nbval(built, "waves")
    assert "the numbers of the picture differ" in done.stdout
    assert "1 failed, 6 passed" in done.stdout
