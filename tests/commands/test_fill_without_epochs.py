"""Ends of logs without leader epochs, as of magic 0 and 1: what a high watermark proves."""

from pathlib import Path

import pytest
from salvage_campaign import another, batches
from verification import set_offsets, small_log_dir

LOG = f"{0:020d}.log"
WATERMARKS = "replication-offset-checkpoint"


@pytest.fixture(params=["magic-0", "magic-1"])
def home(request, scenario, tmp_path):
    """Return a partition dir of wrappers and messages, which another broker has, too."""
    source = scenario(f"2.8.2/{request.param}")
    return small_log_dir(source, tmp_path / "home", "old-gzip-0") / "old-gzip-0"


@pytest.fixture
def copy(home, tmp_path) -> Path:
    return another(home, tmp_path / "copy")


def cut_off(home: Path, number: int) -> bytes:
    """Cut a log behind some of its batches; returns what it was."""
    log = home / LOG
    data, starts = log.read_bytes(), [at for at, _ in batches(log)]
    log.write_bytes(data[: starts[number]])
    return data


def repair(run, home: Path, *words: object):
    return run("recover", "--apply", "--full", "-f", "ndjson", *words, home)


def actions(result) -> list[str]:
    return [one["action"] for one in result.of_type("action")]


def test_what_was_acknowledged_behind_the_end_is_taken_from_the_other_copy(run, home, copy):
    whole = cut_off(home, 4)
    set_offsets(home.parent / WATERMARKS, {("old-gzip", 0): 100})
    result = repair(run, home, "--fill-from", copy)
    assert result.status == 0, result.stderr
    assert "fill" in actions(result)
    assert (home / LOG).read_bytes() == whole


def test_what_lies_behind_the_high_watermark_is_not_taken(run, home, copy, tmp_path):
    whole = cut_off(home, 4)
    set_offsets(copy.parent / WATERMARKS, {("old-gzip", 0): 59})
    result = run("salvage", "--output", tmp_path / "saved", "--fill-from", copy, home)
    log = tmp_path / "saved/partitions/old-gzip-0" / LOG
    assert whole.startswith(log.read_bytes())
    assert len(batches(log)) == 6  # up to offset 58
    assert result.status == 0
    (copy.parent / WATERMARKS).unlink()
    set_offsets(home.parent / WATERMARKS, {("old-gzip", 0): 120})
    planned = run("recover", "--full", "-f", "ndjson", "--fill-from", copy, home)
    assert "unfilled" in actions(planned)
    assert "fill" not in actions(planned)


@pytest.mark.parametrize("change", ["nothing", "cluster", "name of the cluster gone", "index"])
def test_a_log_of_which_nothing_is_left_comes_from_the_same_cluster_alone(
    run, home, copy, tmp_path, change
):
    whole = (home / LOG).read_bytes()
    (home / LOG).unlink()
    set_offsets(home.parent / WATERMARKS, {("old-gzip", 0): 120})
    identity = copy.parent / "meta.properties"
    lines = identity.read_text().splitlines()
    if "cluster" in change:
        kept = [line for line in lines if not line.startswith("cluster.id")]
        other = ["cluster.id=another"] if change == "cluster" else []
        identity.write_text("\n".join([*kept, *other]) + "\n")
    if change == "index":
        (home / f"{0:020d}.index").write_bytes(bytes([0, 0, 0, 107, 0, 0, 16, 1]))
    result = run(
        "salvage", "--output", tmp_path / "saved", "-f", "ndjson", "--fill-from", copy, home
    )
    saved = tmp_path / "saved/partitions/old-gzip-0" / LOG
    assert (saved.read_bytes() == whole) is (change == "nothing")
    (reject,) = result.of_type("reject")
    assert bool(reject["filled_from"]) is (change == "nothing")
    if change != "nothing":
        assert ("another cluster" in reject["proof"]) is (change == "cluster")


def test_a_wrapper_whose_offset_changed_is_found_among_its_neighbours(run, home, tmp_path):
    log = home / LOG
    data = bytearray(log.read_bytes())
    at = batches(log)[4][0]  # offset 46, behind a wrapper of offsets 16 to 45
    data[at + 7] ^= 0x0C
    log.write_bytes(data)
    result = run("salvage", "--output", tmp_path / "saved", "-f", "ndjson", home)
    (reject,) = result.of_type("reject")
    assert (reject["kind"], reject["position"]) == ("order", at)


def test_next_to_damage_the_other_copy_shows_a_changed_offset(run, home, copy, tmp_path):
    log = home / LOG
    whole = log.read_bytes()
    data, starts = bytearray(whole), [at for at, _ in batches(log)]
    data[starts[8] + 6] ^= 1  # nothing behind it says that this is too much
    data[starts[9] : starts[9] + 40] = bytes(40)
    data[starts[10] :] = b"\xff" * (len(data) - starts[10])
    log.write_bytes(data)
    words = ["-f", "ndjson", "--fill-from", copy]
    result = run("salvage", "--output", tmp_path / "saved", *words, home)
    kinds = [(one["kind"], bool(one["filled_from"])) for one in result.of_type("reject")]
    assert kinds[0] == ("order", True)
    there = tmp_path / "saved/partitions/old-gzip-0" / LOG
    assert there.read_bytes() == (copy / LOG).read_bytes()
