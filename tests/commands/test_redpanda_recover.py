"""plan and recover on Redpanda's directories: what its start does by its source, done and undone.

The files come from a writer that shares nothing with the reader (`redpanda_files`). What is
expected is worked out from the steps of the start, not from what the program prints.
"""

import re
from pathlib import Path
from typing import NamedTuple

import pytest
import redpanda_files as rp
from damage import flip
from processes import locked_by_a_process

from logtool.log import opening
from logtool.startup import redpanda_start
from logtool.startup.redpanda_start import RedpandaStart, SegmentOutcome

A, B, C = rp.log(0, 4), rp.log(13, 4), rp.log(26, 4)
AT = rp.positions(A)
LOG_A, LOG_B, LOG_C = "0-1-v1.log", "13-1-v1.log", "26-2-v1.log"
INDEX_A, INDEX_B, INDEX_C = (name.replace(".log", ".base_index") for name in (LOG_A, LOG_B, LOG_C))
SOUND_A, SOUND_B = rp.index(0, 12, (0, 0)), rp.index(13, 25, (0, 0))
ROOM, GONE = bytes(4096), ".cannotrecover"


BAD = flip(A, AT[2] + 99, 1)


class Row(NamedTuple):
    id: str
    files: dict[str, bytes]
    """Files next to sound segments A and B with indexes, and C without one; ABSENT removes."""
    done: list[tuple]
    """Actions without the rebuilt indexes: action, file, byte or new name."""
    sizes: dict[str, int | None]
    """Sizes afterwards; None for a file that is gone."""
    lost: int = 0
    """Records."""
    says: str = ""
    """A part of the reason of an action."""


ABSENT = b"absent"
TABLE = [
    Row("a stop in order of nothing but the last segment", {}, [], {LOG_C: len(C), INDEX_C: 93}),
    Row("reserved room", {LOG_C: C + ROOM}, [("truncate", LOG_C, len(C))], {LOG_C: len(C)}),
    Row("a torn batch", {LOG_C: C[:-5]}, [("truncate", LOG_C, AT[4])], {LOG_C: AT[4]}),
    Row("a torn header and room", {LOG_C: C + C[:30] + ROOM}, [("truncate", LOG_C, len(C))],
        {LOG_C: len(C)}),
    Row("damage where an index can be read", {LOG_A: BAD}, [], {LOG_A: len(A)}),
    Row("damage without an index", {LOG_A: BAD, INDEX_A: ABSENT},
        [("truncate", LOG_A, AT[2])], {LOG_A: AT[2], LOG_B: len(B), INDEX_A: 93}, 9,
        "4 through 12"),
    Row("damage with an index of another checksum", {LOG_A: BAD, INDEX_A: flip(SOUND_A, 30, 1)},
        [("truncate", LOG_A, AT[2])], {LOG_A: AT[2]}, 9, "checksum"),
    Row("damage with an empty index", {LOG_A: BAD, INDEX_A: b""},
        [("truncate", LOG_A, AT[2])], {LOG_A: AT[2]}, 9),
    Row("an index that reaches into the next segment",
        {LOG_A: BAD, INDEX_A: rp.index(0, 13, (0, 0))},
        [("truncate", LOG_A, AT[2])], {LOG_A: AT[2]}, 9, "next segment"),
    Row("the last is trusted where another is replayed",
        {INDEX_A: ABSENT, LOG_C: C + ROOM, INDEX_C: rp.index(26, 38, (0, 0))}, [],
        {LOG_C: len(C + ROOM)}),
    Row("no batch in the middle", {LOG_B: flip(B, 20, 1), INDEX_B: ABSENT},
        [("rename", LOG_B, LOG_B + GONE)], {LOG_B: None, LOG_B + GONE: len(B)}, 12,
        "13 through 25"),
    Row("no batch, and its index stays", {LOG_B: flip(B, 20, 1), INDEX_B: b"x"},
        [("rename", LOG_B, LOG_B + GONE)], {INDEX_B: 1}, 12),
    Row("nothing but zeros", {LOG_C: ROOM}, [("rename", LOG_C, LOG_C + GONE)], {LOG_C: None}, 0,
        "zeros"),
    Row("names of later releases, at the end",
        {LOG_C: ROOM, "99-1-v1.log.truncated_batch.tail.cannotrecover": b"x"},
        [("rename", LOG_C, f"{LOG_C}.zeroed_batch_header.tail{GONE}")], {LOG_C: None}),
    Row("names of later releases, in the middle",
        {LOG_B: flip(B, 20, 1), INDEX_B: ABSENT,
         "99-1-v1.log.truncated_batch.tail.cannotrecover": b"x"},
        [("rename", LOG_B, f"{LOG_B}.header_crc_mismatch.mid_log{GONE}")], {LOG_B: None}, 12),
    Row("no byte", {LOG_C: b""}, [("remove", LOG_C, None)], {LOG_C: None, LOG_B: len(B)}),
    Row("no byte, then the one before it is the last",
        {LOG_C: b"", LOG_B: B + ROOM}, [("truncate", LOG_B, len(B)), ("remove", LOG_C, None)],
        {LOG_B: len(B)}),
    Row("no byte in a segment that is not replayed", {LOG_A: b""}, [], {LOG_A: 0}),
    Row("the index of a compaction", {"26-2-v1.compaction_index": b"keys"},
        [("remove", "26-2-v1.compaction_index", None)], {"26-2-v1.compaction_index": None}),
    Row("what compaction did not end", {"0-1-v1.log.staging": b"x"}, [],
        {"0-1-v1.log.staging": 1}),
    Row("a copy from tiered storage", {"0-12-900-1-v1.log.1": b"x"}, [],
        {"0-12-900-1-v1.log.1": 1}),
    Row("a header of CRC 0", {LOG_C: C[: AT[3]] + bytes(4) + C[AT[3] + 4 :]},
        [("truncate", LOG_C, AT[3])], {LOG_C: AT[3]}, 3),
    Row("zeros before more batches", {LOG_C: C[: AT[3]] + bytes(300) + C[AT[3] :]},
        [("truncate", LOG_C, AT[3])], {LOG_C: AT[3]}, 6),
]  # fmt: skip


