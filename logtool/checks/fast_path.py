"""A fast check that recognises small partitions without faults, which are most partitions.

In a log dir of many small partitions, opening the files costs more than reading them. So a
partition whose files are those of a broker at rest, and whose segments are plain
(`_kernels.plain_segment`), is read here file by file, with no object for a file and no column for a
batch. Anything out of the ordinary, be it sound or not, ends the fast check with None: then the
rules check the partition one by one, from the start. So this module reports no fault. A test
ensures that the rules report nothing for a partition that is plain here, for every directory and
every damage that the tests know.
"""

import os
import struct
from bisect import bisect_left, bisect_right
from dataclasses import field
from itertools import chain
from pathlib import Path
from typing import TypeVar

import numpy as np

from logtool.checks import leader_epochs, plain_segment, timestamps
from logtool.checks.plain_files import PlainFiles
from logtool.checks.plain_segment import OnSegment
from logtool.checks.report import PartitionSummary
from logtool.disk import files
from logtool.formats import (
    _kernels,
    leader_epoch_checkpoint,
    names,
    partition_metadata,
    producer_snapshot,
)
from logtool.formats.names import FileKind
from logtool.formats.record_batch import SEQUENCES
from logtool.lazy_dataclass import dataclass
from logtool.log.file import File
from logtool.log.flavour import Flavour
from logtool.running.budget import Budget

LARGEST = 256 * 1024
"""Bytes of the largest file that is read here: of larger files, reading costs more than opening."""
_MOST_BATCHES = LARGEST // 512
_MOST_KNOWN = 4096
"""Number of contents of small files that are kept, because many partitions have equal files."""
_LARGEST_KNOWN = 1024
"""Bytes of the largest content that is kept."""
_DIGITS = 20
_LAST_OFFSET = 2**63 - 1
_LOG, _INDEX, _TIMES = (f".{kind}" for kind in ("log", "index", "timeindex"))
_SNAPSHOT = ".snapshot"
_KINDS = FileKind.OFFSET_INDEX, FileKind.TIME_INDEX
_EPOCHS, _METADATA = (
    kind.value for kind in (FileKind.LEADER_EPOCH_CHECKPOINT, FileKind.PARTITION_METADATA)
)
_POSITION, _BASE, _LAST, _EPOCH, _PRODUCER, _PRODUCER_EPOCH, _SEQUENCE, _RECORDS = (
    0, 2, 3, 4, 10, 11, 12, 13,
)  # fmt: skip
"""Row numbers of the columns that the kernels write."""

T = TypeVar("T")
Epochs = tuple[tuple[int, int], ...]
Producers = dict[int, tuple[int, int, int]]
"""By producer id: epoch, last sequence and last offset."""


class _NotPlainError(Exception):
    """Something is out of the ordinary."""


@dataclass(frozen=True, slots=True)
class OtherFile:
    """An index that a plain segment lacks, or that is not what a recovery would write."""

    offset: int
    """Offset in the file name."""
    kind: FileKind
    content: bytes
    """The content that a recovery writes."""
    seen: os.stat_result | None
    """Status of the existing file; None if there is no file."""


@dataclass(slots=True)
class DueIndexes:
    """Settings for comparing the indexes of a partition with those that a recovery writes.

    With them, an index may be missing. A look fills in the other fields.
    """

    interval: int
    """Bytes, ``index.interval.bytes``."""
    max_size: int
    """Bytes, ``segment.index.bytes``."""
    others: list[OtherFile] = field(default_factory=list)
    """In order of base offset: valid only if the look finds the partition plain."""
    bases: list[int] = field(default_factory=list)
    snapshots: list[int] = field(default_factory=list)
    """Offsets of the producer snapshots; `bases` are those of the segments."""
    has_producers: bool = False
    """True if a batch or a snapshot names a producer."""


def may_look(path: Path, budget: Budget, flavour: Flavour | None, *, timed: bool = False) -> bool:
    """Return whether a run may look at partitions before it lists them.

    Remote storage and ``--flavour`` exclude it, and so does a budget, which counts each read. With
    `timed` a deadline is no reason against it.
    """
    pace = budget.pace
    paced = pace.bytes_per_second is not None or (pace.deadline is not None and not timed)
    spends = paced or budget.drop_cache or budget.memory
    return not (spends or flavour is not None or files.is_remote(path))


