"""One change to one checkpoint file, and the change of a single row by hand."""

import re
from pathlib import Path
from typing import Any

from logtool.actions import Action, Change, FileChange, Stamp
from logtool.disk import files
from logtool.errors import RefusedError, UnreadableError, UsageError
from logtool.findings import Finding
from logtool.formats import (
    leader_epoch_checkpoint,
    names,
    offset_checkpoint,
    partition_metadata,
)
from logtool.formats.names import DirectoryKind, FileKind, FileState, PartitionDirectory
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import OFFSET_CHECKPOINTS

REMOVABLE = (*OFFSET_CHECKPOINTS, FileKind.LEADER_EPOCH_CHECKPOINT, FileKind.CLEAN_SHUTDOWN)
"""Files that a broker does without."""
_WITHOUT = {
    FileKind.RECOVERY_POINT_CHECKPOINT: "an unclean start reads the whole log",
    FileKind.REPLICATION_CHECKPOINT: "the high watermark starts at the log start",
    FileKind.LOG_START_CHECKPOINT: "the log starts at its first segment",
    FileKind.CLEANER_CHECKPOINT: "the cleaner begins at the log start",
    FileKind.LEADER_EPOCH_CHECKPOINT: "followers truncate to the high watermark",
    FileKind.CLEAN_SHUTDOWN: "the next start is unclean",
}
"""Consequence for a broker if a row or the file is missing."""
_IN_PARTITION_DIRS = (FileKind.LEADER_EPOCH_CHECKPOINT, FileKind.PARTITION_METADATA)
_LARGEST_OFFSET, _LARGEST_EPOCH = 2**63 - 1, 2**31 - 1
_HARMLESS = ("checkpoint/empty", "checkpoint/duplicate")


@dataclass(frozen=True, slots=True)
class Edit:
    """A file as it is and as it should be."""

    action: Action
    """Action for the file, with the change of its bytes."""
    before: bytes
    """Empty for a file that is not there."""
    reasons: tuple[str, ...]
    """One line for each row that changes."""

    @property
    def after(self) -> bytes:
        """Return the bytes to be; none for a file that goes."""
        change = self.action.change
        return (change.content if change else None) or b""


@dataclass(frozen=True, slots=True)
class Present:
    """A checkpoint as it was read."""

    path: Path
    kind: FileKind
    data: bytes
    stamp: Stamp | None
    """None where there is no file."""
    value: Any
    """Content as the format module parsed it."""
    findings: tuple[Finding, ...]

    @property
    def is_sound(self) -> bool:
        """Return whether a broker reads every row of it, as it is."""
        return not [finding for finding in self.findings if finding.code != "checkpoint/empty"]


def load(path: Path) -> Present:
    """Read a checkpoint, or what would be one; UsageError for a file of another kind."""
    kind = kind_of(path)
    module = _module(kind)
    if module is None:
        raise UsageError(f"{path} is not a checkpoint of offsets or leader epochs")
    data, stamp = _read(path)
    value = module.parse(data)
    return Present(
        path=path,
        kind=kind,
        data=data,
        stamp=stamp,
        value=value,
        findings=tuple(module.check(value)),
    )


def read_topic_id(partition: Path) -> Present:
    """Read partition.metadata of a partition dir, which need not exist."""
    path = partition / FileKind.PARTITION_METADATA.value
    data, stamp = _read(path)
    value = partition_metadata.parse(data)
    findings = tuple(partition_metadata.check(value))
    return Present(path, FileKind.PARTITION_METADATA, data, stamp, value, findings)


def content(path: Path) -> bytes:
    """Return the bytes of a file, none for one that is not there."""
    return _read(path)[0]


def kind_of(path: Path) -> FileKind:
    """Return the kind of a file by its name; UNKNOWN also for a name with a suffix such as .tmp."""
    name = names.parse_root_file(path.name)
    if name.kind is FileKind.UNKNOWN:
        name = names.parse_partition_file(path.name)
    return name.kind if name.state is FileState.LIVE else FileKind.UNKNOWN


def replacement(present: Present, content: bytes, reasons: list[str]) -> Edit:
    """Return the edit that gives a file, there or not, other bytes."""
    change = Change(
        kind=FileChange.CREATE if present.stamp is None else FileChange.REPLACE,
        path=present.path,
        seen=present.stamp,
        content=content,
    )
    return _edit(change, present.data, reasons, len(content))


def remove(path: Path) -> Edit | None:
    """Return the edit that removes a file which a broker does without; None if it does not exist.

    UnreadableError if its directory does not exist either.
    """
    kind = kind_of(path)
    if kind not in REMOVABLE:
        raise UsageError(f"{path} cannot be removed: a broker needs the file")
    data, stamp = _read(path)
    if stamp is None:
        _expect_directory(path)
        return None
    return _edit(
        Change(kind=FileChange.REMOVE, path=path, seen=stamp),
        data,
        [f"without it {_WITHOUT[kind]}"],
        None,
    )


