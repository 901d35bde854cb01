"""The generated pages: the ledger of claims, the execution statistics, and the role cpu."""

import html
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import record
from docutils import nodes
from docutils.statemachine import StringList
from record import told
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective, SphinxRole

from fltutils.notation import markup
from tools import readers
from tools.claims import SOURCES
from tools.directives import KINDS
from tools.files import ToolError
from tools.laws import score

HEADS = ("Verdict", "Claim", "Predicted", "Must be", "Measured", "Margin")
ROW = "claim-row"  # Sphinx makes a directive of this name, so `claim` is not free for it
ORDERS = {"resolution": "sharpest first"}
VERDICTS = {"holds": "✓ holds", "fails": "✗ fails", "planned": "○ planned"}
SHOWN_PACKAGES = ("torch", "numpy", "matplotlib", "papermill", "jupyter-book", "sphinx", "myst-nb")


def needed(path: Path, command: str) -> Any:
    """Content of a generated file, or an error that names the command which makes it."""
    if not path.exists():
        raise ToolError(f"{path.parent.name}/{path.name} is missing: run `{command}`")
    return readers.read_json(path)


def timings(book: Path) -> dict[str, int]:
    """CPU seconds of each chapter."""
    return dict(needed(book / "_generated/timings.json", "make timings"))


def locked_versions(root: Path) -> dict[str, str]:
    """Name and version of each package in the requirements files."""
    path = root / "requirements.txt"
    if not path.exists():
        raise ToolError("requirements.txt is missing")
    text = "".join(lock.read_text(encoding="utf-8") for lock in root.glob("requirements*.txt"))
    pins = re.findall(r"(?m)^([\w.-]+)==([^\s;+\\]+)", text)
    return {name.lower().replace("_", "-"): version for name, version in pins}


class GeneratedPart(SphinxDirective):
    """A directive whose content comes from files; a missing file is an error at its place."""

    has_content = False

    @property
    def book(self) -> Path:
        """The folder of the chapters."""
        return Path(self.env.srcdir)

    def run(self) -> list[nodes.Node]:
        """Make the part."""
        try:
            return self.parts()
        except ToolError as error:
            raise self.error(str(error)) from error

    def parts(self) -> list[nodes.Node]:
        """The nodes of the part."""
        raise NotImplementedError

    def markdown(self, text: str) -> list[nodes.Node]:
        """Parse Markdown at this place."""
        holder = nodes.Element()
        self.state.nested_parse(StringList(text.splitlines(), "generated"), 0, holder)
        return holder.children

    def table(
        self, heads: list[str], rows: Iterable[list[list[nodes.Node]]], css: str
    ) -> nodes.table:
        """A table with a head row; a cell is a list of nodes."""
        group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in heads), cols=len(heads))
        group += nodes.thead("", row(map(plain, heads)))
        group += nodes.tbody("", *map(row, rows))
        return nodes.table("", group, classes=[css])

    def section(self, title: list[nodes.Node], *parts: nodes.Node) -> nodes.section:
        """A section of the page, in its table of contents."""
        head = nodes.title("", "", *title)
        return nodes.section("", head, *parts, ids=[nodes.make_id(head.astext())])

    def chapter(self, name: str) -> nodes.Node:
        """Title of a chapter, linked when the chapter exists."""
        path = self.book / f"{name}.md"
        if not path.exists():
            field = self.book / "map.toml"
            listed = readers.read_toml(field).get("chapter", []) if field.exists() else []
            titles = {chapter.get("name"): chapter.get("title") for chapter in listed}
            if titles.get(name):
                return nodes.Text(titles[name])
            return nodes.Text(name.replace("_", " ").capitalize().replace(" gd", " GD"))
        heading = re.search(r"(?m)^# (.+)$", path.read_text(encoding="utf-8"))
        return nodes.reference("", heading[1] if heading else name, refuri=f"{name}.html")


def row(cells: Iterable[list[nodes.Node]]) -> nodes.row:
    """One table row."""
    return nodes.row("", *(nodes.entry("", *cell) for cell in cells))


