"""What is drawn from book/map.toml: the map of the field, the cards of the front page, counts."""

import base64
import io
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from jupyter_cache import get_cache
from ledger import VERDICTS, GeneratedPart, needed, timings
from PIL import Image
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole

from tools import chapters as book
from tools import readers
from tools.bibliography import citations
from tools.claims import SOURCES
from tools.files import ToolError, write_atomic
from tools.forms import folder

LEVERS = ("data", "model", "algorithm", "evaluation")
SPEED = 150  # words a minute, of a text that argues
# Minutes of a first reading, without a pencil; a formula in a sentence is said as two words.
TAKES = {"word": 1 / SPEED, "formula": 2 / SPEED, "equation": 0.4, "figure": 1.0}
# What a source has and a page does not show, or shows as a number.
UNREAD = re.compile(r"(?m)^:\w+:.*$|^[`:]{3,}\{.*?\}|\{[\w:]+\}`[^`]*`|\]\([^)]*\)|^\([\w-]+\)=$")
THUMBNAIL = (480, 300)  # pixels, twice what a card shows
NUMBERS = (
    "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
    "twenty",
)  # fmt: skip


def field(root: Path) -> dict[str, list[dict[str, Any]]]:
    """book/map.toml, held against the toc and the list of planned chapters."""
    path = root / "book/map.toml"
    table = readers.read_toml(path)
    planned = readers.read_toml(root / "book/claims.toml").get("planned", [])
    wanted = [*book.chapters(root), *planned]
    named = [chapter.get("name", "") for chapter in table.get("chapter", [])]
    if wrong := sorted(set(wanted) ^ set(named)) or [n for n in named if named.count(n) > 1]:
        message = f"{wrong[0]!r}: one [[chapter]] for each of _toc.yml and of the list `planned`"
        raise readers.fault(path, 0, message)
    captions = {
        Path(page).stem: part["caption"]
        for part in book.toc(root).get("parts", [])
        for page in book.toc_files(part)
    }
    numbered = {name: place for place, name in enumerate(book.chapters(root), 1)}
    for chapter in table["chapter"]:
        written = chapter["name"] in numbered
        needs = ("question", "figure") if written else ("part", "title")
        if missing := [key for key in ("text", *needs) if not chapter.get(key)]:
            raise readers.fault(path, 0, f"{chapter['name']} lacks {missing[0]}")
        chapter["number"] = numbered.get(chapter["name"], 0)
        if written:
            chapter["part"] = captions.get(chapter["name"], "")
            source = readers.text(root / f"book/{chapter['name']}.md")
            chapter["title"] = re.findall(r"(?m)^# (.+)$", source)[0]
    for work in table.get("work", []):
        if work["lever"] not in LEVERS:
            message = f"{work['paper']} turns {work['lever']!r}; allowed: {', '.join(LEVERS)}"
            raise readers.fault(path, 0, message)
        if unknown := [name for name in work["chapters"] if name not in named]:
            raise readers.fault(path, 0, f"{work['paper']} extends {unknown[0]!r}, no chapter")
    return {"work": [], **table}


def read(page: str) -> dict[str, int]:
    """How much of what a reader meets in the source of a page; code is folded, options unseen."""
    prose = book.CELL.sub("", re.sub(r"\A---\n.*?\n---\n", "", page, flags=re.DOTALL))
    prose, equations = re.subn(r"\$\$.*?\$\$( \([\w-]+\))?", " ", prose, flags=re.DOTALL)
    prose, formulas = re.subn(r"\$[^$]+\$", " ", prose)
    return {
        "word": len(re.findall(r"\b[A-Za-z]{2,}", UNREAD.sub(" ", prose))),
        "formula": formulas,
        "equation": equations,
        "figure": len(re.findall(r"(?m)^    name: fig-", page)),
    }


def minutes(path: Path) -> int:
    """How long a first reading of a chapter takes."""
    return round(sum(TAKES[what] * n for what, n in read(book.live(path)).items()))


