"""The commands that read Redpanda's directories as they read Kafka's."""

import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
import redpanda_files as rp
from crc32c import crc32c

from logtool.formats.redpanda import base_index, snapshot

DATA = Path(__file__).parents[1] / "data" / "redpanda"


def test_gaps_fills_the_gap_of_the_rfc_with_a_ghost_of_the_term_behind_it(run, rfc):
    result = run("gaps", "--ghosts", "-f", "ndjson", rfc)
    (ghost,) = result.of_type("ghost")
    assert (ghost["first_offset"], ghost["last_offset"]) == (21, 32)
    assert ghost["leader_epoch"] == 3
    (about,) = result.of_type("partition")
    assert (about["ghost_bytes"], about["ghost_bytes_by_rfc"]) == (61, 57)
    assert about["losses"] == 0
    assert result.objects[0]["flavour"] == "redpanda"


def test_a_follower_without_ghosts_would_number_the_last_batch_as_the_rfc_says(run, rfc, tmp_path):
    follower = rp.data_dir(tmp_path / "b", {"0-1-v1.log": rp.filled(0, 10)})
    sent = run("gaps", "--follower", follower, "-f", "ndjson", rfc).of_type("stretch")
    spans = [
        (s["ghost"], s["first_offset"], s["last_offset"], s["without_ghosts_first_offset"])
        for s in sent
    ]
    assert spans == [(False, 11, 20, 11), (True, 21, 32, None), (False, 33, 40, 21)]
    result = run("gaps", "--follower", follower, "--rounds", "1K", "-f", "ndjson", rfc)
    assert result.of_type("round")[-1]["last_batch_offset"] == 40


def test_the_head_of_a_real_segment_is_a_gap_of_its_own_term(run, tmp_path):
    folder = rp.data_dir(tmp_path, {})
    shutil.copy(DATA / "3676-7429-77-1-v1.log.1", folder / "3676-1-v1.log")
    (ghost,) = run("gaps", "--ghosts", "-f", "ndjson", folder).of_type("ghost")
    assert (ghost["first_offset"], ghost["last_offset"], ghost["leader_epoch"]) == (3676, 7163, 1)


def test_one_offset_is_a_gap_and_a_loss_where_nothing_was_ever_compacted(run, tmp_path):
    folder = rp.data_dir(tmp_path, {"0-1-v1.log": rp.filled(0, 4) + rp.filled(6, 9)})
    result = run("gaps", "--ghosts", "-f", "ndjson", folder)
    assert result.status == 1
    (ghost,) = result.of_type("ghost")
    assert (ghost["first_offset"], ghost["last_offset"]) == (5, 5)
    (folder / "0-1-v1.compaction_index").touch()
    assert run("gaps", folder).status == 0


@pytest.mark.parametrize(
    ("name", "content", "status"),
    [
        ("13-1-v1.log.cannotrecover", rp.log(13)[1:], 1),
        ("13-1-v1.log.truncated_batch.mid_log.cannotrecover", b"x", 1),
        # Room that was reserved and never written: what is missing was compacted away.
        ("13-1-v1.log.cannotrecover", bytes(9000), 0),
    ],
)
def test_a_segment_that_was_given_up_is_a_loss_in_a_compacted_log_too(
    run, tmp_path, name, content, status
):
    segments = {"0-1-v1.log": rp.log(0, 4), "26-2-v1.log": rp.log(26, 4)}
    folder = rp.data_dir(tmp_path, segments)
    (folder / "0-1-v1.compaction_index").touch()
    assert run("gaps", folder).status == 0
    (folder / name).write_bytes(content)
    result = run("gaps", folder)
    assert result.status == status
    assert (name in result.stdout) == bool(status)


def test_a_gap_that_is_longer_than_32_bits_takes_several_ghosts(run, tmp_path):
    behind = 10 + 3 * (2**31 - 1) + 6
    segments = {"0-1-v1.log": rp.filled(0, 9), f"{behind}-1-v1.log": rp.filled(behind, behind)}
    folder = rp.data_dir(tmp_path, segments)
    (folder / "0-1-v1.compaction_index").touch()
    ghosts = run("gaps", "--ghosts", "-f", "ndjson", folder).of_type("ghost")
    lengths = [ghost["last_offset"] - ghost["first_offset"] + 1 for ghost in ghosts]
    assert lengths == [2**31 - 1] * 3 + [6]