def plain(text: str) -> list[nodes.Node]:
    """A cell of plain text."""
    return [nodes.paragraph("", text)]


def marked(text: str) -> list[nodes.Element]:
    """A cell of text in which formulas are typed plainly."""
    return [nodes.paragraph("", "", nodes.raw("", markup(text), format="html"))]


def margin(claim: dict[str, Any]) -> str:
    """Distance from the bound, in standard errors, and the least at fresh seeds."""
    if claim["margin"] is None:
        far = "exact" if claim["verdict"] == "holds" else "none"
    else:
        far = told(claim["margin"])
    fresh = claim["fresh"]
    more = f"; at {fresh['seeds']} fresh seeds {told(fresh['margin'])} or more" if fresh else ""
    return f"{far}, {claim['runs']} runs{more}"


def marks(claim: dict[str, Any]) -> list[str]:
    """The classes by which the filters find a row."""
    found = [f"of-{key}-{claim[key]}" for key in ("verdict", "kind", "source", "chapter")]
    return found + ([f"resolves-{sharpness(claim):.4g}"] if claim["resolution"] else [])


def sharpness(claim: dict[str, Any]) -> float:
    """How near a wrong theory may come, as a share of the theory where that is not zero."""
    theory = abs(claim["theory"] or 0)
    return float(claim["resolution"] / theory if theory else claim["resolution"])


