"""The log dirs of one node, as its start reads them together.

A broker reads `meta.properties` of all its log dirs before it opens a log, and loads the partitions
of all of them into one table. `logtool.checks.broker_dirs` has the rules of that start.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats import quorum_state
from logtool.formats.names import FileKind, PartitionDirectory
from logtool.formats.quorum_state import QuorumState
from logtool.metadata import image as metadata_image
from logtool.metadata import releases
from logtool.metadata.image import MetadataImage
from logtool.node import own_file
from logtool.node.identity import LogDirIdentity, topic_id_of

WITH_DIRECTORY_IDS = (3, 7)
"""The first release that reads directory ids, and starts without a log dir it cannot identify."""
NO_LOG_DIRS = frozenset({"AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAQ",
                          "AAAAAAAAAAAAAAAAAAAAAg"})  # fmt: skip
"""The ids in an assignment that name no log dir (``DirectoryId``): migrating, unassigned, lost."""


class Node:
    """The log dirs of one node, its metadata image and its release."""

    def __init__(
        self,
        log_dirs: Sequence[LogDirIdentity],
        kafka: tuple[int, int] | None,
        static: Mapping[str, str] | None = None,
        *,
        elsewhere: "Node | None" = None,
        fetched: MetadataImage | None = None,
    ) -> None:
        """Keep the log dirs and the release `kafka`; None: the release that the log dirs show.

        `static` holds the settings in the broker's own file. If the log dirs hold no metadata log,
        that of the node `elsewhere`, of the same cluster, is read. `fetched` is the image of the
        controllers, which the node fetches before it decides which of its logs are strays.
        """
        self.elsewhere = elsewhere
        self.fetched = fetched
        self.log_dirs = tuple(log_dirs)
        self.static = static or {}
        self.given_kafka = kafka
        self.unread: UnreadableError | None = None
        """The error if the metadata log could not be opened; set when `own_image` is read."""

    @cached_property
    def metadata_log(self) -> LogDirIdentity | None:
        """Return the log dir with the metadata log; of several, the one with the most files."""
        holders = [one for one in self.log_dirs if one.has_metadata_log]
        if len(holders) < 2:
            return holders[0] if holders else None
        return max(
            holders, key=lambda one: len(files.list_dir(one.path / metadata_image.DIRECTORY))
        )

    @cached_property
    def image(self) -> MetadataImage | None:
        """Return the image with which the node starts: `fetched` if given, else `own_image`."""
        return self.own_image if self.fetched is None else self.fetched

    @cached_property
    def own_image(self) -> MetadataImage | None:
        """Return the image of its own metadata log; None if no metadata log can be opened.

        It is empty if the log dir of the metadata log was given, the log is not in it, and no other
        controller is known to have it: the node then begins an empty cluster, unless its voters
        stood in that log.
        """
        if self.metadata_log is None and self.elsewhere is not None:
            return self.elsewhere.image
        if self.metadata_log is None:
            gone = self.lacks_metadata_log and not self.has_other_controllers
            gone = gone and not self.has_dynamic_quorum
            return MetadataImage(static=self.static) if gone else None
        try:
            image = metadata_image.read(self.metadata_log.path / metadata_image.DIRECTORY)
        except UnreadableError as error:
            self.unread = error
            return None
        image.static = self.static
        return image

    @property
    def lacks_metadata_log(self) -> bool:
        """Return whether the log dir that the own file names for the metadata log lacks it."""
        return self.own_metadata_dir in self.paths and self.metadata_log is None

    @property
    def has_other_controllers(self) -> bool:
        """Return whether the broker's own file names a controller that is not this node."""
        others = set(own_file.voters(self.static)) - {self.node_id}
        alone = own_file.roles(self.static) != {"broker"}
        return bool(others) or not alone or own_file.has_several_controllers(self.static)

    @cached_property
    def quorum_state(self) -> QuorumState | None:
        """Return the content of quorum-state; None if it cannot be read."""
        if self.metadata_log is None:
            return None
        home = self.metadata_log.path / metadata_image.DIRECTORY
        with suppress(UnreadableError):
            return quorum_state.parse(files.read_small(home / FileKind.QUORUM_STATE.value))
        return None

    @cached_property
    def has_dynamic_quorum(self) -> bool | None:
        """Return whether the voters stand in the metadata log alone; None if it is not known.

        Without its metadata log such a node knows no voter, and waits for ever; a node with a
        static quorum starts an empty cluster. Since kraft.version 1 quorum-state has version 1.
        """
        own = own_file.has_dynamic_quorum(self.static)
        if own is not None:
            return own
        version = self.quorum_state.data_version if self.quorum_state else None
        return None if version is None else version > 0

    @property
    def waits_for_voters(self) -> bool:
        """Return whether the node knows no voter, because its metadata log holds no record."""
        image = self.image
        is_empty = image is None or (image.offset == 0 and image.voters is None)
        return is_empty and bool(self.has_dynamic_quorum)

    @cached_property
    def voters(self) -> frozenset[int]:
        """Return the node ids of all voters; empty if no file lists them.

        Up to 3.8, and with a static quorum, quorum-state may list them too.
        """
        if self.image and self.image.voters is not None:
            return frozenset(one["voterId"] for one in self.image.voters)
        state = self.quorum_state
        return frozenset(own_file.voters(self.static) or (state and state.current_voters) or ())

    @property
    def fetches_metadata_log(self) -> bool:
        """Return whether the metadata log holds no record, and other controllers have the log."""
        is_empty = self.image is None or self.image.offset == 0
        return is_empty and (self.has_other_controllers or bool(self.voters - {self.node_id}))

    @cached_property
    def node_id(self) -> int | None:
        """Return the node id in the log dir of the metadata log, or that of the own file.

        Without both it is the id in any other log dir.
        """
        if self.metadata_log and self.metadata_log.node_id is not None:
            return self.metadata_log.node_id
        if (own := own_file.node_id(self.static)) is not None:
            return own
        known = (one.node_id for one in self.log_dirs)
        return next((one for one in known if one is not None), None)

    @cached_property
    def cluster_id(self) -> str | None:
        """Return the id of its cluster; None if no meta.properties has it."""
        ids = (one.meta.cluster_id for one in self.log_dirs if one.meta)
        return next(filter(None, ids), None)

    @cached_property
    def shown_level(self) -> int | None:
        """Return the highest ``metadata.version`` that the node supported when it registered last.

        None if no registration of the node is known.
        """
        if not self.image or self.node_id is None:
            return None
        return self.image.metadata_version_of(self.node_id)

    @cached_property
    def shown_kafka(self) -> tuple[int, int] | None:
        """Return the release with which the node registered last; None if it is not known.

        It is not known either if the release is newer than this program.
        """
        return None if self.shown_level is None else releases.of_feature(self.shown_level)

    @property
    def is_newer_than_known(self) -> bool:
        """Return whether the node registered last with a release newer than this program."""
        return self.shown_level is not None and self.shown_kafka is None

    @property
    def starting_kafka(self) -> tuple[int, int] | None:
        """Return the release that starts: the given one, else the shown one; None without both."""
        return self.given_kafka or self.shown_kafka

    @cached_property
    def kafka(self) -> tuple[int, int]:
        """Return the known release nearest to the one that starts, whose behaviour is predicted.

        If no release is given or shown, the broker's own file may hint at one. With ZooKeeper no
        broker is newer than 3.9. A release newer than this program counts as the newest known.
        """
        near = self.starting_kafka or releases.hinted(self.static)
        if near is None and self.is_zookeeper:
            near = releases.LAST_WITH_ZOOKEEPER
        return releases.nearest(near) if near else releases.NEWEST

    @property
    def is_kafka_assumed(self) -> bool:
        """Return whether neither the caller nor the log dirs name the release."""
        return not self.starting_kafka

    @property
    def has_directory_ids(self) -> bool:
        """Return whether the release reads directory ids."""
        return self.kafka >= WITH_DIRECTORY_IDS

    @property
    def is_kraft(self) -> bool:
        """Return whether the files of any log dir show that the node runs with KRaft."""
        return any(one.has_metadata_log or (one.meta and one.meta.version == 1)
                   for one in self.log_dirs)  # fmt: skip

    @property
    def is_zookeeper(self) -> bool:
        """Return whether the files of the log dirs show that the node ran with ZooKeeper."""
        return not self.is_kraft and any(one.meta and one.meta.version == 0
                                         for one in self.log_dirs)  # fmt: skip

    def needs(self, log_dir: Path) -> bool:
        """Return whether a broker since 3.7 needs this log dir to start; before 3.7, False."""
        holder = self.metadata_log
        return self.has_directory_ids and holder is not None and holder.path == log_dir

    def others_in_sync(self, topic: str, number: int) -> list[int]:
        """Return the other nodes in sync or eligible for a partition, by the metadata log."""
        image = self.image
        topic_id = image.topics.get(topic) if image else None
        state = image.partition(topic_id, number) if image and topic_id else None
        found = (*state.isr, *state.elr) if state else ()
        return [one for one in dict.fromkeys(found) if one != self.node_id]

    def is_stray(self, path: Path, directory: PartitionDirectory) -> bool:
        """Return whether a metadata log that is there and undamaged does not know the log."""
        image = self.image
        if not image or image.damage or self.node_id is None:
            return False
        if self.waits_for_voters or self.fetches_metadata_log:
            return False
        topic_id = topic_id_of(path)
        return image.is_stray(directory.topic, directory.partition, topic_id, self.node_id)

    def is_assigned(self, here: LogDirIdentity, path: Path, directory: PartitionDirectory) -> bool:
        """Return whether the metadata log assigns a partition of this node to `here`."""
        image, topic_id = self.image, topic_id_of(path)
        known = self.has_directory_ids and image and not image.damage
        if not known or not image or topic_id is None or not here.meta:
            return False
        state = image.partition(topic_id, directory.partition)
        if state is None or self.node_id not in state.replicas or not state.directories:
            return False
        assigned = state.directories[state.replicas.index(self.node_id)]
        return assigned == here.meta.directory_id

    def ids_not_given(self) -> set[str]:
        """Return the directory ids of log dirs that the node has and that were not given.

        A log dir whose id the metadata log does not know replaces one that it knows: a new disk. If
        as many were replaced as are missing, every log dir of the node was given; so it was if the
        broker's own file names no other.
        """
        missing = self.missing_ids()
        if not missing or self.has_all_log_dirs:
            return set()
        registered = self.image.log_dirs(self.node_id or 0) if self.image else set()
        holders = [one for one in self.log_dirs if one.meta and one.meta.directory_id]
        known = [one.meta.directory_id for one in holders if one.meta]
        new = [
            one
            for one in holders
            if one.meta
            and one.meta.directory_id not in registered
            and not one.has_only_metadata_log
        ]
        is_double = len(set(known)) < len(known)  # One of the two has lost its own.
        return missing if len(new) < len(missing) and not is_double else set()

    @cached_property
    def has_all_log_dirs(self) -> bool:
        """Return whether the broker's own file names log dirs, and all of them were given."""
        return bool(self.own_log_dirs) and self.own_log_dirs <= self.paths

    @cached_property
    def paths(self) -> set[Path]:
        """Return the real paths of the log dirs."""
        return {files.real_path(one.path) for one in self.log_dirs}

    @cached_property
    def own_log_dirs(self) -> set[Path]:
        """Return the log dirs that the broker's own file names.

        Empty if none of the given log dirs is among them: then they are copies, for example.
        """
        named = own_file.log_dirs(self.static)
        return named if self.paths & named else set()

    @property
    def own_metadata_dir(self) -> Path | None:
        """Return the log dir that the own file names for the metadata log; None as above."""
        return own_file.metadata_dir(self.static) if self.own_log_dirs else None

    def missing_ids(self) -> set[str]:
        """Return the directory ids of this node that no log dir given has."""
        image = self.image
        if not self.has_directory_ids or not image or image.damage or self.node_id is None:
            return set()
        known = [one.meta.directory_id if one.meta else None for one in self.log_dirs]
        missing = image.log_dirs(self.node_id) - {*known} - NO_LOG_DIRS
        # A log dir that has lost its id may be any of them.
        return missing if len(missing) > known.count(None) else set()


