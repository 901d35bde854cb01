"""Every file that people edit, read before a command begins: each fault told with its place."""

from collections.abc import Callable, Iterator
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from jsonschema import Draft7Validator  # type: ignore[import-untyped]

from tools import address, bibliography, claims, myst, readers
from tools import chapters as book
from tools.files import ToolError


def table(path: Path, kind: type, wanted: str) -> dict[str, Any]:
    """A JSON object whose values are of one kind."""
    value = readers.read_json(path)
    if not isinstance(value, dict):
        raise readers.fault(path, 0, f"an object expected, not {value!r:.40}")
    for name, entry in value.items():
        if not isinstance(entry, kind) or isinstance(entry, bool):
            raise readers.fault(path, 0, f"{name!r} is {entry!r:.40}, not {wanted}")
    return value


def config(root: Path) -> None:
    """`_config.yml` holds what Jupyter Book knows, by its own schema and its own defaults."""
    path = root / "_config.yml"
    value = readers.read_yaml(path)
    jupyter_book = Path(str(files("jupyter_book")))
    schema = readers.read_json(jupyter_book / "config_schema.json")
    defaults = readers.read_yaml(jupyter_book / "default_config.yml")
    for error in Draft7Validator(schema).iter_errors(value):
        place = error.json_path.removeprefix("$.")
        raise readers.fault(path, 0, f"{place}: {error.message:.200}")
    sections = {name: entry for name, entry in value.items() if isinstance(entry, dict)}
    for name, section in {"": value, **sections}.items():
        form = schema["properties"].get(name, {}) if name else schema
        known = {*form.get("properties", {}), *((defaults.get(name) if name else defaults) or {})}
        if unknown := [key for key in section if key not in known]:
            message = f"unknown {unknown[0]!r}; known: {', '.join(sorted(known))}"
            raise readers.fault(path, 0, f"{name}: {message}" if name else message)


def chapter(path: Path) -> None:
    """A page's front matter, and its cells if it runs code."""
    if book.is_chapter(path):
        book.check_cells(path)


def notebook(root: Path, path: Path) -> None:
    """A notebook in book/ is that of a chapter."""
    if not path.with_suffix(".md").exists() or path.stem not in book.chapters(root):
        raise readers.fault(path, 0, "no chapter gives this notebook: delete it, or add its .md")


def lab(path: Path) -> None:
    """A lab's configuration can be read, and its two pictures are there."""
    config, folder = readers.read_json(path), path.parents[1] / "_generated/assets"
    shared = config.get("picture") if isinstance(config, dict) else None
    for tail in ("-light", "-dark") if shared else ("", ".dark"):
        picture = folder / (f"{shared}{tail}.png" if shared else f"labs/{path.stem}{tail}.png")
        if not picture.exists():
            command = f"python -m tools.labs figures {path.stem}"
            raise readers.fault(path, 0, f"no picture {picture.name}: run `{command}`")


def checks(root: Path) -> Iterator[Callable[[], object]]:
    """One check a file: first its form, then what it says of others."""
    yield partial(address.project, root)
    yield partial(book.pages, root)
    yield partial(config, root)
    yield partial(table, root / "book/macros.json", str, "a text")
    if (root / "book/_generated/timings.json").exists():  # else `make book` writes it
        yield partial(table, root / "book/_generated/timings.json", int, "a whole number")
    yield partial(bibliography.citations, root / "book/references.bib")
    yield partial(readers.read_toml, root / "book/claims.toml")
    for path in sorted((root / "book").glob("*.md")):
        yield partial(chapter, path)
    for path in sorted((root / book.PACKAGE).rglob("*.py")):
        yield partial(lambda path: book.parse(path, readers.text(path)), path)
    for name in ("laws", "mutation"):
        if (
            root / f"book/_generated/{name}.json"
        ).exists():  # else the statistics say what makes it
            yield partial(readers.read_json, root / f"book/_generated/{name}.json")
    for path in sorted((root / "book/labs").glob("*.json")):
        yield partial(lab, path)


def relations(root: Path) -> Iterator[Callable[[], object]]:
    """What needs every file to be readable."""
    for path in sorted((root / "book").glob("*.md")):
        yield partial(myst.structure, root, path.stem)
    yield partial(book.chapters, root)
    yield partial(claims.check_mutants, root)
    yield partial(claims.check_references, root)
    for path in sorted((root / "book").glob("*.ipynb")):
        yield partial(notebook, root, path)


def check(root: Path) -> None:
    """Raise one error with everything that is wrong."""
    for stage in (checks, relations):
        found = []
        for one in stage(root):
            try:
                one()
            except ToolError as error:
                found.append(str(error))
        if found:
            raise ToolError("\n".join(dict.fromkeys(found)))
