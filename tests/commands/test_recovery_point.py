"""``logtool plan`` around the recovery point: what a start reads, skips and cuts.

The quoted sentences are those of KAFKA-615.
"""

import os
import shlex

import pytest
from answers import assert_valid, last_line, numbers, undo_dirs
from damage import damage_file, overwrite, remove_file
from recovering import POINTS, logs, offsets, points
from terminal import LOGTOOL, shown_on
from verification import batches, rewrite, set_offsets

from logtool.formats import offset_checkpoint


def test_damage_below_the_recovery_point_is_not_read_and_verify_is_the_next_command(run, killed):
    every_log = sorted((killed / "tx.mixed-0").glob("*.log"))
    below = every_log[2]
    assert int(below.stem) < points(killed)["tx.mixed", 0]
    damage_file(below, overwrite, 70, b"\xff\xff")
    result = run("plan", "-f", "ndjson", killed)
    assert_valid("plan", result.objects)
    assert result.status == 0  # nothing that is known speaks against a start
    (one,) = (o for o in result.of_type("partition") if o["topic"] == "tx.mixed")
    unread = every_log[: one["unread_segments"]]
    assert one["unread_segments"] + one["recovered_segments"] == len(every_log)
    assert one["unread_bytes"] == sum(log.stat().st_size for log in unread)
    assert batches(every_log[len(unread)]).base_offset[0] <= one["recovery_point"]
    (command,) = result.objects[-1]["next"]
    assert command == f"logtool verify {killed}"
    every = sum(one["unread_segments"] for one in result.of_type("partition"))
    (line,) = (line for line in run("plan", killed).stderr.splitlines() if command in line)
    assert f" {every} segments " in line
    found = run(*shlex.split(command)[1:], "-f", "ndjson").of_type("finding")
    assert ("batch/crc", str(below)) in {(one["code"], one["path"]) for one in found}


def test_damage_seen_below_the_recovery_point_is_shown_with_the_next_command(run, killed):
    index = sorted((killed / "small-segments-0").glob("*.index"))[2]
    command = f"logtool verify {killed}/small-segments-0"
    sound = run("plan", killed / "small-segments-0")
    index.write_bytes(index.read_bytes() + b"\1\2\3")
    result = run("plan", killed / "small-segments-0")
    assert (sound.status, result.status) == (0, 1)
    (before,), (after,) = (
        [line for line in one.stderr.splitlines() if line.endswith(command)]
        for one in (sound, result)
    )
    words = [line.removesuffix(command).split() for line in (before, after)]
    assert ["damaged" in line for line in words] == [False, True]


def test_without_a_recovery_point_everything_is_read_and_nothing_is_below(run, killed):
    (killed / POINTS).unlink()
    result = run("plan", "-f", "ndjson", killed)
    assert result.objects[-1]["next"] == []
    assert {one["unread_segments"] for one in result.of_type("partition")} == {0}
    assert "logtool verify" not in run("plan", killed).stderr


# "We do not, however, recover partial segments"


def test_the_segment_of_a_recovery_point_in_its_middle_is_recovered_from_its_beginning(run, killed):
    *_, last = logs(killed)
    set_offsets(killed / POINTS, {("small-segments", 0): int(last.stem) + 7})
    (one,) = run("plan", "-f", "ndjson", killed / "small-segments-0").of_type("partition")
    assert (one["recovered_segments"], one["bytes_scanned"]) == (1, last.stat().st_size)


def test_a_recovery_point_beyond_the_end_is_reset_to_the_end_of_the_log(run, killed):
    set_offsets(killed / POINTS, {("small-segments", 0): 999_999})
    (one,) = run("plan", "-f", "ndjson", killed / "small-segments-0").of_type("partition")
    assert one["new_recovery_point"] == one["log_end_offset"] == offsets(killed)[-1][1] + 1
    assert one["recovered_segments"] == 1  # "we force recover the last segment"


def test_a_bad_segment_is_truncated_and_all_remaining_segments_are_deleted(run, killed):
    (killed / POINTS).unlink()
    *_, bad, third, fourth = logs(killed)
    position = int(batches(bad).position[1])
    damage_file(bad, overwrite, position + 30, b"\xff\xff")
    actions = run("plan", "-f", "ndjson", killed / "small-segments-0").of_type("action")
    (cut,) = (one for one in actions if one["action"] == "truncate")
    assert (cut["path"], cut["position"]) == (str(bad), position)
    gone = [one["path"] for one in actions if one["action"] == "remove"
            and one["path"].endswith(".log")]  # fmt: skip
    assert gone == [str(third), str(fourth)]


