"""The labs of the book: book/labs/*.json, checked so that a typing error fails the build."""

import json
import re
from pathlib import Path
from typing import Any

from .models import MODELS
from .replay import replay

FOLDER = Path(__file__).parents[2] / "book" / "labs"
FIELDS = {"model", "title", "params", "sliders", "sentence", "plots", "phase"}
SLIDER = {"name", "label", "min", "max", "step", "scale", "integer", "positions", "unit"}
PLOT = {"title", "scale", "min", "max", "curves", "levels"}
CURVE = {"key", "label", "color", "line", "where"}


def load(name: str) -> dict[str, Any]:
    """The configuration of a lab; an error says what is wrong with it."""
    path = FOLDER / f"{name}.json"
    if not path.exists():
        raise ValueError(f"lab {name}: there is no {path.name} in book/labs")
    config: dict[str, Any] = json.loads(path.read_text())
    check(name, config)
    return config


def names() -> list[str]:
    """The labs of the book."""
    return sorted(p.stem for p in FOLDER.glob("*.json"))


def check(name: str, config: dict[str, Any]) -> None:
    """Refuse unknown fields, and names that neither the parameters nor the records have."""

    def known(what: str, given: Any, allowed: Any) -> None:
        if unknown := sorted(set(given) - set(allowed)):
            raise ValueError(f"lab {name}: {what} {unknown}: must be among {sorted(allowed)}")

    known("fields", config, FIELDS)
    known("model", [config["model"]], MODELS)
    run = replay(MODELS[config["model"]], config["params"] | {"steps": 0})
    curves = run["curves"]
    numbers = {k for k, v in curves.items() if not isinstance(v[0], list)} | set(config["params"])
    numbers |= {k for k, v in run["env"].items() if v.dim() == 0}
    for slider in config["sliders"]:
        known("slider fields", slider, SLIDER)
        known("slider", [slider["name"]], config["params"])
        value = config["params"][slider["name"]]
        if not slider["min"] <= value <= slider["max"]:
            raise ValueError(f"lab {name}: {slider['name']} = {value} is outside its slider")
    for plot in config["plots"]:
        known("plot fields", plot, PLOT)
        for curve in plot["curves"]:
            known("curve fields", curve, CURVE)
            known("curves", [curve["key"], *curve.get("where", [])[:1]], curves)
    words = re.findall(r"\[(\S+) [<>] (\S+) \?", config["sentence"])
    words = [w for pair in words for w in pair] + re.findall(
        r"\{(\w+)(?::%)?\}", config["sentence"]
    )
    known("words of the sentence", [w for w in words if not re.fullmatch(r"[\d.]+", w)], numbers)
    if phase := config.get("phase"):
        known("map axes", [phase["x"]["name"], phase["y"]["name"]], config["params"])
        known("map", [phase["show"], phase["boundary"]["key"]], numbers)
