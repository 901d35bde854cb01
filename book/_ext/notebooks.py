"""The Markdown of the portable notebooks, from the pages as Sphinx has resolved them."""

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

from tools import address
from tools.bibliography import citations
from tools.files import write_json
from tools.markdown import Page, cells
from tools.portable import PLACE

LOGGER = logging.getLogger(__name__)


class Portable(SphinxPostTransform):
    """Write the cells of a chapter's notebook, and the keys of the works that it cites."""

    default_priority = 190  # all is resolved, and nothing is folded yet (198)
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        """Convert one page, if it runs code."""
        name, root = self.env.docname, Path(self.env.srcdir).parent
        if "kernelspec" not in self.env.metadata[name]:
            return
        works, cited = citations(root / "book/references.bib"), self.env.domains["cite"]
        places = {
            f"{c.bibliography_key.docname}.html#{c.citation_id}": works[c.key]
            for c in cited.data["citations"]
        }

        def fault(node: nodes.Node, message: str) -> None:
            LOGGER.warning(message, location=node, type="portable")

        page = Page(self.env, name, address.site(root), places, fault)
        write_json(root / PLACE / f"{name}.json", list(cells(page, self.document)))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the transform."""
    app.add_post_transform(Portable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
