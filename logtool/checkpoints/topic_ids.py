"""``partition.metadata`` repaired with the topic id that the log dir shows elsewhere.

The metadata log in the log dir has the ids of all topics, and each partition of a topic has its id.
Source: ``PartitionMetadataFile`` and ``LogManager`` (Kafka 3.9 and 4.x).
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from logtool.actions import Action
from logtool.checkpoints.edit import Edit, read_topic_id, replacement
from logtool.checks import topic_id_support
from logtool.errors import UnreadableError
from logtool.formats import names, partition_metadata
from logtool.formats.names import PartitionDirectory
from logtool.log.dir import LogDir
from logtool.node.identity import identify
from logtool.node.node import Node

_KAFKA = (4, 3)
"""A release that reads every version of the file."""
_METADATA_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
"""Id of the topic __cluster_metadata (``Uuid.METADATA_TOPIC_ID``, Kafka 3.3 to 4.4)."""


class KnownTopicIds:
    """The topic ids that a log dir shows."""

    def __init__(self, home: LogDir) -> None:
        self._home = home
        identity = identify(home)
        self._needs_ids = topic_id_support.needs_topic_ids(home, identity.meta)
        image = Node([identity], None).image if identity.has_metadata_log else None
        self._by_name: dict[str, set[str]] = {names.CLUSTER_METADATA: {_METADATA_TOPIC_ID}}
        for topic_id, name in image.names.items() if image else ():
            self._by_name.setdefault(name, set()).add(topic_id)
        for path, directory in home.partitions:
            with suppress(UnreadableError):
                value = read_topic_id(path).value
                if partition_metadata.refusal(value, _KAFKA) is None:
                    self._by_name.setdefault(directory.topic, set()).add(value.topic_id)

    def edits(self, path: Path, directory: PartitionDirectory) -> Iterator[Edit | Action]:
        """Yield the edit of partition.metadata of a partition dir, if a broker cannot use the file.

        An action without a change says that the id is not known. Raises UnreadableError.
        """
        present = read_topic_id(path)
        if present.stamp is None:
            # A broker writes that of the metadata log with its first record.
            if not self._needs_ids or directory.topic == names.CLUSTER_METADATA:
                return
            reason = "the file does not exist"
        elif refusal := partition_metadata.refusal(present.value, _KAFKA):
            reason = refusal.message
        else:
            return
        ids = self._by_name.get(directory.topic, set())
        if len(ids) == 1:
            (topic_id,) = ids
            content = partition_metadata.encode(partition_metadata.build(topic_id))
            yield replacement(present, content, [f"{reason}; topic id {topic_id}"])
            return
        why = f"has several ids here: {' and '.join(sorted(ids))}" if ids else "has no id here"
        yield Action(
            action="damaged",
            path=present.path,
            reason=f"{reason}; topic {directory.topic} {why}",
            topic=directory.topic,
            partition=directory.partition,
        )
