"""LaTeX macros expanded, and formulas rendered by KaTeX: for the site, and to check them."""

import functools
import json
import re
import subprocess
from pathlib import Path

import sphinxcontrib.katex as katex

from tools.node import binary

COMMAND = re.compile(r"\\(?:[A-Za-z]+|.)", re.DOTALL)
ANSWER = """
const katex = require(process.argv[1]);
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { latex, options } = JSON.parse(line);
  let answer;
  try { answer = { html: katex.renderToString(latex, options) }; }
  catch (error) { answer = { error: error.message }; }
  process.stdout.write(JSON.stringify(answer) + "\\n");
});
"""


def argument(tex: str, start: int) -> tuple[str, int]:
    """The macro argument at `start`, without its braces, and where it ends."""
    start += len(tex[start:]) - len(tex[start:].lstrip())
    if start == len(tex):
        raise ValueError("an argument is missing")
    if tex[start] != "{":
        match = COMMAND.match(tex, start)
        end = match.end() if match else start + 1
        return tex[start:end], end
    depth = 0
    for sign in re.compile(r"\\.|[{}]", re.DOTALL).finditer(tex, start):
        depth += {"{": 1, "}": -1}.get(sign[0], 0)
        if depth == 0:
            return tex[start + 1 : sign.start()], sign.end()
    raise ValueError("a brace is not closed")


def fill(body: str, values: list[str]) -> str:
    """The body of a macro with its arguments in place."""
    text = ""
    for piece in re.split(r"(#\d)", body):
        value = values[int(piece[1]) - 1] if re.fullmatch(r"#\d", piece) else piece
        text = apart(text, value)
    return text


def apart(left: str, right: str) -> str:
    """Two pieces of a formula: a letter does not lengthen the command before it."""
    joint = re.search(r"\\[A-Za-z]+$", left) and right[:1].isalpha()
    return f"{left} {right}" if joint else left + right


def expand(tex: str, macros: dict[str, str], depth: int = 0) -> str:
    """The formula with every macro of the book replaced by what it stands for."""
    if depth > 20:
        raise ValueError("macros call each other for ever")
    out, place = "", 0
    while match := COMMAND.search(tex, place):
        out = apart(out, tex[place : match.start()])
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
    return apart(out, tex[place:])


@functools.cache
def renderer() -> subprocess.Popen[str]:
    """A node that answers one line of JSON for each it reads, and ends when this process does."""
    script = Path(katex.__file__).with_name("katex.min.js")
    command, pipe = [binary(), "-e", ANSWER, str(script)], subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, encoding="utf-8")


@functools.cache
def katex_html(latex: str, display: bool) -> str:
    """HTML with MathML (for screen readers) of one formula; ValueError where KaTeX rejects it."""
    options = {"displayMode": display, "throwOnError": True, "strict": "error"}
    node = renderer()
    assert node.stdin
    assert node.stdout
    print(json.dumps({"latex": latex, "options": options}), file=node.stdin, flush=True)
    answer = json.loads(node.stdout.readline())
    if "error" in answer:
        raise ValueError(answer["error"])
    return str(answer["html"])
