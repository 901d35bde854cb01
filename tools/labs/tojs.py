"""Compile a pure torch step, with its autograd gradient, to plain float64 JavaScript.

    trace     make_fx(symbolic) gives the ATen graph of the step, for all sizes at once
    values    each node becomes a Value (ops.py): a shape, and the tree of its entry at an index
    views     are index arithmetic; element-wise ops are trees that fuse into their consumer
    buffers   reductions, products and whatever is read twice are loops that fill a Float64Array;
              a number is a variable; what has been computed once is not computed again
    loops     (loops.py) compute index bases and invariants in the outermost loop that knows them

An op outside the tables of ops.py fails the build, with its name and the line it came from. A
kernel never writes to what it is given: its outputs are buffers of its own.
"""

import inspect
import itertools
import json
import operator
import re
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch
from torch._decomp import get_decompositions
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode

from . import ops
from .loops import Nest, text
from .ops import Expr, Index, Tree, UnsupportedError, Value, broadcast, linear, strides

Step = Callable[..., dict[str, torch.Tensor]]
ZERO = sympy.S.Zero
LOCAL = re.compile(r"\b([ait])_\d+\b")  # variables of one block
# Names that an argument or a size cannot have in JavaScript: keywords, and what kernels use.
TAKEN = re.compile(
    r"[abist]_?\d+|rt|own|arguments|case|catch|const|debugger|default|delete|do|enum|eval|export"
    r"|extends|function|implements|instanceof|interface|let|new|package|private|protected|public"
    r"|static|super|switch|this|throw|typeof|var|void"
)


