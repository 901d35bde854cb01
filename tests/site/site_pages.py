"""Which pages the tests of the site look at."""

import os
from pathlib import Path

from tools import chapters

ROOT = Path(os.environ.get("BOOK_ROOT", Path(__file__).parents[2]))
PAGES = [*chapters.pages(ROOT), "search"]
CHAPTERS = chapters.chapters(ROOT)
