"""A log whose offset index leads past it after a clean stop: the start hides sound batches.

`tests/broker/test_hidden_end.py` holds the same against brokers.
"""

import shlex

import pytest
from damage import append_to_file, damage_file, flip, remove_file
from damage import cut as cut_to
from verification import batches, set_offsets, small_log_dir

NAME = "index.dense-0"
ENTRY = bytes.fromhex("000001f4 3fffffff")
"""An entry far beyond the log, as an index of a longer log has it."""


@pytest.fixture
def clean(scenario, tmp_path):
    return small_log_dir(scenario("4.3.1/clean"), tmp_path / "data", NAME)


def active(home):
    return max((home / NAME).glob("*.log"))


def lengthen(home):
    """Give the active segment the index of a longer log."""
    append_to_file(active(home).with_suffix(".index"), ENTRY)


def shorten(home):
    """Cut the active log inside its last batch, under its index."""
    log = active(home)
    damage_file(log, cut_to, log.stat().st_size - 10)


def hidden(run, *words):
    return [one for one in run("plan", "-f", "ndjson", *words).of_type("action")
            if one["action"] == "hide"]  # fmt: skip


def next_of(run, home):
    """Return the commands that repair the index."""
    found = run("plan", "-f", "ndjson", home).of_type("summary")[0]["next"]
    return [one for one in found if "--from-offset" in one or "rebuild-index" in one]


def do(run, command, *more):
    tool, *words = shlex.split(command)
    assert tool == "logtool"
    return run(*words, *more)


@pytest.mark.parametrize("damage", [lengthen, shorten])
def test_the_start_hides_the_active_segment(run, clean, damage):
    base, whole = int(active(clean).stem), batches(active(clean))
    damage(clean)
    kept = batches(active(clean))
    (found,) = hidden(run, clean)
    assert (found["first_offset"], found["last_offset"]) == (base, int(kept.last_offset[-1]))
    assert (found["lost_batches"], found["lost_records"]) == (len(kept), kept.records)
    (one,) = run("plan", "-f", "ndjson", clean / NAME).of_type("partition")
    assert one["log_end_offset"] == base
    assert len(kept) == len(whole) - (damage is shorten)


def test_lost_batches_do_not_count_as_hidden_by_the_start(run, clean):
    last = int(batches(active(clean)).last_offset[-1])
    set_offsets(clean / "replication-offset-checkpoint", {("index.dense", 0): last + 1})
    shorten(clean)
    end = int(batches(active(clean)).last_offset[-1]) + 1
    result = run("plan", "-f", "ndjson", clean)
    (lacks,) = [one for one in result.of_type("action") if one["action"] == "lacks"]
    assert f"{end}," in lacks["reason"]
    assert hidden(run, clean)[0]["below_high_watermark"]


@pytest.mark.parametrize("damage", [lengthen, shorten])
def test_the_command_makes_the_batches_readable_again(run, clean, damage):
    damage(clean)
    kept = batches(active(clean))
    (command,) = next_of(run, clean)
    assert do(run, command, "--apply", "--accept-loss", NAME).status == 0
    assert hidden(run, clean) == []
    assert (clean / ".kafka_cleanshutdown").exists()
    (one,) = run("plan", "-f", "ndjson", clean / NAME).of_type("partition")
    assert one["log_end_offset"] == int(kept.last_offset[-1]) + 1
    assert len(batches(active(clean))) == len(kept)


def test_behind_damage_only_the_index_is_built(run, clean):
    lengthen(clean)
    log = active(clean)
    table = batches(log)
    damage_file(log, flip, int(table.position[1]) + 70)
    (command,) = next_of(run, clean)
    assert do(run, command, "--apply").status == 1  # the damage stays
    assert hidden(run, clean) == []
    (one,) = run("plan", "-f", "ndjson", clean / NAME).of_type("partition")
    assert one["log_end_offset"] == int(table.last_offset[-1]) + 1


def test_a_start_that_recovers_hides_nothing(run, clean):
    lengthen(clean)
    remove_file(clean / ".kafka_cleanshutdown")
    assert hidden(run, clean) == []


def test_recover_does_not_do_what_this_start_does(run, clean):
    lengthen(clean)
    before = {path: path.read_bytes() for path in (clean / NAME).iterdir()}
    result = run("recover", "--apply", clean)
    assert (result.status, next_of(run, clean)[0] in result.stderr) == (5, True)
    assert {path: path.read_bytes() for path in (clean / NAME).iterdir()} == before


def test_doctor_names_the_repair_first(run, clean):
    lengthen(clean)
    (command,) = next_of(run, clean)
    found = run("doctor", "-f", "ndjson", clean)
    assert found.of_type("next")[0]["command"] == command
    assert found.of_type("start")[0]["losing_partitions"] == [NAME]


def test_doctor_names_salvage_where_the_repair_cuts_a_damaged_end(run, clean):
    shorten(clean)
    commands = [one["command"] for one in run("doctor", "-f", "ndjson", clean).of_type("next")]
    # The repair of the index cuts what can be saved before.
    assert commands[:2] == [f"logtool salvage --output salvaged {clean}", next_of(run, clean)[0]]
