"""The producer snapshot (``<end offset>.snapshot``): the state of every idempotent producer.

A header of 10 bytes, then entries of 46 bytes, big-endian:

========================  ======  ==============================================================
version                   int16   1
crc                       uint32  CRC-32C of everything after it, to the end of the file
count                     int32   entries
------------------------  ------  --------------------------------------------------------------
producer_id               int64
producer_epoch            int16
last_sequence             int32   of the last batch; -1 without a batch
last_offset               int64   of the last batch; -1 without a batch
offset_delta              int32   last offset minus first offset of the last batch
timestamp                 int64   milliseconds; of the last batch or the last marker
coordinator_epoch         int32
current_txn_first_offset  int64   -1 if no transaction is open
========================  ======  ==============================================================

The order of the entries has no meaning; a broker writes them in that of its hash table, see
`in_hash_order`. The broker opens the file without cutting it, so a shorter state written
over a longer file leaves a tail, which the CRC then covers. Source:
``ProducerStateManager.readSnapshot``, ``ProducerSnapshot.json`` (Kafka 4.0.0-SNAPSHOT,
1eb7644349c; the same bytes since 0.11).
"""

import struct
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from logtool.findings import Finding
from logtool.formats.crc import crc32c
from logtool.lazy_dataclass import dataclass

VERSION = 1
HEADER = struct.Struct(">hIi")
"""version, crc, count."""
ENTRY = np.dtype(
    [
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("last_sequence", ">i4"),
        ("last_offset", ">i8"),
        ("offset_delta", ">i4"),
        ("timestamp", ">i8"),
        ("coordinator_epoch", ">i4"),
        ("current_txn_first_offset", ">i8"),
    ]
)
ENTRY_SIZE = ENTRY.itemsize

_NATIVE = ENTRY.newbyteorder("=")
_LEAST_BUCKETS = 16
_FULL = 0.75
"""Entries for each bucket at which a hash table grows."""
_VERSION = struct.Struct(">h")
_COUNT = struct.Struct(">i")
_CRC_START = HEADER.size - _COUNT.size


@dataclass(frozen=True, slots=True, eq=False)
class ProducerSnapshot:
    """One producer snapshot; None for header fields if the file is too short for a header."""

    version: int | None
    crc: int | None
    """CRC as stored."""
    count: int | None
    """Number of entries as stored."""
    entries: npt.NDArray[np.void]
    """The whole entries that are there, at most `count`, with the fields of `ENTRY` in native byte
    order, read-only; none when the version is unknown."""
    trailing: bytes
    """Everything after the entries, or the whole file when it is too short for a header."""

    def __len__(self) -> int:
        """Return the number of entries that are there."""
        return len(self.entries)


def parse(data: bytes) -> ProducerSnapshot:
    """Split `data` into header, entries and the rest. Never fails."""
    if len(data) < HEADER.size:
        return ProducerSnapshot(
            version=None, crc=None, count=None, entries=np.empty(0, _NATIVE), trailing=bytes(data)
        )
    version, crc, count = HEADER.unpack_from(data)
    room = (len(data) - HEADER.size) // ENTRY_SIZE
    there = max(0, min(count, room)) if version == VERSION else 0
    entries = np.frombuffer(data, ENTRY, there, HEADER.size).astype(_NATIVE)
    entries.setflags(write=False)
    return ProducerSnapshot(
        version=version,
        crc=crc,
        count=count,
        entries=entries,
        trailing=bytes(data[HEADER.size + there * ENTRY_SIZE :]),
    )


def encode(snapshot: ProducerSnapshot) -> bytes:
    """Return the bytes `parse` was given; the two are exact inverses."""
    version, crc, count = snapshot.version, snapshot.crc, snapshot.count
    if version is None or crc is None or count is None:
        return snapshot.trailing
    return HEADER.pack(version, crc, count) + _body(snapshot) + snapshot.trailing


def check(snapshot: ProducerSnapshot, *, end_offset: int | None = None) -> Iterator[Finding]:
    """Yield every broken rule, in file order; `end_offset` is the number in the file's name.

    The CRC is judged only where the counted entries are all there: a broker too fails on the
    missing ones first.
    """
    if snapshot.version is None or snapshot.count is None:
        yield from _check_short(snapshot)
        return
    if snapshot.version != VERSION:
        yield _finding(
            "version", f"expected version {VERSION}, found {snapshot.version}", 0, _VERSION.size
        )
        return
    if snapshot.count != len(snapshot):
        yield _finding(
            "count",
            f"expected {len(snapshot)} entries, as the file has bytes for them, found a "
            f"count of {snapshot.count}",
            _CRC_START,
            _COUNT.size,
        )
    else:
        yield from _check_crc(snapshot)
    yield from _check_entries(snapshot, end_offset)


