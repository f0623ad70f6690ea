"""Data directories and partitions that Redpanda wrote.

The names are those of `logtool.log.redpanda_dir`. Offsets are Raft's, and epochs are terms.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats import names
from logtool.formats.names import FileKind, FileName, FileState
from logtool.formats.redpanda import names as redpanda_names
from logtool.formats.redpanda.names import RedpandaFileKind
from logtool.log import redpanda_dir
from logtool.log.dir import LogDir, Partition, arrange_partition, list_files, own_name
from logtool.log.file import File, is_exact
from logtool.log.flavour import FlavourName

if TYPE_CHECKING:
    from logtool.log.walk.forms import Form

_PIECE = 1024 * 1024
_ALWAYS_COMPACTED = frozenset({"__consumer_offsets", "_schemas", "tx", "group"})
"""Topics that Redpanda compacts with any settings."""


class _Redpanda:
    """The flavour of Redpanda."""

    name = FlavourName.REDPANDA
    lock = redpanda_names.LOCK
    index_kinds = frozenset(names.INDEX_KINDS)
    has_raft_offsets = True
    has_checkpoints = False

    def __reduce__(self) -> str:
        return "REDPANDA"

    def holds(self, path: Path, entries: Sequence[str]) -> bool:
        """Return whether the directory is a data directory, a partition, or holds partitions."""
        return (
            redpanda_dir.is_data_dir(entries)
            or redpanda_dir.is_partition(path, entries)
            or redpanda_dir.holds_partitions(path)
        )

    def log_dir(self, path: Path, entries: Sequence[files.Entry]) -> LogDir:
        partitions = redpanda_dir.partitions(path)
        return LogDir(
            path,
            flavour=self,
            partitions=tuple(partitions),
            latest=tuple(redpanda_dir.newest(partitions)),
            bad_directories=(),
            files={},
            leftovers=(),
            strangers=(),
            odd_entries=(),
        )

    def partition(self, path: Path, entries: Sequence[files.Entry]) -> Partition:
        listed, odd = list_files(path, entries, redpanda_dir.file_name)
        directory = redpanda_dir.directory(path) or names.parse_directory(own_name(path))
        partition = arrange_partition(path, self, directory, listed, odd)
        others = [f for f in listed if f.name.kind is FileKind.UNKNOWN and is_exact(f)]
        others = [f for f in others if f.name.state is FileState.LIVE]
        return replace(partition, others=tuple(others))

    def file_name(self, name: str) -> FileName:
        return redpanda_dir.file_name(name)

    def form(self, log: Path) -> "Form":
        """Return the form of a log; Kafka's where the name is not that of a segment of Redpanda."""
        from logtool.log.walk import forms, redpanda_form

        term = redpanda_dir.term_of(log)
        return forms.KAFKA_FORM if term is None else redpanda_form.form_of(term)


REDPANDA = _Redpanda()


def given_up_segments(partition: Partition) -> list[File]:
    """Return the segments of a partition that a start gave up (``.cannotrecover``)."""
    return [
        file
        for file in partition.others
        if redpanda_names.parse_partition_file(file.path.name).kind
        is RedpandaFileKind.CANNOT_RECOVER
    ]


def is_reserved_room(file: File) -> bool:
    """Return whether a file holds nothing but zeros; False where it cannot be read.

    That is room which was reserved and never written: nothing is lost by it.
    """
    try:
        with file.open() as log:
            at = 0
            while at < log.size:
                piece = log.read(at, min(_PIECE, log.size - at))
                if not len(piece) or bytes(piece).count(0) < len(piece):
                    return False
                at += len(piece)
    except UnreadableError:
        return False
    return True


def is_compacted(partition: Partition) -> bool:
    """Return whether names show that a log is compacted, or was once."""
    kinds = {redpanda_names.parse_partition_file(file.path.name).kind for file in partition.others}
    staged = any(".compaction" in file.path.name for file in partition.leftovers)
    return (
        RedpandaFileKind.COMPACTION_INDEX in kinds or staged or partition.topic in _ALWAYS_COMPACTED
    )
