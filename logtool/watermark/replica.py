"""One replica of a partition: the offsets that its log dir gives it, and the state of its tail.

High watermark, log end and last stable offset are exclusive: the record at the offset itself is not
below it, so it is not committed, not written, not stable.
"""

from collections.abc import Callable
from dataclasses import field
from functools import cached_property
from pathlib import Path

import numpy as np

from logtool.checks import log_absence
from logtool.checks.report import Level, SegmentTask
from logtool.checks.segment import check_segment
from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.findings import Finding, Severity
from logtool.formats.names import FileKind
from logtool.lazy_dataclass import dataclass
from logtool.loading.loader import load
from logtool.loading.producers import newest_state
from logtool.loading.result import LoadResult, Outcome
from logtool.log import opening, producer_state
from logtool.log.dir import Partition
from logtool.log.file import File, size_of
from logtool.node.identity import listed_topic_id
from logtool.startup import plain_partition, unread
from logtool.startup.plain_partition import PlainLooks
from logtool.startup.request import LoadRequest
from logtool.watermark.simulation.truncation import LogState

SOUND = "sound"
STRAY = "stray"


@dataclass(frozen=True, slots=True)
class StartOffsets:
    """The offsets with which a broker begins; None for those that are not known."""

    log_start: int | None = None
    local_log_start: int | None = None
    high_watermark: int | None = None
    committed: int | None = None
    last_stable: int | None = None
    log_end: int | None = None
    uncommitted_records: int | None = None
    leader_epoch: int | None = None
    epoch_start: int | None = None


@dataclass(frozen=True)
class Replica:
    """State of one replica after its broker has loaded it."""

    path: Path
    topic: str
    partition: int
    node: int | None
    outcome: str
    """`Outcome`, or that its broker would put it aside as stray."""
    reason: str = ""
    first_base_offset: int | None = None
    log_start: int = 0
    local_log_start: int = 0
    """First offset of the local segments; segments below are in remote storage."""
    recovery_point: int | None = None
    """Recovery point in the checkpoint; None without a row."""
    checkpointed: int | None = None
    """High watermark as checkpointed; None without a row."""
    high_watermark: int = 0
    """High watermark with which the broker begins: the row, or 0, within the log."""
    last_stable: int = 0
    log_end: int = 0
    """Log end offset with which the broker begins, after recovery has cut the log."""
    epochs: tuple[tuple[int, int], ...] = ()
    tail: str = SOUND
    """Or the code of what is wrong at the end of the log."""
    lost_records: int = 0
    """Sound records that the broker cuts when it loads the log."""
    uncommitted_records: int = 0
    """Records from the high watermark to the log end."""
    missing: tuple[tuple[int, int], ...] = ()
    """First and last offsets of ranges between two segments that its log has lost."""
    acknowledged_gone: int = 0
    """Offsets that its log has lost, below the checkpointed high watermark or, if the log is absent
    or empty, below the largest offset that another file proves."""
    open_transaction: int | None = None
    """First offset of the oldest transaction without a marker in the log; None without one."""
    alone: bool = False
    """True if its broker's metadata log says that it led and was the only one in sync: then its
    high watermark rose with its log end, even above the checkpointed one."""
    topic_id: str | None = None
    """Topic id in partition.metadata; None if the file cannot be read."""
    newest_log: File | None = field(default=None, repr=False)
    made_ns: int = 0
    """Time at which partition.metadata was written, in ns; 0 without the file."""
    is_new: bool = False
    """True if its broker has no copy: the replica is the empty log that the broker makes."""
    unread_bytes: int = 0
    """Bytes of the logs below the recovery point, which the load does not read."""
    keeps_watermark: bool = True
    """False for Redpanda, which keeps no high watermark: the offsets that depend on it are null."""
    findings: tuple[Finding | UnreadableError, ...] = field(default=(), repr=False)

    @property
    def usable(self) -> bool:
        """Return whether a broker would come up with this replica."""
        return self.outcome == Outcome.LOADS

    @property
    def epoch_starts(self) -> tuple[tuple[int, int], ...]:
        """Return the leader epochs in which batches were written, with their first offsets."""
        return tuple(one for one in self.epochs if one[1] < self.log_end)

    @property
    def last_epoch(self) -> int:
        """Return the last leader epoch, -1 if it is not known."""
        return self.epochs[-1][0] if self.epochs else -1

    @property
    def committed(self) -> int:
        """Return the offset below which its records are known to have been committed."""
        return self.log_end if self.alone else self.high_watermark

    @property
    def log(self) -> LogState:
        """Return the state of the log that the truncation rules use."""
        return LogState(self.epochs, self.log_end, self.high_watermark)

    @property
    def failure(self) -> str | None:
        """Return why no broker comes up with it; None where nothing says so."""
        return self.reason or None

    def missing_below(self, offset: int) -> int:
        """Return how many offsets below `offset` its log has lost between two segments.

        Those below the log start were deleted, and do not count.
        """
        start = self.log_start
        return sum(
            max(0, min(last + 1, offset) - max(first, start)) for first, last in self.missing
        )

    @cached_property
    def offsets(self) -> StartOffsets:
        """Return the offsets with which its broker begins, as far as they are known."""
        if not self.usable:
            return StartOffsets()
        epoch, epoch_start = self.epochs[-1] if self.epochs else (None, None)
        known = self.keeps_watermark
        return StartOffsets(
            log_start=self.log_start,
            local_log_start=self.local_log_start,
            high_watermark=self.high_watermark if known else None,
            committed=self.committed if known else None,
            last_stable=self.last_stable,
            log_end=self.log_end,
            uncommitted_records=self.uncommitted_records if known else None,
            leader_epoch=epoch,
            epoch_start=epoch_start,
        )


