"""Numbers as the ledger shows them."""

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
    ("value", "shown"),
    [(1234.5, "1230"), (1e6, "10⁶"), (-0.25, "−0.25"), (2e-7, "2×10⁻⁷"), (None, "not finite")],
)
def test_numbers(value: float | None, shown: str) -> None:
    assert record.told(value) == shown
