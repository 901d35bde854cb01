"""Works that prose would call alike have letters."""

from pathlib import Path

from tools.bibliography import citations

WORK = "@misc{%s, author = {%s}, title = {T}, year = {%s}}\n"


def test_two_works_of_one_year_have_letters(tmp_path: Path) -> None:
    path = tmp_path / "references.bib"
    zou = "Zou, D. and Cao, Y. and Li, Y."
    works = [("zou1", zou), ("zou2", zou.replace("Li", "Gu")), ("kou", "Kou, Y.")]
    path.write_text("".join(WORK % (*work, 2023) for work in works))
    found = {key: (work.authors, work.year) for key, work in citations(path).items()}
    zou = "Zou et al."
    assert found == {"zou1": (zou, "2023a"), "zou2": (zou, "2023b"), "kou": ("Kou", "2023")}
