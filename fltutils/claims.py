"""A claim, its margin and its verdict, as data.

A notebook says what it measured with `claim`, what prose may quote with `glue`, and what an
exercise's checker found with `exercise`. Each shows one output that a reader, the ledger and the
tests all see. Outside Jupyter the text is printed.
"""

import builtins
import html
import math
import re
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fltutils import check

CLAIM = "application/vnd.fltutils.claim+json"
EXERCISE = "application/vnd.fltutils.exercise+json"
FAR = 1000  # standard errors; what lies farther is not told apart
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
        return f"{x:.{max(digits - 2, 0)}e}".replace("e-0", "e-").replace("e+0", "e+")
    decimals = digits - 1 - math.floor(math.log10(abs(x))) if x else 0
    return f"{round(x, decimals):.{max(decimals, 0)}f}"


def glue(name: str, value: str | float) -> None:
    """Give prose a value under a name: {glue:text}`name`. Numbers are rounded to 3 digits."""
    text = value if isinstance(value, str) else number(float(value))
    _show({GLUE + "text/plain": repr(text)}, {"scrapbook": {"name": name, "mime_prefix": GLUE}})


def _named(kind: str, id: str) -> None:
    if not re.fullmatch(r"[a-z0-9_]+(\.[a-z0-9_]+)+", id):
        raise ValueError(f"{kind} id = {id!r}: id must be lower-case words with dots between them")


def _bound(id: str, name: str, value: float | None) -> float | None:
    return None if value is None else float(check.finite(f"{name} of claim {id}", value))


def claim(
    id: str,
    measured: ArrayLike,
    *,
    above: float | None = None,
    below: float | None = None,
    quantity: str,
    predicted: str,
) -> None:
    """Say whether the mean of `measured`, one value a run, is above and below its bounds.

    The bounds are fixed in the chapter, not fitted to a seed. The margin is the distance of the
    mean from the nearer bound, in standard errors of the mean; it is null where all runs agree.
    Values at rounding level are called so, since their digits differ between processors; others
    hold by two runs at least. A value that is not finite, or no value at all, proves nothing.
    """
    _named("claim", id)
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
    margin = None
    if holds and spread > 0 and not rounding:
        margin = min(FAR, min(gaps) / (spread / math.sqrt(runs)))
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
        "predicted": predicted,
        "measured": found,
        "bound": bound,
        "margin": None if margin is None else float(f"{margin:.3g}"),
        "seeds": runs,
        "finite": finite,
        "verdict": verdict,
    }
    far = "all runs agree" if margin is None else f"{number(margin, 2)} standard errors"
    if margin == FAR:
        far = f"over {FAR} standard errors"
    rows = [
        ("predicted", predicted),
        ("measured", found),
        ("must be", bound),
        ("margin", far if holds else "none"),
        ("runs", str(runs)),
    ]
    text = f"{id}: {verdict.upper()}\n" + "\n".join(f"  {k:<10}{v}" for k, v in rows)
    cells = "".join(f"<div><dt>{k}</dt><dd>{html.escape(v)}</dd></div>" for k, v in rows)
    sign = "✓" if holds else "✗"
    box = (
        f'<div class="claim {verdict}" id="claim-{id}"><p><strong>{sign} '
        f"{verdict}</strong> <code>{id}</code></p><dl>{cells}</dl></div>"
    )
    _show({"text/plain": text, "text/html": box, CLAIM: record})


def exercise(id: str, passed: bool, hint: str) -> None:
    """Say what an exercise's checker found: passed, or a hint."""
    _named("exercise", id)
    text = f"{id}: " + ("correct." if passed else f"not yet. {hint}")
    _show({"text/plain": text, EXERCISE: {"id": id, "passed": bool(passed)}})
