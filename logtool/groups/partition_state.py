"""Proofs that a partition that groups are read from has lost its end."""

from contextlib import suppress

from logtool.checks import log_absence
from logtool.errors import UnreadableError
from logtool.formats.names import FileKind
from logtool.log.dir import LogDir, Partition
from logtool.node import lost_end


def proof_of_end(listed: Partition, home: LogDir, end: int) -> str | None:
    """Return the proof that a log reached further than `end`; None without one.

    The recovery point may prove it, or a file of the partition.
    """
    if not home.flavour.has_checkpoints:
        return None
    kind, key = FileKind.RECOVERY_POINT_CHECKPOINT, (listed.topic or "", listed.number or 0)
    with suppress(UnreadableError):
        row = home.rows(kind).get(key)
        witness = lost_end.witness(home, kind)
        if row and lost_end.lost_offsets(witness, listed, end, row.offset):
            return f"its recovery point was {row.offset}"
    found = log_absence.missing_end(listed, end, clean=home.is_clean)
    return found.message if found else None