class Compiler:
    """Turns the nodes of a graph into lines of JavaScript."""

    def __init__(self, symbols: Mapping[Expr, Expr]) -> None:
        self.symbols = symbols  # torch's name of a size -> ours
        self.lines: list[str] = []
        self.buffers: dict[str, Index] = {}
        self.made: dict[tuple[str, ...], str] = {}  # what a block computes -> where it is
        self.returned: set[str] = set()
        self.count = 0
        self.values: dict[torch.fx.Node, Any] = {}

    def size(self, n: Any) -> Any:
        """A size of the trace in our names; anything else as it is."""
        if isinstance(n, torch.SymInt):
            return n.node.expr.subs(self.symbols)
        return sympy.Integer(n) if type(n) is int else n

    def fresh(self, letter: str) -> str:
        self.count += 1
        return f"{letter}_{self.count}"

    def buffer(self, shape: Index) -> str:
        """A name for an array, or for a number."""
        name = self.fresh("b" if shape else "s")
        self.buffers[name] = shape
        return name

    def emit(self, name: str, lines: Sequence[str], again: bool = False) -> Value:
        """Lines that fill a buffer, unless another holds the same; what it holds."""
        shape, lines = self.buffers[name], local(lines)
        key = (str(shape), *(re.sub(rf"\b{name}\b", "", s) for s in lines))
        if key in self.made and not again:
            del self.buffers[name]
            return self.load(self.made[key], shape)
        self.made.setdefault(key, name)
        self.lines += lines if len(lines) == 1 else ["{", *("  " + s for s in lines), "}"]
        return self.load(name, shape)

    def nest(self, shape: Index) -> tuple[Nest, Index]:
        """Loops over a shape, and the index they run over; an axis of size 1 has no loop."""
        nest = Nest(self.fresh, tuple(n for n in shape if n != 1))
        free = iter(nest.vars)
        return nest, tuple(ZERO if n == 1 else next(free) for n in shape)

    def load(self, name: str, shape: Index) -> Value:
        if not self.buffers.get(name, True):
            return _number(name)
        return Value(shape, lambda i: ("load", name, linear(i, shape)))

    def materialise(self, x: Value, again: bool = False) -> Value:
        """Fill a buffer with x."""
        name = self.buffer(x.shape)
        nest, i = self.nest(x.shape)
        tree, at = x.at(i), linear(i, x.shape)
        if len(nest.vars) > 1 and aligned(tree, at, nest.vars):  # one loop over all entries
            loops, (at,) = self.nest((sympy.prod(x.shape),))
            nest, tree = loops, along(tree, at, nest.vars)
        js, where = nest.js(tree)[0], nest.index(at)[0]
        return self.emit(name, nest.lines(f"{place(name, where, x.shape)} = {js};"), again)

    def probe(self, x: Value) -> tuple[str, Expr, list[Expr]] | None:
        """(buffer, offset, strides) if x is nothing but a strided view of a buffer."""
        v = sympy.symbols(f"p:{len(x.shape)}", integer=True)
        tree = x.at(v)
        if tree[0] != "load":
            return None
        e = sympy.expand(tree[2])
        return tree[1], e.subs(dict.fromkeys(v, 0)), [e.coeff(k, 1) for k in v]

    def cheap(self, x: Value) -> Value:
        """x, in a buffer unless reading it again costs no more than a load."""
        v = sympy.symbols(f"p:{len(x.shape)}", integer=True)
        return x if not x.shape or x.at(v)[0] in ("load", "js") else self.materialise(x)

    def strided(self, x: Value) -> tuple[str, Expr, list[Expr]]:
        found = self.probe(x) or self.probe(self.materialise(x))
        assert found
        return found

    def pointwise(self, template: str, args: Sequence[Any], shape: Index) -> Value:
        """An element-wise op; an argument that broadcasting repeats is computed before."""
        full = [self.cheap(a) if isinstance(a, Value) and a.shape != shape else a for a in args]

        def at(i: Index) -> Tree:
            entries = (
                broadcast(a, i) if isinstance(a, Value) else ("js", f"({text(a)})") for a in full
            )
            return ("op", template, tuple(entries))

        return Value(shape, at)

    def reshape(self, x: Value, shape: Index) -> Value:
        if [n for n in x.shape if n != 1] == [n for n in shape if n != 1]:

            def at(i: Index) -> Tree:
                free = iter([k for k, n in zip(i, shape, strict=True) if n != 1])
                return x.at(tuple(ZERO if n == 1 else next(free) for n in x.shape))

            return Value(shape, at)
        found = self.probe(x)
        if not found or found[1] != 0 or not whole(x.shape, found[2]):
            found = self.strided(self.materialise(x))
        return self.load(found[0], shape)

    def reduce(self, op: str, x: Value, dims: Sequence[int] | None, shape: Index) -> Value:
        over = {d % len(x.shape) for d in (dims or range(len(x.shape)))}
        start, how = ops.REDUCE[op]
        keep = [d for d in range(len(x.shape)) if d not in over]
        order = keep + sorted(over)
        nest, i = self.nest(tuple(x.shape[d] for d in order))
        at = dict(zip(order, i, strict=True))
        js = nest.js(x.at(tuple(at[d] for d in sorted(order))))[0]
        to = linear(tuple(at[d] for d in keep), tuple(x.shape[d] for d in keep))
        where = nest.index(to)[0]
        total = f" / ({text(sympy.prod([x.shape[d] for d in over]))})" if op == "mean" else ""
        acc, name = self.fresh("a"), self.buffer(shape)
        add = f"{acc} += {js};" if how == "+" else f"{acc} = Math.{how}({acc}, {js});"
        kept = sum(x.shape[d] != 1 for d in keep)
        store = f"{place(name, where, shape)} = {acc}{total};"
        return self.emit(name, nest.lines(add, f"let {acc} = {start};", store, kept))

    def product(self, a: Value, b: Value, shape: Index) -> Value:
        """sum_k a[.., i, k] b[.., k, j]; without the loop over k if it has one term."""
        if a.shape[-1] == 1:
            return self.pointwise("{0} * {1}", (a, b), shape)
        (A, a0, sa), (B, b0, sb) = self.strided(a), self.strided(b)
        name, (nest, i) = self.buffer(shape), self.nest(shape[:-2])
        offset = linear((*i, ZERO, ZERO), shape)
        for k, v in enumerate(i):
            a0, b0 = a0 + v * sa[k], b0 + v * sb[k]
        at = [nest.index(e)[0] for e in (offset, a0, b0)]
        m, n, p = (text(e) for e in (shape[-2], shape[-1], a.shape[-1]))
        step = [text(e) for e in (*sa[-2:], *sb[-2:])]
        call = (name, at[0], m, n, p, A, at[1], *step[:2], B, at[2], *step[2:])
        return self.emit(name, nest.lines(f"rt.mm({', '.join(call)});"))

    def products(self, op: str, args: Sequence[Any], shape: Index, **scale: Any) -> Value:
        if op in ("addmm", "baddbmm"):
            if any(s != 1 for s in scale.values()):
                raise UnsupportedError(f"{op}: alpha and beta must be 1")
            prod = self.product(args[1], args[2], shape)
            return self.pointwise("{0} + {1}", (args[0], prod), shape)
        a, b = args
        one = sympy.S.One
        a = a if len(a.shape) > 1 else self.reshape(a, (one, *a.shape))
        b = b if len(b.shape) > 1 else self.reshape(b, (*b.shape, one))
        full = shape if op in ("mm", "bmm") else (a.shape[0], one)
        return self.reshape(self.product(a, b, full), shape)

    def own(self, x: Value) -> str:
        """A number, or a whole buffer that holds x and nothing else: what a kernel returns."""
        if not x.shape:
            return self.materialise(x).at(())[1]
        name, start, steps = self.probe(x) or ("", 0, [])
        spare = sympy.prod(self.buffers.get(name, (0,))) - sympy.prod(x.shape)
        free = sympy.expand(spare) == 0 and name not in self.returned
        if not (free and start == 0 and whole(x.shape, steps)):
            name = self.strided(self.materialise(x, again=True))[0]
        self.returned.add(name)
        return name

    def node(self, node: torch.fx.Node) -> Any:
        """The value of a node: a Value, a tuple of them, or a size."""
        val, kw = node.meta.get("val"), dict(node.kwargs)
        if isinstance(val, torch.SymInt):
            return self.size(val)
        args: Any = torch.fx.node.map_aggregate(
            node.args, lambda a: self.values[a] if isinstance(a, torch.fx.Node) else a)  # fmt: skip
        args = list(args)
        if node.target is operator.getitem:
            return args[0][args[1]]
        op = _op(node)
        if op == "_linalg_check_errors":
            return None  # JavaScript shows NaN
        if op == "linalg_cholesky_ex":
            if any(k != 1 for k in args[0].shape[:-2]):
                raise UnsupportedError("one matrix only")
            name, n = self.buffer(args[0].shape), text(args[0].shape[-1])
            A, start, (*_, i, j) = self.strided(args[0])
            call = f"rt.cholesky({name}, {n}, {A}, {text(start)}, {text(i)}, {text(j)});"
            return self.emit(name, [call]), None
        if op == "_linalg_eigh":
            if len(args[0].shape) != 2:
                raise UnsupportedError("one matrix only")
            m = args[0].shape[-1]
            values, vectors = self.buffer((m,)), self.buffer((m, m))
            A, start, (i, j) = self.strided(args[0])
            place = f"{A}, {text(start)}, {text(i)}, {text(j)}"
            found = self.emit(vectors, [f"rt.eigh({values}, {vectors}, {text(m)}, {place});"])
            return self.load(values, (m,)), found
        if op == "cholesky_solve":
            (b, L, *upper), n = args, text(args[1].shape[-1])
            if any(upper) or kw.get("upper") or b.shape[1:] != (1,):
                raise UnsupportedError("one column and a lower triangle only")
            name = self.buffer(b.shape)
            (A, a0, (ai, aj)), (B, b0, (bi, _)) = self.strided(L), self.strided(b)
            at = ", ".join(text(e) for e in (a0, ai, aj)), ", ".join(text(e) for e in (b0, bi))
            return self.emit(name, [f"rt.solve({name}, {n}, {A}, {at[0]}, {B}, {at[1]});"])
        if not isinstance(val, torch.Tensor) or val.dtype not in ops.KINDS:
            raise UnsupportedError(f"{getattr(val, 'dtype', val)}: only float64, int64 and bool")
        shape = tuple(self.size(n) for n in val.shape)
        for name in ("dtype", "layout", "device", "pin_memory", "memory_format", "implicit"):
            kw.pop(name, None)
        if op == "_to_copy" and node.args[0].meta["val"].dtype is not val.dtype:  # type: ignore
            return self.pointwise(ops.KINDS[val.dtype], args, shape)
        if op in ops.SAME:
            return args[0]
        if op in ops.RESHAPES:
            return self.reshape(args[0], shape)
        if op in ops.FILL:
            fill = 1.0 if "ones" in op else 0.0 if "zeros" in op else args[-1]
            return Value(shape, lambda i: ("js", text(fill)))
        if op in ops.VIEWS:
            args[0] = self.cheap(args[0]) if op == "expand" else args[0]
            return ops.VIEWS[op](shape, *args, **kw)
        if op in ops.REDUCE:
            return self.reduce(op, args[0], args[1] if len(args) > 1 else None, shape)
        if op in ops.PRODUCTS:
            return self.products(op, args, shape, **kw)
        if op not in ops.POINTWISE:
            raise UnsupportedError("unknown op")
        if (val.dtype is torch.bool) != (op in ops.BOOLEAN) and op != "where":
            raise UnsupportedError(f"gives {val.dtype}: cast to float64 first")
        args += ops.DEFAULTS.get(op, ())[len(args) - 1 :]
        if kw.pop("alpha", 1) != 1 or kw:
            raise UnsupportedError(f"argument {kw or 'alpha'}")
        squared = op == "pow" and args[1] in (2, 3) and not isinstance(args[1], Value)
        js = " * ".join(["{0}"] * int(args[1])) if squared else ops.POINTWISE[op]
        return self.pointwise(js, args[:1] if squared else args, shape)


