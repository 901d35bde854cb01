"""What a reader meets: every page in a real browser, from a server and from disk, no network."""

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.site.site_pages import CHAPTERS, PAGES

Visit = Callable[..., tuple[Page, list[str]]]
Address = Callable[[str, str], str]
WAYS = ("http", "file")
HEAVIEST = 600_000  # bytes, compressed, of all that a first visit to a chapter loads
FIRST_PAINT = 120_000  # of them, pages and style sheets
PACKED = (".woff2", ".png", ".jpg")
REFLOW = [
    "aria-hidden-focus",
    "button-name",
    "link-name",
    "scrollable-region-focusable",
    "target-size",
]
COLOUR = ["color-contrast", "link-in-text-block"]
HIDDEN_OVERFLOW = """() => [...document.querySelectorAll("body *")].filter((e) => {
  const box = e.getBoundingClientRect();
  return box.width && box.right > innerWidth + 1 && getComputedStyle(e).visibility !== "hidden";
}).filter((e) => {
  for (let up = e.parentElement; up; up = up.parentElement)
    if (["auto", "scroll", "hidden", "clip"].includes(getComputedStyle(up).overflowX)) return false;
  return true;
}).map((e) => e.outerHTML.slice(0, 120))"""

DEPTH = """() => {
  const article = document.querySelector("article"), shown = (e) => e.checkVisibility();
  const height = (e) => e.getBoundingClientRect().height;
  const code = [...article.querySelectorAll(".cell_input")].filter(shown).map(height);
  const first = article.querySelector(".cell_output figure, feature-lab");
  return {
    code: code.reduce((a, b) => a + b, 0) / height(article),
    first: first.getBoundingClientRect().top + scrollY,
    labels: [...article.querySelectorAll("details.hide summary p")].filter(shown)
      .map((e) => e.textContent),
  };
}"""
WIDE_CODE = """() => [...document.querySelectorAll("article .cell_input pre")]
  .filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.textContent.slice(0, 80))"""
MOST_CODE, SCREEN = 0.25, 900

PRINTED = """(box) => [...new Set([box, ...box.querySelectorAll("div, pre")].map((e) => {
  const style = getComputedStyle(e);
  return [style.opacity, style.display, style.overflowX, style.breakInside].join();
}))].map((words) => words.split(","))"""


def grave(page: Page, rules: list[str] | None = None) -> list[list[object]]:
    """The faults of the two upper grades that axe's rules, all or these, find now."""
    options = {"resultTypes": ["violations"]} | ({"runOnly": rules} if rules else {})
    found = page.evaluate(f"axe.run({json.dumps(options)}).then((r) => r.violations)")
    bad = [v for v in found if v["impact"] in ("serious", "critical")]
    return [[v["id"], [n["html"][:200] for n in v["nodes"][:3]]] for v in bad]


def weigh(bodies: dict[str, bytes]) -> None:
    """What a first visit loads, and of it what the first paint waits for, is small."""
    sizes = {
        url: len(body if url.split("?")[0].endswith(PACKED) else gzip.compress(body, 6))
        for url, body in bodies.items()
    }
    report = {u.rsplit("/", 1)[-1]: s for u, s in sorted(sizes.items(), key=lambda x: -x[1])}
    assert 0 < sum(sizes.values()) < HEAVIEST, report
    first = [size for url, size in sizes.items() if url.split("?")[0].endswith((".css", ".html"))]
    assert 0 < sum(first) < FIRST_PAINT, report


@pytest.mark.parametrize(
    ("way", "name"),
    [*(("http", name) for name in PAGES), *(("file", name) for name in PAGES[::5])],
)
def test_a_page_is_quiet_and_light(visit: Visit, address: Address, name: str, way: str) -> None:
    """No request beyond its own host, no error in the console, formulas drawn without a script.

    And little to load before the reader scrolls, compressed as a host sends it.
    """
    (page, faults), bodies = visit("about:blank"), dict[str, bytes]()
    page.on("response", lambda r: bodies.update({r.url: r.body()}) if r.ok else None)
    page.goto(address(way, name), wait_until="networkidle")
    if way == "http" and name in ("index", *CHAPTERS):
        weigh(bodies)
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    page.wait_for_load_state("networkidle")
    assert not faults
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    if page.locator(".katex").count():
        assert page.evaluate("document.fonts.check('16px KaTeX_Main')")


TIGHT = """() => [...document.querySelectorAll(".stop + [class^=after-]")].filter((space) => {
  const glyphs = document.createRange();
  glyphs.selectNodeContents(space.previousSibling);
  const room = space.getBoundingClientRect().width;
  return room && room < glyphs.getBoundingClientRect().width + 1;
}).map((space) => space.parentElement.innerText.slice(0, 80))"""


