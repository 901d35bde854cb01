"""A claim, its margin and its verdict, as data.

A notebook says what it measured with `claim`, what prose may quote with `glue`, and what an
exercise's checker found with `exercise`. Each shows one output that a reader, the ledger and the
tests all see. Outside Jupyter the text is printed.
"""

import builtins
import inspect
import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fltutils import check
from fltutils.notation import figures, markup

CLAIM = "application/vnd.fltutils.claim+json"
EXERCISE = "application/vnd.fltutils.exercise+json"
FAR = 1000  # standard errors; what lies farther is not told apart
EXCLUDED = 4  # standard errors that a rival must lie outside the bounds
ROUNDING = 1e-12  # below it digits depend on the processor and are not printed
GLUE = "application/papermill.record/"

Measure = Callable[..., ArrayLike]
Rival = float | Mapping[str, Any] | Callable[..., float]


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


def simple(x: float) -> str:
    """A theory's number: as a fraction where it is one that a person would write."""
    near = Fraction(x).limit_denominator(8) if math.isfinite(x) else Fraction(0)
    short = abs(x) < (1e5 if near.denominator in (1, 3, 6, 7) else 1)
    if abs(x - near) < ROUNDING and short:
        sign = "−" if near < 0 else ""
        return sign + str(abs(near)) if near.denominator > 1 else figures(f"{x:.0f}")
    return number(x)


def glue(name: str, value: str | float) -> None:
    """Give prose a value under a name: {glue:text}`name`. Numbers are rounded to 3 digits."""
    text = figures(value) if isinstance(value, str) else number(float(value))
    _show({GLUE + "text/plain": repr(text)}, {"scrapbook": {"name": name, "mime_prefix": GLUE}})


def named(kind: str, id: str) -> None:
    """Refuse a name that no file could carry."""
    if not re.fullmatch(r"[a-z0-9_]+(\.[a-z0-9_]+)+", id):
        raise ValueError(f"{kind} id = {id!r}: id must be lower-case words with dots between them")


class Found(NamedTuple):
    """What runs gave: their mean, its standard error, their spread."""

    mean: float
    error: float
    spread: float
    runs: int
    finite: bool
    rounding: bool  # nothing but rounding, whose digits differ between processors


def found(values: ArrayLike) -> Found:
    """The mean over runs; values at rounding level have no spread worth telling."""
    if more := [str(name) for name in getattr(values, "dims", ()) if name != "run"]:
        raise ValueError(f"values over {', '.join(more)}: give one value a run")
    each = np.atleast_1d(np.asarray(values, dtype=np.float64)).ravel()
    runs = len(each)
    rounding = runs > 0 and bool((np.abs(each) < ROUNDING).all())
    finite = runs > 0 and bool(np.isfinite(each).all())
    with np.errstate(invalid="ignore"):  # infinities have no mean
        mean = float(each.mean()) if runs else math.nan
        spread = float(each.std(ddof=1)) if runs > 1 and finite else 0.0
    spread = 0.0 if spread < ROUNDING * abs(mean) else spread
    return Found(
        mean, 0.0 if rounding else spread / math.sqrt(max(runs, 1)), spread, runs, finite, rounding
    )


def distance(gap: float, error: float) -> float | None:
    """How many standard errors a gap is, None where there is no spread to measure it by."""
    return min(FAR, gap / error) if gap > 0 and error > 0 else None


def words(margin: float | None) -> str:
    """A margin in words."""
    far = "all runs agree" if margin is None else f"{number(margin, 2)} standard errors"
    return f"over {FAR} standard errors" if margin == FAR else far


def rounded(margin: float | None) -> float | None:
    """A margin as it is stored."""
    return None if margin is None else float(f"{margin:.3g}")


def claim(
    id: str,
    measured: ArrayLike | None = None,
    *,
    theory: float | Callable[..., float] | None = None,
    unlike: Mapping[str, Rival] | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    exactly: float | None = None,
    **by_hand: Any,
) -> Any:
    """Say whether what the function below measures, one value a run, is what `theory` says.

    `unlike` names the rivals: the number that a wrong theory gives for the same quantity, or the
    keywords with which the function measures it. The bounds follow: from the theory halfway to the
    nearest rival on either side, or as far as on the other where there is none. Where a theorem
    states an inequality its number is the bound, `at_least` or `at_most`; an identity is `exactly`.
    The mean over runs must lie inside, and each rival outside by four standard errors of its own.

    `theory` and rivals may be laws, functions of the keywords of the function below; so may its own
    keywords. `make laws` changes them.
    """
    named("claim", id)
    if measured is not None:
        from fltutils.by_hand import claim as call

        return call(id, measured, **by_hand)
    if by_hand:
        raise TypeError(f"claim {id} has no {next(iter(by_hand))!r}")
    given = {"theory": theory, "at_least": at_least, "at_most": at_most, "exactly": exactly}
    if sum(value is not None for value in given.values()) != 1:
        raise ValueError(f"claim {id}: give one of {', '.join(given)}")
    if theory is not None and not unlike:
        raise ValueError(
            f"claim {id}: a theory's bounds follow from its rivals: name one in unlike"
        )
    for name, value in given.items():
        if value is not None and not callable(value):
            check.number(f"{name} of claim {id}", value)

    def judged(f: Measure) -> Measure:
        record = judge(id, f, unlike or {}, **given)  # type: ignore[arg-type]
        vars(f)["claim"] = {"record": record, "theory": theory, "unlike": dict(unlike or {})}
        _show({"text/plain": as_text(record), "text/html": as_html(record), CLAIM: record})
        return f

    return judged


