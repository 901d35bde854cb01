"""Every claim under its mutant (a wrong law, another variable, …): there it must fail."""

import argparse
from pathlib import Path
from typing import Any

from tools import chapters as book
from tools import claims, execute
from tools.execute import Task
from tools.files import ToolError, write_json


def wanted(root: Path, names: list[str]) -> list[dict[str, Any]]:
    """The claims of these chapters that need a mutant: those that are expected to hold."""
    holding = [c for c in claims.register(root) if claims.expected(c) == "holds"]
    found = [c for c in holding if c["chapter"] in names and "line" not in c]  # by hand, in TOML
    if bare := [claim["id"] for claim in found if not claim.get("mutant")]:
        raise ToolError(f"book/claims.toml: without a mutant: {', '.join(bare)}")
    return found


def trials(root: Path, name: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The mutants of a chapter, each with the claims that must fail under it."""
    found: dict[str, tuple[str, ...]] = {}
    for claim in wanted(root, [name]):
        found[claim["mutant"]] = (*found.get(claim["mutant"], ()), claim["id"])
    return tuple(found.items())


def results(root: Path, names: list[str], folder: Path) -> list[dict[str, Any]]:
    """What every claim's mutant gave, in the notebooks of `folder`."""
    rows = []
    for claim in wanted(root, names):
        nb = claims.stored(root, claim["chapter"], folder)
        found = claims.emitted(nb, claims.CLAIM, claim["mutant"])
        records = {record["id"]: record for _, record in found}
        row = {"id": claim["id"], "mutant": claim["mutant"]}
        rows.append(row | {"result": result(records.get(claim["id"]))})
    return rows


def result(record: dict[str, Any] | None) -> str:
    """What a mutant did to a claim; only numbers that are finite and refuted kill it."""
    if record is None:
        return "is not evaluated"
    if record["verdict"] == "holds":
        return "survives"
    return "killed" if record.get("finite") else "measures nothing finite"


def alive(rows: list[dict[str, Any]]) -> list[str]:
    """The claims that numbers do not refute under their mutants, in words."""
    return [
        f"{row['id']} {row['result']} under its mutant {row['mutant']!r}"
        for row in rows
        if row["result"] != "killed"
    ]


def judge(root: Path, names: list[str], folder: Path) -> str:
    """Write _build/mutants.json; a summary, or an error where a claim is not refuted by numbers."""
    rows = results(root, names, folder)
    write_json(root / "_build/mutants.json", rows)
    if left := alive(rows):
        raise ToolError("\n".join(left))
    return f"mutants: all {len(rows)} claims fail under theirs, with finite numbers"


def main(argv: list[str]) -> int:
    """Run chapters and their mutants; 1 where one fails in a cell."""
    parser = argparse.ArgumentParser(prog="python -m tools mutants")
    parser.add_argument("chapters", nargs="*", help="all of them by default")
    parser.add_argument("--jobs", type=int)
    args = parser.parse_args(argv)
    root, folder = Path.cwd(), Path.cwd() / "_build/mutants"
    names = book.chosen(root, args.chapters)
    tasks = [Task(name, {}, folder, trials=trials(root, name), draft=True) for name in names]
    if execute.report(execute.run_all(root, tasks, args.jobs)):
        return 1
    print(judge(root, names, folder))
    return 0
