"""The component in real browsers: driven by keyboard, its data replayed in torch."""

import asyncio
import csv
import functools
import gzip
import http.server
import io
import itertools
import json
import math
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.labs.compare import apart
from tests.labs.pages import LABS
from tools.labs.models import MODELS
from tools.labs.replay import replay

sync_api = pytest.importorskip("playwright.sync_api")
DATA = "(lab => { const d = lab.data(); return {...d, result: JSON.stringify(d.result, (k, v) =>" \
    " typeof v === 'number' && !Number.isFinite(v) ? String(v) : v)}; })"  # fmt: skip
SKIP = """l => { if (!l.asking) return false;
    l.answer(); l.params = {...l.config.params}; l.set(); return true; }"""
PLOTTED = """l => { const plot = l.$(".plot:not([hidden]) svg[role=img]");
    plot.scrollIntoView({ block: "center", behavior: "instant" });
    return plot.getBoundingClientRect().toJSON(); }"""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """The same folder over http."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    context = browser.new_context(
        viewport={"width": 1000, "height": 900}, accept_downloads=True, reduced_motion="reduce"
    )
    page = context.new_page()
    page.problems = []
    page.on("pageerror", lambda e: page.problems.append(str(e)))
    page.asked = []
    page.on("request", lambda r: page.asked.append(r.url))
    yield page
    assert page.problems == []
    assert all(re.match(r"file:|blob:|data:|http://127\.0\.0\.1", url) for url in page.asked)
    context.close()


def settled(page: Any) -> dict[str, Any]:
    """The data of the lab, its question skipped, when its last run is done."""
    page.wait_for_function(
        "(lab => lab && lab.runner && lab.data().done)(document.querySelector('feature-lab'))"
    )
    if page.eval_on_selector("feature-lab", SKIP):
        return settled(page)
    data = page.eval_on_selector("feature-lab", DATA)
    data["result"] = json.loads(data["result"])
    return data


def plotted(page: Any) -> dict[str, float]:
    """Where the first plot stands once it is in view, in one breath: a lab may draw it anew."""
    box: dict[str, float] = page.eval_on_selector("feature-lab", PLOTTED)
    return box


def check(data: dict[str, Any], precision: float = 1e-10) -> None:
    """The data are those of torch for the same seed and parameters."""
    run = replay(MODELS[data["model"]], data["params"])
    assert run["times"] == data["result"]["times"]
    for name, curve in run["curves"].items():
        assert apart(curve, data["result"]["curves"][name]) < precision, name


def press(page: Any, slider: str, *keys: str) -> None:
    opened = "e => { const d = e.closest('details'); if (d) d.open = true; e.focus(); }"
    page.locator(f"feature-lab input[name={slider}]").evaluate(opened)
    for key in keys:
        page.keyboard.press(key)


def stepped(lab: dict[str, Any]) -> dict[str, Any]:
    """The slider that arrows move: of the batch or its exponent, else any linear one."""
    order = {"n": 0, "kappa": 1, "d": 3, "steps": 3}
    start = lab.get("params", {})
    linear = [
        slider
        for slider in lab["sliders"]
        if "step" in slider
        and start.get(slider["name"], math.inf) >= slider.get("min", 0) + 2 * slider["step"]
    ]
    return min(linear, key=lambda slider: order.get(slider["name"], 2))


def pressed(lab: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """The keys that two or more sliders of a lab get, by slider."""
    names, start = [slider["name"] for slider in lab["sliders"]], lab.get("params", {})
    batch = stepped(lab)["name"]
    full = {
        s["name"] for s in lab["sliders"] if s["name"] in start and start[s["name"]] == s["max"]
    }
    other = [name for name in names if name not in (batch, "d", "steps", *full)][:1]
    keys: dict[str, tuple[str, ...]] = {batch: ("ArrowLeft", "ArrowLeft")}
    keys |= dict.fromkeys(other, ("PageUp",))
    more = {"d": ("PageUp", "ArrowRight"), "steps": ("Home", "ArrowRight")}
    movable = set(names) - full | {batch}
    return {name: given for name, given in (keys | more | keys).items() if name in movable}


def test_a_lab_needs_no_slider_of_a_certain_name() -> None:
    sliders = [{"name": "rate"}, {"name": "width", "step": 1}, {"name": "steps", "step": 10}]
    assert stepped({"sliders": sliders})["name"] == "width"
    assert list(pressed({"sliders": sliders})) == ["width", "rate", "steps"]
    assert stepped({"sliders": [*sliders, {"name": "kappa", "step": 1}]})["name"] == "kappa"
    full: list[dict[str, Any]] = [{"name": "top", "max": 9}, *sliders]
    assert "top" not in pressed({"sliders": full, "params": {"top": 9}})


@pytest.mark.parametrize("name", LABS)
def test_each_lab_driven_by_keyboard_is_replayed_by_torch(
    page: Any, site: Path, address: str, name: str
) -> None:
    page.goto(f"file://{site}/{name}.html")
    first = settled(page)
    if name == "front":  # from a server the same
        page.goto(f"{address}/{name}.html")
        served = settled(page)
        for what in ("where", "model", "params", "result"):
            assert first[what] == served[what], what
    assert first["where"] == "worker"
    assert first["params"] == LABS[name]["params"]
    check(first)
    batch, keys = stepped(LABS[name]), pressed(LABS[name])
    for slider, some in keys.items():
        press(page, slider, *some)
    second = settled(page)
    expected = first["params"][batch["name"]] - 2 * batch["step"]
    assert second["params"][batch["name"]] == pytest.approx(expected)
    for slider in keys.keys() - {batch["name"], "steps"}:
        assert second["params"][slider] > first["params"][slider]
    check(second)


def test_every_slider_can_be_reached_by_tab_and_is_labelled(page: Any, site: Path) -> None:
    page.goto(f"file://{site}/benign_overfitting.html")
    settled(page)
    page.locator("feature-lab summary").first.click()
    page.locator("feature-lab .controls input").first.focus()
    page.keyboard.press("Shift+Tab")
    names: list[str] = []
    for _ in LABS["benign_overfitting"]["sliders"]:
        page.keyboard.press("Tab")
        if len(names) == 3:
            page.keyboard.press("Tab")  # the line that opens the rest
        names.append(
            page.evaluate("document.querySelector('feature-lab').shadowRoot.activeElement.name")
        )
    assert names == [s["name"] for s in LABS["benign_overfitting"]["sliders"]]
    for s in LABS["benign_overfitting"]["sliders"]:
        slider = page.get_by_role("slider", name=s["label"])
        assert slider.count() == 1
        assert slider.get_attribute("aria-valuetext")
    press(page, "d", "End")
    data = settled(page)
    assert data["params"]["d"] == 1e9
    told = page.locator("input[name=d]").get_attribute("aria-valuetext")
    assert told.split("; ")[0] == "10⁹"
    check(data)


def test_it_says_what_it_sees(page: Any, site: Path) -> None:
    page.goto(f"file://{site}/benign_overfitting.html")
    settled(page)
    status = page.get_by_role("status")
    sync_api.expect(status).to_contain_text("far above 1/2")
    sync_api.expect(status).to_contain_text("The signal won")
    press(page, "mu", "Home")
    settled(page)
    sync_api.expect(status).to_contain_text("far below 1/2")
    sync_api.expect(status).to_contain_text("The noise won")


def test_reset_seed_link_and_table(page: Any, site: Path) -> None:
    page.goto(f"file://{site}/decomposition.html")
    start = settled(page)
    press(page, "n", "ArrowRight")
    page.get_by_role("button", name="New seed").click()
    changed = settled(page)
    assert changed["params"] == {**start["params"], "n": start["params"]["n"] + 1, "seed": 2}
    assert changed["result"]["curves"]["loss"] != start["result"]["curves"]["loss"]
    link = page.eval_on_selector("feature-lab", "lab => lab.link()")
    assert link.endswith("decomposition.html?decomposition=seed:2,n:31#decomposition")
    page.goto(link)
    assert settled(page)["params"] == changed["params"]
    page.get_by_text("Table of values").click()
    rows = page.locator("feature-lab tbody tr")
    sync_api.expect(rows).to_have_count(len(start["result"]["times"]))
    page.get_by_role("button", name="Reset").click()
    again = settled(page)
    assert again["params"] == start["params"]
    assert again["result"] == start["result"]


def test_a_bad_link_falls_back_to_the_defaults(page: Any, site: Path) -> None:
    state = "n:9999,mu:oops,seed:-1,sigma:7,d:3000,nothing:1"
    page.goto(f"file://{site}/decomposition.html?decomposition={state}")
    assert settled(page)["params"] == LABS["decomposition"]["params"] | {"d": 3000}


def test_copy_link_writes_it_or_shows_it(page: Any, site: Path) -> None:
    page.goto(f"file://{site}/decomposition.html")
    settled(page)
    page.evaluate(
        "() => { navigator.clipboard.writeText = async () => { throw new Error('denied'); }; }"
    )
    page.get_by_role("button", name="Copy link").click()
    shown = page.get_by_label("Link to this state")
    assert shown.input_value().endswith("decomposition.html#decomposition")


def test_the_csv_holds_the_curves(page: Any, site: Path) -> None:
    page.goto(f"file://{site}/label_noise.html")
    data = settled(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    assert download.value.suggested_filename == "label_noise.csv"
    text = download.value.path().read_text().splitlines(keepends=True)
    head = [line for line in text if line.startswith("#")]
    assert f"seed = {data['params']['seed']}, " in head[1]
    assert head[2].endswith("label_noise.html#label_noise\n")
    assert "abc v1" in head[3]
    rows = list(csv.DictReader(io.StringIO("".join(text[len(head) :]))))
    curves = data["result"]["curves"]
    assert [int(r["step"]) for r in rows] == data["result"]["times"]
    assert [float(r["loss_flipped"]) for r in rows] == curves["loss_flipped"]
    assert [float(r["rho_3"]) for r in rows] == [v[2] for v in curves["rho"]]


def test_the_map_fills_in_and_marks_the_reader(page: Any, site: Path) -> None:
    page.goto(f"file://{site}/benign_overfitting.html")
    settled(page)
    page.get_by_role("button", name="Map", exact=True).click()
    press(page, "steps", "Home")
    page.wait_for_function(
        "(l => l.map.cells && l.map.found.length === l.map.cells.length)"
        "(document.querySelector('feature-lab'))", timeout=60000,
    )  # fmt: skip
    data = page.eval_on_selector(
        "feature-lab", "l => ({cells: l.data().cells, found: l.data().found, p: l.map.params})"
    )
    assert len(data["cells"]) == 81
    for k in (0, 40, 80):
        run = replay(MODELS["signal_noise"], data["p"] | data["cells"][k])
        error = data["found"][k]["curves"]["test_error"][0]
        assert error == pytest.approx(run["curves"]["test_error"][-1], abs=1e-9)
        ratio = data["found"][k]["values"]["ratio"]
        y = data["p"] | data["cells"][k]
        assert ratio == pytest.approx(2 * y["n"] * y["mu"] ** 4 / y["d"], rel=1e-12)
    assert page.get_by_role("slider", name="Ring on the map").is_visible()
    assert page.get_by_role("img", name="Test error: 81 of 81 cells done").count() == 1


def test_the_ring_is_dragged_and_moved_by_keys_and_the_curves_follow(page: Any, site: Path) -> None:
    page.goto(f"file://{site}/benign_overfitting.html")
    first = settled(page)
    page.get_by_role("button", name="Map", exact=True).click()
    ring = page.get_by_role("slider", name="Ring on the map")
    ring.wait_for()
    ring.scroll_into_view_if_needed()
    box = ring.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.evaluate("""() => { const l = document.querySelector('feature-lab'), hear = l.hear;
        l.runs = 0; l.hear = function (m) { l.runs += m.kind === 'run'; hear.call(this, m); }; }""")
    page.mouse.move(x, y)
    page.mouse.down()
    for k in range(1, 11):
        page.mouse.move(x - 4 * k, y + 3 * k)
        page.wait_for_timeout(20)
    page.wait_for_function("document.querySelector('feature-lab').runs > 1")  # while it moves
    page.mouse.up()
    dragged = settled(page)
    assert dragged["params"]["n"] < first["params"]["n"]
    assert dragged["params"]["mu"] < first["params"]["mu"]
    assert dragged["params"] == page.eval_on_selector("feature-lab", "l => l.params")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowUp")
    moved = settled(page)
    assert moved["params"]["n"] == dragged["params"]["n"] + 2
    assert moved["params"]["mu"] > dragged["params"]["mu"]
    assert f"n = {moved['params']['n']}," in ring.get_attribute("aria-valuetext")
    assert (
        page.locator("input[name=n]")
        .get_attribute("aria-valuetext")
        .startswith(str(moved["params"]["n"]))
    )
    told = page.locator("input[name=mu]").get_attribute("aria-valuetext")
    p = moved["params"]
    switch = (p["d"] / p["n"] / 2) ** 0.25  # n mu^4 / d = 1/2
    assert float(told.split("predicted switch: ")[1]) == pytest.approx(switch, rel=5e-3)
    for keys in (["ArrowRight"], ["End"]):  # q = 3/2, and q = 4 with flips: no theorem, no mark
        press(page, "q", *keys)
        settled(page)
        assert "switch" not in page.locator("input[name=mu]").get_attribute("aria-valuetext")


def test_a_guided_state_is_one_click_and_the_run_before_stays(page: Any, site: Path) -> None:
    page.goto(f"file://{site}/benign_overfitting.html")
    first = settled(page)
    page.wait_for_timeout(800)  # a change within the same gesture keeps what stays
    button = page.get_by_role("button", name="Harmful")
    button.click()
    second = settled(page)
    state = LABS["benign_overfitting"]["states"][1]
    assert second["params"] == first["params"] | state["set"]
    assert button.get_attribute("aria-pressed") == "true"
    sync_api.expect(page.locator("feature-lab .guide")).to_have_text(state["says"])
    assert page.locator("feature-lab path.ghost").count() == 2
    assert "Pale: the run before, " in page.locator("feature-lab .bar .note").inner_text()
    assert page.evaluate("""() => { const l = document.querySelector('feature-lab');
        return JSON.stringify(l.ghost.result.curves.loss); }""") == json.dumps(
        first["result"]["curves"]["loss"], separators=(",", ":")
    )
    page.get_by_role("button", name="ReLU³").click()
    settled(page)
    sync_api.expect(page.get_by_role("status").locator("sup")).to_have_text("q")
    button.click()
    settled(page)
    press(page, "n", "ArrowRight")
    settled(page)
    assert button.get_attribute("aria-pressed") == "false"
    sync_api.expect(page.locator("feature-lab .guide")).to_be_empty()


def test_a_prediction_by_keyboard_is_judged_by_the_records(page: Any, site: Path) -> None:
    page.goto(f"file://{site}/benign_overfitting.html")
    page.wait_for_function("document.querySelector('feature-lab').run?.done")
    shown = page.locator("feature-lab .panel:not([hidden])")
    assert shown.locator("h3").all_inner_texts() == ["Training samples"]  # others would tell
    assert shown.locator("rect[stroke]").count() == 60
    assert not shown.locator("svg[role=img] rect:not([stroke])").count()  # no answers yet
    question = LABS["benign_overfitting"]["predict"]
    answers = page.get_by_role("group", name=question["ask"]).get_by_role("button")
    assert answers.all_inner_texts() == [*(a["say"] for a in question["answers"]), "Show me"]
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the second, which is wrong
    data = json.loads(page.eval_on_selector("feature-lab", f"l => JSON.stringify({DATA}(l))"))
    assert data["params"] == LABS["benign_overfitting"]["params"] | question["set"]
    assert json.loads(data["result"])["curves"]["test_error"][-1] < 0.1
    verdict = page.locator("feature-lab .verdict")
    sync_api.expect(verdict).to_contain_text("No: “almost never” is right. It errs on less than")
    focus = page.eval_on_selector("feature-lab", "l => l.shadowRoot.activeElement.name")
    assert focus == "n"
    assert shown.count() == 2
    assert not page.locator("feature-lab .says").is_visible()
    page.get_by_role("slider", name="Time of training").press("ArrowLeft")
    assert page.locator("feature-lab .says").is_visible()  # what is true at this moment
    assert not verdict.is_visible()
    page.get_by_role("slider", name="Time of training").press("ArrowRight")
    assert verdict.is_visible()
    press(page, "n", "ArrowRight")  # another run: the verdict was on the one before
    assert not verdict.is_visible()
    assert page.locator("feature-lab .says").is_visible()
    page.goto(f"file://{site}/benign_overfitting.html?benign_overfitting=n:20")
    page.wait_for_function("document.querySelector('feature-lab').run?.done")
    assert page.locator("feature-lab .plot").first.is_visible()  # a link shows, it does not ask
    assert not page.locator("feature-lab .ask").is_visible()


def test_a_choice_has_names_and_the_keys_go_through_them(page: Any, site: Path) -> None:
    page.goto(f"file://{site}/adam_vs_gd.html")
    settled(page)
    rule = page.get_by_role("slider", name="rule", exact=True)
    assert page.locator("feature-lab em span").all_inner_texts() == ["GD", "sign-GD", "Adam"]
    seen = [rule.get_attribute("aria-valuetext")]
    for _ in range(2):
        press(page, "rule", "ArrowLeft")
        seen.append(rule.get_attribute("aria-valuetext"))
    assert seen == ["Adam", "sign-GD", "GD"]
    assert settled(page)["params"]["rule"] == 0
    assert page.locator("feature-lab label output").first.inner_text() == "GD"
    # GD has no turn: no mark on the sliders, no line on the map
    assert page.locator("feature-lab label i").count() == 0


def test_a_map_whose_boundary_is_far_away_keeps_to_its_sliders(page: Any, site: Path) -> None:
    """Without a trace nothing turns: the line of Adam's lab is at no s that the slider has."""
    page.goto(f"file://{site}/adam_vs_gd.html?adam_vs_gd=alpha:0,steps:60")
    settled(page)
    page.get_by_role("button", name="Map", exact=True).click()
    page.wait_for_function(
        "(l => l.map.cells && l.map.found.length === l.map.cells.length)"
        "(document.querySelector('feature-lab'))", timeout=60000,
    )  # fmt: skip
    cells = page.eval_on_selector("feature-lab", "l => l.data().cells")
    s = next(x for x in LABS["adam_vs_gd"]["sliders"] if x["name"] == "s")
    assert len(cells) == 64
    assert all(s["min"] <= cell["s"] <= s["max"] for cell in cells)


