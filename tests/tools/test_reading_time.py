"""How long a chapter is read: every kind of thing counts, and prose between formulas too."""

import importlib
from pathlib import Path
from typing import Any

import pytest

EXTENSIONS = Path(__file__).parents[2] / "book/_ext"
PAGE = """---
jupytext:
  text_representation: myst
---

(a-label)=
# Two words

Take $\\mu$ and $n > 2$ from [here](a_page.md). So

$$
a = b \\quad \\text{for all } a,
$$ (eq-ab)

by {eq}`eq-ab` three words follow. $$c = d$$ And prose beside the last $x$.

```{code-cell} ipython3
:tags: [hide-input]
mystnb:
  figure:
    name: fig-one
    caption: These words belong to the minute of the figure.
cost = "$5 and $6"
```

````{prf:theorem} A name
:label: thm-a

It holds {glue:text}`often`.
````
"""


@pytest.fixture
def field(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The extension that counts."""
    monkeypatch.syspath_prepend(str(EXTENSIONS))
    return importlib.import_module("field")


def test_words_formulas_equations_and_figures_are_told_apart(field: Any) -> None:
    seen = "Two words Take and from here So by three words follow And prose beside the last"
    assert field.read(PAGE) == {
        "word": len([*seen.split(), "name", "It", "holds"]),
        "formula": 3,
        "equation": 2,
        "figure": 1,
    }


def test_a_first_reading_takes_the_time_of_its_parts(
    field: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text("word " * 1500 + "$x$ " * 300 + "\n\n$$y$$" * 10)
    assert field.minutes(page) == 10 + 4 + 4
