"""Log dirs of one or several brokers, the newest metadata log in them, and a broker's own file."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from logtool.checks import own_file as own_file_rules
from logtool.checks.identity import Effect
from logtool.copies.sources import ListedCopy
from logtool.dirs.proof import MetadataVerdict, Other
from logtool.disk import files
from logtool.findings import Finding
from logtool.formats.names import CLUSTER_METADATA
from logtool.node import own_file
from logtool.node.identity import LogDirIdentity, topic_id_of
from logtool.node.node import Node
from logtool.node.settings import Settings

_NOTHING: Mapping[str, str] = {}


class Cluster:
    """Log dirs of one or several brokers, and the newest metadata log in them."""

    def __init__(
        self, log_dirs: Sequence[LogDirIdentity], static: Mapping[str, str] = _NOTHING
    ) -> None:
        """Group the log dirs by node; `static` holds the settings in the own file of one broker."""
        wanted = own_file.log_dirs(static)
        named = [one for one in log_dirs if wanted and files.real_path(one.path) in wanted]
        owner = next((one.node for one in named if one.node is not None), None)
        groups: dict[str | None, list[LogDirIdentity]] = {}
        for one in log_dirs:
            # A log dir without an id belongs to the broker whose own file names it.
            node = owner if one.node is None and one in named else one.node
            groups.setdefault(node, []).append(one)
        owners = _owners(set(groups), {owner, *(one.node for one in named)}, static)
        self.nodes = [
            Node(group, None, static if node in owners else None) for node, group in groups.items()
        ]
        holders = [node for node in self.nodes if node.metadata_log and node.image]
        newest = _leading(holders)
        self.image = newest.image if newest else None
        """Image of the newest metadata log, of a voter if a majority of them was given; None if no
        log dir has a metadata log."""
        self._metadata_log = newest.metadata_log if newest else None
        self._node_ids = {one.path: node.node_id for node in self.nodes for one in node.log_dirs}

    def contradictions(self, node: Node) -> Iterator[Finding]:
        """Yield where the broker's own file and the log dirs of a node contradict each other.

        Nothing is yielded about switches of the broker, and for a node that the file is not about.
        """
        if node.static:
            for finding, effect, _ in own_file_rules.check(node):
                if effect is not Effect.IGNORE:
                    yield finding

    def is_stray(self, copy: ListedCopy, topic_id: str | None) -> bool:
        """Return whether a whole metadata log does not assign a copy to its broker."""
        image, node = self.image, self._node_ids.get(copy.path.parent)
        if image is None or image.damage or node is None:
            return False
        return image.is_stray(*copy.key, topic_id, node)

    def verdict(self, copy: ListedCopy) -> MetadataVerdict | None:
        """Return the state of a copy in the metadata log; None without a whole one or a topic id.

        None also for the metadata log itself, which has no record of its own topic.

        A topic that is unknown without a RemoveTopicRecord was removed before the snapshot, or is
        newer than the end of the metadata log.
        """
        image, node = self.image, self._node_ids.get(copy.path.parent)
        topic_id = topic_id_of(copy.path)
        if image is None or image.damage or topic_id is None or copy.key[0] == CLUSTER_METADATA:
            return None
        if topic_id in image.removed:
            return MetadataVerdict("removed", image.removed[topic_id])
        if topic_id not in image.names:
            return MetadataVerdict("unknown", image.offset)
        if node is None:
            return None
        state = image.partition(topic_id, copy.key[1])
        is_here = state is not None and node in state.replicas
        return MetadataVerdict("assigned" if is_here else "moved", image.offset)

    def _settings(self, copy: ListedCopy) -> Settings:
        holder, node = self._metadata_log, self._node_ids.get(copy.path.parent)
        return Settings(self.image, node, metadata_dir=holder.path if holder else None)

    def others(self, target: ListedCopy, copies: Sequence[ListedCopy]) -> list[Other]:
        """Return the directories that may be copies of a partition, by topic id or by name."""
        topic_id = topic_id_of(target.path)
        return [
            Other(one, self.is_stray(one, topic_id_of(one.path)), self._settings(one))
            for one in copies
            if not _is_same(one.path, target.path)
            and one.key[1] == target.key[1]
            and one.listed is not None
            and (one.key == target.key or (topic_id and topic_id == topic_id_of(one.path)))
        ]


def _owners(
    nodes: set[str | None], named: set[str | None], static: Mapping[str, str]
) -> set[str | None]:
    """Return the nodes that the own file of a broker is about, as `named` holds those it names.

    It is about the only node; of several about those whose log dirs it names, else about that with
    its node id.
    """
    if not static or len(nodes) < 2:
        return nodes if static else set()
    return named & nodes - {None} or {str(own_file.node_id(static))}


def voters_of(holders: Sequence[Node]) -> frozenset[int]:
    """Return the voters by the newest image, or by the newest quorum-state of a static quorum.

    Empty if no file lists them. `holders` are nodes with a metadata log.
    """
    newest = max(holders, key=_age_of_image, default=None)
    if newest and newest.image and newest.image.voters is None:
        newest = max(holders, key=_election)
    return newest.voters if newest else frozenset()


def _leading(holders: Sequence[Node]) -> Node | None:
    """Return the node with the metadata log that the brokers get; None without any.

    A majority of the voters elects one of them, and a broker cuts its copy to that of the winner.
    With fewer voters it is not known what the others have, and the newest copy is taken.
    """
    voters = voters_of(holders)
    able = [one for one in holders if one.node_id in voters]
    has_majority = len({one.node_id for one in able}) > len(voters) // 2
    return max(able if has_majority else holders, key=_age_of_image, default=None)


def _election(node: Node) -> tuple[int, bool]:
    state = node.quorum_state
    epoch = state.leader_epoch if state and state.current_voters else None
    return -1 if epoch is None else epoch, node.node_id in node.voters


def _age_of_image(node: Node) -> tuple[int, int]:
    image = node.image
    return (image.epoch, image.offset) if image else (-1, -1)


def _is_same(one: Path, other: Path) -> bool:
    """Return whether two paths lead to one directory, even through a link or another mount."""
    try:
        return one == other or one.samefile(other)
    except OSError:
        return files.real(one) == files.real(other)  # remote, or deleted meanwhile
