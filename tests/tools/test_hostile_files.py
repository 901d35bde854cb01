"""No file that a person edits gives a traceback: each fault is one line with its place."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tools import __main__ as program
from tools import inputs
from tools.files import write_if_changed

Edit = Callable[[str, str, str], None]
Run = Callable[..., list[str]]
WHOLE = ""  # stands for the whole file where a piece of it is replaced

# file, the piece replaced (or the whole), what stands there then, how the message goes on behind
# the file: in full where the words are ours, to the gist where they are a parser's
CASES = [
    ("_toc.yml", "root: index.md", "root: [index.md", ":3: broken YAML: "),
    ("_toc.yml", "root: index.md", "root: a\nroot: b",
     ":3: broken YAML: the key 'root' stands twice"),
    ("_toc.yml", "- file: tides.md", "- tides.md", ": entry not a mapping"),
    ("_toc.yml", WHOLE, "", ": 'root' key not found"),
    ("_toc.yml", "tides.md", "tide.md", " names tide.md, which is not in book/"),
    ("_toc.yml", "- file: tides.md\n", "",
     "book/tides.md is absent from _toc.yml: add it, or delete it"),
    ("_config.yml", WHOLE, "title: 'x\n", ":2: broken YAML: "),
    ("_config.yml", WHOLE, "- x\n", ":1: broken YAML: `name: value` expected, not ['x']"),
    ("_config.yml", WHOLE, "a: b\x01\n", ":1: broken YAML: "),
    ("_config.yml", WHOLE, "sphinx: 3\n", ": sphinx: 3 is not"),
    ("_config.yml", WHOLE, "latex: {engine: x}\n",
     ": latex: unknown 'engine'; known: latex_documents, latex_engine, use_jupyterbook_latex"),
    ("pyproject.toml", WHOLE, "[project\n", ":1: broken TOML: "),
    ("pyproject.toml", 'version = "0.1.0"', "", ": no version in a table [project]"),
    ("book/claims.toml", 'source = "seminar"', "source = seminar", ":26: broken TOML: "),
    ("book/claims.toml", 'falsifier = "It does not."', "falsifier = '''", ":30: broken TOML: "),
    ("book/claims.toml", WHOLE, "claim = 3", ": a claim is a table [[claim]]"),
    ("book/claims.toml", "planned =", "plan =", ": 'plan' outside the claims; allowed: planned"),
    ("book/claims.toml", '["later"]', '"later"', ": planned = 'later' must be a list of chapters"),
    ("book/claims.toml", '["later"]', '["later", "tides"]',
     ": 'tides' stands in _toc.yml: it is not `planned`"),
    ("book/claims.toml", 'chapter = "later"', 'chapter = "latter"',
     ":23: kou.later: no chapter 'latter' in _toc.yml or the list `planned`"),
    ("book/claims.toml", 'theorem = "Theorem 3"', "theorem = 3",
     ":23: kou.later: theorem = 3 must be a text"),
    ("book/macros.json", WHOLE, '{"\\\\a": "b",\n}', ":2: broken JSON: "),
    ("book/macros.json", WHOLE, "[]", ": an object expected, not []"),
    ("book/macros.json", WHOLE, '{"\\\\a": 1}', ": '\\\\a' is 1, not a text"),
    ("book/macros.json", WHOLE, '{"a": "b", "a": "c"}',
     ": broken JSON: the key 'a' stands twice in one object"),
    ("book/_generated/timings.json", WHOLE, "", ":1: broken JSON: "),
    ("book/_generated/timings.json", WHOLE, '{"waves": "5"}',
     ": 'waves' is '5', not a whole number"),
    ("book/references.bib", "  year = {2023},", "  year {2023},", ":2: broken BibTeX: "),
    ("book/references.bib", "archiveprefix = {arXiv},\n}", "archiveprefix = {arXiv",
     ":2: broken BibTeX: "),
    ("book/references.bib", WHOLE, "@book{a,\n title={x}}\n\n@book{a,\n title={y}}",
     ":4: repeated bibliography entry"),
    ("book/references.bib", "@inproceedings", "<<<<<<< HEAD\n@inproceedings",
     ":2: a conflict of git is not resolved"),
    ("book/references.bib", "Kou, Yiwen", "A, B, C, D", ":2: Too many commas"),
    ("book/labs/a.json", WHOLE, "{", ":1: broken JSON: "),
    ("book/labs/a.json", WHOLE, "{}", ": no picture a.png: run `python -m tools.labs figures a`"),
    ("book/tides.md", "# Tides", "# Tid\xe9s", ":13: not UTF-8: byte 0xe9"),
    ("book/tides.md", "# Tides", "# Tides\n\n```{note}",
     ":15: the fence ``` {note} is never closed"),
    ("book/index.md", "# Book", "# Book\n\n<script>x()</script>",
     ":3: a raw <script> is not allowed: write a lab or a directive"),
    ("book/tides.md", "  name: python3", "  name: 'python3", ":11: broken YAML: "),
    ("book/tides.md", "  name: python3\n---", "  name: python3",
     ":1: the front matter opens with --- and has no end"),
    ("book/tides.md", "name: python3", "name: ir",
     ":1: kernelspec.name is 'ir' in the front matter, not 'python3'"),
    ("book/tides.md", "format_name: myst", "format_name: md",
     ":1: jupytext.text_representation.format_name is 'md' in the front matter, not 'myst'"),
    ("book/tides.md", "kernelspec:", "kernel:",
     ":15: a code cell, but no kernelspec in the front matter"),
    ("book/tides.md", ":tags: [parameters]", ":tags: [parameters", ":16: broken YAML: "),
    ("book/tides.md", ":tags: [parameters]", ":tags: parameters",
     ":16: tags: 'parameters' must be a list of words"),
    ("book/tides.md", ":tags: [parameters]", ":tags: [parameters, nbval-skip]",
     ":16: the tag 'nbval-skip'; allowed: parameters, exercise, solution, hide-input, hide-output, "
     "hide-cell, mutant-NAME"),
    ("book/tides.md", "from fltutils", "# NBVAL_IGNORE_OUTPUT\nfrom fltutils",
     ":22: a mark NBVAL_…: every output must reproduce"),
    ("book/tides.md", ":tags: [parameters]", ":tag: [parameters]",
     ":16: the cell has 'tag'; allowed: tags, mystnb"),
    ("book/tides.md", ":tags: [parameters]\n", "",
     ": the first code cell, and no other, needs the tag `parameters`"),
    ("book/waves.md", "of a plane\n---", "of a: plane\n---", ":61: broken YAML: "),
    ("book/waves.md", "of a plane\n---", "of a plane",
     ":55: the cell's options open with --- and have no end"),
    ("book/tides.md", "seed = 0", "seed = ", ":18: broken Python: "),
    ("book/tides.md", "emit.claim(", "emit claim(", ":36: broken Python: "),
    ("book/tides.md", ":tags: [parameters]", ":tags: [mutant-off]",
     ":16: a mutant's cell must follow the cell it stands in for"),
    ("book/tides.md", "tide\n\nturning = False", "tide",
     ":28: a mutant's cell must define 'turning', as the cell it stands in for does"),
    ("fltutils/moon.py", "5.0", "5.0.", ":1: broken Python: "),
    ("book/stray.ipynb", WHOLE, "{}",
     ": no chapter gives this notebook: delete it, or add its .md"),
    ("book/index.ipynb", WHOLE, "{}",
     ": no chapter gives this notebook: delete it, or add its .md"),
    ("book/waves.ipynb", WHOLE, '{"cells": [\n', ":2: broken JSON: "),
    ("book/waves.ipynb", WHOLE, "{\n<<<<<<< HEAD\n", ":2: a conflict of git is not resolved"),
    ("book/waves.ipynb", WHOLE, "{}", ": not a notebook of format 4: run `make book`"),
]  # fmt: skip


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `python -m tools …` here; what it says of the book, which must be a fault."""

    def command(root: Path, *words: str) -> list[str]:
        monkeypatch.chdir(root)
        monkeypatch.setattr(sys, "argv", ["tools", *words])
        assert program.main() == 1
        return capsys.readouterr().err.splitlines()

    return command


