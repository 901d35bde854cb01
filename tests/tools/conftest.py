"""A tiny book in a temporary folder: two chapters that import nothing heavy, and a package."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tools import execute, site
from tools.execute import Task

HEAD = """---
jupytext:
  formats: md:myst
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---
"""

WAVES = (
    HEAD
    + r"""
(waves)=
# Waves

A promise in one sentence, after {cite:t}`kou2023`, beside [tides](tides.md).

```{code-cell} python
:tags: [parameters]

seed = 0
```

## The setting

The ratio $\SNR = \norm{\mu} / \sigma$ enters

$$
x_i = y_i \mu + \xi_i
$$ (waves:x)

as {eq}`waves:x` says, with value {glue:text}`waves.value`.

:::{prf:theorem} Growth
:label: thm-growth

If $\SNR > 1$ then

$$
a = b
$$ (waves:y)

and more.
:::

```{code-cell} python
from fltutils import emit

emit.glue("waves.value", f"{0.42 + seed:.2f}")
```

By {prf:ref}`thm-growth` and {numref}`fig-waves`.

```{code-cell} python
---
mystnb:
  figure:
    name: fig-waves
    caption: What $\SNR$ does. It does more than one short line says.
  image:
    alt: A line that rises from the left to the right of a plane
---
emit.figure()
```

```{code-cell} python
emit.claim("kou.waves", holds=True, margin=9.0)
```

```{code-cell} python
:tags: [mutant-off]

emit.claim("kou.waves", holds=False, margin=9.0)
```

```{code-cell} python
:tags: [exercise]

emit.exercise("waves.one", passed=False)
```

```{code-cell} python
:tags: [solution, hide-cell]

emit.exercise("waves.one", passed=True)
```
"""
)

TIDES = (
    HEAD
    + """
# Tides

```{code-cell} python
:tags: [parameters]

seed = 0
```

```{code-cell} python
from fltutils import emit, tide

turning = True
```

```{code-cell} python
:tags: [mutant-off]

from fltutils import emit, tide

turning = False
```

```{code-cell} python
emit.claim("kou.tides", holds=turning, margin=tide.HEIGHT)
```
"""
)

EMIT = '''
"""MIME outputs by hand."""

import base64
import hashlib
import os
from pathlib import Path

from IPython.display import display

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def glue(name, value):
    data = {"application/papermill.record/text/plain": repr(value)}
    meta = {"scrapbook": {"name": name, "mime_prefix": "application/papermill.record/"}}
    display(data, metadata=meta, raw=True)


def figure():
    display({"image/png": PIXEL, "text/plain": "<Figure>"}, raw=True)
    pixel = base64.b64decode(PIXEL)
    stem = hashlib.sha256(pixel).hexdigest()
    if folder := os.environ.get("FLTUTILS_TABLES"):
        Path(folder, f"{stem}.csv").write_text("1,line,1,0.5,\\n")
    if folder := os.environ.get("FLTUTILS_FIGURES"):
        for form in ("dark", "light-narrow", "dark-narrow"):
            Path(folder, f"{stem}.{form}.png").write_bytes(pixel)


def claim(name, holds, margin):
    data = {"id": name, "predicted": "1", "measured": "1", "margin": margin, "seeds": 8}
    data |= {"finite": True, "kind": "theorem"}
    data["rivals"] = [{"name": "none", "value": 0.0, "margin": 8.0, "excluded": True}]
    data["verdict"] = "holds" if holds else "fails"
    mime = "application/vnd.fltutils.claim+json"
    display({"text/plain": f"{name}: {data['verdict']}", mime: data}, raw=True)


def exercise(name, passed):
    mime = "application/vnd.fltutils.exercise+json"
    display({"text/plain": f"{name}: {passed}", mime: {"id": name, "passed": passed}}, raw=True)
'''

CLAIMS = """
planned = ["later"]
[[claim]]
id = "kou.waves"
statement = "Waves grow."
source = "tutorial"
paper = "kou2023"
theorem = "Theorem 1"
chapter = "waves"
falsifier = "They do not."
mutant = "off"