def build(entries: npt.NDArray[np.void]) -> ProducerSnapshot:
    """Return a valid snapshot of `entries`, an array with the fields of `ENTRY`."""
    native = entries.astype(_NATIVE)
    native.setflags(write=False)
    crc = crc32c(_COUNT.pack(len(native)) + native.astype(ENTRY).tobytes())
    return ProducerSnapshot(
        version=VERSION, crc=crc, count=len(native), entries=native, trailing=b""
    )


def in_hash_order(producer_ids: Sequence[int], most: int, *, scala: bool) -> list[int]:
    """Return producer ids in the order in which a broker writes them.

    They are given in the order in which the broker met them; `most` is the largest number of them
    that its table has held, as the table never shrinks. Since Kafka 3.5 it is a
    ``java.util.HashMap``: by bucket, then in the given order. Before, it was the mutable
    ``HashMap`` of `scala` 2.13: by bucket, then by hash. A bucket of more than eight entries, which
    a ``java.util.HashMap`` turns into a tree, is not modelled.
    """
    buckets = _LEAST_BUCKETS
    while most >= buckets * _FULL + (0 if scala else 1):
        buckets *= 2
    if not scala:
        return sorted(producer_ids, key=lambda one: _hash(one) & buckets - 1)
    return sorted(producer_ids, key=lambda one: (_hash(one) & buckets - 1, _signed(_hash(one))))


def _hash(number: int) -> int:
    """Return the hash of a long, spread as the hash tables of Java and Scala spread it."""
    number &= 2**64 - 1
    folded = (number ^ number >> 32) & 2**32 - 1
    return folded ^ folded >> 16


def _signed(number: int) -> int:
    return number - 2**32 if number >= 2**31 else number


def _body(snapshot: ProducerSnapshot) -> bytes:
    return snapshot.entries.astype(ENTRY).tobytes()


def _check_short(snapshot: ProducerSnapshot) -> Iterator[Finding]:
    size = len(snapshot.trailing)
    if size == 0:
        yield Finding(
            "producer-snapshot/empty-file",
            f"expected at least {HEADER.size} bytes, found an empty file",
            position=0,
            length=0,
        )
    else:
        yield _finding("length", f"expected at least {HEADER.size} bytes, found {size}", 0, size)


def _check_crc(snapshot: ProducerSnapshot) -> Iterator[Finding]:
    without_tail = crc32c(_COUNT.pack(len(snapshot)) + _body(snapshot))
    actual = crc32c(snapshot.trailing, without_tail)
    tail = len(snapshot.trailing)
    if tail:
        fits = "only without them" if snapshot.crc == without_tail else "with them"
        fits = fits if snapshot.crc in (without_tail, actual) else "neither with nor without them"
        yield _finding(
            "length",
            f"expected the file to end after {snapshot.count} entries, found {tail} more bytes "
            f"(the CRC fits {fits})",
            HEADER.size + len(snapshot) * ENTRY_SIZE,
            tail,
        )
    if snapshot.crc not in (without_tail, actual):
        yield _finding(
            "crc",
            f"expected CRC {actual:08x}, that of the bytes after it, found {snapshot.crc:08x}",
            _VERSION.size,
            _CRC_START - _VERSION.size,
        )


def _check_entries(snapshot: ProducerSnapshot, end_offset: int | None) -> Iterator[Finding]:
    entries = snapshot.entries
    seen: dict[int, int] = {}
    for number, producer_id in enumerate(entries["producer_id"].tolist()):
        position = HEADER.size + number * ENTRY_SIZE
        if producer_id in seen:
            yield _finding(
                "duplicate",
                f"entry {number}: expected each producer once, found producer id {producer_id} "
                f"of entry {seen[producer_id]} again",
                position,
                ENTRY_SIZE,
            )
        seen[producer_id] = number
    if end_offset is None:
        return
    for field in ("last_offset", "current_txn_first_offset"):
        for number in np.flatnonzero(entries[field] >= end_offset).tolist():
            yield _finding(
                "offset-range",
                f"entry {number}: expected a {field} below the end offset {end_offset} of the "
                f"file name, found {entries[field][number]}",
                HEADER.size + number * ENTRY_SIZE,
                ENTRY_SIZE,
            )


def _finding(rule: str, message: str, position: int, length: int) -> Finding:
    return Finding(f"producer-snapshot/{rule}", message, position=position, length=length)
