"""The claims that chapters evaluate, held against what is registered; the exercises' checkers."""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from fltutils.claims import between
from fltutils.claims import number as written
from tools import bibliography, directives, readers
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
    """Every claim of the pages and of book/claims.toml, its form checked."""
    path = root / "book/claims.toml"
    table = readers.read_toml(path)
    claims: list[dict[str, Any]] = table.get("claim", [])
    if not isinstance(claims, list) or not all(isinstance(c, dict) for c in claims):
        raise readers.fault(path, 0, "a claim is a table [[claim]]")
    claims = list(claims)
    if unknown := sorted(set(table) - {"claim", "planned"}):
        raise readers.fault(path, 0, f"{unknown[0]!r} outside the claims; allowed: planned")
    pages, planned = book.pages(root), table.get("planned", [])
    if not isinstance(planned, list):
        raise readers.fault(path, 0, f"planned = {planned!r} must be a list of chapters")
    if written := [name for name in planned if name in pages]:
        raise readers.fault(path, 0, f"{written[0]!r} stands in _toc.yml: it is not `planned`")
    seen: set[str] = set()
    for number, claim in enumerate(claims):
        if message := misformed(claim, seen, [*pages, *planned]):
            raise readers.fault(path, claim_line(path, number), message)
        seen.add(claim["id"])
    for name in book.chapters(root):
        for claim in directives.claims(root / f"book/{name}.md", SOURCES):
            if claim["id"] in seen:
                message = f"{claim['id']} is registered twice"
                raise readers.fault(root / f"book/{name}.md", claim["line"], message)
            seen.add(claim["id"])
            claims.append(claim)
    return claims


def claim_line(path: Path, number: int) -> int:
    """The line at which claim `number` (from 0) opens."""
    content = readers.text(path)
    heads = [found.start() for found in re.finditer(r"(?m)^[ \t]*\[\[[ \t]*claim", content)]
    return readers.line_of(content, heads[number]) if number < len(heads) else 0


def misformed(claim: dict[str, Any], seen: set[str], places: list[str]) -> str:
    """What is wrong with a claim's form, in words; empty where it is sound."""
    name = claim.get("id", "a claim without id")
    if missing := [key for key in NEEDED if key not in claim]:
        return f"{name} lacks {', '.join(missing)}"
    if unknown := [key for key in claim if key not in ALLOWED]:
        return f"{name} has {unknown[0]!r}; allowed: {', '.join(ALLOWED)}"
    if wrong := [key for key, value in claim.items() if not isinstance(value, str)]:
        return f"{name}: {wrong[0]} = {claim[wrong[0]]!r} must be a text"
    if name in seen:
        return f"{name} is registered twice"
    if claim["source"] not in SOURCES:
        return f"{name} has source {claim['source']!r}; allowed: {', '.join(SOURCES)}"
    if claim["chapter"] not in places:
        return f"{name}: no chapter {claim['chapter']!r} in _toc.yml or the list `planned`"
    if expected(claim) not in ("holds", "fails"):
        return f"{name} expects {claim['expected']!r}; allowed: holds, fails"
    if expected(claim) == "fails" and not claim.get("reason"):
        return f"{name} is expected to fail and gives no reason"
    return ""


def check_mutants(root: Path) -> None:
    """Raise where a claim names a mutant that its chapter does not have."""
    path = root / "book/claims.toml"
    known = {name: book.mutants(root / f"book/{name}.md") for name in book.chapters(root)}
    for number, claim in enumerate(register(root)):
        name, place, mutant = claim["id"], claim["chapter"], claim.get("mutant", "")
        allowed = known.get(place)
        if allowed and mutant and mutant not in allowed:
            message = f"{name} has mutant {mutant!r}; book/{place}.md has cells of: "
            listed = ", ".join(sorted(allowed))
            raise readers.fault(path, claim_line(path, number), message + listed)


def check_references(root: Path) -> None:
    """Raise where a claim names a work or a theorem that the book does not have."""
    texts = {name: readers.text(root / f"book/{name}.md") for name in book.chapters(root)}
    works = bibliography.citations(root / "book/references.bib")
    for number, claim in enumerate(register(root)):
        stated = "line" in claim
        path = root / (f"book/{claim['chapter']}.md" if stated else "book/claims.toml")
        line = claim["line"] if stated else claim_line(path, number)
        if claim["paper"] and claim["paper"] not in works:
            message = f"{claim['id']} is of {claim['paper']!r}, which book/references.bib lacks"
            raise readers.fault(path, line, message)
        label = claim.get("label", "")
        if label and not re.search(rf"(?m)^:label: {re.escape(label)}$", texts[claim["chapter"]]):
            message = f"{claim['id']} checks {label!r}, but no theorem of the page has this label"
            raise readers.fault(path, line, message)


def evaluated(root: Path, name: str, id: str) -> str:
    """Where a chapter evaluates a claim: its file, with the line if that can be seen."""
    text = readers.text(root / f"book/{name}.md")
    call = re.search(rf"claim\(\s*[\"']{re.escape(id)}[\"']", text)
    return f"book/{name}.md" + (f":{readers.line_of(text, call.start())}" if call else "")


def expected(claim: dict[str, Any]) -> str:
    """The verdict a claim should have."""
    return str(claim.get("expected", "holds"))


