"""Loop nests in JavaScript: what can be computed outside an inner loop is, once."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import sympy  # type: ignore[import-untyped]
from sympy.printing.str import StrPrinter  # type: ignore[import-untyped]

from .ops import Expr, Index, Tree, UnsupportedError


def text(e: Any) -> str:
    """A sympy expression of sizes and loop variables, or a Python number, as JavaScript."""
    if isinstance(e, bool | float) or e is None:
        return {"True": "true", "False": "false", "inf": "Infinity", "-inf": "-Infinity",
                "nan": "NaN", "None": "undefined"}.get(str(e), repr(e))  # fmt: skip
    e = sympy.sympify(e)
    if isinstance(e, sympy.And):
        return " && ".join(sorted(text(a) for a in e.args))
    if isinstance(e, sympy.core.relational.Relational):
        sign = {"==": "===", "!=": "!=="}.get(e.rel_op, e.rel_op)
        return f"{text(e.lhs)} {sign} {text(e.rhs)}"
    known = sympy.Symbol | sympy.Integer | sympy.Add | sympy.Mul | sympy.Pow
    for part in sympy.preorder_traversal(e):
        power = part.exp if isinstance(part, sympy.Pow) else sympy.S.One
        if not (isinstance(part, known) and power.is_Integer and power > 0):
            raise UnsupportedError(f"size {e}: only sums and products of sizes are supported")
    return _Printer().doprint(e)


KNOWN: Mapping[Expr, bool] = {True: True, False: False}  # conditions that need no question


class _Printer(StrPrinter):
    def _print_Pow(self, e: Any, rational: bool = False) -> str:
        return "*".join([self.parenthesize(e.base, 60)] * int(e.exp))


class Nest:
    """A loop nest: what can be computed outside an inner loop is, once."""

    def __init__(self, fresh: Callable[[str], str], sizes: Index) -> None:
        self.fresh, self.sizes = fresh, sizes
        self.vars = [sympy.Symbol(fresh("i"), integer=True, nonnegative=True) for _ in sizes]
        self.pre: list[list[str]] = [[] for _ in range(len(sizes) + 1)]
        self.names: dict[str, str] = {}

    def level(self, e: Any) -> int:
        """How many loops must be open before e is known."""
        free: set[Expr] = getattr(e, "free_symbols", set())
        return max((k + 1 for k, v in enumerate(self.vars) if v in free), default=0)

    def const(self, js: str, level: int) -> str:
        """Name js at the level where it is known."""
        if plain := re.fullmatch(r"\(?([\w.]+)\)?|\(-[\d.e]+\)", js):
            return plain[1] or js
        if js not in self.names:
            self.names[js] = self.fresh("t")
            self.pre[level].append(f"const {self.names[js]} = {js};")
        return self.names[js]

    def index(self, e: Expr) -> tuple[str, int]:
        """An affine index, its invariant part hoisted."""
        e, level = sympy.expand(e), self.level(e)
        if level == 0:
            return text(e), 0
        v = self.vars[level - 1]
        step = e.coeff(v, 1)
        rest = sympy.expand(e - step * v)
        if self.level(rest) == level or self.level(step):
            raise UnsupportedError(f"index {e}: not affine")
        js = str(v) if step == 1 else f"{v} * {self.const(f'({text(step)})', 0)}"
        if rest != 0:
            js = f"{self.const(f'({self.index(rest)[0]})', self.level(rest))} + {js}"
        return js, level

    def js(self, tree: Tree, known: Mapping[Expr, bool] = KNOWN) -> tuple[str, int]:
        """The JavaScript of a tree, and the level where it is known.

        known are the conditions above: within a branch they need not be asked again.
        """
        kind = tree[0]
        if kind == "js":
            return tree[1], 0
        if kind == "index":
            js, level = self.index(tree[1])
            return f"({js})", level
        if kind == "load":
            js, level = self.index(tree[2])
            return f"{tree[1]}[{js}]", level
        if kind == "if":
            ask, yes, no = tree[1:]
            if ask in known:
                return self.js(yes if known[ask] else no, known)
            parts = [self.js(yes, {**known, ask: True}), self.js(no, {**known, ask: False})]
            template = f"{text(ask)} ? {{0}} : {{1}}"
            level = max(self.level(ask), *(k for _, k in parts))
        else:
            template, parts = tree[1], [self.js(t, known) for t in tree[2]]
            level = max((k for _, k in parts), default=0)
            if re.search(r"\{(\d)\}.*\{\1\}", template):  # an argument that is read twice
                parts = [(self.const(js, k), k) for js, k in parts]
        names = [js if k == level else self.const(js, k) for js, k in parts]
        return "(" + template.format(*names) + ")", level

    def lines(self, body: str, before: str = "", after: str = "", kept: int = 0) -> list[str]:
        """The loops around body; before and after stand around all loops but the kept first."""
        inside = [body]
        for k in range(len(self.vars), -1, -1):
            if k == kept:
                inside = [s for s in (before, *inside, after) if s]
            inside = [*self.pre[k], *inside]
            if k:
                v, n = self.vars[k - 1], text(self.sizes[k - 1])
                loop = f"for (let {v} = 0; {v} < {n}; {v}++) {{"
                inside = [loop, *("  " + s for s in inside), "}"]
        return inside
