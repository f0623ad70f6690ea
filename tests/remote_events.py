"""A log of ``__remote_log_metadata``, and partitions with it, in tests."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from group_records import OffsetsLog
from metadata_records import config, log_dir_of, partition, topic, varint

from logtool.formats import leader_epoch_checkpoint, record, record_batch
from logtool.formats.java_text import format_uuid
from logtool.formats.messages import codec, schema
from logtool.formats.messages.remote_log import TOPIC, SegmentState

FIRST_MS = 1_700_000_000_000
ORDERS, METADATA = "AAAAAAAAAAAAAAAAAAAAAg", "AAAAAAAAAAAAAAAAAAAAAw"
SIZE = 1000
"""Bytes of each remote segment."""


def segment_id(number: int) -> str:
    return format_uuid(number.to_bytes(16, "big"))


class EventLog(OffsetsLog):
    """Records of the topic; segment N has offsets 10 N through 10 N + 9 unless others are given."""

    def __init__(self, topic: str = "orders", topic_id: str = ORDERS, number: int = 0) -> None:
        super().__init__(TOPIC)
        self.of = {"name": topic, "id": topic_id, "partition": number}
        self.now = FIRST_MS

    def value(self, kind: int, fields: Mapping[str, Any]) -> bytes:
        """Return a value as a broker writes it."""
        message = schema.table("remote_log_metadata").find("value", kind)
        assert message
        return varint(1) + varint(kind) + varint(0) + codec.encode(message, 0, dict(fields))

    def event(self, value: bytes | None, key: bytes | None = None) -> int:
        """Add a record, a second after the one before."""
        self.now += 1000
        body = record.encode([record.Record(0, key=key, value=value)])
        self.batches.append(
            record_batch.encode(
                body, base_offset=self.end, last_offset_delta=0, record_count=1, leader_epoch=0,
                base_timestamp=self.now, max_timestamp=self.now,
            )
        )  # fmt: skip
        self.end += 1
        return self.end - 1

    def start(
        self,
        number: int,
        *,
        first: int | None = None,
        last: int | None = None,
        epochs: Sequence[tuple[int, int]] | None = None,
        size: int = SIZE,
        max_ms: int = FIRST_MS,
        key: bytes | None = None,
    ) -> int:
        """Begin the copy of a segment."""
        begin = 10 * number if first is None else first
        end = 10 * number + 9 if last is None else last
        given = epochs if epochs is not None else [(0, begin)]
        fields = {
            "remoteLogSegmentId": {"topicIdPartition": self.of, "id": segment_id(number)},
            "startOffset": begin, "endOffset": end, "brokerId": 1, "maxTimestampMs": max_ms,
            "eventTimestampMs": self.now + 1000,
            "segmentLeaderEpochs": [{"leaderEpoch": e, "offset": at} for e, at in given],
            "segmentSizeInBytes": size, "customMetadata": None,
            "remoteLogSegmentState": int(SegmentState.COPY_STARTED), "txnIndexEmpty": True,
        }  # fmt: skip
        return self.event(self.value(0, fields), key)

    def update(self, number: int, state: SegmentState, key: bytes | None = None) -> int:
        """Change the state of a segment."""
        fields = {
            "remoteLogSegmentId": {"topicIdPartition": self.of, "id": segment_id(number)},
            "brokerId": 1, "eventTimestampMs": self.now + 1000, "customMetadata": None,
            "remoteLogSegmentState": int(state),
        }  # fmt: skip
        return self.event(self.value(1, fields), key)

    def copy(self, *numbers: int, **more: Any) -> None:
        """Copy segments from start to finish."""
        for number in numbers:
            self.start(number, **more)
            self.update(number, SegmentState.COPY_FINISHED)

    def delete(self, *numbers: int) -> None:
        """Delete segments from start to finish."""
        for number in numbers:
            self.update(number, SegmentState.DELETE_STARTED)
            self.update(number, SegmentState.DELETE_FINISHED)


def log_dir(
    home: Path,
    log: EventLog,
    *,
    local: tuple[int, int] | None = (50, 60),
    log_start: int = 0,
    epochs: Sequence[tuple[int, int]] = ((0, 0),),
    settings: Mapping[str, str] | None = None,
    metadata_partitions: int = 1,
    number: int = 0,
) -> Path:
    """Write a log dir with the topic orders: its metadata log, records and local segments.

    `local` is the first local offset and the log end, in segments of ten offsets.
    """
    home.mkdir(parents=True, exist_ok=True)
    (home / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
    known = {"remote.storage.enable": "true", **(settings or {})}
    log_dir_of(
        home,
        [
            topic("orders", ORDERS), partition(ORDERS, 0, [1]), topic(TOPIC, METADATA),
            *(partition(METADATA, at, [1]) for at in range(metadata_partitions)),
            *(config(2, "orders", name, value) for name, value in known.items()),
        ],
    )  # fmt: skip
    log.write(home, number)
    if local is None:
        return home
    orders = home / "orders-0"
    orders.mkdir()
    (orders / "partition.metadata").write_text(f"version: 0\ntopic_id: {ORDERS}\n")
    rows = leader_epoch_checkpoint.encode(leader_epoch_checkpoint.build(epochs))
    (orders / "leader-epoch-checkpoint").write_bytes(rows)
    first, end = local
    for base in range(first, end, 10):
        records = [record.Record(at, key=b"k", value=b"v") for at in range(min(10, end - base))]
        epoch = max((one for one, start in epochs if start <= base), default=0)
        data = record_batch.encode(
            record.encode(records), base_offset=base, last_offset_delta=len(records) - 1,
            record_count=len(records), leader_epoch=epoch, base_timestamp=FIRST_MS,
            max_timestamp=FIRST_MS,
        )  # fmt: skip
        (orders / f"{base:020d}.log").write_bytes(data)
    (home / "log-start-offset-checkpoint").write_text(f"0\n1\norders 0 {log_start}\n")
    return home
