"""The environment is made once, repaired when it was interrupted, and made anew when it changed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools import environment

ROOT = Path(__file__).parents[2]
INPUTS = {
    "requirements-torch.txt": "torch==2.13.0+cpu\n",
    "requirements.txt": "numpy==2.4.6\n",
    "pyproject.toml": '[project]\nname = "x"\n',
}
OTHER = "#!/bin/sh\necho 3.13.0 of another kind\n"


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps of a set-up in tmp_path; a venv is faked, no package is installed."""
    taken: list[str] = []

    def run(*command: str | Path) -> None:
        taken.append("venv" if "venv" in command else Path(command[-1]).name)
        if "venv" in command:
            (tmp_path / ".venv/bin").mkdir(parents=True)
            (tmp_path / ".venv/bin/python").symlink_to(sys.executable)

    monkeypatch.setattr(environment, "run", run)
    for name, text in INPUTS.items():
        (tmp_path / name).write_text(text)
    return taken


def all_steps(root: Path) -> list[str]:
    """The steps of a set-up from nothing."""
    return ["venv", "requirements-torch.txt", "requirements.txt", root.name, "check"]


def other_python(root: Path, taken: list[str]) -> Path:
    """A finished .venv of another Python; the steps taken are forgotten."""
    environment.make(root, replace=False)
    python = root / ".venv/bin/python"
    python.unlink()
    python.write_text(OTHER)
    python.chmod(0o755)
    (root / ".venv/.stamp").write_text(environment.stamp(root, "3.13.0 of another kind"))
    taken.clear()
    return python


def test_a_new_environment_then_nothing(tmp_path: Path, steps: list[str]) -> None:
    environment.make(tmp_path, replace=False)
    assert steps == all_steps(tmp_path)
    environment.make(tmp_path, replace=True)
    assert steps == all_steps(tmp_path)


@pytest.mark.parametrize("name", list(INPUTS))
def test_a_changed_input_installs_again(tmp_path: Path, steps: list[str], name: str) -> None:
    environment.make(tmp_path, replace=False)
    (tmp_path / name).write_text(INPUTS[name] + "# changed\n")
    environment.make(tmp_path, replace=False)
    assert steps == all_steps(tmp_path) + all_steps(tmp_path)[1:]


def test_a_working_environment_of_another_python_stays(tmp_path: Path, steps: list[str]) -> None:
    python = other_python(tmp_path, steps)
    environment.make(tmp_path, replace=False)
    assert steps == []
    (tmp_path / "requirements.txt").write_text("numpy==2.4.7\n")
    environment.make(tmp_path, replace=False)
    assert steps == all_steps(tmp_path)[1:]
    assert python.read_text() == OTHER


def test_a_python_that_was_given_replaces_another(tmp_path: Path, steps: list[str]) -> None:
    python = other_python(tmp_path, steps)
    environment.make(tmp_path, replace=True)
    assert steps == all_steps(tmp_path)
    assert python.resolve() == Path(sys.executable).resolve()


@pytest.mark.parametrize(
    ("command", "given"), [("make env", False), ("make env PYTHON=python3", True)]
)
def test_make_tells_whether_a_python_was_given(command: str, given: bool, tmp_path: Path) -> None:
    code = 'import os\nprint("PYTHON" in os.environ)\n'
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/environment.py").write_text(code)
    plain = {name: text for name, text in os.environ.items() if not name.startswith("MAKE")}
    plain.pop("PYTHON", None)
    words = [*command.split(), "--file", str(ROOT / "Makefile")]
    done = subprocess.run(words, cwd=tmp_path, env=plain, capture_output=True, text=True)
    assert done.stdout.strip() == str(given), done.stderr


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
        environment.make(tmp_path, replace=False)
    assert not (tmp_path / ".venv/.stamp").exists()
    monkeypatch.setattr(environment, "run", whole)
    environment.make(tmp_path, replace=False)
    assert steps == all_steps(tmp_path)
    assert (tmp_path / ".venv/.stamp").read_text() == environment.stamp(tmp_path, sys.version)


def test_a_half_made_venv_is_made_anew(tmp_path: Path, steps: list[str]) -> None:
    (tmp_path / ".venv/lib").mkdir(parents=True)
    environment.make(tmp_path, replace=False)
    assert steps[0] == "venv"


@pytest.mark.parametrize("found", [(3, 10, 4), (3, 14, 0)])
def test_another_python_is_told(
    found: tuple[int, ...], tmp_path: Path, steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "version_info", (*found, "final", 0))
    name = ".".join(map(str, found))
    with pytest.raises(SystemExit, match=rf"needs Python 3\.11 to 3\.13; .* is {name}\. Say"):
        environment.make(tmp_path, replace=False)
    assert steps == []


def test_a_folder_that_cannot_stand_in_a_path_is_told(tmp_path: Path, steps: list[str]) -> None:
    folder = tmp_path / "a:b"
    folder.mkdir()
    for name, text in INPUTS.items():
        (folder / name).write_text(text)
    with pytest.raises(SystemExit, match=r"a:b: the path contains ':'"):
        environment.make(folder, replace=False)
    assert steps == []


def test_it_needs_the_standard_library_only() -> None:
    code = "import sys; sys.path.insert(0, 'tools'); import environment"
    command = [sys.executable, "-I", "-S", "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=dict(os.environ), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
