"""Two depths: code folds under a label that says what is inside; neighbours fold as one."""

from itertools import groupby
from typing import Any

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

FEW = 5  # lines that set something up
LONG = 20  # lines; a check or a plot above it holds its experiment, too
ALWAYS = ("parameters", "exercise", "solution")  # tags that fold by themselves


def tags(cell: nodes.Element) -> list[str]:
    """The tags of a cell of code."""
    return list(cell["cell_metadata"].get("tags", []))


def shows(cell: nodes.Element) -> bool:
    """Whether a reader sees something that the cell displayed."""
    return any(cell[-1].findall(nodes.image)) or bool(len(cell) > 1 and cell[-1].astext())


def label(cells: list[nodes.Element]) -> str:
    """What is inside a fold: parameters, an experiment, its plot, its check, numbers."""
    last = cells[-1]
    if own := set(ALWAYS) & set(tags(last)):
        return own.pop()
    lines = "\n".join(cell[0].astext() for cell in cells).splitlines()
    lines = [line for line in lines if line.strip() and not line.startswith(("import ", "from "))]
    if any(last.findall(nodes.image)):
        return "plot’s code" if len(lines) <= LONG else "experiment and its plot"
    if 'class="claim' in last.astext() or any(line.startswith("@claim(") for line in lines):
        return "check" if len(lines) <= LONG else "experiment and its check"
    if lines and all(line.startswith(("glue(", "for ", " ", ")", "}")) for line in lines):
        return "numbers of the text"
    return "experiment" if len(lines) > FEW or shows(last) else "set-up"


def fold(cells: list[nodes.Element]) -> None:
    """Put the code of neighbours into one box, which stands in the last of them."""
    what, last = label(cells), cells[-1]
    prompts = {"prompt_show": f"Show the {what}", "prompt_hide": f"Hide the {what}"}
    box = HideCodeCellNode(classes=["above-input"], **prompts)
    whole = {"exercise", "solution"} & set(tags(last))
    rest = [] if whole else last.children[1:]
    box.extend(last.children if whole else [cell[0] for cell in cells])
    for cell in cells[:-1]:
        cell.parent.remove(cell)
    last.children = [box, *rest]
    for child in last.children:
        child.parent = last
    last["hide_mode"] = None


def groups(cells: list[nodes.Element]) -> list[list[nodes.Element]]:
    """Neighbours that fold together: up to the first that shows something."""
    found: list[list[nodes.Element]] = [[]]
    for cell in cells:
        if set(ALWAYS) & set(tags(cell)):
            found += [[cell], []]
            continue
        found[-1].append(cell)
        if shows(cell):
            found.append([])
    return [group for group in found if group]


def folded(node: nodes.Node) -> bool:
    """Whether a node is a cell of code that folds."""
    if not isinstance(node, nodes.container) or node.get("nb_element") != "cell_code":
        return False
    return node.get("hide_mode") in ("input", "all") or bool(set(ALWAYS) & set(tags(node)))


class Folds(SphinxPostTransform):
    """Fold every cell that is tagged so."""

    default_priority = 198  # before myst-nb does it
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        """Fold neighbours together."""
        parents = {id(cell.parent): cell.parent for cell in self.document.findall(folded)}
        for parent in parents.values():
            for together, cells in groupby(list(parent.children), folded):
                if together:
                    for group in groups(list(cells)):
                        fold(group)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the transform."""
    app.add_post_transform(Folds)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
