"""Portable notebooks: plain Markdown, never stale, every unknown thing an error with its place."""

import re
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import nbformat
import pytest

from fltutils import claims as package
from tests.tools.conftest import default_tasks
from tools import chapters as book
from tools import execute, names, portable, publish, site
from tools.files import ToolError
from tools.myst import structure

Edit = Callable[[str, str, str], None]


def rebuild(root: Path) -> None:
    """Execute what changed, and render."""
    assert not execute.failures(execute.run_all(root, default_tasks(root), jobs=2))
    site.ensure(root, committed=False)


def check(root: Path) -> None:
    """Compare the committed notebooks with what their sources give."""
    site.ensure(root, committed=True)
    portable.check(root)


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
    assert "after [Kou et al. (2023)](https://arxiv.org/abs/2303.04145), beside tides." in text
    assert r"$\mathrm{SNR} = \lVert \mu \rVert / \sigma$" in text
    assert "$$\nx_i = y_i \\mu + \\xi_i \\tag{1}\n$$" in text
    assert "as (1) says, with value 0.42." in text
    assert "> **Theorem 1 (Growth).**\n>\n> If $\\mathrm{SNR} > 1$ then\n>\n> $$ a = b" in text
    assert "By Theorem 1 and Figure 1." in text
    assert "**Figure 1.** What $\\mathrm{SNR}$ does." in text
    assert "- Y. Kou, Z. Chen and K. Gödel (2023). *Benign Overfitting" in text
    assert not re.search(r"\{[a-z:]+\}`|^:::|\)=$|\\SNR", text, re.MULTILINE)


@pytest.mark.slow
def test_numbers_are_those_of_the_site(built: Path, edit: Edit) -> None:
    toc = (
        "format: jb-book\nroot: index.md\nparts:\n- numbered: 1\n  chapters:\n"
        "  - file: tides.md\n  - file: waves.md\n"
    )
    (built / "_toc.yml").write_text(toc)
    edit("_config.yml", "math_numfig: false", "math_numfig: true")
    edit("book/tides.md", "# Tides", "# Tides\n\nSee {prf:ref}`thm-growth`.")
    site.build(built)
    assert "\\tag{2.1}\n$$\n\nas (2.1) says" in prose(built)
    assert "By Theorem 2.1 and Figure 2.1." in prose(built)
    assert "See Theorem 2.1 of Waves." in prose(built, "tides")


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
        "One\n\nText.\n\nTides",
    ),
    (
        ":::{list-table} Sizes\n:header-rows: 1\n\n* - a\n  - $\\SNR$\n* - 1\n  - 2\n:::",
        "**Sizes**\n\n| a | $\\mathrm{SNR}$ |\n| --- | --- |\n| 1 | 2 |",
    ),
    (":::{prf:lemma} X\n:label: l\n:nonumber:\nY.\n:::", "> **Lemma (X).**\n>\n> Y."),
    (":::{prf:proof}\nClear.\n:::", "*Proof.* Clear. ∎"),
    ("```{math}\n:label: waves:z\nz = 1\n```", "$$\nz = 1 \\tag{3}\n$$"),
    ("```text\n{ref}`kept` = $\\SNR$\n```", "```text\n{ref}`kept` = $\\SNR$\n```"),
    ("`{ref}` and `$\\SNR$` stay", "`{ref}` and `$\\SNR$` stay"),
    ("- a\n\n  $$\n  \\SNR\n  $$\n\n  b", "- a\n\n  $$\n  \\mathrm{SNR}\n  $$\n\n  b"),
    ("See {ref}`waves`, {doc}`tides`.", "See *Waves*, Tides."),
    ("See [there](tides.md) and [here](#waves).", "See there and here (*Waves*)."),
    (
        "See [below](#the-setting), or [the setting](#the-setting).",
        "See below (*The setting*), or *The setting*.",
    ),
    ("{cite:p}`kou2023`.", "([Kou *et al.*, 2023](https://arxiv.org/abs/2303.04145))."),
    ("```{raw} html\n<hr>\n```", "*The website shows an interactive part here.*"),
    ("Word[^a].\n\n[^a]: A note.", "Word<sup>1</sup>."),
    ("{numref}`Fig. %s <fig-waves>` costs \\$5", "Fig. 1 costs \\$5"),
    ("% a comment\nText", "Text"),
    ("\\*a\\* b_c \\_d\\_ \\<e> \\[f](g) \\\\h", "\\*a\\* b_c \\_d\\_ \\<e> \\[f](g) \\\\h"),
]  # fmt: skip


