"""The labs in headless Chromium: seconds from a slider's move to the last record on the page, and
the bytes of the scripts that a page loads for its labs.
"""

import gzip
import statistics
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks import report
from tools.chromium import existing

SITE = Path("_build/html")
PAGE = SITE / "signal_noise.html"
CASES = {
    "n=50, m=10, 300 steps": ({"n": 50, "m": 10, "steps": 300}, 0.1),
    "n=100, m=20, 500 steps": ({"n": 100, "m": 20, "steps": 500}, 0.4),
}
RUNS = 15
ALLOWED = 30 * 1024  # bytes, gzipped, that labs may add to a page
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


def start(page: Page) -> None:
    """Bring every lab of a page into view, and wait until it runs."""
    for lab in page.locator("feature-lab").all():
        lab.scroll_into_view_if_needed()
        page.wait_for_function("lab => lab.runner", arg=lab.element_handle())


def seconds(browser: Browser) -> dict[str, float]:
    """The median run of each case, the first run of the page included."""
    medians = {}
    for name, (params, _) in CASES.items():
        page = browser.new_page()
        page.goto(PAGE.resolve().as_uri())
        start(page)
        settings: list[Any] = [params, RUNS]
        medians[name] = statistics.median(page.evaluate(TRAIN, settings)) / 1000
        page.close()
    return medians


def weight(browser: Browser, path: Path) -> int:
    """Bytes, gzipped, of the scripts and styles that a page asks for because of its labs."""
    asked: set[str] = set()
    page = browser.new_page()
    page.on("request", lambda request: asked.add(request.url))
    page.goto(path.resolve().as_uri())
    start(page)
    page.close()
    files = {Path(urlsplit(url).path) for url in asked if "/_static/labs/" in url}
    return sum(len(gzip.compress(f.read_bytes())) for f in files if f.suffix in (".js", ".css"))


def rows() -> list[report.Row]:
    """How often a run fits into its limit, and the heaviest page's labs into theirs."""
    if not PAGE.exists():
        raise SystemExit(f"{PAGE} is not there: run `make book` before `make bench`")
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=existing(), args=["--no-sandbox"])
        found = [report.row(f"lab, {k}", 1, s, CASES[k][1]) for k, s in seconds(browser).items()]
        paths = [path for path in SITE.glob("*.html") if "<feature-lab" in path.read_text("utf-8")]
        sizes = {path.stem: weight(browser, path) for path in sorted(paths)}
        browser.close()
    heaviest = max(sizes, key=lambda name: sizes[name])
    told = f"30 KB against the labs' scripts on {heaviest}, gzipped"
    return [*found, report.memory(told, 1, sizes[heaviest], ALLOWED)]
