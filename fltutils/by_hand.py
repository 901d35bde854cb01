"""The claim as a call, with bounds that a person drew: of chapters that still have it so."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fltutils import check
from fltutils.claims import (
    CLAIM,
    EXCLUDED,
    FAR,
    ROUNDING,
    _show,
    box,
    distance,
    number,
    rounded,
    words,
)

KINDS = ("theorem", "identity", "own", "limit")  # "own": the book's; "limit": where it breaks


def _bound(id: str, name: str, value: float | None) -> float | None:
    return None if value is None else float(check.finite(f"{name} of claim {id}", value))


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
    margin = distance(max(outside), error)
    excluded = max(outside) > 0 and (margin is None or margin >= EXCLUDED)
    told = 0.0 if abs(mean) < ROUNDING else float(f"{mean:.3g}")
    return {"name": name, "value": told, "margin": rounded(margin), "excluded": excluded}


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
    margin = distance(min(gaps), error) if holds else None
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
        "margin": rounded(margin),
        "seeds": runs,
        "finite": finite,
        "verdict": verdict,
        "rivals": faced,
    }
    rows = [
        ("predicted", predicted),
        ("measured", found),
        ("must be", bound),
        ("margin", words(margin) if holds else "none"),
        ("runs", str(runs)),
    ]
    for rival in faced:
        far = words(rival["margin"]) + " outside" if rival["excluded"] else "NOT EXCLUDED"
        told = "not finite" if rival["value"] is None else number(rival["value"])
        rows.append(("rival", f"{rival['name']}: {told}, {far}"))
    text = f"{id}: {verdict.upper()} ({kind})\n" + "\n".join(f"  {k:<10}{v}" for k, v in rows)
    short = [f"{quantity}: ", "0 to rounding" if rounding else value, f" · predicted {predicted}"]
    if told_apart := [r for r in faced if r["excluded"]]:
        nearest = min(told_apart, key=lambda r: FAR if r["margin"] is None else r["margin"])
        short.append(f" · not {number(nearest['value'])} ({nearest['name']})")
    _show({"text/plain": text, "text/html": box(id, verdict, kind, short, rows), CLAIM: record})
