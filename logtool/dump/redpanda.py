"""What Redpanda's segments and base indexes hold, as plain dicts in file order.

A batch is an ``entry`` here: it has a type and Raft offsets, which a batch of Kafka has not. What
is no sound batch is an ``error`` in its place, and the dump goes on behind it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from logtool.dump.log import Filter
from logtool.dump.records import Object, error_object
from logtool.dump.redpanda_offsets import KafkaOffsets, Offsets
from logtool.dump.state import entry
from logtool.dump.values import EVERYTHING, or_null
from logtool.formats import compression, wording
from logtool.formats.names import FileKind, FileName
from logtool.formats.record_batch import CODEC_MASK, CONTROL, TIMESTAMP_TYPE, TRANSACTIONAL
from logtool.formats.redpanda import base_index, record_batch, segment
from logtool.formats.redpanda.base_index import BaseIndex, Unreadable
from logtool.formats.redpanda.record_batch import Batch, Header
from logtool.formats.redpanda.segment import Reason, Rest
from logtool.times import rfc3339

KINDS = (FileKind.REDPANDA_SEGMENT, FileKind.REDPANDA_BASE_INDEX)
LARGEST = 2 * 1024**3
"""Bytes of the largest segment that is read: it is held in memory, and a broker's are smaller."""

_REASONS = {
    Reason.SHORT_HEADER: "the file ends within the header of a batch",
    Reason.HEADER_CRC: "the CRC of the header does not match",
    Reason.SIZE: "the size in the header is less than that of a header",
    Reason.SHORT_BODY: "the file ends within the batch",
    Reason.CRC: "the CRC of the batch does not match",
}


@dataclass(frozen=True, slots=True)
class Content:
    """What one file holds."""

    objects: Iterator[Object]
    """Entries and errors, in the order of the file."""
    count: int | None
    """Entries of an index; None of a segment, which is read as it is printed."""


def read(path: Path, name: FileName, data: bytes, kafka: KafkaOffsets) -> Content:
    """Take apart a file whose name is `name`; `kafka` follows the segments in their order."""
    if name.kind is FileKind.REDPANDA_SEGMENT:
        kafka.begin(path, name.offset or 0)
        return Content(_segment(path, data, name.epoch or 0, kafka), None)
    index = base_index.parse(data)
    count = len(index) if isinstance(index, BaseIndex) else 0
    return Content(_index(path, data, index, name.offset or 0), count)


def is_wanted(obj: Object, chosen: Filter) -> bool:
    """Return whether an entry is asked for; ranges of offsets are of Raft offsets."""
    if obj["kind"] == FileKind.REDPANDA_SEGMENT:
        first, last = obj["raft_base_offset"], obj["raft_last_offset"]
        oldest, newest = obj["base_timestamp_ms"], obj["max_timestamp_ms"]
    else:
        first = last = obj["raft_offset"]
        oldest = newest = obj["timestamp_ms"]
    if chosen.producer_id is not None and obj.get("producer_id") != chosen.producer_id:
        return False
    if not chosen.offsets.overlaps(first, last):
        return False
    if chosen.timestamps == EVERYTHING:
        return True
    return newest is not None and chosen.timestamps.overlaps(oldest or newest, newest)


def _segment(path: Path, data: bytes, term: int, kafka: KafkaOffsets) -> Iterator[Object]:
    position = 0
    for part in segment.parts(data):
        if isinstance(part, Batch):
            fields = _batch(part.header, position, term, kafka.of(part.header))
            yield entry(path, FileKind.REDPANDA_SEGMENT, fields)
            position += part.header.size
        else:
            yield from _rest(path, position, part)
            if part.reason is not Reason.ZEROS:
                kafka.lose()
            position += len(part.data)


def _rest(path: Path, position: int, part: Rest) -> Iterator[Object]:
    """Yield an error, but for the zeros of room that was not used."""
    if part.reason is not Reason.ZEROS:
        message = f"{_REASONS[part.reason]}; {wording.count(len(part.data), 'byte')} are no batch"
        yield error_object(path, str(part.reason), message, position, len(part.data))


def _batch(header: Header, position: int, term: int, kafka: Offsets) -> Object:
    attributes = header.attributes
    by_broker = bool(attributes & TIMESTAMP_TYPE)
    return {
        "position": position,
        "size": header.size,
        "batch_type": record_batch.type_name(header.type),
        "term": term,
        "raft_base_offset": header.base_offset,
        "raft_last_offset": header.last_offset,
        "kafka_base_offset": kafka[0],
        "kafka_last_offset": kafka[1],
        "record_count": header.record_count,
        "codec": compression.name(attributes & CODEC_MASK),
        "timestamp_type": "LogAppendTime" if by_broker else "CreateTime",
        "base_timestamp_ms": or_null(header.base_timestamp),
        "base_timestamp": rfc3339(or_null(header.base_timestamp)),
        "max_timestamp_ms": or_null(header.max_timestamp),
        "max_timestamp": rfc3339(or_null(header.max_timestamp)),
        "producer_id": or_null(header.producer_id),
        "producer_epoch": or_null(header.producer_epoch),
        "base_sequence": or_null(header.base_sequence),
        "transactional": bool(attributes & TRANSACTIONAL),
        "control": bool(attributes & CONTROL),
        "attributes": attributes,
        "crc": header.crc,
        "header_crc": header.header_crc,
    }


def _index(
    path: Path, data: bytes, index: BaseIndex | Unreadable, segment_base: int
) -> Iterator[Object]:
    if isinstance(index, Unreadable):
        version = "an empty file" if index.version is None else f"version {index.version}"
        text = f"expected an index of version 3 to 9, found {version} that cannot be read as one"
        yield error_object(path, "version", text, 0, len(data))
        return
    if not index.checksum_holds:
        text = "the checksum of the index does not match; its entries may be wrong"
        yield error_object(path, "crc", text, 0, len(data))
    offsets = base_index.offsets(index, segment_base=segment_base)
    columns = (
        offsets,
        index.entries.relative_offset.tolist(),
        base_index.timestamps(index),
        index.entries.position.tolist(),
    )
    sizes = {len(column) for column in columns}
    if len(sizes) > 1:
        text = f"expected three indexes of one length, found {min(sizes)} to {max(sizes)} entries"
        yield error_object(path, "count", text, 0, len(data))
    for number, row in enumerate(zip(*columns, strict=False)):
        offset, relative, time, position = row
        fields = {
            "position": base_index.entry_position(index, number),
            "entry": number,
            "raft_offset": offset,
            "relative_offset": relative,
            "timestamp": rfc3339(time),
            "timestamp_ms": time,
            "log_position": position,
            "version": index.version,
            "base_offset": index.base_offset,
            "max_offset": index.max_offset,
        }
        yield entry(path, FileKind.REDPANDA_BASE_INDEX, fields)
