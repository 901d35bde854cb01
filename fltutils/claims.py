"""A claim, its margin and its verdict, as data.

A notebook says what it measured with `claim`, what prose may quote with `glue`, and what an
exercise's checker found with `exercise`. Each shows one output that a reader, the ledger and the
tests all see. Outside Jupyter the text is printed.
"""

import builtins
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fltutils import check
from fltutils.notation import figures, markup

CLAIM = "application/vnd.fltutils.claim+json"
EXERCISE = "application/vnd.fltutils.exercise+json"
KINDS = ("theorem", "identity", "own", "limit")  # "own": the book's; "limit": where it breaks
FAR = 1000  # standard errors; what lies farther is not told apart
EXCLUDED = 4  # standard errors that a rival must lie outside the bounds
ROUNDING = 1e-12  # below it digits depend on the processor and are not printed
GLUE = "application/papermill.record/"


def _show(bundle: dict[str, Any], metadata: dict[str, Any] | None = None) -> None:
    """Display a bundle of MIME types in Jupyter; print its text elsewhere."""
    display = getattr(builtins, "display", None)  # IPython puts it there
    if display is not None:
        display(bundle, raw=True, metadata=metadata or {})
    elif "text/plain" in bundle:
        print(bundle["text/plain"])


def number(x: float, digits: int = 3) -> str:
    """x with `digits` significant digits, one less beside a power of ten, as prose writes it."""
    if not math.isfinite(x):
        return str(x)
    if x and not 1e-4 <= abs(x) < 1e5:
        return figures(f"{x:.{max(digits - 2, 0)}e}")
    decimals = digits - 1 - math.floor(math.log10(abs(x))) if x else 0
    return figures(f"{round(x, decimals):.{max(decimals, 0)}f}")


def glue(name: str, value: str | float) -> None:
    """Give prose a value under a name: {glue:text}`name`. Numbers are rounded to 3 digits."""
    text = figures(value) if isinstance(value, str) else number(float(value))
    _show({GLUE + "text/plain": repr(text)}, {"scrapbook": {"name": name, "mime_prefix": GLUE}})


def _named(kind: str, id: str) -> None:
    if not re.fullmatch(r"[a-z0-9_]+(\.[a-z0-9_]+)+", id):
        raise ValueError(f"{kind} id = {id!r}: id must be lower-case words with dots between them")


def _bound(id: str, name: str, value: float | None) -> float | None:
    return None if value is None else float(check.finite(f"{name} of claim {id}", value))


def _distance(gap: float, error: float) -> float | None:
    """How many standard errors a gap is, None where there is no spread to measure it by."""
    return min(FAR, gap / error) if gap > 0 and error > 0 else None


def _words(margin: float | None) -> str:
    """A margin in words."""
    far = "all runs agree" if margin is None else f"{number(margin, 2)} standard errors"
    return f"over {FAR} standard errors" if margin == FAR else far


def _rounded(margin: float | None) -> float | None:
    return None if margin is None else float(f"{margin:.3g}")


def _rival(
    id: str, name: str, value: ArrayLike, error: float, above: float | None, below: float | None
) -> dict[str, Any]:
    """What a rival theory says of the same quantity, and how far outside the bounds that lies.

    Values over runs have a spread of their own; a single value is held against the measured one.
    """
    values = np.atleast_1d(np.asarray(value, dtype=np.float64)).ravel()
    if not name or not values.size:
        raise ValueError(f"claim {id}: rival {name!r} = {value!r} needs a name and a value")
    if not np.isfinite(values).all():
        return {"name": name, "value": None, "margin": None, "excluded": False}
    mean = float(values.mean())
    if values.size > 1:
        error = float(values.std(ddof=1)) / math.sqrt(values.size)
    outside = [above - mean] if above is not None else []
    outside += [mean - below] if below is not None else []
    margin = _distance(max(outside), error)
    excluded = max(outside) > 0 and (margin is None or margin >= EXCLUDED)
    told = 0.0 if abs(mean) < ROUNDING else float(f"{mean:.3g}")
    return {"name": name, "value": told, "margin": _rounded(margin), "excluded": excluded}


