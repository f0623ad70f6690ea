"""Objects in a bucket of AutoMQ as entries: index blocks, the records of streams, and owners.

Blocks are read one by one, so that an object of any size needs little memory.
"""

import os
import stat
from collections.abc import Iterator
from itertools import chain
from mmap import ACCESS_READ, mmap
from pathlib import Path
from struct import Struct

import numpy as np
from numpy.typing import NDArray

from logtool.checks.automq import object_findings
from logtool.disk import files
from logtool.dump.records import Object
from logtool.dump.state import FileEntries
from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.formats.automq import (
    block_wal,
    composite_object,
    data_object,
    names,
    range_index,
    reservation,
    wal_object,
)
from logtool.formats.automq.data_object import FOOTER
from logtool.formats.automq.names import ObjectKind, ObjectName
from logtool.formats.automq.stream_record import StreamRecords
from logtool.log.automq_bucket import StoredObject, open_all

_MAGIC = Struct(">I")
_DEPTHS = (3, 6)
"""Parts of a key: of a WAL object more than of the others."""
Entries = Iterator[Object]


def objects_at(path: Path) -> list[StoredObject]:
    """Return the object that a path names, or all objects of a bucket, by key; UnreadableError."""
    if files.leads_to_dir(path):
        found = [
            one
            for bucket in open_all(path)
            for one in (*bucket.objects.values(), *bucket.others, *sum(bucket.wals.values(), ()))
        ]
        return sorted(found, key=lambda one: one.name.key)
    parts = str(path).split("/")
    for depth in _DEPTHS:
        name = names.parse("/".join(parts[-depth:]))
        if name.kind is not ObjectKind.UNKNOWN:
            return [StoredObject(path, name, files.size_at(path))]
    if not files.is_remote(path) and _starts_block_wal(path):
        name = ObjectName(key=str(path), kind=ObjectKind.BLOCK_WAL)
        return [StoredObject(path, name, files.size_at(path))]
    return []


def _starts_block_wal(path: Path) -> bool:
    """Return whether a local file or device begins with the magic of a WAL on a device.

    A file that cannot be read does not.
    """
    try:
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISBLK(mode)):
            return False  # a pipe would wait for its writer
        head, _ = files.glance(str(path), _MAGIC.size)
    except OSError:
        return False
    return head == _MAGIC.pack(block_wal.MAGIC)


def read(file: StoredObject) -> FileEntries:
    """Return the content of an object; entries that cannot be read are findings.

    The count is that of the index block, or of the records of a WAL object. UnreadableError.
    """
    match file.name.kind:
        case ObjectKind.DATA:
            count, entries = _data_object(file)
        case ObjectKind.WAL:
            count, entries = _wal_object(files.read_small(file.path))
        case ObjectKind.BLOCK_WAL:
            return _block_wal(file.path)
        case ObjectKind.RANGE_INDEX:
            count, entries = _range_index(files.read_small(file.path))
        case _:
            count, entries = 1, _owner(files.read_small(file.path))
    return FileEntries(entries, _findings(file), count)


def _findings(file: StoredObject) -> Iterator[Finding]:
    for one in object_findings(file, reads_blocks=True):
        if isinstance(one, UnreadableError):
            raise one
        yield one


def _data_object(file: StoredObject) -> tuple[int, Entries]:
    with file.open() as opened:
        footer = data_object.parse_footer(opened.read(max(0, file.size - FOOTER.size), FOOTER.size))
        if footer is None:
            return 0, iter(())
        if footer.magic == composite_object.MAGIC:
            composite = composite_object.parse(opened.read(0, file.size))
            return len(composite.entries), _links(composite, footer.index_position)
        if any(data_object.check_footer(footer, file.size, data_object.MAGIC)):
            return 0, iter(())
        entries = data_object.parse_entries(opened.read(footer.index_position, footer.index_size))
    return len(entries), _blocks(file, entries, footer.index_position)


def _links(composite: composite_object.CompositeObject, start: int) -> Entries:
    row = 0
    for object_id, entries in composite.linked():
        for one in entries:
            yield _index_entry(start, row, one, object_id)
            row += 1


def _blocks(file: StoredObject, entries: NDArray[np.void], end: int) -> Entries:
    for row, one in enumerate(entries):
        yield _index_entry(end, row, one, None)
    with file.open() as opened:
        for one in entries:
            start, size = int(one["position"]), int(one["size"])
            if 0 <= start <= start + size <= end:
                found, _ = data_object.records(opened.read(start, size), 0, size)
                yield from _records(found, start)


def _index_entry(start: int, row: int, one: np.void, linked: int | None) -> Object:
    return {
        "position": start + row * data_object.ENTRY_SIZE,
        "entry": row,
        "stream": int(one["stream_id"]),
        "start_offset": int(one["start_offset"]),
        "end_offset": int(one["start_offset"]) + int(one["offset_delta"]),
        "record_count": int(one["record_count"]),
        "block_position": int(one["position"]),
        "block_size": int(one["size"]),
        "linked_object": linked,
    }


def _records(found: StreamRecords, base: int, wal: list[int] | None = None) -> Entries:
    ends = found.end_offset.tolist()
    for row in range(len(found)):
        yield {
            "kind": "automq-record",
            "position": base + int(found.position[row]),
            "wal_offset": None if wal is None else wal[row],
            "stream": int(found.stream_id[row]),
            "stream_epoch": int(found.epoch[row]),
            "base_offset": int(found.base_offset[row]),
            "end_offset": ends[row],
            "size": int(found.size[row]),
            "batches": len(data_object.batch_spans(found.payload(row))),
            "link": int(found.count[row]) < 0,
        }


def _wal_object(data: bytes) -> tuple[int, Entries]:
    parsed = wal_object.parse(data)
    if parsed.header is None:
        return 0, iter(())
    found = wal_object.records(parsed)
    head = len(data) - len(parsed.content)
    return len(found), _records(found.records, head, found.offset.tolist())


def _block_wal(path: Path) -> FileEntries:
    """Return the records that AutoMQ recovers from a WAL on a device; the ring is mapped."""
    try:
        with path.open("rb", buffering=0) as opened:
            size = opened.seek(0, os.SEEK_END)  # a device has no size in its status
            data = memoryview(mmap(opened.fileno(), size, access=ACCESS_READ))
    except (OSError, ValueError) as error:
        raise UnreadableError(path, str(error)) from error
    parsed = block_wal.parse(data)
    findings = block_wal.check(parsed)
    if parsed.header is None:
        return FileEntries(iter(()), findings, 0)
    recovery = block_wal.recover(data, parsed.header)
    found = recovery.records
    return FileEntries(
        _records(found.records, 0, found.offset.tolist()),
        chain(findings, recovery.findings),
        len(found),
    )


def _range_index(data: bytes) -> tuple[int, Entries]:
    parsed, rows = range_index.parse(data), []
    at = range_index.HEAD.size
    for stream_id, ranges in parsed.ranges:
        at += range_index.STREAM.size
        for one in ranges:
            rows.append(
                {
                    "kind": "automq-range-index",
                    "position": at,
                    "stream": stream_id,
                    "start_offset": int(one["start_offset"]),
                    "end_offset": int(one["end_offset"]),
                    "object": int(one["object_id"]),
                }
            )
            at += range_index.RANGE.itemsize
    return len(rows), iter(rows)


def _owner(data: bytes) -> Entries:
    found = reservation.parse(data)
    if found.magic is not None:
        yield {
            "kind": "automq-reservation",
            "position": 0,
            "node": found.node_id,
            "node_epoch": found.epoch,
            "failover": bool(found.is_failover),
        }
