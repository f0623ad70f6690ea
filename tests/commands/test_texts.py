"""The sentences of the texts that the tool stands on: one test for each that is held.

KAFKA-615 (recovery points), KIP-263 (lazy index checks), ghost batches, AKIP-2 (faster recovery)
and an article on high watermark and log end offset. Each test is named after what the text says.
"""

import json
import os
import re
import shlex
import sys
from importlib.resources import files
from pathlib import Path

import pytest
from damage import damage_file, overwrite
from jsonschema import Draft202012Validator
from terminal import shown_on
from verification import batches, small_log_dir

from logtool.formats import (
    offset_checkpoint,
    record,
    time_index,
    transaction_index,
    wording,
)

LOGTOOL = str(Path(sys.executable).parent / "logtool")

PARTITIONS = ("small-segments-0", "codec-none-0", "tx.mixed-0")
POINTS = "recovery-point-offset-checkpoint"


def schema(name):
    return Draft202012Validator(json.loads((files("logtool.schemas") / name).read_text()))


def assert_valid(name, objects):
    for obj in objects:
        assert not [error.message for error in schema(name).iter_errors(obj)], obj


@pytest.fixture
def killed(scenario, tmp_path):
    """Return a log dir of three partitions whose broker was killed; no record is bad."""
    return small_log_dir(scenario("4.3.1/killed"), tmp_path / "data", *PARTITIONS)


def points(home):
    return offset_checkpoint.parse((home / POINTS).read_bytes()).offsets


def log_bytes(home):
    return b"".join(log.read_bytes() for log in sorted((home / "small-segments-0").glob("*.log")))


def offsets(home):
    """Return the first and the last offset of each batch of small-segments-0."""
    tables = [batches(log) for log in sorted((home / "small-segments-0").glob("*.log"))
              if log.stat().st_size]  # fmt: skip
    return [
        (int(first), int(last))
        for table in tables
        for first, last in zip(table.base_offset, table.last_offset, strict=True)
    ]


TRUNCATE = ("recover", "--truncate-to", "small-segments-0=100")


# KAFKA-615: "only recover segments newer than this"


def test_what_lies_below_the_recovery_point_is_not_recovered_and_plan_says_so(run, killed):
    below = sorted((killed / "small-segments-0").glob("*.log"))[2]
    assert int(below.stem) < points(killed)["small-segments", 0]
    damage_file(below, overwrite, 70, b"\xff\xff")
    result = run("plan", killed)
    assert result.status == 0  # nothing that is known speaks against a start
    line = result.stderr.splitlines()[-2]
    assert line.startswith("below the recovery point, where no broker looks, 74 segments (")
    assert line.endswith(f") were not read; to check them: logtool verify {killed}")
    found = run(*shlex.split(line.partition(": ")[2])[1:], "-f", "ndjson").of_type("finding")
    assert ("batch/crc", str(below)) in {(one["code"], one["path"]) for one in found}


def test_what_plan_did_not_read_is_told_to_machines_with_the_next_command(run, killed):
    objects = run("plan", "-f", "ndjson", killed).objects
    assert_valid("plan.json", objects)
    assert objects[-1]["next"] == [f"logtool verify {killed}"]
    (one,) = (o for o in objects if o.get("topic") == "small-segments" and o["type"] == "partition")
    logs = sorted((killed / "small-segments-0").glob("*.log"))
    unread = logs[: one["unread_segments"]]
    assert one["unread_segments"] + one["recovered_segments"] == len(logs)
    assert one["unread_bytes"] == sum(log.stat().st_size for log in unread)
    assert batches(logs[len(unread)]).base_offset[0] <= one["recovery_point"]


def test_damage_seen_below_the_recovery_point_is_told_in_the_same_line(run, killed):
    index = sorted((killed / "small-segments-0").glob("*.index"))[2]
    index.write_bytes(index.read_bytes() + b"\1\2\3")
    result = run("plan", killed / "small-segments-0")
    assert result.status == 1
    line = result.stderr.splitlines()[-2]
    assert line.startswith(
        "below the recovery point, where no broker looks, there is damage (1 place told above), "
        "and "
    )
    assert line.endswith(f": logtool verify {killed}/small-segments-0")


def test_without_a_recovery_point_everything_is_read_and_nothing_is_below(run, killed):
    (killed / POINTS).unlink()
    result = run("plan", "-f", "ndjson", killed)
    assert result.objects[-1]["next"] == []
    assert {one["unread_segments"] for one in result.of_type("partition")} == {0}
    assert "below the recovery point" not in run("plan", killed).stderr


def partitions(result):
    return {one["directory"]: one for one in result.of_type("partition")}


# AKIP-2: "supplement the existing data. Also, reduce the playback range of records"

SUPPLEMENT = ("--strategy", "supplement")
TRUST = (*SUPPLEMENT, "--trust-log")


def playback(result, topic="tx.mixed"):
    (one,) = (one for one in result.of_type("partition") if one["topic"] == topic)
    return one


def test_the_starting_offset_is_the_smaller_of_the_txnindex_and_producer_snapshot_checkpoint(
    run, killed
):
    result = run("recover", *TRUST, "-f", "ndjson", killed)
    assert_valid("plan.json", result.objects)
    for one in result.of_type("partition"):
        told = one["playback"]
        ends = told["transaction_index_checkpoint"], told["producer_snapshot_checkpoint"]
        assert told["starting_offset"] == min(ends)


def test_the_time_index_checkpoint_is_the_offset_of_the_last_index_record(run, killed):
    told = playback(run("recover", *TRUST, "-f", "ndjson", killed))["playback"]
    newest = max(path for path in (killed / "tx.mixed-0").glob("*.timeindex")
                 if path.read_bytes().strip(b"\0"))  # fmt: skip
    index = time_index.parse(newest.read_bytes())
    assert told["time_index_checkpoint"] == index.offsets(int(newest.stem))[-1]


def test_the_producer_snapshot_checkpoint_is_the_key_of_the_snapshot(run, killed):
    told = playback(run("recover", *TRUST, "-f", "ndjson", killed))["playback"]
    newest = max(int(path.stem) for path in (killed / "tx.mixed-0").glob("*.snapshot"))
    assert told["producer_snapshot_checkpoint"] == newest


def test_the_txnindex_checkpoint_is_the_larger_of_the_refreshed_one_and_the_last_entry(run, killed):
    folder = killed / "tx.mixed-0"
    told = playback(run("recover", *TRUST, "-f", "ndjson", killed))["playback"]
    last = max(
        int(transaction_index.parse(path.read_bytes()).last_offsets[-1])
        for path in folder.glob("*.txnindex")
    )
    assert told["transaction_index_checkpoint"] == last > points(killed)["tx.mixed", 0]
    assert told["transaction_index_checkpoint_from"] == "last-entry"
    for path in folder.glob("*.txnindex"):
        path.unlink()
    told = playback(run("recover", *TRUST, "-f", "ndjson", killed))["playback"]
    assert told["transaction_index_checkpoint_from"] == "snapshot"
    assert told["transaction_index_checkpoint"] == told["producer_snapshot_checkpoint"]


def test_instead_of_discarding_data_the_existing_data_is_supplemented(run, killed):
    index = sorted((killed / "tx.mixed-0").glob("*.timeindex"))[-2]
    before = index.read_bytes()
    index.write_bytes(before[:-12] + bytes(240))
    assert run("recover", *TRUST, "--apply", killed).status == 0
    assert index.read_bytes() == before


