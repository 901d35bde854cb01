"""book/references.bib as plain Markdown: "Kou et al. (2023)", with a link where there is one."""

from collections.abc import MutableMapping
from pathlib import Path
from typing import NamedTuple

from pybtex.database import Entry, Person
from pybtex.exceptions import PybtexError
from pybtex.richtext import Text

from tools import readers


class Citation(NamedTuple):
    """One work: how prose calls it, its year, its link and its line in the references."""

    authors: str
    year: str
    link: str
    line: str


def decode(latex: str) -> str:
    """LaTeX accents and braces as plain text."""
    return str(Text.from_latex(latex))


def surname(person: Person) -> str:
    """The family name, with its particle."""
    return decode(" ".join([*person.prelast_names, *person.last_names]))


def joined(names: list[str]) -> str:
    """Names in a sentence."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else "Anonymous"


def link(entry: Entry) -> str:
    """Where the work can be read: arXiv, else its DOI, else its address."""
    fields = entry.fields
    if "eprint" in fields:
        return f"https://arxiv.org/abs/{fields['eprint']}"
    if "doi" in fields:
        return f"https://doi.org/{fields['doi']}"
    return str(fields.get("url", ""))


def citation(entry: Entry) -> Citation:
    """An entry of the bibliography in plain words."""
    persons = entry.persons.get("author") or entry.persons.get("editor") or []
    short = [surname(person) for person in persons]
    names = [
        " ".join([*(f"{decode(n)[0]}." for n in p.first_names + p.middle_names if decode(n)), last])
        for p, last in zip(persons, short, strict=True)
    ]
    authors = joined(short) if len(short) < 3 else f"{short[0]} et al."
    year = str(entry.fields.get("year", "n.d."))
    venues = ("journal", "booktitle", "school", "publisher", "howpublished")
    venue = next((decode(entry.fields[name]) for name in venues if name in entry.fields), "")
    title = decode(entry.fields.get("title", "")).rstrip(".")
    parts = [f"{joined(names)} ({year}). *{title}*."]
    parts += [f"{venue}."] if venue else []
    address = link(entry)
    parts += [f"[{address.removeprefix('https://')}]({address})"] if address else []
    return Citation(authors, year, address, " ".join(parts))


def letters(entries: MutableMapping[str, Entry]) -> None:
    """Put a, b, … behind the year of works that prose would call alike."""
    alike: dict[tuple[str, str], list[str]] = {}
    for key in sorted(entries):
        work = citation(entries[key])
        alike.setdefault((work.authors, work.year), []).append(key)
    for keys in alike.values():
        for letter, key in zip("abcdefgh", keys if len(keys) > 1 else [], strict=False):
            entries[key].fields["year"] += letter


def citations(path: Path) -> dict[str, Citation]:
    """Every work of a BibTeX file by its key."""
    if not path.exists():
        return {}
    entries = readers.read_bibtex(path)
    for key, entry in entries.items():
        try:
            citation(entry)
        except PybtexError as error:
            raise readers.fault(path, 0, f"{key}: {error}") from None
    letters(entries)
    return {key: citation(entry) for key, entry in entries.items()}
