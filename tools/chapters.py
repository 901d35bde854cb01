"""What the book consists of: pages of the toc, chapters, their cells, parameters and imports."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import jupytext
import yaml
from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode

from tools.files import ToolError, digest
from tools.names import INJECTED

PACKAGE = "fltutils"
FENCE = re.compile(r"^```+\{code-cell\}", re.MULTILINE)


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
    match = re.match(r"---\n(.*?\n)---\n", path.read_text(), re.DOTALL)
    return (yaml.safe_load(match[1]) if match else None) or {}


def pages(root: Path) -> list[str]:
    """The stem of every page in `_toc.yml`, in reading order."""
    files = list(toc_files(yaml.safe_load((root / "_toc.yml").read_text())))
    if missing := [name for name in files if not (root / "book" / name).exists()]:
        raise ToolError(f"_toc.yml names {missing[0]}, which is not in book/")
    return [name.removesuffix(".md") for name in files]


def chapters(root: Path) -> list[str]:
    """The pages that run code, in reading order; an error where one is absent from the toc."""
    listed = pages(root)
    for path in sorted((root / "book").glob("*.md")):
        if path.stem not in listed and "kernelspec" in front_matter(path):
            raise ToolError(f"book/{path.name} has a kernelspec, but is absent from _toc.yml")
    return [name for name in listed if "kernelspec" in front_matter(root / "book" / f"{name}.md")]


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


def read_source(root: Path, name: str) -> NotebookNode:
    """The chapter's source as a notebook without outputs."""
    nb = jupytext.read(root / "book" / f"{name}.md")
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
    text = (root / "book" / f"{name}.md").read_text()
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
                    waiting.append((path.read_text(), inside))
    return sorted(found)
