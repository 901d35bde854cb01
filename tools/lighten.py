"""Make a rendered site light: nothing unused, one style sheet a page, fonts of few icons."""

import hashlib
import os
import re
import shutil
from pathlib import Path

from fontTools import subset

from tools.files import ToolError

# Written by the theme, asked for by no page: the web font draws the icons, maps serve debuggers.
UNUSED = ("**/*.map", "**/fontawesome.js*", "**/*.ttf", "**/locales", "objects.inv", ".buildinfo")
ICON_RULE = re.compile(r'([^{}]*)\{[^{}]*content:\s*"\\(f[0-9a-f]{3})"')
ICON_NAME = re.compile(r"\bfa-[a-z0-9-]+")


def trim(site: Path) -> None:
    """Remove what no page asks for."""
    for pattern in UNUSED:
        for path in list(site.glob(pattern)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def texts(site: Path, *suffixes: str) -> str:
    """The text of all files that end so."""
    paths = (path for path in site.rglob("*") if path.suffix in suffixes)
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


def used_icons(site: Path) -> set[int]:
    """Code points of the icons that a page, a script or a rule of its own asks for."""
    used, styles = set(ICON_NAME.findall(texts(site, ".html", ".js"))), texts(site, ".css")
    codes = {ord(sign) for sign in styles if "\ue000" <= sign <= "\uf8ff"}  # the private area
    rules = [(set(ICON_NAME.findall(names)), code) for names, code in ICON_RULE.findall(styles)]
    return codes | {int(code, 16) for names, code in rules if not names or names & used}


def shrink_icons(site: Path) -> None:
    """Keep the used icons of the icon fonts: a twentieth of their weight."""
    codes = used_icons(site)
    options = subset.Options(flavor="woff2", layout_features=[], notdef_outline=True)
    for path in site.glob("_static/vendor/fontawesome/webfonts/*.woff2"):
        font = subset.load_font(str(path), options)
        subsetter = subset.Subsetter(options)
        subsetter.populate(unicodes=codes)
        subsetter.subset(font)
        subset.save_font(font, str(path), options)


TEXT = r"""[^{}"']++|"(?:\\.|[^"\\])*+"|'(?:\\.|[^'\\])*+'"""
FLAT = rf"\{{(?:{TEXT})*+\}}"
DEEP = rf"\{{(?:{TEXT}|{FLAT})*+\}}"  # a rule in @media in @supports
RULE = re.compile(rf"\s*([^{{}};]+?)\s*(?:;|\{{((?:{TEXT}|{FLAT}|{DEEP})*+)\}})")
SELECTOR = re.compile(r"(?:[^,()\[\]]|\((?:[^()]|\([^()]*\))*\)|\[[^\]]*\])+")
NAME = re.compile(r"[.#]((?:[\w-]|\\.)+)")
CONDITION = re.compile(r":(?:not|is|where|has)\((?:[^()]|\([^()]*\))*\)|\[[^\]]*\]")
NESTING = ("@media", "@supports", "@layer", "@container")


def prune(style: str, words: set[str]) -> str:
    """A style sheet without the rules whose class or id stands in no page and no script."""

    def kept(rule: re.Match[str]) -> str:
        head, body = rule.groups()
        if body is None:
            return f"{head};"
        if head.startswith(NESTING):
            body = prune(body, words)
            return f"{head}{{{body}}}" if body else ""
        if not head.startswith("@"):
            alive = (one.strip() for one in SELECTOR.findall(head) if used(one, words))
            head = ",".join(alive)
        return f"{head}{{{body}}}" if head else ""

    return RULE.sub(kept, re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL))


def used(selector: str, words: set[str]) -> bool:
    """Whether every class and id that a selector needs can stand in a page."""
    names = NAME.findall(CONDITION.sub("", selector))
    return words.issuperset(re.findall(r"[\w-]+", " ".join(names)))


def shrink_styles(site: Path) -> None:
    """The theme's style sheets hold all of Bootstrap: a page needs a fifth of it."""
    words = set(re.findall(r"[\w-]+", texts(site, ".html", ".js")))
    places = ["styles/*.css", "sphinx-design*.css", "mystnb*.css", "proof.css", "copybutton.css"]
    for path in (path for place in places for path in site.glob(f"_static/{place}")):
        path.write_text(prune(path.read_text(encoding="utf-8"), words), encoding="utf-8")


SHEET = re.compile(r'<link (?=[^>]*rel="stylesheet")[^>]*href="(_static/[^"?]+)[^"]*"[^>]*>\n?')
IMPORT = re.compile(r'@import\s+(?:url\()?["\']?([^"\')\s;]+)["\']?\)?\s*;')
PLACE = re.compile(r"""url\((["']?)(?![a-z]+:|/|\#)([^"')]+)\1\)""")


def whole(path: Path, static: Path) -> str:
    """A style sheet with what it imports, its places told from the folder `static`."""

    def place(match: re.Match[str]) -> str:
        return f"url({os.path.relpath(path.parent / match[2], static)})"

    style = re.sub(r"/\*.*?\*/|@charset [^;]*;", "", path.read_text(encoding="utf-8"), flags=re.S)
    style = re.sub(r"\s+", " ", style).strip()
    parts = IMPORT.split(style)
    parts[1::2] = [whole(path.parent / name, static) for name in parts[1::2]]
    parts[::2] = [PLACE.sub(place, part) for part in parts[::2]]
    return "".join(parts)


def bundle(site: Path) -> None:
    """One style sheet a page instead of eleven: nothing is painted before the last is there."""
    static, bundled = site / "_static", set()
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        names = SHEET.findall(text)
        if not names:
            continue
        style = "\n".join(whole(site / name, static) for name in names)
        sheet = static / f"all.{hashlib.sha256(style.encode()).hexdigest()[:8]}.css"
        sheet.write_text(style, encoding="utf-8")
        first = SHEET.search(text)
        assert first is not None
        link = f'<link rel="stylesheet" href="_static/{sheet.name}">\n'
        rest = SHEET.sub("", text[first.end() :])
        page.write_text(text[: first.start()] + link + rest, encoding="utf-8")
        bundled |= {site / name for name in names}
    for path in bundled:
        path.unlink()


MEASURE = "e.tabIndex=e.scrollWidth>e.clientWidth||e.scrollHeight>e.clientHeight?0:-1"
WAIT = f"new ResizeObserver(s=>s.forEach(t=>{{let e=t.target;{MEASURE}}}))"
LATER = f"(window.laidOut??={WAIT}).observe(e)"


def calm(site: Path) -> None:
    """The theme measures all code at once, which lays out the whole page: let each box wait."""
    for path in site.glob("_static/scripts/pydata-sphinx-theme.js"):
        text = path.read_text(encoding="utf-8")
        if text.count(MEASURE) != 1:
            raise ToolError(f"{path.name} does not measure code as it did: see tools/lighten.py")
        path.write_text(text.replace(MEASURE, LATER), encoding="utf-8")


def lighten(site: Path) -> None:
    """All of it."""
    trim(site)
    shrink_icons(site)
    shrink_styles(site)
    bundle(site)
    calm(site)
