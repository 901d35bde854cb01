"""MyST text split into blocks: directives, formulas, fences, targets, and the prose between."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml

OPENING = re.compile(r"^(\s*)(`{3,}|:{3,}|~{3,})\s*(.*?)\s*$")
NAMED = re.compile(r"^\{([A-Za-z][\w:.-]*)\}\s*(.*)$")
TARGET = re.compile(r"^\s*\(([^()\s]+)\)=\s*$")
FORMULA = re.compile(r"\s*\$\$(.*?)\$\$[ \t]*(?:\(([^()\s]+)\))?[ \t]*$", re.DOTALL | re.MULTILINE)
PROOF_KINDS = (
    "theorem", "lemma", "proposition", "corollary", "definition", "assumption", "conjecture",
    "axiom", "criterion", "observation", "property", "example", "algorithm", "remark",
)  # fmt: skip


class MystError(Exception):
    """Something in the text that cannot be read, with the line it stands on."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True)
class Block:
    """One piece of a page: kind is text, math, directive, fence, target or heading."""

    kind: str
    text: str
    line: int
    indent: str = ""
    name: str = ""
    argument: str = ""
    options: dict[str, str] = field(default_factory=dict)
    body_line: int = 0


def dedent(lines: list[str], indent: str) -> list[str]:
    """Lines without the indentation of the fence they stand in."""
    return [line.removeprefix(indent) if line.strip() else "" for line in lines]


def split_options(lines: list[str]) -> tuple[dict[str, str], int]:
    """The options at the head of a directive's body, and how many lines they take."""
    if lines and lines[0].strip() == "---":
        end = next((i for i, line in enumerate(lines[1:], 1) if line.strip() == "---"), 0)
        loaded = yaml.safe_load("\n".join(lines[1:end])) or {}
        return {str(k): str(v) for k, v in loaded.items()}, end + 1
    options: dict[str, str] = {}
    for count, line in enumerate(lines):
        match = re.match(r"^:([\w-]+):\s*(.*)$", line)
        if not match:
            return options, count
        options[match[1]] = match[2].strip()
    return options, len(lines)


def fenced(lines: list[str], start: int, line: int) -> tuple[Block, int]:
    """The directive or code fence that opens at `start`, and the index behind its end."""
    match = OPENING.match(lines[start])
    assert match
    indent, fence, info = match.groups()
    closing = re.compile(rf"^\s*{re.escape(fence[0])}{{{len(fence)},}}\s*$")
    end = next((i for i in range(start + 1, len(lines)) if closing.match(lines[i])), 0)
    if not end:
        raise MystError(line + start, f"the fence {fence} {info} is never closed")
    body = dedent(lines[start + 1 : end], indent)
    named = NAMED.match(info)
    if not named:
        if fence[0] == ":":
            raise MystError(
                line + start, f"a colon fence needs a directive in braces, not {info!r}"
            )
        raw = "\n".join([lines[start].strip(), *body, fence])
        return Block("fence", raw, line + start, indent), end + 1
    options, used = split_options(body)
    text = "\n".join(body[used:]).strip("\n")
    skipped = next((i for i, item in enumerate(body[used:]) if item.strip()), 0)
    block = Block(
        "directive", text, line + start, indent, named[1], named[2], options,
        line + start + 1 + used + skipped,
    )  # fmt: skip
    return block, end + 1


def formula(lines: list[str], start: int, line: int) -> tuple[Block, int]:
    """The displayed formula that opens at `start`, and the index behind its end."""
    match = FORMULA.match("\n".join(lines[start:]))
    if not match:
        raise MystError(line + start, "a formula opens with $$ and has no end of its own line")
    indent = lines[start][: len(lines[start]) - len(lines[start].lstrip())]
    body = "\n".join(dedent(match[1].strip("\n").split("\n"), indent)).strip()
    count = match[0].count("\n") + 1
    return Block("math", body, line + start, indent, match[2] or ""), start + count


def special(line: str) -> bool:
    """Whether something other than prose begins on this line."""
    bare = line.lstrip()
    fence = OPENING.match(line)
    opens = fence is not None and not (fence[2][0] == "`" and "`" in fence[3])
    starts = ("$$", "\\begin{")
    return opens or bare.startswith(starts) or line.startswith("%") or bool(TARGET.match(line))


def blocks(text: str, line: int = 1) -> Iterator[Block]:
    """The blocks of a text whose first line is number `line` of its file."""
    lines = text.split("\n")
    place = 0
    while place < len(lines):
        current = lines[place]
        if not special(current):
            end = place
            while end < len(lines) and not special(lines[end]):
                end += 1
            yield Block("text", "\n".join(lines[place:end]), line + place)
            place = end
        elif OPENING.match(current):
            block, place = fenced(lines, place, line)
            yield block
        elif current.lstrip().startswith("$$"):
            block, place = formula(lines, place, line)
            yield block
        elif target := TARGET.match(current):
            yield Block("target", target[1], line + place)
            place += 1
        elif current.startswith("%"):
            place += 1
        else:
            raise MystError(line + place, "write displayed maths as $$ … $$ (label)")


def walk(text: str, line: int = 1) -> Iterator[Block]:
    """The blocks of a text and of the directives in it, in reading order."""
    for block in blocks(text, line):
        yield block
        if block.kind == "directive" and block.name not in VERBATIM:
            yield from walk(block.text, block.body_line)


VERBATIM = {
    "math", "code-block", "code", "sourcecode", "raw", "list-table", "bibliography",
    "code-cell", "lab", "tableofcontents", "contents",
}  # fmt: skip
