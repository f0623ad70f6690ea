"""Check that a directory lies outside of every log dir: an unknown folder in one stops a broker."""

from pathlib import Path

from logtool.disk import files
from logtool.errors import RefusedError, UnreadableError
from logtool.formats import names
from logtool.formats.names import FileKind, PartitionDirectory
from logtool.log import redpanda_dir

_PARTITION_KINDS = (
    *names.SEGMENT_KINDS,
    FileKind.PRODUCER_SNAPSHOT,
    FileKind.PARTITION_METADATA,
    FileKind.LEADER_EPOCH_CHECKPOINT,
)


def check(undo_dir: Path, log_dir: Path) -> None:
    """Raise RefusedError for an undo directory that is in use, not a directory, or in a log dir."""
    check_place(undo_dir, log_dir)
    if undo_dir.exists() and not undo_dir.is_dir():
        raise RefusedError(f"{undo_dir}: exists and is not a directory")
    if undo_dir.exists() and any(undo_dir.iterdir()):
        raise RefusedError(f"{undo_dir}: is not empty; use a new directory")


def check_place(undo_dir: Path, log_dir: Path) -> None:
    """Raise RefusedError for an undo directory that lies in a log dir."""
    undo_dir, log_dir = undo_dir.resolve(), log_dir.resolve()
    if undo_dir.is_relative_to(log_dir):
        raise RefusedError(f"{undo_dir}: is inside the log dir {log_dir}")
    for parent in undo_dir.parents:
        if belongs_to_broker(parent):
            raise RefusedError(f"{undo_dir}: is inside {parent}, which holds files of a broker")


def belongs_to_broker(path: Path) -> bool:
    """Return whether a directory is a log dir or a partition dir by its content.

    The names of folders prove nothing here: ``/var/lib/kafka`` with the log dirs ``data-0`` and
    ``data-1`` is not a log dir, though these look like partitions. Nor does a ``.lock``.
    """
    try:
        entries = files.list_dir(path)
    except UnreadableError:
        return False
    if redpanda_dir.is_data_dir([entry.name for entry in entries]):
        return True
    return any(
        is_brokers(entry.name)
        or (_is_partition(entry.name) and files.is_dir(entry) and _holds_files(path / entry.name))
        for entry in entries
    )


def is_brokers(name: str) -> bool:
    """Return whether a file has a name that only a broker gives; any program may have a lock."""
    return _is_of_partition(name) or names.parse_root_file(name).kind not in (
        FileKind.UNKNOWN,
        FileKind.LOCK,
    )


def _is_partition(name: str) -> bool:
    return isinstance(names.parse_directory(name), PartitionDirectory)


def _holds_files(path: Path) -> bool:
    try:
        return any(_is_of_partition(entry.name) for entry in files.list_dir(path))
    except UnreadableError:
        return False


def _is_of_partition(name: str) -> bool:
    file_name = names.parse_partition_file(name)
    return file_name.kind in _PARTITION_KINDS and file_name.reception is names.Reception.EXACT
