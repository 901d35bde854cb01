"""What can be read off the files of the site, page by page."""

import functools
import importlib
import json
import re
import urllib.parse
from pathlib import Path

import imagesize
import jsonschema
import pytest
from bs4 import BeautifulSoup, Tag

from tests.site.site_pages import CHAPTERS, PAGES, ROOT
from tools import chapters

SHORTEST_ALT = 15
RAW = {"script", "style", "pre", "code", "annotation"}
LEFTOVERS = {
    "a dollar sign": r"\$",
    "a role": r"\{[a-z][a-z:]*\}`",
    "a directive": r"(?:```|:::)\{",
    "a LaTeX command": r"\\[a-zA-Z]{2,}",
}


@functools.cache
def soup(page: Path) -> BeautifulSoup:
    """A parsed page."""
    return BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")


@functools.cache
def anchors(page: Path) -> dict[str, Tag]:
    """What has an id on a page."""
    return {value(tag, "id"): tag for tag in soup(page).find_all(id=True)}


def one(html: BeautifulSoup | Tag, selector: str) -> Tag:
    """The first tag that a selector finds; it must find one."""
    tag = html.select_one(selector)
    assert tag is not None, selector
    return tag


def value(tag: Tag, name: str) -> str:
    """An attribute as text, empty where there is none."""
    return str(tag.get(name, ""))


@pytest.fixture(params=PAGES)
def page(request: pytest.FixtureRequest, site: Path) -> Path:
    """Each page in turn."""
    return site / f"{request.param}.html"


def test_every_page_of_the_toc_is_there_and_no_other(site: Path) -> None:
    """Nothing left over, nothing missing."""
    assert sorted(path.stem for path in site.glob("*.html")) == sorted(PAGES)


def test_head(page: Path) -> None:
    """Language, title, description, and a link past the navigation."""
    html = soup(page)
    assert value(one(html, "html"), "lang") == "en"
    assert len(one(html, "title").text.strip()) > 5
    assert one(html, "main#main-content")
    assert len(html.select("link[rel=stylesheet]")) == 1
    assert one(html, "a[href='#main-content']")
    if page.stem != "search":
        assert 40 <= len(value(one(html, "meta[name=description]"), "content")) <= 200
        assert len(html.find_all("h1")) == 2  # one is for print alone
        at_once = [s["src"] for s in html.select("script[src]:not([defer])")]
        assert [place for place in at_once if "documentation_options" not in str(place)] == []


def test_ids_are_unique(page: Path) -> None:
    """An anchor leads to one place."""
    ids = [tag["id"] for tag in soup(page).find_all(id=True)]
    assert not {name for name in ids if ids.count(name) > 1}


def test_nothing_is_loaded_from_elsewhere(page: Path) -> None:
    """Scripts, styles and pictures come from the site itself, and they exist."""
    for tag in soup(page).find_all(["script", "link", "img", "iframe", "source"]):
        place = value(tag, "src") or value(tag, "href")
        if place and tag.get("rel") != ["search"]:
            assert not re.match(r"(https?:)?//", place), tag
            assert (page.parent / urllib.parse.unquote(re.split(r"[?#]", place)[0])).exists(), tag


def test_internal_links_lead_somewhere(page: Path) -> None:
    """Every file and every anchor that a page points to is there."""
    broken = []
    for tag in soup(page).find_all("a", href=True):
        target = urllib.parse.urlsplit(value(tag, "href"))
        if target.scheme or target.netloc:
            continue
        file = page.parent / urllib.parse.unquote(target.path) if target.path else page
        anchor = urllib.parse.unquote(target.fragment)
        if not file.exists() or (anchor and file.suffix == ".html" and anchor not in anchors(file)):
            broken.append(tag["href"])
    assert not broken


def test_no_markup_is_left_in_the_text(page: Path) -> None:
    """What a reader sees holds no dollar signs, roles or LaTeX that were not rendered."""
    words = one(soup(page), "body").strings
    text = " ".join(word for word in words if not RAW & {tag.name for tag in word.parents})
    for what, pattern in LEFTOVERS.items():
        found = re.search(rf".{{0,40}}{pattern}.{{0,40}}", text)
        assert not found, f"{what} in: {found[0]}"


