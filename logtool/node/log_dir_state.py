"""One log dir of a node as its broker reads it: checkpoint rows, marker and index settings."""

from functools import cached_property

from logtool.errors import UnreadableError
from logtool.formats import offset_index
from logtool.formats.names import FileKind, TopicPartition
from logtool.formats.refusal import Refusal
from logtool.log.dir import OFFSET_CHECKPOINTS, LogDir
from logtool.metadata.image import MetadataImage
from logtool.node.identity import identify
from logtool.node.node import Node
from logtool.node.options import StartOptions


class LogDirState:
    """One log dir and its node: `node` if given, else a node that has only this log dir.

    The metadata image is that of the node: it comes from the log dir that has the metadata log.
    """

    def __init__(self, log_dir: LogDir, options: StartOptions, node: Node | None = None) -> None:
        self.log_dir = log_dir
        self.node = node or Node([identify(log_dir)], options.kafka, options.static)
        self.clean = log_dir.is_clean if options.clean is None else options.clean
        """True if the node stopped cleanly, or is assumed to have done so."""
        self.unread: list[UnreadableError] = []
        """Errors of files of the log dir that could not be read; such files count as missing."""
        self.refused: dict[FileKind, Refusal] = {}
        """The checkpoints that a broker cannot read, with the place where it stops reading."""
        self._static = options.static
        self._rows = {kind: self._read(kind) for kind in OFFSET_CHECKPOINTS}
        self.image, self.node_id = self.node.image, self.node.node_id
        here = (one for one in self.node.log_dirs if one.path == log_dir.path)
        self.unread += [one.unread for one in here if one.unread]
        if self.has_metadata_log and self.node.unread:
            self.unread.append(self.node.unread)

    @property
    def has_metadata_log(self) -> bool:
        """Return whether this log dir holds the metadata log of the node."""
        holder = self.node.metadata_log
        return holder is not None and holder.path == self.log_dir.path

    def rows(self, kind: FileKind) -> dict[TopicPartition, int]:
        """Return the offsets of one checkpoint; empty if it cannot be read here or by a broker.

        A negative offset is returned unchanged.
        """
        return self._rows[kind]

    def lacking(self, *needed: FileKind) -> list[UnreadableError]:
        """Return errors of files that cannot be read, without offset checkpoints not `needed`."""
        others = {kind.value for kind in OFFSET_CHECKPOINTS if kind not in needed}
        return [error for error in self.unread if error.path.name not in others]

    def index_interval(self, topic: str, chosen: int | None) -> int:
        """Return ``index.interval.bytes``: `chosen`, else the topic's value, else the default."""
        return self._setting(topic, "index.interval.bytes", chosen, offset_index.DEFAULT_INTERVAL)

    def max_index_size(self, topic: str, chosen: int | None) -> int:
        """Return ``segment.index.bytes``: `chosen`, else the topic's value, else the default."""
        return self._setting(topic, "segment.index.bytes", chosen, offset_index.DEFAULT_MAX_SIZE)

    def _setting(self, topic: str, name: str, chosen: int | None, default: int) -> int:
        if chosen is not None:
            return chosen
        return self._settings_image.topic_number(topic, name, default, self.node_id)

    @cached_property
    def _settings_image(self) -> MetadataImage:
        """The image that has the settings of topics: that of the node, or its own file alone."""
        return self.image or MetadataImage(static=self._static)

    def _read(self, kind: FileKind) -> dict[TopicPartition, int]:
        try:
            found = self.log_dir.broker_offsets(kind)
        except UnreadableError as error:
            self.unread.append(error)
            return {}
        if isinstance(found, Refusal):
            self.refused[kind] = found
            return {}
        return found
