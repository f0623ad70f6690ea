"""Rules for the offset and the time index of a segment: by themselves, and against the log."""

import shlex
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from logtool import files
from logtool.findings import Finding
from logtool.formats import offset_index, time_index
from logtool.formats._columns import runs
from logtool.formats.names import FileKind
from logtool.formats.offset_index import OffsetIndex
from logtool.formats.record_batch import Column
from logtool.formats.time_index import TimeIndex
from logtool.index_join import OffsetIndexJoin, TimeIndexJoin, Verdict
from logtool.partition import File, Segment
from logtool.scan import Chunk

DEFAULT_INTERVAL_BYTES = 4096
"""Default of ``index.interval.bytes``."""
LONGEST_STRETCH = 16 * 1024 * 1024
"""Bytes of log that one append may bring: above ``replica.fetch.response.max.bytes``."""

_JOIN_CODES = {
    Verdict.NO_BATCH: "not-a-batch",
    Verdict.OFFSET: "wrong-offset",
    Verdict.TIMESTAMP: "wrong-timestamp",
    Verdict.LATER: "later-before",
}


class OffsetIndexRules:
    """The rules of one ``.index``."""

    def __init__(self, segment: Segment, file: File) -> None:
        self._segment, self._file = segment, file
        self._index = offset_index.parse(files.read_small(file.path))
        self._join = OffsetIndexJoin(self._index, segment.base_offset)

    @property
    def last_position(self) -> int:
        """Return the position in the last entry, 0 without one."""
        return int(self._index.positions[-1]) if len(self._index) else 0

    def feed(self, chunk: Chunk) -> None:
        """Take the next chunk of the log."""
        self._join.feed(chunk)

    def alone(self, *, clean: bool) -> Iterator[Finding]:
        """Yield what the file and the log's size tell."""
        size = self._segment.log.size
        for finding in offset_index.check(self._index, log_size=size):
            beyond = finding.code == "offset-index/position-range" and self.last_position >= size
            if beyond and self._segment.is_active:
                code = "offset-index/ahead-of-log" if clean else "offset-index/ahead"
                finding = replace(finding, code=code)
            yield _placed(finding, self._file)
        yield from _padding(self._segment, self._file, "offset-index", self._index.padding)
        end = max(size, self.last_position)
        stretch = np.diff(self._index.positions.astype(np.int64), prepend=0, append=end)
        widest = int(stretch.max())
        if widest > LONGEST_STRETCH:
            text = (
                f"{widest} bytes of log have no entry, an append brings {LONGEST_STRETCH} at most"
            )
            yield _placed(Finding("offset-index/incomplete", text), self._file)

    def joined(self, time_entries: int, batches: int) -> Iterator[Finding]:
        """Yield what the log tells; `time_entries` of the time index tell of lost entries."""
        verdicts = self._join.verdicts()
        for verdict, first, last in _bad(verdicts):
            entry = _offset_entry(self._index, self._segment.base_offset, first)
            text = (
                f"{entry} points at no batch"
                if verdict is Verdict.NO_BATCH
                else f"{entry} points at the batch with offsets {self._join.batch_base[first]} to "
                f"{self._join.batch_last[first]}, which a lookup of that offset must not begin at"
            )
            yield _entry_finding(f"offset-index/{_JOIN_CODES[verdict]}", text, first, last,
                                 offset_index.ENTRY_SIZE, self._file)  # fmt: skip
        # Each time entry was written together with an offset entry, but for the closing one and
        # one for each restart, and those do not count where one interval has not yet passed.
        long = self._join.last_batch_position > DEFAULT_INTERVAL_BYTES
        if len(self._index) == 0 and time_entries > 1 and long and not self._segment.is_active:
            text = f"no entry for {batches} batches in {self._segment.log.size} bytes of log"
            yield _placed(Finding("offset-index/incomplete", text), self._file)