def partition_of(tmp_path: Path, more: dict[str, bytes]) -> Path:
    whole = {LOG_A: A, INDEX_A: SOUND_A, LOG_B: B, INDEX_B: SOUND_B, LOG_C: C, **more}
    return rp.data_dir(tmp_path, {k: v for k, v in whole.items() if v is not ABSENT})


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def changes(result) -> list[tuple]:
    """Return the actions on files, without those that follow from others."""
    return [
        (one["action"], Path(one["path"]).name,
         Path(one["target"]).name if one["target"] else one["position"])
        for one in result.objects
        if one["type"] == "action" and one["action"] not in ("recover", "create", "replace")
    ]  # fmt: skip


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.id)
def test_recover_does_what_the_start_does_and_undo_takes_it_back(run, tmp_path, row):
    folder = partition_of(tmp_path, row.files)
    data = folder.parents[2]
    before = contents(data)
    planned = run("plan", "-f", "ndjson", data)
    assert changes(planned) == row.done
    assert row.says in "\n".join(o["reason"] for o in planned.objects if o["type"] == "action")
    (about,) = (one for one in planned.objects if one["type"] == "partition")
    assert about["lost_records"] == row.lost
    run("recover", data)
    assert contents(data) == before
    undo = tmp_path / "undo"
    accept = ["--accept-loss", "orders-0"] if row.lost else []
    done = run("recover", "--apply", *accept, "--undo-dir", undo, "-f", "ndjson", data)
    assert done.status == 0, done.stderr
    assert changes(done) == row.done
    for name, size in row.sizes.items():
        path = folder / name
        assert (path.stat().st_size if path.exists() else None) == size, name
    if undo.exists():
        assert run("undo", "--apply", undo).status == 0
    assert contents(data) == before


def test_a_loss_wants_consent(run, tmp_path):
    folder = partition_of(tmp_path, {LOG_A: BAD, INDEX_A: b""})
    before = contents(folder)
    refused = run("recover", "--apply", folder)
    assert refused.status == 5
    assert "--accept-loss orders-0" in refused.stderr
    assert contents(folder) == before


