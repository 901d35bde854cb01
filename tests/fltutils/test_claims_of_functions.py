"""A claim on what a function measures: its bounds follow from theories, and so does its verdict."""

import builtins
import json
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from fltutils import claims

NAN, INF = math.nan, math.inf
Shown = list[dict[str, Any]]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """The bundles that are displayed."""
    outputs: Shown = []

    def display(bundle: dict[str, Any], raw: bool, metadata: dict[str, Any]) -> None:
        outputs.append(bundle)

    monkeypatch.setattr(builtins, "display", display, raising=False)
    return outputs


def gives(values: Any) -> Callable[..., Any]:
    """An experiment that gives these values, or others that it is told."""

    def size(values: Any = values) -> Any:
        """Size of a thing."""
        return values

    return size


def record(values: Any, **given: Any) -> dict[str, Any]:
    """The record of a claim on these values."""
    made = vars(claims.claim("a.b", **given)(gives(values)))["claim"]["record"]
    json.dumps(made, allow_nan=False)
    return dict(made)


def around(mean: float, error: float = 0.1) -> list[float]:
    """Two values with this mean, and this standard error of it."""
    return [mean - error, mean + error]


@pytest.mark.parametrize(
    ("theory", "rivals", "bounds"),
    [
        (1.0, [2.0], (0.5, 1.5)),  # as far on the other side
        (1.0, [0.0], (0.5, 1.5)),
        (1.0, [2.0, 0.8], (0.9, 1.5)),
        (1.0, [3.0, 2.0, 0.0, 0.8, -5.0], (0.9, 1.5)),  # the nearest on either side
        (-1 / 3, [-1 / 4, -1 / 2], (-5 / 12, -7 / 24)),
        (1.0, [1.0, 2.0], (0.5, 1.5)),  # what says the same sets no bound
        (0.0, [1e-3], (-5e-4, 5e-4)),
    ],
)
def test_bounds_lie_halfway_to_the_nearest_rival_on_either_side(
    theory: float, rivals: list[float], bounds: tuple[float, float]
) -> None:
    assert claims.bounds(theory, rivals) == pytest.approx(bounds)


@given(st.floats(-10, 10), st.lists(st.floats(-10, 10), min_size=1, max_size=5))
def test_a_theory_lies_inside_its_bounds_and_a_rival_outside(
    theory: float, rivals: list[float]
) -> None:
    low, high = claims.bounds(theory, rivals)
    if set(rivals) == {theory}:
        assert math.isnan(low)
        assert math.isnan(high)
    else:
        assert low <= theory <= high
        assert all(rival <= low or rival >= high for rival in rivals if rival != theory)


@pytest.mark.usefixtures("shown")
def test_the_record_of_a_claim() -> None:
    unlike = {"twice": 2.0, "measured": {"values": around(0.1)}}
    assert record(around(1.0, 0.01), theory=1, unlike=unlike) == {
        "id": "a.b",
        "quantity": "Size of a thing",
        "predicted": "1",
        "measured": "1.00 ± 0.014",
        "theory": 1.0,
        "value": 1.0,
        "error": 0.01,
        "low": 0.55,
        "high": 1.5,
        "resolution": 0.5,
        "margin": 45.0,
        "seeds": 2,
        "finite": True,
        "verdict": "holds",
        "laws": [],
        "rivals": [
            {"name": "twice", "value": 2.0, "margin": 50.0, "excluded": True, "measured": False},
            {"name": "measured", "value": 0.1, "margin": 4.5, "excluded": True, "measured": True},
        ],
    }


@pytest.mark.usefixtures("shown")
@pytest.mark.parametrize(
    ("given", "inside", "outside", "predicted", "ends"),
    [
        ({"at_least": 0.24}, 0.25, 0.24, "at least 0.240", (0.24, None)),
        ({"at_most": 0.06}, 0.05, 0.06, "at most 0.0600", (None, 0.06)),
        ({"at_most": 0}, -1.0, 0.0, "at most 0", (None, 0.0)),
        ({"at_least": np.log10(10.0)}, 1.5, 0.5, "at least 1", (1.0, None)),
    ],
)
def test_a_theorems_own_number_is_the_bound(
    given: dict[str, float], inside: float, outside: float, predicted: str, ends: Any
) -> None:
    for mean, verdict in ((inside, "holds"), (outside, "fails")):
        found = record(around(mean, 0.001), unlike={"none": outside}, **given)
        assert (found["predicted"], found["verdict"]) == (predicted, verdict)
        assert (found["low"], found["high"]) == ends
        assert (found["theory"], found["resolution"]) == (None, None)


@pytest.mark.usefixtures("shown")
@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([0.0], "holds"), ([1e-13, -2e-14], "holds"), ([1e-11, 1e-11], "fails"), (1e-14, "holds"),
        ([NAN], "fails"),
    ],
)  # fmt: skip
def test_an_identity_holds_to_rounding(values: Any, verdict: str) -> None:
    found = record(values, exactly=0)
    assert (found["verdict"], found["predicted"], found["resolution"]) == (verdict, "0", None)
    assert found["theory"] == 0.0
    shifted = record(np.asarray(values) + 7, exactly=7)
    assert (shifted["verdict"], shifted["predicted"]) == (verdict, "7")


