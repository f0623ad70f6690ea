"""Two runs compared, and the history of all: from tables, with no Spark."""

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from jsonschema import Draft202012Validator
from pipeline.places import logtool
from pyarrow import parquet

from logtool.errors import RefusedError, UsageError
from logtool.schemas import arrow
from logtool.schemas import tables as all_tables
from logtool.schemas.columns import Way
from logtool.spark.scan import compare_runs, history, manifest
from logtool.spark.scan.compare_runs import FindingChange, Lag, compare
from logtool.spark.scan.history import HISTORY, RunHistory
from logtool.spark.scan.runs import begin

Row = dict[str, Any]


def segment(topic: str, number: int, **more: Any) -> Row:
    return {"log_dir": "/a", "directory": f"{topic}-0", "topic": topic, "partition": 0,
            "segment": number, "log_bytes": 100, "records": 10, "damaged_bytes": 0,
            "last_timestamp_ms": None, **more}  # fmt: skip


def finding(code: str, number: int, **more: Any) -> Row:
    return {"log_dir": "/a", "directory": "t-0", "topic": "t", "partition": 0, "segment": 0,
            "number": number, "severity": "warning", "code": code, "broker": "never",
            "remedy": "none",
            "path": "/a/t-0/0.log", "position": 5, "message": f"{number} of them",
            **more}  # fmt: skip


def replica(log_dir: str, **more: Any) -> Row:
    return {"log_dir": log_dir, "topic": "t", "partition": 0, "directory": "t-0", "copies": 2,
            "behind": 0, "diverges_at": None, **more}  # fmt: skip


def write(output: Path, run_id: str, segments=(), findings=(), replicas=()) -> None:
    """Write a run with these rows, in the columns that they have."""
    run = begin(str(output), run_id)
    totals = RunHistory()
    for row in segments:
        totals.add_segment(row)
    for row in findings:
        totals.add_finding(row)
    for name, rows in (("findings", findings), ("replicas", replicas)):
        with run.staging.writer(name) as writer:
            writer.write(pa.RecordBatch.from_pylist(list(rows), arrow.schema(name)))
        run.add(writer.parts)
    with run.staging.writer(history.TABLE, HISTORY) as writer:
        writer.write(totals.rows(run_id))
    run.add(writer.parts)
    run.commit(("findings", "replicas"), {})


@pytest.fixture
def output(tmp_path) -> Path:
    place = tmp_path / "out"
    write(
        place, "monday",
        [segment("t", 0), segment("t", 10), segment("gone", 0)],
        [finding("batch/crc", 0, severity="error"), finding("segment/gap", 1),
         finding("segment/gap", 2), finding("index/x", 3)],
        [replica("/a"), replica("/b", behind=5), replica("/c", diverges_at=7)],
    )  # fmt: skip
    write(
        place, "tuesday",
        [segment("t", 0), segment("t", 10, log_bytes=150), segment("t", 20), segment("new", 0)],
        [finding("batch/crc", 0, severity="error", message="other numbers"),
         finding("segment/gap", 1), finding("index/y", 2, position=None)],
        [replica("/a", behind=9), replica("/b", behind=5), replica("/c", diverges_at=7),
         replica("/d", diverges_at=3, behind=1)],
    )  # fmt: skip
    return place


def test_findings_are_new_gone_or_still_there(output):
    found = compare(str(output), "monday", "tuesday")
    assert [(str(state), row["code"]) for state, row in found.findings] == [
        ("still", "batch/crc"), ("still", "segment/gap"), ("new", "index/y"),
        ("gone", "index/x"), ("gone", "segment/gap"),
    ]  # fmt: skip
    assert found.findings[0][1]["message"] == "other numbers"
    back = compare(str(output), "tuesday", "monday")
    assert back.count(FindingChange.NEW) == found.count(FindingChange.GONE) == 2


def test_topics_grow_shrink_come_and_go(output):
    grown = {row["topic"]: row for row in compare(str(output), "monday", "tuesday").growth}
    assert set(grown) == {"t", "gone", "new"}
    assert (grown["t"]["log_bytes"], grown["t"]["log_bytes_before"]) == (350, 200)
    assert (grown["t"]["segments"], grown["t"]["partition_dirs"]) == (3, 1)
    assert (grown["gone"]["log_bytes"], grown["gone"]["log_bytes_before"]) == (0, 100)
    assert (grown["new"]["records"], grown["new"]["records_before"]) == (10, 0)


