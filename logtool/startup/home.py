"""One log dir as a broker finds it: its checkpoints, its marker, and who it belongs to."""

import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from logtool.actions import Action
from logtool.checks import inventory, root, small_files
from logtool.checks.ensemble import Ensemble
from logtool.checks.identity import Effect, member
from logtool.errors import UnreadableError
from logtool.findings import Broker
from logtool.formats.names import (
    FileKind,
    PartitionDirectory,
    TopicPartition,
)
from logtool.loading import metadata_log
from logtool.loading.indexing import INDEX_INTERVAL, MAX_INDEX_SIZE
from logtool.loading.loaded import Start
from logtool.log.dir import OF_TODAY, OFFSET_CHECKPOINTS, LogDir
from logtool.log.redpanda import REDPANDA
from logtool.metadata import image as metadata_image
from logtool.metadata.image import MetadataImage
from logtool.startup import strays
from logtool.startup.assumed import Assumed
from logtool.startup.request import LoadRequest
from logtool.startup.strays import Fate

if TYPE_CHECKING:
    from logtool.log.kvstore import Kvstores

Points = Callable[[TopicPartition, int | None], int]
"""From a partition and its row of recovery-point-offset-checkpoint to where recovery begins."""


class Home:
    """One log dir as a broker finds it: its checkpoints, its marker, and who it belongs to.

    What the metadata log says comes from the log dir of the broker that holds it.
    """

    def __init__(
        self, root_dir: LogDir, assumed: Assumed, ensemble: Ensemble | None = None
    ) -> None:
        self.root = root_dir
        self.ensemble = ensemble or Ensemble([member(root_dir)], assumed.kafka, assumed.static)
        self.clean = root_dir.is_clean if assumed.clean is None else assumed.clean
        self.notes: list[Action] = []
        """What happens to the log dir as a whole."""
        self.unread: list[UnreadableError] = []
        """Its own files that could not be read; what they say is taken for not being there."""
        self._assumed = assumed
        self._now_ms = time.time_ns() // 1_000_000
        self._rows = {kind: self._read(kind) for kind in OFFSET_CHECKPOINTS}
        self.image, self.node_id = self.ensemble.image, self.ensemble.node_id
        here = (one for one in self.ensemble.members if one.path == root_dir.path)
        self.unread += [one.unread for one in here if one.unread]
        self._tell_of_metadata()
        self._in_raft = root_dir.flavour is REDPANDA
        if self._in_raft:
            for path, reason in self._kvstores.problems:
                text = f"{reason}; what stands behind it of the logs is not known here"
                self.notes.append(Action(action="unknown", path=path, reason=text))
        for finding in root.check_in_use(root_dir.path, root_dir.flavour):
            self.notes.append(Action(action="in-use", path=root_dir.path, reason=finding.message))
        if self.is_offline:
            return  # a broker does not list it
        for finding in inventory.check_root_names(root_dir):
            if finding.broker is Broker.REFUSES:
                self.notes.append(
                    Action(
                        action="refuse", path=finding.path or root_dir.path, reason=finding.message
                    )
                )

    @property
    def is_offline(self) -> bool:
        """Return whether the broker starts without the log dir, and loads nothing of it."""
        return self.root.path in self.ensemble.offline

    def rows(self, kind: FileKind) -> dict[TopicPartition, int]:
        """Return the rows of one checkpoint; none where a broker, or this run, cannot read it."""
        return self._rows[kind]

    def lacking(self, *needed: FileKind) -> list[UnreadableError]:
        """Return why what the log dir says is not known, of the offset checkpoints if `needed`."""
        others = {kind.value for kind in OFFSET_CHECKPOINTS if kind not in needed}
        return [error for error in self.unread if error.path.name not in others]

    def request(self, path: Path, directory: PartitionDirectory, points: Points) -> LoadRequest:
        """Return what is needed to load one of its partitions."""
        if self._in_raft:
            return self._of_redpanda(path, directory)
        key = directory.topic, directory.partition
        point = points(key, self.rows(FileKind.RECOVERY_POINT_CHECKPOINT).get(key))
        assumed, topic = self._assumed, directory.topic
        truncate_to = assumed.truncate_to.get(key)
        if path.name != f"{topic}-{directory.partition}":
            truncate_to = None  # A copy on its way, or what is to be deleted.
        start = Start(
            clean=self.clean,
            recovery_point=point,
            log_start=self.rows(FileKind.LOG_START_CHECKPOINT).get(key, 0),
            now_ms=self._now_ms,
            index_interval=self.index_interval(topic, assumed.index_interval),
            max_index_size=self.max_index_size(topic, assumed.index_size),
            kafka=self.ensemble.kafka,
            cut_precisely=assumed.cut_precisely,
            truncate_to=truncate_to,
        )
        watermark = None
        if directory.kind in OF_TODAY:  # A row of that name is not about one that goes.
            watermark = self.rows(FileKind.REPLICATION_CHECKPOINT).get(key)
        return LoadRequest(
            path=path,
            start=start,
            topic=topic,
            partition=directory.partition,
            high_watermark=watermark,
            flushed=self.rows(FileKind.RECOVERY_POINT_CHECKPOINT).get(key),
            fate=self._fate(path, directory),
            assumed=assumed,
        )

    def _of_redpanda(self, path: Path, directory: PartitionDirectory) -> LoadRequest:
        """Return the same of a partition of Redpanda, with what its kvstores know of it."""
        # Here and below, because a log dir of Kafka needs none of the formats behind it.
        from logtool.startup.redpanda_start import RedpandaStart

        namespace, known = path.absolute().parent.parent.name, self._kvstores
        start = RedpandaStart(
            data_dir=self.root.path,
            clean_segment=known.clean_segment(namespace, directory.topic, directory.partition),
            start_offset=known.start_offset(namespace, directory.topic, directory.partition),
            everything=self._assumed.clean is False,
        )
        return LoadRequest(
            path=path,
            start=Start(clean=False),
            topic=directory.topic,
            partition=directory.partition,
            assumed=self._assumed,
            redpanda=start,
        )

    @cached_property
    def _kvstores(self) -> "Kvstores":
        """What the cores of a broker of Redpanda remember."""
        from logtool.log import kvstore

        return kvstore.read(self.root.path)

    def index_interval(self, topic: str, chosen: int | None) -> int:
        """Return ``index.interval.bytes``: the `chosen`, else the topic's, else the default."""
        return self._setting(topic, "index.interval.bytes", chosen, INDEX_INTERVAL)

    def max_index_size(self, topic: str, chosen: int | None) -> int:
        """Return ``segment.index.bytes``: the `chosen`, else the topic's, else the default."""
        return self._setting(topic, "segment.index.bytes", chosen, MAX_INDEX_SIZE)

    def _setting(self, topic: str, name: str, chosen: int | None, default: int) -> int:
        if chosen is not None:
            return chosen
        image = self.image or MetadataImage(static=self._assumed.static)
        return image.topic_number(topic, name, default, self.node_id)

    def _read(self, kind: FileKind) -> dict[TopicPartition, int]:
        """Read one offset checkpoint, and note what a broker does that cannot.

        What could not be read here may be sound for the broker: nothing is said of that.
        """
        file = self.root.files.get(kind)
        if not file:
            return {}
        needed = self.ensemble.needs(self.root.path)
        try:
            offsets = small_files.read_offsets(file, beside_metadata_log=needed)
        except UnreadableError as error:
            self.unread.append(error)
            return {}
        if isinstance(offsets, dict):
            return offsets
        self.notes.append(
            Action(
                action=offsets.action,
                path=file.path,
                reason=offsets.text,
                position=offsets.position,
            )
        )
        return {}

    def _tell_of_metadata(self) -> None:
        """Note what the log dir, beside the others of its broker, does to a start."""
        for verdict in self.ensemble.verdicts:
            finding = verdict.finding
            if verdict.log_dir != self.root.path:
                continue
            path, text = finding.path or verdict.log_dir, finding.message
            if verdict.effect is Effect.OFFLINE:
                path, text = verdict.log_dir, f"{path.name}: {text}"
            self.notes.append(Action(action=str(verdict.effect), path=path, reason=text))
        holder, image = self.ensemble.metadata_log, self.image
        if holder and holder.path == self.root.path:
            if self.ensemble.unread:
                self.unread.append(self.ensemble.unread)
                return
            bootstrap = self.root.files.get(FileKind.BOOTSTRAP_CHECKPOINT)
            try:
                for one in metadata_log.hindrances(holder.path, bootstrap, self.ensemble.kafka):
                    action = "refuse" if one.stops else "ignore"
                    self.notes.append(
                        Action(action=action, path=one.path, reason=one.text, position=one.position)
                    )
            except UnreadableError as error:
                self.unread.append(error)
            if image and image.damage:
                text = f"which logs are put aside as stray is not known: {image.damage}"
                path = self.root.path / metadata_image.DIRECTORY
                self.notes.append(Action(action="unknown", path=path, reason=text))

    def _fate(self, path: Path, directory: PartitionDirectory) -> Fate | None:
        """Return what becomes of a directory that the metadata log does not know."""
        ensemble = self.ensemble
        if directory.kind not in OF_TODAY or not ensemble.is_stray(path, directory):
            return None
        fate = strays.fate(ensemble, path, directory)
        if fate and fate.action == "stray" and ensemble.is_kafka_assumed:
            return Fate(fate.action, f"{fate.text}, if the broker is 3.7 or later")
        return fate
