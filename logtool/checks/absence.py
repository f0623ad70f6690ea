"""Rules for what is absent: partitions, and the metadata log, that files of the node name.

A broker makes an empty log for a partition that the metadata log gives it and that no log dir
holds. If no other replica is in sync, its records are gone; else it copies them from the leader. A
node without its metadata log fetches it again from the other controllers. If it is the only
controller, it begins an empty cluster, and renames all partitions to ``-stray``; with a dynamic
quorum, whose voters stand in that log, it waits for ever.
Source: ``ReplicaManager.applyDelta``, ``LogManager.loadLogs``, ``KafkaMetadataLog``
(Kafka 3.9 and 4.x).
"""

from collections.abc import Iterator
from contextlib import suppress

from logtool.checks.access import is_needed
from logtool.checks.identity import Effect
from logtool.disk import files, shell
from logtool.errors import UnreadableError
from logtool.findings import Broker, Finding
from logtool.formats import leader_epoch_checkpoint, wording
from logtool.formats.names import CLUSTER_METADATA, DirectoryKind, FileKind
from logtool.log.claims import Claim, ClaimKind, Presence, unmet
from logtool.log.dir import OFFSET_CHECKPOINTS, Partition
from logtool.log.partition_claims import end_claims
from logtool.metadata import image as metadata_image
from logtool.metadata.log_start import is_tiered
from logtool.node import own_file
from logtool.node.claims import AbsentPartition, absent_partitions, was_never_made
from logtool.node.identity import LogDirIdentity, stopped_epoch
from logtool.node.node import Node

AS_FOLLOWER = (
    "as a follower it takes leader epochs and producer snapshot from remote storage, and fetches "
    "from the local log start of the leader on"
)
AS_LEADER = (
    "as the leader it takes nothing from remote storage, and DELETES the remote segments there: "
    "their leader epochs are older than its own; 'logtool remote restore' makes a partition dir "
    "with which it keeps them"
)
"""The effects of an empty log on a topic with remote storage, as `logtool.startup.tiering` says."""
Absence = tuple[Finding, Effect | None, LogDirIdentity]
"""A finding, its effect on a start (None: it has none), and the log dir that it is about."""
_METADATA = metadata_image.DIRECTORY
_MOST = 5
"""Partitions that a finding names."""
_RAN = (*OFFSET_CHECKPOINTS, FileKind.CLEAN_SHUTDOWN)
"""Files that a broker writes into a log dir once it has loaded it."""


def check(node: Node) -> Iterator[Absence]:
    """Yield the findings about things that are absent from the log dirs of a node."""
    yield from _metadata_log(node)
    yield from _log_dirs(node)
    yield from _older_copies(node)
    for absent in absent_partitions(node):
        if absent.state is None and not absent.end:
            continue  # Rows at offset 0 do not say that there were records.
        finding, effect = _broken_link(node, absent) or _partition(node, absent)
        yield finding, effect, absent.home


def _log_dirs(node: Node) -> Iterator[Absence]:
    """Yield a finding about log dirs of the node that were not given; none if its file has them."""
    missing, holder = sorted(node.ids_not_given()), node.metadata_log
    if not missing or holder is None or node.own_log_dirs - node.paths:
        return
    were = "log dir {} was" if len(missing) == 1 else "log dirs {} were"
    named = were.format(", ".join(missing))
    text = (
        f"{named} not given, which the metadata log knows of node {node.node_id}: whether their "
        "partitions exist is not known; give all "
        "log dirs of the node together, or its file with --broker-config"
    )
    finding = Finding("data-dir/not-given", text, path=holder.path / _METADATA)
    yield finding, Effect.UNKNOWN, holder


