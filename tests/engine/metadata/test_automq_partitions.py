"""The partitions of a bucket equal what a consumer read: offsets, times, keys and values."""

import json
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from logtool.log.automq_bucket import ExtentSource, open_bucket
from logtool.log.record_table import RecordTable
from logtool.log.records import records
from logtool.metadata import image
from logtool.metadata.automq_partitions import AutomqCluster, StreamPartition
from logtool.metadata.state import MetadataImage
from logtool.metadata.streams import COMPOSITE, BucketObject, ObjectState, Stream, StreamObject

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


@pytest.fixture
def home(scenario: Callable[[str], Path], tmp_path: Path) -> Path:
    """Return a copy of the killed node that a test may damage."""
    return Path(shutil.copytree(scenario("automq/broker-crash"), tmp_path / "home"))


def reread(home: Path) -> AutomqCluster:
    return AutomqCluster(image.read(home / "meta"), open_bucket(home / "s3", CLUSTER))


def the_partition(found: AutomqCluster, topic: str, number: int) -> StreamPartition:
    return found.partition(found.image.topics[topic], number)


def log_stream(partition: StreamPartition) -> int:
    return partition.log.streams["log"]


def test_a_missing_object_is_a_fault_with_its_offsets(home: Path) -> None:
    before = reread(home)
    stream_id = log_stream(the_partition(before, "orders", 0))
    objects = before.image.streams.stream_objects[stream_id]
    lost = min(objects.values(), key=lambda one: one.start_offset)
    before.bucket.objects[lost.object_id].path.unlink()
    partition = the_partition(reread(home), "orders", 0)
    places = {(one.first_offset, one.end_offset) for one in partition.faults}
    assert (lost.start_offset, lost.end_offset) in places
    found = [offset for offset, _, _ in rows(partition)]
    whole = [offset for offset, _, _ in rows(the_partition(before, "orders", 1))]
    assert found == [n for n in range(730) if not lost.start_offset <= n < lost.end_offset]
    assert whole == list(range(130))


def test_a_damaged_data_block_is_a_fault_at_its_place(home: Path) -> None:
    before = reread(home)
    stream_id = log_stream(the_partition(before, "orders", 0))
    lost = min(before.image.streams.stream_objects[stream_id])
    path = before.bucket.objects[lost].path
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)
    faults = the_partition(reread(home), "orders", 0).faults
    assert (path, 0) in {(one.path, one.position) for one in faults}


def test_a_record_behind_a_gap_of_the_wal_is_dropped(home: Path) -> None:
    before = reread(home)
    stream_id = log_stream(the_partition(before, "orders", 0))
    wal = before.wal(1)
    holders = [
        file for file, read, kept in wal.parts
        if stream_id in read.records.stream_id[list(kept)].tolist()
    ]  # fmt: skip
    holders[0].path.unlink()
    found = reread(home)
    assert found.wal(1).order.behind_gap
    content = found.stream(stream_id)
    assert content.end_offset < before.stream(stream_id).end_offset
    partition = the_partition(found, "orders", 0)
    assert partition.log_end_offset == 700
    assert [offset for offset, _, _ in rows(partition)] == list(range(700))


def test_a_closed_stream_takes_nothing_from_a_wal(scenario: Callable[[str], Path]) -> None:
    found = cluster(scenario, "broker-clean")
    assert not any(one.is_open for one in found.image.streams.streams.values())
    assert found.wal(1).streams == set()
    assert found.wal(1).fault is None


def test_a_composite_object_is_read_from_those_that_it_links(
    scenario: Callable[[str], Path],
) -> None:
    """Object 2300 links 2100 and the two that 2200 links: one stream from 109 to 196."""
    bucket = open_bucket(scenario("automq/made") / "objects", "Zm9ybWF0LXRlc3QtMDAwMQ")
    built = MetadataImage()
    streams = built.streams
    streams.streams[50] = Stream(50, 1, 0, 109, False, {})
    streams.end_offsets[50] = 196
    streams.stream_objects[50] = {2300: StreamObject(50, 2300, 109, 196)}
    streams.objects[2300] = BucketObject(2300, 0, ObjectState.COMMITTED, COMPOSITE, 0)
    found = AutomqCluster(built, bucket)
    content = found.stream(50)
    assert content.faults == ()
    assert content.extents.end_offset.tolist()[-1] == 196
    base = content.extents.base_offset.tolist()
    assert base[1:] == content.extents.end_offset.tolist()[:-1]
    assert base[0] <= 109
    assert found.linked == {2100, 2003, 2004}
    source = ExtentSource(content.extents)
    whole = bytearray(source.size)
    assert source.read_into(memoryview(whole), 0) == source.size
    for at in range(0, source.size, 97):
        part = bytearray(13)
        count = source.read_into(memoryview(part), at)
        assert part[:count] == whole[at : at + 13]
        file, position = source.locate(at)
        assert file.path.read_bytes()[position] == whole[at]
    assert source.read_into(memoryview(bytearray(1)), source.size) == 0
