"""A partition of many segments of one record each, with all the files that a broker writes."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from logtool.formats import producer_snapshot, record, record_batch

FIRST_TIME = 1_700_000_000_000


def write(partition: Path, bases: Iterable[int]) -> None:
    """Write a segment at each base offset; all but the first have a producer snapshot."""
    partition.mkdir(parents=True, exist_ok=True)
    payload = record.encode([record.Record(0, 0, b"key", b"value")])
    nobody = producer_snapshot.encode(producer_snapshot.build(np.zeros(0, producer_snapshot.ENTRY)))
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
            stem.with_suffix(".snapshot").write_bytes(nobody)
    (partition / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (partition / "partition.metadata").write_text("version: 0\ntopic_id: J8aAPcfLQt2bqs1JT_rMgQ")