def test_pictures_speak_and_have_a_size(page: Path) -> None:
    """Alt text says what is seen; the size keeps the page from jumping while it loads."""
    for image in soup(page).find_all("img"):
        assert len(value(image, "alt")) >= SHORTEST_ALT, image
        assert value(image, "loading") == "lazy" or value(image, "fetchpriority") == "high", image
        if not value(image, "src").endswith(".svg"):
            assert int(value(image, "width")) > 0, image


@pytest.mark.parametrize("name", CHAPTERS)
def test_figures_have_a_dark_twin(site: Path, name: str) -> None:
    """Each figure of a chapter comes as a pair with the same words."""
    pairs = soup(site / f"{name}.html").select(".cell_output .twins")
    assert pairs
    assert len(pairs) == len(soup(site / f"{name}.html").select(".cell_output img")) / 2
    for pair in pairs:
        light, dark = one(pair, "img.only-light"), one(pair, "img.only-dark")
        assert light["alt"] == dark["alt"]
        assert light["src"] != dark["src"]


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_figure_has_forms_for_a_phone_and_its_numbers(site: Path, name: str) -> None:
    """Twice as sharp as it is shown, narrow on a phone, enlarged by a link, with its table."""
    seed = re.findall(r"(?m)^seed = \d+", (ROOT / f"book/{name}.md").read_text(encoding="utf-8"))[0]
    for figure in soup(site / f"{name}.html").select("figure:has(.twins)"):
        for image in figure.select("img"):
            source = one(image.find_parent("picture") or image, "source")
            assert (site / value(source, "srcset")).exists()
            assert int(value(source, "width")) <= 400
            sharp = imagesize.get(site / value(image, "src"))
            assert abs(sharp[0] - 2 * int(value(image, "width"))) <= 1
            assert one(figure, f"a.enlarge[href='{image['src']}']")
        links = [value(tag, "href") for tag in figure.select(".take a[download]")]
        assert links[1] == f"figures/{figure['id']}.csv"
        table = (site / links[1]).read_text(encoding="utf-8")
        assert f"# figure {figure['id']}\n# chapter {name}\n# {seed}" in table
        assert re.search(r"(?m)^# version (v[\d.]+|[0-9a-f]{40})$", table)
        assert "\npanel,series,x,y,value\n1," in table


@pytest.mark.parametrize("name", CHAPTERS)
def test_downloads(site: Path, name: str) -> None:
    """The page offers its source and its notebook, the notebook with the outputs."""
    links = [a["href"] for a in soup(site / f"{name}.html").select(".dropdown-download-buttons a")]
    assert f"_sources/{name}.ipynb" in links
    assert f"_sources/{name}.md" in links
    download = site / "_sources" / f"{name}.ipynb"
    assert download.read_bytes() == (ROOT / "book" / f"{name}.ipynb").read_bytes()
    cells = json.loads(download.read_text(encoding="utf-8"))["cells"]
    assert any(cell.get("outputs") for cell in cells)


def test_the_ledger_links_to_every_claim_that_ran(site: Path) -> None:
    """Each evaluated claim is a row whose link leads to its box in the chapter."""
    claims = json.loads((ROOT / "_build" / "claims.json").read_text(encoding="utf-8"))
    ledger = soup(site / "claims.html")
    links = {a["href"] for a in ledger.select("table.ledger a")}
    named = {code.text for code in ledger.select("code")}
    for claim in claims:
        assert claim["id"] in named
        if claim["verdict"] != "planned":
            assert f"{claim['chapter']}.html#claim-{claim['id']}" in links
            assert f"claim-{claim['id']}" in anchors(site / f"{claim['chapter']}.html")


def test_the_ledger_as_data_has_the_form_that_it_names(site: Path) -> None:
    table = json.loads((site / "claims.json").read_text(encoding="utf-8"))
    jsonschema.validate(table, json.loads((site / table["$schema"]).read_text(encoding="utf-8")))
    ledger = soup(site / "claims.html")
    rows = {row["id"] for row in ledger.select("table.ledger tr[id]")}
    assert rows == {claim["id"] for claim in table["claims"]}
    for claim in table["claims"]:
        if claim["url"]:
            box = anchors(site / f"{claim['chapter']}.html")[f"claim-{claim['id']}"]
            assert one(box, "a")["href"] == f"claims.html#{claim['id']}"
            assert not box.select("[style]")


