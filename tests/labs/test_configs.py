"""The configurations of the labs, and the page that the directive makes of one."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.labs.compare import ASSETS, ROOT
from tools import address
from tools.files import ToolError
from tools.labs import build, configs, describe
from tools.labs.models import MODELS
from tools.labs.replay import replay


@pytest.mark.parametrize("name", configs.names())
def test_each_lab_is_well_formed(name: str) -> None:
    config = configs.load(name)
    for picture in configs.pictures(name, config).values():
        assert (configs.PICTURES.parent / picture).exists()
    assert {"title", "sentence", "plots", "sliders", "params"} <= set(config)


def _broken(change: Any) -> dict[str, Any]:
    config = json.loads((configs.FOLDER / "benign_overfitting.json").read_text(encoding="utf-8"))
    change(config)
    return config


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(colour="red"), r"the lab: .* \('colour' was unexpected\)"),
        (lambda c: c.update(model="nothing"), "model: 'nothing' is not one of"),
        (lambda c: c["params"].pop("n"), "params: n missing for signal_noise$"),
        (lambda c: c["params"].update(N=1), "params: unknown N; known: d, flip, m, mu, n, q, rat"),
        (lambda c: c["params"].update(n="50"), "params.n: '50' is not of type 'number'"),
        (lambda c: c["params"].update(n=-1), "the model does not run at these params: "),
        (lambda c: c["sliders"][0].pop("min"), r"sliders\[0\]: 'min' is a required property"),
        (lambda c: c["sliders"][0].update(name="N"), "sliders: unknown N"),
        (lambda c: c["sliders"][0].update(max=20), "n = 50 is outside its range"),
        (lambda c: c["sliders"][4].update(scale="log"), "flip: scale log needs min > 0"),
        (lambda c: c["sliders"][3].update(names=["a", "b"]), "q: a name for each of its 7 values"),
        (lambda c: c["plots"][0]["curves"][0].update(key="gama"), "plots: unknown gama"),
        (lambda c: c["plots"][0].update(x={"key": "oops", "label": "n"}), "plots: unknown oops"),
        (lambda c: c["plots"][0]["curves"][0].update(color="e"), r"curves\[0\].color: 'e' is not"),
        (lambda c: c.update(sentence=["{test_eror:%}"]), "sentence: unknown test_eror"),
        (
            lambda c: c.update(sentence=[[{"if": "c > 2*oops", "say": "a"}]]),
            "sentence: unknown oops",
        ),
        (
            lambda c: c.update(sentence=[[{"if": "n > 2 or n < 1", "say": "a"}]]),
            "sentence: 'n > 2 or n < 1' is not understood",
        ),
        (lambda c: c.update(sentence=["{n"]), "sentence: '{n' is not understood"),
        (lambda c: c["states"][1]["set"].update(mu=0), "states: Harmful: mu is outside its slider"),
        (lambda c: c["states"][1]["set"].update(N=0), "states: unknown N"),
        (lambda c: c["switch"].update(key="rat"), "switch: unknown rat"),
        (lambda c: c["switch"].update(on=["n", "d"]), "switch: it must be on the axes"),
        (lambda c: c["predict"]["set"].update(mu=0), "states: predict: mu is outside its slider"),
        (lambda c: c["predict"]["answers"].pop(), "predict: every answer but the last needs its"),
        (lambda c: c["predict"]["why"].append("{oops}"), "predict: unknown oops"),
        (
            lambda c: c["predict"]["answers"].extend([{"say": "a"}] * 2),
            "predict.answers: .* is too",
        ),
        (lambda c: c["scrub"]["curves"].pop(), r"scrub: samples shows nnv"),
        (lambda c: c["scrub"]["curves"][0].update(key="oops"), "scrub: unknown oops"),
        (lambda c: c["scrub"]["curves"][0].update(where=["oops", 1]), "scrub: unknown oops"),
        (lambda c: c.pop("switch"), "'switch' is a dependency of 'phase'"),
    ],
)
def test_a_typing_error_is_refused_with_its_place(change: Any, message: str) -> None:
    with pytest.raises(ToolError, match=message):
        configs.check("benign_overfitting", _broken(change))


def _fields(node: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every field of a schema, wherever it stands, with its place."""
    for name, field in node.get("properties", {}).items():
        yield f"{place}.{name}", field
    for name, value in node.items():
        for child in [value] if isinstance(value, dict) else value if name == "oneOf" else []:
            yield from _fields(child, f"{place}.{name}")


def test_the_schema_describes_every_field_and_knows_every_model() -> None:
    Draft202012Validator.check_schema(configs.SCHEMA)
    found = dict(_fields(configs.SCHEMA))
    assert len(found) > 70
    assert not [place for place, field in found.items() if len(field.get("description", "")) < 6]
    assert found[".model"]["enum"] == list(MODELS)
    assert found[".properties.scrub.show"]["enum"] == list(configs.SHOWN)
    pattern = found[".properties.sliders.items.max"]["oneOf"][1]["pattern"]
    assert pattern == f"^{configs.LIMIT.pattern}$"