def test_a_slider_at_zero_keeps_its_mark_and_its_map(page: Any, site: Path) -> None:
    """Without structure nothing is predicted to turn: how much would be needed still is."""
    told = []
    for gamma in (0.25, 0):
        page.goto(f"file://{site}/emergence.html?emergence=gamma:{gamma},n:60,steps:2,k:3")
        settled(page)
        page.get_by_role("button", name="Map", exact=True).click()
        press(page, "d", "ArrowLeft")
        settled(page)
        page.wait_for_function(
            "(l => l.map.cells && l.map.found.length === l.map.cells.length)"
            "(document.querySelector('feature-lab'))", timeout=60000,
        )  # fmt: skip
        mark = page.locator("input[name=gamma]").get_attribute("aria-valuetext")
        told.append(mark.split("predicted switch: ")[1])
    assert told[0] == told[1]
    legend = page.locator("feature-lab .map ul").inner_text()
    assert "still to train" not in legend
    assert "you, off the map: γ = 0" in legend


def test_a_reader_sees_a_run_draw_itself_and_can_stop_it(browser: Any, site: Path) -> None:
    """Not in a window that is elsewhere, not before the question is answered."""
    page = browser.new_page(viewport={"width": 757, "height": 646})
    page.goto(f"file://{site}/label_noise_gd.html")
    page.wait_for_function("document.querySelector('feature-lab').run?.done")
    assert page.evaluate("document.querySelector('feature-lab').at") == 1
    page.get_by_role("button", name="Show me").click()
    page.wait_for_function("(at => at > 0 && at < 0.5)(document.querySelector('feature-lab').at)")
    page.get_by_role("button", name="Pause").click()
    at = page.evaluate("document.querySelector('feature-lab').at")
    assert 0 < at < 1
    said = page.locator("feature-lab .says").inner_text()
    assert "the margins are made of" in said
    page.get_by_role("button", name="One record on").click()
    assert page.evaluate("document.querySelector('feature-lab').at") > at
    page.get_by_role("button", name="Play the training").click()
    page.wait_for_function("document.querySelector('feature-lab').at === 1")
    assert page.locator("feature-lab .says").inner_text() != said
    press(page, "p", "ArrowRight")  # what follows is the reader's: no film
    settled(page)
    assert page.evaluate("document.querySelector('feature-lab').at") == 1
    page.close()


