"""The environment is made once, repaired when it was interrupted, and made anew when it changed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools import environment

INPUTS = {"requirements.lock": "numpy==2.4.6\n", "pyproject.toml": '[project]\nname = "x"\n'}


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps of a set-up in tmp_path; a venv is faked, no package is installed."""
    taken: list[str] = []

    def run(*command: str | Path) -> None:
        taken.append("venv" if "venv" in command else str(command[-1]))
        if "venv" in command:
            (tmp_path / ".venv/bin").mkdir(parents=True)
            (tmp_path / ".venv/bin/python").symlink_to(sys.executable)

    monkeypatch.setattr(environment, "run", run)
    for name, text in INPUTS.items():
        (tmp_path / name).write_text(text)
    return taken


def test_a_new_environment_then_nothing(tmp_path: Path, steps: list[str]) -> None:
    environment.make(tmp_path)
    assert steps == ["venv", str(tmp_path / "requirements.lock"), str(tmp_path)]
    environment.make(tmp_path)
    assert len(steps) == 3


@pytest.mark.parametrize("name", list(INPUTS))
def test_a_changed_input_installs_again(tmp_path: Path, steps: list[str], name: str) -> None:
    environment.make(tmp_path)
    (tmp_path / name).write_text(INPUTS[name] + "# changed\n")
    environment.make(tmp_path)
    assert steps[3:] == [str(tmp_path / "requirements.lock"), str(tmp_path)]


def test_an_interrupted_set_up_is_taken_up_again(
    tmp_path: Path, steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = environment.run

    def interrupted(*command: str | Path) -> None:
        if "venv" not in command:
            raise KeyboardInterrupt
        whole(*command)

    monkeypatch.setattr(environment, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        environment.make(tmp_path)
    assert not (tmp_path / ".venv/.stamp").exists()
    monkeypatch.setattr(environment, "run", whole)
    environment.make(tmp_path)
    assert steps == ["venv", str(tmp_path / "requirements.lock"), str(tmp_path)]
    assert (tmp_path / ".venv/.stamp").read_text() == environment.stamp(tmp_path)


def test_a_half_made_venv_is_made_anew(tmp_path: Path, steps: list[str]) -> None:
    (tmp_path / ".venv/lib").mkdir(parents=True)
    environment.make(tmp_path)
    assert steps[0] == "venv"


def test_an_old_python_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 4, "final", 0))
    with pytest.raises(SystemExit, match=r"needs Python 3\.11 or newer; .* is 3\.10\.4"):
        environment.main()


def test_it_needs_the_standard_library_only() -> None:
    code = "import sys; sys.path.insert(0, 'tools'); import environment"
    root = Path(__file__).parents[2]
    command = [sys.executable, "-I", "-S", "-c", code]
    done = subprocess.run(command, cwd=root, env=dict(os.environ), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
