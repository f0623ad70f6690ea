"""Checkpoints mended by what the logs hold: an edit for each file that should be another.

A row is dropped where its partition is not there or it cannot be read, and changed where no broker
could mean it (`rules`). Rows are never added to the offset checkpoints, since a missing one is
always safe: it stands for the start of the log. `topic_ids` repairs ``partition.metadata``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import cached_property
from pathlib import Path

from logtool.actions import Action
from logtool.checkpoints import rules
from logtool.checkpoints.edit import Edit, Present, kind_of, load, replacement
from logtool.checkpoints.rules import LogBounds
from logtool.checkpoints.topic_ids import KnownTopicIds
from logtool.checks import continuity, root
from logtool.checks.partition import CheckRequest, check_partition, plan
from logtool.checks.report import PartitionSummary
from logtool.checks.schedule import PartitionJob, Schedule
from logtool.checks.segment import Level, SegmentReport
from logtool.errors import UnreadableError, UsageError
from logtool.formats import leader_epoch_checkpoint, names, offset_checkpoint, wording
from logtool.formats.names import FileKind, PartitionDirectory, TopicPartition
from logtool.lazy_dataclass import dataclass
from logtool.log import inputs, opening
from logtool.log.dir import OF_TODAY, OFFSET_CHECKPOINTS, LogDir, Partition
from logtool.log.inputs import PathKind
from logtool.log.selection import Selection
from logtool.metadata.log_start import is_tiered, lacks_remote_epochs
from logtool.node import settings
from logtool.node.settings import Settings
from logtool.running.run import Run
from logtool.running.summary import Summary


@dataclass()
class CheckpointRebuild:
    """Iterate to get the edits, and what could not be read and is left alone."""

    path: Path
    """A log dir, a partition dir, or one checkpoint."""
    selection: Selection = field(default_factory=Selection)
    run: Run = field(default_factory=Run)
    summary: Summary = field(default_factory=Summary)
    log_dir: Path = field(init=False)
    """Directory that holds the files a broker locks."""
    _kinds: tuple[FileKind, ...] = field(init=False)
    _partition: Path | None = None
    """The only partition that is meant."""
    _only_topic_id: bool = False
    """True if only partition.metadata is meant."""

    def __post_init__(self) -> None:
        """Find out what is meant; UsageError for a file that is no checkpoint."""
        self.log_dir, self._kinds = self.path, OFFSET_CHECKPOINTS
        what = inputs.kind_of(self.path, lacking="Redpanda has no offset checkpoints")
        if what is PathKind.FILE:
            self.log_dir, self._kinds = self.path.parent, (kind_of(self.path),)
            if self._kinds[0] is FileKind.LEADER_EPOCH_CHECKPOINT:
                self._partition, self._kinds = self.path.parent, ()
            elif self._kinds[0] is FileKind.PARTITION_METADATA:
                self._partition, self._only_topic_id, self._kinds = self.path.parent, True, ()
            elif self._kinds[0] not in OFFSET_CHECKPOINTS:
                raise UsageError(
                    f"{self.path} is not a checkpoint of offsets or leader epochs, and not "
                    "partition.metadata"
                )
        elif what is PathKind.PARTITION_DIR:
            self._partition, self._kinds = self.path, ()
        if self._partition:
            self.log_dir = self._partition.absolute().parent

    @cached_property
    def _settings(self) -> Settings:
        return settings.within(self.log_dir)

    @property
    def _with_epochs(self) -> bool:
        return not self._kinds or self._kinds == OFFSET_CHECKPOINTS

    def __iter__(self) -> Iterator[Edit | Action | UnreadableError]:
        home = opening.open_log_dir(self.log_dir)
        yield from self._topic_ids(home)
        if self._only_topic_id:
            return
        present: dict[FileKind, Present] = {}
        for kind in {*self._kinds, FileKind.LOG_START_CHECKPOINT} & home.files.keys():
            try:
                present[kind] = load(home.files[kind].path)
            except UnreadableError as error:
                if kind in self._kinds:
                    yield error
        starts = present.get(FileKind.LOG_START_CHECKPOINT)
        start_rows: dict[TopicPartition, int] = starts.value.offsets if starts else {}
        extents: dict[TopicPartition, LogBounds] = {}
        with Schedule(self.run) as schedule:
            for job, reports in schedule.run(self._jobs(home, start_rows)):
                yield from self._judge(job, list(reports), start_rows, extents)
        for kind in self._kinds:
            if kind in present:
                yield from _offsets(
                    present[kind], home, self.selection, extents, start_rows, self.summary
                )

    def _topic_ids(self, home: LogDir) -> Iterator[Edit | Action | UnreadableError]:
        """Yield the edits of partition.metadata."""
        if not self._with_epochs:
            return
        ids = KnownTopicIds(home)
        for path, directory in self._partitions(home):
            self.summary.partitions += self._only_topic_id
            try:
                if isinstance(directory, PartitionDirectory):
                    yield from ids.edits(path, directory)
            except UnreadableError as error:
                yield error

    def _jobs(self, home: LogDir, start_rows: dict[TopicPartition, int]) -> Iterator[PartitionJob]:
        """Yield the partitions to look at: the ends of their logs, or for the epochs all of it."""
        level = Level.BATCHES if self._with_epochs else Level.QUICK
        for path, directory in self._partitions(home):
            self.summary.partitions += 1
            key = root.key_of(directory) if isinstance(directory, PartitionDirectory) else None
            row = start_rows.get(key, 0) if key else 0
            request = CheckRequest(level=level, clean=home.is_clean, log_start_offset=max(row, 0))
            try:
                listed: Partition | UnreadableError = opening.open_partition(path)
            except UnreadableError as error:
                listed = error
            tasks = plan(listed, request) if isinstance(listed, Partition) else []
            yield PartitionJob(path, tasks, (listed, request, key))

    def _partitions(
        self, home: LogDir
    ) -> Iterator[tuple[Path, PartitionDirectory | names.BadDirectory]]:
        if self._partition:
            yield self._partition, names.parse_directory(self._partition.absolute().name)
            return
        for path, directory in home.partitions:
            if directory.kind in OF_TODAY and self.selection.takes(directory):
                yield path, directory

    def _judge(
        self,
        job: PartitionJob,
        reports: Sequence[SegmentReport],
        start_rows: dict[TopicPartition, int],
        extents: dict[TopicPartition, LogBounds],
    ) -> Iterator[Edit | Action | UnreadableError]:
        """Yield the edit of a partition's epochs, and note what its log says of the offsets."""
        listed, request, key = job.subject
        if isinstance(listed, UnreadableError):
            yield listed
            return
        facts = PartitionSummary()
        items = list(check_partition(listed, request, facts, iter(reports)))
        unreadable = [item for item in items if isinstance(item, UnreadableError)]
        if unreadable or facts.first_base_offset is None:
            yield from unreadable
            return
        extent = LogBounds(facts.first_base_offset, facts.log_end_offset)
        if any(report.changed for report in reports):
            text = "changed while logtool read it; stop the broker first"
            yield UnreadableError(listed.path, text)
            return
        if key:
            extents[key] = extent
        if self._with_epochs:
            row = start_rows.get(key) if key else None
            yield from self._epochs(listed, extent, reports, row)

    def _epochs(
        self,
        listed: Partition,
        extent: LogBounds,
        reports: Sequence[SegmentReport],
        row: int | None,
    ) -> Iterator[Edit | Action | UnreadableError]:
        """Yield the edit of leader-epoch-checkpoint; `row` is that of the log start.

        The file of a tiered log has the epochs of the remote segments too, which no local batch
        shows.
        """
        try:
            present = load(listed.path / FileKind.LEADER_EPOCH_CHECKPOINT)
        except UnreadableError as error:
            yield error
            return
        start, local = rules.log_start(extent, row), extent.first_base_offset
        if self._may_be_tiered(listed, present, row, local):
            start = min(max(row or 0, 0), start)
            if lacks_remote_epochs(present.value.epochs, start, local):
                text = (
                    f"the leader epochs of {wording.offsets(start, local - 1)}, which are in "
                    "remote storage alone, are not in the local batches: without them the leader "
                    "deletes the remote segments; 'logtool remote restore' writes the whole file"
                )
                yield Action(
                    action="damaged", path=present.path, reason=text, topic=listed.topic,
                    partition=listed.number,
                )  # fmt: skip
                return
        yield from _edit(listed, present, extent, reports, start)

    def _may_be_tiered(
        self, listed: Partition, present: Present, row: int | None, local: int
    ) -> bool:
        """Return whether the beginning of a log is in remote storage, as far as is known.

        Without the metadata log it may be if both the row of the log start and the first leader
        epoch lie below the first segment; more rows do no harm.
        """
        image = self._settings.image
        if image is not None and not image.damage and listed.topic in image.topics:
            return is_tiered(image, listed.topic)
        epochs = present.value.epochs
        return row is not None and row < local and bool(epochs) and epochs[0][1] < local