def aligned(tree: Tree, at: Expr, free: Sequence[Expr]) -> bool:
    """Whether an entry is made of entries at the same place, and of what is the same for all."""

    def fixed(e: Any) -> bool:
        return not getattr(e, "free_symbols", set()).intersection(free)

    if tree[0] == "load":
        return fixed(tree[2]) or sympy.expand(tree[2] - at) == 0
    if tree[0] in ("index", "if") and not fixed(tree[1]):
        return False
    parts = tree[2] if tree[0] == "op" else tree[2:] if tree[0] == "if" else ()
    return all(aligned(part, at, free) for part in parts)


def along(tree: Tree, at: Expr, free: Sequence[Expr]) -> Tree:
    """An aligned tree, its entries at another place."""
    if tree[0] == "load":
        return tree if not tree[2].free_symbols.intersection(free) else (*tree[:2], at)
    if tree[0] == "op":
        return (*tree[:2], tuple(along(part, at, free) for part in tree[2]))
    return (*tree[:2], *(along(part, at, free) for part in tree[2:])) if tree[0] == "if" else tree


def local(lines: Sequence[str]) -> list[str]:
    """The lines of a block, its variables numbered from 1: equal blocks have equal text."""
    names: dict[str, str] = {}

    def short(m: re.Match[str]) -> str:
        known = sum(name.startswith(m[1]) for name in names)
        return names.setdefault(m[0], f"{m[1]}_{known + 1}")

    return [LOCAL.sub(short, line) for line in lines]


