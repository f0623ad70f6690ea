"""`dump` of what Redpanda wrote: batches of segments and entries of base indexes."""

import shutil
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import redpanda_segment as segment
from dumps import of_type

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats.redpanda import base_index, record_batch, snapshot
from logtool.formats.redpanda.base_index import Entries

DATA = Path(__file__).parents[1] / "data" / "redpanda"
SEGMENT = (DATA / "test_segment.bin").read_bytes()


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """Return a data directory with two segments, whose names do not sort by offset."""
    partition = tmp_path / "data" / "kafka" / "orders" / "3_17"
    partition.mkdir(parents=True)
    (tmp_path / "data" / "redpanda" / "controller" / "0_0").mkdir(parents=True)
    (tmp_path / "data" / "pid.lock").write_text("4711\n")
    (partition / "4-1-v1.log").write_bytes(SEGMENT)
    shutil.copy(DATA / "3676-7429-77-1-v1.log.1", partition / "3676-2-v1.log")
    (partition / "4-1-v1.base_index").write_bytes(an_index(4))
    (partition / "4-1-v1.log.staging").write_bytes(b"garbage")
    (partition / "snapshot").write_bytes(b"")
    return tmp_path / "data"


def an_index(base_offset: int) -> bytes:
    entries = Entries(
        relative_offset=np.array([0, 4], "<u4"),
        relative_time=np.array([2**31, 2**31 + 5046], "<u4"),
        position=np.array([0, 695], "<u8"),
    )
    index = base_index.build(
        entries,
        base_offset=base_offset,
        max_offset=8,
        base_timestamp=1667070813398,
        max_timestamp=1667070818444,
    )
    return base_index.encode(index)


def test_a_data_directory_is_printed_in_the_order_of_the_log(objects, data_dir):
    found = objects(data_dir)
    heads = of_type("file", found)
    assert [Path(head["path"]).name for head in heads] == [
        "4-1-v1.log",
        "4-1-v1.base_index",
        "3676-2-v1.log",
    ]
    assert {(h["topic"], h["partition"]) for h in heads} == {("orders", 3)}
    assert [(h["base_offset"], h["epoch"], h["entries"]) for h in heads] == [
        (4, 1, None),
        (4, 1, 2),
        (3676, 2, None),
    ]
    batches = [o for o in of_type("entry", found) if o["kind"] == "redpanda-segment"]
    assert [(b["position"], b["size"], b["batch_type"], b["term"]) for b in batches] == [
        (0, 176, "raft_configuration", 1),
        (176, 173, "raft_data", 1),
        (349, 173, "raft_data", 1),
        (522, 173, "raft_data", 1),
        (695, 173, "raft_data", 1),
        (0, 77, "raft_data", 2),
    ]
    assert [(b["raft_base_offset"], b["raft_last_offset"]) for b in batches] == [
        *((offset, offset) for offset in range(4, 9)),
        (7164, 7429),
    ]
    assert [b["producer_id"] for b in batches] == [None, 6001, 6002, 6003, 6004, 2]
    assert batches[-1]["timestamp_type"] == "LogAppendTime"
    assert of_type("error", found) == []


def kafka_offsets(found):
    batches = [o for o in of_type("entry", found) if o["kind"] == "redpanda-segment"]
    return [(b["kafka_base_offset"], b["kafka_last_offset"]) for b in batches]


def raft_snapshot(last_included: int, delta: int) -> bytes:
    metadata = struct.pack("<qqb9sqq", last_included, 1, 64, b"the group", 0, delta)
    return snapshot.build(metadata)


def test_kafka_offsets_are_not_known_without_a_beginning(objects, data_dir):
    assert kafka_offsets(objects(data_dir)) == [(None, None)] * 6


