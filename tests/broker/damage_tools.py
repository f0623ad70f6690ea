"""Functions that the damages share: choice of a file or batch, and changes of bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
from broker.sources import Batch, logs, walk

from logtool.formats import offset_index, time_index, transaction_index

Damage = Callable[[Path, Random], str]
"""A function that changes the files of a partition and returns a description of the change."""

INDEXES = {
    ".index": offset_index.ENTRY,
    ".timeindex": time_index.ENTRY,
    ".txnindex": transaction_index.ENTRY,
}


class UnfitError(Exception):
    """The directory has no file that fits the damage."""


def pick(rng: Random, items: list[Path]) -> Path:
    """Choose an item; raise UnfitError for an empty list."""
    if not items:
        raise UnfitError
    return rng.choice(items)


def pick_log(directory: Path, rng: Random) -> tuple[Path, bytes, list[Batch]]:
    """Choose a log with batches, the last ones more often: recovery begins near the end."""
    filled = [path for path in logs(directory) if any(walk(path.read_bytes()))]
    path = filled[-1] if filled and rng.random() < 0.4 else pick(rng, filled)
    data = path.read_bytes()
    return path, data, list(walk(data))


def pick_index(directory: Path, rng: Random, suffixes: list[str]) -> tuple[Path, np.ndarray]:
    """Choose an index, one with entries if possible; return its path and entries."""
    found = [path for path in sorted(directory.iterdir()) if path.suffix in suffixes]
    path = pick(rng, [path for path in found if path.stat().st_size] or found)
    dtype = INDEXES[path.suffix]
    data = path.read_bytes()
    return path, np.frombuffer(data[: len(data) // dtype.itemsize * dtype.itemsize], dtype).copy()


def last_offsets(directory: Path) -> tuple[int, int]:
    """Return the base offset of the last segment and the log end offset."""
    last = logs(directory)[-1]
    batches = list(walk(last.read_bytes()))
    return int(last.stem), batches[-1].last_offset + 1 if batches else int(last.stem)


def replace(data: bytes, position: int, new: bytes) -> bytes:
    """Replace as many bytes as `new` has."""
    return data[:position] + new + data[position + len(new) :]


def flip_bit(data: bytes, position: int, rng: Random) -> bytes:
    """Flip one bit of a byte."""
    return replace(data, position, bytes([data[position] ^ 1 << rng.randrange(8)]))
