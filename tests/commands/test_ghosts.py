"""``logtool gaps --ghosts``, ``--output`` and ``--rounds``: batches that fill gaps for a follower.

The log is that of the text on ghost batches: "Leader log: [0,10][11,20]<--gap from 21 to
32-->[33,40]", terms 1, 1 and 3.
"""

import pytest
from answers import assert_valid, numbers
from verification import batches

COMPACT = ("gaps", "--cleanup-policy", "compact")
FOLLOWING = (*COMPACT, "--ghost-epoch", "following")


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
    result = run(*COMPACT, "--ghosts", *words, "-f", "ndjson", leader)
    assert_valid("gaps", result.objects)
    return result.of_type("ghost")


def test_we_assume_that_the_gap_has_term_of_batch_that_immediately_follows_it_in_the_log(
    run, leader
):
    (one,) = ghosts_of(run, leader, "--ghost-epoch", "following")
    assert (one["first_offset"], one["last_offset"], one["leader_epoch"]) == (21, 32, 3)
    assert one["epoch_from"] == "following-batch"
    assert one["checkpoint_leader_epochs"] == [1, 2]
    (line,) = (line for line in run(*FOLLOWING, "--ghosts", leader).lines if "ghost 21" in line)
    assert numbers(line) == [21, 32, 3, 3, 1, 2]
    for word in ("following-batch", "leader-epoch-checkpoint", "compaction"):
        assert word in line


def test_the_terms_that_the_text_cannot_determine_are_those_of_kafkas_checkpoint(run, leader):
    found = ghosts_of(run, leader)
    assert found == ghosts_of(run, leader, "--ghost-epoch", "checkpoint")
    assert [(one["first_offset"], one["last_offset"], one["leader_epoch"]) for one in found] == [
        (21, 24, 1), (25, 32, 2),
    ]  # fmt: skip
    assert {one["following_leader_epoch"] for one in found} == {3}
    (leader / "leader-epoch-checkpoint").unlink()
    (one,) = ghosts_of(run, leader)
    assert (one["leader_epoch"], one["checkpoint_leader_epochs"]) == (3, [])


def test_an_overhead_introduced_by_gap_filling_batches_is_57_bytes_per_gap(run, leader):
    (one,) = run(*FOLLOWING, "-f", "ndjson", leader).of_type("partition")
    size = (leader / f"{0:020d}.log").stat().st_size
    assert (one["ghosts"], one["ghost_bytes_by_rfc"], one["ghost_bytes"]) == (1, 57, 61)
    assert (one["log_bytes"], one["ghost_share"]) == (size, round(61 / size, 6))
    shown = run(*FOLLOWING, leader).stdout
    for part in ("61 B", "57 B", f"{61 / size * 100:.2f} %"):
        assert part in shown


def test_an_intentional_gap_is_distinguished_from_one_that_may_mean_loss(run, log, tmp_path):
    _, second, third = (int(at) for at in batches(log).position)
    data = log.read_bytes()
    log.write_bytes(data[:second] + data[third:])
    for index in log.parent.glob("*index"):
        index.unlink()
    words = ("gaps", "--ghosts", log.parent)
    result = run(*words, "-f", "ndjson")
    assert_valid("gaps", result.objects)
    (ghost,), (gap,) = result.of_type("ghost"), result.of_type("gap")
    assert (ghost["reason"], ghost["loss"]) == (gap["reason"], gap["loss"])
    assert ghost["loss"]
    (partition,) = result.of_type("partition")
    assert (partition["ghosts"], partition["ghosts_of_losses"]) == (1, 1)
    (line,) = (line for line in run(*words).lines if line.startswith("  ghost"))
    assert gap["reason"] in line
    assert "LOSS" in line
    target = tmp_path / "filled" / f"{0:020d}.log"
    target.parent.mkdir()
    for options, count in ((), 2), (("--fill-losses",), 3):
        target.unlink(missing_ok=True)
        assert run(*words, "--output", target, *options).status == 1
        assert len(batches(target)) == count


# "In raft recovery state machine record batches read for the follower recovery are materialized"


def rounds_of(run, leader, size, *words):
    """Return each round: what was read, what was filled, the two variables before and after."""
    result = run(*FOLLOWING, "--rounds", size, *words, "-f", "ndjson", leader)
    assert result.status == 0, result.stderr
    assert_valid("gaps", result.objects)
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
    """The gap lies between two rounds and is filled at the start of the second."""
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
    follower = tmp_path / "follower" / "orders-0"
    follower.mkdir(parents=True)
    (follower / f"{0:020d}.log").write_bytes(
        make_batch(0, (), last_offset_delta=10, leader_epoch=1)
    )
    assert rounds_of(run, leader, 61, "--follower", follower) == [
        ((11, 11, 20, 1), [], (None, None), (11, 20)),
        ((21, 33, 40, 1), [(21, 32, 3)], (11, 20), (21, 40)),
    ]


def test_rounds_are_shown_with_the_variables_of_the_text(run, leader):
    lines = run(*FOLLOWING, "--rounds", "122", leader).lines
    (line,) = (line for line in lines if line.startswith("  round 2 "))
    assert numbers(line) == [2, 21, 33, 40, 1, 61, 1, 21, 32, 3, 0, 21, 20, 40]
    assert line.index("_base_batch_offset 0 ") < line.index("_last_batch_offset 20 ")
    assert run(*FOLLOWING, "--rounds", "none", leader).status == 2
    assert run(*FOLLOWING, "--rounds", "122", "-f", "markdown", leader).status == 0


def test_ghost_batches_are_not_persisted_to_disk(run, leader, tmp_path):
    target = tmp_path / "stored" / f"{0:020d}.log"
    target.parent.mkdir()
    words = (*COMPACT, "--output", target)
    result = run(*words, "--as-stored", leader)
    assert result.status == 0
    assert target.read_bytes() == (leader / f"{0:020d}.log").read_bytes()
    first = result.stderr.splitlines()[0]
    assert first.startswith(f"{target}: 183 B")
    assert 2 in numbers(first)  # ghosts
    target.unlink()
    assert run(*words, leader).status == 0
    table = batches(target)
    assert list(zip(table.base_offset, table.last_offset, strict=True)) == [
        (0, 10), (11, 20), (21, 24), (25, 32), (33, 40),
    ]  # fmt: skip
    for wrong in (("--fill-losses", "--as-stored", "--output", tmp_path / "x"), ("--as-stored",)):
        assert run("gaps", *wrong, leader).status == 2