def _older_copies(node: Node) -> Iterator[Absence]:
    """Yield a finding for each log dir whose clean marker is from before the last registration.

    A start removes the markers of all log dirs and registers the node with a new broker epoch. So
    one marker alone with an older epoch is from a copy of its log dir, or from a disk that was
    offline. A broker that was killed early in its start leaves the older epoch in all log dirs. One
    that holds only the metadata log never has a marker.
    """
    image = node.image
    if image is None or image.damage or node.node_id not in image.brokers:
        return
    known = image.brokers[node.node_id]["brokerEpoch"]
    homes = [one for one in node.log_dirs if not one.has_only_metadata_log]
    epochs = [stopped_epoch(one.root) for one in homes]
    for one, epoch in zip(homes, epochs, strict=True):
        if epoch is None or not 0 <= epoch < known or len({*epochs}) == 1:
            continue
        marker = one.root.files[FileKind.CLEAN_SHUTDOWN]
        text = (
            f"the clean stop was in broker epoch {epoch}, but node {node.node_id} has registered "
            f"again since, with broker epoch {known}: the log dir is an older copy, or its disk "
            "was offline in that run, and its logs may lack acknowledged records"
        )
        alone = [
            f"{directory.topic}-{directory.partition}"
            for _, directory in one.root.partitions
            if directory.kind is DirectoryKind.LIVE
            and directory.topic != CLUSTER_METADATA
            and not node.others_in_sync(directory.topic, directory.partition)
        ]
        if alone:
            more = f" and {len(alone) - _MOST:,} more" if len(alone) > _MOST else ""
            text += f"; without another replica in sync: {', '.join(alone[:_MOST])}{more}"
        yield Finding("clean-shutdown/older", text, path=marker.path), None, one


def _broken_link(node: Node, absent: AbsentPartition) -> tuple[Finding, Effect] | None:
    """Return the finding about a link in the place of the partition, and its effect on a start.

    None without a link.
    """
    topic, number = absent.key
    for home in node.log_dirs:
        link = home.path / f"{topic}-{number}"
        if link not in home.root.odd_entries or not link.is_symlink():
            continue
        effect = Effect.REFUSE if is_needed(node, home.path) else Effect.OFFLINE
        ends = "ends" if effect is Effect.REFUSE else "takes the log dir offline"
        text = (
            f"is a link to {link.readlink()}, which does not exist: move the partition back; the "
            f"broker cannot make a directory of this name, and {ends}; {_proof(absent.claims)}"
        )
        what = Broker.REFUSES if effect is Effect.REFUSE else Broker.ALWAYS
        found = Finding(
            "data-dir/broken-link", text, path=link, topic=topic, partition=number,
            broker_override=what,
        )  # fmt: skip
        return found, effect
    return None


def _partition(node: Node, absent: AbsentPartition) -> tuple[Finding, Effect | None]:
    """Return the finding about an absent partition, and its effect on a start."""
    state, me = absent.state, node.node_id
    proof = _proof(absent.claims)
    if absent.aside:
        proof += f"; {absent.aside} has a log of it"
        if absent.is_deleted:
            proof += ", which the next start deletes"
    if state is None:
        if absent.home.root.is_clean:
            text = f"is in none of the log dirs: its records are lost: {proof}"
            return _finding("partition/lost", text, absent), Effect.LOST
        text = "is in none of the log dirs, unless it was deleted in the minute before the stop"
        return _finding("partition/absent", f"{text}: {proof}", absent), Effect.ABSENT
    eligible = *state.isr, *state.elr
    # Without an eligible replica the last known leader is the one that has the records.
    others = [one for one in eligible or state.last_known_elr if one != me]
    if was_never_made(node, absent):
        text = "has no directory yet: the broker makes it at its next start"
        return _finding("partition/not-created", text, absent), None
    what = f"is in no log dir of node {me}: the broker makes an empty log"
    is_off = own_file.switch(node.static, own_file.REMOTE_STORAGE) is False
    tiered = not is_off and is_tiered(node.image, absent.key[0])
    if others:
        shown = ", ".join(str(one) for one in dict.fromkeys(others))
        known = "in sync" if eligible else "last known leader"
        text = f"{what} and copies it from the leader; {known}: {shown}"
        text += f"; {AS_FOLLOWER}" if tiered else ""
        return _finding("partition/absent", f"{text}; {proof}", absent), Effect.ABSENT
    if not absent.end and absent.rows:
        text = f"{what}, as it was before"
        return _finding("partition/absent", f"{text}; {proof}", absent), Effect.ABSENT
    lost = f"offsets below {absent.end} are lost" if absent.end else "its records are lost"
    text = f"{what}, and no other replica is in sync, so that {lost}"
    behind = ", ".join(str(one) for one in state.replicas if one != me)
    if behind:
        text += (
            f"; replicas out of sync may have some ({behind}): compare them with 'logtool cluster' "
            "before this broker starts"
        )
    text += f"; {AS_LEADER}" if tiered else ""
    text += f"; {proof}"
    return _finding("partition/lost", text, absent), Effect.LOST


