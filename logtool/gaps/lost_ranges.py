"""The lost beginning and the lost end of a log, by the rules of `verify`.

The files of a partition and the checkpoints of its log dir name offsets that the log held. Nothing
is known about a copy without these files, nor about a log of Redpanda, which has no such files.
"""

from contextlib import suppress
from dataclasses import replace

from logtool.checks import log_absence
from logtool.errors import UnreadableError
from logtool.formats.names import DirectoryKind, FileKind, TopicPartition
from logtool.gaps.evidence import Facts, GapCauses
from logtool.gaps.table import GapReason
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import LogDir, Partition
from logtool.node import lost_end
from logtool.node.surroundings import Surroundings


@dataclass(frozen=True, slots=True)
class CheckpointedEnds:
    """The rows of the checkpoints that name an end of a log, by topic and partition."""

    high_watermarks: dict[TopicPartition, int]
    """Rows that may be of a deleted topic of the same name are left out."""
    recovery_points: dict[TopicPartition, int]


def checkpointed_ends(home: LogDir) -> CheckpointedEnds:
    """Return the rows of a log dir; none from a checkpoint that cannot be read."""
    watermarks: dict[TopicPartition, int] = {}
    points: dict[TopicPartition, int] = {}
    with suppress(UnreadableError):
        watermarks = lost_end.watermarks(home)
    with suppress(UnreadableError):
        rows = home.rows(FileKind.RECOVERY_POINT_CHECKPOINT)
        points = {key: row.offset for key, row in rows.items()}
    return CheckpointedEnds(watermarks, points)


def beginning(listed: Partition, around: Surroundings) -> tuple[int, GapCauses] | None:
    """Return the first offset of a beginning that may be lost, and the evidence; None without one.

    Raises UnreadableError where the log cannot be read.
    """
    found = log_absence.missing_beginning(listed, around)
    if found is None or found.first_offset is None:
        return None
    # Compaction may have emptied a beginning; nothing decides it.
    is_lack = log_absence.action_of(found) == "lacks"
    reason = GapReason.SEGMENT_MISSING if is_lack else GapReason.UNKNOWN
    return found.first_offset, GapCauses(reason, found.message)


def end(listed: Partition, home: LogDir | None, facts: Facts, log_end: int) -> Facts:
    """Return the facts, with the offset that a log is proved to have reached behind its end.

    `home` is the log dir that the rows of the facts come from; None where none is known.
    """
    if home is None or not home.flavour.has_checkpoints or facts.claimed_end <= log_end:
        return facts
    if getattr(listed.directory, "kind", None) is not DirectoryKind.LIVE:
        return facts
    found: list[tuple[int, str]] = []
    for kind, offset, name in (
        (FileKind.REPLICATION_CHECKPOINT, facts.high_watermark, "high watermark"),
        (FileKind.RECOVERY_POINT_CHECKPOINT, facts.recovery_point, "recovery point"),
    ):
        witness = lost_end.witness(home, kind)
        if lost_end.lost_offsets(witness, listed, log_end, offset or 0):
            found.append((offset or 0, f"{name} {offset} in {home.path / kind.value}"))
    if one := log_absence.missing_end(listed, log_end, clean=home.is_clean):
        found.append(((one.last_offset or 0) + 1, one.message))
    # The first of the largest: a high watermark says that the offsets were acknowledged.
    proved = max(found, key=lambda one: one[0], default=None)
    return facts if proved is None else replace(facts, lost_end=proved)
