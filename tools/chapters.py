"""What the book consists of: pages of the toc, chapters, their cells, parameters and imports."""

import ast
import re
import symtable
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import jupytext
from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode
from sphinx_external_toc.parsing import MalformedError, parse_toc_data

from tools import readers
from tools.files import ToolError, digest
from tools.names import INJECTED

PACKAGE = "fltutils"
FENCE = re.compile(r"^```+\{code-cell\}", re.MULTILINE)
CELL = re.compile(r"^(```+)\{code-cell\}[^\n]*\n(.*?)^\1`*[ \t]*$", re.MULTILINE | re.DOTALL)
HEAD = re.compile(r"---\n(.*?)^---[ \t]*\n", re.MULTILINE | re.DOTALL)
OPTIONS = ("tags", "mystnb")  # what a code cell may say of itself
MUTANT = "mutant-"  # the tag of a cell that a mutant runs in place of the one before it
TAGS = ("parameters", "exercise", "solution", "hide-input", "hide-output", "hide-cell")
NEEDED = {
    ("kernelspec", "name"): "python3",
    ("jupytext", "text_representation", "format_name"): "myst",
}


def toc_files(node: Any) -> Iterator[str]:
    """Every file of a toc, in reading order."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("root", "file"):
                yield value if value.endswith(".md") else f"{value}.md"
            else:
                yield from toc_files(value)
    elif isinstance(node, list):
        for item in node:
            yield from toc_files(item)


def front_matter(path: Path) -> dict[str, Any]:
    """The YAML block at the head of a page ({} where there is none)."""
    content = readers.text(path)
    match = HEAD.match(content)
    if content.startswith("---\n") and not match:
        raise readers.fault(path, 1, "the front matter opens with --- and has no end")
    return readers.parse_yaml(path, match[1], first=2) if match else {}


def toc(root: Path) -> dict[str, Any]:
    """The table of `_toc.yml`, its form checked by the site's own parser."""
    path = root / "_toc.yml"
    table = readers.read_yaml(path)
    try:
        parse_toc_data(table)
    except MalformedError as error:
        raise readers.fault(path, 0, str(error)) from None
    return table


def pages(root: Path) -> list[str]:
    """The stem of every page in `_toc.yml`, in reading order."""
    files = list(toc_files(toc(root)))
    if missing := [name for name in files if not (root / "book" / name).exists()]:
        raise ToolError(f"_toc.yml names {missing[0]}, which is not in book/")
    return [name.removesuffix(".md") for name in files]


def is_chapter(path: Path) -> bool:
    """Whether a page runs code; an error where its front matter does not let it."""
    head, content = front_matter(path), readers.text(path)
    cell = FENCE.search(content)
    if "kernelspec" not in head:
        if cell:
            line = readers.line_of(content, cell.start())
            raise readers.fault(path, line, "a code cell, but no kernelspec in the front matter")
        return False
    for keys, wanted in NEEDED.items():
        value: Any = head
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        if value != wanted:
            name = ".".join(keys)
            raise readers.fault(path, 1, f"{name} is {value!r} in the front matter, not {wanted!r}")
    return True


def chapters(root: Path) -> list[str]:
    """The pages that run code, in reading order; an error where a page is absent from the toc."""
    listed = pages(root)
    for path in sorted((root / "book").glob("*.md")):
        if path.stem not in listed:
            raise ToolError(f"book/{path.name} is absent from _toc.yml: add it, or delete it")
    return [name for name in listed if is_chapter(root / "book" / f"{name}.md")]


def chosen(root: Path, names: list[str]) -> list[str]:
    """The chapters named, or all of them; an unknown name is an error."""
    known = chapters(root)
    for name in names:
        if name not in known:
            raise ToolError(f"unknown chapter {name!r}; allowed: {', '.join(known) or 'none yet'}")
    return names or known


def stable_ids(nb: NotebookNode) -> None:
    """Give every cell an id that depends on its content and on how often that content came."""
    seen: dict[str, int] = {}
    for cell in nb.cells:
        stem = digest([cell.cell_type, cell.source])[:8]
        seen[stem] = seen.get(stem, 0) + 1
        cell.id = stem if seen[stem] == 1 else f"{stem}-{seen[stem]}"


def options(path: Path, body: str, line: int) -> tuple[dict[str, Any], int]:
    """What a code cell says of itself, and how many lines that takes; its body is at `line`."""
    lines = body.split("\n")
    if lines[0].startswith("---"):
        end = next((i for i, text in enumerate(lines[1:], 1) if text.startswith("---")), 0)
        if not end:
            raise readers.fault(path, line, "the cell's options open with --- and have no end")
        found, used = readers.parse_yaml(path, "\n".join(lines[1:end]), line + 1), end + 1
    else:
        used = next(i for i, text in enumerate(lines) if not text.startswith(":"))
        found = readers.parse_yaml(path, "\n".join(text[1:] for text in lines[:used]), line)
    if unknown := [key for key in found if key not in OPTIONS]:
        allowed = ", ".join(OPTIONS)
        raise readers.fault(path, line, f"the cell has {unknown[0]!r}; allowed: {allowed}")
    words = found.get("tags", [])
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise readers.fault(path, line, f"tags: {words!r} must be a list of words")
    if unknown := [word for word in words if word not in TAGS and not word.startswith(MUTANT)]:
        allowed = ", ".join((*TAGS, f"{MUTANT}NAME"))
        raise readers.fault(path, line, f"the tag {unknown[0]!r}; allowed: {allowed}")
    return found, used


def bound(code: ast.Module) -> set[str]:
    """The names that code binds."""
    symbols = symtable.symtable(ast.unparse(code), "cell", "exec").get_symbols()
    return {name.get_name() for name in symbols if name.is_assigned() or name.is_imported()}