def test_kafka_offsets_begin_behind_the_snapshot_of_raft(objects, data_dir):
    path = data_dir / "kafka" / "orders" / "3_17" / "snapshot"
    path.write_bytes(raft_snapshot(3, 2))
    whole = [(None, None), (2, 2), (3, 3), (4, 4), (5, 5), (None, None)]
    assert kafka_offsets(objects(data_dir)) == whole
    assert kafka_offsets(objects(path.with_name("4-1-v1.log"))) == whole[:5]
    path.write_bytes(raft_snapshot(5, 3))
    assert kafka_offsets(objects(path.with_name("4-1-v1.log"))) == [(None, None)] * 2 + whole[2:5]
    path.write_bytes(raft_snapshot(3, 2)[:-1] + b"\1")
    assert kafka_offsets(objects(data_dir)) == [(None, None)] * 6


def test_kafka_offsets_are_carried_from_a_segment_to_the_next(objects, tmp_path):
    def batch(base, last, kind=1):
        return record_batch.build(
            b"", base_offset=base, type=kind, last_offset_delta=last - base, record_count=0
        )

    partition = tmp_path / "kafka" / "orders" / "3_17"
    partition.mkdir(parents=True)
    first = segment.build([batch(0, 0, 2), batch(1, 9), batch(10, 12, 19)])
    second = segment.build([batch(15, 19), batch(20, 20, 29)], room=4096)
    third = segment.build([batch(21, 21), batch(22, 22, 23), batch(23, 23)])
    (partition / "0-1-v1.log").write_bytes(first)
    (partition / "13-2-v1.log").write_bytes(second)
    (partition / "21-3-v1.log").write_bytes(third)
    none = (None, None)
    known = [none, (0, 8), none, (11, 15), (16, 16), (17, 17), none, (18, 18)]

    assert kafka_offsets(objects(partition)) == known
    (partition / "13-2-v1.log").unlink()
    assert kafka_offsets(objects(partition)) == [*known[:3], none, none, none]
    (partition / "13-2-v1.log").write_bytes(b"\1" * 70 + second)
    assert kafka_offsets(objects(partition, status=1)) == [*known[:3], *[none] * 5]
    other = partition.parent.parent.rename(tmp_path / "kafka_internal")
    assert kafka_offsets(objects(other / "orders" / "3_17", status=1)) == [none] * 8


def test_an_index_is_printed_with_the_offsets_and_times_it_means(objects, data_dir):
    path = data_dir / "kafka" / "orders" / "3_17" / "4-1-v1.base_index"
    _, first, second = objects(path)
    assert (first["raft_offset"], first["log_position"], first["position"]) == (4, 0, 50)
    assert (second["raft_offset"], second["log_position"], second["position"]) == (8, 695, 54)
    assert second["timestamp_ms"] == 1667070818444
    assert (second["base_offset"], second["max_offset"], second["version"]) == (4, 8, 9)


def test_damage_is_reported_in_its_place_and_zeros_are_no_damage(objects, tmp_path):
    path = tmp_path / "4-1-v1.log"
    path.write_bytes(SEGMENT[:450] + bytes([SEGMENT[450] ^ 1]) + SEGMENT[451:])
    found = objects(path, status=1)
    assert [obj["type"] for obj in found] == ["file", "entry", "entry", "error", "entry", "entry"]
    (error,) = of_type("error", found)
    assert (error["reason"], error["position"], error["length"]) == ("crc", 349, 173)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda data: b"", "version"),
        (lambda data: b"\2" + data[1:], "version"),
        (lambda data: data[:30], "version"),
        (lambda data: data[:20] + b"\1" + data[21:], "crc"),
    ],
)
def test_a_damaged_index_is_an_error(objects, tmp_path, damage, reason):
    path = tmp_path / "4-1-v1.base_index"
    path.write_bytes(damage(an_index(4)))
    (error,) = of_type("error", objects(path, status=1))
    assert error["reason"] == reason


def test_indexes_of_unequal_length_are_an_error(objects, tmp_path):
    entries = Entries(
        relative_offset=np.array([0, 4], "<u4"),
        relative_time=np.array([0], "<u4"),
        position=np.array([0, 695, 900], "<u8"),
    )
    index = base_index.build(
        entries, base_offset=4, max_offset=8, base_timestamp=0, max_timestamp=0
    )
    path = tmp_path / "4-1-v1.base_index"
    path.write_bytes(base_index.encode(index))
    found = objects(path, status=1)
    assert [obj["type"] for obj in found] == ["file", "error", "entry"]
    assert "1 to 3 entries" in found[1]["message"]


