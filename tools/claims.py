"""The claims the chapters evaluate, held against book/claims.toml; and the exercises' checkers."""

import argparse
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from tools import chapters as book
from tools.files import ToolError, write_json
from tools.names import CLAIM, EXERCISE

SOURCES = {
    "tutorial": "Tutorial (AJCAI 2025)",
    "seminar": "FLT seminar 2",
    "poster-emergence": "Poster, feature emergence",
    "poster-virtual-covariance": "Poster, virtual covariance",
    "talk-giant-steps": "Talk, giant steps",
}
NEEDED = ("id", "statement", "source", "paper", "theorem", "chapter", "falsifier")
ALLOWED = (*NEEDED, "mutant", "expected", "reason")
WIDE = 4.0  # standard errors a claim's margin must have in the default run


def register(root: Path) -> list[dict[str, Any]]:
    """Every claim of book/claims.toml, its form checked."""
    claims: list[dict[str, Any]] = tomllib.loads((root / "book/claims.toml").read_text())["claim"]
    seen = set()
    for claim in claims:
        name = claim.get("id", "a claim without id")
        if missing := [key for key in NEEDED if key not in claim]:
            raise ToolError(f"book/claims.toml: {name} lacks {', '.join(missing)}")
        if unknown := [key for key in claim if key not in ALLOWED]:
            raise ToolError(f"book/claims.toml: {name} has {unknown[0]!r}; allowed: {ALLOWED}")
        if name in seen:
            raise ToolError(f"book/claims.toml: {name} is registered twice")
        if claim["source"] not in SOURCES:
            raise ToolError(
                f"book/claims.toml: {name} has source {claim['source']!r}; allowed: {[*SOURCES]}"
            )
        if expected(claim) not in ("holds", "fails"):
            raise ToolError(f"book/claims.toml: {name} expects {claim['expected']!r}")
        if expected(claim) == "fails" and not claim.get("reason"):
            raise ToolError(f"book/claims.toml: {name} is expected to fail and gives no reason")
        seen.add(name)
    return claims


def expected(claim: dict[str, Any]) -> str:
    """The verdict a claim should have."""
    return str(claim.get("expected", "holds"))


def emitted(nb: NotebookNode, kind: str) -> Iterator[tuple[NotebookNode, dict[str, Any]]]:
    """Every output of one of our own types, with its cell."""
    for cell in nb.cells:
        for output in cell.get("outputs", []):
            if kind in output.get("data", {}):
                yield cell, dict(output.data[kind])


def verdicts(nb: NotebookNode) -> dict[str, str]:
    """The verdict of every claim a run evaluated."""
    return {claim["id"]: claim["verdict"] for _, claim in emitted(nb, CLAIM)}


def stored(root: Path, name: str, folder: Path) -> NotebookNode:
    """A chapter's executed notebook."""
    path = folder / f"{name}.ipynb"
    if not path.exists():
        raise ToolError(f"{path.relative_to(root)} is missing: run `make book`")
    return nbformat.read(path, as_version=4)


def rows(root: Path, folder: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Every registered claim with what the notebooks in `folder` found, and what is wrong."""
    present = book.chapters(root)
    claims = register(root)
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    wrong: list[str] = []
    for name in present:
        for _, claim in emitted(stored(root, name, folder), CLAIM):
            if claim["id"] in found:
                wrong.append(f"{claim['id']} is evaluated twice (book/{name}.md)")
            found[claim["id"]] = (name, claim)
    table = []
    for claim in claims:
        place, measured = found.pop(claim["id"], ("", {}))
        row = {key: claim[key] for key in ("id", "chapter", "source", "statement")}
        row |= {key: measured.get(key) for key in ("predicted", "measured", "margin", "seeds")}
        table.append(row | {"verdict": measured.get("verdict", "planned")})
        if place and place != claim["chapter"]:
            wrong.append(f"{claim['id']} is registered in {claim['chapter']}, evaluated in {place}")
        if claim["chapter"] in present and not place:
            wrong.append(
                f"{claim['id']} is registered, but {claim['chapter']}.md never evaluates it"
            )
    for name, (place, _) in found.items():
        wrong.append(f"{name} is evaluated in book/{place}.md, but not in book/claims.toml")
    return table, wrong


def unexpected(root: Path, table: list[dict[str, Any]]) -> list[str]:
    """The ids of evaluated claims whose verdict is not the expected one."""
    wanted = {claim["id"]: expected(claim) for claim in register(root)}
    evaluated = [row for row in table if row["verdict"] != "planned"]
    return [row["id"] for row in evaluated if row["verdict"] != wanted[row["id"]]]


def judge(root: Path, table: list[dict[str, Any]]) -> list[str]:
    """Verdicts that are not the expected ones, margins that are too thin."""
    turned = set(unexpected(root, table))
    wrong = []
    for row in table:
        margin = row["margin"]
        if row["id"] in turned:
            found = f"predicted {row['predicted']}, measured {row['measured']}"
            wrong.append(f"{row['id']} {row['verdict']}: {found}")
        elif margin is not None and margin < WIDE:
            wrong.append(f"{row['id']}: margin {margin:.2g} standard errors, at least {WIDE:g}")
    return wrong


def exercises(name: str, nb: NotebookNode) -> list[str]:
    """Exercises whose stub passes or whose solution fails or is missing."""
    seen: dict[str, dict[str, bool]] = {}
    wrong = []
    for cell, result in emitted(nb, EXERCISE):
        kind = next((tag for tag in ("exercise", "solution") if tag in book.tags(cell)), "")
        if not kind:
            where = f"exercise {result['id']} (book/{name}.md)"
            wrong.append(f"{where} is checked in a cell tagged neither exercise nor solution")
        seen.setdefault(result["id"], {})[kind] = result["passed"]
    for ident, passed in seen.items():
        if passed.get("exercise") is not False:
            state = "passes its checker" if "exercise" in passed else "is missing"
            wrong.append(f"exercise {ident} (book/{name}.md): the stub {state}")
        if passed.get("solution") is not True:
            state = "fails its checker" if "solution" in passed else "is missing"
            wrong.append(f"exercise {ident} (book/{name}.md): the solution {state}")
    return wrong


def summary(table: list[dict[str, Any]]) -> str:
    """How many claims hold, fail, are planned."""
    counts = {v: sum(row["verdict"] == v for row in table) for v in ("holds", "fails", "planned")}
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items())


def collect(root: Path, committed: bool = False) -> str:
    """Write _build/claims.json; a summary, or an error with everything that is wrong."""
    folder = root / ("book" if committed else "_build/executed")
    table, wrong = rows(root, folder)
    write_json(root / "_build/claims.json", table)
    wrong += judge(root, table)
    for name in book.chapters(root):
        wrong += exercises(name, stored(root, name, folder))
    if wrong:
        raise ToolError("\n".join(wrong))
    return summary(table)


def main(argv: list[str]) -> None:
    """Check the claims of the last run, or of the committed notebooks."""
    parser = argparse.ArgumentParser(prog="python -m tools claims")
    parser.add_argument("--committed", action="store_true", help="read book/*.ipynb")
    print(f"claims: {collect(Path.cwd(), parser.parse_args(argv).committed)}")
