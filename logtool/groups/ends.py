"""Start and end of the partitions on these disks, and the topics that they belong to today.

The log end is the end of the sound batches. The last stable offset assumes that everything is
replicated: it is the first offset of the oldest transaction without a marker, else the log end.
The newest producer snapshot stands for the log before it, as it does when a broker loads a log.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats.names import DirectoryKind, FileKind, TopicPartition
from logtool.formats.redpanda.names import KAFKA_NAMESPACE
from logtool.lazy_dataclass import dataclass
from logtool.loading.epochs import EpochCache
from logtool.loading.epochs import read as read_epochs
from logtool.loading.kafka_reading import OfflineError, StartFailsError
from logtool.loading.producers import newest_state
from logtool.log import kafka_start, kvstore, opening, producer_state
from logtool.log.chunk import Chunk
from logtool.log.damage import Damage
from logtool.log.dir import LogDir, Partition
from logtool.log.keys import NONE
from logtool.log.kvstore import Kvstores
from logtool.metadata import image as metadata_image
from logtool.metadata import log_start
from logtool.metadata.image import MetadataImage
from logtool.node.identity import listed_topic_id


@dataclass(frozen=True, slots=True)
class LogEnds:
    """One copy of a partition, as far as a consumer's offset is concerned."""

    path: Path
    topic_id: str | None
    """Topic id in partition.metadata; None if it cannot be read."""
    log_start: int
    log_end: int
    last_stable: int
    leader_epoch: int
    """The last leader epoch; -1 without one."""
    epochs: tuple[tuple[int, int], ...] = ()
    """Leader epochs in leader-epoch-checkpoint and in the batches behind it, each with its start
    offset; empty without that file."""

    def end_of_epoch(self, epoch: int) -> int | None:
        """Return where a leader epoch ended, as OffsetsForLeaderEpoch answers; None if it lasts."""
        return next((start for later, start in self.epochs if later > epoch), None)


class Ends:
    """The partitions of log dirs; each is measured on first use."""

    def __init__(self, homes: Sequence[LogDir], on_bytes: Callable[[int], None]) -> None:
        self._on_bytes = on_bytes
        self._homes = homes
        self._places: dict[TopicPartition, list[tuple[Path, LogDir]]] = {}
        for home in homes:
            for path, directory in home.latest:
                if directory.kind is DirectoryKind.LIVE and of_clients(path, home):
                    key = (directory.topic, directory.partition)
                    self._places.setdefault(key, []).append((path, home))
        self._known: dict[TopicPartition, LogEnds | None] = {}
        self._starts: dict[Path, dict[TopicPartition, int]] = {}
        self._kvstores: dict[Path, Kvstores] = {}
        self.problems: list[UnreadableError] = []
        """Errors of reading; the caller removes those that it reports."""
        self.images = {one.path: image for one in homes if (image := self._read_image(one))}
        """Images of the metadata logs, by log dir."""
        newest = self._newest = max(self.images.values(), key=lambda one: one.offset, default=None)
        self.damage = newest.damage if newest else None
        """Reason why the newest metadata log here ends early; None if it does not."""
        self._today = newest if newest and newest.offset and not newest.damage else None
        """The newest image; None if it is empty or damaged, as topics may be missing from it."""
        topics = newest.topics if newest else {}
        self.topic_names = {topic_id: name for name, topic_id in topics.items()}

    def extent(self, topic: str, number: int) -> LogEnds | None:
        """Return the copy of a partition that is furthest; None if these log dirs have no copy.

        Copies of a deleted topic that had the same name are ignored.
        """
        key = (topic, number)
        if key not in self._known:
            today = self.topic_id(topic)
            found = [
                one
                for path, home in self._places.get(key, ())
                if (one := self._measured(path, home, key))
                and (None in (today, one.topic_id) or one.topic_id == today)
            ]
            best = max(found, key=lambda one: (one.leader_epoch, one.log_end), default=None)
            self._known[key] = best
        return self._known[key]

    def topic_id(self, topic: str) -> str | None:
        """Return today's id of a topic; None without a whole metadata log that has the topic."""
        return self._today.topics.get(topic) if self._today else None

    def leader_epoch(self, topic: str, number: int) -> int | None:
        """Return today's leader epoch of a partition, as `topic_id`."""
        topic_id = self.topic_id(topic)
        state = self._today.partition(topic_id, number) if self._today and topic_id else None
        return state.leader_epoch if state else None

    def is_gone(self, topic: str) -> bool:
        """Return whether the newest metadata log, read to its end, does not have the topic."""
        return self._today is not None and topic not in self._today.topics

    def partition_count(self, topic: str, here: Collection[int]) -> int | None:
        """Return the number of partitions of a topic; None without a metadata log that has it.

        A metadata log that knows fewer than the log dirs hold, `here`, is older than they are.
        """
        topic_id = self.topic_id(topic)
        known = self._today.partitions.get(topic_id, {}) if self._today and topic_id else {}
        return len(known) if known and len(known) > max(here, default=0) else None

    def absent(self, topic: str, here: Collection[int]) -> int:
        """Return the number of a topic's partitions in the metadata log that are not in `here`."""
        topic_id = self.topic_id(topic)
        known = self._today.partitions.get(topic_id, {}) if self._today and topic_id else {}
        return len(known.keys() - set(here))

    def _read_image(self, home: LogDir) -> MetadataImage | None:
        if not files.has_dir(home.path / metadata_image.DIRECTORY):
            return None
        try:
            return metadata_image.read(home.path)
        except UnreadableError as error:
            self.problems.append(error)
            return None

    def _measured(self, path: Path, home: LogDir, key: TopicPartition) -> LogEnds | None:
        try:
            listed = opening.open_partition(path, home.flavour)
            if listed.flavour.has_raft_offsets:
                return _of_redpanda(listed, self._raft_start(home, key), self._on_bytes)
            tiered = log_start.is_tiered(self._newest, key[0])
            return measure(listed, self._start(home).get(key, 0), self._on_bytes, tiered=tiered)
        except UnreadableError as error:
            self.problems.append(error)
            return None

    def _start(self, home: LogDir) -> dict[TopicPartition, int]:
        """Return the log start offsets in the checkpoint of a log dir."""
        if home.path not in self._starts:
            rows = home.rows(FileKind.LOG_START_CHECKPOINT)
            self._starts[home.path] = {key: row.offset for key, row in rows.items()}
        return self._starts[home.path]

    def _raft_start(self, home: LogDir, key: TopicPartition) -> int:
        """Return the start offset of a log of Redpanda in the kvstores; 0 if they have none."""
        if home.path not in self._kvstores:
            self._kvstores[home.path] = kvstore.read(home.path)
        return self._kvstores[home.path].start_offset(KAFKA_NAMESPACE, *key) or 0


