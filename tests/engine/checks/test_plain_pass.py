"""Plain batches are passed over with no row for most of them: the same is said of the log."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bench.generate import Spec, generate
from hypothesis import assume, given
from hypothesis import strategies as st
from verification import assert_same, ignored, segment_at

from logtool.checks import segment, segment_ranges
from logtool.checks.batches import BatchRules
from logtool.checks.edge_walk import plain_pass
from logtool.checks.report import Level, SegmentReport, SegmentTask
from logtool.checks.segment import check_segment
from logtool.disk import files
from logtool.disk.files import LogFile
from logtool.formats import _kernels, offset_index, record_batch, time_index
from logtool.gaps import coverage
from logtool.log import opening
from logtool.log.batches import read_batches
from logtool.log.chunk import Chunk
from logtool.log.index_join import OffsetIndexJoin, TimeIndexJoin
from logtool.log.walk import scanner

BASE = 20
NOW = 1_700_000_000_000
"""The time at which the logs of these tests were written, in milliseconds."""

usual = st.fixed_dictionaries({
    "step": st.sampled_from([1, 1, 1, 1, 1, 2]),
    "count": st.integers(1, 3),
    "rise": st.sampled_from([0, 0, 0, 1]),
    "stamp": st.integers(0, 5),
    "producer": st.sampled_from([-1, 5, 5, 5, 6]),
    "body": st.sampled_from([0, 20, 20, 3000]),
})  # fmt: skip
odd = st.sampled_from([
    *[None] * 12, ("base_offset", -3), ("base_offset", 2**31), ("base_offset", 3),
    ("last_offset_delta", 1), ("last_offset_delta", -4), ("leader_epoch", -2), ("leader_epoch", 7),
    ("attributes", 1), ("attributes", 5), ("attributes", 8), ("attributes", 16), ("attributes", 64),
    ("attributes", -32768), ("base_timestamp", -NOW - 7), ("max_timestamp", -NOW),
    ("max_timestamp", -NOW - 1), ("max_timestamp", -NOW - 7), ("max_timestamp", 10**11),
    ("producer_epoch", 1), ("base_sequence", -8), ("record_count", -1), ("record_count", 1),
])  # fmt: skip


@st.composite
def logs(draw) -> tuple[bytes, bytes, bytes]:
    """Return a log with its indexes, in which a few things are not as usual."""
    batches, offsets, times = [], [], []
    last, epoch, position, newest = BASE - 1, 0, 0, 0
    for kind in draw(st.lists(usual, min_size=1, max_size=12)):
        first, last = last + kind["step"], last + kind["step"] + kind["count"] - 1
        epoch += kind["rise"]
        header = {
            "base_offset": first, "last_offset_delta": last - first,
            "record_count": kind["count"], "leader_epoch": epoch, "attributes": 0,
            "base_timestamp": NOW, "max_timestamp": NOW + kind["stamp"],
            "producer_id": kind["producer"], "producer_epoch": 0,
            "base_sequence": -1 if kind["producer"] < 0 else 3,
        }  # fmt: skip
        if change := draw(odd):
            header[change[0]] += change[1]
        codec, header["attributes"] = header["attributes"], 0
        batch = bytearray(record_batch.encode(bytes(kind["body"]), **header))
        batch[21:23] = codec.to_bytes(2, "big", signed=True)
        batch[17:21] = record_batch.crc32c(batch[21:]).to_bytes(4, "big")
        newest = max(newest, NOW + kind["stamp"])
        if batches:
            offsets.append((last - BASE + draw(slips), position + draw(slips)))
            times.append((newest + draw(slips), last - BASE + draw(slips)))
        batches.append(bytes(batch))
        position += len(batch)
    log = bytearray(b"".join(batches))
    for place, bit in draw(
        st.lists(st.tuples(st.integers(0, 2**20), st.integers(0, 7)), max_size=1)
    ):
        log[place % len(log)] ^= 1 << bit
    kept = draw(st.sets(st.integers(0, 11), max_size=8))
    index, stamps = (
        np.array([entry for at, entry in enumerate(entries) if at in kept], dtype).tobytes()
        for entries, dtype in ((offsets, offset_index.ENTRY), (times, time_index.ENTRY))
    )
    return bytes(log), index, stamps


slips = st.sampled_from([*[0] * 20, 1, -1, -2])


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("t") / "t-0"


WINDOWS = st.sampled_from(["a copy", "a mapping", "small copies", "few rows"])


@contextmanager
def looking_through(window: str) -> Iterator[None]:
    """Look at logs in pieces of some kind."""
    with pytest.MonkeyPatch.context() as patch:
        if window == "a mapping":
            patch.setattr(files, "_LEAST_MAPPED", 1)
            patch.setattr(files, "MOST_MAPPED", 4096)
        if window == "small copies":
            patch.setattr(scanner, "BUFFER_SIZE", 200)
        if window == "few rows":
            patch.setattr(scanner, "MOST_ROWS", 4)
            patch.setattr(scanner, "_LONGEST_CHUNK", 300)
        yield


def written(home: Path, log: bytes, offsets: bytes, times: bytes) -> Path:
    home.mkdir(exist_ok=True)
    for kind, data in {"log": log, "index": offsets, "timeindex": times}.items():
        path = home / f"{BASE:020d}.{kind}"
        path.write_bytes(data)
        os.utime(path, (NOW // 1000, NOW // 1000))
    return home


def task_of(directory: Path) -> SegmentTask:
    (found,) = opening.open_partition(directory).segments
    return SegmentTask(found, Level.BATCHES)


def with_all_rows(task: SegmentTask) -> SegmentReport:
    """Return the report on a segment by the walk that keeps a row for each batch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment, "plain_pass", lambda *_: None)
        return check_segment(task)


