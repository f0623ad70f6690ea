"""Damages to a partition directory, each with everything about it left to chance.

A damage changes the files of the directory and returns in words what it did, or raises `UnfitError`
where there is nothing to do it to.
"""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
from broker.sources import Batch, base_offsets, logs, walk
from crc32c import crc32c
from log_dir_damage import MARKER, new_batch

from logtool.formats import (
    leader_epoch_checkpoint,
    offset_index,
    producer_snapshot,
    record,
    time_index,
    transaction_index,
)
from logtool.formats.record_batch import HEADER, HEADER_SIZE

Damage = Callable[[Path, Random], str]
INDEXES = {
    ".index": offset_index.ENTRY,
    ".timeindex": time_index.ENTRY,
    ".txnindex": transaction_index.ENTRY,
}


class UnfitError(Exception):
    """The directory has nothing that could be damaged so."""


def _pick(rng: Random, items: list[Path]) -> Path:
    if not items:
        raise UnfitError
    return rng.choice(items)


def _log(directory: Path, rng: Random) -> tuple[Path, bytes, list[Batch]]:
    """Choose a log with batches, the last ones more often: recovery begins near the end."""
    filled = [path for path in logs(directory) if any(walk(path.read_bytes()))]
    path = filled[-1] if filled and rng.random() < 0.4 else _pick(rng, filled)
    data = path.read_bytes()
    return path, data, list(walk(data))


def _replace(data: bytes, position: int, new: bytes) -> bytes:
    return data[:position] + new + data[position + len(new) :]


def _with_crc(batch: bytes) -> bytes:
    return _replace(batch, 17, crc32c(batch[21:]).to_bytes(4, "big"))


# --- batches -----------------------------------------------------------------------------------


def flip_in_header(directory: Path, rng: Random) -> str:
    path, data, batches = _log(directory, rng)
    number, at, bit = rng.randrange(len(batches)), rng.randrange(HEADER_SIZE), rng.randrange(8)
    position = batches[number].position + at
    path.write_bytes(_replace(data, position, bytes([data[position] ^ 1 << bit])))
    return f"{path.name}: bit {bit} of byte {at} of batch {number} flipped"


def flip_in_payload(directory: Path, rng: Random) -> str:
    path, data, batches = _log(directory, rng)
    number = rng.randrange(len(batches))
    batch = batches[number]
    position = rng.randrange(batch.position + HEADER_SIZE, batch.position + batch.size)
    path.write_bytes(_replace(data, position, bytes([data[position] ^ 1 << rng.randrange(8)])))
    return f"{path.name}: a bit of the payload of batch {number} flipped at {position}"


_VALUES: dict[str, tuple[int, ...]] = {
    "base_offset": (-1, -100, 1, 7, 1000, 2**31, 2**33),
    "batch_length": (-1, 1, -60, 100),
    "leader_epoch": (-1, 1, 2, 50, -10),
    "magic": (-1, -2, 1, 125, -3),
    "attributes": (1, 2, 5, 7, 8, 16, 32, 64, 128),
    "last_offset_delta": (-1, 1, -50, 2**30, 3000),
    "max_timestamp": (-1, 1, 10**12, -(10**13)),
    "producer_id": (-1, 1, 7, -20000),
    "producer_epoch": (1, -1, 5),
    "base_sequence": (1, -1, 100, -50),
    "record_count": (1, -1, 100),
}


def set_field(directory: Path, rng: Random) -> str:
    """Change a field by a sum (flags: by an exclusive or), with a right CRC: damage it misses."""
    path, data, batches = _log(directory, rng)
    number = rng.randrange(len(batches))
    batch = batches[number]
    raw = data[batch.position : batch.position + batch.size]
    header = np.frombuffer(raw, HEADER, 1).copy()
    name = rng.choice(list(_VALUES))
    by, old = rng.choice(_VALUES[name]), int(header[name][0])
    new = old ^ by if name == "attributes" else old + by
    try:
        header[name] = new
    except OverflowError:
        raise UnfitError from None
    path.write_bytes(
        _replace(data, batch.position, _with_crc(header.tobytes() + raw[HEADER_SIZE:]))
    )
    return f"{path.name}: {name} of batch {number} is {new} instead of {old}, CRC right"