class ClaimsLedger(GeneratedPart):
    """Every claim of the sources: what it says, what was measured, and the verdict."""

    def parts(self) -> list[nodes.Node]:
        """Counts and filters, then a table for each chapter, then the planned claims."""
        needed(self.book.parent / "_build" / "claims.json", "make book")
        claims = record.claims(self.book.parent)
        parts: list[nodes.Node] = [self.counts(claims), *self.notable(claims)]
        parts.append(nodes.raw("", self.filters(claims), format="html"))
        for planned, note in ((False, ""), (True, " (planned)")):
            group = [c for c in claims if (c["verdict"] == "planned") == planned]
            for name in dict.fromkeys(c["chapter"] for c in group):
                here = [c for c in group if c["chapter"] == name]
                cells = [self.entry(c) for c in here]
                title = [self.chapter(name), *([nodes.Text(note)] if planned else [])]
                table = self.table(list(HEADS[: len(cells[0])]), cells, "ledger")
                for line, claim in zip(table[0][-1], here, strict=True):
                    line["ids"], line["classes"] = [claim["id"]], marks(claim)
                    self.env.domains["std"].note_object(ROW, claim["id"], claim["id"])
                section = self.section(title, table)
                section["ids"].append(f"of-{name}")
                parts.append(section)
        return parts

    def counts(self, claims: list[dict[str, Any]]) -> nodes.bullet_list:
        """How many claims have which verdict."""
        counts = Counter(c["verdict"] for c in claims)
        summary = nodes.bullet_list(classes=["verdict-counts"])
        for verdict in filter(counts.get, VERDICTS):
            shown = nodes.reference(
                "", "", badge(verdict, f"{counts[verdict]} "), refuri=f"?verdict={verdict}#filters"
            )
            summary += nodes.list_item("", nodes.paragraph("", "", shown))
        return summary

    def notable(self, claims: list[dict[str, Any]]) -> list[nodes.Node]:
        """The claims that fail and those that say where a theorem ends, each with its row."""
        found = {
            "What fails here": [c for c in claims if c["verdict"] == "fails"],
            "Where theorems end": [c for c in claims if c["kind"] == "limit"],
        }
        parts = []
        for words, group in found.items():
            line = nodes.paragraph("", f"{words}: ", classes=["notable"])
            for place, claim in enumerate(group):
                name = nodes.literal("", claim["id"])
                line += [nodes.Text(", ")] if place else []
                line += nodes.reference("", "", name, refuri=f"#{claim['id']}")
            parts += [line] if group else []
        return parts

    def filters(self, claims: list[dict[str, Any]]) -> str:
        """The chips, hidden until the script that they need has run."""

        def chips(key: str, names: dict[str, str]) -> str:
            counts = Counter(c[key] for c in claims)
            buttons = "".join(
                f'<button type="button" data-key="{key}" data-value="{value}" '
                f'aria-pressed="false">{html.escape(text)} <span>{counts[value]}</span></button>'
                for value, text in names.items()
                if counts[value]
            )
            return f'<div role="group" aria-label="{key}">{buttons}</div>'

        def select(key: str, names: dict[str, str]) -> str:
            options = "".join(
                f'<option value="{value}">{html.escape(text)}</option>'
                for value, text in {"": "all", **names}.items()
            )
            return f'<label>{key} <select data-key="{key}">{options}</select></label>'

        places = {name: self.chapter(name).astext() for name in {c["chapter"]: 0 for c in claims}}
        script = "../" * self.env.docname.count("/") + "_static/ledger.js"
        return (
            '<form class="filters" id="filters" hidden>'
            f"{chips('verdict', VERDICTS)}{chips('kind', KINDS)}"
            f"<div>{select('source', SOURCES)}{select('chapter', places)}{select('order', ORDERS)}"
            '<label>search <input type="search" data-key="q"></label></div>'
            '<div><p role="status"></p><button type="reset">Show all</button></div></form>'
            f'<script defer src="{script}"></script>'
        )

    def entry(self, claim: dict[str, Any]) -> list[list[nodes.Node]]:
        """A row: the verdict and the statement, and where the claim ran what was found."""
        badged = nodes.paragraph("", "", badge(claim["verdict"]))
        found = [claim["predicted"], claim["bound"], claim["measured"], margin(claim)]
        shown = [] if claim["verdict"] == "planned" else [marked(value) for value in found]
        return [[badged], self.statement(claim), *shown]

    def statement(self, claim: dict[str, Any]) -> list[nodes.Node]:
        """What the claim says, why it fails if it does, what it excludes, and where it stands."""
        ran = claim["verdict"] != "planned"
        paper = f"{{cite:t}}`{claim['paper']}`" if claim["paper"] else ""
        read = f"read: {claim['read']}" if claim["read"] else ""
        source = SOURCES.get(claim["source"], "")
        where = ", ".join(filter(None, [source, paper, claim["theorem"], read]))
        source = nodes.container("", *self.markdown(where), classes=["source"])
        name = nodes.literal("", claim["id"])
        if ran:
            name = nodes.reference("", "", name, refuri=claim["url"])
        source.children[0] += [nodes.Text(". "), name]
        parts = self.markdown(claim["statement"])
        if claim["verdict"] == "fails" and claim["reason"]:
            parts += self.markdown(f"*Why it fails here.* {claim['reason']}")
        if ran:
            words = KINDS[claim["kind"]].capitalize()
            if claim["rivals"]:
                rivals = [f"{r['name']}: {told(r['value'])}" for r in claim["rivals"]]
                words += ". Told apart from: " + "; ".join(rivals)
            if claim["resolution"]:
                words += f". Tells from anything farther than ± {told(claim['resolution'])}"
            if claim["untold"]:
                words += ". Does not tell from: " + "; ".join(claim["untold"])
            for text in (words, f"Refuted by: {claim['falsifier']}"):
                (shown,) = marked(text) if "$" not in text else self.markdown(text)
                shown["classes"].append("rivals")
                parts.append(shown)
        return [*parts, source]


class RecordFields(GeneratedPart):
    """Where claims.json is and what each of its fields means, from its schema."""

    def parts(self) -> list[nodes.Node]:
        """The two files, then a table of the fields of a claim."""
        files = nodes.paragraph("")
        for name in ("claims.json", Path(record.SCHEMA).name):
            files += [
                nodes.reference("", "", nodes.literal("", name), refuri=name),
                nodes.Text(" "),
            ]
        fields = readers.read_json(self.book / record.SCHEMA)["$defs"]["claim"]["properties"]
        rows = [
            [[nodes.paragraph("", "", nodes.literal("", name))], plain(field["description"])]
            for name, field in fields.items()
        ]
        return [files, self.table(["Field", "Meaning"], rows, "fields")]


