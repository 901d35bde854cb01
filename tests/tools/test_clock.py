"""The clock of `make test`: every stage's time, also where one fails; no failure is hidden."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAKEFILE = """PY := PYTHONPATH={root} {python}
include stages.mk
both:
	$(call clock,start)
	$(call stage,first,echo "one" && sleep 0.2)
	$(call stage,second,{second})
	$(call stage,third,echo three)
	$(call clock,end)
"""


def make(folder: Path, second: str) -> subprocess.CompletedProcess[str]:
    """Three stages, run by the Makefile's own two macros."""
    text = (ROOT / "Makefile").read_text()
    macros = text[text.index("define clock") : text.rindex("endef") + len("endef\n")]
    (folder / "stages.mk").write_text(macros)
    (folder / "Makefile").write_text(
        MAKEFILE.format(root=ROOT, python=sys.executable, second=second).replace("  ", "\t")
    )
    return subprocess.run(["make", "-s", "both"], cwd=folder, capture_output=True, text=True)


def test_the_stages_end_with_a_table(tmp_path: Path) -> None:
    done = make(tmp_path, "echo two")
    assert done.returncode == 0, done.stderr
    rows = done.stdout[done.stdout.index("seconds  share  CPU s") :].splitlines()[1:]
    assert [row.split()[0] for row in rows] == ["first", "second", "third", "all"]
    stages = json.loads((tmp_path / "_build/clock.json").read_text())
    assert [stage["stage"] for stage in stages] == ["first", "second", "third"]
    assert stages[0]["seconds"] >= 0.2
    make(tmp_path, "echo two")  # a second run starts from nothing
    assert len(json.loads((tmp_path / "_build/clock.json").read_text())) == 3


@pytest.mark.parametrize("second", ["false", "exit 7", "kill -9 $$$$", "false && echo hidden"])
def test_a_stage_that_fails_stops_and_is_told_with_the_times(tmp_path: Path, second: str) -> None:
    done = make(tmp_path, second)
    assert done.returncode == 2
    assert "make: stage 'second' failed" in done.stderr
    rows = [line.split() for line in done.stderr.splitlines()]
    assert [row[0] for row in rows if row[-1:] == ["FAILED"]] == ["second"]
    assert "three" not in done.stdout
