"""Rows of batches and records hold what `logtool dump` says of them, for all that brokers wrote."""

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conftest import SCENARIOS, new_logs
from crc32c import crc32c
from thinned import some

from logtool.disk.files import LogFile
from logtool.dump import log as dump_log
from logtool.dump.blocks import Origin
from logtool.dump.log import Filter
from logtool.errors import LimitError
from logtool.formats import record, record_batch
from logtool.log import arrow_rows, opening
from logtool.log.arrow_rows import PartitionIdentity
from logtool.log.batches import read_batches
from logtool.log.chunk import Chunk
from logtool.log.dir import Segment
from logtool.schemas import arrow
from logtool.schemas.arrow import Payload
from logtool.spark.scan.unit_rows import batch_rows_of_many

PLACE = PartitionIdentity("/data", 1, "orders", 0, "orders-0")
SEGMENT = 1000
TIMES = frozenset({"base_timestamp", "max_timestamp", "delete_horizon", "timestamp"})


class Bytes:
    def __init__(self, data: bytes) -> None:
        self.data, self.size = data, len(data)

    def read_into(self, buffer: memoryview, position: int) -> int:
        piece = self.data[position : position + len(buffer)]
        buffer[: len(piece)] = piece
        return len(piece)


def segments(home: Path) -> Iterator[tuple[PartitionIdentity, Segment]]:
    for path in sorted({log.parent for log in home.rglob("*.log")}):
        found = opening.open_partition(path)
        for segment in found.segments:
            yield (
                PartitionIdentity(str(path.parent), 7, found.topic, found.number, path.name),
                segment,
            )


def as_row(obj: dict) -> dict:
    """Return an object of a dump with its times as moments, as a table has them."""
    return {
        name: datetime.fromisoformat(value) if value and name in TIMES else value
        for name, value in obj.items()
    }


def expected_batch(place: PartitionIdentity, segment: int, obj: dict) -> dict:
    home = {**place._asdict(), "segment": segment}
    obj = {**obj, "term": None, "batch_type": None}  # of Redpanda
    return {name: (home | as_row(obj) | home)[name] for name in arrow.schema("batches").names}


def expected_record(place: PartitionIdentity, segment: int, obj: dict) -> dict:
    home = {**place._asdict(), "segment": segment}
    key, value = obj["key"], obj["value"]
    fields = {
        **as_row(obj),
        **home,
        "header_count": len(obj["headers"]),
        "key_size": None if key is None else len(key),
        "value_size": None if value is None else len(value),
        "key_hash": None if key is None else crc32c(key),
        "value_hash": None if value is None else crc32c(value),
        "headers": [{"key": key, "value": value} for key, value in obj["headers"]],
    }
    return {name: fields[name] for name in arrow.schema("records").names}


def expected_records(
    place: PartitionIdentity, segment: int, path: Path, file: LogFile, chunk: Chunk
) -> list[dict]:
    """Return the rows of records that the objects of a dump make."""
    objects: Iterable[Any] = dump_log.dump_chunk(Origin(path), file, chunk, Filter(records=True))
    return [expected_record(place, segment, obj) for obj in objects if obj["type"] == "record"]


def pylist(batches: Iterable[pa.RecordBatch]) -> list[dict]:
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("name", some(SCENARIOS, 5))
def test_rows_are_what_a_dump_says(scenario: Callable[[str], Path], name: str) -> None:
    count, home = 0, scenario(name)
    logs = {*new_logs(name, home)}
    for place, segment in segments(home):
        path, base = segment.log.path, segment.base_offset
        if path not in logs:
            continue
        with LogFile(path) as file:
            for chunk in read_batches(file, base_offset=base):
                found = arrow_rows.batch_rows(place, base, chunk.table)
                assert found.schema.equals(arrow.schema("batches"), check_metadata=True)
                objects = dump_log.batch_objects(Origin(path), chunk.table)
                assert found.to_pylist() == [expected_batch(place, base, obj) for obj in objects]
                records = list(arrow_rows.record_rows(place, base, chunk, Payload.FULL))
                for some in records:
                    some.validate(full=True)
                    assert some.schema.equals(arrow.schema("records"), check_metadata=True)
                assert pylist(records) == expected_records(place, base, path, file, chunk)
                count += found.num_rows
    assert count or not any(log.stat().st_size for log in logs if log.suffix == ".log")


