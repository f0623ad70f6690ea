"""Rows of records of a real metadata log have stars in place of its secrets, as a dump has."""

from pathlib import Path
from typing import Any

import pytest
from crc32c import crc32c
from metadata_secrets import SECRETS, spelled, write
from pyarrow import parquet

from logtool.checks.report import Level, SegmentTask
from logtool.dump.log import Filter
from logtool.dump.stream import Dump
from logtool.errors import UsageError
from logtool.log import opening
from logtool.schemas import arrow
from logtool.schemas.arrow import Payload
from logtool.spark.scan.manifest import Manifest
from logtool.spark.scan.runs import begin
from logtool.spark.scan.scan import check_since
from logtool.spark.scan.unit_rows import ScanWork
from logtool.spark.source import options as source_options
from logtool.spark.source import reading
from logtool.spark.source.reading import ReadOptions

EVERY = tuple(arrow.schema("records").names)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write(tmp_path / "home")


def records(path: Path, *columns: str, **more: Any) -> list[dict]:
    asked = ReadOptions("records", columns or EVERY, payload=Payload.FULL, **more)
    return [
        row
        for pieces in reading.plan([path], asked)
        for piece in pieces
        for rows in reading.read(piece, asked)
        for row in rows.to_pylist()
    ]


def written(output: Path, log: Path, **more: Any) -> list[dict]:
    """Return the records that an executor of a scan writes."""
    run = begin(str(output), "one")
    work = ScanWork(run.staging, frozenset({"records"}), Payload.FULL, **more)
    segments = opening.open_partition(log.parent).segments
    for number, parts in work([(0, [SegmentTask(segment, Level.RECORDS) for segment in segments])]):
        if number < 0:
            run.add(parts)
    return [row for name in run.files("records") for row in parquet.read_table(name).to_pylist()]


def joined(rows: list[dict]) -> bytes:
    return b" ".join(row["value"] or b"" for row in rows)


def test_values_are_those_of_a_dump_of_as_many_bytes(log: Path) -> None:
    dumped = [
        item
        for item in Dump([log], chosen=Filter(records=True, decode=False))
        if isinstance(item, dict) and item["type"] == "record"
    ]
    hidden, shown = records(log.parent), records(log.parent, show_secrets=True)
    assert [row["value"] for row in hidden] == [item["value"] for item in dumped]
    assert spelled(joined(hidden)) == []
    assert spelled(joined(shown)) == list(SECRETS)
    assert [len(row["value"]) for row in hidden] == [row["value_size"] for row in hidden]
    for row in (*hidden, *shown):
        assert row["value_hash"] == crc32c(row["value"])
    different = [one for one, other in zip(hidden, shown, strict=True) if one != other]
    assert [row["offset"] for row in different] == [17, 18, 19, 20]
    columns = set(EVERY) - {"value", "value_hash"}
    assert [{name: row[name] for name in columns} for row in hidden] == [
        {name: row[name] for name in columns} for row in shown
    ]


@pytest.mark.parametrize("column", ["value", "value_hash"])
def test_a_column_alone_is_hidden_too(log: Path, column: str) -> None:
    whole = [row[column] for row in records(log.parent)]
    assert [row[column] for row in records(log.parent, column)] == whole


def test_a_log_by_its_file_is_hidden_and_one_of_another_topic_is_not(log, tmp_path):
    assert spelled(joined(records(log))) == []
    other = tmp_path / "home/orders-0"
    log.parent.rename(other)
    assert spelled(joined(records(other))) == list(SECRETS)


def test_a_scan_writes_them_where_they_are_asked_for(log: Path, tmp_path: Path) -> None:
    assert written(tmp_path / "hidden", log) == records(log.parent)
    assert spelled(joined(written(tmp_path / "shown", log, show_secrets=True))) == list(SECRETS)


def test_the_option_of_the_source_is_about_records() -> None:
    given = {"table": "records", "path": "/data"}
    assert not source_options.parse(given).show_secrets
    assert source_options.parse({**given, "showSecrets": "true"}).show_secrets
    with pytest.raises(UsageError, match=r"showSecrets.*records"):
        source_options.parse({"path": "/data", "showSecrets": "true"})
    with pytest.raises(UsageError, match=r"showSecrets.*'yes'"):
        source_options.parse({**given, "showSecrets": "yes"})


@pytest.mark.parametrize(
    ("about", "payload", "goes_on"),
    [
        ({"show_secrets": False}, Payload.FULL, [False]),
        ({"show_secrets": True}, Payload.FULL, [True]),
        ({}, Payload.HASH, [True]),  # an earlier release hid nothing
        ({}, Payload.LENGTH, [False, True]),  # lengths are no secrets
    ],
)
def test_a_run_goes_on_from_no_run_that_shows_more_or_less(monkeypatch, about, payload, goes_on):
    options = {"level": "records", "payload": str(payload), **about}
    known = Manifest("a", "1", arrow.VERSION, rows={"records": 9}, parts=(), about=options)
    monkeypatch.setattr("logtool.spark.scan.scan.earlier_run", lambda *_: known)
    found = []
    for show_secrets in (False, True):
        try:
            check_since("out", "a", ["records"], payload, show_secrets=show_secrets)
            found.append(show_secrets)
        except UsageError as error:
            assert ("--show-secrets" in str(error)) != show_secrets
    assert found == goes_on
