"""``logtool gaps`` on logs that have lost their beginning or their end."""

import os
import shutil
from pathlib import Path

import pytest
from answers import assert_valid
from verification import batches, set_offsets, small_log_dir

from logtool.formats import partition_metadata

NAME = "index.dense-0"
KEY = "index.dense", 0
FIRST, LAST = "00000000000000000000", "00000000000000000259"
LOG_STARTS = "log-start-offset-checkpoint"
WATERMARKS, POINTS = "replication-offset-checkpoint", "recovery-point-offset-checkpoint"
LOST = {
    "log/beginning-lost", "log/beginning-absent", "log/lost", "leader-epoch/beyond-end",
    "checkpoint/high-watermark-beyond-end", "checkpoint/recovery-point-beyond-end",
    "producer-snapshot/beyond-end",
}  # fmt: skip


@pytest.fixture
def home(scenario, tmp_path):
    """Return a log dir of a broker that stopped in order, with its metadata log."""
    names = (NAME, "__cluster_metadata-0")
    return small_log_dir(scenario("4.3.1/clean"), tmp_path / "home", *names)


def remove(home, *names):
    for pattern in names:
        found = list((home / NAME).glob(pattern))
        assert found
        for path in found:
            path.unlink()


def answer(run, path, *options):
    """Return the result, the partition and its gaps without those of retention."""
    result = run("gaps", "-f", "ndjson", *options, path)
    assert_valid("gaps", result.objects)
    (about,) = (one for one in result.of_type("partition") if Path(one["path"]).name == NAME)
    gaps = [one for one in result.of_type("gap") if Path(one["path"]).name == NAME]
    return result, about, [one for one in gaps if one["reason"] != "retention"]


def test_a_lost_last_segment_is_a_gap_up_to_the_high_watermark(run, home):
    remove(home, f"{LAST}.*")
    result, about, (gap,) = answer(run, home / NAME)
    assert result.status == 1
    assert {name: gap[name] for name in (
        "kind", "reason", "loss", "first_offset", "last_offset", "missing", "before_segment",
        "after_segment", "position", "ghosts",
    )} == {
        "kind": "lost-end", "reason": "end-missing", "loss": True, "first_offset": 259,
        "last_offset": 449, "missing": 191, "before_segment": 0, "after_segment": 0,
        "position": None, "ghosts": 0,
    }  # fmt: skip
    assert str(home / WATERMARKS) in gap["evidence"]
    assert {name: about[name] for name in (
        "log_start_offset", "log_end_offset", "checkpointed_end_offset", "offsets", "visible",
        "missing", "losses", "reasons",
    )} == {
        "log_start_offset": 0, "log_end_offset": 259, "checkpointed_end_offset": 450,
        "offsets": 450, "visible": 259, "missing": 191, "losses": 1,
        "reasons": {"end-missing": {"gaps": 1, "offsets": 191}},
    }  # fmt: skip
    (whole,) = (one for one in run("gaps", "-f", "ndjson", home).of_type("gap") if one["loss"])
    assert whole == gap
    assert f"logtool recover --fill-from COPY {home / NAME}" in run("gaps", home / NAME).stderr


@pytest.mark.parametrize(
    ("gone", "first"),
    [(f"{FIRST}.log", 0), (f"{FIRST}.*", 0)],
    ids=["log", "all files"],
)
def test_a_lost_first_segment_is_no_retention(run, home, gone, first):
    remove(home, gone)
    result, about, (gap,) = answer(run, home / NAME)
    assert result.status == 1
    assert (gap["kind"], gap["reason"], gap["loss"]) == ("head", "segment-missing", True)
    assert (gap["first_offset"], gap["last_offset"], gap["missing"]) == (first, 258, 259)
    assert (about["log_start_offset"], about["log_end_offset"]) == (0, 450)
    assert (about["offsets"], about["missing"], about["losses"]) == (450, 259, 1)
    whole, also, gaps = answer(run, home)
    schema = {"schema": about["schema"]}
    assert (whole.status, also | schema, gaps) == (1, about, [gap])
    assert f"logtool recover --fill-from COPY {home / NAME}" in run("gaps", home / NAME).stderr


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize(
    "gone",
    [
        (f"{LAST}.*",), (f"{LAST}.*", "*.snapshot"), (f"{LAST}.log",), (f"{FIRST}.log",),
        (f"{FIRST}.*",), ("*.log",), (f"{LAST}.*", f"{FIRST}.*"), ("*.index",),
        ("leader-epoch-checkpoint",), ("*.snapshot",),
    ],
    ids=" ".join,
)  # fmt: skip
def test_verify_and_gaps_agree_on_what_is_lost(run, home, gone, is_clean):
    if not is_clean:
        (home / ".kafka_cleanshutdown").unlink()
    remove(home, *gone)
    found = run("verify", "-f", "ndjson", home / NAME).of_type("finding")
    lost = [
        one for one in found
        if one["code"] in LOST and one["severity"] != "info"
    ]  # fmt: skip
    result, about, gaps = answer(run, home / NAME)
    assert result.status == (1 if lost else 0)
    assert about["missing"] == sum(one["missing"] for one in gaps)
    assert about["missing"] == about["offsets"] - about["visible"]
    begins = [one for one in lost if "beginning" in one["code"]]
    assert [(one["first_offset"], one["last_offset"]) for one in begins] == [
        (one["first_offset"], one["last_offset"]) for one in gaps if one["kind"] == "head"
    ]
    assert (len(lost) > len(begins)) == any(one["kind"] == "lost-end" for one in gaps)


