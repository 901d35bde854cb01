"""A reader predicts before anything is told: nothing above a lab answers its question."""

import json
import re

import pytest

from tests.labs.pages import LABS
from tools.labs import configs

ASKING = [name for name, config in LABS.items() if "predict" in config]
ORDER = re.compile(r"(?:^|[.?!:] )(?:Move|Play|Watch|Press|Change|Drag)\b", re.M)


def above(lab: str) -> str:
    """The page down to a lab, as one line."""
    fence = f"```{{lab}} {lab}\n"
    texts = [p.read_text(encoding="utf-8") for p in configs.FOLDER.parent.glob("*.md")]
    [text] = [text for text in texts if fence in text]
    return " ".join(text.split(fence)[0].split())


@pytest.mark.parametrize("lab", ASKING)
def test_no_promise_tells_the_answer(lab: str) -> None:
    predict = json.loads((configs.FOLDER / f"{lab}.json").read_text(encoding="utf-8"))["predict"]
    page = (above(lab) + predict["ask"]).lower()
    assert [words for words in predict["unsaid"] if words.lower() in page] == []


@pytest.mark.parametrize("lab", ASKING)
def test_no_order_to_use_what_is_hidden_until_an_answer(lab: str) -> None:
    question = above(lab).split("## The question")[1]
    assert ORDER.findall(question) == []


def test_a_page_does_not_carry_what_it_must_not_say() -> None:
    assert not any("unsaid" in LABS[lab]["predict"] for lab in ASKING)