def test_a_link_of_the_page_sets_the_lab_and_back_leads_back(page: Any, site: Path) -> None:
    page.goto(f"file://{site}/set.html")
    settled(page)
    page.get_by_text("as here").click()
    assert settled(page)["params"] == LABS["benign_overfitting"]["params"] | {"n": 20, "mu": 30}
    top = "document.querySelector('feature-lab').getBoundingClientRect().top"
    page.wait_for_function(f"Math.abs({top}) < 100")
    page.go_back()
    page.wait_for_function(f"{top} < -1000")
    assert settled(page)["params"]["n"] == 20
    page.get_by_text("as here").click()  # and again, from a page that is at its lab's address
    page.wait_for_function(f"Math.abs({top}) < 100")
    page.go_back()
    page.wait_for_function(f"{top} < -1000")


def test_a_pinned_run_stays_and_says_what_it_is(page: Any, site: Path) -> None:
    page.goto(f"file://{site}/decomposition.html")
    first = settled(page)
    pin = page.get_by_role("button", name="Pin this run")
    pin.click()
    for slider in ("n", "mu"):
        page.wait_for_timeout(800)
        press(page, slider, "ArrowRight", "ArrowRight")
        settled(page)
    note = page.locator("feature-lab .bar .note")
    told = f"Pale: the pinned run, training samples n = {first['params']['n']}, signal"
    sync_api.expect(note).to_contain_text(told)
    kept = page.evaluate("JSON.stringify(document.querySelector('feature-lab').ghost.params)")
    assert json.loads(kept) == first["params"]
    pin.click()
    assert "pinned" not in note.inner_text()


