"""Every term of a law earns its place: each law that a claim names is changed, and some claim of it
must notice.

A change drops a term or a factor, moves an exponent by one half, doubles or halves a constant,
exchanges two variables or drops a condition. The chapter runs once; what its experiments measured
stays in memory, and only the law is evaluated anew. What no claim notices is printed at the claims.
"""

import argparse
import ast
import contextlib
import copy
import functools
import inspect
import itertools
import linecache
import multiprocessing
import os
import textwrap
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tools import chapters as book
from tools import margins
from tools.execute import DRAFT, THREADS
from tools.files import ToolError, read_derived, write_json

STORE = "book/_generated/laws.json"
LEAST = 0.9  # of the changes that some claim must notice
PICKS = {"where": (1, 2), "maximum": (0, 1), "minimum": (0, 1), "max": (0, 1), "min": (0, 1)}
BOUNDED = ("clip", "clamp", "relu", "where")  # what keeps a value where a condition holds
GRIDS = (  # what their numbers say is how to compute, not what
    "linspace", "arange", "geomspace", "logspace", "zeros", "ones", "full", "range",
)  # fmt: skip
SHAPES = (  # so are these, but for what they are applied to
    "reshape", "sum", "mean", "stack", "concatenate", "expand_dims", "take", "flatten",
    "transpose", "interp",
)  # fmt: skip
MODULES = ("np", "numpy", "torch", "xr", "math")
CALLS = 3  # of a law by a claim, whose arguments are tried again with its variables exchanged
Law = Callable[..., Any]
Space = dict[str, Any]


def called(node: ast.AST) -> str:
    """The name of what a call calls: `where` of np.where(...)."""
    func = getattr(node, "func", None)
    return str(getattr(func, "attr", getattr(func, "id", ""))) if isinstance(node, ast.Call) else ""


def method(call: ast.Call) -> ast.expr | None:
    """What a method is called of: x in x.sum("run"); None for a function, as in np.sum(x)."""
    of = root = call.func.value if isinstance(call.func, ast.Attribute) else None
    while isinstance(root, ast.Attribute):
        root = root.value
    return None if isinstance(root, ast.Name) and root.id in MODULES else of


def contents(call: ast.Call) -> list[ast.expr]:
    """What of a call says what a law is."""
    of = method(call)
    if called(call) in GRIDS:
        return []
    given = call.args if called(call) not in SHAPES else call.args[: of is None]
    return ([of] if of else []) + given


def numbers(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a law that say what it is: no indices, no keywords, no shapes."""
    yield node
    if isinstance(node, ast.Call):
        inner: list[Any] = contents(node)
    elif isinstance(node, ast.Subscript):
        inner = [node.value]
    else:
        inner = list(ast.iter_child_nodes(node))
    for child in inner:
        yield from numbers(child)


def others(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in the place of one node."""
    half = ast.Constant(0.5)
    if isinstance(node, ast.BinOp):
        left, right = node.left, node.right
        if isinstance(node.op, ast.Add | ast.Mult | ast.BitAnd | ast.BitOr):
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
        if not isinstance(node.value, bool):
            yield from (ast.Constant(2 * node.value), ast.Constant(node.value / 2))
    elif isinstance(node, ast.BoolOp):
        yield from node.values
    elif isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse)
    elif isinstance(node, ast.If):
        yield from (ast.If(ast.Constant(b), node.body, node.orelse) for b in (True, False))
    elif isinstance(node, ast.Call):
        of = method(node)
        applied = [of] if of else node.args[:1]
        if called(node) == "sqrt" or (called(node) in BOUNDED and (of or called(node) != "where")):
            yield from applied
        places = PICKS.get(called(node), ()) if not of else ()
        yield from (node.args[i] for i in places if i < len(node.args))


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


