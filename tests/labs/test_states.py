"""Every state of every lab, and from each every slider: drawn soon, and in numbers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.labs.pages import LABS

DRIVE = Path(__file__).with_name("drive.js").read_text(encoding="utf-8")
AT_ONCE = """const wait = window.setTimeout;
    window.setTimeout = (f, ms, ...given) => wait(f, 0, ...given);"""
READY = "document.querySelector('feature-lab').run?.done"


@pytest.fixture(scope="module", params=LABS)
def driven(request: pytest.FixtureRequest, browser: Any, site: Path) -> Iterator[dict[str, Any]]:
    """What a lab showed at each of its states and from there at each slider, waits left out."""
    little = {"width": 1000, "height": 100}  # pixels to paint: nobody looks
    page, problems = browser.new_page(viewport=little), list[str]()
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.add_init_script(AT_ONCE)
    page.goto((site / f"{request.param}.html").as_uri())
    page.wait_for_function(READY)
    yield page.evaluate(DRIVE) | {"problems": problems}
    page.close()


def test_a_lab_stays_alive_wherever_its_sliders_go(driven: dict[str, Any]) -> None:
    """No long stop, no error, and all that is drawn is a number."""
    assert driven["problems"] + driven["faults"] == []


def test_each_theory_begins_in_view(driven: dict[str, Any]) -> None:
    """A floor that a state is about is no use below the axis."""
    assert driven["hidden"] == []
