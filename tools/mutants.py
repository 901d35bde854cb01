"""Every claim under its mutant (learning off, labels shuffled, …): there it must fail."""

import argparse
from pathlib import Path
from typing import Any

from tools import chapters as book
from tools import claims, execute
from tools.execute import Task
from tools.files import ToolError, write_json


def wanted(root: Path) -> list[dict[str, Any]]:
    """The claims that need a mutant: those of existing chapters that are expected to hold."""
    present = book.chapters(root)
    holding = [c for c in claims.register(root) if claims.expected(c) == "holds"]
    found = [claim for claim in holding if claim["chapter"] in present]
    if bare := [claim["id"] for claim in found if not claim.get("mutant")]:
        raise ToolError(f"book/claims.toml: without a mutant: {', '.join(bare)}")
    return found


def run(root: Path, jobs: int | None) -> list[dict[str, Any]]:
    """What every claim's mutant gave, from the cells that the claim needs."""
    found = wanted(root)
    pairs: dict[tuple[str, str], list[str]] = {}
    for claim in found:
        pairs.setdefault((claim["chapter"], claim["mutant"]), []).append(claim["id"])
    folder = root / "_build/mutants"
    tasks = [
        Task(name, {"mutant": mutant}, folder / mutant, tuple(ids))
        for (name, mutant), ids in pairs.items()
    ]
    if execute.report(execute.run_all(root, tasks, jobs)):
        raise ToolError("a mutant run failed in a cell: a claim may fail, its cell must not")
    rows = []
    for claim in found:
        nb = claims.stored(root, claim["chapter"], folder / claim["mutant"])
        records = {record["id"]: record for _, record in claims.emitted(nb, claims.CLAIM)}
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


def main(argv: list[str]) -> None:
    """Run all mutants, write _build/mutants.json; red where a claim is not refuted by numbers."""
    parser = argparse.ArgumentParser(prog="python -m tools mutants")
    parser.add_argument("--jobs", type=int)
    root = Path.cwd()
    rows = run(root, parser.parse_args(argv).jobs)
    write_json(root / "_build/mutants.json", rows)
    if alive := [row for row in rows if row["result"] != "killed"]:
        named = [f"{row['id']} {row['result']} under its mutant {row['mutant']!r}" for row in alive]
        raise ToolError("\n".join(named))
    print(f"mutants: all {len(rows)} claims fail under theirs, with finite numbers")
