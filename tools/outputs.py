"""A chapter's present prose with the outputs of a run, if that ran the present code."""

from itertools import zip_longest
from pathlib import Path

from nbformat import NotebookNode

from tools import chapters, claims
from tools.execute import cache_key, graft, last_run
from tools.files import ToolError


def executed(root: Path, name: str) -> NotebookNode:
    """The outputs of a chapter's last default run."""
    source = chapters.read_source(root, name)
    ran = last_run(root / "_build/executed", name, cache_key(root, source, {}))
    if ran is None:
        raise ToolError(f"book/{name}.md was not executed in its present state: run `make book`")
    return graft(source, ran)


def committed(root: Path, name: str) -> NotebookNode:
    """The outputs of the committed notebook."""
    nb, source = claims.stored(root, name, root / "book"), chapters.read_source(root, name)
    nb.cells = [cell for cell in chapters.code_cells(nb) if "install" not in chapters.tags(cell)]
    pairs = zip_longest(chapters.code_cells(source), nb.cells)
    for count, (ours, theirs) in enumerate(pairs, 1):
        if not (ours and theirs and ours.source == theirs.source):
            line = chapters.cell_line(root, name, count)
            raise ToolError(
                f"book/{name}.md:{line}: code cell {count} has no stored output: "
                f"book/{name}.ipynb is stale, its code differs: run `make book`"
            )
    return graft(source, nb)
