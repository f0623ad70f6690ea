"""Evidence that a log was compacted, and the batches that compaction cannot have removed.

Gaps in the offsets of a log are valid only after compaction and below the log start: a transaction
uses offsets for its markers, but markers are batches. So it matters whether a topic is or was
compacted. Only the cleaner writes batches with fewer records than offsets and delete horizons
(``MemoryRecords.filterTo``, Kafka 3.9 and 4.x); a replica that fetched a cleaned log has the same
gaps above its own cleaner checkpoint.

A producer snapshot shows that the log once ended at its offset: at a roll, a stop or a start. When
the cleaner empties segments, it deletes the snapshots at their base offsets, but not a snapshot
from a stop, which lies inside a segment (``UnifiedLog.replaceSegments``, Kafka 3.3 to 4.3): that
snapshot stays, in a gap, until a later start deletes it.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats import names, offset_checkpoint
from logtool.formats.names import FileKind, PartitionDirectory
from logtool.lazy_dataclass import dataclass
from logtool.metadata.policies import Past
from logtool.node.settings import ALWAYS_COMPACTED, Settings

MANY_GAPS = 3
"""Number of gaps between sound batches from which on a log with unknown policies counts as
compacted: lost batches do not end exactly where the next batch begins, again and again."""


@dataclass(frozen=True, slots=True)
class Traces:
    """Traces of compaction in the batches of a log."""

    horizons: int = 0
    """Batches with a delete horizon."""
    with_holes: int = 0
    """Batches with fewer records than offsets."""
    inner_gaps: int = 0
    """Gaps between sound batches of one segment."""


@dataclass(frozen=True, slots=True)
class CompactionEvidence:
    """Verdict whether compaction explains gaps between sound batches, and its evidence."""

    is_compacted: bool
    evidence: str


@dataclass(frozen=True, slots=True)
class Cleaning:
    """Evidence outside of the batches that a log was compacted, and up to which offset."""

    topic: str | None = None
    offset: int | None = None
    """Offset in cleaner-offset-checkpoint: all batches below it were cleaned. None without a row:
    the log is not compacted, or no cleaning has been completed yet."""
    clean: bool = False
    """True if the broker stopped cleanly. After a kill more may be cleaned than the row says,
    because the broker writes the row when a cleaning of the whole log is complete."""
    policy: str | None = None
    """``cleanup.policy``; None where it is not known."""
    policy_source: str = "the metadata log"
    past: Past | None = None
    """Earlier policies of the topic; None where they were not read or are not known."""

    @property
    def by_policy(self) -> bool | None:
        """Return whether the policy includes ``compact``; None if the policy is not known."""
        return None if self.policy is None else "compact" in self.policy

    @property
    def is_always_compacted(self) -> bool:
        """Return whether a broker compacts the topic even if its policy says otherwise."""
        return self.topic in ALWAYS_COMPACTED

    @property
    def is_compacted(self) -> bool:
        """Return whether the log is known to be compacted, without a look at its batches."""
        return bool(self.offset is not None or self.is_always_compacted or self.by_policy)

    def spared(self, offset: int) -> bool:
        """Return whether this broker's cleaner has not cleaned the batch that ends at `offset`."""
        return self.clean and self.offset is not None and offset > self.offset

    def is_contiguous(self, offset: int, behind: Callable[[], Traces]) -> bool:
        """Return whether the batches from `offset` on should follow each other without a gap.

        So they should behind the offset of the cleaner, after a clean stop. But a replica that
        fetched a cleaned log, or whose cleaner was interrupted, has traces of cleaning there as
        well: `behind` returns those of the segments that reach beyond the offset of the cleaner.
        """
        if self.offset is None or offset < self.offset or not self.clean:
            return False
        found = behind()
        return not (found.horizons or found.with_holes or found.inner_gaps)

    def with_policy(self, settings: Settings, topic_id: str | None) -> "Cleaning":
        """Return a copy with the current policy of the topic; `topic_id` is the partition's own."""
        policy, source = settings.policy(self.topic, topic_id)
        return replace(self, policy=policy, policy_source=source)

    def needs_past(self, traces: Traces) -> bool:
        """Return whether earlier policies could change the verdict."""
        return not (self.is_compacted or traces.horizons or traces.with_holes)

    def judge(self, traces: Traces) -> CompactionEvidence:
        """Return whether compaction explains the gaps between sound batches of this log."""
        marked = []
        if traces.horizons:
            marked.append("delete horizons")
        if traces.with_holes:
            marked.append("batches without some of their records")
        policy = f"cleanup.policy={self.policy} ({self.policy_source})"
        past = self.past
        if self.by_policy:
            return CompactionEvidence(True, policy)
        if self.is_always_compacted:
            return CompactionEvidence(
                True, f"a broker compacts {self.topic} with any cleanup.policy"
            )
        if marked:
            return CompactionEvidence(True, f"the partition has {' and '.join(marked)}")
        if self.offset is not None:
            return CompactionEvidence(True, "cleaner-offset-checkpoint has a row of the partition")
        if past and past.compacted_at is not None:
            text = f"the topic was compacted earlier: see offset {past.compacted_at} of the "
            return CompactionEvidence(True, f"{text}metadata log")
        if self.policy is None and not past and traces.inner_gaps >= MANY_GAPS:
            return CompactionEvidence(
                True, f"{traces.inner_gaps} gaps between sound batches of one segment"
            )
        return CompactionEvidence(
            False, f"{self._uncompacted()}, and nothing in the partition shows compaction"
        )

    def _uncompacted(self) -> str:
        """Return the known policies of a log without signs of compaction."""
        past = self.past
        if self.policy:
            known = f"cleanup.policy={self.policy} ({self.policy_source})"
            if past and past.since:
                return f"{known}, not compact since offset {past.since} of the metadata log"
            return f"{known}, and never compact before" if past else known
        if past is None:
            return "cleanup.policy is not known"
        never = f"has not set {{}} since its offset {past.since}" if past.since else "never set {}"
        policy = "cleanup.policy=compact for the topic"
        return f"the metadata log {never.format(policy)} (the default of the broker is not known)"


NOT_KNOWN = Cleaning()


CleanerRows = dict[Path, dict[tuple[str, int], int]]
"""Rows of cleaner-offset-checkpoint by log dir."""


def next_to(path: Path, *, clean: bool = False, read: CleanerRows | None = None) -> Cleaning:
    """Return the evidence in the log dir around a partition dir; `NOT_KNOWN` without one.

    `read` has the rows of the log dirs that were read before; the others are added to it.
    """
    path = path.resolve()
    directory = names.parse_directory(path.name)
    if not isinstance(directory, PartitionDirectory):
        return NOT_KNOWN
    read = {} if read is None else read
    if path.parent not in read:
        rows = read[path.parent] = {}
        with suppress(UnreadableError):
            data = files.read_small(path.parent / FileKind.CLEANER_CHECKPOINT.value)
            rows.update(offset_checkpoint.parse(data).offsets)
    row = read[path.parent].get((directory.topic, directory.partition))
    return Cleaning(directory.topic, row, clean)
