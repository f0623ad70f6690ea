"""``dump --max-duration`` and ``--max-rate``: an end before all was read, and a slower pace."""

import pytest

from logtool.dump.stream import Dump
from logtool.running.summary import Summary
from logtool.running.workers import Pace

SOON = "0.000000001s"


@pytest.fixture
def home(scenario):
    return scenario("4.3.1/clean") / "small-segments-0"


@pytest.mark.parametrize("words", [(), ("--records",), ("--count",), ("--key", "key-0013")])
def test_a_dump_ends_when_its_time_is_over(run, home, words):
    result = run("dump", *words, "--max-duration", SOON, "-f", "ndjson", home)
    assert (result.status, result.objects[-1]["complete"]) == (6, False)
    assert result.of_type("record") == []
    assert result.objects[-1]["batches"] == 0


def test_enough_time_changes_nothing(run, home):
    whole = run("dump", "--records", "-f", "csv", home)
    limited = run("dump", "--records", "-f", "csv", "--max-duration", "1h", home)
    assert (limited.status, limited.stdout) == (0, whole.stdout)


def test_damage_that_was_found_counts_more_than_the_time(run, copy_of):
    home = copy_of("4.3.1/clean") / "small-segments-0"
    log = home / f"{0:020d}.log"
    log.write_bytes(b"\xff" * 61 + log.read_bytes()[61:])
    job = Dump(paths=[home], summary=Summary(pace=Pace()))
    for item in job:
        if not isinstance(item, dict) or item["type"] == "error":
            job.summary.pace.end()
    assert (job.summary.exit_status(), job.summary.complete) == (1, False)


def test_the_rate_is_kept_before_the_records_of_a_batch_are_printed(home):
    spent = []

    class Noted(Pace):
        def spend(self, count):
            spent.append(count)

    job = Dump(paths=[home], summary=Summary(pace=Noted(bytes_per_second=1.0)))
    list(job)
    logs = sum(path.stat().st_size for path in home.glob("*.log"))
    assert (
        sum(spent)
        == logs
        == job.summary.bytes
        - sum(path.stat().st_size for path in home.iterdir() if path.suffix != ".log")
    )


@pytest.mark.parametrize("form", ["parquet", "kcat"])
def test_a_file_for_a_program_is_not_cut_off(run, home, tmp_path, form):
    target = tmp_path / "records"
    words = ("--output", target) if form == "parquet" else ()
    result = run("dump", "-f", form, *words, "--max-duration", "1h", home)
    assert (result.status, result.stdout, target.exists()) == (2, "", False)