def test_a_log_without_any_segment_is_lost_as_a_whole(run, home):
    remove(home, "0*.*")
    result, about, (gap,) = answer(run, home / NAME)
    assert (result.status, about["visible"], about["offsets"]) == (1, 0, 450)
    assert (gap["kind"], gap["reason"]) == ("lost-end", "end-missing")
    assert (gap["first_offset"], gap["last_offset"], gap["missing"]) == (0, 449, 450)
    assert (gap["before_segment"], gap["after_segment"]) == (None, None)


def test_damage_at_the_end_reaches_up_to_the_high_watermark(run, home):
    log = home / NAME / f"{LAST}.log"
    with log.open("r+b") as file:
        file.seek(-30, os.SEEK_END)
        file.write(bytes(30))
    end = int(batches(log).last_offset[-1]) + 1
    result, about, (gap,) = answer(run, home / NAME)
    assert result.status == 1
    assert (gap["kind"], gap["reason"], gap["loss"]) == ("lost-end", "damage", True)
    assert (gap["first_offset"], gap["last_offset"]) == (end, 449)
    assert (about["log_end_offset"], about["missing"]) == (end, 450 - end)


def test_a_log_end_below_the_recovery_point_alone(run, home):
    remove(home, f"{LAST}.*", "*.snapshot", "leader-epoch-checkpoint")
    set_offsets(home / WATERMARKS, {KEY: 100})
    set_offsets(home / POINTS, {KEY: 400})
    result, about, (gap,) = answer(run, home / NAME)
    assert (result.status, about["checkpointed_end_offset"]) == (1, 400)
    assert (gap["kind"], gap["first_offset"], gap["last_offset"]) == ("lost-end", 259, 399)
    assert str(home / POINTS) in gap["evidence"]