def _edit(
    partition: Partition,
    present: Present,
    extent: LogBounds,
    reports: Sequence[SegmentReport],
    start: int,
) -> Iterator[Edit]:
    """Yield the edit of leader-epoch-checkpoint, where it should be another."""
    old, runs = present.value.epochs, continuity.merge_runs(reports)
    if present.is_sound and not partition.is_metadata_log:
        start = rules.first_epoch_start(old, runs, start)
    new = rules.epochs(old, runs, start=start, end=extent.log_end_offset)
    if new == old and present.is_sound:
        return
    gone = [
        f"epoch {epoch} at offset {at} is removed" for epoch, at in old if (epoch, at) not in new
    ]
    come = [f"epoch {epoch} begins at offset {at}" for epoch, at in new if (epoch, at) not in old]
    reasons = [*gone, *come] or [_unsound(present)]
    content = leader_epoch_checkpoint.encode(leader_epoch_checkpoint.build(new))
    yield replacement(present, content, reasons)


def _offsets(
    present: Present,
    home: LogDir,
    selection: Selection,
    extents: dict[TopicPartition, LogBounds],
    start_rows: dict[TopicPartition, int],
    summary: Summary,
) -> Iterator[Edit]:
    """Yield the edit of an offset checkpoint, where it should be another."""
    there = {(d.topic, d.partition) for _, d in home.partitions if d.kind in OF_TODAY}
    new: dict[TopicPartition, int] = {}
    reasons = []
    for key, row in present.value.offsets.items():
        name, extent = f"{key[0]}-{key[1]}", extents.get(key)
        if key not in there and _is_meant(key, selection):
            summary.partitions += 1
            reasons.append(
                f"{name}: the row with {row} is removed: the partition is not in this directory"
            )
            continue
        if row < 0:
            reasons.append(f"{name}: the row with {row} is removed: an offset is at least 0")
            continue
        new[key] = row
        if extent:
            start = rules.log_start(extent, start_rows.get(key))
            new[key] = rules.offset(present.kind, row, extent, start)
            if new[key] != row:
                holds = f"the log starts at {start} and ends at {extent.log_end_offset}"
                reasons.append(f"{name}: {row} becomes {new[key]}, {holds}")
    if not reasons and present.is_sound:
        return
    content = offset_checkpoint.encode(offset_checkpoint.build(new))
    yield replacement(present, content, reasons or [_unsound(present)])


def _is_meant(key: TopicPartition, selection: Selection) -> bool:
    directory = names.parse_directory(f"{key[0]}-{key[1]}")
    return isinstance(directory, PartitionDirectory) and selection.takes(directory)


def _unsound(present: Present) -> str:
    return next(
        finding.message for finding in present.findings if finding.code != "checkpoint/empty"
    )