def set_row(path: Path, key: str, value: str | None) -> Edit | None:
    """Return the edit of one row, None where it is so already; a `value` of None removes the row.

    A row is ``TOPIC-PARTITION OFFSET`` or, in leader-epoch-checkpoint, ``EPOCH OFFSET``.
    """
    present = load(path)
    if present.stamp is None and value is None:
        _expect_directory(path)
    bad = [finding for finding in present.findings if finding.code not in _HARMLESS]
    if bad:
        raise RefusedError(f"{path}: {bad[0].message}; repair it with 'logtool checkpoint rebuild'")
    number = None if value is None else _whole("OFFSET", value, _LARGEST_OFFSET)
    if present.kind is FileKind.LEADER_EPOCH_CHECKPOINT:
        return _set_epoch(present, key, number)
    return _set_offset(present, key, number)


def _set_offset(present: Present, key: str, value: int | None) -> Edit | None:
    directory = names.parse_directory(key)
    live = getattr(directory, "kind", None) is DirectoryKind.LIVE
    if not isinstance(directory, PartitionDirectory) or not (live and directory.exact):
        raise UsageError(f"{key}: expected TOPIC-PARTITION (for example orders-0)")
    fault = names.topic_fault(directory.topic)
    if fault or directory.partition < 0:
        raise UsageError(f"{key}: {fault or 'a partition number is at least 0'}")
    row = directory.topic, directory.partition
    offsets: dict[tuple[str, int], int] = present.value.offsets
    before = offsets.get(row)
    if value is None:
        offsets = {other: offset for other, offset in offsets.items() if other != row}
    else:
        offsets = offsets | {row: value}
    if before == value:
        return None
    content = offset_checkpoint.encode(offset_checkpoint.build(offsets))
    return replacement(present, content, [_changed(present, key, before, value)])


def _set_epoch(present: Present, key: str, value: int | None) -> Edit | None:
    epoch = _whole("EPOCH", key, _LARGEST_EPOCH)
    rows: dict[int, int] = dict(present.value.epochs)
    before = rows.pop(epoch, None)
    if value is not None:
        rows[epoch] = value
    if before == value:
        return None
    checkpoint = leader_epoch_checkpoint.build(sorted(rows.items()))
    for finding in leader_epoch_checkpoint.check(checkpoint):
        raise RefusedError(f"{present.path} would be damaged: {finding.message}")
    content = leader_epoch_checkpoint.encode(checkpoint)
    return replacement(present, content, [_changed(present, f"epoch {key}", before, value)])


def _whole(what: str, text: str, largest: int) -> int:
    if not re.fullmatch("[0-9]{1,19}", text) or int(text) > largest:
        raise UsageError(f"{what} {text}: expected a whole number from 0 to {largest}")
    return int(text)


def _expect_directory(path: Path) -> None:
    if not path.absolute().parent.is_dir():
        raise UnreadableError(path, "there is no such directory", missing=True)


def _changed(present: Present, key: str, before: int | None, after: int | None) -> str:
    if after is None:
        return f"{key}: the row with {before} is removed; without this row {_WITHOUT[present.kind]}"
    return f"{key}: {'no row' if before is None else before} becomes {after}"


def _edit(change: Change, before: bytes, reasons: list[str], length: int | None) -> Edit:
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    directory = names.parse_directory(change.path.parent.name)
    inside = kind_of(change.path) in _IN_PARTITION_DIRS
    known = inside and isinstance(directory, PartitionDirectory)
    action = Action(
        action=change.kind,
        path=change.path,
        reason=f"{reasons[0]}{more}",
        topic=getattr(directory, "topic", None) if known else None,
        partition=getattr(directory, "partition", None) if known else None,
        length=length,
        change=change,
    )
    return Edit(action, before, tuple(reasons))


def _read(path: Path) -> tuple[bytes, Stamp | None]:
    """Return the content of a file and its stamp; nothing for one that is not there."""
    try:
        # Before the content, so that a write meanwhile does not go unnoticed.
        status = path.lstat()
        return files.read_small(path), Stamp(status.st_size, status.st_mtime_ns)
    except FileNotFoundError:
        return b"", None
    except OSError as error:
        raise UnreadableError(path, error.strerror or str(error)) from error


def _module(kind: FileKind) -> Any:
    if kind in OFFSET_CHECKPOINTS:
        return offset_checkpoint
    return leader_epoch_checkpoint if kind is FileKind.LEADER_EPOCH_CHECKPOINT else None
