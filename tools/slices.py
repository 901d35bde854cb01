"""What a claim needs of its chapter: its statement, and back along the names they define and use.

A statement defines the names it stores and those it may change: a method called on them, a
subscript or an attribute stored, `del`, a call made for its effect with them as arguments. What a
function looks up, it looks up where it is called. Imports and parameters always stay. What is left
out by mistake is a NameError of the run; a change through a second name of one object is not seen
here, but the tests hold cut runs to whole ones.
"""

import ast
import copy
import symtable
from collections.abc import Iterator
from dataclasses import dataclass

from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode

from tools import chapters as book
from tools.files import ToolError

COMPREHENSIONS = ("listcomp", "setcomp", "dictcomp", "genexpr")
IMPORTS = (ast.Import, ast.ImportFrom)
SURE = (ast.Assign, ast.AnnAssign, ast.FunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Names:
    """The names a statement reads at once, reads inside functions, may change, surely makes."""

    read: set[str]
    inside: set[str]
    changed: set[str]
    made: set[str]


def owner(node: ast.AST) -> str:
    """The name that an attribute or a subscript belongs to: `a` of a.b[0].c."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def changed(tree: ast.AST, modules: set[str]) -> Iterator[str]:
    """The names that code stores or may change in place; a module's functions change nothing."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            if isinstance(node.ctx, ast.Store | ast.Del):
                yield owner(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield from {owner(node.func)} - modules
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            given = [*node.value.args, *(word.value for word in node.value.keywords)]
            yield from (owner(value) for value in given if owner(node.value.func) not in modules)


def nested(table: symtable.SymbolTable, later: bool = False) -> Iterator[tuple[str, bool]]:
    """The names of the module that inner scopes read, and whether only when a function runs."""
    for child in table.get_children():
        function = child.get_type() == "function" and child.get_name() not in COMPREHENSIONS
        for symbol in child.get_symbols():
            if symbol.is_global() and symbol.is_referenced():
                yield symbol.get_name(), later or function
        yield from nested(child, later or function)


def names(statement: ast.stmt, modules: set[str]) -> Names:
    """The names of one statement."""
    table = symtable.symtable(ast.unparse(statement), "statement", "exec")
    inner = list(nested(table))
    read = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_referenced()}
    read |= {name for name, called in inner if not called}
    if isinstance(statement, ast.For):
        read -= {node.id for node in ast.walk(statement.target) if isinstance(node, ast.Name)}
    if isinstance(statement, ast.AugAssign):
        read.add(owner(statement.target))
    assigned = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned()}
    return Names(
        read=read,
        inside={name for name, called in inner if called},
        changed={*changed(statement, modules)} | assigned,
        made=assigned if isinstance(statement, SURE) else set(),
    )


def modules(statements: list[ast.stmt]) -> set[str]:
    """The names that imports bind."""
    found = [node for node in statements if isinstance(node, IMPORTS)]
    return {(a.asname or a.name).split(".")[0] for node in found for a in node.names}


def says(statement: ast.stmt, claims: tuple[str, ...]) -> set[str]:
    """The claims that a statement names."""
    found = {node.value for node in ast.walk(statement) if isinstance(node, ast.Constant)}
    return {claim for claim in claims if claim in found}


def traced(statements: list[ast.stmt]) -> list[Names]:
    """The names of every statement; who uses a function changes what the function changes."""
    imported = modules(statements)
    effects: dict[str, set[str]] = {}
    found = []
    for statement in statements:
        own = names(statement, imported)
        used = [effects[name] for name in own.read | own.inside if name in effects]
        if isinstance(statement, ast.FunctionDef):
            effects[statement.name] = set().union(own.changed & own.inside, *used)
        else:
            own.changed.update(*used)
        found.append(own)
    return found


def needed(statements: list[ast.stmt], claims: tuple[str, ...]) -> set[int]:
    """The places of the statements without which these claims are not what they are."""
    found = traced(statements)
    kept = {i for i, statement in enumerate(statements) if says(statement, claims)}
    named = set().union(*(says(statement, claims) for statement in statements))
    if lost := [claim for claim in claims if claim not in named]:
        raise ToolError(f"no cell names the claim {lost[0]}")
    waiting = [(name, i) for i in kept for name in found[i].read | found[i].inside]
    seen = set(waiting)
    while waiting:
        name, before = waiting.pop()
        for i in reversed(range(before)):
            if name not in found[i].changed:
                continue
            more = {(other, before) for other in found[i].inside}  # where it is called
            more |= {(other, i) for other in found[i].read}
            if not isinstance(statements[i], ast.FunctionDef):
                more |= {(other, i) for other in found[i].inside}
            kept.add(i)
            waiting += more - seen
            seen |= more
            if name in found[i].made:
                break
    return kept


def cut(nb: NotebookNode, claims: tuple[str, ...]) -> NotebookNode:
    """The chapter with nothing in its code cells but what these claims need."""
    short = copy.deepcopy(nb)
    cells = book.code_cells(short)
    parsed = [ast.parse(TransformerManager().transform_cell(c.source)).body for c in cells]
    kept = needed([statement for body in parsed for statement in body], claims)
    place = 0
    for cell, body in zip(cells, parsed, strict=True):
        always = "parameters" in book.tags(cell)
        some = [
            s for i, s in enumerate(body, place) if always or i in kept or isinstance(s, IMPORTS)
        ]
        cell.source = "\n".join(ast.unparse(statement) for statement in some)
        place += len(body)
    return short
