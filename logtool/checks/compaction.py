"""What compaction may have taken from a log, and what it cannot have taken.

A producer snapshot shows that the log ended there once: at a roll, at a stop or at a start. Where
the cleaner empties segments, it takes the snapshots at their bases along, but not that of a stop,
which lies inside a segment (``UnifiedLog.replaceSegments``, Kafka 3.3 to 4.3): it stays, in a gap,
until a later start drops it.
"""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats import names, offset_checkpoint
from logtool.formats.names import FileKind, PartitionDirectory

_ALWAYS_COMPACTED = frozenset({"__consumer_offsets", "__transaction_state"})
"""A broker compacts these whatever their settings say."""


@dataclass(frozen=True, slots=True)
class Cleaning:
    """What shows, beside the batches, how far the cleaner has come with a log."""

    topic: str | None = None
    offset: int | None = None
    """The row of cleaner-offset-checkpoint: below it all was cleaned. None without a row: the log
    is not compacted, or no cleaning has come to its end yet."""
    clean: bool = False
    """Whether the log dir was stopped in order. After a kill more may be cleaned than the row says:
    it is written when a cleaning of the whole log is over."""

    @property
    def is_compacted(self) -> bool:
        """Return whether the log is known to be compacted."""
        return self.offset is not None or self.topic in _ALWAYS_COMPACTED

    def spared(self, offset: int) -> bool:
        """Return whether this broker's cleaner has not touched the batch that ends at an offset."""
        return self.clean and self.offset is not None and offset > self.offset


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
