"""The Markdown of the portable notebooks, from the pages as Sphinx has resolved them."""

import functools
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

from tools import address
from tools.bibliography import Citation, citation
from tools.files import write_json
from tools.markdown import Page, cells
from tools.portable import PLACE

LOGGER = logging.getLogger(__name__)


@functools.cache
def works(env: BuildEnvironment) -> dict[str, Citation]:
    """What the book cites, by its place in the bibliography."""
    cited = env.domains["cite"].data["citations"]
    return {f"{c.bibliography_key.docname}.html#{c.citation_id}": citation(c.entry) for c in cited}


class Portable(SphinxPostTransform):
    """Write the Markdown cells of a chapter's notebook."""

    default_priority = 190  # all is resolved, and nothing is folded yet (198)
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        """Convert one page, if it runs code."""

        def fault(node: nodes.Node, message: str) -> None:
            LOGGER.warning(message, location=node, type="portable")

        name, root = self.env.docname, Path(self.env.srcdir).parent
        if "kernelspec" in self.env.metadata[name]:
            page = Page(self.env, name, address.site(root), works(self.env), fault)
            write_json(root / PLACE / f"{name}.json", list(cells(page, self.document)))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the transform."""
    app.add_post_transform(Portable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
