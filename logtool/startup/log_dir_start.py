"""The start of a broker on one log dir: notes on the log dir, and requests for its partitions."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from logtool.actions import Action
from logtool.checks import access, file_names, index_cache, root
from logtool.checks.broker_dirs import BrokerDirs
from logtool.checks.compaction import Cleaning
from logtool.checks.identity import Effect
from logtool.checks.unfinished_output import check_change, check_output
from logtool.errors import UnreadableError
from logtool.findings import Broker
from logtool.formats import wording
from logtool.formats.names import FileKind, PartitionDirectory, TopicPartition
from logtool.formats.refusal import Refusal
from logtool.loading import metadata_log, release_support
from logtool.loading.metadata_log import Hindrance
from logtool.loading.result import StartConditions
from logtool.log.dir import OF_TODAY, LogDir
from logtool.metadata import image as metadata_image
from logtool.metadata.log_start import is_tiered
from logtool.node import lost_end, own_file, settings, surroundings
from logtool.node.log_dir_state import LogDirState
from logtool.node.options import StartOptions
from logtool.node.settings import Settings
from logtool.node.surroundings import Surroundings
from logtool.startup import strays, tiering
from logtool.startup.request import LoadRequest
from logtool.startup.strays import StrayOutcome

if TYPE_CHECKING:
    from logtool.log.kvstore import Kvstores

Points = Callable[[TopicPartition, int | None], int]
"""Function that returns where recovery begins, given a partition and its recovery point row."""
_NO_NUMBER = {
    FileKind.RECOVERY_POINT_CHECKPOINT: "cannot be read; every offset in it counts as 0",
    FileKind.LOG_START_CHECKPOINT: "cannot be read; every offset in it counts as 0",
    FileKind.REPLICATION_CHECKPOINT:
        "cannot be read: the broker starts, but does not lead or follow the partitions "
        "of this log dir, perhaps no partitions at all",
    FileKind.CLEANER_CHECKPOINT:
        "cannot be read: the broker starts, but its log cleaner ends at once: nothing "
        "is compacted",
}  # fmt: skip
"""The effect of a number that a broker cannot parse, which it does not count as an I/O error."""
_READ_BEFORE_LOGS = frozenset({
    FileKind.RECOVERY_POINT_CHECKPOINT.value, FileKind.LOG_START_CHECKPOINT.value,
})  # fmt: skip


class LogDirStart(LogDirState):
    """One log dir at the start of its broker.

    `broker` has the rules for all log dirs of its node; None for this log dir alone.
    """

    def __init__(
        self, log_dir: LogDir, options: StartOptions, broker: BrokerDirs | None = None
    ) -> None:
        super().__init__(log_dir, options, broker.node if broker else None)
        self.broker = broker or BrokerDirs(self.node)
        self.notes: list[Action] = []
        """The actions of the start on the log dir as a whole."""
        self.absences: list[Action] = []
        """Partitions and metadata logs that are absent, and log dirs that were not given."""
        self.hindrances: list[Hindrance] = []
        """Obstacles in the files of the metadata log, in the order of their effect."""
        self._options = options
        self._now_ms = time.time_ns() // 1_000_000
        self._in_raft = log_dir.flavour.has_raft_offsets
        self.notes += (
            Action(action="damaged", path=one.path or log_dir.path, reason=one.message)
            for one in (*check_output(log_dir.path), *check_change(log_dir.path))
        )
        self._note_checkpoints()
        self._note_metadata()
        self._note_names()
        self._note_index_cache()
        self._note_access()

    @property
    def is_offline(self) -> bool:
        """Return whether the broker starts without the log dir, and loads nothing of it."""
        return self.log_dir.path in self.broker.offline

    @property
    def offline_notes(self) -> list[Action]:
        """Return the notes that take the log dir offline."""
        return [one for one in self.notes if one.action == "offline"]

    @property
    def fails_while_loading(self) -> bool:
        """Return whether a checkpoint that is read before the logs takes the log dir offline.

        The others are read once all logs are loaded, and future replicas promoted.
        """
        return any(one.path.name in _READ_BEFORE_LOGS for one in self.offline_notes)

    def _note_access(self) -> None:
        """Note what the user of the broker cannot read or write: at the start, and later."""
        needed = access.is_needed(self.node, self.log_dir.path)
        found = list(access.findings(self.log_dir, needed=needed))
        for at_start in (True, False):
            some = [one for one in found if (one.broker is not Broker.NEVER) is at_start]
            if not some:
                continue
            first = some[0].path or self.log_dir.path
            text = f"{first.relative_to(self.log_dir.path)}: {some[0].message}"
            if more := len(some) - 1:
                others = wording.count(more, "other directory", "other directories")
                text += f"; {others} of this log dir have such files"
            text += f"; to repair: {some[0].next}"
            now = "refuse" if needed else "offline"
            self.notes.append(
                Action(action=now if at_start else "ignore", path=self.log_dir.path, reason=text)
            )

    def request(self, path: Path, directory: PartitionDirectory, points: Points) -> LoadRequest:
        """Return the request to load one of its partitions."""
        if self._in_raft:
            return self._redpanda_request(path, directory)
        key = directory.topic, directory.partition
        point = points(key, self.rows(FileKind.RECOVERY_POINT_CHECKPOINT).get(key))
        options, topic = self._options, directory.topic
        truncate_to = options.truncate_to.get(key)
        if path.name != f"{topic}-{directory.partition}":
            truncate_to = None  # A copy on its way, or what is to be deleted.
        start = StartConditions(
            clean=self.clean,
            recovery_point=point,
            log_start=self.rows(FileKind.LOG_START_CHECKPOINT).get(key, 0),
            tiered=directory.kind in OF_TODAY and self._is_tiered(topic),
            now_ms=self._now_ms,
            index_interval=self.index_interval(topic, options.index_interval),
            max_index_size=self.max_index_size(topic, options.index_size),
            kafka=self.node.kafka,
            cut_precisely=options.cut_precisely,
            truncate_to=truncate_to,
        )
        watermark = None
        # The row is not that of a directory to be deleted.
        if directory.kind in OF_TODAY and key not in self._stale_watermarks:
            watermark = self.rows(FileKind.REPLICATION_CHECKPOINT).get(key)
        return LoadRequest(
            path=path,
            start=start,
            topic=topic,
            partition=directory.partition,
            high_watermark=watermark,
            flushed=self.rows(FileKind.RECOVERY_POINT_CHECKPOINT).get(key),
            fate=self._fate(path, directory),
            assumed=options,
            around=surroundings.of(
                self._shared,
                self._settings,
                directory,
                max(0, start.log_start),
                self.rows(FileKind.CLEANER_CHECKPOINT).get(key),
            ),
            cleaning=Cleaning(topic, self.rows(FileKind.CLEANER_CHECKPOINT).get(key), self.clean),
            settings=self._settings,
        )

    def _is_tiered(self, topic: str) -> bool:
        """Return whether the broker keeps segments of a topic in remote storage."""
        is_off = own_file.switch(self.node.static, own_file.REMOTE_STORAGE) is False
        return not is_off and is_tiered(self._settings.image, topic)

    @cached_property
    def _shared(self) -> Surroundings:
        """The facts that its partitions share."""
        return replace(surroundings.of_log_dir(self.log_dir), clean=self.clean)

    @cached_property
    def _settings(self) -> Settings:
        """The settings of topics, by the metadata log of the node."""
        return settings.of_node(self.node)

    def _redpanda_request(self, path: Path, directory: PartitionDirectory) -> LoadRequest:
        """Return the request for a partition of Redpanda, with its values in the kvstores."""
        # Imported here and below because a log dir of Kafka needs none of the formats behind it.
        from logtool.startup.redpanda_start import RedpandaStart

        namespace, known = path.absolute().parent.parent.name, self._kvstores
        start = RedpandaStart(
            data_dir=self.log_dir.path,
            clean_segment=known.clean_segment(namespace, directory.topic, directory.partition),
            start_offset=known.start_offset(namespace, directory.topic, directory.partition),
            everything=self._options.clean is False,
        )
        return LoadRequest(
            path=path,
            start=StartConditions(clean=False),
            topic=directory.topic,
            partition=directory.partition,
            assumed=self._options,
            redpanda=start,
        )

    @cached_property
    def _stale_watermarks(self) -> frozenset[TopicPartition]:
        """The partitions whose high watermark may be that of a deleted topic."""
        return lost_end.with_stale_watermark(self.log_dir)

    @cached_property
    def _kvstores(self) -> "Kvstores":
        """The key-value stores of the cores of a Redpanda broker."""
        from logtool.log import kvstore

        return kvstore.read(self.log_dir.path)

    def _note_checkpoints(self) -> None:
        needed = self.node.needs(self.log_dir.path)
        cleans = own_file.switch(self.node.static, own_file.CLEANER) is not False
        for kind, refusal in self.refused.items():
            if kind is FileKind.CLEANER_CHECKPOINT and not cleans:
                continue  # Only the cleaner reads it.
            action, text = _unread_checkpoint(kind, refusal, needed=needed)
            self.notes.append(
                Action(
                    action=action,
                    path=self.log_dir.files[kind].path,
                    reason=text,
                    position=refusal.position,
                )
            )

    def _note_metadata(self) -> None:
        """Note the effects of `meta.properties` and of the metadata log on the start."""
        for verdict in self.broker.verdicts:
            finding = verdict.finding
            if verdict.log_dir != self.log_dir.path or verdict.effect is None:
                continue
            path, text = finding.path or verdict.log_dir, finding.message
            topic, number = None, None
            if verdict.effect is Effect.OFFLINE:
                path, text = verdict.log_dir, f"{path.name}: {text}"
            elif verdict.effect in (Effect.LOST, Effect.ABSENT) and finding.topic:
                topic, number = finding.topic, finding.partition
                path = verdict.log_dir / f"{topic}-{number}"
                text = text.removeprefix(f"{topic}-{number} ")
            is_absence = verdict.effect in (Effect.LOST, Effect.ABSENT, Effect.UNKNOWN)
            (self.absences if is_absence else self.notes).append(
                Action(
                    action=str(verdict.effect),
                    path=path,
                    reason=text,
                    topic=topic,
                    partition=number,
                )
            )
        if reason := release_support.puts_all_aside(self.node, self.log_dir):
            self.notes.append(Action(action="stray", path=self.log_dir.path, reason=reason))
        if not self.has_metadata_log or self.node.unread:
            return
        bootstrap = self.log_dir.files.get(FileKind.BOOTSTRAP_CHECKPOINT)
        try:
            self.hindrances += (
                *release_support.check_bootstrap(self.node),
                *metadata_log.hindrances(
                    self.log_dir.path, bootstrap, self.node.starting_kafka or self.node.kafka
                ),
                *release_support.check(self.node),
            )
            for one in self.hindrances:
                action = "refuse" if one.stops else "ignore"
                self.notes.append(
                    Action(action=action, path=one.path, reason=one.text, position=one.position)
                )
        except UnreadableError as error:
            self.unread.append(error)
        path = self.log_dir.path / metadata_image.DIRECTORY
        for text in (
            *release_support.vetoes(self.node),
            *release_support.ways_back(self.node),
        ):
            self.notes.append(Action(action="limits", path=path, reason=text))
        if self.image and self.image.damage:
            text = f"the stray logs are not known: {self.image.damage}"
            self.notes.append(Action(action="unknown", path=path, reason=text))

    def _note_names(self) -> None:
        """Note damaged kvstores, a lock that is held, and names that stop a start."""
        if self._in_raft:
            for path, reason in self._kvstores.refusals:
                text = f"{reason}: the broker does not start, because batches are missing"
                self.notes.append(Action(action="refuse", path=path, reason=text))
            for path, reason in self._kvstores.problems:
                text = f"{reason}; the logs in the rest of this kvstore are not known"
                self.notes.append(Action(action="unknown", path=path, reason=text))
        where = self.log_dir.path
        for finding in root.check_in_use(where, self.log_dir.flavour):
            self.notes.append(Action(action="in-use", path=where, reason=finding.message))
        if self.is_offline:
            return  # The broker does not list it.
        for finding in file_names.check_root_names(self.log_dir):
            if finding.broker is Broker.REFUSES:
                path, text = finding.path or where, finding.message
                self.notes.append(Action(action="refuse", path=path, reason=text))

    def _note_index_cache(self) -> None:
        """Note what becomes of the indexes of remote segments."""
        if self.is_offline:
            return
        try:
            if cache := index_cache.read(self.log_dir, self.node.static):
                self.notes += tiering.cache_actions(cache, self.node.kafka)
        except UnreadableError as error:
            self.unread.append(error)

    def _fate(self, path: Path, directory: PartitionDirectory) -> StrayOutcome | None:
        """Return the outcome for a directory that the metadata log does not know."""
        node = self.node
        if directory.kind not in OF_TODAY or not node.is_stray(path, directory):
            return None
        fate = strays.fate(node, path, directory)
        if fate and fate.action == "stray" and node.is_kafka_assumed:
            return StrayOutcome(fate.action, f"{fate.text}, if the broker is 3.7 or later")
        return fate


def _unread_checkpoint(kind: FileKind, refusal: Refusal, *, needed: bool) -> tuple[str, str]:
    """Return the action of a broker that cannot read a checkpoint, and the reason.

    `needed` is a log dir without which the broker does not start. Source: ``LogManager.loadLogs``,
    ``ReplicaManager.handleLogDirFailure``, ``LogCleanerManager``.
    """
    if not refusal.is_io_error:
        return "ignore", f"{_NO_NUMBER[kind]}: {refusal.message}"
    if needed:
        text = "the broker does not start: it takes the log dir with its metadata log offline"
        return "refuse", f"{text}: {refusal.message}"
    text = (
        "the broker takes the log dir offline with all its partitions, and does not "
        "start if it has no other log dir"
    )
    return "offline", f"{text}: {refusal.message}"