@given(made=logs(), cuts=st.sets(st.integers(BASE, BASE + 30), max_size=2), window=WINDOWS)
def test_the_same_is_said_with_and_without_rows_of_all(home, made, cuts, window):
    task = replace(task_of(written(home, *made)), cuts=tuple(sorted(cuts)))
    whole = with_all_rows(task)
    # Damage of batches is found chunk by chunk; their order needs the neighbours.
    bad = any(found.code.startswith("batch/") for found in whole.findings)
    assume(window != "few rows" or not bad)
    with looking_through(window):
        report = check_segment(task)

    assert_same(report, whole)


@given(made=logs(), window=WINDOWS)
def test_the_same_is_said_of_a_piece(home, made, window):
    task = task_of(written(home, *made))
    piece = replace(task, piece=range(len(made[0])))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment_ranges, "plain_pass", lambda *_: None)
        whole = segment_ranges.check_piece(piece, ignored)
    with looking_through(window):
        report = segment_ranges.check_piece(piece, ignored)

    assert report.ordinary == whole.ordinary
    if report.ordinary:
        assert_same(report.report, whole.report)
        assert replace(report, report=whole.report) == whole


@given(
    made=logs(),
    start=st.sampled_from([0, 0, 0, BASE + 2, BASE + 7]),
    exact=st.booleans(),
    window=WINDOWS,
)
def test_the_same_gaps_are_found_with_and_without_rows_of_all(home, made, start, exact, window):
    task = coverage.CoverageTask(task_of(written(home, *made)).segment, start, exact)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coverage._PlainWalk, "walk", lambda *_: (0, 0, _kernels.NOT_PLAIN))
        whole = coverage.look(task)
    with looking_through(window):
        found = coverage.look(task)

    assert_same(found, whole)


def test_a_gap_at_the_edge_of_two_chunks_is_found(home, monkeypatch):
    """A chunk with rows at its edges alone does not show the offsets that are missing before it."""
    monkeypatch.setattr(scanner, "_LONGEST_CHUNK", 300)
    monkeypatch.setattr(scanner, "BUFFER_SIZE", 400)
    for number in range(1, 20):
        offsets = [BASE + at + 5 * (at >= number) for at in range(20)]
        log = b"".join(
            record_batch.encode(
                bytes(20), base_offset=offset, last_offset_delta=0, record_count=1,
                base_timestamp=NOW, max_timestamp=NOW, producer_id=5 + at % 2, producer_epoch=0,
                base_sequence=0,
            )
            for at, offset in enumerate(offsets)
        )  # fmt: skip
        path = written(home, log, b"", b"") / f"{BASE:020d}.log"
        gaps = coverage.look(coverage.CoverageTask(segment_at(path))).gaps
        assert gaps.first_offset.tolist() == [BASE + number]
        assert gaps.last_offset.tolist() == [BASE + number + 4]


def chunks_of(task: SegmentTask) -> list[Chunk]:
    """Return the chunks of a log by the plain pass, with the rules fed as `check_segment` does."""
    rules = BatchRules(BASE)
    passed = plain_pass(task, rules, None, None)
    chunks = []
    with task.segment.log.open() as log:
        for chunk in read_batches(log, base_offset=BASE, payload=False, plain_walk=passed):
            assert not list(rules.judge(chunk))
            chunks.append(chunk)
    return chunks


