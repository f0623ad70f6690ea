"""Keys, range index, reservation, meta streams and packed ranges of AutoMQ."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logtool.errors import FormatError
from logtool.formats import producer_snapshot
from logtool.formats.automq import (
    data_object,
    meta_stream,
    names,
    range_index,
    reservation,
    stream_ranges,
)
from logtool.formats.automq.names import ObjectKind

CLUSTER = "rtcdRH6ESFi-nWZAzLnP0g"


def bucket(scenario: Callable[[str], Path], state: str = "broker-crash") -> Path:
    return scenario(f"automq/{state}") / "s3"


@pytest.mark.parametrize("state", ["broker-crash", "broker-clean"])
def test_every_key_of_a_bucket_is_known(state: str, scenario: Callable[[str], Path]) -> None:
    home = bucket(scenario, state)
    counts = dict.fromkeys(ObjectKind, 0)
    for path in home.rglob("*"):
        if path.is_file():
            name = names.parse(str(path.relative_to(home)))
            counts[name.kind] += 1
            assert name.cluster_id == CLUSTER
            match name.kind:
                case ObjectKind.DATA:
                    assert name.key == names.data_key(CLUSTER, name.object_id or 0)
                case ObjectKind.RESERVATION:
                    assert name.key == names.reservation_key(CLUSTER, 1)
    wanted = {"broker-crash": (16, 1, 18, 1, 0, 0), "broker-clean": (45, 1, 1, 1, 0, 0)}[state]
    assert tuple(counts.values()) == wanted


def test_large_ids_and_other_keys() -> None:
    name = names.parse("0987654321/_kafka_Zm9ybWF0LXRlc3QtMDAwMQ/78187493520")
    assert (name.kind, name.object_id) == (ObjectKind.DATA, 78187493520)
    for key in (
        "1987654321/_kafka_c/78187493520", "__automq/readiness", "",
        names.wal_prefix("c", 7) + "1/wal/not-a-number", "ff" * 16 + "/_kafka_c/7/1/wal/0-1",
        "00000000/_kafka_c/node-1",
    ):  # fmt: skip
        assert names.parse(key).kind is ObjectKind.UNKNOWN
    typed = names.wal_key("c", 7, 1, 0, 64).replace("/7/", "/7_ROUTER/")
    assert names.parse(typed).wal_type == "ROUTER"


@pytest.mark.parametrize("state", ["broker-crash", "broker-clean"])
def test_range_index_and_reservation_of_a_broker(
    state: str, scenario: Callable[[str], Path]
) -> None:
    home = bucket(scenario, state)
    data = (home / names.range_index_key(CLUSTER, 1)).read_bytes()
    parsed = range_index.parse(data)
    assert range_index.encode(parsed) == data
    assert list(range_index.check(parsed)) == []
    assert range_index.build({one: ranges.tolist() for one, ranges in parsed.ranges}) == data
    for stream, ranges in parsed.ranges:
        for start, end, number in ranges.tolist():
            path = home / names.data_key(CLUSTER, number)
            if not path.exists():
                continue  # compacted since
            entries = data_object.parse(path.read_bytes()).entries
            own = entries[entries["stream_id"] == stream]
            assert own["start_offset"].min() <= start < end
    data = (home / names.reservation_key(CLUSTER, 1)).read_bytes()
    owner = reservation.parse(data)
    assert reservation.encode(owner) == data
    assert list(reservation.check(owner, node_id=1)) == []
    assert [one.code for one in reservation.check(owner, node_id=2)] == [
        "automq-reservation/format"
    ]
    assert owner.epoch is not None
    assert reservation.build(1, owner.epoch) == data


SAMPLES = {
    range_index: range_index.build({3: [(0, 5, 7), (5, 9, 8)], 4: []}),
    reservation: reservation.build(1, 99),
}


@pytest.mark.parametrize("module", SAMPLES, ids=lambda one: one.__name__.rpartition(".")[2])
def test_every_cut_is_found_and_every_flip_survives(module: Any) -> None:
    sample = SAMPLES[module]
    for size in range(len(sample)):
        assert list(module.check(module.parse(sample[:size])))
    for position in range(len(sample)):
        for bit in range(8):
            flipped = bytearray(sample)
            flipped[position] ^= 1 << bit
            parsed = module.parse(bytes(flipped))
            assert module.encode(parsed) == flipped
            list(module.check(parsed))
    ranges = range_index.build({3: [(5, 9, 8), (0, 5, 7)]})
    assert len(list(range_index.check(range_index.parse(ranges)))) == 1


@pytest.mark.parametrize("module", SAMPLES, ids=lambda one: one.__name__.rpartition(".")[2])
@given(data=st.binary(max_size=100))
def test_any_bytes_survive(module: Any, data: bytes) -> None:
    assert module.encode(module.parse(data)) == data
    list(module.check(module.parse(data)))


def meta_entries(home: Path) -> list[tuple[int, meta_stream.Entry, bytes]]:
    """Return the entries of the meta streams in the objects of a bucket."""
    found = []
    for path in home.glob("*/_kafka_*/*"):
        if names.parse(str(path.relative_to(home))).kind is not ObjectKind.DATA:
            continue
        parsed = data_object.parse(path.read_bytes())
        for row in range(len(parsed.entries)):
            records, _ = data_object.entry_records(parsed, row)
            for number in range(len(records)):
                payload = bytes(records.payload(number))
                if payload[:4] == bytes(4) and payload[5:].startswith(
                    tuple(key.encode() for key in meta_stream.KEYS)
                ):
                    stream = int(records.stream_id[number])
                    found.append((stream, meta_stream.parse(payload), payload))
    return found


def test_values_of_meta_streams_are_read_and_written(scenario: Callable[[str], Path]) -> None:
    kinds = set()
    for _, entry, payload in meta_entries(bucket(scenario, "broker-clean")):
        assert meta_stream.encode(entry) == payload
        kinds.add(entry.key)
        match entry.key:
            case meta_stream.LOG:
                meta = meta_stream.log_meta(entry.value)
                assert set(meta.streams) >= {"log", "tim"}
                stored = json.loads(entry.value)["segmentMetas"]
                assert [one.base_offset for one in meta.segments] == [one["bo"] for one in stored]
                assert [one.log.start for one in meta.segments] == [
                    one["ls"]["s"] for one in stored
                ]
            case meta_stream.PARTITION:
                assert meta_stream.partition_meta(entry.value).recovery_point >= 0
            case meta_stream.LEADER_EPOCHS:
                rows = meta_stream.leader_epochs(entry.value)
                assert meta_stream.encode_leader_epochs(rows) == entry.value
            case meta_stream.PRODUCER_SNAPSHOTS:
                snapshots = meta_stream.producer_snapshots(entry.value)
                assert meta_stream.encode_snapshots(snapshots) == entry.value
                for offset, data in snapshots.items():
                    parsed = producer_snapshot.parse(data)
                    assert not list(producer_snapshot.check(parsed, end_offset=offset))
    assert kinds == set(meta_stream.KEYS)


READERS = (
    meta_stream.parse, meta_stream.log_meta, meta_stream.partition_meta,
    meta_stream.producer_snapshots, meta_stream.leader_epochs,
    stream_ranges.parse_end_offsets, stream_ranges.parse_ranges,
)  # fmt: skip
VALUES = (
    meta_stream.encode(meta_stream.Entry("LOG", b"{}")),
    b'{"streamMap":{"log":4},"segmentMetas":[{"bo":0,"ls":{"s":0,"e":-1}}]}',
    b'{"s":0,"c":0,"r":9,"cs":false}',
    meta_stream.encode_snapshots({5: b"abc"}),
    meta_stream.encode_leader_epochs([(0, 250)]),
    stream_ranges.encode_end_offsets(np.array([(1, 9)], stream_ranges.END_OFFSET)),
    stream_ranges.encode_ranges(np.array([(1, 0, 9)], stream_ranges.RANGE), compress=True),
)


@pytest.mark.parametrize("read", READERS, ids=lambda one: one.__name__)
@given(data=st.binary(max_size=60) | st.sampled_from(VALUES), cut=st.integers(0, 9))
def test_any_value_is_read_or_refused(read: Callable[[bytes], Any], data: bytes, cut: int) -> None:
    data = data[: len(data) - cut] if cut else data
    try:
        read(data)
    except FormatError as error:
        assert 0 <= error.position <= len(data)


def test_packed_ranges_are_read_again() -> None:
    rows = np.array([(number, number * 2, 5) for number in range(60)], stream_ranges.RANGE)
    for compress in (False, True):
        data = stream_ranges.encode_ranges(rows, compress=compress)
        assert stream_ranges.parse_ranges(data).tolist() == rows.tolist()
    assert len(stream_ranges.parse_ranges(b"")) == 0
    ends = stream_ranges.encode_end_offsets(np.array([(1, 9)], stream_ranges.END_OFFSET))
    assert stream_ranges.parse_end_offsets(ends).tolist() == [(1, 9)]