def thumbnails(root: Path, name: str, figure: str) -> tuple[str, list[Path]]:
    """The words and the two small forms of a figure of a chapter, from the stored outputs."""
    cache = get_cache(str(root / "_build/.jupyter_cache"))
    for record in cache.list_cache_records():
        if Path(record.uri).stem != name:
            continue
        for cell in cache.get_cache_bundle(record.pk).nb.cells:
            words = cell.metadata.get("mystnb", {})
            if words.get("figure", {}).get("name") != figure:
                continue
            shown = next(o["data"]["image/png"] for o in cell.outputs if "image/png" in o["data"])
            light, twin = base64.b64decode(shown), folder(root, name) / f"{figure}.dark.png"
            both = {"light": light, "dark": twin.read_bytes() if twin.exists() else light}
            paths = [root / f"_build/cards/{name}-{theme}.png" for theme in both]
            for path, png in zip(paths, both.values(), strict=True):
                small = io.BytesIO()
                with Image.open(io.BytesIO(png)) as picture:
                    plain = picture.convert("RGB")
                    plain.thumbnail(THUMBNAIL, Image.Resampling.LANCZOS)
                    plain.quantize(256, dither=Image.Dither.NONE).save(small, "PNG", optimize=True)
                write_atomic(path, small.getvalue())
            return str(words.get("image", {}).get("alt", "")), paths
    raise ToolError(f"book/map.toml: book/{name}.md has no figure {figure!r}")


def needs(root: Path) -> dict[str, list[str]]:
    """The chapters that each asks for under *You need*, less what the last of them asks for."""
    order = book.chapters(root)
    found: dict[str, list[str]] = {}
    for name in order:
        path = root / f"book/{name}.md"
        said = re.findall(r"(?m)^\*\*You need\*\*.*$", readers.text(path))
        linked = {link for line in said for link in re.findall(r"\]\(([\w/]+)\.md\)", line)}
        if wrong := sorted(linked - set(found)):
            raise readers.fault(path, 0, f"needs {wrong[0]!r}, which is no chapter before it")
        last = sorted(linked, key=order.index)
        above = set(found[last[-1]]) if last else set()
        for before in [*above]:
            above |= set(found[before])
        found[name] = [link for link in last if link not in above]
    return found


class FieldPart(GeneratedPart):
    """A part that is drawn from book/map.toml."""

    def read(self) -> None:
        """Take the table; the page depends on it."""
        self.root = self.book.parent
        self.field = field(self.root)
        self.env.note_dependency(str(self.book / "map.toml"))

    def counted(self, name: str) -> list[nodes.Node]:
        """How many claims of a chapter have which verdict, linked to their rows."""
        claims = needed(self.root / "_build/claims.json", "make book")
        counts = Counter(c["verdict"] for c in claims if c["chapter"] == name)
        parts: list[nodes.Node] = []
        for verdict, words in VERDICTS.items():
            if counts[verdict]:
                text = f"{counts[verdict]} {words if verdict == 'planned' else words[0]}"
                shown = nodes.inline("", text, classes=["verdict", f"verdict-{verdict}"])
                place = f"claims.html?chapter={name}&verdict={verdict}#of-{name}"
                parts += [nodes.reference("", "", shown, refuri=place), nodes.Text(" ")]
        return parts

    def titled(self, chapter: dict[str, Any]) -> nodes.Node:
        """The number and the title of a chapter, linked where it is written."""
        if not chapter["number"]:
            return nodes.inline("", chapter["title"], classes=["unwritten"])
        title = f"{chapter['number']}. {chapter['title']}"
        return nodes.reference("", title, refuri=f"{chapter['name']}.html")


