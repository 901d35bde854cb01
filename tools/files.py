"""Files written whole or not at all, digests, the lock, the one error a tool raises on purpose."""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

Value = TypeVar("Value")


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
    except OSError as error:  # a full disk does not say where
        raise OSError(error.errno, error.strerror, str(path)) from None
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


def read_derived(path: Path, default: Value) -> Value:
    """The JSON value of a file that a tool wrote; `default` where that is absent or damaged."""
    with suppress(FileNotFoundError, ValueError):
        if isinstance(value := json.loads(path.read_bytes()), type(default)):
            return value
    return default


def swap(new: Path, place: Path) -> None:
    """Put a finished folder at its place: at no moment does a half-written one stand there."""
    old = place.with_name(f"{place.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.exists():
        os.replace(place, old)
    os.replace(new, place)
    shutil.rmtree(old, ignore_errors=True)


@contextmanager
def lock(root: Path, command: str) -> Iterator[None]:
    """Hold _build/.lock, so that two commands do not write at once; it ends with the process."""
    path = root / "_build/.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read() or "another command"
            raise ToolError(f"{holder} is at work in {root}: wait until it is done") from None
        file.truncate(0)
        file.write(f"`{command}` (process {os.getpid()})")
        file.flush()
        yield


def digest(parts: Iterable[str | bytes]) -> str:
    """One hash of many parts; where one part ends matters."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        total.update(hashlib.sha256(data).digest())
    return total.hexdigest()
