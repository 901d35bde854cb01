"""Numbers and formulas that chapters type as plain text, as the ledger shows them."""

import importlib.util
from pathlib import Path

import pytest

SPEC = importlib.util.spec_from_file_location(
    "record", Path(__file__).parents[2] / "book/_ext/record.py"
)
assert SPEC
assert SPEC.loader
record = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(record)


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("above -0.550 and below -0.450", "above −0.550 and below −0.450"),
        ("at most exp(-k / C)", "at most exp(−k / C)"),
        ("|slope - 1| <= 1.0e-10", "|slope − 1| ≤ 1.0·10⁻¹⁰"),
        ("near-zero loss, log-log axes", "near-zero loss, log-log axes"),
        ("-||mu|| = -4", "−‖μ‖ = −4"),
        ("||mu||^2 sqrt(n), n^-2 and d^(-1/2)", "‖μ‖² √(n), n⁻² and d^(−1/2)"),
        ("0.9 ± 0.1", "0.9\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}0.1"),
        ("a 3-layer net, t=2e4", "a 3-layer net, t=2·10⁴"),
    ],
)
def test_signs(typed: str, shown: str) -> None:
    assert record.tidy(typed) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1234.5, "1230"), (1e6, "1·10⁶"), (-0.25, "−0.25"), (2e-7, "2·10⁻⁷"), (None, "not finite")],
)
def test_numbers(value: float | None, shown: str) -> None:
    assert record.told(value) == shown