def test_a_start_ends_at_a_batch_below_its_segment_that_it_replays(run, tmp_path):
    """An index takes no such offset (``index_state.cc``): a segment under a wrong name."""
    folder = partition_of(tmp_path, {"20-1-v1.log": B, LOG_B: ABSENT, INDEX_B: ABSENT})
    before = contents(folder)
    for words in (["plan"], ["recover"], ["recover", "--apply"]):
        result = run(*words, "-f", "ndjson", folder)
        assert changes(result) == [("refuse", "20-1-v1.log", None)]
        (about,) = result.of_type("partition")
        assert about["outcome"] == "refuses"
        assert re.findall(r"\d+", about["reason"])[:3] == ["0", "13", "20"]
        assert result.status == 1
    assert contents(folder) == before
    index, finding, *_ = run("verify", "-f", "ndjson", folder).of_type("finding")
    assert (index["code"], index["severity"]) == ("base-index/not-written", "info")
    assert (finding["code"], finding["broker"]) == ("batch/offset-range", "if-unclean")
    assert "20" in finding["message"]
    # With an index that can be read no start replays the segment.
    (folder / "20-1-v1.base_index").write_bytes(rp.index(20, 25, (0, 0)))
    assert changes(run("plan", "-f", "ndjson", folder)) == []


def test_full_replays_every_segment(run, tmp_path):
    data = partition_of(tmp_path, {LOG_A: BAD}).parents[2]
    done = run("recover", "--full", "-f", "ndjson", data)
    assert changes(done) == [("truncate", LOG_A, AT[2])]


def test_the_segment_that_a_clean_stop_left_is_not_replayed(run, tmp_path):
    data = partition_of(tmp_path, {INDEX_C: rp.index(26, 38, (0, 0)), LOG_C: C + ROOM}).parents[2]
    other, ours = (rp.clean_segment(name) for name in ("9-9-v1.log", LOG_C))
    store = rp.kvstore(
        data, rp.stored(0, (rp.log_key(1), other), (rp.log_key(0), b"\5" + bytes(7)))
    )
    (store / "0-0-v1.base_index").write_bytes(rp.index(0, 1, (0, 0)))
    assert ("truncate", LOG_C, len(C)) in changes(run("plan", "-f", "ndjson", data))
    rp.kvstore(
        data, rp.stored(0, (rp.log_key(1), other)), rp.stored(1, (rp.log_key(1), ours)), ROOM
    )
    planned = run("plan", "-f", "ndjson", data / "kafka")
    assert changes(planned) == []
    (about,) = (one for one in planned.objects if one["type"] == "partition")
    assert (about["recovered_segments"], about["unread_segments"]) == (0, 3)
    (data / "kafka/orders/0_22" / INDEX_C).write_bytes(b"")
    assert changes(run("plan", "-f", "ndjson", data / "kafka")) == [("truncate", LOG_C, len(C))]


def test_a_log_begins_where_the_kvstore_says(run, tmp_path):
    data = partition_of(tmp_path, {}).parents[2]
    rp.kvstore(data, rp.stored(0, (rp.log_key(0), b"\5" + bytes(7))))
    (about,) = (
        one for one in run("plan", "-f", "ndjson", data / "kafka").objects
        if one["type"] == "partition"
    )  # fmt: skip
    assert (about["log_start_offset"], about["log_end_offset"]) == (5, 39)


def test_a_kvstore_that_cannot_be_read_is_reported(run, tmp_path):
    data = partition_of(tmp_path, {}).parents[2]
    one, two = rp.stored(0, (rp.log_key(0), bytes(8))), rp.stored(1, (rp.log_key(0), bytes(8)))
    store = rp.kvstore(data, flip(one, 70, 1), two)
    result = run("plan", data)
    assert result.status == 1
    place = f"{store / '0-0-v1.log'}: byte 0: "
    assert place in result.stdout
    # The starts of the logs are not known then, so it is not known what is gone of them.
    watermark = run("watermark", data)
    assert watermark.status == 1
    assert place in watermark.stdout + watermark.stderr


