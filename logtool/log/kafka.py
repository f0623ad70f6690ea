"""Log dirs and partitions that Kafka wrote."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from logtool.disk import files
from logtool.formats import names
from logtool.formats.names import (
    BadDirectory,
    DirectoryKind,
    FileKind,
    FileName,
    FileState,
    PartitionDirectory,
    Reception,
)
from logtool.log.dir import LogDir, Partition, arrange_partition, list_files, own_name
from logtool.log.file import describe, is_file
from logtool.log.flavour import FlavourName
from logtool.log.walk import forms
from logtool.log.walk.forms import Form

_RANKS = {kind: rank for rank, kind in enumerate(DirectoryKind)}


class Kafka:
    """The flavour of Apache Kafka."""

    name = FlavourName.KAFKA
    lock = FileKind.LOCK.value
    index_kinds = frozenset(names.INDEX_KINDS)
    has_raft_offsets = False
    has_checkpoints = True

    def __reduce__(self) -> str:
        return "KAFKA"

    def holds(self, path: Path, entries: Sequence[str]) -> bool:
        """Return whether a directory has files that Kafka writes."""
        return holds_partition_files(entries) or any(map(is_root_file, entries))

    def log_dir(self, path: Path, entries: Sequence[files.Entry]) -> LogDir:
        """Return the log dir that these directory entries make."""
        good, bad, kept, odd = [], [], [], []
        has_index_cache = False
        for entry in entries:
            if files.is_dir(entry):
                if entry.name == names.REMOTE_INDEX_CACHE:
                    has_index_cache = True
                    continue
                directory = names.parse_directory(entry.name)
                if isinstance(directory, BadDirectory):
                    bad.append((path / entry.name, directory))
                else:
                    good.append((path / entry.name, directory))
                continue
            name = names.parse_root_file(entry.name)
            if is_file(entry, name):
                file = describe(path, entry, name)
                kept += [file] if file else []
            else:
                odd.append(path / entry.name)
        exact = [f for f in kept if f.name.reception is Reception.EXACT]
        partitions = tuple(sorted(good, key=_directory_order))
        return LogDir(
            path,
            flavour=self,
            partitions=partitions,
            latest=partitions,
            bad_directories=tuple(bad),
            files={f.name.kind: f for f in exact if f.name.state is FileState.LIVE},
            leftovers=tuple(f for f in exact if f.name.state is not FileState.LIVE),
            strangers=tuple(f for f in kept if f.name.reception is not Reception.EXACT),
            odd_entries=tuple(odd),
            has_index_cache=has_index_cache,
        )

    def partition(self, path: Path, entries: Sequence[files.Entry]) -> Partition:
        """Return the partition that these directory entries make."""
        directory = names.parse_directory(own_name(path))
        metadata_log = getattr(directory, "topic", None) == names.CLUSTER_METADATA

        def name_of(text: str) -> FileName:
            return names.parse_partition_file(text, metadata_log=metadata_log)

        return arrange_partition(path, self, directory, *list_files(path, entries, name_of))

    def file_name(self, name: str) -> FileName:
        """Return the parsed name of a file in a partition dir."""
        return names.parse_partition_file(name)

    def form(self, log: Path) -> Form:
        """Return the form of the batch headers."""
        return forms.KAFKA_FORM


KAFKA = Kafka()


def holds_partition_files(entries: Sequence[str]) -> bool:
    """Return whether one of the names is that of a file that Kafka writes into a partition dir."""
    kinds = (
        *names.SEGMENT_KINDS,
        FileKind.PRODUCER_SNAPSHOT,
        FileKind.PARTITION_METADATA,
        FileKind.LEADER_EPOCH_CHECKPOINT,
    )
    parsed = map(names.parse_partition_file, _not_directories(entries))
    # Many programs write a .log without an offset for a name: alone it proves nothing.
    return any(
        name.kind in kinds and name.reception is not Reception.STOPS_BROKER for name in parsed
    )


def holds_log(entries: Sequence[str]) -> bool:
    """Return whether one of the names is that of a log which a broker loads."""
    parsed = map(names.parse_partition_file, _not_directories(entries))
    return any(name.kind is FileKind.LOG and name.reception is Reception.EXACT for name in parsed)


def _not_directories(entries: Sequence[str]) -> Iterator[str]:
    """Yield the names that do not end with a digit, as those of partition dirs do.

    A log dir may have 50,000 of these, and no file of a partition dir has such a name.
    """
    return (name for name in entries if not name[-1:].isdigit())


def is_root_file(name: str) -> bool:
    """Return whether Kafka writes a file of this name into a log dir."""
    return names.parse_root_file(name).kind is not FileKind.UNKNOWN


def _directory_order(item: tuple[Path, PartitionDirectory]) -> tuple[str, int, int, str]:
    directory = item[1]
    return (
        directory.topic,
        directory.partition,
        _RANKS[directory.kind],
        directory.name,
    )