def set_size(directory: Path, rng: Random) -> str:
    path, data, batches = _log(directory, rng)
    number = rng.randrange(len(batches))
    size = rng.choice((0, -1, -(2**31), 1, 2, 13, 14, 20, 48, 49, 60, 10_000, 2**31 - 1))
    path.write_bytes(_replace(data, batches[number].position + 8, struct.pack(">i", size)))
    return f"{path.name}: batch {number} says that it has {size} bytes"


def replace_marker(directory: Path, rng: Random) -> str:
    """Put another control record, sound or not, in the place of a transaction marker."""
    path, data, batches = _log(directory, rng)
    markers = [batch for batch in batches if batch.attributes & MARKER == MARKER]
    if not markers:
        raise UnfitError
    batch = rng.choice(markers)
    key = struct.pack(">hh", rng.choice((0, 0, 1, -1)), rng.choice((0, 1, 0, 1, 2, 3, 5, 6, 7, -1)))
    value = struct.pack(">hi", rng.choice((0, 0, 1, -1)), rng.choice((0, 7, -1)))
    key, value = key[: rng.choice((4, 4, 4, 2, 0))], value[: rng.choice((6, 6, 6, 4, 0))]
    parts: tuple[bytes | None, bytes | None] = (key, value)
    if rng.random() < 0.15:
        parts = rng.choice(((None, value), (key, None)))
    records = [record.Record(0, 0, *parts)]
    header = np.frombuffer(data, HEADER, 1, batch.position)
    fields = {
        name: int(header[name][0])
        for name in ("attributes", "producer_id", "producer_epoch", "base_timestamp")
    }
    count = 0 if rng.random() < 0.15 else 1
    new = new_batch(
        batch.base_offset, b"", epoch=int(header["leader_epoch"][0]),
        payload=record.encode(records[:count]), record_count=count,
        max_timestamp=int(header["max_timestamp"][0]), **fields,
    )  # fmt: skip
    end = batch.position + batch.size
    path.write_bytes(data[: batch.position] + new + data[end:])
    return f"{path.name}: marker at {batch.position} has key {parts[0]!r} and value {parts[1]!r}"


def append_batch(directory: Path, rng: Random) -> str:
    """Write one more sound batch that does not fit: old offsets, plain data in a transaction."""
    path, data, batches = _log(directory, rng)
    last = batches[-1]
    header = np.frombuffer(data, HEADER, 1, last.position)
    offset = rng.choice((last.last_offset + 1, last.base_offset, batches[0].base_offset, 0))
    producers = [p for p in (9000, 8000, int(header["producer_id"][0])) if p >= 0]
    new = new_batch(
        offset, *[b"one more"] * rng.randint(1, 3),
        epoch=max(0, int(header["leader_epoch"][0]) + rng.choice((-1, 0, 0, 1, 9))),
        producer_id=rng.choice(producers), producer_epoch=rng.choice((0, 0, 1)),
        base_sequence=rng.choice((0, 5)), attributes=rng.choice((0, 0, 0x10)),
    )  # fmt: skip
    path.write_bytes(data[: last.position + last.size] + new * rng.choice((1, 1, 2)))
    return f"{path.name}: a batch of offset {offset} behind {last.last_offset}"


def repeat_batches(directory: Path, rng: Random) -> str:
    path, data, batches = _log(directory, rng)
    first = rng.randrange(len(batches))
    end = min(len(batches), first + rng.choice((1, 1, 2, 5))) - 1
    start, stop = batches[first].position, batches[end].position + batches[end].size
    path.write_bytes(data[:stop] + data[start:stop] + data[stop:])
    return f"{path.name}: batches {first} to {end} twice"


def drop_batches(directory: Path, rng: Random) -> str:
    path, data, batches = _log(directory, rng)
    first = rng.randrange(len(batches))
    end = min(len(batches), first + rng.choice((1, 1, 2, 5))) - 1
    start, stop = batches[first].position, batches[end].position + batches[end].size
    path.write_bytes(data[:start] + data[stop:])
    return f"{path.name}: batches {first} to {end} gone"


def swap_batches(directory: Path, rng: Random) -> str:
    path, data, batches = _log(directory, rng)
    if len(batches) < 2:
        raise UnfitError
    first, second = sorted(rng.sample(range(len(batches)), 2))
    pieces = [data[b.position : b.position + b.size] for b in batches]
    pieces[first], pieces[second] = pieces[second], pieces[first]
    path.write_bytes(b"".join(pieces) + data[batches[-1].position + batches[-1].size :])
    return f"{path.name}: batches {first} and {second} swapped"


