"""What every page needs beside its text: description, downloads, buttons, sound HTML."""

import re
from pathlib import Path
from typing import Any

import imagesize
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.builders.html._assets import _JavaScript
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

from tools import address
from tools.names import BRANCH

LOGGER = logging.getLogger(__name__)
DESCRIPTION_LENGTH = 160  # characters shown by a search engine


def repository_buttons(app: Sphinx, config: Any) -> None:
    """Show repository and Colab buttons where the book knows its address, else none."""
    if repository := address.repository(Path(app.srcdir).parent):
        config.html_theme_options |= {
            "repository_url": repository,
            "repository_branch": BRANCH,
            "path_to_docs": "book",
            "use_repository_button": True,
            "launch_buttons": {"colab_url": "https://colab.research.google.com"},
        }


STOP = re.compile(r"[,.;:!?)’]+")
# what no style colours, and the TeX that no page reads
PLAIN = re.compile(r'<span class="(?:n|p|w)">([^<]*)</span>|<annotation.*?</annotation>', re.S)


def behind(parent: nodes.Element, place: int) -> str:
    """The text from a place on, past the end of the bold words or the link that it may be in."""
    while not (text := "".join(node.astext() for node in parent[place:])):
        if not isinstance(parent, nodes.Inline):
            break
        parent, place = parent.parent, parent.parent.index(parent) + 1
    return text


class Glued(SphinxPostTransform):
    """Keep a comma on the line of the formula before it.

    A formula is a box, and a browser may break a line on either side of one. A sign in a box that
    takes no room always fits; a space, wider by so many signs (a question mark is two), makes up
    for that. It stands before the text's own, which a browser then drops.
    """

    default_priority = 800
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        """Put the signs after each formula into such a box."""
        for formula in list(self.document.findall(nodes.math)):
            parent, place = formula.parent, formula.parent.index(formula) + 1
            after = parent[place] if place < len(parent) else None
            if isinstance(after, nodes.Text) and (found := STOP.match(after)):
                signs = found[0]
                box = nodes.inline("", signs, classes=["stop"])
                parent[place : place + 1] = [box, nodes.Text(after[len(signs) :])]
                if behind(parent, place + 1)[:1].isspace():
                    width = min(len(signs) + signs.count("?"), 3)
                    wide = nodes.inline("", " ", classes=[f"after-{width}"])
                    parent.insert(place + 1, wide)


class NoToggles(SphinxTransform):
    """Ask for a real dropdown where a box is folded by a class that needs a script."""

    default_priority = 800

    def apply(self, **kwargs: Any) -> None:
        """Warn at each box that carries the class."""
        for box in self.document.findall(nodes.Admonition):
            if "dropdown" in box.get("classes", []):
                LOGGER.warning("use the directive {dropdown}, not the class", location=box)


def description(doctree: nodes.document) -> str:
    """The first plain paragraph of a page, cut at a word."""
    for paragraph in doctree.findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        if isinstance(paragraph.parent, nodes.section) and len(text) > 40:
            cut = text[: DESCRIPTION_LENGTH - 1].rsplit(" ", 1)[0] + "…"
            return text if len(text) <= DESCRIPTION_LENGTH else cut
    return ""


def sized_images(body: str, files: dict[str, Path]) -> str:
    """Give each image its size, so that the page does not jump, and load it when it is near."""

    def attributes(match: re.Match[str]) -> str:
        folder, _, name = match["place"].partition("/")
        source = files.get(name) if folder == "_images" else files["_static"] / name
        load = 'loading="lazy"'
        if name.startswith("front-light"):  # what is seen first
            load = 'fetchpriority="high"'
        width, height = imagesize.get(source) if source else (-1, -1)
        size = f'width="{width}" height="{height}" ' if width > 0 else ""
        return f'<img {load} decoding="async" {size}{match["rest"]}'

    return re.sub(
        r'<img (?P<rest>[^>]*?src="(?P<place>_(?:images|static)/[^"]+)")', attributes, body
    )


def mend(body: str) -> str:
    """Repair what upstream writes badly: repeated ids, roles that assistive software rejects."""
    body = body.replace('id="proof-content"', "")  # sphinx-proof: once for each theorem,
    body = body.replace(
        '<div class="proof admonition" id="proof">', '<div class="proof admonition">'
    )
    # a name that differs from the words on the button
    body = body.replace('<summary aria-label="Toggle hidden content">', "<summary>")
    # docutils marks bibliographies and footnotes with deprecated or childless roles
    return re.sub(r' role="(?:doc-biblioentry|doc-footnote|list|note)"', "", body)


def claim_boxes(body: str, ledger: str) -> str:
    """Lead from each claim's box to its row of the ledger; the book's style is its only one."""

    def box(found: re.Match[str]) -> str:
        plain = re.sub(r' style="[^"]*"', "", found[0])
        return plain.replace("</dd>", f' <a href="{ledger}#{found[1]}">in the ledger</a></dd>', 1)

    whole = r'<details class="claim \w+" id="claim-([\w.]+)".*?</details>'
    return re.sub(whole, box, body, flags=re.DOTALL)


def deferred(files: list[Any]) -> list[Any]:
    """The scripts, run when the page is read: only an inline one needs the options before."""
    late = []
    for file in files:
        name = str(file.filename)
        wait = {} if not name or "documentation_options" in name else {"defer": "defer"}
        attributes = {key: text for key, text in file.attributes.items() if key != "body"}
        late.append(
            _JavaScript(file.filename, priority=file.priority, **attributes | wait)
            if wait
            else file
        )
    return late


def page_context(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Fill in what the templates and the theme read."""
    if doctree is None:
        return
    if 'name="description"' not in context["metatags"]:
        text = description(doctree).replace("&", "&amp;").replace('"', "&quot;")
        context["metatags"] += f'\n<meta name="description" content="{text}" />'
    context["script_files"] = deferred(context["script_files"])
    if "kernelspec" in app.env.metadata[page]:
        context["ipynb_source"] = f"{page}.ipynb"
    files = {v: Path(app.srcdir, k.lstrip("/")) for k, v in app.builder.images.items()}
    files["_static"] = Path(app.srcdir, "_generated/assets")
    body = mend(sized_images(context["body"], files))
    if "claims" in app.env.found_docs:
        body = claim_boxes(body, app.builder.get_relative_uri(page, "claims"))
    context["body"] = PLAIN.sub(lambda found: found[1] or "", body)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the events."""
    app.connect("config-inited", repository_buttons)
    app.connect("html-page-context", page_context)
    app.add_transform(NoToggles)
    app.add_post_transform(Glued)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
