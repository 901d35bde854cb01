"""A page's MyST as plain Markdown: what Colab, GitHub and VS Code all show well."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from textwrap import dedent
from typing import Any

from markdown_it.token import Token
from myst_parser.mdit_to_docutils.base import default_slugify
from sphinx_proof.proof_type import PROOF_TYPES

from tools import readers
from tools.labels import Book
from tools.maths import expand, katex_html
from tools.myst import Directive, directive

TITLED = re.compile(r"^(?P<title>.*?)\s*<(?P<target>[^<>]+)>$", re.DOTALL)
HEADING = re.compile(r"^##+ (.+)$", re.MULTILINE)
FORMULA = re.compile(r"^( *)\$\$\n(.*?)\n *\$\$$", re.MULTILINE | re.DOTALL)
ADMONITIONS = ("note", "tip", "warning", "important", "hint")
RAW = "*The website shows an interactive part here.*"
LAB = (
    "> **Live lab: {}** On {} its sliders retrain the network in the page. Here in the notebook,"
    " change `seed` or a number in a cell and run what stands below it; *Play* says what to try."
)


@dataclass
class Page:
    """A page under conversion: what it may use, and what has been found on the way."""

    shared: Book
    name: str
    glue: dict[str, str]
    site: str = ""  # the address of the website, where it is known
    cited: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    found: list[tuple[int, str]] = field(default_factory=list)
    env: dict[str, Any] = field(default_factory=dict)

    def fault(self, line: int, message: str) -> str:
        """Record a fault; nothing is put in its place."""
        self.found.append((line, message))
        return ""


def led(page: Page, name: str, text: str) -> str:
    """Words that lead to a page of the website; words alone while its address is unknown."""
    return f"[{text}]({page.site}/{name}.html)" if page.site else text


def page_link(page: Page, name: str, line: int, text: str = "") -> str:
    """A link to another page."""
    name = name.removesuffix(".md").removesuffix(".ipynb").removeprefix("./").removeprefix("/")
    if name not in page.shared.pages:
        return page.fault(line, f"there is no page {name!r} in _toc.yml")
    return led(page, name, text or convert(page, page.shared.titles[name], line))


def refer(page: Page, label: str, line: int, text: str = "") -> str:
    """A reference to a label, its number for %s: plain text here, elsewhere a link to its page."""
    entry = page.shared.labels.get(label)
    if entry is None:
        return page.fault(line, f"undefined label {label!r}")
    text = text.replace("%s", entry.text.split(" ")[-1])
    words = text or (convert(page, entry.text, line) if entry.kind == "section" else entry.text)
    if not words:
        return page.fault(line, f"the label {label!r} has no title: write {{ref}}`text <{label}>`")
    if entry.page == page.name:
        return words
    if text or entry.kind == "section":
        return led(page, entry.page, words)
    return f"{words} of {page_link(page, entry.page, line)}"


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
        shown.append(work.words(form == "t"))
    return ", ".join(shown) if form == "t" else f"({'; '.join(shown)})"


def maths(page: Page, tex: str, line: int, display: bool) -> str:
    """A formula with the book's macros expanded; it must render without them."""
    try:
        text = expand(tex.strip(), page.shared.macros)
        katex_html(text, display)
    except ValueError as error:
        return page.fault(line, f"{error} (formula {tex.strip()[:60]!r})")
    return text


def value(page: Page, name: str, line: int) -> str:
    """The value a cell glued under this name."""
    known = ", ".join(page.glue) or "nothing"
    missing = f"undefined glue {name!r}; this chapter glues {known}"
    return page.glue[name] if name in page.glue else page.fault(line, missing)


def seconds(page: Page, name: str, line: int) -> str:
    """CPU seconds of a chapter."""
    if name in page.shared.timings:
        return f"{page.shared.timings[name]} s"
    return page.fault(line, f"book/_generated/timings.json has no {name!r}: run `make timings`")