def test_nothing_is_changed_while_redpanda_runs(run, tmp_path):
    folder = partition_of(tmp_path, {LOG_C: C + ROOM})
    data = folder.parents[2]
    before = contents(data)
    with locked_by_a_process(data / "pid.lock") as pid:
        planned, refused = run("plan", data), run("recover", "--apply", folder)
    assert f"process {pid}" in planned.stdout
    assert refused.status == 5
    assert ("pid.lock: " in refused.stderr, str(pid) in refused.stderr) == (True, True)
    assert contents(data) == before


def test_a_copy_of_a_partition_is_recovered_by_itself(run, tmp_path):
    folder = partition_of(tmp_path, {LOG_C: C + ROOM})
    copy = tmp_path / "copies" / "orders" / "0_22"
    copy.parent.mkdir(parents=True)
    folder.rename(copy)
    before = contents(copy)
    done = run("recover", "--apply", "--undo-dir", tmp_path / "undo", copy)
    assert done.status == 0, done.stderr
    assert (copy / LOG_C).stat().st_size == len(C)
    assert sorted(path.name for path in copy.iterdir()) == sorted(
        [LOG_A, INDEX_A, LOG_B, INDEX_B, LOG_C, INDEX_C]
    )
    assert run("undo", "--apply", tmp_path / "undo").status == 0
    assert contents(copy) == before


@pytest.mark.parametrize(
    "words",
    [["--from-offset", "3"], ["--truncate-to", "orders-0=3"], ["--mark-clean"],
     ["--strategy", "supplement"], ["--fill-from", "."]],
)  # fmt: skip
def test_what_only_kafka_knows_makes_no_sense_here(run, tmp_path, words):
    result = run("recover", *words, partition_of(tmp_path, {}))
    assert result.status == 2
    assert "Redpanda" in result.stderr


def test_every_bit_of_a_small_segment_that_is_flipped_cuts_it_where_its_batch_begins(tmp_path):
    parts = [rp.batch(0, b"a", kind=rp.CONFIGURATION), rp.batch(1, b"b", b"c"), rp.batch(3, b"d")]
    data = b"".join(parts)
    ends = [0, len(parts[0]), len(parts[0] + parts[1]), len(data)]
    folder = rp.data_dir(tmp_path, {"0-1-v1.log": data})
    log, listed = folder / "0-1-v1.log", opening.open_partition(folder)
    records = [1, 2, 1]
    for bit in range(8 * len(data)):
        at = bit // 8
        log.write_bytes(data[:at] + bytes([data[at] ^ 1 << bit % 8]) + data[at + 1 :])
        (one,) = redpanda_start.load(listed, RedpandaStart(folder), lambda _: None)
        hit = next(number for number in range(3) if at < ends[number + 1])
        assert one.fate is (SegmentOutcome.REPLAYED if hit else SegmentOutcome.GIVEN_UP), bit
        assert one.valid_size == ends[hit], bit
        assert (one.lost.batches, one.lost.records) == (2 - hit, sum(records[hit + 1 :])), bit


@pytest.mark.parametrize(("second", "status"), [(2, 0), (4, 1), (1, 1)])
def test_a_hole_in_a_kvstore_stops_the_start(run, tmp_path, second, status):
    key, value = rp.log_key(1), rp.clean_segment("0-1-v1.log")
    batches = [rp.stored(0, (key, value), (key, value)), rp.stored(second, (key, value))]
    rp.kvstore(tmp_path, *batches)
    result = run("plan", "-f", "ndjson", tmp_path)
    assert result.status == status
    refused = [one for one in result.of_type("action") if one["action"] == "refuse"]
    assert len(refused) == status
    assert not [one for one in result.of_type("action") if one["action"] == "unnoticed"]
    found = run("verify", "-f", "ndjson", tmp_path).of_type("finding")
    assert [one["broker"] for one in found if one["code"] == "segment/kvstore-hole"] == (
        ["refuses-to-start"] * status
    )
