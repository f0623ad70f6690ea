"""Logs of ``__transaction_state`` in tests: what a coordinator has written, and what it has not."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from logtool.formats import record_batch
from logtool.formats.messages import codec, schema
from logtool.formats.record import Record, encode

FIRST = f"{0:020d}.log"
Keyed = tuple[bytes | None, bytes | None]
_TABLE = schema.table("transaction_state")
_STATES = {"Empty": 0, "Ongoing": 1, "PrepareCommit": 2, "PrepareAbort": 3, "CompleteCommit": 4}


def key(transactional_id: str) -> bytes:
    """Return the key of a transactional id."""
    message = _TABLE.find("key", 0)
    assert message
    return b"\0\0" + codec.encode(message, 0, {"transactionalId": transactional_id})


def entry(
    transactional_id: str, state: str, producer_id: int, epoch: int = 0, *,
    partitions: dict[str, list[int]] | None = None, version: int = 1, **fields: Any,
) -> Keyed:  # fmt: skip
    """Return key and value of a record; times are those of a transaction that began just now."""
    message = _TABLE.find("value", 0)
    assert message
    value = {
        "producerId": producer_id,
        "producerEpoch": epoch,
        "transactionTimeoutMs": 60_000,
        "transactionStatus": _STATES[state],
        "transactionPartitions": [
            {"topic": topic, "partitionIds": ids} for topic, ids in (partitions or {}).items()
        ],
        "transactionLastUpdateTimestampMs": 1_795_224_772_400,
        "transactionStartTimestampMs": 1_795_224_772_300,
        **fields,
    }
    return key(transactional_id), version.to_bytes(2, "big") + codec.encode(message, version, value)


def log(records: Sequence[Keyed], *, epoch: int = 0) -> bytes:
    """Return a log with one batch for each record."""
    return b"".join(
        record_batch.encode(
            encode([Record(offset_delta=0, key=name, value=value)]),
            base_offset=offset,
            last_offset_delta=0,
            record_count=1,
            leader_epoch=epoch,
            base_timestamp=1_795_224_772_300,
            max_timestamp=1_795_224_772_300,
        )
        for offset, (name, value) in enumerate(records)
    )


def write(home: Path, *records: Keyed, number: int = 0, epoch: int = 0) -> Path:
    """Write the only segment of a partition of the topic in a log dir; returns its path."""
    folder = home / f"__transaction_state-{number}"
    folder.mkdir(exist_ok=True)
    for file in folder.iterdir():
        file.unlink()
    (folder / FIRST).write_bytes(log(records, epoch=epoch))
    return folder / FIRST
