"""CI runs what `make test` runs, with actions that nobody can swap, and may do no more."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.environment import INPUTS, SUPPORTED

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PYTHONS = [f"3.{minor}" for minor in range(SUPPORTED[0][1], SUPPORTED[1][1] + 1)]
WRITERS = {
    ("publish", "notebooks"): {"contents": "write"},
    ("publish", "deploy"): {"pages": "write", "id-token": "write"},
    ("nightly", "report"): {"issues": "write"},
    ("nightly", "history"): {"actions": "read"},
}


def jobs(name: str) -> dict[str, Any]:
    """The jobs of a workflow."""
    found: dict[str, Any] = yaml.safe_load((ROOT / f".github/workflows/{name}.yml").read_text())
    return dict(found["jobs"])


def steps(path: Path) -> list[dict[str, Any]]:
    """Every step of a workflow."""
    return [step for job in jobs(path.stem).values() for step in job["steps"]]


def commands(job: dict[str, Any]) -> list[str]:
    """What a job runs."""
    return [step["run"] for step in job["steps"] if "run" in step]


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


@pytest.mark.parametrize(("name", "job"), [("pull-request", "test"), ("publish", "build")])
def test_the_gate_is_make_test(name: str, job: str) -> None:
    assert ".ci/run" in commands(jobs(name)[job])
    assert (ROOT / ".ci/run").read_text().rstrip().endswith("exec make test")


def test_every_supported_python_is_tested() -> None:
    for name, job, command in (
        ("pull-request", "check", "make check"),
        ("nightly", "pythons", ".ci/run"),
    ):
        found = jobs(name)[job]
        assert [PYTHONS[0], *found["strategy"]["matrix"]["python"]] == PYTHONS
        assert command in commands(found)


def test_every_job_of_the_night_is_reported() -> None:
    found = jobs("nightly")
    waited = {*found["report"]["needs"]}
    for job in waited:
        needs = found[job].get("needs", [])
        waited |= {needs} if isinstance(needs, str) else {*needs}
    assert {*found} - waited == {"report", "history"}  # which keeps what `fresh` found


def test_each_night_all_laws_are_tried_anew() -> None:
    assert "make laws ALL=1" in commands(jobs("nightly")["laws"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_job_may_do_no_more_than_it_needs(path: Path) -> None:
    assert yaml.safe_load(path.read_text())["permissions"] == {"contents": "read"}
    for name, job in jobs(path.stem).items():
        assert job.get("permissions") == WRITERS.get((path.stem, name))
        uses = [step.get("uses", "") for step in job["steps"]]
        if "permissions" in job:  # what may write runs no code of the repository
            assert not any("actions/checkout@" in action for action in uses)
    for step in steps(path):
        if "actions/checkout@" in step.get("uses", ""):
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_token_stands_in_no_command(path: Path) -> None:
    for step in steps(path):
        assert not re.search(r"token@|x-access-token|\$\{\{", step.get("run", "")), step["run"]


def test_a_cache_is_keyed_by_all_that_the_environment_is_made_from() -> None:
    found = [
        (path.stem, step)
        for path in WORKFLOWS
        for step in steps(path)
        if "actions/cache@" in step.get("uses", "")
    ]
    ((workflow, cache),) = found
    job = jobs(workflow)["test"]
    files = ", ".join(f"'{name}'" for name in (*INPUTS, "tools/environment.py"))
    assert cache["with"] == {
        "path": ".venv",
        "key": f"venv-{job['runs-on']}-${{{{ runner.arch }}}}"
        f"-${{{{ steps.python.outputs.python-version }}}}-${{{{ hashFiles({files}) }}}}",
    }
    (python,) = [step for step in job["steps"] if step.get("id") == "python"]
    assert "actions/setup-python@" in python["uses"]


def zizmor(place: Path) -> subprocess.CompletedProcess[str]:
    """What zizmor says of a workflow or a folder of them."""
    command = [Path(sys.executable).with_name("zizmor"), "--offline", "--quiet", place]
    return subprocess.run(command, capture_output=True, text=True)


def test_zizmor_finds_nothing_and_can_find_something(tmp_path: Path) -> None:
    assert zizmor(ROOT / ".github").returncode == 0
    publish = (ROOT / ".github/workflows/publish.yml").read_text()
    loose = publish.replace('"$GITHUB_SERVER_URL', '"${{ github.event.head_commit.message }}')
    (tmp_path / "publish.yml").write_text(loose)
    refused = zizmor(tmp_path / "publish.yml")
    assert refused.returncode != 0
    assert "template-injection" in refused.stdout


def test_dependabot_watches_the_lock_and_the_actions() -> None:
    updates = yaml.safe_load((ROOT / ".github/dependabot.yml").read_text())["updates"]
    assert [entry["package-ecosystem"] for entry in updates] == ["uv", "github-actions"]
    for entry in updates:
        assert entry["schedule"] == {"interval": "weekly"}
        assert [group["patterns"] for group in entry["groups"].values()] == [["*"]]
    header = (ROOT / "requirements.txt").read_text().split("\n")[1]
    assert "--generate-hashes" in header
    assert header.endswith("requirements.in --output-file requirements.txt")
