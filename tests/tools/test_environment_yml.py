"""environment.yml says what pyproject.toml and requirements.lock say, and pip can install it."""

import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from rattler import MatchSpec

ROOT = Path(__file__).parents[2]
CONDA = {"python", "pip"}


def entries() -> tuple[list[str], list[str]]:
    """What conda installs, and what pip does."""
    listed: list[Any] = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    return [item for item in listed if isinstance(item, str)], listed[-1]["pip"]


def pip_requirements() -> dict[str, Requirement]:
    """The packages of the pip section by name."""
    found = [Requirement(item) for item in entries()[1] if not item.startswith("-")]
    return {canonicalize_name(requirement.name): requirement for requirement in found}


def lock() -> dict[str, str]:
    """The pins of requirements.lock by name."""
    lines = (ROOT / "requirements.lock").read_text().split("\n")
    found = [line.split("==") for line in lines if "==" in line]
    return {canonicalize_name(name): version for name, version in found}


def project() -> dict[str, Any]:
    """The [project] table of pyproject.toml."""
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return table


def test_conda_understands_its_part() -> None:
    specs = {str(spec.name.normalized): spec for spec in map(conda_spec, entries()[0])}
    assert set(specs) == CONDA
    assert str(specs["python"].version) == project()["requires-python"]


def conda_spec(text: str) -> MatchSpec:
    """An entry as conda reads it."""
    return MatchSpec(text, strict=False)


def test_a_wrong_conda_entry_is_refused() -> None:
    with pytest.raises(Exception, match="unable to parse version spec"):
        conda_spec("numpy>>2.0")


def test_the_pip_section_is_the_lock() -> None:
    pinned = lock()
    for name, requirement in pip_requirements().items():
        assert str(requirement.specifier) == f"=={pinned[name]}"
    assert entries()[1][-1] == "--editable ."


def test_the_pip_section_has_every_dependency_in_its_range() -> None:
    listed = pip_requirements()
    for text in project()["dependencies"]:
        needed = Requirement(text)
        (pin,) = listed[canonicalize_name(needed.name)].specifier
        assert needed.specifier.contains(pin.version), needed


def test_the_lock_has_every_pin_once() -> None:
    lines = (ROOT / "requirements.lock").read_text().split("\n")
    names = [line.split("==")[0] for line in lines if line and not line.startswith("#")]
    assert names == sorted(set(names), key=str.lower)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that is gone afterwards: pytest would keep three of these environments."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.mark.slow
def test_pip_installs_the_pip_section(place: Path) -> None:
    listed = [item.replace(" .", f" {ROOT}") for item in entries()[1]]
    (place / "pip.txt").write_text("\n".join(listed))
    python = place / "venv/bin/python"
    commands: list[list[str | Path]] = [
        [sys.executable, "-m", "venv", place / "venv"],
        [python, "-m", "pip", "install", "--quiet", "--requirement", place / "pip.txt"],
        [python, "-m", "pip", "check"],
        [python, "-c", "import fltutils, jupyter_book, jupytext, nbval, papermill"],
    ]
    for command in commands:
        done = subprocess.run(command, cwd=place, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
