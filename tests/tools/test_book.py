"""What the tools know of the book: files, imports, address, and when the site is built again."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tools import address, chromium, files, timings
from tools import book as make_book
from tools import chapters as book
from tools.files import ToolError, read_json

Edit = Callable[[str, str, str], None]


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("from fltutils import tide", {"__init__.py", "tide.py", "moon.py"}),
        ("import fltutils.tide as t", {"__init__.py", "tide.py", "moon.py"}),
        ("def f():\n    from fltutils.moon import HEIGHT", {"__init__.py", "moon.py"}),
        ("%matplotlib inline\nfrom fltutils import emit", {"__init__.py", "emit.py"}),
        ("import numpy", set()),
        ("import (", set()),
    ],
)
def test_the_modules_that_code_imports(tiny: Path, code: str, names: set[str]) -> None:
    assert {path.name for path in book.closure(tiny, [code])} == names


def test_a_write_is_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    files.write_atomic(path, "old")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        files.write_atomic(path, "new")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
    assert path.read_text() == "old"


def test_the_address_comes_from_ci_then_git_then_pyproject(
    tiny: Path, edit: Edit, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert address.repository(tiny) is None
    assert address.source(tiny) == ""
    assert address.reference(tiny) == "v0.1.0"
    edit(
        "pyproject.toml",
        "[project]",
        '[project.urls]\nRepository = "https://github.com/p/p"\n[project]',
    )
    assert address.repository(tiny) == "https://github.com/p/p"
    for command in (["init", "-q"], ["remote", "add", "origin", "git@github.com:g/g.git"]):
        subprocess.run(["git", *command], cwd=tiny, check=True)
    assert address.repository(tiny) == "https://github.com/g/g"
    monkeypatch.setenv("GITHUB_REPOSITORY", "c/c")
    monkeypatch.setenv("GITHUB_SHA", "abc")
    assert address.source(tiny) == "git+https://github.com/c/c@abc"


def test_timings_are_rounded_up(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(built)
    files.write_json(built / "_build/executed/tides.json", {"cpu_seconds": 11.2})
    timings.main([])
    assert read_json(built / "book/timings.json") == {"waves": 5, "tides": 15}
    (built / "_build/executed/tides.json").unlink()
    with pytest.raises(ToolError, match="tides was never executed"):
        timings.main([])


@pytest.mark.parametrize("name", ["book/index.md", "_toc.yml", "_build/executed/waves.ipynb"])
def test_the_site_depends_on(built: Path, name: str) -> None:
    key = make_book.site_key(built)
    assert make_book.site_key(built) == key
    with (built / name).open("a") as file:
        file.write("\n")
    assert make_book.site_key(built) != key


def test_a_browser_from_the_environment_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    browser = tmp_path / "browser"
    browser.write_text("#!/bin/sh\nexit 0\n")
    browser.chmod(0o755)
    monkeypatch.setenv("CHROMIUM_PATH", str(browser))
    chromium.main([])
    assert capsys.readouterr().out.strip() == str(browser)


def test_no_browser_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chromium, "runs", lambda _: False)
    monkeypatch.setattr(chromium, "quietly", lambda *_: None)
    with pytest.raises(ToolError, match="set CHROMIUM_PATH"):
        chromium.main([])