# --- bytes of a log ----------------------------------------------------------------------------


def cut_log(directory: Path, rng: Random) -> str:
    path, data, batches = _log(directory, rng)
    batch = rng.choice((batches[-1], rng.choice(batches)))
    inside = rng.choice(
        (0, rng.randint(1, 17), rng.randrange(HEADER_SIZE), rng.randrange(batch.size))
    )
    size = batch.position + inside
    path.write_bytes(data[:size])
    return f"{path.name}: cut to {size} bytes, {inside} of a batch left"


def zero_log(directory: Path, rng: Random) -> str:
    path, data, _ = _log(directory, rng)
    start = rng.randrange(len(data))
    start -= start % rng.choice((1, 512, 4096))
    length = rng.choice((len(data), 4096, 512, rng.randint(1, 200)))
    length = min(length, len(data) - start)
    path.write_bytes(_replace(data, start, bytes(length)))
    return f"{path.name}: {length} bytes of zeros from {start} of {len(data)}"


def append_garbage(directory: Path, rng: Random) -> str:
    path, data, batches = _log(directory, rng)
    last = batches[-1]
    copy = data[last.position : last.position + last.size]
    size = rng.choice((1, 8, 11, 12, 16, 17, 18, 61, 300))
    tail = rng.choice(
        (bytes(size), rng.randbytes(size), copy[:size], b"\xff" * size, b"text\n" * 9)
    )
    path.write_bytes(data + tail)
    return f"{path.name}: {len(tail)} bytes appended, {tail[:20].hex()}..."


# --- whole files -------------------------------------------------------------------------------


def remove_files(directory: Path, rng: Random) -> str:
    """Remove indexes, snapshots or the leader epochs, of one segment or of all."""
    suffixes = rng.choice((
        [".index"], [".index"], [".timeindex"], [".txnindex"], [".snapshot"], [".snapshot"],
        [".index", ".timeindex"], [".index", ".timeindex", ".txnindex", ".snapshot"],
        ["leader-epoch-checkpoint"], ["partition.metadata"],
    ))  # fmt: skip
    gone = [path for path in sorted(directory.iterdir()) if path.name.endswith(tuple(suffixes))]
    if rng.random() < 0.6:
        chosen = _pick(rng, gone).name.split(".")[0]
        gone = [path for path in gone if path.name.startswith(chosen)]
    if not gone:
        raise UnfitError
    for path in gone:
        path.unlink()
    return "gone: " + ", ".join(path.name for path in gone)


def remove_index_and_damage(directory: Path, rng: Random) -> str:
    """No index and a bad batch in one segment: it is cut, and later ones stay."""
    path, data, batches = _log(directory, rng)
    index = path.with_suffix(".index")
    if not index.exists():
        raise UnfitError
    index.unlink()
    batch = rng.choice(batches)
    position = batch.position + rng.randrange(batch.size)
    path.write_bytes(_replace(data, position, bytes([data[position] ^ 0x55])))
    return f"{index.name} gone, {path.name} damaged at {position}"


def orphans(directory: Path, rng: Random) -> str:
    base = rng.choice(base_offsets(directory)) + rng.choice((1, 3, 100_000))
    names = [f"{base:020}{suffix}" for suffix in rng.sample([*INDEXES, ".snapshot"], 2)]
    for name in names:
        (directory / name).write_bytes(rng.choice((b"", bytes(24), rng.randbytes(68))))
    return "with no log: " + ", ".join(names)


def remove_segment(directory: Path, rng: Random) -> str:
    if len(logs(directory)) < 2:
        raise UnfitError
    stem = rng.choice(logs(directory)).stem
    suffixes = rng.choice(((".log",), (".log", *INDEXES), (".log", ".snapshot", *INDEXES)))
    for suffix in suffixes:
        (directory / f"{stem}{suffix}").unlink(missing_ok=True)
    return f"{stem}: {' '.join(suffixes)} gone"


def empty_segment(directory: Path, rng: Random) -> str:
    """Empty a log, or add an empty one."""
    bases = base_offsets(directory)
    if rng.random() < 0.5:
        path = rng.choice(logs(directory))
        path.write_bytes(b"")
        return f"{path.name}: emptied"
    last = list(walk(logs(directory)[-1].read_bytes()))
    end = last[-1].last_offset + 1 if last else bases[-1]
    base = rng.choice((end, end, end + 5, bases[0] + 1, max(0, bases[0] - 3)))
    path = directory / f"{base:020}.log"
    if path.exists():
        raise UnfitError
    for suffix in rng.choice(((".log",), (".log", ".index", ".timeindex"))):
        path.with_suffix(suffix).write_bytes(b"")
    return f"{path.name}: one more, empty"