@pytest.fixture
def both_offsets(tmp_path: Path) -> Path:
    """Return a partition of two segments and a base index of the first."""
    first = rp.log(0, 400, size=200)
    (entry_at, offset) = rp.positions(first)[200], 1 + 3 * 199
    entries = base_index.Entries(
        relative_offset=np.array([0, offset], "<u4"),
        relative_time=np.array([2**31, 2**31 + 2], "<u4"),
        position=np.array([0, entry_at], "<u8"),
    )
    made = base_index.build(
        entries, base_offset=0, max_offset=1200, base_timestamp=rp.START, max_timestamp=rp.START + 2
    )
    segments = {"0-1-v1.log": first, "1201-2-v1.log": rp.log(1201, 3)}
    folder = rp.data_dir(tmp_path, segments)
    (folder / "0-1-v1.base_index").write_bytes(base_index.encode(made))
    return folder


def test_lookup_shows_raft_and_kafka_offset_and_both_ways_agree(run, both_offsets):
    for raft, kafka in ((1, 0), (600, 599), (1200, 1199), (1202, 1200), (1205, 1203)):
        (answer,) = run("lookup", "--offset", raft, "-f", "ndjson", both_offsets).of_type("lookup")
        assert (answer["found"], answer["agree"]) == (True, True)
        assert answer["kafka_offset"] == kafka
        assert f"Kafka offset is {kafka}" in answer["message"]


def test_lookup_finds_a_time_by_both_ways(run, both_offsets):
    answer, *places = run(
        "lookup", "--timestamp", rp.START + 1, "-f", "ndjson", both_offsets
    ).objects
    assert (answer["found"], answer["agree"]) == (True, True)
    assert places[0]["offset"] == 2


def test_an_index_that_leads_to_no_batch_is_reported(run, both_offsets):
    index = both_offsets / "0-1-v1.base_index"
    parsed = base_index.parse(index.read_bytes())
    parsed.entries.position.flags.writeable = False
    raw = bytearray(index.read_bytes())
    at = raw.index(struct.pack("<Q", int(parsed.entries.position[1])))
    raw[at] ^= 1
    blob = bytes(raw[10:-4])
    index.write_bytes(bytes(raw[:-4]) + struct.pack("<I", crc32c(blob)))
    result = run("lookup", "--offset", 900, "-f", "ndjson", both_offsets)
    assert result.status == 1
    (answer,) = result.of_type("lookup")
    assert answer["agree"] is False


def test_kafka_offsets_are_not_guessed(run, both_offsets):
    (both_offsets / "0-1-v1.log").unlink()
    (answer,) = run("lookup", "--offset", 1203, "-f", "ndjson", both_offsets).of_type("lookup")
    assert answer["kafka_offset"] is None
    metadata = struct.pack("<qqb9sqq", 1200, 1, 64, b"the group", 0, 1)
    (both_offsets / "snapshot").write_bytes(snapshot.build(metadata))
    (answer,) = run("lookup", "--offset", 1203, "-f", "ndjson", both_offsets).of_type("lookup")
    assert answer["kafka_offset"] == 1201


def test_diff_compares_replicas_and_not_their_names(run, rfc, tmp_path):
    other = rp.data_dir(tmp_path / "b", {"0-1-v1.log": rp.filled(0, 10) + rp.filled(11, 20)})
    (other / "21-3-v1.log").write_bytes(rp.filled(33, 40))
    assert run("diff", rfc, other).status == 0
    (other / "21-3-v1.log").write_bytes(rp.filled(33, 39))
    result = run("diff", rfc, other)
    assert result.status == 1
    assert "offset 33" in result.stdout


def test_txns_knows_transactions_by_their_markers(run, tmp_path):
    fence = rp.batch(0, b"f", kind=rp.TX_FENCE, attributes=0x20, producer=(9, 0, -1))
    open_one = rp.batch(1, b"a", b"b", attributes=0x10, producer=(9, 0, 0))
    marker = struct.pack(">hi", 0, 4)
    body = rp.a_record(0, marker, key=struct.pack(">hh", 0, 1))
    commit = rp.batch(3, attributes=0x30, producer=(9, 0, -1), body=body, count=1)
    folder = rp.data_dir(tmp_path, {"0-1-v1.log": fence + open_one})
    hangs = run("txns", "-f", "ndjson", folder)
    (folder / "0-1-v1.log").write_bytes(fence + open_one + commit)
    ended = run("txns", "-f", "ndjson", folder)
    assert hangs.status == 1
    (first,), (second,) = hangs.of_type("partition"), ended.of_type("partition")
    assert (first["last_stable_offset"], second["last_stable_offset"]) == (1, 4)
    assert (first["open"], second["open"], second["committed"]) == (1, 0, 1)
    (one,) = hangs.of_type("transaction")
    assert (one["state"], one["abort"]) == ("unknown", None)


