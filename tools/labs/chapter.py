"""Functions of a chapter, for its lab: what a page runs is what the chapter shows."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tools import chapters as book

ROOT = Path(__file__).parents[2]
UNRUN = {"exercise", "solution"}


def bound(node: ast.stmt) -> Iterator[str]:
    """The names that a statement gives to functions, imports or values."""
    if isinstance(node, ast.FunctionDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from ((alias.asname or alias.name).split(".")[0] for alias in node.names)
    elif isinstance(node, ast.Assign):
        yield from (name.id for name in node.targets if isinstance(name, ast.Name))


def functions(chapter: str, *wanted: str) -> tuple[Callable[..., Any], ...]:
    """The functions of these names, with what they use, and nothing else of the chapter."""
    nb = book.read_source(ROOT, chapter)
    cells = [cell.source for cell in book.code_cells(nb) if not UNRUN & {*book.tags(cell)}]
    statements = [node for source in cells for node in ast.parse(source).body]
    known = {name: node for node in statements for name in bound(node)}
    needed, waiting = set[ast.stmt](), list(wanted)
    while waiting:
        node = known.get(waiting.pop())
        if node is not None and node not in needed:
            needed.add(node)
            waiting += [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
    space: dict[str, Any] = {"__name__": chapter}
    code = ast.Module([node for node in statements if node in needed], [])
    exec(compile(code, f"book/{chapter}.md", "exec"), space)
    return tuple(space[name] for name in wanted)
