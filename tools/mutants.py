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


def run(root: Path, jobs: int | None) -> list[dict[str, str]]:
    """The verdict of every claim under its mutant."""
    found = wanted(root)
    pairs = dict.fromkeys((claim["chapter"], claim["mutant"]) for claim in found)
    folder = root / "_build/mutants"
    tasks = [Task(name, {"mutant": mutant}, folder / mutant) for name, mutant in pairs]
    if execute.report(execute.run_all(root, tasks, jobs)):
        raise ToolError("a mutant run failed in a cell: a claim may fail, its cell must not")
    rows = []
    for claim in found:
        nb = claims.stored(root, claim["chapter"], folder / claim["mutant"])
        verdict = claims.verdicts(nb).get(claim["id"], "holds")
        rows.append({"id": claim["id"], "mutant": claim["mutant"], "verdict": verdict})
    return rows


def main(argv: list[str]) -> None:
    """Run all mutants, write _build/mutants.json; red where one survives."""
    parser = argparse.ArgumentParser(prog="python -m tools mutants")
    parser.add_argument("--jobs", type=int)
    root = Path.cwd()
    rows = run(root, parser.parse_args(argv).jobs)
    write_json(root / "_build/mutants.json", rows)
    if survivors := [row for row in rows if row["verdict"] != "fails"]:
        named = "\n".join(f"{row['id']} survives its mutant {row['mutant']!r}" for row in survivors)
        raise ToolError(named)
    print(f"mutants: all {len(rows)} claims fail under theirs")
