"""A bucket of AutoMQ: its objects by their keys, and what their index blocks say.

The path below the bucket is the key of an object, on a disk and behind a URL. Objects are read by
ranges: first the footer and the index block, then the data blocks that are asked for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import reduce
from operator import truediv
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from logtool.disk import files
from logtool.disk.files import LogFile
from logtool.errors import FormatError
from logtool.formats.automq import composite_object, data_object, names, wal_object, wal_recovery
from logtool.formats.automq.data_object import FOOTER
from logtool.formats.automq.names import ObjectKind, ObjectName
from logtool.formats.automq.stream_record import HEADER_SIZE
from logtool.formats.automq.wal_object import WalRecords
from logtool.lazy_dataclass import dataclass

_WAL_HEADER = 48
_SMALL = 256 * 1024
"""Bytes of an object that one request reads whole."""
_MOST_KEPT = 64 * 1024 * 1024
"""Bytes of small objects that are kept."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One object of a bucket as the listing showed it."""

    path: Path
    name: ObjectName
    size: int
    kept: "KeptObjects | None" = field(default=None, compare=False, repr=False)
    """Small objects behind a URL that were read already; None for a local object."""

    def open(self) -> "LogFile | WholeObject":
        """Open the object to read it; UnreadableError where that fails, then or later."""
        if self.kept is not None and self.size <= _SMALL:
            return WholeObject(self.kept.content(self))
        return LogFile(self.path, self.size)


