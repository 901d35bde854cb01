"""The book at a seed nobody tuned: every claim's verdict must stay."""

import argparse
import re
from pathlib import Path
from typing import Any

from tools import address, claims, execute, mutants
from tools import chapters as book
from tools.execute import Task
from tools.files import ToolError, write_json


def drawn(root: Path) -> int:
    """A seed from the hash of the commit: nobody chose it, everybody can repeat it."""
    commit = address.git(root, "rev-parse", "HEAD")
    if not commit:
        raise ToolError("--seed commit needs a git commit; say --seed n")
    return int(commit, 16) % 10**6 or 1


def run(root: Path, names: list[str], seed: int, jobs: int | None, mutated: bool = False) -> Path:
    """Execute chapters at a seed, their mutants too if asked; the folder of their notebooks."""
    folder = root / "_build/fresh" / str(seed)
    tried = {name: mutants.trials(root, name) if mutated else () for name in names}
    tasks = [Task(name, {"seed": seed}, folder, trials=tried[name], draft=True) for name in names]
    results = execute.run_all(root, tasks, jobs)
    if execute.report(results):
        raise ToolError(f"the book does not run at seed {seed}")
    return folder


def fallen(root: Path, names: list[str], folder: Path) -> dict[str, str]:
    """The claims whose verdict in `folder` is not the expected one, with their chapter."""
    wanted = {claim["id"]: claims.expected(claim) for claim in claims.register(root)}
    found: dict[str, str] = {}
    for name in names:
        verdicts = claims.verdicts(claims.stored(root, name, folder))
        found |= {i: name for i, verdict in verdicts.items() if verdict != wanted.get(i, "holds")}
    return found


def fresh(root: Path, seed: int, jobs: int | None, mutated: bool = False) -> dict[str, Any]:
    """Execute the book at a seed, and what falls at two more; what fell, and whether again."""
    names = book.chapters(root)
    folder = run(root, names, seed, jobs, mutated)
    table, wrong = claims.rows(root, folder)
    write_json(folder / "claims.json", table)
    if wrong:
        raise ToolError("\n".join(wrong))
    fell = fallen(root, names, folder)
    again: dict[str, list[int]] = {name: [] for name in fell}
    places = sorted(set(fell.values()))
    for other in (seed + 1, seed + 2) if fell else ():
        later = fallen(root, places, run(root, places, other, jobs))
        for name in set(later) & set(fell):
            again[name].append(other)
    return {"seed": seed, "summary": claims.summary(table), "fell": fell, "again": again}


def main(argv: list[str]) -> int:
    """Run the book at another seed; 1 where a claim falls there and at a second one."""
    parser = argparse.ArgumentParser(prog="python -m tools fresh")
    parser.add_argument("--seed", required=True, help="a number, or `commit`: from its hash")
    parser.add_argument("--mutants", action="store_true", help="try them in the same kernels")
    parser.add_argument("--jobs", type=int)
    args = parser.parse_args(argv)
    root = Path.cwd()
    if args.seed != "commit" and not re.fullmatch("[0-9]+", args.seed):
        raise ToolError(f"seed {args.seed!r} is not allowed; give a whole number ≥ 0 or `commit`")
    seed = drawn(root) if args.seed == "commit" else int(args.seed)
    print(f"fresh seed: {seed}", flush=True)
    result = fresh(root, seed, args.jobs, args.mutants)
    folder = root / "_build/fresh" / str(seed)
    write_json(folder / "fresh.json", result)
    print(f"claims at seed {seed}: {result['summary']}")
    found: dict[str, str] = {}
    for name in book.chapters(root):
        found |= claims.verdicts(claims.stored(root, name, folder))
    for name, chapter in result["fell"].items():
        seeds = result["again"][name]
        often = f"and again at {seeds}" if seeds else f"not at {seed + 1} nor {seed + 2}"
        print(f"{name} (book/{chapter}.md) {found[name]} at seed {seed}, {often}")
    if args.mutants:
        print(mutants.judge(root, book.chapters(root), folder))
    return 1 if any(result["again"].values()) else 0
