"""What can be referred to: every label of the book and its number, as Sphinx counts them."""

import re
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from docutils import nodes
from jupyter_book.config import get_final_config
from jupytext.myst import myst_to_notebook
from markdown_it import MarkdownIt
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import SphinxError
from sphinx.util.docutils import docutils_namespace, patch_docutils

from tools import chapters as book
from tools import claims, site
from tools.bibliography import Citation, citations
from tools.files import ToolError, digest, read_derived, write_json
from tools.myst import parser


class Label(NamedTuple):
    """Something that can be referred to: an equation, a theorem, a figure, a section."""

    page: str
    kind: str
    text: str


SHORTEST = 40  # characters of a caption or an alt text: "Figure 1" says nothing


@dataclass
class Book:
    """What the pages share."""

    root: Path
    pages: list[str]
    chapters: list[str]
    macros: dict[str, str]
    timings: dict[str, int]
    citations: dict[str, Citation]
    md: MarkdownIt
    titles: dict[str, str]
    labels: dict[str, Label]


def cell_lines(root: Path, name: str) -> list[int]:
    """The line of book/<name>.md at which each cell begins."""
    text = book.live(root / "book" / f"{name}.md")
    nb, lines = myst_to_notebook(text, add_source_map=True), text.split("\n")
    found = []
    for cell, start in zip(nb.cells, nb.metadata.source_map, strict=True):
        blank = next(i for i, line in enumerate(lines[start:]) if line.strip())
        found.append(start if cell.cell_type == "code" else start + blank + 1)
    return found


def wordless(kind: str, text: str) -> str:
    """What to say of a caption or an alt text that is too short; empty where it is not."""
    ask = f"say what is seen, in {SHORTEST} characters or more"
    return "" if len(text.strip()) >= SHORTEST else f"{kind} {text.strip()!r}: {ask}"


def figure(cell: NotebookNode) -> tuple[str, str, list[str]]:
    """Name and caption of a cell's picture, and what is wrong with its words."""
    words = cell.metadata.get("mystnb", {})
    name, text = (str(words.get("figure", {}).get(key, "")) for key in ("name", "caption"))
    if not any("image/png" in output.get("data", {}) for output in cell.outputs):
        return "", "", []
    wrong = [wordless("caption", text), wordless("alt text", words.get("image", {}).get("alt", ""))]
    if not re.fullmatch(r"fig-[a-z-]+", name):
        wrong.append(f"figure name {name!r}: write fig- and small letters, as in fig-phase-relu")
    return name, text, [what for what in wrong if what]


def read_pages(root: Path, committed: bool) -> tuple[BuildEnvironment, dict[str, nodes.document]]:
    """What Sphinx knows once it has read every page as for the site; nothing is written."""
    site.fill_cache(root, {n: site.stored(root, n, committed) for n in book.chapters(root)})
    claims.record(root, committed)  # for the ledger's page, were it of an older form
    given = {"external_toc_path": str(root / "_toc.yml"), "latex_individualpages": False}
    given["nb_execution_cache_path"] = str(root / "_build/.jupyter_cache")
    config, _ = get_final_config(user_yaml=root / "_config.yml", cli_config=given)
    with TemporaryDirectory() as out, patch_docutils(), docutils_namespace():
        try:
            app = Sphinx(root / "book", None, out, out, "dummy", config, None, None, freshenv=True)
            app.builder.read()
        except SphinxError as error:
            raise ToolError(f"Sphinx cannot read the pages: {error}") from None
        list(app.env.check_dependents(app, set()))  # the numbers are given here
        return app.env, {name: app.env.get_doctree(name) for name in book.pages(root)}


def words(title: nodes.Element) -> str:
    """A title as Markdown: its words and its formulas."""
    parts = title.children
    return "".join(f"${p.astext()}$" if isinstance(p, nodes.math) else p.astext() for p in parts)


def numbered(env: BuildEnvironment, page: str, node: nodes.Element) -> tuple[str, str]:
    """What Sphinx makes of a node: its kind and its name with its number."""
    config, counts = env.config, env.toc_fignumbers.get(page, {})
    if isinstance(node, nodes.math_block):
        long = config.numfig and config.math_numfig
        count = counts["displaymath"][node["ids"][0]] if long else (node["number"],)
        return "equation", f"({'.'.join(map(str, count))})"
    kind = env.domains["std"].get_enumerable_node_type(node) or ""
    for name in node["ids"]:
        if name in counts.get(kind, {}):
            text = config.numfig_format[kind] % ".".join(map(str, counts[kind][name]))
            return kind, text[0].upper() + text[1:]
    return "section", words(node[0]) if isinstance(node, nodes.section) else ""


def all_labels(env: BuildEnvironment, trees: dict[str, nodes.document]) -> dict[str, Label]:
    """Every label of the pages; an error where one stands twice."""
    explicit = env.domains["std"].anonlabels
    found: dict[str, Label] = {}
    for page, tree in trees.items():
        for node in tree.findall(nodes.Element):
            names = [name for name in node.get("names", []) if name in explicit]
            names += [node["label"]] if node.get("label") and node.get("ids") else []
            for name in names:
                if name in found:
                    where = f"book/{page}.md:{node.line}: the label {name!r}"
                    raise ToolError(f"{where} stands in {found[name].page}.md already")
                found[name] = Label(page, *numbered(env, page, node))
    return found


def sources(root: Path, committed: bool) -> list[Path]:
    """Every file the numbers depend on."""
    found = [p for p in (root / "book").rglob("*") if p.suffix in (".md", ".bib", ".json", ".py")]
    folder = root / ("book" if committed else "_build/executed")
    found += [folder / f"{name}.ipynb" for name in book.chapters(root)]
    return [root / "_config.yml", root / "_toc.yml", Path(__file__), *sorted(found)]


def read_book(root: Path, committed: bool = False) -> Book:
    """Everything the conversion of one page needs to know of the others."""
    key = digest(part for p in sources(root, committed) for part in (p.name, p.read_bytes()))
    store = root / "_build/labels.json"
    known: dict[str, Any] = read_derived(store, {})
    if known.get("key") != key:
        env, trees = read_pages(root, committed)
        titles = {page: words(title) for page, title in env.titles.items()}
        known = {"key": key, "titles": titles, "labels": all_labels(env, trees)}
        write_json(store, known)
    macros: dict[str, str] = read_derived(root / "book/macros.json", {})
    timings: dict[str, int] = read_derived(root / "book/_generated/timings.json", {})
    labels = {name: Label(*entry) for name, entry in known["labels"].items()}
    works, titles = citations(root / "book/references.bib"), known["titles"]
    pages, ran = book.pages(root), book.chapters(root)
    return Book(root, pages, ran, macros, timings, works, parser(root), titles, labels)
