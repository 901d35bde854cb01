"""What a claim's mutant must run again, after the chapter and in its kernel.

A claim needs its statement, and back along the names that statements define and use. A statement
defines the names it stores and those it may change: a method called on them, a subscript or an
attribute stored, `del`, a call made for its effect with them as arguments. What a function looks
up, it looks up where it is called: one that is a claim, where it stands. A name has a version, a
digest of the code that made it, and what the kernel holds in the version that is needed does not
run again. A change through a second name of one object is not seen here, but the tests hold such
runs to whole ones.
"""

import ast
import functools
import symtable
from collections.abc import Iterator
from dataclasses import dataclass, replace

from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from tools import chapters as book
from tools.files import ToolError, digest

COMPREHENSIONS = ("listcomp", "setcomp", "dictcomp", "genexpr")
IMPORTS = (ast.Import, ast.ImportFrom)
PURE = {  # methods of dicts, arrays, tensors and named tuples that change nothing
    "abs", "all", "amax", "amin", "any", "argmax", "argmin", "clamp", "double", "exp", "items",
    "keys", "log", "log10", "log2", "max", "mean", "median", "min", "norm", "numpy", "_replace",
    "round", "sign", "sqrt", "square", "std", "sum", "values", "var",
}  # fmt: skip
SURE = (ast.Assign, ast.AnnAssign, ast.FunctionDef, ast.ClassDef, *IMPORTS)


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


def changed(tree: ast.AST, modules: frozenset[str]) -> Iterator[str]:
    """The names that code stores or may change in place; a module's functions change nothing."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            if isinstance(node.ctx, ast.Store | ast.Del):
                yield owner(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield from {owner(node.func)} - modules if node.func.attr not in PURE else ()
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


written = functools.cache(ast.unparse)  # a mutant's chapter shares most of its statements


@functools.cache
def names(statement: ast.stmt, modules: frozenset[str]) -> Names:
    """The names of one statement."""
    table = symtable.symtable(written(statement), "statement", "exec")
    inner = list(nested(table))
    read = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_referenced()}
    read |= {name for name, called in inner if not called}
    if isinstance(statement, ast.For):
        read -= {node.id for node in ast.walk(statement.target) if isinstance(node, ast.Name)}
    if isinstance(statement, ast.AugAssign):
        read.add(owner(statement.target))
    bound = [s for s in table.get_symbols() if s.is_assigned() or s.is_imported()]
    assigned = {symbol.get_name() for symbol in bound}
    known = {symbol.get_name() for symbol in table.get_symbols()} | {name for name, _ in inner}
    return Names(
        read=read,
        inside={name for name, called in inner if called},
        changed=({*changed(statement, modules)} & known) | assigned,
        made=assigned if isinstance(statement, SURE) else set(),
    )


def modules(statements: list[ast.stmt]) -> frozenset[str]:
    """The names that imports bind."""
    found = [node for node in statements if isinstance(node, IMPORTS)]
    return frozenset((a.asname or a.name).split(".")[0] for node in found for a in node.names)


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
        own = replace(own, changed=set(own.changed))  # the cache keeps its own
        used = [effects[name] for name in own.read | own.inside if name in effects]
        if isinstance(statement, ast.FunctionDef):
            effects[statement.name] = set().union(own.changed & own.inside, *used)
            own.changed.intersection_update({statement.name})
        else:
            own.changed.update(*used)
        found.append(own)
    return found


@dataclass(frozen=True)
class Step:
    """A statement in a run from the top: the versions it finds, and those it leaves."""

    reads: dict[str, str]
    leaves: dict[str, str]
    made: set[str]


def closed(names: set[str], within: dict[str, set[str]]) -> set[str]:
    """Names, and all that their functions look up when they are called."""
    seen: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += within.get(name, ())
    return seen


def waits(statement: ast.stmt) -> bool:
    """Whether a statement is a function that is called later; `@claim(...)` calls its own."""
    if not isinstance(statement, ast.FunctionDef):
        return False
    decorators = (node for node in statement.decorator_list if isinstance(node, ast.Call))
    return all(owner(node.func) != "claim" for node in decorators)


def steps(statements: list[ast.stmt]) -> Iterator[Step]:
    """The versions of names through a run from the top."""
    versions: dict[str, str] = {}
    within: dict[str, set[str]] = {}
    for statement, own in zip(statements, traced(statements), strict=True):
        names = closed(own.read if waits(statement) else own.read | own.inside, within)
        names |= own.changed - own.made  # in place: on what they were
        reads = {name: versions[name] for name in sorted(names) if name in versions}
        code = digest([written(statement), *(text for pair in reads.items() for text in pair)])
        leaves = {name: digest([code, name]) for name in own.changed}
        for name in own.changed:
            within[name] = own.inside | (set() if name in own.made else within.get(name, set()))
        versions |= leaves
        yield Step(reads, leaves, own.made)


def again(statements: list[ast.stmt], claims: tuple[str, ...], held: dict[str, str]) -> list[int]:
    """The statements that give these claims in a kernel that holds versions; updates them."""
    run = list(steps(statements))
    places = {i for i, statement in enumerate(statements) if says(statement, claims)}
    named = set().union(*(says(statements[i], claims) for i in places))
    if lost := [claim for claim in claims if claim not in named]:
        raise ToolError(f"no cell names the claim {lost[0]}")
    while True:
        now, lacking = dict(held), set()
        for i in sorted(places):
            wanting = {name for name, version in run[i].reads.items() if now.get(name) != version}
            lacking |= {(name, i) for name in wanting}
            now |= run[i].leaves
        more = set()
        for name, before in lacking:
            for i in reversed(range(before)):
                if name in run[i].leaves:
                    more.add(i)
                    if name in run[i].made:
                        break
        if more <= places:
            held |= now
            return sorted(places)
        places |= more


@functools.cache
def parsed(source: str) -> tuple[ast.stmt, ...]:
    """The statements of a cell; nobody changes them."""
    return tuple(ast.parse(TransformerManager().transform_cell(source)).body)


def statements(nb: NotebookNode) -> list[ast.stmt]:
    """All statements of a chapter's cells."""
    return [statement for cell in book.code_cells(nb) for statement in parsed(cell.source)]


def trials(
    nb: NotebookNode, mutated: dict[str, tuple[NotebookNode, tuple[str, ...]]]
) -> list[NotebookNode]:
    """A cell for each mutant, to follow the chapter: what gives its claims under the mutant."""
    held: dict[str, str] = {}
    for step in steps(statements(nb)):
        held |= step.leaves
    cells = []
    for name, (changed, claims) in mutated.items():
        body = statements(changed)
        code = "\n".join(written(body[i]) for i in again(body, claims, held))
        cells.append(new_code_cell(code, metadata={"tags": [book.MUTANT + name]}))
    return cells