def emitted(
    nb: NotebookNode, kind: str, mutant: str = ""
) -> Iterator[tuple[NotebookNode, dict[str, Any]]]:
    """Every output of one of our own types, with its cell: the chapter's, or a mutant's."""
    for cell in nb.cells:
        if book.of_mutants(book.tags(cell)) != ([mutant] if mutant else []):
            continue
        for output in cell.get("outputs", []):
            if kind in output.get("data", {}):
                yield cell, dict(output.data[kind])


def verdicts(nb: NotebookNode) -> dict[str, str]:
    """The verdict of every claim a run evaluated; `rivalled` where a rival is within its bounds."""
    found = {}
    for _, claim in emitted(nb, CLAIM):
        inside = [r for r in claim["rivals"] if not r["excluded"] and r["margin"] is None]
        found[claim["id"]] = "rivalled" if inside else claim["verdict"]
    return found


def stored(root: Path, name: str, folder: Path) -> NotebookNode:
    """A chapter's executed notebook."""
    path = folder / f"{name}.ipynb"
    if not path.exists():
        raise ToolError(f"{path.relative_to(root)} is missing: run `make book`")
    return readers.read_notebook(path)


def row(claim: dict[str, Any], measured: dict[str, Any]) -> dict[str, Any]:
    """A claim as it is registered, with what its chapter found."""
    found = {
        key: measured.get(key) for key in ("predicted", "bound", "measured", "margin", "seeds")
    }
    if "quantity" in measured:  # its bounds follow from theory and rivals
        found["bound"] = between(measured)
        found["measured"] = f"{measured['quantity']}: {measured['measured']}"
        found["record"] = measured
    return {
        **{key: claim[key] for key in ("id", "chapter", "source", "statement")},
        **found,
        "kind": claim.get("kind") or measured.get("kind", "theorem" if claim["paper"] else "own"),
        "rivals": measured.get("rivals", []),
        "label": claim.get("label", ""),
        "read": claim.get("read", ""),
        "verdict": measured.get("verdict", "planned"),
    }


def refuted(found: dict[str, Any]) -> str:
    """The measurement that would refute a claim: a mean beyond its bounds."""
    ends = (("below", found["low"]), ("above", found["high"]))
    beyond = " or ".join(f"{side} {written(end)}" for side, end in ends if end is not None)
    return f"{found['quantity']}: a mean {beyond}."


def untried(table: list[dict[str, Any]]) -> list[str]:
    """Theorems that no claim tries with another experiment, only with numbers."""
    tried: dict[str, bool] = {}
    for row in table:
        if row["label"] and row.get("record"):
            again = any(rival.get("measured") for rival in row["rivals"])
            tried[row["label"]] = tried.get(row["label"], False) or again
    return [
        f"no claim of {label} retrains under a variation: give a rival the keywords of its function"
        for label, again in tried.items()
        if not again
    ]


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
        table.append(row(claim, measured))
        if place and place != claim["chapter"]:
            wrong.append(f"{claim['id']} is registered in {claim['chapter']}, evaluated in {place}")
        if claim["chapter"] in present and not place:
            stated = f"book/{claim['chapter']}.md:{claim['line']}: " if "line" in claim else ""
            message = f"{claim['id']} is registered, but {claim['chapter']}.md never evaluates it"
            wrong.append(stated + message)
    for name, (place, _) in found.items():
        where = evaluated(root, place, name)
        wrong.append(f"{where}: {name} is evaluated, but no {{claim}} directive states it")
    return table, wrong


def unexpected(root: Path, table: list[dict[str, Any]]) -> list[str]:
    """The ids of evaluated claims whose verdict is not the expected one."""
    wanted = {claim["id"]: expected(claim) for claim in register(root)}
    evaluated = [row for row in table if row["verdict"] != "planned"]
    return [row["id"] for row in evaluated if row["verdict"] != wanted[row["id"]]]


def unrivalled(table: list[dict[str, Any]]) -> list[str]:
    """Claims that face no rival, rivals that the bounds do not exclude, too many identities."""
    evaluated = [row for row in table if row["verdict"] != "planned"]
    wrong = []
    for row in evaluated:
        if row["kind"] != "identity" and not row["rivals"]:
            wrong.append(f"{row['id']} faces no rival: name the theory that it tells apart")
        for rival in row["rivals"]:
            if not rival["excluded"]:
                found = f"rival {rival['name']!r} ({rival['value']}) is not excluded"
                wrong.append(f"{row['id']}: the {found} by four standard errors")
    identities = [row["id"] for row in evaluated if row["kind"] == "identity"]
    if len(identities) * 5 > len(evaluated):
        wrong.append(f"{len(identities)} of {len(evaluated)} claims are identities, over a fifth")
    return wrong


def judge(root: Path, table: list[dict[str, Any]]) -> list[str]:
    """Verdicts that are not the expected ones, margins that are too thin, rivals that stand."""
    turned = set(unexpected(root, table))
    wrong = []
    for row in table:
        margin = row["margin"]
        if row["id"] in turned:
            found = f"predicted {row['predicted']}, measured {row['measured']}"
            wrong.append(f"{row['id']} {row['verdict']}: {found}")
        elif margin is not None and margin < WIDE:
            wrong.append(f"{row['id']}: margin {margin:.2g} standard errors, at least {WIDE:g}")
    return wrong + unrivalled(table) + untried(table)


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
    """Judge the claims and the exercises; a summary, or an error with everything that is wrong."""
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
