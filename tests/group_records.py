"""A log of ``__consumer_offsets``, or of another coordinator, in tests, made batch by batch."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from logtool.formats import control_record, record, record_batch
from logtool.formats.messages import codec, schema
from logtool.formats.names import CONSUMER_OFFSETS
from logtool.formats.record_batch import CONTROL, TRANSACTIONAL

FIRST_MS = 1_700_000_000_000
NO_PRODUCER = -1


class OffsetsLog:
    """Batches of one partition; `write` puts them into a log dir."""

    def __init__(self, topic: str = CONSUMER_OFFSETS) -> None:
        self.topic = topic
        self.batches: list[bytes] = []
        self.end = 0

    def commit(
        self,
        group: str,
        topic: str,
        partition: int,
        offset: int | None,
        *,
        producer_id: int = NO_PRODUCER,
        version: int = 4,
        **more: Any,
    ) -> int:
        """Commit an offset, or delete it with None; return the record's own offset."""
        key = {"group": group, "topic": topic, "partition": partition}
        value = {"offset": offset, "metadata": "", "commitTimestamp": FIRST_MS + self.end, **more}
        return self.add(
            1, key, None if offset is None else value, version=version, producer_id=producer_id
        )

    def add(
        self,
        kind: int,
        key: Mapping[str, Any],
        value: Mapping[str, Any] | None,
        *,
        version: int = 0,
        producer_id: int = NO_PRODUCER,
    ) -> int:
        """Add a record of any type."""
        return self.raw(
            encoded("key", kind, 0, key, self.topic),
            None if value is None else encoded("value", kind, version, value, self.topic),
            producer_id=producer_id,
        )

    def raw(self, key: bytes | None, value: bytes | None, *, producer_id: int = NO_PRODUCER) -> int:
        """Add a record of these bytes."""
        attributes = 0 if producer_id == NO_PRODUCER else TRANSACTIONAL
        return self._batch(record.Record(0, key=key, value=value), attributes, producer_id)

    def end_transaction(self, producer_id: int, *, commit: bool) -> int:
        """Add the marker of a transaction."""
        key, value = control_record.encode_end_transaction(commit=commit, coordinator_epoch=0)
        marker = record.Record(0, key=key, value=value)
        return self._batch(marker, TRANSACTIONAL | CONTROL, producer_id)

    def write(self, log_dir: Path, number: int = 0) -> Path:
        """Write the log; return the directory of the partition."""
        home = log_dir / f"{self.topic}-{number}"
        home.mkdir(parents=True, exist_ok=True)
        (home / f"{0:020d}.log").write_bytes(b"".join(self.batches))
        return home

    def _batch(self, one: record.Record, attributes: int, producer_id: int) -> int:
        offset, self.end = self.end, self.end + 1
        transactional = producer_id != NO_PRODUCER
        self.batches.append(
            record_batch.encode(
                record.encode([one]),
                base_offset=offset,
                last_offset_delta=0,
                record_count=1,
                leader_epoch=0,
                attributes=attributes,
                base_timestamp=FIRST_MS + offset,
                max_timestamp=FIRST_MS + offset,
                producer_id=producer_id,
                producer_epoch=0 if transactional else -1,
                base_sequence=offset if transactional and not attributes & CONTROL else -1,
            )
        )
        return offset


def encoded(
    part: str, kind: int, version: int, value: Mapping[str, Any], topic: str = CONSUMER_OFFSETS
) -> bytes:
    """Return a key with its type, or a value with its version."""
    message = schema.table(topic.strip("_")).find(part, kind)
    assert message
    first = kind if part == "key" else version
    return first.to_bytes(2, "big") + codec.encode(message, version, dict(value))


def data_log(log_dir: Path, name: str, end: int, *, first: int = 0, topic_id: str = "") -> None:
    """Write a partition of `end` minus `first` records."""
    home = log_dir / name
    home.mkdir(parents=True, exist_ok=True)
    batch = record_batch.encode(
        record.encode([record.Record(number, value=b"v") for number in range(end - first)]),
        base_offset=first,
        last_offset_delta=end - first - 1,
        record_count=end - first,
        leader_epoch=0,
        base_timestamp=FIRST_MS,
        max_timestamp=FIRST_MS,
    )
    (home / f"{first:020d}.log").write_bytes(batch)
    if topic_id:
        (home / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
