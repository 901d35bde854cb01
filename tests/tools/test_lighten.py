"""Style sheets without what no page uses, whatever their form."""

import pytest

from tools.lighten import prune

WORDS = {"used", "a", "sm", "x"}
FONT = '@charset "utf-8";@font-face{src:url(x.woff2)}'
KINDS = "[class*=x.gone],:is(.used,.gone){a:url(data:1.5)}"


@pytest.mark.parametrize(
    ("style", "kept"),
    [
        (".used{a:b}.gone{a:b}", ".used{a:b}"),
        (".used .gone, .used:not(.gone) > p{a:b}", ".used:not(.gone) > p{a:b}"),
        ("@media print{.gone{a:b}}@media screen{.gone{a:b}p{c:d}}", "@media screen{p{c:d}}"),
        (FONT, FONT),
        ("@keyframes gone{0%{a:b}to{c:d}}", "@keyframes gone{0%{a:b}to{c:d}}"),
        ('.used::before{content:"}.gone{"}.gone{a:b}', '.used::before{content:"}.gone{"}'),
        (".sm\\:x{a:b}.sm\\:y{a:b}", ".sm\\:x{a:b}"),
        (f"/* .used{{ */{KINDS}", KINDS),
        ("#a #gone,#a{a:b}", "#a{a:b}"),
    ],
)  # fmt: skip
def test_a_rule_stays_where_its_names_are_used(style: str, kept: str) -> None:
    assert prune(style, WORDS) == kept