@pytest.fixture
def foreign(killed):
    """Return a log dir in which the sixth batch of a log has an offset out of its segment."""
    (killed / POINTS).unlink()
    log = killed / "codec-none-0" / f"{0:020d}.log"
    table = batches(log)
    damage_file(log, overwrite, int(table.position[5]), (2**33).to_bytes(8, "big"))
    return (
        killed,
        int(table.position[5]),
        int(table.base_offset[5]),
        int(table.record_count[5:].sum()),
    )


def test_a_batch_outside_of_its_segment_is_cut_with_consent_where_a_broker_refuses(run, foreign):
    home, position, end, records = foreign

    def forecast(*command):
        result = run(*command, "-f", "ndjson", home)
        assert_valid("plan", result.objects)
        (one,) = (one for one in result.of_type("partition") if one["topic"] == "codec-none")
        assert one["recover_log_end_offset"] == end
        return result, one

    result, one = forecast("plan")
    assert (result.status, one["outcome"]) == (1, "refuses")
    (line,) = (line for line in run("plan", home).lines if line.startswith(f"{home}/codec-none-0"))
    assert f" {end})" in line
    result, one = forecast("recover")
    assert (one["outcome"], one["broker_log_end_offset"]) == ("loads", None)
    assert (one["log_end_offset"], one["lost_records"]) == (end, records)
    (cut,) = (one for one in result.of_type("action") if one["action"] == "truncate")
    assert (cut["position"], cut["first_offset"]) == (position, end)
    _, one = forecast("recover", "--cut-as-broker")
    assert one["outcome"] == "refuses"
    assert run("recover", "--apply", home).status == 5
    assert run("recover", "--apply", "--accept-loss", "codec-none-0", home).status == 0
    assert len((home / "codec-none-0" / f"{0:020d}.log").read_bytes()) == position
    result, one = forecast("plan")
    assert (result.status, one["outcome"]) == (1, "loads")  # acknowledged records are lacking
    (undo_dir,) = undo_dirs(home)
    assert run("undo", "--apply", undo_dir).status == 0
    assert forecast("plan")[1]["outcome"] == "refuses"


def test_nothing_stays_behind_a_batch_outside_of_its_segment(run, killed):
    (killed / POINTS).unlink()
    third, *behind = logs(killed)[2:]
    table = batches(third)
    damage_file(third, overwrite, int(table.position[2]), (7).to_bytes(8, "big"))
    result = run("recover", "-f", "ndjson", killed)
    (one,) = (one for one in result.of_type("partition") if one["topic"] == "small-segments")
    assert one["log_end_offset"] == int(table.base_offset[2])
    gone = [one["segment"] for one in result.of_type("action") if one["action"] == "remove"
            and one["path"].endswith(".log")]  # fmt: skip
    assert gone == [int(log.stem) for log in behind]


# "Previously we always recovered the last log segment ... now from the recovery point"


POLICIES = ("--policy", "last-segment", "--policy", "recovery-point")


def test_both_policies_are_compared_with_the_damage_that_the_older_one_misses(run, killed):
    every = [sorted(folder.glob("*.log")) for folder in killed.glob("[!_]*-0")]
    damaged = logs(killed)[-3]
    damage_file(damaged, overwrite, 70, b"\xff\xff")
    result = run("plan", *POLICIES, "-f", "ndjson", killed)
    assert_valid("plan", result.objects)
    (compared,) = result.of_type("policies")
    last, point = compared["policies"]
    assert (last["policy"], point["policy"]) == ("last-segment", "recovery-point")
    planned = result.of_type("partition")
    assert last["segments"] == len(planned)
    assert last["bytes"] == sum(found[-1].stat().st_size for found in every)
    assert point["segments"] == sum(one["recovered_segments"] for one in planned)
    assert point["bytes"] == sum(one["bytes_scanned"] + one["bytes_replayed"] for one in planned)
    total = sum(log.stat().st_size for found in every for log in found)
    assert last["unread_bytes"] == total - last["bytes"]
    assert point["missed"] == []
    (missed,) = last["missed"]
    assert (missed["path"], missed["position"]) == (str(damaged), 0)
    assert 0 < last["seconds_low"] <= last["seconds"] <= last["seconds_high"]
    document = run("plan", *POLICIES, "--json", killed)
    assert [one for one in document.items if one["type"] == "policies"] == [
        {key: value for key, value in compared.items() if key != "schema"}
    ]