def test_ranges_and_producers_choose_batches(objects, data_dir):
    def bases(*arguments):
        found = of_type("entry", objects(*arguments, data_dir))
        assert {obj["kind"] for obj in found} == {"redpanda-segment"}
        return [obj["raft_base_offset"] for obj in found]

    assert bases("--offset", "7..7200") == [7, 8, 7164]
    assert bases("--timestamp", "..1667070817000") == [4, 5]
    assert bases("--producer", "6002") == [6]
    assert bases("--limit", "2", "--topic", "orders", "--offset", "0..") == [4, 5]


def test_batches_of_unknown_types_are_printed_with_their_number(objects, tmp_path):
    ghost = record_batch.build(b"", base_offset=4, type=7, record_count=1)
    later = record_batch.build(b"", base_offset=5, type=99, record_count=-5)
    path = tmp_path / "4-1-v1.log"
    path.write_bytes(segment.build([ghost, later], room=4096))
    _, *found = objects(path)
    assert [obj["batch_type"] for obj in found] == ["ghost_batch", "99"]


@pytest.mark.parametrize(("more", "reason"), [
    ({"type": -1, "base_offset": 4}, "type"),
    ({"base_offset": 2**63 - 1, "last_offset_delta": 2}, "offsets"),
    ({"base_offset": 4, "last_offset_delta": -1}, "offsets"),
])  # fmt: skip
def test_fields_that_wrap_are_an_error_behind_their_batch(run, tmp_path, more, reason):
    path = tmp_path / "4-1-v1.log"
    path.write_bytes(segment.build([record_batch.build(b"", record_count=0, **more)], room=4096))
    found = run("dump", "-f", "ndjson", path)
    (batch,), (error,) = found.of_type("entry"), found.of_type("error")
    assert (found.status, error["reason"], error["position"]) == (1, reason, 0)
    assert batch["raft_base_offset"] == more["base_offset"]
    assert batch["batch_type"] == ("-1" if reason == "type" else "raft_data")
    assert run("verify", path).status == 1


def test_a_table_shows_terms_and_raft_offsets(run, data_dir):
    result = run("dump", data_dir / "kafka" / "orders" / "3_17" / "4-1-v1.log")
    assert result.status == 0
    flavour, head, titles, _, first, *_ = result.stdout.splitlines()
    assert flavour.startswith("flavour: redpanda")
    assert head.endswith("4-1-v1.log (redpanda-segment, 4,096 bytes)")
    assert titles.split()[2:6] == ["batch_type", "term", "raft_base_offset", "raft_last_offset"]
    assert first.split()[:6] == ["0", "176", "raft_configuration", "1", "4", "4"]


def test_csv_has_a_row_for_each_batch(run, data_dir):
    result = run("dump", "-f", "csv", data_dir)
    assert result.status == 0
    assert len(result.stdout.splitlines()) == 1 + 6 + 2


def test_what_is_not_printed_is_refused(run, data_dir):
    kafka = run("dump", "-f", "kafka", data_dir)
    assert kafka.status == 2
    assert "--format kafka" in kafka.stderr
    topic = run("dump", "--topic", "payments", data_dir)
    assert topic.status == 4
    assert "--topic payments" in topic.stderr


