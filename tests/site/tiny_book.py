"""A complete book of two pages and one chapter, made by hand: no kernel runs."""

import base64
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from PIL import Image

from fltutils import claims
from tools import execute, forms
from tools.chapters import read_source
from tools.names import CLAIM, EXERCISE, GLUE

LINKED = (
    "_ext", "_assets", "_generated/assets", "_templates", "labs", "macros.json", "references.bib",
)  # fmt: skip
ALT = "A grey square that stands for a figure of the book"

TOC = """format: jb-book
root: index.md
chapters:
  - file: chapter.md
  - file: claims.md
  - file: statistics.md
  - file: bibliography.md
"""
INDEX = """# A tiny book

Its only chapter is [](chapter.md), and this line is its description. {count}`Planned` planned.

```{claim-counts}
```

```{question-cards}
```

```{field-map}
```

```{field-works} data
```

```{field-chapters}
```

```{field-needs}
```
"""
MAP = """
[[chapter]]
name = "chapter"
text = "asks."
question = "Is it so?"
figure = "fig-a"
data = "one number"
[[chapter]]
name = "another_chapter"
part = "Later"
title = "Another chapter"
text = "asks more."
model = "another number"
[[work]]
paper = "kou2023"
lever = "data"
chapters = ["another_chapter", "chapter"]
title = "More"
text = "{cite:t}`kou2023` find more."
"""
LEDGER = "# Ledger\n\n```{claims-ledger}\n```\n\n```{claims-fields}\n```\n"
MUTATION = {
    "tool": "mutmut", "version": "3.8.1", "mutants": 100, "killed": 90, "equivalent": {"x": "so"},
    "score": 0.909, "commit": "0123456789abcdef",
}  # fmt: skip
LAWS = {
    "chapter": {
        "code": "x",
        "laws": {
            "half": {"tried": 8, "told": 7, "void": 1},
            "all": {"tried": 2, "told": 2, "void": 0},
        },
        "untold": {"tiny.two": ["half: x / 2 → x"]},
    },
    "no_law": {"code": "x", "laws": {}, "untold": {}},
}
STATISTICS = "# Statistics\n\n```{execution-statistics}\n```\n"
RIVALS = {"all of it": {"share": 1.0}, "nothing": 0.0}
BIBLIOGRAPHY = "# Bibliography\n\n```{bibliography}\n:all:\n```\n"
CLAIMS = """
planned = ["another_chapter"]
[[claim]]
id = "tiny.one"
statement = "For $n > 0$ it holds."
source = "tutorial"
paper = "kou2023"
theorem = "Theorem 1"
chapter = "chapter"
falsifier = "a counterexample"
mutant = "off"

[[claim]]
id = "tiny.later"
statement = "It holds *later*."
source = "seminar"
paper = ""
theorem = ""
chapter = "another_chapter"
falsifier = "a counterexample"
"""
CHAPTER = rf"""---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# A chapter

The first paragraph says what the chapter is about, after {{cite:t}}`kou2023`, in {{cpu}}`chapter`.

```{{code-cell}} ipython3
:tags: [parameters]

seed = 0
```

$$
a = \SNR
$$ (eq-a)

As {{eq}}`eq-a` says, it is {{glue:text}}`value`, see {{numref}}`fig-a` and {{prf:ref}}`thm-a`.

```{{prf:theorem}} Growth
:label: thm-a
$\norm{{x}} \ge 0$.
```

```{{prf:proof}}
By inspection.
```

```{{prf:proof}}
By inspection once more.
```

```{{code-cell}} ipython3
:tags: [hide-input]

glue("value", 0.42)
```

```{{code-cell}} ipython3
---
mystnb:
  figure:
    name: fig-a
    caption: A caption with $a$ and words enough to say what is meant.
  image:
    alt: {ALT}
tags: [hide-input]
---
show(draw)
```

```{{code-cell}} ipython3
:tags: [hide-input]

claim("tiny.one")
```

```{{code-cell}} ipython3
:tags: [mutant-off]

never_shown("tiny.one")
```

```{{claim}} tiny.two
:kind: theorem
:theorem: thm-a
:work: kou2023, Theorem 2
:read: full text
:source: tutorial

One half of $x$ stays.
```

```{{code-cell}} ipython3
:tags: [hide-input]

@claim("tiny.two")
def half(): ...
```

```{{margin}}
A note.
```

```{{lab}} front
:alt: {ALT}s
```

```{{dropdown}} More
Folded text.
```

```{{code-cell}} ipython3
:tags: [exercise]

check(stub)
```

```{{code-cell}} ipython3
:tags: [solution, hide-cell]

check(solution)
```
"""


