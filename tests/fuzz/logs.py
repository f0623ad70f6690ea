"""Targets for the contents of logs: batches, records, old messages, compression, the scan."""

import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from crc32c import crc32c

from logtool.checks.records import check_records
from logtool.dump.blocks import Origin
from logtool.dump.log import batch_objects
from logtool.dump.records import read_records
from logtool.errors import FormatError
from logtool.formats import (
    compression,
    control_record,
    legacy_batch,
    record,
    record_batch,
)
from logtool.formats.messages import cluster_metadata
from logtool.log.batches import read_batches
from logtool.log.chunk import Chunk

Target = Callable[[bytes], None]
LIMIT = 64 * 1024


class Bytes:
    """A log in memory, as the scan reads one."""

    def __init__(self, data: bytes) -> None:
        self.size = len(data)
        self._data = data

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill `buffer` from `position`."""
        some = self._data[position : position + len(buffer)]
        buffer[: len(some)] = some
        return len(some)


def with_sound_crcs(data: bytes) -> bytes:
    """Return the log with a correct CRC in every framed entry, which no fuzzer finds."""
    out, at = bytearray(data), 0
    while at + 26 <= len(out):
        (size,) = struct.unpack_from(">i", out, at + 8)
        end = at + 12 + size
        if size < 14 or end > len(out):
            break
        if out[at + 16] == 2:
            struct.pack_into(">I", out, at + 17, crc32c(bytes(out[at + 21 : end])))
        else:
            struct.pack_into(">I", out, at + 12, zlib.crc32(bytes(out[at + 16 : end])))
        at = end
    return bytes(out)


def scan(data: bytes) -> None:
    """Scan and decode a log: chunks are adjacent and have sound batches only."""
    if not data:
        return
    log = data[1:] if data[0] & 1 else with_sound_crcs(data[1:])
    at = 0
    for chunk in read_batches(Bytes(log), base_offset=0, unpack_limit=LIMIT):
        if chunk.damage:
            assert chunk.damage.position == at
            assert chunk.damage.length > 0
            assert not len(chunk.table)
        else:
            table = chunk.table
            assert len(table)
            assert int(table.position[0]) == at
            assert (table.position[1:] == table.end_position[:-1]).all()
            _read_everything(chunk, log)
        at = chunk.end_position
    assert at == len(log)


def _read_everything(chunk: Chunk, log: bytes) -> None:
    for found in check_records(chunk, LIMIT):
        assert found.message.isprintable()
        assert found.position is not None
        assert 0 <= found.position < len(log)
    for row, batch in enumerate(batch_objects(Origin(Path()), chunk.table)):
        for obj in read_records(batch, chunk, row, LIMIT):
            assert obj["type"] in ("record", "error")


def records(data: bytes) -> None:
    """Decode records, all at once and slice by slice."""
    if len(data) < 2:
        return
    count, payload = int.from_bytes(data[:2], "big", signed=True), memoryview(data)[2:]
    table, damage = record.parse(payload, count)
    assert (table.position + table.size <= len(payload)).all()
    assert (table.position[1:] == (table.position + table.size)[:-1]).all()
    for row in range(len(table)):
        headers = record.parse_headers(
            payload, int(table.header_position[row]), int(table.header_count[row])
        )
        assert len(headers) == table.header_count[row]
    slices = list(record.parse_slices(payload, count, 3))
    assert str(slices[-1][1]) == str(damage)
    assert sum(len(some) for some, _ in slices) == len(table)
    deltas = np.concatenate([some.offset_delta for some, _ in slices])
    assert (deltas == table.offset_delta).all()


def batch_header(data: bytes) -> None:
    """Read a header, write it again with a payload of that codec, and read that."""
    if len(data) < record_batch.HEADER_SIZE:
        return
    table = record_batch.parse(memoryview(data), [0])
    row = table.row(0)
    payload = data[record_batch.HEADER_SIZE :]
    attributes = row["attributes"] & ~7 | (row["attributes"] & 7) % 5
    written = record_batch.encode(
        payload, base_offset=row["base_offset"], record_count=row["record_count"],
        last_offset_delta=int.from_bytes(data[23:27], "big", signed=True),
        leader_epoch=row["leader_epoch"], attributes=attributes,
        base_timestamp=row["base_timestamp"], max_timestamp=row["max_timestamp"],
        producer_id=row["producer_id"], producer_epoch=row["producer_epoch"],
        base_sequence=row["base_sequence"],
    )  # fmt: skip
    again = record_batch.parse(memoryview(written), [0]).row(0)
    for name in ("base_offset", "last_offset", "leader_epoch", "producer_id", "base_timestamp"):
        assert again[name] == row[name], name
    body = memoryview(written)[record_batch.HEADER_SIZE :]
    assert compression.decompress(attributes & 7, body, len(payload)) == payload


def legacy(data: bytes) -> None:
    """Decode a message of magic 0 or 1 and its inner messages."""
    try:
        for message in legacy_batch.parse_messages(memoryview(data), LIMIT):
            assert message.magic in (0, 1) or not message.attributes & 7
    except FormatError as error:
        assert str(error).isprintable()


def compressed(data: bytes) -> None:
    """Decompress a stream of the codec that the first byte names; compress the rest and go back."""
    if not data:
        return
    codec, stream = data[0] % 6, data[1:]
    try:
        out = compression.decompress(codec, memoryview(stream), LIMIT)
        assert codec == compression.NONE or len(out) <= LIMIT
    except FormatError as error:
        assert str(error).isprintable()
    if codec <= compression.ZSTD:
        packed = compression.compress(codec, stream)
        assert compression.decompress(codec, memoryview(packed), len(stream)) == stream


def _split(data: bytes) -> Iterator[bytes | None]:
    """Yield a key and a value: the first byte is the length of the key, 255 is null."""
    size = data[0] if data else 255
    yield None if size == 255 else data[1 : 1 + size]
    yield data[1 + size :] if size != 255 else data[1:] or None


def control(data: bytes) -> None:
    """Decode a control record, by itself and in a batch."""
    key, value = _split(data)
    for decode in (
        lambda: control_record.parse(key, value),
        lambda: control_record.parse_batch(memoryview(data)),
    ):
        try:
            decode()
        except FormatError as error:
            assert str(error).isprintable()


def metadata(data: bytes) -> None:
    """Decode a record of the metadata log."""
    try:
        cluster_metadata.parse(data)
    except FormatError as error:
        assert str(error).isprintable()


TARGETS: dict[str, Target] = {
    "batch-header": batch_header,
    "compression": compressed,
    "control-record": control,
    "legacy": legacy,
    "metadata-record": metadata,
    "records": records,
    "scan": scan,
}
