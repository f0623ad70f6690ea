"""A log dir that was listed for `watermark`, and the load of one of its replicas."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from logtool.checks import root
from logtool.checks.report import PartitionSummary
from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.formats.messages.cluster_metadata import PartitionRecord
from logtool.formats.names import FileKind, PartitionDirectory, TopicPartition
from logtool.lazy_dataclass import dataclass
from logtool.loading.result import Outcome
from logtool.log import opening
from logtool.log.dir import OFFSET_CHECKPOINTS, LogDir
from logtool.node.claims import absent_partitions, was_never_made
from logtool.node.identity import LogDirIdentity
from logtool.node.node import Node
from logtool.startup.log_dir_start import LogDirStart
from logtool.startup.plain_partition import PlainLooks
from logtool.watermark.replica import Replica, measure


@dataclass(frozen=True, slots=True)
class ListedLogDir:
    """A log dir that was listed."""

    home: LogDirStart
    node: int | None
    rows: root.Checkpoints
    epoch: int | None
    """Broker epoch in the clean marker, from the last clean stop; None without one."""
    identity: LogDirIdentity | None = None
    """Identity of a log dir of Kafka that was given as a whole; None for a partition dir."""


@dataclass(slots=True)
class ReplicaRequest:
    """One replica to be looked at."""

    broker: ListedLogDir
    path: Path
    directory: PartitionDirectory
    bytes_ahead: int = 0
    """Bytes of the logs."""
    log_start: int | None = None
    """Log start offset outside of the log, once the replica was measured."""

    @property
    def key(self) -> TopicPartition:
        """Return topic and partition."""
        return self.directory.topic, self.directory.partition


def load_replica(
    work: ReplicaRequest, on_bytes: Callable[[int], None], looks: PlainLooks | None
) -> Replica | UnreadableError:
    """Measure a replica, once more where a broker took a segment away meanwhile."""
    found = _loaded_once(work, on_bytes, looks)
    for _ in range(opening.MOST_LOOKS):
        if not (isinstance(found, UnreadableError) and files.has_vanished(found)):
            break
        found = _loaded_once(work, on_bytes, looks)
    return found


def _loaded_once(
    work: ReplicaRequest, on_bytes: Callable[[int], None], looks: PlainLooks | None
) -> Replica | UnreadableError:
    # The request takes more memory than a replica, and there may be many replicas.
    request = work.broker.home.request(work.path, work.directory, lambda _, row: row or 0)
    work.log_start = request.start.log_start or None
    if request.redpanda:
        from logtool.watermark import raft

        return raft.measure(request, request.redpanda, work.broker.node, on_bytes)
    point = work.broker.home.rows(FileKind.RECOVERY_POINT_CHECKPOINT).get(work.key)
    return measure(request, work.broker.node, point, on_bytes, looks)


def violations(work: ReplicaRequest, replica: Replica) -> Iterator[Finding]:
    """Yield where the checkpoints contradict the log as its broker would load it."""
    if replica.usable:
        first = replica.first_base_offset
        facts = PartitionSummary(
            # A broker makes an absent log at the log start.
            first_base_offset=replica.log_start if first is None else first,
            log_end_offset=replica.log_end,
            newest_log=replica.newest_log,
            made_ns=replica.made_ns,
        )
        root_dir = work.broker.home.log_dir
        yield from root.check_partition_offsets(root_dir, work.key, facts, work.broker.rows)


def checkpoints(root_dir: LogDir) -> root.Checkpoints:
    """Return the rows with their lines; what is wrong with a file as such, `LogDirStart` says."""
    rows = {}
    for kind in OFFSET_CHECKPOINTS:
        if kind in root_dir.files:
            with suppress(UnreadableError):
                rows[kind] = root_dir.rows(kind)
    return rows


def new_logs(
    brokers: Sequence[ListedLogDir],
    ends: dict[int, dict[TopicPartition, int]],
    key: TopicPartition,
    state: PartitionRecord,
    having: set[int | None],
) -> list[Replica]:
    """Return the empty logs of a partition that nodes make, without those `having` a copy.

    A node makes none if the copy is in a log dir that was not given. `ends` keeps the results of
    `proven_ends`, by the id of the node object.
    """
    found: dict[int, Replica] = {}
    for broker in brokers:
        node, home = broker.node, broker.home.node
        if node not in state.replicas or node in having or node is None:
            continue
        at = state.replicas.index(node)
        is_placed = len(state.directories) == len(state.replicas)
        if is_placed and state.directories[at] in home.ids_not_given():
            continue
        if id(home) not in ends:
            ends[id(home)] = proven_ends(home)
        found[node] = Replica(
            path=broker.home.log_dir.path / f"{key[0]}-{key[1]}",
            topic=key[0],
            partition=key[1],
            node=node,
            outcome=str(Outcome.LOADS),
            acknowledged_gone=ends[id(home)].get(key, 0),
            topic_id=state.topic_id,
            is_new=True,
        )
    return [*found.values()]


def proven_ends(node: Node) -> dict[TopicPartition, int]:
    """Return the offsets that files of a node prove for the partitions that it has lost."""
    return {one.key: one.end for one in absent_partitions(node) if not was_never_made(node, one)}
