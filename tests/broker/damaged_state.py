"""Damage to aborted transactions, producers and leader epochs."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
from broker.damage_tools import UnfitError, flip_bit, last_offsets, pick, pick_index, replace
from broker.sources import base_offsets, logs

from logtool.formats import leader_epoch_checkpoint, producer_snapshot, transaction_index


def bad_transaction_index(directory: Path, rng: Random) -> str:
    path, rows = pick_index(directory, rng, [".txnindex"])
    if len(rows) == 0:
        rows = np.zeros(1, transaction_index.ENTRY)
        base = int(path.name[:20])
        rows[0] = (0, 9000, base, base + 1, base + 2)
    before = rows.copy()
    which = rng.randrange(len(rows))
    way = rng.choice(("version", "last_offset", "order", "partial", "zeros", "random", "flip"))
    if way == "version":
        rows["version"][which] = rng.choice((1, 255, 256, 32767, -1))
    elif way == "last_offset":
        rows["last_offset"][which] = rng.choice((0, -1, int(path.name[:20]) - 1, 2**40))
    elif way == "order":
        rows = np.concatenate([rows, rows])
    data = rows.tobytes()
    if way == "partial":
        data = (
            data[: -rng.randint(1, 33)] if rng.random() < 0.5 else data + bytes(rng.randint(1, 33))
        )
    elif way == "zeros":
        data += bytes(34)
    elif way == "random":
        data = rng.randbytes(len(data))
    elif way == "flip":
        at = rng.randrange(len(data))
        data = flip_bit(data, at, rng)
    path.write_bytes(data)
    return f"{path.name}: {way}, entry {which} of {len(before)}"


def new_transaction_index(directory: Path, rng: Random) -> str:
    """Add a transaction index to a segment without one."""
    path = pick(rng, logs(directory)).with_suffix(".txnindex")
    if path.exists():
        raise UnfitError
    base = int(path.stem)
    rows = np.zeros(rng.randint(0, 2), transaction_index.ENTRY)
    for number in range(len(rows)):
        rows[number] = (0, 9000, base, base + rng.randint(-5, 50), base + 60)
    path.write_bytes(rows.tobytes())
    return f"{path.name}: made up, {len(rows)} entries"


def bad_snapshot(directory: Path, rng: Random) -> str:
    path = pick(rng, sorted(directory.glob("*.snapshot")))
    data = path.read_bytes()
    at = rng.randrange(len(data)) if data else 0
    way, new = rng.choice((
        ("emptied", b""), ("cut", data[:at]), ("tail", data + b"\0"),
        ("version", b"\0\2" + data[2:]), ("random", rng.randbytes(56)),
        ("flip", flip_bit(data, at, rng)),
        ("count", replace(data, 6, b"\x7f\xff\xff\xff")),
    ))  # fmt: skip
    path.write_bytes(new)
    return f"{path.name}: {way}, {len(new)} bytes"


def other_producers(directory: Path, rng: Random) -> str:
    """Change, drop or add producers in a snapshot; the CRC is correct."""
    path = pick(rng, sorted(directory.glob("*.snapshot")))
    rows = producer_snapshot.parse(path.read_bytes()).entries.copy()
    if not len(rows):
        raise UnfitError
    which = rng.randrange(len(rows))
    name, value = rng.choice((
        ("current_txn_first_offset", -1), ("current_txn_first_offset", int(path.name[:20]) - 1),
        ("producer_epoch", 100), ("timestamp", 0), ("last_sequence", 9999), ("last_offset", -1),
        ("coordinator_epoch", 77), ("producer_id", 9000), ("producer_id", -1),
    ))  # fmt: skip
    rows[name][which] = value
    chosen = rng.choice((rows, rows, rows, rows[:0], np.concatenate([rows, rows[:1]])))
    path.write_bytes(producer_snapshot.encode(producer_snapshot.build(chosen)))
    return f"{path.name}: {name} of producer {which} is {value}, {len(chosen)} producers"


def another_snapshot(directory: Path, rng: Random) -> str:
    """Add a wrong snapshot: beyond the log end, inside a segment or before the log start."""
    bases, end = base_offsets(directory), last_offsets(directory)[1]
    offset = rng.choice((end + 100, end + 1, end, rng.randint(bases[0], end), max(0, bases[0] - 1)))
    found = sorted(directory.glob("*.snapshot"))
    data = pick(rng, found).read_bytes() if found else None
    if data is None:
        data = producer_snapshot.encode(
            producer_snapshot.build(np.zeros(0, producer_snapshot.ENTRY))
        )
    path = directory / f"{offset:020}.snapshot"
    path.write_bytes(data)
    return f"{path.name}: one more, {len(data)} bytes"


def bad_epochs(directory: Path, rng: Random) -> str:
    path = directory / "leader-epoch-checkpoint"
    if not path.exists():
        raise UnfitError
    rows = leader_epoch_checkpoint.parse(path.read_bytes()).epochs
    bases, end = base_offsets(directory), last_offsets(directory)[1]
    top = rows[-1][0] if rows else 0
    ways: dict[str, list[tuple[int, int]]] = {
        "beyond the end": [*rows, (top + 1, end), (top + 5, end + 10)],
        "stale and high": [*rows, (top + 9, rng.randint(bases[0], max(bases[0], end - 1)))],
        "stale and first": [(top + 9, 0)],
        "without the first": rows[1:],
        "lower epoch later": [*rows, (max(0, top - 1), end - 1 if end else 0)],
        "later epoch lower": [*rows, (top + 1, max(0, (rows[-1][1] if rows else 0) - 5))],
        "backwards": rows[::-1],
        "negative": [*rows, (rng.choice((-1, top + 1)), -1)],
        "none": [],
    }
    way = rng.choice(list(ways))
    data = leader_epoch_checkpoint.encode(leader_epoch_checkpoint.build(ways[way]))
    path.write_bytes(data)
    return f"{path.name}: {way}: {ways[way]}"


def malformed_epochs(directory: Path, rng: Random) -> str:
    path = directory / "leader-epoch-checkpoint"
    if not path.exists():
        raise UnfitError
    data = rng.choice((
        b"", b"0\n", b"1\n0\n", b"0\n2\n0 0\n", b"0\n0\n0 0\n", b"0\n1\n0\n", b"0\n1\n0 0 0\n",
        b"0\n1\nx 0\n", b"0\n1\n0 x\n", b"text\n", b"\0" * 20, b"0\n1\n0 0", b"0\r\n1\r\n0 0\r\n",
        b"0\n1\n\n0 0\n", b"0\n1\n99999999999 0\n", b"0\nx\n0 0\n", b"0\n-1\n", b" 0\n1\n0 0\n",
        b"0\n1\n 0 0\n", b"0\n1\n0 0 \n", b"0\n1\n+1 +0\n", b"\xff\xfe0\n", b"0\n1\n0 0\n\n",
    ))  # fmt: skip
    path.write_bytes(data)
    return f"{path.name}: {data!r}"
