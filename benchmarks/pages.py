"""The labs in headless Chromium: seconds from a slider's move to the last record on the page."""

import gzip
import statistics
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from benchmarks import report
from tools.chromium import existing

PAGE = Path("_build/html/signal_noise.html")
CASES = {
    "n=50, m=10, 300 steps": ({"n": 50, "m": 10, "steps": 300}, 0.1),
    "n=100, m=20, 500 steps": ({"n": 100, "m": 20, "steps": 500}, 0.4),
}
RUNS = 15
SCRIPTS = 30 * 1024  # bytes, gzipped, that the labs may add to a page
TRAIN = """async ([params, runs]) => {
    const lab = document.querySelector("feature-lab");
    const seen = [];
    for (let i = 0; i < runs; i++) {
        lab.params = { ...lab.params, ...params, seed: 100 + i };
        const start = performance.now();
        lab.train();
        while (!lab.data().done) await new Promise((go) => setTimeout(go, 0));
        seen.push(performance.now() - start);
    }
    return seen;
}"""


def seconds() -> dict[str, float]:
    """The median run of each case, the first run of the page included."""
    if not PAGE.exists():
        raise SystemExit(f"{PAGE} is not there: run `make book` before `make bench`")
    medians = {}
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=existing(), args=["--no-sandbox"])
        for name, (params, _) in CASES.items():
            page = browser.new_page()
            page.goto(PAGE.resolve().as_uri())
            page.locator("feature-lab").scroll_into_view_if_needed()
            page.wait_for_function("document.querySelector('feature-lab').runner")
            settings: list[Any] = [params, RUNS]
            medians[name] = statistics.median(page.evaluate(TRAIN, settings)) / 1000
            page.close()
        browser.close()
    return medians


def rows() -> list[report.Row]:
    """How often a run fits into its limit, and the scripts into theirs."""
    found = [report.row(f"lab, {k}", 1, s, CASES[k][1]) for k, s in seconds().items()]
    scripts = Path("_build/html/_static/labs").glob("*.js")
    size = sum(len(gzip.compress(path.read_bytes())) for path in scripts)
    return [*found, report.memory("30 KB against the labs' scripts, gzipped", 1, size, SCRIPTS)]
