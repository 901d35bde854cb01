"""Figures: every image says what is seen, and a notebook's figures have a dark twin."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from docutils import nodes
from myst_nb.sphinx_ import SphinxNbRenderer
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

from tools.labels import wordless

LOGGER = logging.getLogger(__name__)


class DarkTwins(SphinxTransform):
    """Put the dark twin behind each notebook image that has one, and ask alt text of all."""

    default_priority = 800  # before Sphinx collects the images of a page (880)

    def apply(self, **kwargs: Any) -> None:
        """Check and double the images of one page."""
        dark_folder = Path(self.env.srcdir).parent / "_build" / "dark"
        for image in list(self.document.findall(nodes.image)):
            line, name, caption = placed(image)
            alt, place = wordless("alt text", image.get("alt", "")), (self.env.docname, line)
            for what in filter(None, (alt, caption and wordless("caption", caption))):
                LOGGER.warning("figure %s: %s", name, what, location=place, type="alt")
            dark = dark_folder / Path(image["uri"]).name
            if "jupyter_execute" in image["uri"] and dark.exists():
                light, twin = image.deepcopy(), image.deepcopy()
                twin["uri"] = f"/../_build/dark/{dark.name}"
                light["classes"].append("only-light")
                twin["classes"].append("only-dark")
                # in a box: the theme hides a caption that follows a hidden image
                image.replace_self(nodes.container("", light, twin, classes=["twins"]))


def placed(image: nodes.image) -> tuple[int, str, str]:
    """The line that an image stands at, the name of its figure, and its caption."""
    chain = [image]
    while chain[-1].parent is not None:
        chain.append(chain[-1].parent)
    figure = next((node for node in chain if isinstance(node, nodes.figure)), image)
    name = next(iter(figure["ids"]), Path(image["uri"]).name)
    caption = " ".join(node.astext() for node in figure.findall(nodes.caption))
    return next((node.line for node in chain if node.line), 0), name, caption


def pictures_only(render: Callable[..., None]) -> Callable[..., None]:
    """Let myst-nb make a figure of each picture of a cell, and of nothing else it displays."""

    def rendered(self: Any, token: Any, outputs: list[Any]) -> None:
        settings = token.meta["metadata"]
        plain = {**settings, "mystnb": {**settings.get("mystnb", {}), "figure": {}}}
        for output in outputs:
            picture = "image/png" in output.get("data", {})
            token.meta["metadata"] = settings if picture else plain
            render(self, token, [output])
        token.meta["metadata"] = settings

    return rendered


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the transform."""
    SphinxNbRenderer._render_nb_cell_code_outputs = pictures_only(
        SphinxNbRenderer._render_nb_cell_code_outputs
    )
    app.add_transform(DarkTwins)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
