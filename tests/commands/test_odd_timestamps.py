"""Timestamps that cannot be meant: `stat` and `gaps` report what `verify` reports."""

import csv
import json
import os
from importlib.resources import files

import pytest
from jsonschema import Draft202012Validator
from log_dir_damage import new_batch

WRITTEN = 1_700_000_000_000


@pytest.fixture
def partition(tmp_path):
    """Return a partition of five segments, each with a timestamp in microseconds."""
    home = tmp_path / "data" / "orders-0"
    home.mkdir(parents=True)
    for base in range(0, 50, 10):
        log = home / f"{base:020d}.log"
        stamps = (WRITTEN, WRITTEN * 1000 + base)
        log.write_bytes(b"".join(
            new_batch(base + number, b"x", base_timestamp=stamp, max_timestamp=stamp,
                      producer_id=7, producer_epoch=0, base_sequence=number)
            for number, stamp in enumerate(stamps)
        ))  # fmt: skip
        os.utime(log, ns=(WRITTEN * 1_000_000,) * 2)
    return home


def found(run, command, path):
    objects = run(command, "-f", "ndjson", path).of_type("finding")
    return [
        {key: value for key, value in one.items() if key != "schema"}
        for one in objects
        if one["code"].startswith("batch/timestamp")
    ]


@pytest.mark.parametrize("command", ["stat", "gaps"])
@pytest.mark.parametrize("level", ["partition", "log dir", "log"])
def test_it_is_the_finding_of_verify_with_offset_producer_and_segment(
    run, partition, command, level
):
    path = {"partition": partition, "log dir": partition.parent,
            "log": partition / f"{20:020d}.log"}[level]  # fmt: skip
    findings = found(run, command, path)
    by_verify = found(run, "verify", partition)
    assert findings == [one for one in by_verify if level != "log" or one["segment"] == 20]
    assert len(by_verify) == 5
    one = findings[0]
    assert one["first_offset"] == one["segment"] + 1
    assert "producer 7" in one["message"]
    assert "1700000000000" in one["message"]
    schema = Draft202012Validator(
        json.loads((files("logtool.schemas") / f"{command}.json").read_text())
    )
    assert [error.message for one in findings for error in schema.iter_errors(one)] == []


@pytest.mark.parametrize("command", ["stat", "gaps"])
def test_a_person_sees_three_and_how_many_more(run, partition, command):
    result = run(command, partition)
    assert (result.status, result.stderr.count("info     batch/timestamp-unit  ")) == (
        1 if command == "gaps" else 0, 3,
    )  # fmt: skip
    assert "batch/timestamp-unit: 2 more" in result.stderr
    assert "timestamp-unit" not in result.stdout
    assert run(command, "-v", partition).stderr.count("info     batch/timestamp-unit  ") == 5
    assert "timestamp-unit" not in run(command, "-q", partition).stderr


@pytest.mark.parametrize("command", ["stat", "gaps"])
def test_they_count_in_the_summary_and_are_no_rows_of_csv(run, partition, command):
    (summary,) = run(command, "-f", "ndjson", partition).of_type("summary")
    assert summary["codes"] == {"batch/timestamp-unit": 5}
    assert summary["findings"]["info"] == 5
    result = run(command, "-f", "csv", partition)
    assert all("code" not in row for row in csv.DictReader(result.lines))
    assert "batch/timestamp-unit" in result.stderr


def test_stat_fails_on_them_if_asked(run, partition):
    assert run("stat", "--fail-on", "info", partition).status == 1
    assert run("stat", "--fail-on", "warning", partition).status == 0
