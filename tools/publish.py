"""The notebooks Colab opens: executed, with this commit to install and whole links."""

import argparse
import re
from pathlib import Path

import nbformat

from tools import address, portable, readers, site
from tools import chapters as book
from tools.files import ToolError, write_atomic

RELATIVE = re.compile(r"(!?\[[^\]]*\]\()(?![a-z]+:|#)([^)\s]+)\)")


def absolute(text: str, name: str, reference: str) -> str:
    """Markdown whose pictures and files lie on GitHub; links to pages are whole already."""

    def lead(match: re.Match[str]) -> str:
        head, goal = match.groups()
        host, middle = (
            ("raw.githubusercontent", "") if head.startswith("!") else ("github", "blob/")
        )
        return f"{head}https://{host}.com/{name}/{middle}{reference}/book/{goal})"

    return RELATIVE.sub(lead, text)


def publish(root: Path, folder: Path) -> None:
    """Write every chapter's notebook under `folder`/book."""
    repository = address.repository(root)
    if repository is None:
        raise ToolError("no address to publish for: see tools/address.py")
    site.ensure(root, committed=True)
    name = repository.removeprefix("https://github.com/")
    for chapter in book.chapters(root):
        nb = readers.read_notebook(root / portable.PLACE / f"{chapter}.ipynb")
        for cell in nb.cells:
            if cell.cell_type == "markdown":
                cell.source = absolute(cell.source, name, address.reference(root))
        write_atomic(folder / "book" / f"{chapter}.ipynb", nbformat.writes(nb) + "\n")


def main(argv: list[str]) -> None:
    """Write the notebooks for the branch that Colab reads."""
    parser = argparse.ArgumentParser(prog="python -m tools publish")
    parser.add_argument("folder", type=Path)
    publish(Path.cwd(), parser.parse_args(argv).folder)
