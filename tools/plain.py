"""A page's MyST as plain Markdown: what Colab, GitHub and VS Code all show well."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from textwrap import dedent
from typing import Any

from markdown_it.token import Token
from sphinx_proof.proof_type import PROOF_TYPES

from tools.labels import Book, Label
from tools.maths import expand, katex_html
from tools.myst import Directive, directive

TITLED = re.compile(r"^(?P<title>.*?)\s*<(?P<target>[^<>]+)>$", re.DOTALL)
ADMONITIONS = (
    "note", "tip", "warning", "important", "caution", "attention", "danger", "error", "hint",
    "seealso",
)  # fmt: skip
SILENT = ("bibliography", "tableofcontents", "contents", "index")
WEBSITE = {
    "raw": "*The website shows an interactive part here.*",
    "lab": "*On the website a live lab stands here: its sliders retrain the network in the page.*",
}


@dataclass
class Page:
    """A page under conversion: what it may use, and what has been found on the way."""

    shared: Book
    name: str
    glue: dict[str, str]
    cited: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    found: list[tuple[int, str]] = field(default_factory=list)
    env: dict[str, Any] = field(default_factory=dict)

    def fault(self, line: int, message: str) -> str:
        """Record a fault; nothing is put in its place."""
        self.found.append((line, message))
        return ""


def href(page: Page, name: str) -> str:
    """The file another page is read in, beside this one."""
    return f"{name}.ipynb" if name in page.shared.chapters else f"{name}.md"


def page_link(page: Page, name: str, line: int, text: str = "") -> str:
    """A link to another page."""
    name = name.removesuffix(".md").removesuffix(".ipynb").removeprefix("./").removeprefix("/")
    if name not in page.shared.pages:
        return page.fault(line, f"there is no page {name!r} in _toc.yml")
    return f"[{text or convert(page, page.shared.titles[name], line)}]({href(page, name)})"


def refer(page: Page, label: str, line: int, text: str = "") -> str:
    """A reference to a label: plain text here, a link to the page where it stands elsewhere."""
    entry = page.shared.labels.get(label)
    if entry is None:
        return page.fault(line, f"undefined label {label!r}")
    words = text or (convert(page, entry.text, line) if entry.kind == "section" else entry.text)
    if not words:
        return page.fault(line, f"the label {label!r} has no title: write {{ref}}`text <{label}>`")
    if entry.page == page.name:
        return words
    if text or entry.kind == "section":
        return f"[{words}]({href(page, entry.page)})"
    return f"{words} of {page_link(page, entry.page, line)}"


def numbered(page: Page, content: str, line: int) -> str:
    """{numref}: the number of a label, in a text with %s or {number} if one is given."""
    match = TITLED.match(content)
    if not match:
        return refer(page, content, line)
    entry = page.shared.labels.get(match["target"], Label("", "", ""))
    number = entry.text.split(" ")[-1]
    text = match["title"].replace("%s", number).replace("{number}", number)
    return refer(page, match["target"], line, text.replace("{name}", entry.text))


def cite(page: Page, content: str, line: int, form: str) -> str:
    """A citation in words, its works noted for the references."""
    shown = []
    for key in (part.strip() for part in content.split(",")):
        work = page.shared.citations.get(key)
        if work is None:
            page.fault(line, f"undefined citation {key!r}: it is not in book/references.bib")
            continue
        if key not in page.cited:
            page.cited.append(key)
        shown.append(work.textual() if form == "t" else work.plain())
    return ", ".join(shown) if form == "t" else f"({'; '.join(shown)})"


def maths(page: Page, tex: str, line: int, display: bool) -> str:
    """A formula with the book's macros expanded; it must render without them."""
    try:
        text = expand(tex.strip(), page.shared.macros)
        katex_html(text, display)
    except ValueError as error:
        return page.fault(line, f"{error} (formula {tex.strip()[:60]!r})")
    return text


def glued(page: Page, name: str, line: int) -> str:
    """The value a cell glued under this name."""
    if name in page.glue:
        return page.glue[name]
    known = ", ".join(page.glue) or "nothing"
    return page.fault(line, f"undefined glue {name!r}; this chapter glues {known}")


def seconds(page: Page, name: str, line: int) -> str:
    """CPU seconds of a chapter."""
    if name in page.shared.timings:
        return f"{page.shared.timings[name]} s"
    return page.fault(line, f"book/timings.json has no {name!r}: run `make timings`")


