"""The reading of ``bootstrap.checkpoint`` at a start: by size fields alone; no CRC is compared.

A node reads the file at every start, from the log dir with its metadata log. Source:
``BootstrapDirectory``, ``BatchFileReader`` (Kafka 3.3 to 3.9; 4.3 by its behaviour).
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from logtool.disk import files
from logtool.errors import FormatError, UnreadableError
from logtool.findings import Broker, Finding
from logtool.formats import control_record
from logtool.formats.messages import codec, internal_topics, schema
from logtool.formats.names import CLUSTER_METADATA
from logtool.formats.record_batch import HEADER_SIZE, MAGIC
from logtool.loading.kafka_reading import BatchHeader, StartFailsError, headers
from logtool.loading.shadow import ShadowFile
from logtool.log.record_table import Unread
from logtool.log.records import batch_records, one_batch
from logtool.metadata.releases import METADATA_VERSION

_FEATURE_LEVEL = 12
"""Type of the record that a bootstrap file is there for."""
_MAGIC_AT = 16
"""Place of the magic byte in a batch."""
_CONTROL = {
    control_record.LEADER_CHANGE: "LeaderChangeMessage",
    control_record.SNAPSHOT_HEADER: "SnapshotHeaderRecord",
    control_record.SNAPSHOT_FOOTER: "SnapshotFooterRecord",
}
"""The control records that the reader takes."""


def judged(
    found: Iterable[Finding | UnreadableError], path: Path, *, is_read: bool = True
) -> Iterator[Finding | UnreadableError]:
    """Yield the findings about the file, which stop a broker only if it cannot read the file.

    `is_read` is False in a log dir without the metadata log, where no start reads the file.
    """
    items = list(found)
    if any(isinstance(one, UnreadableError) for one in items):
        yield from items
        return
    refused = read_failure(path) if is_read else None
    broker = Broker.REFUSES if refused else Broker.NEVER
    stopping = False
    for one in items:
        if isinstance(one, Finding) and one.broker is Broker.REFUSES:
            stopping = True
            yield replace(one, broker_override=broker)
        else:
            yield one
    if refused and not stopping:
        yield Finding("kraft-snapshot/damaged", refused.reason, path=path)


def read_failure(path: Path) -> FormatError | StartFailsError | None:
    """Return why a broker cannot read the file; None if it can."""
    try:
        _read(files.read_small(path))
    except (FormatError, StartFailsError) as error:
        return error
    return None


def _read(data: bytes) -> None:
    """Read the file as a broker does, to the last batch.

    FormatError with the byte where it cannot, StartFailsError for a size or a magic that no batch
    has, or without a feature level.
    """
    file = ShadowFile(None, len(data), data)
    names = [name for header in headers(file, 0, len(data)) for name in _features(data, header)]
    if METADATA_VERSION not in names:
        raise StartFailsError("the metadata log has no feature level of metadata.version")


def _features(data: bytes, header: BatchHeader) -> Iterator[str]:
    """Yield the name of each feature level of a batch, after a look at each of its records.

    The byte of an error counts from the start of the file; in a compressed batch, where the bytes
    of a record have no place in the file, it is that of the batch.
    """
    if not MAGIC <= header.magic < 128:
        raise StartFailsError(f"magic {header.magic} at byte {header.position}, expected {MAGIC}")
    if header.size < HEADER_SIZE:
        raise StartFailsError(f"the batch at byte {header.position} is smaller than a header")
    batch = bytearray(data[header.position : header.position + header.size])
    batch[_MAGIC_AT] = MAGIC  # a higher number is read like it
    chunk = one_batch(memoryview(batch), header.position)
    is_control, is_plain = bool(chunk.table.is_control[0]), not chunk.table.codec[0]
    tables = []
    for part in batch_records(chunk, 0):
        if isinstance(part, Unread):
            inside = HEADER_SIZE + part.error.position if part.in_records and is_plain else 0
            raise FormatError(part.reason, header.position + inside)
        tables.append(part)
    if not sum(len(table.offset) for table in tables):
        raise StartFailsError(f"the batch at byte {header.position} has no record")
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
                raise FormatError(error.reason, header.position + inside) from None


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
