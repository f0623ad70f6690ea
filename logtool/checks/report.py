"""What is asked of one segment, and what the answer is: plain data."""

from dataclasses import field
from enum import StrEnum

from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.formats import compression, offset_index
from logtool.formats.record_batch import BatchTable, empty_table
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import Segment
from logtool.log.file import File


class Level(StrEnum):
    """How deep `verify` looks."""

    QUICK = "quick"
    """Names, indexes, checkpoints, and the tail of each active segment."""
    BATCHES = "batches"
    """And every batch: framing, CRC, header; indexes, snapshots and epochs against the log."""
    RECORDS = "records"
    """And every record: decompressed and decoded."""


@dataclass(slots=True)
class InnerGaps:
    """Offsets that are missing between the sound batches of one segment."""

    count: int = 0
    missing: int = 0
    """Offsets."""
    first: tuple[int, int, int] | None = None
    """The first missing offset, the one behind the last, and the byte of what follows."""
    end: int = 0
    """The offset behind the last gap."""

    def add(self, first: int, end: int, position: int) -> None:
        """Append the gap from `first` up to `end`, in front of the batch at `position`."""
        self.extend(InnerGaps(1, end - first, (first, end, position), end))

    def extend(self, later: "InnerGaps") -> None:
        """Append the gaps of what follows."""
        if later.count:
            self.count += later.count
            self.missing += later.missing
            self.first = self.first or later.first
            self.end = later.end


@dataclass(slots=True)
class SegmentReport:
    """What one pass over a segment found: plain data, so that it can come from elsewhere."""

    base_offset: int
    findings: list[Finding | UnreadableError] = field(default_factory=list)
    skipped: bool = False
    """Whether time ran out before it was looked at."""
    scanned: bool = False
    """Whether the log was read from its start to its end."""
    changed: bool = False
    """Whether it is not any more what the directory listing showed."""
    batches: int = 0
    records: int = 0
    bytes: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    """Largest; None for a segment without a sound batch that was looked at."""
    gaps: InnerGaps = field(default_factory=InnerGaps)
    """Between its sound batches."""
    with_holes: int = 0
    """Batches of magic 2 with fewer records than offsets."""
    horizons: int = 0
    """Batches with a delete horizon, as far as chunks with gaps or with such batches show them."""
    holes: list[tuple[int, int, int]] = field(default_factory=list)
    """Of Redpanda: the first missing offset, the one behind the last, and the byte of what follows,
    for each gap; the head of the segment counts."""
    compacted: bool = False
    """Of Redpanda: whether batches show what compaction leaves: fewer records, or a placeholder."""
    damaged: bool = False
    end_known: bool = True
    """Whether the log ends where its last sound batch does."""
    end_position: int = 0
    """Byte behind the last sound batch."""
    largest_batch: int = 0
    """Bytes."""
    indexed_offset: int = -1
    """Largest offset that one of its indexes names."""
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
        """Append to `epochs` batches of one epoch, or make its last run longer."""
        if self.epochs and self.epochs[-1][0] == epoch:
            first_offset = self.epochs.pop()[1]
        self.epochs.append((epoch, first_offset, last_offset))


@dataclass(frozen=True, slots=True)
class SegmentTask:
    """What to look at in one segment, and how."""

    segment: Segment
    level: Level = Level.BATCHES
    clean: bool = False
    """Whether the log dir holds a clean-shutdown marker."""
    cuts: tuple[int, ...] = ()
    """Offsets inside the segment at which the producer state is wanted."""
    limit: int = compression.DEFAULT_LIMIT
    """Bytes that one batch may decompress to."""
    drop_cache: bool = False
    """Whether the page cache may forget what was read."""
    payload: bool = False
    """Whether who listens to the pass needs the bytes of its batches, too, at any level."""
    ahead_ms: int | None = None
    """How far ahead a timestamp of a producer may be; None: not known."""
    index_interval: int = offset_index.DEFAULT_INTERVAL
    """Bytes for which an offset index may lack an entry."""
    piece: range | None = None
    """Bytes of the log that this is about alone; see `pieces`."""


@dataclass(slots=True)
class PartitionSummary:
    """Totals and ends of one partition, with which the files of its log dir are compared."""

    segments: int = 0
    batches: int = 0
    records: int = 0
    bytes: int = 0
    first_base_offset: int | None = None
    log_end_offset: int | None = None
    """Known once the active segment was read; a torn tail does not count."""
    newest_log_mtime_ns: int = 0
    newest_log: File | None = None
    made_ns: int = 0
    """When partition.metadata was written, which is when the partition was made; 0 without it."""
    topic_id: str | None = None
