"""The directive of the labs.

    ```{lab} benign_overfitting
    :alt: what is seen in the figure that stands where the lab cannot run
    perhaps its caption
    ```

A link of the same page, [a larger step](lab:kappa=0.6,steps=800), sets it so.

Reads book/labs/<name>.json and writes <feature-lab> around the figure that torch drew with the
same defaults. The page loads loader.js (1 KB); the rest comes when the lab is near.
"""

import html
import json
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from tools import address
from tools.files import ToolError
from tools.labs import configs
from tools.labs.build import ship
from tools.markdown import linked

ROOT = configs.FOLDER.parents[1]
IN_A_NOTEBOOK = (
    "> **Live lab: {}** On {} its sliders retrain the network in the page. Here in the notebook,"
    " change `seed` or a number in a cell and run what stands below it; *Play* says what to try."
)
LOGGER = logging.getLogger(__name__)
SOURCE = f"{address.repository(ROOT) or 'fltutils'} {address.reference(ROOT)}"  # on each download


class LabDirective(SphinxDirective):
    """One lab."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {"alt": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """The element, its configuration and its figure, as HTML."""
        name = self.arguments[0]
        try:
            config = configs.load(name)
        except ToolError as error:
            raise self.error(str(error)) from error
        if "alt" not in self.options:
            raise self.error(f"lab {name}: the option alt is missing")
        self.env.note_dependency(str(configs.FOLDER / f"{name}.json"))
        up = "../" * self.env.docname.count("/")
        images = "".join(
            f'<img class="only-{theme}" src="{up}_static/{picture}" '
            f'alt="{html.escape(self.options["alt"])}">'
            for theme, picture in configs.pictures(name, config).items()
        )
        settings = json.dumps(config, ensure_ascii=False).replace("</", "<\\/")
        asks = " asks" if "predict" in config else ""
        opened = (
            f'<feature-lab id="{name}" model="{config["model"]}" source="{SOURCE}"{asks}>'
            f'<script type="application/json">{settings}</script><figure><div>{images}</div>'
            "<figcaption>"
        )
        caption: list[nodes.Node] = [
            nodes.raw("", f"{html.escape(config['title'])}: the run at the default settings. "
                      "With scripts on, sliders retrain the network here.", format="html")
        ]  # fmt: skip
        if self.content:
            caption = self.parse_content_to_nodes()
        closed = "</figcaption></figure></feature-lab>"
        parts = [nodes.raw("", opened, format="html"), *caption]
        parts.append(nodes.raw("", closed, format="html"))
        told = config["title"] + "." * (config["title"][-1] not in "?!")
        place = address.site(ROOT) and f"{address.site(ROOT)}/{self.env.docname}.html"
        portable = IN_A_NOTEBOOK.format(told, linked("the book’s website", place))
        return [nodes.compound("", *parts, portable=portable, lab=name)]  # it can have a label


def set_links(app: Sphinx, doctree: nodes.document) -> None:
    """Links that set the lab of their page: an address that its element reads."""
    links = [n for n in doctree.findall(nodes.reference) if n.get("refuri", "").startswith("lab:")]
    labs = [n["lab"] for n in doctree.findall(nodes.compound) if "lab" in n]
    for link in links:
        try:
            if len(labs) != 1:
                raise ToolError(f"a page with {len(labs)} labs, and a link that sets one")
            config = configs.load(labs[0])
            given = configs.setting(config, link["refuri"].removeprefix("lab:"))
        except ToolError as error:
            LOGGER.warning("%s: %s", link["refuri"], error, location=link)
            continue
        state = ",".join(f"{name}:{value:g}" for name, value in given.items()).replace("+", "")
        link["refuri"] = f"?{labs[0]}={state}#{labs[0]}"
        link["classes"].append("set-lab")
        link["reftitle"] = f"Set the lab so: {config['title']}"


def strip(app: Sphinx, error: Exception | None) -> None:
    """The site's copies of the scripts carry no comments."""
    if error is None:
        ship(Path(app.outdir) / "_static" / "labs")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive and the loader."""
    app.add_directive("lab", LabDirective)
    app.add_js_file("labs/loader.js", defer="defer")
    app.connect("doctree-read", set_links)
    app.connect("build-finished", strip)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