@pytest.mark.parametrize("name", configs.names())
def test_an_editor_finds_the_schema_of_each_lab(name: str) -> None:
    path = configs.FOLDER / f"{name}.json"
    address = json.loads(path.read_text(encoding="utf-8"))["$schema"]
    assert json.loads((path.parent / address).read_text(encoding="utf-8")) == configs.SCHEMA
    assert "$schema" not in configs.load(name)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_described_by_what_it_takes_and_records(name: str) -> None:
    model = MODELS[name]
    text = "\n".join(describe.described(name, model))
    listed, sizes = text.split("  parameters\n")[1].split("  sizes  ")
    assert {line.split()[0] for line in listed.splitlines()} == configs.parameters(model)
    records = re.split(r"[,\s]+", re.sub(r"  (records|vectors)  ", " ", sizes))
    assert set(replay(model, model.fixtures[0] | {"steps": 0})["curves"]) <= set(records)
    for size, form in model.sizes.items():
        assert f"{size} = {describe.written(form)}" in " ".join(sizes.split())


def test_a_form_is_written_as_a_person_writes_it() -> None:
    assert describe.written({"d": 1, "1": -3, "h": -2}) == "d - 3 - 2 h"
    assert describe.written({"1": 400}) == "400"
    assert describe.written({"m": 2, "n": -1}) == "2 m - n"


def test_describe_prints_the_fields_or_refuses_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    describe.main([])
    text = capsys.readouterr().out
    for words in ("  around*  (number) ", "(list of case) Two to four answers.", "\ncontrastive  "):
        assert words in text
    with pytest.raises(ToolError, match="no model 'nope'; there are signal_noise, "):
        describe.main(["nope"])


def test_a_setting_of_a_page_is_one_of_the_sliders() -> None:
    config = configs.load("benign_overfitting")
    assert list(configs.setting(config, "mu=200,d=1e5")) == ["d", "mu"]  # mu goes up to 2 d^0.5
    for text, message in (
        ("nu=1", "no slider 'nu'; there are n, mu, d,"),
        ("n=many", "'n=many': write n=number"),
        ("n=1000", "n = 1000: its slider goes from 10 to 100"),
        ("d=1e4,mu=300", "mu = 300: its slider goes from 1 to 200"),
    ):
        with pytest.raises(ToolError, match=message):
            configs.setting(config, text)


def test_an_unknown_lab_is_refused() -> None:
    with pytest.raises(
        ToolError, match=r"labs/nothing.json: no such lab; there are adam_vs_gd, ben"
    ):
        configs.load("nothing")


@pytest.mark.parametrize(
    ("tool", "code", "told"),
    [
        ("figures", 1, "book/labs/nope.json: no such lab; there are adam_vs_gd, "),
        ("build", 2, "usage: python -m tools.labs build [-h] [--check]\n"),
        ("nothing", 2, "  describe  print what models take and record, "),
    ],
)
def test_an_unknown_argument_writes_nothing(
    tool: str, code: int, told: str, tmp_path: Path
) -> None:
    before = {path: path.stat().st_mtime_ns for path in configs.PICTURES.iterdir()}
    command = [sys.executable, "-m", "tools.labs", tool, "nope"]
    env = os.environ | {"PYTHONPATH": str(ROOT)}  # elsewhere: here another command may be at work
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == code
    assert told in done.stderr
    assert before == {path: path.stat().st_mtime_ns for path in configs.PICTURES.iterdir()}


def _build(folder: Path, page: str) -> subprocess.CompletedProcess[str]:
    (folder / "conf.py").write_text(
        f"import sys\nsys.path[:0] = [{str(ROOT)!r}, {str(ROOT / 'book' / '_ext')!r}]\n"
        "extensions = ['myst_parser', 'labs']\n"
        f"html_static_path = {[str(ROOT / 'book' / f) for f in ('_assets', '_generated/assets')]}\n"
    )
    (folder / "index.md").write_text("# Home\n\n```{toctree}\nsub/page\n```\n")
    (folder / "sub").mkdir()
    (folder / "sub" / "page.md").write_text(page)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", str(folder), str(folder / "out")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_directive_embeds_the_lab_and_its_figure(tmp_path: Path) -> None:
    front = "```{lab} front\n:alt: A map.\nIts caption is *prose*.\n```\n"
    asking = "```{lab} staircase\n:alt: Cosines.\n```\n"
    page = '# A\n\n```{lab} label_noise\n:alt: Losses "by" label.\n```\n\n' + front + asking
    done = _build(tmp_path, page)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "out" / "sub" / "page.html").read_text()
    source = f'source="fltutils {address.reference(ROOT)}"'
    assert f'<feature-lab id="front" model="signal_noise" {source}>' in text
    assert f'<feature-lab id="label_noise" model="signal_noise" {source} asks>' in text
    assert f'<feature-lab id="staircase" model="giant_steps" {source} asks>' in text
    assert re.search(r"<figcaption><p>Its caption is <em>prose</em>\.</p>\s*</figcaption>", text)
    assert "../_static/front-dark.png" in text
    assert 'alt="Losses &quot;by&quot; label."' in text
    assert "../_static/labs/label_noise.dark.png" in text
    assert "_static/labs/loader.js" in text
    shipped = (tmp_path / "out" / "_static" / "labs" / "lab.js").read_text()
    assert shipped.startswith('"use strict";')
    whole = [ASSETS / f"{part}.js" for part in build.PARTS]
    assert len(shipped) < sum(path.stat().st_size for path in whole)
    start = text.index('application/json">') + len('application/json">')
    assert json.loads(text[start : text.index("</script>", start)]) == configs.load("label_noise")


def test_the_directive_wants_an_alt_text_and_a_known_lab(tmp_path: Path) -> None:
    done = _build(tmp_path, "# A\n\n```{lab} label_noise\n```\n\n```{lab} oops\n:alt: x\n```\n")
    assert done.returncode != 0
    assert "alt is missing" in done.stderr or "oops.json: no such lab" in done.stderr