[[claim]]
id = "kou.tides"
statement = "Tides turn."
source = "tutorial"
paper = ""
theorem = "Theorem 2"
chapter = "tides"
falsifier = "They do not."
mutant = "off"

[[claim]]
id = "kou.later"
statement = "Later."
source = "seminar"
paper = ""
theorem = "Theorem 3"
chapter = "later"
falsifier = "It does not."
"""

BIB = r"""
@inproceedings{kou2023,
  author = {Kou, Yiwen and Chen, Zixiang and G{\"o}del, Kurt},
  title = {Benign Overfitting in Two-layer Networks},
  booktitle = {ICML},
  year = {2023},
  eprint = {2303.04145},
  archiveprefix = {arXiv},
}
"""

REAL = Path(__file__).parents[2]
LINKED = ("_assets", "_ext", "_generated/assets", "_templates")
TORCH = re.compile(r"(?m)^.*\b(?:labs|ledger|field)\b.*\n")  # extensions that load it
LIGHT = TORCH.sub("", (REAL / "_config.yml").read_text())

FILES = {
    "_toc.yml": "format: jb-book\nroot: index.md\nchapters:\n- file: waves.md\n- file: tides.md\n",
    "_config.yml": LIGHT,
    "requirements.txt": "numpy==2.4.6\n",
    "pyproject.toml": '[project]\nname = "fltutils"\nversion = "0.1.0"\n',
    "book/index.md": "# Book\n\n```{bibliography}\n:all:\n```\n",
    "book/waves.md": WAVES,
    "book/tides.md": TIDES,
    "book/macros.json": r'{"\\SNR": "\\mathrm{SNR}", "\\norm": "\\lVert #1 \\rVert"}',
    "book/_generated/timings.json": '{"waves": 5, "tides": 5}',
    "book/claims.toml": CLAIMS,
    "book/references.bib": BIB,
    "fltutils/__init__.py": "",
    "fltutils/emit.py": EMIT,
    "fltutils/tide.py": "from .moon import HEIGHT\n",
    "fltutils/moon.py": "HEIGHT = 5.0\n",
}


def plant(root: Path) -> Path:
    """Write the tiny book's files."""
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name in LINKED:
        (root / "book" / name).symlink_to(REAL / "book" / name)
    return root


def default_tasks(root: Path) -> list[Task]:
    """A default run of both chapters."""
    return [Task(name, {}, root / "_build/executed") for name in ("waves", "tides")]


@pytest.fixture(autouse=True)
def at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """No address from CI's environment: a tiny book knows none."""
    for name in ("GITHUB_REPOSITORY", "GITHUB_SHA"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """The root of a fresh tiny book."""
    return plant(tmp_path)


@pytest.fixture
def edit(tiny: Path) -> Callable[[str, str, str], None]:
    """Replace a piece of text in a file of the tiny book; the piece must be there."""

    def replace(name: str, old: str, new: str) -> None:
        text = (tiny / name).read_text()
        assert old in text, f"{old!r} is not in {name}"
        (tiny / name).write_text(text.replace(old, new))

    return replace


@pytest.fixture(scope="session")
def executed_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny book, executed and with its site and notebooks, once a session."""
    root = plant(tmp_path_factory.mktemp("book"))
    results = execute.run_all(root, default_tasks(root), jobs=2)
    assert not execute.failures(results)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("GITHUB_REPOSITORY", raising=False)
        site.ensure(root, committed=False)
    return root


@pytest.fixture
def built(tiny: Path, executed_once: Path) -> Path:
    """A tiny book as `make book` leaves it."""
    for name in LINKED:
        (tiny / "book" / name).unlink()
    shutil.copytree(executed_once, tiny, symlinks=True, dirs_exist_ok=True)
    return tiny
