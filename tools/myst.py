"""What a page's Markdown holds that no page should, told before anything runs: with its line."""

import re
from collections.abc import Iterator
from pathlib import Path

from docutils.parsers.rst.directives.misc import TestDirective
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.directives import parse_directive_text
from myst_parser.parsers.mdit import create_md_parser

from tools import readers
from tools.files import ToolError

NAMED = re.compile(r"\{([A-Za-z][\w:.-]*)\}\s*(.*)", re.DOTALL)
VERBATIM = {
    "math", "code-block", "code", "sourcecode", "raw", "list-table", "bibliography",
    "code-cell", "lab", "tableofcontents", "contents",
}  # fmt: skip
SCRIPT = "a raw <script> is not allowed: write a lab or a directive"


def parser(root: Path) -> MarkdownIt:
    """The parser that the site's configuration gives."""
    config = readers.read_yaml(root / "_config.yml").get("sphinx", {}).get("config", {})
    options = {key.removeprefix("myst_"): config[key] for key in config if key.startswith("myst_")}
    md = create_md_parser(MdParserConfig(**options), RendererHTML)
    return md.disable("text_join")  # an escaped sign stays a token of its own


def misplaced(token: Token, line: int) -> Iterator[tuple[int, str]]:
    """Scripts, and dollar signs that open no formula, in a paragraph or a block of HTML."""
    for child in token.children or [token]:
        line += child.type in ("softbreak", "hardbreak")
        if child.type in ("html_inline", "html_block") and "<script" in child.content.lower():
            yield line, SCRIPT
        if child.type == "text" and "$" in child.content:
            yield line, "a $ that opens no formula: $$ begins a paragraph, a price is \\$5"


def inside(md: MarkdownIt, token: Token, line: int) -> Iterator[tuple[int, str]]:
    """What stands wrongly in the directive of a fence at `line`; nothing where that is code."""
    named = NAMED.match(token.info.strip())
    if not named:
        return
    name, words = named.groups()
    cell = name == "code-cell"  # its options are YAML, as in a notebook's metadata
    found = parse_directive_text(TestDirective, words, token.content, validate_options=not cell)
    yield from ((line, f"{{{name}}}: {warning.msg}") for warning in found.warnings)
    for key in found.options:
        if not cell and not re.fullmatch(r"[\w-]+", key):
            yield line, f"{{{name}}}: {key!r} is no option: before the text goes an empty line"
    text = "\n".join(found.body).rstrip("\n")
    if name not in VERBATIM:
        yield from broken(md, text, line + 1 + found.body_offset)
    elif name == "raw" and "<script" in text.lower():
        yield line, SCRIPT


def broken(md: MarkdownIt, text: str, line: int) -> Iterator[tuple[int, str]]:
    """What stands wrongly in a text whose first line is number `line` of its file."""
    lines = text.split("\n")
    for token in md.parse(text):
        if not token.map:
            continue
        first, last, mark = token.map[0], token.map[1] - 1, token.markup
        if token.type not in ("fence", "colon_fence"):
            yield from misplaced(token, line + first)
        elif (
            last == first
            or not re.fullmatch(rf"[\s>]*{mark}{mark[0]}*\s*", lines[last])
            or re.search(rf"(?m)^\s*{mark}\{{", token.content)  # its end is that of another
        ):
            yield line + first, f"the fence {mark} {token.info.strip()} is never closed"
        elif mark[0] == ":" and not NAMED.match(token.info.strip()):
            yield line + first, f"a colon fence needs a directive in braces, not {token.info!r}"
        else:
            yield from inside(md, token, line + first)


def structure(root: Path, name: str) -> None:
    """Raise where book/<name>.md has an open fence, unreadable options, a script, a stray $."""
    text = readers.text(root / "book" / f"{name}.md")
    if found := [f"book/{name}.md:{n}: {what}" for n, what in broken(parser(root), text, 1)]:
        raise ToolError("\n".join(found))