def test_the_table_of_policies_fits_on_80_columns(killed):
    command = [LOGTOOL, "plan", "--no-progress", *POLICIES, str(killed)]
    _, shown = shown_on(80, command, os.environ)
    lines = shown.split("\n")
    at = next(n for n, line in enumerate(lines) if line.startswith(" policy "))
    assert lines[at].split() == ["policy", "read", "bytes", "time", "unread", "bytes", "misses"]
    assert [line.split()[0] for line in lines[at + 2 : at + 4]] == [
        "last-segment", "recovery-point"
    ]  # fmt: skip
    assert all(len(line) <= 80 for line in lines[at : at + 4])


def test_when_there_was_a_clean_shutdown_neither_policy_recovers_anything(run, killed):
    (killed / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
    (compared,) = run("plan", *POLICIES, "-f", "ndjson", killed).of_type("policies")
    assert [one["segments"] for one in compared["policies"]] == [0, 0]


def test_a_segment_at_some_rate_might_take_many_seconds(run, killed):
    words = (*POLICIES, "--read-rate", "1K", "-f", "ndjson", killed)
    (compared,) = run("plan", *words).of_type("policies")
    for one in compared["policies"]:
        assert one["seconds"] == pytest.approx(one["bytes"] / 1024, rel=0.01)


NO_POINT = "checkpoint/no-recovery-point"


def no_points(result):
    """Return path and numbers of each finding about absent recovery points."""
    found = (one for one in result.of_type("finding") if one["code"] == NO_POINT)
    return [(one["path"], *numbers(one["message"])) for one in found]


def test_the_cause_of_a_recovery_of_every_segment_is_named(run, killed):
    assert no_points(run("plan", "-f", "ndjson", killed)) == []
    assert POINTS not in last_line(run("plan", killed))
    remove_file(killed / POINTS)
    result = run("plan", "-f", "ndjson", killed)
    assert_valid("plan", result.objects)
    assert result.status == 0
    live = [o for o in result.of_type("partition") if o["topic"] != "__cluster_metadata"]
    recovered = sum(one["recovered_segments"] for one in live)
    (found,) = no_points(result)
    assert found == (str(killed), len(live), 0, recovered)
    assert POINTS in last_line(run("plan", killed))
    assert NO_POINT in run("plan", "-v", killed).stdout


def test_a_row_that_is_absent_is_a_cause_too(run, killed):
    """With one segment, a start recovers the log with a row and without it."""
    rows = points(killed)
    for absent, expected in (("codec-none", []), ("small-segments", [str(killed / POINTS)])):
        kept = {key: at for key, at in rows.items() if key[0] != absent}
        rewrite(killed / POINTS, offset_checkpoint.encode(offset_checkpoint.build(kept)))
        found = no_points(run("plan", "-f", "ndjson", killed))
        assert [path for path, *_ in found] == expected


def test_no_cause_is_named_where_an_option_or_a_clean_stop_decides(run, killed, stopped):
    for home, *options in ((killed, "--full"), (stopped,)):
        (home / POINTS).unlink()
        assert no_points(run("plan", "-f", "ndjson", *options, home)) == []


def test_more_threads_shorten_a_start_without_recovery_points(run, killed, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(4)))
    (killed / POINTS).unlink()
    setting = "num.recovery.threads.per.data.dir"
    for options, is_named in (((), True), (("--recovery-threads", 4), False)):
        shown = run("plan", "--read-rate", "10k", *options, killed).stderr
        assert any(line.startswith(setting) for line in shown.splitlines()) is is_named


def test_verify_names_the_partitions_without_a_recovery_point(run, killed, stopped):
    for home in (killed, stopped):
        keys = points(home)
        assert keys
        (home / POINTS).unlink()
        result = run("verify", "-f", "ndjson", home)
        found = [one for one in result.of_type("finding") if one["code"] == NO_POINT]
        assert {(one["topic"], one["partition"]) for one in found} == set(keys)
        assert {one["path"] for one in found} == {str(home)}
        assert result.status == 0