class FieldMap(FieldPart):
    """Levers across, chapters down: who turns what."""

    def parts(self) -> list[nodes.Node]:
        """One table; a part of the book is a row of its own."""
        self.read()
        works = citations(self.book / "references.bib")
        rows, part = [], ""
        for chapter in self.field["chapter"]:
            if chapter["part"] != part:
                part = chapter["part"]
                cell = nodes.entry("", nodes.paragraph("", part), morecols=len(LEVERS))
                rows.append(nodes.row("", cell, classes=["part"]))
            name = nodes.paragraph("", "", self.titled(chapter))
            counts = nodes.paragraph("", "", *self.counted(chapter["name"]), classes=["facts"])
            cells = [nodes.entry("", name, counts)]
            for lever in LEVERS:
                cell = nodes.entry("", *self.tiles(chapter, lever))
                for work in self.field["work"]:
                    if work["lever"] == lever and chapter["name"] in work["chapters"]:
                        cited = works[work["paper"]]
                        link = nodes.reference(
                            "", f"{cited.authors}, {cited.year}", refuri=f"#work-{work['paper']}"
                        )
                        cell += nodes.paragraph("", "", link, classes=["beside"])
                cells.append(cell)
            rows.append(nodes.row("", *cells))
        table = self.table(["Chapter", *map(str.capitalize, LEVERS)], [], "field")
        table[0][-1].extend(rows)
        return [table]

    def tiles(self, chapter: dict[str, Any], lever: str) -> Iterator[nodes.Node]:
        """What a chapter does with a lever, linked to it or to its planned claims."""
        if lever in chapter:
            written = chapter["number"]
            planned = f"claims.html?chapter={chapter['name']}#of-{chapter['name']}"
            place = f"{chapter['name']}.html" if written else planned
            link = nodes.reference("", chapter[lever], refuri=place)
            kind = "written" if written else "planned"
            yield nodes.paragraph("", "", link, classes=["tile", f"tile-{lever}", f"tile-{kind}"])


class FieldWorks(FieldPart):
    """What the works find that turn one lever."""

    required_arguments = 1

    def parts(self) -> list[nodes.Node]:
        """A paragraph each."""
        self.read()
        titles = {chapter["name"]: chapter for chapter in self.field["chapter"]}
        parts: list[nodes.Node] = []
        for work in self.field["work"]:
            if work["lever"] == self.arguments[0]:
                extended = [titles[name] for name in work["chapters"]]
                places = " and ".join(
                    f"{{doc}}`{c['name']}`" if c["number"] else f"*planned: {c['title']}*"
                    for c in extended
                )
                text = f"**{work['title']}.** {work['text']} *Extends* {places}."
                entry = self.markdown(text)
                entry[0]["ids"].append(f"work-{work['paper']}")
                parts += entry
        return parts


class FieldChapters(FieldPart):
    """What each chapter does, part by part."""

    def parts(self) -> list[nodes.Node]:
        """A paragraph a part."""
        self.read()
        parts: dict[str, list[str]] = {}
        for c in self.field["chapter"]:
            name = f"{{doc}}`{c['name']}`" if c["number"] else f"*{c['title']}* (planned)"
            parts.setdefault(c["part"], []).append(f"{name} {c['text']}")
        return self.markdown("\n\n".join(f"**{p}.** {' '.join(t)}" for p, t in parts.items()))


class FieldNeeds(FieldPart):
    """What needs what: a chapter stands below the last of those that it needs."""

    def parts(self) -> list[nodes.Node]:
        """A list in lists."""
        self.read()
        needed_by = needs(self.root)

        def lines(above: str | None, depth: int) -> Iterator[str]:
            for name, asked in needed_by.items():
                if (asked[-1] if asked else None) == above:
                    beside = " and ".join(f"{{doc}}`{other}`" for other in asked[:-1])
                    after = f", after {beside} too" if beside else ""
                    yield f"{'  ' * depth}- {{doc}}`{name}`{after}"
                    yield from lines(name, depth + 1)

        return self.markdown("\n".join(lines(None, 0)))