def _measured_plain(
    request: LoadRequest,
    node: int | None,
    recovery_point: int | None,
    on_bytes: Callable[[int], None],
    looks: PlainLooks,
) -> Replica | None:
    """Measure a small partition without faults, as `measure` does; None for any other."""
    plain = plain_partition.load(request, looks)
    if not plain:
        return None
    facts, loaded = plain.facts, plain.loaded
    watermark = max(loaded.log_start, request.high_watermark or 0)
    if watermark != loaded.log_end:
        return None
    # As much as `measure` reads for the last stable offset.
    on_bytes(plain.files.last_bytes)
    outcome, reason = str(loaded.outcome), loaded.reason
    if request.fate and request.fate.action in ("stray", "delete"):
        outcome, reason = STRAY, request.fate.text
    return Replica(
        path=request.path,
        topic=request.topic or "",
        partition=request.partition or 0,
        node=node,
        outcome=outcome,
        reason=reason,
        first_base_offset=facts.first_base_offset,
        log_start=loaded.log_start,
        local_log_start=loaded.local_log_start,
        recovery_point=recovery_point,
        checkpointed=request.high_watermark,
        high_watermark=watermark,
        last_stable=watermark,
        log_end=loaded.log_end,
        epochs=tuple(loaded.epochs),
        topic_id=facts.topic_id,
        newest_log=facts.newest_log,
        made_ns=facts.made_ns,
        unread_bytes=facts.bytes,
    )


def measure(
    request: LoadRequest,
    node: int | None,
    recovery_point: int | None,
    on_bytes: Callable[[int], None],
    looks: PlainLooks | None = None,
) -> Replica | UnreadableError:
    """Load one replica as its broker would, on a shadow; work for a thread.

    With `looks` a small partition without faults is not loaded.
    """
    if looks and (plain := _measured_plain(request, node, recovery_point, on_bytes, looks)):
        return plain
    try:
        listed = opening.open_partition(request.path, request.flavour)
        loaded = load(listed, request.start, on_bytes)
        gone = None
        if loaded.outcome is Outcome.LOADS and not _lost(loaded):
            gone = log_absence.missing_end(listed, loaded.log_end, clean=request.start.clean)
        tail = tail_of(listed, clean=request.start.clean) + ([gone] if gone else [])
        broken = [item.code for item in tail if isinstance(item, Finding)]
        start, end = loaded.log_start, loaded.log_end
        watermark = max(start, min(request.high_watermark or 0, end))
        usable = loaded.outcome is Outcome.LOADS
        topic_id = listed_topic_id(listed)
        stable, uncommitted, still_open = (
            _stable(listed, watermark, end, on_bytes) if usable else (0, 0, None)
        )
        if usable and request.start.clean and log_absence.has_no_snapshot(listed):
            # The broker begins with an empty producer state.
            stable, still_open = watermark, None
        holes = _missing_segments(listed, loaded, request) if usable else []
        tail += [_placed(one, listed) for one in holes]
        absent = log_absence.check(listed, request.around, end) if request.around else ()
        tail += [_placed(one, listed) for one in absent if one.severity is not Severity.INFO]
    except UnreadableError as error:
        return error
    outcome, reason = str(loaded.outcome), loaded.reason
    if usable and request.fate and request.fate.action in ("stray", "delete"):
        outcome, reason = STRAY, request.fate.text
    lost = 0
    if gone and gone.code == "log/lost":
        lost = (gone.last_offset or 0) + 1 - loaded.log_end
    first = listed.segments[0].base_offset if listed.segments else None
    made = listed.fixed.get(FileKind.PARTITION_METADATA)
    return Replica(
        path=request.path,
        topic=request.topic or "",
        partition=request.partition or 0,
        node=node,
        outcome=outcome,
        reason=reason,
        first_base_offset=first,
        log_start=start,
        local_log_start=loaded.local_log_start,
        recovery_point=recovery_point,
        checkpointed=request.high_watermark,
        high_watermark=watermark,
        last_stable=stable,
        log_end=end,
        epochs=tuple(loaded.epochs),
        tail=broken[0] if broken else SOUND,
        lost_records=_lost(loaded),
        missing=tuple((one.first_offset or 0, one.last_offset or 0) for one in holes),
        uncommitted_records=uncommitted,
        acknowledged_gone=lost,
        open_transaction=still_open,
        topic_id=topic_id,
        findings=tuple(tail),
        newest_log=max((segment.log for segment in listed.segments), key=_written, default=None),
        made_ns=_written(made) if made else 0,
        unread_bytes=_unread(listed, loaded),
    )


