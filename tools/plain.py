"""A page's MyST as plain Markdown: what Colab, GitHub and VS Code all show well."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tools.labels import Book, Label
from tools.maths import expand, faults
from tools.myst import PROOF_KINDS, Block, MystError, blocks

ROLE = r"\{(?P<role>[A-Za-z][\w:.-]*)\}(?P<tick>`+)(?P<content>.+?)(?<!`)(?P=tick)(?!`)"
INLINE = re.compile(
    rf"(?P<escaped>\\[^\n])|{ROLE}|(?P<code>(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`))"
    r"|(?P<comment><!--.*?-->)|\$\$(?P<display>.+?)\$\$|\$(?P<maths>(?:\\.|[^$\\])+)\$"
    r"|\[\^(?P<note>[\w-]+)\](?P<definition>:?)"
    r"|!\[[^\]]*\]\((?P<file>[^)\s]+)\)|(?P<link>\[(?P<text>[^\[\]]*)\]\((?P<goal>[^)\s]+)\))"
    r"|(?P<attributes>(?<=[\])`*])\{[.#][^}\n]*\})"
    r"|(?P<substitution>\{\{.+?\}\})",
    re.DOTALL,
)
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
    formulas: list[tuple[int, str, bool]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    found: list[tuple[int, str]] = field(default_factory=list)

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
    return f"[{text or inline(page, page.shared.titles.get(name, name), line)}]({href(page, name)})"


def refer(page: Page, label: str, line: int, text: str = "") -> str:
    """A reference to a label: plain text here, a link to the page where it stands elsewhere."""
    entry = page.shared.labels.get(label)
    if entry is None:
        return page.fault(line, f"undefined label {label!r}")
    shown = text or (inline(page, entry.text, line) if entry.kind == "section" else entry.text)
    if not shown:
        return page.fault(line, f"the label {label!r} has no title: write {{ref}}`text <{label}>`")
    if entry.page == page.name:
        return shown
    if text or entry.kind == "section":
        return f"[{shown}]({href(page, entry.page)})"
    return f"{shown} of {page_link(page, entry.page, line)}"


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
    """A formula with the book's macros expanded, noted for the check."""
    try:
        text = expand(tex.strip(), page.shared.macros)
    except ValueError as error:
        return page.fault(line, f"{error} in {tex!r}")
    page.formulas.append((line, text, display))
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


def inline(page: Page, text: str, line: int) -> str:
    """Roles, formulas, links and footnotes of a piece of prose."""

    def replace(match: re.Match[str]) -> str:
        here = line + text.count("\n", 0, match.start())
        if match["role"]:
            return role(page, match["role"], match["content"], here)
        if match["maths"]:
            return f"${maths(page, match['maths'], here, False)}$"
        if match["display"]:
            return f"$${maths(page, match['display'], here, True)}$$"
        if match["note"]:
            return note(page, match["note"]) + (" " if match["definition"] else "")
        if match["file"]:
            return image_file(page, match["file"], here) and match[0]
        if match["link"]:
            return link(page, match["goal"], here, inline(page, match["text"], here))
        if match["substitution"]:
            return page.fault(here, f"substitutions are not used in this book: {match[0]}")
        return "" if match["attributes"] else match[0]

    return INLINE.sub(replace, text)


def prose(page: Page, text: str, line: int) -> str:
    """Paragraphs, each for itself: nothing inline crosses a blank line."""
    out = []
    for piece in re.split(r"(\n\s*\n)", text):
        out.append(piece if not piece.strip() else inline(page, piece, line))
        line += piece.count("\n")
    return "".join(out).strip("\n")


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


def display(page: Page, block: Block, label: str) -> str:
    """A displayed formula, with its number if it has a label."""
    line = block.body_line or block.line
    tex = maths(page, block.text, line, True)
    number = page.shared.numbers.get((page.name, block.line), "").strip("()")
    return f"$$\n{tex}" + (f" \\tag{{{number}}}" if label else "") + "\n$$"


def image_file(page: Page, name: str, line: int) -> str:
    """The name of an image file, which must be in the book."""
    if (page.shared.root / "book" / name).exists():
        return name
    return page.fault(line, f"there is no file book/{name}")


def image(page: Page, block: Block) -> str:
    """An image from a file of the book."""
    alt = " ".join(block.options.get("alt", "").split())
    return f"![{alt}]({image_file(page, block.argument, block.line)})"


def caption(page: Page, text: str, line: int, place: int) -> str:
    """A figure's caption with its number."""
    number = page.shared.numbers[page.name, place]
    return f"**{number}.** {prose(page, text, line)}"