class QuestionCards(FieldPart):
    """The questions of the chapters, with what a reader needs to choose one."""

    def parts(self) -> list[nodes.Node]:
        """A card for each chapter that is written, in reading order."""
        self.read()
        written = [c for c in self.field["chapter"] if c["number"]]
        cards = nodes.container(classes=["question-cards"])
        for c in sorted(written, key=lambda chapter: chapter["number"]):
            alt, paths = thumbnails(self.root, c["name"], c["figure"])
            images = [
                nodes.image(uri=f"/../_build/cards/{path.name}", alt=alt, classes=[f"only-{theme}"])
                for path, theme in zip(paths, ("light", "dark"), strict=True)
            ]
            source = self.book / f"{c['name']}.md"
            time = nodes.Text(f"· {minutes(source)} min first read")
            cards += nodes.container(
                "",
                nodes.container("", *images, classes=["thumbnail"]),
                nodes.paragraph("", "", self.titled(c), classes=["title"]),
                nodes.paragraph("", c["question"]),
                nodes.paragraph("", "", *self.counted(c["name"]), time, classes=["facts"]),
                classes=["question-card"],
            )
        return [cards]


class ClaimCounts(GeneratedPart):
    """How many claims hold, fail, are planned, and what a run of all costs."""

    def parts(self) -> list[nodes.Node]:
        """One line that leads to the ledger, and to the first chapter."""
        claims = needed(self.book.parent / "_build/claims.json", "make book")
        counts = Counter(claim["verdict"] for claim in claims)
        line = nodes.paragraph("", classes=["front-counts"])
        for verdict, words in VERDICTS.items():
            if not counts[verdict]:
                continue
            shown = nodes.inline(
                "", f"{counts[verdict]} {words}", classes=["verdict", f"verdict-{verdict}"]
            )
            place = f"claims.html?verdict={verdict}#filters"
            line += nodes.reference("", "", shown, refuri=place)
        seconds = sum(timings(self.book).values())
        line += nodes.inline("", f"the whole book runs in {seconds}\N{NO-BREAK SPACE}s on one core")
        first = book.chapters(self.book.parent)[0]
        links = {
            "Start with chapter 1": first,
            "The ledger": "claims",
            "How to read": "how_to_read",
        }
        buttons = nodes.paragraph("", classes=["front-buttons"])
        for words, page in links.items():
            buttons += nodes.reference("", words, refuri=f"{page}.html")
        return [line, buttons]


class Count(SphinxRole):
    """How many of something the book has, in words up to twenty; a capital letter is kept."""

    what: ClassVar = "written, unwritten, sources, claims, shortest, longest, " + ", ".join(
        VERDICTS
    )

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Write the number, or say what can be counted."""
        root, name = Path(self.env.srcdir).parent, self.text.lower()
        try:
            number = self.counts(root, name)
        except ToolError as error:
            return [], [self.inliner.reporter.error(str(error), line=self.lineno)]
        word = NUMBERS[number] if number < len(NUMBERS) else str(number)
        return [nodes.Text(word.capitalize() if self.text[:1].isupper() else word)], []

    def counts(self, root: Path, name: str) -> int:
        """One number."""
        if name == "written":
            return len(book.chapters(root))
        if name == "unwritten":
            return len(readers.read_toml(root / "book/claims.toml").get("planned", []))
        if name == "sources":
            return len(SOURCES)
        if name in ("shortest", "longest"):
            read = [minutes(root / f"book/{chapter}.md") for chapter in book.chapters(root)]
            return min(read) if name == "shortest" else max(read)
        claims = needed(root / "_build/claims.json", "make book")
        if name == "claims":
            return len(claims)
        if name in VERDICTS:
            return sum(claim["verdict"] == name for claim in claims)
        raise ToolError(f"count {self.text!r}; allowed: {self.what}")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives and the role."""
    app.add_directive("field-map", FieldMap)
    app.add_directive("field-works", FieldWorks)
    app.add_directive("field-chapters", FieldChapters)
    app.add_directive("field-needs", FieldNeeds)
    app.add_directive("question-cards", QuestionCards)
    app.add_directive("claim-counts", ClaimCounts)
    app.add_role("count", Count())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
