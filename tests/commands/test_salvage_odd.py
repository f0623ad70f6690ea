"""Odd logs: what ``logtool salvage`` and ``recover --fill-from`` report, and do not take."""

import json
import re
import shutil

import pytest
from bad_sectors import bad_sector
from damage import damage_file, flip
from salvage_campaign import batches
from verification import set_offsets, small_log_dir

LOG = f"{0:020d}.log"
SEGMENTS, PLAIN, TX = "small-segments-0", "codec-none-0", "tx.mixed-0"


@pytest.fixture
def home(scenario, tmp_path):
    """Return a log dir of a killed broker with three partitions, none of them damaged."""
    return small_log_dir(scenario("4.3.1/killed"), tmp_path / "home", SEGMENTS, PLAIN, TX)


def salvage(run, home, *options, output="saved"):
    target = home.parent / output
    return run("salvage", "-f", "ndjson", "--output", target, *options, home), target


def logs(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.log")}


def without_first_segments(folder, count):
    """Remove the first segments, as retention does; returns the first log that stays."""
    there = sorted(folder.glob("*.log"))
    for log in there[:count]:
        for path in folder.glob(f"{log.stem}.*"):
            path.unlink()
    path = folder / "leader-epoch-checkpoint"
    first = f"0 {int(there[count].stem)}"
    path.write_text(re.sub(r"^0 0$", first, path.read_text(), flags=re.MULTILINE))
    return there[count]


@pytest.mark.parametrize("stored", [False, True])
def test_what_retention_deleted_is_not_taken_from_a_copy_that_still_has_it(run, home, copy, stored):
    first = without_first_segments(home / SEGMENTS, 2)
    start, sound = int(first.stem), logs(home / SEGMENTS)
    if stored:
        set_offsets(home / "log-start-offset-checkpoint", {("small-segments", 0): start})
    damage_file(first, flip, 70)
    result, saved = salvage(run, home, "--topic", "small*", "--fill-from", copy)
    (reject,) = result.of_type("reject")
    assert (reject["first_offset"], reject["filled_from"]) == (start, str(copy / SEGMENTS))
    assert result.status == 0
    assert logs(saved / "partitions" / SEGMENTS) == sound
    result = run("recover", "--apply", "--topic", "small*", "--fill-from", copy, home)
    assert result.status == 0
    assert logs(home / SEGMENTS) == sound


def test_a_log_that_is_gone_whole_comes_back_from_where_it_began(run, home, copy):
    first = without_first_segments(home / SEGMENTS, 2)
    sound = logs(home / SEGMENTS)
    for log in (home / SEGMENTS).glob("*.log"):
        log.unlink()  # the indexes are left
    _, saved = salvage(run, home, "--topic", "small*", "--fill-from", copy)
    assert min(logs(saved / "partitions" / SEGMENTS)) == first.name
    assert logs(saved / "partitions" / SEGMENTS) == sound


@pytest.mark.parametrize(
    ("number", "first", "lost", "place"),
    [(9, 92, 84, "offset 92"), (6, 83, 56, "offset 83"), (12, 84, 108, "open")],
)
def test_a_transaction_that_may_have_lost_any_part_is_reported(
    run, home, number, first, lost, place
):
    log = home / TX / LOG
    damage_file(log, flip, batches(log)[number][0] + 65)
    result, _ = salvage(run, home, "--topic", "tx*")
    (one,) = result.of_type("transaction")
    assert (one["first_offset"], one["lost_from"]) == (first, lost)
    assert place in one["reason"]
    assert (one["outcome"], one["lost_records"]) == (None, None)


def test_a_transaction_that_lost_records_between_its_ends_has_its_outcome(run, home):
    log = home / TX / LOG
    damage_file(log, flip, batches(log)[10][0] + 65)
    result, _ = salvage(run, home, "--topic", "tx*")
    (one,) = result.of_type("transaction")
    assert (one["first_offset"], one["lost_from"]) == (84, 92)
    assert (one["outcome"], one["lost_records"]) == ("committed", 8)


def test_plain_records_lost_between_transactions_are_reported_and_no_transaction(run, home):
    log = home / TX / LOG
    between = [at for at, data in batches(log) if not data[22] & 0x30]
    damage_file(log, flip, between[0] + 65)  # behind it producer 4 begins, and 3 goes on
    result, _ = salvage(run, home, "--topic", "tx*")
    assert len(result.of_type("reject")) == 1
    assert not result.of_type("transaction")


def test_a_segment_that_is_gone_without_a_trace_is_reported_with_its_transactions(run, home):
    there = sorted((home / TX).glob("*.log"))
    for path in (home / TX).glob(f"{there[1].stem}.*"):
        path.unlink()
    result, _ = salvage(run, home, "--topic", "tx*")
    (reject,) = result.of_type("reject")
    assert (reject["kind"], reject["length"]) == ("missing", 0)
    gone = int(there[1].stem), int(there[2].stem) - 1
    assert (reject["first_offset"], reject["last_offset"]) == gone
    assert {one["lost_from"] for one in result.of_type("transaction")} == {gone[0]}
    assert result.status == 1


def change_line(path, word, line):
    lines = [line if one.startswith(word) else one for one in path.read_text().splitlines()]
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        ("the log itself", "itself"),
        ("another partition", PLAIN),
        ("another topic", "topic id"),
        ("another cluster", "cluster"),
    ],
)
def test_from_what_is_no_copy_nothing_is_taken_and_the_manifest_says_why(
    run, home, copy, way, reason
):
    log = home / PLAIN / LOG
    damage_file(log, flip, batches(log)[9][0] + 70)
    if way == "another partition":
        shutil.rmtree(copy / PLAIN)
    if way == "another topic":
        change_line(copy / PLAIN / "partition.metadata", "topic_id", f"topic_id: {'A' * 22}")
    if way == "another cluster":
        change_line(copy / "meta.properties", "cluster.id", "cluster.id=another")
    place = home if way == "the log itself" else copy
    result, saved = salvage(run, home, "--topic", "codec*", "--fill-from", place)
    (reject,) = result.of_type("reject")
    assert reject["filled_from"] is None
    assert reason in reject["proof"]
    lines = [json.loads(line) for line in (saved / "manifest.ndjson").read_text().splitlines()]
    assert reject["proof"] in [line.get("proof") for line in lines]
    assert result.status == 1


