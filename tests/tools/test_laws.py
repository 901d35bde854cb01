"""A law is changed at every place, and a claim that notices none of it is told."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

from fltutils.claims import claim
from fltutils.grid import over
from tools import laws, margins
from tools.readers import read_json

Law = Callable[..., Any]
D = xr.DataArray([100.0, 400.0, 1600.0], dims="d")
NOISE = 0.01 * np.random.default_rng(0).standard_normal(20)


def said(law: Law) -> set[str]:
    """The changes of a law, in words."""
    return {words for words, _ in laws.changes(law)}


def power(d: Any) -> Any:
    return 3 * d**0.5


def ratio(n: float, d: float) -> float:
    return (n - 1) / d


def decay(t: float) -> float:
    return 1 / t


def root(x: Any) -> Any:
    return np.sqrt(x) + x.sqrt()


def cut(x: Any, y: Any) -> Any:
    return np.where(x > y, x, y) if x else max(x, y)


def kept(x: Any) -> Any:
    return x.clip(0.25, 4) + torch.relu(x) + np.clip(x, 0, 1) + x.where(x > 0)


def guarded(x: float) -> float:
    if x > 0 and x != 5:
        return x
    return 0


def numbers_of_a_grid(x: Any) -> Any:
    return np.linspace(0, 1, 5) + np.sum(x + 7, 1) + x.mean(2) + x[3] + f(x, k=6) + (x > 0) * True


def f(x: Any, k: int) -> Any:
    return x


@pytest.mark.parametrize(
    ("law", "found"),
    [
        (power, {"3 * d ** 0.5 → 3", "3 * d ** 0.5 → d ** 0.5", "3 → 6", "3 → 1.5",
                 "d ** 0.5 → d ** (0.5 + 0.5)", "d ** 0.5 → d ** (0.5 - 0.5)"}),
        (ratio, {"(n - 1) / d → n - 1", "(n - 1) / d → 1.0 / d", "n - 1 → n", "n - 1 → -1",
                 "1 → 2", "1 → 0.5", "n and d exchanged"}),
        (decay, {"1 / t → 1", "1 → 2", "1 → 0.5"}),
        (root, {"np.sqrt(x) + x.sqrt() → np.sqrt(x)", "np.sqrt(x) + x.sqrt() → x.sqrt()",
                "np.sqrt(x) → x", "x.sqrt() → x"}),
        (cut, {"np.where(x > y, x, y) → x", "np.where(x > y, x, y) → y", "max(x, y) → x",
               "max(x, y) → y",
               "np.where(x > y, x, y) if x else max(x, y) → np.where(x > y, x, y)",
               "np.where(x > y, x, y) if x else max(x, y) → max(x, y)"}),
        (guarded, {"if x > 0 and x != 5: return x → if True: return x",
                   "if x > 0 and x != 5: return x → if False: return x",
                   "x > 0 and x != 5 → x > 0", "x > 0 and x != 5 → x != 5", "5 → 10", "5 → 2.5"}),
    ],
)  # fmt: skip
def test_each_kind_of_change(law: Law, found: set[str]) -> None:
    assert said(law) == found


@pytest.mark.parametrize(
    "bounded", ["x.clip(0.25, 4)", "torch.relu(x)", "np.clip(x, 0, 1)", "x.where(x > 0)"]
)
def test_a_bound_is_a_condition(bounded: str) -> None:
    assert f"{bounded} → x" in said(kept)


def test_what_says_how_to_compute_is_no_part_of_a_law() -> None:
    constants = {words for words in said(numbers_of_a_grid) if words[0].isdigit()}
    assert constants == {"7 → 14", "7 → 3.5"}


def test_a_change_is_a_function_in_the_place_of_the_law() -> None:
    changed = {words: laws.made(power, tree)(4.0) for words, tree in laws.changes(power)}
    assert changed["3 → 6"] == 12
    assert changed["d ** 0.5 → d ** (0.5 + 0.5)"] == 12
    assert changed["3 * d ** 0.5 → 3"] == 3
    assert power(4.0) == 6


def product(n: Any, m: Any) -> Any:
    return n * m


def overlap(c: Any, M: Any, spread: Any) -> Any:
    return c * M * (1 / spread).sum("sample")


def turned(t: Any, x: Any) -> Any:
    return torch.stack([t + x, t * x])


def late(n: float, m: float, t: float) -> Any:
    return n * m * np.log(t - 2)  # no number near one


RUNS = xr.DataArray([1.0, 2.0], dims="run")
TABLES = {
    "c": D,
    "M": RUNS,
    "spread": xr.DataArray([[1.0, 5.0], [2.0, 3.0]], dims=("run", "sample")),
}


@pytest.mark.parametrize(
    ("law", "given", "pairs"),
    [
        (product, {}, set()),
        (product, {"n": D, "m": RUNS}, set()),
        (product, {"n": 50, "m": 10}, set()),
        (ratio, {"n": 50, "d": 50}, {"n and d"}),
        (overlap, TABLES, {"c and spread", "M and spread"}),
        (overlap, {}, {"c and M", "c and spread", "M and spread"}),  # nothing is known of them
        (late, {"n": 3.0, "m": 4.0, "t": 9.0}, {"n and t", "m and t"}),
        (turned, {"t": torch.ones(3), "x": torch.ones(3)}, set()),
    ],
)
def test_symmetric_arguments_exchanged_are_no_change(
    law: Law, given: dict[str, Any], pairs: set[str]
) -> None:
    found = [words for words, _ in laws.changes(law, [given] if given else [])]
    assert {words.removesuffix(" exchanged") for words in found if "exchanged" in words} == pairs


def square_root(d: Any) -> Any:
    return d**0.5


def with_idle_term(d: Any) -> Any:
    return d**0.5 + 1e-9


def product_of_tables(d: Any, scale: Any) -> Any:
    return (d * scale).sum("d")


def not_a_number(d: Any) -> Any:
    return np.log(d - 60.0)


def exponent(law: Law) -> xr.DataArray:
    """Exponent of d in what was measured, d^(1/2), over the law."""
    gap = np.polyfit(np.log(D), np.log(D**0.5 / law(D)), 1)[0]
    return xr.DataArray(gap + NOISE, dims="run")


def space(law: Law, rivals: dict[str, float]) -> dict[str, Any]:
    """A chapter of one law, whose exponent must be near zero, halfway to its rivals."""

    @claim("tiny.exponent", theory=0, unlike=rivals)
    def off(law: Law = law) -> xr.DataArray:
        """Exponent in d that is left."""
        return exponent(law)

    return {"off": off, "law": law}


def test_a_sharp_claim_notices_what_it_measures_and_no_more() -> None:
    found = laws.tried(space(power, {"no growth": 0.5, "d": -0.5}))
    assert found["laws"] == {"power": {"tried": 6, "told": 3, "void": 0}}
    untold = ["power: 3 * d ** 0.5 → d ** 0.5", "power: 3 → 6", "power: 3 → 1.5"]
    assert found["untold"] == {"tiny.exponent": untold}


def test_an_idle_term_is_told() -> None:
    found = laws.tried(space(with_idle_term, {"no growth": 0.5, "d": -0.5}))
    idle = "with_idle_term: d ** 0.5 + 1e-09 → d ** 0.5"
    assert idle in found["untold"]["tiny.exponent"]


def test_a_claim_that_is_too_wide_is_told() -> None:
    """Its rivals are far off, so that half a power of d lies within its bounds."""
    assert laws.tried(space(square_root, {"d": -0.5, "no growth": 0.5}))["untold"] == {}
    wide = laws.tried(space(square_root, {"d^3": -2.5, "d^(-2)": 2.5}))
    moved = [f"square_root: d ** 0.5 → d ** (0.5 {sign} 0.5)" for sign in "+-"]
    assert wide["untold"] == {"tiny.exponent": moved}
    assert wide["laws"] == {"square_root": {"tried": 2, "told": 0, "void": 0}}


def test_exchanged_tables_are_tried_where_a_claim_calls_the_law() -> None:
    @claim("tiny.product", theory=42.0, unlike={"half": 21.0})
    def total(law: Law = product_of_tables) -> xr.DataArray:
        """Sum of products."""
        return law(D / 100, 2 * xr.ones_like(D)) + xr.DataArray(NOISE, dims="run")

    found = laws.tried({"total": total})
    assert found["laws"]["product_of_tables"] == {"tried": 2, "told": 2, "void": 0}
    assert found["untold"] == {}


def test_what_gives_no_number_is_not_noticed() -> None:
    found = laws.tried(space(not_a_number, {"far below": -9.0, "far above": 9.0}))
    tried = {words for words, _ in laws.changes(not_a_number)}
    assert {"60.0 → 120.0", "d - 60.0 → -60.0"} < tried  # the logarithm of what is below zero
    counts = found["laws"]["not_a_number"]
    assert counts["void"] == 2
    assert counts["tried"] == len(tried) - 2
    assert not any("120" in line for line in found["untold"]["tiny.exponent"])


def test_a_law_is_noticed_by_the_theory_of_a_claim_and_by_a_table_that_is_kept() -> None:
    calls, both = [], {"d": 4.0, "one": 1.0}

    def predicted(law: Law, run: int) -> float:
        calls.append(law)
        return float(law(4.0) + NOISE[run])

    @claim("tiny.theory", theory=square_root, unlike=both)
    def measured(d: float = 4.0) -> Any:
        """The square root of d."""
        return over(predicted, runs=20, law=square_root)

    @claim("tiny.law", theory=2, unlike=both)
    def computed(law: Law = square_root) -> Any:
        """The square root of four."""
        return over(predicted, runs=20, law=law)

    found = laws.tried({"measured": measured, "computed": computed})
    assert found == {"laws": {"square_root": {"tried": 2, "told": 2, "void": 0}}, "untold": {}}
    assert sum(law is square_root for law in calls) == 20


def test_a_claim_that_fails_says_nothing_of_its_law() -> None:
    wrong = space(decay, {"no growth": 0.5, "d": -0.5})
    assert wrong["off"].claim["record"]["verdict"] == "fails"
    assert laws.tried(wrong) == {"laws": {}, "untold": {}}


def test_a_claim_that_refuses_its_own_law_anew_is_an_error() -> None:
    before = []

    @claim("tiny.fickle", theory=2, unlike={"d": 4.0})
    def fickle(law: Law = square_root) -> Any:
        """What is right once."""
        before.append(law)
        return law(4.0) * len(before) + NOISE

    with pytest.raises(laws.ToolError, match="claims of square_root refuse it unchanged"):
        laws.tried({"fickle": fickle})


def entry(**counts: int) -> dict[str, Any]:
    """What is stored of a chapter with one law."""
    untold = {"tiny.one": ["half: x / 2 → x"]}
    return {"code": "x", "laws": {"half": {"void": 0} | counts}, "untold": untold}


def test_a_low_score_is_red_and_names_what_no_claim_notices() -> None:
    assert laws.weak({"tide": entry(tried=10, told=9), "wave": {"laws": {}, "untold": {}}}) == []
    (told,) = laws.weak({"tide": entry(tried=10, told=8)})
    assert told.startswith("book/tide.md: 0.80 of the changes are noticed, at least 0.9; no claim")
    assert told.endswith("\n  tiny.one: half: x / 2 → x")


def test_a_law_that_nothing_tried_is_red() -> None:
    mute = {"laws": {"half": entry(tried=9, told=9)["laws"]["half"]}, "untold": {}}
    mute["laws"]["bare"] = {"tried": 0, "told": 0, "void": 0}
    assert laws.weak({"tide": mute}) == []
    mute["laws"]["bare"]["void"] = 4
    (told,) = laws.weak({"tide": mute})
    assert told == "book/tide.md: no change of bare gives a number: can its claims call it alone?"


def test_the_score_counts_changes_and_not_laws() -> None:
    both = [entry(tried=30, told=30), entry(tried=10, told=6)]
    assert laws.score(both) == 0.9
    assert laws.score([]) == 0


PAGE = """---
jupytext:
  text_representation:
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# Tide

