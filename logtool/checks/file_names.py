"""Rules for the names of entries in a partition dir or log dir, and what a broker does."""

from collections.abc import Iterator

from logtool.findings import Broker, Finding
from logtool.formats import names
from logtool.formats.names import (
    BadDirectory,
    DirectoryKind,
    FileKind,
    FileState,
    PartitionDirectory,
    Reception,
)
from logtool.log.dir import LogDir, Partition
from logtool.log.file import File

_STATE_CODES = {
    FileState.DELETED: ("leftover-deleted", "is scheduled for deletion"),
    FileState.CLEANED: ("leftover-cleaned", "was written by a compaction that was not committed"),
    FileState.SWAP: ("leftover-swap", "was committed by compaction and waits for its last rename"),
    FileState.PARTIAL: ("leftover-temporary", "is an unfinished snapshot"),
    FileState.TEMPORARY: ("leftover-temporary", "is an unfinished rewrite of a file"),
}
_KIND_CODES = {
    DirectoryKind.DELETE: ("pending-delete", "is being deleted"),
    DirectoryKind.FUTURE: ("future", "is the target of an unfinished move between log dirs"),
    DirectoryKind.STRAY: (
        "stray",
        ("was set aside as stray: the cluster does not know this replica"),
    ),
}


def check_partition_names(partition: Partition, *, needs_topic_id: bool) -> Iterator[Finding]:
    """Yield the findings of the names in a partition dir."""
    if isinstance(partition.directory, PartitionDirectory):
        yield from _directory(partition.directory, partition)
    for file in partition.strangers:
        yield _stranger(file)
    yield from check_leftovers(partition)
    going = {
        file.name.offset
        for file in partition.leftovers
        if file.name.state is FileState.DELETED and file.name.kind is FileKind.LOG
    }
    for file in partition.orphans:
        if file.name.offset in going:
            continue  # its log was renamed first: a deletion that a kill interrupted
        text = f"has no {file.name.offset:020d}.log next to it"
        yield Finding("partition/orphan-index", text, path=file.path, segment=file.name.offset)
    for path in partition.odd_entries:
        text = "is not a regular file; a broker ignores it"
        yield Finding("partition/unknown-file", text, path=path)
    if not partition.segments:
        yield Finding("partition/empty", "holds no segment", path=partition.path)
    elif not partition.is_metadata_log and FileKind.PARTITION_METADATA not in partition.fixed:
        code = "partition-metadata/missing" if needs_topic_id else "partition-metadata/not-written"
        yield Finding(code, "has data and no partition.metadata", path=partition.path)


def check_leftovers(partition: Partition) -> Iterator[Finding]:
    """Yield the files in a partition dir that an interrupted job left."""
    dropped = names.uncommitted_swaps(file.name for file in partition.leftovers)
    for file in partition.leftovers:
        state = FileState.CLEANED if file.name.name in dropped else file.name.state
        yield _leftover("partition", file, state)


def check_root_names(root: LogDir) -> Iterator[Finding]:
    """Yield the findings of the names in a log dir."""
    for path, bad in root.bad_directories:
        yield Finding("data-dir/stops-broker", bad.reason, path=path)
    for file in root.strangers:
        yield Finding("data-dir/unknown-file", "is not a Kafka file", path=file.path)
    for path in root.odd_entries:
        yield Finding("data-dir/unknown-file", "is neither a file nor a directory", path=path)
    for file in root.leftovers:
        yield _leftover("data-dir", file, file.name.state)
    seen: dict[tuple[str, int], PartitionDirectory] = {}
    for path, directory in root.partitions:
        if directory.kind is not DirectoryKind.LIVE:
            continue
        other = seen.setdefault((directory.topic, directory.partition), directory)
        if other is not directory:
            text = f"is the same partition as {other.name}"
            yield Finding("data-dir/duplicate-partition", text, path=path)


def _directory(directory: PartitionDirectory | BadDirectory, home: Partition) -> Iterator[Finding]:
    if isinstance(directory, BadDirectory):
        return
    if directory.kind is not DirectoryKind.LIVE:
        code, text = _KIND_CODES[directory.kind]
        yield Finding(f"partition/{code}", text, path=home.path)
    if not directory.exact:
        text = f"is read as partition {directory.partition} of topic {directory.topic!r}"
        yield Finding(
            "partition/odd-name",
            (f"{text}, but Kafka writes a different name for this partition"),
            path=home.path,
        )


def _stranger(file: File) -> Finding:
    if file.name.reception is Reception.STOPS_BROKER:
        text = "has a suffix of Kafka, but no number that a broker can read before the first '.'"
        return Finding("partition/stops-broker", text, path=file.path)
    if file.name.reception is Reception.ACCEPTED:
        text = (
            f"a broker reads offset {file.name.offset} in the name, but opens the file with the "
            "name that Kafka writes for this offset"
        )
        return Finding("partition/odd-name", text, path=file.path)
    text = {
        Reception.ERASED: "is not a Kafka file; a broker deletes it because of its suffix",
        Reception.IGNORED: "is not a Kafka file",
    }[file.name.reception]
    erased = Broker.ALWAYS if file.name.reception is Reception.ERASED else None
    return Finding("partition/unknown-file", text, path=file.path, broker_override=erased)


def _leftover(area: str, file: File, state: FileState) -> Finding:
    code, text = _STATE_CODES[state]
    return Finding(f"{area}/{code}", text, path=file.path, segment=file.name.offset)
