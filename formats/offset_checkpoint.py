"""The offset checkpoints (``*-offset-checkpoint``): one offset for each partition of a directory.

====================================  ========================================================
``recovery-point-offset-checkpoint``  first offset not known to be flushed
``replication-offset-checkpoint``     high watermark
``log-start-offset-checkpoint``       log start offset, where above the first segment's base
``cleaner-offset-checkpoint``         first offset that is not compacted yet
====================================  ========================================================

All four share one text format::

    0                      version
    2                      number of entries
    topic-a 0 4711         topic, partition, offset
    topic-b 12 0

The entries have no order; of two for one partition the last counts. Source: ``CheckpointFile``,
``OffsetCheckpointFile`` (Kafka 4.0.0-SNAPSHOT, 1eb7644349c).
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache

from logtool.findings import Finding
from logtool.formats import _checkpoint_file
from logtool.formats._checkpoint_file import CheckpointFile, line_finding, split_fields
from logtool.formats.java_text import Line, parse_int, parse_long
from logtool.formats.refusal import Refusal
from logtool.lazy_dataclass import dataclass

AREA = "checkpoint"
_FIELDS = "topic, partition and offset"


@dataclass(frozen=True, slots=True)
class OffsetRow:
    """One entry and where it stands."""

    topic: str
    partition: int
    offset: int
    line: Line


@dataclass(frozen=True, slots=True)
class OffsetCheckpoint:
    """One offset checkpoint: its lines, and the entries that could be read."""

    file: CheckpointFile
    rows: tuple[OffsetRow, ...]

    @property
    def offsets(self) -> dict[tuple[str, int], int]:
        """Return the offset of each (topic, partition), as a broker reads it: the last counts."""
        return {(row.topic, row.partition): row.offset for row in self.rows}

    @property
    def by_partition(self) -> dict[tuple[str, int], OffsetRow]:
        """Return the row of each (topic, partition): the last counts, as it does for a broker."""
        return {(row.topic, row.partition): row for row in self.rows}

    @property
    def unread(self) -> list[Line]:
        """Return the lines of the entries that could not be read."""
        if len(self.rows) == len(self.file.entries):
            return []
        read = {row.line.number for row in self.rows}
        return [line for line in self.file.entries if line.number not in read]


def parse(data: bytes) -> OffsetCheckpoint:
    """Split `data` into lines and read the entries. Never fails; see `check`."""
    return _parsed(bytes(data))


@lru_cache(maxsize=4)
def _parsed(data: bytes) -> OffsetCheckpoint:
    """Return the checkpoint; several parts of a command ask for the same file."""
    return _read(_checkpoint_file.parse(data))


def encode(checkpoint: OffsetCheckpoint) -> bytes:
    """Return the bytes `parse` was given; the two are exact inverses."""
    return _checkpoint_file.encode(checkpoint.file)


def check(checkpoint: OffsetCheckpoint) -> Iterator[Finding]:
    """Yield every broken rule: those of the file, then those of its entries, in file order."""
    file = checkpoint.file
    if len(file.lines) < 2:
        found = "only a version" if file.lines else "an empty file"
        yield Finding(
            f"{AREA}/empty",
            f"expected a version and a count, found {found}: no entries",
            position=0,
        )
    malformed = {line.number for line in checkpoint.unread}
    yield from _checkpoint_file.check(file, AREA, _FIELDS, malformed)
    seen: dict[tuple[str, int], OffsetRow] = {}
    for row in checkpoint.rows:
        if row.partition < 0:
            yield line_finding(f"{AREA}/negative-partition", row.line, "a partition of at least 0")
        if row.offset < 0:
            yield line_finding(f"{AREA}/negative-offset", row.line, "an offset of at least 0")
        before = seen.get((row.topic, row.partition))
        if before:
            yield line_finding(
                f"{AREA}/duplicate",
                row.line,
                f"no second entry after offset {before.offset} in line {before.line.number}",
            )
        seen[row.topic, row.partition] = row


def refusal(checkpoint: OffsetCheckpoint) -> Refusal | None:
    """Return where a broker's reader gives up; None where it takes the file."""
    readers = None, parse_int, parse_long
    return _checkpoint_file.refusal(checkpoint.file, checkpoint.unread, _FIELDS, readers)


def build(offsets: Mapping[tuple[str, int], int]) -> OffsetCheckpoint:
    """Return the checkpoint that Kafka writes for the offset of each (topic, partition)."""
    return _read(
        _checkpoint_file.build(
            [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
        )
    )


def _read(file: CheckpointFile) -> OffsetCheckpoint:
    return OffsetCheckpoint(file, tuple(row for line in file.entries if (row := _row(line))))


def _row(line: Line) -> OffsetRow | None:
    match split_fields(line):
        case [topic, partition_text, offset_text]:
            partition, offset = parse_int(partition_text), parse_long(offset_text)
            if partition is not None and offset is not None:
                return OffsetRow(topic=topic, partition=partition, offset=offset, line=line)
    return None