def test_without_a_log_dir_around_it_nothing_is_said_of_the_end(run, home, tmp_path):
    alone = Path(shutil.copytree(home / NAME, tmp_path / "elsewhere" / NAME))
    result, about, gaps = answer(run, alone)
    assert (result.status, gaps, about["checkpointed_end_offset"]) == (0, [], None)
    said, known = run("gaps", alone).stderr, run("gaps", home / NAME).stderr
    assert len(said.splitlines()) == len(known.splitlines()) + 1
    for path in alone.glob(f"{LAST}.*"):
        path.unlink()
    result, about, (gap,) = answer(run, alone)
    assert (result.status, gap["kind"], gap["last_offset"]) == (1, "lost-end", 449)
    assert str(alone / "leader-epoch-checkpoint") in gap["evidence"]
    (alone / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    result, about, gaps = answer(run, alone)
    # A snapshot may be ahead of a log that was copied from a running broker.
    assert (result.status, gaps, about["checkpointed_end_offset"]) == (0, [], None)
    for path in alone.glob(f"{FIRST}.*"):
        path.rename(alone / path.name.replace(FIRST, LAST))
    (alone / f"{LAST}.log").write_bytes((home / NAME / f"{LAST}.log").read_bytes())
    result, about, (gap,) = answer(run, alone)
    assert (result.status, gap["kind"], gap["reason"]) == (1, "head", "segment-missing")
    assert (gap["first_offset"], gap["last_offset"]) == (0, 258)


def test_checkpoints_that_are_older_than_the_log_show_nothing(run, home):
    (home / ".kafka_cleanshutdown").unlink()
    set_offsets(home / WATERMARKS, {KEY: 3})
    set_offsets(home / POINTS, {KEY: 2})
    result, about, gaps = answer(run, home / NAME)
    assert (result.status, about["checkpointed_end_offset"], gaps) == (0, 3, [])
    assert about["offsets"] == 450


def test_what_lies_below_the_log_start_offset_was_deleted(run, home):
    set_offsets(home / LOG_STARTS, {KEY: 100})
    remove(home, f"{FIRST}.log")
    result, about, (gap,) = answer(run, home / NAME)
    assert (result.status, about["log_start_offset"], about["missing"]) == (1, 100, 159)
    assert (gap["first_offset"], gap["last_offset"]) == (100, 258)
    verified = run("verify", "-f", "ndjson", home / NAME).of_type("finding")
    (one,) = (one for one in verified if one["code"].startswith("log/"))
    assert (one["first_offset"], one["last_offset"]) == (100, 258)
    set_offsets(home / LOG_STARTS, {KEY: 259})
    result, about, gaps = answer(run, home / NAME)
    assert (result.status, about["log_start_offset"], gaps) == (0, 259, [])


def test_directories_that_wait_to_be_deleted_have_lost_nothing(run, home):
    remove(home, f"{LAST}.*", f"{FIRST}.index")
    gone = home / f"{NAME}.{'0' * 32}-delete"
    (home / NAME).rename(gone)
    assert run("gaps", "-f", "ndjson", home).status == 0
    result = run("gaps", "-f", "ndjson", gone)
    assert result.status == 0
    assert [one["losses"] for one in result.of_type("partition")] == [0]
    assert len(run("gaps", gone).stderr.splitlines()) == 1


def test_a_high_watermark_of_a_deleted_topic_of_the_same_name_shows_nothing(run, home):
    (home / ".kafka_cleanshutdown").unlink()
    older = home / f"{NAME}.{'0' * 32}-delete"
    shutil.copytree(home / NAME, older)
    metadata = partition_metadata.build("AAAAAAAAQACAAAAAAAAAAA")
    (older / "partition.metadata").write_bytes(partition_metadata.encode(metadata))
    set_offsets(home / WATERMARKS, {KEY: 9000})
    result, about, gaps = answer(run, home / NAME)
    assert (result.status, gaps, about["checkpointed_end_offset"]) == (0, [], 450)


def test_a_filled_log_begins_at_its_first_segment_where_nothing_fills_its_beginning(
    run, home, tmp_path
):
    remove(home, f"{FIRST}.*")
    target = tmp_path / "out" / f"{LAST}.log"
    target.parent.mkdir()
    assert run("gaps", "--output", target, home / NAME).status == 1
    assert target.read_bytes() == (home / NAME / f"{LAST}.log").read_bytes()
    filled = tmp_path / "filled" / f"{FIRST}.log"
    filled.parent.mkdir()
    assert run("gaps", "--output", filled, "--fill-losses", home / NAME).status == 1
    assert filled.stat().st_size == target.stat().st_size + 61
    assert batches(filled).last_offset[:1].tolist() == [258]


def test_the_sums_of_a_topic_count_lost_ends(run, scenario, tmp_path):
    names = ("codec-none-0", "codec-none-1")
    home = small_log_dir(scenario("4.3.1/clean"), tmp_path / "home", *names)
    for name in names:
        for path in (home / name).glob("*.log"):
            os.truncate(path, 0)
    result = run("gaps", "-f", "ndjson", home)
    (topic,) = result.of_type("topic")
    assert (result.status, topic["partitions"], topic["losses"]) == (1, 2, 2)
    assert topic["missing"] == topic["offsets"] == 660
    assert topic["reasons"] == {"end-missing": {"gaps": 2, "offsets": 660}}


def test_a_gap_behind_the_offset_of_the_cleaner_may_mean_loss(run, scenario, tmp_path):
    name = "small-segments-0"
    home = small_log_dir(scenario("4.3.1/clean"), tmp_path / "home", name)
    set_offsets(home / "cleaner-offset-checkpoint", {("small-segments", 0): 114})
    for path in (home / name).glob(f"{422:020d}.*"):
        path.unlink()
    (finding,) = run("verify", "-f", "ndjson", home / name).of_type("finding")
    assert finding["code"] == "segment/uncleaned-hole"
    result = run("gaps", "-f", "ndjson", home / name)
    (gap,) = result.of_type("gap")
    assert (result.status, gap["reason"], gap["loss"]) == (1, "unknown", True)
    assert (gap["first_offset"], gap["last_offset"]) == (422, 459)
    (home / ".kafka_cleanshutdown").unlink()
    result = run("gaps", "-f", "ndjson", home / name)
    assert [one["reason"] for one in result.of_type("gap")] == ["compaction"]
    assert result.status == 0
