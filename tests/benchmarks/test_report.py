"""The benchmark's bookkeeping; no test measures a time."""

import json
import math

import pytest

from benchmarks import report

ROWS = [
    report.row("fast", 60, ours_s=0.0123456, theirs_s=1.2),
    report.row("slow", 8, ours_s=0.1, theirs_s=0.2),
    report.memory("memory", 1, peak=4e8, allowed=1e9),
]


def test_a_ratio_is_good_when_it_reaches_its_bar() -> None:
    assert [r["ratio"] for r in ROWS] == [97.2, 2.0, 2.5]
    assert report.missed(ROWS) == ["slow"]
    assert report.missed([{**ROWS[1], "bar": 2.0}]) == []
    assert report.missed([{**ROWS[0], "ratio": math.nan}]) == ["fast"]


def test_rows_are_stored_as_they_are() -> None:
    stored = json.loads(report.as_json(ROWS))
    assert stored == ROWS
    assert [list(r) for r in stored] == [["name", "ratio", "bar", "ours_s", "theirs_s"]] * 3
    assert stored[0]["ours_s"] == 0.01235
    assert stored[2]["ours_s"] is None
    with pytest.raises(ValueError, match="Out of range float"):
        report.as_json([{**ROWS[0], "ratio": math.nan}])


def test_the_table_points_at_what_is_missed() -> None:
    head, *lines = report.table(ROWS).splitlines()
    assert head.split() == ["ratio", "bar", "ours", "ms", "theirs", "ms"]
    assert ["MISSED" in line for line in lines] == [False, True, False]
    assert lines[0].split() == ["fast", "97.2", "60", "12.35", "1200.00"]


def test_contenders_take_turns_and_the_least_counts() -> None:
    calls: list[str] = []
    times = {"a": iter([3.0, 1.0, 2.0]), "b": iter([5.0, 6.0, 4.0])}

    def contender(name: str) -> float:
        calls.append(name)
        return next(times[name])

    found = report.least({"a": lambda: contender("a"), "b": lambda: contender("b")}, 3)
    assert found == {"a": 1.0, "b": 4.0}
    assert calls == ["a", "b"] * 3