def changes(law: Law, given: Iterable[Space] = ()) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Every change of a law, in words, with the law that it makes.

    `given` are arguments of it: what changes nothing there is no change.
    """
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
    named = [a.arg for a in (*tree.args.args, *tree.args.kwonlyargs)]
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    for a, b in itertools.combinations([name for name in named if name in used], 2):
        changed = copy.deepcopy(tree)
        for node in (n for s in changed.body for n in ast.walk(s) if isinstance(n, ast.Name)):
            node.id = {a: b, b: a}.get(node.id, node.id)
        if not symmetric(law, made(law, changed), given):
            yield from new(f"{a} and {b} exchanged", changed)


def varied(value: Any, rng: np.random.Generator) -> Any:
    """A value like this one, of its kind and shape, with other numbers."""
    import torch

    if isinstance(value, bool | str) or callable(value) or (np.ndim(value) == 0 and not value):
        return value
    if isinstance(value, int):
        return int(rng.integers(value, 3 * value, endpoint=True)) if value > 0 else value
    factor = 0.5 + rng.random(np.shape(value))
    return value * (torch.as_tensor(factor) if isinstance(value, torch.Tensor) else factor)


def alike(one: Any, other: Any) -> bool:
    """Whether two results have the same numbers, at the same names."""
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(alike, one, other))
    if dims := getattr(one, "dims", ()):
        other = other.transpose(*dims)
    first, second = (np.asarray(value, dtype=float) for value in (one, other))
    if not np.isfinite(first).any():
        raise ValueError("no number to compare")
    return first.shape == second.shape and np.allclose(first, second, rtol=1e-9, equal_nan=True)


def symmetric(law: Law, changed: Law, given: Iterable[Space] = ()) -> bool:
    """Whether two laws give the same numbers, so that they are one: n m and m n.

    They are tried at numbers drawn at random, and near the arguments given, which may be tables.
    """
    rng = np.random.default_rng(0)
    names = inspect.signature(law).parameters
    plain = dict.fromkeys(names, 0.6)
    found = []
    for place in [plain, *given]:
        for _ in range(CALLS):
            with contextlib.suppress(Exception), warnings.catch_warnings():  # it may ask for tables
                warnings.simplefilter("ignore")
                at = {name: varied(value, rng) for name, value in place.items()}
                found.append(alike(law(**at), changed(**at)))
    return bool(found) and all(found)


def asked(f: Any, keyword: str, law: Law) -> list[Space]:
    """The arguments of the first calls of a law by the function of a claim."""
    from fltutils import claims

    given: list[Space] = []

    @functools.wraps(law)
    def heard(*args: Any, **named: Any) -> Any:
        if len(given) < CALLS:
            bound = inspect.signature(law).bind(*args, **named)
            bound.apply_defaults()
            given.append(dict(bound.arguments))
        return law(*args, **named)

    if keyword == "theory":
        claims.of_law(heard, f)
    else:
        f(**{keyword: heard})
    return given


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
        if any(noticed(f, keyword, made(law, source(law))) is not False for f, keyword in uses):
            raise ToolError(f"the claims of {name} refuse it unchanged: nothing can be said of it")
        count, told, void = 0, 0, 0
        given = [one for f, keyword in uses for one in asked(f, keyword, law)]
        for said, tree in changes(law, given):
            seen = [noticed(f, keyword, made(law, tree)) for f, keyword in uses]
            if all(one is None for one in seen):
                void += 1
                continue
            count += 1
            told += any(seen)
            if not any(seen):
                for claim in dict.fromkeys(f.claim["record"]["id"] for f, _ in uses):
                    untold.setdefault(claim, []).append(f"{name}: {said}")
        laws[name] = {"tried": count, "told": told, "void": void}
    return {"laws": laws, "untold": untold}


def work(job: tuple[Path, str]) -> tuple[str, dict[str, Any], float]:
    """One chapter, in a process of its own."""
    root, name = job
    os.environ[DRAFT] = "1"
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


def weak(stored: dict[str, Any]) -> list[str]:
    """The chapters where too many changes go unnoticed, with these; the laws that none tried."""
    wrong = []
    for name, entry in stored.items():
        if entry["laws"] and score([entry]) < LEAST:
            lines = [f"  {id}: {said}" for id, all in entry["untold"].items() for said in all]
            share = f"{score([entry]):.2f} of the changes are noticed, at least {LEAST:g}"
            wrong.append("\n".join([f"book/{name}.md: {share}; no claim notices", *lines]))
        wrong += [
            f"book/{name}.md: no change of {law} gives a number: can its claims call it alone?"
            for law, counts in entry["laws"].items()
            if counts["void"] and not counts["tried"]
        ]
    return wrong


def main(argv: list[str]) -> int:
    """Try the laws of changed chapters; 1 where too many changes go unnoticed."""
    parser = argparse.ArgumentParser(prog="python -m tools laws")
    parser.add_argument("chapters", nargs="*", help="those whose code has changed by default")
    parser.add_argument("--all", action="store_true", help="every chapter, changed or not")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args(argv)
    root = Path.cwd()
    names = book.chosen(root, args.chapters) if args.chapters else stale(root)
    names = named(root) if args.all else names
    stored: dict[str, Any] = read_derived(root / STORE, {})
    forms = {name: margins.form(root, name) for name in names}
    os.environ |= dict.fromkeys(THREADS, "1")  # read when numpy is imported, before any work
    with multiprocessing.get_context("spawn").Pool(args.jobs) as pool:
        for name, found, seconds in pool.imap_unordered(work, [(root, n) for n in names]):
            stored[name] = {"code": forms[name], **found}
            told = ", ".join(f"{k} {v['told']}/{v['tried']}" for k, v in found["laws"].items())
            print(
                f"{name}: {told or 'no law'}; score {score([found]):.2f} ({seconds:.0f} s of CPU)"
            )
    kept = {name: stored[name] for name in named(root) if name in stored}
    write_json(root / STORE, kept)
    wrong = weak(kept)
    print("\n".join(wrong) or f"laws: {len(names)} chapters tried, every score {LEAST:g} or more")
    return 1 if wrong else 0