def place(name: str, where: str, shape: Index) -> str:
    """Where an entry stands: in an array, or it is a number."""
    return f"{name}[{where}]" if shape else name


def whole(shape: Index, steps: Sequence[Expr]) -> bool:
    """Whether these strides are row-major; those of an axis of size 1 do not matter."""
    pairs = zip(shape, steps, strides(shape), strict=True)
    return all(n == 1 or sympy.expand(a - b) == 0 for n, a, b in pairs)


def _number(name: str) -> Value:
    return Value((), lambda i: ("js", name))


def _op(node: torch.fx.Node) -> str:
    """ATen's name of the op of a node, without the overload; "" for a size or a tuple entry."""
    schema = getattr(node.target, "_schema", None)
    return schema.name.split("::")[1] if schema else ""


def _uses(node: torch.fx.Node) -> int:
    """How often the entries of a node are read: a view counts as often as it is read itself."""
    return sum(_uses(u) if _op(u) in ops.INDEXED else 1 for u in node.users)


def _origin(fn: Step, args: Sequence[torch.Tensor], op: Any) -> str:
    """The line of the user's code that calls op, found by running the step until it does."""

    class Stop(TorchDispatchMode):
        def __torch_dispatch__(self, f: Any, types: Any, a: Any = (), kw: Any = None) -> Any:
            if f is op:
                frames = [s for s in traceback.extract_stack() if "/torch/" not in s.filename]
                last = [s for s in frames if s.filename != __file__][-1:]
                raise LookupError("".join(f"{s.filename}:{s.lineno}: {s.line}" for s in last))
            return f(*a, **(kw or {}))

    try:
        with Stop():
            fn(*args)
    except LookupError as found:
        return str(found)
    return f"in the gradient of {fn.__name__}, {inspect.getsourcefile(fn)}"


