"""``logtool recover --fill-from``: a lost beginning is filled with the segments of another copy."""

import re
import shutil
from pathlib import Path

import pytest
from answers import assert_valid
from changes import everything
from damage import damage_file, flip
from verification import batches, set_offsets, small_log_dir

NAME, KEY = "small-segments-0", ("small-segments", 0)
LOG_STARTS = "log-start-offset-checkpoint"
EPOCHS = "leader-epoch-checkpoint"


@pytest.fixture
def home(scenario, tmp_path):
    """Return a log dir of a broker that stopped in order, with its metadata log."""
    names = (NAME, "__cluster_metadata-0")
    return small_log_dir(scenario("4.3.1/clean"), tmp_path / "home", *names)


def log_of(home, base):
    return home / NAME / f"{base:020d}.log"


def lose(home, *bases):
    for base in bases:
        for path in (home / NAME).glob(f"{base:020d}.*"):
            path.unlink()


def begin_at(home, offset):
    """Let the log start at an offset, as DeleteRecords does: also by its first leader epoch."""
    set_offsets(home / LOG_STARTS, {KEY: offset})
    path = home / NAME / EPOCHS
    path.write_text(re.sub(r"^0 0$", f"0 {offset}", path.read_text(), flags=re.MULTILINE))


def logs(home):
    return {path.name: path.read_bytes() for path in (home / NAME).glob("*.log")}


def fill(run, home, *copies, apply=True):
    """Return the status and (action, first base offset, copy) of what is filled and is not."""
    options = [word for copy in copies for word in ("--fill-from", copy)]
    result = run("recover", *(["--apply"] if apply else []), "-f", "ndjson", *options, home / NAME)
    assert_valid("plan", result.objects)
    found = [one for one in result.of_type("action") if one["action"] in ("fill", "unfilled")]
    lacks = [one for one in result.of_type("action") if one["action"] == "lacks"]
    return (
        result,
        [(one["action"], one["first_offset"], one["last_offset"]) for one in found],
        lacks,
    )


def test_the_lost_segments_come_back_and_undo_takes_them_away(run, home, copy):
    before = logs(home)
    lose(home, 0, 42)
    lost = everything(home)
    planned, fills, lacks = fill(run, home, copy, apply=False)
    assert (planned.status, fills, lacks) == (1, [("fill", 0, 76)], [])
    assert everything(home) == lost
    result, fills, lacks = fill(run, home, copy)
    assert (result.status, fills, lacks) == (0, [("fill", 0, 76)], [])
    assert logs(home) == before
    verified = run("verify", "-f", "ndjson", home / NAME)
    assert (verified.status, verified.of_type("finding")) == (0, [])
    assert run("gaps", home / NAME).status == 0
    (undo_dir,) = home.parent.glob("home.logtool-undo-*")
    assert run("undo", "--apply", undo_dir).status == 0
    assert everything(home) == lost


def test_a_lost_log_whose_indexes_are_left_comes_back(run, home, copy):
    before = logs(home)
    log_of(home, 0).unlink()
    result, fills, lacks = fill(run, home, copy)
    assert (result.status, fills, lacks) == (0, [("fill", 0, 41)], [])
    assert logs(home) == before


def test_a_killed_broker_gets_its_beginning_back_as_well(run, home, copy):
    before = logs(home)
    (home / ".kafka_cleanshutdown").unlink()
    lose(home, 0)
    # An index of it is left: so retention did not delete it.
    shutil.copy(copy / NAME / f"{0:020d}.index", home / NAME)
    _, fills, lacks = fill(run, home, copy)
    assert (fills, lacks) == ([("fill", 0, 41)], [])
    assert logs(home) == before


def test_a_copy_that_begins_later_fills_the_rest(run, home, copy):
    before = logs(home)
    lose(home, 0, 42, 77)
    lose(copy, 0)
    result, fills, lacks = fill(run, home, copy)
    assert (result.status, fills, lacks) == (1, [("unfilled", 0, 41), ("fill", 42, 113)], [])
    del before[log_of(home, 0).name]
    assert logs(home) == before


def test_the_first_copy_that_helps_is_taken(run, home, copy, tmp_path):
    before = logs(home)
    lose(home, 0)
    third = Path(shutil.copytree(home, tmp_path / "third"))
    result, fills, _ = fill(run, home, third, copy)
    assert (result.status, fills) == (0, [("fill", 0, 41)])
    assert logs(home) == before


