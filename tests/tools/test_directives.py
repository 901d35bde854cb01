"""Claims that pages state: what is wrong with one is told with its file and line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tools import claims, directives, inputs
from tools.files import ToolError

Edit = Callable[[str, str, str], None]
THEOREM = """
```{claim} kou.tides
:kind: theorem
:theorem: thm-tides
:work: kou2023, Theorem 2
:read: full text
:source: tutorial

Tides *turn*
twice a day.
```

:::{prf:theorem} Tides
:label: thm-tides
They turn.
:::
"""
TOML = """[[claim]]
id = "kou.tides"
statement = "Tides turn."
source = "tutorial"
paper = ""
theorem = "Theorem 2"
chapter = "tides"
falsifier = "They do not."
mutant = "off"
"""


@pytest.fixture
def stated(built: Path, edit: Edit) -> Path:
    """The tiny book, executed, with one of its claims stated in its page at line 15."""
    edit("book/claims.toml", TOML, "")
    edit("book/tides.md", "# Tides\n", "# Tides\n" + THEOREM)
    return built


def test_a_stated_claim_is_one_of_the_register(stated: Path) -> None:
    inputs.check(stated)
    found = {claim["id"]: claim for claim in claims.register(stated)}
    assert list(found) == ["kou.waves", "kou.later", "kou.tides"]
    assert found["kou.tides"] == {
        "id": "kou.tides",
        "statement": "Tides *turn* twice a day.",
        "source": "tutorial",
        "paper": "kou2023",
        "theorem": "Theorem 2",
        "label": "thm-tides",
        "read": "full text",
        "kind": "theorem",
        "chapter": "tides",
        "line": 15,
    }
    claims.collect(stated)


WRONG = [
    ("kind: theorem", "kind: lemma",
     "kou.tides: kind is 'lemma'; allowed: theorem, conjecture, identity, own, limit"),
    (":kind: theorem\n", "", "kou.tides lacks kind"),
    (":work: kou2023, Theorem 2\n", "", "kou.tides lacks work"),
    (":work: kou2023, T", ":work: , T",
     "kou.tides: work is ', Theorem 2': a key of references.bib, then a comma and where"),
    (":work: kou2023, T", ":work: kuo2032, T",
     "kou.tides is of 'kuo2032', which book/references.bib lacks"),
    (":read: full text\n", "", "kou.tides lacks read"),
    ("kind: theorem\n:theorem: thm-tides\n:work: kou2023, Theorem 2\n:read: full text",
     "kind: own\n:work: kou2023",
     "kou.tides names a work and not how it was read: full text, abstract, slides, second hand"),
    ("full text", "half of it",
     "kou.tides: read is 'half of it'; allowed: full text, abstract, slides, second hand"),
    ("source: tutorial", "source: talk",
     "kou.tides: source is 'talk'; allowed: tutorial, seminar, "),
    (":source: tutorial", ":expected: maybe",
     "kou.tides: expected is 'maybe'; allowed: holds, fails"),
    (":source: tutorial", ":expected: fails", "kou.tides is expected to fail and gives no reason"),
    (":source: tutorial", ":bound: 3", "kou.tides has 'bound'; allowed: kind, theorem, work, read"),
    ("Tides *turn*\ntwice a day.\n", "", "kou.tides says nothing"),
    ("{claim} kou.tides", "{claim} Tides", "a claim is called 'Tides': lower-case words with dots"),
    (":theorem: thm-tides", ":theorem: thm-tide",
     "kou.tides checks 'thm-tide', but no theorem of the page has this label"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), WRONG)
def test_a_faulty_claim_is_told_with_its_line(
    stated: Path, edit: Edit, old: str, new: str, message: str
) -> None:
    edit("book/tides.md", old, new)
    with pytest.raises(ToolError) as caught:
        inputs.check(stated)
    assert f"book/tides.md:15: {message}" in str(caught.value)


@pytest.mark.parametrize("read", directives.READ)
@pytest.mark.parametrize("kind", directives.KINDS)
def test_every_kind_and_every_way_to_read(stated: Path, edit: Edit, kind: str, read: str) -> None:
    edit("book/tides.md", "kind: theorem", f"kind: {kind}")
    edit("book/tides.md", "full text", read)
    (claim,) = directives.claims(stated / "book/tides.md", claims.SOURCES)
    assert (claim["kind"], claim["read"]) == (kind, read)


def test_a_work_that_the_references_lack_is_told_in_the_table_too(tiny: Path, edit: Edit) -> None:
    edit("book/claims.toml", 'paper = "kou2023"', 'paper = "kuo2032"')
    with pytest.raises(ToolError, match=r"claims\.toml:3: kou\.waves is of 'kuo2032', which book"):
        inputs.check(tiny)


@pytest.mark.parametrize("page", ["book/tides.md", "book/waves.md", "book/claims.toml"])
def test_a_claim_that_is_stated_twice_is_told(stated: Path, edit: Edit, page: str) -> None:
    """In its own page, in another one, or in the table of the older chapters."""
    if page == "book/claims.toml":
        edit(page, 'id = "kou.later"', 'id = "kou.tides"')
    elif page == "book/tides.md":
        edit(page, THEOREM, THEOREM + THEOREM)
    else:
        edit(page, "# Waves\n", "# Waves\n" + THEOREM)
    with pytest.raises(ToolError, match=r"book/tides\.md:\d+: kou\.tides is registered twice"):
        claims.register(stated)


def test_a_claim_without_its_function_is_told_with_its_line(stated: Path, edit: Edit) -> None:
    edit(
        "_build/executed/tides.ipynb",
        "application/vnd.fltutils.claim+json",
        "application/vnd.other+json",
    )
    message = r"book/tides\.md:15: kou\.tides is registered, but tides\.md never evaluates it"
    with pytest.raises(ToolError, match=message):
        claims.collect(stated)


def test_a_function_without_its_claim_is_told_with_its_line(stated: Path, edit: Edit) -> None:
    edit("book/tides.md", THEOREM, "")
    line = (stated / "book/tides.md").read_text().split("emit.claim(")[0].count("\n") + 1
    message = f"book/tides.md:{line}: kou.tides is evaluated, but no {{claim}} directive states it"
    with pytest.raises(ToolError) as caught:
        claims.collect(stated)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ({"low": 1.0, "high": 3.0}, "Size: a mean below 1.00 or above 3.00."),
        ({"low": None, "high": 0.05}, "Size: a mean above 0.0500."),
        ({"low": -1 / 3, "high": None}, "Size: a mean below −0.333."),
    ],
)
def test_what_would_refute_a_claim_follows_from_its_bounds(
    ends: dict[str, float | None], words: str
) -> None:
    assert claims.refuted({"quantity": "Size", **ends}) == words