@pytest.mark.parametrize(
    "name",
    ["benign_overfitting", "decomposition", "staircase", "label_noise", "adam_vs_gd",
     "sharpness_aware", "label_noise_gd", "sparse_coding", "emergence",
     "virtual_covariance", "diffusion", "nonparametric_in_context", "contrastive"],
)  # fmt: skip
def test_the_scrubber_shows_the_records_of_its_moment(page: Any, site: Path, name: str) -> None:
    page.goto(f"file://{site}/{name}.html")
    data = settled(page)
    times, curves = data["result"]["times"], data["result"]["curves"]
    scrub = LABS[name]["scrub"]
    page.get_by_role("button", name=scrub["tab"], exact=True).click()
    slider = page.get_by_role("slider", name="Time of training")
    assert page.locator("feature-lab path.now").count() == 0  # at the end nothing is marked
    slider.focus()
    page.keyboard.press("ArrowLeft")
    assert page.locator("feature-lab path.now").count() == 1  # in each plot that is in view
    told = page.locator("feature-lab .says").inner_text()
    assert f"step {times[-2]} " in told
    assert slider.get_attribute("aria-valuetext").split() == told.split()
    box = plotted(page)
    page.mouse.move(box["x"] + box["width"] - 12, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 52 + (box["width"] - 62) / 3, box["y"] + 60, steps=4)
    page.mouse.up()
    k = int(slider.input_value())
    assert times[k] == pytest.approx(times[-1] / 3, rel=0.04)
    shown = page.locator("feature-lab .inside svg[role=img]")
    if name in ("staircase", "emergence"):
        across, up = (curve["key"] for curve in scrub["curves"])
        sizes = shown.locator("circle").evaluate_all(
            "all => all.map(c => [c.getAttribute('cx'), c.getAttribute('cy')].map(Number))"
        )
        (cx, cy), *dots = sizes
        dots = dots[len(curves["x1"][0]) if "among" in scrub else 0 :]
        r = float(shown.locator("circle").first.get_attribute("r"))
        points = zip(curves[across][k], curves[up][k], strict=True)
        for (x, y), (first, second) in zip(dots, points, strict=True):
            assert ((x - cx) / r, (cy - y) / r) == pytest.approx((first, second), abs=0.01)
        return
    if name == "sparse_coding":
        matches_the_map(shown, data["params"], curves["h"], k)
        return
    tall = [float(r.get_attribute("height")) for r in shown.locator("rect").all()]
    if scrub["show"] in ("bars", "pairs"):
        vectors = []
        for curve in scrub["curves"]:
            group, kept = curve.get("where", [curve["key"], None])
            of = [kept is None or one == kept for one in curves[group][0]]
            vectors.append([abs(v) for v in itertools.compress(curves[curve["key"]][k], of)])
        entries = vectors if scrub["show"] == "bars" else zip(*vectors, strict=True)
        values = list(itertools.chain(*entries))
        top = max(values)
        assert [t / max(tall) for t in tall] == pytest.approx([v / top for v in values], abs=0.01)
        return
    fresh = curves["fresh"][k]
    assert len(tall) == 2 * 2 * len(fresh)
    plus, minus = curves["signal_plus"][k], curves["signal_minus"][k]
    wrong = sum(plus + z <= 0 for z in fresh) + sum(minus - z <= 0 for z in fresh)
    assert f"{wrong} of 20 misread" in page.locator("feature-lab .inside ul").inner_text()
    assert tall[1] / tall[0] == pytest.approx(abs(fresh[0] / plus), abs=0.05)
    assert scrub["title"] in page.locator("feature-lab .inside").inner_text()


