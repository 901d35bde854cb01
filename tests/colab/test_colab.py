"""The committed notebooks as Colab runs them: alone in an empty folder, with Colab's versions.

Colab's Python is 3.13 and its torch 2.11; here the Python is the one that runs the tests and torch
is the lock's. The rest is Colab's own. `make test` runs the shortest chapter, the nightly job all.
"""

import ast
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from packaging.requirements import Requirement

from tools import chapters as book
from tools import claims, kernels
from tools.execute import THREADS
from tools.files import digest
from tools.portable import install_cell

ROOT = Path(__file__).parents[2]
FREEZE = ROOT.parent / "shared/data/colab-pip-freeze.txt"
TIMINGS = json.loads((ROOT / "book/_generated/timings.json").read_text())
CHAPTERS = sorted(book.chapters(ROOT), key=lambda name: TIMINGS.get(name, 0))
NIGHTLY = [pytest.param(name, marks=pytest.mark.nightly) for name in CHAPTERS[1:]]
SIZE = 100_000  # bytes a wheel may have
VERSIONS = (
    "from importlib.metadata import version as v\n"
    "print(v('numpy'), v('torch'), v('matplotlib'), v('ipython'), v('ipykernel'))"
)


def pins(path: Path) -> dict[str, str]:
    """The pins of a file, by package; a wheel's address names its version."""
    found = {}
    for line in path.read_text().split("\n"):
        name, _, version = line.partition("==")
        if " @ " in line and ".whl" in line:
            name, wheel = line.split(" @ ")
            version = wheel.rpartition("/")[2].split("-")[1].split("%2B")[0]
        if version and not line.startswith("#"):
            found[name.strip().lower()] = version.strip()
    return found


COLAB = pins(ROOT / "tests/colab/colab-versions.txt")


def requirements() -> list[Requirement]:
    """What the helper package depends on."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [Requirement(text) for text in project["dependencies"]]


def run(*command: str | Path) -> str:
    """Run a command that must succeed; what it prints."""
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", env=plain_environment())
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def plain_environment() -> dict[str, str]:
    """The environment without what points back into this repository."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def borrowed(name: str) -> Iterator[Path]:
    """What a package of this environment and the packages that it needs have in site-packages."""
    waiting, seen = [name], set[str]()
    while waiting:
        package = distribution(waiting.pop())
        if package.name not in seen:
            seen.add(package.name)
            tops = {file.parts[0] for file in package.files or [] if file.parts[0] != ".."}
            yield from (Path(str(package.locate_file(top))) for top in tops - {"__pycache__"})
            needs = [Requirement(text) for text in package.requires or []]
            waiting += [
                n.name for n in needs if n.marker is None or n.marker.evaluate({"extra": ""})
            ]


@pytest.fixture(scope="session")
def colab_packages() -> Path:
    """A venv with Colab's packages and our torch, made once; nothing is ever added to it."""
    wanted = [f"{name}=={version}" for name, version in COLAB.items() if name != "torch"]
    key = digest([sys.version, distribution("torch").version, *wanted])
    folder = ROOT / "_build/venvs" / f"colab-{key[:12]}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.with_suffix(".lock")).open("w") as lock:  # another worker may be making it
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            run(sys.executable, "-m", "venv", "--clear", folder)
            run(folder / "bin/python", "-m", "pip", "install", "--quiet", *wanted)
            ours = folder / "ours"  # behind Colab's own, by a .pth file
            ours.mkdir()
            for path in borrowed("torch"):
                (ours / path.name).symlink_to(path)
            site = next((folder / "lib").glob("python*/site-packages"))
            (site / "ours.pth").write_text(f"{ours}\n")
            (folder / "complete").touch()
    return next((folder / "lib").glob("python*/site-packages"))


