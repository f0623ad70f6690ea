"""`verify` says that a start reads damage exactly where `plan` predicts a loss because of it."""

import pytest
from damage import damage_file, flip
from recovering import POINTS, logs
from verification import set_offsets

PARTITION = "small-segments-0"


def damaged(run, home):
    """Return the reaction of a broker to the damage, and the records that a start loses."""
    (found,) = [
        one for one in run("verify", "-f", "ndjson", home).of_type("finding")
        if one["code"].startswith("batch/") and one["severity"] == "error"
    ]  # fmt: skip
    lost = [
        one["lost_records"] for one in run("plan", "-f", "ndjson", home).of_type("partition")
        if one["path"].endswith(PARTITION)
    ]  # fmt: skip
    return found["broker"], sum(lost)


@pytest.mark.parametrize("place", ["base", "inside", "last", "end", "far"])
def test_damage_below_the_recovery_point_is_read_by_no_start(run, copy_of, place):
    home = copy_of("4.3.1/killed")
    paths = logs(home)
    base, end = int(paths[2].stem), int(paths[3].stem)
    damage_file(paths[2], flip, 30)
    point = {"base": base, "inside": base + 1, "last": end - 1, "end": end, "far": end + 9}[place]
    set_offsets(home / POINTS, {("small-segments", 0): point})
    broker, lost = damaged(run, home)
    spared = point >= end
    assert (broker, lost == 0) == ("never" if spared else "if-unclean", spared)
    set_offsets(home / POINTS, {("small-segments", 0): 0})
    assert damaged(run, home)[0] == "if-unclean"


def test_a_segment_without_an_index_is_read_all_the_same(run, copy_of):
    home = copy_of("4.3.1/killed")
    paths = logs(home)
    damage_file(paths[2], flip, 30)
    set_offsets(home / POINTS, {("small-segments", 0): int(paths[4].stem)})
    assert damaged(run, home) == ("never", 0)
    paths[2].with_suffix(".index").unlink()
    broker, lost = damaged(run, home)
    assert (broker, lost > 0) == ("if-unclean", True)
