"""The table: what was done to a sound log dir on the left, exactly what verify says on the right.

Every row begins with a copy of what a real broker wrote. Expected is the difference to what verify
says of the undamaged copy, so that anything beside the point fails the row, info included.
"""

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from damage import append_to_file, cut, damage_file, drop, flip, overwrite, repeat, zero
from log_dir_damage import (
    MARKER,
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
from verification import batches, fingerprint, log_dirs, rewrite, small_log_dir, told, verify

from logtool.findings import catalogue
from logtool.formats import control_record, record
from logtool.verify import Level

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
COMPACTED = "clean compacted.keys-0"
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
        [("leader-epoch/missing-epoch", EPOCHS, None),
         ("batch/leader-epoch-order", "0.log", batch(4))]),
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
    Row("a segment of a compacted log removed", COMPACTED,
        segment_files(4, ".timeindex", ".index", ".log", ".snapshot"),
        [("segment/gap", "3.log", None)]),
    Row("the first segment removed", SMALL, segment_files(0, ".timeindex", ".index", ".log"), []),
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
    Row("an offset index of 0 bytes", DENSE, on("0.index", cut, 0),
        [("offset-index/incomplete", "0.index", None)]),
    Row("a time index of 0 bytes", SMALL, on("4.timeindex", cut, 0),
        [("time-index/incomplete", "4.timeindex", None)]),
    Row("an active segment's time index of 0 bytes", PLAIN, on("0.timeindex", cut, 0), []),
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

TABLE = [*BATCHES, *TAILS, *CHAIN, *INDEXES]


def place(home: Path, wanted: Expected | tuple[()]) -> Counter[tuple[str, str, int | None]]:
    """Return the expected findings with the names and positions they have in `home`."""
    found: Counter[tuple[str, str, int | None]] = Counter()
    for code, name, position in wanted:
        path = {".": own, "..": Path}[name](home) if name in (".", "..") else home_of(home, name)
        at = position.resolve(path) if isinstance(position, At) else position
        found[code, path.name, at] += 1
    return found


@pytest.fixture
def log_dir(scenario, tmp_path) -> Callable[[str], Path]:
    def made(text: str) -> Path:
        name, *partitions = text.split()
        return small_log_dir(scenario(f"{VERSION}/{name}"), tmp_path / "log-dir", *partitions)

    return made


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.id)
def test_damage_is_told_for_what_it_is(row, log_dir):
    home = log_dir(row.home)
    sound = verify(home)
    assert not sound.above_info()
    expected, gone = place(home, row.expected), place(home, row.gone)
    row.damage(home)
    before = fingerprint(home)
    outcome = verify(home)
    story = "\n".join(map(told, outcome.findings))
    assert outcome.places - sound.places == expected, story
    assert sound.places - outcome.places == gone, story
    assert row.says in story
    assert not outcome.unreadable
    assert fingerprint(home) == before
    shallow, deep = verify(home, level=Level.BATCHES).places, outcome.places
    assert {key: n for key, n in deep.items() if key[0] not in DEEP} == shallow
    verify(home, level=Level.QUICK)
