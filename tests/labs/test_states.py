"""Every state of every lab, and from each every slider: drawn soon, and in numbers."""

from pathlib import Path
from typing import Any

import pytest

from tests.labs.pages import LABS

DRIVE = Path(__file__).with_name("drive.js").read_text(encoding="utf-8")
AT_ONCE = """const wait = window.setTimeout;
    window.setTimeout = (f, ms, ...given) => wait(f, 0, ...given);"""
READY = "document.querySelector('feature-lab').run?.done"


def drive(browser: Any, address: str, random: int) -> dict[str, Any]:
    """What a lab showed wherever its sliders went, waits left out."""
    little = {"width": 1000, "height": 100}  # pixels to paint: nobody looks
    page, problems = browser.new_page(viewport=little), list[str]()
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.add_init_script(AT_ONCE)
    page.goto(address)
    page.wait_for_function(READY)
    found: dict[str, Any] = page.evaluate(DRIVE, random)
    page.close()
    return found | {"problems": problems}


@pytest.fixture(scope="module", params=LABS)
def driven(request: pytest.FixtureRequest, browser: Any, site: Path) -> dict[str, Any]:
    """Each state, and from there each slider."""
    return drive(browser, (site / f"{request.param}.html").as_uri(), 0)


def test_a_lab_stays_alive_wherever_its_sliders_go(driven: dict[str, Any]) -> None:
    """No long stop, no error, and all that is drawn is a number."""
    assert driven["problems"] + driven["faults"] == []


@pytest.mark.nightly
@pytest.mark.parametrize("name", LABS)
def test_a_lab_stays_alive_at_a_hundred_random_settings(
    browser: Any, site: Path, name: str
) -> None:
    driven = drive(browser, (site / f"{name}.html").as_uri(), 100)
    assert driven["problems"] + driven["faults"] == []


def test_each_theory_begins_in_view(driven: dict[str, Any]) -> None:
    """A floor that a state is about is no use below the axis."""
    assert driven["hidden"] == []
