"""The labs of the book: book/labs/*.json, checked so that a typing error fails the build.

`lab.schema.json` says which fields there are; what depends on the model is checked here.
"""

import inspect
import re
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from tools import readers
from tools.files import ToolError

from .models import MODELS, Model
from .replay import replay

FOLDER = Path(__file__).parents[2] / "book" / "labs"
PICTURES = FOLDER.parent / "_generated" / "assets" / "labs"
VALUE = re.compile(r"\{(\w+)(?::%)?\}")  # these two as in engine.js
COMPARED = re.compile(
    r"(?:not )?([a-z]\w*) (?:[<>]=?|=) (?:-?[\d.]+|Infinity|(?:[\d.]+\*)?([a-z]\w*))"
)
SCHEMA: dict[str, Any] = readers.read_json(Path(__file__).with_name("lab.schema.json"))
LIMIT = re.compile(r"([\d.]+)\*(\w+)\^([\d.]+)")  # as in lab.js and in the schema
# Of each kind of picture, numbers and vectors.
SHOWN = {"bars": "vv", "pairs": "vv", "samples": "nnv", "disc": "vv", "map": "nv", "grid": "v"}


def load(name: str) -> dict[str, Any]:
    """The configuration of a lab; an error says what is wrong with it."""
    path = FOLDER / f"{name}.json"
    if not path.exists():
        raise readers.fault(path, 0, f"no such lab; there are {', '.join(names())}")
    config: dict[str, Any] = readers.read_json(path)
    check(name, config)
    config.pop("$schema", None)  # for editors
    config.get("predict", {}).pop("unsaid", None)  # for the tests
    return config


def pictures(name: str, config: dict[str, Any]) -> dict[str, str]:
    """Where a lab's figure lies in _generated/assets, by theme: its own, or one of the book."""
    if picture := config.get("picture"):
        return {theme: f"{picture}-{theme}.png" for theme in ("light", "dark")}
    return {"light": f"labs/{name}.png", "dark": f"labs/{name}.dark.png"}


def setting(config: dict[str, Any], text: str) -> dict[str, float]:
    """Values of sliders, written n=20,mu=5; those that bound others come first."""
    sliders, given = {s["name"]: s for s in config["sliders"]}, dict[str, float]()
    for part in filter(None, text.split(",")):
        name, _, number = part.partition("=")
        if name not in sliders:
            raise ToolError(f"no slider {name!r}; there are {', '.join(sliders)}")
        try:
            given[name] = float(number)
        except ValueError:
            raise ToolError(f"{part!r}: write {name}=number") from None
    for name, value in given.items():
        low, high = sliders[name]["min"], limit(sliders[name], config["params"] | given)
        if not low <= value <= high:
            raise ToolError(f"{name} = {value:g}: its slider goes from {low:g} to {high:g}")
    order = sorted(given, key=lambda name: isinstance(sliders[name]["max"], str))
    return {name: given[name] for name in order}


def names() -> list[str]:
    """The labs of the book."""
    return sorted(p.stem for p in FOLDER.glob("*.json"))


def parameters(model: Model) -> set[str]:
    """What a run must be given: the names in its sizes, draws and steps that nothing computes."""
    forms = [*model.sizes.values(), *(spec.get("df", {}) for spec in model.draws.values())]
    asked = {part for form in forms for name in form for part in name.split("^")}
    for step in (*model.init, *model.step, *model.measure):
        asked |= set(inspect.signature(step).parameters)
    return {"seed", "steps"} | (asked & set(model.fixtures[0]))  # the rest is drawn or computed