def of_law(law: float | Callable[..., float], f: Measure) -> float:
    """A theory's number: itself, or what a law gives for the keywords of what is measured."""
    if not callable(law):
        return float(law)
    known, asked = defaults(f), inspect.signature(law).parameters
    if lost := [n for n, p in asked.items() if n not in known and p.default is p.empty]:
        raise TypeError(f"{law.__name__} asks for {lost[0]!r}, no keyword of {f.__name__}")
    return float(law(**{name: known[name] for name in asked if name in known}))


def defaults(f: Callable[..., Any]) -> dict[str, Any]:
    """The keywords of a function with what they are unless said otherwise."""
    parameters = inspect.signature(f).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not p.empty}


def takes(f: Measure, name: str) -> bool:
    """Whether a function can be called with this keyword."""
    parameters = inspect.signature(f).parameters
    return name in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def laws(f: Measure, theory: Any) -> Mapping[str, Callable[..., Any]]:
    """The laws that a claim names, by the keyword that holds them."""
    held = {name: value for name, value in defaults(f).items() if inspect.isfunction(value)}
    return held | ({"theory": theory} if inspect.isfunction(theory) else {})


def bounds(theory: float, rivals: list[float]) -> tuple[float, float]:
    """Halfway from the theory to the nearest rival on either side."""
    low = [(theory + r) / 2 for r in rivals if r < theory]
    high = [(theory + r) / 2 for r in rivals if r > theory]
    if not low + high:
        return math.nan, math.nan
    far = min(abs(b - theory) for b in low + high)
    return max(low, default=theory - far), min(high, default=theory + far)


def judge(
    id: str,
    f: Measure,
    unlike: Mapping[str, Rival],
    theory: float | Callable[..., float] | None,
    at_least: float | None,
    at_most: float | None,
    exactly: float | None,
) -> dict[str, Any]:
    """The record of a claim: what was predicted, measured and excluded, and the verdict."""
    got = found(f())
    faced = {}
    for name, rival in unlike.items():
        if not isinstance(rival, Mapping):
            faced[name] = (found(of_law(rival, f)), False)
            continue
        if unknown := [key for key in rival if not takes(f, key)]:
            raise TypeError(f"claim {id}, {name!r}: {f.__name__} has no parameter {unknown[0]!r}")
        faced[name] = (found(f(**rival)), True)
    expected = None if theory is None else of_law(theory, f)
    low, high = at_least, at_most
    if expected is not None:
        low, high = bounds(expected, [r.mean for r, _ in faced.values() if r.finite])
    if exactly is not None:
        scale = ROUNDING * max(1.0, abs(exactly))
        expected, low, high = exactly, exactly - scale, exactly + scale
    inside = min(
        math.inf if low is None else got.mean - low, math.inf if high is None else high - got.mean
    )
    holds = bool(got.finite and inside > 0)
    if holds and got.runs < 2 and exactly is None and not got.rounding:
        raise ValueError(f"claim {id}: one run has no spread; measure at least two")
    margin = distance(inside, got.error) if holds else None
    if expected is not None:
        predicted = simple(expected)
    else:
        predicted = f"at least {simple(low)}" if low is not None else f"at most {simple(high or 0)}"
    width = None
    if expected is not None and low is not None and high is not None and exactly is None:
        width = max(high - expected, expected - low)
    return {
        "id": id,
        "quantity": " ".join((inspect.getdoc(f) or f.__name__).split("\n\n")[0].split()).rstrip(
            "."
        ),
        "predicted": predicted,
        "measured": told(got),
        "theory": _number(expected),
        "value": _number(got.mean),
        "error": _number(got.error),
        "low": _number(low),
        "high": _number(high),
        "resolution": _number(width),
        "margin": rounded(margin),
        "seeds": got.runs,
        "finite": got.finite,
        "verdict": "holds" if holds else "fails",
        "laws": sorted(law.__name__ for law in laws(f, theory).values()),
        "rivals": [
            _rival(name, rival, measured, got.error, low, high)
            for name, (rival, measured) in faced.items()
        ],
    }