def test_a_stop_after_a_formula_keeps_its_space(visit: Visit, address: Address) -> None:
    """Its box takes no room: the space after it, where the line goes on, is as much wider."""
    page, _ = visit(address("file", "contrastive"))
    assert page.locator(".stop + .after-1").count() > 20
    assert page.locator(".stop + .after-2").count()
    assert not page.evaluate(TIGHT)


# Words that touch the formula before them, or its stop, where the text has a space: less than two
# pixels on one line. Formulas are boxes, and a stop's box takes no room.
TOUCH = """() => {
  const skip = (node) => node.parentElement.closest(".katex, script, style");
  const all = document.createTreeWalker(document.body, NodeFilter.SHOW_ALL, (node) =>
    skip(node) ? NodeFilter.FILTER_REJECT : node.nodeType === 3 || node.className === "katex"
      ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_SKIP);
  const range = document.createRange();  // one: each that lives slows every change of the page
  const glyphs = (text, from, to) => {
    range.setStart(text, from);
    range.setEnd(text, to);
    return range.getClientRects();
  };
  const found = [];
  let end = null, spaced = false;
  for (let node; (node = all.nextNode());) {
    const word = node.nodeType === 3, first = word ? node.data.search(/\\S/) : 0;
    spaced ||= first !== 0;
    if (first < 0) continue;
    const stop = word && node.parentElement.className === "stop";
    const to = stop ? node.length : first + 1;
    const boxes = [...(word ? glyphs(node, first, to) : node.getClientRects())], [box] = boxes;
    const beside = end && box && box.width && box.left > end.left
      && box.top < end.bottom && box.bottom > end.top;
    if (beside && spaced && box.left < end.right + 2)
      found.push(node.parentElement.closest("p, li, td, dd, dt, summary").textContent.slice(0, 80));
    end = stop || !word ? boxes.pop() : null;
    spaced = false;
  }
  return found;
}"""


REACHED = """[...document.querySelectorAll(".scrolls, .pst-scrollable-table-container, pre")]
    .every((box) => box.scrollWidth <= box.clientWidth + 1 || box.tabIndex === 0)"""


PARTS = """() => {
  for (const maths of document.querySelectorAll(".katex")) maths.textContent = "x";
  const seen = new Set();
  for (const token of document.querySelectorAll(".highlight pre span")) {
    if (seen.has(token.className)) token.replaceWith(token.textContent);
    seen.add(token.className);
  }
}"""


@pytest.mark.parametrize("name", PAGES)
def test_all_can_read_a_page_and_a_phone_never_scrolls_sideways(
    visit: Visit, address: Address, npm_packages: Path, name: str
) -> None:
    """All is unfolded. What is wider than 360 pixels scrolls in a box that the keyboard reaches.

    No accessibility fault of the two upper grades: all rules once, then those that can differ on a
    phone and in the dark. Axe sees one token of code of each colour and no parts of formulas, which
    have the colour of the outermost: so it is three times as fast.
    """
    page, _ = visit(address("file", name), width=360)
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    page.add_style_tag(content="* { content-visibility: visible !important; }")  # all is seen
    page.evaluate((npm_packages / "axe-core" / "axe.min.js").read_text(encoding="utf-8"))
    page.evaluate("document.fonts.ready.then(() => null)")
    page.wait_for_load_state("networkidle")

    def at(width: int) -> None:
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(REACHED)

    at(360)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert not page.evaluate(HIDDEN_OVERFLOW)
    touching = page.evaluate(TOUCH)
    at(1280)
    touching += page.evaluate(TOUCH)
    assert not touching
    page.evaluate(PARTS)
    at(1290)  # another width: the theme gives boxes that scroll now their place in the tab order
    found = {"desk": grave(page)}
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    found["dark"] = grave(page, COLOUR)
    at(360)
    found["phone"] = grave(page, REFLOW)
    assert not any(found.values()), found


