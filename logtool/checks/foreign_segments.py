"""Segments that seem to hold batches of another partition, by the producer snapshots next to them.

A producer snapshot has a CRC of its own, and names the last batch of each producer below its
offset. If the file of a segment is replaced by that of another partition with the same base offset,
each batch is sound, but the snapshots name batches that the segment lacks, and do not know the
producers of the batches that it has. A stale snapshot looks different: what it names stands
somewhere in the log. So a segment is in doubt if

- the snapshot behind it names a batch within the segment that is not there;
- that snapshot does not contradict the segments before;
- no producer of the segment is at home in this log: the snapshot does not have its last batch of
  the segment, and either no snapshot knows the producer or its sequence breaks at both ends.

A log with gaps is not judged: compaction may have removed the batch that a snapshot names. Nor does
a snapshot without an entry show anything: a start writes empty ones where they are missing, and a
producer is removed from later ones after ``producer.id.expiration.ms``.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from logtool.checks.report import SegmentReport
from logtool.disk import shell
from logtool.findings import Finding
from logtool.formats.record_batch import SEQUENCES, BatchTable
from logtool.lazy_dataclass import dataclass
from logtool.log.file import File

EXPIRATION_MS = 86_400_000
"""Default of ``producer.id.expiration.ms``: older producers may be missing from a snapshot."""

Entries = Mapping[int, Mapping[str, int]]
"""Entries of a snapshot by producer id."""


@dataclass(frozen=True, slots=True)
class ForeignSegment:
    """A segment that seems to hold batches of another partition."""

    index: int
    """Number of the segment in its partition."""
    base_offset: int
    last_offset: int
    producers: frozenset[int]
    """Producers that the segment or the snapshot behind it names, and not both alike."""
    lacks: tuple[int, int, int]
    """The batch that the snapshot names: producer id, last offset, last sequence."""
    reason: str

    def is_replaced_by(self, tables: Sequence[BatchTable]) -> bool:
        """Return whether batches hold the one that the segment lacks, and reach its last offset."""
        ends_alike = bool(tables) and int(tables[-1].last_offset[-1]) >= self.last_offset
        return ends_alike and any(
            (producer_id, last_offset, last_sequence) == self.lacks
            for table in tables
            for producer_id, last_offset, last_sequence in zip(
                table.producer_id.tolist(),
                table.last_offset.tolist(),
                table.last_sequence.tolist(),
                strict=True,
            )
        )

    def finding(self) -> Finding:
        """Return the finding about the segment, without its path."""
        text = (
            f"the segment may hold batches of another partition: {self.reason}; fill it from "
            "another replica before anything is rebuilt"
        )
        return Finding(
            "segment/other-partition", text, first_offset=self.base_offset,
            last_offset=self.last_offset, segment=self.base_offset,
        )  # fmt: skip


def comparison(topic: str, paths: Sequence[Path]) -> str:
    """Return the command that compares the copies of a topic."""
    words = ["logtool diff", shell.option("--topic", topic), *map(shell.path, paths)]
    return " ".join(words)


def is_forgotten(file: File, timestamp_ms: int) -> bool:
    """Return whether a producer may be missing from a snapshot because of its age.

    The age is that when the file was written; a copy without time stamps only looks older, and so
    does a file whose time is not known.
    """
    age_ms = file.mtime_ns // 1_000_000 - timestamp_ms if file.mtime_ns else EXPIRATION_MS
    return age_ms >= EXPIRATION_MS


@dataclass(frozen=True, slots=True)
class _Batch:
    """One batch of a producer."""

    epoch: int
    base_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp_ms: int

    def leads_to(self, later: "_Batch | None") -> bool:
        """Return whether another batch continues the sequence of this one."""
        return (
            later is not None
            and self.epoch == later.epoch
            and (self.last_sequence + 1) % SEQUENCES == later.base_sequence
        )


_Batches = dict[int, list[_Batch]]
"""Batches with records, by producer id, in the order of the log."""


def foreign_segments(
    reports: Sequence[SegmentReport], snapshots: Sequence[tuple[File, Entries | None]]
) -> list[ForeignSegment]:
    """Return the segments of a partition that seem to hold batches of another one, in order.

    Snapshots that are damaged by themselves have None in place of entries.
    """
    sound = [(file, entries) for file, entries in snapshots if entries is not None]
    known = {producer_id for _, entries in sound for producer_id in entries}
    batches = [_batches(report) for report in reports]
    found: list[ForeignSegment] = []
    before: dict[int, _Batch] = {}
    for index, report in enumerate(reports):
        if not report.scanned or report.damaged:
            break
        one = None
        if report.last_offset is not None:
            after = _first_batches(batches[index + 1 :])
            one = _judge(index, report, batches[index], before, after, sound, known)
        if one:
            found.append(one)
        else:
            before.update({producer_id: rows[-1] for producer_id, rows in batches[index].items()})
    return found


def _judge(
    index: int,
    report: SegmentReport,
    own: _Batches,
    before: Mapping[int, _Batch],
    after: Mapping[int, _Batch],
    sound: Sequence[tuple[File, Entries]],
    known: set[int],
) -> ForeignSegment | None:
    later = [one for one in sound if (one[0].name.offset or 0) > report.base_offset]
    behind = [one for one in later if (one[0].name.offset or 0) >= report.next_offset]
    if not later:
        return None
    file, entries = behind[0] if behind else later[-1]
    end = min(file.name.offset or 0, report.next_offset)
    inside = {
        producer_id: kept
        for producer_id, rows in own.items()
        if (kept := [row for row in rows if row.last_offset < end])
    }
    if any(_is_contradicted(file, entries.get(one), last) for one, last in before.items()):
        return None
    for producer_id, rows in inside.items():
        entry = entries.get(producer_id)
        is_named = entry is not None and _names(entry, rows[-1])
        first = before.get(producer_id)
        goes_on = rows[-1].leads_to(after.get(producer_id))
        goes_on |= first is not None and first.leads_to(rows[0])
        if is_named or (goes_on and producer_id in known):
            return None
    span = range(report.base_offset, end)
    named = [
        (producer_id, entry)
        for producer_id, entry in entries.items()
        if entry["last_offset"] in span
        and _is_absent(entry, inside.get(producer_id, ()))
        and not _is_disproved(entry, before.get(producer_id), after.get(producer_id))
    ]
    strange = {
        producer_id: rows[-1]
        for producer_id, rows in inside.items()
        if producer_id not in known and not is_forgotten(file, rows[-1].timestamp_ms)
    }
    if not named:
        return None
    producers = frozenset([*strange, *(producer_id for producer_id, _ in named), *inside])
    reason = _named(file, *named[0])
    if strange:
        reason += f", and does not know producer {min(strange)} of its batches"
    producer_id, entry = named[0]
    lacks = producer_id, entry["last_offset"], entry["last_sequence"]
    return ForeignSegment(
        index, report.base_offset, report.next_offset - 1, producers, lacks, reason
    )


def _named(file: File, producer_id: int, entry: Mapping[str, int]) -> str:
    return (
        f"{file.path.name} has a batch of producer {producer_id} that ends at offset "
        f"{entry['last_offset']} with sequence {entry['last_sequence']}, which the segment lacks"
    )


def _is_contradicted(file: File, entry: Mapping[str, int] | None, last: _Batch) -> bool:
    """Return whether a snapshot is older than a batch, or is of another log."""
    if entry is None:
        return not is_forgotten(file, last.timestamp_ms)
    return entry["last_offset"] < last.last_offset and entry["producer_epoch"] <= last.epoch


def _names(entry: Mapping[str, int], last: _Batch) -> bool:
    """Return whether an entry of a snapshot is about this batch."""
    return (entry["last_offset"], entry["last_sequence"]) == (last.last_offset, last.last_sequence)


def _is_absent(entry: Mapping[str, int], rows: Sequence[_Batch]) -> bool:
    """Return whether the batch that an entry names is surely not among these of its producer.

    Between two of them may be batches that the report left out.
    """
    offset = entry["last_offset"]
    if not rows or not rows[0].base_offset <= offset <= rows[-1].last_offset:
        return True
    ends = [row.last_sequence for row in rows if row.last_offset == offset]
    return bool(ends) and entry["last_sequence"] not in ends


def _is_disproved(entry: Mapping[str, int], before: _Batch | None, after: _Batch | None) -> bool:
    """Return whether a producer goes on around the segment as if it had written nothing in it."""
    return (
        before is not None
        and before.leads_to(after)
        and entry["last_sequence"] != before.last_sequence
    )


def _batches(report: SegmentReport) -> _Batches:
    rows = report.producer_rows
    found: _Batches = {}
    last_sequence = rows.last_sequence
    for row in np.flatnonzero((rows.producer_id >= 0) & ~rows.is_control).tolist():
        found.setdefault(int(rows.producer_id[row]), []).append(
            _Batch(
                epoch=int(rows.producer_epoch[row]),
                base_sequence=int(rows.base_sequence[row]),
                last_sequence=int(last_sequence[row]),
                base_offset=int(rows.base_offset[row]),
                last_offset=int(rows.last_offset[row]),
                timestamp_ms=int(rows.max_timestamp[row]),
            )
        )
    return found


def _first_batches(later: Sequence[_Batches]) -> dict[int, _Batch]:
    """Return the first batch of each producer in later segments."""
    found: dict[int, _Batch] = {}
    for each in later:
        for producer_id, rows in each.items():
            found.setdefault(producer_id, rows[0])
    return found