class PlainPartitions:
    """A fast check of partition dirs, one after the other, in one thread."""

    def __init__(self) -> None:
        self.files = PlainFiles()
        """Facts about the partition of the last look, if that was plain."""
        # The kernels leave the columns of Redpanda and of markers as they are.
        self._rows = np.full((_kernels.BATCH_COLUMNS, _MOST_BATCHES), -1, np.int64)
        self._found = np.empty(_kernels.SEGMENT_FACTS, np.int64)
        self._entries = np.empty((4, _MOST_BATCHES + 1), np.int64)
        self._epochs: dict[bytes, Epochs] = {}
        self._ids: dict[bytes, str] = {}
        self._snapshots: dict[bytes, Producers] = {}

    def look(
        self,
        path: Path,
        log_start: int,
        ahead_ms: int | None,
        due: DueIndexes | None = None,
        *,
        clean: bool = False,
        quick: bool = False,
        on_segment: OnSegment | None = None,
    ) -> PartitionSummary | None:
        """Return the facts of a partition dir for which no rule reports anything, else None.

        `log_start` is the offset in log-start-offset-checkpoint, 0 without one, and `ahead_ms` how
        far ahead its timestamps may be; None: not known. With `due` indexes may be missing, which
        the rules would report. After a `clean` stop a log has a snapshot at its end. With `quick`
        the totals are those of the end of the last segment, all that the rules of
        `Level.QUICK` read. `on_segment` is called with each segment in turn; what it was called
        with counts only if the result is not None.
        """
        try:
            facts = self._look(path, log_start, ahead_ms, due, clean, on_segment)
        except (_NotPlainError, OSError):
            return None
        if quick:
            self._hold_to_end(facts)
        return facts

    def _hold_to_end(self, facts: PartitionSummary) -> None:
        """Reduce the totals to those of the end of the last segment, from its last index entry."""
        found = self.files
        count = int(self._found[6]) if found.last_bytes else 0
        start = found.last_position if 0 < found.last_position < found.last_bytes else 0
        first = bisect_left(self._rows[_POSITION, :count].tolist(), start)
        records, epochs, bases = self._rows[[_RECORDS, _EPOCH, _BASE], first:count].tolist()
        facts.batches, facts.records = count - first, sum(records)
        facts.bytes = found.last_bytes - start
        facts.epoch_starts = leader_epochs.rising(zip(epochs, bases, strict=True))

    def _look(
        self,
        path: Path,
        log_start: int,
        ahead_ms: int | None,
        due: DueIndexes | None,
        clean: bool,
        on_segment: OnSegment | None,
    ) -> PartitionSummary:
        home, bases, snapshots = _listed(path, due)
        # The active segment is mostly the largest file; on a running broker, its index is.
        last = f"{home}{bases[-1]:020d}"
        sizes = (os.stat(last + kind).st_size for kind in ((_LOG,) if due else (_LOG, _INDEX)))  # noqa: PTH116
        if max(sizes) > LARGEST:
            raise _NotPlainError
        facts = PartitionSummary(segments=len(bases), first_base_offset=bases[0])
        metadata, status = files.glance(home + _METADATA, LARGEST)
        facts.made_ns, facts.topic_id = status.st_mtime_ns, self._topic_id(metadata)
        self.files = found = PlainFiles(len(bases), snapshots)
        found.epochs_content = files.glance(home + _EPOCHS, LARGEST)[0]
        epochs = found.epochs = self._rows_of(found.epochs_content)
        found.other_bytes = len(metadata) + len(found.epochs_content)
        runs: list[tuple[int, int, int]] = []
        producers: Producers = {}
        end = newest = bases[0]
        for base in bases:
            if base != end:
                raise _NotPlainError
            if base in snapshots:
                self._compare(home, base, producers)
            stem = f"{home}{base:020d}"
            log, status = files.glance(stem + _LOG, LARGEST + 1)
            if len(log) != status.st_size or len(log) > LARGEST:
                raise _NotPlainError
            if status.st_mtime_ns > facts.newest_log_mtime_ns:
                facts.newest_log_mtime_ns, newest = status.st_mtime_ns, base
                size = status.st_size
            indexes = self._due(due, stem, log, base) if due else _indexes(stem)
            active = base == bases[-1]
            end = self._segment(log, indexes, status.st_mtime_ns, base, active, ahead_ms)
            if end > base:
                self._add(facts, runs, producers)
            if on_segment:
                counted = self._rows, self._found if end > base else None
                on_segment(plain_segment.of(base, stem + _LOG, log, indexes, *counted))
            found.log_bytes += len(log)
            found.other_bytes += len(indexes[0]) + len(indexes[1])
            found.last_bytes, found.last_position = len(log), int.from_bytes(indexes[0][-4:])
            found.inactive_indexes += 0 if active else bool(indexes[0]) + bool(indexes[1])
        if end in snapshots and end != bases[-1]:
            self._compare(home, end, producers)
        facts.bytes = found.log_bytes
        lacks_snapshot = clean and facts.bytes and end not in snapshots
        lacks_start = clean and 0 < log_start < bases[0]
        if lacks_start or lacks_snapshot or not set(snapshots).issubset((*bases, end)):
            raise _NotPlainError
        _hold_epochs(epochs, runs, max(log_start, bases[0]), end)
        if due:
            due.has_producers = bool(producers) or any(self._read(home, at) for at in snapshots)
        facts.log_end_offset = end
        facts.epoch_starts = leader_epochs.rising((epoch, first) for epoch, first, _ in runs)
        name = names.parse_partition_file(f"{newest:020d}{_LOG}")
        facts.newest_log = File(path / name.name, name, size, facts.newest_log_mtime_ns)
        return facts

    def _segment(
        self,
        log: bytes,
        indexes: tuple[bytes, bytes],
        mtime_ns: int,
        base: int,
        active: bool,
        ahead_ms: int | None,
    ) -> int:
        """Return the offset behind the last batch of a segment."""
        index, times = indexes
        if not log and active:
            if index or times:
                raise _NotPlainError
            return base
        parts = memoryview(log), memoryview(index), memoryview(times)
        if not _kernels.plain_segment(*parts, base, self._rows, self._found):
            raise _NotPlainError
        _, _, newest, _, _, oldest, _, last, indexed = self._found.tolist()
        bounds = timestamps.ordinary(mtime_ns, ahead_ms)
        if not bounds or not bounds[0] < oldest <= newest < bounds[1]:
            raise _NotPlainError
        if indexed < newest and not active:
            raise _NotPlainError
        return int(last) + 1

    def _due(self, due: DueIndexes, stem: str, log: bytes, base: int) -> tuple[bytes, bytes]:
        """Return the indexes of a segment; for a missing one, the content that a recovery writes.

        Indexes that are missing, or differ from those of a recovery, are added to `due.others`.
        """
        nothing, count = memoryview(b""), 0
        if log:
            if not _kernels.plain_segment(
                memoryview(log), nothing, nothing, base, self._rows, self._found
            ):
                raise _NotPlainError
            count = int(self._found[6])
        offsets, times = self._entries[:2], self._entries[2:]
        counts = _kernels.due_entries(self._rows, count, base, due.interval, offsets, times)
        if due.max_size // 12 - 1 <= max(counts):
            raise _NotPlainError
        found = []
        for kind, packed, entries, many in zip(
            _KINDS, (">ii", ">qi"), (offsets, times), counts, strict=True
        ):
            rows = entries[:, :many].T.tolist()
            content = b"".join(struct.pack(packed, *row) for row in rows)
            try:
                there, seen = files.glance(stem + kind, LARGEST)
            except FileNotFoundError:
                there, seen = content, None
            if seen is None or there != content:
                due.others.append(OtherFile(base, kind, content, seen))
            found.append(there)
        return found[0], found[1]

    def _add(
        self, facts: PartitionSummary, runs: list[tuple[int, int, int]], producers: Producers
    ) -> None:
        """Add the totals of the last segment."""
        records, _, _, _, many, _, count, last, _ = self._found.tolist()
        rows = self._rows
        facts.batches += count
        facts.records += records
        first, end = int(rows[_EPOCH, 0]), int(rows[_EPOCH, count - 1])
        if first == end:
            runs.append((first, int(rows[_BASE, 0]), last))
        else:
            columns = rows[[_EPOCH, _BASE, _LAST], :count].tolist()
            runs += zip(*columns, strict=True)
        if many:
            begin = count - 1 if many == 1 else 0
            columns = rows[[_PRODUCER, _PRODUCER_EPOCH, _SEQUENCE, _BASE, _LAST], begin:count]
            for producer, epoch, sequence, base, last in zip(*columns.tolist(), strict=True):
                if producer >= 0:
                    sequence = (sequence + last - base) & (SEQUENCES - 1)
                    producers[producer] = epoch, sequence, last

    def _compare(self, home: str, offset: int, replayed: Producers) -> None:
        """Compare the producer snapshot at an offset with the producers before it."""
        known = self._read(home, offset)
        self.files.other_bytes += len(self.files.newest_snapshot)
        for last in known.values():
            if last[2] >= offset:
                raise _NotPlainError
        for producer, state in replayed.items():
            if known.get(producer) != state:
                raise _NotPlainError

    def _read(self, home: str, offset: int) -> Producers:
        """Return the producers of the snapshot at an offset; an open transaction is not plain."""
        data = files.glance(f"{home}{offset:020d}{_SNAPSHOT}", LARGEST)[0]
        self.files.newest_snapshot = data
        known = self._snapshots.get(data)
        if known is None:
            snapshot = producer_snapshot.parse(data)
            if len(data) == LARGEST or any(producer_snapshot.check(snapshot)):
                raise _NotPlainError
            entries = snapshot.entries
            if (entries["current_txn_first_offset"] != -1).any():
                raise _NotPlainError
            fields = ("producer_epoch", "last_sequence", "last_offset")
            columns = (entries[field].tolist() for field in fields)
            ids = entries["producer_id"].tolist()
            known = dict(zip(ids, zip(*columns, strict=True), strict=True))
            _keep(self._snapshots, data, known)
        return known

    def _rows_of(self, data: bytes) -> Epochs:
        """Return the entries of leader-epoch-checkpoint."""
        known = self._epochs.get(data)
        if known is None:
            checkpoint = leader_epoch_checkpoint.parse(data)
            if len(data) == LARGEST or any(leader_epoch_checkpoint.check(checkpoint)):
                raise _NotPlainError
            known = tuple(checkpoint.epochs)
            _keep(self._epochs, data, known)
        return known

    def _topic_id(self, data: bytes) -> str:
        known = self._ids.get(data)
        if known is None:
            metadata = partition_metadata.parse(data)
            if metadata.topic_id is None or any(partition_metadata.check(metadata)):
                raise _NotPlainError
            known = metadata.topic_id
            _keep(self._ids, data, known)
        return known


