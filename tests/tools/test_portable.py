"""Portable notebooks: plain Markdown, never stale, every unknown thing an error with its place."""

import re
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import nbformat
import pytest

from fltutils import claims as package
from tools import chapters as book
from tools import execute, labels, names, plain, portable, publish
from tools.execute import Task
from tools.files import ToolError
from tools.labels import figure, read_book
from tools.myst import structure

Edit = Callable[[str, str, str], None]
NAMES = ["waves", "tides"]


def rerun(root: Path) -> None:
    """Execute what changed."""
    tasks = [Task(name, {}, root / "_build/executed") for name in NAMES]
    assert not execute.failures(execute.run_all(root, tasks, jobs=2))


def prose(root: Path, name: str = "waves") -> str:
    """All Markdown of a portable notebook."""
    nb = nbformat.read(root / "book" / f"{name}.ipynb", as_version=4)
    return "\n\n".join(cell.source for cell in nb.cells if cell.cell_type == "markdown")


def insert(root: Path, pieces: Iterable[str]) -> None:
    """Put numbered pieces of MyST before the last words of the second section."""
    path, end = root / "book/waves.md", "By {prf:ref}`thm-growth`"
    text = path.read_text()
    assert end in text
    marked = "".join(f"PIECE {i}\n\n{piece}\n\n" for i, piece in enumerate(pieces))
    path.write_text(text.replace(end, f"{marked}PIECE\n\n{end}"))


def test_myst_becomes_plain_markdown(built: Path) -> None:
    text = prose(built)
    assert "after [Kou et al. (2023)](https://arxiv.org/abs/2303.04145), in 5 s." in text
    assert r"$\mathrm{SNR} = \lVert \mu \rVert / \sigma$" in text
    assert "$$\nx_i = y_i \\mu + \\xi_i \\tag{1}\n$$" in text
    assert "as (1) says, with value 0.42." in text
    assert "> **Theorem 1 (Growth).**\n>\n> If $\\mathrm{SNR} > 1$ then\n>\n> $$ a = b" in text
    assert "By Theorem 1 and Figure 1." in text
    assert "**Figure 1.** What $\\mathrm{SNR}$ does." in text
    assert "- Y. Kou, Z. Chen and K. Gödel (2023). *Benign Overfitting" in text
    assert not re.search(r"\{[a-z:]+\}`|^:::|\)=$|\\SNR", text, re.MULTILINE)


def test_numbers_are_those_of_the_site(built: Path, edit: Edit) -> None:
    toc = (
        "format: jb-book\nroot: index.md\nparts:\n- numbered: 1\n  chapters:\n"
        "  - file: tides.md\n  - file: waves.md\n"
    )
    (built / "_toc.yml").write_text(toc)
    portable.write(built, ["waves"])
    assert "\\tag{2.1}\n$$\n\nas (2.1) says" in prose(built)
    assert "By Theorem 2.1 and Figure 2.1." in prose(built)
    edit("_config.yml", "  config:", "  config:\n    math_numfig: false")
    portable.write(built, ["waves"])
    assert "as (1) says" in prose(built)
    assert "By Theorem 2.1 and Figure 2.1." in prose(built)


def test_the_notebook_is_plain_data(built: Path) -> None:
    nb = nbformat.read(built / "book/waves.ipynb", as_version=4)
    code = [cell for cell in nb.cells if cell.cell_type == "code"]
    assert code[0].metadata.tags == ["install"]
    assert code[1].metadata.tags == ["parameters"]
    hidden = next(cell for cell in code if "hide-cell" in book.tags(cell))
    assert hidden.metadata.jupyter == {"source_hidden": True, "outputs_hidden": True}
    assert sorted(nb.metadata) == ["kernelspec", "language_info"]
    assert str(built) not in nbformat.writes(nb)


