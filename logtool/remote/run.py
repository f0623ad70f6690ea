"""Remote segments over log dirs of one cluster, partition by partition.

The metadata of a partition lies in one partition of ``__remote_log_metadata``, of which any broker
may have a copy: of several copies the one with the newest leader epoch and the highest end is read.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from logtool.disk import files
from logtool.errors import NothingMatchedError, UnreadableError
from logtool.findings import Finding
from logtool.formats.messages.remote_log import TOPIC, metadata_partition
from logtool.formats.names import DirectoryKind, FileKind, PartitionDirectory, TopicPartition
from logtool.lazy_dataclass import dataclass
from logtool.log import inputs, opening
from logtool.log.dir import LogDir
from logtool.log.inputs import PathKind
from logtool.log.selection import Selection
from logtool.metadata import image as metadata_image
from logtool.metadata.image import MetadataImage
from logtool.metadata.log_start import is_tiered
from logtool.metadata.setting_values import SettingSource
from logtool.node import lost_end
from logtool.remote import deletions, findings, local
from logtool.remote.lineage import PartitionLineage
from logtool.remote.loading import MetadataLog, PartitionId, load
from logtool.remote.local import LocalCopy
from logtool.remote.segments import RemotePartition
from logtool.retention import settings as retention
from logtool.retention.settings import RetentionSettings
from logtool.running.run import Run
from logtool.running.summary import Summary

Item = MetadataLog | PartitionLineage | Finding


@dataclass(slots=True)
class RemoteLineage:
    """One run over log dirs: iterate for the metadata topic, partitions, findings and errors.

    The paths are log dirs, or partition dirs of the metadata topic. All are of one cluster.
    """

    paths: Sequence[Path]
    selection: Selection = field(default_factory=Selection)
    """Selection of the topics and partitions whose segments are in remote storage."""
    static: Mapping[str, str] = field(default_factory=dict)
    """Settings in the broker's own file."""
    has_file: bool = False
    """True if the broker's own file was given, so that a setting not in it has its default."""
    at_ms: int | None = None
    """Moment whose state is yielded, in ms; None for the end of the log."""
    run: Run = field(default_factory=Run)
    summary: Summary = field(default_factory=Summary)
    unjudged: int = 0
    """Deletions that are not judged because retention of their topic is not known; filled."""
    image: MetadataImage | None = None
    """The newest metadata image of the log dirs; filled."""
    _homes: dict[Path, LogDir] = field(default_factory=dict)
    _logs: dict[int, list[MetadataLog]] = field(default_factory=dict)
    _places: dict[TopicPartition, list[tuple[Path, LogDir]]] = field(default_factory=dict)
    _rows: dict[tuple[Path, FileKind], Mapping[TopicPartition, int]] = field(default_factory=dict)
    _settings: RetentionSettings = field(default_factory=RetentionSettings)

    def __iter__(self) -> Iterator[Item | UnreadableError]:
        for item in self._all():
            if isinstance(item, Finding | UnreadableError):
                self.summary.add(item)
            yield item

    def logs(self) -> Iterator[MetadataLog | Finding | UnreadableError]:
        """Read the paths; yield the copy that counts of each partition of the topic, and faults."""
        for path in files.each_once(self.paths):
            try:
                yield from self._open(path)
            except UnreadableError as error:
                yield error
        yield from self._read_images()
        chosen = {
            number: max(copies, key=lambda one: one.rank) for number, copies in self._logs.items()
        }
        for number, log in sorted(chosen.items()):
            yield log
            yield from self._of_log(number, log)
        self._logs = {number: [log] for number, log in chosen.items()}
        if not chosen and not self.summary.unreadable:
            for path in self.paths:
                yield NothingMatchedError(path, f"holds no partition of {TOPIC}")

    def partitions(self) -> Iterator[tuple[RemotePartition, MetadataLog]]:
        """Yield the selected partitions that have events, by topic and number."""
        found = [
            (remote, log)
            for copies in self._logs.values() for log in copies
            for remote in log.partitions.values()
            if self._takes(remote.topic, remote.number)
        ]  # fmt: skip
        yield from sorted(found, key=lambda one: (one[0].topic, one[0].number, one[0].topic_id))

    def _all(self) -> Iterator[Item | UnreadableError]:
        yield from self.logs()
        if not self._logs:
            return
        self._settings = RetentionSettings(self.image, static=self.static)
        known: set[PartitionId] = set()
        for remote, log in self.partitions():
            known.add((remote.topic_id, remote.number))
            yield from self._partition(remote, log)
        yield from self._without_events(known)
        if not self.summary.partitions and self.selection != Selection():
            for path in self.paths:
                yield NothingMatchedError(path, f"nothing matched {self.selection}")

    def _open(self, path: Path) -> Iterator[UnreadableError]:
        kind = inputs.kind_of(path)
        if kind is PathKind.FILE:
            raise UnreadableError(path, "expected a log dir or a partition dir")
        if kind is PathKind.PARTITION_DIR:
            yield from self._load(path)
            return
        home = opening.open_log_dir(path)
        self._homes[home.path] = home
        for folder, directory in home.latest:
            if directory.kind is not DirectoryKind.LIVE:
                continue
            if directory.topic == TOPIC:
                yield from self._load(folder)
            else:
                key = (directory.topic, directory.partition)
                self._places.setdefault(key, []).append((folder, home))

    def _load(self, folder: Path) -> Iterator[UnreadableError]:
        self.run.path = folder
        try:
            listed = opening.open_partition(folder)
            if listed.topic != TOPIC or listed.number is None:
                yield NothingMatchedError(folder, f"is not a partition of {TOPIC}")
                return
            log = load(listed, self._spend, at_ms=self.at_ms)
        except UnreadableError as error:
            yield error
            return
        self._logs.setdefault(log.number, []).append(log)
        self.summary.segments += len(listed.segments)
        self.summary.batches += log.batches
        self.summary.records += log.records
        self.summary.bytes += log.log_bytes

    def _read_images(self) -> Iterator[UnreadableError]:
        found = []
        for home in self._homes.values():
            if files.has_dir(home.path / metadata_image.DIRECTORY):
                try:
                    found.append(metadata_image.read(home.path))
                except UnreadableError as error:
                    yield error
        self.image = max(found, key=lambda one: one.offset, default=None)

    @property
    def today(self) -> MetadataImage | None:
        """Return the image if it is whole; None if topics may be missing from it."""
        whole = self.image and self.image.offset and not self.image.damage
        return self.image if whole else None

    @property
    def partition_count(self) -> int | None:
        """Return the number of partitions of the metadata topic; None if it is not known."""
        image = self.today
        topic_id = image.topics.get(TOPIC) if image else None
        known = image.partitions.get(topic_id, {}) if image and topic_id else {}
        return len(known) if len(known) > max(self._logs, default=0) else None

    def _of_log(self, number: int, log: MetadataLog) -> Iterator[Finding | UnreadableError]:
        """Yield the faults of one partition of the metadata topic."""
        yield from log.findings
        found = []
        if log.unknown_records:
            found.append(findings.newer(log.unknown_records))
        if log.missing_records and log.keyed_records < max(log.records, 1):
            found.append(findings.incomplete_history(log.log_start, log.missing_records))
        home = self._homes.get(log.path.parent)
        if home and not log.is_cut:
            try:
                known = lost_end.watermarks(home)
                if lost := lost_end.lost(home, known, log.listed, log.log_end):
                    found.append(findings.lost_end(lost))
            except UnreadableError as error:
                yield error
        for remote in log.partitions.values():
            if not self._takes(remote.topic, remote.number):
                continue
            place = f"{remote.topic}-{remote.number}"
            found += [findings.unknown_segment(place, one) for one in remote.unstarted.values()
                      if one.state.name != "DELETE_FINISHED"]  # fmt: skip
            found += [findings.dropped_event(place, one) for one in remote.dropped]
            count = self.partition_count
            if count is not None and remote.first_record is not None:
                right = metadata_partition(remote.topic_id, remote.number, count)
                if right != number:
                    found.append(
                        findings.misplaced(place, remote.first_record, number, right, count)
                    )
        for finding in found:
            yield finding.placed(log.path, topic=TOPIC, partition=number)

    def _partition(
        self, remote: RemotePartition, log: MetadataLog
    ) -> Iterator[PartitionLineage | Finding | UnreadableError]:
        """Yield one partition with its findings."""
        self.summary.partitions += 1
        copies: list[LocalCopy] = []
        if self.at_ms is None:
            for item in self.copies(remote.topic, remote.number):
                if isinstance(item, LocalCopy):
                    copies.append(item)
                else:
                    yield item
        copy = local.best(copies, remote.topic_id)
        lineage = PartitionLineage(remote, log, copy)
        image = self.today
        where = copy.path if copy else log.path
        if image and image.topics.get(remote.topic) != remote.topic_id:
            yield lineage
            if remote.present and self.at_ms is None:
                finding = findings.deleted_topic(
                    remote.topic, remote.topic_id, len(remote.present),
                    sum(one.size for one in remote.present),
                )  # fmt: skip
                yield finding.placed(where, topic=remote.topic, partition=remote.number)
            return
        faults = list(lineage.faults())
        if self.at_ms is None:
            faults += deletions.judge(lineage, *self._limits(remote.topic))
            self.unjudged += lineage.unjudged_deletions
        yield lineage
        for finding in faults:
            yield finding.placed(where, topic=remote.topic, partition=remote.number)

    def _limits(self, topic: str) -> tuple[int | None, int | None]:
        """Return age and size that retention allows; None where a file that is not here says."""
        found = []
        for name in (retention.MS, retention.BYTES):
            value = self._settings.value(topic, name)
            is_known = self.has_file or value.source is not SettingSource.DEFAULT
            found.append(value.number if is_known else None)
        return found[0], found[1]

    def copies(self, topic: str, number: int) -> Iterator[LocalCopy | UnreadableError]:
        """Yield the copies of a partition in the log dirs, and errors."""
        for path, home in self._places.get((topic, number), ()):
            try:
                start, cleaned = (
                    max(self._row(home, kind, (topic, number)), 0)
                    for kind in (FileKind.LOG_START_CHECKPOINT, FileKind.CLEANER_CHECKPOINT)
                )
                yield local.read(path, home.flavour, start, cleaned)
            except UnreadableError as error:
                yield error

    def _row(self, home: LogDir, kind: FileKind, key: TopicPartition) -> int:
        """Return the offset in a row of a checkpoint of a log dir; 0 without one."""
        if (home.path, kind) not in self._rows:
            rows = home.rows(kind)
            self._rows[home.path, kind] = {each: row.offset for each, row in rows.items()}
        return self._rows[home.path, kind].get(key, 0)

    def _without_events(
        self, known: set[PartitionId]
    ) -> Iterator[PartitionLineage | Finding | UnreadableError]:
        """Yield the tiered partitions here without an event, and what the given log dirs lack."""
        image, count = self.today, self.partition_count
        needed: dict[int | None, list[TopicPartition]] = {}
        for topic, number in sorted(self._places):
            if image is None or not is_tiered(image, topic) or not self._takes(topic, number):
                continue
            topic_id = image.topics[topic]
            if (topic_id, number) in known:
                continue
            home = metadata_partition(topic_id, number, count) if count else None
            if home in self._logs and home is not None:
                yield from self._partition(
                    RemotePartition(topic, topic_id, number), self._logs[home][0]
                )
            else:
                needed.setdefault(home, []).append((topic, number))
        for home, keys in sorted(needed.items(), key=lambda one: one[0] or 0):
            (topic, number), places = keys[0], self._places[keys[0]]
            finding = findings.absent_metadata_partition(home, len(keys), f"{topic}-{number}")
            yield finding.placed(places[0][0], topic=TOPIC, partition=home)

    def _takes(self, topic: str, number: int) -> bool:
        return takes(self.selection, topic, number)

    def _spend(self, size: int) -> None:
        self.run.advance(size)
        self.run.budget.pace.spend(size)


def takes(selection: Selection, topic: str, number: int) -> bool:
    """Return whether a selection takes a partition by its name."""
    if selection == Selection():
        return True
    name = f"{topic}-{number}"
    directory = PartitionDirectory(
        name=name, kind=DirectoryKind.LIVE, topic=topic, partition=number, unique_id=None,
        exact=True,
    )  # fmt: skip
    return selection.takes(directory)
