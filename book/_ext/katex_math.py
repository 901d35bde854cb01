"""Maths prerendered by KaTeX at build time: no script in the page, a wrong formula is a warning."""

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

from tools.maths import katex_html

LOGGER = logging.getLogger(__name__)
SELF_NUMBERED = re.compile(r"\\begin\{(align|equation|gather|alignat)\}")


def render(self: HTML5Translator, node: nodes.Element, display: bool) -> str:
    """HTML of one maths node; a formula KaTeX rejects becomes a Sphinx warning at its place."""
    latex = node.astext()
    if SELF_NUMBERED.search(latex):
        told = "use aligned or gathered and a label after $$, not what numbers itself: %r"
        LOGGER.warning(told, latex, location=node, type="katex")
    try:
        return katex_html(latex, display, self.config.katex_macros)
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


def read_macros(app: Sphinx, config: Any) -> None:
    """Take the book's macros; a change in them is a change of the configuration."""
    config.katex_macros = (Path(app.srcdir) / "macros.json").read_text(encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer and its stylesheet."""
    app.add_html_math_renderer("katex", (visit_inline, None), (visit_display, None))
    app.add_config_value("katex_macros", "{}", "html")
    app.connect("config-inited", read_macros)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
