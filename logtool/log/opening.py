"""Log dirs and partition dirs are listed here, and it is decided who wrote them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from logtool.disk import files
from logtool.errors import NothingMatchedError, UnreadableError
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
from logtool.log import redpanda_dir
from logtool.log.dir import LogDir, Partition, arrange_partition, list_files
from logtool.log.file import describe, is_exact, is_file
from logtool.log.flavour import Flavour, forced

MOST_LOOKS = 5
"""Times that a partition is looked at of which a broker takes away files meanwhile."""
_LISTINGS = 32
"""Directories behind URLs that are listed at once."""


def is_redpanda(path: Path) -> bool:
    """Return whether Redpanda wrote what lies at `path`, by the names alone.

    A directory with files that Kafka writes is Kafka's, whatever else lies in it, but for a
    partition of Redpanda by its name and a segment. NothingMatchedError for a directory that is
    to be taken for Redpanda's, and holds nothing of it.
    """
    if not files.leads_to_dir(path):
        return forced() is not Flavour.KAFKA and redpanda_dir.place(path) is not None
    return names_are_of_redpanda(path, [entry.name for entry in files.list_dir(path)])


def names_are_of_redpanda(path: Path, entries: list[str]) -> bool:
    """Return whether Redpanda wrote the directory `path`, which has these entries."""
    if forced() is Flavour.REDPANDA:
        of_redpanda = redpanda_dir.is_data_dir(entries) or redpanda_dir.is_partition(path, entries)
        if not of_redpanda and not redpanda_dir.holds_partitions(path):
            text = "nothing matched: it holds nothing that Redpanda writes; expected a data "
            text += "directory, a namespace, a topic, a partition or a file"
            raise NothingMatchedError(path, text)
        return True
    if forced() is Flavour.KAFKA:
        return False
    if redpanda_dir.is_data_dir(entries) or redpanda_dir.is_surely_partition(path, entries):
        return True
    if holds_partition_files(entries) or any(
        names.parse_root_file(name).kind is not FileKind.UNKNOWN for name in entries
    ):
        return False
    return redpanda_dir.is_partition(path, entries) or redpanda_dir.holds_partitions(path)


def open_log_dir(path: Path) -> LogDir:
    """List a log dir; UnreadableError when that is not possible."""
    return files.at_one_moment(path, partial(_described_log_dir, path))


def _described_log_dir(path: Path, entries: Sequence[files.Entry]) -> LogDir:
    """Return what the entries of a log dir are."""
    if names_are_of_redpanda(path, [entry.name for entry in entries]):
        return LogDir(
            path,
            partitions=tuple(redpanda_dir.partitions(path)),
            bad_directories=(),
            files={},
            leftovers=(),
            strangers=(),
            odd_entries=(),
            is_redpanda=True,
        )
    good, bad, kept, odd = [], [], [], []
    for entry in entries:
        name = names.parse_root_file(entry.name)
        if files.is_dir(entry):
            directory = names.parse_directory(entry.name)
            if entry.name == names.REMOTE_INDEX_CACHE:
                continue
            if isinstance(directory, BadDirectory):
                bad.append((path / entry.name, directory))
            else:
                good.append((path / entry.name, directory))
        elif is_file(entry, name):
            file = describe(path, entry, name)
            kept += [file] if file else []
        else:
            odd.append(path / entry.name)
    exact = [f for f in kept if f.name.reception is Reception.EXACT]
    return LogDir(
        path,
        partitions=tuple(sorted(good, key=_directory_order)),
        bad_directories=tuple(bad),
        files={f.name.kind: f for f in exact if f.name.state is FileState.LIVE},
        leftovers=tuple(f for f in exact if f.name.state is not FileState.LIVE),
        strangers=tuple(f for f in kept if f.name.reception is not Reception.EXACT),
        odd_entries=tuple(odd),
    )


def _directory_order(item: tuple[Path, PartitionDirectory]) -> tuple[str, int, int, str]:
    directory = item[1]
    return (
        directory.topic,
        directory.partition,
        list(DirectoryKind).index(directory.kind),
        directory.name,
    )


def open_partition(path: Path) -> Partition:
    """List a partition directory; UnreadableError when that is not possible."""
    return files.at_one_moment(path, partial(_described_partition, path))


def _described_partition(path: Path, entries: Sequence[files.Entry]) -> Partition:
    """Return what the entries of a directory are."""
    directory = names.parse_directory(_own_name(path))
    metadata_log = getattr(directory, "topic", None) == names.CLUSTER_METADATA

    def name_of(text: str) -> FileName:
        return names.parse_partition_file(text, metadata_log=metadata_log)

    listed, odd = list_files(path, entries, name_of)
    found = [entry.name for entry in entries]
    of_kafka = any(file.name.kind is FileKind.LOG and is_exact(file) for file in listed)
    of_kafka &= not redpanda_dir.is_surely_partition(path, found)
    if flavour := forced():
        of_kafka = flavour is Flavour.KAFKA
    if not of_kafka and redpanda_dir.is_partition(path, found):
        listed, odd = list_files(path, entries, redpanda_dir.file_name)
        directory = redpanda_dir.directory(path) or directory
        listing = arrange_partition(path, directory, listed, odd)
        others = [f for f in listed if f.name.kind is FileKind.UNKNOWN and is_exact(f)]
        others = [f for f in others if f.name.state is FileState.LIVE]
        return replace(listing, is_redpanda=True, others=tuple(others))
    return arrange_partition(path, directory, listed, odd)


def try_partition(path: Path) -> Partition | UnreadableError:
    """List a partition directory, or return why that is not possible."""
    try:
        return open_partition(path)
    except UnreadableError as error:
        return error


def try_partitions(paths: Sequence[Path]) -> Iterator[Partition | UnreadableError]:
    """List partition directories in order; behind URLs several at once, ahead of who asks.

    A listing there is little more than its way there and back.
    """
    if not any(map(files.is_remote, paths)):
        yield from map(try_partition, paths)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_LISTINGS) as pool:
        for at in range(0, len(paths), _LISTINGS):
            yield from pool.map(try_partition, paths[at : at + _LISTINGS])


def _own_name(path: Path) -> str:
    """Return the directory's name, also for ``.`` and for a path that ends in ``..``."""
    return path.name if path.name not in ("", "..") else path.resolve().name


def holds_partition_files(entries: list[str]) -> bool:
    """Return whether one of the names is that of a file that Kafka writes into a partition dir."""
    kinds = (
        *names.SEGMENT_KINDS,
        FileKind.PRODUCER_SNAPSHOT,
        FileKind.PARTITION_METADATA,
        FileKind.LEADER_EPOCH_CHECKPOINT,
    )
    parsed = map(names.parse_partition_file, entries)
    # A .log without an offset for a name is what many programs write: alone it tells nothing.
    return any(
        name.kind in kinds and name.reception is not Reception.STOPS_BROKER for name in parsed
    )
