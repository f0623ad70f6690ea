"""The table: what was done to a sound log dir on the left, exactly what verify says on the right.

Every row begins with a copy of what a real broker wrote. Expected is the difference to what verify
says of the undamaged copy, so that anything beside the point fails the row, info included.
"""

import os
import re
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import metadata_records
import numpy as np
import pytest
from crc32c import crc32c
from damage import copied, cut, damage_file, drop, flip, overwrite, repeat, zero
from log_dir_damage import (
    SIZE,
    At,
    Damage,
    all_of,
    batch,
    behind,
    crc_zero,
    create,
    entries,
    entry,
    epochs,
    header,
    home_of,
    in_batch,
    line,
    marker,
    new_batch,
    offset,
    on,
    own,
    producer,
    producers,
    remove,
    rename,
    row_of,
    segment_files,
    with_batches,
)
from verification import Place, batches, fingerprint, log_dirs, small_log_dir, told, verify

from logtool.checks import schedule, segment_ranges
from logtool.findings import catalogue
from logtool.formats import record, record_batch, wording
from logtool.formats.record_batch import BatchTable
from logtool.schemas.printed import SUMMARY
from logtool.verify import Budget, Level

VERSION = "4.3.1"
DEEP = {"batch/records", "batch/record-offsets", "batch/max-timestamp", "batch/too-large"}
"""Codes that only the level `records` can find."""
RECOVERY, WATERMARK = "recovery-point-offset-checkpoint", "replication-offset-checkpoint"
START, CLEANER = "log-start-offset-checkpoint", "cleaner-offset-checkpoint"
EPOCHS, METADATA = "leader-epoch-checkpoint", "partition.metadata"
META, QUORUM = "meta.properties", "quorum-state"
CLEAN = ".kafka_cleanshutdown"

Expected = list[tuple[str, str, int | At | None]]
"""(code, file, position); names as in `log_dir_damage`, ``.`` for the partition, ``..`` for the log
dir."""


@dataclass(frozen=True)
class Row:
    id: str
    home: str
    """Scenario, and the partitions taken from it."""
    damage: Damage
    expected: Expected
    says: str = ""
    """What some message must contain."""
    gone: Expected | tuple[()] = ()
    """What is said of the undamaged copy alone."""


BEHIND_ONE = At(lambda path: path.stat().st_size + len(new_batch(0, b"x")))
PLAIN = "clean codec-none-0"
KILLED = "killed codec-none-0"
SMALL = "clean small-segments-0"
DENSE = "clean index.dense-0"
TXNS = "clean tx.mixed-0"
INTERLEAVED = "clean tx-interleaved_v2-0"
COMPACTED = "clean compacted.keys-0"
CLEANED = "cleaned compact.plain-0"
CONTROLLER = "clean __cluster_metadata-0"