def role(page: Page, name: str, content: str, line: int) -> str:
    """A role as plain Markdown."""
    content = " ".join(content.split())
    match = TITLED.match(content)
    title, target = (match["title"], match["target"]) if match else ("", content)
    forms: dict[str, Callable[[], str]] = {
        "math": lambda: f"${maths(page, content, line, False)}$",
        "doc": lambda: page_link(page, target, line, title),
        "cite:t": lambda: cite(page, content, line, "t"),
        "cite:p": lambda: cite(page, content, line, "p"),
        "glue:text": lambda: value(page, content, line),
        "cpu": lambda: seconds(page, content, line),
    }
    kinds = ("eq", "ref", "prf:ref", "numref")
    forms |= dict.fromkeys(kinds, lambda: refer(page, target, line, title))
    if name not in forms:
        return page.fault(line, f"unknown role {{{name}}}; known: {', '.join(sorted(forms))}")
    return forms[name]()


def headings(page: Page) -> dict[str, str]:
    """The page's own headings by their anchors, which no notebook of Colab can follow."""
    source = readers.text(page.shared.root / "book" / f"{page.name}.md")
    return {default_slugify(title): title for title in HEADING.findall(source)}


def link(page: Page, goal: str, line: int, text: str) -> str:
    """A Markdown link: labels and pages of the book as in the portable notebooks."""
    label = goal.removeprefix("#")
    if label in page.shared.labels:
        return refer(page, label, line, text)
    if label != goal and (title := convert(page, headings(page).get(label, ""), line)):
        return f"*{title}*" if text.lower() == title.lower() else f"{text} (*{title}*)"
    stem, _, _ = goal.partition("#")
    if re.match(r"^[a-z]+:", goal) or not stem.endswith((".md", ".ipynb")):
        return f"[{text}]({goal})"
    return page_link(page, stem, line, text)


def note(page: Page, name: str) -> str:
    """A footnote's number."""
    if name not in page.notes:
        page.notes.append(name)
    return f"<sup>{page.notes.index(name) + 1}</sup>"


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
            check_file(page, str(token.attrs["src"]), line)
        case "link_open" if "](" in text:
            label, _, goal = text[1:-1].rpartition("](")
            return link(page, goal, line, convert(page, label, line))
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
    pieces, place = [""], 0
    for start, end, new, alone in changes(page, text, line):
        pieces[-1] += text[place:start]
        if alone:
            pieces += [new, ""]
        else:
            pieces[-1] += new
        place = end
    pieces[-1] += text[place:]
    return "\n\n".join(piece.strip("\n") for piece in pieces if piece.strip())


def block(page: Page, token: Token, opening: str, line: int) -> str | None:
    """A block as plain Markdown at its own indentation; None where it stays as it is."""
    match token.type:
        case "myst_target" | "myst_line_comment" | "myst_block_break":
            return ""
        case "amsmath":
            return page.fault(line, "write displayed maths as $$ … $$ (label)")
        case "math_block" | "math_block_label":
            text = display(page, token.content, token.info, line)
        case "fence" | "colon_fence" if found := directive(token, line):
            text = shown(page, found)
        case _:
            return None
    head = opening[: opening.index(token.markup)]
    rest = re.sub(r"[^>\s]", " ", head)
    first, *more = text.split("\n")
    return "\n".join([head + first, *(rest + item if item.strip() else "" for item in more)])


def quote(title: str, body: str) -> str:
    """A blockquote with a bold title; formulas in it on one line, which every reader can show."""
    text = f"**{title}**\n\n{body}" if title else body
    text = FORMULA.sub(lambda m: f"{m[1]}$$ {' '.join(m[2].split())} $$", text)
    return "\n".join(f"> {line}" if line.strip() else ">" for line in text.split("\n"))


def display(page: Page, tex: str, label: str, line: int) -> str:
    """A displayed formula, with its number if it has a label."""
    text = maths(page, dedent(tex), line, True)
    number = page.shared.labels[label].text.strip("()") if label in page.shared.labels else ""
    return f"$$\n{text}" + (f" \\tag{{{number}}}" if number else "") + "\n$$"


