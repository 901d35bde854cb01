"""Rows of the benchmark: each ratio is written so that ratio >= bar is good."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TypedDict


class Row(TypedDict):
    """One comparison. Seconds are CPU seconds a run; None where what is compared is not a time."""

    name: str
    ratio: float
    bar: float
    ours_s: float | None
    theirs_s: float | None


def row(name: str, bar: float, ours_s: float, theirs_s: float) -> Row:
    """How many times faster ours is."""
    return _row(name, theirs_s / ours_s, bar, ours_s, theirs_s)


def memory(name: str, bar: float, peak: float, allowed: float) -> Row:
    """How many times the peak fits into what is allowed, in bytes."""
    return _row(name, allowed / peak, bar, None, None)


def _row(name: str, ratio: float, bar: float, ours: float | None, theirs: float | None) -> Row:
    short = [None if x is None else float(f"{x:.4g}") for x in (ours, theirs)]
    return Row(name=name, ratio=float(f"{ratio:.4g}"), bar=bar, ours_s=short[0], theirs_s=short[1])


def missed(rows: Iterable[Row]) -> list[str]:
    """Names of the rows below their bar; a ratio that is not a number is below every bar."""
    return [r["name"] for r in rows if not r["ratio"] >= r["bar"]]


def table(rows: Iterable[Row]) -> str:
    """The rows for a terminal."""

    def milliseconds(x: float | None) -> str:
        return f"{'-':>10}" if x is None else f"{1000 * x:10.2f}"

    head = f"{'':<44}{'ratio':>8}{'bar':>8}{'ours ms':>10}{'theirs ms':>10}"
    lines = [
        f"{r['name']:<44}{r['ratio']:8.3g}{r['bar']:8.3g}"
        + milliseconds(r["ours_s"])
        + milliseconds(r["theirs_s"])
        + ("" if r["ratio"] >= r["bar"] else "   MISSED")
        for r in rows
    ]
    return "\n".join([head, *lines])


def as_json(rows: Iterable[Row]) -> str:
    """The rows as they are stored."""
    return json.dumps(list(rows), indent=1, allow_nan=False) + "\n"


def least(contenders: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """The least seconds of each contender over some rounds.

    They take turns, so that a busy neighbour slows all of them; the least is what the core can do.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            seconds[name].append(run())
    return {name: min(values) for name, values in seconds.items()}
