"""Log dirs of several nodes whose partitions have segments of ten batches, each from one producer.

Two replicas of a partition have the same bytes. A swap of two segment files leaves every batch
sound, and the producer snapshots as they were.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from logtool.formats import producer_snapshot, record, record_batch

BATCHES, RECORDS = 10, 2
SIZE = BATCHES * RECORDS
"""Offsets of a segment."""
SEGMENTS = 5
END = SEGMENTS * SIZE
START_MS = 1_700_000_000_000


def batch(producer: int, offset: int, sequence: int, *, text: str = "value") -> bytes:
    """Return a batch of a producer."""
    records = [
        record.Record(at, at, None, f"{text} {offset + at}".encode()) for at in range(RECORDS)
    ]
    return record_batch.encode(
        record.encode(records),
        base_offset=offset, last_offset_delta=RECORDS - 1, record_count=RECORDS, leader_epoch=0,
        base_timestamp=START_MS + offset, max_timestamp=START_MS + offset + RECORDS - 1,
        producer_id=producer, producer_epoch=0 if producer >= 0 else -1,
        base_sequence=sequence if producer >= 0 else -1,
    )  # fmt: skip


def snapshot(entries: Mapping[int, tuple[int, int]]) -> bytes:
    """Return a snapshot from the last offset and sequence of each producer."""
    rows = np.zeros(len(entries), producer_snapshot.ENTRY)
    for row, (producer, (offset, sequence)) in zip(rows, entries.items(), strict=True):
        row["producer_id"], row["last_offset"], row["last_sequence"] = producer, offset, sequence
        row["offset_delta"], row["timestamp"] = RECORDS - 1, START_MS + offset
        row["coordinator_epoch"] = row["current_txn_first_offset"] = -1
    return producer_snapshot.encode(producer_snapshot.build(rows))


def path_of(home: Path, partition: str, base: int, suffix: str = ".log") -> Path:
    return home / partition / f"{base:020d}{suffix}"


def write_node(
    home: Path,
    producers: Mapping[str, int],
    *,
    ahead: Mapping[str, int] | None = None,
    node: int = 1,
) -> Path:
    """Write a log dir that was stopped in order, with the producer of each partition.

    Sequences begin at 0, or at what `ahead` has for the partition.
    """
    for name, producer in producers.items():
        (home / name).mkdir(parents=True)
        first = (ahead or {}).get(name, 0)
        for base in range(0, END, SIZE):
            offsets = range(base, base + SIZE, RECORDS)
            data = [batch(producer, at, first + at, text=name) for at in offsets]
            path_of(home, name, base).write_bytes(b"".join(data))
            path_of(home, name, base, ".index").touch()
            stamp = (START_MS + base + SIZE - 1).to_bytes(8, "big")
            entry = stamp + (SIZE - RECORDS).to_bytes(4, "big")
            path_of(home, name, base, ".timeindex").write_bytes(entry)
            end = base + SIZE
            known = {} if producer < 0 else {producer: (end - 1, first + end - 1)}
            path_of(home, name, end, ".snapshot").write_bytes(snapshot(known))
        (home / name / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
        text = "version: 0\ntopic_id: J8aAPcfLQt2bqs1JT_rMgQ"
        (home / name / "partition.metadata").write_text(text)
    for file, offset in (
        ("recovery-point-offset-checkpoint", END),
        ("replication-offset-checkpoint", END),
        ("log-start-offset-checkpoint", 0),
    ):
        rows = "".join(f"{name.replace('-', ' ')} {offset}\n" for name in producers)
        (home / file).write_text(f"0\n{len(producers)}\n{rows}")
    (home / "meta.properties").write_text(
        f"version=1\nnode.id={node}\ncluster.id=J8aAPcfLQt2bqs1JT_rMgQ\n"
        f"directory.id={node}8fP2Se3RDqnCg9DuxYniA\n"
    )
    (home / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
    return home


def swap(home: Path, first: str, second: str, base: int) -> None:
    """Give each of two partitions the segment file of the other one."""
    one, two = path_of(home, first, base), path_of(home, second, base)
    data = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(data)
