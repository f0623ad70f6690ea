"""Rules for the directory.id of a log dir, against the registration of its broker.

The metadata log gives each replica to a log dir by its directory.id. A log dir that has lost its
id gets a new one at the next start. The controller counts a replica as offline while the log dir
of its assignment is not registered. The broker then assigns the replica to the log dir in which it
lies, and the start after that is as before. A dynamic quorum knows a voter by the id of its log dir
too, so that a sole voter with another id finds no voter, and waits for ever.
Source: ``ReplicationControlManager.isAcceptableLeader``, ``AssignmentsManager``,
``VoterSet.isVoter`` (Kafka 3.9, 4.x).
"""

from collections.abc import Iterator

from logtool.checks.identity import Effect
from logtool.findings import Finding
from logtool.formats import wording
from logtool.formats.messages.cluster_metadata import PartitionRecord
from logtool.formats.names import DirectoryKind, FileKind
from logtool.node.identity import LogDirIdentity, topic_id_of
from logtool.node.node import NO_LOG_DIRS, Node


def check(node: Node) -> Iterator[tuple[Finding, Effect, LogDirIdentity]]:
    """Yield the log dirs whose replicas the metadata log gives to a log dir that is not there."""
    image, me = node.image, node.node_id
    if not node.has_directory_ids or image is None or image.damage or me is None:
        return
    yield from _sole_voter(node, me)
    registered = set(image.broker_log_dirs(me))
    given = {one.meta.directory_id for one in node.log_dirs if one.meta}
    for one in node.log_dirs:
        own = one.meta.directory_id if one.meta else None
        if one.meta is None or own in registered or not registered:
            continue
        elsewhere = [
            state
            for state, assigned in _assignments(node, one, me)
            if assigned not in given | NO_LOG_DIRS
        ]
        if elsewhere:
            yield _finding(one, own, elsewhere, me), Effect.LEADERLESS, one


def _sole_voter(node: Node, me: int) -> Iterator[tuple[Finding, Effect, LogDirIdentity]]:
    """Yield a finding if the only voter of the quorum is this node with another directory.id."""
    holder, voters = node.metadata_log, (node.image and node.image.voters) or ()
    if holder is None or holder.meta is None or [one["voterId"] for one in voters] != [me]:
        return
    wanted, own = voters[0]["voterDirectoryId"], holder.meta.directory_id
    if wanted in NO_LOG_DIRS or own == wanted:
        return
    what = f"directory.id is {own}" if own else "has no directory.id"
    text = (
        f"{what}, but the only voter of the metadata log is node {me} with {wanted}: the node "
        "waits for ever"
    )
    path = holder.path / FileKind.META_PROPERTIES.value
    yield Finding("meta-properties/unknown-voter", text, path=path), Effect.REFUSE, holder


def _assignments(
    node: Node, log_dir: LogDirIdentity, me: int
) -> Iterator[tuple[PartitionRecord, str]]:
    """Yield the state of each live replica in a log dir, with the directory id of its assignment.

    A replica without such an id is left out.
    """
    for path, directory in log_dir.root.partitions:
        topic_id = topic_id_of(path) if directory.kind is DirectoryKind.LIVE else None
        if topic_id is None or node.image is None:
            continue
        state = node.image.partition(topic_id, directory.partition)
        if state and me in state.replicas and len(state.directories) == len(state.replicas):
            yield state, state.directories[state.replicas.index(me)]


def _finding(
    log_dir: LogDirIdentity, own: str | None, states: list[PartitionRecord], me: int
) -> Finding:
    alone = sum(not ({*state.isr, *state.elr} - {me}) for state in states)
    what = f"directory.id {own} is not registered" if own else "has no directory.id"
    alone_text = (
        f", and {wording.count(alone, 'partition')} without another replica in sync "
        f"{'has' if alone == 1 else 'have'} no leader"
    )
    text = (
        f"{what}, and the metadata log gives {wording.count(len(states), 'replica')} here to a log "
        f"dir that is not there: during the next start they do not lead"
        f"{alone_text if alone else ''}; the start after it is as before"
    )
    path = log_dir.path / FileKind.META_PROPERTIES.value
    return Finding("meta-properties/unregistered-id", text, path=path)
