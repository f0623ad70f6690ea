"""The journal of recovery points of KAFKA-615: the first design of what became a checkpoint.

Each entry is one line, appended when a segment was flushed or a log was truncated; of several for
one partition the last counts, also where it goes back. There is neither a version nor a count::

    topic-a 0 4711         topic, partition, offset
    topic-b 12 0
    topic-a 0 9422

An entry counts once its line has an end: what a crash left of the last one may be the beginning of
a longer number. No release of Kafka reads or writes such a file. Source: the first comment of
KAFKA-615, where the file has no name; ``OffsetCheckpointFile`` (0.8.1 and later) replaced it.
"""

from collections.abc import Iterator

from logtool.findings import Finding
from logtool.formats._checkpoint_file import split_fields
from logtool.formats.java_text import Line, parse_int, parse_long, split_lines
from logtool.formats.offset_checkpoint import OffsetRow
from logtool.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class RecoveryJournal:
    """One journal: its lines, and the entries that count."""

    lines: tuple[Line, ...]
    rows: tuple[OffsetRow, ...]

    @property
    def offsets(self) -> dict[tuple[str, int], int]:
        """Return the recovery point of each (topic, partition)."""
        return {(row.topic, row.partition): row.offset for row in self.rows}

    @property
    def set_back(self) -> int:
        """Return how many entries are below the one before of their partition."""
        latest: dict[tuple[str, int], int] = {}
        count = 0
        for row in self.rows:
            count += row.offset < latest.get((row.topic, row.partition), -1)
            latest[row.topic, row.partition] = row.offset
        return count


def parse(data: bytes) -> RecoveryJournal:
    """Split `data` into lines and read the entries. Never fails; see `check`."""
    lines = split_lines(data)
    return RecoveryJournal(lines, tuple(row for line in lines if (row := _row(line))))


def encode(journal: RecoveryJournal) -> bytes:
    """Return the bytes `parse` was given; the two are exact inverses."""
    return b"".join(line.raw for line in journal.lines)


def check(journal: RecoveryJournal) -> Iterator[Finding]:
    """Yield each line that does not count, in file order."""
    known = {row.line.number for row in journal.rows}
    for line in journal.lines:
        if line.number in known:
            continue
        torn = not line.raw.endswith((b"\r", b"\n"))
        why = "the last entry was not written completely" if torn else "the line is not an entry"
        yield Finding(
            "checkpoint/malformed-line",
            f"byte {line.position}: expected topic, partition and offset up to a line end, found "
            f"{line.quoted}; {why}, and does not count",
            position=line.position,
            length=len(line.raw),
        )


def is_one(data: bytes) -> bool:
    """Return whether a file begins as a journal does: with an entry, and not with a version."""
    first = split_lines(data[: data.find(b"\n") + 1])
    return bool(first) and _row(first[0]) is not None


def _row(line: Line) -> OffsetRow | None:
    if not line.raw.endswith((b"\r", b"\n")):
        return None
    match split_fields(line):
        case [topic, partition_text, offset_text]:
            partition, offset = parse_int(partition_text), parse_long(offset_text)
            if partition is not None and partition >= 0 and offset is not None and offset >= 0:
                return OffsetRow(topic=topic, partition=partition, offset=offset, line=line)
    return None
