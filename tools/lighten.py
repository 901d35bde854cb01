"""Make a rendered site light: nothing unused, pictures of few colours, fonts of few icons."""

import io
import re
import shutil
from pathlib import Path

from fontTools import subset
from PIL import Image

# Written by the theme, asked for by no page: the web font draws the icons, maps serve debuggers.
UNUSED = ("**/*.map", "**/fontawesome.js*", "**/*.ttf", "**/locales", "objects.inv", ".buildinfo")
ICON_RULE = re.compile(r'([^{}]*)\{[^{}]*content:\s*"\\(f[0-9a-f]{3})"')
ICON_NAME = re.compile(r"\bfa-[a-z0-9-]+")


def trim(site: Path) -> None:
    """Remove what no page asks for."""
    for pattern in UNUSED:
        for path in list(site.glob(pattern)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def shrink_pictures(site: Path) -> None:
    """Store each PNG with 256 colours where that is smaller: a plot has no more to lose."""
    for path in site.rglob("*.png"):
        small = io.BytesIO()
        with Image.open(path) as picture:
            if picture.convert("RGBA").getchannel("A").getextrema() != (255, 255):
                continue  # see-through: an icon of the theme
            plain = picture.convert("RGB")
            plain.quantize(256, dither=Image.Dither.NONE).save(small, "PNG", optimize=True)
        if len(small.getvalue()) < path.stat().st_size:
            path.write_bytes(small.getvalue())


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


def lighten(site: Path) -> None:
    """All of it."""
    for step in (trim, shrink_pictures, shrink_icons):
        step(site)
