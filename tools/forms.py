"""What a figure has besides the light picture in its notebook: dark and narrow forms, its numbers.

A run leaves them in files named for the picture (fltutils.plots.show). In book/_generated they are
named for the figure, and the index of a chapter holds a digest of each picture with its forms.
"""

import base64
import functools
import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from nbformat import NotebookNode

from tools import address
from tools import chapters as book
from tools.files import ToolError, digest, read_derived, swap, write_atomic, write_json
from tools.names import GENERATED

FORMS = ("dark.png", "light-narrow.png", "dark-narrow.png", "csv")
RAN = "_build/executed/figures"
INDEX = "index.json"


def folder(root: Path, name: str) -> Path:
    """Where the forms of a chapter's figures are committed."""
    return root / GENERATED / "figures" / name


def pictures(nb: NotebookNode) -> Iterator[tuple[str, bytes]]:
    """Name and light picture of each figure of a chapter."""
    for cell in book.code_cells(nb):
        for output in cell.outputs:
            if light := output.get("data", {}).get("image/png"):
                words = cell.metadata.get("mystnb", {}).get("figure", {})
                yield str(words.get("name", "")), base64.b64decode(light)


def files(place: Path, stem: str) -> list[Path]:
    """The forms of one picture; none where it was not made by plots.show."""
    return [path for form in FORMS if (path := place / f"{stem}.{form}").exists()]


def entry(light: bytes, forms: list[Path]) -> str:
    """What the index says of a figure."""
    return digest([light, *(path.read_bytes() for path in forms)])


def write(root: Path, name: str, nb: NotebookNode) -> None:
    """Put the forms of a chapter's last run where they are committed."""
    new, index = root / "_build/figures" / name, {}
    shutil.rmtree(new, ignore_errors=True)
    for figure, light in pictures(nb):
        stem = hashlib.sha256(light).hexdigest()
        forms = files(root / RAN / name, stem)
        index[figure] = entry(light, forms)
        for path in forms:
            write_atomic(new / path.name.replace(stem, figure), path.read_bytes())
    write_json(new / INDEX, index)
    swap(new, folder(root, name))


def check(root: Path, name: str, nb: NotebookNode) -> None:
    """Raise where the committed forms of a chapter's figures are not those of its pictures."""
    place = folder(root, name)
    index: dict[str, str] = read_derived(place / INDEX, {})
    forms = {figure: files(place, figure) for figure, _ in pictures(nb)}
    found = {figure: entry(light, forms[figure]) for figure, light in pictures(nb)}
    wrong = [figure for figure in {**index, **found} if index.get(figure) != found.get(figure)]
    known = {place / INDEX, *(path for paths in forms.values() for path in paths)}
    wrong += sorted(path.name for path in set(place.glob("*")) - known)
    if wrong:
        where = place.relative_to(root)
        told = f"{where}: {', '.join(wrong)} not of the pictures in book/{name}.ipynb"
        raise ToolError(f"{told}; run `make book` and commit it")


@functools.cache
def provenance(root: Path, name: str) -> str:
    """What the numbers of a chapter come from: its parameters and the version."""
    cells = book.code_cells(book.read_source(root, name))
    first = next(cell for cell in cells if "parameters" in book.tags(cell))
    lines = [f"chapter {name}", *filter(None, first.source.split("\n"))]
    return "".join(f"# {line}\n" for line in [*lines, f"version {address.commit(root)}"])


def table(root: Path, name: str, figure: str) -> str:
    """The numbers of a figure as a reader downloads them."""
    numbers = (folder(root, name) / f"{figure}.csv").read_text(encoding="utf-8")
    return f"# figure {figure}\n{provenance(root, name)}{numbers}"
