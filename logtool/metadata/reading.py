"""The records of a metadata log or snapshot, one after the other, each with its position."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from logtool.disk.files import LogFile
from logtool.errors import FormatError
from logtool.formats import control_record
from logtool.formats.control_record import KRAFT_VERSION, KRAFT_VOTERS
from logtool.formats.messages import cluster_metadata, codec, schema
from logtool.formats.messages.cluster_metadata import Record
from logtool.formats.messages.codec import Value
from logtool.formats.messages.internal_topics import parse_frame
from logtool.formats.record_batch import MAGIC
from logtool.lazy_dataclass import dataclass
from logtool.log.batches import read_batches
from logtool.log.chunk import Chunk
from logtool.log.damage import DamageReason
from logtool.log.record_table import RecordTable, Unread
from logtool.log.records import batch_records, pieces, read_together

_CONTROL = {
    control_record.LEADER_CHANGE: "LeaderChangeMessage",
    control_record.SNAPSHOT_HEADER: "SnapshotHeaderRecord",
    KRAFT_VERSION: "KRaftVersionRecord",
    KRAFT_VOTERS: "VotersRecord",
}
_OTHER_KIND = "a batch of a kind that a metadata log does not have"
_LONGEST_FRAME = 15
"""Bytes of three varints."""
UNREADABLE = -1
"""In place of the type of a control record that does not decode."""


@dataclass(frozen=True, slots=True)
class Control:
    """A control record of KRaft."""

    type: int
    data: Value
    """Its fields; empty if they are not known."""


class MetadataEntry(NamedTuple):
    """One record and its place."""

    path: Path
    position: int
    """Position of the batch, in bytes."""
    offset: int
    """Offset in the log; in a snapshot a number from 0, independent of the offsets of the log."""
    epoch: int
    timestamp_ms: int
    content: Record | Control
    kind: tuple[int, int] = (UNREADABLE, 0)
    """Type and version of a record that is not a control record."""


class MetadataBatch(NamedTuple):
    """One batch; its records are decoded when they are asked for."""

    position: int
    base_offset: int
    last_offset: int
    entries: Iterator[MetadataEntry]
    """FormatError at the first record that a broker could not read."""


def batches(path: Path, base_offset: int, *, active: bool = False) -> Iterator[MetadataBatch]:
    """Yield the batches of a log or snapshot; FormatError at damage.

    A torn tail, which a broker cuts off and fetches again, ends an `active` segment.
    """
    with LogFile(path) as log:
        for chunk in read_batches(log, base_offset=base_offset):
            damage = chunk.damage
            if damage and active and damage.reason in (DamageReason.INCOMPLETE, DamageReason.ZEROS):
                return
            if damage:
                raise FormatError(damage.message, damage.position, path)
            for some, ordinary in pieces(chunk, np.arange(len(chunk.table))):
                together = read_together(chunk, some) if ordinary else None
                end = 0
                for number, row in enumerate(some.tolist()):
                    start, end = end, end + (int(together.counts[number]) if together else 0)
                    yield MetadataBatch(
                        int(chunk.table.position[row]),
                        int(chunk.table.base_offset[row]),
                        int(chunk.table.last_offset[row]),
                        _entries(chunk, row, path, together, slice(start, end)),
                    )


def _entries(
    chunk: Chunk, row: int, path: Path, together: RecordTable | None, which: slice
) -> Iterator[MetadataEntry]:
    """Yield the records of a batch, from `together` if it was read with others."""
    table = chunk.table
    position = int(table.position[row])
    epoch, is_control = int(table.leader_epoch[row]), bool(table.is_control[row])
    if table.magic[row] != MAGIC:
        raise FormatError(_OTHER_KIND, position, path)
    if together is None:
        which = slice(None)
    for part in batch_records(chunk, row) if together is None else [together]:
        if isinstance(part, Unread):
            reason = part.reason if part.in_memory else _OTHER_KIND
            raise FormatError(reason, position, path) from part.error
        data, spans = part.data, part.spans
        columns = (
            part.offset, part.timestamp, spans.value_position, spans.value_length,
            spans.key_position, spans.key_length,
        )  # fmt: skip
        for offset, time_ms, start, size, key, key_size in zip(
            *(column[which].tolist() for column in columns), strict=True
        ):
            value, kind_of = data[start : start + max(size, 0)], (UNREADABLE, 0)
            content: Record | Control
            try:
                if is_control:
                    content = _control(bytes(data[key : key + max(key_size, 0)]), bytes(value))
                else:
                    content = cluster_metadata.parse(value)
                    kind_of = parse_frame(bytes(value[:_LONGEST_FRAME]))[:2]
            except FormatError as error:
                raise FormatError(error.reason, position, path) from error
            yield MetadataEntry(path, position, offset, epoch, time_ms, content, kind_of)


def _control(key: bytes, value: bytes) -> Control:
    """Return a control record; one that does not decode has no fields, as Kafka goes on.

    Its version is the first field; a newer version is read as the newest known.
    """
    kind = UNREADABLE
    try:
        kind = control_record.parse(key, value).type
        if kind in _CONTROL:
            message = schema.table("control_records").named(_CONTROL[kind])
            version = min(int.from_bytes(value[:2], "big", signed=True), message.versions.last)
            return Control(kind, codec.decode(message, version, value, whole=False))
    except FormatError:
        pass
    return Control(kind, {})