class WholeObject:
    """The bytes of an object, read like a `LogFile`."""

    def __init__(self, data: bytes) -> None:
        self._data, self.size = memoryview(data), len(data)

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill `buffer` from `position`; return the number of bytes that there were."""
        part = self._data[position : position + len(buffer)]
        buffer[: len(part)] = part
        return len(part)

    def read(self, position: int, size: int) -> bytes:
        """Return `size` bytes from `position` on, fewer where the object ends."""
        return bytes(self._data[position : position + max(size, 0)])

    def __enter__(self) -> "WholeObject":
        return self

    def __exit__(self, *error: object) -> None:
        return


class KeptObjects:
    """The small objects of a bucket behind a URL that were used last: a request gives one whole."""

    def __init__(self) -> None:
        self._found: dict[Path, bytes] = {}
        self._size = 0
        self._lock = Lock()

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return KeptObjects, ()  # another process keeps its own

    def content(self, file: StoredObject) -> bytes:
        """Return the bytes of an object; UnreadableError."""
        with self._lock:
            data = self._found.pop(file.path, None)
            if data is not None:
                self._found[file.path] = data  # used last
                return data
        data = files.read_small(file.path)
        with self._lock:
            if file.path not in self._found:
                self._found[file.path] = data
                self._size += len(data)
            while self._size > _MOST_KEPT:
                self._size -= len(self._found.pop(next(iter(self._found))))
        return data


@dataclass(frozen=True, slots=True, eq=False)
class IndexedBlocks:
    """Data blocks of one object that an index block names."""

    file: StoredObject
    """Object that holds the blocks: a linked one, if the index block is that of a composite."""
    entries: NDArray[np.void]
    """Entries of the index block, see `data_object.ENTRY`."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """The objects of one cluster in a bucket."""

    path: Path
    cluster_id: str
    objects: Mapping[int, StoredObject]
    """Data objects by object id."""
    wals: Mapping[int, tuple[StoredObject, ...]]
    """Objects of the WAL of each node."""
    others: tuple[StoredObject, ...]
    """Range indexes, reservations and WALs of another type."""

    def indexed(self, object_id: int) -> list[IndexedBlocks]:
        """Return the data blocks that the index block of an object names.

        FormatError if the object is missing, or if its footer or its links are damaged.
        """
        file = self._object(object_id)
        with file.open() as opened:
            footer = data_object.parse_footer(
                opened.read(max(0, file.size - FOOTER.size), FOOTER.size)
            )
            is_composite = footer is not None and footer.magic == composite_object.MAGIC
            magic = composite_object.MAGIC if is_composite else data_object.MAGIC
            for found in data_object.check_footer(footer, file.size, magic):
                raise FormatError(found.message, found.position or 0, file.path)
            assert footer
            start, size = footer.index_position, footer.index_size
            entries = data_object.parse_entries(opened.read(start, size))
            if not is_composite:
                return [IndexedBlocks(file, entries)]
            links = composite_object.parse(opened.read(0, file.size)).linked()
            return [IndexedBlocks(self._object(one), some) for one, some in links]

    def _object(self, object_id: int) -> StoredObject:
        file = self.objects.get(object_id)
        if file is None:
            key = names.data_key(self.cluster_id, object_id)
            raise FormatError(f"object {object_id} is missing ({key})", 0, self.path)
        return file


def open_bucket(path: Path, cluster_id: str) -> Bucket:
    """List the objects of a cluster in a bucket or below a prefix; UnreadableError."""
    empty = Bucket(path, cluster_id, {}, {}, ())
    return next((one for one in open_all(path) if one.cluster_id == cluster_id), empty)


def open_all(path: Path) -> list[Bucket]:
    """List the objects of every cluster in a bucket or below a prefix; UnreadableError."""
    found: dict[str, list[StoredObject]] = {}
    kept = KeptObjects() if files.is_remote(path) else None
    for key, size in files.files_below(path):
        name = names.parse(key)
        if name.cluster_id is not None:
            place = reduce(truediv, key.split("/"), path)
            found.setdefault(name.cluster_id, []).append(StoredObject(place, name, size, kept))
    return [_bucket(path, cluster_id, objects) for cluster_id, objects in sorted(found.items())]


def _bucket(path: Path, cluster_id: str, found: list[StoredObject]) -> Bucket:
    objects: dict[int, StoredObject] = {}
    wals: dict[int, list[StoredObject]] = {}
    others = []
    for one in found:
        name = one.name
        if name.object_id is not None:
            objects[name.object_id] = one
        elif name.kind is ObjectKind.WAL and name.node_id is not None and not name.wal_type:
            wals.setdefault(name.node_id, []).append(one)
        else:
            others.append(one)
    by_node = {node: tuple(some) for node, some in wals.items()}
    return Bucket(path, cluster_id, objects, by_node, tuple(others))


@dataclass(frozen=True, slots=True, eq=False)
class Extents:
    """Records of one stream, in order, with the place of each payload."""

    files: tuple[StoredObject, ...]
    file: NDArray[np.int64]
    """Row in `files` of the object that holds each record."""
    position: NDArray[np.int64]
    """Position of the payload in it."""
    size: NDArray[np.int64]
    """Bytes of the payload."""
    base_offset: NDArray[np.int64]
    end_offset: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.file)

    def __getitem__(self, rows: slice | NDArray[np.bool_] | NDArray[np.int64]) -> "Extents":
        """Return some of the records."""
        columns = (self.file, self.position, self.size, self.base_offset, self.end_offset)
        return Extents(self.files, *(column[rows] for column in columns))

    def between(self, start: int, stop: int) -> "Extents":
        """Return the records that cover an offset from `start` up to `stop`."""
        return self[(self.end_offset > start) & (self.base_offset < stop)]

    def bytes_between(self, start: int, stop: int) -> "Extents":
        """Return the bytes from `start` up to `stop` of a stream whose offsets count bytes."""
        part = self.between(start, stop)
        base, end = np.maximum(part.base_offset, start), np.minimum(part.end_offset, stop)
        position = part.position + base - part.base_offset
        return Extents(part.files, part.file, position, end - base, base, end)


def join_extents(parts: Sequence[Extents]) -> Extents:
    """Return the records of all parts, in order."""
    stored = tuple(one for part in parts for one in part.files)
    shifts = np.cumsum([0, *(len(part.files) for part in parts)])
    columns = [
        np.concatenate([np.zeros(0, np.int64), *(getattr(part, name) for part in parts)])
        for name in ("position", "size", "base_offset", "end_offset")
    ]
    shifted = [part.file + shift for part, shift in zip(parts, shifts, strict=False)]
    return Extents(stored, np.concatenate([np.zeros(0, np.int64), *shifted]), *columns)


def block_extents(blocks: IndexedBlocks, stream_id: int) -> tuple[Extents, list[FormatError]]:
    """Read the headers of the records of a stream in an object, and the damage among them.

    UnreadableError if the object cannot be read.
    """
    entries = blocks.entries[blocks.entries["stream_id"] == stream_id]
    position, size, base, end = [], [], [], []
    damaged = []
    with blocks.file.open() as opened:
        for entry in entries:
            start, length = int(entry["position"]), int(entry["size"])
            data = opened.read(start, length) if min(start, length) >= 0 else b""
            if len(data) != length:
                text = f"expected {length} bytes, found {len(data)}"
                damaged.append(FormatError(text, max(start, 0), blocks.file.path))
                continue
            part, faults = data_object.records(data, 0, length)
            damaged += [
                FormatError(one.text, start + one.position, blocks.file.path) for one in faults[:1]
            ]
            own = part.stream_id == stream_id
            position.append(part.position[own] + start + HEADER_SIZE)
            size.append(part.size[own])
            base.append(part.base_offset[own])
            end.append(part.end_offset[own])
    none = [np.zeros(0, np.int64)]
    columns = (np.concatenate(none + one) for one in (position, size, base, end))
    at, *rest = columns
    return Extents((blocks.file,), np.zeros(len(at), np.int64), at, *rest), damaged


@dataclass(frozen=True, slots=True, eq=False)
class NodeWalRecords:
    """The records that a node's WAL gives back, in the order of recovery."""

    order: wal_recovery.WalOrder
    parts: tuple[tuple[StoredObject, WalRecords, tuple[int, ...]], ...]
    """Object, its records, and the rows that are kept."""
    fault: str | None
    """The reason why recovery fails, or None."""
    seen_ends: Mapping[int, int]
    """Highest end offset of each stream in all objects of the WAL, also in those behind a gap."""

    def extents(self, stream_id: int) -> Extents:
        """Return the records of one stream, in the order of the WAL."""
        found = []
        for file, read, kept in self.parts:
            rows = np.array(kept, np.int64)
            rows = rows[read.records.stream_id[rows] == stream_id]
            head = file.size - len(read.records.data)
            found.append(
                Extents(
                    (file,),
                    np.zeros(len(rows), np.int64),
                    read.records.position[rows] + head + HEADER_SIZE,
                    read.records.size[rows],
                    read.records.base_offset[rows],
                    read.records.end_offset[rows],
                )
            )
        return join_extents(found)

    @property
    def streams(self) -> set[int]:
        """Return the streams that have records."""
        return {
            int(one)
            for _, read, kept in self.parts
            for one in read.records.stream_id[np.array(kept, np.int64)]
        }