def test_citations_are_told_apart(site: Path) -> None:
    """Author and year, a letter where two works would read alike; no two labels are equal."""
    labels = [tag.text for tag in soup(site / "bibliography.html").select(".citation > .label")]
    assert len(labels) == len(set(labels))
    known = {label.strip("[]") for label in labels}
    assert any("2023b" in label for label in labels)
    assert "2023b" in one(soup(site / "map.html"), "article").text
    for path in (ROOT / "book/claims.toml", *(ROOT / "book" / f"{name}.md" for name in CHAPTERS)):
        typed = re.findall(r"([A-Z]\w+ et al\.) (\d{4}[a-z]?)", path.read_text(encoding="utf-8"))
        assert {f"{who}, {year}" for who, year in typed} <= known, path.name


def test_the_front_page_has_a_card_for_each_chapter(site: Path) -> None:
    """Its title, its question, its claims and its minutes, none of them typed on the page."""
    claims = json.loads((ROOT / "_build" / "claims.json").read_text(encoding="utf-8"))
    cards = soup(site / "index.html").select(".question-card")
    assert [one(card, ".title a")["href"] for card in cards] == [f"{n}.html" for n in CHAPTERS]
    for name, card in zip(CHAPTERS, cards, strict=True):
        holds = sum(c["chapter"] == name and c["verdict"] == "holds" for c in claims)
        assert re.search(rf"\b{holds} ✓.*· \d+ min first read", one(card, ".facts").text)


UNREAD = (
    "script, style, pre, .katex, .cell, .hide, .claim, feature-lab, .headerlink, .section-number, "
    ".eqno"
)


@pytest.mark.parametrize("name", CHAPTERS)
def test_the_minutes_of_a_chapter_count_its_words(
    site: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the source, which a card adds up, are those of the page."""
    monkeypatch.syspath_prepend(str(ROOT / "book/_ext"))
    counted = importlib.import_module("field").read(chapters.live(ROOT / f"book/{name}.md"))
    article = one(soup(site / f"{name}.html"), "article")
    unread = {id(part) for part in article.select(UNREAD)}
    read = [text for text in article.strings if unread.isdisjoint(map(id, text.parents))]
    shown = re.findall(r"\b[A-Za-z]{2,}", " ".join(read))
    assert 0.95 * len(shown) < counted["word"] < 1.05 * len(shown)


def test_every_field_of_the_map_is_a_link(site: Path) -> None:
    """A row for each chapter, written or planned; a field that is not empty leads somewhere."""
    claims = json.loads((ROOT / "_build" / "claims.json").read_text(encoding="utf-8"))
    rows = soup(site / "map.html").select("table.field tbody tr:not(.part)")
    assert len(rows) == len({claim["chapter"] for claim in claims})
    for row in rows:
        fields = row.select("td")
        assert len(fields) == 5
        assert any(field.select("a") for field in fields[1:])
        assert all(field.select("a") or not field.text.strip() for field in fields[1:])


def test_a_chapter_stands_below_what_it_needs(site: Path) -> None:
    """Every chapter once, and those that it asks for above it or named beside it."""
    tree = one(soup(site / "map.html"), "#what-needs-what")
    items = {one(item, "a")["href"]: item for item in tree.select("li")}
    assert sorted(items) == sorted(f"{name}.html" for name in CHAPTERS)
    assert len(tree.select("li")) == len(CHAPTERS)
    for name in CHAPTERS:
        item, page = items[f"{name}.html"], soup(site / f"{name}.html")
        above = [one(outer, "a")["href"] for outer in item.find_parents("li")]
        beside = [link["href"] for link in one(item, "p").select("a")]
        asked = next(p for p in page.select("article p") if p.text.startswith("You need"))
        links = {link["href"] for link in asked.select("a.reference.internal")}
        assert {link for link in links if link in items} <= {*above, *beside}


def test_nothing_heavy_lies_about(site: Path) -> None:
    """No source maps, no script of icons, no MathJax, no page above two and a half megabytes."""
    for path in site.rglob("*"):
        assert path.suffix != ".map", path
        assert not re.search(r"fontawesome\.js|mathjax|mermaid|thebe", path.name, re.I), path
        assert path.suffix == ".ipynb" or path.is_dir() or path.stat().st_size < 2_500_000, path
