"""The documents for people: short enough to be read, and what they name exists."""

import importlib.util
import re
from pathlib import Path

import pytest

import fltutils
from tools.__main__ import COMMANDS
from tools.labs.__main__ import COMMANDS as LABS

ROOT = Path(__file__).parents[2]
WORDS = {"ARCHITECTURE.md": 900, "CONTRIBUTING.md": 1200, "README.md": 700}
PACKAGES = ("fltutils", "tools", "tools/labs", "book/_ext")
TARGETS = set(re.findall(r"(?m)^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8")))
SOURCES = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tools").glob("*.py"))
CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
LINK = re.compile(r"\]\(([^)#:]+)\)")
ENDS = r"\.md|\.py|\.toml|\.yml|\.json|\.js|\.in|\.txt|\.svg"


def named(document: str) -> list[str]:
    """What a document sets as code."""
    return CODE.findall((ROOT / document).read_text(encoding="utf-8"))


def is_path(text: str) -> bool:
    return " " not in text and ("/" in text or bool(re.fullmatch(rf"[\w.-]+({ENDS})", text)))


def exists(path: str) -> bool:
    """Whether a file has this path, `<name>` for any name, or a tool is there that makes it."""
    if path.startswith("_build/"):
        return path.removeprefix("_build/").split("/")[0] in SOURCES
    return f'"{path}"' in SOURCES or any(ROOT.glob(re.sub(r"<\w+>", "*", path.rstrip("/"))))


def defined(name: str) -> bool:
    """Whether a module of ours, called by its last name, or another package has this in it."""
    module, _, inside = name.partition(".")
    paths = (ROOT / package / f"{module}.py" for package in PACKAGES)
    texts = [path.read_text(encoding="utf-8") for path in paths if path.exists()]
    if not texts and importlib.util.find_spec(module):
        return hasattr(importlib.import_module(module), inside)
    return any(re.search(rf"(?m)^(?:def |class )?{inside}\b", text) for text in texts)


@pytest.mark.parametrize("document", WORDS)
def test_a_document_is_short(document: str) -> None:
    assert len((ROOT / document).read_text(encoding="utf-8").split()) <= WORDS[document]


@pytest.mark.parametrize("document", WORDS)
def test_files_that_a_document_names_exist(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    paths = [one for one in named(document) if is_path(one)] + LINK.findall(text)
    assert [path for path in paths if not exists(path)] == []
    assert paths


@pytest.mark.parametrize("document", WORDS)
def test_functions_that_a_document_names_are_defined(document: str) -> None:
    names = [one for one in named(document) if re.fullmatch(r"[a-z_]+\.[A-Za-z_]+", one)]
    assert [name for name in names if not is_path(name) and not defined(name)] == []
    assert names or document == "README.md"


@pytest.mark.parametrize("document", WORDS)
def test_commands_that_a_document_names_can_be_run(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    targets = set(re.findall(r"(?m)(?:^|`)make ([a-z]+)", text))
    assert targets <= TARGETS
    for package, commands in (("tools", COMMANDS), ("tools.labs", LABS)):
        assert set(re.findall(rf"python -m {re.escape(package)} ([a-z]+)", text)) <= set(commands)


def test_names_that_are_not_there_are_noticed() -> None:
    assert exists("book/<chapter>.md")
    assert exists("_build/claims.json")
    for path in ("book/nothing.md", "_build/nowhere.json", "book/<chapter>.txt"):
        assert not exists(path)
    assert defined("grid.over")
    assert defined("notebooks.Portable")
    assert not defined("grid.under")
    assert not defined("nothing.over")


def test_the_package_lists_its_modules() -> None:
    modules = {path.stem for path in (ROOT / "fltutils").glob("*.py")} - {"__init__"}
    text = fltutils.__doc__ or ""
    assert set(re.findall(r"(?m)^    (\w+)", text)) == modules
