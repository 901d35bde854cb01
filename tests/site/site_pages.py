"""Which pages the tests of the site look at."""

from pathlib import Path

from tools import chapters

ROOT = Path(__file__).parents[2]
PAGES = [*chapters.pages(ROOT), "search"]
CHAPTERS = chapters.chapters(ROOT)
