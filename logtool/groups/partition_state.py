"""State of a partition that groups are read from: its lost end, and its fate at the next start."""

from collections.abc import Sequence
from contextlib import suppress

from logtool.checks import log_absence
from logtool.errors import UnreadableError
from logtool.formats.names import FileKind, PartitionDirectory
from logtool.log.dir import LogDir, Partition
from logtool.node import lost_end
from logtool.node.node import Node
from logtool.startup import strays


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


def put_aside(copies: Sequence[Partition], nodes: Sequence[Node]) -> str | None:
    """Return why brokers put every copy of a partition aside when they start; None if they do not.

    `nodes` are those of the log dirs that were given.
    """
    reason = None
    for listed in copies:
        path, directory = listed.path, listed.directory
        node = next(
            (node for node in nodes if any(path.parent == one.path for one in node.log_dirs)), None
        )
        if node is None or not isinstance(directory, PartitionDirectory):
            return None
        fate = strays.fate(node, path, directory) if node.is_stray(path, directory) else None
        if fate is None or fate.action not in strays.GONE:
            return None
        reason = reason or fate.text
    return reason