@pytest.mark.parametrize("name", ["virtual_covariance", "sparse_coding", "label_noise"])
def test_the_data_are_the_samples_and_the_bars_their_answers(
    page: Any, site: Path, name: str
) -> None:
    """A cell is hollow below zero; a bar goes to the side of the answer at this moment."""
    page.goto(f"file://{site}/{name}.html")
    data = settled(page)
    curves, config = data["result"]["curves"], LABS[name]["data"]
    page.get_by_role("button", name="Data", exact=True).click()
    page.get_by_role("slider", name="Time of training").press("Home")
    page.get_by_role("slider", name="Time of training").press("ArrowRight")
    shown = page.locator("feature-lab .data svg[role=img]")
    assert config["title"] + ": " + config["alt"] == shown.get_attribute("aria-label")
    flipped = curves.get("flipped", [[0] * config["rows"]])[0]
    wrong = [i for i, turned in enumerate(flipped) if turned]
    right = [i for i, turned in enumerate(flipped) if not turned]
    rows = sorted([*wrong[:2], *right][: config["rows"]])
    signs = {1.0: "+1", -1.0: "−1"}
    labels = shown.locator("text").all_text_contents()[2:]
    assert [label.removesuffix(" ⇄") for label in labels] == [
        signs[curves["y"][0][i] * (1 - 2 * flipped[i])] for i in rows
    ]
    assert ["⇄" in label for label in labels] == [flipped[i] > 0 for i in rows]
    bars = shown.locator("rect:not([stroke])").evaluate_all(
        "all => all.map(r => [r.getAttribute('x'), r.getAttribute('fill')])"
    )
    for i, (zero, bar) in zip(rows, zip(bars[::2], bars[1::2], strict=True), strict=True):
        answer = curves["answers"][1][i]
        assert (float(bar[0]) < float(zero[0])) == (answer < 0)
        assert bar[1] == ("var(--soft)" if answer * curves["y"][0][i] > 0 else "var(--b)")
    if "seen" in curves:
        fills = shown.locator("rect[stroke]").evaluate_all(
            "all => all.map(r => Number(r.getAttribute('fill-opacity')))"
        )
        assert [fill > 0 for fill in fills] == [v > 0 for v in curves["seen"][0]]


