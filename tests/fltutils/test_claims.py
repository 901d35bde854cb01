"""A claim's verdict, margin and record; glue in myst-nb's own format; exercises."""

import builtins
import json
import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fltutils import claims

Shown = list[tuple[dict[str, Any], dict[str, Any]]]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """What is displayed, bundle and metadata."""
    outputs: Shown = []

    def display(bundle: dict[str, Any], *, raw: bool, metadata: dict[str, Any]) -> None:
        assert raw
        outputs.append((bundle, metadata))

    monkeypatch.setattr(builtins, "display", display, raising=False)
    return outputs


def evaluate(shown: Shown, measured: Any, **bounds: Any) -> dict[str, Any]:
    """The record of one claim."""
    claims.claim("a.b", measured, quantity="size", predicted="<2 & more", **bounds)
    ((bundle, metadata),) = shown
    shown.clear()
    record: dict[str, Any] = bundle[claims.CLAIM]
    assert metadata == {}
    assert set(bundle) == {"text/plain", "text/html", claims.CLAIM}
    assert bundle["text/plain"].startswith(f"a.b: {record['verdict'].upper()} (theorem)\n")
    assert f'class="claim {record["verdict"]}" id="claim-a.b"' in bundle["text/html"]
    json.dumps(record, allow_nan=False)
    return record


def test_the_record_of_a_claim(shown: Shown) -> None:
    assert evaluate(shown, [1.0, 1.2, 1.1, 0.9], above=0.5, below=2) == {
        "id": "a.b",
        "kind": "theorem",
        "predicted": "<2 & more",
        "measured": "size: 1.05 ± 0.13",
        "bound": "above 0.500 and below 2.00",
        "margin": 8.52,  # (1.05 - 0.5) / (0.1291 / 2)
        "seeds": 4,
        "finite": True,
        "verdict": "holds",
        "rivals": [],
    }


def test_the_types_are_those_that_the_tools_read() -> None:
    assert claims.CLAIM == "application/vnd.fltutils.claim+json"
    assert claims.EXERCISE == "application/vnd.fltutils.exercise+json"


def test_what_a_reader_sees(shown: Shown) -> None:
    claims.claim("a.b", [1.0, 3.0], above=1, quantity="size", predicted="<2 & more")
    ((bundle, _),) = shown
    assert bundle["text/plain"].splitlines() == [
        "a.b: HOLDS (theorem)",
        "  predicted <2 & more",
        "  measured  size: 2.00 ± 1.4",
        "  must be   above 1.00",
        "  margin    1.0 standard errors",
        "  runs      2",
    ]
    assert bundle["text/html"].startswith('<details class="claim holds" id="claim-a.b" style="')
    line = "<strong>✓</strong> size: <b>2.00\xa0±\xa01.4</b> · predicted &lt;2 &amp; more"
    assert f"<summary>{line}</summary>" in bundle["text/html"]
    assert "<code>a.b</code> theorem, holds</dd>" in bundle["text/html"]


def test_what_a_reader_sees_of_a_claim_that_fails(shown: Shown) -> None:
    claims.claim("a.b", [1.0, 3.0], below=1.5, quantity="size", predicted="a < b")
    ((bundle, _),) = shown
    assert bundle["text/plain"].splitlines()[0::4] == ["a.b: FAILS (theorem)", "  margin    none"]
    box = re.sub(r' style="[^"]*"', "", bundle["text/html"])
    rows = ("claim", "<code>a.b</code> theorem, fails"), ("predicted", "a &lt; <i>b</i>")
    rows += ("measured", "size: 2.00\xa0±\xa01.4"), ("must be", "below 1.50")
    cells = [f"<div><dt>{k}</dt><dd>{v}</dd></div>" for k, v in (*rows, ("margin", "none"))]
    assert box == (
        '<details class="claim fails" id="claim-a.b"><summary><strong>✗ fails:</strong> size: '
        "<b>2.00\xa0±\xa01.4</b> · predicted a &lt; <i>b</i></summary>"
        f"<dl>{''.join(cells)}<div><dt>runs</dt><dd>2</dd></div></dl></details>"
    )


