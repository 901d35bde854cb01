"""One reader a format: a file that cannot be read is told with its line, never by a traceback."""

import copy
import functools
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import nbformat
import yaml
from nbformat import NotebookNode, ValidationError
from pybtex.database import Entry, parse_string
from pybtex.exceptions import PybtexError

from tools.files import ToolError

CONFLICT = re.compile(r"^(<{7}|>{7})(?: |$)", re.MULTILINE)
ENTRY = re.compile(r"^[ \t]*@", re.MULTILINE)


class UniqueKeys(yaml.SafeLoader):
    """YAML in which a key stands once."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """The mapping, or an error at the second of two equal keys."""
        names = [str(key.value) for key, _ in node.value]
        for count, (key, _) in enumerate(node.value):
            if names[count] in names[:count]:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key.value!r} stands twice", problem_mark=key.start_mark
                )
        return dict(super().construct_mapping(node, deep))


def fault(path: Path, line: int, message: str) -> ToolError:
    """What is wrong with a file, as `path:line: message`; line 0 stands for the whole file."""
    here = Path.cwd()
    name = path.relative_to(here) if path.is_relative_to(here) else path
    return ToolError(f"{name}:{line}: {message}" if line else f"{name}: {message}")


def line_of(content: str, place: int) -> int:
    """The line, from 1, of a place in a text."""
    return content.count("\n", 0, place) + 1


def text(path: Path) -> str:
    """A UTF-8 text without git's marks of a conflict."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise fault(path, 0, f"cannot be read: {error.strerror}") from None
    try:
        content = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise fault(path, line, f"not UTF-8: byte 0x{error.object[error.start]:02x}") from None
    if found := CONFLICT.search(content):
        raise fault(path, line_of(content, found.start()), "a conflict of git is not resolved")
    return content


@functools.cache
def loaded(content: str) -> Any:
    """What a piece of YAML gives; a chapter's cells say the same few things many times."""
    return yaml.load(content, UniqueKeys)


def parse_yaml(path: Path, content: str, first: int = 1) -> dict[str, Any]:
    """The mapping that a piece of YAML gives; it begins at line `first` of the file."""
    try:
        value = copy.deepcopy(loaded(content))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line if error.problem_mark else 0
        raise fault(path, first + line, f"broken YAML: {error.problem}") from None
    except yaml.reader.ReaderError as error:
        line = line_of(content, error.position) - 1
        raise fault(path, first + line, f"broken YAML: {error.reason}") from None
    if not isinstance(value, dict | None):
        raise fault(path, first, f"broken YAML: `name: value` expected, not {value!r:.40}")
    return value or {}


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file."""
    return parse_yaml(path, text(path))


def read_toml(path: Path) -> dict[str, Any]:
    """The table in a TOML file."""
    content = text(path)
    try:
        return tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        message, _, place = str(error).partition(" (at ")
        number = re.match(r"line (\d+)", place)
        line = int(number[1]) if number else line_of(content, len(content.rstrip()))
        raise fault(path, line, f"broken TOML: {message}") from None


def read_json(path: Path) -> Any:
    """The value in a JSON file, no key of an object twice."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        if twice := [name for name in names if names.count(name) > 1]:
            raise fault(path, 0, f"broken JSON: the key {twice[0]!r} stands twice in one object")
        return dict(pairs)

    try:
        return json.loads(text(path), object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise fault(path, error.lineno, f"broken JSON: {error.msg}") from None


def read_notebook(path: Path) -> NotebookNode:
    """A valid notebook of format 4."""
    value = read_json(path)
    shaped = isinstance(value, dict) and value.get("nbformat") == 4
    if not shaped or not isinstance(value.get("cells"), list):
        raise fault(path, 0, "not a notebook of format 4: run `make book`")
    try:
        nbformat.validate(value)
    except ValidationError as error:
        raise fault(path, 0, f"not a valid notebook: {error.message.splitlines()[0]}") from None
    return nbformat.reads(text(path), as_version=4)


def read_bibtex(path: Path) -> dict[str, Entry]:
    """The entries of a BibTeX file by key."""
    content = text(path)
    try:
        return dict(parse_string(content, "bibtex").entries)
    except PybtexError as error:
        message = re.sub(r"^syntax error in line \d+", "broken BibTeX", str(error))
        raise fault(path, line_of(content, broken_entry(content)), message) from None


def broken_entry(content: str) -> int:
    """Where the first entry begins that cannot be read after those before it."""
    starts = [found.start() for found in ENTRY.finditer(content)]
    for start, end in zip(starts, [*starts[1:], len(content)], strict=True):
        try:
            parse_string(content[:end], "bibtex")
        except PybtexError:
            return start
    return 0