def matches_the_map(shown: Any, params: dict[str, float], records: list[Any], k: int) -> None:
    """Every cell is as strong as its value, rows in the order of where they are largest at last."""
    columns = int(params["d"])
    rows = [[v[i : i + columns] for i in range(0, len(v), columns)] for v in records]
    best = [row.index(max(row)) for row in rows[-1]]
    order = sorted(range(len(best)), key=lambda i: best[i])
    cells = shown.locator("rect").evaluate_all(
        "all => all.map(r => ['x', 'y', 'fill-opacity'].map(a => +r.getAttribute(a)))"
    )
    wide, high = (float(shown.get_attribute(side)) for side in ("width", "height"))
    found = {(round(columns * x / wide), round(len(order) * y / high)): v for x, y, v in cells}
    assert found == {
        (x, y): pytest.approx(min(max(value, 0), 1))
        for y, i in enumerate(order)
        for x, value in enumerate(rows[k][i])
    }


def test_where_samples_are_the_axis_the_scrubber_counts_them(page: Any, site: Path) -> None:
    page.goto(f"file://{site}/giant_step.html?giant_step=n:20000,d:100")
    seen = settled(page)["result"]["curves"]["seen"]
    read = "document.querySelector('feature-lab').$('.time output').textContent"
    assert page.evaluate(read) == "n = 20000"
    at = plotted(page)
    box = page.evaluate("document.querySelector('feature-lab').panels[1].f.box")
    middle = at["y"] + at["height"] / 3
    page.mouse.click(at["x"] + box["left"] + box["width"] / 2, middle)  # half of a log axis
    assert page.evaluate(read) == f"n = {seen[len(seen) // 2]:g}"
    mark = page.get_by_text("n = dˡ", exact=True).evaluate("e => +e.getAttribute('x')")
    share = math.log(100**2 / 4) / math.log(20000 / 4)
    assert mark == pytest.approx(box["left"] + share * box["width"], abs=1)


def test_an_axis_may_have_a_letter_of_its_own(page: Any, site: Path) -> None:
    page.goto(f"file://{site}/kernel_vs_features.html?kernel_vs_features=eta:12")
    settled(page)
    read = "document.querySelector('feature-lab').$('.time output').textContent"
    assert page.evaluate(read) == "η = 12"


def test_without_scripts_the_figure_stays(browser: Any, site: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"file://{site}/decomposition.html")
    assert page.locator("#still").is_visible()
    assert "params" not in page.locator("body").inner_text()
    context.close()


@pytest.mark.parametrize("lost", ["loader.js", "lab.js", "signal_noise.js"])
def test_if_a_script_is_lost_the_figure_stays(page: Any, address: str, lost: str) -> None:
    page.route(f"**/{lost}", lambda route: route.abort())
    page.goto(f"{address}/decomposition.html")
    page.wait_for_timeout(300)
    assert page.locator("#still").is_visible()


def test_a_lab_far_below_loads_nothing_until_it_is_near(page: Any, address: str) -> None:
    page.goto(f"{address}/far.html")
    page.wait_for_timeout(300)
    assert {u.rsplit("/", 1)[1] for u in page.asked if u.endswith(".js")} == {"loader.js"}
    page.locator("feature-lab").scroll_into_view_if_needed()
    check(settled(page))


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (390, 844)])
def test_a_shared_link_lands_on_its_lab(page: Any, site: Path, width: int, height: int) -> None:
    page.set_viewport_size({"width": width, "height": height})
    page.goto(f"file://{site}/link.html?benign_overfitting=n:20#benign_overfitting")
    settled(page)
    page.wait_for_timeout(300)  # whatever else may move the page
    top = page.eval_on_selector("feature-lab", "l => l.getBoundingClientRect().top")
    assert 0 <= top < 120
    page.mouse.wheel(0, -700)
    page.wait_for_timeout(200)
    page.evaluate("document.querySelector('feature-lab').draw()")
    moved = page.eval_on_selector("feature-lab", "l => l.getBoundingClientRect().top")
    assert moved > 400  # a reader who left is not called back