def images_of(nodes: Mapping[Path, Node], log_dir: Path) -> list[MetadataImage]:
    """Return the undamaged metadata images of the cluster of a log dir, the newest first.

    `nodes` has the node of each log dir.
    """
    own = nodes.get(log_dir)
    if own is None:
        return []
    found = {id(node): node for node in nodes.values() if node.cluster_id == own.cluster_id}
    images = (node.image for node in found.values() if node.metadata_log)
    whole = (image for image in images if image is not None and not image.damage)
    return sorted(whole, key=lambda image: (image.epoch, image.offset), reverse=True)


def nodes_of(
    log_dirs: Sequence[LogDirIdentity],
    kafka: tuple[int, int],
    static: Mapping[str, str] | None = None,
) -> list[Node]:
    """Group log dirs by the node that they belong to.

    Each node has one metadata log, so log dirs with another node id and a metadata log of their own
    belong to another node. If only one node has a metadata log, all log dirs belong to that node.
    """
    groups: dict[str | None, list[LogDirIdentity]] = {}
    for one in log_dirs:
        groups.setdefault(one.node, []).append(one)
    if len(groups) == 2 and None in groups:  # A log dir without an id is of the only node.
        return [Node(log_dirs, kafka, static)]
    whole = [any(one.has_metadata_log for one in group) for group in groups.values()]
    if sum(whole) <= 1 and not (len(groups) > 1 and not any(whole)):
        return [Node(log_dirs, kafka, static)] if log_dirs else []
    return [Node(group, kafka, static) for group in groups.values()]
