"""Whether a log was compacted, what shows it, and what compaction cannot have taken from it.

Kafka leaves gaps lawfully only by compaction and below the log start: a transaction takes offsets
for its markers, but these are batches. So it matters whether a topic is or was compacted. Only the
cleaner writes batches with fewer records than offsets and delete horizons
(``MemoryRecords.filterTo``, Kafka 3.9 and 4.x); a replica that fetched a cleaned log has the same
gaps above its own cleaner checkpoint.

A producer snapshot shows that the log ended there once: at a roll, at a stop or at a start. Where
the cleaner empties segments, it takes the snapshots at their bases along, but not that of a stop,
which lies inside a segment (``UnifiedLog.replaceSegments``, Kafka 3.3 to 4.3): it stays, in a gap,
until a later start drops it.
"""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats import names, offset_checkpoint
from logtool.formats.names import FileKind, PartitionDirectory
from logtool.lazy_dataclass import dataclass
from logtool.metadata.policies import Past
from logtool.node.settings import Settings

_ALWAYS_COMPACTED = frozenset({"__consumer_offsets", "__transaction_state"})
"""A broker compacts these whatever their settings say."""
MANY_GAPS = 3
"""Sound gaps inside segments from which on a log counts as compacted of which nothing tells the
policies that it had: lost batches do not end exactly where the next one begins, again and again."""


@dataclass(frozen=True, slots=True)
class Traces:
    """What the batches tell of compaction."""

    horizons: int = 0
    """Batches with a delete horizon."""
    with_holes: int = 0
    """Batches with fewer records than offsets."""
    inner_gaps: int = 0
    """Gaps between sound batches of one segment."""


@dataclass(frozen=True, slots=True)
class CompactionEvidence:
    """Whether compaction explains gaps between sound batches of a log, and what that rests on."""

    is_compacted: bool
    evidence: str


@dataclass(frozen=True, slots=True)
class Cleaning:
    """What tells, beside the batches, whether a log was compacted, and how far."""

    topic: str | None = None
    offset: int | None = None
    """The row of cleaner-offset-checkpoint: below it all was cleaned. None without a row: the log
    is not compacted, or no cleaning has come to its end yet."""
    clean: bool = False
    """Whether the log dir was stopped in order. After a kill more may be cleaned than the row says:
    it is written when a cleaning of the whole log is over."""
    policy: str | None = None
    """``cleanup.policy``; None where nothing says."""
    policy_source: str = "the metadata log"
    past: Past | None = None
    """What the policy was before, where that was asked for and is known."""

    @property
    def by_policy(self) -> bool | None:
        """Return what the policy says; None where it is not known."""
        return None if self.policy is None else "compact" in self.policy

    @property
    def is_always_compacted(self) -> bool:
        """Return whether a broker compacts the topic whatever its policy is."""
        return self.topic in _ALWAYS_COMPACTED

    @property
    def is_compacted(self) -> bool:
        """Return whether the log is known to be compacted, without a look at its batches."""
        return bool(self.offset is not None or self.is_always_compacted or self.by_policy)

    def spared(self, offset: int) -> bool:
        """Return whether this broker's cleaner has not touched the batch that ends at an offset."""
        return self.clean and self.offset is not None and offset > self.offset

    def with_policy(self, settings: Settings, topic_id: str | None) -> "Cleaning":
        """Return the same with what the settings say today; `topic_id`: the partition's own."""
        policy, source = settings.policy(self.topic, topic_id)
        return replace(self, policy=policy, policy_source=source)

    def needs_past(self, traces: Traces) -> bool:
        """Return whether what the policies were before could make a difference."""
        return not (self.is_compacted or traces.horizons or traces.with_holes)

    def judge(self, traces: Traces) -> CompactionEvidence:
        """Return whether compaction explains why sound batches leave gaps in this log."""
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
                True, f"a broker compacts {self.topic} whatever its policy is"
            )
        if marked:
            return CompactionEvidence(True, f"the partition has {' and '.join(marked)}")
        if self.offset is not None:
            return CompactionEvidence(True, "cleaner-offset-checkpoint names the partition")
        if past and past.compacted_at is not None:
            text = f"the topic was compacted before, see offset {past.compacted_at} of the "
            return CompactionEvidence(True, f"{text}metadata log")
        if self.policy is None and not past and traces.inner_gaps >= MANY_GAPS:
            return CompactionEvidence(
                True, f"{traces.inner_gaps} gaps between sound batches of one segment"
            )
        known = policy if self.policy else "cleanup.policy is not known"
        if past:
            since = f"since offset {past.since} of" if past.since else "in the whole of"
            known += f", never compact {since} the metadata log"
        return CompactionEvidence(False, f"{known}, and nothing in the partition looks compacted")


NOT_KNOWN = Cleaning()


def beside(path: Path, *, clean: bool = False) -> Cleaning:
    """Return what the log dir tells that a partition dir stands in, if it stands in one."""
    path = path.resolve()
    directory = names.parse_directory(path.name)
    if not isinstance(directory, PartitionDirectory):
        return NOT_KNOWN
    rows: dict[tuple[str, int], int] = {}
    with suppress(UnreadableError):
        data = files.read_small(path.parent / FileKind.CLEANER_CHECKPOINT.value)
        rows = offset_checkpoint.parse(data).offsets
    row = rows.get((directory.topic, directory.partition))
    return Cleaning(directory.topic, row, clean)
