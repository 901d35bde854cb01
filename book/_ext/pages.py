"""What every page needs beside its text: description, downloads, buttons, sound HTML."""

import re
from pathlib import Path
from typing import Any

import imagesize
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
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
        width, height = imagesize.get(source) if source else (-1, -1)
        size = f'width="{width}" height="{height}" ' if width > 0 else ""
        return f'<img loading="lazy" decoding="async" {size}{match["rest"]}'

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


def page_context(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Fill in what the templates and the theme read."""
    if doctree is None:
        return
    if 'name="description"' not in context["metatags"]:
        text = description(doctree).replace("&", "&amp;").replace('"', "&quot;")
        context["metatags"] += f'\n<meta name="description" content="{text}" />'
    if "kernelspec" in app.env.metadata[page]:
        context["ipynb_source"] = f"{page}.ipynb"
    files = {v: Path(app.srcdir, k.lstrip("/")) for k, v in app.builder.images.items()}
    files["_static"] = Path(app.srcdir, "_assets")
    context["body"] = mend(sized_images(context["body"], files))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the events."""
    app.connect("config-inited", repository_buttons)
    app.connect("html-page-context", page_context)
    app.add_transform(NoToggles)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
