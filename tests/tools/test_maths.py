"""Macros of the book, written out."""

import pytest

from tools.maths import expand

MACROS = {r"\norm": r"\lVert #1 \rVert", r"\vmu": r"\boldsymbol{\mu}"}


@pytest.mark.parametrize(
    ("tex", "expanded"),
    [
        (r"\sigma\norm{\vmu}M", r"\sigma\lVert \boldsymbol{\mu} \rVert M"),
        (r"\norm{\vmu}\,M", r"\lVert \boldsymbol{\mu} \rVert\,M"),
        (r"\norm{x}^2", r"\lVert x \rVert^2"),
        (r"a_\norm{x}b", r"a_{\lVert x \rVert}b"),
        (r"\norm ab", r"\lVert a \rVert b"),
    ],
)
def test_a_letter_does_not_lengthen_the_command_before_it(tex: str, expanded: str) -> None:
    assert expand(tex, MACROS) == expanded
