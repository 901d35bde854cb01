"""Node as a subprocess, and the comparison with torch."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.labs.compare import ASSETS
from tools.node import binary

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What drives a browser, or trains, is too slow for `make check`."""
    for item in items:
        if item.path.parent == HERE and item.path.stem in (
            "test_page",
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
