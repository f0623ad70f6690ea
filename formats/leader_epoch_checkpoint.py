"""The leader epoch checkpoint (``leader-epoch-checkpoint``): the first offset of each leader.

Text in the grammar of the offset checkpoints::

    0           version
    2           number of entries
    0 0         leader epoch, first offset written in it
    3 4711

Both columns rise strictly. A broker that loads the file assigns the entries one by one, and a later
entry evicts those before it whose epoch or start offset is not below its own. Negative numbers are
an uncaught exception. Truncations are written with delay, so that after a crash the file may
have entries beyond the end of the log; an epoch without data is normal. Source:
``LeaderEpochCheckpointFile``, ``LeaderEpochFileCache`` (Kafka 4.0.0-SNAPSHOT, 1eb7644349c).
"""

from collections.abc import Iterable, Iterator

from logtool.findings import Finding
from logtool.formats import _checkpoint_file
from logtool.formats._checkpoint_file import CheckpointFile, line_finding, split_fields
from logtool.formats.java_text import Line, parse_int, parse_long
from logtool.formats.refusal import Refusal
from logtool.lazy_dataclass import dataclass

AREA = "leader-epoch"
_FIELDS = "leader epoch and start offset"


@dataclass(frozen=True, slots=True)
class EpochRow:
    """One entry and where it stands."""

    leader_epoch: int
    start_offset: int
    line: Line


@dataclass(frozen=True, slots=True)
class LeaderEpochCheckpoint:
    """One leader epoch checkpoint: its lines, and the entries that could be read."""

    file: CheckpointFile
    rows: tuple[EpochRow, ...]

    @property
    def epochs(self) -> list[tuple[int, int]]:
        """Return (leader epoch, start offset) in file order."""
        return [(row.leader_epoch, row.start_offset) for row in self.rows]


def parse(data: bytes) -> LeaderEpochCheckpoint:
    """Split `data` into lines and read the entries. Never fails; see `check`."""
    return _read(_checkpoint_file.parse(data))


def encode(checkpoint: LeaderEpochCheckpoint) -> bytes:
    """Return the bytes `parse` was given; the two are exact inverses."""
    return _checkpoint_file.encode(checkpoint.file)


def check(checkpoint: LeaderEpochCheckpoint) -> Iterator[Finding]:
    """Yield every broken rule: first those of the file, then those of its entries, in file order.

    A file without entries is sound: a broker creates one when it opens a log.
    """
    readable = {row.line.number for row in checkpoint.rows}
    malformed = {line.number for line in checkpoint.file.entries} - readable
    yield from _checkpoint_file.check(checkpoint.file, AREA, _FIELDS, malformed)
    before: EpochRow | None = None
    for row in checkpoint.rows:
        if row.leader_epoch < 0 or row.start_offset < 0:
            yield line_finding(f"{AREA}/negative", row.line, "an epoch and an offset of at least 0")
            continue
        if before and (
            row.leader_epoch <= before.leader_epoch or row.start_offset <= before.start_offset
        ):
            yield line_finding(
                f"{AREA}/order",
                row.line,
                f"an epoch above {before.leader_epoch} and an offset above "
                f"{before.start_offset} (those of line {before.line.number})",
            )
        before = row


def refusal(checkpoint: LeaderEpochCheckpoint) -> Refusal | None:
    """Return where a broker's reader gives up; None if it accepts the file.

    The reader accepts a negative number, which `check` reports.
    """
    file = checkpoint.file
    return _checkpoint_file.refusal(file, file.entries, _FIELDS, (parse_int, parse_long))


def build(epochs: Iterable[tuple[int, int]]) -> LeaderEpochCheckpoint:
    """Return the checkpoint that Kafka writes for (leader epoch, start offset) in order."""
    return _read(_checkpoint_file.build([f"{epoch} {offset}" for epoch, offset in epochs]))


def _read(file: CheckpointFile) -> LeaderEpochCheckpoint:
    return LeaderEpochCheckpoint(file, tuple(row for line in file.entries if (row := _row(line))))


def _row(line: Line) -> EpochRow | None:
    match split_fields(line):
        case [epoch_text, offset_text]:
            leader_epoch, start_offset = parse_int(epoch_text), parse_long(offset_text)
            if leader_epoch is not None and start_offset is not None:
                return EpochRow(leader_epoch, start_offset, line)
    return None
