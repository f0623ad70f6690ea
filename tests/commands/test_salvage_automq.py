"""Partitions of AutoMQ are saved as partition dirs of Kafka."""

import json
from pathlib import Path

import pytest

from logtool.formats.automq import names


@pytest.fixture
def home(copy_of):
    return copy_of("automq/broker-crash")


def save(run, home, output, *more):
    return run("salvage", "--to", "kafka", "--output", output, "-f", "ndjson", *more,
               home / "s3", home / "meta")  # fmt: skip


def test_every_partition_has_the_records_that_a_consumer_read(run, home, scenario, tmp_path):
    folder = scenario("automq/broker-crash.expected")
    truth = json.loads((folder / "truth-consumer-after-restart.json").read_text())
    result = save(run, home, tmp_path / "out")
    assert result.status == 0
    saved = {f"{one['topic']}-{one['partition']}": one for one in result.of_type("partition")}
    assert saved.keys() == {*truth, "__auto_balancer_metrics-0"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"manifest.ndjson", "partitions"}
    read = run("dump", "--records", "-f", "ndjson", tmp_path / "out" / "partitions")
    found = {}
    for one in read.of_type("record"):
        if not one["control"]:
            rows = found.setdefault(f"{one['topic']}-{one['partition']}", [])
            rows.append([one["offset"], one["timestamp_ms"]])
    for name, one in truth.items():
        rows = [row[:2] for row in one["offset_timestamp_crc32_of_key_value"]]
        assert found.get(name, []) == rows, name
        assert saved[name]["log_end_offset"] == one["log_end_offset"]
        identity = Path(saved[name]["target"]) / "partition.metadata"
        assert one["topic_id"] in identity.read_text()


def test_what_was_saved_is_sound(run, home, tmp_path):
    assert save(run, home, tmp_path / "out", "--exclude-topic", "__*").status == 0
    assert run("verify", "--level", "records", tmp_path / "out" / "partitions").status == 0


def test_a_missing_object_makes_the_output_incomplete(run, home, tmp_path):
    (home / "s3" / names.data_key("rtcdRH6ESFi-nWZAzLnP0g", 1)).unlink()
    result = save(run, home, tmp_path / "out")
    assert result.status == 4
    last = json.loads((tmp_path / "out" / "manifest.ndjson").read_text().splitlines()[-1])
    assert last["complete"] is False


@pytest.mark.parametrize("place", ["s3", "meta"])
def test_nothing_is_written_into_the_bucket_or_the_metadata_log(run, home, place):
    assert save(run, home, home / place / "out").status == 5
    assert not (home / place / "out").exists()


def test_the_option_needs_a_bucket_with_its_metadata_log(run, home, tmp_path):
    words = ("salvage", "--output", tmp_path / "out")
    assert run(*words, "--to", "kafka", home / "meta").status == 2
    assert run(*words, home / "s3", home / "meta").status == 4
