"""Style sheets without what no page uses, whatever their form."""

from pathlib import Path

import pytest

from tools.lighten import bundle, prune

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


def test_a_page_has_one_style_sheet_with_all_of_its_rules(tmp_path: Path) -> None:
    """In their order, imports in their place, and every font still found."""
    files = {
        "basic.css": "a{b:c}",
        "styles/theme.css": '@charset "UTF-8";@import "../basic.css";d{e:url("../fonts/x.woff2")}',
        "book.css": "/* why */\nf{g:url(data:h)}\n\n  i{j:url(#k)}",
    }
    for name, text in files.items():
        (tmp_path / "_static" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "_static" / name).write_text(text)
    head = (
        '<link href="_static/styles/theme.css" rel="stylesheet" />\n'
        '<link rel="stylesheet" type="text/css" href="_static/book.css?v=1" />\n'
    )
    icon = '<link rel="icon" href="_static/favicon.svg"/>'
    (tmp_path / "index.html").write_text(f"<head>{head}{icon}</head>")
    bundle(tmp_path)
    (sheet,) = (tmp_path / "_static").glob("all.*.css")
    link = f'<link rel="stylesheet" href="_static/{sheet.name}">\n'
    assert (tmp_path / "index.html").read_text() == f"<head>{link}{icon}</head>"
    assert sheet.read_text() == "a{b:c}d{e:url(fonts/x.woff2)}\nf{g:url(data:h)} i{j:url(#k)}"
    assert not (tmp_path / "_static/book.css").exists()