@pytest.mark.usefixtures("shown")
@pytest.mark.parametrize(
    ("rival", "margin", "excluded"),
    [
        (3.0, 5.0, True),  # (3 - 2) / .2, against the error of what was measured
        ({"values": around(3.0, 0.1)}, 10.0, True),  # against its own
        ({"values": around(3.0, 0.3)}, 3.33, False),
        ({"values": [3.0, 3.0]}, None, True),
        ({"values": 3.0}, 5.0, True),
        ({"values": around(1.0)}, None, False),
        ({"values": [3.0, NAN]}, None, False),
        ({"values": [3.0, INF]}, None, False),
        ({"values": []}, None, False),
    ],
)
def test_a_rival_lies_outside_by_four_standard_errors_of_its_own(
    rival: Any, margin: float | None, excluded: bool
) -> None:
    (found,) = record(around(1.0, 0.2), at_most=2.0, unlike={"other": rival})["rivals"]
    assert (found["margin"], found["excluded"]) == (margin, excluded)
    assert found["measured"] == isinstance(rival, dict)


@pytest.mark.usefixtures("shown")
def test_a_rival_without_a_number_sets_no_bound() -> None:
    found = record(around(1.0), theory=1, unlike={"lost": {"values": [NAN, 1.0]}, "half": 0.5})
    assert (found["low"], found["high"], found["verdict"]) == (0.75, 1.25, "holds")
    assert (found["rivals"][0]["value"], found["rivals"][0]["excluded"]) == (None, False)


@pytest.mark.parametrize("unlike", [{"lost": {"values": [NAN]}}, {"the same": 1.0}])
def test_without_a_rival_that_differs_nothing_holds(shown: Shown, unlike: dict[str, Any]) -> None:
    found = record(around(1.0), theory=1, unlike=unlike)
    assert (found["verdict"], found["low"], found["high"]) == ("fails", None, None)
    assert found["resolution"] is None
    told = "must be    apart from its rivals, none of which gives a number"
    assert told in shown[0]["text/plain"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("given", [{"theory": 1.0}, {"at_least": 0.0}, {"at_most": 2.0}])
@pytest.mark.parametrize("values", [[1.0, NAN], [INF, 1.0], [NAN], [], [-INF, INF]])
def test_values_that_are_not_finite_prove_nothing(
    shown: Shown, values: Any, given: dict[str, float]
) -> None:
    found = record(values, unlike={"far": {"values": around(90.0)}, "below": -90.0}, **given)
    assert (found["verdict"], found["finite"], found["margin"]) == ("fails", False, None)
    assert found["seeds"] == len(values)
    assert "✗ fails:" in shown[0]["text/html"]


def test_one_run_proves_nothing_and_runs_that_agree_have_no_margin(shown: Shown) -> None:
    message = "claim a.b: one run has no spread; measure at least two"
    for values in ([1.0], 1.0):
        with pytest.raises(ValueError, match=message):
            record(values, theory=1, unlike={"two": 2})
    assert shown == []
    assert record([5.0], theory=1, unlike={"two": 2})["verdict"] == "fails"
    for values in ([1.0, 1.0], torch.full((3,), 1.0), xr.DataArray([1.0, 1.0], dims="run")):
        found = record(values, theory=1, unlike={"two": 2})
        assert (found["verdict"], found["margin"], found["error"]) == ("holds", None, 0.0)
        assert found["rivals"][0]["excluded"] is True
    assert record([1.0, 1.0 + 1e-14], theory=1, unlike={"two": 2})["measured"] == "1.00"


def test_digits_at_rounding_level_are_not_told(shown: Shown) -> None:
    found = record([3e-15, -2e-16], theory=0, unlike={"one": 1})
    assert (found["measured"], found["value"], found["margin"]) == ("0 to rounding", 0.0, None)
    assert "e-1" not in json.dumps(found)
    assert "⁻¹⁵" not in shown[0]["text/html"]


def test_a_claim_is_about_one_value_a_run(shown: Shown) -> None:
    table = xr.DataArray(np.ones((3, 2)), dims=("run", "class"))
    with pytest.raises(ValueError, match="values over class: give one value a run"):
        record(table, theory=1, unlike={"two": 2})
    assert shown == []
    assert record(table.mean("class"), theory=1, unlike={"two": 2})["seeds"] == 3


def half(n: float) -> float:
    """A law of one keyword."""
    return n / 2


def slope(n: float = 3.0, law: Callable[..., float] = half, noise: float = 0.01) -> Any:
    """Slope of a line."""
    return law(n=n) + np.array([-noise, noise])


@pytest.mark.usefixtures("shown")
def test_theory_and_rivals_may_be_laws_of_the_functions_own_keywords() -> None:
    f = claims.claim(
        "a.b",
        theory=half,
        unlike={
            "a third": lambda n: n / 3,
            "with a number of its own": lambda n, c=0.9: c * n,
            "another law": {"law": lambda n: n},
        },
    )(slope)
    found = vars(f)["claim"]["record"]
    assert found["theory"] == 1.5
    assert [r["value"] for r in found["rivals"]] == [1.0, 2.7, 3.0]
    assert [r["measured"] for r in found["rivals"]] == [False, False, True]
    assert (found["low"], found["high"]) == (1.25, 2.1)
    assert found["laws"] == ["half", "half"]  # as theory and as a keyword
    assert set(claims.laws(f, half)) == {"law", "theory"}
    assert f is slope
    np.testing.assert_allclose(f(), [1.49, 1.51])


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({}, ValueError, "claim a.b: give one of theory, at_least, at_most, exactly"),
        ({"theory": 1, "at_most": 2}, ValueError, "claim a.b: give one of theory"),
        ({"theory": 1}, ValueError, "claim a.b: a theory's bounds follow from its rivals"),
        ({"at_most": "6 m"}, ValueError, "at_most of claim a.b = '6 m'"),
        ({"at_least": NAN}, ValueError, "at_least of claim a.b = nan"),
        ({"exactly": [1, 2]}, ValueError, "exactly of claim a.b = [1, 2]"),
        ({"theory": 1, "quantity": "size"}, TypeError, "claim a.b has no 'quantity'"),
        ({"theory": 1, "unlike": {"q": {"q": 4}}}, TypeError,
         "claim a.b, 'q': size has no parameter 'q'"),
        ({"theory": lambda d: d, "unlike": {"x": 1}}, TypeError,
         "<lambda> asks for 'd', no keyword of size"),
        ({"theory": 1, "unlike": {"x": lambda d: d}}, TypeError,
         "<lambda> asks for 'd', no keyword of size"),
    ],
)  # fmt: skip
def test_a_claim_that_cannot_be_judged_is_told(
    shown: Shown, given: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        record([1.0, 1.1], **given)
    assert shown == []


@pytest.mark.parametrize("id", ["", "a", "A.b", "a.b c", "a.<b>"])
def test_a_claim_has_a_name_that_a_file_could_carry(id: str) -> None:
    with pytest.raises(ValueError, match="id must be lower-case words"):
        claims.claim(id, theory=1, unlike={"two": 2})


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (0.0, "0"), (1, "1"), (-2.0, "−2"), (60, "60"), (0.5, "1/2"), (-1 / 3, "−1/3"),
        (2 / 3, "2/3"), (-0.25, "−1/4"), (1 / 6, "1/6"), (1 / 8, "1/8"), (4 / 3, "4/3"),
        (1.5, "1.50"), (0.24, "0.240"), (0.06, "0.0600"), (1 / 9, "0.111"), (1e-13, "0"),
        (np.float64(-0.5), "−1/2"), (0.1 + 0.2 - 0.05, "1/4"), (3e5, "3.0×10⁵"), (NAN, "nan"),
        (INF, "inf"),
    ],
)  # fmt: skip
def test_a_theorys_number_is_written_as_a_person_would(x: float, text: str) -> None:
    assert claims.simple(x) == text


