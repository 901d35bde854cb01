"""Random numbers come from streams with names, and no two uses share one."""

import ast
import zlib
from collections.abc import Iterator
from pathlib import Path

import jupytext
import pytest

from tools.chapters import chapters, tags

ROOT = Path(__file__).parents[2]
OTHERS = {"default_rng", "SeedSequence", "RandomState", "manual_seed", "rand", "randn", "randint"}
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


def uses(place: str, code: str) -> Iterator[tuple[str, list[str]]]:
    """The names in each span.stream(seed, run, use, ...) and each key (seed, run, use, ...)."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("span.stream", "stream"):
            found, endings = node.args[2:3], [""]
        elif isinstance(node, ast.Tuple) and ast.unparse(node).startswith("(seed, run, "):
            found, endings = node.elts[2:3], parts_of_a_step()
        else:
            continue
        where = f"{place}, line {node.lineno}"
        if len(found) == 1 and isinstance(found[0], ast.Constant):
            yield where, [f"{found[0].value}{ending}" for ending in endings]
        elif ast.unparse(node) != "span.stream(seed, run, f'{use}: {what}', *steps)":  # giant's own
            yield where, []


def faults(sources: list[Cell]) -> list[str]:
    """Uses without a name, names of two uses, and generators that are not streams."""
    wrong, seen = [], dict[int, tuple[str, str]]()
    for place, code in sources:
        names = [n for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Attribute | ast.Name)]
        made = {n.attr if isinstance(n, ast.Attribute) else n.id for n in names} & OTHERS
        wrong += [f"{place}: {name} where span.stream is due" for name in sorted(made)]
        for where, found in uses(place, code):
            if not found:
                wrong.append(f"{where}: the use of a stream must be a text between quotes")
            for name in found:
                twin, first = seen.setdefault(zlib.crc32(name.encode()), (name, where))
                if first != where:
                    wrong.append(f"{where}: the stream {name!r} is that of {twin!r}, {first}")
    return wrong


@pytest.mark.parametrize("name", chapters(ROOT))
def test_every_random_number_has_a_stream_of_its_own(name: str) -> None:
    assert faults([*package(), *cells(name)]) == []


def test_no_two_chapters_share_a_stream() -> None:
    every = [cell for name in chapters(ROOT) for cell in cells(name)]
    assert [fault for fault in faults([*package(), *every]) if "is that of" in fault] == []
    assert len([name for cell in every for _, names in uses(*cell) for name in names]) > 40


A = 'span.stream(seed, run, "a")\n'


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
        ("np.random.default_rng(seed)", "here: default_rng where span.stream is due"),
        ("torch.manual_seed(0)", "here: manual_seed where span.stream is due"),
    ],
)
def test_what_is_wrong_is_seen(code: str, fault: str) -> None:
    found = faults([("here", code)])
    assert len(found) == 1
    assert fault in found[0]


def test_what_is_right_passes() -> None:
    assert (
        faults([("here", A + '(seed, run, "a", t)\nspan.stream(0, 1, "c", t)\n(seed, run)')]) == []
    )
    assert len(parts_of_a_step()) == 3
