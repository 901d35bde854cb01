"""Maths prerendered by KaTeX at build time: no script in the page, a wrong formula is a warning."""

import functools
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import sphinxcontrib.katex as katex
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

from tools.node import binary

LOGGER = logging.getLogger(__name__)
ANSWER = """
const katex = require(process.argv[1]);
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { latex, options } = JSON.parse(line);
  let answer;
  try { answer = { html: katex.renderToString(latex, options) }; }
  catch (error) { answer = { error: String(error) }; }
  process.stdout.write(JSON.stringify(answer) + "\\n");
});
"""
SELF_NUMBERED = re.compile(r"\\begin\{(align|equation|gather|alignat)\}")


@functools.cache
def renderer() -> subprocess.Popen[str]:
    """A node that answers one line of JSON for each it reads, and ends when this process does."""
    script = Path(katex.__file__).with_name("katex.min.js")
    return subprocess.Popen(
        [binary(), "-e", ANSWER, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )


@functools.cache
def katex_html(latex: str, display: bool, macros: str) -> str:
    """HTML with MathML (for screen readers) of one formula; ValueError where KaTeX rejects it."""
    options = {"displayMode": display, "throwOnError": True, "strict": "error"}
    options["macros"] = json.loads(macros)
    node = renderer()
    assert node.stdin
    assert node.stdout
    print(json.dumps({"latex": latex, "options": options}), file=node.stdin, flush=True)
    answer = json.loads(node.stdout.readline())
    if "error" in answer:
        raise ValueError(answer["error"])
    return str(answer["html"])


def render(self: HTML5Translator, node: nodes.Element, display: bool) -> str:
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
        return katex_html(latex, display, self.config.katex_macros)
    except ValueError as error:
        LOGGER.warning("%s in %r", error, latex, location=node, type="katex")
        return ""


def visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    """Write an inline formula."""
    self.body += [
        self.starttag(node, "span", "", CLASS="formula"),
        render(self, node, False),
        "</span>",
    ]
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