@pytest.mark.parametrize(
    ("rules", "html"),
    [
        (None, "<img src='x.png'>"),
        (REFLOW, "<pre style='overflow:auto;height:9px;width:90px'>long\nlong\nlong</pre>"),
        (REFLOW, "<button style='display:block'></button>"),
        (COLOUR, "<p style='color:#999;background:#888'>pale</p>"),
        (COLOUR, "<p>See <a href='#x' style='color:#222;text-decoration:none'>this</a> now.</p>"),
    ],
)  # fmt: skip
def test_each_set_of_rules_can_find_a_fault(
    browser: Browser, npm_packages: Path, rules: list[str] | None, html: str
) -> None:
    page = browser.new_page()
    page.set_content(f"<main style='color:#000'>{html}</main>")
    page.evaluate((npm_packages / "axe-core" / "axe.min.js").read_text(encoding="utf-8"))
    assert grave(page, rules)
    page.close()


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_opens_with_its_theory(visit: Visit, address: Address, name: str) -> None:
    """Little code, a figure or a lab soon, a label at each fold, no line wider than its box."""
    page, faults = visit(address("file", name), width=1440)
    seen = page.evaluate(DEPTH)
    assert seen["code"] < MOST_CODE
    assert seen["first"] < 1.5 * SCREEN
    words = (
        "parameters|set-up|plot’s code|check|experiment( and its (plot|check))?|exercise|solution"
        "|numbers of the text"
    )
    assert not [label for label in seen["labels"] if not re.fullmatch(f"Show the ({words})", label)]
    page.locator(".depth button[value=all]").click()
    assert not page.locator("article details:not([open]):not(feature-lab *)").count()
    for width in (1440, 1280):
        page.set_viewport_size({"width": width, "height": SCREEN})
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert not page.evaluate(WIDE_CODE)
    page.locator(".depth button[value=theory]").click()
    assert page.evaluate(DEPTH)["labels"] == seen["labels"]
    assert not faults


@pytest.mark.parametrize("way", WAYS)
def test_the_depth_is_kept_and_travels_in_the_link(
    visit: Visit, address: Address, way: str
) -> None:
    """Across pages of one site, and to whoever opens the link; a claim's link opens its box."""
    page, faults = visit(address(way, CHAPTERS[0]))
    claim = page.locator("details.claim").nth(1)
    name = claim.get_attribute("id")
    page.goto(f"{address(way, CHAPTERS[0])}#{name}")
    page.wait_for_function(f"document.getElementById('{name}').open")
    assert page.locator("details.claim[open]").count() == 1
    everything = page.locator(".depth button[value=all]")
    everything.focus()
    page.keyboard.press("Enter")
    assert everything.get_attribute("aria-pressed") == "true"
    shared = page.url
    assert shared.endswith(f".html?depth=all#{name}")
    page.goto(address(way, CHAPTERS[1]))
    assert page.locator("details.hide[open]").count()
    other, more = visit(shared)
    assert other.locator("details.hide[open]").count()
    assert 0 <= other.locator(f"[id='{name}']").evaluate("e => e.getBoundingClientRect().top") < 800
    assert not faults + more


@pytest.mark.parametrize("way", WAYS)
def test_search_finds_a_word(visit: Visit, address: Address, way: str) -> None:
    """The search page lists pages that hold the word, and their links work."""
    page, faults = visit(address(way, "search") + "?q=kou2023.benign")
    page.locator("#search-results a[href^='claims.html#kou2023.benign']").wait_for(timeout=10_000)
    page.goto(address(way, "index"))
    page.locator(".search-button__button").first.click()
    page.locator("dialog#pst-search-dialog input[name=q]").fill("decomposition")
    page.keyboard.press("Enter")
    hit = page.locator("#search-results ul.search li a").first
    hit.wait_for(timeout=10_000)
    hit.click()
    page.wait_for_load_state("load")
    assert "decomposition" in page.locator("main").inner_text().lower()
    assert not faults


@pytest.mark.parametrize("way", WAYS)
def test_the_ledger_filters(visit: Visit, address: Address, way: str) -> None:
    """Chips and words hide rows, the address keeps them, a link to a hidden claim shows it."""
    url = address(way, "claims")
    page, faults = visit(f"{url}?verdict=fails")
    rows = page.locator("table.ledger tbody tr")
    shown = page.locator("table.ledger tbody tr:not([hidden])")
    status = page.locator(".filters [role=status]")
    claims = page.evaluate("document.querySelectorAll('.of-verdict-fails').length")
    assert status.inner_text() == f"{claims} of {rows.count()} claims"
    assert shown.count() == claims
    page.locator(".filters button[data-value=holds]").click()
    page.locator(".filters button[data-value=fails]").click()
    page.locator(".filters input").fill("label NOISE")
    assert 0 < shown.count() < rows.count()
    assert all("holds" in text for text in shown.all_inner_texts())
    assert page.evaluate("location.search") == "?verdict=holds&q=label+NOISE"
    hidden = page.locator("table.ledger tr[hidden]").first.get_attribute("id")
    page.evaluate(f"location.hash = '{hidden}'")
    page.wait_for_function("!document.querySelector('table.ledger tr[hidden]')")
    assert not faults


