"""What can be referred to: every label of the book, its number and its page."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from nbformat import NotebookNode

from tools import chapters as book
from tools.bibliography import Citation, citations
from tools.files import ToolError, read_json
from tools.myst import PROOF_KINDS, Block, MystError, walk

HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*$")


@dataclass(frozen=True)
class Label:
    """Something that can be referred to: an equation, a theorem, a figure, a section."""

    page: str
    kind: str
    text: str


@dataclass
class Book:
    """What the pages share."""

    root: Path
    pages: list[str]
    chapters: list[str]
    macros: dict[str, str]
    timings: dict[str, int]
    citations: dict[str, Citation]
    prefixes: dict[str, str]
    plain_equations: bool
    labels: dict[str, Label] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    numbers: dict[tuple[str, int], str] = field(default_factory=dict)


def cell_lines(root: Path, name: str, nb: NotebookNode) -> list[int]:
    """The line of book/<name>.md at which each cell begins."""
    text = (root / "book" / f"{name}.md").read_text()
    lines, place, count = [], 0, 0
    for cell in nb.cells:
        if cell.cell_type == "code":
            count += 1
            lines.append(book.cell_line(root, name, count))
        else:
            found = text.find(cell.source, place)
            place = found + len(cell.source) if found >= 0 else place
            lines.append(text.count("\n", 0, max(found, 0)) + 1)
    return lines


def captioned(cell: NotebookNode) -> dict[str, Any]:
    """The figure metadata of a code cell ({} where it is none)."""
    figure = cell.metadata.get("mystnb", {}).get("figure", {})
    return dict(figure) if figure.get("caption") else {}


def page_blocks(root: Path, name: str, chapter: bool) -> Iterator[Block]:
    """The blocks of a page; a code cell with a caption comes as a directive `figure`."""
    if not chapter:
        text = (root / "book" / f"{name}.md").read_text()
        head = re.match(r"---\n.*?\n---\n", text, re.DOTALL)
        skipped = head[0] if head else ""
        yield from walk(text[len(skipped) :], 1 + skipped.count("\n"))
        return
    nb = book.read_source(root, name)
    for cell, line in zip(nb.cells, cell_lines(root, name, nb), strict=True):
        if cell.cell_type == "markdown":
            yield from walk(cell.source, line)
        elif figure := captioned(cell):
            options = {"name": str(figure.get("name", ""))}
            yield Block("directive", str(figure["caption"]), line, name="figure", options=options)


def headings(block: Block) -> Iterator[str]:
    """The headings in a block of text."""
    for line in block.text.split("\n"):
        if match := HEADING.match(line):
            yield match[1]


def add(shared: Book, label: str, entry: Label, line: int) -> None:
    """Register a label once."""
    if label in shared.labels:
        raise MystError(
            line, f"the label {label!r} stands in {shared.labels[label].page}.md already"
        )
    shared.labels[label] = entry


def numeral(shared: Book, name: str, kind: str, count: int) -> str:
    """How the site writes the number of an equation, a theorem or a figure."""
    prefix = shared.prefixes.get(name, "")
    if kind == "equation":
        return f"({count})" if shared.plain_equations else f"({prefix}{count})"
    return f"{kind.capitalize()} {prefix}{count}"


def number_page(shared: Book, name: str) -> None:
    """Number the equations, theorems and figures of a page and register its labels."""
    counts: Counter[str] = Counter()
    target: tuple[str, int] | None = None
    for block in page_blocks(shared.root, name, name in shared.chapters):
        label, kind, text = "", "", ""
        if block.kind == "target":
            target = (block.text, block.line)
            continue
        if block.kind == "text":
            if not block.text.strip():
                continue
            titles = list(headings(block))
            if titles:
                shared.titles.setdefault(name, titles[0])
            if target:
                title = titles[0] if HEADING.match(block.text.strip().split("\n")[0]) else ""
                add(shared, target[0], Label(name, "section", title), target[1])
        elif block.kind == "math" and block.name:
            kind, label = "equation", block.name
        elif block.kind == "directive":
            label = block.options.get("label") or block.options.get("name") or ""
            short = block.name.removeprefix("prf:")
            if block.name == "math" and label:
                kind = "equation"
            elif block.name == "figure":
                kind = "figure" if block.text.strip() else ""
            elif block.name.startswith("prf:") and short in PROOF_KINDS:
                kind = "" if "nonumber" in block.options else short
        if kind:
            counts[kind] += 1
            text = numeral(shared, name, kind, counts[kind])
            shared.numbers[name, block.line] = text
        if label:
            add(shared, label, Label(name, kind or "section", text or block.argument), block.line)
        if target and block.kind == "directive":
            entry = Label(name, kind or "section", text or block.argument)
            add(shared, target[0], entry, target[1])
        target = None


def sphinx_config(root: Path) -> dict[str, Any]:
    """What _config.yml tells Sphinx."""
    config = yaml.safe_load((root / "_config.yml").read_text()) or {}
    return dict(config.get("sphinx", {}).get("config", {}))


def read_book(root: Path) -> Book:
    """Everything the conversion of one page needs to know of the others."""
    shared = Book(
        root,
        book.pages(root),
        book.chapters(root),
        read_json(root / "book/macros.json", {}),
        read_json(root / "book/timings.json", {}),
        citations(root / "book/references.bib"),
        book.prefixes(root),
        not sphinx_config(root).get("math_numfig", True),
    )
    for name in shared.pages:
        try:
            number_page(shared, name)
        except MystError as fault:
            raise ToolError(f"book/{name}.md:{fault.line}: {fault}") from None
    return shared
