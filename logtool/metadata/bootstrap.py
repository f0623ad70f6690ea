"""The reading of ``bootstrap.checkpoint`` at a start: by size fields alone; no CRC is compared.

A node reads the file at every start, from the log dir with its metadata log. Source:
``BootstrapDirectory``, ``BootstrapMetadata``, ``BatchFileReader`` (Kafka 3.9 and 4.3).
"""

from collections.abc import Iterator
from pathlib import Path
from struct import Struct

from logtool.disk import files
from logtool.errors import FormatError
from logtool.formats import control_record
from logtool.formats.messages import codec, internal_topics, schema
from logtool.formats.names import CLUSTER_METADATA
from logtool.formats.record_batch import HEADER_SIZE, LOG_OVERHEAD, MAGIC
from logtool.log.record_table import Unread
from logtool.log.records import batch_records, one_batch
from logtool.metadata.releases import METADATA_VERSION

_FEATURE_LEVEL = 12
"""Type of the record that a bootstrap file is there for."""
_HEAD = Struct(">qi")
_SMALLEST = 14
"""Least value of the size field of a batch of any magic."""
_MAGIC_AT = 16
"""Place of the magic byte in a batch."""
_CONTROL = {
    control_record.LEADER_CHANGE: "LeaderChangeMessage",
    control_record.SNAPSHOT_HEADER: "SnapshotHeaderRecord",
    control_record.SNAPSHOT_FOOTER: "SnapshotFooterRecord",
}
"""The control records that the reader takes."""


def read_failure(path: Path) -> FormatError | None:
    """Return why a broker cannot read the file; None if it can. UnreadableError.

    The byte of the error counts from the start of the file.
    """
    data = files.read_small(path)
    try:
        batches = _batches(data)
        names = [name for at, size in batches for name in _features(data[at : at + size], at)]
    except FormatError as error:
        return error
    if METADATA_VERSION not in names:
        return FormatError("the metadata log has no feature level of metadata.version")
    return None


def _batches(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield position and size of each whole batch, by the size fields alone."""
    position = 0
    while position < len(data) - _MAGIC_AT - 1:
        _, length = _HEAD.unpack_from(data, position)
        if length < _SMALLEST:
            raise FormatError(f"size field {length} is smaller than any batch", position)
        size = LOG_OVERHEAD + length
        if size > len(data) - position:
            return
        yield position, size
        position += size


def _features(data: bytes, position: int) -> Iterator[str]:
    """Yield the name of each feature level of a batch, after a look at each of its records.

    In a compressed batch, where the bytes of a record have no place in the file, the byte of an
    error is that of the batch.
    """
    magic = data[_MAGIC_AT]
    if not MAGIC <= magic < 128:
        raise FormatError(f"magic {magic}, expected {MAGIC}", position)
    if len(data) < HEADER_SIZE:
        raise FormatError("the batch is smaller than its header", position)
    batch = bytearray(data)
    batch[_MAGIC_AT] = MAGIC  # a higher number is read like it
    chunk = one_batch(memoryview(batch), position)
    is_control, is_plain = bool(chunk.table.is_control[0]), not chunk.table.codec[0]
    tables = []
    for part in batch_records(chunk, 0):
        if isinstance(part, Unread):
            inside = HEADER_SIZE + part.error.position if part.in_records and is_plain else 0
            raise FormatError(part.reason, position + inside)
        tables.append(part)
    if not sum(len(table.offset) for table in tables):
        raise FormatError("the batch has no record", position)
    for table in tables:
        for row in range(len(table.offset)):
            start = int(table.spans.value_position[row])
            value = table.value(row) or b""
            try:
                if is_control:
                    _read_control(table.key(row), value)
                elif name := _feature(value):
                    yield name
            except FormatError as error:
                inside = HEADER_SIZE + start + error.position if is_plain else 0
                raise FormatError(error.reason, position + inside) from None


def _read_control(key: bytes | memoryview | None, value: bytes | memoryview) -> None:
    """Read a control record; FormatError for one of a type that has no place in this file."""
    kind = control_record.parse(key, None if key is None else bytes(8)).type
    if kind not in _CONTROL:
        raise FormatError(f"control record of type {control_record.name(kind)}")
    message = schema.table("control_records").named(_CONTROL[kind])
    codec.decode(message, 0, bytes(value), whole=False)


def _feature(value: bytes | memoryview) -> str | None:
    """Return the name in a feature level; None for another record, FormatError if unreadable."""
    data = bytes(value)
    kind, version, at = internal_topics.parse_frame(data)
    message = internal_topics.framed_message(CLUSTER_METADATA, kind)
    if message is None or version < 0:
        raise FormatError(f"no release knows type {kind}, version {version}")
    known = version if version in message.versions else message.versions.last
    while True:
        try:
            fields = codec.decode(message, known, data[at:])
            return str(fields["name"]) if kind == _FEATURE_LEVEL else None
        except codec.NotTextError as error:
            bad = next(n for n in range(at + error.position, len(data)) if data[n] >= 0x80)
            data = data[:bad] + b"?" + data[bad + 1 :]
        except FormatError as error:
            raise FormatError(error.reason, at + error.position) from None
