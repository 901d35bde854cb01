"""Node as a subprocess; a browser, and a folder of pages with labs."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.labs.compare import ASSETS
from tests.labs.pages import lay_out
from tools.chromium import FLAGS, existing
from tools.node import binary

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What drives a browser, or trains, is too slow for `make check`."""
    for item in items:
        if item.path.parent == HERE and item.path.stem in (
            "test_page",
            "test_states",
            "test_models",
            "test_physics",
            "test_configs",
            "test_sentences",
        ):
            item.add_marker("slow")


@pytest.fixture(scope="session")
def node() -> Callable[..., list[Any]]:
    """Runs calls (see node.js) on model scripts and gives their results."""

    def run(scripts: list[str], calls: list[dict[str, Any]]) -> list[Any]:
        text = json.dumps({"folder": str(ASSETS), "scripts": scripts, "calls": calls})
        done = subprocess.run(
            [binary(), str(Path(__file__).with_name("node.js"))],
            input=text, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture(scope="session")
def browser(playwright: Any) -> Iterator[Any]:
    """A headless Chromium."""
    b = playwright.chromium.launch(executable_path=existing(), args=FLAGS)
    yield b
    b.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the scripts and one page a lab."""
    folder = tmp_path_factory.mktemp("site")
    lay_out(folder)
    return folder
