"""Opening and checking the indexes of one segment as a broker does, with the time that it took.

Offset and time indexes are mapped, transaction indexes are read. A broker keeps its maps; here each
is released at once, because a process may have only so many (``vm.max_map_count``). Under a running
broker nothing is mapped: the broker cuts an index when it rolls the segment, and access to a page
that is gone would kill this process.
"""

import mmap
import os
import time
from collections.abc import Iterable
from dataclasses import field, replace

from logtool.checks import index_sanity
from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.formats.names import FileKind
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import Segment
from logtool.log.file import File

INDEX_KINDS = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX)
MAPPED_KINDS = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX)

Item = Finding | UnreadableError
_MADV_POPULATE_READ = 22
"""Constant of Linux 5.14 (``asm-generic/mman-common.h``); the module `mmap` has no name for it."""


@dataclass(slots=True)
class Cost:
    """Counts of the work done, and its time by kind of index."""

    segments: int = 0
    """Segments with at least one index opened."""
    files: int = 0
    """Files opened."""
    filled: int = 0
    """Files opened that are not empty: at least one page of each is read."""
    maps: int = 0
    bytes: int = 0
    """Bytes of the files that were looked at."""
    ns: dict[FileKind, int] = field(default_factory=lambda: dict.fromkeys(INDEX_KINDS, 0))
    """Nanoseconds by kind of index."""

    def add(self, other: "Cost") -> None:
        """Add the cost of other work."""
        self.segments += other.segments
        self.files += other.files
        self.filled += other.filled
        self.maps += other.maps
        self.bytes += other.bytes
        for kind, ns in other.ns.items():
            self.ns[kind] += ns

    def seconds_of(self, kind: FileKind) -> float:
        """Return the seconds that one kind of index took."""
        return self.ns[kind] / 1e9


@dataclass(frozen=True, slots=True)
class Opener:
    """Opener of indexes; with `mapped` it maps them with ``mmap``, as a broker does."""

    mapped: bool = True

    def check_segment(
        self, segment: Segment, cost: Cost, kinds: Iterable[FileKind] = INDEX_KINDS
    ) -> list[Item]:
        """Check the indexes of a segment in Kafka's order, up to the first that fails."""
        if not _has_offset_index(segment):
            # A broker looks for this file alone, and rebuilds all three.
            return [replace(missing(segment), segment=segment.base_offset)]
        opened = cost.files
        items: list[Item] = []
        for kind in kinds:
            file = segment.indexes.get(kind)
            if file:
                items += self.check(file, segment, cost)
            if items and isinstance(items[-1], Finding):
                break  # the broker recovers the segment, which rebuilds the others too
        cost.segments += cost.files > opened
        return items

    def open_segment(self, segment: Segment, cost: Cost) -> list[Item]:
        """Open the offset and the time index without a check."""
        opened = cost.files
        items: list[Item] = []
        for kind in MAPPED_KINDS:
            file = segment.indexes.get(kind)
            if file:
                items += self.check(file, segment, cost, judge=False)
        cost.segments += cost.files > opened
        return items

    def check(self, file: File, segment: Segment, cost: Cost, *, judge: bool = True) -> list[Item]:
        """Open one index, and check it if `judge` is set; count the work and its time."""
        kind = file.name.kind
        started = time.perf_counter_ns()
        try:
            found = self._check(file, segment, cost, judge=judge)
        except UnreadableError as error:
            return [error]
        finally:
            cost.ns[kind] += time.perf_counter_ns() - started
        if found is None:
            return []
        if found.code == "time-index/padding" and segment.is_active:
            found = replace(found, code="time-index/preallocated")
        return [replace(found, path=file.path, segment=segment.base_offset)]

    def _check(self, file: File, segment: Segment, cost: Cost, *, judge: bool) -> Finding | None:
        kind = file.name.kind
        fd = files.open_readonly(file.path)
        content: mmap.mmap | None = None

        def read(position: int, size: int) -> bytes:
            if content is not None and _is_there(content, position, size):
                data = content[position : position + size]
            else:  # a read that fails gives the reason
                with files.translated(file.path, position):
                    data = os.pread(fd, size, position)
            if len(data) < size:
                raise UnreadableError(file.path, "was cut while logtool read it")
            cost.bytes += size
            return data

        try:
            size = os.fstat(fd).st_size
            cost.files += 1
            cost.filled += size > 0
            if self.mapped and kind in MAPPED_KINDS and size:
                content = mmap.mmap(fd, size, mmap.MAP_SHARED, mmap.PROT_READ)
                cost.maps += 1
            if judge and kind is FileKind.TRANSACTION_INDEX:
                files.hold_to_limit(file.path, size)
            if judge:
                return index_sanity.CHECKS[kind](read, size, segment.base_offset)
            index_sanity.read_last_entry(read, size, index_sanity.ENTRY_SIZES[kind])
            return None
        except OSError as error:
            raise UnreadableError(file.path, error.strerror or str(error)) from error
        finally:
            if content is not None:
                content.close()
            os.close(fd)


def _is_there(content: mmap.mmap, position: int, size: int) -> bool:
    """Bring in the pages of some bytes; return whether they may be read.

    Access to a page that a bad sector or a cut took away would raise SIGBUS, which ends the
    process. For this call the system returns an error instead, and counts the same page faults.
    """
    start = position // mmap.PAGESIZE * mmap.PAGESIZE
    try:
        content.madvise(_MADV_POPULATE_READ, start, position + size - start)
    except OSError:  # or a Linux before 5.14, which does not know it
        return False
    return True


def missing(segment: Segment) -> Finding:
    """Return the finding for a segment without an offset index."""
    text = f"segment {segment.base_offset} has no .index file"
    return Finding("offset-index/missing", text, path=segment.log.path)


def _has_offset_index(segment: Segment) -> bool:
    """Ask the system for the file, as a broker does for each segment at every kind of start."""
    file = segment.indexes.get(FileKind.OFFSET_INDEX)
    return file is not None and file.path.exists()