def test_replicas_that_fell_behind_or_diverged_are_listed(output):
    found = compare(str(output), "monday", "tuesday")
    lags = [(lag, row["log_dir"], known and known["behind"]) for lag, row, known in found.replicas]
    assert lags == [(Lag.BEHIND, "/a", 0), (Lag.DIVERGED, "/d", None)]
    assert compare(str(output), "tuesday", "monday").replicas == []


def test_two_runs_are_needed_and_must_be_there(output):
    with pytest.raises(UsageError):
        compare(str(output), "monday", "monday")
    with pytest.raises(RefusedError, match="sunday"):
        compare(str(output), "sunday", "monday")


def test_the_file_of_the_history_has_the_columns_of_the_schema(output):
    columns = all_tables.ALL["history"].columns
    for run in manifest.complete(str(output)):
        (part,) = (part for part in run.parts if part.table == history.TABLE)
        found = parquet.read_schema(output / part.path)
        assert found.equals(arrow.schema("history", way=Way.HISTORY), check_metadata=True)
        assert found.names == [column.name for column in columns]


def test_the_history_has_a_row_a_run_and_topic(output):
    rows = history.history(str(output))
    assert [(row["run_id"], row["topic"]) for row in rows] == [
        ("monday", "gone"), ("monday", "t"), ("tuesday", "new"), ("tuesday", "t")]  # fmt: skip
    assert [row["at_ms"] for row in rows] == sorted(row["at_ms"] for row in rows)
    monday = rows[1]
    assert (monday["errors"], monday["warnings"], monday["segments"]) == (1, 3, 2)
    assert {row["topic"] for row in history.history(str(output), frozenset({"t"}))} == {"t"}


def test_what_is_printed_keeps_to_its_schema_and_the_status_is_1_if_something_is_worse(output):
    checker = Draft202012Validator(json.loads((files("logtool.schemas") / "scan.json").read_text()))
    worse = logtool("scan", "--output", output, "--compare", "monday", "tuesday", "--json")
    assert worse.returncode == 1, worse.stderr
    document = json.loads(worse.stdout)
    assert not list(checker.iter_errors(document))
    assert {one["type"] for one in document["items"]} == {"finding", "growth", "replica"}
    for obj in document["items"]:
        assert not checker.is_valid({**obj, "surprise": 1})
        for key in obj:
            assert not checker.is_valid({k: v for k, v in obj.items() if k != key}), key
    trend = logtool("scan", "--output", output, "--history", "--json")
    assert trend.returncode == 0
    assert not list(checker.iter_errors(json.loads(trend.stdout)))
    assert len(json.loads(trend.stdout)["items"]) == 4


def test_a_person_reads_what_changed(output):
    done = logtool("scan", "--output", output, "--compare", "monday", "tuesday")
    assert "index/y" in done.stdout
    assert "segment/gap" in done.stdout
    assert "batch/crc" not in done.stdout, "what is still there is shown with -v"
    assert "3 (+1)" in done.stdout
    last = done.stderr.splitlines()[-1]
    assert last.startswith("monday to tuesday: ")
    assert re.findall(r"\d+", last)[:3] == ["1", "2", "2"]  # new, gone, still there
    same = logtool("scan", "--output", output, "--compare", "monday", "sunday")
    assert (same.returncode, "sunday" in same.stderr) == (5, True)
    csv = logtool("scan", "--output", output, "--compare", "monday", "tuesday", "-f", "csv")
    assert len(csv.stdout.splitlines()) == 1 + 5 + 3 + 2


def test_it_is_better_when_nothing_is_new(output):
    assert compare(str(output), "monday", "tuesday").is_worse
    write(output, "wednesday")
    assert logtool("scan", "--output", output, "--compare", "tuesday", "wednesday").returncode == 0
    assert compare_runs.compare(str(output), "tuesday", "wednesday").count(FindingChange.GONE) == 3