def _number(x: float | None) -> float | None:
    """A number as a record stores it: four digits, nothing below rounding."""
    if x is None or not math.isfinite(x):
        return None
    return 0.0 if abs(x) < ROUNDING else float(f"{x:.4g}")


def told(got: Found) -> str:
    """A measured mean and its spread over runs."""
    if got.rounding:
        return "0 to rounding"
    return number(got.mean) + (f" ± {number(got.spread, 2)}" if got.runs > 1 and got.spread else "")


def outside(
    got: Found, error: float, low: float | None, high: float | None
) -> tuple[float | None, bool]:
    """How far a rival lies outside the bounds, and whether that is enough.

    Values over runs have a spread of their own; a number is held against the measured one.
    """
    error = got.error if got.runs > 1 else error
    gap = max(
        -math.inf if low is None else low - got.mean, -math.inf if high is None else got.mean - high
    )
    margin = distance(gap, error)
    return margin, bool(got.finite and gap > 0 and (margin is None or margin >= EXCLUDED))


def _rival(
    name: str, got: Found, measured: bool, error: float, low: float | None, high: float | None
) -> dict[str, Any]:
    margin, excluded = outside(got, error, low, high)
    value = _number(got.mean) if got.finite else None
    return {
        "name": name,
        "value": value,
        "margin": rounded(margin),
        "excluded": excluded,
        "measured": measured,
    }


def between(record: Mapping[str, Any]) -> str:
    """The bounds of a claim in words."""
    low, high = (None if record[k] is None else number(record[k]) for k in ("low", "high"))
    if low is not None and high is not None:
        return f"between {low} and {high}"
    if low is None and high is None:
        return "apart from its rivals, none of which gives a number"
    return f"at least {low}" if low is not None else f"at most {high}"


def apart(record: Mapping[str, Any]) -> str:
    """How near a wrong theory may come and still be told from this one."""
    if record["resolution"] is None:
        return ""
    width = number(record["resolution"], 2)
    return f"tells {record['predicted']} from anything farther than ± {width}"


def lines(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """A record in words, line by line."""
    rows = [
        ("predicted", record["predicted"]),
        ("measured", f"{record['quantity']}: {record['measured']}"),
        ("must be", between(record)),
        ("margin", words(record["margin"]) if record["verdict"] == "holds" else "none"),
        ("runs", str(record["seeds"])),
    ]
    rows += [("resolution", apart(record))] if record["resolution"] else []
    for rival in record["rivals"]:
        far = words(rival["margin"]) + " outside" if rival["excluded"] else "NOT EXCLUDED"
        value = "not finite" if rival["value"] is None else number(rival["value"])
        rows.append(("rival", f"{rival['name']}: {value}, {far}"))
    return rows


def short(record: Mapping[str, Any]) -> list[str]:
    """A record in one line: quantity, value, theory, and the nearest rival that it excludes."""
    parts = [f"{record['quantity']}: ", record["measured"], f" · predicted {record['predicted']}"]
    if excluded := [r for r in record["rivals"] if r["excluded"] and r["value"] is not None]:
        to = next(record[k] for k in ("theory", "low", "high") if record[k] is not None)
        nearest = min(excluded, key=lambda r: abs(r["value"] - to))
        parts.append(f" · not {number(nearest['value'])} ({nearest['name']})")
    return parts


def as_text(record: Mapping[str, Any]) -> str:
    """What is printed outside of a notebook."""
    rows = "\n".join(f"  {name:<11}{said}" for name, said in lines(record))
    return f"{record['id']}: {record['verdict'].upper()}\n{rows}"


def as_html(record: Mapping[str, Any]) -> str:
    """One line that unfolds to all rows."""
    return box(record["id"], record["verdict"], "", short(record), lines(record))


def box(id: str, verdict: str, kind: str, short: list[str], rows: list[tuple[str, str]]) -> str:
    """One line, with the nearest rival, that unfolds to all rows.

    Its own style is for readers without the book's.
    """
    colour, sign = ("#2a8f55", "✓") if verdict == "holds" else ("#c8452f", "✗ fails:")
    style = f"border:1px solid {colour};border-left-width:5px;border-radius:6px;"
    name, found, *rest = (markup(part) for part in short)
    line = f"<strong>{sign}</strong> {name}<b>{found}</b>{''.join(rest)}"
    parts = [("claim", f"<code>{id}</code> {f'{kind}, ' if kind else ''}{verdict}")]
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
    named("exercise", id)
    text = f"{id}: " + ("correct." if passed else f"not yet. {hint}")
    _show({"text/plain": text, EXERCISE: {"id": id, "passed": bool(passed)}})
