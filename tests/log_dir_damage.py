"""Damage to log dirs in their own words: a batch, an index entry, a producer, a row.

Each function returns a `Damage`, which is done to a copied log dir that holds one partition (and
maybe the metadata log). Files are named as they are, or by their place: ``2.log`` is the third
``.log`` of the partition, ``-1.snapshot`` the last snapshot.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from crc32c import crc32c
from damage import append_to_file, damage_file, flip, overwrite, remove_file, rename_file
from verification import batches, set_offsets

from logtool.formats import (
    leader_epoch_checkpoint,
    offset_checkpoint,
    offset_index,
    producer_snapshot,
    record,
    record_batch,
    time_index,
    transaction_index,
)
from logtool.formats.record_batch import HEADER, HEADER_SIZE, BatchTable

MARKER = 0x30
"""Attributes of a transaction marker."""
Damage = Callable[[Path], object]


@dataclass(frozen=True)
class At:
    """A position that depends on the test data: of a batch, a line, or the end of the file."""

    resolve: Callable[[Path], int]


def batch(number: int) -> At:
    """Return where a batch begins; -1 is the last."""
    return At(lambda path: int(batches(path).position[number]))


def line(number: int) -> At:
    return At(lambda path: sum(map(len, path.read_bytes().splitlines(True)[: number - 1])))


def row_of(topic: str, number: int = 0) -> At:
    """Return where the row of a partition begins in an offset checkpoint."""
    start = f"{topic} {number} ".encode()
    return At(lambda path: re.search(rb"^" + re.escape(start), path.read_bytes(), re.M).start())


SIZE = At(lambda path: path.stat().st_size)
"""The end of the file, before the damage."""


def home_of(log_dir: Path, name: str) -> Path:
    """Return the file that ``2.log`` and the like mean, or the one of that name."""
    found = re.fullmatch(r"(-?\d{1,3})(\.\w+)", name)
    if "/" in name:
        return log_dir / name
    if not found:
        inside = [path for path in sorted(log_dir.rglob(name)) if path.is_file()]
        here = [path for path in inside if not path.parent.name.startswith("__")] or inside
        return here[0] if here else log_dir / name
    here = sorted(log_dir.rglob("[0-9]" * 20 + f"*{found[2]}"))
    own = [path for path in here if not path.parent.name.startswith("__")] or here
    return own[int(found[1])]


def on(name: str, change: Callable[..., bytes], *args: Any) -> Damage:
    """Change the bytes of one file."""
    return lambda home: damage_file(home_of(home, name), change, *args)


def in_batch(number: int, at: int, mask: int = 1, log: str = "0.log") -> Damage:
    """Flip a bit at a byte of a batch."""

    def damage(home: Path) -> None:
        path = home_of(home, log)
        table = batches(path)
        size, start = int(table.size[number]), int(table.position[number])
        damage_file(path, flip, start + at % size, mask)

    return damage


def header(number: int, log: str = "0.log", *, crc: bool = True, **fields: Any) -> Damage:
    """Set fields of a batch's header; with `crc` as a writer would, its CRC made right.

    A field may be a function of its present value.
    """

    def damage(home: Path) -> None:
        path = home_of(home, log)
        table = batches(path)
        start, end = int(table.position[number]), int(table.end_position[number])
        data = path.read_bytes()
        new = np.frombuffer(data, HEADER, 1, start).copy()
        for name, value in fields.items():
            new[name] = value(int(new[name][0])) if callable(value) else value
        if crc:
            new["crc"] = crc32c(new.tobytes()[21:] + data[start + HEADER_SIZE : end])
        damage_file(path, overwrite, start, new.tobytes())

    return damage


def with_batches(change: Callable[[bytes, BatchTable], bytes], log: str = "0.log") -> Damage:
    """Change a log by what its batches are."""

    def damage(home: Path) -> None:
        path = home_of(home, log)
        table = batches(path)
        damage_file(path, lambda data: change(data, table))

    return damage


def new_batch(offset: int, *values: bytes, epoch: int = 2, **more: Any) -> bytes:
    """Return a sound batch of a few records, some fields other than usual."""
    records = [record.Record(i, i, b"key", value) for i, value in enumerate(values)]
    fields: dict[str, object] = {
        "payload": record.encode(records),
        "base_offset": offset,
        "last_offset_delta": len(values) - 1,
        "record_count": len(values),
        "leader_epoch": epoch,
        "base_timestamp": 1_700_000_000_000,
        "max_timestamp": 1_700_000_000_000 + len(values) - 1,
    }
    return record_batch.encode(**(fields | more))  # type: ignore[arg-type]


def marker(offset: int, key: bytes | None, value: bytes | None, **more: Any) -> bytes:
    """Return a control batch of producer 9000."""
    payload = record.encode([record.Record(0, 0, key, value)])
    fields: dict[str, Any] = {
        "payload": payload, "attributes": MARKER, "producer_id": 9000, "producer_epoch": 0,
        "max_timestamp": 1_700_000_000_000,
    }  # fmt: skip
    return new_batch(offset, b"", **(fields | more))


def wrong_crc(batch: bytes) -> bytes:
    """Return a batch with another CRC."""
    return batch[:17] + bytes([batch[17] ^ 1]) + batch[18:]


def behind(make: Callable[[int], bytes], log: str = "-1.log") -> Damage:
    """Append what `make` returns for the log end offset."""

    def damage(home: Path) -> None:
        path = home_of(home, log)
        times = path.stat()
        append_to_file(path, make(int(batches(path).last_offset[-1]) + 1))
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    return damage


def crc_zero(offset: int) -> bytes:
    """Return a sound batch whose CRC happens to be 0: four bytes of its value are made to fit."""
    # A CRC is linear over the exclusive or: find the set of bits that takes it to 0.
    value = bytearray(b"....")
    plain = new_batch(offset, bytes(value))
    at = plain.index(value)

    def crc_of(word: int) -> int:
        return crc32c(plain[21:at] + word.to_bytes(4, "big") + plain[at + 4 :])

    start = crc_of(0)
    basis: dict[int, tuple[int, int]] = {}
    for bit in range(32):
        effect, word = crc_of(1 << bit) ^ start, 1 << bit
        for top in sorted(basis, reverse=True):
            if effect >> top & 1:
                effect, word = effect ^ basis[top][0], word ^ basis[top][1]
        if effect:
            basis[effect.bit_length() - 1] = effect, word
    left, answer = start, 0
    for top in sorted(basis, reverse=True):
        if left >> top & 1:
            left, answer = left ^ basis[top][0], answer ^ basis[top][1]
    made = new_batch(offset, answer.to_bytes(4, "big"))
    assert made[17:21] == bytes(4)
    return made


def entries(name: str, change: Callable[[np.ndarray], np.ndarray | None]) -> Damage:
    """Change the entries of an index as an array."""
    dtype = {
        ".index": offset_index.ENTRY, ".timeindex": time_index.ENTRY,
        ".txnindex": transaction_index.ENTRY,
    }[name[name.index(".") :]]  # fmt: skip

    def damage(home: Path) -> None:
        def changed(data: bytes) -> bytes:
            rows = np.frombuffer(data, dtype).copy()
            new = change(rows)
            return (rows if new is None else new).tobytes()

        damage_file(home_of(home, name), changed)

    return damage


def entry(name: str, number: int, **fields: Any) -> Damage:
    """Set fields of one index entry; a field may be a function of its present value."""

    def change(rows: np.ndarray) -> None:
        for key, value in fields.items():
            rows[key][number] = value(int(rows[key][number])) if callable(value) else value

    return entries(name, change)


def producer(name: str, number: int, *, crc: bool = True, **fields: Any) -> Damage:
    """Set fields of one producer in a snapshot, its CRC made right."""

    def change(data: bytes) -> bytes:
        rows = producer_snapshot.parse(data).entries.copy()
        for key, value in fields.items():
            rows[key][number] = value(int(rows[key][number])) if callable(value) else value
        return producer_snapshot.encode(producer_snapshot.build(rows))

    return on(name, change)


def producers(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Damage:
    def changed(data: bytes) -> bytes:
        rows = change(producer_snapshot.parse(data).entries)
        return producer_snapshot.encode(producer_snapshot.build(rows))

    return on(name, changed)


def epochs(change: Callable[[list[tuple[int, int]]], list[tuple[int, int]]]) -> Damage:
    def changed(data: bytes) -> bytes:
        rows = change(leader_epoch_checkpoint.parse(data).epochs)
        return leader_epoch_checkpoint.encode(leader_epoch_checkpoint.build(rows))

    return on("leader-epoch-checkpoint", changed)


def offset(name: str, topic: str, value: Callable[[int], int] | int, number: int = 0) -> Damage:
    """Set a partition's offset in a checkpoint."""

    def damage(home: Path) -> None:
        path = home / name
        old = offset_checkpoint.parse(path.read_bytes()).offsets.get((topic, number), 0)
        set_offsets(path, {(topic, number): value(old) if callable(value) else value})

    return damage


