"""The metadata log of a broker for controllers, where no voter that was given has its records.

A broker fetches from the voters, so that its copy is longer only where they have lost the end of
their logs since, or where their volumes are of an earlier moment. The leader of an epoch has the
longest log of that epoch: if another copy has more of it, the leader's own log was rolled back.
Source: ``KafkaRaftClient``, ``LeaderState`` (Kafka 4.3).
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from logtool.disk import shell
from logtool.formats.names import FileKind
from logtool.lazy_dataclass import dataclass
from logtool.metadata.difference import Difference, differences
from logtool.metadata.entities import EntityView
from logtool.quorum.copy import MetadataCopy
from logtool.quorum.unvoted import RecordCount, unvoted

if TYPE_CHECKING:
    from logtool.quorum.verdict import Quorum

_MOST_NAMED = 5
_OUTCOMES = {
    "removed": "disappears",
    "added": "comes back",
    "changed": "gets an earlier state",
}


@dataclass(frozen=True, slots=True)
class VoterLack:
    """A voter whose log lacks changes that a broker's copy has."""

    copy: MetadataCopy
    first_offset: int
    last_offset: int
    records: tuple[RecordCount, ...]
    command: str
    """Command that gives it the copy of the broker."""


def lacking(begins: Iterable[tuple[MetadataCopy, int]], keep: MetadataCopy) -> Iterator[VoterLack]:
    """Yield the voters with what they lack of the copy to keep; `begins` has its first offsets.

    Of several copies of a node it is the one that lacks least.
    """
    best: dict[int | None, tuple[MetadataCopy, int]] = {}
    for copy, begin in begins:
        if copy.node not in best or begin > best[copy.node][1]:
            best[copy.node] = copy, begin
    for copy, begin in best.values():
        yield VoterLack(
            copy=copy,
            first_offset=begin,
            last_offset=keep.log_end - 1,
            records=unvoted(keep, begin),
            command=command(copy, keep),
        )


def command(copy: MetadataCopy, keep: MetadataCopy) -> str:
    """Return the command that replaces a voter's metadata log by the copy to keep.

    The voter keeps its meta.properties, its quorum-state, which holds its vote, and the snapshot
    with which it was formatted.
    """
    # The name of a partition would make the current directory look like a log dir.
    away = Path(f"node-{copy.node}.metadata-log")
    log = shell.path(copy.path)
    # A second run must not move it into the directory of the first one.
    parts = [f"mv -T {log} {shell.path(away)}", f"cp -a {shell.path(keep.path)} {log}"]
    state = FileKind.QUORUM_STATE.value
    new = shell.path(copy.path / state)
    parts.append(f"cp -a {shell.path(away / state)} {new}" if copy.state else f"rm -f {new}")
    kept = {one.path.name for one in keep.snapshots}
    for one in copy.snapshots:
        if not one.damage and one.end_offset == 0 and one.path.name not in kept:
            parts.append(f"cp -a {shell.path(away / one.path.name)} {log}")
    return " && ".join(parts)


def is_rolled_back(copy: MetadataCopy, copies: Sequence[MetadataCopy]) -> bool:
    """Return whether a copy ends before changes that its node wrote as the leader of an epoch.

    NoOpRecords that only another copy has are no sign: a leader may lose its last ones with power.
    """
    state = copy.state
    if state is None or copy.node is None or state.leader_id != copy.node:
        return False
    return any(
        any(one.is_change for one in unvoted(other, copy.log_end))
        for other in copies
        if other.node != copy.node and _has(other, state.leader_epoch, copy.log_end)
    )


def _has(copy: MetadataCopy, epoch: int | None, offset: int) -> bool:
    """Return whether a copy has batches of a leader epoch at or behind an offset."""
    table = copy.usable
    return bool(np.any((table.leader_epoch == epoch) & (table.last_offset >= offset)))


def losses(quorum: "Quorum") -> tuple[Difference, ...]:
    """Return the differences that the nodes see if no controller gets the copy to keep.

    UnreadableError if a metadata log cannot be read.
    """
    heir = quorum.heir
    if quorum.copying is None or heir is None:
        return ()
    return tuple(differences(quorum.keep.image, heir.image, EntityView(), ()))


def described(found: Iterable[Difference]) -> Iterator[str]:
    """Yield the differences kind by kind, as text."""
    groups: dict[str, list[str]] = {}
    for one in found:
        groups.setdefault(f"{one.entity.kind} {_OUTCOMES[one.word]}", []).append(one.entity.name)
    for what, names in groups.items():
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        yield f"{what}: {', '.join(names[:_MOST_NAMED])}{more}"
