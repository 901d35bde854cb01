"""The claims that stand in the pages: each a directive beside its theorem.

```{claim} cao2022.boundary
:kind: theorem
:theorem: thm-cao
:work: cao2022, Theorem 4.3
:read: full text
:source: tutorial

The statement, in Markdown.
```
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools import readers

FENCE = re.compile(r"^(```+)\{claim\}[ \t]*(\S*)[ \t]*\n(.*?)^\1`*[ \t]*$", re.M | re.S)
OPTION = re.compile(r"^:(\w+):[ \t]*(.*)$")
KINDS = {
    "theorem": "theorem",
    "conjecture": "conjecture",
    "identity": "identity, true by algebra",
    "own": "the book's own",
    "limit": "where a theorem ends",
}
READ = ("full text", "abstract", "slides", "second hand")
OPTIONS = ("kind", "theorem", "work", "read", "source", "expected", "reason")


def options(lines: list[str]) -> tuple[dict[str, str], list[str]]:
    """The options of a directive, and the lines after them."""
    found: dict[str, str] = {}
    for count, line in enumerate(lines):
        if match := OPTION.match(line):
            found[match[1]] = match[2].strip()
        else:
            return found, lines[count:]
    return found, []


def key(given: dict[str, str]) -> str:
    """The work that a claim is of, as references.bib calls it."""
    return given.get("work", "").partition(",")[0].strip()


def wrong(id: str, given: dict[str, str], statement: str, sources: Any) -> str:
    """What is wrong with the form of a claim, in words; empty where it is sound."""
    allowed = {"kind": KINDS, "read": READ, "source": sources, "expected": ("holds", "fails")}
    if not re.fullmatch(r"[a-z0-9_]+(\.[a-z0-9_]+)+", id):
        return f"a claim is called {id!r}: lower-case words with dots between them"
    if unknown := [name for name in given if name not in OPTIONS]:
        return f"{id} has {unknown[0]!r}; allowed: {', '.join(OPTIONS)}"
    for name, words in allowed.items():
        if name in given and given[name] not in words:
            return f"{id}: {name} is {given[name]!r}; allowed: {', '.join(words)}"
    needed = ["kind", *(["work", "read"] if given.get("kind") in ("theorem", "conjecture") else [])]
    if missing := [name for name in needed if not given.get(name)]:
        return f"{id} lacks {missing[0]}"
    if "work" in given and not key(given):
        return f"{id}: work is {given['work']!r}: a key of references.bib, then a comma and where"
    if "work" in given and "read" not in given:
        return f"{id} names a work and not how it was read: {', '.join(READ)}"
    if given.get("expected") == "fails" and not given.get("reason"):
        return f"{id} is expected to fail and gives no reason"
    return "" if statement else f"{id} says nothing"


def claims(path: Path, sources: Any) -> Iterator[dict[str, Any]]:
    """The claims of a page as the register has them."""
    content = readers.text(path)
    for found in FENCE.finditer(content):
        given, rest = options(found[3].split("\n"))
        statement = " ".join("\n".join(rest).split())
        line = readers.line_of(content, found.start())
        if message := wrong(found[2], given, statement, sources):
            raise readers.fault(path, line, message)
        place = given.get("work", "").partition(",")[2]
        own = place.strip() or ("Ours" if given["kind"] in ("own", "limit") else "")
        yield {
            "id": found[2],
            "statement": statement,
            "source": given.get("source", ""),
            "paper": key(given),
            "theorem": own,
            "label": given.get("theorem", ""),
            "read": given.get("read", ""),
            "kind": given["kind"],
            "chapter": path.stem,
            "line": line,
            **{name: given[name] for name in ("expected", "reason") if name in given},
        }