def examples(fn: Step, shapes: Mapping[str, str], sizes: Mapping[str, int]) -> list[torch.Tensor]:
    """Positive float64 examples of the arguments of a step, sizes pairwise distinct."""
    used = {s for name in inspect.signature(fn).parameters for s in shapes.get(name, "").split()}
    values = [sizes[s] for s in sorted(used) if not s.isdigit()]
    if len(set(values)) < len(values) or min(values, default=3) < 3:
        raise ValueError(f"sizes {dict(sizes)}: must be pairwise distinct and at least 3")
    gen = torch.Generator().manual_seed(0)
    return [
        0.5 + torch.rand([int(s) if s.isdigit() else sizes[s]
                          for s in shapes.get(name, "").split()],
                         generator=gen, dtype=torch.float64)
        for name in inspect.signature(fn).parameters
    ]  # fmt: skip


def compile_step(fn: Step, shapes: Mapping[str, str], sizes: Mapping[str, int]) -> str:
    """A JavaScript kernel of fn, which maps named tensors to a dict of named tensors.

    shapes gives each argument its sizes, "2 n k" say, which are names or, if they never change,
    numbers; an argument without entry is a number. sizes are the values to trace with.
    """
    names = list(inspect.signature(fn).parameters)
    labels = {name: shapes.get(name, "").split() for name in names}
    for word in {*names, *itertools.chain(*labels.values())}:
        if TAKEN.fullmatch(word):
            raise UnsupportedError(f"{fn.__name__}: {word} is no name in JavaScript: rename it")
        if word in names and any(word in shape for shape in labels.values()):
            raise UnsupportedError(f"{fn.__name__}: {word} is an argument and a size: rename one")
    args = examples(fn, shapes, sizes)
    try:
        table: Any = get_decompositions(ops.DECOMPOSE)
        graph: Any = make_fx(fn, table, tracing_mode="symbolic")(*args)
    except Exception as error:
        raise UnsupportedError(f"{fn.__name__} cannot be traced: {error}") from error
    for node in graph.graph.nodes:  # a constant needs no more of its argument than the shape
        if (op := _op(node)) in ops.FILL:
            node.args = node.args[-1:] if "full" in op or "scalar" in op else ()
    graph.graph.eliminate_dead_code()
    nodes = list(graph.graph.nodes)
    known: dict[str, Expr] = {}  # our name of a size -> torch's expression
    for node, name in zip(nodes, names, strict=False):
        for label, n in zip(labels[name], node.meta["val"].shape, strict=True):
            e = n.node.expr if isinstance(n, torch.SymInt) else sympy.Integer(n)
            if known.setdefault(label, e) != e or (e.is_number and str(e) != label):
                raise UnsupportedError(f"{fn.__name__}: size {label} of {name} must be {e}")
    symbols = {
        e: sympy.Integer(s) if s.isdigit() else sympy.Symbol(s, integer=True, positive=True)
        for s, e in known.items() if e.is_Symbol
    }  # fmt: skip
    known = {s: e for s, e in known.items() if not s.isdigit()}
    c = Compiler(symbols)
    for node, name in zip(nodes, names, strict=False):
        shape = tuple(c.size(n) for n in node.meta["val"].shape)
        c.values[node] = c.load(name, shape) if shape else _number(name)
    for node in nodes[len(names) : -1]:
        start = len(c.lines)
        try:
            value = c.node(node)
        except UnsupportedError as error:
            where = _origin(fn, args, node.target)
            raise UnsupportedError(f"{node.target}: {error}; {where}") from error
        if isinstance(value, Value) and _op(node) not in ops.INDEXED and _uses(node) > 1:
            value = c.cheap(value)
        c.values[node] = value
        if len(c.lines) > start:
            c.lines.insert(start, f"// {node.target}")
    outs = {name: c.own(c.values[node]) for name, node in nodes[-1].args[0].items()}
    checks = [f"{s} === {text(e.subs(symbols))}" for s, e in known.items() if not e.is_Symbol]
    for guard in graph.shape_env.guards:
        ask = guard.expr.subs(graph.shape_env.replacements).subs(symbols)
        big = isinstance(ask, sympy.Ne) and 1 in ask.args and any(a.is_Symbol for a in ask.args)
        if ask not in (True, False) and not big:  # sizes are at least 2 anyway
            checks.append(text(ask))
    return _kernel(fn.__name__, labels, sorted(known), checks, c, outs)


