"""The entries of the small files of a data directory as plain dicts.

Each function takes the whole content and yields the entries that can be read. The format's `check`
finds breaches of its own rules, which `state.problems` turns into ``error`` objects.
"""

from collections.abc import Callable, Iterator
from typing import Any

from logtool.dump.records import Object
from logtool.dump.state import FileEntries
from logtool.dump.values import or_null
from logtool.formats import (
    clean_shutdown,
    leader_epoch_checkpoint,
    meta_properties,
    offset_checkpoint,
    partition_metadata,
    producer_snapshot,
    quorum_state,
)
from logtool.formats.names import FileKind
from logtool.formats.record_batch import SEQUENCES
from logtool.times import rfc3339


def read_state(kind: FileKind, data: bytes, end_offset: int | None) -> FileEntries:
    """Decode a small file; `end_offset` is the number in its name."""
    if kind is FileKind.PRODUCER_SNAPSHOT:
        snapshot = producer_snapshot.parse(data)
        findings = producer_snapshot.check(snapshot, end_offset=end_offset)
        return FileEntries(entries=_producers(snapshot), findings=findings, count=len(snapshot))
    return _READERS.get(kind, _offset_checkpoint)(data)


def _producers(snapshot: producer_snapshot.ProducerSnapshot) -> Iterator[Object]:
    names = producer_snapshot.ENTRY.names or ()
    for number, row in enumerate(snapshot.entries.tolist()):
        raw: dict[str, int] = dict(zip(names, row, strict=True))
        remembered = raw["last_offset"] >= 0
        last, delta = raw["last_sequence"], raw["offset_delta"]
        yield {
            "position": producer_snapshot.HEADER.size + number * producer_snapshot.ENTRY_SIZE,
            "producer_id": raw["producer_id"],
            "producer_epoch": raw["producer_epoch"],
            "coordinator_epoch": raw["coordinator_epoch"],
            "current_txn_first_offset": or_null(raw["current_txn_first_offset"]),
            "timestamp_ms": raw["timestamp"],
            "timestamp": rfc3339(or_null(raw["timestamp"])),
            "first_sequence": (last - delta) % SEQUENCES if remembered else None,
            "last_sequence": last if remembered else None,
            "last_offset": raw["last_offset"] if remembered else None,
            "offset_delta": delta if remembered else None,
        }


def _offset_checkpoint(data: bytes) -> FileEntries:
    checkpoint = offset_checkpoint.parse(data)
    entries = (
        {
            "position": row.line.position,
            "topic": row.topic,
            "partition": row.partition,
            "offset": row.offset,
        }
        for row in checkpoint.rows
    )
    return FileEntries(
        entries=entries, findings=offset_checkpoint.check(checkpoint), count=len(checkpoint.rows)
    )


def _leader_epochs(data: bytes) -> FileEntries:
    checkpoint = leader_epoch_checkpoint.parse(data)
    entries = (
        {
            "position": row.line.position,
            "leader_epoch": row.leader_epoch,
            "start_offset": row.start_offset,
        }
        for row in checkpoint.rows
    )
    return FileEntries(
        entries=entries,
        findings=leader_epoch_checkpoint.check(checkpoint),
        count=len(checkpoint.rows),
    )


def _partition_metadata(data: bytes) -> FileEntries:
    metadata = partition_metadata.parse(data)
    fields = {"position": 0, "version": metadata.version, "topic_id": metadata.topic_id}
    return FileEntries(entries=iter([fields]), findings=partition_metadata.check(metadata), count=1)


def _meta_properties(data: bytes) -> FileEntries:
    meta = meta_properties.parse(data)
    entries = [
        {"position": element.line.position, "key": element.key, "value": element.value}
        for element in meta.elements
        if element.key is not None
    ]
    return FileEntries(
        entries=iter(entries), findings=meta_properties.check(meta), count=len(entries)
    )


def _clean_shutdown(data: bytes) -> FileEntries:
    marker = clean_shutdown.parse(data)
    fields = {"position": 0, "version": marker.version, "broker_epoch": marker.broker_epoch}
    return FileEntries(entries=iter([fields]), findings=clean_shutdown.check(marker), count=1)


def _quorum_state(data: bytes) -> FileEntries:
    state = quorum_state.parse(data)
    content: dict[str, Any] = state.content or {}
    fields = {
        "position": 0,
        "data_version": state.data_version,
        "leader_epoch": state.leader_epoch,
        "leader_id": state.leader_id,
        "voted_id": state.voted_id,
        "voted_directory_id": state.voted_directory_id,
        "current_voters": None if state.current_voters is None else list(state.current_voters),
        "cluster_id": content.get("clusterId"),
        "applied_offset": content.get("appliedOffset"),
    }
    count = 0 if state.content is None else 1
    return FileEntries(
        entries=iter([fields][:count]), findings=quorum_state.check(state), count=count
    )


def _lock(data: bytes) -> FileEntries:
    return FileEntries(entries=iter(()), findings=iter(()), count=0)


_READERS: dict[FileKind, Callable[[bytes], FileEntries]] = {
    FileKind.LEADER_EPOCH_CHECKPOINT: _leader_epochs,
    FileKind.PARTITION_METADATA: _partition_metadata,
    FileKind.META_PROPERTIES: _meta_properties,
    FileKind.CLEAN_SHUTDOWN: _clean_shutdown,
    FileKind.QUORUM_STATE: _quorum_state,
    FileKind.LOCK: _lock,
}