BATCHES = [
    Row("a bit of the records", PLAIN, in_batch(3, 70), [("batch/crc", "0.log", batch(3))]),
    Row("a bit of the CRC", PLAIN, in_batch(3, 18), [("batch/crc", "0.log", batch(3))]),
    Row("a bit of the attributes", PLAIN, in_batch(3, 22), [("batch/crc", "0.log", batch(3))]),
    Row("a bit of the first batch", PLAIN, in_batch(0, 70), [("batch/crc", "0.log", 0)]),
    Row("a bit of the last batch", PLAIN, in_batch(-1, 70), [("batch/crc", "0.log", batch(-1))],
        says="no sound batch follows"),
    Row("a bit of the last batch after a kill", KILLED, in_batch(-1, 70),
        [("batch/crc", "0.log", batch(-1))]),
    Row("bits of two batches", PLAIN, all_of(in_batch(6, 80), in_batch(3, 70)),
        [("batch/crc", "0.log", batch(3)), ("batch/crc", "0.log", batch(6))]),
    Row("bits of neighbouring batches", PLAIN, all_of(in_batch(4, 80), in_batch(3, 70)),
        [("batch/crc", "0.log", batch(3))]),
    Row("a bit of a compressed batch", "clean codec-zstd-0", in_batch(3, 90),
        [("batch/crc", "0.log", batch(3))]),
    Row("a bit in an inactive segment", SMALL, in_batch(3, 70, log="4.log"),
        [("batch/crc", "4.log", batch(3))]),
    Row("a bit of the last batch of an inactive segment", SMALL, in_batch(-1, 70, log="4.log"),
        [("batch/crc", "4.log", batch(-1))]),
    Row("a bit of a marker", TXNS, in_batch(4, 70, log="1.log"),
        [("batch/crc", "1.log", batch(4))]),
    Row("size 0", PLAIN, header(3, crc=False, batch_length=0), [("batch/size", "0.log", batch(3))]),
    Row("size negative", PLAIN, header(3, crc=False, batch_length=-5),
        [("batch/size", "0.log", batch(3))]),
    Row("size 13", PLAIN, header(3, crc=False, batch_length=13),
        [("batch/size", "0.log", batch(3))]),
    Row("size 48", PLAIN, header(3, crc=False, batch_length=48),
        [("batch/size", "0.log", batch(3))]),
    Row("size one too large", PLAIN, header(3, crc=False, batch_length=lambda n: n + 1),
        [("batch/crc", "0.log", batch(3))]),
    Row("size beyond the file", PLAIN, header(3, crc=False, batch_length=1_000_000),
        [("batch/size", "0.log", batch(3))]),
    Row("size 2147483647", PLAIN, header(3, crc=False, batch_length=2**31 - 1),
        [("batch/size", "0.log", batch(3))]),
    Row("size of the last batch beyond the file", PLAIN,
        header(-1, crc=False, batch_length=1_000_000),
        [("log/torn-tail-clean", "0.log", batch(-1)),
         ("checkpoint/recovery-point-beyond-end", RECOVERY, row_of("codec-none")),
         ("checkpoint/high-watermark-beyond-end", WATERMARK, row_of("codec-none")),
         ("producer-snapshot/beyond-end", "-1.snapshot", None)]),
    Row("magic 9", PLAIN, header(3, crc=False, magic=9), [("batch/magic", "0.log", batch(3))],
        says="the CRC is that of a sound magic 2 batch"),
    Row("magic 3", PLAIN, header(3, crc=False, magic=3), [("batch/magic", "0.log", batch(3))]),
    Row("magic -1", PLAIN, header(3, crc=False, magic=-1), [("batch/magic", "0.log", batch(3))]),
    Row("magic 1", PLAIN, header(3, crc=False, magic=1), [("batch/crc", "0.log", batch(3))],
        says="the CRC is that of a sound magic 2 batch"),
    Row("magic 0", PLAIN, header(3, crc=False, magic=0), [("batch/crc", "0.log", batch(3))]),
    Row("a batch zeroed", PLAIN,
        with_batches(lambda data, t: zero(data, int(t.position[5]), int(t.size[5]))),
        [("batch/zero-run", "0.log", batch(5))]),
    Row("three batches zeroed", PLAIN,
        with_batches(lambda data, t: zero(data, int(t.position[5]), int(t.size[5:8].sum()))),
        [("batch/zero-run", "0.log", batch(5))]),
    Row("half a batch zeroed", PLAIN,
        with_batches(lambda data, t: zero(data, int(t.position[5]), int(t.size[5]) // 2)),
        [("batch/size", "0.log", batch(5))]),
    Row("zeros from the middle of one batch to that of another", PLAIN,
        with_batches(lambda data, t: zero(data, int(t.position[5]) + 100, int(t.size[5]))),
        [("batch/crc", "0.log", batch(5))]),
    Row("a batch overwritten by text", PLAIN,
        with_batches(lambda data, t: overwrite(data, int(t.position[5]), b"x" * int(t.size[5]))),
        [("batch/magic", "0.log", batch(5))]),
    Row("a batch twice", "clean preallocated.log-0",
        with_batches(lambda data, t: repeat(data, int(t.position[-1]), int(t.size[-1]))),
        [("batch/offset-order", "0.log", SIZE)]),
    Row("base offset one higher", PLAIN, header(3, crc=False, base_offset=lambda n: n + 1),
        [("batch/offset-order", "0.log", batch(4))]),
    Row("base offset one lower", PLAIN, header(3, crc=False, base_offset=lambda n: n - 1),
        [("batch/offset-order", "0.log", batch(3))]),
    Row("base offset of an earlier batch", PLAIN, header(8, crc=False, base_offset=0),
        [("batch/offset-order", "0.log", batch(8))]),
    Row("base offset of the last batch one higher", KILLED,
        header(-1, crc=False, base_offset=lambda n: n + 1),
        [("batch/hole", "0.log", batch(-1))]),
    Row("base offset far away", PLAIN, header(3, crc=False, base_offset=lambda n: n + 2**40),
        [("batch/offset-range", "0.log", batch(3))]),
    Row("base offset negative", PLAIN, header(3, crc=False, base_offset=-7),
        [("batch/offset-range", "0.log", batch(3))]),
    Row("base offset below that of the segment", SMALL,
        header(0, "4.log", crc=False, base_offset=5),
        [("batch/offset-range", "4.log", 0)]),
    Row("last offset far away", KILLED,
        behind(lambda at: new_batch(at, b"x") + new_batch(at + 2**31, b"y")),
        [("batch/offset-range", "0.log", BEHIND_ONE)]),
    Row("last offset below the first", PLAIN, header(3, last_offset_delta=-1),
        [("batch/last-offset", "0.log", batch(3))]),
    Row("more records than offsets", PLAIN, header(3, record_count=1000),
        [("batch/record-count", "0.log", batch(3))]),
    Row("a negative record count", PLAIN, header(3, record_count=-1),
        [("batch/record-count", "0.log", batch(3))]),
    Row("codec 5", PLAIN, header(3, attributes=5), [("batch/codec", "0.log", batch(3))]),
    Row("codec 7 in a compressed batch", "clean codec-zstd-0", header(3, attributes=7),
        [("batch/codec", "0.log", batch(3))]),
    Row("unused attribute bits", PLAIN, header(3, attributes=0x4000),
        [("batch/attributes", "0.log", batch(3))]),
    Row("another codec than that of the bytes", "clean codec-zstd-0", header(3, attributes=1),
        [("batch/records", "0.log", batch(3))]),
    Row("garbage for records", KILLED,
        behind(lambda at: new_batch(at, b"", payload=b"\xff" * 40)),
        [("batch/records", "0.log", SIZE)]),
    Row("fewer records than the header counts", KILLED,
        behind(lambda at: new_batch(at, b"x", record_count=2, last_offset_delta=1)),
        [("batch/records", "0.log", SIZE)]),
    Row("bytes behind the last record", KILLED,
        behind(lambda at: new_batch(
            at, b"", payload=record.encode([record.Record(0, 0, b"k", b"v")]) + b"more")),
        [("batch/records", "0.log", SIZE)]),
    Row("record offsets that fall", KILLED,
        behind(lambda at: new_batch(at, b"x", b"y", payload=record.encode(
            [record.Record(1, 0, b"k", b"v"), record.Record(0, 1, b"k", b"v")]))),
        [("batch/record-offsets", "0.log", SIZE)]),
    Row("a record offset outside the batch", KILLED,
        behind(lambda at: new_batch(at, b"x", b"y", payload=record.encode(
            [record.Record(0, 0, b"k", b"v"), record.Record(7, 1, b"k", b"v")]))),
        [("batch/record-offsets", "0.log", SIZE)]),
    Row("another largest timestamp than the records'", KILLED,
        behind(lambda at: new_batch(at, b"x", max_timestamp=1_700_000_000_005)),
        [("batch/max-timestamp", "0.log", SIZE)]),
    Row("a negative timestamp", KILLED,
        behind(lambda at: new_batch(at, b"x", base_timestamp=-9, max_timestamp=-9)),
        [("batch/timestamp", "0.log", SIZE)]),
    Row("a timestamp of the year 2100", KILLED,
        behind(lambda at: new_batch(at, b"x", base_timestamp=4_102_444_800_000,
                                    max_timestamp=4_102_444_800_000)),
        [("batch/timestamp-future", "0.log", SIZE)], says="2100-01-01T00:00:00.000Z"),
    Row("timestamps in seconds", KILLED,
        behind(lambda at: new_batch(at, b"x", base_timestamp=1_700_000_000,
                                    max_timestamp=1_700_000_000, producer_id=9000,
                                    producer_epoch=0, base_sequence=0)
               + new_batch(at + 1, b"x", base_timestamp=1_700_000_001,
                           max_timestamp=1_700_000_001)),
        [("batch/timestamp-unit", "0.log", SIZE)],
        says="of producer 9000: timestamp 1700000000 is no time in milliseconds, but "
        "2023-11-14T22:13:20.000Z in seconds (and 1 more batch)"),
    Row("timestamps in microseconds and nanoseconds", KILLED,
        behind(lambda at: new_batch(at, b"x", base_timestamp=1_700_000_000_000_000,
                                    max_timestamp=1_700_000_000_000_000)
               + new_batch(at + 1, b"x", base_timestamp=1_700_000_000_000_000_000,
                           max_timestamp=1_700_000_000_000_000_000)),
        [("batch/timestamp-unit", "0.log", SIZE), ("batch/timestamp-unit", "0.log", BEHIND_ONE)],
        says="in nanoseconds"),
    Row("a producer without sequence", KILLED,
        behind(lambda at: new_batch(at, b"x", producer_id=9000, producer_epoch=0)),
        [("batch/producer", "0.log", SIZE)]),
    Row("a plain batch in an open transaction", KILLED,
        behind(lambda at: new_batch(at, b"x", producer_id=9000, producer_epoch=0, base_sequence=0,
                                    attributes=0x10)
               + new_batch(at + 1, b"x", producer_id=9000, producer_epoch=0, base_sequence=1)),
        [("batch/plain-in-transaction", "0.log", BEHIND_ONE)]),
    Row("a marker of another type", KILLED,
        behind(lambda at: marker(at, b"\0\0\0\2", b"\0\0\0\0\0\0")),
        [("batch/control-type", "0.log", SIZE)]),
    Row("a marker without key", KILLED, behind(lambda at: marker(at, None, b"\0\0\0\0\0\0")),
        [("batch/control-record", "0.log", SIZE)]),
    Row("a marker with a short value", KILLED,
        behind(lambda at: marker(at, b"\0\0\0\1", b"\0\0")),
        [("batch/control-record", "0.log", SIZE)]),
    Row("a lower leader epoch", PLAIN, header(-1, crc=False, leader_epoch=0),
        [("batch/leader-epoch-order", "0.log", batch(-1)),
         ("leader-epoch/mismatch", EPOCHS, None)]),
    Row("a higher leader epoch", PLAIN, header(3, crc=False, leader_epoch=1),
        [("batch/leader-epoch-order", "0.log", batch(3))]),
    Row("a leader epoch far too high", PLAIN, header(3, crc=False, leader_epoch=1 << 20),
        [("batch/leader-epoch-order", "0.log", batch(3))]),
    Row("a negative leader epoch", PLAIN, header(3, crc=False, leader_epoch=-(1 << 31)),
        [("batch/leader-epoch-order", "0.log", batch(3))]),
    Row("a higher leader epoch in the last batch", PLAIN, header(-1, crc=False, leader_epoch=9),
        [("leader-epoch/missing-epoch", EPOCHS, None)]),
    Row("a batch of 65 MiB", KILLED,
        behind(lambda at: new_batch(at, bytes(65 << 20))),
        [("batch/too-large", "0.log", SIZE)]),
]  # fmt: skip

TAILS = [
    Row("cut in the last batch", PLAIN, with_batches(lambda d, t: cut(d, len(d) - 20)),
        [("log/torn-tail-clean", "0.log", batch(-1)),
         ("checkpoint/recovery-point-beyond-end", RECOVERY, row_of("codec-none")),
         ("checkpoint/high-watermark-beyond-end", WATERMARK, row_of("codec-none")),
         ("producer-snapshot/beyond-end", "-1.snapshot", None)]),
    Row("cut in the last batch after a kill", KILLED,
        behind(lambda at: new_batch(at, b"torn")[:-2]), [("log/torn-tail", "0.log", SIZE)]),
    Row("a few bytes behind the last batch", KILLED, behind(lambda at: b"\0\0\0\0\0"),
        [("log/torn-tail", "0.log", SIZE)]),
    Row("zeros behind the last batch", KILLED, behind(lambda at: bytes(5000)),
        [("log/zero-tail", "0.log", SIZE)]),
    Row("zeros behind the last batch of a clean log", PLAIN, behind(lambda at: bytes(5000)),
        [("log/torn-tail-clean", "0.log", SIZE)]),
    Row("zeros behind the last batch of an inactive segment", SMALL,
        behind(lambda at: bytes(5000), "4.log"), [("log/truncated", "4.log", SIZE)]),
    Row("text behind the last batch", KILLED, behind(lambda at: b"No space left on device\n" * 9),
        [("batch/magic", "0.log", SIZE)]),
    Row("an inactive segment cut in a batch", SMALL,
        with_batches(lambda d, t: cut(d, int(t.position[-1]) + 30), "4.log"),
        [("log/truncated", "4.log", batch(-1))]),
    Row("an inactive segment cut between batches", SMALL,
        with_batches(lambda d, t: cut(d, int(t.position[-2])), "4.log"),
        [("segment/missing", "4.log", None),
         ("time-index/not-a-batch", "4.timeindex", 0)]),
    Row("the active segment cut between batches", PLAIN,
        with_batches(lambda d, t: cut(d, int(t.position[-1]))),
        [("checkpoint/recovery-point-beyond-end", RECOVERY, row_of("codec-none")),
         ("checkpoint/high-watermark-beyond-end", WATERMARK, row_of("codec-none")),
         ("producer-snapshot/beyond-end", "-1.snapshot", None),
         ("time-index/not-a-batch", "0.timeindex", 72)]),
    Row("a log of 0 bytes", SMALL, on("4.log", cut, 0),
        [("segment/missing", "4.log", None), ("time-index/not-a-batch", "4.timeindex", 0)]),
    Row("a sound batch whose CRC is 0", KILLED, behind(crc_zero), []),
    Row("an empty batch", KILLED,
        behind(lambda at: new_batch(at, payload=b"", last_offset_delta=4, record_count=0)), []),
]  # fmt: skip


def next_batch_too(home: Path) -> None:
    """Append the first batch of segment 5 to segment 4: a roll that was not remembered."""
    after = home_of(home, "5.log")
    first = after.read_bytes()[: int(batches(after).size[0])]
    damage_file(home_of(home, "4.log"), lambda data: data + first)


def enlarge(path: Path) -> None:
    times = path.stat()
    os.truncate(path, 2**31)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


CHAIN = [
    Row("a batch of the next segment too", SMALL, next_batch_too,
        [("segment/overlap", "4.log", None), ("time-index/incomplete", "4.timeindex", None)]),
    Row("a log removed", SMALL, segment_files(4, ".log"),
        [("segment/missing", "3.log", None), ("partition/orphan-index", "4.index", None),
         ("partition/orphan-index", "4.timeindex", None)]),
    Row("a log and its indexes removed", SMALL, segment_files(4, ".timeindex", ".index", ".log"),
        [("segment/hole", "3.log", None)]),
    Row("two segments removed, the snapshot between them left", SMALL,
        all_of(segment_files(5, ".timeindex", ".index", ".log", ".snapshot"),
               segment_files(4, ".timeindex", ".index", ".log", ".snapshot")),
        [("segment/hole", "3.log", None)]),
    Row("two segments removed, the snapshots left", SMALL,
        all_of(segment_files(5, ".timeindex", ".index", ".log"),
               segment_files(4, ".timeindex", ".index", ".log")),
        [("segment/missing", "3.log", None)]),
    Row("a batch cut out where no index entry lies behind it", SMALL,
        with_batches(lambda d, t: drop(d, int(t.position[6]), int(t.size[6])), "4.log"),
        [("batch/hole", "4.log", batch(6))]),
    Row("a segment of a compacted log removed", COMPACTED,
        segment_files(4, ".timeindex", ".index", ".log", ".snapshot"),
        [("segment/gap", "3.log", None)]),
    Row("two segments removed that the cleaner has not come to, the snapshots left", CLEANED,
        all_of(offset(CLEANER, "compact.plain", 969),
               segment_files(5, ".timeindex", ".index", ".log"),
               segment_files(4, ".timeindex", ".index", ".log")),
        [("segment/missing", "3.log", None)], gone=[("segment/gap", "3.log", None)]),
    Row("a log removed that the cleaner has been to", CLEANED, segment_files(5, ".log"),
        [("segment/missing", "4.log", None), ("partition/orphan-index", "5.index", None),
         ("partition/orphan-index", "5.timeindex", None)]),
    Row("the active segment removed", SMALL,
        segment_files(-1, ".timeindex", ".index", ".log"),
        [("checkpoint/recovery-point-beyond-end", RECOVERY, row_of("small-segments")),
         ("checkpoint/high-watermark-beyond-end", WATERMARK, row_of("small-segments")),
         ("producer-snapshot/beyond-end", "-1.snapshot", None),
         ("leader-epoch/beyond-end", EPOCHS, line(4))]),
    Row("a log larger than a broker can open", SMALL, lambda home: enlarge(home_of(home, "4.log")),
        [("log/too-large", "4.log", None), ("log/truncated", "4.log", SIZE)]),
]  # fmt: skip


def zeros(data: bytes) -> bytes:
    return bytes(len(data))


def one_more(rows: np.ndarray, **fields: int) -> np.ndarray:
    """Return the rows and another of the given fields."""
    new = np.zeros(1, rows.dtype)
    for name, value in fields.items():
        new[name] = value
    return np.concatenate([rows, new]).astype(rows.dtype)


def with_sound_crc(
    number: int, change: Callable[[bytes, int], bytes], log: str = "0.log"
) -> Damage:
    """Change a batch, whose end `change` is told, and make its CRC right."""

    def changed(data: bytes, table: BatchTable) -> bytes:
        start, end = int(table.position[number]), int(table.end_position[number])
        new = change(data, end)
        return overwrite(new, start + 17, crc32c(new[start + 21 : end]).to_bytes(4, "big"))

    return with_batches(changed, log)


def marker_type(number: int, kind: bytes, log: str) -> Damage:
    """Make another kind of marker of a batch, its CRC right.

    The key's type stands before the size of the value, the value and the count of headers.
    """
    return with_sound_crc(number, lambda data, end: overwrite(data, end - 10, kind), log)


def aborted_without(*values: bytes) -> Callable[[int], bytes]:
    """Return a maker of an aborted transaction of a producer that is in no index."""
    fields: dict[str, Any] = {"attributes": 0x10, "producer_id": 9000, "producer_epoch": 0}
    fields |= {"base_sequence": 0, "last_offset_delta": 0}

    def make(at: int) -> bytes:
        abort = marker(at + 1, b"\0\0\0\0", b"\0\0\0\0\0\0")
        return new_batch(at, *values, **fields) + abort

    return make


def in_snapshot(change: Callable[[bytes, BatchTable], bytes]) -> Damage:
    """Change the second snapshot of the metadata log by what its batches are."""

    def damage(home: Path) -> None:
        path = home_of(home, "1.checkpoint")
        table = batches(path)
        damage_file(path, lambda data: change(data, table))

    return damage


def suffixed(suffix: str) -> Damage:
    """Rename the partition as a broker does that deletes or moves it."""

    def damage(home: Path) -> None:
        own(home).rename(home / f"{own(home).name}.{HEX}-{suffix}")

    return damage


def later(path: Path, than: Path, seconds: int) -> None:
    when = than.stat().st_mtime_ns + seconds * 1_000_000_000
    os.utime(path, ns=(when, when))


def swap_fields(rows: np.ndarray, name: str, first: int, second: int) -> None:
    rows[name][[first, second]] = rows[name][[second, first]]


def one_for_two(rows: np.ndarray, number: int) -> np.ndarray:
    """Return what a follower writes that fetched the batches of two entries at once."""
    rows["position"][number] = rows["position"][number - 1]
    return np.delete(rows, number - 1)


def swapped(first: int, second: int) -> Callable[[np.ndarray], None]:
    def change(rows: np.ndarray) -> None:
        rows[[first, second]] = rows[[second, first]]

    return change


INDEXES = [
    Row("an offset index removed", SMALL, segment_files(4, ".index"),
        [("offset-index/missing", "4.log", None)]),
    Row("a time index removed", SMALL, segment_files(4, ".timeindex"),
        [("time-index/missing", "4.log", None)]),
    Row("both indexes removed", SMALL, segment_files(4, ".index", ".timeindex"),
        [("offset-index/missing", "4.log", None), ("time-index/missing", "4.log", None)]),
    Row("the indexes of an active segment after a kill", KILLED,
        segment_files(0, ".index", ".timeindex"),
        [("offset-index/not-written", "0.log", None), ("time-index/not-written", "0.log", None)],
        gone=[("offset-index/preallocated", "0.index", 40),
              ("time-index/preallocated", "0.timeindex", 72)]),
    Row("an offset index of 0 bytes", DENSE, on("0.index", cut, 0),
        [("offset-index/incomplete", "0.index", None)]),
    Row("a time index of 0 bytes", SMALL, on("4.timeindex", cut, 0),
        [("time-index/incomplete", "4.timeindex", None)]),
    Row("an offset index of zeros", DENSE, on("0.index", zeros),
        [("offset-index/padding", "0.index", 0), ("offset-index/incomplete", "0.index", None)]),
    Row("an active offset index of zeros", PLAIN, on("0.index", zeros),
        [("offset-index/preallocated", "0.index", 0)]),
    Row("an offset index of zeros, base above 0", SMALL, on("4.index", lambda d: bytes(8192)),
        [("offset-index/padding", "4.index", 0)]),
    Row("a time index of zeros", DENSE, on("0.timeindex", zeros),
        [("time-index/padding", "0.timeindex", 0), ("time-index/incomplete", "0.timeindex", None)]),
    Row("an active time index of zeros", PLAIN, on("0.timeindex", zeros),
        [("time-index/preallocated", "0.timeindex", 0)]),
    Row("one zero entry behind a time index", DENSE, on("0.timeindex", lambda d: d + bytes(12)),
        [("time-index/padding", "0.timeindex", SIZE)]),
    Row("a zero page in an offset index", DENSE, on("0.index", zero, 80, 40),
        [("offset-index/relative-zero", "0.index", 80)]),
    Row("a zero page in a time index", DENSE, on("0.timeindex", zero, 120, 36),
        [("time-index/zero-entry", "0.timeindex", 120)]),
    Row("an offset index with half an entry more", DENSE, on("0.index", lambda d: d + b"abc"),
        [("offset-index/length", "0.index", SIZE)]),
    Row("a time index cut in an entry", SMALL, on("4.timeindex", cut, 7),
        [("time-index/length", "4.timeindex", 0), ("time-index/incomplete", "4.timeindex", None)]),
    Row("an offset index entry for the base offset", DENSE, entry("0.index", 4, relative_offset=0),
        [("offset-index/relative-zero", "0.index", 32)]),
    Row("the last offset of an offset index the base", DENSE,
        entry("0.index", -1, relative_offset=0),
        [("offset-index/relative-zero", "0.index", At(lambda p: p.stat().st_size - 8))]),
    Row("a negative offset in an offset index", DENSE, entry("0.index", 4, relative_offset=-3),
        [("offset-index/offset-range", "0.index", 32)]),
    Row("a negative position in an offset index", DENSE, entry("0.index", 4, position=-3),
        [("offset-index/position-range", "0.index", 32)]),
    Row("offsets of an offset index swapped", DENSE,
        entries("0.index", lambda rows: swap_fields(rows, "relative_offset", 4, 5)),
        [("offset-index/wrong-offset", "0.index", 32)]),
    Row("entries of an offset index swapped", DENSE, entries("0.index", swapped(4, 5)),
        [("offset-index/offset-order", "0.index", 40),
         ("offset-index/position-order", "0.index", 40)]),
    Row("an entry of an offset index twice", DENSE, on("0.index", repeat, 32, 8),
        [("offset-index/offset-order", "0.index", 40),
         ("offset-index/position-order", "0.index", 40)]),
    Row("an entry beyond an inactive log", DENSE, entry("0.index", -1, position=2**30),
        [("offset-index/position-range", "0.index", At(lambda p: p.stat().st_size - 8))]),
    Row("an entry beyond the active log after a clean stop", DENSE,
        on("1.index", lambda d: d + bytes.fromhex("000001f4 3fffffff")),
        [("offset-index/ahead-of-log", "1.index", SIZE)]),
    Row("an entry beyond the active log after a kill", KILLED,
        entry("0.index", 5, position=2**30, relative_offset=5000),
        [("offset-index/ahead", "0.index", 40), ("offset-index/preallocated", "0.index", 48)],
        gone=[("offset-index/preallocated", "0.index", 40)]),
    Row("an entry into a batch", DENSE, entry("0.index", 4, position=lambda n: n + 1),
        [("offset-index/not-a-batch", "0.index", 32)]),
    Row("one entry for an append of two batches", DENSE,
        entries("0.index", lambda rows: one_for_two(rows, 4)), []),
    Row("an offset too low", DENSE, entry("0.index", 4, relative_offset=lambda n: n - 3),
        [("offset-index/wrong-offset", "0.index", 32)]),
    Row("an offset too high", DENSE, entry("0.index", 4, relative_offset=lambda n: n + 1),
        [("offset-index/wrong-offset", "0.index", 32)]),
    Row("the last offset too high", DENSE, entry("0.index", -1, relative_offset=lambda n: n + 100),
        [("offset-index/wrong-offset", "0.index", At(lambda p: p.stat().st_size - 8))]),
    Row("a time index with another timestamp", DENSE,
        entry("0.timeindex", 4, timestamp=lambda n: n + 1),
        [("time-index/wrong-timestamp", "0.timeindex", 48)]),
    Row("a timestamp that falls", DENSE, entry("0.timeindex", 4, timestamp=1000),
        [("time-index/wrong-timestamp", "0.timeindex", 48)]),
    Row("a negative timestamp in a time index", DENSE, entry("0.timeindex", 4, timestamp=-2),
        [("time-index/wrong-timestamp", "0.timeindex", 48)]),
    Row("last timestamp 0", SMALL, entry("4.timeindex", -1, timestamp=0),
        [("time-index/wrong-timestamp", "4.timeindex", 0),
         ("time-index/incomplete", "4.timeindex", None)]),
    Row("a negative offset in a time index", DENSE, entry("0.timeindex", 4, relative_offset=-5),
        [("time-index/offset-range", "0.timeindex", 48)]),
    Row("an offset of a time index that falls", DENSE, entry("0.timeindex", 4, relative_offset=0),
        [("time-index/wrong-timestamp", "0.timeindex", 48)]),
    Row("entries of a time index swapped", DENSE, entries("0.timeindex", swapped(4, 5)),
        [("time-index/timestamp-order", "0.timeindex", 60),
         ("time-index/offset-order", "0.timeindex", 60)]),
    Row("a time entry for an offset the log does not have", SMALL,
        entry("4.timeindex", 0, relative_offset=5000),
        [("time-index/not-a-batch", "4.timeindex", 0)]),
    Row("a time entry ahead of the active log after a kill", KILLED,
        entry("0.timeindex", 6, timestamp=1_800_000_000_000, relative_offset=5000),
        [("time-index/ahead", "0.timeindex", 72), ("time-index/preallocated", "0.timeindex", 84)],
        gone=[("time-index/preallocated", "0.timeindex", 72)]),
    Row("a time entry behind a later batch", "clean odd.timestamps-0",
        entry("0.timeindex", 0, timestamp=lambda n: n - 4500, relative_offset=14),
        [("time-index/later-before", "0.timeindex", 0)]),
    Row("the closing time entry missing", DENSE, on("0.timeindex", cut, 12 * 100),
        [("time-index/incomplete", "0.timeindex", None)]),
]  # fmt: skip

TXN_ENTRY = 34
ABORTS_AFTER_KILL = 6
"""Entries in the transaction index of the fixture."""
TRANSACTIONS = [
    Row("a transaction index removed", TXNS, remove("1.txnindex"),
        [("transaction-index/missing-entry", "1.log", None)]),
    Row("the last transaction index after a kill", "killed tx-interleaved_v2-0",
        remove("0.txnindex"),
        [("transaction-index/behind", "0.log", None)] * ABORTS_AFTER_KILL),
    Row("the last entry after a kill", "killed tx-interleaved_v2-0",
        on("0.txnindex", cut, 5 * TXN_ENTRY), [("transaction-index/behind", "0.txnindex", None)]),
    Row("an entry in the middle after a kill", "killed tx-interleaved_v2-0",
        on("0.txnindex", drop, 68, TXN_ENTRY),
        [("transaction-index/missing-entry", "0.txnindex", None)]),
    Row("a transaction index of 0 bytes", TXNS, on("1.txnindex", cut, 0),
        [("transaction-index/missing-entry", "1.txnindex", None)]),
    Row("an entry dropped", TXNS, on("0.txnindex", cut, TXN_ENTRY),
        [("transaction-index/missing-entry", "0.txnindex", None)]),
    Row("an entry in the middle dropped", INTERLEAVED, on("0.txnindex", drop, 68, TXN_ENTRY),
        [("transaction-index/missing-entry", "0.txnindex", None)]),
    Row("an entry for a transaction that was committed", TXNS,
        entries("1.txnindex", lambda rows: one_more(rows, producer_id=4, first_offset=252,
                                                    last_offset=276, last_stable_offset=277)),
        [("transaction-index/no-marker", "1.txnindex", SIZE)]),
    Row("an entry twice", TXNS, on("1.txnindex", repeat, 0, TXN_ENTRY),
        [("transaction-index/order", "1.txnindex", TXN_ENTRY)]),
    Row("a first offset too high", TXNS, entry("1.txnindex", 0, first_offset=lambda n: n + 3),
        [("transaction-index/first-offset", "1.txnindex", 0)]),
    Row("a first offset too low", TXNS, entry("1.txnindex", 0, first_offset=lambda n: n - 3),
        [("transaction-index/first-offset", "1.txnindex", 0)]),
    Row("another producer", TXNS, entry("1.txnindex", 0, producer_id=77),
        [("transaction-index/missing-entry", "1.txnindex", None),
         ("transaction-index/no-marker", "1.txnindex", 0)]),
    Row("another last offset", TXNS, entry("1.txnindex", 0, last_offset=lambda n: n + 1),
        [("transaction-index/missing-entry", "1.txnindex", None),
         ("transaction-index/no-marker", "1.txnindex", 0)]),
    Row("a negative producer", TXNS, entry("1.txnindex", 0, producer_id=-4),
        [("transaction-index/missing-entry", "1.txnindex", None),
         ("transaction-index/range", "1.txnindex", 0)]),
    Row("a first offset behind the last", TXNS, entry("1.txnindex", 0, first_offset=250),
        [("transaction-index/range", "1.txnindex", 0),
         ("transaction-index/first-offset", "1.txnindex", 0)]),
    Row("an entry of the segment before", TXNS, on("1.txnindex", lambda data: bytes.fromhex(
            "0000 0000000000000004 000000000000001c 0000000000000037 0000000000000038") + data),
        [("transaction-index/below-base", "1.txnindex", 0)]),
    Row("version 256", TXNS, entry("1.txnindex", 0, version=256),
        [("transaction-index/version", "1.txnindex", 0)]),
    Row("version 1", TXNS, entry("1.txnindex", 0, version=1),
        [("transaction-index/version", "1.txnindex", 0)]),
    Row("half an entry more", TXNS, on("1.txnindex", lambda data: data + bytes(11)),
        [("transaction-index/length", "1.txnindex", SIZE)]),
    Row("a transaction index cut in its entry", TXNS, on("1.txnindex", cut, 20),
        [("transaction-index/missing-entry", "1.txnindex", None),
         ("transaction-index/length", "1.txnindex", 0)]),
    # Compaction leaves such empty batches. Nobody reads anything of them, with an entry or without.
    Row("no entry for an aborted transaction of empty batches", TXNS, behind(aborted_without()),
        [("checkpoint/recovery-point-behind", RECOVERY, row_of("tx.mixed"))]),
    Row("no entry for an aborted transaction of a record", TXNS, behind(aborted_without(b"value")),
        [("checkpoint/recovery-point-behind", RECOVERY, row_of("tx.mixed")),
         ("transaction-index/missing-entry", "-1.log", None)]),
    Row("an ABORT marker turned into COMMIT", TXNS, marker_type(9, b"\0\1", "1.log"),
        [("transaction-index/no-marker", "1.txnindex", 0)]),
    Row("a COMMIT marker turned into ABORT", TXNS, marker_type(1, b"\0\0", "1.log"),
        [("transaction-index/missing-entry", "1.txnindex", None)]),
]  # fmt: skip

SNAPSHOTS = [
    Row("a producer missing", TXNS, producers("1.snapshot", lambda rows: rows[1:]),
        [("producer-snapshot/mismatch", "1.snapshot", None)]),
    Row("a last offset changed", TXNS, producer("1.snapshot", 0, last_offset=lambda n: n - 1),
        [("producer-snapshot/mismatch", "1.snapshot", None)]),
    Row("a sequence changed", TXNS, producer("1.snapshot", 0, last_sequence=lambda n: n + 1),
        [("producer-snapshot/mismatch", "1.snapshot", None)]),
    Row("an epoch changed", TXNS, producer("1.snapshot", 0, producer_epoch=5),
        [("producer-snapshot/mismatch", "1.snapshot", None)]),
    Row("an open transaction moved", TXNS,
        producer("-1.snapshot", 0, current_txn_first_offset=lambda n: n + 2),
        [("producer-snapshot/mismatch", "-1.snapshot", None)]),
    Row("an open transaction closed", TXNS,
        producer("-1.snapshot", 0, current_txn_first_offset=-1),
        [("producer-snapshot/mismatch", "-1.snapshot", None)]),
    Row("a transaction opened", TXNS, producer("1.snapshot", 0, current_txn_first_offset=224),
        [("producer-snapshot/mismatch", "1.snapshot", None)]),
    Row("an offset behind the snapshot's", TXNS, producer("1.snapshot", 0, last_offset=400),
        [("producer-snapshot/offset-range", "1.snapshot", 10)]),
    Row("a producer twice", TXNS, producers("1.snapshot", lambda rows: rows[[0, 1, 0]]),
        [("producer-snapshot/duplicate", "1.snapshot", 10 + 2 * 46)]),
    Row("a bit of a snapshot", TXNS, on("1.snapshot", flip, 40, 4),
        [("producer-snapshot/crc", "1.snapshot", 2)]),
    Row("a snapshot of 0 bytes", TXNS, on("1.snapshot", cut, 0),
        [("producer-snapshot/empty-file", "1.snapshot", 0)]),
    Row("a snapshot of 7 bytes", TXNS, on("1.snapshot", cut, 7),
        [("producer-snapshot/length", "1.snapshot", 0)]),
    Row("a snapshot cut", TXNS, on("1.snapshot", cut, 60),
        [("producer-snapshot/count", "1.snapshot", 6)]),
    Row("a snapshot of zeros", TXNS, on("1.snapshot", zeros),
        [("producer-snapshot/version", "1.snapshot", 0)]),
    Row("bytes behind a snapshot", TXNS, on("1.snapshot", lambda data: data + bytes(46)),
        [("producer-snapshot/length", "1.snapshot", SIZE)]),
    Row("a snapshot behind the end of the log", TXNS,
        create("partition/00000000000000000999.snapshot", bytes.fromhex("000148674bc700000000")),
        [("producer-snapshot/beyond-end", "00000000000000000999.snapshot", None)]),
]  # fmt: skip

LEADER_EPOCHS = [
    Row("the checkpoint removed", PLAIN, remove(EPOCHS), [("leader-epoch/missing", ".", None)]),
    Row("a row dropped", PLAIN, epochs(lambda rows: rows[:1]),
        [("leader-epoch/missing-epoch", EPOCHS, None)]),
    Row("the first row dropped", PLAIN, epochs(lambda rows: rows[1:]),
        [("leader-epoch/missing-epoch", EPOCHS, None)]),
    Row("a start offset moved up", PLAIN, epochs(lambda rows: [rows[0], (2, rows[1][1] + 5)]),
        [("leader-epoch/mismatch", EPOCHS, None)]),
    Row("a start offset moved down", PLAIN, epochs(lambda rows: [rows[0], (2, rows[1][1] - 5)]),
        [("leader-epoch/mismatch", EPOCHS, None)]),
    # As DeleteRecords leaves it, before the new log start is checkpointed too.
    Row("the first row moved up", PLAIN, epochs(lambda rows: [(rows[0][0], 5), *rows[1:]]), []),
    Row("another epoch", PLAIN, epochs(lambda rows: [rows[0], (7, rows[1][1])]),
        [("leader-epoch/missing-epoch", EPOCHS, None)]),
    Row("an epoch without data", PLAIN,
        epochs(lambda rows: [rows[0], (1, rows[1][1] - 1), rows[1]]),
        [("leader-epoch/mismatch", EPOCHS, None)]),
    Row("an epoch without data at the end", PLAIN, epochs(lambda rows: [*rows, (9, 360)]), []),
    Row("a stale row behind the end", PLAIN, epochs(lambda rows: [*rows, (9, 5000)]),
        [("leader-epoch/beyond-end", EPOCHS, SIZE)]),
    Row("rows in the wrong order", PLAIN, epochs(lambda rows: rows[::-1]),
        [("leader-epoch/order", EPOCHS, 10)]),
    Row("a negative epoch", PLAIN, on(EPOCHS, lambda d: b"0\n3\n-4 0\n" + d[4:]),
        [("leader-epoch/negative", EPOCHS, 4)]),
    Row("version 1 of the epochs", PLAIN, on(EPOCHS, lambda d: b"1" + d[1:]),
        [("leader-epoch/version", EPOCHS, 0)]),
    Row("a count too high", PLAIN, on(EPOCHS, lambda d: b"0\n9" + d[3:]),
        [("leader-epoch/count", EPOCHS, 2)]),
    Row("a line of text", PLAIN, on(EPOCHS, lambda d: b"0\n3" + d[3:] + b"hello\n"),
        [("leader-epoch/malformed-line", EPOCHS, SIZE)]),
    Row("an epoch file of 0 bytes", PLAIN, on(EPOCHS, cut, 0),
        [("leader-epoch/missing-epoch", EPOCHS, None)]),
    Row("an epoch file of NUL bytes", PLAIN, on(EPOCHS, zeros),
        [("leader-epoch/version", EPOCHS, 0)]),
]  # fmt: skip
HEX = "0123456789abcdef0123456789abcdef"
UUID = "J8aAPcfLQt2bqs1JT_rMgQ"
MOVED = f"version=0\nbroker.id=1\ndirectory.id={UUID}\n".encode()

NAMES = [
    Row("a .deleted file", PLAIN, create("partition/00000000000000000009.log.deleted", b"x"),
        [("partition/leftover-deleted", "00000000000000000009.log.deleted", None)]),
    Row("a .cleaned file", COMPACTED, create("partition/00000000000000000009.log.cleaned", b"x"),
        [("partition/leftover-cleaned", "00000000000000000009.log.cleaned", None)]),
    Row("a .swap file", COMPACTED, rename("3.log", lambda name: f"{name}.swap"),
        [("partition/leftover-swap", "00000000000000000336.log.swap", None),
         ("partition/orphan-index", "3.index", None),
         ("partition/orphan-index", "3.timeindex", None),
         ("segment/gap", "2.log", None)]),
    Row("a .tmp file", PLAIN, create("partition/leader-epoch-checkpoint.tmp", b"x"),
        [("partition/leftover-temporary", "leader-epoch-checkpoint.tmp", None)]),
    Row("a snapshot being written", CONTROLLER,
        create("__cluster_metadata-0/00000000000000000009-0000000001-77.checkpoint.part", b"x"),
        [("partition/leftover-temporary",
          "00000000000000000009-0000000001-77.checkpoint.part", None)]),
    Row("a record of the metadata log that cannot be applied", CONTROLLER,
        behind(lambda offset: new_batch(offset, metadata_records.remove_topic(UUID))),
        [("metadata/does-not-apply", "0.log", SIZE)]),
    Row("a file that stops the broker", PLAIN, create("partition/copy.log", b"x"),
        [("partition/stops-broker", "copy.log", None)]),
    Row("a name that Kafka can read", PLAIN, create("partition/+7.log", b"x"),
        [("partition/odd-name", "+7.log", None)]),
    Row("a note in a partition", PLAIN, create("partition/README.txt", b"x"),
        [("partition/unknown-file", "README.txt", None)]),
    Row("a directory in a partition", PLAIN, lambda home: (own(home) / "backup").mkdir(),
        [("partition/unknown-file", "backup", None)]),
    Row("an index without its log", PLAIN, create("partition/00000000000000000999.index"),
        [("partition/orphan-index", "00000000000000000999.index", None)]),
    Row("an empty partition", PLAIN, lambda home: (home / "new-topic-0").mkdir(),
        [("partition/empty", "new-topic-0", None)]),
    Row("a partition being deleted", PLAIN, suffixed("delete"),
        [("partition/pending-delete", f"codec-none-0.{HEX}-delete", None)]),
    Row("a partition being moved", PLAIN, suffixed("future"),
        [("partition/future", f"codec-none-0.{HEX}-future", None)]),
    Row("a stray partition", PLAIN, suffixed("stray"),
        [("partition/stray", f"codec-none-0.{HEX}-stray", None)]),
    Row("a partition number with a sign", PLAIN,
        lambda home: own(home).rename(home / "codec-none-+0"),
        [("partition/odd-name", "codec-none-+0", None)]),
    Row("a partition twice in a log dir", PLAIN,
        lambda home: shutil.copytree(own(home), home / "codec-none-00"),
        [("partition/odd-name", "codec-none-00", None),
         ("data-dir/duplicate-partition", "codec-none-00", None)]),
    Row("lost+found", PLAIN, lambda home: (home / "lost+found").mkdir(),
        [("data-dir/stops-broker", "lost+found", None)]),
    Row("a directory with a dash", PLAIN, lambda home: (home / "my-backup").mkdir(),
        [("data-dir/stops-broker", "my-backup", None)]),
    Row("a note in a log dir", PLAIN, create("README.txt", b"x"),
        [("data-dir/unknown-file", "README.txt", None)]),
    Row("a .tmp checkpoint", PLAIN, create(f"{WATERMARK}.tmp", b"x"),
        [("data-dir/leftover-temporary", f"{WATERMARK}.tmp", None)]),
    Row("no partition.metadata", PLAIN, remove(METADATA),
        [("partition-metadata/missing", ".", None)]),
    Row("no partition.metadata with ZooKeeper", PLAIN,
        all_of(remove(METADATA), on(META, lambda _: b"version=0\nbroker.id=1\n")),
        [("partition-metadata/not-written", ".", None)]),
    Row("no partition.metadata on the way from ZooKeeper to KRaft", PLAIN,
        all_of(remove(METADATA), on(META, lambda _: MOVED)),
        [("partition-metadata/missing", ".", None)]),
    Row("no partition.metadata beside a metadata log", "clean codec-none-0 __cluster_metadata-0",
        all_of(remove(METADATA), on(META, lambda _: b"version=0\nbroker.id=1\ncluster.id=c\n")),
        [("partition-metadata/missing", ".", None)]),
    Row("no partition.metadata and no meta.properties", "clean codec-none-0 codec-none-1",
        all_of(remove(METADATA), lambda home: (home / META).unlink()),
        [("partition-metadata/missing", ".", None)]),
    Row("a partition.metadata of 0 bytes", PLAIN, on(METADATA, cut, 0),
        [("partition-metadata/malformed", METADATA, 0),
         ("partition-metadata/malformed", METADATA, 0)]),
    Row("a partition.metadata cut", PLAIN, on(METADATA, cut, 20),
        [("partition-metadata/malformed", METADATA, line(2))]),
    Row("a partition.metadata of version -1", PLAIN,
        on(METADATA, lambda d: d.replace(b": 0", b": -1")),
        [("partition-metadata/version", METADATA, 0)]),
    Row("the topic id zero", PLAIN,
        on(METADATA, lambda d: d[:-22] + b"A" * 22),
        [("partition-metadata/zero-id", METADATA, line(2))]),
    Row("another key", PLAIN, on(METADATA, lambda d: d.replace(b"topic_id", b"topic-id")),
        [("partition-metadata/key", METADATA, line(2))]),
    Row("another topic id", "clean codec-none-0 codec-none-1",
        on(METADATA, lambda d: d[:-22] + UUID.encode()),
        [("partition-metadata/topic-id", "codec-none-1/partition.metadata", None)]),
]  # fmt: skip

NONE = "codec-none"


def without_cluster(data: bytes) -> bytes:
    return re.sub(rb"cluster.id=.*\n", b"", data)


WITHOUT_CLUSTER = At(lambda path: len(without_cluster(path.read_bytes())))


def key(name: str) -> At:
    """Return where a key stands in meta.properties."""
    return At(lambda path: path.read_bytes().index(f"\n{name}=".encode()) + 1)


STATE = [
    Row("a recovery point behind the end", PLAIN, offset(RECOVERY, NONE, 361),
        [("checkpoint/recovery-point-beyond-end", RECOVERY, 4)]),
    Row("a recovery point behind the end of a copy that was made while the broker ran", KILLED,
        offset(RECOVERY, NONE, 361), [("checkpoint/recovery-point-ahead", RECOVERY, 4)]),
    Row("a recovery point below the end of a clean log", PLAIN, offset(RECOVERY, NONE, 5),
        [("checkpoint/recovery-point-behind", RECOVERY, 4)]),
    Row("no row of the recovery point", PLAIN, on(RECOVERY, lambda d: b"0\n0\n"),
        [("checkpoint/no-recovery-point", RECOVERY, None)]),
    Row("a high watermark behind the end", PLAIN, offset(WATERMARK, NONE, 10**12),
        [("checkpoint/high-watermark-beyond-end", WATERMARK, 4)]),
    Row("a high watermark behind the end of a copy that was made while the broker ran", KILLED,
        offset(WATERMARK, NONE, 361), [("checkpoint/high-watermark-ahead", WATERMARK, 4)]),
    Row("a high watermark below the start of a clean log", "clean deleted-pending-0",
        offset(WATERMARK, "deleted-pending", 3),
        [("checkpoint/high-watermark-below-start", WATERMARK, 4)]),
    Row("a high watermark below the start after a kill", "killed deleted-pending-0",
        offset(WATERMARK, "deleted-pending", 3),
        [("checkpoint/high-watermark-behind", WATERMARK, 4)]),
    Row("a log start behind the end", PLAIN, offset(START, NONE, 500),
        [("checkpoint/log-start-beyond-end", START, 4)]),
    Row("a cleaner offset behind the end", COMPACTED, offset(CLEANER, "compacted.keys", 10**9),
        [("checkpoint/cleaner-out-of-range", CLEANER, 4)]),
    Row("a cleaner offset below the start", "clean deleted_segments-0",
        offset(CLEANER, "deleted_segments", 3),
        [("checkpoint/cleaner-out-of-range", CLEANER, 4)]),
    Row("a row of a topic with dots and dashes that is gone", PLAIN,
        offset(WATERMARK, "my.topic-with_all-3", 7),
        [("checkpoint/unknown-partition", WATERMARK, SIZE)]),
    Row("a checkpoint of 0 bytes", PLAIN, on(WATERMARK, cut, 0),
        [("checkpoint/empty", WATERMARK, 0)]),
    Row("a recovery checkpoint of 0 bytes", PLAIN, on(RECOVERY, cut, 0),
        [("checkpoint/empty", RECOVERY, 0), ("checkpoint/no-recovery-point", RECOVERY, None)]),
    Row("only a version line", PLAIN, on(WATERMARK, lambda d: b"0\n"),
        [("checkpoint/empty", WATERMARK, 0)]),
    Row("version 3", PLAIN, on(WATERMARK, lambda d: b"3" + d[1:]),
        [("checkpoint/version", WATERMARK, 0)]),
    Row("a count too high in a checkpoint", PLAIN, on(WATERMARK, lambda d: b"0\n7" + d[3:]),
        [("checkpoint/count", WATERMARK, 2)]),
    Row("a count too low in a checkpoint", PLAIN, on(WATERMARK, lambda d: b"0\n0" + d[3:]),
        [("checkpoint/count", WATERMARK, 2)]),
    Row("an empty line more", PLAIN, on(WATERMARK, lambda d: b"0\n2" + d[3:] + b"\n"),
        [("checkpoint/malformed-line", WATERMARK, SIZE)]),
    Row("a checkpoint of NUL bytes", PLAIN, on(WATERMARK, zeros),
        [("checkpoint/version", WATERMARK, 0), ("checkpoint/empty", WATERMARK, 0)]),
    Row("NUL bytes in a row", PLAIN, on(WATERMARK, zero, 6, 4),
        [("checkpoint/unknown-partition", WATERMARK, 4)]),
    Row("a row without offset", PLAIN, on(WATERMARK, lambda d: b"0\n1\ncodec-none 0\n"),
        [("checkpoint/malformed-line", WATERMARK, 4)]),
    Row("a negative offset", PLAIN, offset(WATERMARK, NONE, -7),
        [("checkpoint/negative-offset", WATERMARK, 4)]),
    Row("a negative partition", PLAIN, on(WATERMARK, lambda d: b"0\n2" + d[3:] + b"t -1 5\n"),
        [("checkpoint/negative-partition", WATERMARK, SIZE),
         ("checkpoint/unknown-partition", WATERMARK, SIZE)]),
    Row("a partition twice", PLAIN,
        on(WATERMARK, lambda d: b"0\n2" + d[3:] + b"codec-none 0 3\n"),
        [("checkpoint/duplicate", WATERMARK, SIZE)]),
    Row("a log written after the clean marker", PLAIN,
        lambda home: later(home_of(home, "0.log"), home / CLEAN, 3600),
        [("clean-shutdown/stale", CLEAN, None)]),
    Row("a log written with the clean marker", PLAIN,
        lambda home: later(home_of(home, "0.log"), home / CLEAN, 1), []),
    Row("garbage in the clean marker", PLAIN, on(CLEAN, lambda d: b"yes"),
        [("clean-shutdown/malformed", CLEAN, 0)]),
    Row("a clean marker of 0 bytes", PLAIN, on(CLEAN, cut, 0), []),
    Row("no meta.properties", CONTROLLER, remove(META), [("meta-properties/missing", "..", None)]),
    Row("no cluster id", PLAIN, on(META, without_cluster),
        [("meta-properties/missing-key", META, WITHOUT_CLUSTER)]),
    Row("a node id that is no number", PLAIN, on(META, lambda d: d.replace(b"id=1", b"id=one")),
        [("meta-properties/malformed", META, key("node.id"))]),
    Row("version 9 of meta.properties", PLAIN,
        on(META, lambda d: d.replace(b"version=1", b"version=9")),
        [("meta-properties/version", META, key("version"))]),
    Row("a reserved directory id", PLAIN,
        on(META, lambda d: re.sub(rb"directory.id=.*", b"directory.id=" + b"A" * 22, d)),
        [("meta-properties/reserved-directory-id", META, key("directory.id"))]),
    Row("a meta.properties of 0 bytes", PLAIN, on(META, cut, 0), []),
    Row("quorum-state of 0 bytes", CONTROLLER, on(QUORUM, cut, 0),
        [("quorum-state/malformed", QUORUM, 0)]),
    Row("quorum-state cut", CONTROLLER, on(QUORUM, cut, 20),
        [("quorum-state/malformed", QUORUM, 0)]),
    Row("quorum-state of version 7", CONTROLLER,
        on(QUORUM, lambda d: d.replace(b'"data_version":1', b'"data_version":7')),
        [("quorum-state/version", QUORUM, 0)]),
    Row("a bit of a KRaft snapshot", CONTROLLER, in_batch(1, 70, log="1.checkpoint"),
        [("kraft-snapshot/damaged", "1.checkpoint", batch(1))]),
    Row("a KRaft snapshot without its footer", CONTROLLER,
        in_snapshot(lambda d, t: cut(d, int(t.position[-1]))),
        [("kraft-snapshot/footer", "1.checkpoint", batch(-2))]),
    Row("a KRaft snapshot without its header", CONTROLLER,
        in_snapshot(lambda d, t: d[int(t.size[0]):]),
        [("kraft-snapshot/header", "1.checkpoint", 0),
         ("kraft-snapshot/offsets", "1.checkpoint", 0)]),
    Row("a KRaft snapshot of 0 bytes", CONTROLLER, on("1.checkpoint", cut, 0),
        [("kraft-snapshot/header", "1.checkpoint", 0)]),
    Row("a KRaft snapshot with a batch of another epoch", CONTROLLER,
        on("1.checkpoint", flip, 15, 4), [("kraft-snapshot/epoch", "1.checkpoint", 0)]),
    Row("a KRaft snapshot with a batch missing", CONTROLLER,
        in_snapshot(lambda d, t: drop(d, int(t.position[1]), int(t.size[1]))),
        [("kraft-snapshot/offsets", "1.checkpoint", batch(1))]),
]  # fmt: skip

TWO = "two-log-dirs"
"""The two log dirs of one broker, given together."""

SEVERAL = [
    Row("a partition in two log dirs", TWO,
        lambda home: copied(home / "dir-1/staying.topic-0", home / "dir-2/staying.topic-0"),
        [("data-dir/duplicate-partition", "staying.topic-0", None),
         ("checkpoint/no-recovery-point", "dir-2/recovery-point-offset-checkpoint", None)]),
    Row("another node id in the second log dir", TWO,
        on("dir-2/meta.properties", lambda d: d.replace(b"node.id=1", b"node.id=2")),
        [("meta-properties/mismatch", "dir-2/meta.properties", None)]),
    Row("another cluster id in the second log dir", TWO,
        on("dir-2/meta.properties", lambda d: re.sub(rb"cluster.id=.*", b"cluster.id=other", d)),
        [("meta-properties/mismatch", "dir-2/meta.properties", None)]),
    Row("one directory id in two log dirs", TWO,
        lambda home: shutil.copy(home / "dir-1/meta.properties", home / "dir-2/meta.properties"),
        [("meta-properties/duplicate-id", "dir-2/meta.properties", None)]),
    Row("another topic id in the second log dir", TWO,
        on("dir-2/staying.topic-1/partition.metadata", lambda d: d[:-22] + UUID.encode()),
        [("partition-metadata/topic-id", "dir-2/staying.topic-1/partition.metadata", None)]),
]  # fmt: skip

TABLE = [
    *BATCHES, *TAILS, *CHAIN, *INDEXES, *TRANSACTIONS, *SNAPSHOTS, *LEADER_EPOCHS, *NAMES, *STATE,
    *SEVERAL,
]  # fmt: skip


def place(home: Path, wanted: Expected | tuple[()]) -> Counter[tuple[str, str, int | None]]:
    """Return the expected findings with the names and positions they have in `home`."""
    found: Counter[tuple[str, str, int | None]] = Counter()
    for code, name, position in wanted:
        if name in (".", ".."):
            path = own(home) if name == "." else home
        else:
            path = home / name if "/" in name else home_of(home, name)
        at = position.resolve(path) if isinstance(position, At) else position
        found[code, path.name, at] += 1
    return found


NOT_IN_THE_TABLE = {
    "data-dir/in-use", "partition/changed",
    "host/open-files", "host/maps", "host/maps-when-read", "host/producer-memory",
    "transaction-state/abandoned", "transaction-state/damaged", "transaction-state/newer",
    "transaction-state/outcome", "transaction-state/record",
    "transaction-state/marker-refused", "transaction-state/marker-repeated",
    "group/offset-below-start", "group/offset-beyond-end", "group/other-topic-id",
    "group/unreadable-record", "group/missing-records", "group/refused-record",
    "metadata/ends-early",
    "batch/header-crc", "batch/type", "log/cannot-recover", "segment/term-order",
    "base-index/unreadable", "base-index/order", "base-index/not-a-batch", "base-index/max-offset",
    "base-index/wrapped", "log/given-up-room", "partition/snapshot",
}  # fmt: skip
"""Codes for what happens during a run (see test_verify_inputs), of hosts, not of log dirs (see
test_host_limits), of `logtool txns` (see test_joining), of groups (see test_groups), of
`logtool metadata` (see test_metadata) and of Redpanda (see test_verify_redpanda)."""


@dataclass(frozen=True)
class Gap:
    """Damage that verify cannot see, and why."""

    id: str
    home: str
    damage: Damage
    reason: str


KNOWN_GAPS = [
    Gap("leader epoch of a batch -1", PLAIN, header(3, crc=False, leader_epoch=-1),
        "no CRC covers it, and batches of old releases have none"),
    Gap("a record changed and its CRC made right", PLAIN,
        with_sound_crc(3, lambda data, end: flip(data, end - 4, 0x20)),
        "nothing else knows what the record was"),
    Gap("a batch of a compacted log cut out where no index entry lies behind it", COMPACTED,
        with_batches(lambda d, t: drop(d, int(t.position[5]), int(t.size[5])), "3.log"),
        "compaction leaves the same"),
    Gap("the last batch cut off, and no checkpoint has the partition", "default-settings plain-0",
        with_batches(lambda d, t: cut(d, int(t.position[-1]))),
        "nothing tells that there was more"),
    Gap("the first segment removed", SMALL, segment_files(0, ".timeindex", ".index", ".log"),
        "retention does the same"),
    Gap("segments removed that the cleaner has been to, the snapshots left", CLEANED,
        all_of(segment_files(5, ".timeindex", ".index", ".log"),
               segment_files(4, ".timeindex", ".index", ".log")),
        "it empties whole segments, and leaves the snapshot of a stop inside them"),
    Gap("index entries missing at the end", DENSE, on("0.index", cut, 200),
        "how dense an index is depends on a setting; lookups read more of the log"),
    Gap("index entries missing in the middle", DENSE, on("0.index", drop, 80, 400),
        "how dense an index is depends on a setting"),
    Gap("time entries missing in the middle", DENSE, on("0.timeindex", drop, 120, 600),
        "how dense an index is depends on a setting; only the closing entry must be there"),
    Gap("the active time index emptied", PLAIN, on("0.timeindex", cut, 0),
        "an active segment need not have a closing entry"),
    Gap("the last stable offset of an aborted transaction changed", TXNS,
        entry("1.txnindex", 0, last_stable_offset=lambda n: n - 3),
        "recovery computes others than appends do"),
    Gap("a snapshot removed", TXNS, remove("1.snapshot"), "a broker removes old ones itself"),
    Gap("a producer that the log does not know", TXNS,
        producers("1.snapshot", lambda rows: one_more(rows, producer_id=999)),
        "its batches may have been deleted by retention"),
    Gap("the timestamp of a producer", TXNS, producer("1.snapshot", 0, timestamp=5),
        "only expiration uses it, and releases differ in what they put there"),
    Gap("the coordinator epoch of a producer", TXNS, producer("1.snapshot", 0, coordinator_epoch=5),
        "markers emptied by compaction no longer tell it"),
    Gap("a high watermark too low", PLAIN, offset(WATERMARK, "codec-none", 5),
        "a broker writes it every few seconds; it catches up"),
    Gap("a recovery point too low after a kill", KILLED, offset(RECOVERY, "codec-none", 5),
        "a broker writes it every minute; recovery only takes longer"),
    Gap("a recovery point too high, but in the log", "killed codec-none-0",
        offset(RECOVERY, "codec-none", 360), "what was flushed is nowhere else"),
    Gap("a log start in the log", PLAIN, offset(START, "codec-none", 300),
        "DeleteRecords does the same"),
    Gap("the topic id of a topic with one partition", "clean codec-gzip-0",
        on(METADATA, lambda d: d[:-22] + UUID.encode()),
        "only the metadata log knows the right one"),
    Gap("a row of an epoch without data dropped", "clean deleted-records.mid-0",
        epochs(lambda rows: rows[:1]), "the epoch left no batch"),
    Gap("the epochs cut at the end of the log after a kill", KILLED,
        epochs(lambda rows: [(rows[-1][0], 360)]),
        "deleting all records does the same"),
    Gap("the first epoch row dropped after a kill", KILLED,
        epochs(lambda rows: rows[1:]),
        "deleting records cuts the file first and writes the log start later"),
]  # fmt: skip


@pytest.fixture
def log_dir(scenario, tmp_path) -> Callable[[str], Path]:
    def made(text: str) -> Path:
        name, *partitions = text.split()
        source, target = scenario(f"{VERSION}/{name}"), tmp_path / "log-dir"
        if not partitions:
            return copied(source, target)
        return small_log_dir(source, target, *partitions)

    return made


@pytest.fixture(scope="module")
def sound_places() -> Callable[[str, Path], Counter[Place]]:
    """Return a function: what is told of a log dir before damage, looked at once for all rows."""
    known: dict[str, Counter[Place]] = {}

    def places_of(text: str, home: Path) -> Counter[Place]:
        if text not in known:
            sound = verify(*log_dirs(home))
            assert not sound.above_info()
            known[text] = sound.places
        return known[text]

    return places_of


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.id)
def test_damage_is_told_for_what_it_is(row, log_dir, sound_places, monkeypatch):
    home = log_dir(row.home)
    sound = sound_places(row.home, home)
    expected, gone = place(home, row.expected), place(home, row.gone)
    row.damage(home)
    before = fingerprint(home)
    outcome = verify(*log_dirs(home))
    story = "\n".join(map(told, outcome.findings))
    assert outcome.places - sound == expected, story
    assert sound - outcome.places == gone, story
    assert row.says in story
    assert not outcome.unreadable
    assert fingerprint(home) == before
    flat = verify(*log_dirs(home), level=Level.BATCHES)
    shallow, deep = flat.places, outcome.places
    assert {key: n for key, n in deep.items() if key[0] not in DEEP} == shallow
    monkeypatch.setattr(schedule, "WORTH_A_POOL", 0)
    monkeypatch.setattr(segment_ranges, "PIECE_BYTES", 4096)
    for whole, level in ((outcome, Level.RECORDS), (flat, Level.BATCHES)):
        in_pieces = verify(*log_dirs(home), level=level, budget=Budget(jobs=2))
        assert in_pieces.findings == whole.findings
    verify(*log_dirs(home), level=Level.QUICK)


@pytest.mark.parametrize("gap", KNOWN_GAPS, ids=lambda gap: gap.id)
def test_some_damage_leaves_no_trace(gap, log_dir):
    home = log_dir(gap.home)
    sound = verify(home).places
    gap.damage(home)
    outcome = verify(home)
    assert outcome.places == sound, f"now it can be seen, although {gap.reason}"


def test_the_table_has_every_code_of_the_catalogue():
    shown = {code for row in TABLE for code, _, _ in row.expected}
    assert shown | NOT_IN_THE_TABLE == set(catalogue())
    assert not shown & NOT_IN_THE_TABLE


def test_every_row_and_gap_has_a_name_of_its_own():
    names = Counter([row.id for row in TABLE] + [gap.id for gap in KNOWN_GAPS])
    assert not [name for name, count in names.items() if count > 1]


@pytest.mark.parametrize("number", [0, 3, 15, 27])
@pytest.mark.parametrize(
    "damage",
    [
        lambda n: in_batch(n, 70),
        lambda n: header(n, crc=False, batch_length=0),
        lambda n: header(n, crc=False, batch_length=10**9),
        lambda n: header(n, crc=False, magic=77),
        lambda n: with_batches(lambda d, t: zero(d, int(t.position[n]), int(t.size[n]))),
    ],
    ids=["bit", "no size", "huge size", "magic", "zeros"],
)
def test_what_is_sound_behind_damage_is_counted(damage, number, log_dir):
    home = log_dir(PLAIN)
    log = home_of(home, "0.log")
    table = batches(log)
    damage(number)(home)
    behind_it = table[number + 1 :]
    (finding,) = (f for f in verify(home).findings if f.path == log)
    follow = "sound batch that follows" if len(behind_it) == 1 else "sound batches that follow"
    assert (
        f"recovery would also cut off {len(behind_it)} {follow} in this segment "
        f"({behind_it.record_count.sum()} records, {wording.size(behind_it.size.sum())})"
    ) in finding.message
    assert finding.position == table.position[number]
    assert finding.length == table.size[number]
    assert finding.first_offset == table.base_offset[number]
    assert finding.last_offset == table.last_offset[number]
    assert (finding.topic, finding.partition) == ("codec-none", 0)
    assert finding.segment == 0
    first, last = finding.first_offset, finding.last_offset
    assert finding.next == f"logtool dump {log} --offset {first}..{last}"


def test_each_damaged_place_counts_what_follows_it(log_dir):
    home = log_dir(PLAIN)
    log = home_of(home, "0.log")
    table = batches(log)
    all_of(in_batch(20, 70), in_batch(9, 70))(home)
    first, second = (f for f in verify(home).findings if f.path == log)
    assert f"cut off {len(table) - 11} sound batches that follow" in first.message
    assert f"cut off {len(table) - 21} sound batches that follow" in second.message


def test_what_follows_is_counted_once_for_all_damaged_places(tmp_path, monkeypatch):
    """Else a log with a bad byte between all batches would take the square of their number."""
    log, count, asked = tmp_path / f"{0:020d}.log", 60, []
    payload = record.encode([record.Record(0, 0, b"key", b"value")])
    log.write_bytes(b"".join(
        record_batch.encode(
            payload, base_offset=at, last_offset_delta=0, record_count=1, max_timestamp=1
        ) + b"\xff"
        for at in range(count)
    ))  # fmt: skip
    records = vars(BatchTable)["records"].fget
    monkeypatch.setattr(
        BatchTable, "records", property(lambda table: asked.append(1) or records(table))
    )
    findings = [f for f in verify(log, level=Level.BATCHES).findings if f.position]
    assert len(findings) == count
    for number, finding in enumerate(findings[:-2]):
        left = count - 1 - number
        assert f"cut off {left} sound batches that follow in this segment ({left} records" in (
            finding.message
        )
        assert (finding.first_offset, finding.last_offset) == (number + 1, number)
    assert len(asked) <= 4 * count


def test_damage_to_one_partition_is_not_laid_on_another(log_dir):
    home = log_dir("clean codec-none-0 codec-none-1 codec-none-2 small-segments-0")
    sound = verify(home).places
    in_batch(3, 70)(home)
    outcome = verify(home)
    assert {f.path for f in outcome.findings} == {home_of(home, "0.log")}
    assert outcome.summary.partitions == 4
    assert outcome.exit_status == 1
    assert not sound


def test_a_summary_counts_and_names_the_next_commands(log_dir):
    home = log_dir(PLAIN)
    in_batch(3, 70)(home)
    offset(WATERMARK, "codec-none", 10**12)(home)
    summary = SUMMARY.row(verify(home).summary)
    assert summary["findings"] == {"error": 2, "warning": 0, "info": 0}
    assert summary["codes"] == {"batch/crc": 1, "checkpoint/high-watermark-beyond-end": 1}
    assert summary["complete"] is True
    assert summary["batches"] == len(batches(home_of(home, "0.log")))
    log, checkpoint = home_of(home, "0.log"), home / WATERMARK
    assert summary["next"] == [f"logtool dump {log} --offset 10..39", f"logtool dump {checkpoint}"]