def test_the_flavour_can_be_forced(run, rfc):
    assert run("verify", "--flavour", "redpanda", rfc).status == 0
    result = run("verify", "--flavour", "kafka", rfc)
    assert result.status == 4
    assert str(rfc) in result.stderr
    assert run("verify", rfc).status == 0


def test_a_large_segment_is_dumped_in_pieces(run, tmp_path):
    folder = rp.data_dir(tmp_path, {"0-1-v1.log": rp.log(0, 50, size=50_000)})
    assert len(run("dump", "-f", "ndjson", folder).of_type("entry")) == 51


def test_partitions_are_named_with_their_topic(run, rfc):
    data = rfc.parents[2]
    (data / "kafka" / "other" / "0_9").mkdir(parents=True)
    (data / "kafka" / "other" / "0_9" / "0-1-v1.log").write_bytes(rp.log())
    assert "\norders/0_22 " in run("stat", data).stdout
    assert "(orders/0_22, other/0_9)" in run("lookup", "--offset", 1, data).stderr


def test_doctor_says_nothing_of_what_redpanda_does_not_have(run, rfc):
    result = run("doctor", rfc.parents[2])
    assert result.status == 0, result.stdout
    assert "pid.lock" in result.stdout
    assert "2 segments" in result.stdout
    for word in ("watermark", "versions", "limits", "kafka_cleanshutdown"):
        assert word not in result.stdout


def test_what_cannot_be_done_yet_is_refused(run, rfc):
    result = run("quorum", rfc)
    assert result.status == 4
    assert "Redpanda" in result.stderr


def test_salvage_reports_a_transaction_in_redpanda_that_may_have_lost_its_marker(run, tmp_path):
    parts = [rp.batch(at, b"a", attributes=0x10, producer=(7, 0, at)) for at in range(2)]
    parts.append(rp.batch(2, b"c"))
    torn = bytearray(parts[1])
    torn[-2] ^= 1
    segment = parts[0] + bytes(torn) + parts[2]
    folder = rp.data_dir(tmp_path, {"0-1-v1.log": segment})
    result = run("salvage", "--output", tmp_path / "saved", "-f", "ndjson", folder)
    (one,) = result.of_type("transaction")
    assert (one["producer_id"], one["first_offset"], one["lost_from"]) == (7, 0, 1)
    assert (one["topic"], one["partition"]) == ("orders", 0)


def test_salvage_saves_sound_batches_in_segments_of_redpanda(run, tmp_path):
    first, second = rp.log(0, 6), rp.log(19, 4)
    at = rp.positions(first)
    bad = bytearray(first)
    bad[at[2] + 99] ^= 1
    lost = bytearray(second)
    lost[20] ^= 1
    segments = {"0-1-v1.log": bytes(bad) + bytes(4096), "32-3-v1.log": rp.log(32, 2) + bytes(99)}
    folder = rp.data_dir(tmp_path, segments)
    (folder / "19-2-v1.log.cannotrecover").write_bytes(bytes(lost))
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    result = run("salvage", "--output", tmp_path / "saved", "-f", "ndjson", folder.parents[2])
    assert result.status == 1, result.stderr
    (about,), rejects = result.of_type("partition"), result.of_type("reject")
    assert (about["batches"], about["rejects"]) == (6 + 4 + 3, 2)
    assert [(Path(one["path"]).name, one["position"]) for one in rejects] == [
        ("0-1-v1.log", at[2]), ("19-2-v1.log.cannotrecover", 0)]  # fmt: skip
    assert [(one["first_offset"], one["last_offset"]) for one in rejects] == [(4, 6), (19, 19)]
    assert before == {path.name: path.read_bytes() for path in folder.iterdir()}
    saved = tmp_path / "saved" / "partitions" / "kafka" / "orders" / "0_22"
    assert about["target"] == str(saved)
    assert (saved / "0-1-v1.log").read_bytes() == first[: at[2]] + first[at[3] :]
    assert (saved / "19-2-v1.log").read_bytes() == second[rp.positions(second)[1] :]
    assert (saved / "32-3-v1.log").read_bytes() == rp.log(32, 2)
    codes = [f["code"] for f in run("verify", "-f", "ndjson", saved).of_type("finding")]
    assert set(codes) == {"segment/missing"}
    (start,) = run("plan", "-f", "ndjson", saved).of_type("partition")
    assert (start["lost_records"], start["log_end_offset"]) == (0, 39)
    assert run("salvage", "--output", folder / "x", folder).status == 5


