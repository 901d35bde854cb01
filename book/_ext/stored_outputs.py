"""The site shows stored outputs only: a chapter whose outputs are not stored stops the build."""

from typing import Any, NoReturn

import myst_nb.core.execute.cache as cache
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError


def refuse(notebook: Any, *, cwd: str, **options: Any) -> NoReturn:
    """Stand in for myst-nb's execution of a notebook that is not in the cache."""
    raise ExtensionError(
        f"a chapter in {cwd} has no stored outputs for its present code: run `make book`"
    )


def setup(app: Sphinx) -> dict[str, Any]:
    """Make execution impossible."""
    cache.single_nb_execution = refuse
    return {"parallel_read_safe": True, "parallel_write_safe": True}