def bytes_ahead(path: Path) -> int:
    """Return the bytes of the logs in a partition dir, about as many as there are to read."""
    try:
        logs = [one for one in files.list_dir(path) if one.name.endswith(FileKind.LOG)]
        return sum(map(size_of, logs))
    except UnreadableError:
        return 0


def _written(file: File) -> int:
    return file.mtime_ns


def tail_of(listed: Partition, *, clean: bool) -> list[Finding | UnreadableError]:
    """Return the findings at the end of the log, where a broker appends."""
    if not listed.segments:
        return []
    active = listed.segments[-1]
    # The indexes of a segment are no part of its tail.
    return [
        item
        if isinstance(item, UnreadableError)
        else item.placed(
            active.log.path, topic=listed.topic, partition=listed.number, segment=active.base_offset
        )
        for item in check_segment(
            SegmentTask(segment=active, level=Level.QUICK, clean=clean)
        ).findings
        if item.path == active.log.path
    ]


def _missing_segments(listed: Partition, loaded: LoadResult, request: LoadRequest) -> list[Finding]:
    """Return the findings about offsets between two segments that the log has lost."""
    if len(listed.segments) < 2:
        return []

    read = {one.base_offset for one in loaded.recovered} | {*loaded.removed}
    others = [one for one in listed.segments if one.base_offset not in read]
    looked = unread.looked_at(others, request)
    return list(unread.missing_segments(listed, loaded, request, looked))


def _placed(finding: Finding, listed: Partition) -> Finding:
    return finding.placed(listed.path, topic=listed.topic, partition=listed.number)


def _lost(loaded: LoadResult) -> int:
    recovered = sum(segment.lost.records for segment in loaded.recovered)
    return recovered + sum(lost.records for lost in loaded.removed.values())


def _unread(listed: Partition, loaded: LoadResult) -> int:
    read = {segment.base_offset for segment in loaded.recovered} | {*loaded.removed}
    return sum(one.log.size for one in listed.segments if one.base_offset not in read)


def _stable(
    listed: Partition, watermark: int, end: int, on_bytes: Callable[[int], None]
) -> tuple[int, int, int | None]:
    """Return the last stable offset, the records from the high watermark on, and an open offset.

    The last one is the first offset of the oldest transaction that is open at `end`, or None. A
    transaction is unstable until its marker is below the high watermark. So the producer state at
    the high watermark decides, even if the transaction is committed after it.
    """
    start, state = newest_state(listed.snapshots, watermark)
    records, above = 0, []
    for segment in listed.segments:
        if segment.next_base_offset is not None and segment.next_base_offset <= start:
            continue
        for chunk in segment.batches(payload=False):
            on_bytes(int(chunk.table.size.sum()))
            table = chunk.table[chunk.table.base_offset < end]
            base = table.base_offset
            below = table[(base >= start) & (base < watermark)]
            state.apply(producer_state.significant(below))
            above.append(producer_state.significant(table[base >= max(start, watermark)]))
            # The base of a wrapper is its last offset, so it is above the watermark or below.
            whole = table.records_of_each
            safe = np.where(table.is_wrapper, whole * (base < watermark), watermark - base)
            counts = (whole - np.clip(safe, 0, whole))[~table.is_control]
            records += int(counts.sum())
    stable = state.oldest_open(none=watermark)
    for rows in above:
        state.apply(rows)
    still_open = state.oldest_open(none=-1)
    return stable, records, None if still_open < 0 else still_open
