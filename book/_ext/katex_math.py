"""Maths prerendered by KaTeX at build time: no script in the page, a wrong formula is a warning.

The book's macros are written out first, so that pages and notebooks have the same formulas.
"""

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

from tools import readers
from tools.maths import expand, katex_html

LOGGER = logging.getLogger(__name__)
SELF_NUMBERED = re.compile(r"\\begin\{(align|equation|gather|alignat)\}")


class Expanded(SphinxTransform):
    """Write out the macros of book/macros.json in every formula of a page."""

    default_priority = 800  # before Sphinx collects the titles of a page (880)

    def apply(self, **kwargs: Any) -> None:
        """Put other formulas in place of those with macros."""
        path = Path(self.env.srcdir) / "macros.json"
        self.env.note_dependency(str(path))
        macros = readers.read_json(path)
        for node in self.document.findall(lambda n: isinstance(n, nodes.math | nodes.math_block)):
            try:
                node.children = [nodes.Text(expand(node.astext(), macros))]
            except ValueError as error:
                LOGGER.warning("%s in %r", error, node.astext(), location=node, type="katex")


def render(self: HTML5Translator, node: nodes.Element, display: bool) -> str:
    """HTML of one maths node; a formula KaTeX rejects becomes a Sphinx warning at its place."""
    latex = node.astext()
    if SELF_NUMBERED.search(latex):
        told = "use aligned or gathered and a label after $$, not what numbers itself: %r"
        LOGGER.warning(told, latex, location=node, type="katex")
    try:
        return katex_html(latex, display)
    except ValueError as error:
        LOGGER.warning("%s in %r", error, latex, location=node, type="katex")
        return ""


def visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    """Write an inline formula."""
    start = self.starttag(node, "span", "", CLASS="formula")
    self.body += [start, render(self, node, False), "</span>"]
    raise nodes.SkipNode


def visit_display(self: HTML5Translator, node: nodes.math_block) -> None:
    """Write a displayed formula in a box that scrolls by itself, its number behind it."""
    self.body.append(self.starttag(node, "div", CLASS="equation"))
    self.body.append(f'<div class="scrolls">{render(self, node, True)}</div>')
    if node["number"]:
        label = get_node_equation_number(self, node)
        self.body.append(
            f'<a class="eqno" href="#{node["ids"][0]}" title="Link to this equation">({label})</a>'
        )
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the transform and the renderer."""
    app.add_html_math_renderer("katex", (visit_inline, None), (visit_display, None))
    app.add_transform(Expanded)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