def _proof(claims: tuple[Claim, ...]) -> str:
    """Return the strongest claim, and the one with the largest offset, as text."""
    chosen = dict.fromkeys((claims[0], max(claims, key=lambda one: one.offset)))
    parts = []
    for one in chosen:
        if one.kind is ClaimKind.REPLICA:
            parts.append(f"{one.evidence.path} gives it to this node")
        else:
            parts.append(f"{one.evidence}: {one.kind} {one.offset}")
    return "; ".join(parts)


def _finding(code: str, text: str, absent: AbsentPartition) -> Finding:
    strongest = absent.rows[0] if absent.rows else absent.claims[0]
    topic, number = absent.key
    return Finding(
        code,
        f"{topic}-{number} {text}",
        path=strongest.evidence.path,
        position=strongest.evidence.position,
        topic=topic,
        partition=number,
        next=_undelete(absent),
    )


def _undelete(absent: AbsentPartition) -> str | None:
    """Return the command that saves the partition from a directory that the next start deletes."""
    if not absent.is_deleted or absent.aside is None:
        return None
    topic = shell.option("--topic", absent.key[0])
    output = shell.option("--output", f"undeleted-{absent.key[0]}")
    return f"logtool undelete {output} {topic} {shell.path(absent.aside.parent)}"


def _metadata_log(node: Node) -> Iterator[Absence]:
    """Yield a finding if the node has no metadata log, or an empty one, although it has run."""
    if not node.is_kraft or not node.log_dirs:
        return
    holder = node.metadata_log
    if holder is None:
        if node.elsewhere is None:
            yield from _no_metadata_log(node)
        return
    listed = node.own_image.listed if node.own_image else None
    if listed is None:
        return  # That it cannot be read is reported elsewhere.
    yield from _beginning(node, holder, listed)
    yield from _hole(node, holder)
    logs = [segment.log for segment in listed.segments]
    if any(one.size for one in (*listed.kraft_snapshots, *logs)):
        yield from _end(node, holder, listed)
        return
    epoch = _last_epoch(listed)
    is_used = epoch >= 0 or any(file.name.offset for file in listed.snapshots) or _ran(node)
    if not is_used:
        return
    proof = f"; leader-epoch-checkpoint goes to epoch {epoch}" if epoch >= 0 else ""
    yield _lost_metadata(node, holder, f"holds no batch of the metadata log{proof}")


def _beginning(node: Node, holder: LogDirIdentity, listed: Partition) -> Iterator[Absence]:
    """Yield a finding if no snapshot covers the offsets before the first segment.

    A node loads its newest snapshot or none: an older one does not help. The snapshot at offset 0
    holds nothing but the first voters, which the first leader appends to the log.
    """
    start = listed.segments[0].base_offset if listed.segments else 0
    snapshots = [one for one in listed.kraft_snapshots if one.size]
    covered = max((file.name.offset or 0 for file in snapshots), default=0)
    if start > covered:
        text = f"the log begins at offset {start}, and no snapshot covers the offsets before it"
        finding = Finding("kraft-snapshot/missing", text, path=listed.path)
        yield finding, Effect.REFUSE, holder
        return
    for newest in node.own_image.skipped[:1] if node.own_image else ():
        is_first = not any(file.name.offset for file in listed.kraft_snapshots)
        if is_first and node.own_image and node.own_image.voters:
            return
        reason = newest.text if isinstance(newest, metadata_image.Problem) else newest.reason
        if reason != metadata_image.NO_FOOTER:
            text = f"the newest snapshot cannot be read, and a node loads no older one: {reason}"
            finding = Finding("kraft-snapshot/missing", text, path=newest.path)
            yield finding, Effect.REFUSE, holder


