"""What a lab can say: the fields of its configuration, and what each model takes and records."""

import argparse
import functools
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import tools.labs
from tools.files import ToolError

from . import configs
from .models import MODELS, Form, Model
from .replay import replay

WIDTH = 100
KINDS = {"string": "text", "number": "number", "integer": "whole number", "boolean": "true, false"}


def wrapped(head: str, said: str, indent: int) -> str:
    """A head and what is said of it, its further lines indented."""
    return textwrap.fill(f"{head}  {said}".rstrip(), WIDTH, subsequent_indent=" " * indent)


def kind(node: dict[str, Any]) -> str:
    """What a field holds, in a word or two."""
    if name := node.get("$ref"):
        return str(name).rpartition("/")[2]
    if "const" in node or "enum" in node:
        return " | ".join(node.get("enum", [node.get("const")]))
    if "oneOf" in node:
        return " or ".join(map(kind, node["oneOf"]))
    if "prefixItems" in node:
        return f"[{', '.join(map(kind, node['prefixItems']))}]"
    return (
        f"list of {kind(node['items'])}" if "items" in node else KINDS.get(node["type"], "object")
    )


def lines(name: str, node: dict[str, Any], needed: bool, depth: int = 0) -> Iterator[str]:
    """A field and, further in, the fields of what it holds."""
    said = f"({kind(node)}) {node.get('description', '')}"
    yield wrapped("  " * depth + name + "*" * needed, said, 2 * depth + 4)
    inner = node.get("items", node)
    for one, field in inner.get("properties", {}).items():
        yield from lines(one, field, one in inner.get("required", ()), depth + 1)


def fields() -> Iterator[str]:
    """The fields of book/labs/<name>.json, then the forms that several of them have."""
    yield "Fields of book/labs/<name>.json; * must be there.\n"
    for name, node in configs.SCHEMA["properties"].items():
        yield from lines(name, node, name in configs.SCHEMA["required"])
    yield "\nForms that several fields have.\n"
    for name, node in configs.SCHEMA["$defs"].items():
        yield from lines(name, node, False)


def written(form: Form) -> str:
    """A linear form as one writes it: 2 m, n + 1."""
    text = ""
    for name, k in form.items():
        factor = "" if abs(k) == 1 and name != "1" else str(abs(k))
        text += f" {'-' if k < 0 else '+'} " + f"{factor} {name if name != '1' else ''}".strip()
    return text.removeprefix(" + ")


def drawn(name: str, spec: dict[str, Any]) -> str:
    """A random array with its law."""
    df = f", df {written(spec['df'])}" if "df" in spec else ""
    anew = ", anew a step" * bool(spec.get("anew"))
    return f"{name} ({' '.join(spec['shape'])}) {spec['law']}{df}{anew}"


@functools.cache
def every_lab() -> dict[str, dict[str, Any]]:
    """The labs of the book, read once a command."""
    return {lab: configs.load(lab) for lab in configs.names()}


def described(name: str, model: Model) -> Iterator[str]:
    """A model: what it is, its parameters with their sliders, its sizes, draws and records."""
    labs = {lab: config for lab, config in every_lab().items() if config["model"] == name}
    about = sys.modules[model.measure[0].__module__].__doc__ or ""
    yield wrapped(f"\n{name}", about.partition("\n\n")[0].replace("\n", " "), 2).lstrip(" ")
    yield wrapped("  labs", ", ".join(labs) or "none yet", 4)
    yield "  parameters"
    sliders = [slider for config in labs.values() for slider in config["sliders"]]
    label = {slider["name"]: slider["label"] for slider in reversed(sliders)}
    for parameter in model.fixtures[0]:
        yield f"    {parameter:8}  {label.get(parameter, '')}".rstrip()
    sizes = (f"{size} = {written(form)}" for size, form in model.sizes.items())
    yield wrapped("  sizes", ", ".join(sizes), 4)
    draws = (drawn(one, spec) for one, spec in model.draws.items())
    yield wrapped("  draws", "; ".join(draws), 4)
    run = replay(model, model.fixtures[0] | {"steps": 0})
    first = {key: curve[0] for key, curve in run["curves"].items()}
    yield wrapped("  records", ", ".join(k for k, v in first.items() if not isinstance(v, list)), 4)
    yield wrapped("  vectors", ", ".join(k for k, v in first.items() if isinstance(v, list)), 4)


def main(argv: list[str]) -> None:
    """Print how a lab is made, the fields of its configuration and all models, or models named."""
    parser = argparse.ArgumentParser(prog="python -m tools.labs describe", description=main.__doc__)
    parser.add_argument("models", nargs="*", help="all of them, and the fields, by default")
    names = parser.parse_args(argv).models
    for name in names:
        if name not in MODELS:
            raise ToolError(f"no model {name!r}; there are {', '.join(MODELS)}")
    if not names:
        print(tools.labs.__doc__, *fields(), sep="\n")
    for name in names or MODELS:
        print(*described(name, MODELS[name]), sep="\n")
