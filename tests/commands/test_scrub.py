"""``logtool scrub``: what a run prints, its status, and --status."""

import sys
from pathlib import Path
from typing import Any

import pytest
from damage import damage_file, flip
from terminal import shown_on
from verification import small_log_dir

DAY_S = 86_400


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "scrub.db"


@pytest.fixture
def home(scenario, tmp_path: Path) -> Path:
    """Return a log dir with two partitions of a real broker."""
    return small_log_dir(scenario("4.3.1/clean"), tmp_path / "data", "codec-none-0", "tx.mixed-0")


def shown(finding: dict[str, Any]) -> str:
    """Return a finding as text, without the schema that the first object has."""
    return str({key: value for key, value in finding.items() if key != "schema"})


def test_a_run_finds_what_verify_finds(run, scenario, state: Path) -> None:
    home = scenario("4.3.1/killed")
    found = run("scrub", "--state", state, "--cycle", "1d", "-f", "ndjson", home)
    expected = run("verify", "-f", "ndjson", home)
    assert found.status == expected.status
    both = [sorted(map(shown, by.of_type("finding"))) for by in (found, expected)]
    assert both[0] == both[1]
    totals = [{**by.objects[-1], "elapsed_s": 0} for by in (found, expected)]
    assert totals[0] == totals[1]
    (row,) = found.of_type("run")
    assert (row["segments"], row["complete"]) == (row["due_segments"], True)
    assert row["bytes"] == row["due_bytes"] == totals[1]["bytes"]
    (coverage,) = found.of_type("coverage")
    assert (coverage["share"], coverage["bytes"]) == (1.0, row["bytes"])


def test_the_second_run_of_a_day_finds_the_same_and_reads_nothing(run, home, state: Path) -> None:
    words = ("scrub", "--state", state, "--cycle", "9999d", "-f", "ndjson", home)
    first = run(*words[:3], "--cycle", "1d", *words[5:])
    second = run(*words)
    codes = [sorted(one["code"] for one in by.of_type("finding")) for by in (first, second)]
    assert codes[0] == codes[1]
    assert second.of_type("run")[0]["segments"] <= 1
    assert second.objects[-1]["complete"] is True
    assert second.objects[-1]["partitions"] == first.objects[-1]["partitions"]


def test_the_status_has_coverage_and_findings_by_topic(run, home, state: Path) -> None:
    damage_file(home / "codec-none-0" / f"{0:020d}.log", flip, 70)
    assert run("scrub", "--state", state, "--cycle", "1d", home).status == 1
    found = run("scrub", "--state", state, "--status", "--cycle", "7d", "-f", "ndjson")
    assert found.status == 1
    (status,) = found.of_type("status")
    assert (status["runs"], status["open_errors"], status["gone"]) == (1, 1, 0)
    assert (status["cycle_s"], status["complete_in_s"]) == (7 * DAY_S, 0)
    assert status["last_run"]["status"] == 1
    whole, *topics = found.of_type("coverage")
    assert (whole["scope"], whole["topic"], whole["share"]) == ("all", None, 1.0)
    assert {one["topic"] for one in topics} >= {"codec-none", "tx.mixed"}
    assert sum(one["bytes"] for one in topics) == whole["bytes"] == whole["day_bytes"]
    errors = [
        one for one in found.of_type("stored-finding") if one["finding"]["severity"] == "error"
    ]
    assert [(one["finding"]["code"], one["state"]) for one in errors] == [("batch/crc", "open")]
    table = run("scrub", "--state", state, "--status")
    assert table.lines[0].split()[:3] == ["topic", "segments", "size"]
    assert "batch/crc" in table.stdout
    rows = run("scrub", "--state", state, "--status", "-f", "csv").rows
    assert [one["topic"] for one in rows] == ["", *(one["topic"] for one in topics)]


def test_a_run_without_time_is_status_6_and_everything_stays_due(run, home, state: Path) -> None:
    words = ("scrub", "--state", state, "--fail-on", "error", "-f", "ndjson")
    found = run(*words, "--max-duration", "0.000001s", home)
    assert found.status == 6
    assert found.objects[-1]["complete"] is False
    status = run(*words, "--status")
    assert status.of_type("status")[0]["complete_in_s"] is None
    assert status.of_type("coverage")[0]["share"] == 0
    assert status.status == 0


def test_segments_that_were_never_checked_have_no_oldest_check(
    run, home, state: Path, child_environment
) -> None:
    words = ("scrub", "--state", state)
    run(*words, "--max-duration", "0.000001s", home)
    command = [sys.executable, "-m", "logtool", *map(str, words), "--status"]
    _, shown = shown_on(80, command, child_environment(NO_COLOR="1"))
    title, _, *rows = shown.lstrip("\n").split("\n")
    assert {"never", "oldest"} <= set(title.split())
    assert [row.split()[-1] for row in rows[:3]] == ["never"] * 3
    run(*words, "--cycle", "1d", home)
    row = run(*words, "--status").lines[2].split()
    assert (row[0], "never" in row) == ("(all)", False)


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("--status", "{home}"), 2), (("--cycle", "0"), 2), (("--cycle", "x"), 2),
        (("--state", "{home}/scrub.db"), 5), (("--state", "{home}/codec-none-0/scrub.db"), 5),
        (("--state", "{home}/meta.properties"), 5), (("--state", "s3://bucket/scrub.db"), 2),
        (("--status",), 4), (("--level", "quick"), 2), (("{home}/missing",), 4),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(run, home, state: Path, words, status: int) -> None:
    given = [word.format(home=home) for word in words]
    paths = () if "--status" in words or str(home) in given or len(words) == 1 else (home,)
    before = () if "--state" in words else ("--state", state)
    assert run("scrub", *before, *given, *paths).status == status


def test_the_state_is_required(run, home) -> None:
    assert run("scrub", home).status == 2


def test_paths_are_known_from_any_directory(run, home, state: Path, monkeypatch) -> None:
    run("scrub", "--state", state, "--cycle", "1d", home)
    monkeypatch.chdir(home.parent)
    again = run("scrub", "--state", state, "--cycle", "9999d", "-f", "ndjson", home.name)
    assert again.of_type("coverage")[0]["share"] == 1
    assert again.of_type("coverage")[0]["never_segments"] == 0


def test_the_state_knows_a_path_without_the_steps_up(run, copy_of, tmp_path):
    home, state = copy_of("4.3.1/clean"), tmp_path / "state"
    (home.parent / "x").mkdir()
    (home / "codec-none-0" / f"{0:020d}.index").write_bytes(b"12345")
    given = home.parent / "x" / ".." / home.name
    found = run("scrub", "--state", state, "-f", "ndjson", given).of_type("finding")
    assert found
    assert not any(".." in one["path"] for one in found)
