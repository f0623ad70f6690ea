"""Many segments of one record each, with all the files that a broker writes."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from logtool.formats import producer_snapshot, record, record_batch

FIRST_TIME = 1_700_000_000_000
SMALLEST = 73
"""Bytes of a segment with a record that has a key and an empty value, or a few more."""
_NO_NODE = producer_snapshot.encode(producer_snapshot.build(np.zeros(0, producer_snapshot.ENTRY)))


def write_log_dir(home: Path, partitions: int, segments: int, size: int) -> None:
    """Write a log dir that was stopped in order, of partitions with segments of `size` bytes."""
    keys = [(f"bench.{number // 100}", number % 100) for number in range(partitions)]
    value = bytes(size - SMALLEST)
    for topic, number in keys:
        path = home / f"{topic}-{number}"
        write(path, range(segments), value)
        (path / f"{segments:020d}.snapshot").write_bytes(_NO_NODE)
    for name, offset in (
        ("recovery-point-offset-checkpoint", segments),
        ("replication-offset-checkpoint", segments),
        ("log-start-offset-checkpoint", 0),
    ):
        rows = "".join(f"{topic} {number} {offset}\n" for topic, number in keys)
        (home / name).write_text(f"0\n{len(keys)}\n{rows}")
    (home / "meta.properties").write_text(
        "version=1\nnode.id=1\ncluster.id=J8aAPcfLQt2bqs1JT_rMgQ\n"
        "directory.id=M8fP2Se3RDqnCg9DuxYniA\n"
    )
    (home / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')


def write(partition: Path, bases: Iterable[int], value: bytes = b"value") -> None:
    """Write a segment at each base offset; all but the first have a producer snapshot."""
    partition.mkdir(parents=True, exist_ok=True)
    payload = record.encode([record.Record(0, 0, b"key", value)])
    for base in bases:
        stem, stamp = partition / f"{base:020d}", FIRST_TIME + base
        data = record_batch.encode(
            payload, base_offset=base, last_offset_delta=0, record_count=1, leader_epoch=0,
            base_timestamp=stamp, max_timestamp=stamp,
        )  # fmt: skip
        stem.with_suffix(".log").write_bytes(data)
        stem.with_suffix(".index").touch()
        stem.with_suffix(".timeindex").write_bytes(stamp.to_bytes(8, "big") + bytes(4))
        if base:
            stem.with_suffix(".snapshot").write_bytes(_NO_NODE)
    (partition / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (partition / "partition.metadata").write_text("version: 0\ntopic_id: J8aAPcfLQt2bqs1JT_rMgQ")
