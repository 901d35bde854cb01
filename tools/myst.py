"""A page through the site's own parser: tokens and directives that know where they stand."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from docutils.parsers.rst.directives.misc import TestDirective
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline
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


class Directive(NamedTuple):
    """A directive, and the lines of the file at which it and its body begin."""

    name: str
    argument: str
    options: dict[str, str]
    text: str
    line: int
    body_line: int
    faults: list[str]


def placed(name: str, rule: Callable[[StateInline, bool], bool]) -> Callable[..., bool]:
    """An inline rule whose tokens know the span of text that they stand for."""

    def run(state: StateInline, silent: bool) -> bool:
        start, count = state.pos, len(state.tokens)
        if not rule(state, silent):
            return False
        if not silent:
            if name == "attr":  # it changes a token before it and leaves none of its own
                state.push("attributes", "", 0)
            for token in state.tokens[count:]:
                token.meta.setdefault("span", (start, state.pos))
        return True

    return run


def parser(root: Path) -> MarkdownIt:
    """The parser that the site's configuration gives."""
    config = readers.read_yaml(root / "_config.yml").get("sphinx", {}).get("config", {})
    options = {key.removeprefix("myst_"): config[key] for key in config if key.startswith("myst_")}
    md = create_md_parser(MdParserConfig(**options), RendererHTML)
    md.disable("text_join")  # an escaped sign stays a token of its own
    inline = md.inline.ruler
    for name, rule in zip(inline.get_active_rules(), inline.getRules(""), strict=True):
        inline.at(name, placed(name, rule))
    return md


def directive(token: Token, line: int) -> Directive | None:
    """The directive of a fence at `line`; None where the fence is code."""
    named = NAMED.match(token.info.strip())
    if not named:
        return None
    name, words = named.groups()
    cell = name == "code-cell"  # its options are YAML, as in a notebook's metadata
    found = parse_directive_text(TestDirective, words, token.content, validate_options=not cell)
    body = "\n".join(found.body).rstrip("\n")
    wrong = [key for key in found.options if not cell and not re.fullmatch(r"[\w-]+", key)]
    faults = [f"{{{name}}}: {warning.msg}" for warning in found.warnings]
    faults += [f"{{{name}}}: {k!r} is no option: before the text goes an empty line" for k in wrong]
    at = line + 1 + found.body_offset
    return Directive(name, " ".join(found.arguments), found.options, body, line, at, faults)


def misplaced(token: Token, line: int) -> Iterator[tuple[int, str]]:
    """Scripts, and dollar signs that open no formula, in a paragraph or a block of HTML."""
    for child in token.children or [token]:
        here = line + token.content.count("\n", 0, child.meta.get("span", (0,))[0])
        if child.type in ("html_inline", "html_block") and "<script" in child.content.lower():
            yield here, SCRIPT
        if child.type == "text" and "$" in child.content:
            yield line, "a $ that opens no formula: $$ begins a paragraph, a price is \\$5"


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
        elif inner := directive(token, line + first):
            yield from ((inner.line, fault) for fault in inner.faults)
            if inner.name not in VERBATIM:
                yield from broken(md, inner.text, inner.body_line)
            elif inner.name == "raw" and "<script" in inner.text.lower():
                yield inner.line, SCRIPT
        elif mark[0] == ":":
            yield line + first, f"a colon fence needs a directive in braces, not {token.info!r}"


def structure(root: Path, name: str) -> None:
    """Raise where book/<name>.md has an open fence, unreadable options, a script, a stray $."""
    text = readers.text(root / "book" / f"{name}.md")
    if found := [f"book/{name}.md:{n}: {what}" for n, what in broken(parser(root), text, 1)]:
        raise ToolError("\n".join(found))