def check_file(page: Page, name: str, line: int) -> None:
    """An image must be a file of the book."""
    if not (page.shared.root / "book" / name).exists():
        page.fault(line, f"there is no file book/{name}")


def caption(page: Page, text: str, label: str, line: int) -> str:
    """A figure's caption with its number."""
    entry = page.shared.labels.get(label)
    if entry is None:
        return page.fault(line, f"the site shows no figure {label!r}: give the caption a name")
    return f"**{entry.text}.** {convert(page, text, line)}"


def lab_title(page: Page, block: Directive) -> str:
    """What a lab is called."""
    path = page.shared.root / f"book/labs/{block.argument}.json"
    if not path.exists():
        return page.fault(block.line, f"there is no lab {block.argument!r}")
    return str(readers.read_json(path)["title"])


def table(page: Page, block: Directive) -> str:
    """A list-table as a pipe table: rows begin with `* -`, further cells with `  -`."""
    rows: list[list[str]] = []
    for item in re.split(r"(?m)^(?=[* ] - )", block.text)[1:]:
        rows += [[]] if item.startswith("*") else []
        rows[-1].append(convert(page, " ".join(item[4:].split()), block.body_line))
    if "header-rows" not in block.options:
        rows.insert(0, [""] * len(rows[0]))
    rows.insert(1, ["---"] * len(rows[0]))
    title = f"**{convert(page, block.argument, block.line)}**\n\n" if block.argument else ""
    return title + "\n".join(f"| {' | '.join(row)} |" for row in rows)


def proof(page: Page, block: Directive, title: str, body: str) -> str:
    """A theorem in a blockquote under its number; a proof in plain words."""
    short, title = block.name.removeprefix("prf:"), f" ({title})" if title else ""
    if short == "proof":
        return f"*Proof{title}.*\n\n{body} ∎"
    if short not in PROOF_TYPES:
        return page.fault(block.line, f"unknown directive {{{block.name}}}")
    entry = page.shared.labels.get(block.options.get("label", ""))
    if entry is None:
        return page.fault(block.line, f"{{{block.name}}} needs a :label:")
    name = entry.text or short.capitalize()  # without a number where it says :nonumber:
    return quote(f"{name}{title}.", body)


def shown(page: Page, block: Directive) -> str:
    """A directive as plain Markdown."""
    name, line = block.name, block.line
    if name == "raw":
        return RAW
    if name == "lab":
        title = lab_title(page, block)
        asked = title if title[-1:] in "?!" else f"{title}."
        return LAB.format(asked, led(page, page.name, "the book’s website"))
    if name == "math":
        return display(page, block.text, block.options.get("label", ""), block.body_line)
    if name == "list-table":
        return table(page, block)
    title = convert(page, block.argument, line)
    body = convert(page, block.text, block.body_line)
    if name.startswith("prf:"):
        return proof(page, block, title, body)
    if name == "figure":
        check_file(page, block.argument, line)
        alt = " ".join(block.options.get("alt", "").split())
        text = caption(page, block.text, block.options.get("name", ""), block.body_line)
        return f"![{alt}]({block.argument})\n\n{text}"
    if name == "claim":
        return quote("Claim.", body)
    if name in ("admonition", *ADMONITIONS):
        return quote(title if name == "admonition" else name.capitalize(), body)
    if name == "dropdown":
        return f"<details>\n<summary><b>{title}</b></summary>\n\n{body}\n\n</details>"
    if name == "grid":
        return body
    if name == "grid-item-card":
        goal = block.options.get("link", "")
        return f"**{page_link(page, goal, line, title) if goal else title}**\n\n{body}"
    return page.fault(line, f"unknown directive {{{name}}}")


def references(page: Page) -> str:
    """The references cell; empty where nothing is cited."""
    works = [page.shared.citations[key] for key in page.cited]
    works.sort(key=lambda w: (w.authors, w.year))
    return "\n".join(["## References", "", *(f"- {w.line}" for w in works)]) if works else ""
