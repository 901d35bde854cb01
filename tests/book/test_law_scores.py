"""The laws of every chapter were changed in their present form, and their claims noticed."""

import json
from pathlib import Path

from tools import laws

ROOT = Path(__file__).parents[2]


def test_every_law_in_its_present_form_was_tried() -> None:
    assert laws.stale(ROOT) == [], "run `make laws`"
    assert list(json.loads((ROOT / laws.STORE).read_text())) == laws.named(ROOT), "run `make laws`"


def test_nine_changes_in_ten_are_noticed() -> None:
    assert (ROOT / laws.STORE).exists(), f"{laws.STORE} is missing: run `make laws`"
    wrong = laws.weak(json.loads((ROOT / laws.STORE).read_text()))
    assert not wrong, "\n".join([*wrong, "sharpen the claims, then run `make laws`"])