def read_wal(bucket: Bucket, node_id: int) -> NodeWalRecords:
    """Read the WAL of a node as its recovery would."""
    by_key = {one.name.key: one for one in bucket.wals.get(node_id, ())}

    def read(name: ObjectName, most: int | None = None) -> bytes:
        file = by_key[name.key]
        with file.open() as opened:
            return opened.read(0, file.size if most is None else min(file.size, most))

    listed = [(one.name, one.size) for one in by_key.values()]
    order = wal_recovery.order(listed, lambda name: read(name, _WAL_HEADER))
    fault = order.fault.text if order.fault else None
    parts = []
    for part in wal_recovery.recover(order, read):
        parts.append((by_key[part.name.key], part.records, part.kept))
        if part.records.fault:
            fault = f"{part.name.key}, byte {part.records.fault.position}: "
            fault += part.records.fault.text
    ends: dict[int, int] = {}
    behind = [wal_object.records(wal_object.parse(read(name))) for name in order.behind_gap]
    for found in (*(records for _, records, _ in parts), *behind):
        columns = found.records.stream_id.tolist(), found.records.end_offset.tolist()
        for stream_id, end in zip(*columns, strict=True):
            ends[stream_id] = max(end, ends.get(stream_id, 0))
    return NodeWalRecords(order, tuple(parts), fault, ends)


class ExtentSource:
    """The payloads of records, one behind the other, read like one file."""

    def __init__(self, extents: Extents) -> None:
        self._extents = extents
        self._ends = np.cumsum(extents.size)
        self.size = int(self._ends[-1]) if len(extents) else 0

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill `buffer` from `position`; return the number of bytes that there were."""
        extents, done = self._extents, 0
        row = int(np.searchsorted(self._ends, position, "right"))
        within = position - int(self._ends[row] - extents.size[row]) if row < len(extents) else 0
        while done < len(buffer) and row < len(extents):
            number = int(extents.file[row])
            file = extents.files[number]
            with file.open() as opened:
                # Records of one object follow each other: it is opened once for all of them.
                while done < len(buffer) and row < len(extents) and extents.file[row] == number:
                    room = buffer[done : done + int(extents.size[row]) - within]
                    count = opened.read_into(room, int(extents.position[row]) + within)
                    done += count
                    if count < len(room):
                        return done
                    row, within = row + 1, 0
        return done

    def locate(self, position: int) -> tuple[StoredObject, int]:
        """Return the object that holds a byte, and its position there."""
        extents = self._extents
        row = int(np.searchsorted(self._ends, position, "right"))
        within = position - (int(self._ends[row]) - int(extents.size[row]))
        file = extents.files[int(extents.file[row])]
        return file, int(extents.position[row]) + within
