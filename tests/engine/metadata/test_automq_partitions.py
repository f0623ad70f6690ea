"""The partitions of a bucket equal what a consumer read: offsets, times, keys and values."""

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from logtool.log.automq_bucket import open_bucket
from logtool.log.record_table import RecordTable
from logtool.log.records import records
from logtool.metadata import image
from logtool.metadata.automq_partitions import AutomqCluster, StreamPartition

CLUSTER = "rtcdRH6ESFi-nWZAzLnP0g"
STATES = {
    "broker-crash": "truth-consumer-after-restart.json",
    "broker-clean": "truth-consumer.json",
}


def cluster(scenario: Callable[[str], Path], state: str) -> AutomqCluster:
    home = scenario(f"automq/{state}")
    return AutomqCluster(image.read(home / "meta"), open_bucket(home / "s3", CLUSTER))


def rows(partition: StreamPartition) -> list[list[int]]:
    """Return offset, time and CRC of key and value of each record that a consumer gets."""
    found = []
    for segment in partition.segments:
        for chunk in segment.batches():
            assert chunk.damage is None
            for table in records(chunk):
                assert isinstance(table, RecordTable)
                control = table.of_batches(table.batches.is_control)
                for row in range(len(table.offset)):
                    offset = int(table.offset[row])
                    if control[row] or not (
                        partition.log_start_offset <= offset < partition.log_end_offset
                    ):
                        continue
                    both = (table.key(row) or b"") + (table.value(row) or b"")
                    found.append([offset, int(table.timestamp[row]), zlib.crc32(both)])
    return found


@pytest.mark.parametrize("state", STATES)
def test_every_record_of_every_partition_equals_what_a_consumer_read(
    state: str, scenario: Callable[[str], Path]
) -> None:
    truth: dict[str, Any] = json.loads(
        (scenario(f"automq/{state}.expected") / STATES[state]).read_text()
    )
    seen = 0
    for partition in cluster(scenario, state).partitions():
        assert partition.faults == ()
        name = f"{partition.topic}-{partition.number}"
        if name not in truth:
            assert partition.topic == "__auto_balancer_metrics"
            continue
        wanted = truth[name]
        assert partition.topic_id == wanted["topic_id"]
        assert partition.log_start_offset == wanted["log_start_offset"], name
        assert partition.log_end_offset == wanted["log_end_offset"], name
        assert rows(partition) == wanted["offset_timestamp_crc32_of_key_value"], name
        seen += 1
    assert seen == len(truth)


def test_ends_equal_those_after_the_recovery_of_the_broker(
    scenario: Callable[[str], Path],
) -> None:
    found = cluster(scenario, "broker-crash")
    answers = scenario("automq/broker-crash.expected") / "truth-recovery-from-broker-log.json"
    for one in json.loads(answers.read_text())["streams"]:
        content = found.stream(one["stream_id"])
        assert content.end_offset == one["end_offset_after_wal_recovery"]
        assert not content.faults
        assert content.dropped == 0
