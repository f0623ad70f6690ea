"""Content of Redpanda's segments and base indexes, as plain dicts in file order.

A batch is an ``entry`` here: it has a type and Raft offsets, which a batch of Kafka does not have.
Bytes that are not a sound batch are an ``error`` in their place, and the dump goes on behind them.
"""

from collections.abc import Iterator
from pathlib import Path

from logtool.disk.files import LogFile
from logtool.dump.blocks import Block, Origin
from logtool.dump.log import Filter, dump_chunk
from logtool.dump.records import Object, error_object
from logtool.dump.state import entry
from logtool.dump.values import EVERYTHING, or_null
from logtool.formats import compression, wording
from logtool.formats.names import FileKind, FileName
from logtool.formats.record_batch import CODEC_MASK, CONTROL, TIMESTAMP_TYPE, TRANSACTIONAL
from logtool.formats.redpanda import base_index, record_batch
from logtool.formats.redpanda.base_index import BaseIndex, Unreadable
from logtool.formats.redpanda.record_batch import HEADER_SIZE
from logtool.lazy_dataclass import dataclass
from logtool.log.base_index import header_of
from logtool.log.chunk import Chunk
from logtool.log.damage import Damage, DamageReason
from logtool.log.kafka_offsets import KafkaOffsets
from logtool.times import rfc3339

_REASONS = {
    "short-header": "the file ends inside the header of a batch",
    "header-crc": "the CRC of the header does not match",
    "size": "the size in the header is smaller than a header",
    "short-body": "the file ends inside the batch",
    "crc": "the CRC of the batch does not match",
    "zeros": "there are zeros before a batch",
}


@dataclass(frozen=True, slots=True)
class IndexEntries:
    """Content of one base index."""

    objects: Iterator[Object]
    """Entries and errors, in the order of the file."""
    count: int


def read_index(path: Path, name: FileName, data: bytes) -> IndexEntries:
    """Parse a base index whose name is `name`."""
    index = base_index.parse(data)
    count = len(index) if isinstance(index, BaseIndex) else 0
    return IndexEntries(_index(path, data, index, name.offset or 0), count)


def is_wanted(obj: Object, chosen: Filter) -> bool:
    """Return whether an entry matches; ranges of offsets are ranges of Raft offsets."""
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


class RedpandaFiles:
    """Filter for segments and base indexes, which must come in the order of their offsets."""

    def __init__(self, chosen: Filter) -> None:
        self._chosen = chosen
        self._kafka_offsets = KafkaOffsets()

    def index(self, path: Path, name: FileName, data: bytes) -> IndexEntries:
        """Parse a base index whose name is `name`, and leave out entries that do not match."""
        content = read_index(path, name, data)
        return IndexEntries(self._wanted(content.objects), content.count)

    def begin(self, path: Path, base: int) -> None:
        """Begin a segment."""
        self._kafka_offsets.begin(path, base)

    def batches(self, path: Path, chunk: Chunk, term: int) -> Iterator[Object]:
        """Yield the matching batches of a chunk of the segment, or the error for its damage."""
        return self._wanted(read_chunk(path, chunk, term, self._kafka_offsets))

    def records(
        self, origin: Origin, file: LogFile, chunk: Chunk, *, in_blocks: bool
    ) -> Iterator[Object | Block]:
        """Yield the objects of `dump_chunk` for batches of data, which alone hold records."""
        if chunk.damage:
            yield damage_object(origin.path, chunk.damage)
            return
        data = chunk.table[chunk.table.batch_type == record_batch.RAFT_DATA]
        if len(data):
            chunk = chunk.with_table(data)
            yield from dump_chunk(origin, file, chunk, self._chosen, in_blocks=in_blocks)

    def _wanted(self, objects: Iterator[Object]) -> Iterator[Object]:
        for obj in objects:
            if obj["type"] == "error" or is_wanted(obj, self._chosen):
                yield obj


def read_chunk(path: Path, chunk: Chunk, term: int, kafka: KafkaOffsets) -> Iterator[Object]:
    """Yield the batches of a chunk of a segment, or the error for its damage.

    `kafka` is given the chunks of all segments in their order.
    """
    damage = chunk.damage
    if damage:
        kafka.lose()
        yield damage_object(path, damage)
        return
    table = chunk.table
    offsets = kafka.add(table)
    for row in range(len(table)):
        first, last = (int(column[row]) for column in offsets)
        batch = table.row(row)
        fields = _batch(batch, term, or_null(first), or_null(last))
        yield entry(path, FileKind.REDPANDA_SEGMENT, fields)
        yield from _impossible(path, batch)


def _impossible(path: Path, batch: dict[str, int]) -> Iterator[Object]:
    """Yield the errors for fields that no broker writes, in a batch with sound CRCs."""
    header = header_of(batch)
    position, size, base = batch["position"], batch["size"], header.base_offset
    if header.type < 0:
        text = f"the batch at Raft offset {base} has type {header.type}, which no release has"
        yield error_object(path, "type", text, position, size)
    if header.last_offset_delta < 0 or batch["last_offset"] < base:
        text = (
            f"the batch at Raft offset {base} ends {header.last_offset_delta} offsets later, which "
            "is before its start or is no offset of 64 bits"
        )
        yield error_object(path, "offsets", text, position, size)


def damage_object(path: Path, damage: Damage) -> Object:
    """Return the ``error`` for damage."""
    reason = _reason(damage)
    message = f"{_REASONS[reason]}; {wording.count(damage.length, 'byte')} are not a batch"
    return error_object(path, reason, message, damage.position, damage.length)


def _reason(damage: Damage) -> str:
    if damage.reason is DamageReason.INCOMPLETE:
        return "short-header" if damage.length < HEADER_SIZE else "short-body"
    return "header-crc" if damage.reason is DamageReason.HEADER else str(damage.reason)


def _batch(batch: dict[str, int], term: int, first: int | None, last: int | None) -> Object:
    attributes = batch["attributes"]
    by_broker = bool(attributes & TIMESTAMP_TYPE)
    header = header_of(batch)
    return {
        "position": batch["position"],
        "size": header.size,
        "batch_type": record_batch.type_name(header.type),
        "term": term,
        "raft_base_offset": header.base_offset,
        "raft_last_offset": header.last_offset,
        "kafka_base_offset": first,
        "kafka_last_offset": last,
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
        text = f"expected an index of version 3 to 9, found version {version}, which cannot be read"
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
        text = (
            f"expected three indexes of the same length, found {min(sizes)} to {max(sizes)} entries"
        )
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
