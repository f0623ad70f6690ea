"""`dump` prints the objects of AutoMQ as AutoMQ's own reader says them."""

import json
import os

import pytest

from logtool.formats.automq import names

CLUSTER = "Zm9ybWF0LXRlc3QtMDAwMQ"


@pytest.fixture
def bucket(scenario):
    return scenario("automq/made") / "objects"


@pytest.fixture
def truth(scenario):
    text = (scenario("automq/made.expected") / "objects-truth.json").read_text()
    return json.loads(text)["objects"]


def test_every_block_and_record_equals_the_answer_of_automqs_reader(run, bucket, truth):
    result = run("dump", "-f", "ndjson", bucket)
    assert result.status == 0
    entries = result.of_type("entry")
    for one in truth:
        path = str(bucket / one["key"])
        index = [row for row in entries if row["path"] == path and row["kind"] == "automq-object"]
        records = [row for row in entries if row["path"] == path and row["kind"] == "automq-record"]
        assert [
            (row["stream"], row["start_offset"], row["end_offset"], row["record_count"],
             row["block_position"], row["block_size"])
            for row in index
        ] == [
            (block["stream_id"], block["start_offset"], block["end_offset"], block["record_count"],
             block["position"], block["size"])
            for block in one["blocks"]
        ]  # fmt: skip
        linked = one["object_id"] in (2200, 2300)
        assert {row["linked_object"] is not None for row in index} == {linked}
        expected = (
            [] if linked else [record for block in one["blocks"] for record in block["records"]]
        )
        assert [
            (row["stream"], row["stream_epoch"], row["base_offset"], row["end_offset"], row["size"])
            for row in records
        ] == [
            (record["stream_id"], record["epoch"], record["base_offset"], record["end_offset"],
             record["payload_size"])
            for record in expected
        ]  # fmt: skip


def test_one_file_is_printed_alone(run, bucket):
    result = run("dump", "-f", "ndjson", bucket / names.data_key(CLUSTER, 2001))
    (head,) = result.of_type("file")
    assert (head["kind"], head["entries"]) == ("automq-object", 2)


@pytest.mark.parametrize("name", ["early-unclean", "wrapped-unclean", "wrapped-clean"])
def test_a_wal_in_a_file_has_the_records_of_automqs_recovery(run, scenario, name):
    path = scenario("automq/made") / "block-wal" / name
    result = run("dump", "-f", "ndjson", path)
    text = (scenario("automq/made.expected") / "block-wal" / "truth.json").read_text()
    assert result.status == 0
    assert [
        (row["wal_offset"], row["stream"], row["base_offset"], row["position"])
        for row in result.of_type("entry")
    ] == [
        (one["wal_offset"], one["stream_id"], one["base_offset"],
         one["wal_offset"] % (path.stat().st_size - 8192) + 8192 + 24)
        for one in json.loads(text)[name]
    ]  # fmt: skip


def test_damaged_headers_of_a_wal_in_a_file_are_findings(run, scenario, tmp_path):
    data = bytearray((scenario("automq/made") / "block-wal" / "early-unclean").read_bytes())
    path = tmp_path / "wal"
    codes = ["automq-block-wal/header", "automq-block-wal/no-header"]
    for at, status, found in ((4096 + 20, 1, codes[:1]), (20, 1, codes)):
        data[at] ^= 1
        path.write_bytes(data)
        result = run("dump", "-f", "ndjson", path)
        assert (result.status, sorted({one["reason"] for one in result.of_type("error")})) == (
            status, found,
        )  # fmt: skip
    path.write_bytes(data[:4])
    assert run("dump", path).status == 1
    # A pipe without a writer is not waited for, and a file of any other content is one error.
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "other").write_bytes(b"text")
    assert [run("dump", tmp_path / name).status for name in ("pipe", "other")] == [4, 4]


@pytest.mark.parametrize("name", ["early-unclean", "wrapped-unclean", "wrapped-clean"])
def test_a_record_that_recovery_leaves_out_is_a_finding(run, scenario, tmp_path, name):
    data = (scenario("automq/made") / "block-wal" / name).read_bytes()
    path = tmp_path / "wal"
    path.write_bytes(data)
    sound = run("dump", "-f", "ndjson", path).of_type("entry")
    for number, row in enumerate(sound):
        start = row["position"] - 24
        for at in (start, start + 3, start + 9, start + 17, start + 23, start + 24, start + 2000):
            path.write_bytes(data[:at] + bytes([data[at] ^ 16]) + data[at + 1 :])
            result = run("dump", "-f", "ndjson", path)
            (error,) = result.of_type("error")
            assert (error["reason"], error["position"]) == ("automq-block-wal/record", start)
            assert result.of_type("entry") == sound[:number] + sound[number + 1 :]
            assert result.status == 1
        following = sound[number + 1] if number + 1 < len(sound) else None
        size = following["position"] - row["position"] if following else 4096
        if size < 0:
            continue  # the block before the end of the ring
        path.write_bytes(data[:start] + bytes(size) + data[start + size :])
        found = run("dump", "-f", "ndjson", path).of_type("error")
        wanted = [("automq-block-wal/hole", start, size)] if following else []
        assert [(one["reason"], one["position"], one["length"]) for one in found] == wanted


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_the_objects_of_a_broker_are_printed_in_other_forms(run, scenario, form):
    result = run("dump", "-f", form, scenario("automq/broker-crash") / "s3")
    assert result.status == 0
    assert "10066329600" in result.stdout


def test_wal_objects_and_owners_have_their_own_entries(run, scenario):
    result = run("dump", "-f", "ndjson", scenario("automq/broker-crash") / "s3")
    entries = result.of_type("entry")
    records = [one for one in entries if one["kind"] == "automq-record"]
    in_wal = [one for one in records if one["wal_offset"] is not None and one["stream"] >= 0]
    assert len(in_wal) == 27
    (owner,) = [one for one in entries if one["kind"] == "automq-reservation"]
    assert (owner["node"], owner["failover"]) == (1, False)
    assert any(one["kind"] == "automq-range-index" for one in entries)


def test_damage_is_printed_behind_what_can_be_read(run, copy_of):
    path = copy_of("automq/made") / "objects" / names.data_key(CLUSTER, 2001)
    data = bytearray(path.read_bytes())
    data[1250] ^= 1
    path.write_bytes(data)
    result = run("dump", "-f", "ndjson", path)
    assert result.status == 1
    assert [one["reason"] for one in result.of_type("error")] == ["automq-object/block"]
    assert sum(one["kind"] == "automq-record" for one in result.of_type("entry")) == 4


def test_an_object_has_no_records_of_its_own(run, bucket):
    result = run("dump", "--records", "-f", "ndjson", bucket)
    assert (result.status, result.of_type("record")) == (0, [])
    assert run("dump", "--topic", "orders", bucket).status == 4
