"""Findings of verify in directories of Redpanda: damage on the left, codes on the right.

The files come from a writer that shares nothing with the reader (`redpanda_files`).
"""

import shutil
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import redpanda_files as rp
from processes import locked_by_a_process
from verification import described, verify

from logtool.actions import Action
from logtool.checks import schedule, segment_ranges
from logtool.findings import catalogue
from logtool.formats.redpanda import kvstore
from logtool.formats.redpanda._xxhash64 import xxhash64
from logtool.node.options import StartOptions
from logtool.startup.forecast import Forecast
from logtool.verify import Budget, Level

DATA = Path(__file__).parents[2] / "data" / "redpanda"
FIRST, SECOND = rp.log(0, 4), rp.log(13, 4)
ROOM = bytes(9000)
AT = rp.positions(FIRST)
NAMES = "0-1-v1.log", "13-2-v1.log"
INDEX, OPEN_INDEX = "0-1-v1.base_index", "13-2-v1.base_index"


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def write(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


def both(*steps: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda folder: [step(folder) for step in steps]


def legacy_index(base: int, last: int, *entries: tuple[int, int]) -> bytes:
    """Return a base index of version 3; its hash is held against its specification elsewhere."""
    count = len(entries)
    body = struct.pack("<IqqqqI", 0, base, last, rp.START, rp.START + 2, count)
    body += struct.pack(f"<{count}I", *(offset for offset, _ in entries))
    body += struct.pack(f"<{count}I", *([2] * count))
    body += struct.pack(f"<{count}Q", *(position for _, position in entries))
    return struct.pack("<BIQ", 3, 8 + len(body), xxhash64(body)) + body


def data_dir(root: Path, segments: dict[str, bytes]) -> Path:
    """Write a data directory whose open segment has an index, as after a flush."""
    folder = rp.data_dir(root, segments)
    last = max(segments, key=lambda name: int(name.partition("-")[0]))
    base = int(last.partition("-")[0])
    (folder / last).with_suffix(".base_index").write_bytes(rp.index(base, base))
    return folder


def gone(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).unlink()


class Row(NamedTuple):
    id: str
    damage: Callable[[Path], object]
    expected: list[tuple[str, str, int | None]]
    says: str = ""


LOG, NEXT = NAMES
RAFT = struct.pack("<qqb9sqq", -1, 1, 64, b"the group", 0, 0)
TABLE = [
    Row("a bit of a header", write(LOG, flipped(FIRST, AT[1] + 30)),
        [("batch/header-crc", LOG, AT[1])], "3 sound batches"),
    Row("a bit of a CRC", write(LOG, flipped(FIRST, AT[1] + 18)),
        [("batch/header-crc", LOG, AT[1])]),
    Row("a bit of the records", write(LOG, flipped(FIRST, AT[2] + 99)),
        [("batch/crc", LOG, AT[2])]),
    Row("a bit of the last batch", write(NEXT, flipped(SECOND, AT[4] + 99)),
        [("batch/crc", NEXT, AT[4])], "no sound batch follows"),
    Row("a size of less than a header",
        write(LOG, rp.sealed(FIRST[: AT[2] + 4] + b"\x09\0" + FIRST[AT[2] + 6 :], AT[2])),
        [("batch/size", LOG, AT[2])]),
    Row("a torn batch in the last segment", write(NEXT, SECOND[:-5]),
        [("log/torn-tail", NEXT, AT[4])]),
    Row("a torn batch before room", write(NEXT, SECOND[:-5] + ROOM),
        [("batch/crc", NEXT, AT[4])]),
    Row("a torn header in the last segment", write(NEXT, SECOND[: AT[4] + 20]),
        [("log/torn-tail", NEXT, AT[4])]),
    Row("a torn batch in another segment", write(LOG, FIRST[:-5]),
        [("log/truncated", LOG, AT[4])]),
    Row("zeros behind every segment", both(write(LOG, FIRST + ROOM), write(NEXT, SECOND + ROOM)),
        []),
    Row("zeros in the middle", write(LOG, FIRST[: AT[3]] + bytes(300) + FIRST[AT[3] :]),
        [("batch/zero-run", LOG, AT[3])]),
    Row("a batch that is missing", write(LOG, FIRST[: AT[2]] + FIRST[AT[3] :]),
        [("segment/missing", LOG, AT[2])], "offsets 4 through 6"),
    Row("a batch that is missing, with an index of compaction",
        both(write(LOG, FIRST[: AT[2]] + FIRST[AT[3] :]),
             write("0-1-v1.compaction_index", b"")), []),
    Row("a batch that is missing, and a placeholder",
        both(write(LOG, FIRST[: AT[2]] + FIRST[AT[3] :]),
             write(NEXT, SECOND + rp.batch(26, kind=rp.PLACEHOLDER, last=29,
                                           producer=(0, 0, 0)))), []),
    Row("a batch with fewer records",
        write(NEXT, SECOND + rp.batch(26, b"x", last=29) + rp.batch(31, b"y")), []),
    Row("a segment that is missing",
        both(gone(NEXT), write("30-2-v1.log", rp.log(30, 2)), gone(OPEN_INDEX),
             write("30-2-v1.base_index", rp.index(30, 30))),
        [("segment/missing", LOG, None)], "offsets 13 through 29"),
    Row("the end of a segment", write(LOG, FIRST[: AT[4]]),
        [("segment/missing", LOG, None)], "offsets 10 through 12"),
    Row("a head that a follower was sent a ghost for",
        both(write(NEXT, rp.log(20, 2)), write("0-1-v1.compaction_index", b"")),
        []),
    Row("an overlap", write(LOG, FIRST + rp.batch(13, b"x")), [("segment/overlap", LOG, None)]),
    Row("a term that falls", lambda folder: (folder / LOG).rename(folder / "0-7-v1.log"),
        [("segment/term-order", NEXT, None)]),
    Row("offsets that go back", write(LOG, FIRST + rp.batch(11, b"x")),
        [("batch/offset-order", LOG, len(FIRST))]),
    Row("an offset below the segment", write(LOG, FIRST + rp.batch(-4, b"x")),
        [("batch/offset-range", LOG, len(FIRST))]),
    Row("offsets that 32 bits do not hold",
        both(write(NEXT, SECOND + rp.batch(2**40, b"x")),
             write("0-1-v1.compaction_index", b"")), []),
    Row("damage before offsets that 32 bits do not hold",
        both(write(NEXT, flipped(SECOND, AT[4] + 30) + rp.batch(2**40, b"x")),
             write("0-1-v1.compaction_index", b"")),
        [("batch/header-crc", NEXT, AT[4])], "1 sound batch"),
    Row("a ghost", write(NEXT, SECOND + rp.batch(26, kind=rp.GHOST, last=29, count=4, body=b"")),
        [("batch/type", NEXT, len(SECOND)), ("batch/records", NEXT, len(SECOND))]),
    Row("type 0", write(NEXT, SECOND + rp.batch(26, b"x", kind=0)),
        [("batch/type", NEXT, len(SECOND))]),
    Row("a type of a later release", write(NEXT, SECOND + rp.batch(26, b"x", kind=99)), []),
    Row("a fence of a transaction",
        write(NEXT, SECOND + rp.batch(26, b"x", kind=rp.TX_FENCE, attributes=0x20,
                                      producer=(5, 0, -1))), []),
    Row("a producer without a sequence",
        write(NEXT, SECOND + rp.batch(26, b"x", producer=(5, 0, -1))),
        [("batch/producer", NEXT, len(SECOND))]),
    Row("a codec that does not exist", write(NEXT, SECOND + rp.batch(26, b"x", attributes=6)),
        [("batch/codec", NEXT, len(SECOND))]),
    Row("a record that does not decode", write(NEXT, SECOND + rp.batch(26, count=2, body=b"\x09")),
        [("batch/records", NEXT, len(SECOND))]),
    Row("what compaction did not end", write("0-1-v1.log.staging", b"x"),
        [("partition/leftover-cleaned", "0-1-v1.log.staging", None)]),
    Row("a snapshot that was not ended", write("snapshot.partial.1700000000000.abcd", b"x"),
        [("partition/leftover-temporary", "snapshot.partial.1700000000000.abcd", None)]),
    Row("a segment that was given up", write("26-2-v1.log.cannotrecover", rp.log(26)[1:]),
        [("log/cannot-recover", "26-2-v1.log.cannotrecover", None)]),
    Row("one that says why", write("26-2-v1.log.bad_crc.tail.cannotrecover", b"x"),
        [("log/cannot-recover", "26-2-v1.log.bad_crc.tail.cannotrecover", None)], "bad_crc"),
    Row("room that was given up", write("26-2-v1.log.cannotrecover", ROOM),
        [("log/given-up-room", "26-2-v1.log.cannotrecover", None)], "zeros"),
    Row("an index without a segment", write("99-2-v1.base_index", b""),
        [("partition/orphan-index", "99-2-v1.base_index", None)]),
    Row("an index", write(INDEX, rp.index(0, 12, (0, 0), (4, AT[2]))), []),
    Row("an old index of the last segment", write(OPEN_INDEX, rp.index(13, 14, (0, 0))),
        []),
    Row("an index of another checksum", write(INDEX, flipped(rp.index(0, 12, (0, 0)), 30)),
        [("base-index/unreadable", INDEX, 0)]),
    Row("an empty index", write(INDEX, b""), [("base-index/unreadable", INDEX, 0)]),
    Row("an empty index of the open segment", write(OPEN_INDEX, b""),
        [("base-index/not-written", OPEN_INDEX, None)]),
    Row("no index of the open segment", gone(OPEN_INDEX),
        [("base-index/not-written", NEXT, None)]),
    Row("an index of version 2", write(INDEX, b"\2" + rp.index(0, 12, (0, 0))[1:]),
        [("base-index/unreadable", INDEX, 0)]),
    Row("an index with bytes behind its end", write(INDEX, rp.index(0, 12, (0, 0)) + b"x"),
        [("base-index/unreadable", INDEX, 0)], "1 byte after"),
    Row("an index of version 3 with bytes behind its end",
        write(INDEX, legacy_index(0, 12, (0, 0)) + bytes(9)),
        [("base-index/unreadable", INDEX, 0)], "9 bytes after"),
    Row("an index of another size", write(INDEX, flipped(rp.index(0, 12, (0, 0)), 2)),
        [("base-index/unreadable", INDEX, 0)], "86"),
    Row("an index for readers of a later version",
        write(INDEX, b"\x0b\x0a" + rp.index(0, 12, (0, 0))[2:]),
        [("base-index/unreadable", INDEX, 0)], "version 10"),
    Row("an index of version 3", write(INDEX, legacy_index(0, 12, (0, 0), (4, AT[2]))), []),
    Row("an index of version 4", write(INDEX, rp.index_4(0, 12, (0, 0), (4, AT[2]))), []),
    Row("an index that leads into a batch", write(INDEX, rp.index(0, 12, (0, 0), (4, AT[2] + 1))),
        [("base-index/not-a-batch", INDEX, 54)]),
    Row("an index with another offset", write(INDEX, rp.index(0, 12, (0, 0), (5, AT[2]))),
        [("base-index/not-a-batch", INDEX, 54)]),
    Row("an index that falls", write(INDEX, rp.index(0, 12, (4, AT[2]), (0, 0))),
        [("base-index/order", INDEX, 54), ("base-index/order", INDEX, 54)]),
    Row("an index of a longer segment", write(INDEX, rp.index(0, 15, (0, 0))),
        [("base-index/max-offset", INDEX, None)]),
    Row("an index with offsets modulo 2^32",
        write(OPEN_INDEX, rp.index(0, 25, (13, 0), (17, AT[2]))),
        [("base-index/wrapped", OPEN_INDEX, None)]),
    Row("a stranger", write("notes.txt", b"x"), [("partition/unknown-file", "notes.txt", None)]),
    Row("files that belong there",
        both(write("snapshot", rp.snapshot(RAFT)), write("tx.snapshot", b"x"),
             write("abort.idx.1.9", b"x")),
        []),
    Row("a snapshot of no byte", write("snapshot", b""), [("partition/snapshot", "snapshot", 0)],
        "holds 0 bytes"),
    Row("a snapshot with a bit of its header", write("snapshot", flipped(rp.snapshot(RAFT), 9)),
        [("partition/snapshot", "snapshot", 0)], "CRC-32C of the header"),
    Row("a snapshot of another version", write("snapshot", rp.snapshot(RAFT, version=2)),
        [("partition/snapshot", "snapshot", 0)], "has version 2"),
    Row("a snapshot with a bit of its metadata", write("snapshot", flipped(rp.snapshot(RAFT), 20)),
        [("partition/snapshot", "snapshot", 0)], "CRC-32C of the metadata"),
    Row("a snapshot that is cut", write("snapshot", rp.snapshot(RAFT)[:-1]),
        [("partition/snapshot", "snapshot", 0)], "has 41 of 42 bytes of metadata"),
    Row("a snapshot with a bit of its payload",
        write("snapshot", flipped(rp.snapshot(RAFT) + b"what follows", 60)), []),
]  # fmt: skip


ELSEWHERE = (
    "batch/control-type", "partition/changed", "group/offset-below-start",
    "group/offset-beyond-end", "group/unreadable-record", "group/refused-record",
    "group/missing-records", "data-dir/in-use",
)  # fmt: skip
"""Codes of Redpanda that no damage of this table causes: other commands report them."""


@pytest.mark.parametrize("code", ELSEWHERE)
def test_a_code_that_redpanda_can_have_says_what_it_does(code):
    assert catalogue()[code].redpanda


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.id)
def test_each_row_has_exactly_its_findings(row, tmp_path, monkeypatch):
    folder = data_dir(tmp_path, {LOG: FIRST, NEXT: SECOND + ROOM})
    assert verify(folder.parents[2]).findings == []
    row.damage(folder)
    outcome = verify(folder.parents[2])

    story = "\n".join(map(described, outcome.findings))
    assert outcome.places == Counter(row.expected), story
    assert row.says in story
    assert not outcome.unreadable
    for code, _, _ in row.expected:
        assert catalogue()[code].redpanda, code
    assert verify(folder).places == outcome.places
    monkeypatch.setattr(schedule, "WORTH_A_POOL", 0)
    monkeypatch.setattr(segment_ranges, "PIECE_BYTES", 400)
    assert verify(folder, budget=Budget(jobs=2)).places == outcome.places
    verify(folder, level=Level.QUICK)


def test_the_snapshot_of_a_kvstore_is_judged_with_its_batch(tmp_path):
    data = data_dir(tmp_path, {LOG: FIRST}).parents[2]
    store = rp.kvstore(data, rp.stored(0, (rp.log_key(0), bytes(8)))) / "snapshot"
    (store.parent / "0-0-v1.base_index").write_bytes(rp.index(0, 0))
    sound = rp.snapshot(struct.pack("<q", -1)) + kvstore.build_snapshot(
        [kvstore.KeyValue(2, rp.log_key(0)[1:], bytes(8))]
    )
    store.write_bytes(sound)
    assert verify(data).findings == []
    # The frame, the metadata, the header of the batch, and a byte of its last value.
    for at in (*range(13 + 8 + 4 + 61), len(sound) - 5):
        store.write_bytes(flipped(sound, at))
        assert verify(data).places == Counter([("partition/snapshot", "snapshot", 0)]), at


STORED = {base: rp.stored(base, *[(rp.log_key(0), bytes(8))] * 5) for base in range(0, 30, 5)}
"""Batches of a kvstore: five offsets each."""


def kvstore_of(data, end: int | None, **segments: tuple[int, ...]):
    """Write a kvstore whose snapshot ends at an offset, with the batches of each segment."""
    folder = data / "redpanda" / "kvstore" / "0_0"
    folder.mkdir(parents=True)
    if end is not None:
        content = kvstore.build_snapshot([kvstore.KeyValue(2, rp.log_key(0)[1:], bytes(8))])
        (folder / "snapshot").write_bytes(rp.snapshot(struct.pack("<q", end - 1)) + content)
    for name, bases in segments.items():
        content = b"".join(STORED[base] for base in bases)
        (folder / f"{name.strip('_')}-0-v1.log").write_bytes(content)
    return folder


STORES: dict[str, tuple[int | None, dict[str, tuple[int, ...]], str | None]] = {
    "whole": (None, {"_0": (0, 5), "_10": (10,)}, None),
    "old segments": (20, {"_0": (0, 5), "_10": (10, 15)}, None),
    "behind the snapshot": (10, {"_0": (0, 5), "_10": (10, 15), "_20": (20,)}, None),
    "a segment is missing": (None, {"_0": (0, 5), "_20": (20,)}, "20-0-v1.log"),
    "the first one is missing": (None, {"_10": (10, 15)}, "10-0-v1.log"),
    "none begins where the snapshot ends": (10, {"_0": (0, 5), "_20": (20,)}, "20-0-v1.log"),
    "a batch is missing": (None, {"_0": (0, 10)}, "0-0-v1.log"),
    "a segment without a batch": (10, {"_0": (0, 5), "_20": ()}, None),
}
"""End of the snapshot, the batches of each segment, and the file that stops the start."""


@pytest.mark.parametrize("name", STORES)
def test_a_hole_in_a_kvstore_stops_the_start(tmp_path, name):
    end, segments, stops = STORES[name]
    data = data_dir(tmp_path, {LOG: FIRST}).parents[2]
    kvstore_of(data, end, **segments)
    holes = [one.path.name for one in verify(data).findings if one.code == "segment/kvstore-hole"]
    assert holes == ([stops] if stops else [])
    actions = [one for one in Forecast([data], StartOptions()) if isinstance(one, Action)]
    assert [one.path.name for one in actions if one.action == "refuse"] == holes


def test_the_real_files_are_sound(tmp_path):
    folder = data_dir(tmp_path, {"4-1-v1.log": (DATA / "test_segment.bin").read_bytes()})
    shutil.copy(DATA / "3676-7429-77-1-v1.log.1", other := folder.with_name("1_23"))
    other.rename(moved := other.with_name("tiered"))
    (folder.parent / "1_23").mkdir()
    moved.rename(folder.parent / "1_23" / "3676-7429-77-1-v1.log.1")

    outcome = verify(folder.parents[2])

    assert outcome.findings == []
    assert (outcome.summary.partitions, outcome.summary.batches) == (2, 6)


def test_any_level_of_a_data_directory_can_be_given(tmp_path):
    folder = data_dir(tmp_path, {LOG: FIRST, NEXT: flipped(SECOND, AT[1] + 99)})
    for path in (folder.parents[2], folder.parents[1], folder.parents[0], folder, folder / NEXT):
        assert verify(path).codes == Counter(["batch/crc"]), path


def test_the_lock_of_a_running_broker_is_reported(tmp_path):
    folder = data_dir(tmp_path, {LOG: FIRST})
    with locked_by_a_process(folder.parents[2] / "pid.lock") as pid:
        found = verify(folder.parents[2]).one("data-dir/in-use")
    assert str(pid) in found.message and "pid.lock" in found.message
    assert verify(folder.parents[2]).findings == []


def test_the_first_line_names_the_flavour(tmp_path, run_verify):
    folder = data_dir(tmp_path, {LOG: FIRST})
    assert run_verify(folder, "-v").startswith("flavour: redpanda")
    assert '"flavour": "redpanda"' in run_verify(folder, "--json").splitlines()[0]
    assert '"flavour": "redpanda"' in run_verify(folder, "-f", "ndjson").splitlines()[0]


@pytest.fixture
def run_verify(capsys):
    from logtool import cli

    def run(*arguments: object) -> str:
        cli.run(["verify", *map(str, arguments)])
        return capsys.readouterr().out

    return run
