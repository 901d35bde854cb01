"""A figure's other forms: under its name beside the notebooks, never those of another picture."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tools import execute, forms, outputs
from tools.files import ToolError

Edit = Callable[[str, str, str], None]
WAVES = "book/_generated/figures/waves"


def check(root: Path) -> None:
    """Compare the committed forms of waves with its committed notebook."""
    forms.check(root, "waves", outputs.committed(root, "waves"))


def test_the_forms_of_a_run_stand_under_the_names_of_its_figures(built: Path, edit: Edit) -> None:
    place = built / WAVES
    kept = [f"fig-waves.{form}" for form in forms.FORMS]
    assert sorted(path.name for path in place.iterdir()) == sorted([*kept, "index.json"])
    assert (place / "fig-waves.csv").read_text() == "1,line,1,0.5,\n"
    check(built)
    edit("book/waves.md", "fig-waves", "fig-swell")  # without a run
    forms.write(built, "waves", outputs.committed(built, "waves"))
    assert {path.name.split(".")[0] for path in place.iterdir()} == {"fig-swell", "index"}


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        (f"{WAVES}/fig-waves.dark.png", b"IEND", b"IENE", "fig-waves"),
        (f"{WAVES}/fig-waves.csv", b"0.5", b"0.6", "fig-waves"),
        (f"{WAVES}/index.json", b"fig-waves", b"fig-swell", "fig-swell, fig-waves"),
        ("book/waves.ipynb", b"DUlEQVR42", b"DUlEQVR43", "fig-waves"),  # the light picture
    ],
)
def test_forms_of_another_picture_are_told(
    built: Path, file: str, old: bytes, new: bytes, told: str
) -> None:
    content = (built / file).read_bytes()
    assert old in content
    (built / file).write_bytes(content.replace(old, new))
    with pytest.raises(ToolError, match=f"^{WAVES}: {told} not of the pictures in book/waves.ipyn"):
        check(built)


def test_a_form_that_is_missing_or_left_over_is_told(built: Path) -> None:
    (built / WAVES / "fig-waves.dark.png").rename(built / WAVES / "fig-gone.dark.png")
    with pytest.raises(ToolError, match=re.escape("fig-waves, fig-gone.dark.png not of")):
        check(built)


def test_a_run_without_its_forms_is_no_run(built: Path) -> None:
    (path,) = (built / forms.RAN / "waves").glob("*.csv")
    assert execute.last_report(built / "_build/executed", "waves")
    path.write_text("")
    assert not execute.last_report(built / "_build/executed", "waves")


def test_the_table_that_a_reader_downloads_says_what_it_comes_from(built: Path) -> None:
    head = "# figure fig-waves\n# chapter waves\n# seed = 0\n# version v0.1.0\n"
    assert forms.table(built, "waves", "fig-waves") == f"{head}1,line,1,0.5,\n"