def check(name: str, config: dict[str, Any]) -> None:
    """Refuse a field of the wrong form, and names that nothing gives."""
    path = FOLDER / f"{name}.json"

    def known(what: str, given: Any, allowed: Any) -> None:
        if unknown := sorted(set(given) - set(allowed)):
            raise readers.fault(
                path,
                0,
                f"{what}: unknown {', '.join(unknown)}; known: {', '.join(sorted(allowed))}",
            )

    for error in Draft202012Validator(SCHEMA).iter_errors(config):
        place = error.json_path.removeprefix("$").removeprefix(".") or "the lab"
        raise readers.fault(path, 0, f"{place}: {error.message:.200}")
    params, model = config["params"], MODELS[config["model"]]
    if missing := sorted(parameters(model) - set(params)):
        raise readers.fault(path, 0, f"params: {', '.join(missing)} missing for {config['model']}")
    known("params", params, parameters(model))
    try:
        run = replay(model, params | {"steps": 0})
    except (ArithmeticError, LookupError, RuntimeError, ValueError) as error:
        raise readers.fault(path, 0, f"the model does not run at these params: {error}") from error
    curves = run["curves"]
    numbers = {k for k, v in curves.items() if not isinstance(v[0], list)} | set(params)
    numbers |= {k for k, v in run["env"].items() if v.dim() == 0}
    for slider in config["sliders"]:
        known("sliders", [slider["name"]], params)
        value = params[slider["name"]]
        if not slider["min"] <= value <= limit(slider, params):
            raise readers.fault(
                path, 0, f"sliders: {slider['name']} = {value} is outside its range"
            )
        guess = {"label": "predict", "set": config.get("predict", {}).get("set", {})}
        for state in (*config.get("states", []), guess):
            known("states", state["set"], params)
            top = limit(slider, params | state["set"])
            if not slider["min"] <= (params | state["set"])[slider["name"]] <= top:
                raise readers.fault(
                    path, 0, f"states: {state['label']}: {slider['name']} is outside its slider"
                )
        stands = (limit(slider, params) - slider["min"]) / slider.get("step", 1) + 1
        if "names" in slider and (slider.get("step", 1) != 1 or len(slider["names"]) != stands):
            raise readers.fault(
                path,
                0,
                f"sliders: {slider['name']}: a name for each of its {stands:g} values, step 1",
            )
        if "scale" in slider and slider["min"] <= 0:
            raise readers.fault(path, 0, f"sliders: {slider['name']}: scale log needs min > 0")
    for plot in config["plots"]:
        for curve in plot["curves"]:
            known("plots", [curve["key"], *curve.get("where", [])[:1]], curves)
        if along := plot.get("x"):
            known("plots", [along["key"], along.get("mark", along)["key"]], curves)
    known("sentence", words(path, config["sentence"]), numbers | {"step"})
    if predict := config.get("predict"):
        known("predict", words(path, [predict["answers"], *predict["why"]]), numbers | {"step"})
        if [k for k, a in enumerate(predict["answers"], 1) if "if" not in a] != [
            len(predict["answers"])
        ]:
            raise readers.fault(path, 0, "predict: every answer but the last needs its condition")
    if data := config.get("data"):
        label, cells = data.get("label", {}), data.get("cells", [])
        for part in (*cells, *data.get("bars", [])):
            known("data", [part[field] for field in ("key", "of") if field in part], curves)
        known("data", [label[part] for part in ("key", "flipped") if part in label], curves)
        given = [data["rows"], *(g.get(part) for g in cells for part in ("count", "noise", "size"))]
        known("data", [value for value in given if isinstance(value, str)], {*params, *curves})
        told = [name for g in cells for name in re.findall(r"{(\w+)}", g["label"])]
        known("data", told, params)
    if scrub := config.get("scrub"):
        for curve in scrub.get("curves", []):
            known("scrub", [curve["key"], *curve.get("where", [])[:1]], curves)
        known("scrub", words(path, scrub["sentence"]), numbers | {"step"})
        known("scrub", scrub.get("among", []), curves)
    if scrub and "show" in scrub:
        drawn = [curves[curve["key"]][0] for curve in scrub["curves"]]
        kinds = "".join("v" if isinstance(value, list) else "n" for value in drawn)
        if kinds != SHOWN[scrub["show"]]:
            raise readers.fault(
                path, 0, f"scrub: {scrub['show']} shows {SHOWN[scrub['show']]} (number or vector)"
            )
    if phase := config.get("phase"):
        known("phase", [phase["x"]["name"], phase["y"]["name"]], params)
        known("phase", [phase["show"]], numbers)
    if switch := config.get("switch"):
        known("switch", switch["on"], params)
        asked = words(path, [[{"if": one, "say": ""} for one in switch.get("except", [])]])
        known("switch", [switch["key"], *asked], numbers)
        if phase and not {phase["x"]["name"], phase["y"]["name"]} <= set(switch["on"]):
            raise readers.fault(path, 0, "switch: it must be on the axes of the phase")


def limit(slider: dict[str, Any], params: dict[str, float]) -> float:
    """The top of a slider: a number, or "2*d^0.5" of another parameter."""
    if match := LIMIT.fullmatch(str(slider["max"])):
        return float(match[1]) * float(params[match[2]] ** float(match[3]))
    return float(slider["max"])


def words(path: Path, sentence: list[Any]) -> list[str]:
    """The names that a sentence fills in or compares."""
    found = []
    for case in (c for part in sentence for c in (part if isinstance(part, list) else [part])):
        said, asked = (case, "") if isinstance(case, str) else (case["say"], case.get("if", ""))
        for one in asked.split(" and ") if asked else []:
            if not (match := COMPARED.fullmatch(one)):
                raise readers.fault(path, 0, f"sentence: {one!r} is not understood")
            found += [name for name in match.groups() if name]
        if rest := re.search(r"[{}].{0,20}", VALUE.sub("", said)):
            raise readers.fault(path, 0, f"sentence: {rest[0]!r} is not understood")
        found += VALUE.findall(said)
    return found
