"""Ghosts of Redpanda written and read again: the log of the RFC as it is sent, and as it is stored.

The bytes of the ghost are those that were worked out from the RFC and Redpanda's source.
"""

from pathlib import Path

import pytest
import redpanda_files as rp

GHOST_21_TO_32 = bytes.fromhex(
    "2e40a0c63d0000001500000000000000075fb030cf00000b00000000000000000000000000000000000000ffffffff"
    "ffffffffffffffffffff0c000000"
)


def written(run, folder: Path, target: Path, *words: str) -> dict[str, bytes]:
    result = run("gaps", "--output", target, *words, folder)
    assert result.status in (0, 1), result.stderr
    made = target / "kafka" / "orders" / "0_22"
    assert sorted(path for path in target.rglob("*") if path.is_file()) == sorted(made.iterdir())
    return {path.name: path.read_bytes() for path in made.iterdir()}


def test_the_log_of_the_rfc_is_written_as_it_is_sent(run, rfc, tmp_path):
    made = written(run, rfc, tmp_path / "sent")
    assert made == {
        "0-1-v1.log": rp.filled(0, 10) + rp.filled(11, 20),
        "21-3-v1.log": GHOST_21_TO_32 + rp.filled(33, 40),
    }
    sent = tmp_path / "sent" / "kafka" / "orders" / "0_22"
    entries = run("dump", "-f", "ndjson", sent).of_type("entry")
    (ghost,) = (one for one in entries if one["batch_type"] == "ghost_batch")
    assert (ghost["raft_base_offset"], ghost["raft_last_offset"], ghost["term"]) == (21, 32, 3)
    findings = run("verify", "-f", "ndjson", sent).of_type("finding")
    assert [one["code"] for one in findings] == ["base-index/not-written", "batch/type"]
    assert run("gaps", "-f", "ndjson", sent).of_type("gap") == []


def test_a_follower_stores_it_without_the_ghost_under_the_name_of_the_gap(run, rfc, tmp_path):
    made = written(run, rfc, tmp_path / "stored", "--as-stored")
    assert made == {
        "0-1-v1.log": rp.filled(0, 10) + rp.filled(11, 20),
        "21-3-v1.log": rp.filled(33, 40),
    }
    stored = tmp_path / "stored" / "kafka" / "orders" / "0_22"
    (stored / "0-1-v1.compaction_index").touch()
    assert run("verify", stored).status == 0
    assert run("diff", rfc, stored).status == 0


def test_a_gap_inside_a_segment_and_one_of_more_than_31_bits_are_filled_where_they_are(
    run, tmp_path
):
    far = 20 + 2**31 + 9
    folder = rp.data_dir(
        tmp_path, {"0-1-v1.log": rp.filled(0, 4) + rp.filled(6, 9) + rp.filled(far, far)}
    )
    (folder / "0-1-v1.compaction_index").touch()
    (name, content), *others = written(run, folder, tmp_path / "sent").items()
    assert (name, others) == ("0-1-v1.log", [])
    assert len(rp.positions(content)) == 3 + 1 + 2
    entries = run("dump", "-f", "ndjson", tmp_path / "sent").of_type("entry")
    spans = [(one["raft_base_offset"], one["raft_last_offset"]) for one in entries]
    assert spans[1] == (5, 5)
    assert spans[3:5] == [(10, 10 + 2**31 - 2), (10 + 2**31 - 1, far - 1)]


def test_gaps_that_may_be_losses_stay_open_unless_they_are_to_be_filled(run, tmp_path):
    folder = rp.data_dir(tmp_path, {"0-1-v1.log": rp.filled(0, 4) + rp.filled(6, 9)})
    as_it_is = {"0-1-v1.log": rp.filled(0, 4) + rp.filled(6, 9)}
    assert written(run, folder, tmp_path / "open") == as_it_is
    filled = written(run, folder, tmp_path / "filled", "--fill-losses")["0-1-v1.log"]
    assert len(filled) == len(as_it_is["0-1-v1.log"]) + 61


@pytest.mark.parametrize("place", ["there", "in the partition"])
def test_nothing_is_written_where_it_must_not_be(run, rfc, tmp_path, place):
    target = rfc / "new" if place == "in the partition" else tmp_path
    before = sorted(tmp_path.rglob("*"))
    assert run("gaps", "--output", target, rfc).status == 5
    assert sorted(tmp_path.rglob("*")) == before


def test_a_log_whose_batches_overlap_is_not_written(run, tmp_path):
    folder = rp.data_dir(tmp_path, {"0-1-v1.log": rp.filled(0, 9), "5-2-v1.log": rp.filled(5, 12)})
    result = run("gaps", "--output", tmp_path / "new", folder)
    assert result.status == 5
    assert "overlap others" in result.stderr
    assert not (tmp_path / "new").exists()