FORMS = [
    (":::{admonition} To *see*\n:class: tip\nHere.\n:::", "> **To *see***\n>\n> Here."),
    ("```{note}\nHere.\n```", "> **Note**\n>\n> Here."),
    (
        "::::{dropdown} A hint\n\n:::{tip}\nTry $\\SNR$.\n:::\n::::",
        "<details>\n<summary><b>A hint</b></summary>\n\n"
        "> **Tip**\n>\n> Try $\\mathrm{SNR}$.\n\n</details>",
    ),
    (
        ":::::{grid} 2\n:gutter: 2\n\n::::{grid-item-card} One\n:link: tides\n:link-type: doc\n"
        "Text.\n::::\n:::::",
        "**One**\n\nText.",
    ),
    (
        ":::{list-table} Sizes\n:header-rows: 1\n\n* - a\n  - $\\SNR$\n* - 1\n  - 2\n:::",
        "**Sizes**\n\n| a | $\\mathrm{SNR}$ |\n| --- | --- |\n| 1 | 2 |",
    ),
    (":::{prf:lemma} X\n:label: l\n:nonumber:\nY.\n:::", "> **Lemma (X).**\n>\n> Y."),
    (":::{prf:proof}\nClear.\n:::", "*Proof.*\n\nClear. ∎"),
    ("```{math}\n:label: waves:z\nz = 1\n```", "$$\nz = 1 \\tag{3}\n$$"),
    ("```python\n{ref}`kept` = $\\SNR$\n```", "```python\n{ref}`kept` = $\\SNR$\n```"),
    ("`{ref}` and `$\\SNR$` stay", "`{ref}` and `$\\SNR$` stay"),
    ("- a\n\n  $$\n  \\SNR\n  $$\n\n  b", "- a\n\n  $$\n  \\mathrm{SNR}\n  $$\n\n  b"),
    ("See {ref}`waves`, {doc}`tides`.", "See Waves, Tides."),
    ("See [there](tides.md) and [here](#waves).", "See there and here."),
    (
        "See [below](#the-setting), or [the setting](#the-setting).",
        "See below (*The setting*), or *The setting*.",
    ),
    ("{cite:p}`kou2023`.", "([Kou et al., 2023](https://arxiv.org/abs/2303.04145))."),
    ("```{raw} html\n<hr>\n```", "*The website shows an interactive part here.*"),
    (":::{lab} x\n:alt: y\n:::", plain.LAB.format("A pond.", "the book’s website")),
    ("Word[^a].\n\n[^a]: A note.", "Word<sup>1</sup>.\n\n<sup>1</sup>  A note."),
    ("{numref}`Fig. %s <fig-waves>` costs \\$5", "Fig. 1 costs \\$5"),
    ("% a comment\nText", "Text"),
]  # fmt: skip