def leftovers(directory: Path, rng: Random) -> str:
    """Leave what a compaction leaves that was interrupted."""
    here = logs(directory)
    first = rng.randrange(len(here))
    done = []
    for path in here[first : first + rng.randint(1, 3)]:
        kind = rng.choice((".cleaned", ".swap", ".swap", ".deleted"))
        moved = rng.random() < 0.4 and kind != ".cleaned"
        for suffix in (".log", *INDEXES):
            source = path.with_suffix(suffix)
            if not source.exists() or rng.random() < 0.25:
                continue
            target = directory / f"{source.name}{kind}"
            shutil.copyfile(source, target)
            if moved:
                source.unlink()
            done.append(f"{target.name}{' moved' if moved else ''}")
    if not done or (not logs(directory) and not any(".log.swap" in name for name in done)):
        raise UnfitError
    return ", ".join(done)


def swap_of_many(directory: Path, rng: Random) -> str:
    """Leave a `.swap` that holds the batches of two segments, as compaction makes."""
    here = logs(directory)
    if len(here) < 2:
        raise UnfitError
    first = rng.randrange(len(here) - 1)
    target = directory / f"{here[first].name}.swap"
    target.write_bytes(here[first].read_bytes() + here[first + 1].read_bytes())
    for suffix in (".index", ".timeindex"):
        if rng.random() < 0.7:
            source = here[first].with_suffix(suffix)
            data = source.read_bytes() if source.exists() else b""
            (directory / f"{source.name}.swap").write_bytes(data)
    if rng.random() < 0.3:
        here[first].unlink()
    return f"{target.name} holds two segments"


def strange_files(directory: Path, rng: Random) -> str:
    name = rng.choice((
        "foo.log", "foo.txt", "foo.index", "x.snapshot", "1.log", "1.index", "7.timeindex",
        "00000000000000000000.txt", "leader-epoch-checkpoint.tmp", "foo.swap", "foo.cleaned",
        "bar.deleted", "00000000000000000003.checkpoint", "-1.log", "99999999999999999999.log",
        "00000000000000000009-0000000001.checkpoint.deleted", "a.snapshot.deleted",
    ))  # fmt: skip
    (directory / name).write_bytes(rng.choice((b"", b"text\n", bytes(100))))
    return f"a file {name}"


def directory_for_file(directory: Path, rng: Random) -> str:
    end = base_offsets(directory)[-1]
    name = rng.choice((
        "folder", f"{end:020}.snapshot", f"{end + 10:020}.log", "foo.log",
        f"{end:020}.index", f"{end:020}.timeindex", f"{end:020}.txnindex",
    ))  # fmt: skip
    (directory / name).unlink(missing_ok=True)
    (directory / name).mkdir()
    return f"{name} is a directory"


# --- indexes -----------------------------------------------------------------------------------


