"""Partitions that a broker loads in a special way, for unit tests and for tests with a broker.

Each function that writes writes the files of one partition into a directory.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from logtool.formats import control_record, producer_snapshot, record, record_batch

FAR = 2**31
"""An offset out of reach of a segment that begins at 0."""
FOREIGN = (
    "00000000000000000002.log.bak", "00000000000000000002.orig.log", "3.note", "+3.foo",
    "00000000000000000003.snapshot-keep", "00000000000000000003.txt",
)  # fmt: skip
"""Names of files that Kafka did not write, and that a broker deletes with a swap of 2 to 3."""
KEPT = (
    "00000000000000000002", "00000000000000000003-0000000001.checkpoint", "README",
    "00000000000000000003-0000000001-123.checkpoint.part", "00000000000000000004.txt", "1.note",
)  # fmt: skip
"""Names of files that stay."""


def batch(offset: int, records: int = 1) -> bytes:
    """Return a batch of records that were not compressed."""
    made = [record.Record(0, at, b"key", b"value %d" % (offset + at)) for at in range(records)]
    return record_batch.encode(
        record.encode(made), base_offset=offset, last_offset_delta=records - 1,
        record_count=records, leader_epoch=0, base_timestamp=1, max_timestamp=1,
    )  # fmt: skip


def with_magic(data: bytes, magic: int, codec: int) -> bytes:
    """Return a batch with another magic byte, as of messages with a codec: in the CRC of magic 2.

    Its last bytes are changed until the first byte of the sound CRC reads as the codec.
    """
    offset = int.from_bytes(data[:8], "big")
    for stamp in range(1, 4096):
        made = record_batch.encode(
            data[61:], base_offset=offset, last_offset_delta=_delta(data),
            record_count=_delta(data) + 1, leader_epoch=0, base_timestamp=stamp,
            max_timestamp=stamp,
        )  # fmt: skip
        if made[17] & 7 == codec:
            return made[:16] + bytes([magic]) + made[17:]
    raise AssertionError(f"no CRC reads as codec {codec}")


def _delta(data: bytes) -> int:
    return int.from_bytes(data[23:27], "big")


def index_entry(offset: int, position: int) -> bytes:
    """Return an entry of an offset index."""
    return offset.to_bytes(4, "big") + position.to_bytes(4, "big")


def write_flipped(home: Path, where: int, magic: int, codec: int, entry: int | None = None) -> None:
    """Write five batches of two records; the magic byte of one of them was changed.

    `entry` is the batch to which the only entry of the offset index leads.
    """
    made = [batch(2 * at, 2) for at in range(5)]
    made[where] = with_magic(made[where], magic, codec)
    size = len(made[0])
    assert {len(one) for one in made} == {size}
    index = b"" if entry is None else index_entry(2 * entry + 1, size * entry)
    _write(home, 0, b"".join(made), index)


def write_far(home: Path, tail: bytes) -> None:
    """Write a segment without index, with offsets out of reach and bytes behind its batches."""
    _write(home, 0, batch(FAR) + batch(FAR + 1) + tail, None)


def write_swap(home: Path) -> None:
    """Write a swap that was committed, and files of other names."""
    _write(home, 0, batch(0) + batch(1), b"")
    _write(home, 2, batch(2) + batch(3), b"")
    (home / f"{2:020d}.log.swap").write_bytes(batch(3))
    for name in (*FOREIGN, *KEPT):
        (home / name).write_bytes(b"of an operator")


def _write(home: Path, base: int, log: bytes, index: bytes | None) -> None:
    home.mkdir(parents=True, exist_ok=True)
    (home / f"{base:020d}.log").write_bytes(log)
    if index is not None:
        (home / f"{base:020d}.index").write_bytes(index)
        (home / f"{base:020d}.timeindex").write_bytes(b"")
    (home / "leader-epoch-checkpoint").write_bytes(b"0\n1\n0 0\n")


def write_bad_count(home: Path, count: int, snapshot: int) -> None:
    """Write a batch of records and a control batch of a producer with a wrong CRC and that count.

    `snapshot` is the offset of the producer snapshot, which has no producer.
    """
    bad = record_batch.encode(
        b"", base_offset=2, last_offset_delta=0, record_count=count, leader_epoch=0,
        base_timestamp=1, max_timestamp=1, attributes=record_batch.CONTROL, producer_id=7,
        producer_epoch=0,
    )  # fmt: skip
    _write(home, 0, batch(0, 2) + bad[:17] + bytes([bad[17] ^ 1]) + bad[18:], b"")
    empty = np.zeros(0, producer_snapshot.ENTRY)
    content = producer_snapshot.encode(producer_snapshot.build(empty))
    (home / f"{snapshot:020d}.snapshot").write_bytes(content)


def write_emptied_transaction(home: Path, *, indexed: bool) -> None:
    """Write a transaction that compaction left without records, and the marker that aborts it."""
    key, value = control_record.encode_end_transaction(commit=False, coordinator_epoch=0)
    common = {"leader_epoch": 0, "base_timestamp": 1, "max_timestamp": 1, "producer_id": 7,
              "producer_epoch": 0}  # fmt: skip
    emptied = record_batch.encode(
        b"", base_offset=0, last_offset_delta=1, record_count=0, base_sequence=0,
        attributes=record_batch.TRANSACTIONAL, **common,
    )  # fmt: skip
    marker = record_batch.encode(
        record.encode([record.Record(0, 0, key, value)]), base_offset=2, last_offset_delta=0,
        record_count=1, attributes=record_batch.TRANSACTIONAL | record_batch.CONTROL, **common,
    )  # fmt: skip
    _write(home, 0, emptied + marker, b"" if indexed else None)
