"""A resolved doctree as plain Markdown: what Colab, GitHub and VS Code all show well."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from textwrap import dedent, indent

from docutils import nodes
from sphinx import addnodes
from sphinx.environment import BuildEnvironment
from sphinx_proof.nodes import proof_node

from tools.bibliography import Citation

SILENT = (nodes.target, nodes.comment, nodes.system_message, addnodes.index)
SPECIAL = re.compile(r"([\\`*$]|(?<!\w)_|_(?!\w)|<(?=[A-Za-z/!?])|\[(?=[^\]]*\]\())")
NUMBERED = re.compile(r"\([\d.]+\)|[A-Z][a-z]+ [\d.]+")  # a reference that says no more
FORMULA = re.compile(r"^( *)\$\$\n(.*?)\n *\$\$$", re.MULTILINE | re.DOTALL)
RAW = "*The website shows an interactive part here.*"


@dataclass
class Page:
    """A page under conversion: what it may use, and how it tells what it cannot show."""

    env: BuildEnvironment
    name: str
    site: str  # the address of the website; empty while it is unknown
    works: dict[str, Citation]  # by their places in the bibliography
    fault: Callable[[nodes.Node, str], None]


def cells(page: Page, root: nodes.Element) -> Iterator[str | None]:
    """The Markdown cells of a page, the captions of figures among them; None for one of code."""
    text: list[str] = []
    for node in pieces(root):
        if not (isinstance(node, nodes.container) and node.get("nb_element") == "cell_code"):
            text.append(block(page, node))
            continue
        if any(text):
            yield "\n\n".join(filter(None, text))
        yield None
        yield from (caption(page, figure) for figure in node.findall(nodes.figure))
        text = []
    if any(text):
        yield "\n\n".join(filter(None, text))
    if works := references(page, root):
        yield works


def references(page: Page, root: nodes.Element) -> str:
    """The works that a page cites."""
    links = (link.get("refuri") for link in root.findall(nodes.reference))
    works = sorted({page.works[place] for place in links if place in page.works})
    return "\n".join(["## References", "", *(f"- {w.line}" for w in works)]) if works else ""


def pieces(root: nodes.Element) -> Iterator[nodes.Node]:
    """What stands in the sections of a page, one after the other."""
    for node in root.children:
        yield from pieces(node) if isinstance(node, nodes.section) else [node]


def block(page: Page, node: nodes.Node) -> str:
    """A block as plain Markdown; a node can say for itself what a notebook shows."""
    if isinstance(node, nodes.Element) and "portable" in node:
        return str(node["portable"])
    match node:
        case nodes.title():
            return f"{'#' * depth(node)} {inlines(page, node)}"
        case nodes.math_block():
            return display(page, node)
        case nodes.literal_block():
            text = node.astext().strip("\n")
            return f"```{node.get('language', '')}\n{text}\n```"
        case nodes.bullet_list():
            return listed(page, node, ("-" for _ in node))
        case nodes.enumerated_list():
            return listed(page, node, (f"{n}." for n in count(node.get("start", 1))))
        case nodes.table():
            return table(page, node)
        case nodes.figure():
            return f"{inline(page, node[0])}\n\n{caption(page, node)}"
        case nodes.image():
            return inline(page, node)
        case nodes.block_quote() | nodes.sidebar():
            return quote("", blocks(page, node))
        case nodes.footnote():
            return f"<sup>{node[0].astext()}</sup> {blocks(page, node, 1)}"
        case nodes.transition():
            return "---"
        case nodes.raw():
            return RAW
        case proof_node():
            return f"*Proof.*{blocks(page, node[0]).removeprefix('Proof.')} ∎"
        case nodes.Admonition():
            titled = isinstance(node[0], nodes.title)
            title = inlines(page, node[0]) if titled else node.tagname.capitalize()
            body = blocks(page, node, int(titled))
            return quote(theorem(page, node, title) if "realtype" in node else title, body)
        case nodes.container() if node.get("design_component") == "dropdown":
            title, body = inlines(page, node[0]), blocks(page, node, 1)
            return f"<details>\n<summary><b>{title}</b></summary>\n\n{body}\n\n</details>"
        case nodes.container() if "stated" in node["classes"]:
            return quote("Claim.", blocks(page, node))
        case nodes.container() | nodes.compound() | nodes.section():
            return blocks(page, node)
        case _ if isinstance(node, SILENT):
            return ""
        case nodes.TextElement():  # a paragraph, a rubric
            return inlines(page, node)
    page.fault(node, f"a notebook cannot show <{node.tagname}>")
    return ""


def blocks(page: Page, node: nodes.Element, first: int = 0) -> str:
    """The blocks inside a node, an empty line between them."""
    return "\n\n".join(filter(None, (block(page, part) for part in node.children[first:])))


def inlines(page: Page, node: nodes.Element) -> str:
    """The words inside a node."""
    return "".join(inline(page, part) for part in node.children)


def inline(page: Page, node: nodes.Node) -> str:
    """A piece of a sentence as plain Markdown."""
    match node:
        case nodes.Text():
            return SPECIAL.sub(r"\\\1", node.astext())
        case nodes.math():
            return f"${node.astext().strip()}$"
        case nodes.strong():
            return f"**{inlines(page, node)}**"
        case nodes.emphasis():
            return f"*{inlines(page, node)}*"
        case nodes.literal():
            return f"`{node.astext()}`"
        case nodes.image():
            return f"![{node.get('alt', '')}]({node['uri']})"
        case nodes.footnote_reference():
            return f"<sup>{node.astext()}</sup>"
        case nodes.reference():  # a number_reference is one
            return reference(page, node)
        case nodes.raw():
            return node.astext()
        case nodes.inline() if "bibtex-citation" in node["classes"]:
            return cited(page, node)
        case nodes.inline():
            return inlines(page, node)
        case _ if isinstance(node, SILENT):
            return ""
    page.fault(node, f"a notebook cannot show <{node.tagname}>")
    return ""


def cited(page: Page, node: nodes.inline) -> str:
    """A citation; one in a sentence, Kou et al. (2023), leads to its work with all its words."""
    links = list(node.findall(nodes.reference))
    if len(links) == 1 and not node.astext().startswith("("):
        return linked(node.astext(), page.works[links[0]["refuri"]].link)
    return inlines(page, node)


def reference(page: Page, node: nodes.reference) -> str:
    """A link to a cited work or to the website; words alone within the page."""
    words, place = inlines(page, node), node.get("refuri", f"#{node.get('refid', '')}")
    if place in page.works:
        return linked(words, page.works[place].link)
    if place.startswith("#"):
        title = heading(node, place[1:])
        title = inlines(page, title) if title else ""
        same = title.lower() == words.lower()
        return (f"*{title}*" if same else f"{words} (*{title}*)") if title else words
    if place.startswith("?"):  # a state of the lab, which the website has
        return linked(words, page.site and f"{page.site}/{page.name}.html{place}")
    if not node.get("internal"):
        return linked(words, place)
    name = place.partition("#")[0].removesuffix(".html")
    there = page.site and f"{page.site}/{place}"
    if NUMBERED.fullmatch(words):
        return f"{words} of {linked(inlines(page, page.env.titles[name]), there)}"
    return linked(words, there)


def linked(words: str, place: str) -> str:
    """Words that lead to a place, if there is one."""
    return f"[{words}]({place})" if place else words


def heading(node: nodes.Node, anchor: str) -> nodes.title | None:
    """The title of a section of this page, to which no notebook of Colab can lead."""
    sections = node.document.findall(nodes.section)
    return next((section[0] for section in sections if anchor in section["ids"]), None)


def depth(node: nodes.Node) -> int:
    """How many sections a node stands in."""
    parent = node.parent
    return depth(parent) + isinstance(parent, nodes.section) if parent else 0


def number(page: Page, kind: str, node: nodes.Element) -> str:
    """The number that the site gives to a theorem, a figure or an equation."""
    counts = page.env.toc_fignumbers.get(page.name, {}).get(kind, {})
    return ".".join(map(str, counts.get(node["ids"][0], ())))


def display(page: Page, node: nodes.math_block) -> str:
    """A displayed formula, with its number if it has a label."""
    long = page.env.config.numfig and page.env.config.math_numfig
    told = number(page, "displaymath", node) if long and node["ids"] else node["number"]
    tex = dedent(node.astext()).strip("\n") + (f" \\tag{{{told}}}" if told else "")
    return f"$$\n{tex}\n$$"


def caption(page: Page, figure: nodes.figure) -> str:
    """A figure's caption with its number."""
    name = page.env.config.numfig_format["figure"] % number(page, "figure", figure)
    words = "".join(inlines(page, part) for part in figure.findall(nodes.caption))
    return f"**{name}.** {words}"