@pytest.fixture(scope="module")
def forms(executed_once: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What every form becomes, all of them on one page."""
    root = tmp_path_factory.mktemp("forms")
    shutil.copytree(executed_once, root, dirs_exist_ok=True)
    (root / "book/labs").mkdir()
    (root / "book/labs/x.json").write_text('{"title": "A pond"}')
    insert(root, (myst for myst, _ in FORMS))
    rerun(root)
    portable.write(root, ["waves"])
    return [piece.strip("\n") for piece in re.split(r"PIECE ?\d*\n\n", prose(root))[1:-1]]


@pytest.mark.parametrize(("number", "markdown"), list(enumerate(shown for _, shown in FORMS)))
def test_each_form(forms: list[str], number: int, markdown: str) -> None:
    assert forms[number] == markdown, FORMS[number][0]


FAULTS = [
    ("$\\SRN$", "SRN"),
    ("$$\n\\frac{a\n$$", "KaTeX parse error"),
    ("$\\norm$", "an argument is missing"),
    (":::{prf:lemma} X\nText.\n:::", r"{prf:lemma} needs a :label:"),
    (":::{theorem} X\nText.\n:::", r"unknown directive \{theorem\}"),
    (":::{prf:theorm} X\nText.\n:::", r"unknown directive \{prf:theorm\}"),
    ("{reff}`waves`", r"unknown role \{reff\}"),
    ("{glue:text}`waves.valu`", "undefined glue 'waves.valu'; this chapter glues waves.value"),
    ("{cite:t}`kou2024`", "undefined citation 'kou2024'"),
    ("{eq}`waves:q`", "undefined label 'waves:q'"),
    ("{doc}`wave`", "no page 'wave'"),
    ("{cpu}`wave`", "timings.json has no 'wave'"),
    ("![A line seen from above](gone.png)", "there is no file"),
    ("Text\n\n\\begin{align}\na\n\\end{align}", r"write displayed maths as \$\$"),
]  # fmt: skip


@pytest.fixture(scope="module")
def faults(executed_once: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """What is said of each piece, all of them on one page."""
    root = tmp_path_factory.mktemp("faults")
    shutil.copytree(executed_once, root, dirs_exist_ok=True)
    insert(root, (myst for myst, _ in FAULTS))
    rerun(root)
    with pytest.raises(ToolError) as caught:
        portable.write(root, ["waves"])
    lines = (root / "book/waves.md").read_text().split("\n")
    found: dict[int, str] = {}
    for place, what in re.findall(r"(?m)^book/waves\.md:(\d+): (.*)$", str(caught.value)):
        start = max(i for i in range(int(place)) if lines[i].startswith("PIECE"))
        number = int(lines[start].removeprefix("PIECE "))
        assert start + 3 <= int(place) <= start + 3 + FAULTS[number][0].count("\n")
        found[number] = found.get(number, "") + what
    return found


@pytest.mark.parametrize(("number", "message"), list(enumerate(message for _, message in FAULTS)))
def test_each_unknown_thing_names_file_and_line(
    faults: dict[int, str], number: int, message: str
) -> None:
    assert re.search(message, faults[number]), FAULTS[number][0]


@pytest.mark.parametrize("page", ["waves", "index"])
@pytest.mark.parametrize(
    ("myst", "message"),
    [
        ("::::{note}\nText.", "the fence :::: {note} is never closed"),
        ("::::{note}\n```{tip}\nText.\n::::", "the fence ``` {tip} is never closed"),
        ("```{code-cell} python\n1 + 1", "the fence ``` {code-cell} python is never closed"),
        ("::: note\nText.\n:::", "a colon fence needs a directive in braces"),
        ("```{code-cell} python\n---\ntags: [a\n---\n1\n```", "{code-cell}: Invalid options"),
        ("Costs $5.", "a $ that opens no formula"),
        ("<script>x()</script>", "a raw <script> is not allowed"),
        ("Text <script>x()</script> on.", "a raw <script> is not allowed"),
        ("```{raw} html\n<script>x()</script>\n```", "a raw <script> is not allowed"),
        ("::::{grid} 2\n:::{card} A\n:::\n::::", "{grid}: '::{card} A' is no option"),
    ],
)
def test_a_broken_page_is_told_before_anything_runs(
    tiny: Path, page: str, myst: str, message: str
) -> None:
    path = tiny / "book" / f"{page}.md"
    text = path.read_text()
    path.write_text(f"{text}\n{myst}\n")
    place = text.count("\n") + 2 + ("{tip}" in myst)
    with pytest.raises(ToolError, match=re.escape(f"book/{page}.md:{place}: {message}")):
        structure(tiny, page)


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ({"text/plain": "saved in\n/home/someone/figure"}, "/home/someone/figure"),
        ({"text/html": "<code>/tmp/x1</code>"}, "/tmp/x1"),
        ({"text/plain": "<function f at 0x7f3a12bc90a0>"}, "0x7f3a12bc90a0"),
        ({"text/plain": "ran on runner-17"}, "runner-17"),
        ({"text/plain": "read https://a.b/home/x, book/tmp/x, 3/4 of 0x10"}, ""),
        ({"image/png": "/tmp/abcdefgh"}, ""),
    ],
)
def test_an_output_tells_nothing_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: dict[str, str], told: str
) -> None:
    monkeypatch.setattr(portable.socket, "gethostname", lambda: "runner-17")
    shown = nbformat.v4.new_output("display_data", data=output)
    cell = nbformat.v4.new_code_cell(outputs=[shown])
    said = "".join(portable.machine(tmp_path, cell))
    assert (f"holds {told!r}" in said) if told else not said


WORDS = "What is seen here takes more than forty signs"


@pytest.mark.parametrize(
    ("name", "caption", "alt", "told"),
    [
        ("fig-a", WORDS, WORDS, []),
        ("fig-1", WORDS, WORDS, ["figure name 'fig-1': write fig-"]),
        ("fig-a", "Small.", WORDS, ["caption 'Small.': say what is seen, in 40"]),
        ("", "", "", ["caption ''", "alt text ''", "figure name ''"]),
    ],
)
def test_a_picture_has_a_name_a_caption_and_an_alt_text(
    name: str, caption: str, alt: str, told: list[str]
) -> None:
    words = {"figure": {"name": name, "caption": caption}, "image": {"alt": alt}}
    shown = nbformat.v4.new_output("display_data", data={"image/png": ""})
    cell = nbformat.v4.new_code_cell(metadata={"mystnb": words}, outputs=[shown])
    wrong = figure(nbformat.from_dict(cell))[2]
    assert len(wrong) == len(told)
    assert all(said.startswith(start) for said, start in zip(wrong, told, strict=True))


def test_the_names_are_those_that_the_package_writes() -> None:
    for name in ("CLAIM", "EXERCISE", "GLUE"):
        assert getattr(names, name) == getattr(package, name)


def test_every_fault_is_told_at_once(built: Path, edit: Edit) -> None:
    edit("book/waves.md", "as {eq}", "{a}`b` {c}`d` as {eq}")
    edit("book/tides.md", "# Tides", "# Tides\n\n{e}`f`")
    rerun(built)
    with pytest.raises(ToolError) as caught:
        portable.check(built, NAMES)
    assert str(caught.value).count("unknown role") == 3


def test_a_label_given_twice_is_an_error(built: Path, edit: Edit) -> None:
    edit("book/waves.md", "$$ (waves:y)", "$$ (waves:x)")
    with pytest.raises(
        ToolError, match=r"book/waves\.md:\d+: the label 'waves:x' stands in waves.md already"
    ):
        read_book(built)


def test_sphinx_reads_the_pages_once(
    built: Path, edit: Edit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(root: Path, committed: bool) -> None:
        raise AssertionError("read again")

    portable.check(built, NAMES)
    monkeypatch.setattr(labels, "read_pages", refused)
    portable.check(built, NAMES)
    edit("book/index.md", "# Book", "# A book")
    with pytest.raises(AssertionError, match="read again"):
        portable.check(built, NAMES)


def test_what_sphinx_refuses_is_told(built: Path, edit: Edit) -> None:
    edit("_config.yml", "[sphinx_proof]", "[sphinx_prof]")
    with pytest.raises(ToolError, match=r"Sphinx cannot read the pages: .*sphinx_prof"):
        portable.check(built, NAMES)


def test_an_up_to_date_book_passes_in_a_clone_that_ran_nothing(built: Path) -> None:
    portable.check(built, NAMES)
    shutil.rmtree(built / "_build")
    portable.check(built, NAMES)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("A promise", "The promise"),  # prose
        ("# Waves", "# Wave"),  # a heading
    ],
)
def test_a_stale_notebook_is_told_with_its_difference(
    built: Path, edit: Edit, old: str, new: str
) -> None:
    edit("book/waves.ipynb", old, new)
    with pytest.raises(ToolError, match=r"waves\.ipynb is stale") as caught:
        portable.check(built, NAMES)
    lines = str(caught.value).split("\n")
    assert any(line.startswith("-") and new.strip("'") in line for line in lines)
    assert any(line.startswith("+") and old.strip("'") in line for line in lines)


def test_an_edited_source_makes_the_notebook_stale(built: Path, edit: Edit) -> None:
    edit("book/waves.md", "A promise", "The promise")
    with pytest.raises(ToolError, match="stale"):
        portable.check(built, NAMES)


def test_edited_code_must_be_executed_first(built: Path, edit: Edit) -> None:
    edit("book/waves.md", "emit.figure()", "emit.figure( )")
    with pytest.raises(ToolError, match=r"waves\.ipynb is stale, its code differs"):
        portable.check(built, NAMES)
    with pytest.raises(ToolError, match=r"waves\.md was not executed in its present state"):
        portable.write(built, NAMES)


def test_edited_code_of_the_notebook_is_stale(built: Path, edit: Edit) -> None:
    edit("book/waves.ipynb", '\\"waves.value\\", f', '\\"waves.value\\",f')
    with pytest.raises(ToolError, match=r"waves\.ipynb is stale, its code differs"):
        portable.check(built, NAMES)


def test_a_value_of_the_notebook_that_its_prose_does_not_give_is_stale(
    built: Path, edit: Edit
) -> None:
    edit("book/waves.ipynb", "'0.42'", "'0.43'")
    with pytest.raises(ToolError, match=r"\+.*with value 0\.43"):
        portable.check(built, NAMES)


def test_a_missing_notebook_is_told(built: Path) -> None:
    (built / "book/tides.ipynb").unlink()
    with pytest.raises(ToolError, match=r"tides\.ipynb is missing"):
        portable.check(built, NAMES)


def test_the_address_alone_may_differ(
    built: Path, edit: Edit, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit("book/waves.md", "A promise", "See [tides](tides.md). A promise")
    portable.write(built, NAMES)
    assert "See tides. A promise" in prose(built)
    monkeypatch.setenv("GITHUB_REPOSITORY", "someone/book")
    monkeypatch.setenv("GITHUB_SHA", "abc123")
    portable.check(built, NAMES)
    portable.write(built, NAMES)
    monkeypatch.setenv("GITHUB_REPOSITORY", "another/fork")
    portable.check(built, NAMES)
    text = (built / "book/waves.ipynb").read_text()
    assert "git+https://github.com/someone/book@abc123" in text
    assert "See [tides](https://someone.github.io/book/tides.html). A promise" in text


def test_published_notebooks_know_their_address_and_lead_somewhere(
    built: Path, edit: Edit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ToolError, match="no address"):
        publish.publish(built, tmp_path / "out")
    monkeypatch.setenv("GITHUB_REPOSITORY", "someone/book")
    monkeypatch.setenv("GITHUB_SHA", "abc")
    edit("book/waves.md", "A promise", "See [tides](tides.md) and [this](index.md). A promise")
    publish.publish(built, tmp_path / "out")
    text = (tmp_path / "out/book/waves.ipynb").read_text()
    assert "git+https://github.com/someone/book@abc" in text
    assert "See [tides](https://someone.github.io/book/tides.html)" in text
    assert "and [this](https://someone.github.io/book/index.html)" in text
    assert "(https://arxiv.org/abs/2303.04145)" in text


@pytest.mark.parametrize(
    ("link", "goal"),
    [
        ("[a](b.csv)", "https://github.com/o/n/blob/abc/book/b.csv"),
        ("![a](b.png)", "https://raw.githubusercontent.com/o/n/abc/book/b.png"),
        ("[a](https://c.d/e)", "https://c.d/e"),
        ("[a](#b)", "#b"),
    ],
)
def test_a_published_link_leads_to_github_or_the_picture(link: str, goal: str) -> None:
    assert publish.absolute(f"{link}.", "o/n", "abc").endswith(f"[a]({goal}).")