@pytest.fixture(scope="module")
def forms(executed_once: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What every form becomes, all of them on one page."""
    root = tmp_path_factory.mktemp("forms")
    shutil.copytree(executed_once, root, dirs_exist_ok=True)
    insert(root, (myst for myst, _ in FORMS))
    rebuild(root)
    text = prose(root)
    assert "\n\n<sup>1</sup> A note.\n\n## References" in text
    return [piece.strip("\n") for piece in re.split(r"PIECE ?\d*\n\n", text)[1:-1]]


@pytest.mark.slow
@pytest.mark.parametrize(("number", "markdown"), list(enumerate(shown for _, shown in FORMS)))
def test_each_form(forms: list[str], number: int, markdown: str) -> None:
    assert forms[number] == markdown, FORMS[number][0]


FAULTS = [
    ("$\\SRN$", "SRN"),
    ("$$\n\\frac{a\n$$", "KaTeX parse error"),
    ("$\\norm$", "an argument is missing"),
    (":::{prf:lemma} X\nText.\n:::", r"{prf:lemma} needs a :label:"),
    (":::{theorem} X\nText.\n:::", "directive.*'theorem'"),
    (":::{prf:theorm} X\nText.\n:::", "directive.*'prf:theorm'"),
    ("{reff}`waves`", 'role "reff"'),
    ("{glue:text}`waves.valu`", "'waves.valu' found in glue data"),
    ("{cite:t}`kou2024`", "key \"kou2024\""),
    ("{eq}`waves:q`", "waves:q"),
    ("{ref}`nolabel`", "undefined label: 'nolabel'"),
    ("{prf:ref}`notheorem`", "target not found: notheorem"),
    ("{numref}`nofigure`", "nofigure"),
    ("[here](#nowhere)", "'nowhere'"),
    ("[here](nowhere.md)", "'nowhere.md'"),
    (":::{prf:lemma} X\n:label: thm-growth\nText.\n:::", "thm-growth"),
    ("$$\nc\n$$ (waves:x)", "waves:x"),
    ("(waves)=\n## Again", "waves"),
    (":::{field}\nText.\n:::", "field"),
    ("Term\n: is not shown", "a notebook cannot show <definition_list>"),
    ("{doc}`wave`", "'wave'"),
    ("![A line seen from above](gone.png)", "alt text.*image file not readable: gone.png"),
    ("Text\n\n\\begin{align}\na\n\\end{align}", r"use aligned .* after \$\$"),
]  # fmt: skip


@pytest.fixture(scope="module")
def faults(executed_once: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """What is said of each piece, all of them on one page."""
    root = tmp_path_factory.mktemp("faults")
    shutil.copytree(executed_once, root, dirs_exist_ok=True)
    insert(root, (myst for myst, _ in FAULTS))
    with (root / "book/tides.md").open("a") as file:
        file.write("\n{reff}`here as well`\n")
    with pytest.raises(ToolError) as caught:
        rebuild(root)
    assert re.search(r"book/tides\.md:\d+: .*reff", str(caught.value))
    lines = (root / "book/waves.md").read_text().split("\n")
    found: dict[int, str] = {}
    for place, what in re.findall(r"(?m)^book/waves\.md:(\d+): (.*)$", str(caught.value)):
        start = max(i for i in range(int(place)) if lines[i].startswith("PIECE"))
        number = int(lines[start].removeprefix("PIECE "))
        assert start + 3 <= int(place) <= start + 3 + FAULTS[number][0].count("\n")
        found[number] = found.get(number, "") + what
    return found


@pytest.mark.slow
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


def test_the_names_are_those_that_the_package_writes() -> None:
    for name in ("CLAIM", "EXERCISE", "GLUE"):
        assert getattr(names, name) == getattr(package, name)


@pytest.mark.slow
def test_a_clone_that_ran_nothing_passes_and_its_pages_are_read_once(
    built: Path, edit: Edit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(root: Path, output: Path) -> None:
        raise AssertionError("read again")

    shutil.rmtree(built / "_build")
    site.ensure(built, committed=True)
    monkeypatch.setattr(site, "run_sphinx", refused)
    check(built)
    edit("book/index.md", "# Book", "# A book")
    with pytest.raises(AssertionError, match="read again"):
        check(built)


@pytest.mark.slow
def test_what_sphinx_refuses_is_told(built: Path, edit: Edit) -> None:
    edit("_config.yml", "- sphinx_proof", "- sphinx_prof")
    with pytest.raises(ToolError, match="sphinx_prof"):
        check(built)


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
        portable.check(built)
    lines = str(caught.value).split("\n")
    assert any(line.startswith("-") and new.strip("'") in line for line in lines)
    assert any(line.startswith("+") and old.strip("'") in line for line in lines)


@pytest.mark.slow
def test_prose_and_values_that_the_notebook_does_not_have_make_it_stale(
    built: Path, edit: Edit
) -> None:
    edit("book/waves.md", "A promise", "The promise")
    edit("book/waves.ipynb", "'0.42'", "'0.43'")
    with pytest.raises(ToolError, match=r"(?s)stale.*\+.*The promise.*\+.*with value 0\.43"):
        check(built)


def test_edited_code_must_be_executed_first(built: Path, edit: Edit) -> None:
    edit("book/waves.md", "emit.figure()", "emit.figure( )")
    with pytest.raises(ToolError, match=r"waves\.ipynb is stale, its code differs"):
        check(built)
    with pytest.raises(ToolError, match=r"waves\.md was not executed in its present state"):
        site.ensure(built, committed=False)


def test_edited_code_of_the_notebook_is_stale(built: Path, edit: Edit) -> None:
    edit("book/waves.ipynb", '\\"waves.value\\", f', '\\"waves.value\\",f')
    with pytest.raises(ToolError, match=r"waves\.ipynb is stale, its code differs"):
        check(built)


def test_a_missing_notebook_is_told(built: Path) -> None:
    (built / "book/tides.ipynb").unlink()
    with pytest.raises(ToolError, match=r"tides\.ipynb is missing"):
        check(built)


@pytest.mark.slow
def test_the_address_alone_may_differ(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "beside tides." in prose(built)
    monkeypatch.setenv("GITHUB_REPOSITORY", "someone/book")
    monkeypatch.setenv("GITHUB_SHA", "abc123")
    check(built)
    publish.publish(built, built / "out")
    text = (built / "out/book/waves.ipynb").read_text()
    assert "git+https://github.com/someone/book@abc123" in text
    assert "beside [tides](https://someone.github.io/book/tides.html)." in text
    assert "(https://arxiv.org/abs/2303.04145)" in text
    (built / "book/waves.ipynb").write_text(text.replace("someone", "another"))
    portable.check(built)


def test_without_an_address_nothing_is_published(built: Path, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="no address"):
        publish.publish(built, tmp_path / "out")


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
