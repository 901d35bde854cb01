"""Citations by author and year, with a letter where two works would read alike."""

from collections.abc import Iterable
from typing import Any

from pybtex.database import Entry
from pybtex.plugin import register_plugin
from pybtex.style.formatting.plain import Style as PlainStyle
from pybtex.style.labels import BaseLabelStyle
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinxcontrib.bibtex.plugin import register_plugin as register_style
from sphinxcontrib.bibtex.style.referencing import BracketStyle
from sphinxcontrib.bibtex.style.referencing.author_year import AuthorYearReferenceStyle

from tools.bibliography import citation, letters

ROUND = BracketStyle(left="(", right=")")
APART = BracketStyle(left="(", right=")", sep="; ")


class AuthorYear(AuthorYearReferenceStyle):
    """Kou et al. (2023) in a sentence, (Kou et al., 2023) behind one."""

    def __init__(self) -> None:
        """Round brackets, as in the notebooks."""
        super().__init__(bracket_textual=ROUND, bracket_parenthetical=APART)


class Labels(BaseLabelStyle):
    """An entry of the bibliography is named as prose names it."""

    def format_labels(self, entries: Iterable[Entry]) -> list[str]:
        """Kou et al., 2023."""
        works = [citation(entry) for entry in entries]
        return [f"{work.authors}, {work.year}" for work in works]


class Listed(PlainStyle):
    """The entries by author and year."""

    default_label_style = "book"


def tell_apart(app: Sphinx, env: BuildEnvironment, names: list[str]) -> None:
    """Put the letters behind the years."""
    cited: Any = env.get_domain("cite")
    letters(cited.bibdata.data.entries)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the styles."""
    register_plugin("pybtex.style.labels", "book", Labels)
    register_plugin("pybtex.style.formatting", "book", Listed)
    register_style("sphinxcontrib.bibtex.style.referencing", "book", AuthorYear)
    app.connect("env-before-read-docs", tell_apart)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
