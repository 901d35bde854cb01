"""Every term of a law earns its place: each law that a claim names is changed, and some claim of it
must notice.

A change drops a term or a factor, moves an exponent by one half, doubles or halves a constant,
exchanges two variables or drops a condition. The chapter runs once; what its experiments measured
stays in memory, and only the law is evaluated anew. What no claim notices is printed at the claims.
"""

import argparse
import ast
import copy
import inspect
import itertools
import linecache
import multiprocessing
import os
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tools import chapters as book
from tools import margins
from tools.files import ToolError, read_derived, write_json

STORE = "book/_generated/laws.json"
LEAST = 0.9  # of the changes that some claim must notice
PICKS = {"where": (1, 2), "maximum": (0, 1), "minimum": (0, 1), "max": (0, 1), "min": (0, 1)}
BOUNDED = ("clip", "clamp")  # methods that keep a value within limits
SHAPES = (  # what their numbers say is how to compute, not what
    "linspace", "arange", "geomspace", "logspace", "zeros", "ones", "full", "reshape", "sum",
    "mean", "stack", "concatenate", "expand_dims", "take", "flatten", "transpose", "interp",
    "range",
)  # fmt: skip
Law = Callable[..., Any]
Space = dict[str, Any]


def called(node: ast.AST) -> str:
    """The name of what a call calls: `where` of np.where(...)."""
    func = getattr(node, "func", None)
    return str(getattr(func, "attr", getattr(func, "id", ""))) if isinstance(node, ast.Call) else ""