@pytest.mark.parametrize("name", CHAPTERS[::9])
def test_the_dark_page_shows_the_dark_figures(visit: Visit, address: Address, name: str) -> None:
    """The button goes light, dark, automatic; a figure follows."""
    page, _ = visit(address("file", name))
    light = page.locator(".twins img.only-light").first
    dark = page.locator(".twins img.only-dark").first
    assert light.is_visible()
    assert not dark.is_visible()
    for _ in range(3):
        page.locator(".theme-switch-button").first.click()
        if page.evaluate("document.documentElement.dataset.theme") == "dark":
            break
    assert dark.is_visible()
    assert not light.is_visible()
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_the_system_may_ask_for_dark(visit: Visit, address: Address) -> None:
    """A reader whose system is dark gets the dark page at once."""
    page, faults = visit(address("file", "index"), scheme="dark")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert not faults


def test_the_keyboard_reaches_the_text(visit: Visit, address: Address) -> None:
    """The first stop skips the navigation; where the focus is can be seen."""
    page, _ = visit(address("file", "index"))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#main-content"
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"


@pytest.mark.parametrize("name", CHAPTERS[:1])
def test_a_page_reads_without_scripts(browser: Browser, site: Path, name: str) -> None:
    """Formulas, figures and claims are there with scripts switched off."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((site / f"{name}.html").as_uri())
    assert page.locator(".katex").first.is_visible()
    assert page.locator(".twins img.only-light").first.is_visible()
    assert not page.locator(".twins img.only-dark").first.is_visible()
    claim = page.locator("details.claim").first
    assert claim.locator("summary").is_visible()
    assert not claim.locator("dl").is_visible()
    context.close()


@pytest.mark.parametrize("depth", ["theory", "all"])
def test_paper_is_light_and_has_the_chosen_depth(
    visit: Visit, address: Address, depth: str
) -> None:
    """A dark page prints light, its code only where all is chosen; then all is as before."""
    page, _ = visit(f"{address('file', CHAPTERS[0])}?depth={depth}", scheme="dark")
    unfolded = "document.querySelectorAll('details[open]:not(feature-lab *)').length"
    state = f"[document.documentElement.dataset.theme, {unfolded}]"
    folded = page.evaluate(state)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    shut = ", .hide, .claim" if depth == "theory" else ""
    opened = page.locator(f"details:not(feature-lab *{shut})").count()
    assert page.evaluate(state) == ["light", opened]
    page.emulate_media(media="print")
    assert page.locator("article h1 .section-number").is_visible()
    assert not page.locator("#jb-print-docs-body").is_visible()
    code = page.locator("details.hide .cell_input")
    assert code.count()
    for box in code.all():  # neither faded out nor moved whole, which leaves an empty frame
        assert box.is_visible() == (depth == "all")
        if depth == "all":
            assert box.evaluate(PRINTED) == [["1", "block", "visible", "auto"]]
    breaks = "(boxes) => [...new Set(boxes.map((e) => getComputedStyle(e).breakInside))]"
    assert page.locator("details.claim").evaluate_all(breaks) == ["avoid"]
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(state) == folded


def test_a_figure_grows_and_a_phone_sees_its_narrow_form(visit: Visit, address: Address) -> None:
    """By click and by Enter; Escape closes it and gives the focus back."""
    page, faults = visit(address("file", CHAPTERS[-1]), width=390)
    link = page.locator("a.enlarge.only-light").first
    link.scroll_into_view_if_needed()
    page.wait_for_function("document.querySelector('.twins img').currentSrc")
    assert link.locator("img").evaluate("(i) => i.currentSrc").endswith(".light-narrow.png")
    told = """() => ['wide', 'narrow'].map((form) => getComputedStyle(
        document.querySelector(`figcaption .${form}`)).display)"""
    assert page.evaluate(told) == ["none", "inline"]  # panels below one another: Top, Bottom
    page.set_viewport_size({"width": 1280, "height": 800})
    assert page.evaluate(told) == ["inline", "none"]  # side by side: Left, Right
    box = page.locator("dialog.enlarged")
    for start in (link.click, lambda: link.press("Enter")):
        start()
        image = box.locator("img")
        image.wait_for()
        page.wait_for_function("document.querySelector('dialog.enlarged img').naturalWidth")
        shown = image.bounding_box()
        assert shown
        assert shown["width"] > 900 or shown["height"] > 700
        assert not image.evaluate("(i) => i.currentSrc").endswith(".light-narrow.png")
        page.keyboard.press("Escape")
        assert not box.is_visible()
        assert link.evaluate("(e) => e === document.activeElement")
    assert not faults


def test_a_margin_note_without_headings_is_quiet(visit: Visit, built_book: Path) -> None:
    """The theme's script expects a list of contents; a page without headings has none."""
    page, faults = visit((built_book / "_build/html/chapter.html").as_uri())
    assert page.locator("aside.margin").is_visible()
    assert not faults
