"""A report is updated job by job, and has the date and commit of each job."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import __main__ as program
from bench.measure import Timing
from bench.report import Machine, Measured, Report, as_json, as_markdown, from_json, updated
from bench.rows import Bar, Bench, Row


def machine(commit: str) -> Machine:
    return Machine("a processor", 2, "Linux x86_64", "3.11.7", {"numpy": "2.4.6"}, commit)


def measured(commit: str, date: str, *rows: Row) -> Measured:
    return Measured(machine(commit), date, list(rows))


TIMED = Row("a ratio", [0.5, 0.7], Bar(0.6), note="1 s", timing=Timing([2.0, 3.0], [1.0, 2.1]))
OLD: Report = {
    "verify": measured("aaa", "2026-01-31", TIMED),
    "gone": measured("aaa", "2026-01-31", Row("of a removed job", [1.0])),
    "memory": measured("aaa", "2026-01-31", Row("memory", [50.0], Bar(at_most=150), "MB")),
    "java": measured("aaa", "2026-01-31", Row("of Kafka", skipped="java is not on the PATH")),
}


def test_a_report_survives_a_round_trip() -> None:
    assert from_json(as_json(OLD)) == OLD


def test_a_new_measurement_replaces_its_job_and_keeps_the_others() -> None:
    new = {"memory": measured("bbb", "2026-02-01", Row("memory", [60.0], unit="MB"))}
    jobs = dict.fromkeys(("memory", "verify", "java", "never measured"))
    found = updated(OLD, new, jobs)
    assert list(found) == ["memory", "verify", "java"]  # the order of the jobs
    assert found["memory"] == new["memory"]
    assert (found["verify"], found["java"]) == (OLD["verify"], OLD["java"])


def test_the_page_has_the_date_and_commit_of_each_job() -> None:
    text = as_markdown({**OLD, "memory": measured("bbb", "2026-02-01", *OLD["memory"].rows)})
    where = [line.split(" | ")[:3] for line in text.splitlines() if "2026-0" in line]
    assert where == [
        ["| 2026-01-31", "aaa", "`verify`, `gone`, `java`"],
        ["| 2026-02-01", "bbb", "`memory`"],
    ]
    (row,) = [line.split(" | ")[2:] for line in text.splitlines() if "| a ratio |" in line]
    assert row == [">= 0.6", "0.6 (0.5 .. 0.7) times", "2", "yes", "1 s |"]


def test_the_committed_report_is_that_of_its_json_and_has_no_removed_job() -> None:
    report = from_json((program.HERE / "report.json").read_text())
    assert set(report) <= set(program.ROWS)
    assert as_markdown(report) == (program.HERE / "REPORT.md").read_text()


def one_row(bench: Bench) -> Iterator[Row]:
    yield Row(f"with {bench.count} pairs", [2.0])


def failing(_: Bench) -> Iterator[Row]:
    yield Row("before it failed", [1.0])
    raise AssertionError


@pytest.fixture
def bench_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return the root of a program with two jobs and a committed report of other results."""
    monkeypatch.setattr(program, "ROWS", {"verify": failing, "memory": one_row})
    monkeypatch.setattr(program, "ROOT", tmp_path)
    monkeypatch.setattr(program, "HERE", tmp_path / "committed")
    (tmp_path / "committed").mkdir()
    (tmp_path / "committed" / "report.json").write_text(as_json(OLD))
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, *options: str) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", *options])
    program.main()


def test_update_replaces_one_job_of_the_committed_report(
    bench_of: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(monkeypatch, "--only", "memory", "--update")
    report = from_json((bench_of / "committed" / "report.json").read_text())
    assert list(report) == ["verify", "memory"]
    assert report["verify"] == OLD["verify"]
    assert [row.title for row in report["memory"].rows] == ["with 5 pairs"]
    assert report["memory"].date > "2026-01-31"
    assert (bench_of / "committed" / "REPORT.md").read_text() == as_markdown(report)


def test_the_report_of_some_jobs_goes_to_build_without_update(
    bench_of: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(monkeypatch, "--only", "memory", "--quick")
    assert from_json((bench_of / "committed" / "report.json").read_text()) == OLD
    (job,) = json.loads((bench_of / "build" / "bench" / "report.json").read_text())["jobs"]
    assert (job["job"], job["rows"][0]["title"]) == ("memory", "with 2 pairs")


def test_a_job_that_fails_adds_a_row_and_stops_no_other_job(
    bench_of: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(monkeypatch)
    report = from_json((bench_of / "committed" / "report.json").read_text())
    assert [(row.title, row.skipped) for row in report["verify"].rows] == [
        ("before it failed", ""), ("verify, the rest", "failed with AssertionError"),
    ]  # fmt: skip
    assert report["memory"].rows


@pytest.mark.parametrize("option", ["--quick", "--drop-cache"])
def test_update_refuses_other_conditions(
    option: str, bench_of: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit, match="2"):
        run(monkeypatch, "--only", "memory", "--update", option)
    assert from_json((bench_of / "committed" / "report.json").read_text()) == OLD