def test_the_playback_range_is_reduced_and_what_was_saved_and_not_checked_is_said(run, killed):
    (killed / POINTS).unlink()
    result = run("recover", *TRUST, killed / "tx.mixed-0")
    one = playback(run("recover", *TRUST, "-f", "ndjson", killed / "tx.mixed-0"))
    logs = sorted((killed / "tx.mixed-0").glob("*.log"))
    size = sum(log.stat().st_size for log in logs)
    told = one["playback"]
    assert told["bytes_saved"] == size - one["bytes_scanned"]
    assert (told["unchecked_bytes"], told["trusted"]) == (size, True)
    assert one["unread_segments"] == len(logs) - 1
    lines = result.lines
    assert f"producer snapshot {told['producer_snapshot_checkpoint']}," in lines[1]
    assert f"starts at offset {told['starting_offset']}; " in lines[2]
    (said,) = (line for line in result.stderr.splitlines() if line.startswith("--trust-log"))
    assert said.startswith(f"--trust-log: no CRC of {len(logs)} segments (")
    assert f"of {len(logs) - 1} segments nothing" in said
    assert said.endswith(f"to check them: logtool verify {killed}/tx.mixed-0")


def test_with_crcs_checked_as_by_default_nothing_of_the_log_is_left_out(run, killed):
    one = playback(run("recover", *SUPPLEMENT, "--full", "-f", "ndjson", killed))
    assert one["bytes_scanned"] == sum(
        log.stat().st_size for log in (killed / "tx.mixed-0").glob("*.log")
    )
    assert one["playback"]["unchecked_bytes"] == one["playback"]["bytes_saved"] == 0
    assert one["playback"]["starting_offset"] > 0


@pytest.mark.parametrize("way", [SUPPLEMENT, TRUST])
def test_plan_foretells_the_numbers_of_recover(run, killed, way):
    foretold = run("plan", *way, "-f", "ndjson", killed).of_type("partition")
    assert foretold == run("recover", *way, "-f", "ndjson", killed).of_type("partition")
    done = run("recover", *way, "--apply", "-f", "ndjson", killed).of_type("partition")
    assert foretold == done


def test_a_log_is_trusted_only_where_it_is_supplemented_and_not_truncated(run, killed):
    result = run("recover", "--trust-log", killed)
    assert result.status == 2
    assert "--trust-log goes with --strategy supplement: to rebuild, every byte is" in result.stderr
    assert run("plan", "--policy", "last-segment", *TRUST, killed).status == 2
    result = run(*TRUNCATE, *SUPPLEMENT, killed)
    assert result.status == 2
    assert "was written for a log that goes on behind that offset" in result.stderr


def test_the_producer_snapshot_can_be_refreshed_more_often_and_less_is_played_back(run, killed):
    folder = killed / "codec-none-0"
    for path in folder.glob("*.snapshot"):
        path.unlink()
    before = playback(run("plan", *TRUST, "-f", "ndjson", folder), "codec-none")
    command = ("rebuild-index", "--snapshot-every", "8K", "-f", "ndjson", folder)
    made = [one["path"] for one in run(*command, "--apply").of_type("action")]
    assert len(made) == 2
    assert run(*command).of_type("action") == []
    (folder.parent / "empty-0").mkdir()
    assert run(*command[:-1], folder.parent / "empty-0").status == 0
    assert run("verify", "--fail-on", "info", "-q", folder).stdout.count("snapshot") == 0
    result = run("recover", *TRUST, "--apply", "-f", "ndjson", folder)
    after = playback(result, "codec-none")
    assert before["playback"]["starting_offset"] == 0 < after["playback"]["starting_offset"]
    assert after["bytes_applied"] < before["bytes_applied"] / 3
    assert after["log_end_offset"] == before["log_end_offset"]


def test_the_latest_producer_snapshot_is_always_retained(run, scenario, tmp_path):
    home = small_log_dir(scenario("4.3.1/clean"), tmp_path / "data", "tx.mixed-0")
    folder = home / "tx.mixed-0"
    run("rebuild-index", "--snapshot-every", "4K", "--apply", folder)
    newest = max(int(path.stem) for path in folder.glob("*.snapshot"))
    result = run("plan", "-f", "ndjson", folder)
    gone = {one["path"] for one in result.of_type("action") if one["action"] == "remove"}
    stays = {int(path.stem) for path in folder.glob("*.snapshot") if str(path) not in gone}
    bases = {int(path.stem) for path in folder.glob("*.log")}
    assert stays == {newest, *bases} - {min(bases)}
    assert gone


NOW = ("--now", "2026-11-23T00:00:00Z")


def test_what_has_and_what_has_not_been_fsynced_is_shown_for_each_partition(run, killed):
    result = run("checkpoint", "show", "--unflushed", *NOW, "-f", "ndjson", killed)
    assert_valid("checkpoint.json", result.objects)
    assert result.status == 0
    planned = {one["path"]: one for one in run("plan", "-f", "ndjson", killed).of_type("partition")}
    for name, one in partitions(result).items():
        behind = [
            (int(size), int(records), int(stamp))
            for log in sorted((killed / name).glob("*.log"))
            if log.stat().st_size
            for table in [batches(log)]
            for size, records, last, stamp in zip(
                table.size, table.record_count, table.last_offset, table.max_timestamp, strict=True
            )
            if last >= one["recovery_point"]
        ]
        assert one["unflushed_bytes"] == sum(size for size, _, _ in behind)
        assert one["unflushed_records"] == sum(records for _, records, _ in behind)
        assert one["unflushed_since_ms"] == (behind[0][2] if behind else None)
        if behind:
            assert one["unflushed_age_ms"] == 1795392000000 - behind[0][2]
        forecast = planned[str(killed / name)]
        assert one["log_end_offset"] == forecast["log_end_offset"]
        assert one["recovery_bytes"] == forecast["bytes_scanned"]
    assert partitions(result)["small-segments-0"]["unflushed_bytes"] > 0


def test_for_people_ages_and_sizes_are_said_and_machines_keep_the_numbers(run, killed):
    words = ("checkpoint", "show", "--unflushed", *NOW)
    titles, _, *rows = run(*words, killed).lines
    assert titles.split() == [
        "topic", "partition", "unflushed", "records", "age", "start_reads", "would_read",
        "recovery_point", "log_end_offset", "unflushed_since",
    ]  # fmt: skip
    told = partitions(run(*words, "-f", "ndjson", killed))
    for row in rows:
        cells = dict(zip(titles.split(), re.split(r"  +", row), strict=False))
        one = told[f"{cells['topic']}-{cells['partition']}"]
        assert cells["unflushed"] == wording.size(one["unflushed_bytes"])
        if one["unflushed_age_ms"] is not None:
            assert cells["age"] == wording.duration(one["unflushed_age_ms"] / 1000)
    header, *_ = run(*words, "-f", "csv", killed).lines
    assert "unflushed_age_ms" in header.split(",")


def test_at_80_columns_fewer_columns_are_shown_and_the_rest_with_wide(killed):
    command = [LOGTOOL, "checkpoint", "show", "--unflushed", *NOW, str(killed)]
    _, shown = shown_on(80, command, os.environ)
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert shown.split("\n")[0].split()[:5] == [
        "topic", "partition", "unflushed", "records", "age"
    ]  # fmt: skip
    assert "(--wide shows all)" in shown.replace("\n", " ").replace("  ", " ")
    assert "unflushed_since" in shown_on(80, [*command, "--wide"], os.environ)[1].split("\n")[0]


def test_logs_are_read_only_on_request(run, killed):
    result = run("checkpoint", "show", "-f", "ndjson", killed)
    assert_valid("checkpoint.json", result.objects)
    assert {one["unflushed_bytes"] for one in result.of_type("partition")} == {None}
    assert "not flushed" not in result.stderr
    assert run("checkpoint", "show", *NOW, killed).status == 2


def test_a_threshold_on_what_is_not_flushed_is_for_scripts(run, killed):
    most = max(
        one["unflushed_bytes"]
        for one in run("checkpoint", "show", "--unflushed", "-f", "ndjson", killed).of_type(
            "partition"
        )
    )
    under = run("checkpoint", "show", "--max-unflushed", most, killed)
    assert (under.status, "more than" in under.stderr) == (0, False)
    over = run("checkpoint", "show", "--max-unflushed", most - 1, killed)
    assert over.status == 1
    assert over.stderr.splitlines()[-1].startswith("more than ")
    assert over.stderr.splitlines()[-1].endswith(" in small-segments-0")


