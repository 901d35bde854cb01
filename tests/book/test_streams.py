"""Random numbers come from streams with names, and no two uses share one."""

import ast
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

import jupytext
import pytest

from tools.chapters import chapters, tags

ROOT = Path(__file__).parents[2]
OTHERS = re.compile(  # what makes or feeds another generator, as owner.name or an import
    r"^(?:(?:np|numpy|torch)\.)?(random)$|\b(random)\.|^\w*\.(stream)$"
    r"|^torch\.(normal\w*|bernoulli|multinomial|poisson|Generator|\w*seed|\w*_init)$"
    r"|\b(nn\.(?!functional\b|Module\b|Parameter\b)\w+)"
    r"|\.(rand(?:n|int|perm|range)?(?:_like)?|random_|normal_|uniform_|bernoulli_|exponential_)$"
    r"|\.(spawn|\w*dropout\w*|manual_seed\w*)$"
)
KEYS = {"batch": 2, "descent": 4, "step": 5}  # where giant takes its key
OWN_NAMES = {"stream", "span", "giant", "numpy", "torch", *KEYS}
Cell = tuple[str, str]  # where it stands and its code


def package() -> list[Cell]:
    """Every module but span, which makes the generators."""
    files = sorted((ROOT / "fltutils").glob("*.py"))
    return [(f.name, f.read_text()) for f in files if f.name != "span.py"]


def cells(name: str) -> list[Cell]:
    """A chapter's code without its exercises: these may have fixed numbers of their own."""
    code = [c for c in jupytext.read(ROOT / "book" / f"{name}.md").cells if c.cell_type == "code"]
    places = [(f"{name}.md, code cell {i}", c) for i, c in enumerate(code, 1)]
    return [(place, c.source) for place, c in places if not {"exercise", "solution"} & {*tags(c)}]


def parts_of_a_step() -> list[str]:
    """What giant draws for one key: the texts in its calls of _stream(key, ...)."""
    tree = ast.parse((ROOT / "fltutils/giant.py").read_text())
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    draws = [ast.literal_eval(c.args[1]) for c in calls if ast.unparse(c.func) == "_stream"]
    return sorted({f": {draw}" for draw in draws})


def key_of(call: ast.Call) -> list[ast.expr]:
    """The key in a call of giant's batch, descent or step; nothing in other calls."""
    name = ast.unparse(call.func).removeprefix("fltutils.").removeprefix("giant.")
    if name not in KEYS:
        return []
    named = [k.value for k in call.keywords if k.arg == "key"]
    return [*call.args[KEYS[name] : KEYS[name] + 1], *named]


def is_key(node: ast.Tuple) -> bool:
    """Whether a tuple looks like (seed, run, "use", *steps), and not like (x, y, "-")."""
    texts = [isinstance(x, ast.Constant) and isinstance(x.value, str) for x in node.elts[:3]]
    word = texts == [False, False, True] and re.search(r"\w\w", ast.unparse(node.elts[2]))
    return bool(word) or ast.unparse(node).startswith("(seed, run, ")


def uses(place: str, code: str) -> Iterator[tuple[str, list[str]]]:
    """The names in each span.stream(seed, run, use, ...) and each key (seed, run, use, ...)."""
    nodes = [*ast.walk(ast.parse(code))]
    keys = {key for n in nodes if isinstance(n, ast.Call) for key in key_of(n)}
    keys = {key for key in keys if not isinstance(key, ast.Name)}  # its tuple is found elsewhere
    for node in nodes:
        if isinstance(node, ast.Call) and last_name(node.func) == "stream":
            found, endings = node.args[2:3], [""]
        elif node in keys or (isinstance(node, ast.Tuple) and is_key(node)):
            found, endings = getattr(node, "elts", [])[2:3], parts_of_a_step()
        else:
            continue
        where = f"{place}, line {node.lineno}"
        if len(found) == 1 and isinstance(found[0], ast.Constant):
            yield where, [f"{found[0].value}{ending}" for ending in endings]
        elif ast.unparse(node) != "span.stream(seed, run, f'{use}: {what}', *steps)":  # giant's own
            yield where, []


def last_name(node: ast.AST | None) -> str:
    """b of a.b and of b; nothing of all else."""
    return str(getattr(node, "attr", getattr(node, "id", "")))


def others(place: str, code: str) -> Iterator[str]:
    """Generators that are not streams, and streams under names that `uses` does not know."""
    nodes = [*ast.walk(ast.parse(code))]
    types = [getattr(n, kind, None) for n in nodes for kind in ("annotation", "returns")]
    quiet = {n for hint in types if hint for n in ast.walk(hint)}
    quiet |= {n.func for n in nodes if isinstance(n, ast.Call) and last_name(n.func) == "stream"}
    for node in nodes:
        made = []
        if isinstance(node, ast.Attribute | ast.Name) and node not in quiet:
            made = [f"{last_name(getattr(node, 'value', None))}.{last_name(node)}"]
        elif isinstance(node, ast.Import | ast.ImportFrom):
            module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            made = [f"{module}{alias.name}" for alias in node.names]
            for alias in node.names:
                name = alias.name.split(".")[-1]
                if name in OWN_NAMES and alias.asname not in (None, name, "np"):
                    yield f"{place}, line {node.lineno}: {name} must keep its name"
        for match in filter(None, map(OTHERS.search, made)):
            name = match[match.lastindex or 0]
            yield f"{place}, line {node.lineno}: {name} where a call of span.stream is due"


