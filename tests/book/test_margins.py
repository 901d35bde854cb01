"""Every chapter was measured at ten seeds that its present code draws, and no claim fell there."""

import json
from pathlib import Path

import pytest

from tools import chapters, claims, margins

ROOT = Path(__file__).parents[2]
STORED = json.loads((ROOT / margins.STORE).read_text())


def test_every_chapter_in_its_present_form_was_measured() -> None:
    assert margins.stale(ROOT) == [], "run `make margins`"
    assert list(STORED) == chapters.chapters(ROOT)


def test_no_claim_fell() -> None:
    assert margins.fallen(ROOT, STORED) == []


def test_every_claim_holds_by_three_standard_errors_at_each_of_its_seeds() -> None:
    assert margins.thin(STORED) == []


@pytest.mark.parametrize("name", chapters.chapters(ROOT))
def test_every_claim_was_measured_at_every_seed(name: str) -> None:
    entry = STORED[name]
    ids = {c["id"] for c in claims.register(ROOT) if c["chapter"] == name}
    assert set(entry["claims"]) == ids
    wanted = [str(seed) for seed in margins.drawn(entry["code"])]
    assert len(set(wanted)) == margins.SEEDS
    assert all(list(seeds) == wanted for seeds in entry["claims"].values())