def test_to_speed_up_recovery_segment_sizes_can_be_made_smaller(run, killed):
    def read(size):
        words = ("checkpoint", "show", "--segment-bytes", size, "-f", "ndjson", killed)
        return partitions(run(*words))

    for name, one in read("128M").items():  # each of the logs would be one segment
        total = sum(log.stat().st_size for log in (killed / name).glob("*.log"))
        assert one["recovery_bytes_if"] == total
    for one in read(1).values():
        assert one["recovery_bytes_if"] == one["unflushed_bytes"]
    small, large = read("4K")["small-segments-0"], read("16K")["small-segments-0"]
    rest = small["unflushed_bytes"]
    assert rest <= small["recovery_bytes_if"] < rest + 4096
    assert rest <= large["recovery_bytes_if"] < rest + 16384
    said = run("checkpoint", "show", "--segment-bytes", "128M", killed).stderr.splitlines()
    assert said[-1].startswith("a start after a kill reads ")
    assert "; with segments of 128.0 MiB about " in said[-1]


# KAFKA-615: "an inactive segment may become active once again because of a truncate operation"


def test_the_case_of_truncate_moves_the_offset_backwards(run, killed, watch):
    before, found = log_bytes(killed), offsets(killed)
    assert run(*TRUNCATE, killed).status == 1
    assert log_bytes(killed) == before
    refused = run(*TRUNCATE, "--apply", killed)
    assert refused.status == 5
    assert "to accept that: --accept-loss small-segments-0" in refused.stderr
    assert log_bytes(killed) == before
    watch.forget()
    done = run(*TRUNCATE, "--apply", "--accept-loss", "small-segments-0", killed)
    watch.forget()
    assert done.status == 0
    kept = [(first, last) for first, last in found if last < 100]
    assert offsets(killed) == kept
    assert before.startswith(log_bytes(killed))
    end = kept[-1][1] + 1
    for name in (POINTS, "replication-offset-checkpoint"):
        rows = offset_checkpoint.parse((killed / name).read_bytes()).offsets
        assert rows["small-segments", 0] <= end
    told = run("verify", "-f", "ndjson", killed / "small-segments-0").of_type("finding")
    assert {one["code"] for one in told if one["severity"] != "info"} == set()
    assert run("plan", killed).status == 0


def test_a_truncation_is_undone_byte_for_byte(run, killed, watch):
    before = {path: path.read_bytes() for path in killed.rglob("*") if path.is_file()}
    watch.forget()
    run(*TRUNCATE, "--apply", "--accept-loss", "small-segments-0", killed)
    (undo_dir,) = killed.parent.glob("data.logtool-undo-*")
    watch.forget()
    assert run("undo", "--apply", undo_dir).status == 0
    watch.forget()
    assert {path: path.read_bytes() for path in killed.rglob("*") if path.is_file()} == before


def test_a_log_that_ends_before_the_offset_is_not_cut(run, killed):
    end = offsets(killed)[-1][1] + 1
    result = run("recover", "--truncate-to", f"small-segments-0={end}", killed)
    said = f"{killed}/small-segments-0: ends at {end}; there is nothing to cut from {end} on"
    assert said in result.stderr.splitlines()
    assert "truncate" not in result.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    {
        "no partition": (["--truncate-to", "7"], "name the partition: TOPIC-PARTITION=OFFSET"),
        "another way": (["--truncate-to", "a-0=7", "--full"], "exclude each other"),
        "twice": (["--truncate-to", "a-0=7", "--truncate-to", "a-0=8"], "is given twice for one"),
        "a stranger": (["--truncate-to", "a-0=7"], "--truncate-to a-0: no such partition is"),
    }.values(),
)
def test_a_truncation_that_makes_no_sense_is_refused(run, killed, words, said):
    result = run("recover", *words, killed)
    assert result.status == 2
    assert said in result.stderr


def test_a_log_is_not_truncated_to_before_its_start(run, scenario, tmp_path):
    home = small_log_dir(scenario("4.3.1/clean"), tmp_path / "cut", "deleted-records.mid-0")
    result = run("recover", "--truncate-to", "deleted-records.mid-0=3", "--apply", home)
    assert result.status == 5
    assert "deleted-records.mid-0 starts at 77; it cannot be truncated to 3" in result.stderr


def test_what_is_damaged_before_the_offset_is_cut_as_well(run, killed):
    log = next(log for log in sorted((killed / "small-segments-0").glob("*.log"))
               if int(log.stem) == 77)  # fmt: skip
    damage_file(log, overwrite, 70, b"\xff\xff")
    result = run(*TRUNCATE, "-f", "ndjson", killed)
    (one,) = result.of_type("partition")
    assert one["log_end_offset"] == 77
    (cut,) = (one for one in result.of_type("action") if one["action"] == "truncate")
    assert (cut["position"], cut["first_offset"]) == (0, 77)


# KAFKA-615: "it is possible that the segment we truncated off reappears"