def role(page: Page, name: str, content: str, line: int) -> str:
    """A role as plain Markdown."""
    content = " ".join(content.split())
    match = TITLED.match(content)
    title, target = (match["title"], match["target"]) if match else ("", content)
    forms: dict[str, Callable[[], str]] = {
        "eq": lambda: refer(page, content, line),
        "math": lambda: f"${maths(page, content, line, False)}$",
        "ref": lambda: refer(page, target, line, title),
        "prf:ref": lambda: refer(page, target, line, title),
        "numref": lambda: numbered(page, content, line),
        "doc": lambda: page_link(page, target, line, title),
        "cite:t": lambda: cite(page, content, line, "t"),
        "cite:p": lambda: cite(page, content, line, "p"),
        "cite": lambda: cite(page, content, line, "p"),
        "glue:text": lambda: glued(page, content, line),
        "glue": lambda: glued(page, content, line),
        "cpu": lambda: seconds(page, content, line),
        "term": lambda: title or target,
        "abbr": lambda: re.sub(r"\s*\(.*\)$", "", content),
        "sub": lambda: f"<sub>{content}</sub>",
        "sup": lambda: f"<sup>{content}</sup>",
        "kbd": lambda: f"<kbd>{content}</kbd>",
        "code": lambda: f"`{content}`",
        "strong": lambda: f"**{content}**",
        "emphasis": lambda: f"*{content}*",
    }
    if name not in forms:
        return page.fault(line, f"unknown role {{{name}}}; known: {', '.join(sorted(forms))}")
    return forms[name]()


def link(page: Page, goal: str, line: int, text: str) -> str:
    """A Markdown link: labels and pages of the book as in the portable notebooks."""
    label = goal.removeprefix("#")
    if label in page.shared.labels:
        return refer(page, label, line, text)
    stem, _, _ = goal.partition("#")
    if re.match(r"^[a-z]+:", goal) or not stem.endswith((".md", ".ipynb")):
        return f"[{text}]({goal})"
    return page_link(page, stem, line, text)


def note(page: Page, name: str) -> str:
    """A footnote's number."""
    if name not in page.notes:
        page.notes.append(name)
    return f"<sup>{page.notes.index(name) + 1}</sup>"


def raw(page: Page, html: str, line: int) -> None:
    """Refuse a script: the site would run it, the notebook would not."""
    if "<script" in html.lower():
        page.fault(line, "a raw <script> is not allowed: write a lab or a directive")


def inline(page: Page, token: Token, text: str, line: int) -> str | None:
    """An inline token that stands for `text`; None where it stays as it is."""
    match token.type:
        case "myst_role":
            return role(page, token.meta["name"], token.content, line)
        case "math_inline":
            return f"${maths(page, text.strip('$'), line, False)}$"
        case "footnote_ref":
            return note(page, token.meta["label"])
        case "attributes":
            return ""
        case "image":
            image_file(page, str(token.attrs["src"]), line)
        case "html_inline":
            raw(page, token.content, line)
        case "link_open" if "](" in text:
            label, _, goal = text[1:-1].rpartition("](")
            return link(page, goal, line, convert(page, label, line))
        case "text" if "$" in token.content:
            page.fault(line, "a $ that opens no formula: $$ begins a paragraph, money is \\$")
    return None


def places(token: Token, text: str, starts: list[int], after: int | None) -> list[int]:
    """Where each sign of an inline token's content stands in the text; a table cell `after` one."""
    assert token.map
    found: list[int] = []
    for row, part in enumerate(token.content.split("\n"), token.map[0]):
        first, last = starts[row], starts[row + 1]
        place = text.find(part, after, last) if after is not None else text.rfind(part, first, last)
        if place < 0:
            raise ValueError(f"cannot place {part[:40]!r}: in a table write \\vert, not \\|")
        found += range(place, place + len(part) + 1)
    return found


