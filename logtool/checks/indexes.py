"""Rules for the offset and the time index of a segment: by themselves, and against the log."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from logtool.disk import files, shell
from logtool.findings import Finding
from logtool.formats import names, offset_index, time_index, wording
from logtool.formats.columns import runs
from logtool.formats.names import (
    CLUSTER_METADATA,
    DirectoryKind,
    FileKind,
    FileState,
    PartitionDirectory,
)
from logtool.formats.offset_index import OffsetIndex
from logtool.formats.time_index import TimeIndex
from logtool.log.chunk import Chunk
from logtool.log.dir import Segment
from logtool.log.file import File
from logtool.log.index_join import EntryState, OffsetIndexJoin, TimeIndexJoin

MOST_RESTARTS = 50
"""Largest number of broker starts that is assumed before a segment is rolled."""
LONGEST_STRETCH = 16 * 1024 * 1024
"""Largest number of bytes in one append: above ``replica.fetch.response.max.bytes``."""

_IMPOSSIBLE = ("/relative-zero", "/zero-entry", "-range", "/ahead-of-log", "/ahead")
"""Ends of the codes for entries that no log can make right."""
_JOIN_CODES = {
    EntryState.NO_BATCH: "not-a-batch",
    EntryState.OFFSET: "wrong-offset",
    EntryState.TIMESTAMP: "wrong-timestamp",
    EntryState.LATER: "later-before",
}


_Index = TypeVar("_Index", OffsetIndex, TimeIndex)
_Join = TypeVar("_Join", OffsetIndexJoin, TimeIndexJoin)


class _IndexRules(Generic[_Index, _Join]):
    """Rules of both indexes: their entries are compared with the log while that is read."""

    _joins: Callable[[_Index, int], _Join]
    """Function of an index and the base offset of its segment that returns the join."""

    def __init__(self, segment: Segment, file: File, index: _Index) -> None:
        self._segment, self._file = segment, file
        self._index: _Index = index

    @cached_property
    def join(self) -> _Join:
        """Return the join with the log, made at the first use: `accept` needs no columns."""
        return self._joins(self._index, self._segment.base_offset)

    @property
    def entries(self) -> int:
        """Return the number of entries."""
        return len(self._index)

    @property
    def last_offset(self) -> int:
        """Return the offset in the last entry, -1 without one."""
        return _last_offset(self._index, self._segment)

    def feed(self, chunk: Chunk) -> None:
        """Take the next chunk of the log."""
        self.join.feed(chunk)

    def finish(self) -> None:
        """Complete the verdicts on the entries."""
        self.join.finish()


class OffsetIndexRules(_IndexRules[OffsetIndex, OffsetIndexJoin]):
    """The rules of one ``.index``."""

    _joins = OffsetIndexJoin

    def __init__(self, segment: Segment, file: File) -> None:
        super().__init__(segment, file, offset_index.parse(*file.read_index()))

    @property
    def last_position(self) -> int:
        """Return the position in the last entry, 0 without one."""
        return int(self._index.positions[-1]) if len(self._index) else 0

    def accept(self, last_batch_position: int) -> None:
        """Take the entries for right without feeding: the log was held against them in pieces."""
        self.join = OffsetIndexJoin(offset_index.parse(b""), self._segment.base_offset)
        self.join.finish()
        self.join.last_batch_position = last_batch_position

    def alone(self, *, clean: bool) -> Iterator[Finding]:
        """Yield the findings of the file by itself, with the size of the log."""
        size = self._segment.log.size
        for finding in offset_index.check(self._index, log_size=size):
            beyond = finding.code == "offset-index/position-range" and self.last_position >= size
            if beyond and self._segment.is_active:
                code = "offset-index/ahead-of-log" if clean else "offset-index/ahead"
                finding = replace(finding, code=code)
            yield _placed(finding, self._file)
        yield from _padding(
            self._segment, self._file, "offset-index", self._index.padding, clean=clean
        )

    def joined(
        self, time_entries: int, batches: int, largest_batch: int, interval: int, *, clean: bool
    ) -> Iterator[Finding]:
        """Yield the findings of the file by itself and against the log.

        `time_entries` is the number of entries in the time index: more than one show that offset
        entries are lost. `largest_batch` and `interval`, ``index.interval.bytes``, are in bytes.
        """
        yield from _reconciled(
            list(self.alone(clean=clean)), list(self._mismatches()), offset_index.ENTRY_SIZE
        )
        # Each time entry was written together with an offset entry, except the closing one and
        # one for each stop of a broker. Each of these ends a stretch in which no more than an
        # interval had passed before the last append: the next broker counts from 0 again.
        went = time_entries - 1
        most = went * (interval + largest_batch) + interval
        last = self.join.last_batch_position
        long = last > most or (went > MOST_RESTARTS and last > interval)
        is_empty = len(self._index) == 0 and not self._index.is_wide
        if is_empty and time_entries > 1 and long and not self._segment.is_active:
            text = (
                f"no entry for {wording.count(batches, 'batch', 'batches')} in "
                f"{wording.size(self._segment.log.size)} of log"
            )
            yield _placed(Finding("offset-index/incomplete", text), self._file)

    def sparse(self, log_end: int, largest_batch: int = 0) -> Iterator[Finding]:
        """Yield a finding if a stretch of log without entries is longer than any append.

        `log_end` is the position behind the last batch, `largest_batch` is in bytes.
        """
        most = LONGEST_STRETCH + largest_batch
        if log_end <= most or self._index.is_wide:
            return
        positions = self._index.positions.astype(np.int64)
        # Only a damaged index has unsorted positions; a stable sort is fast for sorted ones.
        inside = np.sort(positions[(positions > 0) & (positions < log_end)], kind="stable")
        widest = int(np.diff(inside, prepend=0, append=log_end).max())
        if widest > most:
            text = (
                f"{wording.count(widest, 'byte')} of log have no entry, but one append writes "
                f"at most {most:,}"
            )
            yield _placed(Finding("offset-index/incomplete", text), self._file)

    def _mismatches(self) -> Iterator[Finding]:
        for verdict, first, last in _bad(self.join):
            entry = _offset_entry(self._index, self._segment.base_offset, first)
            text = (
                f"{entry} does not point at a batch"
                if verdict is EntryState.NO_BATCH
                else (
                    f"{entry} points at the batch with "
                    f"{wording.offsets(self.join.batch_base[first], self.join.batch_last[first])}, "
                    "but a lookup of the offset must begin earlier"
                )
            )
            yield _entry_finding(
                f"offset-index/{_JOIN_CODES[verdict]}",
                text,
                first,
                last,
                offset_index.ENTRY_SIZE,
                self._file,
            )


class TimeIndexRules(_IndexRules[TimeIndex, TimeIndexJoin]):
    """The rules of one ``.timeindex``."""

    _joins = TimeIndexJoin

    def __init__(self, segment: Segment, file: File) -> None:
        super().__init__(segment, file, time_index.parse(*file.read_index()))

    def accept(self, max_timestamp: int) -> None:
        """Take the entries for right without feeding: the log was held against them in pieces."""
        self.join = TimeIndexJoin(time_index.parse(b""), self._segment.base_offset)
        self.join.finish()
        self.join.max_timestamp = max_timestamp

    def alone(self, *, clean: bool) -> Iterator[Finding]:
        """Yield the findings of the file by itself."""
        for finding in time_index.check(self._index):
            yield _placed(finding, self._file)
        yield from _padding(
            self._segment, self._file, "time-index", self._index.padding, clean=clean
        )

    def joined(self, *, damaged: bool, clean: bool) -> Iterator[Finding]:
        """Yield the findings of the file by itself and against the log.

        With a damaged log the closing entry is not judged.
        """
        yield from _reconciled(
            list(self.alone(clean=clean)),
            list(self._mismatches(clean=clean)),
            time_index.ENTRY_SIZE,
        )
        highest = self.join.max_timestamp
        last_stamp = int(self._index.timestamps[-1]) if len(self._index) else -1
        if not self._segment.is_active and not damaged and last_stamp < highest:
            found = f"the last entry has {last_stamp}" if len(self._index) else "there is no entry"
            text = f"the largest timestamp of the segment is {highest}, but {found}"
            yield _placed(Finding("time-index/incomplete", text), self._file)

    def _mismatches(self, *, clean: bool) -> Iterator[Finding]:
        for verdict, first, last in _bad(self.join):
            code = _JOIN_CODES[verdict]
            if verdict is EntryState.NO_BATCH and self._segment.is_active and not clean:
                code = "ahead"
            entry = _time_entry(self._index, self._segment.base_offset, first)
            text = {
                EntryState.NO_BATCH: f"{entry}: no batch holds that offset",
                EntryState.TIMESTAMP: (
                    f"{entry}: the batch that holds this offset has the largest timestamp "
                    f"{self.join.batch_timestamp[first]}"
                ),
                EntryState.LATER: f"{entry}: an earlier batch has a later timestamp",
            }[verdict]
            yield _entry_finding(
                f"time-index/{code}", text, first, last, time_index.ENTRY_SIZE, self._file
            )


def missing(segment: Segment, *, clean: bool) -> Iterator[Finding]:
    """Yield a finding for each of the two indexes that a segment lacks.

    A running broker renames the files of a cleaned segment one after the other, the log first: so
    an index that was missing when the directory was listed is looked for again. A broker creates
    the indexes of a new segment after its log, at the first append: a broker that is killed in
    between leaves a segment without indexes, which its next start recovers like any active segment
    (``LogSegment.open``, ``LazyIndex``, Kafka 3.3 to 4.3).
    """
    code = "not-written" if segment.is_active and not clean else "missing"
    kinds = {FileKind.OFFSET_INDEX: "offset-index", FileKind.TIME_INDEX: "time-index"}
    for kind, area in kinds.items():
        if kind in segment.indexes or kind not in segment.flavour.index_kinds:
            continue
        if not _is_there_now(segment, kind):
            text = missing_text(segment.base_offset, kind)
            yield Finding(f"{area}/{code}", text, path=segment.log.path)


def missing_text(base_offset: int, kind: FileKind) -> str:
    """Return the text of a finding about an index that a segment lacks."""
    return f"segment {base_offset} has no {kind} file"


def _is_there_now(segment: Segment, kind: FileKind) -> bool:
    """Return whether an index that was not listed exists now, under its name or its swap name.

    After a kill, the next start renames a swap file before it looks for the index.
    """
    home = segment.log.path.parent
    paths = (
        home / names.format_partition_file(segment.base_offset, kind, state)
        for state in (FileState.SWAP, FileState.LIVE)
    )
    # An entry that is not a regular file is reported as such; a broker does not write one.
    return not files.is_remote(home) and any(
        path.is_file() and not path.is_symlink() for path in paths
    )


def _reconciled(
    own: Sequence[Finding], against_log: Sequence[Finding], entry_size: int
) -> Iterator[Finding]:
    """Yield the findings of the file by itself and against the log, each fault once.

    For an impossible entry the finding of the file is enough. Where two entries are out of order,
    the finding against the log is better, because it says which of them is wrong.
    """

    def entries_of(finding: Finding) -> range:
        first = (finding.position or 0) // entry_size
        return range(first, first + (finding.length or 0) // entry_size)

    impossible = {e for f in own if f.code.endswith(_IMPOSSIBLE) for e in entries_of(f)}
    wrong = {e for f in against_log for e in entries_of(f)}
    for finding in own:
        entries = entries_of(finding)
        around = range(entries.start - 1, entries.stop)
        if not (finding.code.endswith("-order") and wrong.intersection(around)):
            yield finding
    for finding in against_log:
        if not impossible.issuperset(entries_of(finding)):
            yield finding


def _last_offset(index: OffsetIndex | TimeIndex, segment: Segment) -> int:
    return int(index.relative_offsets[-1]) + segment.base_offset if len(index) else -1


def _padding(
    segment: Segment, file: File, area: str, padding: int, *, clean: bool
) -> Iterator[Finding]:
    if not padding:
        return
    # A start after a clean stop takes the zeros for entries, and retention acts on them.
    home = names.parse_directory(file.path.parent.name)
    # Every start recovers the metadata log, and a broker neither closes nor serves what it set
    # aside.
    is_recovered = isinstance(home, PartitionDirectory) and (
        home.topic == CLUSTER_METADATA or home.kind in (DirectoryKind.DELETE, DirectoryKind.STRAY)
    )
    normal = segment.is_active and (is_recovered or not clean)
    code = f"{area}/preallocated" if normal else f"{area}/padding"
    text = f"{wording.count(padding, 'zero byte')} after the last entry"
    if not normal and not (file.size - padding):  # Seen in copies: then short segments follow.
        text = (
            f"holds only zeros ({wording.size(padding)}): a broker takes them for entries, finds "
        )
        text += "the index full, and rolls the segment at its next append"
    yield _placed(Finding(code, text, position=file.size - padding, length=padding), file)


def _bad(join: OffsetIndexJoin | TimeIndexJoin) -> Iterator[tuple[EntryState, int, int]]:
    verdicts = join.verdicts
    if not verdicts.any():  # all right, which is 0
        return
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
    more = f" (and so on up to entry {last})" if last > first else ""
    length = (last - first + 1) * entry_size
    return _placed(Finding(code, text + more, position=first * entry_size, length=length), file)


def _placed(finding: Finding, file: File) -> Finding:
    """Return the finding in its file, with the command that shows what is wrong."""
    command = f"logtool dump-index {shell.path(file.path)} --join-log"
    return replace(finding, path=file.path, next=finding.next or command)
