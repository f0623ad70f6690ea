"""The task of checking one segment and the report of it: plain data."""

from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING

from logtool.checks.old_formats import FormatExtent
from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.formats import compression, offset_index
from logtool.formats.record_batch import BatchTable, empty_table
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import Segment
from logtool.log.file import File

if TYPE_CHECKING:
    from logtool.checks.segment_part import SegmentPart


class Level(StrEnum):
    """The depth of a check by `verify`."""

    QUICK = "quick"
    """Names, indexes, checkpoints, and the tail of each active segment."""
    BATCHES = "batches"
    """`QUICK` and every batch (framing, CRC, header); indexes, snapshots, epochs against them."""
    RECORDS = "records"
    """`BATCHES` and every record: decompressed and decoded."""


@dataclass(slots=True)
class InnerGaps:
    """Offsets that are missing between the sound batches of one segment."""

    count: int = 0
    missing: int = 0
    """Offsets."""
    first: tuple[int, int, int] | None = None
    """First gap: first missing offset, offset behind the gap, byte of the batch that follows."""
    end: int = 0
    """The offset behind the last gap."""

    def add(self, first: int, end: int, position: int) -> None:
        """Append the gap from `first` up to `end`, in front of the batch at `position`."""
        self.extend(InnerGaps(1, end - first, (first, end, position), end))

    def extend(self, later: "InnerGaps") -> None:
        """Append the gaps of a later part of the segment."""
        if later.count:
            self.count += later.count
            self.missing += later.missing
            self.first = self.first or later.first
            self.end = later.end


@dataclass(slots=True)
class SegmentReport:
    """The result of one pass over a segment: plain data, so that another process can send it."""

    base_offset: int
    findings: list[Finding | UnreadableError] = field(default_factory=list)
    skipped: bool = False
    """True if time ran out before the segment was read."""
    scanned: bool = False
    """True if the log was read from its start to its end."""
    has_end: bool = False
    """True if the log was read to its end, from its start or from a later batch on."""
    changed: bool = False
    """True if the log has another size than in the directory listing."""
    batches: int = 0
    records: int = 0
    bytes: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    """Largest offset; None if no sound batch was read."""
    gaps: InnerGaps = field(default_factory=InnerGaps)
    """Gaps between the sound batches of the segment."""
    with_holes: int = 0
    """Batches of magic 2 with fewer records than offsets."""
    horizons: int = 0
    """Batches with a delete horizon, as far as chunks with gaps or with such batches show them."""
    holes: list[tuple[int, int, int]] = field(default_factory=list)
    """For Redpanda, each gap, also at the head of the segment: first missing offset, offset behind
    the gap, byte of the batch that follows."""
    old_formats: tuple[FormatExtent, ...] = ()
    """Batches of magic 0 and 1, one extent for each format."""
    compacted: bool = False
    """For Redpanda, True if batches show compaction: fewer records, or a placeholder."""
    damaged: bool = False
    end_known: bool = True
    """True if the log ends at its last sound batch, with or without a torn tail."""
    end_position: int = 0
    """Byte behind the last sound batch."""
    largest_batch: int = 0
    """Size of the largest batch, in bytes."""
    indexed_offset: int = -1
    """Largest offset in any of the indexes; -1 without entries."""
    epochs: list[tuple[int, int, int]] = field(default_factory=list)
    """(leader epoch, first offset, last offset) of each run of batches of one epoch."""
    producer_rows: BatchTable = field(default_factory=empty_table)
    """The `producer_state.significant` rows."""

    @property
    def has_gaps(self) -> bool:
        """Return whether offsets are missing between its batches, or records in them."""
        return bool(self.gaps.count or self.with_holes)

    @property
    def next_offset(self) -> int:
        """Return the offset behind the segment's last batch, or its base."""
        return self.base_offset if self.last_offset is None else self.last_offset + 1

    def add_epoch(self, epoch: int, first_offset: int, last_offset: int) -> None:
        """Append a run of batches to `epochs`, or extend the last run if it has that epoch."""
        if self.epochs and self.epochs[-1][0] == epoch:
            first_offset = self.epochs.pop()[1]
        self.epochs.append((epoch, first_offset, last_offset))


@dataclass(frozen=True, slots=True)
class SegmentTask:
    """The check of one segment, or of a piece of it, with its parameters."""

    segment: Segment
    level: Level = Level.BATCHES
    clean: bool = False
    """True if the log dir holds a clean-shutdown marker."""
    cuts: tuple[int, ...] = ()
    """Offsets inside the segment at which the producer state is needed."""
    limit: int = compression.DEFAULT_LIMIT
    """Bytes that one batch may decompress to."""
    drop_cache: bool = False
    """True if the page cache may drop the bytes that were read."""
    payload: bool = False
    """True if a consumer of the chunks needs the bytes of the batches, at any level."""
    ahead_ms: int | None = None
    """Largest time in ms that a timestamp of a producer may be ahead; None: not known."""
    index_interval: int = offset_index.DEFAULT_INTERVAL
    """Bytes for which an offset index may lack an entry."""
    needs_end: bool = False
    """True if the end of the log is read at `Level.QUICK` too, as that of an active segment is."""
    part: "SegmentPart | None" = None
    """The part of the log that an earlier run has read; None to begin at the start."""
    keeps_part: bool = False
    """True if the part that was read is kept when time runs out."""
    piece: range | None = None
    """Byte range of the log to check; None for the whole log. See `segment_ranges`."""


@dataclass(slots=True)
class PartitionSummary:
    """Totals and ends of one partition, with which the files of its log dir are compared."""

    segments: int = 0
    batches: int = 0
    records: int = 0
    bytes: int = 0
    first_base_offset: int | None = None
    log_end_offset: int | None = None
    """Log end offset without a torn tail; None until the active segment was read."""
    newest_log_mtime_ns: int = 0
    newest_log: File | None = None
    damaged: bool = False
    """True if a log holds damage that is not from a change during the check."""
    made_ns: int = 0
    """Time at which partition.metadata was written with the new partition; 0 without that file."""
    topic_id: str | None = None
    epoch_starts: tuple[tuple[int, int], ...] = ()
    """Each leader epoch that is larger than all before it, with the first offset of its batches."""