class TimeIndexRules:
    """The rules of one ``.timeindex``."""

    def __init__(self, segment: Segment, file: File) -> None:
        self._segment, self._file = segment, file
        self._index = time_index.parse(files.read_small(file.path))
        self._join = TimeIndexJoin(self._index, segment.base_offset)

    def __len__(self) -> int:
        return len(self._index)

    def feed(self, chunk: Chunk) -> None:
        """Take the next chunk of the log."""
        self._join.feed(chunk)

    def alone(self) -> Iterator[Finding]:
        """Yield what the file tells."""
        for finding in time_index.check(self._index):
            yield _placed(finding, self._file)
        yield from _padding(self._segment, self._file, "time-index", self._index.padding)

    def joined(self, *, damaged: bool, clean: bool) -> Iterator[Finding]:
        """Yield what the log tells; of a damaged log the closing entry cannot be judged."""
        for verdict, first, last in _bad(self._join.verdicts()):
            code = _JOIN_CODES[verdict]
            if verdict is Verdict.NO_BATCH and self._segment.is_active and not clean:
                code = "ahead"
            entry = _time_entry(self._index, self._segment.base_offset, first)
            text = {
                Verdict.NO_BATCH: f"{entry}: no batch holds that offset",
                Verdict.TIMESTAMP: f"{entry}: the batch that holds it has the largest timestamp "
                f"{self._join.batch_timestamp[first]}",
                Verdict.LATER: f"{entry}: an earlier batch has a later timestamp",
            }[verdict]
            yield _entry_finding(f"time-index/{code}", text, first, last,
                                 time_index.ENTRY_SIZE, self._file)  # fmt: skip
        highest = self._join.max_timestamp
        last_stamp = int(self._index.timestamps[-1]) if len(self._index) else -1
        if not self._segment.is_active and not damaged and last_stamp < highest:
            found = f"the last entry has {last_stamp}" if len(self._index) else "there is no entry"
            text = f"the largest timestamp of the segment is {highest}, {found}"
            yield _placed(Finding("time-index/incomplete", text), self._file)


def missing(segment: Segment) -> Iterator[Finding]:
    """Yield which of the two indexes a segment lacks."""
    kinds = {FileKind.OFFSET_INDEX: "offset-index", FileKind.TIME_INDEX: "time-index"}
    for kind, area in kinds.items():
        if kind not in segment.indexes:
            text = f"segment {segment.base_offset} has no {kind} file"
            yield Finding(f"{area}/missing", text, path=segment.log.path)


def _padding(segment: Segment, file: File, area: str, padding: int) -> Iterator[Finding]:
    if not padding:
        return
    code = f"{area}/preallocated" if segment.is_active else f"{area}/padding"
    text = f"{padding} zero bytes behind the last entry"
    yield _placed(Finding(code, text, position=file.size - padding, length=padding), file)


def _bad(verdicts: Column) -> Iterator[tuple[Verdict, int, int]]:
    for verdict in _JOIN_CODES:
        for first, last in runs(verdicts == verdict):
            yield verdict, first, last


def _offset_entry(index: OffsetIndex, base_offset: int, entry: int) -> str:
    offset = int(index.relative_offsets[entry]) + base_offset
    return f"entry {entry} (offset {offset}, position {index.positions[entry]})"


def _time_entry(index: TimeIndex, base_offset: int, entry: int) -> str:
    offset = int(index.relative_offsets[entry]) + base_offset
    return f"entry {entry} (timestamp {index.timestamps[entry]}, offset {offset})"


def _entry_finding(
    code: str, text: str, first: int, last: int, entry_size: int, file: File
) -> Finding:
    more = f" (and so on to entry {last})" if last > first else ""
    length = (last - first + 1) * entry_size
    return _placed(Finding(code, text + more, position=first * entry_size, length=length), file)


def _placed(finding: Finding, file: File) -> Finding:
    """Return the finding in its file, with the command that shows what is wrong."""
    command = f"logtool dump-index {shlex.quote(str(file.path))} --join-log"
    return replace(finding, path=file.path, next=finding.next or command)
