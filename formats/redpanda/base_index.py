"""Redpanda's index of a segment (``<base offset>-<term>-v1.base_index``), little-endian.

The form of today, versions 4 to 9: an envelope, a blob and its CRC.

================================  ================  ==========================================
version                           uint8             9
compat_version                    uint8             4
size                              uint32            bytes that follow
blob_size                         uint32
blob                                                see below
crc                               uint32            CRC-32C of the blob
--------------------------------  ----------------  ------------------------------------------
bitflags                          uint32
base_offset                       int64             to which offsets are relative
max_offset                        int64             last offset of the last batch
base_timestamp                    int64             milliseconds
max_timestamp                     int64             milliseconds
relative_offset_index             uint32 n, uint32  the base offset of a batch
relative_time_index               uint32 n, uint32
position_index                    uint32 n, uint64  where in the segment the batch begins
batch_timestamps_are_monotonic    int8              from version 5 on, as the next two
with_offset                       int8              times have 2147483648 added to them
non_data_timestamps               int8
broker_timestamp                  optional int64    from version 6 on
num_compactible_records_appended  optional uint64   from version 7 on
clean_compact_timestamp           optional int64    from version 8 on
may_have_tombstone_records        int8              from version 9 on
================================  ================  ==========================================

An optional value is a byte that is 1 and the value, or a byte that is 0. The form before, version
3, is not in an envelope:

================================  ================  ==========================================
version                           uint8             3
size                              uint32            bytes that follow
checksum                          uint64            XXH64 (seed 0) of all that follows it
bitflags ... max_timestamp                          as above
n                                 uint32
the three indexes                                   as above, without a count of their own
================================  ================  ==========================================

Versions 0 to 2 are refused, and the index is rebuilt. Compaction of some releases writes a base
offset of 0 and offsets modulo 2^32: `offsets` undoes that. Source: ``storage/index_state.cc``,
``storage/index_state_serde_compat.h``, ``storage/segment_index.cc`` (Redpanda 1c6cff34ea,
2024-12-20).
"""

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logtool.formats.crc import crc32c
from logtool.formats.redpanda._reader import (
    INT8,
    INT64,
    UINT8,
    UINT32,
    UINT64,
    Reader,
    TooShortError,
)
from logtool.formats.redpanda._xxhash64 import xxhash64
from logtool.lazy_dataclass import dataclass

VERSION, OLDEST_VERSION, LEGACY_VERSION = 9, 4, 3
TIME_OFFSET = 2**31
"""Milliseconds that are added to each relative time where ``with_offset`` is set."""

