"""Every claim and its mutant at ten seeds nobody chose: a chapter's code draws them."""

import argparse
import ast
import json
from pathlib import Path
from typing import Any

from tools import address, claims, execute, mutants, readers, slices
from tools import chapters as book
from tools.execute import Task
from tools.files import ToolError, digest, read_derived, write_atomic, write_json

SEEDS = 10
STORE = "book/_generated/margins.json"
RUNS = "_build/margins"  # a folder of notebooks a seed


def undocumented(statement: ast.stmt) -> str:
    """The code of a statement without docstrings."""
    bare = ast.parse(ast.unparse(statement))
    for node in ast.walk(bare):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(bare)


def form(root: Path, name: str) -> str:
    """A digest of the code that a chapter's claims need, however it is laid out and drawn."""
    code = slices.statements(book.read_source(root, name))
    every = tuple(claim["id"] for claim in claims.register(root))
    named = set().union(*(slices.says(statement, every) for statement in code))
    needed = slices.again(code, tuple(sorted(named)), {}) if named else []
    return digest([undocumented(code[i]) for i in needed])


def drawn(code: str) -> list[int]:
    """The seeds of a chapter with this code."""
    return [int(digest([code, str(i)])[:8], 16) % 10**6 + 1 for i in range(SEEDS)]


def stale(root: Path) -> list[str]:
    """The chapters that were not measured at their present code's seeds."""
    stored: dict[str, Any] = read_derived(root / STORE, {})
    return [n for n in book.chapters(root) if stored.get(n, {}).get("code") != form(root, n)]


def measure(root: Path, names: list[str], jobs: int | None) -> dict[str, Any]:
    """The margins of these chapters at their ten seeds, stored beside those of the others."""
    forms = {name: form(root, name) for name in names}
    folder = root / RUNS
    tried = {name: mutants.trials(root, name) for name in names}
    tasks = [
        Task(name, {"seed": seed}, folder / str(seed), trials=tried[name], draft=True)
        for name, code in forms.items()
        for seed in drawn(code)
    ]
    if execute.report(execute.run_all(root, tasks, jobs)):
        raise ToolError("a chapter does not run at a fresh seed")
    stored: dict[str, Any] = read_derived(root / STORE, {})
    for name, code in forms.items():
        found: dict[str, Any] = {}
        for seed in drawn(code):
            nb = claims.stored(root, name, folder / str(seed))
            verdicts = claims.verdicts(nb)
            for _, record in claims.emitted(nb, claims.CLAIM):
                verdict = verdicts[record["id"]]  # null: all runs agree
                value = record["margin"] if verdict == "holds" else verdict
                found.setdefault(record["id"], {})[str(seed)] = value
        stored[name] = {"code": code, "claims": found}
    kept = {name: stored[name] for name in book.chapters(root) if name in stored}
    write_json(root / STORE, kept)
    return kept


LEAST = 3.0  # standard errors that every one of the ten seeds must leave


def thin(stored: dict[str, Any]) -> list[str]:
    """The claims that hold by too little at one of their seeds."""
    return [
        f"{name} (book/{chapter}.md): {min(found):.2g} standard errors at one of ten seeds, "
        f"at least {LEAST:g}"
        for chapter, entry in stored.items()
        for name, seeds in entry["claims"].items()
        if (found := [v for v in seeds.values() if isinstance(v, int | float)])
        and min(found) < LEAST
    ]


def fallen(root: Path, stored: dict[str, Any]) -> list[str]:
    """The claims that some seed did not find as they are registered."""
    wanted = {claim["id"]: claims.expected(claim) for claim in claims.register(root)}
    return [
        f"{name} (book/{chapter}.md) {value} at seed {seed}"
        for chapter, entry in stored.items()
        for name, seeds in entry["claims"].items()
        for seed, value in seeds.items()
        if (value if isinstance(value, str) else "holds") != wanted.get(name)
    ]


def survivors(root: Path, names: list[str]) -> list[str]:
    """The mutants that some seed of these chapters did not refute with numbers."""
    return [
        f"{line} at seed {seed}"
        for name in names
        for seed in drawn(form(root, name))
        for line in mutants.alive(mutants.results(root, [name], root / RUNS / str(seed)))
    ]


def append(root: Path, path: Path) -> None:
    """Add a line to a history for each run at a fresh seed: commit, seed, margins."""
    lines = path.read_text() if path.exists() else ""
    for table in sorted((root / "_build/fresh").glob("*/claims.json")):
        found = {row["id"]: row["margin"] for row in readers.read_json(table)}
        line = {"commit": address.git(root, "rev-parse", "HEAD"), "seed": int(table.parent.name)}
        lines += json.dumps(line | {"margins": found}, sort_keys=True) + "\n"
    write_atomic(path, lines)


def main(argv: list[str]) -> int:
    """Measure what is stale, or add to a history; 1 where a claim falls."""
    parser = argparse.ArgumentParser(prog="python -m tools margins")
    parser.add_argument("chapters", nargs="*", help="those whose code has changed by default")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--append", type=Path, help="add the runs of `fresh` to this history")
    args = parser.parse_args(argv)
    root = Path.cwd()
    if args.append:
        append(root, args.append)
        return 0
    names = book.chosen(root, args.chapters) if args.chapters else stale(root)
    stored = measure(root, names, args.jobs)
    wrong = fallen(root, stored) + thin(stored) + survivors(root, names)
    told = f"margins: {len(names)} chapters measured, every verdict as it should, every mutant dead"
    print("\n".join(wrong) or told)
    return 1 if wrong else 0
