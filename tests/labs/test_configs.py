"""The configurations of the labs, and the page that the directive makes of one."""

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.labs.compare import ROOT
from tools.labs import configs


@pytest.mark.parametrize("name", configs.names())
def test_each_lab_is_well_formed(name: str) -> None:
    config = configs.load(name)
    for tail in ("", ".dark"):
        assert (ROOT / "book" / "_assets" / "labs" / f"{name}{tail}.png").exists()
    assert {"title", "sentence", "plots", "sliders", "params"} <= set(config)


def _broken(change: Any) -> dict[str, Any]:
    config = copy.deepcopy(configs.load("benign_overfitting"))
    change(config)
    return config


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(colour="red"), "fields .'colour'"),
        (lambda c: c.update(model="nothing"), "model .'nothing'"),
        (lambda c: c["sliders"][0].update(name="N"), "slider .'N'"),
        (lambda c: c["sliders"][0].update(max=20), "n = 50 is outside its slider"),
        (lambda c: c["plots"][0]["curves"][0].update(key="gama"), "curves .'gama'"),
        (lambda c: c.update(sentence="{test_eror:%}"), "words of the sentence .'test_eror'"),
        (lambda c: c.update(sentence="[c > oops ? a : b]"), "words of the sentence .'oops'"),
        (lambda c: c["phase"]["boundary"].update(key="rat"), "map .'rat'"),
    ],
)
def test_a_typing_error_is_refused_with_its_place(change: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        configs.check("benign_overfitting", _broken(change))


def test_an_unknown_lab_is_refused() -> None:
    with pytest.raises(ValueError, match=r"there is no nothing.json"):
        configs.load("nothing")


def _build(folder: Path, page: str) -> subprocess.CompletedProcess[str]:
    (folder / "conf.py").write_text(
        f"import sys\nsys.path[:0] = [{str(ROOT)!r}, {str(ROOT / 'book' / '_ext')!r}]\n"
        "extensions = ['myst_parser', 'labs']\n"
        f"html_static_path = [{str(ROOT / 'book' / '_assets')!r}]\n"
    )
    (folder / "index.md").write_text("# Home\n\n```{toctree}\nsub/page\n```\n")
    (folder / "sub").mkdir()
    (folder / "sub" / "page.md").write_text(page)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", str(folder), str(folder / "out")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_directive_embeds_the_lab_and_its_figure(tmp_path: Path) -> None:
    done = _build(tmp_path, '# A\n\n```{lab} label_noise\n:alt: Losses "by" label.\n```\n')
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "out" / "sub" / "page.html").read_text()
    assert '<feature-lab id="label_noise" model="signal_noise">' in text
    assert 'alt="Losses &quot;by&quot; label."' in text
    assert "../_static/labs/label_noise.dark.png" in text
    assert "_static/labs/loader.js" in text
    start = text.index('application/json">') + len('application/json">')
    assert json.loads(text[start : text.index("</script>", start)]) == configs.load("label_noise")


def test_the_directive_wants_an_alt_text_and_a_known_lab(tmp_path: Path) -> None:
    done = _build(tmp_path, "# A\n\n```{lab} label_noise\n```\n\n```{lab} oops\n:alt: x\n```\n")
    assert done.returncode != 0
    assert "alt is missing" in done.stderr or "there is no oops.json" in done.stderr
