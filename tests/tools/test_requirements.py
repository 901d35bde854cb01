"""The requirements files name every package once, at one version, with its hashes."""

import itertools
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.environment import PACKAGES, SUPPORTED, TORCH

ROOT = Path(__file__).parents[2]
HASH = r" \\\n    --hash=sha256:[0-9a-f]{64}"
MINORS = range(SUPPORTED[0][1], SUPPORTED[1][1] + 1)
MACHINES = list(itertools.product(MINORS, ("linux", "darwin")))


def pinned(text: str) -> list[Requirement]:
    """The entries of a requirements file; one without an exact version or a hash is refused."""
    found = []
    for part in re.split(r"\n(?=\S)", text.strip()):
        if part.startswith(("#", "--extra-index-url ")):
            continue
        requirement = Requirement(part.partition("\\")[0].strip())
        exact = [specifier.operator for specifier in requirement.specifier] == ["=="]
        if not (exact and re.fullmatch(rf"[^\\\n]+(?:{HASH})+", part)):
            raise ValueError(f"not pinned with hashes: {part!r}")
        found.append(requirement)
    return found


def locks() -> list[Requirement]:
    """What both files pin."""
    return [r for name in (TORCH, PACKAGES) for r in pinned((ROOT / name).read_text())]


def names_on(minor: int, system: str) -> list[str]:
    """What is installed for a Python on a system."""
    machine = {
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "python_full_version": f"3.{minor}.5",
        "python_version": f"3.{minor}",
        "sys_platform": system,
    }
    return [
        canonicalize_name(requirement.name)
        for requirement in locks()
        if requirement.marker is None or requirement.marker.evaluate(machine)
    ]


@pytest.mark.parametrize(
    "text",
    [
        "numpy==2.4.6\n",
        "numpy>=2.4.6 \\\n    --hash=sha256:" + 64 * "a",
        "numpy==2.4.6 \\\n    --hash=sha256:" + 63 * "a",
        "numpy==2.4.6 \\\n    --hash=md5:" + 32 * "a",
    ],
)
def test_an_entry_without_version_or_hash_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not pinned with hashes: 'numpy"):
        pinned(text)


@pytest.mark.parametrize(("minor", "system"), MACHINES)
def test_every_package_has_one_version_on_a_machine(minor: int, system: str) -> None:
    names = names_on(minor, system)
    assert len(names) == len(set(names))
    assert {"torch", "numpy", "setuptools"} < set(names)


def test_the_lock_has_what_was_asked_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = (ROOT / "requirements.in").read_text().split("\n")
    asked = [line for line in lines if line and not line.startswith("#")]
    pins = {canonicalize_name(r.name): next(iter(r.specifier)).version for r in locks()}
    for wanted in map(Requirement, [*asked, *project["dependencies"]]):
        assert wanted.specifier.contains(pins[canonicalize_name(wanted.name)]), str(wanted)


def test_torch_for_linux_is_the_build_for_the_cpu() -> None:
    """No index can give the one with CUDA: another version is another package to pip."""
    torch = [r for r in locks() if r.name == "torch"]
    assert [(str(r.specifier), str(r.marker)) for r in torch] == [
        ("==2.13.0+cpu", 'sys_platform == "linux"'),
        ("==2.13.0", 'sys_platform == "darwin"'),
    ]
    assert not {name for name in names_on(11, "linux") if name.startswith(("nvidia", "cuda"))}


def test_torch_has_a_hash_for_each_python_and_processor() -> None:
    per_system = [part.count("--hash") for part in (ROOT / TORCH).read_text().split("torch==")]
    assert per_system == [0, 2 * len(MINORS), len(MINORS)]