@pytest.fixture
def zombie(tmp_path, make_batch):
    """Return the log of the text: cut at 10, written on in epoch 2, and an old segment is back."""
    home = tmp_path / "data"
    folder = home / "orders-0"
    folder.mkdir(parents=True)

    def write(base, *made):
        records = [record.Record(i, i, b"key", b"value") for i in range(10)]
        data = [make_batch(first, records, leader_epoch=epoch) for first, epoch in made]
        (folder / f"{base:020d}.log").write_bytes(b"".join(data))
        for kind in ("index", "timeindex"):
            (folder / f"{base:020d}.{kind}").touch()

    write(0, (0, 0), (10, 2), (20, 2))  # "a previous segment active, then we take some writes"
    write(20, (20, 0), (30, 0))  # "the segment we truncated off reappears"
    (folder / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n2 10\n")
    (home / POINTS).write_text("0\n1\norders 0 10\n")
    return home


def test_a_segment_that_was_truncated_off_and_reappears_is_named(run, zombie):
    result = run("plan", zombie)
    assert result.status == 1
    assert (
        "holds offsets 20 through 39 of leader epoch 0, but the log is in epoch 2 from offset 10 "
        "on: a truncation had removed this segment, and it came back; a broker takes it for the "
        "end of the log and appends behind 39; logtool recover drops it"
    ) in result.stdout
    assert result.lines[0].startswith(
        f"{zombie}/orders-0: offsets 0 through 39 (after logtool recover the log ends at 30)"
    )
    assert result.stderr.splitlines()[-1].endswith(
        ", 1 segment of a past that was truncated away taken for the log"
    )
    objects = run("plan", "-f", "ndjson", zombie).objects
    assert_valid("plan.json", objects)
    (one,) = (one for one in objects if one.get("action") == "zombie")
    assert (one["segment"], one["lost_records"]) == (20, 0)


def test_a_zombie_between_segments_answers_for_the_offsets_up_to_the_next(run, zombie, make_batch):
    live = make_batch(30, [record.Record(0, 0, b"key", b"new")], leader_epoch=2)
    (zombie / "orders-0" / f"{30:020d}.log").write_bytes(live)
    result = run("plan", zombie)
    assert "; a broker gives its records to readers who ask for offsets 20 through 29; " in (
        result.stdout
    )
    assert result.lines[0].startswith(f"{zombie}/orders-0: offsets 0 through 30, ")


def test_what_was_written_after_the_truncation_stays_and_the_zombie_goes_with_consent(
    run, zombie, watch
):
    before = {path: path.read_bytes() for path in zombie.rglob("*") if path.is_file()}
    log = zombie / "orders-0" / f"{0:020d}.log"
    assert run("recover", "--apply", zombie).status == 5
    result = run("recover", "-f", "ndjson", zombie)
    assert_valid("plan.json", result.objects)
    (gone,) = (one for one in result.of_type("action") if one["action"] == "remove"
               and one["path"].endswith("20.log"))  # fmt: skip
    assert (gone["lost_records"], gone["first_offset"], gone["last_offset"]) == (20, 20, 39)
    watch.forget()
    assert run("recover", "--apply", "--accept-loss", "orders-0", zombie).status == 0
    watch.forget()
    assert log.read_bytes() == before[log]
    assert not list(log.parent.glob(f"{20:020d}.*"))
    assert run("plan", zombie).status == 0
    (undo_dir,) = zombie.parent.glob("data.logtool-undo-*")
    watch.forget()
    assert run("undo", "--apply", undo_dir).status == 0
    watch.forget()
    assert {path: path.read_bytes() for path in zombie.rglob("*") if path.is_file()} == before


def test_a_zombie_goes_also_where_the_broker_was_stopped_in_order(run, zombie):
    (zombie / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
    result = run("recover", zombie)
    assert "this loses 20 records in 2 sound batches, offsets 20 through 39" in result.stdout
    assert "nothing to recover" not in result.stderr


def test_recover_as_a_broker_leaves_the_zombie_and_says_so(run, zombie):
    result = run("recover", "--cut-as-broker", "-f", "ndjson", zombie)
    assert [one["segment"] for one in result.of_type("action") if one["action"] == "zombie"] == [20]
    refused = run("recover", "--cut-as-broker", "--apply", "--mark-clean", zombie)
    assert refused.status == 5
    assert "cannot be marked clean" in refused.stderr


@pytest.mark.parametrize(
    ("rows", "said"),
    {
        "no file": (None, ": leader epochs do not decide which of the two is right: that one has 0 "
                          "through 2, this one 0; a broker gives readers who ask for offsets 20 "
                          "through 29 this one"),
        "of one epoch": ("0\n1\n0 0\n", ": leader epochs do not decide which of the two is right"),
        "another epoch there": (
            "0\n2\n0 0\n2 40\n", ": leader epochs do not decide which of the two is right"
        ),
    }.values(),
)  # fmt: skip
def test_where_epochs_cannot_decide_that_is_said_and_nothing_goes(run, zombie, rows, said):
    checkpoint = zombie / "orders-0" / "leader-epoch-checkpoint"
    checkpoint.unlink() if rows is None else checkpoint.write_text(rows)
    result = run("plan", zombie)
    assert result.status == 1
    assert said in result.stdout
    assert result.stderr.splitlines()[-1].endswith(", 1 segment not decided on")
    told = run("recover", "-f", "ndjson", zombie)
    assert_valid("plan.json", told.objects)
    assert [one["segment"] for one in told.of_type("action") if one["action"] == "overlap"] == [20]
    assert not [one for one in told.of_type("action") if one["path"].endswith("20.log")
                and one["action"] == "remove"]  # fmt: skip


def test_batches_alone_do_not_decide_against_the_checkpoint(run, zombie, make_batch):
    """A later epoch in the first segment alone, and a checkpoint that knows only epoch 1."""
    folder = zombie / "orders-0"
    records = [record.Record(0, 0, b"key", b"value")]
    for base, epoch in ((0, 2), (20, 0)):
        (folder / f"{base:020d}.log").write_bytes(make_batch(base, records, leader_epoch=epoch))
    (folder / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n1 30\n")
    (zombie / POINTS).write_text("0\n1\norders 0 20\n")
    result = run("plan", zombie)
    assert "is of leader epoch 0, but an earlier segment has a batch of epoch 2, and " in (
        result.stdout
    )
    assert "leader-epoch-checkpoint says epoch 0 there" in result.stdout


def test_a_cleaning_that_was_interrupted_leaves_no_zombie(run, zombie, make_batch):
    """A broker ends it first: the old segments go, and nothing overlaps any more."""
    folder = zombie / "orders-0"
    records = [record.Record(0, 0, b"key", b"value")]
    cleaned = b"".join(make_batch(first, records, leader_epoch=2) for first in (10, 39))
    (folder / f"{0:020d}.log.swap").write_bytes(cleaned)
    result = run("plan", "-f", "ndjson", zombie)
    told = {one["action"] for one in result.of_type("action")}
    assert "rename" in told
    assert not told & {"zombie", "overlap"}


# KAFKA-615: "Previously we always recovered the last log segment ... now from the recovery point"

POLICIES = ("--policy", "last-segment", "--policy", "recovery-point")


def test_both_policies_side_by_side_and_what_the_older_one_misses(run, killed):
    logs = {name: sorted((killed / name).glob("*.log")) for name in PARTITIONS}
    damaged = logs["small-segments-0"][-3]
    damage_file(damaged, overwrite, 70, b"\xff\xff")
    result = run("plan", *POLICIES, "-f", "ndjson", killed)
    assert_valid("plan.json", result.objects)
    (compared,) = result.of_type("policies")
    last, point = compared["policies"]
    assert (last["policy"], point["policy"]) == ("last-segment", "recovery-point")
    planned = result.of_type("partition")
    assert last["segments"] == len(planned)
    assert last["bytes"] == sum(found[-1].stat().st_size for found in logs.values())
    assert point["segments"] == sum(one["recovered_segments"] for one in planned)
    assert point["bytes"] == sum(one["bytes_scanned"] + one["bytes_replayed"] for one in planned)
    total = sum(log.stat().st_size for found in logs.values() for log in found)
    assert last["unread_bytes"] == total - last["bytes"]
    assert point["missed"] == []
    (missed,) = last["missed"]
    assert (missed["path"], missed["position"]) == (str(damaged), 0)
    assert 0 < last["seconds_low"] <= last["seconds"] <= last["seconds_high"]
    document = json.loads(run("plan", *POLICIES, "--json", killed).stdout)
    assert [one for one in document["items"] if one["type"] == "policies"] == [
        {key: value for key, value in compared.items() if key != "schema"}
    ]


def test_the_table_of_policies_fits_on_80_columns(killed):
    _, shown = shown_on(80, [LOGTOOL, "plan", *POLICIES, str(killed)], os.environ)
    lines = shown.split("\n")
    at = next(n for n, line in enumerate(lines) if line.startswith(" policy "))
    assert lines[at].split() == ["policy", "read", "bytes", "time", "unread", "bytes", "misses"]
    assert [line.split()[0] for line in lines[at + 2 : at + 4]] == [
        "last-segment", "recovery-point"
    ]  # fmt: skip
    assert all(len(line) <= 80 for line in lines[at : at + 4])


def test_the_older_policy_checks_the_zombie_segment_and_ignores_the_prior_segment(run, zombie):
    damage_file(zombie / "orders-0" / f"{0:020d}.log", overwrite, 70, b"\xff\xff")
    (compared,) = run("plan", *POLICIES, "-f", "ndjson", zombie).of_type("policies")
    (missed,) = compared["policies"][0]["missed"]
    assert missed["path"].endswith(f"{0:020d}.log")


def test_when_there_was_a_clean_shutdown_neither_policy_recovers_anything(run, killed):
    (killed / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
    (compared,) = run("plan", *POLICIES, "-f", "ndjson", killed).of_type("policies")
    assert [one["segments"] for one in compared["policies"]] == [0, 0]


def test_a_segment_at_some_rate_might_take_many_seconds(run, killed):
    words = (*POLICIES, "--read-rate", "1K", "-f", "ndjson", killed)
    (compared,) = run("plan", *words).of_type("policies")
    for one in compared["policies"]:
        assert one["seconds"] == pytest.approx(one["bytes"] / 1024, rel=0.01)


# KAFKA-615: "We do not, however, recover partial segments"


def test_if_the_recovery_point_falls_in_the_middle_that_segment_is_recovered_from_its_beginning(
    run, killed
):
    *_, last = sorted((killed / "small-segments-0").glob("*.log"))
    rows = points(killed) | {("small-segments", 0): int(last.stem) + 7}
    (killed / POINTS).write_bytes(offset_checkpoint.encode(offset_checkpoint.build(rows)))
    (one,) = run("plan", "-f", "ndjson", killed / "small-segments-0").of_type("partition")
    assert (one["recovered_segments"], one["bytes_scanned"]) == (1, last.stat().st_size)


def test_a_recovery_point_beyond_the_end_is_reset_to_the_end_of_the_log(run, killed):
    rows = points(killed) | {("small-segments", 0): 999_999}
    (killed / POINTS).write_bytes(offset_checkpoint.encode(offset_checkpoint.build(rows)))
    (one,) = run("plan", "-f", "ndjson", killed / "small-segments-0").of_type("partition")
    assert one["new_recovery_point"] == one["log_end_offset"] == offsets(killed)[-1][1] + 1
    assert one["recovered_segments"] == 1  # "we force recover the last segment"


def test_a_bad_segment_is_truncated_and_all_remaining_segments_are_deleted(run, killed):
    (killed / POINTS).unlink()
    *_, bad, third, fourth = sorted((killed / "small-segments-0").glob("*.log"))
    position = int(batches(bad).position[1])
    damage_file(bad, overwrite, position + 30, b"\xff\xff")
    told = run("plan", "-f", "ndjson", killed / "small-segments-0").of_type("action")
    (cut,) = (one for one in told if one["action"] == "truncate")
    assert (cut["path"], cut["position"]) == (str(bad), position)
    gone = [one["path"] for one in told if one["action"] == "remove"
            and one["path"].endswith(".log")]  # fmt: skip
    assert gone == [str(third), str(fourth)]


# KAFKA-615: "keep a text file containing: topic partition offset", appended to


JOURNAL = b"orders 0 4711\nusers 1 10\norders 0 9422\norders 0 60\n"


def test_of_appended_entries_the_last_of_each_partition_counts(run, tmp_path):
    journal = tmp_path / "recovery-journal"
    journal.write_bytes(JOURNAL)
    result = run("checkpoint", "show", "-f", "ndjson", journal)
    assert_valid("checkpoint.json", result.objects)
    points = {one["topic"]: one["recovery_point"] for one in result.of_type("partition")}
    assert points == {"orders": 60, "users": 10}
    assert result.status == 0
    assert result.stderr.splitlines()[0] == (
        f"{journal}: is a journal of recovery points (KAFKA-615), which no release of Kafka "
        "reads: 4 entries of 2 partitions, 1 set back; the last of each counts"
    )


@pytest.mark.parametrize("size", range(len(JOURNAL) - len(b"orders 0 60\n") + 1, len(JOURNAL)))
def test_losing_an_entry_at_the_end_is_one_line_that_names_the_byte(run, tmp_path, size):
    journal = tmp_path / POINTS
    journal.write_bytes(JOURNAL[:size])
    result = run("checkpoint", "show", "-f", "ndjson", journal)
    points = {one["topic"]: one["recovery_point"] for one in result.of_type("partition")}
    assert points == {"orders": 9422, "users": 10}
    assert result.status == 1
    (line,) = [line for line in result.stderr.splitlines() if "does not count" in line]
    assert line.startswith(f"{journal}: byte 39: expected topic, partition and offset up to a line")
    assert journal.read_bytes() == JOURNAL[:size]


# KAFKA-615: "Added a unit test that intentionally corrupts a log and checks recovery"


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


def test_a_batch_outside_of_its_segment_is_cut_with_consent_where_a_broker_refuses(
    run, foreign, watch
):
    home, position, end, records = foreign
    result = run("plan", home)
    assert result.status == 1
    assert f"A BROKER REFUSES TO START (after logtool recover the log ends at {end})" in (
        result.stdout
    )
    objects = run("plan", "-f", "ndjson", home).objects
    assert_valid("plan.json", objects)
    result = run("recover", "-f", "ndjson", home)
    assert_valid("plan.json", result.objects)
    (one,) = (one for one in result.of_type("partition") if one["topic"] == "codec-none")
    assert (one["outcome"], one["log_end_offset"], one["lost_records"]) == ("loads", end, records)
    assert (one["broker_log_end_offset"], one["recover_log_end_offset"]) == (None, end)
    (cut,) = (one for one in result.of_type("action") if one["action"] == "truncate")
    assert (cut["position"], cut["first_offset"]) == (position, end)
    assert ", for which a broker would not start at byte" in cut["reason"]
    broker = run("recover", "--cut-as-broker", "-f", "ndjson", home)
    (left,) = (one for one in broker.of_type("partition") if one["topic"] == "codec-none")
    assert left["outcome"] == "refuses"
    assert run("recover", "--apply", home).status == 5
    watch.forget()
    assert run("recover", "--apply", "--accept-loss", "codec-none-0", home).status == 0
    watch.forget()
    assert len((home / "codec-none-0" / f"{0:020d}.log").read_bytes()) == position
    assert run("plan", home).status == 1  # acknowledged records are lacking; nothing refuses
    assert "REFUSES" not in run("plan", home).stdout
    (undo_dir,) = home.parent.glob("data.logtool-undo-*")
    watch.forget()
    assert run("undo", "--apply", undo_dir).status == 0
    watch.forget()
    assert "REFUSES" in run("plan", home).stdout


def test_nothing_stays_behind_a_batch_outside_of_its_segment(run, killed):
    (killed / POINTS).unlink()
    logs = sorted((killed / "small-segments-0").glob("*.log"))
    table = batches(logs[2])
    damage_file(logs[2], overwrite, int(table.position[2]), (7).to_bytes(8, "big"))
    result = run("recover", "-f", "ndjson", killed)
    (one,) = (one for one in result.of_type("partition") if one["topic"] == "small-segments")
    assert one["log_end_offset"] == int(table.base_offset[2])
    gone = [one["segment"] for one in result.of_type("action") if one["action"] == "remove"
            and one["path"].endswith(".log")]  # fmt: skip
    assert gone == [int(log.stem) for log in logs[3:]]


# KIP-263: "Ideally we would like broker startup time not to be proportional to the number of
# inactive segments"


@pytest.fixture
def many_segments(scenario, tmp_path):
    """Return a log dir of two partitions with many segments, stopped in order."""
    return small_log_dir(
        scenario("4.3.1/clean"), tmp_path / "data", "small-segments-0", "mixed_codecs-0"
    )


def sanity(run, home, *words):
    result = run("sanity", *words, "-f", "ndjson", home)
    assert_valid("sanity.json", result.objects)
    return result


def by_mode(result, kind="measurement"):
    return {one["mode"]: one for one in result.of_type(kind)}


def test_a_broker_checks_the_index_files_of_all_log_segments_only_when_it_is_eager(
    run, many_segments
):
    modes = by_mode(sanity(run, many_segments))
    indexes = len([*many_segments.glob("*/*index")])
    active = 2 * len([*many_segments.glob("*-0")])
    assert modes["eager"]["files_opened"] == indexes
    assert modes["lazy"]["files_opened"] == active < indexes


def test_the_time_to_restart_is_proportional_to_the_segments_which_are_all_held_open(
    run, many_segments
):
    needed = 150 + len([*many_segments.glob("*/*.log")])
    assert sanity(run, many_segments, "--limits", f"nofile={needed}").status == 0
    result = sanity(run, many_segments, "--limits", f"nofile={needed - 1}")
    assert [one["code"] for one in result.of_type("finding")] == ["host/open-files"]
    assert result.status == run("plan", "--limits", "nofile=9", many_segments).status == 1


def test_roughly_3000_log_segments_for_a_broker_do_not_go_with_31_8k_partitions(run):
    replicas_of_a_broker = 31_800 * 3 // 15
    assert replicas_of_a_broker == 6_360 > 3_000
    page = " ".join(run("sanity", "--help").stdout.split())
    assert f"{replicas_of_a_broker:,} a broker" in page
    assert 'Its "roughly 3000 log segments" a broker would be fewer than its partitions' in page


def test_the_cost_increases_with_the_usage_for_example_partitions_and_total_bytes_in_rate(
    run, many_segments
):
    day = "--project", "rate=80M,retention=1d,partitions=6360"
    week = "--project", "rate=80M,retention=7d,partitions=6360"
    result = sanity(run, many_segments, *day, *week)
    per_day = 80 * 86_400 / 1024
    told = [one["segments"] for one in result.of_type("projection") if one["mode"] == "lazy"]
    assert told == [round(6_360 + per_day), round(6_360 + 7 * per_day)]


def test_a_cluster_rolling_bounce_takes_as_long_as_15_brokers_one_after_the_other(
    run, many_segments
):
    words = ("--project", "partitions=6360,segments=31800", "--brokers", "15")
    for one in sanity(run, many_segments, *words).of_type("projection"):
        assert one["brokers"] == 15
        for end in "low", "high":
            bounce, load = one[f"bounce_seconds_{end}"], one[f"load_seconds_{end}"]
            assert bounce == pytest.approx(15 * load, abs=1e-4)


def test_a_projection_from_two_partitions_says_that_it_should_not_be_relied_on(run, many_segments):
    words = ("--project", "partitions=6360,segments=31800")
    for one in sanity(run, many_segments, *words).of_type("projection"):
        assert "it rests on 2 partitions only" in one["doubts"]
    said = run("sanity", *words, many_segments).stderr
    assert "do not rely on the projection of lazy to 31,800 segments: it rests on 2" in said


DELAYED = ("--first-access", "99", "--become-leader", "9", "--background-threads", "1")


def test_inactive_segments_are_checked_after_it_becomes_leader_by_threads_or_by_first_access(
    run, many_segments
):
    modes = by_mode(sanity(run, many_segments, *DELAYED))
    assert [*modes] == ["eager", "lazy", "first-access", "become-leader", "background"]
    logs = len([*many_segments.glob("*/*.log")])
    delayed = [modes[mode]["segments_opened"] for mode in ("first-access", "become-leader")]
    assert delayed == [logs - 2, logs - 2]
    assert modes["become-leader"]["readers"] == 2
    assert modes["background"]["segments_opened"] == logs
    assert modes["background"]["service_seconds"] < modes["background"]["seconds"]


def test_with_corruption_in_any_segment_all_segments_prior_to_it_will_be_checked_as_well(
    run, many_segments
):
    index = sorted((many_segments / "small-segments-0").glob("*.index"))[4]
    damage_file(index, lambda data: data + b"x")
    result = sanity(run, many_segments, *DELAYED)
    assert result.status == 1
    assert by_mode(result)["become-leader"]["forced"] == 4
    table = run("sanity", *DELAYED, many_segments).stdout
    header = next(line for line in table.splitlines() if line.startswith("start "))
    row = next(line for line in table.splitlines() if line.startswith("become-leader"))
    assert row[header.index("forced") :].split()[0] == "4"


def test_the_delay_has_a_risk_which_is_told_with_the_finding_and_the_next_command(
    run, many_segments
):
    index = sorted((many_segments / "small-segments-0").glob("*.index"))[4]
    damage_file(index, lambda data: data + b"x")
    (found,) = sanity(run, many_segments).of_type("finding")
    assert found["seen_by"] == "eager"
    assert found["risk"].startswith("No start since 2.3 looks there: it is met by whoever needs")
    said = run("sanity", many_segments).stderr
    assert f"offset-index/length: {found['risk']} Next: logtool dump-index {index}" in " ".join(
        said.split()
    )


def test_what_is_estimated_and_what_was_measured_are_named_for_what_they_are(run, many_segments):
    result = sanity(run, many_segments)
    for mode, load in by_mode(result, "load").items():
        measured = by_mode(result)[mode]
        assert load["check_seconds"] == measured["seconds"]
        assert 0 < load["seconds_low"] < load["seconds_high"]
    table = run("sanity", many_segments).stdout
    for words in ("index checks", "load of a broker", "estimate", "checks measured"):
        assert words in table
    assert "to serve" not in table


# Ghost batches: "Leader log: [0,10][11,20]<--gap from 21 to 32-->[33,40]", terms 1, 1 and 3


@pytest.fixture
def leader(tmp_path, make_batch):
    """Return the log of the text, with the checkpoint of its epochs."""
    folder = tmp_path / "leader" / "orders-0"
    folder.mkdir(parents=True)
    made = [
        make_batch(first, (), last_offset_delta=last - first, leader_epoch=epoch)
        for first, last, epoch in ((0, 10, 1), (11, 20, 1), (33, 40, 3))
    ]
    (folder / f"{0:020d}.log").write_bytes(b"".join(made))
    (folder / "leader-epoch-checkpoint").write_text("0\n3\n1 0\n2 25\n3 33\n")
    return folder


def ghosts_of(run, leader, *words):
    result = run("gaps", "--cleanup-policy", "compact", *words, "-f", "ndjson", leader)
    assert_valid("gaps.json", result.objects)
    return result.of_type("ghost")


def test_we_assume_that_the_gap_has_term_of_batch_that_immediately_follows_it_in_the_log(
    run, leader
):
    (one,) = ghosts_of(run, leader, "--ghosts", "--ghost-epoch", "following")
    assert (one["first_offset"], one["last_offset"], one["leader_epoch"]) == (21, 32, 3)
    assert one["epoch_from"] == "following-batch"
    assert one["checkpoint_leader_epochs"] == [1, 2]
    words = ("gaps", "--cleanup-policy", "compact", "--ghosts", "--ghost-epoch", "following")
    assert (
        "  ghost 21 through 32 epoch 3 (following-batch): following-batch 3, "
        "leader-epoch-checkpoint 1, 2; compaction"
    ) in run(*words, leader).lines


def test_the_terms_that_the_text_cannot_determine_are_those_of_kafkas_checkpoint(run, leader):
    found = ghosts_of(run, leader, "--ghosts")
    assert found == ghosts_of(run, leader, "--ghosts", "--ghost-epoch", "checkpoint")
    assert [(one["first_offset"], one["last_offset"], one["leader_epoch"]) for one in found] == [
        (21, 24, 1), (25, 32, 2),
    ]  # fmt: skip
    assert {one["following_leader_epoch"] for one in found} == {3}
    (leader / "leader-epoch-checkpoint").unlink()
    (one,) = ghosts_of(run, leader, "--ghosts")
    assert (one["leader_epoch"], one["checkpoint_leader_epochs"]) == (3, [])


def test_an_overhead_introduced_by_gap_filling_batches_is_57_bytes_per_gap(run, leader):
    words = ("gaps", "--cleanup-policy", "compact", "--ghost-epoch", "following")
    result = run(*words, "-f", "ndjson", leader)
    (one,) = result.of_type("partition")
    size = (leader / f"{0:020d}.log").stat().st_size
    assert (one["ghosts"], one["ghost_bytes_by_rfc"], one["ghost_bytes"]) == (1, 57, 61)
    assert (one["log_bytes"], one["ghost_share"]) == (size, round(61 / size, 6))
    share = f"{61 / size * 100:.2f} % of the log"
    assert (
        f"1 ghost of 61 B (57 B by the RFC), {share}, would fill it" in run(*words, leader).stdout
    )


def test_an_intentional_gap_is_told_from_one_that_may_mean_loss(run, log, tmp_path):
    _, second, third = (int(at) for at in batches(log).position)
    data = log.read_bytes()
    log.write_bytes(data[:second] + data[third:])
    for index in log.parent.glob("*index"):
        index.unlink()
    words = ("gaps", "--ghosts", log.parent)
    objects = run(*words, "-f", "ndjson").objects
    assert_valid("gaps.json", objects)
    (ghost,) = (one for one in objects if one["type"] == "ghost")
    (gap,) = (one for one in objects if one["type"] == "gap")
    assert (ghost["reason"], ghost["loss"]) == (gap["reason"], gap["loss"])
    assert ghost["loss"]
    (partition,) = (one for one in objects if one["type"] == "partition")
    assert (partition["ghosts"], partition["ghosts_of_losses"]) == (1, 1)
    text = run(*words).stdout
    assert f"; {gap['reason']}, MAY MEAN LOSS" in text
    assert ", 1 of them where it may mean loss" in text
    target = tmp_path / "filled" / f"{0:020d}.log"
    target.parent.mkdir()
    for options, count in ((), 2), (("--fill-losses",), 3):
        target.unlink(missing_ok=True)
        assert run(*words, "--output", target, *options).status == 1
        assert len(batches(target)) == count


# "In raft recovery state machine record batches read for the follower recovery are materialized":
# rounds of reading, filling from the follower's next offset on, and noting the two variables.


def rounds_of(run, leader, size, *words):
    result = run(
        "gaps", "--cleanup-policy", "compact", "--ghost-epoch", "following", "--rounds", size,
        *words, "-f", "ndjson", leader,
    )  # fmt: skip
    assert result.status == 0, result.stderr
    assert_valid("gaps.json", result.objects)
    return [
        (
            (one["start_offset"], one["first_offset"], one["last_offset"], one["batches"]),
            [(g["first_offset"], g["last_offset"], g["leader_epoch"]) for g in one["ghosts"]],
            (one["base_batch_offset_before"], one["last_batch_offset_before"]),
            (one["base_batch_offset"], one["last_batch_offset"]),
        )
        for one in result.of_type("round")
    ]


def test_all_batches_in_one_round_are_filled_where_a_gap_in_the_log_occurs(run, leader):
    assert rounds_of(run, leader, "1M") == [
        ((0, 0, 40, 3), [(21, 32, 3)], (None, None), (0, 40)),
    ]  # fmt: skip


def test_the_ghost_batch_may_be_the_first_batch_in_the_range_of_batches(run, leader):
    """The gap lies between two rounds: it is filled at the begin of the second."""
    assert rounds_of(run, leader, 122) == [
        ((0, 0, 20, 2), [], (None, None), (0, 20)),
        ((21, 33, 40, 1), [(21, 32, 3)], (0, 20), (21, 40)),
    ]


def test_a_round_reads_at_least_one_batch(run, leader):
    found = rounds_of(run, leader, 1)
    assert [one[0] for one in found] == [(0, 0, 10, 1), (11, 11, 20, 1), (21, 33, 40, 1)]
    assert [one[3] for one in found] == [(0, 10), (11, 20), (21, 40)]


def test_the_gap_will_never_exist_as_a_last_element_in_a_series_of_batches(run, leader):
    (leader / f"{100:020d}.log").write_bytes(b"")  # the log ends at 100, behind the last batch
    for size in (1, 61, 122, "1M"):
        *_, last = rounds_of(run, leader, size)
        assert last[3][1] == 40
        assert all(ghost[1] <= 40 for ghost in last[1])


def test_the_rounds_of_the_follower_of_the_text_begin_at_its_next_offset(
    run, leader, tmp_path, make_batch
):
    """ "Follower log: [0,10]"."""
    follower = tmp_path / "follower" / "orders-0"
    follower.mkdir(parents=True)
    (follower / f"{0:020d}.log").write_bytes(
        make_batch(0, (), last_offset_delta=10, leader_epoch=1)
    )
    assert rounds_of(run, leader, 61, "--follower", follower) == [
        ((11, 11, 20, 1), [], (None, None), (11, 20)),
        ((21, 33, 40, 1), [(21, 32, 3)], (11, 20), (21, 40)),
    ]


def test_rounds_are_told_to_people_with_the_names_of_the_text(run, leader):
    words = ("gaps", "--cleanup-policy", "compact", "--ghost-epoch", "following")
    assert (
        "  round 2 from 21: read 33 through 40 (1 batch, 61 B); 1 ghost: 21 through 32 epoch 3; "
        "_base_batch_offset 0 to 21; _last_batch_offset 20 to 40"
    ) in run(*words, "--rounds", "122", leader).lines
    assert run(*words, "--rounds", "none", leader).status == 2
    assert run(*words, "--rounds", "122", "-f", "markdown", leader).status == 0


def test_ghost_batches_are_not_persisted_to_disk(run, leader, tmp_path):
    target = tmp_path / "stored" / f"{0:020d}.log"
    target.parent.mkdir()
    words = ("gaps", "--cleanup-policy", "compact", "--output", target)
    result = run(*words, "--as-stored", leader)
    assert result.status == 0
    assert target.read_bytes() == (leader / f"{0:020d}.log").read_bytes()
    assert result.stderr.splitlines()[0] == (
        f"{target}: 183 B, without 2 ghosts that a follower counts and does not store"
    )
    target.unlink()
    assert run(*words, leader).status == 0
    table = batches(target)
    assert list(zip(table.base_offset, table.last_offset, strict=True)) == [
        (0, 10), (11, 20), (21, 24), (25, 32), (33, 40),
    ]  # fmt: skip
    for wrong in (("--fill-losses", "--as-stored", "--output", tmp_path / "x"), ("--as-stored",)):
        assert run("gaps", *wrong, leader).status == 2


# The article: the order in which a produce request, a fetch request and a fetch response are
# processed; then one record through two rounds of fetching, number by number.

PRODUCE, FETCH, RESPONSE = (
    "produce request at the leader", "fetch request at the leader", "fetch response at the follower"
)  # fmt: skip


def sub_steps(run):
    result = run("watermark", "simulate", "walk-through", "--steps", "-f", "ndjson")
    assert_valid("watermark.json", result.objects)
    steps = {}
    for one in result.of_type("substep"):
        row = one["part"], one["node"], one["does"], one["before"], one["after"], one["records"]
        steps.setdefault(one["step"], []).append(row)
    return steps


def test_a_produced_message_moves_the_leo_of_the_leader_and_not_yet_the_hw(run):
    assert sub_steps(run)[1] == [
        (PRODUCE, 1, "write to the log", None, None, "m0"),
        (PRODUCE, 1, "log end offset", 0, 1, ""),
        (PRODUCE, 1, "high watermark", 0, 0, ""),
        (PRODUCE, 1, "answer to the producer", None, 1, "m0"),  # "acks=1: it returns"
    ]


def test_the_first_fetch_asks_for_offset_0_and_neither_hw_is_updated(run):
    assert sub_steps(run)[2] == [
        (FETCH, 2, "fetch offset of the request", None, 0, ""),
        (FETCH, 2, "remote log end offset", 0, 0, ""),
        (FETCH, 1, "high watermark", 0, 0, ""),
        (FETCH, 1, "high watermark in the response", None, 0, "m0"),
        (RESPONSE, 2, "write to the log", None, None, "m0"),
        (RESPONSE, 2, "log end offset", 0, 1, ""),
        (RESPONSE, 2, "high watermark", 0, 0, ""),
    ]


def test_the_second_fetch_first_updates_remote_leo_then_hw_which_is_put_in_the_response(run):
    assert sub_steps(run)[3] == [
        (FETCH, 2, "fetch offset of the request", None, 1, ""),
        (FETCH, 2, "remote log end offset", 0, 1, ""),
        (FETCH, 1, "high watermark", 0, 1, ""),
        (FETCH, 1, "high watermark in the response", None, 1, ""),
        (RESPONSE, 2, "log end offset", 1, 1, ""),
        (RESPONSE, 2, "high watermark", 0, 1, ""),
    ]


def test_the_hw_of_a_follower_is_the_lesser_of_its_leo_and_that_of_the_response(run, tmp_path):
    path = tmp_path / "far-behind.toml"
    path.write_text(
        "replicas = [1, 2, 3]\nleader = 1\nreplica_lag_time_max_ms = 10\nevents = [\n"
        "{ wait = 11 }, { produce = ['a', 'b', 'c'] }, { wait = 11 }, { fetch = 2, most = 1 },\n"
        "{ fetch = 2, response = 'lost' },\n]\n"
    )
    result = run("watermark", "simulate", path, "--steps", "-f", "ndjson")
    last = [one for one in result.of_type("substep") if one["step"] == 4]
    by_name = {(one["part"], one["does"]): one["after"] for one in last}
    assert by_name[FETCH, "high watermark in the response"] == 3
    assert by_name[RESPONSE, "log end offset"] == by_name[RESPONSE, "high watermark"] == 1
    lost = [one["part"] for one in result.of_type("substep") if one["step"] == 5]
    assert set(lost) == {FETCH}


def test_without_steps_only_the_states_are_told(run):
    result = run("watermark", "simulate", "walk-through", "-f", "ndjson")
    assert result.of_type("substep") == []
    lines = run("watermark", "simulate", "walk-through", "--steps").lines
    assert any("high watermark in the response" in line for line in lines)
    table = run("watermark", "simulate", "walk-through", "--steps", "-f", "csv").lines
    assert len(table) == 1 + 17 + 8


FIGURES = {
    # The four figures of the example: at the start, after the produce, after each of two fetches.
    "walk-through": ["1:0/-/0 2:0/0/0", "1:1/-/0 2:0/0/0", "1:1/-/0 2:1/0/0", "1:1/-/1 2:1/1/1"],
    # The corrected figure: high watermark 8, log end 15; then "the LEO is updated to" one more.
    "bounds-are-exclusive": ["1:15/-/8 2:8/8/8", "1:16/-/8 2:8/8/8"],
    "four-occasions": [
        "1:0/-/0 2:0/0/0 3:0/0/0", "1:1/-/0 2:0/0/0 3:0/0/0", "1:1/-/0 2:1/0/0 3:0/0/0",
        "1:1/-/0 2:1/0/0 3:1/0/0", "1:1/-/0 2:1/1/0 3:1/0/0", "1:1/-/1 2:1/1/0 3:1/1/1",
        "1:2/-/1 2:1/1/0 3:1/1/1", "1:2/-/1 2:2/1/1 3:1/1/1", "1:2/-/1 2:2/2/1 3:1/1/1",
        "1:2/-/1 2:2/2/1 3:1/1/0", "1:2/-/2 2:2/2/1 3:1/1/0", "1:2/-/2 2:2/2/0 3:1/1/0",
        "1:2/-/2 2:2/2/0 3:1/1/0", "1:3/-/3 2:2/2/0 3:1/1/0", "1:3/-/0 2:2/2/0 3:1/1/0",
        "1:3/-/3 2:2/-/0 3:1/-/0",
    ],
    "caught-up-not-in-sync": [
        "1:0/-/0 2:0/0/0 3:0/0/0", "1:2/-/0 2:0/0/0 3:0/0/0", "1:2/-/0 2:2/0/0 3:0/0/0",
        "1:2/-/0 2:2/2/0 3:0/0/0", "1:2/-/2 2:2/2/0 3:0/0/0", "1:2/-/2 2:2/2/0 3:2/0/2",
        "1:3/-/2 2:2/2/0 3:2/0/2", "1:3/-/2 2:3/2/2 3:2/0/2", "1:3/-/3 2:3/3/3 3:2/0/2",
        "1:3/-/3 2:3/3/3 3:3/2/3", "1:4/-/3 2:3/3/3 3:3/2/3", "1:4/-/3 2:4/3/3 3:3/2/3",
        "1:4/-/3 2:4/4/3 3:3/2/3", "1:4/-/3 2:4/4/3 3:4/3/3", "1:4/-/4 2:4/4/3 3:4/4/4",
    ],
}  # fmt: skip
"""By scenario, for each step: replica, log end, what the leader knows of that, high watermark."""


def states_of(run, scenario):
    result = run("watermark", "simulate", scenario, "-f", "ndjson")
    assert_valid("watermark.json", result.objects)
    steps = {}
    for one in result.of_type("state"):
        steps.setdefault(one["step"], []).append(one)
    return [steps[number] for number in sorted(steps)]


@pytest.mark.parametrize("name", FIGURES)
def test_every_number_of_the_figures_of_the_article(run, name):
    def offsets_of(one):
        known = one["remote_log_end_offset"]
        known = "-" if known is None else known
        return f"{one['node']}:{one['log_end_offset']}/{known}/{one['high_watermark']}"

    assert [" ".join(map(offsets_of, step)) for step in states_of(run, name)] == FIGURES[name]


def test_messages_below_the_hw_are_backed_up_and_that_at_the_hw_cannot_be_consumed(run):
    before, after = (step[0] for step in states_of(run, "bounds-are-exclusive"))
    assert before["records"] == " ".join(map(str, range(15)))
    assert before["read_uncommitted"] == "0 1 2 3 4 5 6 7"
    assert after["records"] == " ".join(map(str, range(16)))  # "its offset is" the old log end
    assert after["read_uncommitted"] == before["read_uncommitted"]


def test_read_uncommitted_is_limited_to_the_hw_and_read_committed_to_the_last_stable_offset(run):
    steps = [step[0] for step in states_of(run, "transactions")]
    assert [one["last_stable_offset"] for one in steps] == [0, 0, 0, 0, 0, 0, 1, 1, 1, 5]
    assert [one["high_watermark"] for one in steps] == [0, 0, 0, 0, 0, 0, 4, 4, 4, 5]
    assert [steps[6][name] for name in ("read_uncommitted", "read_committed")] == ["a b c", "a"]
    assert [steps[9][name] for name in ("read_uncommitted", "read_committed")] == ["a b c", "a c"]


def test_the_hw_of_the_leader_is_tried_on_four_occasions_and_each_of_them_raises_it(run):
    raised, before = set(), 0
    for step in states_of(run, "four-occasions"):
        (mark, looked_at) = step[0]["high_watermark"], step[0]["looked_at"]
        raised |= {looked_at} if mark > before else set()
        before = mark
    assert raised == {"became leader", "in-sync replicas shrank", "produce", "fetch"}


def test_a_replica_that_has_caught_up_but_is_not_in_the_isr_still_holds_the_hw_back(run):
    steps = states_of(run, "caught-up-not-in-sync")
    leader, _, third = steps[12]  # the others are at 4
    assert (leader["high_watermark"], third["in_sync"]) == (3, False)
    assert [steps[13][2]["in_sync"], steps[14][0]["high_watermark"]] == [True, 4]


def answers(run, *words):
    result = run("watermark", "simulate", *words, "-f", "ndjson")
    assert_valid("watermark.json", result.objects)
    found = result.of_type("answer")
    verdict = result.of_type("verdict")[0]
    return (
        result.status,
        [(o["step"], o["records"], o["acks"], o["answer"]) for o in found],
        verdict,
    )


def test_with_acks_1_the_leader_returns_as_soon_as_it_has_written(run):
    status, found, _ = answers(run, "walk-through")
    assert (status, found) == (0, [(1, "m0", "1", "acknowledged")])
    status, found, verdict = answers(run, "acks-1-loss")
    assert (status, found) == (
        1, [(1, "m0", "1", "acknowledged"), (3, "m1", "all", "the leader is gone")],
    )  # fmt: skip
    assert (verdict["acknowledged_lost"], verdict["lost_offsets"]) == (["m0"], [])


def test_acks_all_waits_for_the_hw_and_needs_min_insync_replicas(run):
    status, found, verdict = answers(run, "acks")
    assert (status, verdict["waiting"]) == (0, [])
    assert found == [
        (1, "a", "0", "not awaited"),
        (2, "b", "1", "acknowledged"),
        (5, "c", "all", "acknowledged"),
        (9, "e", "all", "NOT_ENOUGH_REPLICAS"),
        (10, "f", "1", "acknowledged"),
        (13, "d", "all", "acknowledged"),
    ]
    leader = [step[0] for step in states_of(run, "acks")]
    assert leader[9]["records"] == "a b c d"  # e was not written
    assert (leader[10]["records"], leader[10]["high_watermark"]) == ("a b c d f", 3)
    assert leader[13]["answers"] == "d: acknowledged"


def test_a_simulation_may_begin_anywhere(run, tmp_path):
    path = tmp_path / "my.toml"
    path.write_text(
        "replicas = [1, 2]\nleader = 1\nstart = [\n"
        "{ replica = 1, log_end_offset = 10, high_watermark = 6 },\n"
        "{ replica = 2, log_end_offset = 8, high_watermark = 6, remote_log_end_offset = 6 },\n"
        "]\nevents = [{ fetch = 2 }, { fetch = 2 }]\n"
    )
    figures = [
        [(one["log_end_offset"], one["remote_log_end_offset"], one["high_watermark"])
         for one in step]
        for step in states_of(run, path)
    ]  # fmt: skip
    assert figures == [
        [(10, None, 6), (8, 6, 6)], [(10, None, 8), (10, 8, 8)], [(10, None, 10), (10, 10, 10)],
    ]  # fmt: skip
