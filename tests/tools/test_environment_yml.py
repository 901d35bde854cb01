"""environment.yml takes what make installs, conda understands it, and pip can install it."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from rattler import MatchSpec

from tools.environment import PACKAGES, SUPPORTED, TORCH

ROOT = Path(__file__).parents[2]


def entries() -> tuple[list[str], list[str]]:
    """What conda installs, and what pip does."""
    listed: list[Any] = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    return [item for item in listed if isinstance(item, str)], listed[-1]["pip"]


def conda_spec(text: str) -> MatchSpec:
    """An entry as conda reads it."""
    return MatchSpec(text, strict=False)


def test_conda_understands_its_part() -> None:
    specs = {str(spec.name.normalized): spec for spec in map(conda_spec, entries()[0])}
    assert set(specs) == {"python", "pip"}
    (major, oldest), (_, newest) = SUPPORTED
    assert str(specs["python"].version) == f">={major}.{oldest},<{major}.{newest + 1}"


def test_a_wrong_conda_entry_is_refused() -> None:
    with pytest.raises(Exception, match="unable to parse version spec"):
        conda_spec("numpy>>2.0")


def test_the_pip_section_is_what_make_installs() -> None:
    assert entries()[1] == [f"--requirement {name}" for name in (TORCH, PACKAGES)]


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that is gone afterwards: pytest would keep three of these environments."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.mark.slow
@pytest.mark.nightly
def test_the_two_commands_of_environment_yml(place: Path) -> None:
    # conda writes the pip section into a file beside environment.yml and gives it to pip.
    listed = "\n".join(
        line.replace("requirement ", f"requirement {ROOT}/") for line in entries()[1]
    )
    (place / "pip.txt").write_text(listed)
    python = place / "venv/bin/python"
    pip: list[str | Path] = [python, "-m", "pip"]
    commands: list[list[str | Path]] = [
        [sys.executable, "-m", "venv", place / "venv"],
        [*pip, "install", "--quiet", "--requirement", place / "pip.txt"],
        [*pip, "install", "--quiet", "--no-deps", "--editable", ROOT],
        [*pip, "check"],
        [python, "-c", "import fltutils, jupyter_book, jupytext, nbval, papermill"],
    ]
    # Where torch's index is out of reach, six attempts for each package would take half an hour.
    plain = os.environ | {"PIP_RETRIES": "1"}
    plain.pop("PYTHONPATH", None)
    for command in commands:
        done = subprocess.run(command, cwd=place, env=plain, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