def of_clients(path: Path, home: LogDir) -> bool:
    """Return whether clients see a partition; of Redpanda's, those in Kafka's namespace."""
    return not home.flavour.has_raft_offsets or kafka_start.in_kafka(path)


def _of_redpanda(listed: Partition, start: int, on_bytes: Callable[[int], None]) -> LogEnds:
    """Measure a log of Redpanda, in Kafka offsets as in commits; UnreadableError if unknown."""
    ranges: list[tuple[int, int]] = []
    damaged: list[Damage] = []

    def look(chunk: Chunk) -> None:
        ranges.extend(kafka_start.filtered(chunk.table))
        damaged.extend([chunk.damage] if chunk.damage else [])

    extent = measure(listed, start, on_bytes, look)
    kafka_offsets = kafka_start.translation(listed, ranges)
    torn = damaged and not damaged[-1].resynchronised and len(damaged) == 1
    if kafka_offsets is None or (damaged and not torn):
        why = "it is damaged" if kafka_offsets else kafka_start.unknown(listed)
        raise UnreadableError(
            listed.path, f"its Kafka offsets are not known, so lags are not shown: {why}"
        )
    offsets = (extent.log_start, extent.log_end, extent.last_stable)
    first, end, stable = (kafka_offsets[1].to_kafka(offset) or 0 for offset in offsets)
    return replace(extent, log_start=first, log_end=end, last_stable=stable)


def measure(
    listed: Partition,
    start: int,
    on_bytes: Callable[[int], None],
    look: Callable[[Chunk], None] | None = None,
    *,
    tiered: bool = False,
) -> LogEnds:
    """Read the start and the end of a log; `start` is its row in the checkpoint, 0 without one.

    `look` is called with every chunk. `tiered` is that of `logtool.metadata.log_start`.
    """
    first = listed.segments[0].base_offset if listed.segments else 0
    last = listed.segments[-1].base_offset if listed.segments else 0
    since, state = newest_state(listed.snapshots, last)
    end, epoch = first, NONE
    epochs = _epochs(listed)
    for segment in listed.segments:
        end = max(end, segment.base_offset)
        if segment.next_base_offset is not None and segment.next_base_offset <= since:
            continue
        for chunk in segment.batches(payload=False):
            if look:
                look(chunk)
            if chunk.damage:
                continue
            table = chunk.table
            on_bytes(int(table.size.sum()))
            state.apply(producer_state.significant(table[table.base_offset >= since]))
            end = max(end, int(table.last_offset.max()) + 1)
            epoch = max(epoch, int(table.leader_epoch[-1]))
            if epochs:
                epochs.add(table)
    if epochs:
        epochs.truncate_from_end(end)
    begins = log_start.log_start(first, start, tiered=tiered)
    stable = max(begins, min(state.oldest_open(none=end), end))
    return LogEnds(
        path=listed.path,
        topic_id=listed_topic_id(listed),
        log_start=begins,
        log_end=max(end, begins),
        last_stable=stable,
        leader_epoch=epoch,
        epochs=tuple(epochs.rows) if epochs else (),
    )


def _epochs(listed: Partition) -> EpochCache | None:
    """Return the leader epochs of a log; None without a file that a broker can read."""
    file = listed.fixed.get(FileKind.LEADER_EPOCH_CHECKPOINT)
    with suppress(UnreadableError, OfflineError, StartFailsError):
        return read_epochs(files.read_small(file.path)) if file else None
    return None


def unmeasured(listed: Partition) -> LogEnds:
    """Return an empty extent for the only copy, which is not compared."""
    return LogEnds(
        path=listed.path, topic_id=None, log_start=0, log_end=0, last_stable=0, leader_epoch=-1
    )
