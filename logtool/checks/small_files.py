"""Rules for the small files of one format each: parse, check, and say where."""

from collections.abc import Callable, Iterator
from typing import Any

from logtool.disk import files, shell
from logtool.errors import FormatError, UnreadableError
from logtool.findings import Finding
from logtool.formats import (
    clean_shutdown,
    control_record,
    kraft_snapshot,
    leader_epoch_checkpoint,
    meta_properties,
    offset_checkpoint,
    partition_metadata,
    quorum_state,
)
from logtool.formats.kraft_snapshot import BodyBatch
from logtool.formats.names import FileKind
from logtool.lazy_dataclass import dataclass
from logtool.log.batches import read_batches
from logtool.log.chunk import Chunk
from logtool.log.file import File
from logtool.log.records import RecordTable, batch_records

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
_UNNUMBERED = {
    FileKind.RECOVERY_POINT_CHECKPOINT: "is not read, every offset in it counts as 0",
    FileKind.LOG_START_CHECKPOINT: "is not read, every offset in it counts as 0",
    FileKind.REPLICATION_CHECKPOINT:
        "is not read: the broker starts, and does not lead or follow the partitions of this log "
        "dir, perhaps none at all",
    FileKind.CLEANER_CHECKPOINT:
        "is not read: the broker starts, and its log cleaner ends at once: nothing is compacted",
}  # fmt: skip
"""What a broker does where a number cannot be read, which is no I/O error in its eyes."""
_MAY_BE_EMPTY = (FileKind.LOG_START_CHECKPOINT, FileKind.CLEANER_CHECKPOINT)


def check_file(file: File) -> tuple[Any, list[Finding]]:
    """Return the parsed value of a file of a kind in `CHECKABLE`, and what is wrong with it."""
    module = _FORMATS[file.name.kind]
    value = module.parse(files.read_small(file.path))
    command = f"logtool dump {shell.path(file.path)}"
    findings = [finding.placed(file.path, next_command=command) for finding in module.check(value)]
    if file.name.kind in _MAY_BE_EMPTY:
        findings = [finding for finding in findings if finding.code != "checkpoint/empty"]
    return value, findings


@dataclass(frozen=True, slots=True)
class Unread:
    """An offset checkpoint that a broker does not read, and what it does then."""

    action: str
    """``offline``, ``refuse`` or ``ignore``, as in `logtool.actions`."""
    text: str
    position: int


def read_offsets(file: File, *, beside_metadata_log: bool) -> dict[tuple[str, int], int] | Unread:
    """Return the offsets of a checkpoint, or what becomes of a broker that does not read it.

    `beside_metadata_log` is a log dir that the broker does not start without. Source:
    ``LogManager.loadLogs``, ``ReplicaManager.handleLogDirFailure``, ``LogCleanerManager``.
    """
    checkpoint = offset_checkpoint.parse(files.read_small(file.path))
    refusal = offset_checkpoint.refusal(checkpoint)
    if not refusal:
        return checkpoint.offsets
    if not refusal.is_io_error:
        text = f"{_UNNUMBERED[file.name.kind]}: {refusal.message}"
        return Unread("ignore", text, refusal.position)
    if beside_metadata_log:
        text = (
            "the broker does not start: it takes the log dir offline that holds its metadata log: "
            f"{refusal.message}"
        )
        return Unread("refuse", text, refusal.position)
    text = (
        "the broker takes the log dir offline with all its partitions, and does not start if it "
        f"has no other: {refusal.message}"
    )
    return Unread("offline", text, refusal.position)


def check_kraft_snapshot(file: File) -> Iterator[Finding | UnreadableError]:
    """Check a snapshot of the metadata log: batches that begin at offset 0, header and footer."""
    batches: list[BodyBatch] = []
    damaged = False
    command = f"logtool dump {shell.path(file.path)}"
    try:
        with file.open() as log:
            for chunk in read_batches(log, base_offset=0):
                if chunk.damage:
                    damaged, damage = True, chunk.damage
                    yield Finding(
                        code="kraft-snapshot/damaged",
                        message=damage.message,
                        position=damage.position,
                        length=damage.length,
                        path=file.path,
                        next=command,
                    )
                batches += [_body(chunk, row) for row in range(len(chunk.table))]
    except UnreadableError as error:
        yield error
        return
    if damaged:
        return  # The header, the footer or what is out of step may stand in what is lost.
    for finding in kraft_snapshot.check(batches, epoch=file.name.epoch):
        yield finding.placed(file.path, next_command=command)


def _body(chunk: Chunk, row: int) -> BodyBatch:
    table = chunk.table
    return BodyBatch(
        position=int(table.position[row]),
        base_offset=int(table.base_offset[row]),
        last_offset=int(table.last_offset[row]),
        partition_leader_epoch=int(table.leader_epoch[row]),
        control_types=_control_types(chunk, row) if table.is_control[row] else None,
    )


def _control_types(chunk: Chunk, row: int) -> tuple[int, ...]:
    types = []
    for part in batch_records(chunk, row):
        if not isinstance(part, RecordTable):
            break
        for number in range(len(part.offset)):
            try:
                types.append(control_record.parse(part.key(number) or b"", b"").type)
            except FormatError:
                types.append(-1)
    return tuple(types)


Checker = Callable[[File], tuple[Any, list[Finding]]]