def test_what_a_copy_has_behind_the_end_is_reported_with_its_source(run, scenario, tmp_path):
    nodes = [
        small_log_dir(scenario("4.3.1/replicas") / name, tmp_path / name, "replica.lagging-0")
        for name in ("node-3", "node-2")
    ]
    ours, theirs = (node / "replica.lagging-0" for node in nodes)
    end = 1 + max(int.from_bytes(data[:8], "big") for _, data in batches(ours / LOG))
    result, saved = salvage(run, nodes[0], "--fill-from", nodes[1])
    (reject,) = result.of_type("reject")
    assert (reject["kind"], reject["length"], reject["first_offset"]) == ("missing", 0, end)
    assert reject["filled_from"] == str(theirs)
    assert logs(saved / "partitions" / ours.name) == logs(theirs)
    assert result.status == 0


def test_a_directory_without_a_log_is_reported(run, home, copy):
    for path in (home / PLAIN).iterdir():
        path.unlink()
    result, saved = salvage(run, home, "--topic", "codec*")
    (reject,) = result.of_type("reject")
    assert reject["kind"] == "missing"
    assert result.status == 1
    assert reject["reason"] in (saved / "manifest.ndjson").read_text()
    result, saved = salvage(run, home, "--topic", "codec*", "--fill-from", copy, output="b")
    assert result.status == 1  # nothing in it says that the copy is of the same topic
    (reject,) = result.of_type("reject")
    assert (reject["filled_from"], bool(reject["proof"])) == (None, True)


def test_a_formatted_directory_lacks_no_log(run, scenario, tmp_path):
    home = shutil.copytree(scenario("4.3.1/formatted"), tmp_path / "home")
    assert list((home / "__cluster_metadata-0").iterdir())
    result, _ = salvage(run, home)
    assert (result.status, result.of_type("reject")) == (0, [])


def test_a_log_that_cannot_be_opened_is_in_the_manifest_and_comes_from_another_copy(
    run, home, copy, tmp_path
):
    log = sorted((home / SEGMENTS).glob("*.log"))[3]
    sound = logs(home / SEGMENTS)
    elsewhere = log.rename(tmp_path / "elsewhere")
    log.symlink_to(elsewhere)  # no link is followed
    result, saved = salvage(run, home, "--topic", "small*")
    assert result.status == 4
    (reject,) = result.of_type("reject")
    assert (reject["kind"], reject["length"]) == ("unreadable", len(sound[log.name]))
    assert (reject["target"], reject["sha256"]) == (None, None)
    assert reject["first_offset"] == int(log.stem)
    lines = [json.loads(line) for line in (saved / "manifest.ndjson").read_text().splitlines()]
    assert [line["path"] for line in lines if line["type"] == "reject"] == [str(log)]
    result, saved = salvage(run, home, "--topic", "small*", "--fill-from", copy, output="filled")
    assert result.status == 4
    assert logs(saved / "partitions" / SEGMENTS) == sound


def test_a_second_run_takes_for_each_of_two_copies_the_image_of_its_own(run, home, copy):
    log, other = (place / PLAIN / LOG for place in (home, copy))
    damage_file(other, flip, 9000)  # the image of the one would give what the other does not have
    options = ("--topic", "codec*", copy)
    with bad_sector(log, 8192), bad_sector(other, 20480):
        _, first = salvage(run, home, *options, output="first")
    _, second = salvage(run, home, *options, "--retry", first, output="second")
    for turn, source in (("", other), (".2", log)):
        image = second / f"rejects{turn}" / PLAIN / f"{LOG}.image"
        assert image.read_bytes() == source.read_bytes()
