"""The changes after which a controller starts from one copy of the metadata log with other voters.

In a dynamic quorum (``kraft.version`` 1) the voters are those of the last VotersRecord in the log,
committed or not. So a new segment is put behind the end of the log, with one control batch that
holds the new voters in a new leader epoch; quorum-state gets that epoch without a leader and
without a vote. A single voter elects itself, and with that everything in its log is committed. In a
static quorum the voters are in ``controller.quorum.voters``, and only quorum-state is written, with
those voters. Source: ``QuorumState.initialize``, ``KRaftControlRecordStateMachine``,
``KafkaRaftClient`` (Kafka 3.9 and 4.3).
"""

import json
from collections.abc import Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

from logtool.actions import Action, Change, FileChange, Stamp
from logtool.disk import files
from logtool.errors import RefusedError
from logtool.formats import control_record, leader_epoch_checkpoint, record, record_batch, wording
from logtool.formats.java_text import ZERO_UUID
from logtool.formats.names import CLUSTER_METADATA, FileKind, TopicPartition
from logtool.formats.record_batch import CONTROL
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import Segment
from logtool.log.file import File
from logtool.metadata.difference import Difference, differences
from logtool.metadata.entities import EntityView
from logtool.metadata.image import MetadataImage
from logtool.quorum.copy import MetadataCopy
from logtool.quorum.verdict import Quorum
from logtool.quorum.voters import Endpoint, Voter, to_record

