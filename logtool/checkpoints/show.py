"""The checkpoints of a log dir side by side: an object for each partition or epoch."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from logtool.checkpoints.edit import Present, content, kind_of, load
from logtool.checks import root
from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.formats import names, recovery_journal, wording
from logtool.formats.names import FileKind, PartitionDirectory, TopicPartition
from logtool.formats.recovery_journal import RecoveryJournal
from logtool.lazy_dataclass import dataclass
from logtool.log import inputs, opening
from logtool.log.damage import Damage, DamageReason
from logtool.log.dir import OF_TODAY, OFFSET_CHECKPOINTS, LogDir, Partition
from logtool.log.inputs import PathKind
from logtool.log.selection import Selection
from logtool.times import rfc3339

Rows = dict[FileKind, dict[TopicPartition, int]]
"""The offsets of each checkpoint."""
_MAY_BE_JOURNAL = (FileKind.RECOVERY_POINT_CHECKPOINT, FileKind.UNKNOWN)


@dataclass(frozen=True, slots=True)
class UnflushedOptions:
    """Options for the report on the part of each log that is not flushed."""

    now_ms: int
    """Time of the question, in ms since the epoch: ages are relative to it."""
    segment_bytes: int | None = None
    """Size of segments for which it is said how much a start would read."""


@dataclass(frozen=True, slots=True)
class ShownPartition:
    """The offsets of one partition in the checkpoints of a log dir; None where there is no row."""

    path: Path
    """The log dir, or the one checkpoint that was given."""
    topic: str
    partition: int
    directory: str | None = None
    """Name of the partition dir; None if there is no dir."""
    recovery_point: int | None = None
    high_watermark: int | None = None
    log_start_offset: int | None = None
    cleaner_offset: int | None = None
    leader_epoch: int | None = None
    epoch_start_offset: int | None = None
    log_end_offset: int | None = None
    """This and what follows: as `Unflushed` has it; None unless the log was read."""
    unflushed_bytes: int | None = None
    unflushed_records: int | None = None
    unflushed_since_ms: int | None = None
    unflushed_age_ms: int | None = None
    """From `unflushed_since_ms` until it was asked; 0 where that lies before it."""
    recovery_bytes: int | None = None
    recovery_bytes_if: int | None = None

    @property
    def unflushed_since(self) -> str | None:
        """Return `unflushed_since_ms` as text; None where no calendar has it."""
        return rfc3339(self.unflushed_since_ms)


@dataclass(frozen=True, slots=True)
class ShownEpoch:
    """One row of a leader-epoch-checkpoint."""

    path: Path
    leader_epoch: int
    start_offset: int
    end_offset: int | None
    """First offset of the next epoch; None for the last one."""


@dataclass(slots=True)
class Unflushed:
    """Part of a log that a power failure may take, and the part read by a start after a kill."""

    log_end: int = 0
    """Offset behind the last sound batch."""
    bytes: int = 0
    """Size of the log from the first batch that ends behind the recovery point, without zeros
    behind the last batch."""
    records: int = 0
    """Records in the sound batches of that part of the log."""
    since_ms: int | None = None
    """Largest timestamp of the first of these batches, in ms since the epoch; None without one."""
    recovery_bytes: int = 0
    """Size of the segments that a start after a kill reads, each from its first byte."""
    recovery_bytes_if: int | None = None
    """Value of `recovery_bytes` for segments of another size; None if no size was given."""


Item = ShownPartition | ShownEpoch | Finding | str


def show(
    path: Path, selection: Selection, wanted: UnflushedOptions | None = None
) -> Iterator[Item | UnreadableError]:
    """Yield the rows of a log dir, of a partition dir or of one checkpoint.

    Lines that a broker cannot read come as findings, files that cannot be read as errors. With
    `wanted`, the logs of a log dir are read from their recovery points on. A file whose name does
    not show its kind yields a line of text that says what it is.
    """
    what = inputs.kind_of(path, lacking="Redpanda has no offset checkpoints")
    if what is PathKind.LOG_DIR:
        yield from _log_dir(opening.open_log_dir(path), selection, wanted)
        return
    if what is PathKind.FILE and kind_of(path) in _MAY_BE_JOURNAL:
        data = content(path)
        if recovery_journal.is_one(data):
            yield from _journal(path, recovery_journal.parse(data))
            return
    file = path / FileKind.LEADER_EPOCH_CHECKPOINT if what is PathKind.PARTITION_DIR else path
    present = load(file)
    if present.stamp is None:
        raise UnreadableError(file, "there is no such file", missing=True)
    yield from _findings(present)
    if present.kind is FileKind.LEADER_EPOCH_CHECKPOINT:
        yield from _epochs(present)
    else:
        rows: Rows = {present.kind: present.value.offsets}
        for topic, number in rows[present.kind]:
            yield _partition(file, topic, number, rows)


def _journal(path: Path, journal: RecoveryJournal) -> Iterator[Item]:
    """Yield the summary, the findings and the partitions of a journal of recovery points."""
    rows: Rows = {FileKind.RECOVERY_POINT_CHECKPOINT: journal.offsets}
    entries = wording.count(len(journal.rows), "entry", "entries")
    partitions = wording.count(len(journal.offsets), "partition")
    yield (
        f"{path}: is a journal of recovery points (KAFKA-615), which no Kafka release reads: "
        f"{entries} of {partitions}, {journal.set_back:,} of them lower than before; the last "
        "entry of each partition counts"
    )
    for finding in recovery_journal.check(journal):
        yield finding.placed(path)
    for topic, number in journal.offsets:
        yield _partition(path, topic, number, rows)


def _log_dir(
    home: LogDir, selection: Selection, wanted: UnflushedOptions | None
) -> Iterator[Item | UnreadableError]:
    found: Rows = {}
    for kind in OFFSET_CHECKPOINTS:
        if kind not in home.files:
            continue
        try:
            present = load(home.files[kind].path)
        except UnreadableError as error:
            yield error
            continue
        yield from _findings(present)
        found[kind] = present.value.offsets
    seen = set()
    for path, directory in home.partitions:
        key = directory.topic, directory.partition
        if not selection.takes(directory):
            continue
        has_rows = directory.kind in OF_TODAY and root.key_of(directory)
        rows: Rows = found if has_rows else {}
        if rows:
            seen.add(key)
        row = replace(_partition(home.path, *key, rows), directory=path.name)
        try:
            present = load(path / FileKind.LEADER_EPOCH_CHECKPOINT)
        except UnreadableError as error:
            yield error
        else:
            yield from _findings(present)
            for epoch, offset in present.value.epochs[-1:]:
                row = replace(row, leader_epoch=epoch, epoch_start_offset=offset)
        if wanted and has_rows and directory.topic != names.CLUSTER_METADATA:
            try:
                row = _with_unflushed(row, path, wanted)
            except UnreadableError as error:
                yield error
        yield row
    for topic, number in dict.fromkeys(key for rows in found.values() for key in rows):
        named = names.parse_directory(f"{topic}-{number}")
        taken = isinstance(named, PartitionDirectory) and selection.takes(named)
        if (topic, number) not in seen and taken:
            yield _partition(home.path, topic, number, found)


def _partition(path: Path, topic: str, number: int, rows: Rows) -> ShownPartition:
    def offset(kind: FileKind) -> int | None:
        return rows.get(kind, {}).get((topic, number))

    return ShownPartition(
        path,
        topic,
        number,
        recovery_point=offset(FileKind.RECOVERY_POINT_CHECKPOINT),
        high_watermark=offset(FileKind.REPLICATION_CHECKPOINT),
        log_start_offset=offset(FileKind.LOG_START_CHECKPOINT),
        cleaner_offset=offset(FileKind.CLEANER_CHECKPOINT),
    )


def _with_unflushed(row: ShownPartition, path: Path, wanted: UnflushedOptions) -> ShownPartition:
    """Return the row with what is not flushed of the log at `path`; UnreadableError."""
    point = row.recovery_point or 0
    found = _measure_unflushed(opening.open_partition(path), point, wanted.segment_bytes)
    since = found.since_ms
    return replace(
        row,
        log_end_offset=found.log_end,
        unflushed_bytes=found.bytes,
        unflushed_records=found.records,
        unflushed_since_ms=since,
        unflushed_age_ms=None if since is None else max(0, wanted.now_ms - since),
        recovery_bytes=found.recovery_bytes,
        recovery_bytes_if=found.recovery_bytes_if,
    )


def _measure_unflushed(
    listed: Partition, point: int, segment_bytes: int | None = None
) -> Unflushed:
    """Return the measures of the part of a log after its recovery `point`.

    With `segment_bytes`, also return how much a start would read if the log on disk were in
    segments of that size from its first byte on. That is an estimate: the bounds of such segments
    are not known. UnreadableError if the log cannot be read.
    """
    floor = [number for number, one in enumerate(listed.segments) if one.base_offset <= point]
    rest = listed.segments[floor[-1] if floor else 0 :]
    total = sum(segment.log.size for segment in listed.segments)
    found = Unflushed(recovery_bytes=sum(segment.log.size for segment in rest))
    before, begin = total - found.recovery_bytes, None
    for segment in rest:
        found.log_end = max(found.log_end, segment.base_offset)
        for chunk in segment.batches(payload=False):
            damage, table = chunk.damage, chunk.table
            if damage is None:
                found.log_end = max(found.log_end, int(table.last_offset[-1]) + 1)
                if begin is None:
                    table = table[int(np.count_nonzero(table.last_offset < point)) :]
                if not len(table):
                    continue
                position, size = int(table.position[0]), int(table.size.sum())
                found.records += table.records
            elif found.log_end >= point and not _is_padding(damage):
                position, size = damage.position, damage.length
            else:
                continue
            if begin is None:
                begin = before + position
                stamp = int(table.max_timestamp[0]) if len(table) else -1
                found.since_ms = stamp if stamp >= 0 else None
            found.bytes += size
        before += segment.log.size
    if segment_bytes:
        begin = total if begin is None else begin
        found.recovery_bytes_if = total - begin // segment_bytes * segment_bytes
    return found


def _is_padding(damage: Damage) -> bool:
    return damage.reason is DamageReason.ZEROS and not damage.resynchronised


def _epochs(present: Present) -> Iterator[ShownEpoch]:
    rows = present.value.epochs
    for number, (epoch, offset) in enumerate(rows):
        end = rows[number + 1][1] if number + 1 < len(rows) else None
        yield ShownEpoch(present.path, epoch, offset, end)


def _findings(present: Present) -> Iterator[Finding]:
    for finding in present.findings:
        if finding.code != "checkpoint/empty":
            yield finding.placed(present.path)
