"""A file that keeps finished blocks: whole or not at all, each with a sum that tells damage."""

import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr

Block = Mapping[str, xr.Variable]
PROCESSOR = {"rtol": 1e-9, "atol": 1e-12}  # what two processors may differ by
PATIENCE = 60  # seconds to wait for another process that writes into the file


class Store(NamedTuple):
    """The file of an experiment."""

    path: Path
    db: sqlite3.Connection


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Say of which file a fault is, and what to do."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise OSError(
            f"{path}: {error}. Finished blocks are kept in this file: name a folder that can be "
            "written and has space, or remove the file if it is damaged or not ours"
        ) from error


@contextmanager
def opened(folder: str | Path, name: str) -> Iterator[Store]:
    """The file of an experiment in a folder, made where it is not there."""
    path = Path(folder, f"{name}.db")
    with _told(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
    with closing(db):
        with _told(path):
            db.execute(
                "create table if not exists blocks (key text primary key, sum int, value blob)"
            )
        yield Store(path, db)


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


def alike(one: Block, other: Block) -> bool:
    """Whether two blocks are the same, but for the last digits that a processor decides."""
    heads = [packed(block).partition(b"\n")[0] for block in (one, other)]
    return heads[0] == heads[1] and all(
        np.allclose(one[name].values, other[name].values, **PROCESSOR, equal_nan=True)
        for name in one
    )


def read(store: Store, key: str) -> dict[str, xr.Variable]:
    """A stored block; empty where there is none, or where its bytes are not those stored."""
    with _told(store.path):
        rows = store.db.execute("select sum, value from blocks where key = ?", (key,)).fetchall()
    for total, data in rows:
        if isinstance(data, bytes) and zlib.crc32(data) == total:
            return unpacked(data)
    return {}


def write(store: Store, key: str, block: Block) -> None:
    """Store a block."""
    data = packed(block)
    with _told(store.path):
        store.db.execute(
            "insert or replace into blocks values (?, ?, ?)", (key, zlib.crc32(data), data)
        )
