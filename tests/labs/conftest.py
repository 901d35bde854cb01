"""Node as a subprocess, and the comparison with torch."""

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tools.node import binary

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
sys.path.insert(0, str(ROOT))
FOLDER = ROOT / "book" / "_assets" / "labs"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What drives a browser, or trains, is too slow for `make check`."""
    for item in items:
        if item.path.parent == HERE and item.path.stem in (
            "test_page",
            "test_models",
            "test_configs",
        ):
            item.add_marker("slow")


@pytest.fixture(scope="session")
def node() -> Callable[..., list[Any]]:
    """Runs calls (see node.js) on model scripts and gives their results."""

    def run(scripts: list[str], calls: list[dict[str, Any]]) -> list[Any]:
        text = json.dumps({"folder": str(FOLDER), "scripts": scripts, "calls": calls})
        done = subprocess.run(
            [binary(), str(Path(__file__).with_name("node.js"))],
            input=text, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def _plain(x: Any) -> Any:
    return x.tolist() if hasattr(x, "tolist") else x


def _flat(x: Any) -> list[float]:
    if isinstance(x, list):
        return [v for row in x for v in _flat(row)]
    return [float(x)]


def apart(a: Any, b: Any) -> float:
    """The largest difference of two arrays, relative to the largest entry of the first."""
    x, y = _flat(_plain(a)), _flat(_plain(b))
    assert len(x) == len(y)
    size = max((abs(v) for v in x if math.isfinite(v)), default=0.0) or 1.0
    worst = 0.0
    for u, v in zip(x, y, strict=True):
        if math.isfinite(u) and math.isfinite(v):
            worst = max(worst, abs(u - v) / size)
        elif not (u == v or (math.isnan(u) and math.isnan(v))):
            return math.inf
    return worst