def changes(page: Page, text: str, line: int) -> Iterator[tuple[int, int, str, bool]]:
    """What a text changes: from where to where, into what, and whether that is a block."""
    lines = text.split("\n")
    starts = [0, *accumulate(len(item) + 1 for item in lines)]
    after: int | None = None
    for token in page.shared.md.parse(text, page.env):
        if token.type == "tr_open" and token.map:
            after = starts[token.map[0]]
        if token.type == "tr_close":
            after = None
        if not token.map:
            continue
        first, here = token.map[0], line + token.map[0]
        if token.type == "footnote_reference_open":
            mark = f"[^{token.meta['label']}]:"
            place = text.index(mark, starts[first])
            yield place, place + len(mark), f"{note(page, token.meta['label'])} ", False
        elif token.type != "inline":
            new = block(page, token, lines[first], here)
            if new is not None:
                yield starts[first], starts[token.map[1]] - 1, new, True
        elif token.content:
            try:
                where = places(token, text, starts, after)
            except ValueError as error:
                page.fault(here, str(error))
                continue
            after = None if after is None else where[-1]
            done = 0
            for child in token.children or []:
                start, end = child.meta.get("span", (0, 0))
                if start < done:
                    continue
                begin, stop = where[start], where[end - 1] + 1
                at = here + token.content.count("\n", 0, start)
                new = inline(page, child, text[begin:stop], at)
                if new is not None:
                    yield begin, stop, new, False
                    done = end


def convert(page: Page, text: str, line: int) -> str:
    """MyST whose first line is number `line` of its file, as plain Markdown."""
    pieces, piece, place = [], "", 0
    for start, end, new, alone in changes(page, text, line):
        piece += text[place:start]
        if alone:
            pieces += [piece, new]
            piece = ""
        else:
            piece += new
        place = end
    pieces.append(piece + text[place:])
    return "\n\n".join(piece.strip("\n") for piece in pieces if piece.strip())


def block(page: Page, token: Token, opening: str, line: int) -> str | None:
    """A block as plain Markdown at its own indentation; None where it stays as it is."""
    found = directive(token, line) if token.type in ("fence", "colon_fence") else None
    if found:
        text = shown(page, found)
    elif token.type in ("math_block", "math_block_label"):
        text = display(page, token.content, token.info, line)
    elif token.type in ("myst_target", "myst_line_comment", "myst_block_break"):
        return ""
    elif token.type == "amsmath":
        return page.fault(line, "write displayed maths as $$ … $$ (label)")
    elif token.type == "html_block":
        raw(page, token.content, line)
        return None
    else:
        return None
    head = opening[: opening.index(token.markup)]
    rest = re.sub(r"[^>\s]", " ", head)
    first, *more = text.split("\n")
    return "\n".join([head + first, *(rest + item if item.strip() else "" for item in more)])


def quote(title: str, body: str) -> str:
    """A blockquote with a bold title; formulas in it on one line, which every reader can show."""
    text = "\n\n".join(filter(None, [f"**{title}**" if title else "", body]))
    text = re.sub(r"(?m)^( *)\$\$\n(.*?)\n *\$\$$", one_line, text, flags=re.DOTALL)
    return "\n".join(f"> {line}" if line.strip() else ">" for line in text.split("\n"))


def one_line(match: re.Match[str]) -> str:
    """A displayed formula on a single line."""
    return f"{match[1]}$$ {' '.join(match[2].split())} $$"


def fold(title: str, body: str, is_open: bool = False) -> str:
    """A part that unfolds."""
    state = " open" if is_open else ""
    return f"<details{state}>\n<summary><b>{title}</b></summary>\n\n{body}\n\n</details>"


def display(page: Page, tex: str, label: str, line: int) -> str:
    """A displayed formula, with its number if it has a label."""
    text = maths(page, dedent(tex), line, True)
    number = page.shared.labels[label].text.strip("()") if label in page.shared.labels else ""
    return f"$$\n{text}" + (f" \\tag{{{number}}}" if number else "") + "\n$$"


def image_file(page: Page, name: str, line: int) -> str:
    """The name of an image file, which must be in the book."""
    if (page.shared.root / "book" / name).exists():
        return name
    return page.fault(line, f"there is no file book/{name}")


def image(page: Page, block: Directive) -> str:
    """An image from a file of the book."""
    alt = " ".join(block.options.get("alt", "").split())
    return f"![{alt}]({image_file(page, block.argument, block.line)})"


def caption(page: Page, text: str, label: str, line: int) -> str:
    """A figure's caption with its number."""
    entry = page.shared.labels.get(label)
    if entry is None:
        return page.fault(line, f"the site shows no figure {label!r}: give the caption a name")
    return f"**{entry.text}.** {convert(page, text, line)}"


def table(page: Page, block: Directive) -> str:
    """A list-table as a pipe table."""
    rows = table_rows(block.text)
    width = max(len(row) for row in rows)
    shown = [[convert(page, cell, block.body_line) for cell in row] for row in rows]
    shown = [row + [""] * (width - len(row)) for row in shown]
    if int(block.options.get("header-rows", 0)) == 0:
        shown.insert(0, [""] * width)
    shown.insert(1, ["---"] * width)
    lines = [f"| {' | '.join(row)} |" for row in shown]
    title = f"**{convert(page, block.argument, block.line)}**\n\n" if block.argument else ""
    return title + "\n".join(lines)