@pytest.mark.parametrize(("file", "old", "new", "message"), CASES)
def test_a_hostile_file_is_told_with_its_place(
    tiny: Path, run: Run, file: str, old: str, new: str, message: str
) -> None:
    path = tiny / file
    path.parent.mkdir(exist_ok=True)
    text = path.read_text() if old else ""
    assert old in text
    path.write_bytes((text.replace(old, new) if old else new).encode("latin-1"))
    place = file * message.startswith((":", " "))
    (told,) = run(tiny, "claims", "--committed")
    assert told.startswith(f"error: {place}{message}")


def test_every_broken_file_is_told_at_once(tiny: Path, run: Run) -> None:
    (tiny / "book/macros.json").write_text("{")
    (tiny / "book/_generated/timings.json").write_text("[")
    told = run(tiny, "book")
    assert ["macros" in told[0], "timings" in told[1], len(told)] == [True, True, 2]


def test_an_unknown_mutant_is_told_before_anything_runs(tiny: Path, edit: Edit, run: Run) -> None:
    edit("book/tides.md", "mutant-off", "mutant-on")
    claimed = "book/claims.toml:13: kou.tides has mutant 'off'; book/tides.md has cells of: on"
    assert run(tiny, "mutants") == [f"error: {claimed}"]


@pytest.mark.parametrize(
    "words", [("fresh", "--seed", "²"), ("fresh", "--seed", "-1"), ("execute", "--seed", "-1")]
)
def test_a_seed_that_numpy_would_refuse_is_told(
    tiny: Path, run: Run, words: tuple[str, ...]
) -> None:
    (told,) = run(tiny, *words)
    assert "is not allowed; give a whole number ≥ 0" in told


def test_a_file_that_is_missing_is_told_unless_a_tool_writes_it(tiny: Path, run: Run) -> None:
    for name in ("_generated/timings.json", "macros.json", "claims.toml"):
        (tiny / "book" / name).unlink()
    assert run(tiny, "book") == [
        "error: book/macros.json: cannot be read: No such file or directory",
        "book/claims.toml: cannot be read: No such file or directory",
    ]


def test_a_derived_file_that_cannot_be_read_is_written_anew(tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_bytes(b"\xff")
    assert write_if_changed(tmp_path / "a.ipynb", "new")


def test_a_sound_book_passes(tiny: Path) -> None:
    inputs.check(tiny)


def test_a_file_that_a_word_processor_saved_is_read_alike(tiny: Path) -> None:
    for path in tiny.rglob("*.*"):
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    inputs.check(tiny)
