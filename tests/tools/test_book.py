"""What the tools know of the book: files, imports, address, and when the site is built again."""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tools import __main__, address, chromium, files, site, timings
from tools import book as make_book
from tools import chapters as book
from tools.__main__ import ALONE, main
from tools.files import ToolError
from tools.readers import read_json

Edit = Callable[[str, str, str], None]
REPOSITORY = Path(__file__).parents[2]


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
    report = built / "_build/executed/tides.json"
    files.write_json(report, read_json(report) | {"cpu_seconds": 11.2})
    timings.main([])
    assert read_json(built / "book/_generated/timings.json") == {"waves": 5, "tides": 15}
    report.unlink()
    with pytest.raises(ToolError, match="tides was never executed"):
        timings.main([])


def test_the_longest_chapter_is_named_first(
    built: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every chapter once; one that was never timed before all others."""
    monkeypatch.chdir(built)
    for stored, order in ({"waves": 5, "tides": 9}, "tides waves"), ({"tides": 9}, "waves tides"):
        files.write_json(built / "book/_generated/timings.json", stored)
        timings.main(["--longest"])
        names = [Path(name).stem for name in capsys.readouterr().out.split()]
        assert names == order.split()


def test_a_new_chapter_is_timed_and_the_others_stay(built: Path) -> None:
    timings.add_missing(built)
    assert (built / "book/_generated/timings.json").read_text() == '{"waves": 5, "tides": 5}'
    files.write_json(built / "book/_generated/timings.json", {"tides": 35})
    timings.add_missing(built)
    assert read_json(built / "book/_generated/timings.json") == {"waves": 5, "tides": 35}


@pytest.mark.parametrize("name", sorted(ALONE))
def test_an_argument_that_means_nothing_is_refused(
    built: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(built)
    monkeypatch.setattr("sys.argv", ["tools", name, "nope"])
    with pytest.raises(SystemExit):
        main()
    assert "unrecognized arguments: nope" in capsys.readouterr().err


def render(root: Path, committed: bool = False) -> Path:
    """A site of one page, in place of Sphinx."""
    page = root / "_build/html/index.html"
    files.write_atomic(page, (root / "book/waves.md").read_text())
    return page.parent


def test_make_site_does_not_leave_its_pages_to_make_book(
    built: Path, edit: Edit, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(built)
    monkeypatch.setattr(site, "build", render)
    page = built / "_build/html/index.html"
    make_book.main([])
    make_book.main([])
    assert "site: unchanged" in capsys.readouterr().out
    edit("book/waves.md", "A promise", "A lie")
    site.main(["--committed"])
    assert "A lie" in page.read_text()
    edit("book/waves.md", "A lie", "A promise")
    make_book.main([])
    assert "A promise" in page.read_text()


@pytest.mark.parametrize("text", ["", "<<<<<<< HEAD\n1\n", "[1]", '{"key": 1}', "\udcff"])
def test_a_damaged_mark_is_no_mark(tmp_path: Path, text: str) -> None:
    path = tmp_path / "site.json"
    path.write_bytes(text.encode(errors="surrogateescape"))
    assert files.read_derived(path, "") == ""


def tool(root: Path, *arguments: str) -> subprocess.Popen[str]:
    """`python -m tools …` in a tiny book."""
    return subprocess.Popen(
        [sys.executable, "-m", "tools", *arguments],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_two_commands_do_not_write_at_once(tiny: Path) -> None:
    hold = f"from tools.files import lock\nwith lock(Path({str(tiny)!r}), 'x'): print(flush=True), "
    command = [
        sys.executable,
        "-c",
        f"from pathlib import Path\n{hold}__import__('time').sleep(60)",
    ]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        holder.stdout.readline()
        second = tool(tiny, "portable")
        told = f"error: `x` (process {holder.pid}) is at work in {tiny}: wait until it is done\n"
        assert (second.communicate()[0], second.returncode) == (told, 1)
        holder.kill()
    assert "is missing: run `make book`" in tool(tiny, "portable").communicate()[0]


def test_a_build_folder_that_is_a_file_is_told_in_one_line(tiny: Path) -> None:
    (tiny / "_build").write_text("")
    process = tool(tiny, "execute")
    out, _ = process.communicate()
    assert process.returncode == 1
    assert out == f"error: {tiny}/_build: File exists\n"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS])
def test_what_the_disk_refuses_is_told_in_one_line(
    built: Path, number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))  # a write names no file

    monkeypatch.chdir(built)
    monkeypatch.setattr(sys, "argv", ["tools", "timings"])
    monkeypatch.setattr(Path, "write_bytes", refuse)
    assert __main__.main() == 1
    path = built / "book/_generated/timings.json"
    assert capsys.readouterr().err == f"error: {path}: {os.strerror(number)}\n"


def test_a_path_with_a_colon_is_refused(tiny: Path) -> None:
    place = tiny / "a:b"
    place.mkdir()
    shutil.copy(tiny / "_toc.yml", place)
    assert tool(place, "execute").communicate()[0].endswith("cannot hold ':'\n")


@pytest.mark.parametrize("name", ["book/index.md", "_toc.yml", "_build/executed/waves.ipynb"])
def test_the_site_depends_on(built: Path, name: str) -> None:
    key = site.key(built, committed=False)
    assert site.key(built, committed=False) == key
    with (built / name).open("a") as file:
        file.write("\n")
    assert site.key(built, committed=False) != key


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
