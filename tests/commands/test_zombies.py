"""Segments that were truncated and came back: ``zombie`` and ``overlap`` of plan and recover.

The quoted sentences are those of KAFKA-615.
"""

import pytest
from answers import assert_valid, numbers, undo_dirs
from changes import everything
from damage import damage_file, overwrite
from recovering import POINTS

from logtool.formats import record

RECORDS = [record.Record(i, i, b"key", b"value") for i in range(10)]
ONE = RECORDS[:1]


@pytest.fixture
def zombie(tmp_path, make_batch):
    """Return a log that was cut at 10 and written on in epoch 2; an old segment came back."""
    home = tmp_path / "data"
    folder = home / "orders-0"
    folder.mkdir(parents=True)

    def write(base, *made):
        data = [make_batch(first, RECORDS, leader_epoch=epoch) for first, epoch in made]
        (folder / f"{base:020d}.log").write_bytes(b"".join(data))
        for kind in ("index", "timeindex"):
            (folder / f"{base:020d}.{kind}").touch()

    write(0, (0, 0), (10, 2), (20, 2))  # "a previous segment active, then we take some writes"
    write(20, (20, 0), (30, 0))  # "the segment we truncated off reappears"
    (folder / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n2 10\n")
    (home / POINTS).write_text("0\n1\norders 0 10\n")
    return home


def forecast(run, home, command="plan", *words):
    """Return the object of the partition, and the actions by their kinds."""
    result = run(command, "-f", "ndjson", *words, home)
    assert_valid("plan", result.objects)
    (one,) = result.of_type("partition")
    actions = {}
    for action in result.of_type("action"):
        actions.setdefault(action["action"], []).append(action)
    assert result.status == 1
    return one, actions


def test_a_segment_that_was_truncated_and_came_back_is_named(run, zombie):
    one, actions = forecast(run, zombie)
    ends = ("log_end_offset", "broker_log_end_offset", "recover_log_end_offset")
    assert [one[end] for end in ends] == [40, 40, 30]
    (found,) = actions["zombie"]
    assert (found["segment"], found["lost_records"]) == (20, 0)
    # Its offsets, its epoch, the epoch of the log, the start of that.
    assert {20, 39, 0, 2, 10} <= set(numbers(found["reason"]))
    head, row = run("plan", zombie).lines
    assert head.startswith(f"{zombie}/orders-0: ")
    assert row.split()[:2] == ["zombie", f"{20:020d}.log,"]


def test_a_zombie_between_segments_answers_for_the_offsets_up_to_the_next(run, zombie, make_batch):
    live = make_batch(30, [record.Record(0, 0, b"key", b"new")], leader_epoch=2)
    (zombie / "orders-0" / f"{30:020d}.log").write_bytes(live)
    one, actions = forecast(run, zombie)
    (found,) = actions["zombie"]
    assert {20, 29} <= set(numbers(found["reason"]))
    assert one["log_end_offset"] == 31


def test_batches_after_the_truncation_stay_and_the_zombie_goes_with_consent(run, zombie):
    before = everything(zombie)
    log = zombie / "orders-0" / f"{0:020d}.log"
    data = log.read_bytes()
    assert run("recover", "--apply", zombie).status == 5
    _, actions = forecast(run, zombie, "recover")
    (gone,) = (one for one in actions["remove"] if one["path"].endswith("20.log"))
    assert (gone["lost_records"], gone["first_offset"], gone["last_offset"]) == (20, 20, 39)
    assert run("recover", "--apply", "--accept-loss", "orders-0", zombie).status == 0
    assert log.read_bytes() == data
    assert not list(log.parent.glob(f"{20:020d}.*"))
    assert run("plan", zombie).status == 0
    (undo_dir,) = undo_dirs(zombie)
    assert run("undo", "--apply", undo_dir).status == 0
    assert everything(zombie) == before


def test_a_zombie_goes_also_where_the_broker_was_stopped_in_order(run, zombie):
    (zombie / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
    one, actions = forecast(run, zombie, "recover")
    (gone,) = (action for action in actions["remove"] if action["lost_records"])
    assert (gone["lost_batches"], gone["first_offset"], gone["last_offset"]) == (2, 20, 39)
    assert (one["clean"], one["lost_records"]) == (True, 20)


def test_recover_as_a_broker_leaves_the_zombie_and_marks_nothing_clean(run, zombie):
    _, actions = forecast(run, zombie, "recover", "--cut-as-broker")
    assert [one["segment"] for one in actions["zombie"]] == [20]
    words = ("--cut-as-broker", "--apply", "--mark-clean", "-f", "ndjson")
    refused = run("recover", *words, zombie)
    assert refused.status == 5
    assert [one["reason"] for one in refused.of_type("error")] == ["refused"]
    assert not (zombie / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize("command", ["plan", "recover"])
@pytest.mark.parametrize(
    "rows",
    [None, "0\n1\n0 0\n", "0\n2\n0 0\n2 40\n"],
    ids=["no file", "of one epoch", "another epoch there"],
)
def test_where_epochs_cannot_decide_both_segments_stay(run, zombie, rows, command):
    checkpoint = zombie / "orders-0" / "leader-epoch-checkpoint"
    checkpoint.unlink() if rows is None else checkpoint.write_text(rows)
    _, actions = forecast(run, zombie, command)
    (found,) = actions["overlap"]
    assert found["segment"] == 20
    assert {20, 29} <= set(numbers(found["reason"]))
    assert not [one for one in actions.get("remove", []) if one["path"].endswith("20.log")]


def test_batches_alone_do_not_decide_against_the_checkpoint(run, zombie, make_batch):
    """The first segment alone has a later epoch, and the checkpoint knows only epoch 1."""
    folder = zombie / "orders-0"
    for base, epoch in ((0, 2), (20, 0)):
        (folder / f"{base:020d}.log").write_bytes(make_batch(base, ONE, leader_epoch=epoch))
    (folder / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n1 30\n")
    (zombie / POINTS).write_text("0\n1\norders 0 20\n")
    _, actions = forecast(run, zombie)
    (found,) = (one for kind in ("overlap", "unknown") for one in actions.get(kind, ()))
    assert "zombie" not in actions
    assert {0, 2} <= set(numbers(found["reason"]))
    assert "leader-epoch-checkpoint" in found["reason"]


def test_a_cleaning_that_was_interrupted_leaves_no_zombie(run, zombie, make_batch):
    """A broker ends it first: the old segments go, and nothing overlaps any more."""
    cleaned = b"".join(make_batch(first, ONE, leader_epoch=2) for first in (10, 39))
    (zombie / "orders-0" / f"{0:020d}.log.swap").write_bytes(cleaned)
    result = run("plan", "-f", "ndjson", zombie)
    kinds = {one["action"] for one in result.of_type("action")}
    assert "rename" in kinds
    assert not kinds & {"zombie", "overlap"}


def test_the_older_policy_checks_the_zombie_segment_and_ignores_the_prior_segment(run, zombie):
    damage_file(zombie / "orders-0" / f"{0:020d}.log", overwrite, 70, b"\xff\xff")
    words = ("--policy", "last-segment", "--policy", "recovery-point", "-f", "ndjson")
    (compared,) = run("plan", *words, zombie).of_type("policies")
    (missed,) = compared["policies"][0]["missed"]
    assert missed["path"].endswith(f"{0:020d}.log")
