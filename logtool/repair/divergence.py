"""Other copies of a log whose batches differ from its own, without damage in either.

Nothing is filled from such a copy: which of the two is right, batches alone do not show. But a
segment of another partition is filled if producer snapshots show it (`logtool.startup.filled`). The
headers of both are compared first; only where they differ are both logs read as a whole, because
damage and compaction change headers too.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from logtool.actions import Action
from logtool.checks.foreign_segments import ForeignSegment
from logtool.checks.partition import foreign_of
from logtool.copies.copy_readers import side_by_side
from logtool.copies.sources import find
from logtool.copies.verdict import judge
from logtool.disk import shell
from logtool.errors import UnreadableError
from logtool.formats import names
from logtool.loading.header_walk import header_table
from logtool.log.dir import Partition
from logtool.log.selection import Selection
from logtool.repair.ranges import Rejected, RejectReason
from logtool.repair.sources import usable
from logtool.running.budget import Budget
from logtool.running.run import Run


def diverging(ours: Partition, name: str, places: Sequence[Path]) -> Iterator[Action]:
    """Yield an action for each copy among the places from which a log diverges."""
    for copy in usable(ours, name, places):
        at = None
        with suppress(UnreadableError):  # reported where the log is loaded, or filled
            if isinstance(copy, Partition) and _differ(ours, copy):
                at = _diverges_at(ours.path, copy.path)
        if at is None or not isinstance(copy, Partition):
            continue
        base = max(
            (one.base_offset for one in ours.segments if one.base_offset <= at), default=None
        )
        command = f"logtool diff {shell.path(ours.path)} {shell.path(copy.path)}"
        text = (
            f"diverges from {copy.path} at offset {at}: both have sound batches there, and not the "
            f"same; nothing is taken from that copy there; compare both with: {command}"
        )
        yield Action(
            action="diverges", path=ours.path, reason=text, segment=base, target=copy.path,
            offsets=(at, None),
        )  # fmt: skip


def foreign(ours: Partition) -> list[ForeignSegment]:
    """Return the segments of a log that seem to hold batches of another partition."""
    return foreign_of(ours)


def left(found: Sequence[Action], reported: Sequence[Rejected]) -> list[Action]:
    """Return the divergences without those in segments that were filled from the same copy."""
    filled = {
        (names.parse_partition_file(one.path.name).offset, one.filled_from)
        for one in reported
        if one.kind is RejectReason.FOREIGN
    }
    return [one for one in found if (one.segment, one.target) not in filled]


def _differ(ours: Partition, copy: Partition) -> bool:
    """Return whether headers show two batches with one base offset that are not the same."""
    others = list(copy.segments)
    for segment in ours.segments:
        own = header_table([segment])
        if not len(own):
            continue
        end = int(own.last_offset.max())
        other = header_table(
            [
                one
                for one in others
                if one.base_offset <= end
                and (one.next_base_offset is None or one.next_base_offset > segment.base_offset)
            ]
        )
        _, mine, its = np.intersect1d(own.base_offset, other.base_offset, return_indices=True)
        if (own.crc[mine] != other.crc[its]).any() or (own.size[mine] != other.size[its]).any():
            return True
    return False


def _diverges_at(*paths: Path) -> int | None:
    """Return the offset at which two copies diverge, by all of their batches; None if not.

    None too if the batches there are of two leader epochs: a follower cuts such an end by itself.
    """
    group = [one for path in paths for one in find(path, None, Selection())]
    listed = [one for one in group if not isinstance(one, UnreadableError)]
    reading = side_by_side(listed, Run(budget=Budget()), lambda _, *found: judge(*found))
    while True:
        try:
            next(reading)
        except StopIteration as end:
            if end.value is None or not end.value.pairs:
                return None
            (pair,) = end.value.pairs
            batches = pair.left_batch, pair.right_batch
            epochs = {batch.leader_epoch for batch in batches if batch}
            return pair.diverges_at if len(epochs) < 2 else None