def plain_log(sizes: list[int], producers: list[int]) -> bytes:
    return b"".join(
        record_batch.encode(
            bytes(size), base_offset=BASE + number, last_offset_delta=0, record_count=1,
            leader_epoch=0, base_timestamp=NOW, max_timestamp=NOW, producer_id=producer,
            producer_epoch=0, base_sequence=0,
        )
        for number, (size, producer) in enumerate(zip(sizes, producers, strict=True))
    )  # fmt: skip


def test_rows_are_kept_at_edges_alone(tmp_path):
    log = plain_log([10] * 9, [5, 5, 5, 5, 6, 5, 5, 5, 5])
    (chunk,) = chunks_of(task_of(written(tmp_path / "t-0", log, b"", b"")))

    assert chunk.at_edges
    assert chunk.table.base_offset.tolist() == [20, 23, 24, 25, 28]
    assert (chunk.batches, chunk.records, chunk.end_position) == (9, 9, len(log))


def test_behind_what_is_not_plain_rows_are_left_out_again(tmp_path, monkeypatch):
    """The chunk behind it has a row for each batch, and shows whether the next need one."""
    monkeypatch.setattr(scanner, "MOST_ROWS", 10)
    log = bytearray(plain_log([10] * 60, [5] * 60))
    at = len(log) // 60 * 25
    log[at + 27 : at + 35] = (NOW - 1).to_bytes(8, "big")
    log[at + 21 : at + 23] = (8).to_bytes(2, "big")
    log[at + 17 : at + 21] = record_batch.crc32c(log[at + 21 : at + 71]).to_bytes(4, "big")
    chunks = chunks_of(task_of(written(tmp_path / "t-0", bytes(log), b"", b"")))

    assert [(chunk.at_edges, chunk.batches) for chunk in chunks] == [
        (True, 25), (False, 10), (False, 10), (True, 15)
    ]  # fmt: skip


def test_of_most_batches_of_a_sound_log_no_row_is_kept(tmp_path):
    """The rule that the pass is there for: it would be of no use if it never came to that."""
    directory = generate(tmp_path, Spec(200, 4 * 1024 * 1024, producers=1))
    task = task_of(directory)
    index, stamps = (next(directory.glob(f"*.{kind}")) for kind in ("index", "timeindex"))
    offsets = OffsetIndexJoin(offset_index.parse(index.read_bytes()), 0)
    times = TimeIndexJoin(time_index.parse(stamps.read_bytes()), 0)
    rules = BatchRules(0)
    with task.segment.log.open() as log:
        passed = plain_pass(task, rules, offsets, times)
        rows = 0
        for chunk in read_batches(log, base_offset=0, payload=False, plain_walk=passed):
            assert not list(rules.judge(chunk))
            offsets.feed(chunk)
            times.feed(chunk)
            rows += len(chunk.table)
    assert rules.last_offset is not None
    assert rows < 10
    assert len(offsets.batch_base) > 900
    offsets.finish()
    times.finish()
    assert not offsets.verdicts.any()
    assert not times.verdicts.any()
    assert with_all_rows(task).batches == 4 * 1024 * 1024 // 200


def test_what_a_file_has_lost_meanwhile_is_taken_back(tmp_path, monkeypatch):
    """The log shrinks behind its second mapping: entries that were found in zeros are forgotten."""
    monkeypatch.setattr(files, "_LEAST_MAPPED", 1)
    monkeypatch.setattr(files, "MOST_MAPPED", 4096)
    log = plain_log([939] * 12, [5] * 12)  # batches of 1000 bytes
    entries = [(number, number * 1000) for number in range(1, 12)]
    index = np.array(entries, offset_index.ENTRY).tobytes()
    home = written(tmp_path / "t-0", log, index, b"")
    task = task_of(home)
    maps, mapped = [], LogFile.map_range

    def cut_then(file: LogFile, position: int, size: int):
        found = mapped(file, position, size)
        maps.append(position)
        if len(maps) == 2:
            os.truncate(file.path, 6500)
        return found

    monkeypatch.setattr(LogFile, "map_range", cut_then)
    offsets = OffsetIndexJoin(offset_index.parse(index), BASE)
    rules = BatchRules(BASE)
    seen = []
    with task.segment.log.open() as file:
        passed = plain_pass(task, rules, offsets, None)
        for chunk in read_batches(file, base_offset=BASE, payload=False, plain_walk=passed):
            seen += list(rules.judge(chunk))
            offsets.feed(chunk)
    if not maps:
        return  # the kernels run as plain Python, which maps nothing
    assert len(maps) == 2
    assert offsets.batch_base.tolist() == [*range(BASE + 1, BASE + 6), *[-1] * 6]