def claim(
    id: str,
    measured: ArrayLike,
    *,
    above: float | None = None,
    below: float | None = None,
    quantity: str,
    predicted: str,
    kind: str = "theorem",
    rivals: Mapping[str, ArrayLike] | None = None,
) -> None:
    """Say whether the mean of `measured`, one value a run, is above and below its bounds.

    The bounds are fixed in the chapter, not fitted to a seed. The margin is the distance of the
    mean from the nearer bound, in standard errors of the mean; it is null where all runs agree.
    Values at rounding level are called so, since their digits differ between processors; others
    hold by two runs at least. A value that is not finite, or no value at all, proves nothing.

    `rivals` names the theories that the claim tells apart from its own, each with what it predicts
    or gave for the same quantity: the bounds should exclude it by four standard errors.
    """
    _named("claim", id)
    check.one_of("kind", kind, KINDS)
    above, below = _bound(id, "above", above), _bound(id, "below", below)
    if above is None and below is None:
        raise ValueError(f"claim {id}: give a bound, above or below, or both")
    if above is not None and below is not None and above >= below:
        raise ValueError(f"claim {id}: above = {above:g} must be less than below = {below:g}")
    values = np.atleast_1d(np.asarray(measured, dtype=np.float64)).ravel()
    runs = len(values)
    finite = runs > 0 and bool(np.isfinite(values).all())
    with np.errstate(invalid="ignore"):  # infinities have no mean
        mean = float(values.mean()) if runs else math.nan
        spread = float(values.std(ddof=1)) if runs > 1 else 0.0
    gaps = [mean - above] if above is not None else []
    gaps += [below - mean] if below is not None else []
    holds = finite and min(gaps) > 0
    rounding = runs > 0 and bool((np.abs(values) < ROUNDING).all())
    if holds and runs < 2 and not rounding:
        raise ValueError(f"claim {id}: one run has no spread; measure at least two")
    error = spread / math.sqrt(runs) if finite and not rounding else 0.0
    margin = _distance(min(gaps), error) if holds else None
    faced = [_rival(id, *rival, error, above, below) for rival in (rivals or {}).items()]
    bound = " and ".join(
        f"{word} {number(value)}"
        for word, value in (("above", above), ("below", below))
        if value is not None
    )
    verdict = "holds" if holds else "fails"
    value = number(mean) + (f" ± {number(spread, 2)}" if runs > 1 else "")
    found = f"{quantity}: {'0 to rounding' if rounding else value}"
    record = {
        "id": id,
        "kind": kind,
        "predicted": predicted,
        "measured": found,
        "bound": bound,
        "margin": _rounded(margin),
        "seeds": runs,
        "finite": finite,
        "verdict": verdict,
        "rivals": faced,
    }
    rows = [
        ("predicted", predicted),
        ("measured", found),
        ("must be", bound),
        ("margin", _words(margin) if holds else "none"),
        ("runs", str(runs)),
    ]
    for rival in faced:
        far = _words(rival["margin"]) + " outside" if rival["excluded"] else "NOT EXCLUDED"
        told = "not finite" if rival["value"] is None else number(rival["value"])
        rows.append(("rival", f"{rival['name']}: {told}, {far}"))
    text = f"{id}: {verdict.upper()} ({kind})\n" + "\n".join(f"  {k:<10}{v}" for k, v in rows)
    short = [f"{quantity}: ", "0 to rounding" if rounding else value, f" · predicted {predicted}"]
    if told_apart := [r for r in faced if r["excluded"]]:
        nearest = min(told_apart, key=lambda r: FAR if r["margin"] is None else r["margin"])
        short.append(f" · not {number(nearest['value'])} ({nearest['name']})")
    _show({"text/plain": text, "text/html": _box(id, verdict, kind, short, rows), CLAIM: record})


def _box(id: str, verdict: str, kind: str, short: list[str], rows: list[tuple[str, str]]) -> str:
    """One line, with the nearest rival, that unfolds to all rows.

    Its own style is for readers without the book's.
    """
    colour, sign = ("#2a8f55", "✓") if verdict == "holds" else ("#c8452f", "✗ fails:")
    style = f"border:1px solid {colour};border-left-width:5px;border-radius:6px;"
    name, found, *rest = (markup(part) for part in short)
    line = f"<strong>{sign}</strong> {name}<b>{found}</b>{''.join(rest)}"
    parts = [("claim", f"<code>{id}</code> {kind}, {verdict}")]
    parts += [(what, markup(words)) for what, words in rows]
    cells = "".join(
        f'<div style="display:flex;gap:1em"><dt style="min-width:5em">{what}</dt>'
        f'<dd style="margin:0">{words}</dd></div>'
        for what, words in parts
    )
    return (
        f'<details class="claim {verdict}" id="claim-{id}" style="{style}padding:.3em .8em;'
        f'margin:.5em 0"><summary>{line}</summary><dl style="margin:.4em 0">{cells}</dl></details>'
    )


def exercise(id: str, passed: bool, hint: str) -> None:
    """Say what an exercise's checker found: passed, or a hint."""
    _named("exercise", id)
    text = f"{id}: " + ("correct." if passed else f"not yet. {hint}")
    _show({"text/plain": text, EXERCISE: {"id": id, "passed": bool(passed)}})