def _index(directory: Path, rng: Random, suffixes: list[str]) -> tuple[Path, np.ndarray]:
    found = [path for path in sorted(directory.iterdir()) if path.suffix in suffixes]
    path = _pick(rng, [path for path in found if path.stat().st_size] or found)
    dtype = INDEXES[path.suffix]
    data = path.read_bytes()
    return path, np.frombuffer(data[: len(data) // dtype.itemsize * dtype.itemsize], dtype).copy()


def bad_index(directory: Path, rng: Random) -> str:
    path, rows = _index(directory, rng, [".index", ".timeindex"])
    data, size = path.read_bytes(), INDEXES[path.suffix].itemsize
    at = rng.randrange(len(data)) if data else 0
    ways: dict[str, bytes] = {
        "emptied": b"",
        "more bytes": data + rng.randbytes(rng.randint(1, size - 1)),
        "zeros behind": data + bytes(size * rng.randint(1, 9)),
        "cut": data[:at],
        "random": rng.randbytes(size * rng.randint(1, 9)),
    }
    if data:
        ways["flip"] = _replace(data, at, bytes([data[at] ^ 1 << rng.randrange(8)]))
        ways["zeros"] = _replace(data, at, bytes(len(data) - at))
        ways["twice"] = data + data
        ways["backwards"] = rows[::-1].tobytes()
    way = rng.choice(list(ways))
    path.write_bytes(ways[way])
    return f"{path.name}: {way}, {len(ways[way])} bytes"


def index_beyond(directory: Path, rng: Random) -> str:
    """Let an index go on where the log does not: a stale one, from before the log was cut."""
    path, rows = _index(directory, rng, [".index", ".timeindex"])
    log = path.with_suffix(".log")
    size = log.stat().st_size if log.exists() else 0
    batches = list(walk(log.read_bytes())) if log.exists() else []
    base = int(path.stem)
    last = batches[-1].last_offset - base if batches else 0
    more = np.zeros(rng.randint(1, 3), INDEXES[path.suffix])
    step = rng.choice((1, 1, 100, 10**6))
    for number in range(len(more)):
        more["relative_offset"][number] = last + step * (number + 1)
        if path.suffix == ".index":
            more["position"][number] = size + rng.choice((0, -200, 100)) + 100 * number
        else:
            more["timestamp"][number] = 4 * 10**12 + number
    path.write_bytes(rows[rows["relative_offset"] > 0].tobytes() + more.tobytes())
    return f"{path.name}: {len(more)} entries beyond the end"


def bad_transaction_index(directory: Path, rng: Random) -> str:
    path, rows = _index(directory, rng, [".txnindex"])
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
        data = _replace(data, at, bytes([data[at] ^ 1 << rng.randrange(8)]))
    path.write_bytes(data)
    return f"{path.name}: {way}, entry {which} of {len(before)}"


def new_transaction_index(directory: Path, rng: Random) -> str:
    """Put a transaction index beside a segment that has none."""
    path = _pick(rng, logs(directory)).with_suffix(".txnindex")
    if path.exists():
        raise UnfitError
    base = int(path.stem)
    rows = np.zeros(rng.randint(0, 2), transaction_index.ENTRY)
    for number in range(len(rows)):
        rows[number] = (0, 9000, base, base + rng.randint(-5, 50), base + 60)
    path.write_bytes(rows.tobytes())
    return f"{path.name}: made up, {len(rows)} entries"


# --- producers and epochs ----------------------------------------------------------------------


def bad_snapshot(directory: Path, rng: Random) -> str:
    path = _pick(rng, sorted(directory.glob("*.snapshot")))
    data = path.read_bytes()
    at = rng.randrange(len(data)) if data else 0
    way, new = rng.choice((
        ("emptied", b""), ("cut", data[:at]), ("tail", data + b"\0"),
        ("version", b"\0\2" + data[2:]), ("random", rng.randbytes(56)),
        ("flip", _replace(data, at, bytes([data[at] ^ 1 << rng.randrange(8)]))),
        ("count", _replace(data, 6, b"\x7f\xff\xff\xff")),
    ))  # fmt: skip
    path.write_bytes(new)
    return f"{path.name}: {way}, {len(new)} bytes"


def other_producers(directory: Path, rng: Random) -> str:
    """Change, drop or add producers in a snapshot, its CRC right."""
    path = _pick(rng, sorted(directory.glob("*.snapshot")))
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
    """Put a snapshot where none belongs: ahead of the log, inside a segment, before its start."""
    bases = base_offsets(directory)
    last = list(walk(logs(directory)[-1].read_bytes()))
    end = last[-1].last_offset + 1 if last else bases[-1]
    offset = rng.choice((end + 100, end + 1, end, rng.randint(bases[0], end), max(0, bases[0] - 1)))
    found = sorted(directory.glob("*.snapshot"))
    data = _pick(rng, found).read_bytes() if found else None
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
    bases = base_offsets(directory)
    last = list(walk(logs(directory)[-1].read_bytes()))
    end = last[-1].last_offset + 1 if last else bases[-1]
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


ALL: tuple[Damage, ...] = (
    flip_in_header, flip_in_header, flip_in_payload, set_field, set_field, set_size,
    replace_marker, append_batch, repeat_batches, drop_batches, swap_batches, cut_log, cut_log,
    zero_log, append_garbage, remove_files, remove_files, remove_index_and_damage, orphans,
    remove_segment, empty_segment, leftovers, leftovers, swap_of_many, strange_files,
    directory_for_file, bad_index, index_beyond, bad_transaction_index, new_transaction_index,
    bad_snapshot, other_producers, another_snapshot, bad_epochs, malformed_epochs,
)  # fmt: skip
