"""The one place that knows where the repository lives and which version this is."""

import os
import re
import subprocess
from pathlib import Path

from tools import readers


def project(root: Path) -> dict[str, object]:
    """The [project] table of pyproject.toml."""
    path = root / "pyproject.toml"
    table = readers.read_toml(path).get("project")
    if not isinstance(table, dict) or "version" not in table:
        raise readers.fault(path, 0, "no version in a table [project]")
    return table


def git(root: Path, *command: str) -> str:
    """What a git command prints; empty where it fails."""
    done = subprocess.run(["git", "-C", str(root), *command], capture_output=True, encoding="utf-8")
    return done.stdout.strip() if done.returncode == 0 else ""


def remote(root: Path) -> str | None:
    """OWNER/NAME of the git remote `origin` on GitHub, if this is the top of such a clone."""
    if not (root / ".git").exists():
        return None
    origin = git(root, "remote", "get-url", "origin")
    match = re.search(r"github\.com[:/]([\w.-]+/[\w.-]+?)(?:\.git)?/?$", origin)
    return match[1] if match else None


def repository(root: Path) -> str | None:
    """The book's https address: GITHUB_REPOSITORY, else the git remote, else pyproject.toml."""
    if name := os.environ.get("GITHUB_REPOSITORY") or remote(root):
        return f"https://github.com/{name}"
    urls = project(root).get("urls", {})
    address = urls.get("Repository") if isinstance(urls, dict) else None
    return address.removesuffix("/").removesuffix(".git") if address else None


def site(root: Path) -> str:
    """Where the pages are read, the repository's GitHub Pages; empty while that is unknown."""
    match = re.fullmatch(r"https://github\.com/([^/]+)/([^/]+)", repository(root) or "")
    return f"https://{match[1].lower()}.github.io/{match[2]}" if match else ""


def reference(root: Path) -> str:
    """The version: the commit under CI, else the tag of the package's version."""
    return os.environ.get("GITHUB_SHA") or f"v{project(root)['version']}"


def commit(root: Path) -> str:
    """The commit that is checked out; where there is none to ask, the version."""
    return (git(root, "rev-parse", "HEAD") if (root / ".git").exists() else "") or reference(root)


def source(root: Path) -> str:
    """What pip installs the helper package from; empty while the address is unknown."""
    return f"git+{address}@{reference(root)}" if (address := repository(root)) else ""


def main(argv: list[str]) -> None:
    """Print both."""
    print(repository(Path.cwd()) or "unknown", reference(Path.cwd()))
