"""A reader predicts before anything is told: nothing above a lab answers its question."""

import json
import re

import pytest

from tests.labs.pages import LABS
from tools.labs import configs

ASKING = [name for name, config in LABS.items() if "predict" in config]
ORDER = re.compile(r"(?:^|[.?!:] )(?:move|play|watch|press|change|drag)\b")


def around(lab: str) -> list[str]:
    """The page above a lab and below it, each as one line."""
    fence = f"```{{lab}} {lab}\n"
    texts = [p.read_text(encoding="utf-8") for p in configs.FOLDER.parent.glob("*.md")]
    [text] = [text for text in texts if fence in text]
    return [" ".join(part.split()).lower() for part in text.split(fence)]


@pytest.mark.parametrize("lab", ASKING)
def test_no_promise_tells_the_answer_and_what_comes_after_does(lab: str) -> None:
    config = json.loads((configs.FOLDER / f"{lab}.json").read_text(encoding="utf-8"))
    predict, (above, below) = config["predict"], around(lab)
    later = [config[part] for part in ("states", "scrub", "sentence") if part in config]
    below += json.dumps([predict["why"], later], ensure_ascii=False).lower()
    above += f" {config['title']} {predict['ask']}".lower()
    unsaid = [words.lower() for words in predict["unsaid"]]
    assert [words for words in unsaid if words in above] == []
    assert any(words in below for words in unsaid)


@pytest.mark.parametrize("lab", ASKING)
def test_no_order_to_use_what_is_hidden_until_an_answer(lab: str) -> None:
    question = around(lab)[0].split("## the question ")[1]
    assert ORDER.findall(question) == []


def test_a_page_does_not_carry_what_it_must_not_say() -> None:
    assert not any("unsaid" in LABS[lab]["predict"] for lab in ASKING)
