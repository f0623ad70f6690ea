"""``--strategy supplement`` and ``--trust-log``: a recovery that keeps what is there.

The names of the tests and the checkpoints are those of AKIP-2.
"""

import pytest
from answers import assert_valid, numbers
from recovering import POINTS, TRUNCATE, points
from verification import small_log_dir

from logtool.formats import time_index, transaction_index

SUPPLEMENT = ("--strategy", "supplement")


TRUST = (*SUPPLEMENT, "--trust-log")


def forecast(run, *command, topic="tx.mixed"):
    """Return the object of a partition."""
    result = run(*command)
    (one,) = (one for one in result.of_type("partition") if one["topic"] == topic)
    return one


def playback(run, home):
    return forecast(run, "recover", *TRUST, "-f", "ndjson", home)["playback"]


def test_the_starting_offset_is_the_smaller_of_the_txnindex_and_producer_snapshot_checkpoint(
    run, killed
):
    result = run("recover", *TRUST, "-f", "ndjson", killed)
    assert_valid("plan", result.objects)
    for one in result.of_type("partition"):
        found = one["playback"]
        ends = found["transaction_index_checkpoint"], found["producer_snapshot_checkpoint"]
        assert found["starting_offset"] == min(ends)


def test_the_time_index_checkpoint_is_the_offset_of_the_last_index_record(run, killed):
    newest = max(path for path in (killed / "tx.mixed-0").glob("*.timeindex")
                 if path.read_bytes().strip(b"\0"))  # fmt: skip
    index = time_index.parse(newest.read_bytes())
    checkpoint = playback(run, killed)["time_index_checkpoint"]
    assert checkpoint == index.offsets(int(newest.stem))[-1]


def test_the_producer_snapshot_checkpoint_is_the_key_of_the_snapshot(run, killed):
    newest = max(int(path.stem) for path in (killed / "tx.mixed-0").glob("*.snapshot"))
    assert playback(run, killed)["producer_snapshot_checkpoint"] == newest


def test_the_txnindex_checkpoint_is_the_larger_of_the_refreshed_one_and_the_last_entry(run, killed):
    paths = list((killed / "tx.mixed-0").glob("*.txnindex"))
    last = max(int(transaction_index.parse(path.read_bytes()).last_offsets[-1]) for path in paths)
    found = playback(run, killed)
    assert found["transaction_index_checkpoint"] == last > points(killed)["tx.mixed", 0]
    assert found["transaction_index_checkpoint_from"] == "last-entry"
    for path in paths:
        path.unlink()
    found = playback(run, killed)
    assert found["transaction_index_checkpoint_from"] == "snapshot"
    assert found["transaction_index_checkpoint"] == found["producer_snapshot_checkpoint"]


def test_instead_of_discarding_data_the_existing_data_is_supplemented(run, killed):
    index = sorted((killed / "tx.mixed-0").glob("*.timeindex"))[-2]
    before = index.read_bytes()
    index.write_bytes(before[:-12] + bytes(240))
    assert run("recover", *TRUST, "--apply", killed).status == 0
    assert index.read_bytes() == before


def test_the_playback_range_is_reduced_and_bytes_saved_and_unchecked_are_shown(run, killed):
    (killed / POINTS).unlink()
    result = run("recover", *TRUST, killed / "tx.mixed-0")
    one = forecast(run, "recover", *TRUST, "-f", "ndjson", killed / "tx.mixed-0")
    logs = sorted((killed / "tx.mixed-0").glob("*.log"))
    size = sum(log.stat().st_size for log in logs)
    found = one["playback"]
    assert found["bytes_saved"] == size - one["bytes_scanned"]
    assert (found["unchecked_bytes"], found["trusted"]) == (size, True)
    assert one["unread_segments"] == len(logs) - 1
    checkpoints, start = result.lines[1:3]
    assert found["producer_snapshot_checkpoint"] in numbers(checkpoints)
    assert found["starting_offset"] in numbers(start)
    (line,) = (line for line in result.stderr.splitlines() if line.startswith("--trust-log"))
    assert {len(logs), len(logs) - 1} <= set(numbers(line))
    assert line.endswith(f": logtool verify {killed}/tx.mixed-0")


def test_with_crcs_checked_as_by_default_nothing_of_the_log_is_left_out(run, killed):
    one = forecast(run, "recover", *SUPPLEMENT, "--full", "-f", "ndjson", killed)
    assert one["bytes_scanned"] == sum(
        log.stat().st_size for log in (killed / "tx.mixed-0").glob("*.log")
    )
    assert one["playback"]["unchecked_bytes"] == one["playback"]["bytes_saved"] == 0
    assert one["playback"]["starting_offset"] > 0


@pytest.mark.parametrize("way", [SUPPLEMENT, TRUST])
def test_plan_has_the_numbers_of_recover(run, killed, way):
    planned = run("plan", *way, "-f", "ndjson", killed).of_type("partition")
    assert planned == run("recover", *way, "-f", "ndjson", killed).of_type("partition")
    done = run("recover", *way, "--apply", "-f", "ndjson", killed).of_type("partition")
    assert planned == done


@pytest.mark.parametrize(
    ("command", "names"),
    [
        (("recover", "--trust-log"), ("--trust-log", "--strategy supplement")),
        (("plan", "--policy", "last-segment", *TRUST), ()),
        ((*TRUNCATE, *SUPPLEMENT), ("--truncate-to", "--strategy rebuild")),
    ],
)
def test_a_log_is_trusted_only_where_it_is_supplemented_and_not_truncated(
    run, killed, command, names
):
    result = run(*command, killed)
    assert result.status == 2
    assert all(name in result.stderr for name in names)


def test_with_more_producer_snapshots_less_is_played_back(run, killed):
    folder = killed / "codec-none-0"
    for path in folder.glob("*.snapshot"):
        path.unlink()
    before = forecast(run, "plan", *TRUST, "-f", "ndjson", folder, topic="codec-none")
    command = ("rebuild-index", "--snapshot-every", "8K", "-f", "ndjson", folder)
    made = [one["path"] for one in run(*command, "--apply").of_type("action")]
    assert len(made) == 2
    assert run(*command).of_type("action") == []
    (folder.parent / "empty-0").mkdir()
    assert run(*command[:-1], folder.parent / "empty-0").status == 0
    assert run("verify", "--fail-on", "info", "-q", folder).stdout.count("snapshot") == 0
    apply = ("recover", *TRUST, "--apply", "-f", "ndjson", folder)
    after = forecast(run, *apply, topic="codec-none")
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
