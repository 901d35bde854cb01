"""The directive of a claim: its statement, and below it what the run found.

Beside a theorem that claims check stands how its paper was read.
"""

from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from ledger import GeneratedPart, needed
from record import untold
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from fltutils.claims import box, lines, short
from tools.claims import SOURCES
from tools.directives import OPTIONS, claims
from tools.files import ToolError

BADGES = {True: "as in the paper", False: "as in the {source}; not compared with the paper"}


class ClaimDirective(GeneratedPart):
    """A claim at its place in the text."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar = dict.fromkeys(OPTIONS, directives.unchanged)

    def parts(self) -> list[nodes.Node]:
        """The statement as prose, then one line that unfolds."""
        id, root = self.arguments[0], self.book.parent
        self.env.note_dependency(str(root / "_build/claims.json"))
        rows = {r["id"]: r for r in needed(root / "_build/claims.json", "make book")}
        if id not in rows:
            raise ToolError(f"claim {id}: a claim stands in a chapter, between lines of backticks")
        row = rows[id]
        made = row.get("record")
        classes = ["stated", row["verdict"]]
        statement = nodes.container("", *self.parse_content_to_nodes(), classes=classes)
        if not made:
            return [statement]
        said = [*lines(made), *(("does not tell", change) for change in untold(root, row))]
        found = box(id, row["verdict"], row["kind"], short(made), said)
        # a notebook's own cell says it
        return [statement, nodes.raw("", found, format="html", portable="")]


def read(pages: Path) -> dict[str, str]:
    """What stands beside each theorem, by its label, from how the claims' papers were read."""
    found: dict[str, str] = {}
    for path in sorted(pages.glob("*.md")):
        for claim in claims(path, SOURCES):
            if claim["label"] and claim["read"]:
                source = "talk" if claim["source"].startswith("talk") else "tutorial"
                badge = BADGES[claim["read"] == "full text"].format(source=source)
                if found.setdefault(claim["label"], badge) != badge:
                    raise ValueError(
                        f"{claim['label']}: its claims say two things of how it was read"
                    )
    return found


class Badges(SphinxTransform):
    """Put into each theorem how its paper was read."""

    default_priority = 790

    def apply(self, **kwargs: Any) -> None:
        """Every theorem that a claim names."""
        badges = read(Path(self.env.srcdir))
        for node in self.document.findall(nodes.Element):
            if badge := badges.get(node.get("label", "")) if node.get("realtype") else None:
                node[-1] += nodes.paragraph("", badge, classes=["as-read"])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive and the transform."""
    app.add_directive("claim", ClaimDirective)
    app.add_transform(Badges)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
