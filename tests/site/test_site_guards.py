"""Each guard of the site can fail: a tiny book builds, and each fault in it turns the build red."""

import json
import re
import shutil
from pathlib import Path

import jsonschema
import pytest
from bs4 import BeautifulSoup
from fontTools.ttLib import TTFont

from tests.site import tiny_book as tiny
from tools import site
from tools.files import ToolError


def spoil(root: Path, page: str, old: str, new: str) -> None:
    """Replace a piece of a page by a faulty one."""
    path = root / "book" / (f"{page}.toml" if page == "map" else f"{page}.md")
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_a_sound_book_builds(built_book: Path) -> None:
    """The tiny book is green, so that what follows is red for its own reason."""
    built = built_book / "_build/html"
    html = (built / "chapter.html").read_text()
    assert 'class="katex"' in html
    assert html.count(f'alt="{tiny.ALT}"') == 2
    front = (built / "index.html").read_text()
    assert "One planned." in front
    assert front.count(f'alt="{tiny.ALT}"') == 2  # the card, light and dark
    assert all(text in front for text in ("Is it so?", "1. A chapter", "2 ✓", "· 2 min"))
    assert all(text in front for text in ("tile-data tile-written", "tile-model tile-planned"))
    assert front.count('href="#work-kou2023"') == 2
    assert "only-dark" in html
    table = (built / "figures/fig-a.csv").read_text().splitlines()
    assert table[:3] == ["# figure fig-a", "# chapter chapter", "# seed = 0"]
    assert table[3:] == ["# version v1", "# panel 1:", "panel,series,x,y,value"]
    assert "0.42" in html
    notebook = (built_book / "book/chapter.ipynb").read_text()
    assert 'in 5\N{NO-BREAK SPACE}s."' in notebook
    assert "> **Live lab: Drag a slider: a network retrains in your browser.** On the" in notebook
    assert 'id="claim-tiny.one"' in html
    assert 'href="claims.html#tiny.one"' in html
    ledger = (built / "claims.html").read_text()
    assert 'id="tiny.one"' in ledger
    assert all(text in ledger for text in ("above 0.7", "half of it: 0.5", "9, 20 runs"))
    claims = json.loads((built / "claims.json").read_text())
    schema = json.loads((built / claims["$schema"]).read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(claims, schema)
    urls = ["chapter.html#claim-tiny.one", "", "chapter.html#claim-tiny.two"]
    assert [c["url"] for c in claims["claims"]] == urls
    assert not list((built_book / "_build").glob("html.*"))


def test_a_stated_claim_stands_beside_its_theorem(built_book: Path) -> None:
    """Its statement is prose; one line below says what was found, and unfolds to all of it."""
    html = BeautifulSoup((built_book / "_build/html/chapter.html").read_text(), "html.parser")
    (box,) = html.select("details#claim-tiny\\.two")  # and not the cell's own box beside it
    stated = box.find_previous("div", class_="stated")
    assert "holds" in stated["class"]
    assert stated.get_text(strip=True).startswith("One half of")
    assert stated.select(".katex")
    line = " ".join(box.summary.get_text().split())
    assert line == "✓ Share that stays: 0.500 ± 0.010 · predicted ½ · not 1.00 (all of it)"
    rows = {dt.text: dt.find_next("dd").text for dt in box.select("dt")}
    assert rows["must be"] == "between 0.250 and 0.750"
    assert rows["does not tell"] == "half: x / 2 → x"
    theorem = html.select_one("#thm-a")
    assert theorem.select_one(".as-read").text == "as in the paper"


def test_the_ledger_says_what_would_refute_a_claim_and_what_it_does_not_tell(
    built_book: Path,
) -> None:
    """Bounds and laws say it; nobody writes it."""
    html = BeautifulSoup((built_book / "_build/html/claims.html").read_text(), "html.parser")
    row = html.find(id="tiny.two")
    told = " ".join(row.get_text(" ", strip=True).split())
    assert "Refuted by: Share that stays: a mean below 0.250 or above 0.750." in told
    assert "Told apart from: all of it: 1; nothing: 0. Tells from anything farther" in told
    assert "Does not tell from: half:" in told
    assert told.endswith(
        ". tiny.two ½ between 0.250 and 0.750 Share that stays: 0.500 ± 0.010 43.3, 3 runs"
    )
    claims = json.loads((built_book / "_build/html/claims.json").read_text())["claims"]
    found = next(claim for claim in claims if claim["id"] == "tiny.two")
    assert found["falsifier"] == "Share that stays: a mean below 0.250 or above 0.750."
    assert found["untold"] == ["half: x / 2 → x"]
    search = (built_book / "_build/html/searchindex.js").read_text()
    assert '"std:claim-row"' in search


def test_the_statistics_show_the_score_of_the_laws(tiny_book: Path, built_book: Path) -> None:
    """By chapter and in total; a chapter without laws has no score."""
    html = BeautifulSoup((built_book / "_build/html/statistics.html").read_text(), "html.parser")
    table = html.find("section", id="tests-of-the-laws").table
    rows = [[cell.get_text(strip=True) for cell in row.select("td")] for row in table.select("tr")]
    assert rows[1:] == [
        ["A chapter", "2", "10", "9", "0.900"],
        ["Whole book", "2", "10", "9", "0.900"],
    ]
    (tiny_book / "book/_generated/laws.json").unlink()
    with pytest.raises(ToolError, match=r"_generated/laws\.json is missing: run `make laws`"):
        site.build(tiny_book)


def test_code_folds_under_a_label_that_says_what_is_inside(built_book: Path) -> None:
    """Neighbours fold together up to what they show; stub and solution fold with what they say."""
    html = BeautifulSoup((built_book / "_build/html/chapter.html").read_text(), "html.parser")
    folds = [
        (fold.select("summary p")[0].text, len(fold.select("pre")), fold.parent.select("figure"))
        for fold in html.select("details.hide")
    ]
    assert [(words, blocks, len(figures)) for words, blocks, figures in folds] == [
        ("Show the parameters", 1, 0),
        ("Show the plot’s code", 2, 1),
        ("Show the check", 1, 0),
        ("Show the check", 1, 0),
        ("Show the exercise", 2, 0),
        ("Show the solution", 2, 0),
    ]


def test_icon_fonts_keep_what_is_used(built_book: Path) -> None:
    """Menu, search, download and colour mode are still drawn; two thousand others are gone."""
    fonts = built_book / "_build/html/_static/vendor/fontawesome/webfonts"
    kept = TTFont(fonts / "fa-solid-900.woff2").getBestCmap()
    assert {0xF0C9, 0xF002, 0xF019, 0xF042} <= kept.keys()
    assert (fonts / "fa-solid-900.woff2").stat().st_size < 20_000


def test_the_committed_notebooks_give_the_same_pages(tiny_book: Path, built_book: Path) -> None:
    """`make site` needs no run: it maps the committed notebook's outputs onto the source."""
    from_run = (built_book / "_build/html/chapter.html").read_text()
    (tiny_book / "_build" / "executed" / "chapter.ipynb").unlink()
    assert (site.build(tiny_book, committed=True) / "chapter.html").read_text() == from_run


def test_the_statistics_show_the_mutation_score(tiny_book: Path, built_book: Path) -> None:
    html = (built_book / "_build/html/statistics.html").read_text()
    assert all(text in html for text in ("mutmut 3.8.1", "<p>0.909</p>", "<p>90</p>"))
    (tiny_book / "book/_generated/mutation.json").unlink()
    with pytest.raises(
        ToolError, match=r"_generated/mutation\.json is missing: run `make mutation`"
    ):
        site.build(tiny_book)


WARNED = {
    "a missing file": ("index", "description.", "[](nowhere.md)", "nowhere"),
    "a missing section": ("index", "description.", "[x](chapter.md#nosuch)", "nosuch"),
    "an unknown label": ("index", "description.", "{ref}`nosuchlabel`", "nosuchlabel"),
    "an unknown directive": ("index", "# A tiny book", "# T\n\n```{nosuch}\n```", "nosuch"),
    "an unknown reference": ("index", "description.", "{cite:p}`nobody1900`", "nobody1900"),
    "a claim that no tool can see": (
        "index",
        "description.",
        "\n\n:::{claim} tiny.three\n:kind: own\n\nSo.\n:::\n\nA",
        r"book/index\.md:\d+: ERROR: claim tiny\.three: a claim stands in a chapter",
    ),
    "an undefined macro": ("index", "description.", "$\\nosuchmacro$", "nosuchmacro"),
    "maths that numbers itself": (
        "index",
        "description.",
        "\n\n$$\n\\begin{align}a&=b\\end{align}\n$$",
        "numbers itself",
    ),
    "a picture without alt text": (
        "chapter",
        tiny.ALT,
        "Figure",
        r"book/chapter\.md:\d+: WARNING: figure fig-a: alt text 'Figure': say what is seen",
    ),
    "a caption without words": (
        "chapter",
        "A caption with $a$ and words enough to say what is meant.",
        "Small.",
        r"book/chapter\.md:\d+: WARNING: figure fig-a: caption 'Small.'",
    ),
    "a chapter without a timing": ("chapter", "{cpu}`chapter`", "{cpu}`other`", "make timings"),
    "a box folded by a class": (
        "index",
        "description.",
        "\n\n```{note}\n:class: dropdown\nx\n```",
        r"\{dropdown\}",
    ),
}
FATAL = {
    "an unknown count": ("index", "{count}`Planned`", "{count}`sheep`", "sheep"),
    "a card without a figure": ("map", 'figure = "fig-a"', 'figure = "fig-b"', "fig-b"),
    "a chapter that the map lacks": (
        "map",
        'name = "chapter"',
        'name = "nobody"',
        "nobody|chapter",
    ),
    "a lever that is none": ("map", 'lever = "data"', 'lever = "luck"', "'luck'; allowed"),
}


def test_every_fault_is_told_and_keeps_the_old_site(built_book: Path, tmp_path: Path) -> None:
    """Any warning is fatal, so that all can be told by one build; the last good site stays."""
    root = tmp_path / "book"
    shutil.copytree(built_book, root, symlinks=True)
    before = (root / "_build/html/index.html").read_text()
    for page, old, new, _ in WARNED.values():
        spoil(root, page, old, new + (" description." if old == "description." else ""))
    with pytest.raises(ToolError) as caught:
        site.build(root)
    told = [line for line in str(caught.value).splitlines() if re.search("WARNING|ERROR", line)]
    for fault, (_, _, _, named) in WARNED.items():
        assert any(re.search(named, line) for line in told), (fault, told)
    assert (root / "_build/html/index.html").read_text() == before


@pytest.mark.parametrize("fault", FATAL)
def test_a_fault_ends_the_build(tiny_book: Path, fault: str) -> None:
    """The error names the fault, and no site is left that could pass for a new one."""
    page, old, new, named = FATAL[fault]
    spoil(tiny_book, page, old, new)
    with pytest.raises(ToolError, match=named):
        site.build(tiny_book)
    assert not (tiny_book / "_build" / "html").exists()


def test_changed_code_is_a_stale_chapter(tiny_book: Path) -> None:
    """A cell whose code differs from the run has no outputs: the line is named."""
    spoil(tiny_book, "chapter", "show(draw)", "show(another)")
    with pytest.raises(ToolError, match=r"book/chapter.md:\d+: code cell 3 has no stored"):
        site.build(tiny_book, committed=True)
    with pytest.raises(ToolError, match=r"book/chapter.md was not executed in its present state"):
        site.build(tiny_book)


def test_a_cache_miss_executes_nothing(tiny_book: Path) -> None:
    """Were the cache empty, myst-nb would execute the chapter; the build stops instead."""
    (tiny_book / "_build" / "claims.json").write_text("[]")
    with pytest.raises(ToolError, match="no stored outputs"):
        site.run_sphinx(tiny_book, tiny_book / "_build" / ".site")


def test_no_button_while_the_address_is_unknown(built_book: Path) -> None:
    """No page names Colab or GitHub in its buttons."""
    for page in (built_book / "_build/html").glob("*.html"):
        assert "colab" not in page.read_text().lower(), page.name
        assert "source-repository-button" not in page.read_text(), page.name


def test_the_colab_button_opens_the_published_notebook(
    tiny_book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the address is known, chapters link to Colab and every page to the repository."""
    monkeypatch.setenv("GITHUB_REPOSITORY", "someone/somebook")
    built = site.build(tiny_book)
    colab = "colab.research.google.com/github/someone/somebook/blob/published/book/chapter.ipynb"
    assert colab in (built / "chapter.html").read_text()
    assert "colab" not in (built / "index.html").read_text()
    assert "https://github.com/someone/somebook" in (built / "index.html").read_text()