def _indexes(stem: str) -> tuple[bytes, bytes]:
    """Return the offset index and the time index of a segment."""
    return files.glance(stem + _INDEX, LARGEST)[0], files.glance(stem + _TIMES, LARGEST)[0]


def _listed(path: Path, due: DueIndexes | None) -> tuple[str, list[int], list[int]]:
    """Return the directory with a slash, and the sorted offsets of its logs and its snapshots.

    With `due` indexes may be missing.
    """
    home = f"{path}/"
    of: dict[str, list[int]] = {_LOG: [], _INDEX: [], _TIMES: [], _SNAPSHOT: []}
    with os.scandir(home) as entries:
        for entry in entries:
            name = entry.name
            if not entry.is_file(follow_symlinks=False):
                raise _NotPlainError
            if name in (_EPOCHS, _METADATA):
                continue
            offsets, digits = of.get(name[_DIGITS:]), name[:_DIGITS]
            if offsets is None or not (digits.isascii() and digits.isdigit()):
                raise _NotPlainError
            offsets.append(int(digits))
    for offsets in of.values():
        offsets.sort()
    bases = of[_LOG]
    if not bases or bases[-1] > _LAST_OFFSET:
        raise _NotPlainError
    if due:
        if not set(bases).issuperset(chain(of[_INDEX], of[_TIMES])):
            raise _NotPlainError
        due.bases, due.snapshots = bases, of[_SNAPSHOT]
    elif of[_INDEX] != bases or of[_TIMES] != bases:
        raise _NotPlainError
    return home, bases, of[_SNAPSHOT]


def _hold_epochs(
    epochs: Epochs, runs: list[tuple[int, int, int]], log_start: int, log_end: int
) -> None:
    """Compare leader-epoch-checkpoint with the epochs of batches from the log start on."""
    starts = [start for _, start in epochs]
    if starts and (starts[-1] > log_end or starts[0] < log_start):
        raise _NotPlainError
    for epoch, first, last in runs:
        first = max(first, log_start)
        if epoch < 0 or first > last:
            continue
        behind = bisect_right(starts, first)
        if not behind or epochs[behind - 1][0] != epoch or bisect_right(starts, last) != behind:
            raise _NotPlainError


def _keep(known: dict[bytes, T], data: bytes, value: T) -> None:
    """Keep the value of a small content; all values are dropped once there are too many."""
    if len(known) >= _MOST_KNOWN:
        known.clear()
    if len(data) <= _LARGEST_KNOWN:
        known[data] = value
