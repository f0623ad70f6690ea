"""Small files of a log dir or a partition dir, each parsed and checked as a whole."""

from typing import Any

from logtool.disk import files, shell
from logtool.findings import Finding
from logtool.formats import (
    clean_shutdown,
    leader_epoch_checkpoint,
    meta_properties,
    offset_checkpoint,
    partition_metadata,
    quorum_state,
)
from logtool.formats.names import FileKind
from logtool.log.file import File

_FORMATS: dict[FileKind, Any] = {
    FileKind.LEADER_EPOCH_CHECKPOINT: leader_epoch_checkpoint,
    FileKind.PARTITION_METADATA: partition_metadata,
    FileKind.QUORUM_STATE: quorum_state,
    FileKind.META_PROPERTIES: meta_properties,
    FileKind.CLEAN_SHUTDOWN: clean_shutdown,
    FileKind.RECOVERY_POINT_CHECKPOINT: offset_checkpoint,
    FileKind.REPLICATION_CHECKPOINT: offset_checkpoint,
    FileKind.LOG_START_CHECKPOINT: offset_checkpoint,
    FileKind.CLEANER_CHECKPOINT: offset_checkpoint,
}
CHECKABLE = frozenset(_FORMATS)
_MAY_BE_EMPTY = (FileKind.LOG_START_CHECKPOINT, FileKind.CLEANER_CHECKPOINT)


def check_file(file: File) -> tuple[Any, list[Finding]]:
    """Return the parsed value of a file of a kind in `CHECKABLE`, and what is wrong with it."""
    module = _FORMATS[file.name.kind]
    value = module.parse(files.read_small(file.path))
    findings = [
        finding.placed(file.path, next_command=f"logtool dump {shell.path(file.path)}")
        for finding in module.check(value)
    ]
    if file.name.kind in _MAY_BE_EMPTY:
        findings = [finding for finding in findings if finding.code != "checkpoint/empty"]
    return value, findings
