"""Rule for the leader epochs of a log, against the leader epoch of its partition in a metadata log.

A broker appends to its metadata log before it leads or follows with a new leader epoch, so that no
batch has an epoch above that in the metadata log of its node. Batches with a larger epoch are from
a backup or from another node, or the controllers were restored and lost the epochs.

A follower skips all batches whose epoch is above its own, which is that in the metadata log, and
every batch behind them (``UnifiedLog.hasHigherPartitionLeaderEpoch``, KAFKA-18723; 3.9.2 and 4.x).
A consumer that sends the epoch of such a batch waits for metadata that is as new
(``OffsetsForLeaderEpochUtils``, ``Metadata.updateLastSeenEpochIfNewer``).

A metadata log may itself be older than the log: its last appends can be lost in a crash of the
host, and a running broker is copied file by file. After a clean stop neither is possible, nor if
the metadata log has a record that is younger than the last write to the log.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from logtool.findings import Finding
from logtool.formats.names import TopicPartition
from logtool.log.dir import LogDir
from logtool.log.file import File
from logtool.metadata.image import MetadataImage

_TOLERANCE_MS = 60_000
"""Largest difference between the clocks of a controller and of a broker."""


class LoggedEpochs(Protocol):
    """The facts about one log that the rule needs."""

    @property
    def epoch_starts(self) -> tuple[tuple[int, int], ...]:
        """Return epochs that are larger than all before, with the first offset of its batches."""

    @property
    def topic_id(self) -> str | None:
        """Return the topic id in partition.metadata; None if it is not known."""

    @property
    def newest_log(self) -> File | None:
        """Return the segment that was written last; None if it is not known."""


def check_epochs(
    log_dir: LogDir, images: Sequence[MetadataImage], key: TopicPartition, log: LoggedEpochs
) -> Iterator[Finding]:
    """Yield a finding if the log has a leader epoch above that of its partition in the metadata.

    `images` are the metadata images of the cluster, the newest first; only the first one counts.
    """
    if not images or not log.epoch_starts:
        return
    image, (topic, number), largest = images[0], key, log.epoch_starts[-1][0]
    named = image.partition(image.topics.get(topic, ""), number)
    if named and named.leader_epoch >= largest:
        return  # The usual case, for which partition.metadata need not be read.
    state = image.partition(log.topic_id, number) if log.topic_id else named
    if state is None:
        return
    above = [(epoch, first) for epoch, first in log.epoch_starts if epoch > state.leader_epoch]
    if not above:
        return
    first = above[0][1]
    text = (
        f"batches from offset {first} onwards have leader epochs up to {largest}, above "
        f"{state.leader_epoch}, that of the partition in the metadata log"
    )
    written = log.newest_log
    is_younger = written and image.timestamp_ms > written.mtime_ns // 1_000_000 + _TOLERANCE_MS
    if log_dir.is_clean or is_younger:
        code = "leader-epoch/above-metadata"
        text += ": followers skip them and everything behind them, and do not catch up"
    else:
        code = "leader-epoch/ahead-of-metadata"
        text += (
            ": the metadata log given may be older than the log; if that of a controller does not "
            "have the epoch either, followers do not catch up"
        )
    path = log_dir.path / f"{topic}-{number}"
    yield Finding(code, text, path=path, topic=topic, partition=number, first_offset=first)


def rising(runs: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return each (leader epoch, first offset) whose epoch is larger than all before it."""
    found: list[tuple[int, int]] = []
    for epoch, first in runs:
        if epoch > (found[-1][0] if found else -1):
            found.append((epoch, first))
    return tuple(found)
