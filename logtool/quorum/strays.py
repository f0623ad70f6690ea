"""The partition dirs that become strays when their nodes start with the copy to keep.

A node fetches the metadata log that the controllers keep before it decides which of its logs are
strays, so that this copy counts for the log dirs of all copies that were given.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from logtool.errors import UnreadableError
from logtool.formats.names import TopicPartition
from logtool.lazy_dataclass import dataclass
from logtool.log import inputs, opening
from logtool.log.inputs import PathKind
from logtool.node.identity import identify, topic_id_of
from logtool.node.node import Node
from logtool.quorum.copy import MetadataCopy
from logtool.retention.segments import end_of
from logtool.startup import strays


@dataclass(frozen=True, slots=True)
class StrayDir:
    """A partition dir that the broker puts aside or deletes, with all its records."""

    node: int | None
    path: Path
    topic: str
    partition: int
    action: str
    """``stray`` or ``delete``, as in `logtool.actions`."""
    reason: str
    offsets: int = 0
    """Offsets of its log, by the segments in it."""

    @property
    def key(self) -> TopicPartition:
        """Return topic and partition."""
        return self.topic, self.partition


def strays_with(keep: MetadataCopy, copies: Sequence[MetadataCopy]) -> Iterator[StrayDir]:
    """Yield the strays in the log dirs of `copies` if the nodes start with `keep`.

    UnreadableError if a log dir or the metadata log cannot be read.
    """
    image = keep.image
    for copy in copies:
        home = copy.path.parent
        if inputs.kind_of(home) is not PathKind.LOG_DIR:
            continue
        identity = identify(opening.open_log_dir(home))
        if identity.node_id is None:
            identity = replace(identity, given_node=copy.node)
        node = Node([identity], None, fetched=image)
        for path, directory, outcome in strays.gone(node):
            if topic_id_of(path) is None and strays.id_by_name(node, directory):
                continue  # killed before it wrote the topic id: no metadata log would change that
            yield StrayDir(
                node=node.node_id,
                path=path,
                topic=directory.topic,
                partition=directory.partition,
                action=outcome.action,
                reason=outcome.text,
                offsets=_offsets(path),
            )


def _offsets(path: Path) -> int:
    """Return the number of offsets in a log: 0 if it cannot be listed, or is empty."""
    try:
        segments = opening.open_partition(path).segments
        return max(0, end_of(segments[-1]) - segments[0].base_offset) if segments else 0
    except UnreadableError:
        return 0
