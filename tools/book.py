"""`make book`: execute, portable, claims, site. What has not changed is not done again."""

from pathlib import Path

from tools import address, claims, execute, portable, timings
from tools import chapters as book
from tools.files import digest, read_derived, write_json

LOCKS = ("requirements.txt", "requirements-torch.txt")
SITE_INPUTS = ("book", "_config.yml", "_toc.yml", *LOCKS, "tools")
DERIVED = {".pyc"}


def inputs(root: Path) -> list[Path]:
    """Every file the site is made from, in a fixed order."""
    places = [root / name for name in SITE_INPUTS]
    found = [path for place in places for path in (place, *place.rglob("*")) if path.is_file()]
    found += [root / "_build/executed" / f"{name}.ipynb" for name in book.chapters(root)]
    return sorted(path for path in found if path.suffix not in DERIVED)


def site_key(root: Path) -> str:
    """What the site is made from, in one hash."""
    paths = inputs(root)
    names = [str(path.relative_to(root)) for path in paths]
    where = [address.repository(root) or "", address.reference(root)]
    return digest([*names, *(path.read_bytes() for path in paths), *where])


def main(argv: list[str]) -> int:
    """Build the book; 1 where a chapter fails."""
    root = Path.cwd()
    if code := execute.main(argv):
        return code
    timings.add_missing(root)
    portable.main([])
    claims.main([])
    key = site_key(root)
    mark = root / "_build/site.json"
    if (root / "_build/html/index.html").exists() and read_derived(mark, "") == key:
        print("site: unchanged, _build/html/index.html")
        return 0
    from tools import site  # it loads Sphinx

    if code := site.main([]):
        return code
    write_json(mark, key)
    return 0