def batch(offset: int, *values: bytes | None, payload: bytes | None = None, **more) -> bytes:
    records = [
        record.Record(i, i, None if i % 3 == 2 else b"key %d" % i, value, [(b"h", None)] * (i % 2))
        for i, value in enumerate(values)
    ]
    return record_batch.encode(
        record.encode(records) if payload is None else payload,
        **{"base_offset": offset, "last_offset_delta": max(len(values) - 1, 0),
           "record_count": len(values), "base_timestamp": 1_700_000_000_000,
           "max_timestamp": 1_700_000_000_009} | more,
    )  # fmt: skip


def odd_log() -> bytes:
    """Return batches next to each other of which a block is made, and such that are not."""
    good = record.encode([record.Record(0, 0, b"k", b"v")])
    return b"".join([
        batch(1000, b"a", b"", None, b"long" * 9, producer_id=9, producer_epoch=2,
              base_sequence=2**31 - 2, attributes=0x10),
        batch(1010, payload=b"", record_count=0, last_offset_delta=5),
        batch(1020, b"a", base_timestamp=-1, max_timestamp=-1),
        batch(1030, b"a", b"b", payload=good + b"\x7f broken", record_count=2),
        batch(1040, payload=b"\xff" * 30, record_count=3, last_offset_delta=2),
        batch(1050, payload=good, record_count=-4),
        batch(1060, b"a", b"b", base_timestamp=2**62, max_timestamp=2**62),
        batch(1070, b"a", b"b", attributes=0x08, max_timestamp=5),
        batch(1080, b"a", b"b", attributes=0x08, max_timestamp=2**61),
        batch(1090, b"a", b"b", attributes=0x40, base_timestamp=77),
        batch(1100, b"a", b"b", attributes=0x20),
        batch(1110, *[b"z" * 9] * 40, attributes=4),
        batch(1150, *[b"y" * 9] * 40, attributes=1),
    ])  # fmt: skip