@pytest.mark.parametrize("how", ["no Worker", "policy"])
def test_without_a_worker_the_page_computes_the_same_in_slices(
    page: Any, address: str, how: str
) -> None:
    if how == "no Worker":
        page.add_init_script("window.Worker = undefined")
    page.goto(f"{address}/{'policy' if how == 'policy' else 'decomposition'}.html")
    data = settled(page)
    assert data["where"] == "page"
    check(data)
    press(page, "n", "ArrowRight")
    check(settled(page))


def test_a_long_run_never_blocks_the_page(page: Any, site: Path) -> None:
    page.goto(f"file://{site}/label_noise.html")
    settled(page)
    page.evaluate("""() => { window.gaps = []; let last = performance.now();
        const tick = () => { const t = performance.now(); gaps.push(t - last); last = t;
            setTimeout(tick, 0); }; tick(); }""")
    page.eval_on_selector("feature-lab", "l => { l.params.steps *= 30; l.train(); }")
    settled(page)
    # As a share of the run, so that a busy machine slows both.
    gap, ms = page.evaluate("[Math.max(...gaps), document.querySelector('feature-lab').run.ms]")
    print(gap, ms)
    assert gap < ms / 4


def test_print_shows_the_figure(page: Any, site: Path) -> None:
    page.goto(f"file://{site}/decomposition.html")
    settled(page)
    assert not page.locator("#still").is_visible()
    page.emulate_media(media="print")
    assert page.locator("#still").is_visible()
    assert not page.locator("feature-lab .lab").is_visible()