_LARGEST_EPOCH = 2**31 - 1
_NO_NODE = -1
_MOST_NAMED = 5
_METADATA: TopicPartition = (CLUSTER_METADATA, 0)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The changes to the copy that is kept."""

    copy: MetadataCopy
    voters: tuple[Voter, ...]
    gone: tuple[int, ...]
    """Nodes that voted and are no longer voters."""
    epoch: int
    offset: int | None
    """Offset of the control batch; None in a static quorum, whose log stays as it is."""
    unclean: int
    """Partitions with all in-sync replicas on nodes that are gone: only an unclean election brings
    them back."""
    actions: tuple[Action, ...]
    """Changes to files; empty if the copy has these voters already."""
    lost_changes: tuple[Difference, ...] = ()
    """Differences that the nodes see if the furthest copy knows more than the one to keep."""
    unaccepted: tuple[TopicPartition, ...] = ()
    """Partitions with a dir that becomes a stray, and the metadata log if changes are lost, for
    which this loss was not accepted."""

    @property
    def log_dir(self) -> Path:
        """Return the log dir that is changed."""
        return self.copy.path.resolve().parent

    @property
    def unaccepted_names(self) -> tuple[str, ...]:
        """Return the names of these partitions, such as ``orders-3``."""
        return tuple(f"{topic}-{number}" for topic, number in self.unaccepted)

    @property
    def is_dynamic(self) -> bool:
        """Return whether the voters are in the log."""
        return self.copy.kraft_version > 0

    @property
    def settings(self) -> dict[str, str]:
        """Return the settings that the properties files of the nodes need, by key."""
        ends = {voter.node: ",".join(map(str, voter.endpoints)) for voter in self.voters}
        if self.is_dynamic:
            return {"controller.quorum.bootstrap.servers": ",".join(ends.values())}
        named = ",".join(f"{node}@{end}" for node, end in ends.items())
        return {"controller.quorum.voters": named}


def plan(
    quorum: Quorum, voters: Sequence[Voter], accepted: Set[TopicPartition] = frozenset()
) -> Rewrite:
    """Return the changes that give these voters to the copy to keep; RefusedError if unsafe.

    `accepted` are the partitions that may be left without a replica, or whose dirs may become
    strays; the metadata log is among them if changes may be lost.
    """
    copy = quorum.keep
    _check_copy(quorum)
    wanted = _dynamic(quorum, voters) if copy.kraft_version > 0 else _static(copy, voters)
    before = {voter.node for voter in quorum.voters or ()}
    gone = tuple(sorted(before - {voter.node for voter in wanted}))
    image = copy.image
    if image.damage:
        raise RefusedError(
            f"{copy.path}: the partitions that would be lost are not known: {image.damage}"
        )
    _check_replicas(image, set(gone), accepted, copy.path)
    unclean = sum(
        bool(state.isr) and set(state.isr) <= set(gone) and not set(state.replicas) <= set(gone)
        for of_topic in image.partitions.values()
        for state in of_topic.values()
    )
    epoch = max(one.highest_epoch for one in quorum.copies) + 1
    if epoch >= _LARGEST_EPOCH:
        raise RefusedError(f"{copy.path}: there is no leader epoch after {epoch - 1}")
    rewrite = Rewrite(
        copy=copy,
        voters=wanted,
        gone=gone,
        epoch=epoch,
        offset=copy.log_end if copy.kraft_version > 0 else None,
        unclean=unclean,
        actions=(),
    )
    if _is_so_already(copy, wanted):
        return rewrite
    lost_changes: tuple[Difference, ...] = ()
    if quorum.furthest is not copy:
        lost_changes = tuple(differences(quorum.furthest.image, image, EntityView(), ()))
    lost = {one.key for one in quorum.strays} | ({_METADATA} if lost_changes else set())
    return replace(
        rewrite,
        actions=tuple(_actions(rewrite)),
        lost_changes=lost_changes,
        unaccepted=tuple(sorted(lost - accepted)),
    )


def check_losses(rewrite: Rewrite) -> None:
    """Raise RefusedError if a dir becomes a stray, or a change is lost, without consent."""
    left = [one for one in rewrite.unaccepted if one != _METADATA]
    texts = []
    if left:
        texts.append(
            f"{wording.count(len(left), 'partition')} would become strays at the start, because "
            f"this metadata log does not have them: {_named(left)}"
        )
    if _METADATA in rewrite.unaccepted:
        count = wording.count(len(rewrite.lost_changes), "change")
        texts.append(f"{count} of the metadata that another given copy has would be lost")
    if texts:
        raise RefusedError(
            f"{rewrite.copy.path}: {'; '.join(texts)}; keep a copy that has them ('logtool quorum' "
            "without --voters names it), or accept each with --accept-loss TOPIC-PARTITION "
            f"({CLUSTER_METADATA}-0 for the changes)"
        )


def _named(keys: Sequence[TopicPartition]) -> str:
    """Return the first partitions and the number of the others."""
    named = ", ".join(f"{topic}-{number}" for topic, number in keys[:_MOST_NAMED])
    return f"{named} and {len(keys) - _MOST_NAMED} more" if len(keys) > _MOST_NAMED else named


def _check_copy(quorum: Quorum) -> None:
    """Raise RefusedError if no controller should start from the copy to keep."""
    copy = quorum.keep
    if len(quorum.clusters) > 1:
        raise RefusedError(
            f"the copies belong to {len(quorum.clusters)} clusters; give copies of only one cluster"
        )
    if copy.batches.real_damages:
        (first, *_) = copy.batches.real_damages
        raise RefusedError(
            f"{copy.path}: the log is damaged in segment {first.segment} "
            f"@{first.position} ({first.message}), and a controller would cut off "
            "everything after the damage; to continue from the records before the "
            "damage, run 'logtool recover' on its log dir first"
        )
    broken = [one for one in copy.snapshots if one.damage]
    if broken:
        raise RefusedError(f"{broken[-1].path}: no controller starts with it: {broken[-1].damage}")
    newest = copy.newest
    if newest and (newest.epoch, newest.end_offset) > _log_position(copy):
        raise RefusedError(
            f"{newest.path}: is newer than the log; a controller would start a new log "
            "after this snapshot; start a controller on this directory first, and stop "
            "it"
        )
    if copy.batches.log_start > (newest.end_offset if newest else 0):
        raise RefusedError(
            f"{copy.path}: the log begins at offset {copy.batches.log_start}, and no "
            "snapshot holds the records before this offset"
        )


def _log_position(copy: MetadataCopy) -> tuple[int, int]:
    table = copy.usable
    if len(table):
        return int(table.leader_epoch[-1]), int(table.last_offset[-1]) + 1
    return copy.position


def _dynamic(quorum: Quorum, voters: Sequence[Voter]) -> tuple[Voter, ...]:
    """Return the voters with all data of a VotersRecord; RefusedError if some is not known."""
    copy, known = quorum.keep, {voter.node: voter for voter in quorum.voters or ()}
    listeners = [end.listener for voter in known.values() for end in voter.endpoints[:1]]
    whole = []
    for voter in voters:
        earlier = known.get(voter.node)
        known_ids = {one.directory_id for one in quorum.copies if one.node == voter.node} - {None}
        choices = [voter.directory_id] if voter.directory_id else sorted(map(str, known_ids))
        if not choices and earlier and earlier.directory_id:
            choices = [earlier.directory_id]
        if len(choices) != 1:
            raise RefusedError(
                f"--voters: the directory id of voter {voter.node} is not known: write "
                f"the voter as {voter.node}-DIRECTORYID@{voter.endpoints[0]} (the id is "
                "in meta.properties)"
            )
        listener = earlier.endpoints[0].listener if earlier and earlier.endpoints else None
        name = listener or (listeners[0] if listeners else voter.endpoints[0].listener)
        whole.append(
            Voter(
                node=voter.node,
                directory_id=choices[0],
                endpoints=tuple(Endpoint(name, one.host, one.port) for one in voter.endpoints),
                versions=earlier.versions if earlier else voter.versions,
            )
        )
    _check_is_voter(copy, [voter.key for voter in whole])
    return tuple(sorted(whole, key=lambda voter: voter.node))


def _static(copy: MetadataCopy, voters: Sequence[Voter]) -> tuple[Voter, ...]:
    for voter in voters:
        if voter.directory_id:
            raise RefusedError(
                f"--voters: the quorum is static (kraft.version 0), so voter {voter.node} "
                "has no directory id"
            )
    _check_is_voter(copy, [(voter.node, copy.directory_id) for voter in voters])
    return tuple(sorted(voters, key=lambda voter: voter.node))


def _check_is_voter(copy: MetadataCopy, keys: Sequence[tuple[int, str | None]]) -> None:
    if (copy.node, copy.directory_id) in keys:
        return
    whose = f"node {copy.node}, directory {copy.directory_id}"
    raise RefusedError(
        f"{copy.path}: the copy to keep belongs to {whose}, which is not in --voters; "
        "give the log dir of a voter, or first copy this metadata log to a voter: 'logtool quorum' "
        "without --voters prints how"
    )


def _check_replicas(
    image: MetadataImage, gone: Set[int], accepted: Set[TopicPartition], path: Path
) -> None:
    """Raise RefusedError if all replicas of a partition are on nodes that are gone."""
    lost = [
        (image.names.get(topic_id, topic_id), number)
        for topic_id, of_topic in image.partitions.items()
        for number, state in of_topic.items()
        if state.replicas and set(state.replicas) <= gone
    ]
    left = sorted(set(lost) - accepted)
    if left:
        nodes = ", ".join(map(str, sorted(gone)))
        raise RefusedError(
            f"{path}: {wording.count(len(left), 'partition')} would be left without a "
            f"replica, because all replicas are on nodes that are gone ({nodes}): "
            f"{_named(left)}; keep such a node as a voter, or accept each with "
            "--accept-loss TOPIC-PARTITION"
        )


def _is_so_already(copy: MetadataCopy, voters: Sequence[Voter]) -> bool:
    known = copy.voted[0]
    if copy.kraft_version > 0:
        return known == tuple(voters)
    # The elected leader may be a node that is gone, unless this command wrote the file.
    return (
        {voter.node for voter in known or ()} == {voter.node for voter in voters}
        and copy.state is not None
        and copy.state.leader_id == _NO_NODE
    )


def _actions(rewrite: Rewrite) -> list[Action]:
    """Return the changes: first those to the log, then quorum-state without an election."""
    copy = rewrite.copy
    found = []
    if rewrite.offset is not None:
        found += _log_actions(rewrite, rewrite.offset)
    state = copy.path / FileKind.QUORUM_STATE.value
    text = f"no leader and no vote in epoch {rewrite.epoch}"
    found.append(_write(state, copy.listed.fixed.get(FileKind.QUORUM_STATE), _state(rewrite), text))
    return found


def _log_actions(rewrite: Rewrite, end: int) -> list[Action]:
    copy = rewrite.copy
    batch = _batch(rewrite, end)
    names = ", ".join(str(voter.node) for voter in rewrite.voters)
    voters_text = f"the voters are {names}, from offset {end} onwards in epoch {rewrite.epoch}"
    found = []
    active: Segment | None = copy.listed.segments[-1] if copy.listed.segments else None
    if active and active.base_offset == end:
        # It holds nothing except perhaps an append that was not finished.
        return [
            _write(active.log.path, active.log, batch, voters_text),
            *_epoch_actions(rewrite, end),
        ]
    if active:
        table = copy.usable
        own = table[table.segment == active.base_offset]
        sound = int(own.position[-1] + own.size[-1]) if len(own) else 0
        if sound < active.log.size:
            found.append(_cut(active.log, sound))
    found.append(_write(copy.path / f"{end:020d}.log", None, batch, voters_text))
    return [*found, *_epoch_actions(rewrite, end)]


def _batch(rewrite: Rewrite, end: int) -> bytes:
    """Return the control batch, with the time of the last batch, so that all runs agree."""
    table = rewrite.copy.usable
    time = max(0, int(table.max_timestamp[-1])) if len(table) else 0
    key = control_record.KEY.pack(0, control_record.KRAFT_VOTERS)
    return record_batch.encode(
        record.encode([record.Record(0, key=key, value=to_record(rewrite.voters))]),
        base_offset=end,
        last_offset_delta=0,
        record_count=1,
        leader_epoch=rewrite.epoch,
        attributes=CONTROL,
        base_timestamp=time,
        max_timestamp=time,
    )


def _epoch_actions(rewrite: Rewrite, end: int) -> list[Action]:
    file = rewrite.copy.listed.fixed.get(FileKind.LEADER_EPOCH_CHECKPOINT)
    if file is None:
        return []  # a controller makes it from the log
    epochs = leader_epoch_checkpoint.parse(files.read_small(file.path)).epochs
    kept = [(epoch, at) for epoch, at in epochs if epoch < rewrite.epoch and at < end]
    content = leader_epoch_checkpoint.encode(
        leader_epoch_checkpoint.build([*kept, (rewrite.epoch, end)])
    )
    return [_write(file.path, file, content, f"epoch {rewrite.epoch} begins at offset {end}")]


def _state(rewrite: Rewrite) -> bytes:
    """Return quorum-state as ``FileQuorumStateStore`` writes it."""
    election = {"leaderId": _NO_NODE, "leaderEpoch": rewrite.epoch, "votedId": _NO_NODE}
    if rewrite.is_dynamic:
        value: dict[str, Any] = {**election, "votedDirectoryId": ZERO_UUID, "data_version": 1}
    else:
        voters = [{"voterId": voter.node} for voter in rewrite.voters]
        value = {"clusterId": "", **election, "appliedOffset": 0}
        value |= {"currentVoters": voters, "data_version": 0}
    return json.dumps(value, separators=(",", ":")).encode()


def _write(path: Path, file: File | None, content: bytes, reason: str) -> Action:
    kind = FileChange.CREATE if file is None else FileChange.REPLACE
    seen = None if file is None else Stamp(file.size, file.mtime_ns)
    return Action(
        action=kind,
        path=path,
        reason=reason,
        topic=CLUSTER_METADATA,
        partition=0,
        length=len(content),
        change=Change(kind, path, seen, content),
    )


def _cut(log: File, size: int) -> Action:
    return Action(
        action=FileChange.TRUNCATE,
        path=log.path,
        reason="an unfinished append follows the last batch",
        topic=CLUSTER_METADATA,
        partition=0,
        position=size,
        length=log.size - size,
        change=Change(FileChange.TRUNCATE, log.path, Stamp(log.size, log.mtime_ns), size=size),
    )
