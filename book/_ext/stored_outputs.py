"""The site shows stored outputs only: a chapter whose outputs are not stored stops the build.

Of a chapter's cells it shows those that a reader runs; a mutant's stay in the source.
"""

from pathlib import Path
from typing import Any, NoReturn

import myst_nb.core.execute.cache as cache
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from tools.chapters import live


def refuse(notebook: Any, *, cwd: str, **options: Any) -> NoReturn:
    """Stand in for myst-nb's execution of a notebook that is not in the cache."""
    raise ExtensionError(
        f"a chapter in {cwd} has no stored outputs for its present code: run `make book`"
    )


def without_mutants(app: Sphinx, name: str, content: list[str]) -> None:
    """Read a page as it runs."""
    content[0] = live(Path(app.env.doc2path(name)))


def setup(app: Sphinx) -> dict[str, Any]:
    """Make execution impossible."""
    cache.single_nb_execution = refuse
    app.connect("source-read", without_mutants)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