def test_phone_and_dark(page: Any, site: Path) -> None:
    page.set_viewport_size({"width": 360, "height": 700})
    page.goto(f"file://{site}/benign_overfitting.html")
    settled(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    light = page.eval_on_selector("feature-lab", "l => getComputedStyle(l.$('.lab')).color")
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.wait_for_function("document.querySelector('feature-lab').hasAttribute('dark')")
    assert light != page.eval_on_selector("feature-lab", "l => getComputedStyle(l.$('.lab')).color")
    page.set_viewport_size({"width": 1100, "height": 700})
    page.wait_for_function(
        "document.querySelector('feature-lab').shadowRoot"
        ".querySelector('.panel:not([hidden]) svg[role=img]').getAttribute('width') > 330"
    )


@pytest.mark.parametrize("name", LABS)
def test_picture_sentence_and_sliders_are_in_view_together(
    page: Any, site: Path, name: str
) -> None:
    """In what a page of the book leaves of 390 x 844 and 1366 x 700; after the question, too."""
    parts = "[...document.querySelector('feature-lab').shadowRoot.querySelectorAll(" \
        "'.panel:not([hidden]) svg[role=img], .says:not([hidden]), .verdict:not([hidden]), " \
        ".controls, .time')]"  # fmt: skip
    page.set_viewport_size({"width": 757, "height": 646})
    page.goto(f"file://{site}/{name}.html")
    page.add_style_tag(content="body, feature-lab { margin: 0 !important; }")
    page.wait_for_function("document.querySelector('feature-lab').run?.done")

    def fits() -> None:
        for width, height, count in ((358, 790, 4), (757, 646, 5)):
            page.set_viewport_size({"width": width, "height": height})
            page.wait_for_function(f"{parts}.length === {count}")
            low = page.evaluate(f"Math.max(...{parts}.map(e => e.getBoundingClientRect().bottom))")
            assert low <= height
            assert page.evaluate("document.documentElement.scrollWidth") == width

    if LABS[name].get("predict"):
        page.eval_on_selector("feature-lab", "l => l.answer(0)")
        fits()
    settled(page)
    page.eval_on_selector("feature-lab", "l => { l.params = { ...l.config.params }; l.set(); }")
    settled(page)
    page.wait_for_function("document.querySelector('feature-lab').$('.says').textContent")
    fits()


@pytest.mark.parametrize("width", [774, 374])
def test_each_picture_is_one_press_away(page: Any, site: Path, width: int) -> None:
    """Two stand side by side where there is room; the last one pressed stays."""
    page.set_viewport_size({"width": width, "height": 790})
    page.goto(f"file://{site}/label_noise_gd.html")
    settled(page)
    views = page.get_by_role("group", name="Pictures").get_by_role("button")
    seen = "b => b.filter(x => x.ariaPressed === 'true').map(x => x.textContent)"
    titles = page.locator("feature-lab .panel:not([hidden]) h3")
    assert views.evaluate_all(seen) == (["Margins", "Signal"] if width > 600 else ["Signal"])
    for tab, both in (("Error", ["Signal", "Error"]), ("Margins", ["Margins", "Error"])):
        page.get_by_role("button", name=tab, exact=True).click()
        assert views.evaluate_all(seen) == (both if width > 600 else [tab])
        assert len(titles.all_inner_texts()) == (2 if width > 600 else 1)


def test_no_legend_stands_on_a_curve(page: Any, site: Path) -> None:
    page.goto(f"file://{site}/benign_overfitting.html")
    settled(page)
    page.get_by_role("button", name="Map").click()
    page.get_by_role("slider", name="Ring on the map").wait_for()  # the map is drawn
    boxes = page.evaluate("""() => [...document.querySelector('feature-lab').shadowRoot
        .querySelectorAll('.panel:not([hidden])')].map(b =>
        [b.querySelector('ul').getBoundingClientRect().bottom,
         b.querySelector('svg[role=img]').getBoundingClientRect().top])""")
    assert boxes
    assert all(legend <= plot + 0.5 for legend, plot in boxes)


SLOWEST = """() => { const lab = document.querySelector('feature-lab'), took = [];
    if (lab.map.cells) lab.map.found = lab.map.cells.map(() => lab.run.result);
    lab.panels.forEach((p, k) => { lab.view(k); for (let i = 0; i < 3; i++) {
        const from = performance.now(); lab.draw(); took.push(performance.now() - from); } });
    return Math.max(...lab.panels.map((p, k) => Math.min(...took.slice(3 * k, 3 * k + 3)))); }"""


@pytest.mark.parametrize("name", LABS)
def test_a_slow_phone_draws_every_picture_at_once(page: Any, site: Path, name: str) -> None:
    """Under 100 ms of the main thread on a processor four times slower, all cells of a map too."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"file://{site}/{name}.html")
    settled(page)
    if "phase" in LABS[name]:
        page.get_by_role("button", name=LABS[name]["phase"]["tab"], exact=True).click()
        page.wait_for_function("document.querySelector('feature-lab').map.cells")
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": 4})
    assert page.evaluate(SLOWEST) < 100


@pytest.mark.parametrize("model", MODELS)
def test_the_scripts_of_a_page_are_small(site: Path, model: str) -> None:
    names = ["loader.js", "lab.js", f"{model}.js"]
    sizes = {n: len(gzip.compress((site / "labs" / n).read_bytes(), mtime=0)) for n in names}
    assert sizes["loader.js"] < 1200
    assert sum(sizes.values()) < 24 * 1024


# --- Firefox, over WebDriver BiDi: Debian's package needs no other driver -----------------------


async def _firefox(site: Path, profile: Path) -> list[dict[str, Any]]:
    from tornado.websocket import websocket_connect

    log = profile / "stderr.txt"  # a pipe that nobody reads would fill up and stop the browser
    with log.open("w") as stderr:
        process = subprocess.Popen(
            ["firefox-esr", "--headless", "--remote-debugging-port", "0", "--profile", profile],
            stderr=stderr, stdout=subprocess.DEVNULL,
        )  # fmt: skip
    try:
        while not (found := re.search(r"ws://\S+", log.read_text())):
            await asyncio.sleep(0.1)
        url = found[0]
        socket = await websocket_connect(f"{url}/session")
        count = 0

        async def ask(method: str, **params: Any) -> Any:
            nonlocal count
            count += 1
            await socket.write_message(
                json.dumps({"id": count, "method": method, "params": params})
            )
            while True:
                message = await socket.read_message()
                assert message is not None, "Firefox closed the connection"
                answer = json.loads(message)
                if answer.get("id") == count:
                    assert answer["type"] == "success", answer
                    return answer["result"]

        async def read(js: str) -> Any:
            target = {"context": where}
            result = await ask("script.evaluate", expression=js, target=target, awaitPromise=True)
            return result["result"].get("value")

        async def done() -> dict[str, Any]:
            ready = "(l => !!(l.runner && l.data().done))(document.querySelector('feature-lab'))"
            for _ in range(200):
                if await read(ready):
                    break
                await asyncio.sleep(0.1)
            text = await read(f"JSON.stringify({DATA}(document.querySelector('feature-lab')))")
            data = json.loads(text)
            data["result"] = json.loads(data["result"])
            return data

        await ask("session.new", capabilities={})
        where = (await ask("browsingContext.getTree"))["contexts"][0]["context"]
        seen = []
        for name in LABS:
            await ask("browsingContext.navigate", context=where,
                      url=f"file://{site}/{name}.html", wait="complete")  # fmt: skip
            await done()
            await read(f"({SKIP})(document.querySelector('feature-lab'))")
            await done()
            await read(
                "document.querySelector('feature-lab').$('[name="
                + stepped(LABS[name])["name"]
                + "]').focus()"
            )
            keys = [{"type": t, "value": "\ue012"} for t in ("keyDown", "keyUp")]  # arrow left
            await ask("input.performActions", context=where,
                      actions=[{"type": "key", "id": "keys", "actions": keys}])  # fmt: skip
            seen.append(await done())
        await ask("browser.close")
        return seen
    finally:
        process.terminate()
        process.wait(20)


@pytest.mark.skipif(not shutil.which("firefox-esr"), reason="Debian's firefox-esr is not here")
def test_firefox_too(site: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor() as pool:  # playwright holds this thread's event loop
        limited = asyncio.wait_for(_firefox(site, tmp_path), 240)
        seen = pool.submit(asyncio.run, limited).result()
    for name, data in zip(LABS, seen, strict=True):
        slider = stepped(LABS[name])
        expected = LABS[name]["params"][slider["name"]] - slider["step"]
        assert data["params"][slider["name"]] == pytest.approx(expected)
        assert data["where"] == "worker"
        check(data)