@pytest.fixture
def colab(colab_packages: Path, tmp_path: Path) -> Path:
    """The Python of a fresh venv that sees Colab's packages, pip too, and can be installed into."""
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv")
    site = next((tmp_path / "venv/lib").glob("python*/site-packages"))
    ours = colab_packages.parents[2] / "ours"
    (site / "colab.pth").write_text(f"{colab_packages}\n{ours}\n")
    return tmp_path / "venv/bin/python"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A git repository with the helper package as it stands in the working tree."""
    folder = tmp_path / "package"
    shutil.copytree(ROOT / "fltutils", folder / "fltutils")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    run("git", "-C", folder, "init", "--quiet")
    run("git", "-C", folder, "add", ".")
    author = ("-c", "user.name=test", "-c", "user.email=test@localhost")
    run("git", *author, "-C", folder, "commit", "--quiet", "--message", "as it stands")
    return folder


def imports(path: Path) -> Iterator[str]:
    """The top-level packages a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").split(".")[0]


def test_the_package_imports_what_it_names_alone() -> None:
    allowed = {"numpy", "torch", "matplotlib", "xarray", "fltutils"} | set(sys.stdlib_module_names)
    allowed |= {"PIL", "cloudpickle", "sklearn"}  # matplotlib requires one, extras name the others
    found = {name for path in (ROOT / "fltutils").rglob("*.py") for name in imports(path)}
    assert found <= allowed


def test_the_ranges_accept_colabs_versions() -> None:
    assert sorted(r.name for r in requirements()) == ["matplotlib", "numpy", "torch", "xarray"]
    for requirement in requirements():
        assert requirement.specifier.contains(COLAB[requirement.name]), requirement


@pytest.mark.skipif(not FREEZE.exists(), reason="Colab's own list is not on this machine")
def test_colabs_versions_are_those_of_its_own_list() -> None:
    freeze = pins(FREEZE)
    assert {name: freeze[name] for name in COLAB} == COLAB


@pytest.mark.slow
def test_the_wheel_is_small_and_changes_nothing(colab: Path, package: Path, tmp_path: Path) -> None:
    pip = (colab, "-m", "pip", "--disable-pip-version-check")
    run(*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path / "dist", package)
    (wheel,) = (tmp_path / "dist").glob("fltutils-*.whl")
    assert wheel.stat().st_size < SIZE
    assert "fltutils/py.typed" in zipfile.ZipFile(wheel).namelist()
    before = run(colab, "-c", VERSIONS)
    run(*pip, "install", "--quiet", wheel)  # with its dependencies: Colab's satisfy them
    assert run(colab, "-c", VERSIONS) == before
    run(colab, "-c", "import fltutils")


def test_the_install_cell_says_what_to_do_where_it_knows_no_address() -> None:
    environment = plain_environment() | {"FLTUTILS_SOURCE": ""}
    command = [sys.executable, "-S", "-c", install_cell("").source]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", env=environment)
    assert done.returncode == 1
    assert "ModuleNotFoundError: fltutils is not installed" in done.stderr
    assert "set FLTUTILS_SOURCE" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", [*CHAPTERS[:1], *NIGHTLY])
def test_a_committed_notebook_runs_as_in_colab(
    name: str, colab: Path, package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = {"argv": [str(colab), "-m", "ipykernel_launcher", "-f", "{connection_file}"]}
    spec |= {"display_name": "Colab", "language": "python"}  # type: ignore[dict-item]
    kernel = tmp_path / "jupyter/kernels/colab/kernel.json"
    kernel.parent.mkdir(parents=True)
    kernel.write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    monkeypatch.setenv("FLTUTILS_SOURCE", f"git+file://{package}")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    for variable in THREADS:  # beside other processes more than one thread a process is slower
        monkeypatch.setenv(variable, "1")
    before = run(colab, "-c", VERSIONS)

    folder = tmp_path / "content"
    folder.mkdir()
    shutil.copy(ROOT / "book" / f"{name}.ipynb", folder)
    nb = nbformat.read(folder / f"{name}.ipynb", as_version=4)
    committed = claims.verdicts(nb)
    assert committed
    for cell in nb.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    resources = {"metadata": {"path": str(folder)}}
    with kernels.sockets() as place:
        settings = {"resources": resources, "config": kernels.private(Path(place, "k"))}
        NotebookClient(nb, kernel_name="colab", timeout=600, **settings).execute()

    assert claims.verdicts(nb) == committed
    assert run(colab, "-c", VERSIONS) == before
    assert run(colab, "-c", "import fltutils; print(fltutils.__file__)").startswith(str(tmp_path))