_ENVELOPE = struct.Struct("<BBI")
_LEGACY = struct.Struct("<BIQ")
_HEAD = struct.Struct("<Iqqqq")
_RANGE = 2**32


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Entries:
    """The three indexes, each as the file has it; they should be of one length."""

    relative_offset: NDArray[np.uint32]
    relative_time: NDArray[np.uint32]
    """Milliseconds after the base timestamp; see ``with_offset``."""
    position: NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """Fields behind the indexes, as stored; None if the version has no such field."""

    batch_timestamps_are_monotonic: int | None = None
    with_offset: int | None = None
    non_data_timestamps: int | None = None
    has_broker_timestamp: int | None = None
    broker_timestamp: int | None = None
    has_num_compactible_records_appended: int | None = None
    num_compactible_records_appended: int | None = None
    has_clean_compact_timestamp: int | None = None
    clean_compact_timestamp: int | None = None
    may_have_tombstone_records: int | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class BaseIndex:
    """One index that can be read."""

    version: int
    compat_version: int | None
    """None in version 3."""
    size: int
    """Size as stored."""
    checksum: int
    """Checksum as stored: CRC-32C, XXH64 in version 3."""
    checksum_holds: bool
    bitflags: int
    base_offset: int
    max_offset: int
    base_timestamp: int
    max_timestamp: int
    entries: Entries
    flags: Flags
    unread: bytes
    """Bytes of the blob behind the fields of its version."""
    trailing: bytes
    """Bytes of the file behind the index."""

    def __len__(self) -> int:
        """Return how many entries all three indexes have."""
        entries = self.entries
        return min(len(entries.relative_offset), len(entries.relative_time), len(entries.position))


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that no broker takes for an index: it rebuilds it."""

    data: bytes
    version: int | None
    """The first byte; None for an empty file."""


def parse(data: bytes) -> BaseIndex | Unreadable:
    """Read an index of any version. Never fails."""
    version = data[0] if data else None
    try:
        if version == LEGACY_VERSION:
            return _parse_legacy(data)
        if version is not None and version >= OLDEST_VERSION:
            return _parse_envelope(data)
    except TooShortError:
        pass
    return Unreadable(data, version)


def encode(index: BaseIndex | Unreadable) -> bytes:
    """Return the bytes `parse` was given; the two are exact inverses."""
    if isinstance(index, Unreadable):
        return index.data
    if index.compat_version is None:
        front = _LEGACY.pack(index.version, index.size, index.checksum)
        return front + _legacy_body(index) + index.unread + index.trailing
    blob = _blob(index) + index.unread
    front = _ENVELOPE.pack(index.version, index.compat_version, index.size)
    return front + UINT32.pack(len(blob)) + blob + UINT32.pack(index.checksum) + index.trailing


def build(
    entries: Entries,
    *,
    base_offset: int,
    max_offset: int,
    base_timestamp: int,
    max_timestamp: int,
    flags: Flags | None = None,
) -> BaseIndex:
    """Return an index of version 9 with its CRC; without `flags` one as an empty broker begins."""
    flags = flags or Flags(
        batch_timestamps_are_monotonic=1,
        with_offset=1,
        non_data_timestamps=0,
        has_broker_timestamp=0,
        has_num_compactible_records_appended=1,
        num_compactible_records_appended=0,
        has_clean_compact_timestamp=0,
        may_have_tombstone_records=1,
    )
    index = BaseIndex(
        version=VERSION,
        compat_version=OLDEST_VERSION,
        size=0,
        checksum=0,
        checksum_holds=True,
        bitflags=0,
        base_offset=base_offset,
        max_offset=max_offset,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        entries=entries,
        flags=flags,
        unread=b"",
        trailing=b"",
    )
    blob = _blob(index)
    raw = _ENVELOPE.pack(VERSION, OLDEST_VERSION, len(blob) + 2 * UINT32.size)
    built = parse(raw + UINT32.pack(len(blob)) + blob + UINT32.pack(crc32c(blob)))
    if isinstance(built, Unreadable):
        raise ValueError("these flags are not flags of version 9")
    return built


def offsets(index: BaseIndex, *, segment_base: int, next_base: int | None = None) -> list[int]:
    """Return the base offset of the batch of each entry; the last segment has no `next_base`.

    An index with base offset 0 whose segment begins elsewhere has offsets modulo 2^32. Each stands
    for the first offset with that remainder in ``[segment_base, next_base)``. If there is no such
    offset, the stored one is returned.
    """
    relative = index.entries.relative_offset.tolist()
    if index.base_offset or not segment_base:
        return [_int64(index.base_offset + offset) for offset in relative]
    stop = 2**63 if next_base is None else next_base
    meant = [segment_base + (offset - segment_base) % _RANGE for offset in relative]
    return [m if m < stop else offset for m, offset in zip(meant, relative, strict=True)]


def timestamps(index: BaseIndex) -> list[int]:
    """Return the time of each entry in milliseconds."""
    added = TIME_OFFSET if index.flags.with_offset else 0
    relative = index.entries.relative_time.tolist()
    return [_int64(index.base_timestamp + time - added) for time in relative]


def _int64(value: int) -> int:
    """Return a sum as an int64 holds it: beyond the largest it goes on with the smallest."""
    return (value + 2**63) % 2**64 - 2**63


def size_of(index: BaseIndex) -> int:
    """Return the bytes that follow the size field up to the end of the index."""
    front = _LEGACY.size - UINT64.size if index.compat_version is None else _ENVELOPE.size
    return len(encode(index)) - len(index.trailing) - front


def entry_position(index: BaseIndex, number: int) -> int:
    """Return the byte in the file where the relative offset of an entry stands."""
    front = _LEGACY.size if index.compat_version is None else _ENVELOPE.size + UINT32.size
    return front + _HEAD.size + UINT32.size + number * UINT32.size


def _parse_envelope(data: bytes) -> BaseIndex:
    reader = Reader(data)
    version, compat_version, size = reader.numbers(_ENVELOPE)
    blob = reader.take(reader.number(UINT32))
    checksum = reader.number(UINT32)
    trailing = reader.rest()
    reader = Reader(blob)
    bitflags, *head = reader.numbers(_HEAD)
    entries = Entries(
        relative_offset=_column(reader, reader.number(UINT32), np.dtype("<u4")),
        relative_time=_column(reader, reader.number(UINT32), np.dtype("<u4")),
        position=_column(reader, reader.number(UINT32), np.dtype("<u8")),
    )
    flags = _parse_flags(reader, version)
    return BaseIndex(
        version=version,
        compat_version=compat_version,
        size=size,
        checksum=checksum,
        checksum_holds=checksum == crc32c(blob),
        bitflags=bitflags,
        base_offset=head[0],
        max_offset=head[1],
        base_timestamp=head[2],
        max_timestamp=head[3],
        entries=entries,
        flags=flags,
        unread=reader.rest(),
        trailing=trailing,
    )


def _parse_legacy(data: bytes) -> BaseIndex:
    reader = Reader(data)
    version, size, checksum = reader.numbers(_LEGACY)
    body = reader.take(size - UINT64.size)
    trailing = reader.rest()
    reader = Reader(body)
    bitflags, *head = reader.numbers(_HEAD)
    count = reader.number(UINT32)
    entries = Entries(
        relative_offset=_column(reader, count, np.dtype("<u4")),
        relative_time=_column(reader, count, np.dtype("<u4")),
        position=_column(reader, count, np.dtype("<u8")),
    )
    return BaseIndex(
        version=version,
        compat_version=None,
        size=size,
        checksum=checksum,
        checksum_holds=checksum == xxhash64(body),
        bitflags=bitflags,
        base_offset=head[0],
        max_offset=head[1],
        base_timestamp=head[2],
        max_timestamp=head[3],
        entries=entries,
        flags=Flags(),
        unread=reader.rest(),
        trailing=trailing,
    )


def _parse_flags(reader: Reader, version: int) -> Flags:
    values: dict[str, int] = {}
    for name, since, layout in _FLAGS:
        if version < since:
            break
        if layout is None:
            values[name] = reader.number(INT8)
            continue
        values[f"has_{name}"] = reader.number(UINT8)
        if values[f"has_{name}"] == 1:
            values[name] = reader.number(layout)
    return Flags(**values)


def _column(reader: Reader, count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    return np.frombuffer(reader.take(count * dtype.itemsize), dtype)


def _head(index: BaseIndex) -> bytes:
    return _HEAD.pack(
        index.bitflags,
        index.base_offset,
        index.max_offset,
        index.base_timestamp,
        index.max_timestamp,
    )


def _legacy_body(index: BaseIndex) -> bytes:
    entries = index.entries
    columns = (entries.relative_offset, entries.relative_time, entries.position)
    return (
        _head(index)
        + UINT32.pack(len(entries.position))
        + b"".join(column.tobytes() for column in columns)
    )


def _blob(index: BaseIndex) -> bytes:
    entries = index.entries
    parts = [_head(index)]
    for column in (entries.relative_offset, entries.relative_time, entries.position):
        parts += [UINT32.pack(len(column)), column.tobytes()]
    for name, since, layout in _FLAGS:
        if index.version < since:
            break
        value = getattr(index.flags, name)
        if layout is None:
            parts.append(INT8.pack(value))
            continue
        parts.append(UINT8.pack(getattr(index.flags, f"has_{name}")))
        if value is not None:
            parts.append(layout.pack(value))
    return b"".join(parts)


_FLAGS: tuple[tuple[str, int, struct.Struct | None], ...] = (
    ("batch_timestamps_are_monotonic", 5, None),
    ("with_offset", 5, None),
    ("non_data_timestamps", 5, None),
    ("broker_timestamp", 6, INT64),
    ("num_compactible_records_appended", 7, UINT64),
    ("clean_compact_timestamp", 8, INT64),
    ("may_have_tombstone_records", 9, None),
)
"""Name, first version, and the layout of an optional value; None for a plain byte."""