@pytest.fixture
def indexed(tmp_path: Path) -> Path:
    """Return a partition of three segments: a bad index, a sound one, and none yet."""
    first, second, last = rp.log(0, 4), rp.log(13, 4), rp.log(26, 4)
    folder = rp.data_dir(
        tmp_path, {"0-1-v1.log": first, "13-1-v1.log": second + bytes(99), "26-2-v1.log": last}
    )
    (folder / "0-1-v1.base_index").write_bytes(rp.index(0, 12, (0, 0))[:-1])
    (folder / "13-1-v1.base_index").write_bytes(rp.index(13, 25, (0, 0)))
    return folder


def test_rebuild_index_builds_base_indexes_that_are_bad_or_missing(run, indexed, tmp_path):
    planned = run("rebuild-index", "-f", "ndjson", indexed)
    assert planned.status == 1
    assert [Path(one["path"]).name for one in planned.of_type("action")] == ["0-1-v1.base_index"]
    (indexed / "13-1-v1.base_index").unlink()
    output = tmp_path / "out" / "new"
    output.parent.mkdir()
    result = run("rebuild-index", "--output", output, "-f", "ndjson", indexed.parents[2])
    assert result.status == 0, result.stderr
    built = {path.name: path.read_bytes() for path in (output / "0_22").iterdir()}
    assert sorted(built) == ["0-1-v1.base_index", "13-1-v1.base_index"]
    for name, content in built.items():
        (indexed / name).write_bytes(content)
    assert run("verify", indexed).status == 0
    assert run("rebuild-index", indexed).status == 0


def test_a_base_index_ends_where_the_segment_is_damaged(run, indexed, tmp_path):
    log = indexed / "0-1-v1.log"
    data = bytearray(log.read_bytes())
    data[rp.positions(bytes(data))[2] + 99] ^= 1
    log.write_bytes(bytes(data))
    (indexed / "0-1-v1.base_index").unlink()
    output = tmp_path / "out" / "new"
    output.parent.mkdir()
    run("rebuild-index", "--output", output, indexed / "0-1-v1.base_index")
    index = base_index.parse((output / "0_22" / "0-1-v1.base_index").read_bytes())
    assert index.max_offset == 3
    assert [path.name for path in (output / "0_22").iterdir()] == ["0-1-v1.base_index"]


def test_base_indexes_are_built_in_place_and_undone(run, indexed, tmp_path):
    (indexed / "13-1-v1.base_index").unlink()
    data, undo = indexed.parents[2], tmp_path / "undo"
    before = {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}
    result = run("rebuild-index", "--apply", "--undo-dir", undo, "-f", "ndjson", indexed)
    assert result.status == 0, result.stderr
    assert [one["action"] for one in result.of_type("action")] == ["replace", "create"]
    assert run("verify", indexed).status == 0
    assert run("rebuild-index", indexed).status == 0
    assert run("undo", "--apply", undo).status == 0
    assert {path: path.read_bytes() for path in data.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("content", [rp.log(0, 4)[:-5], bytes(4096)])
def test_no_index_hides_from_a_start_what_it_is_to_cut(run, indexed, content):
    (indexed / "0-1-v1.log").write_bytes(content)
    (indexed / "0-1-v1.base_index").unlink()
    for words in ([], ["--apply"]):
        result = run("rebuild-index", *words, "-f", "ndjson", indexed)
        assert result.status == 1
        assert [one["action"] for one in result.of_type("action")] == ["damaged"]
        assert not (indexed / "0-1-v1.base_index").exists()


def test_an_index_is_the_same_whichever_way_it_is_made(run, indexed, tmp_path):
    there, back = tmp_path / "out" / "kafka", tmp_path / "out" / "back"
    there.parent.mkdir()
    run("convert", "--to", "kafka", "--output", there, indexed)
    run("convert", "--to", "redpanda", "--output", back, there / "partitions" / "orders-0")
    run("rebuild-index", "--all", "--output", tmp_path / "out" / "built", indexed)
    made = tmp_path / "out" / "back/kafka/orders/0_22"
    built = list((tmp_path / "out" / "built/0_22").iterdir())
    assert len(built) == 3
    for path in built:
        assert path.read_bytes() == (made / path.name).read_bytes()