def table(page: Page, block: Block) -> str:
    """A list-table as a pipe table."""
    rows = table_rows(block.text)
    width = max(len(row) for row in rows)
    shown = [[prose(page, cell, block.body_line) for cell in row] for row in rows]
    shown = [row + [""] * (width - len(row)) for row in shown]
    if int(block.options.get("header-rows", 0)) == 0:
        shown.insert(0, [""] * width)
    shown.insert(1, ["---"] * width)
    lines = [f"| {' | '.join(row)} |" for row in shown]
    title = f"**{prose(page, block.argument, block.line)}**\n\n" if block.argument else ""
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


def card(page: Page, block: Block) -> str:
    """A card's title, text and link."""
    header, _, rest = block.text.rpartition("\n^^^\n")
    body = "\n".join(line for line in rest.split("\n") if line.strip() != "+++")
    skipped = block.text.count("\n", 0, len(block.text) - len(rest))
    title = prose(page, block.argument, block.line)
    if goal := block.options.get("link", ""):
        kind = block.options.get("link-type", "url")
        title = {
            "doc": lambda: page_link(page, goal, block.line, title),
            "ref": lambda: refer(page, goal, block.line, title),
        }.get(kind, lambda: link(page, goal, block.line, title))()
    parts = [f"**{title}**" if title else "", prose(page, header, block.body_line)]
    return "\n\n".join(filter(None, [*parts, convert(page, body, block.body_line + skipped)]))


def proof(page: Page, block: Block, body: str) -> str:
    """A theorem in a blockquote under its number; a proof in plain words."""
    short = block.name.removeprefix("prf:")
    title = prose(page, block.argument, block.line)
    if short == "proof":
        return f"*Proof{f' ({title})' if title else ''}.*\n\n{body} ∎"
    if short not in PROOF_KINDS:
        return page.fault(block.line, f"unknown directive {{{block.name}}}")
    name = page.shared.numbers.get((page.name, block.line), short.capitalize())
    return quote(f"{name}{f' ({title})' if title else ''}.", body)


def directive(page: Page, block: Block) -> str:
    """A directive as plain Markdown."""
    name, title = block.name, block.argument
    if name in SILENT:
        return ""
    if name in WEBSITE:
        return WEBSITE[name]
    if name == "math":
        return display(page, block, block.options.get("label", ""))
    if name in ("code-block", "code", "sourcecode"):
        return f"```{title}\n{block.text}\n```"
    if name == "list-table":
        return table(page, block)
    if name == "image":
        return image(page, block)
    if name == "figure":
        shown = image(page, block)
        text = block.text
        return f"{shown}\n\n{caption(page, text, block.body_line, block.line)}" if text else shown
    if name in ("card", "grid-item-card"):
        text = card(page, block)
        return quote("", text) if name == "card" else text
    body = convert(page, block.text, block.body_line)
    if name.startswith("prf:"):
        return proof(page, block, body)
    heading = prose(page, title, block.line)
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


def render(page: Page, block: Block) -> str:
    """One block as plain Markdown, at its own indentation."""
    if block.kind == "text":
        return prose(page, block.text, block.line)
    if block.kind == "target":
        return ""
    text = block.text
    if block.kind == "math":
        text = display(page, block, block.name)
    elif block.kind == "directive":
        text = directive(page, block)
    return "\n".join(f"{block.indent}{line}" if line.strip() else "" for line in text.split("\n"))


def convert(page: Page, text: str, line: int) -> str:
    """MyST whose first line is number `line` of its file, as plain Markdown."""
    try:
        pieces = [render(page, block) for block in blocks(text, line)]
    except MystError as fault:
        return page.fault(fault.line, str(fault))
    return "\n\n".join(piece for piece in pieces if piece.strip())


def check_maths(page: Page) -> None:
    """Every formula must render without the book's macros."""
    answers = faults([(tex, shown) for _, tex, shown in page.formulas])
    for (line, tex, _), answer in zip(page.formulas, answers, strict=True):
        if answer:
            page.fault(line, f"{answer} (formula {tex[:60]!r})")


def references(page: Page) -> str:
    """The references cell; empty where nothing is cited."""
    works = [page.shared.citations[key] for key in page.cited]
    lines = [f"- {work.line}" for work in sorted(works, key=lambda w: (w.authors, w.year))]
    return "\n".join(["## References", "", *lines]) if lines else ""


def path(page: Page) -> Path:
    """The page's file as messages name it."""
    return Path("book", f"{page.name}.md")
