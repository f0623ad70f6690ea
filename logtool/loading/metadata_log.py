"""Faults that stop a start in the log dir of the metadata log: in files that only KRaft reads.

The metadata log is loaded as after a kill, from its first segment, even if checkpoints and the
marker say otherwise, and a broker does not start without it. Source: ``KafkaMetadataLog``,
``FileQuorumStateStore``, ``QuorumState.initialize``, ``BootstrapDirectory``, ``BatchFileReader``
(Kafka 3.3 to 3.9; 4.3 by its behaviour).
"""

from collections.abc import Iterator
from pathlib import Path

from logtool.disk import files
from logtool.errors import FormatError
from logtool.formats import quorum_state
from logtool.formats.messages import cluster_metadata
from logtool.formats.names import CLUSTER_METADATA, FileKind
from logtool.formats.record_batch import HEADER_SIZE, MAGIC
from logtool.lazy_dataclass import dataclass
from logtool.loading.kafka_reading import BatchHeader, StartFailsError, headers
from logtool.loading.loader import load
from logtool.loading.result import Outcome, StartConditions
from logtool.loading.shadow import ShadowFile
from logtool.log import opening
from logtool.log.file import File
from logtool.log.record_table import Unread
from logtool.log.records import batch_records, one_batch

DIRECTORY = f"{CLUSTER_METADATA}-0"
_FEATURE_LEVEL = 12
"""Type of the record that a bootstrap file is there for."""
_TAKES_ANY_VERSION = (3, 3)
"""The newest release known to read a quorum-state of any version as one of version 0."""
_WITH_VERSION_1 = (3, 8)
"""The first release that knows a quorum-state of version 1."""
_KEEPS_BAD_STATE = (3, 9)
"""The first release that does not delete a quorum-state which it cannot read."""


@dataclass(frozen=True, slots=True)
class Hindrance:
    """One file that stops a start, or that a broker deletes to start without it."""

    path: Path
    text: str
    position: int | None = None
    stops: bool = True
    cause: str = ""
    """Kind of hindrance, in words of `logtool.startup.releases`; empty for damage."""


def hindrances(
    log_dir: Path, bootstrap: File | None, kafka: tuple[int, int]
) -> Iterator[Hindrance]:
    """Yield the files that hinder the start of a broker in the log dir of the metadata log."""
    if bootstrap:
        try:
            _read_bootstrap(files.read_small(bootstrap.path))
        except FormatError as error:
            yield Hindrance(bootstrap.path, error.reason, error.position)
        except StartFailsError as error:
            yield Hindrance(bootstrap.path, str(error))
    listed = opening.open_partition(log_dir / DIRECTORY)
    loaded = load(listed, StartConditions(clean=False, kafka=kafka))
    if loaded.outcome not in (Outcome.LOADS, Outcome.UNKNOWN):
        yield Hindrance(listed.path, f"the metadata log does not load: {loaded.reason}")
    state = listed.fixed.get(FileKind.QUORUM_STATE)
    if not state:
        return
    value = quorum_state.parse(files.read_small(state.path))
    refusal = quorum_state.refusal(
        value, any_version=kafka <= _TAKES_ANY_VERSION, newest=int(kafka >= _WITH_VERSION_1)
    )
    if refusal and refusal.is_io_error and kafka < _KEEPS_BAD_STATE:
        text = f"is deleted, and the node forgets its vote: {refusal.message}"
        yield Hindrance(path=state.path, text=text, position=refusal.position, stops=False)
    elif refusal:
        cause = "" if quorum_state.refusal(value) else "quorum-state"
        yield Hindrance(state.path, refusal.message, refusal.position, cause=cause)


def _read_bootstrap(data: bytes) -> None:
    """Read ``bootstrap.checkpoint`` as a broker does: by size fields alone, to the last batch.

    FormatError with the byte where it cannot, StartFailsError for a size or a magic that no batch
    has, or without a feature level.
    """
    file = ShadowFile(None, len(data), data)
    types = [kind for header in headers(file, 0, len(data)) for kind in _types(data, header)]
    if _FEATURE_LEVEL not in types:
        raise StartFailsError("the metadata log has no feature level of metadata.version")


def _types(data: bytes, header: BatchHeader) -> Iterator[int]:
    """Yield the type of each metadata record of a batch.

    The byte of an error counts from the start of the file; in a compressed batch, where the bytes
    of a record have no place in the file, it is that of the batch.
    """
    batch = memoryview(data)[header.position : header.position + header.size]
    if header.magic != MAGIC:
        raise StartFailsError(f"magic {header.magic} at byte {header.position}, expected {MAGIC}")
    chunk = one_batch(batch, header.position)
    if chunk.table.is_control[0]:
        return
    is_plain = not chunk.table.codec[0]
    tables = []
    for part in batch_records(chunk, 0):
        if isinstance(part, Unread):
            inside = HEADER_SIZE + part.error.position if part.in_records and is_plain else 0
            raise FormatError(part.reason, header.position + inside)
        tables.append(part)
    for table in tables:
        for row in range(len(table.offset)):
            start = int(table.spans.value_position[row])
            try:
                record = cluster_metadata.parse(table.value(row) or b"")
            except FormatError as error:
                inside = HEADER_SIZE + start + error.position if is_plain else 0
                raise FormatError(error.reason, header.position + inside) from None
            yield getattr(record, "type", -1)