def test_what_no_copy_holds_is_named(run, home, tmp_path):
    lose(home, 0)
    third = Path(shutil.copytree(home, tmp_path / "third"))
    before = logs(home)
    result, fills, lacks = fill(run, home, third)
    assert (result.status, fills, lacks) == (1, [("unfilled", 0, 41)], [])
    assert logs(home) == before


def test_a_copy_whose_batches_differ_is_not_taken(run, home, copy):
    lose(home, 0)
    log = log_of(copy, 42)
    data = bytearray(log.read_bytes())
    data[15] ^= 1  # the leader epoch of its first batch, which no CRC covers
    log.write_bytes(data)
    before = logs(home)
    result, fills, _ = fill(run, home, copy)
    assert (result.status, fills) == (1, [("unfilled", 0, 41)])
    assert logs(home) == before


def test_a_copy_of_another_topic_of_that_name_is_not_taken(run, home, copy):
    lose(home, 0)
    path = copy / NAME / "partition.metadata"
    path.write_text("version: 0\ntopic_id: AAAAAAAAQACAAAAAAAAAAA")
    result, fills, _ = fill(run, home, copy)
    assert (result.status, fills) == (1, [("unfilled", 0, 41)])
    assert not log_of(home, 0).exists()


def test_a_copy_that_is_damaged_there_is_not_taken(run, home, copy):
    lose(home, 0)
    damage_file(log_of(copy, 0), flip, 70)
    result, fills, _ = fill(run, home, copy)
    assert (result.status, fills) == (1, [("unfilled", 0, 41)])
    assert not log_of(home, 0).exists()


def test_deleted_records_stay_hidden_where_the_log_start_lies_in_a_lost_batch(run, home, copy):
    begin_at(home, 50)
    begin_at(copy, 50)
    lose(home, 0, 42)
    lose(copy, 0)
    # DeleteRecords had removed the first segment in both copies.
    table = batches(log_of(copy, 42))
    (row,) = [
        at for at in range(len(table)) if table.base_offset[at] <= 50 <= table.last_offset[at]
    ]
    result, fills, lacks = fill(run, home, copy)
    assert (result.status, len(fills), lacks) == (0, 1, [])
    assert fills[0][2] == 76
    assert log_of(home, 77).exists()
    (log,) = [path for path in (home / NAME).glob("*.log") if int(path.stem) < 77]
    data = log_of(copy, 42).read_bytes()
    assert log.read_bytes() == data[int(table.position[row]) :]
    (one,) = run("gaps", "-f", "ndjson", home / NAME).of_type("partition")
    assert (one["log_start_offset"], one["missing"]) == (50, 0)


def test_what_the_copy_has_deleted_does_not_come_back(run, home, copy):
    table = batches(log_of(copy, 42))
    row = len(table) // 2
    start = int(table.base_offset[row])
    begin_at(copy, start)
    lose(home, 0, 42)
    result, fills, lacks = fill(run, home, copy)
    assert (result.status, fills, lacks) == (
        1, [("unfilled", 0, start - 1), ("fill", start, 76)], [],
    )  # fmt: skip
    data = log_of(copy, 42).read_bytes()
    assert log_of(home, start).read_bytes() == data[int(table.position[row]) :]
    assert not log_of(home, 0).exists()
    assert not log_of(home, 42).exists()


def test_the_cleaner_may_have_emptied_the_beginning_of_a_compacted_log(run, scenario, tmp_path):
    names = ("compacted.keys-0", "__cluster_metadata-0")
    home = small_log_dir(scenario("4.3.1/clean"), tmp_path / "home", *names)
    copy = Path(shutil.copytree(home, tmp_path / "copy"))
    folder = home / names[0]
    first, second = sorted(folder.glob("*.log"))[:2]
    for path in folder.glob(f"{first.stem}.*"):
        path.unlink()
    before = {path.name: path.read_bytes() for path in folder.glob("*.log")}
    result = run("recover", "--apply", "-f", "ndjson", "--fill-from", copy, folder)
    found = [one["action"] for one in result.of_type("action")]
    assert "fill" not in found
    assert "unnoticed" in found
    assert {path.name: path.read_bytes() for path in folder.glob("*.log")} == before
    (gap,) = (one for one in run("gaps", "-f", "ndjson", folder).of_type("gap") if one["loss"])
    assert (gap["reason"], gap["kind"], gap["first_offset"]) == ("unknown", "head", 0)
    assert gap["last_offset"] >= int(second.stem) - 1
