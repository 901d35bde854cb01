"""Labs on the pages of the book: at the question, and alive on the front page."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from tests.site.site_pages import CHAPTERS

Visit = Callable[..., tuple[Page, list[str]]]
Address = Callable[[str, str], str]
READY = "document.querySelector('feature-lab').run?.done"


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_asks_before_it_shows(visit: Visit, address: Address, name: str) -> None:
    """Its question ends within the first screen and a half, and one click shows the lab."""
    page, faults = visit(address("file", name))
    if not page.locator("feature-lab").count():
        pytest.skip("no lab")
    lab = page.locator("feature-lab")
    assert lab.count() == 1
    lab.scroll_into_view_if_needed()
    page.wait_for_function(READY)
    bottom = lab.evaluate("l => l.$('[name=show]').getBoundingClientRect().bottom + scrollY")
    assert bottom < 1.6 * 800
    assert not lab.locator(".plot:not([hidden]), .map:not([hidden])").count()
    assert not page.locator("#pst-back-to-top").is_visible()
    why = lab.locator("h2 a").get_attribute("href")
    assert why.startswith("#")
    assert page.locator(f"[id='{why[1:]}']").count() == 1
    lab.get_by_role("button").first.click()
    assert lab.locator(".plot").first.is_visible()
    assert lab.locator(".verdict").inner_text().startswith(("You were right.", "No: "))
    assert not faults


@pytest.mark.parametrize("name", CHAPTERS)
def test_each_link_sets_the_lab_as_it_says(visit: Visit, address: Address, name: str) -> None:
    page, faults = visit(address("file", name))
    assert page.locator("a.set-lab").count()
    page.locator("feature-lab").scroll_into_view_if_needed()
    page.wait_for_function(READY)
    for link in page.locator("a.set-lab").all():
        given = link.get_attribute("href").partition("=")[2].partition("#")[0].split(",")
        link.evaluate("a => a.click()")
        params = page.evaluate("document.querySelector('feature-lab').params")
        assert {k: params[k] for k in (g.partition(":")[0] for g in given)} == {
            k: float(v) for k, _, v in (g.partition(":") for g in given)
        }
    assert not faults


def test_the_front_page_trains(visit: Visit, address: Address) -> None:
    """Three sliders and a map; the first picture is neither lazy nor lost without scripts."""
    page, faults = visit(address("http", "index"))
    page.wait_for_function(READY)
    lab = page.locator("feature-lab")
    assert lab.get_by_role("slider").count() == 5  # the ring is one, and time
    lab.get_by_role("button", name="It learns the pattern").click()
    page.wait_for_function(READY)
    lab.get_by_role("status").filter(has_text="this overfitting is benign").wait_for()
    first = page.locator("feature-lab figure img").first
    assert first.get_attribute("loading") is None
    assert first.get_attribute("src").startswith("_static/front-light")
    assert not lab.locator("figure").is_visible()
    assert not faults
    assert page.evaluate("document.querySelector('feature-lab').offsetHeight") < 800
