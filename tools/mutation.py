"""The mutation score of fltutils: how many small changes of its code a fast test notices.

mutmut makes and tries the changes in _build/mutation; book/_generated/mutation.json, which the
statistics page shows, has the score, and _build/mutation/survivors.txt what no test noticed. A
change that nothing could notice stands in tools/mutation.toml with its reason.
"""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tools import address, readers
from tools.files import ToolError, write_atomic, write_json

COPIED = ("fltutils", "tests/__init__.py", "tests/fltutils", "pyproject.toml")
NOTICED = {"killed", "timeout", "segfault", "caught by type check"}
LEAST = 0.9

Record = dict[str, Any]


def prepare(root: Path) -> Path:
    """A fresh folder with the package, its tests and nothing else: mutmut writes beside them."""
    folder = root / "_build/mutation"
    shutil.rmtree(folder, ignore_errors=True)
    for name in COPIED:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (root / name).is_dir() else shutil.copy
        copy(root / name, folder / name)
    return folder


def run(folder: Path) -> None:
    """Try every change on all cores."""
    plain = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    mutmut = Path(sys.executable).with_name("mutmut")
    if subprocess.run([mutmut, "run"], cwd=folder, env=plain).returncode:
        raise ToolError(f"mutmut failed in {folder}")


def results(folder: Path) -> dict[str, str]:
    """Each change by name: `killed`, or what it did instead."""
    from mutmut.stats import status_by_exit_code

    found: dict[str, str] = {}
    for meta in sorted((folder / "mutants/fltutils").glob("*.meta")):
        codes = json.loads(meta.read_text())["exit_code_by_key"]
        found |= {name: str(status_by_exit_code[code]) for name, code in codes.items()}
    return found


def change(folder: Path, name: str) -> str:
    """A change as `- old` and `+ new` lines, each stripped."""
    from mutmut.__main__ import get_diff_for_mutant

    path = Path(*name.split(".")[:2]).with_suffix(".py")
    with contextlib.chdir(folder):
        diff = get_diff_for_mutant(name, path=path)
    lines = [line for line in diff.split("\n") if re.match(r"[-+](?![-+]{2} )", line)]
    return "\n".join(f"{line[0]} {line[1:].strip()}" for line in lines)


def record(changes: dict[str, str], killed: int, rules: list[dict[str, str]]) -> Record:
    """What is published: `changes` are those that no test noticed; a rule without one is stale."""
    equivalent: dict[str, str] = {}
    for rule in rules:
        about = [name for name in changes if name.startswith(rule["where"])]
        found = [name for name in about if re.search(rule["change"], changes[name])]
        if not found:
            where = f"{rule['where']}: {rule['change']}"
            raise ToolError(f"tools/mutation.toml: no survivor of {where}")
        equivalent |= dict.fromkeys(found, rule["reason"])
    mutants = killed + len(changes)
    return {
        "tool": "mutmut",
        "version": version("mutmut"),
        "mutants": mutants,
        "killed": killed,
        "equivalent": equivalent,
        "survived": sorted(set(changes) - set(equivalent)),
        "score": round(killed / (mutants - len(equivalent)), 4),
    }


def check(found: Record) -> None:
    """Raise where too many changes go unnoticed."""
    if found["score"] < LEAST:
        raise ToolError(
            f"mutation score {found['score']:.3f}: at least {LEAST} of the changes must be noticed;"
            " _build/mutation/survivors.txt has the others"
        )


def main(argv: list[str]) -> None:
    """Measure, write book/_generated/mutation.json, and fail below the least score."""
    root = Path.cwd()
    rules = readers.read_toml(root / "tools/mutation.toml")["equivalent"]  # before an hour's work
    folder = prepare(root)
    run(folder)
    found = results(folder)
    changes = {name: change(folder, name) for name in found if found[name] not in NOTICED}
    told = "".join(f"{name}: {found[name]}\n{text}\n\n" for name, text in changes.items())
    write_atomic(folder / "survivors.txt", told)
    result = record(changes, len(found) - len(changes), rules)
    commit = {"commit": address.git(root, "rev-parse", "HEAD")}
    write_json(root / "book/_generated/mutation.json", commit | result)
    print(f"mutation: {result['killed']} of {result['mutants']} noticed, score {result['score']}")
    check(result)