def test_records_are_printed_and_found(run, data_dir, tmp_path):
    topic = data_dir / "kafka" / "orders"
    found = run("dump", "--records", "-f", "ndjson", topic)
    assert found.status == 0, found.stderr
    records = found.of_type("record")
    assert [one["offset"] for one in records] == [5, 6, 7, 8, 7429]
    assert {one["key"]["utf8"] for one in records[:4]} == {"KEY"}
    assert {one["leader_epoch"] for one in records} == {1, 2}
    assert [one["base_offset"] for one in found.of_type("batch")] == [5, 6, 7, 8, 7164]
    one = run("dump", "--key", "KEY", "--offset", "7", "-f", "ndjson", data_dir)
    assert [record["offset"] for record in one.of_type("record")] == [7]
    counted = run("dump", "--key", "KEY", "--count", "-f", "ndjson", data_dir)
    assert [total["records"] for total in counted.of_type("total")] == [4]
    csv = run("dump", "--records", "-f", "csv", data_dir)
    assert csv.stdout.splitlines()[0].startswith("type,path,kind,position,topic,partition,segment")
    segment = topic / "3_17" / "4-1-v1.log"
    segment.write_bytes(SEGMENT[:400] + b"x" + SEGMENT[401:])
    damaged = run("dump", "--records", "-f", "ndjson", segment)
    assert damaged.status == 1
    assert [record["offset"] for record in damaged.of_type("record")] == [5, 7, 8]
    assert [error["reason"] for error in damaged.of_type("error")] == ["header-crc"]


def test_a_folder_that_cannot_be_listed_hides_no_other(run, data_dir, monkeypatch):
    shutil.copytree(data_dir / "kafka" / "orders" / "3_17", data_dir / "kafka" / "orders" / "2_17")
    listed = files.list_dir

    def list_dir(path: Path) -> Sequence[files.Entry]:
        if path.name == "2_17":
            raise UnreadableError(path, "Permission denied")
        return listed(path)

    monkeypatch.setattr(files, "list_dir", list_dir)
    found = run("dump", "--records", "-f", "ndjson", data_dir)
    assert found.status == 4
    assert len(found.of_type("record")) == 5
    assert "2_17: Permission denied" in found.stderr


def test_a_base_index_is_printed_next_to_the_log(run, data_dir):
    index = data_dir / "kafka" / "orders" / "3_17" / "4-1-v1.base_index"
    for path in (data_dir, index.parent, index):
        found = run("dump-index", "--join-log", "-f", "ndjson", path)
        assert found.status == 0, found.stderr
        entries = [
            (one["raft_offset"], one["batch"]["base_offset"], one["verdict"])
            for one in found.of_type("entry")
        ]
        assert entries == [(4, 4, "right"), (8, 8, "right")]
    log = index.with_suffix(".log")
    log.write_bytes(SEGMENT[:700] + b"x" + SEGMENT[701:])
    damaged = run("dump-index", "--join-log", "-f", "ndjson", index)
    assert [one["verdict"] for one in damaged.of_type("entry")] == ["right", "unknown"]
    index.write_bytes(an_index(3))
    log.write_bytes(SEGMENT)
    wrong = run("dump-index", "--join-log", "-f", "ndjson", index)
    assert wrong.status == 1
    assert [one["verdict"] for one in wrong.of_type("entry")] == ["offset", "offset"]
    index.write_bytes(b"")
    assert run("dump-index", index).status == 1
    assert "raft_offset" in run("dump-index", "-f", "csv", data_dir).stdout.splitlines()[0]


def test_a_base_index_can_be_verified_by_itself(run, data_dir):
    index = data_dir / "kafka" / "orders" / "3_17" / "4-1-v1.base_index"
    assert run("verify", index).status == 0
    index.write_bytes(index.read_bytes()[:-1])
    assert "base-index/unreadable" in run("verify", index).stdout
    index.with_name("4-1-v1.log").unlink()
    assert "base-index/unreadable" in run("verify", index).stdout


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("quorum", "metadata log"),
        ("dirs", "metadata log"),
        ("metadata show", "metadata log"),
        ("checkpoint show", "checkpoints"),
        ("checkpoint rebuild", "checkpoints"),
        ("undelete --output nowhere", "delete"),
        ("may-delete --among nowhere", "'logtool diff'"),
    ],
)
def test_files_that_redpanda_does_not_have_are_refused_with_the_reason(run, data_dir, command, why):
    result = run(*command.split(), data_dir)
    assert result.status == 4
    assert f"{data_dir}: " in result.stderr
    assert ("Redpanda" in result.stderr, why in result.stderr) == (True, True)