def theorem(page: Page, node: nodes.Element, title: str) -> str:
    """The name of a theorem with its number, unless it says :nonumber:."""
    kind, label = node["realtype"], node["label"]
    if re.fullmatch(rf"{kind}-\d+", label):
        page.fault(node, f"{{prf:{kind}}} needs a :label:")
    alike = [n for n in node.document.findall(nodes.Admonition) if n.get("label") == label]
    last = vars(page.env)["proof_list"][label]["docname"]
    if alike[0] is not node or last != page.name:
        page.fault(node, f"the label {label!r} stands twice")
    return f"{kind.title()} {number(page, node['countertype'], node)}".rstrip() + f"{title}."


def quote(title: str, body: str) -> str:
    """A blockquote with a bold title; formulas in it on one line, which every reader can show."""
    text = f"**{title}**\n\n{body}" if title else body
    text = FORMULA.sub(lambda m: f"{m[1]}$$ {' '.join(m[2].split())} $$", text)
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def listed(page: Page, node: nodes.Element, marks: Iterable[str]) -> str:
    """A list, its items apart where one has more than a paragraph."""
    items = []
    for mark, item in zip(marks, node.children, strict=False):
        text = indent(blocks(page, item), " " * (len(mark) + 1))
        items.append(f"{mark} {text.lstrip()}")
    return ("\n\n" if any("\n\n" in item for item in items) else "\n").join(items)


def table(page: Page, node: nodes.table) -> str:
    """A pipe table, below its title."""
    rows = [
        [" ".join(blocks(page, entry).split()).replace("|", "\\|") for entry in row]
        for row in node.findall(nodes.row)
    ]
    if not any(node.findall(nodes.thead)):
        rows.insert(0, [""] * len(rows[0]))
    rows.insert(1, ["---"] * len(rows[0]))
    title = f"**{inlines(page, node[0])}**\n\n" if isinstance(node[0], nodes.title) else ""
    return title + "\n".join(f"| {' | '.join(row)} |" for row in rows)
