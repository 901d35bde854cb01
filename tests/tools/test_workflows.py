"""CI runs what `make test` runs, with actions that nobody can swap."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def steps(path: Path) -> list[dict[str, Any]]:
    """Every step of a workflow."""
    jobs = yaml.safe_load(path.read_text())["jobs"].values()
    return [step for job in jobs for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_to_a_commit_with_its_tag(path: Path) -> None:
    uses = [line for line in path.read_text().split("\n") if "uses:" in line]
    assert len(uses) == sum("uses" in step for step in steps(path))
    for line in uses:
        assert re.search(r"uses: actions/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line


def test_every_action_has_one_version() -> None:
    found = {step["uses"] for path in WORKFLOWS for step in steps(path) if "uses" in step}
    names = [action.split("@")[0] for action in found]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("name", ["pull-request", "publish"])
def test_the_gate_is_make_test(name: str) -> None:
    path = ROOT / ".github/workflows" / f"{name}.yml"
    assert ".ci/run" in [step.get("run") for step in steps(path)]
    assert (ROOT / ".ci/run").read_text().rstrip().endswith("exec make test")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_do_no_more_than_it_needs(path: Path) -> None:
    assert yaml.safe_load(path.read_text())["permissions"] == {"contents": "read"}
    for step in steps(path):
        if "actions/checkout@" in step.get("uses", ""):
            assert step["with"]["persist-credentials"] is False