def test_what_a_reader_sees(shown: Shown) -> None:
    unlike = {"as ReLU": -1 / 4, "ReLU^4": {"values": around(-0.2, 0.001)}, "far": -3, "in": -0.34}
    record(around(-0.334, 0.004), theory=-1 / 3, unlike=unlike)
    (bundle,) = shown
    assert bundle["text/plain"].splitlines() == [
        "a.b: HOLDS",
        "  predicted  −1/3",
        "  measured   Size of a thing: −0.334 ± 0.0057",
        "  must be    between −0.337 and −0.292",
        "  margin     0.67 standard errors",
        "  runs       2",
        "  resolution tells −1/3 from anything farther than ± 0.042",
        "  rival      as ReLU: −0.250, 10 standard errors outside",
        "  rival      ReLU^4: −0.200, 92 standard errors outside",
        "  rival      far: −3.00, 670 standard errors outside",
        "  rival      in: −0.340, NOT EXCLUDED",
    ]
    assert " · predicted −⅓ · not −0.250 (as ReLU)</summary>" in bundle["text/html"]
    assert bundle["text/html"].startswith('<details class="claim holds" id="claim-a.b"')


def test_outside_a_notebook_the_words_are_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("builtins.display", raising=False)  # IPython leaves it there
    record(around(0.0), at_most=0.5, unlike={"one": 1})
    assert capsys.readouterr().out.startswith("a.b: HOLDS\n  predicted  at most 1/2\n")


def test_a_rivals_keyword_may_pass_through_the_function() -> None:
    def size(q: int = 3, **network: float) -> list[float]:
        return [network.get("scale", 1) * q + x for x in (-0.1, 0, 0.1)]

    given = {"unlike": {"another scale": {"scale": 2}}}
    assert claims.claim("a.b", theory=3, **given)(size).claim["record"]["verdict"] == "holds"