def numbers(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a law that say what it is: no indices, no keywords, no shapes."""
    yield node
    for name, value in ast.iter_fields(node):
        if isinstance(node, ast.Subscript) and name == "slice":
            continue
        shape = called(node) in SHAPES and name == "args"
        if shape or (isinstance(node, ast.Call) and name == "keywords"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from numbers(child)


def others(node: ast.AST) -> Iterator[ast.expr]:
    """What may stand in the place of one node."""
    half = ast.Constant(0.5)
    if isinstance(node, ast.BinOp):
        left, right = node.left, node.right
        if isinstance(node.op, ast.Add | ast.Mult):
            yield from (left, right)
        elif isinstance(node.op, ast.Sub):
            yield from (left, ast.UnaryOp(ast.USub(), right))
        elif isinstance(node.op, ast.Div):
            yield left
            if not isinstance(left, ast.Constant):
                yield ast.BinOp(ast.Constant(1.0), ast.Div(), right)
        elif isinstance(node.op, ast.Pow):
            for sign in (ast.Add(), ast.Sub()):
                yield ast.BinOp(left, ast.Pow(), ast.BinOp(right, sign, half))
    elif isinstance(node, ast.Constant) and isinstance(node.value, float | int) and node.value:
        yield from (ast.Constant(2 * node.value), ast.Constant(node.value / 2))
    elif isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse)
    elif isinstance(node, ast.Call):
        if called(node) == "sqrt":
            yield node.args[0] if node.args else node.func.value  # type: ignore[attr-defined]
        places = PICKS.get(called(node), ())
        yield from (node.args[i] for i in places if i < len(node.args))
        if called(node) in BOUNDED and isinstance(node.func, ast.Attribute):
            yield node.func.value


def powers(tree: ast.AST) -> set[int]:
    """The constants that are exponents: these move by one half."""
    found = (
        n.right for n in ast.walk(tree) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Pow)
    )
    return {id(node) for node in found if isinstance(node, ast.Constant)}


def words(node: ast.AST) -> str:
    """Code in one line."""
    return " ".join(ast.unparse(node).split())


def source(law: Law) -> ast.FunctionDef:
    """The syntax tree of a law, without decorators and docstring."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(law))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    tree.decorator_list = []
    if ast.get_docstring(tree) is not None:
        tree.body = tree.body[1:]
    return tree


def changes(law: Law) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Every change of a law, in words, with the law that it makes."""
    tree = source(law)
    body = [node for statement in tree.body for node in numbers(statement)]
    skipped, seen = powers(tree), {ast.dump(tree)}

    def new(said: str, changed: ast.FunctionDef) -> Iterator[tuple[str, ast.FunctionDef]]:
        form = ast.dump(changed)
        if form not in seen:
            seen.add(form)
            yield said, changed

    for place, node in enumerate(body):
        if id(node) in skipped:
            continue
        for other in others(node):
            changed = copy.deepcopy(tree)
            spot = [n for statement in changed.body for n in numbers(statement)][place]
            put(changed, spot, copy.deepcopy(other))
            yield from new(f"{words(node)} → {words(other)}", changed)
    given = [a.arg for a in (*tree.args.args, *tree.args.kwonlyargs)]
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    for a, b in itertools.combinations([name for name in given if name in used], 2):
        changed = copy.deepcopy(tree)
        for node in (n for s in changed.body for n in ast.walk(s) if isinstance(n, ast.Name)):
            node.id = {a: b, b: a}.get(node.id, node.id)
        if not symmetric(law, made(law, changed)):
            yield from new(f"{a} and {b} exchanged", changed)


def symmetric(law: Law, changed: Law) -> bool:
    """Whether two laws give the same numbers for numbers drawn at random: n m and m n are one."""
    rng = np.random.default_rng(0)
    names = inspect.signature(law).parameters
    for _ in range(3):
        given = dict(zip(names, (0.1 + rng.random(len(names))).tolist(), strict=True))
        try:
            one, other = (np.asarray(f(**given), dtype=float) for f in (law, changed))
        except Exception:  # it takes tables: its arguments are told apart there
            return False
        if not np.allclose(one, other, rtol=1e-9, equal_nan=True):
            return False
    return True


def put(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    """Put one node in the place of another."""
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new)
            elif isinstance(value, list) and any(item is old for item in value):
                setattr(parent, name, [new if item is old else item for item in value])


def made(law: Law, tree: ast.FunctionDef) -> Law:
    """The function of a changed tree, in the law's own place."""
    module = ast.fix_missing_locations(ast.Module([tree], []))
    held: Space = {}
    exec(compile(module, "<changed law>", "exec"), law.__globals__, held)
    changed: Law = held[tree.name]
    changed.__kwdefaults__ = law.__kwdefaults__
    changed.__defaults__ = law.__defaults__
    return changed


def noticed(f: Any, keyword: str, law: Law) -> bool | None:
    """Whether a claim's bounds exclude what a law gives; None where it gives no number."""
    from fltutils import claims

    record = f.claim["record"]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = claims.of_law(law, f) if keyword == "theory" else f(**{keyword: law})
            got = claims.found(value)
    except Exception:  # a wrong law may do anything: it is no theory then
        return None
    if not got.finite:
        return None
    got = got._replace(error=record["error"] or 0.0)  # what the data resolve does not change
    return claims.outside(got, 0.0, record["low"], record["high"])[1]


def namespace(root: Path, name: str) -> Space:
    """What a chapter's code defines: run from the top, without figures and exercises."""
    space: Space = {"__name__": "__main__"}
    for count, cell in enumerate(book.code_cells(book.read_source(root, name))):
        if {"exercise", "solution"} & set(book.tags(cell)):
            continue
        file = f"<{name}, code cell {count + 1}>"
        linecache.cache[file] = (len(cell.source), None, cell.source.splitlines(True), file)
        exec(compile(cell.source, file, "exec"), space)
    return space


def tried(space: Space) -> dict[str, Any]:
    """How often a change of each law is noticed, and what is not, by law and by claim."""
    from fltutils import claims

    made_claims = {id(f): f for f in space.values() if "claim" in getattr(f, "__dict__", {})}
    named: dict[str, tuple[Law, list[tuple[Any, str]]]] = {}
    for f in made_claims.values():
        if f.claim["record"]["verdict"] != "holds":
            continue
        for keyword, law in claims.laws(f, f.claim["theory"]).items():
            named.setdefault(law.__name__, (law, []))[1].append((f, keyword))
    laws: dict[str, Any] = {}
    untold: dict[str, list[str]] = {}
    for name, (law, uses) in named.items():
        count, told = 0, 0
        for said, tree in changes(law):
            seen = [noticed(f, keyword, made(law, tree)) for f, keyword in uses]
            if all(one is None for one in seen):
                continue
            count += 1
            told += any(seen)
            if not any(seen):
                for f, _ in uses:
                    untold.setdefault(f.claim["record"]["id"], []).append(f"{name}: {said}")
        laws[name] = {"tried": count, "told": told}
    return {"laws": laws, "untold": untold}


def work(job: tuple[Path, str]) -> tuple[str, dict[str, Any], float]:
    """One chapter, in a process of its own."""
    root, name = job
    os.environ |= {"FLTUTILS_DRAFT": "1", "OMP_NUM_THREADS": "1"}
    os.chdir(root / "book")
    begun = time.process_time()
    with open(os.devnull, "w") as quiet:
        os.dup2(quiet.fileno(), 1)  # claims and glue print outside a notebook
        return name, tried(namespace(root, name)), time.process_time() - begun


def named(root: Path) -> list[str]:
    """The chapters whose claims stand in their pages."""
    from tools import claims

    return list(dict.fromkeys(c["chapter"] for c in claims.register(root) if "line" in c))


def stale(root: Path) -> list[str]:
    """The chapters whose laws were not tried in their present form."""
    stored: dict[str, Any] = read_derived(root / STORE, {})
    return [n for n in named(root) if stored.get(n, {}).get("code") != margins.form(root, n)]


def score(entries: list[dict[str, Any]]) -> float:
    """The share of all changes that some claim noticed."""
    counts = [law for entry in entries for law in entry["laws"].values()]
    return sum(c["told"] for c in counts) / max(1, sum(c["tried"] for c in counts))


def main(argv: list[str]) -> int:
    """Try the laws of changed chapters; 1 where too many changes go unnoticed."""
    parser = argparse.ArgumentParser(prog="python -m tools laws")
    parser.add_argument("chapters", nargs="*", help="those whose code has changed by default")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args(argv)
    root = Path.cwd()
    names = book.chosen(root, args.chapters) if args.chapters else stale(root)
    stored: dict[str, Any] = read_derived(root / STORE, {})
    forms = {name: margins.form(root, name) for name in names}
    with multiprocessing.get_context("spawn").Pool(args.jobs) as pool:
        for name, found, seconds in pool.imap_unordered(work, [(root, n) for n in names]):
            stored[name] = {"code": forms[name], **found}
            told = ", ".join(f"{k} {v['told']}/{v['tried']}" for k, v in found["laws"].items())
            print(
                f"{name}: {told or 'no law'}; score {score([found]):.2f} ({seconds:.0f} s of CPU)"
            )
    write_json(root / STORE, {name: stored[name] for name in book.chapters(root) if name in stored})
    low = [n for n in names if stored[n]["laws"] and score([stored[n]]) < LEAST]
    for name in low:
        lines = [f"  {id}: {said}" for id, all in stored[name]["untold"].items() for said in all]
        print(f"book/{name}.md: no claim notices\n" + "\n".join(lines))
    if low:
        raise ToolError(f"{', '.join(low)}: under {LEAST:g} of the changes are noticed")
    return 0
