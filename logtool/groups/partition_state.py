"""State of a partition that groups are read from: its lost end, and its fate at the next start."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from logtool.checks import log_absence
from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.formats.names import FileKind, PartitionDirectory, TopicPartition
from logtool.groups import findings
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


class LostEnds:
    """Lost ends of the partitions of coordinator topics in some log dirs."""

    def __init__(self, homes: Mapping[Path, LogDir], nodes: Sequence[Node]) -> None:
        self._homes = homes
        self._nodes = nodes
        self._watermarks: dict[Path, Mapping[TopicPartition, int]] = {}
        """High watermarks by log dir, of the log dirs that were read for them."""

    def of(
        self, copies: Sequence[Partition], chosen: Partition, end: int
    ) -> Iterator[Finding | UnreadableError]:
        """Yield findings if brokers put every copy aside, or a copy reached further than `end`.

        The high watermark proves the end, or the recovery point, or the files of the copy. The
        findings are about `chosen`, the copy that was read.
        """
        for found in self._all(copies, end):
            if isinstance(found, Finding):
                found = found.placed(chosen.path, topic=chosen.topic, partition=chosen.number)
            yield found

    def _all(self, copies: Sequence[Partition], end: int) -> Iterator[Finding | UnreadableError]:
        if reason := put_aside(copies, self._nodes):
            yield findings.put_aside(reason)
        topic = copies[0].topic or ""
        known = [(one, home) for one in copies if (home := self._homes.get(one.path.parent))]
        found: list[range] = []
        for listed, home in known:
            try:
                if home.path not in self._watermarks:
                    self._watermarks[home.path] = lost_end.watermarks(home)
            except UnreadableError as error:
                self._watermarks[home.path] = {}
                yield error
            lost = lost_end.lost(home, self._watermarks[home.path], listed, end)
            found += [lost] if lost else []
        proofs = (proof for one, home in known if (proof := proof_of_end(one, home, end)))
        if found:
            lost = max(found, key=lambda one: one.stop)
            left = (
                lost_end.left_of_segment(one.path, end, clean=home.is_clean) for one, home in known
            )
            yield findings.lost_end(topic, lost, next(filter(None, left), None))
        elif proof := next(proofs, None):
            yield findings.absent_end(topic, end, proof)
