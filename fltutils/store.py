"""A file that keeps finished blocks: whole or not at all, each with a sum that tells damage."""

import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import xarray as xr

Block = Mapping[str, xr.Variable]


@contextmanager
def opened(folder: str | Path | None, name: str) -> Iterator[sqlite3.Connection]:
    """The file of an experiment in a folder, made where it is not there; in memory without one."""
    path = Path(folder, f"{name}.db") if folder else Path(":memory:")
    try:
        if folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute(
                "create table if not exists blocks (key text primary key, sum int, value blob)"
            )
            yield db
    except (sqlite3.Error, OSError) as error:
        raise OSError(
            f"{path}: {error}. Finished blocks are kept in this file: free some space, or "
            "remove it if it is damaged or not ours"
        ) from error


def packed(block: Block) -> bytes:
    """A block as bytes: names, dimensions and shapes, then the numbers."""
    head = json.dumps(
        {
            name: [
                part.dims,
                part.shape,
                {d: np.asarray(c).tolist() for d, c in part.attrs.items()},
            ]
            for name, part in block.items()
        }
    )
    numbers = [np.ascontiguousarray(part.values, dtype="<f8").tobytes() for part in block.values()]
    return b"".join([head.encode(), b"\n", *numbers])


def unpacked(data: bytes) -> dict[str, xr.Variable]:
    """The block that was packed so."""
    head, _, numbers = data.partition(b"\n")
    values, block, first = np.frombuffer(numbers, dtype="<f8"), {}, 0
    for name, (dims, shape, attrs) in json.loads(head).items():
        size = int(np.prod(shape))
        block[name] = xr.Variable(dims, values[first : first + size].reshape(shape), attrs)
        first += size
    return block


def read(db: sqlite3.Connection, key: str) -> dict[str, xr.Variable]:
    """A stored block; empty where there is none, or where its bytes are not those stored."""
    for total, data in db.execute("select sum, value from blocks where key = ?", (key,)):
        if zlib.crc32(data) == total:
            return unpacked(data)
    return {}


def write(db: sqlite3.Connection, key: str, block: Block) -> None:
    """Store a block."""
    data = packed(block)
    db.execute("insert or replace into blocks values (?, ?, ?)", (key, zlib.crc32(data), data))
