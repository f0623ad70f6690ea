"""Rules for a snapshot of the metadata log: its batches, its header and its footer."""

from collections.abc import Iterator
from dataclasses import replace

from logtool.disk import shell
from logtool.errors import FormatError, UnreadableError
from logtool.findings import Broker, Finding
from logtool.formats import control_record, kraft_snapshot
from logtool.formats.kraft_snapshot import BodyBatch
from logtool.log.batches import read_batches
from logtool.log.chunk import Chunk
from logtool.log.file import File
from logtool.log.record_table import RecordTable
from logtool.log.records import batch_records
from logtool.metadata import bootstrap


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
        return  # The header, the footer or the missing offsets may be in the damaged part.
    for finding in kraft_snapshot.check(batches, epoch=file.name.epoch):
        yield finding.placed(file.path, next_command=command)


def check_bootstrap(file: File, *, is_read: bool = True) -> Iterator[Finding | UnreadableError]:
    """Check ``bootstrap.checkpoint``, whose faults stop a broker only if it cannot read the file.

    `is_read` is False in a log dir without the metadata log, where no start reads the file.
    """
    items = list(check_kraft_snapshot(file))
    if any(isinstance(one, UnreadableError) for one in items):
        yield from items
        return
    refused = bootstrap.read_failure(file.path) if is_read else None
    broker, is_reported = Broker.REFUSES if refused else Broker.NEVER, False
    for one in items:
        if isinstance(one, Finding) and one.broker is Broker.REFUSES:
            is_reported = True
            yield replace(one, broker_override=broker)
        else:
            yield one
    if refused and not is_reported:
        text, position = refused.reason, refused.position
        yield Finding("kraft-snapshot/damaged", text, position, path=file.path)


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
