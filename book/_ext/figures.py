"""Figures: every image says what is seen; a notebook's have a dark twin and two narrow ones.

A narrow one, its panels below one another, is what a phone shows. A click shows the wide one as
large as the window, and picture and numbers can be downloaded.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import imagesize
from docutils import nodes
from myst_nb.sphinx_ import SphinxNbRenderer
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

from tools import forms
from tools.files import write_atomic

LOGGER = logging.getLogger(__name__)
SHORTEST = 40  # characters of a caption or an alt text: "Figure 1" says nothing


class DarkTwins(SphinxTransform):
    """Put the dark twin behind each notebook image that has one, and ask alt text of all."""

    default_priority = 800  # before Sphinx collects the images of a page (880)

    def apply(self, **kwargs: Any) -> None:
        """Check and double the images of one page."""
        book = Path(self.env.srcdir)
        for image in list(self.document.findall(nodes.image)):
            line, name, caption = placed(image)
            made = "jupyter_execute" in image["uri"]  # by a cell
            wrong = [wordless("alt text", image.get("alt", ""))]
            wrong += [wordless("caption", caption)] if made or caption else []
            if made and not re.fullmatch(r"fig-[a-z-]+", name):
                wrong.append("its name is not fig- and small letters, as in fig-phase-relu")
            for what in filter(None, wrong):
                place = (self.env.docname, line)
                LOGGER.warning("figure %s: %s", name, what, location=place, type="alt")
            dark = forms.folder(book.parent, self.env.docname) / f"{name}.dark.png"
            if made and dark.exists():
                light, twin = image.deepcopy(), image.deepcopy()
                twin["uri"] = f"/{dark.relative_to(book)}"
                light["classes"].append("only-light")
                twin["classes"].append("only-dark")
                # in a box: the theme hides a caption that follows a hidden image
                image.replace_self(nodes.container("", light, twin, classes=["twins"]))


def wordless(kind: str, text: str) -> str:
    """What to say of a caption or an alt text that is too short; empty where it is not."""
    ask = f"say what is seen, in {SHORTEST} characters or more"
    return "" if len(text.strip()) >= SHORTEST else f"{kind} {text.strip()!r}: {ask}"


def placed(image: nodes.image) -> tuple[int, str, str]:
    """The line that an image stands at, the name of its figure, and its caption."""
    chain = [image]
    while chain[-1].parent is not None:
        chain.append(chain[-1].parent)
    figure = next((node for node in chain if isinstance(node, nodes.figure)), image)
    cell: dict[str, Any] = next(
        (node["cell_metadata"] for node in chain if "cell_metadata" in node), {}
    )
    name = cell.get("mystnb", {}).get("figure", {}).get("name", Path(image["uri"]).name)
    caption = " ".join(node.astext() for node in figure.findall(nodes.caption))
    return next((node.line for node in chain if node.line), 0), str(name), caption


def pictures_only(render: Callable[..., None]) -> Callable[..., None]:
    """Let myst-nb make a figure of each picture of a cell, and of nothing else it displays."""

    def rendered(self: Any, token: Any, outputs: list[Any]) -> None:
        settings = token.meta["metadata"]
        plain = {**settings, "mystnb": {**settings.get("mystnb", {}), "figure": {}}}
        for output in outputs:
            picture = "image/png" in output.get("data", {})
            token.meta["metadata"] = settings if picture else plain
            render(self, token, [output])
        token.meta["metadata"] = settings

    return rendered


FIGURE = re.compile(
    r'(<figure [^>]*id="([^"]+)"[^>]*>\s*)<div class="twins[^>]*>'
    r"\s*(<img [^>]*only-light[^>]*>)\s*(<img [^>]*only-dark[^>]*>)\s*</div>"
)
CAPTION = re.compile(r"<figcaption>.*?</figcaption>", re.S)
SIDES = {"Left": "Top", "Right": "Bottom"}  # where a panel stands: wide, and on a phone
SIZE = re.compile(r'width="(\d+)" height="(\d+)"')
PHONE = "screen and (max-width: 640px)"


def size(width: int, height: int) -> str:
    """The attributes of a picture that has two pixels for each of the page."""
    return f'width="{round(width / 2)}" height="{round(height / 2)}"'


def form(image: str, theme: str, narrow: Path) -> str:
    """A picture of one theme: by its narrow form on a phone, linked to the wide one."""
    place = re.findall(r'src="([^"]+)"', image)[0]
    wide = SIZE.sub(lambda found: size(int(found[1]), int(found[2])), image)
    source = f'media="{PHONE}" srcset="_images/{narrow.name}" {size(*imagesize.get(narrow))}'
    return (
        f'<a class="only-{theme} enlarge" href="{place}" aria-haspopup="dialog">'
        f"<picture><source {source}>{wide}</picture></a>"
    )


def stacked(caption: str) -> str:
    """A caption that also says where its panels stand on a phone."""

    def both(found: re.Match[str]) -> str:
        return f'<span class="wide">{found[0]}</span><span class="narrow">{SIDES[found[0]]}</span>'

    return re.sub(r"\b(Left|Right)\b(?=[^<>]*<)", both, caption)


def pictures(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Give the figures of a page their narrow forms and their links."""
    root, out = Path(app.srcdir).parent, Path(app.outdir)

    def linked(found: re.Match[str]) -> str:
        start, name, light, dark = found.groups()
        place = re.findall(r'src="([^"]+)"', light)[0]
        folder = forms.folder(root, page)
        narrow = [folder / f"{name}.{theme}-narrow.png" for theme in ("light", "dark")]
        for source in narrow:
            write_atomic(out / "_images" / source.name, source.read_bytes())
        write_atomic(out / "figures" / f"{name}.csv", forms.table(root, page, name))
        links = (
            f'<a href="{place}" download="{name}.png">picture</a> '
            f'<a href="figures/{name}.csv" download>numbers</a>'
        )
        shown = zip((light, dark), ("light", "dark"), narrow, strict=True)
        both = "\n".join(form(*one) for one in shown)
        return f'{start}<div class="twins">\n{both}\n</div>\n<p class="take">{links}</p>'

    if doctree is not None:
        body = FIGURE.sub(linked, context["body"])
        context["body"] = CAPTION.sub(lambda found: stacked(found[0]), body)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the transform."""
    SphinxNbRenderer._render_nb_cell_code_outputs = pictures_only(
        SphinxNbRenderer._render_nb_cell_code_outputs
    )
    app.add_transform(DarkTwins)
    app.add_js_file("figures.js")
    app.connect("html-page-context", pictures, priority=600)  # pages.py gives images their size
    return {"parallel_read_safe": True, "parallel_write_safe": True}
