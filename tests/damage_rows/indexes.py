"""Rows of the table: offset, time and transaction indexes, and producer snapshots."""

from collections.abc import Callable
from typing import Any

import numpy as np
from damage import cut, drop, flip, overwrite, repeat, zero
from damage_rows.rows import (
    DENSE,
    INTERLEAVED,
    KILLED,
    PLAIN,
    RECOVERY,
    SMALL,
    TXNS,
    Row,
    one_more,
    with_sound_crc,
    zeros,
)
from log_dir_damage import (
    SIZE,
    At,
    Damage,
    behind,
    create,
    entries,
    entry,
    marker,
    new_batch,
    on,
    producer,
    producers,
    remove,
    row_of,
    segment_files,
)


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


def swap_fields(rows: np.ndarray, name: str, first: int, second: int) -> None:
    rows[name][[first, second]] = rows[name][[second, first]]


def one_for_two(rows: np.ndarray, number: int) -> np.ndarray:
    """Return the index of a follower that fetched the batches of two entries at once."""
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
        [("offset-index/padding", "0.index", 0)]),
    Row("an offset index of zeros, base above 0", SMALL, on("4.index", lambda d: bytes(8192)),
        [("offset-index/padding", "4.index", 0)]),
    Row("a time index of zeros", DENSE, on("0.timeindex", zeros),
        [("time-index/padding", "0.timeindex", 0), ("time-index/incomplete", "0.timeindex", None)]),
    Row("an active time index of zeros", PLAIN, on("0.timeindex", zeros),
        [("time-index/padding", "0.timeindex", 0)]),
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
    # Compaction leaves such empty batches. No consumer needs the entry of an empty transaction.
    Row("no entry for an aborted transaction of empty batches", TXNS, behind(aborted_without()),
        [("checkpoint/recovery-point-behind", RECOVERY, row_of("tx.mixed")),
         ("producer-snapshot/absent", "tx.mixed-0", None)]),
    Row("no entry for an aborted transaction of a record", TXNS, behind(aborted_without(b"value")),
        [("checkpoint/recovery-point-behind", RECOVERY, row_of("tx.mixed")),
         ("producer-snapshot/absent", "tx.mixed-0", None),
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
