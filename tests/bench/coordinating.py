"""Groups of a large ``__consumer_offsets``: rows for `__main__.ROWS`.

The topic has one partition, and 10 records for each key that is live, all of them commits as
brokers of 4.3 write them, in batches of 500. All batches are made of one, in which group and
partition are changed.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from bench.measure import peak_memory, seconds_of, spread
from bench.rows import Bar, Bench, Row, logtool_path
from crc32c import crc32c
from group_records import FIRST_MS, encoded

from logtool.formats import record, record_batch
from logtool.formats.names import CONSUMER_OFFSETS
from logtool.formats.record_batch import Column
from logtool.groups.loading import load
from logtool.log import opening
from logtool.log.dir import Partition

_PER_BATCH = 500
_TIMES = 10
"""Records for each key."""
_PARTITIONS = 100
"""Partitions of the topic that each group reads."""
_TOPIC_ID = "J8aAPcfLQt2bqs1JT_rMgQ"
_CRC_AT, _CRC_FROM = 17, 21
"""Positions of a batch's checksum and of the first byte that it covers."""


def groups(bench: Bench) -> Iterator[Row]:
    """Measure the rate of decoded records, and the time and memory of the command."""
    keys = 50_000 if bench.quick else 1_000_000
    home = bench.home / f"groups-{keys}"
    log = _generate(home, keys)
    size = f"{keys * _TIMES:,} records of {keys:,} keys, {log.stat().st_size / 1e6:.0f} MB"
    listed = opening.open_partition(log.parent)
    rates = [keys * _TIMES / 1e6 / _processor_time(listed) for _ in range(bench.count)]
    title = "group records read, decoded into columns and replayed, of processor time"
    yield Row(title, rates, Bar(at_least=1), "M/s", size)
    command = [logtool_path(), "groups", "-f", "ndjson", str(home)]
    took = [seconds_of(command) for _ in range(bench.count)]
    yield Row(
        "groups -f ndjson, every offset printed, whole process: processor time",
        [worked for _, worked in took],
        None,
        "s",
        f"{size}; {spread([elapsed for elapsed, _ in took])[0]:.3g} s by the clock",
    )
    peaks = [peak_memory(command) / 1e6 for _ in range(bench.count)]
    yield Row("peak memory of groups -f ndjson", peaks, Bar(at_most=300), "MB", size)


def _processor_time(listed: Partition) -> float:
    """Return the seconds that a processor worked to replay a log."""
    begin = time.process_time()
    load(listed, lambda _: None)
    return time.process_time() - begin


def _generate(home: Path, keys: int) -> Path:
    """Write the log, unless it is there; return it."""
    log = home / f"{CONSUMER_OFFSETS}-0" / f"{0:020d}.log"
    if log.exists():
        return log
    template, groups_at, numbers_at = _template()
    log.parent.mkdir(parents=True, exist_ok=True)
    unfinished = log.with_suffix(".part")
    data = np.frombuffer(bytes(template), np.uint8).copy()
    powers = 10 ** np.arange(7, -1, -1)
    with unfinished.open("wb") as file:
        for first in range(0, keys * _TIMES, _PER_BATCH):
            # Neighbours in the log are far from each other among the keys.
            key = np.arange(first, first + _PER_BATCH) * 7919 % keys
            group, number = np.divmod(key, _PARTITIONS)
            digits = group[:, None] // powers % 10 + ord("0")
            data[groups_at[:, None] + np.arange(8)] = digits
            data[numbers_at + 3] = number
            data[:8] = np.frombuffer(first.to_bytes(8, "big"), np.uint8)
            crc = crc32c(data[_CRC_FROM:].data)
            data[_CRC_AT:_CRC_FROM] = np.frombuffer(crc.to_bytes(4, "big"), np.uint8)
            file.write(data.data)
    unfinished.rename(log)
    return log


def _template() -> tuple[bytes, Column, Column]:
    """Return a batch and the positions of each group's and partition's number in it."""
    records = []
    for number in range(_PER_BATCH):
        key = {"group": f"billing-{number:08d}", "topic": "orders", "partition": 0}
        value = {"offset": 4711, "metadata": "", "commitTimestamp": FIRST_MS, "topicId": _TOPIC_ID}
        records.append(
            record.Record(
                number, key=encoded("key", 1, 0, key), value=encoded("value", 1, 4, value)
            )
        )
    data = record_batch.encode(
        record.encode(records), base_offset=0, last_offset_delta=_PER_BATCH - 1,
        record_count=_PER_BATCH, leader_epoch=0, base_timestamp=FIRST_MS, max_timestamp=FIRST_MS,
    )  # fmt: skip
    at = [data.index(b"billing-%08d" % number) + 8 for number in range(_PER_BATCH)]
    groups_at = np.array(at)
    topic = len("orders") + 2
    return data, groups_at, groups_at + 8 + topic


ROWS = {"groups": groups}