def _end(node: Node, holder: LogDirIdentity, listed: Partition) -> Iterator[Absence]:
    """Yield a finding if a file of the metadata log names an offset behind its last record."""
    image = node.own_image
    if image is None or image.damage:
        return
    end = image.offset
    claims = unmet(end_claims(listed), Presence(exists=True, end=end))
    claim = max(claims, key=lambda one: one.offset, default=None)
    if claim is None:
        return
    text = (
        f"the metadata log and its snapshots end at {end}, but {claim.evidence}: {claim.kind} "
        f"{claim.offset}: {wording.offsets(end, claim.offset - 1)} are lost"
    )
    span = end, claim.offset - 1
    if node.voters == {node.node_id} and holder.root.is_clean:
        yield (
            Finding("metadata/end-lost", text, None, None, *span, listed.path),
            Effect.LOST,
            holder,
        )
        return
    text += ", unless another controller has them or they were never committed"
    yield (
        Finding("metadata/end-absent", text, None, None, *span, listed.path),
        Effect.ABSENT,
        holder,
    )


def _hole(node: Node, holder: LogDirIdentity) -> Iterator[Absence]:
    """Yield a finding if offsets are missing between two batches of the metadata log."""
    image = node.own_image
    if image is None or image.lacks is None or image.damaged_at is None or not image.lacks[0]:
        return
    path, position = image.damaged_at
    first, last = image.lacks
    text = f"no batch holds {wording.offsets(first, last)}, which the controllers agreed on"
    finding = Finding(
        "metadata/hole", text, position, None, first_offset=first, last_offset=last, path=path
    )
    yield finding, Effect.UNKNOWN, holder


def _no_metadata_log(node: Node) -> Iterator[Absence]:
    """Yield a finding about log dirs of KRaft without a metadata log; none if no broker has run."""
    if not _ran(node):
        return
    first = node.log_dirs[0]
    expected = node.own_metadata_dir
    here = [one for one in node.log_dirs if files.real_path(one.path) == expected]
    if here:
        text = f"holds no {_METADATA}, and is the log dir of the metadata log"
        yield _lost_metadata(node, here[0], text)
    elif expected is None:
        text = (
            f"no log dir given holds {_METADATA}, which every KRaft node has: without it a broker "
            "renames all its partitions to -stray; give all log dirs of the node together, "
            "metadata.log.dir too, or name its file with --broker-config"
        )
        finding = Finding("metadata/absent", text, path=first.path)
        yield finding, Effect.UNKNOWN, first


def _lost_metadata(node: Node, holder: LogDirIdentity, what: str) -> Absence:
    """Return the finding about a metadata log that is gone; `what` says what is missing."""
    path = holder.path / _METADATA
    path = path if files.has_dir(path) else holder.path
    if node.fetches_metadata_log:
        text = f"{what}: the node fetches it again from the other controllers; start them first"
        return Finding("metadata/absent", text, path=path), Effect.ABSENT, holder
    by_static = "starts an empty cluster and renames every partition to -stray"
    by_dynamic = "waits for ever, because its voters stood in that log"
    effect = Effect.LOST
    if node.has_dynamic_quorum is None:
        does = f"{by_static} if controller.quorum.voters names the voters, else {by_dynamic}"
    elif node.has_dynamic_quorum:
        does, effect = by_dynamic, Effect.REFUSE
    else:
        does = by_static
    text = f"{what}: unless another controller holds it, the node {does}"
    return Finding("metadata/lost", text, path=path), effect, holder


def _ran(node: Node) -> bool:
    """Return whether a broker has loaded the log dirs: it left partitions, or checkpoints."""
    return any(
        directory.topic != CLUSTER_METADATA for one in node.log_dirs
        for _, directory in one.root.partitions
    ) or any(kind in one.root.files for one in node.log_dirs for kind in _RAN)  # fmt: skip


def _last_epoch(listed: Partition) -> int:
    """Return the last leader epoch in leader-epoch-checkpoint; -1 without one."""
    file = listed.fixed.get(FileKind.LEADER_EPOCH_CHECKPOINT)
    if file is None:
        return -1
    with suppress(UnreadableError):
        rows = leader_epoch_checkpoint.parse(files.read_small(file.path)).rows
        return max((row.leader_epoch for row in rows), default=-1)
    return -1
