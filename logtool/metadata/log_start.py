"""The log start offset of a partition, with segments in remote storage or without them.

The log start offset is the base offset of the first segment, or the row of
log-start-offset-checkpoint if that is larger. With tiered storage the first segments lie in remote
storage, and the directory has only the newer ones: then the row alone counts, which the broker
writes for every such log, and the base offset of the first segment is the local log start offset.
Source: ``LogLoader.load``, ``UnifiedLog.isRemoteLogEnabled``,
``LogManager.checkpointLogStartOffsetsInDir`` (Kafka 3.9 and 4.x).
"""

from collections.abc import Sequence

from logtool.formats.names import CLUSTER_METADATA, CONSUMER_OFFSETS
from logtool.metadata.state import MetadataImage

_NEVER_TIERED = frozenset({
    CLUSTER_METADATA, CONSUMER_OFFSETS, "__transaction_state", "__share_group_state",
    "__remote_log_metadata",
})  # fmt: skip


def is_tiered(image: MetadataImage | None, topic: str | None) -> bool:
    """Return whether segments of a topic are in remote storage, by the metadata log.

    Without a metadata log that has the topic it is not known, and the result is False. The broker
    keeps compacted and internal topics on its disks, whatever their setting is.
    """
    if image is None or topic not in image.topics or topic in _NEVER_TIERED:
        return False
    if (image.topic_config(topic, "remote.storage.enable") or "").lower() != "true":
        return False
    return "compact" not in (image.topic_config(topic, "cleanup.policy") or "")


def log_start(first: int, row: int | None, *, tiered: bool) -> int:
    """Return the log start offset of a partition.

    `first` is the base offset of its first segment, and `row` its row in
    log-start-offset-checkpoint, None without one. A broker takes 0 for a tiered log without a row.
    """
    known = max(row or 0, 0)
    return known if tiered else max(first, known)


def lacks_remote_epochs(epochs: Sequence[tuple[int, int]], start: int, local_start: int) -> bool:
    """Return whether a tiered log has no leader epoch of what is in remote storage alone.

    `epochs` are the rows of leader-epoch-checkpoint, `start` is the log start offset, and
    `local_start` the first offset of the local segments. A leader deletes the remote segments whose
    leader epochs are all older than its first one. DeleteRecords and retention move the first row
    up to the new log start, so a first row below the local segments is in order.
    Source: ``RLMExpirationTask.cleanupExpiredRemoteLogSegments`` (Kafka 3.9 to 4.3).
    """
    first = min((offset for _, offset in epochs), default=local_start)
    return start < local_start <= first
