"""Facts about one log dir with which each of its partitions is checked: rows, marker, metadata."""

from collections.abc import Iterator, Sequence
from functools import cached_property

from logtool.checks import index_cache, root, topic_id_support
from logtool.checks.compaction import Cleaning
from logtool.checks.leader_epochs import check_epochs
from logtool.checks.report import PartitionSummary
from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.formats.meta_properties import MetaProperties
from logtool.formats.names import DirectoryKind, FileKind, PartitionDirectory, TopicPartition
from logtool.formats.offset_checkpoint import OffsetRow
from logtool.log import small_files
from logtool.log.dir import OFFSET_CHECKPOINTS, LogDir
from logtool.metadata.image import MetadataImage
from logtool.metadata.log_start import lacks_remote_epochs
from logtool.node import surroundings
from logtool.node.settings import Settings
from logtool.node.surroundings import Surroundings


class LogDirFacts:
    """The files of one log dir next to its partitions, and the settings of its topics."""

    def __init__(self, home: LogDir, settings: Settings, images: Sequence[MetadataImage]) -> None:
        """Read the small files; `images` are those of the cluster, the newest first."""
        self.home, self.settings = home, settings
        self._images = images
        self.items: list[Finding | UnreadableError] = []
        """The faults of the small files by themselves, without those of meta.properties."""
        self.checkpoints: dict[FileKind, dict[TopicPartition, OffsetRow]] = {}
        self._meta: MetaProperties | None = None
        self._shared = surroundings.of_log_dir(home)
        self._read()

    def _read(self) -> None:
        for kind, file in self.home.files.items():
            if kind not in small_files.CHECKABLE:
                continue
            try:
                value, findings = small_files.check_file(file)
            except UnreadableError as error:
                self.items.append(error)
                continue
            if kind is not FileKind.META_PROPERTIES:  # which is judged with those of the others
                self.items += findings
            if kind in OFFSET_CHECKPOINTS:
                self.checkpoints[kind] = value.by_partition
            elif kind is FileKind.META_PROPERTIES:
                self._meta = value
        try:
            self.items += index_cache.check(self.home, self.settings.static)
        except UnreadableError as error:
            self.items.append(error)

    @property
    def is_clean(self) -> bool:
        """Return whether the clean-shutdown marker is there."""
        return self.home.is_clean

    @cached_property
    def needs_topic_ids(self) -> bool:
        """Return whether each partition must have a partition.metadata."""
        return topic_id_support.needs_topic_ids(self.home, self._meta)

    def log_start(self, directory: PartitionDirectory) -> int:
        """Return the log start offset of a live partition; 0 without a row, and for any other."""
        key = live_key(directory)
        return root.offset(self.checkpoints, FileKind.LOG_START_CHECKPOINT, key) or 0

    def around(self, directory: PartitionDirectory) -> Surroundings:
        """Return the facts about one partition."""
        key, start = live_key(directory), self.log_start(directory)
        flushed = root.offset(self.checkpoints, FileKind.RECOVERY_POINT_CHECKPOINT, key) or 0
        return surroundings.of(
            self._shared, self.settings, directory, start, self._cleaned(directory), flushed
        )

    def cleaning(self, directory: PartitionDirectory) -> Cleaning:
        """Return the evidence that one partition was compacted."""
        return Cleaning(directory.topic, self._cleaned(directory), self.home.is_clean)

    def _cleaned(self, directory: PartitionDirectory) -> int | None:
        return root.offset(self.checkpoints, FileKind.CLEANER_CHECKPOINT, live_key(directory))

    def lacks_remote_epochs(
        self,
        directory: PartitionDirectory,
        epochs: Sequence[tuple[int, int]],
        facts: PartitionSummary,
    ) -> bool:
        """Return whether a tiered log lacks the leader epochs of what is in remote storage."""
        local = facts.first_base_offset or 0
        if not lacks_remote_epochs(epochs, self.log_start(directory), local):
            return False
        retention = self.settings.retention(directory.topic)
        return retention is not None and retention.is_tiered

    def judged(self, key: TopicPartition | None, facts: PartitionSummary) -> Iterator[Finding]:
        """Yield where the files of the log dir and a checked partition contradict each other.

        `key` is that of its rows; None for a directory without rows.
        """
        if key:
            what = self.home, key, facts, self.checkpoints
            yield from root.check_partition_offsets(*what)
            yield from root.check_missing_rows(*what)
            yield from check_epochs(self.home, self._images, key, facts)


def live_key(directory: PartitionDirectory) -> TopicPartition | None:
    """Return the key of the rows of a live partition; None for any other directory."""
    return root.key_of(directory) if directory.kind is DirectoryKind.LIVE else None