def table_rows(text: str) -> list[list[str]]:
    """The cells of a list-table: rows begin with `* -`, further cells with `-`."""
    rows: list[list[str]] = []
    for line in text.split("\n"):
        if match := re.match(r"^[*-] [-*] ?(.*)$", line):
            rows.append([match[1]])
        elif match := re.match(r"^ {2}[-*] ?(.*)$", line):
            rows[-1].append(match[1])
        elif line.strip() and rows:
            rows[-1][-1] += f" {line.strip()}"
    return rows


def card(page: Page, block: Directive) -> str:
    """A card's title, text and link."""
    header, _, rest = block.text.rpartition("\n^^^\n")
    body = "\n".join(line for line in rest.split("\n") if line.strip() != "+++")
    skipped = block.text.count("\n", 0, len(block.text) - len(rest))
    title = convert(page, block.argument, block.line)
    if goal := block.options.get("link", ""):
        kind = block.options.get("link-type", "url")
        title = {
            "doc": lambda: page_link(page, goal, block.line, title),
            "ref": lambda: refer(page, goal, block.line, title),
        }.get(kind, lambda: link(page, goal, block.line, title))()
    parts = [f"**{title}**" if title else "", convert(page, header, block.body_line)]
    return "\n\n".join(filter(None, [*parts, convert(page, body, block.body_line + skipped)]))


def proof(page: Page, block: Directive, body: str) -> str:
    """A theorem in a blockquote under its number; a proof in plain words."""
    short = block.name.removeprefix("prf:")
    title = convert(page, block.argument, block.line)
    if short == "proof":
        return f"*Proof{f' ({title})' if title else ''}.*\n\n{body} ∎"
    if short not in PROOF_TYPES:
        return page.fault(block.line, f"unknown directive {{{block.name}}}")
    entry = page.shared.labels.get(block.options.get("label", f"{page.name}:{block.line}"))
    name = entry.text if entry and entry.text else short.capitalize()
    return quote(f"{name}{f' ({title})' if title else ''}.", body)


def shown(page: Page, block: Directive) -> str:
    """A directive as plain Markdown."""
    name, title = block.name, block.argument
    if name in SILENT:
        return ""
    if name in WEBSITE:
        return WEBSITE[name]
    if name == "math":
        return display(page, block.text, block.options.get("label", ""), block.body_line)
    if name in ("code-block", "code", "sourcecode"):
        return f"```{title}\n{block.text}\n```"
    if name == "list-table":
        return table(page, block)
    if name == "image":
        return image(page, block)
    if name == "figure":
        parts = [image(page, block)]
        if block.text:
            label = block.options.get("name", "")
            parts.append(caption(page, block.text, label, block.body_line))
        return "\n\n".join(parts)
    if name in ("card", "grid-item-card"):
        text = card(page, block)
        return quote("", text) if name == "card" else text
    body = convert(page, block.text, block.body_line)
    if name.startswith("prf:"):
        return proof(page, block, body)
    heading = convert(page, title, block.line)
    if name in ("admonition", "sidebar", "topic"):
        return quote(heading, body)
    if name in ADMONITIONS:
        first = f"{heading}\n\n" if heading else ""
        return quote("See also" if name == "seealso" else name.capitalize(), first + body)
    if name == "dropdown":
        return fold(heading, body, "open" in block.options)
    if name in ("margin", "epigraph", "pull-quote"):
        return quote("", "\n\n".join(filter(None, [heading, body])))
    if name in ("grid", "grid-item", "tab-set", "div", "container"):
        return body
    if name in ("tab-item", "rubric", "table"):
        return "\n\n".join(filter(None, [f"**{heading}**", body]))
    return page.fault(block.line, f"unknown directive {{{name}}}")


def references(page: Page) -> str:
    """The references cell; empty where nothing is cited."""
    works = [page.shared.citations[key] for key in page.cited]
    lines = [f"- {work.line}" for work in sorted(works, key=lambda w: (w.authors, w.year))]
    return "\n".join(["## References", "", *lines]) if lines else ""


def path(page: Page) -> Path:
    """The page's file as messages name it."""
    return Path("book", f"{page.name}.md")