```{claim} tide.half
:kind: own

It is half.
```

```{code-cell} python
:tags: [parameters]

seed = 0
```

```{code-cell} python
from fltutils.claims import claim


def half(x):
    return x / 2


@claim("tide.half", theory=2, unlike={"more": 2 + FAR, "less": 2 - FAR})
def value(law=half):
    return [law(4.0) + error for error in (0.01, -0.01)]
```

```{code-cell} python
:tags: [exercise]

raise NotImplementedError
```
"""


def planted(root: Path, far: float) -> Path:
    """A book of one chapter, whose claim has bounds halfway to rivals this far off."""
    (root / "book").mkdir(exist_ok=True)
    (root / "_toc.yml").write_text("format: jb-book\nroot: tide.md\n")
    (root / "book/claims.toml").write_text("")
    (root / "book/tide.md").write_text(PAGE.replace("FAR", str(far)))
    return root


@pytest.mark.slow
def test_a_changed_chapter_is_tried_again_and_what_no_claim_notices_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(planted(tmp_path, 1.0))
    assert laws.stale(tmp_path) == ["tide"]
    assert laws.main(["--jobs", "1"]) == 0
    assert "tide: half 4/4; score 1.00" in capsys.readouterr().out
    assert read_json(tmp_path / laws.STORE)["tide"]["code"] == margins.form(tmp_path, "tide")
    assert laws.stale(tmp_path) == []

    planted(tmp_path, 20.0)
    assert laws.stale(tmp_path) == ["tide"]
    assert laws.main(["--jobs", "1"]) == 1
    told = capsys.readouterr().out
    assert "book/tide.md: 0.00 of the changes are noticed, at least 0.9; no claim notices" in told
    assert "\n  tide.half: half: x / 2 → x\n  tide.half: half: x / 2 → 1.0 / 2\n" in told

    assert laws.stale(tmp_path) == []
    assert laws.main(["--jobs", "1"]) == 1, "a low score stays red"
    assert "score 0.00" not in capsys.readouterr().out
    assert laws.main(["--all", "--jobs", "1"]) == 1
    assert "tide: half 0/4; score 0.00" in capsys.readouterr().out