def png(shade: int) -> bytes:
    """A small grey picture."""
    buffer = io.BytesIO()
    Image.new("L", (40, 30), shade).save(buffer, "PNG")
    return buffer.getvalue()


LIGHT = png(200)
OTHER = {
    "dark.png": png(50), "light-narrow.png": png(210), "dark-narrow.png": png(60),
    "csv": b"# panel 1:\npanel,series,x,y,value\n",
}  # fmt: skip


def output(data: dict[str, Any], **metadata: Any) -> list[Any]:
    """The outputs of a cell that displays one bundle."""
    return [nbformat.v4.new_output("display_data", data=data, metadata=metadata)]


def exercise(passed: bool) -> list[Any]:
    """What a checker displays."""
    return output({"text/plain": "checked", EXERCISE: {"id": "tiny.x", "passed": passed}})


def half(share: float = 0.5) -> list[float]:
    """Share that stays."""
    return [share - 0.01, share, share + 0.01]


def outputs() -> list[list[Any]]:
    """What each code cell of the chapter has displayed."""
    record = {"id": "tiny.one", "predicted": "1", "measured": "0.9 ± 0.1", "margin": 9.0}
    record |= {"bound": "above 0.7", "seeds": 20, "verdict": "holds", "kind": "theorem"}
    record["rivals"] = [{"name": "half of it", "value": 0.5, "margin": 8.0, "excluded": True}]
    box = '<details class="claim holds" id="claim-tiny.one" style="margin:0"><summary>✓</summary>'
    box += '<dl style="margin:0"><div><dt>claim</dt><dd>tiny.one</dd></div></dl></details>'
    two = claims.judge("tiny.two", half, RIVALS, 0.5, None, None, None)
    return [
        [],
        output({GLUE + "text/plain": "'0.42'"}, scrapbook={"name": "value", "mime_prefix": GLUE}),
        output({"image/png": base64.b64encode(LIGHT).decode(), "text/plain": "<Figure>"}),
        output({"text/plain": "tiny.one: HOLDS", "text/html": box, CLAIM: record}),
        output({"text/plain": claims.as_text(two), "text/html": claims.as_html(two), CLAIM: two}),
        exercise(False),
        exercise(True),
    ]


def make(root: Path, real: Path) -> Path:
    """Write the book under `root`, with the extensions and assets of the real one."""
    book = root / "book"
    (book / "_generated").mkdir(parents=True)
    for name in LINKED:
        (book / name).symlink_to(real / "book" / name)
    (root / "_config.yml").symlink_to(real / "_config.yml")
    pages = {"index": INDEX, "chapter": CHAPTER, "claims": LEDGER}
    pages |= {"statistics": STATISTICS, "bibliography": BIBLIOGRAPHY}
    for name, text in pages.items():
        (book / f"{name}.md").write_text(text)
    (root / "_toc.yml").write_text(TOC)
    (root / "pyproject.toml").write_text('[project]\nname = "tiny"\nversion = "1"\n')
    (root / "requirements.txt").write_text("numpy==2.4.6\n")
    (book / "claims.toml").write_text(CLAIMS)
    (book / "map.toml").write_text(MAP)
    (book / "_generated/timings.json").write_text(json.dumps({"chapter": 5}))
    (book / "_generated/mutation.json").write_text(json.dumps(MUTATION))
    (book / "_generated/laws.json").write_text(json.dumps(LAWS))
    notebook = jupytext.reads(CHAPTER, fmt="md:myst")
    notebook.cells = [cell for cell in notebook.cells if "never_shown" not in cell.source]
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell, shown in zip(code, outputs(), strict=True):
        cell.outputs = shown
    nbformat.write(notebook, book / "chapter.ipynb")
    ran = root / forms.RAN / "chapter"
    ran.mkdir(parents=True)
    for form, content in OTHER.items():
        (ran / f"{hashlib.sha256(LIGHT).hexdigest()}.{form}").write_bytes(content)
    forms.write(root, "chapter", notebook)
    source = read_source(root, "chapter")
    task = execute.Task("chapter", {}, root / "_build/executed")
    execute.store(task, source, notebook, {"key": execute.cache_key(root, source, {})})
    return root
