"""``logtool recover --truncate-to``."""

import pytest
from answers import numbers, undo_dirs
from changes import everything
from damage import damage_file, overwrite
from recovering import POINTS, TRUNCATE, logs, offsets
from verification import small_log_dir

from logtool.formats import offset_checkpoint


def log_bytes(home):
    return b"".join(log.read_bytes() for log in logs(home))


def test_a_truncation_needs_consent_and_can_be_undone_byte_for_byte(run, killed):
    before, data, found = everything(killed), log_bytes(killed), offsets(killed)
    assert run(*TRUNCATE, killed).status == 1
    refused = run(*TRUNCATE, "--apply", killed)
    assert refused.status == 5
    assert "--accept-loss small-segments-0" in refused.stderr
    assert everything(killed) == before
    done = run(*TRUNCATE, "--apply", "--accept-loss", "small-segments-0", killed)
    assert done.status == 0
    kept = [(first, last) for first, last in found if last < 100]
    assert offsets(killed) == kept
    assert data.startswith(log_bytes(killed))
    for name in (POINTS, "replication-offset-checkpoint"):
        rows = offset_checkpoint.parse((killed / name).read_bytes()).offsets
        assert rows["small-segments", 0] <= kept[-1][1] + 1
    result = run("verify", "-f", "ndjson", killed / "small-segments-0").of_type("finding")
    assert {one["code"] for one in result if one["severity"] != "info"} == set()
    assert run("plan", killed).status == 0
    (undo_dir,) = undo_dirs(killed)
    assert run("undo", "--apply", undo_dir).status == 0
    assert everything(killed) == before


def test_a_log_that_ends_before_the_offset_is_not_cut(run, killed):
    end = offsets(killed)[-1][1] + 1
    result = run("recover", "--truncate-to", f"small-segments-0={end}", "-f", "ndjson", killed)
    lines = [line for line in result.stderr.splitlines() if f"{killed}/small-segments-0:" in line]
    assert [f" {end}" in line for line in lines] == [True]
    assert "truncate" not in {one["action"] for one in result.of_type("action")}


@pytest.mark.parametrize(
    ("words", "part"),
    {
        "no partition": (["--truncate-to", "7"], "TOPIC-PARTITION=OFFSET"),
        "another way": (["--truncate-to", "a-0=7", "--full"], "--full"),
        "twice": (["--truncate-to", "a-0=7", "--truncate-to", "a-0=8"], "twice"),
        "a stranger": (["--truncate-to", "a-0=7"], "--truncate-to a-0"),
    }.values(),
)
def test_a_truncation_that_makes_no_sense_is_refused(run, killed, words, part):
    result = run("recover", *words, killed)
    assert result.status == 2
    assert part in result.stderr


def test_a_log_is_not_truncated_to_before_its_start(run, scenario, tmp_path):
    home = small_log_dir(scenario("4.3.1/clean"), tmp_path / "cut", "deleted-records.mid-0")
    result = run("recover", "--truncate-to", "deleted-records.mid-0=3", "--apply", home)
    assert result.status == 5
    (line,) = (line for line in result.stderr.splitlines() if "deleted-records.mid-0" in line)
    assert {77, 3} <= set(numbers(line))


def test_damage_before_the_offset_is_cut_as_well(run, killed):
    (log,) = (log for log in logs(killed) if int(log.stem) == 77)
    damage_file(log, overwrite, 70, b"\xff\xff")
    result = run(*TRUNCATE, "-f", "ndjson", killed)
    (one,) = result.of_type("partition")
    assert one["log_end_offset"] == 77
    (cut,) = (one for one in result.of_type("action") if one["action"] == "truncate")
    assert (cut["position"], cut["first_offset"]) == (0, 77)