def test_the_line_of_a_claim_names_the_nearest_rival_that_it_excludes(shown: Shown) -> None:
    rivals = {"in": 1.0, "a": 0.5, "also": 0.5, "b": 0.4, "c": -1e-7, "d": 0.2}
    claims.claim("a.b", [0.9, 1.1], above=0.92, quantity="n^2", predicted="1", rivals=rivals)
    ((bundle, _),) = shown
    assert " · not 0.500 (a)</summary>" in bundle["text/html"]


def rival(shown: Shown, value: Any, measured: Any = (0.9, 1.1), **bounds: Any) -> dict[str, Any]:
    """The record of a claim's one rival."""
    (found,) = evaluate(shown, measured, rivals={"a half": value}, **bounds)["rivals"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("value", "bounds", "margin", "excluded"),
    [
        (0.5, {"above": 0.91}, 4.1, True),  # (0.91 - 0.5) / 0.1, the error of the measured mean
        (0.5, {"above": 0.89}, 3.9, False),
        (1.5, {"below": 1.09}, 4.1, True),
        (1.5, {"below": 1.11}, 3.9, False),
        (0.5, {"above": 0.91, "below": 1.2}, 4.1, True),
        (0.5, {"below": 2.0}, None, False),
        (0.9, {"above": 0.9}, None, False),
        (1.0, {"above": 0.9, "below": 1.2}, None, False),
        ([0.4, 0.6], {"above": 0.91}, 4.1, True),  # its own error, also 0.1
        ([0.3, 0.7], {"above": 0.91}, 2.05, False),
        ([0.5, 0.5], {"above": 0.51}, None, True),
        (math.nan, {"above": 0.5}, None, False),
        ([0.1, math.inf], {"above": 0.5}, None, False),
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_rival_lies_outside_the_bounds_or_is_not_excluded(
    shown: Shown, value: Any, bounds: dict[str, float], margin: float | None, excluded: bool
) -> None:
    found = rival(shown, value, **bounds)
    assert (found["name"], found["margin"], found["excluded"]) == ("a half", margin, excluded)
    mean = float(np.mean(value))
    assert found["value"] == (pytest.approx(mean) if math.isfinite(mean) else None)


def test_where_all_runs_agree_any_gap_excludes_a_rival(shown: Shown) -> None:
    assert rival(shown, 0.5, measured=[1.0, 1.0], above=0.51)["excluded"] is True
    assert rival(shown, 0.5, measured=[1e-14, 2e-14], below=0.1)["excluded"] is True
    assert rival(shown, 1e-14, measured=[1.0, 1.1], above=0.1)["value"] == 0.0


def test_a_reader_sees_kind_and_rivals(shown: Shown) -> None:
    rivals = {"a half": 0.5, "one <b>": 1.0, "nothing": math.nan, "far": [-1, -1.00001]}
    given = {"quantity": "size", "predicted": "1", "kind": "own", "rivals": rivals}
    claims.claim("a.b", [0.9, 1.1], above=0.8, **given)
    ((bundle, _),) = shown
    assert bundle["text/plain"].splitlines()[0] == "a.b: HOLDS (own)"
    assert bundle["text/plain"].splitlines()[6:] == [
        "  rival     a half: 0.500, NOT EXCLUDED",
        "  rival     one <b>: 1.00, NOT EXCLUDED",
        "  rival     nothing: not finite, NOT EXCLUDED",
        "  rival     far: −1.00, over 1000 standard errors outside",
    ]
    assert "one &lt;<i>b</i>&gt;: 1.00, NOT EXCLUDED</dd>" in bundle["text/html"]
    assert "</code> own, holds</dd>" in bundle["text/html"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kind": "law"}, "kind = 'law': kind must be one of"),
        ({"rivals": {"": 1.0}}, "claim a.b: rival '' = 1.0 needs a name and a value"),
        ({"rivals": {"none": []}}, "claim a.b: rival 'none' = [] needs a name and a value"),
    ],
)
def test_kinds_and_rivals_are_checked(shown: Shown, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        evaluate(shown, [1.0, 1.0], above=0.0, **given)


@settings(max_examples=100)
@given(
    st.lists(st.floats(-100, 100), min_size=2, max_size=6),
    st.floats(-100, 99),
    st.floats(0.001, 100),
)
def test_a_verdict_is_about_the_mean(values: list[float], low: float, width: float) -> None:
    high = low + width
    shown: Shown = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            builtins, "display", lambda b, raw, metadata: shown.append((b, metadata)), raising=False
        )
        record = evaluate(shown, values, above=low, below=high)
    mean = float(np.mean(values))
    assert (record["verdict"] == "holds") == (low < mean < high)
    if record["margin"] is not None:
        assert record["verdict"] == "holds"
        error = np.std(values, ddof=1) / math.sqrt(len(values))
        margin = min(mean - low, high - mean) / error
        assert record["margin"] == pytest.approx(min(margin, claims.FAR), rel=6e-3)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.filterwarnings("error")
def test_one_value_that_is_not_finite_fails_the_claim(shown: Shown, value: float) -> None:
    for bounds in ({"above": -1.0}, {"below": 1.0}, {"above": -1.0, "below": 1.0}):
        record = evaluate(shown, [0.0, 0.1, value], **bounds)
        assert record["verdict"] == "fails"
        assert record["margin"] is None
        assert record["finite"] is False


@pytest.mark.filterwarnings("error")
def test_no_run_proves_nothing(shown: Shown) -> None:
    for measured in ([], np.zeros((0, 3))):
        record = evaluate(shown, measured, above=-1.0)
        assert (record["verdict"], record["seeds"], record["finite"]) == ("fails", 0, False)
        assert record["measured"] == "size: nan"


def test_one_run_proves_nothing_unless_at_rounding_level(shown: Shown) -> None:
    with pytest.raises(ValueError, match=re.escape("claim a.b: one run has no spread")):
        claims.claim("a.b", [0.001], above=0, quantity="", predicted="")
    with pytest.raises(ValueError, match=re.escape("claim a.b: one run has no spread")):
        claims.claim("a.b", claims.ROUNDING, above=0, quantity="", predicted="")
    assert shown == []
    record = evaluate(shown, [-1.0], above=0)  # a mutant's single run
    assert (record["verdict"], record["measured"]) == ("fails", "size: −1.00")
    assert evaluate(shown, [1e-14], below=0.1)["verdict"] == "holds"


def test_the_bound_itself_is_not_enough(shown: Shown) -> None:
    assert evaluate(shown, [1.0, 1.0], above=1.0)["verdict"] == "fails"
    assert evaluate(shown, [1.0, 1.0], below=1.0)["verdict"] == "fails"


def test_runs_that_agree_have_no_margin(shown: Shown) -> None:
    for measured in ([2.0, 2.0], torch.full((3,), 2.0)):
        record = evaluate(shown, measured, above=1.0)
        assert (record["verdict"], record["margin"]) == ("holds", None)
    assert record["seeds"] == 3
    assert record["measured"] == "size: 2.00 ± 0"


def test_margins_that_are_far_are_not_told_apart(shown: Shown) -> None:
    for tiny in (1e-9, 1e-11):
        claims.claim("a.b", [1.0, 1.0 + tiny], above=0.0, quantity="size", predicted="")
        ((bundle, _),) = shown
        shown.clear()
        assert bundle[claims.CLAIM]["margin"] == 1000
        assert "over 1000 standard errors" in bundle["text/plain"]


def test_rounding_errors_are_not_printed(shown: Shown) -> None:
    """Their digits depend on the processor."""
    record = evaluate(shown, [3e-15, -2e-16, 8e-16], below=1e-10)
    assert (record["measured"], record["margin"]) == ("size: 0 to rounding", None)
    assert record["verdict"] == "holds"
    assert "rounding" not in evaluate(shown, [3e-11, 1e-15], below=1e-10)["measured"]
    for values, text in (
        ([1e-12, -1e-15], "5.0×10⁻¹³ ± 7×10⁻¹³"), ([9.9e-13, -9.9e-13], "0 to rounding"),
    ):  # fmt: skip
        assert evaluate(shown, values, below=1e-10)["measured"] == f"size: {text}"


def test_values_of_any_shape_count_one_by_one(shown: Shown) -> None:
    record = evaluate(shown, torch.tensor([[1.0, 2.0], [3.0, 4.0]]), above=0.0)
    assert (record["seeds"], record["measured"]) == (4, "size: 2.50 ± 1.3")


@pytest.mark.parametrize(
    ("id", "bounds", "message"),
    [
        ("a.b", {}, "claim a.b: give a bound, above or below, or both"),
        ("a.b", {"above": math.nan}, "above of claim a.b = nan: above of claim a.b must be finite"),
        ("a.b", {"below": "2 m"}, "below of claim a.b = '2 m': below of claim a.b must be finite"),
        ("a.b", {"above": 2, "below": 1}, "claim a.b: above = 2 must be less than below = 1"),
        ("a.b", {"above": 1, "below": 1}, "claim a.b: above = 1 must be less than below = 1"),
        ("", {"above": 1}, "claim id = '': id must be lower-case words with dots between them"),
        ("a", {"above": 1}, "claim id = 'a': id must be"),
        ("a.b c", {"above": 1}, "claim id = 'a.b c': id must be"),
        ("a.<b>", {"above": 1}, "claim id = 'a.<b>': id must be"),
    ],
)
def test_a_claim_that_says_nothing_is_an_error(
    shown: Shown, id: str, bounds: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        claims.claim(id, [1.0, 2.0], **bounds, quantity="", predicted="")
    assert shown == []


def test_an_exercise_needs_a_name(shown: Shown) -> None:
    with pytest.raises(ValueError, match="exercise id = '': id must be"):
        claims.exercise("", True, "")
    assert shown == []


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (0.0, "0"), (1e-4, "0.000100"), (1.0, "1.00"), (0.12345, "0.123"), (-0.12345, "−0.123"),
        (12.345, "12.3"),
        (999.9, "1000"), (12345.0, "12300"), (math.nan, "nan"), (-math.inf, "-inf"),
    ],
)  # fmt: skip
def test_numbers_as_prose_writes_them(x: float, text: str) -> None:
    assert claims.number(x) == text


