"""`make book`: execute and render. What has not changed is not done again."""

from pathlib import Path

from tools import execute, timings


def main(argv: list[str]) -> int:
    """Build the book; 1 where a chapter fails."""
    if code := execute.main(argv):
        return code
    timings.add_missing(Path.cwd())
    from tools import site  # it loads Sphinx

    site.main([])
    return 0