def check_cells(path: Path) -> None:
    """Raise where the options or the code of a cell cannot be read, or no cell has parameters."""
    content = readers.text(path)
    tagged: list[bool] = []
    named: set[str] = set()  # by the last cell that is no mutant's
    for cell in CELL.finditer(content):
        line = readers.line_of(content, cell.start(2))
        found, used = options(path, cell[2], line)
        code = "\n".join(cell[2].split("\n")[used:])
        names = bound(parse(path, code, line + used))
        if not of_mutants(found.get("tags", [])):
            named = names
        elif len(tagged) < 2:
            raise readers.fault(path, line, "a mutant's cell must follow the cell it stands in for")
        elif lost := sorted(named - names):
            said = f"a mutant's cell must define {lost[0]!r}, as the cell it stands in for does"
            raise readers.fault(path, line, said)
        if "NBVAL_" in code:
            raise readers.fault(path, line, "a mark NBVAL_…: every output must reproduce")
        tagged += ["parameters" in found.get("tags", [])]
    if tagged.count(True) != 1 or not tagged[0]:
        raise readers.fault(
            path, 0, "the first code cell, and no other, needs the tag `parameters`"
        )


def of_mutants(words: list[str]) -> list[str]:
    """The mutants that a cell with these tags belongs to."""
    return [word.removeprefix(MUTANT) for word in words if word.startswith(MUTANT)]


def mutants(path: Path) -> set[str]:
    """The mutants of a chapter."""
    cells = CELL.finditer(readers.text(path))
    found = (options(path, cell[2], 1)[0].get("tags", []) for cell in cells)
    return {name for words in found for name in of_mutants(words)}


def live(path: Path, mutant: str = "") -> str:
    """A page as it runs, line for line: a mutant's cell is blank, or the cell before it is."""
    content = readers.text(path)
    blank, last = [], None
    for cell in CELL.finditer(content):
        line = readers.line_of(content, cell.start(2))
        names = of_mutants(options(path, cell[2], line)[0].get("tags", []))
        if not names:
            last = cell
        elif last:
            blank.append(last if mutant in names else cell)
    for cell in sorted(blank, key=lambda cell: -cell.start()):
        lines = "\n" * cell[0].count("\n")
        content = content[: cell.start()] + lines + content[cell.end() :]
    return content


def parse(path: Path, code: str, line: int = 1) -> ast.Module:
    """The syntax tree of Python, or of a cell, that begins at `line` of a file."""
    bare = code.lstrip("\n")  # as IPython does
    try:
        return ast.parse(TransformerManager().transform_cell(bare))
    except SyntaxError as error:
        line += len(code) - len(bare) + (error.lineno or 1) - 1
        raise readers.fault(path, line, f"broken Python: {error.msg}") from None


def read_source(root: Path, name: str, mutant: str = "") -> NotebookNode:
    """The chapter's source as a notebook without outputs, or what a mutant makes of it."""
    nb = jupytext.reads(live(root / "book" / f"{name}.md", mutant), fmt="md:myst")
    for cell in nb.cells:
        cell.metadata["tags"] = [tag for tag in tags(cell) if not of_mutants([tag])]
        if not cell.metadata["tags"]:
            del cell.metadata["tags"]
    stable_ids(nb)
    return nb


def tags(cell: NotebookNode) -> list[str]:
    """The tags of a cell."""
    return list(cell.metadata.get("tags", []))


def code_cells(nb: NotebookNode) -> list[NotebookNode]:
    """The code cells that stand in the source (papermill adds one for parameters)."""
    return [c for c in nb.cells if c.cell_type == "code" and INJECTED not in tags(c)]


def cell_line(root: Path, name: str, number: int) -> int:
    """The line of book/<name>.md at which code cell `number` (from 1) opens."""
    text = live(root / "book" / f"{name}.md")
    starts = [match.start() for match in FENCE.finditer(text)]
    return text.count("\n", 0, starts[number - 1]) + 1 if number <= len(starts) else 1


def parameter_names(nb: NotebookNode) -> list[str]:
    """The names assigned in the cell tagged `parameters`."""
    names: list[str] = []
    for cell in code_cells(nb):
        if "parameters" in tags(cell):
            for node in ast.parse(cell.source).body:
                targets = node.targets if isinstance(node, ast.Assign) else []
                targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
                names += [target.id for target in targets if isinstance(target, ast.Name)]
    return names


def imported(code: str, package: str = "") -> set[str]:
    """Dotted names a piece of Python imports; `package` resolves relative imports."""
    try:
        tree = ast.parse(TransformerManager().transform_cell(code))
    except SyntaxError:  # running it will say so, and name the cell
        return set()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                up = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*up, base]).strip(".")
            names.add(base)
            names.update(f"{base}.{alias.name}" for alias in node.names)
    return names


def module_files(root: Path, name: str) -> list[Path]:
    """The files of the package that importing `name` reads: each parent's and its own."""
    parts = name.split(".")
    if parts[0] != PACKAGE:
        return []
    files = []
    for depth in range(1, len(parts) + 1):
        stem = root.joinpath(*parts[:depth])
        files += [f for f in (stem / "__init__.py", stem.with_suffix(".py")) if f.is_file()]
    return files


def closure(root: Path, sources: Iterable[str]) -> list[Path]:
    """Every file of the package that this code imports, directly or through another."""
    found: set[Path] = set()
    waiting = [(source, "") for source in sources]
    while waiting:
        code, package = waiting.pop()
        for name in imported(code, package):
            for path in module_files(root, name):
                if path not in found:
                    found.add(path)
                    inside = ".".join(path.parent.relative_to(root).parts)
                    waiting.append((readers.text(path), inside))
    return sorted(found)