def test_rows_of_odd_batches_are_what_a_dump_says(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(odd_log())
    with LogFile(path) as file:
        (chunk,) = read_batches(file, base_offset=SEGMENT)
        found = pylist(arrow_rows.record_rows(PLACE, SEGMENT, chunk, Payload.FULL))
        assert found == expected_records(PLACE, SEGMENT, path, file, chunk)
        objects = dump_log.batch_objects(Origin(path), chunk.table)
        assert arrow_rows.batch_rows(PLACE, SEGMENT, chunk.table).to_pylist() == [
            expected_batch(PLACE, SEGMENT, obj) for obj in objects
        ]
    assert len(found) > 90


def test_a_stream_that_does_not_unpack_or_to_too_much_gives_no_rows() -> None:
    broken = bytearray(batch(1000, *[b"a" * 99] * 9, attributes=4))
    broken[70:80] = bytes(10)
    broken[17:21] = crc32c(broken[21:]).to_bytes(4, "big")
    (chunk,) = read_batches(
        Bytes(bytes(broken) + batch(1009, b"x" * 999, attributes=4)), base_offset=1000
    )
    offsets = [row["offset"] for row in pylist(
        arrow_rows.record_rows(PLACE, SEGMENT, chunk, Payload.NONE))]  # fmt: skip
    assert offsets == [1009]
    for one in (chunk, odd(chunk)):
        assert list(arrow_rows.record_rows(PLACE, SEGMENT, one, Payload.NONE, limit=100)) == []
        with pytest.raises(LimitError, match=r"byte \d+, offset 1009.* 100 "):
            list(arrow_rows.record_rows(PLACE, SEGMENT, one, Payload.NONE, limit=100, strict=True))


def odd(chunk: Chunk) -> Chunk:
    """Return a chunk of which nothing is decoded in blocks: its times are beyond a calendar."""
    table = replace(chunk.table, max_timestamp=chunk.table.max_timestamp + 2**61)
    return replace(chunk, table=table)


@pytest.mark.parametrize("payload", Payload)
def test_payload_has_as_much_as_is_asked(payload: Payload) -> None:
    (chunk,) = read_batches(Bytes(batch(1000, b"one", None, b"three")), base_offset=SEGMENT)
    (found,) = arrow_rows.record_rows(PLACE, SEGMENT, chunk, payload)
    (full,) = arrow_rows.record_rows(PLACE, SEGMENT, chunk, Payload.FULL)
    levels = [("key_size", "value_size"), ("key_hash", "value_hash"), ("key", "value", "headers")]
    shown = list(Payload).index(payload)
    for level, names in enumerate(levels):
        for name in names:
            assert (name in found.schema.names) == (level < shown)
            if level < shown:
                assert found[name].to_pylist() == full[name].to_pylist()
    assert full["key"].to_pylist() == [b"key 0", b"key 1", None]
    assert full["value"].to_pylist() == [b"one", None, b"three"]


def test_batches_of_several_segments_become_the_rows_of_each_one(scenario):
    parts = []
    for name, node in ("tx.mixed-0", 1), ("small-segments-0", None), ("codec-zstd-0", 2):
        topic, _, number = name.rpartition("-")
        place = PLACE._replace(topic=topic, partition=int(number), directory=name, node_id=node)
        for segment in opening.open_partition(scenario("4.3.1/clean") / name).segments:
            parts += [(place, segment.base_offset, chunk.table) for chunk in segment.batches()]
    assert len({place for place, *_ in parts}) == 3
    single = [arrow_rows.batch_rows(*part) for part in parts]
    many = batch_rows_of_many(parts)
    many.validate(full=True)
    assert many.schema == single[0].schema
    assert many.to_pylist() == [row for rows in single for row in rows.to_pylist()]


def test_only_the_columns_that_are_asked_for_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    (chunk,) = read_batches(Bytes(odd_log()), base_offset=SEGMENT)
    whole = arrow_rows.batch_rows(PLACE, SEGMENT, chunk.table)
    monkeypatch.setattr(arrow_rows, "_OF_BATCHES", {"crc": arrow_rows._OF_BATCHES["crc"]})
    some = arrow_rows.batch_rows(PLACE, SEGMENT, chunk.table, ["crc", "topic"])
    assert some.equals(whole.select(["crc", "topic"]))
    assert some.schema.field("crc").metadata == whole.schema.field("crc").metadata
    every = pa.Table.from_batches(arrow_rows.record_rows(PLACE, SEGMENT, chunk, Payload.FULL))
    names = random.Random(4).sample(every.column_names, 6)
    chosen = pa.Table.from_batches(
        arrow_rows.record_rows(PLACE, SEGMENT, chunk, Payload.FULL, names)
    )
    assert chosen.equals(every.select(names))


def test_many_records_come_in_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [b"%d" % i if i % 7 else None for i in range(1000)]
    (chunk,) = read_batches(Bytes(batch(1000, *values)), base_offset=SEGMENT)
    whole = pylist(arrow_rows.record_rows(PLACE, SEGMENT, chunk, Payload.FULL))
    monkeypatch.setattr(arrow_rows, "MOST_ROWS", 64)
    cut = list(arrow_rows.record_rows(PLACE, SEGMENT, chunk, Payload.FULL))
    assert len(cut) == 16
    assert pylist(cut) == whole
    assert [row["value"] for row in whole] == values


def test_a_batch_too_large_to_hold_is_read_from_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Bytes(batch(1000, b"a" * 5000) + batch(1001, b"b"))
    monkeypatch.setattr("logtool.log.walk.scanner.LARGEST_BUFFERED_BATCH", 1000)
    monkeypatch.setattr("logtool.log.walk.scanner.BUFFER_SIZE", 500)

    def offsets(**more) -> list[int]:
        return [
            row["offset"]
            for chunk in read_batches(source, base_offset=SEGMENT)
            for row in pylist(arrow_rows.record_rows(PLACE, SEGMENT, chunk, Payload.FULL, **more))
        ]

    assert offsets() == [1001]
    assert offsets(file=source) == [1000, 1001]
    assert offsets(file=source, limit=100) == [1001]


def test_constant_columns_have_any_length_and_null() -> None:
    for count in (0, 3, arrow_rows._KEPT_ROWS, arrow_rows._KEPT_ROWS + 1):
        assert arrow_rows.constant("x", pa.string(), count).to_pylist() == ["x"] * count
        assert arrow_rows.constant(None, pa.int32(), count).null_count == count
