"""environment.yml takes what make installs, conda understands it, and pip can install it."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from rattler import MatchSpec

from tools.environment import PACKAGES, SUPPORTED, TORCH

ROOT = Path(__file__).parents[2]


def entries() -> list[str]:
    """What conda installs."""
    listed: list[str] = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    return listed


def pip_commands() -> list[list[str]]:
    """What pip installs afterwards."""
    lines = (ROOT / "environment.yml").read_text().split("\n")
    return [line.split()[2:] for line in lines if line.startswith("#   python -m pip ")]


def conda_spec(text: str) -> MatchSpec:
    """An entry as conda reads it."""
    return MatchSpec(text, strict=False)


def test_conda_understands_its_part() -> None:
    specs = {str(spec.name.normalized): spec for spec in map(conda_spec, entries())}
    assert set(specs) == {"python", "pip"}
    (major, oldest), (_, newest) = SUPPORTED
    assert str(specs["python"].version) == f">={major}.{oldest},<{major}.{newest + 1}"


def test_a_wrong_conda_entry_is_refused() -> None:
    with pytest.raises(Exception, match="unable to parse version spec"):
        conda_spec("numpy>>2.0")


def test_pip_installs_what_make_does() -> None:
    assert [command[-1] for command in pip_commands()] == [TORCH, PACKAGES, "."]
    assert all(command[:4] == ["-m", "pip", "install", "--no-deps"] for command in pip_commands())


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that is gone afterwards: pytest would keep three of these environments."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.mark.slow
@pytest.mark.nightly
def test_the_commands_of_environment_yml(place: Path) -> None:
    python = place / "venv/bin/python"
    commands: list[list[str | Path]] = [
        [sys.executable, "-m", "venv", place / "venv"],
        *([python, *command] for command in pip_commands()),
        [python, "-m", "pip", "check"],
        [python, "-c", "import fltutils, jupyter_book, jupytext, nbval, papermill"],
    ]
    plain = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    for command in commands:
        done = subprocess.run(command, cwd=ROOT, env=plain, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
