"""What the tests of the site share: the rendered site, a server, a browser, a tiny book."""

import functools
import gzip
import io
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Playwright,
    Request,
    Response,
    Route,
)

from tests.site import tiny_book as tiny
from tools.chromium import FLAGS
from tools.site import build

Scheme = Literal["light", "dark"]
TEXT = (".html", ".css", ".js", ".json", ".svg", ".csv")
HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder: of the site, and too slow for `make check`."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("site")
            item.add_marker("slow")


class Quiet(SimpleHTTPRequestHandler):
    """A file server that compresses text, as hosts do, and says nothing."""

    def send_head(self) -> Any:
        """The head of an answer, and its body as a file."""
        path = Path(self.translate_path(self.path))
        packs = "gzip" in self.headers.get("Accept-Encoding", "")
        if not packs or path.suffix not in TEXT or not path.exists():
            return super().send_head()
        body = gzip.compress(path.read_bytes(), 6)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        return io.BytesIO(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep the tests' output clean."""


@pytest.fixture(scope="session")
def site() -> Path:
    """The rendered site."""
    folder = ROOT / "_build" / "html"
    if not (folder / "index.html").exists():
        pytest.fail("there is no _build/html: run `make site`")
    return folder


@pytest.fixture(scope="session")
def server(site: Path) -> Iterator[str]:
    """Address of a local web server that shows the site."""
    handler = functools.partial(Quiet, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()


@pytest.fixture(scope="session")
def address(site: Path, server: str) -> Callable[[str, str], str]:
    """Address of a page, from the server or from disk."""
    return lambda way, page: f"{server if way == 'http' else site.as_uri()}/{page}.html"


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of a browser."""
    if path := os.environ.get("CHROMIUM_PATH"):
        return path
    command = [sys.executable, "-m", "tools", "chromium"]
    done = subprocess.run(command, cwd=HERE.parents[1], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(done.stderr)
    return done.stdout.strip()


@pytest.fixture(scope="session")
def browser(playwright: Playwright, chromium: str) -> Iterator[Browser]:
    """A headless browser without a network."""
    started = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
    yield started
    started.close()


@pytest.fixture
def visit(browser: Browser, server: str) -> Iterator[Callable[..., tuple[Page, list[str]]]]:
    """Open a page, note its faults (foreign requests, failures, console errors); close it later."""
    contexts: list[BrowserContext] = []

    def opened(url: str, width: int = 1280, scheme: Scheme = "light") -> tuple[Page, list[str]]:
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce"
        )
        contexts.append(context)
        page = context.new_page()
        faults: list[str] = []

        def only_ours(route: Route) -> None:
            if route.request.url.startswith((server, "file:", "data:", "blob:")):
                route.continue_()
            else:
                faults.append(f"request to another host: {route.request.url}")
                route.abort()

        def console(message: ConsoleMessage) -> None:
            if message.type == "error":
                faults.append(f"console: {message.text}")

        def response(answer: Response) -> None:
            if answer.status >= 400:
                faults.append(f"{answer.status}: {answer.url}")

        def failed(request: Request) -> None:
            if request.failure != "net::ERR_ABORTED":  # a page that is left drops what it awaits
                faults.append(f"failed: {request.url}")

        context.route("**/*", only_ours)
        page.on("console", console)
        page.on("pageerror", lambda error: faults.append(f"script: {error}"))
        page.on("requestfailed", failed)
        page.on("response", response)
        page.goto(url, wait_until="load")
        return page, faults

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def npm_packages() -> Path:
    """Where axe and Lighthouse lie."""
    folder = HERE / "node_modules"
    if not (folder / "axe-core").exists():
        pytest.fail("no tests/site/node_modules: run `python -m tools node`")
    return folder


@pytest.fixture
def tiny_book(tmp_path: Path) -> Path:
    """A complete book of two pages and one chapter, ready for tools.site.build."""
    return tiny.make(tmp_path, ROOT)


@pytest.fixture(scope="session")
def built_book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with its site, built once, which knows no address: to be read or copied."""
    root = tiny.make(tmp_path_factory.mktemp("tiny"), ROOT)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("GITHUB_REPOSITORY", raising=False)
        build(root)
    return root
