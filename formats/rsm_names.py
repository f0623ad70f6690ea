"""Names of the objects of remote segments, by the storage plugin that wrote them.

`local`: Kafka's own plugin for tests, ``LocalTieredStorage``, which copies the files of a segment:
``<topic>-<partition>-<topic id>/<offset, 20 digits>-<segment id><suffix>``. Source:
``RemoteTopicPartitionDirectory``, ``RemoteLogSegmentFileset`` (Kafka 4.2).

`aiven`: the plugin of Aiven, see `logtool.formats.rsm_manifest`.
"""

import re
from collections.abc import Mapping
from enum import StrEnum

from logtool.formats.java_text import parse_uuid
from logtool.lazy_dataclass import dataclass

LOG = "log"
_PARTITION = re.compile(r"(.+)-(\d{1,10})-([A-Za-z0-9_-]{22})")
_TOPIC = re.compile(r"(.+)-([A-Za-z0-9_-]{22})")
_SEGMENT = re.compile(r"(\d{20})-([A-Za-z0-9_-]{22})\.([a-z_-]+)")
_INT_MAX = 2**31 - 1


class Plugin(StrEnum):
    """Storage plugins whose objects logtool knows."""

    LOCAL = "local"
    AIVEN = "aiven"

    @property
    def required(self) -> tuple[str, ...]:
        """Return the suffixes of the objects that every segment has."""
        return _REQUIRED[self]

    @property
    def optional(self) -> tuple[str, ...]:
        """Return the suffixes of the objects that a segment may have."""
        return ("txnindex",) if self is Plugin.LOCAL else ()


_REQUIRED: Mapping[Plugin, tuple[str, ...]] = {
    Plugin.LOCAL: (LOG, "index", "timeindex", "snapshot", "leader_epoch_checkpoint"),
    Plugin.AIVEN: (LOG, "indexes", "rsm-manifest"),
}


@dataclass(frozen=True, slots=True)
class RemoteObjectName:
    """Parts of the name of an object."""

    topic: str
    topic_id: str
    partition: int
    base_offset: int
    segment_id: str
    kind: str
    """Its suffix, without the dot."""

    @property
    def partition_id(self) -> tuple[str, int]:
        """Return the id of the topic and the number of the partition."""
        return self.topic_id, self.partition


def parse(plugin: Plugin, key: str) -> RemoteObjectName | None:
    """Return the parts of a path below the prefix; None if the plugin does not write such a name.

    Folders before the name are part of the prefix.
    """
    parts = key.split("/")
    segment = _SEGMENT.fullmatch(parts[-1])
    if segment is None or segment[3] not in (*plugin.required, *plugin.optional):
        return None
    if plugin is Plugin.LOCAL:
        place = _PARTITION.fullmatch(parts[-2]) if len(parts) > 1 else None
        found = place and (place[1], place[3], place[2])
    else:
        place = _TOPIC.fullmatch(parts[-3]) if len(parts) > 2 and parts[-2].isdecimal() else None
        found = place and (place[1], place[2], parts[-2])
    if not found or parse_uuid(found[1]) is None or int(found[2]) > _INT_MAX:
        return None
    return RemoteObjectName(
        topic=found[0], topic_id=found[1], partition=int(found[2]), base_offset=int(segment[1]),
        segment_id=segment[2], kind=segment[3],
    )  # fmt: skip