def badge(verdict: str, before: str = "") -> nodes.inline:
    """A verdict in words and with a sign, never by colour alone."""
    return nodes.inline("", before + VERDICTS[verdict], classes=["verdict", f"verdict-{verdict}"])


def scored(entries: list[dict[str, Any]]) -> list[nodes.Text]:
    """How many laws of these chapters were changed, how often, and what of it was noticed."""
    counts = [law for entry in entries for law in entry["laws"].values()]
    sums = [sum(law[key] for law in counts) for key in ("tried", "told")]
    return [nodes.Text(str(one)) for one in (len(counts), *sums, f"{score(entries):.3f}")]


class ExecutionStatistics(GeneratedPart):
    """What a run of the book costs, and on which versions."""

    def parts(self) -> list[nodes.Node]:
        """A table of chapters and a table of versions."""
        claims = needed(self.book.parent / "_build" / "claims.json", "make book")
        evaluated = Counter(c["chapter"] for c in claims if c["verdict"] != "planned")
        seconds = timings(self.book)
        rows = [
            [
                [nodes.paragraph("", "", self.chapter(name))],
                plain(f"{cpu} s"),
                plain(str(evaluated[name])),
            ]
            for name, cpu in seconds.items()
        ]
        total = [plain("Whole book"), plain(f"{sum(seconds.values())} s")]
        rows.append([*total, plain(str(sum(evaluated.values())))])
        versions = locked_versions(self.book.parent)
        pins = [[plain(p), plain(versions[p])] for p in SHOWN_PACKAGES if p in versions]
        chapters = self.table(["Chapter", "CPU time", "Claims checked"], rows, "statistics")
        packages = self.table(["Package", "Version"], pins, "statistics")
        return [
            self.section([nodes.Text("Chapters")], chapters),
            self.section([nodes.Text("Versions")], packages),
            self.section([nodes.Text("Tests of the laws")], self.laws()),
            self.section([nodes.Text("Tests of the helper package")], self.mutation()),
        ]

    def laws(self) -> nodes.table:
        """How many changes of its laws the claims of a chapter notice."""
        found = needed(self.book / "_generated/laws.json", "make laws")
        tried = {name: entry for name, entry in found.items() if entry["laws"]}
        rows = [[self.chapter(name), *scored([entry])] for name, entry in tried.items()]
        rows.append([nodes.Text("Whole book"), *scored([*tried.values()])])
        cells = [[[nodes.paragraph("", "", part)] for part in row] for row in rows]
        heads = ["Chapter", "Laws", "Changes tried", "Noticed by a claim", "Score"]
        return self.table(heads, cells, "statistics")

    def mutation(self) -> nodes.table:
        """How many small changes of fltutils its tests notice."""
        found = needed(self.book / "_generated/mutation.json", "make mutation")
        rows = {
            "small changes tried": found["mutants"],
            "noticed by a test": found["killed"],
            "that nothing could notice": len(found["equivalent"]),
            "score, of those that could": f"{found['score']:.3f}",
            "measured at commit": found["commit"][:12],
        }
        cells = [[plain(name), plain(str(value))] for name, value in rows.items()]
        return self.table([f"{found['tool']} {found['version']}", "fltutils"], cells, "statistics")


class Cpu(SphinxRole):
    """CPU seconds of a chapter, from book/_generated/timings.json."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Write `15 s`, or warn that the chapter was never timed."""
        try:
            seconds = timings(Path(self.env.srcdir))
            if self.text not in seconds:
                raise ToolError(
                    f"book/_generated/timings.json has no {self.text!r}: run `make timings`"
                )
        except ToolError as error:
            message = self.inliner.reporter.error(str(error), line=self.lineno)
            return [], [message]
        return [nodes.Text(f"{seconds[self.text]}\N{NO-BREAK SPACE}s")], []


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives, the role, and the record beside the ledger."""
    app.add_directive("claims-ledger", ClaimsLedger)
    app.add_directive("claims-fields", RecordFields)
    app.add_directive("execution-statistics", ExecutionStatistics)
    app.add_object_type(ROW, ROW, objname="claim")  # the search finds its row
    app.add_role("cpu", Cpu())
    app.connect("build-finished", record.publish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