def faults(sources: list[Cell]) -> list[str]:
    """Uses without a name, names of two uses, and generators that are not streams."""
    wrong, seen = [], dict[int, tuple[str, str]]()
    for place, code in sources:
        wrong += sorted({*others(place, code)})
        for where, found in uses(place, code):
            if not found:
                wrong.append(f"{where}: the use of a stream must be a text between quotes")
            for name in found:
                own = (name, where)
                twin = seen.setdefault(zlib.crc32(name.encode()), own)
                if twin is not own:
                    wrong.append(f"{where}: the stream {name!r} is that of {twin[0]!r}, {twin[1]}")
                    break
    return wrong


@pytest.mark.parametrize("name", chapters(ROOT))
def test_every_random_number_has_a_stream_of_its_own(name: str) -> None:
    assert faults([*package(), *cells(name)]) == []


def test_no_two_chapters_share_a_stream() -> None:
    every = [cell for name in chapters(ROOT) for cell in cells(name)]
    assert [fault for fault in faults([*package(), *every]) if "is that of" in fault] == []
    assert len([name for cell in every for _, names in uses(*cell) for name in names]) > 40


A = 'span.stream(seed, run, "a")\n'
GENERATORS = {
    "random": [
        "np.random.default_rng(seed)",
        "np.random.Generator(PCG64(s))",
        "np.random.normal(0, 1, n)",
        "np.random.permutation(n)",
        "draw = np.random",
        "import random",
        "random.gauss(0, 1)",
        "from random import gauss",
        "from numpy import random as r",
        "from numpy.random import default_rng",
    ],
    "spawn": ["rng.spawn(2)"],
    "manual_seed": ["torch.manual_seed(0)"],
    "normal": ["torch.normal(0, 1, (2,))", "from torch import normal"],
    "randn": ["torch.randn(2)"],
    "randperm": ["torch.randperm(2)"],
    "randn_like": ["torch.randn_like(x)"],
    "bernoulli": ["torch.bernoulli(x)"],
    "multinomial": ["torch.multinomial(x, 2)"],
    "Generator": ["torch.Generator()"],
    "normal_": ["x.normal_()", "torch.empty(2).normal_()"],
    "uniform_": ["x[0].uniform_()"],
    "dropout": ["torch.nn.functional.dropout(x)"],
    "nn.Linear": ["nn.Linear(2, 2)", "torch.nn.Linear(2, 2)", "from torch.nn import Linear"],
    "nn.init": ["torch.nn.init.orthogonal_(x)", "from torch.nn.init import orthogonal_"],
}
RIGHT = """
(seed, run, "a", t); (seed, run); ("x", "y", "z"); ("x", "y", "z"); (x, y, "-"); (x, y, "-")
def draw(rng: np.random.Generator) -> torch.Generator: return rng.normal(rng.random(2))
span.stream(0, 1, "c", t).multinomial(2, p); giant.step(net, a, f, n, eta, key); optimizer.step()
import numpy as np; from torch.nn.functional import softplus; torch.nn.functional.softplus(x)
"""


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        (A + A, "here, line 2: the stream 'a' is that of 'a', here, line 1"),
        ('key = (seed, run, "b", t)\nspan.stream(seed, 0, "b: batch")', "'b: batch' is that of"),
        (
            'span.stream(seed, 0, "plumless")\nspan.stream(seed, 0, "buckeroo")',
            "'buckeroo' is that",
        ),
        ("span.stream(seed, run, use)", "here, line 1: the use of a stream must be a text"),
        ("span.stream(seed, run)", "here, line 1: the use of a stream must be a text"),
        ('(seed, run, f"a{t}")', "here, line 1: the use of a stream must be a text"),
        ('(seed, r, "one", t)\n(seed, r, "one", t + 1)', "line 2: the stream 'one: batch' is that"),
        ('(seed, 0, "one")\n(seed, 0, "one")', "here, line 2: the stream 'one: batch' is that of"),
        ('(s, run, "one")\n(seed, run, "one")', "here, line 2: the stream 'one: batch' is that of"),
        (
            'a, b = span.stream(0, 0, "a"), span.stream(0, 1, "a")',
            "'a' is that of 'a', here, line 1",
        ),
        ("giant.batch(net, n, (0, run, use))", "here, line 1: the use of a stream must be a text"),
        ("giant.step(net, a, f, n, eta, (s, r, use))", "the use of a stream must be a text"),
        ("descent(net, a, f, n, key=(s, r, use))", "the use of a stream must be a text"),
        ('giant.batch(net, n, (0, run) + ("one",))', "the use of a stream must be a text"),
        ("from fltutils.span import stream as st", "here, line 1: stream must keep its name"),
        ("import fltutils.span as sp", "here, line 1: span must keep its name"),
        ("import torch as t", "here, line 1: torch must keep its name"),
        ("from fltutils.giant import step as go", "here, line 1: step must keep its name"),
        ("new = span.stream", "here, line 1: stream where a call of span.stream is due"),
        ("functools.partial(span.stream, 0)", "stream where a call of span.stream is due"),
        *(
            (code, f"here, line 1: {name} where a call of span.stream is due")
            for name, codes in GENERATORS.items()
            for code in codes
        ),
    ],
)
def test_what_is_wrong_is_seen(code: str, fault: str) -> None:
    found = faults([("here", code)])
    assert len(found) == 1
    assert fault in found[0]


def test_what_is_right_passes() -> None:
    assert faults([("here", A + RIGHT)]) == []
    assert len(parts_of_a_step()) == 2