@given(st.floats(1e-4, 1e5, exclude_max=True), st.integers(2, 4))
def test_a_number_is_near_what_it_stands_for(x: float, digits: int) -> None:
    assert float(claims.number(x, digits)) == pytest.approx(x, rel=5.01 * 10.0**-digits)
    assert claims.number(-x, digits) == f"−{claims.number(x, digits)}"


def test_small_and_large_numbers_are_written_with_a_power() -> None:
    assert claims.number(1.26e-7, 3) == "1.3×10⁻⁷"
    assert claims.number(-123456.0, 3) == "−1.2×10⁵"


@pytest.mark.parametrize(
    ("value", "text"),
    [("0.42", "0.42"), ("6e+10", "6×10¹⁰"), (0.4242, "0.424"), (torch.tensor(2.0), "2.00")],
)
def test_glue_says_what_prose_quotes(shown: Shown, value: Any, text: str) -> None:
    claims.glue("error", value)
    assert shown == [
        (
            {"application/papermill.record/text/plain": repr(text)},
            {"scrapbook": {"name": "error", "mime_prefix": "application/papermill.record/"}},
        )
    ]


@pytest.fixture
def ipython(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """An IPython shell of our own, that leaves nothing behind."""
    from IPython.core.interactiveshell import InteractiveShell

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    hook = sys.displayhook
    InteractiveShell.instance()
    yield
    InteractiveShell.clear_instance()
    sys.displayhook = hook


@pytest.mark.usefixtures("ipython")
def test_glue_emits_what_myst_nb_emits(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    import myst_nb.ext.glue as theirs

    emitted: Shown = []
    monkeypatch.setattr(
        theirs, "ipy_display", lambda b, raw, metadata: emitted.append((b, metadata))
    )
    theirs.glue("error", "0.42", display=False)
    claims.glue("error", "0.42")
    assert shown == emitted


@pytest.mark.parametrize("passed", [True, np.True_, False])
def test_an_exercise_says_what_its_checker_found(shown: Shown, passed: bool) -> None:
    claims.exercise("a.mine", passed, "Think again.")
    ((bundle, _),) = shown
    assert bundle == {
        "text/plain": "a.mine: correct." if passed else "a.mine: not yet. Think again.",
        claims.EXERCISE: {"id": "a.mine", "passed": bool(passed)},
    }
    assert type(bundle[claims.EXERCISE]["passed"]) is bool  # or JSON refuses it


def test_outside_jupyter_the_text_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delattr(builtins, "display", raising=False)
    claims.claim("a.b", [2.0, 2.0], above=1, quantity="size", predicted="2")
    claims.exercise("a.mine", True, "")
    claims.glue("silent", 1.0)
    out = capsys.readouterr().out
    assert out.startswith("a.b: HOLDS (theorem)\n")
    assert out.endswith("a.mine: correct.\n")
