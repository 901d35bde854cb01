"""Files written whole or not at all, digests, and the one error a tool raises on purpose."""

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any


class ToolError(Exception):
    """A fault of the book, not of the tool: its message is all that the reader needs."""


def write_atomic(path: Path, content: str | bytes) -> None:
    """Write `content` at `path` in one step: a reader sees the old file or the new one."""
    data = content.encode() if isinstance(content, str) else content
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_if_changed(path: Path, content: str) -> bool:
    """Write `content` unless the file says so already; True where it was written."""
    if path.exists() and path.read_bytes() == content.encode():
        return False
    write_atomic(path, content)
    return True


def write_json(path: Path, value: Any) -> None:
    """Write `value` as readable JSON."""
    write_atomic(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def read_json(path: Path, default: Any = None) -> Any:
    """The JSON value at `path`, or `default` where there is no file."""
    return json.loads(path.read_text()) if path.exists() else default


def digest(parts: Iterable[str | bytes]) -> str:
    """One hash of many parts; where one part ends matters."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        total.update(hashlib.sha256(data).digest())
    return total.hexdigest()