def remove(*names: str) -> Damage:
    def damage(home: Path) -> None:
        for path in [home_of(home, name) for name in names]:
            remove_file(path)

    return damage


def rename(name: str, new: Callable[[str], str] | str) -> Damage:
    def damage(home: Path) -> None:
        path = home_of(home, name)
        rename_file(path, new if isinstance(new, str) else new(path.name))

    return damage


def create(name: str, data: bytes = b"") -> Damage:
    """Write a new file; ``partition/x`` is in the partition."""

    def damage(home: Path) -> None:
        folder, _, base = name.rpartition("/")
        target = {"": home, "partition": own(home)}.get(folder, home / folder)
        target.joinpath(base).write_bytes(data)

    return damage


def own(home: Path) -> Path:
    """Return the partition directory that the row is about."""
    inside = sorted(path for path in home.iterdir() if path.is_dir())
    return next((path for path in inside if not path.name.startswith("__")), inside[0])


def all_of(*damages: Damage) -> Damage:
    def damage(home: Path) -> None:
        for one in damages:
            one(home)

    return damage


def segment_files(number: int, *suffixes: str) -> Damage:
    """Delete files of one segment."""

    def damage(home: Path) -> None:
        base = home_of(home, f"{number}.log").name[:20]
        for suffix in suffixes:
            remove_file(own(home) / f"{base}{suffix}")

    return damage
