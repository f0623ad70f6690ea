"""Redpanda's keys of a segment (``<base offset>-<term>-v1.compaction_index``).

Entries, then a footer that is read from its last byte back; little-endian:

==================  ======  =======================================================================
size                uint16  bytes that follow; the CRC covers this field, too
kind                int8    1 key, 2 truncation: the index must be rebuilt
base_offset         varint  of the batch, zig-zag
offset_delta        varint  of the record, zig-zag
key                         up to the end: int8 type of the batch, int8 control, key of the record
------------------  ------  -----------------------------------------------------------------------
size                uint64  bytes of all entries; version 3
keys                uint64  entries; version 3
deprecated_size     uint32  as size, the only one in version 1
deprecated_keys     uint32  as keys, the only one in version 1
flags               uint32  1 truncation, 2 compacted by itself, 4 incomplete
crc                 uint32  CRC-32C of all entries
version             int8    3 or 1; others are refused, and the index is rebuilt
==================  ======  =======================================================================

The entries have no order, and a key may come more than once. Source: ``storage/compacted_index.h``,
``storage/spill_key_index.cc``, ``storage/compacted_index_chunk_reader.cc`` (Redpanda 1c6cff34ea,
2024-12-20).
"""

import struct
from enum import IntFlag

from logtool.formats import _kernels
from logtool.formats.crc import crc32c
from logtool.formats.record import encode_varint
from logtool.formats.redpanda._reader import INT8, UINT16
from logtool.lazy_dataclass import dataclass

KEY, TRUNCATION = 1, 2
LONGEST_KEY = 65515
"""Bytes of a key that an entry holds; what is longer is cut."""
VERSION = 3

_FOOTERS = {1: struct.Struct("<IIIIb"), 3: struct.Struct("<QQIIIIb")}
_LONGEST_VARINT = 10


class Flag(IntFlag):
    """Flags in the footer, for the whole index."""

    TRUNCATION = 1
    SELF_COMPACTION = 2
    INCOMPLETE = 4


@dataclass(frozen=True, slots=True)
class CompactionKey:
    """One entry."""

    kind: int
    base_offset: int
    """Base offset of the batch: a Raft offset."""
    offset_delta: int
    key: bytes
    """The type of the batch, whether it is a control batch, and the key of the record."""

    @property
    def offset(self) -> int:
        """Return the Raft offset of the record."""
        return self.base_offset + self.offset_delta


@dataclass(frozen=True, slots=True, kw_only=True)
class Footer:
    """Footer behind the entries."""

    size: int
    keys: int
    deprecated_size: int | None
    """None in version 1."""
    deprecated_keys: int | None
    flags: Flag
    crc: int
    version: int


@dataclass(frozen=True, slots=True)
class CompactionIndex:
    """One index."""

    body: bytes
    """The bytes of the entries; the whole file where there is no footer."""
    footer: Footer | None
    """None where the last byte is no version that a broker reads, or the file is too short."""

    @property
    def entries(self) -> list[CompactionKey]:
        """Return the entries before the first bytes that are not an entry, at `entries_size`."""
        return _entries(self.body)[0]

    @property
    def entries_size(self) -> int:
        """Return the bytes of `entries`: those of the body where all is well."""
        return _entries(self.body)[1]

    @property
    def crc_holds(self) -> bool:
        """Return whether the CRC of the footer is that of the body."""
        return self.footer is not None and self.footer.crc == crc32c(self.body)


def parse(data: bytes) -> CompactionIndex:
    """Split `data` into entries and footer. Never fails."""
    version = data[-1] if data else 0
    layout = _FOOTERS.get(version)
    if layout is None or len(data) < layout.size:
        return CompactionIndex(data, None)
    fields = layout.unpack_from(data, len(data) - layout.size)
    old = fields[2:4] if version == VERSION else (None, None)
    footer = Footer(
        size=fields[0],
        keys=fields[1],
        deprecated_size=old[0],
        deprecated_keys=old[1],
        flags=Flag(fields[-3]),
        crc=fields[-2],
        version=fields[-1],
    )
    return CompactionIndex(data[: -layout.size], footer)


def encode(index: CompactionIndex) -> bytes:
    """Return the bytes `parse` was given; the two are exact inverses."""
    footer = index.footer
    if footer is None:
        return index.body
    old = () if footer.deprecated_size is None else (footer.deprecated_size, footer.deprecated_keys)
    fields = (footer.size, footer.keys, *old, int(footer.flags), footer.crc, footer.version)
    return index.body + _FOOTERS[footer.version].pack(*fields)


def build(entries: list[CompactionKey], *, flags: int = 0) -> CompactionIndex:
    """Return an index of version 3 of `entries`, whose keys are cut where they are too long."""
    body = b"".join(map(_encoded, entries))
    footer = Footer(
        size=len(body),
        keys=len(entries),
        deprecated_size=len(body) % 2**32,
        deprecated_keys=len(entries) % 2**32,
        flags=Flag(flags),
        crc=crc32c(body),
        version=VERSION,
    )
    return CompactionIndex(body, footer)


def _entries(body: bytes) -> tuple[list[CompactionKey], int]:
    view, entries, at = memoryview(body), [], 0
    while len(body) - at > UINT16.size:
        start = at + UINT16.size
        stop = start + UINT16.unpack_from(body, at)[0]
        if not start < stop <= len(body):
            break
        kind = INT8.unpack_from(body, start)[0]
        base, after = _kernels.decode_varint(view, start + 1, stop, _LONGEST_VARINT)
        if after < 0:
            break
        delta, after = _kernels.decode_varint(view, after, stop, _LONGEST_VARINT)
        if after < 0:
            break
        entries.append(CompactionKey(kind, base, delta, body[after:stop]))
        at = stop
    return entries, at


def _encoded(entry: CompactionKey) -> bytes:
    numbers = INT8.pack(entry.kind) + encode_varint(entry.base_offset)
    numbers += encode_varint(entry.offset_delta)
    content = numbers + entry.key[:LONGEST_KEY]
    return UINT16.pack(len(content)) + content