def _kernel(name: str, labels: Mapping[str, list[str]], sizes: Sequence[str],
            checks: Iterable[str], c: Compiler, outs: Mapping[str, str]) -> str:  # fmt: skip
    """The text of a kernel: what it checks, the lengths of its inputs and of its buffers; its body.

    The engine makes the buffers once, and checks that sizes are 2 or more (1 is another case).
    """
    pick = f"{{ {', '.join(sizes)} }}"
    check = [f'rt.check("{name}: {e}", {e});' for e in dict.fromkeys(checks)]
    order = {b: f"b_{k}" for k, b in enumerate((b for b, s in c.buffers.items() if s), 1)}
    order |= {b: f"s_{k}" for k, b in enumerate((b for b, s in c.buffers.items() if not s), 1)}
    made = [text(sympy.prod(s)) for s in c.buffers.values() if s]
    numbers = [b for b, s in c.buffers.items() if not s]
    asked = [" * ".join(shape) or "0" for shape in labels.values()]
    body = [f"let {', '.join(numbers)};"] if numbers else []
    body += [*c.lines, f"return {{ {', '.join(f'{k}: {b}' for k, b in outs.items())} }};"]
    body = [re.sub(r"\b[bs]_\d+\b", lambda m: order.get(m[0], m[0]), s) for s in body]
    return "\n".join([
        f'kernel("{name}", {json.dumps(list(labels))}, function (rt, {pick}) {{',
        *("  " + s for s in check), f"  return [[{', '.join(asked)}], [{', '.join(made)}]];",
        f"}}, function (rt, {pick}, [{', '.join(v for v in order.values() if v[0] == 'b')}], "
        f"{', '.join(labels)}) {{",
        *("  " + s for s in body), "});", "",
    ])  # fmt: skip
