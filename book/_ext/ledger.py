"""The generated pages: the ledger of claims, the execution statistics, and the role cpu."""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective, SphinxRole

from tools import readers
from tools.claims import SOURCES
from tools.claims import register as claims_register
from tools.files import ToolError, read_derived

HEADS = ("Verdict", "Claim", "Predicted", "Measured", "Margin", "Runs")
KINDS = {
    "theorem": "Theorem",
    "identity": "Identity: true by algebra",
    "own": "The book's own",
    "limit": "Where a theorem ends",
}
VERDICTS = {"holds": "✓ holds", "fails": "✗ fails", "planned": "○ planned"}
SHOWN_PACKAGES = ("torch", "numpy", "matplotlib", "papermill", "jupyter-book", "sphinx", "myst-nb")


def needed(path: Path, command: str) -> Any:
    """Content of a generated file, or an error that names the command which makes it."""
    if not path.exists():
        raise ToolError(f"{path.parent.name}/{path.name} is missing: run `{command}`")
    return readers.read_json(path)


def timings(book: Path) -> dict[str, int]:
    """CPU seconds of each chapter."""
    return dict(needed(book / "timings.json", "make timings"))


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
            return nodes.Text(name.replace("_", " ").capitalize().replace(" gd", " GD"))
        heading = re.search(r"(?m)^# (.+)$", path.read_text(encoding="utf-8"))
        return nodes.reference("", heading[1] if heading else name, refuri=f"{name}.html")


def row(cells: Iterable[list[nodes.Node]]) -> nodes.row:
    """One table row."""
    return nodes.row("", *(nodes.entry("", *cell) for cell in cells))


def plain(text: str) -> list[nodes.Node]:
    """A cell of plain text."""
    return [nodes.paragraph("", text)]


def margin(claim: dict[str, Any], seeds: dict[str, Any]) -> str:
    """Distance from the bound, in standard errors, and the least at fresh seeds."""
    if claim["margin"] is None:
        return "exact" if claim["verdict"] == "holds" else "none"
    seen = [value for value in seeds.values() if isinstance(value, int | float)]
    more = f", at {len(seeds)} fresh seeds {min(seen):.3g} or more" if seen else ""
    return f"{claim['margin']:.3g}{more}"


def kind(claim: dict[str, Any]) -> str:
    """What sort of claim it is, and which theories it tells apart, with what they would give."""
    rivals = [f"{rival['name']} ({rival['value']:.3g})" for rival in claim["rivals"]]
    return ". ".join(
        [KINDS[claim["kind"]], *(["Told apart from: " + "; ".join(rivals)] * bool(rivals))]
    )


class ClaimsLedger(GeneratedPart):
    """Every claim of the sources: what it says, what was measured, and the verdict."""

    def parts(self) -> list[nodes.Node]:
        """Counts, then a table for each chapter, then the planned claims."""
        claims = needed(self.book.parent / "_build" / "claims.json", "make book")
        register = {c["id"]: c for c in claims_register(self.book.parent)}
        self.margins: dict[str, Any] = read_derived(self.book / "margins.json", {})
        counts = Counter(c["verdict"] for c in claims)
        summary = nodes.bullet_list(classes=["verdict-counts"])
        for verdict in VERDICTS:
            text = nodes.paragraph("", "", badge(verdict, f"{counts[verdict]} "))
            summary += nodes.list_item("", text)
        parts: list[nodes.Node] = [summary]
        for planned, note in ((False, ""), (True, " (planned)")):
            group = [c for c in claims if (c["verdict"] == "planned") == planned]
            for name in dict.fromkeys(c["chapter"] for c in group):
                rows = [self.entry(c, register[c["id"]]) for c in group if c["chapter"] == name]
                title = [self.chapter(name), *([nodes.Text(note)] if planned else [])]
                table = self.table(list(HEADS[: len(rows[0])]), rows, "ledger")
                parts.append(self.section(title, table))
        return parts

    def entry(self, claim: dict[str, Any], entry: dict[str, Any]) -> list[list[nodes.Node]]:
        """A row: the verdict and the statement, and where the claim ran what was found."""
        badged = nodes.paragraph("", "", badge(claim["verdict"]))
        seeds = self.margins.get(claim["chapter"], {}).get("claims", {}).get(claim["id"], {})
        found = [claim["predicted"], claim["measured"], margin(claim, seeds), claim["seeds"]]
        shown = [] if claim["verdict"] == "planned" else [plain(str(value)) for value in found]
        return [[badged], self.statement(claim, entry), *shown]

    def statement(self, claim: dict[str, Any], entry: dict[str, Any]) -> list[nodes.Node]:
        """What the claim says, why it fails if it does, and where it stands."""
        paper = f"{{cite:t}}`{entry['paper']}`" if entry.get("paper") else ""
        where = ", ".join(filter(None, [SOURCES[claim["source"]], paper, entry.get("theorem", "")]))
        source = nodes.container("", *self.markdown(where), classes=["source"])
        name = nodes.literal("", claim["id"])
        if claim["verdict"] != "planned":
            place = f"{claim['chapter']}.html#claim-{claim['id']}"
            name = nodes.reference("", "", name, refuri=place)
        source.children[0] += [nodes.Text(". "), name]
        reason = entry.get("reason", "") if claim["verdict"] == "fails" else ""
        why = self.markdown(f"*Why it fails here.* {reason}") if reason else []
        if claim["verdict"] == "planned":
            return [*self.markdown(claim["statement"]), source]
        faced = nodes.paragraph("", kind(claim), classes=["rivals"])
        return [*self.markdown(claim["statement"]), *why, faced, source]


def badge(verdict: str, before: str = "") -> nodes.inline:
    """A verdict in words and with a sign, never by colour alone."""
    return nodes.inline("", before + VERDICTS[verdict], classes=["verdict", f"verdict-{verdict}"])


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
            self.section([nodes.Text("Tests of the helper package")], self.mutation()),
        ]

    def mutation(self) -> nodes.table:
        """How many small changes of fltutils its tests notice."""
        found = needed(self.book / "mutation.json", "make mutation")
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
    """CPU seconds of a chapter, from book/timings.json."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Write `15 s`, or warn that the chapter was never timed."""
        try:
            seconds = timings(Path(self.env.srcdir))
            if self.text not in seconds:
                raise ToolError(f"book/timings.json has no {self.text!r}: run `make timings`")
        except ToolError as error:
            message = self.inliner.reporter.error(str(error), line=self.lineno)
            return [], [message]
        return [nodes.Text(f"{seconds[self.text]}\N{NO-BREAK SPACE}s")], []


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives and the role."""
    app.add_directive("claims-ledger", ClaimsLedger)
    app.add_directive("execution-statistics", ExecutionStatistics)
    app.add_role("cpu", Cpu())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
