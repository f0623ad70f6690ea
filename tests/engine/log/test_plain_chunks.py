"""Chunks of plain batches take short ways; they lead where the long ones do."""

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
from hypothesis import given, reject
from hypothesis import strategies as st
from verification import as_data

from logtool.checks import timestamps
from logtool.checks.log_pass import LogPass
from logtool.checks.report import SegmentReport, SegmentTask
from logtool.formats import _kernels, names, offset_index, time_index
from logtool.formats.record_batch import BatchTable
from logtool.gaps.coverage import CoverageTask, _Pass
from logtool.loading.index_building import IndexBuilder, InvalidOffsetError
from logtool.loading.index_compare import IndexComparison, prefix
from logtool.log.chunk import Chunk, PlainTotals
from logtool.log.dir import Segment
from logtool.log.file import File
from logtool.log.index_join import OffsetIndexJoin, TimeIndexJoin
from logtool.log.kafka import KAFKA
from logtool.log.order import BatchOrder
from logtool.log.producer_state import ProducerState
from logtool.stat.statistics import of_plain, of_table

BASE, SIZE = 20, 100
LOG = "00000000000000000020.log"
TASK = SegmentTask(
    Segment(BASE, File(Path(LOG), names.parse_partition_file(LOG), 0, 0), {}, None, KAFKA)
)

usual = st.tuples(
    st.sampled_from([1, 1, 1, 2]),  # step from the batch before
    st.integers(1, 3),  # records
    st.sampled_from([0, 0, 0, 1]),  # rise of the epoch
    st.integers(0, 5),  # timestamp
    st.sampled_from([-1, 5, 5, 6]),  # producer
)
odd = st.sampled_from([
    None, None, None, ("base_offset", -3), ("last_offset", 1), ("leader_epoch", -2), ("magic", -1),
    ("attributes", 5), ("attributes", 16), ("attributes", 32), ("attributes", -32768),
    ("base_timestamp", -7000), ("max_timestamp", -7000), ("producer_epoch", 1),
    ("base_sequence", -8), ("record_count", -1), ("leader_epoch", 1),
])  # fmt: skip


@st.composite
def tables(draw, oddities=odd) -> BatchTable:
    columns = {field.name: [] for field in fields(BatchTable)}
    last, epoch = BASE - 1, 0
    for number, (step, count, rise, stamp, producer) in enumerate(
        draw(st.lists(usual, min_size=2, max_size=8))
    ):
        first, last, epoch = last + step, last + step + count - 1, epoch + rise
        row = {
            "position": number * SIZE, "size": SIZE, "base_offset": first, "last_offset": last,
            "leader_epoch": epoch, "magic": 2, "crc": 0, "attributes": 0, "base_timestamp": 1000,
            "max_timestamp": 1000 + stamp, "producer_id": producer, "producer_epoch": 0,
            "base_sequence": -1 if producer < 0 else 3, "record_count": count,
            "batch_type": -1, "control_type": -1, "coordinator_epoch": -1,
        }  # fmt: skip
        change = draw(oddities)
        if change:
            row[change[0]] += change[1]
        for name, value in row.items():
            columns[name].append(value)
    return BatchTable(*(np.array(column, np.int64) for column in columns.values()))


def facts_of(table: BatchTable) -> PlainTotals | None:
    rows = np.array([getattr(table, field.name) for field in fields(BatchTable)])
    facts = np.zeros(_kernels.FACTS, np.int64)
    if not _kernels.plain_facts(rows, 0, len(table), facts):
        return None
    return PlainTotals(*[*facts.tolist(), len(table)])


def chunks_of(parts: list[BatchTable], *, short: bool) -> list[Chunk]:
    """Return chunks as a scan yields them; plain batches are called so where the way is short."""
    order, chunks = BatchOrder(BASE), []
    for part in parts:
        facts = facts_of(part) if short else None
        chunk = Chunk(part, memoryview(b""), 0, None, [], plain=facts)
        chunks.append(replace(chunk, misplaced=order.misplaced(part, facts)))
    return chunks


def outcome(chunks: list[Chunk], offsets: bytes, times: bytes):
    report = SegmentReport(BASE)
    log_pass = LogPass(TASK, report)
    by_offset = OffsetIndexJoin(offset_index.parse(offsets), BASE)
    by_time = TimeIndexJoin(time_index.parse(times), BASE)
    for chunk in chunks:
        for consumer in (log_pass, by_offset, by_time):
            consumer.feed(chunk)
    for consumer in (log_pass, by_offset, by_time):
        consumer.finish()
    state = ProducerState()
    as_data = state.apply(report.producer_rows)
    columns = by_offset.batch_base, by_offset.batch_last, by_time.batch_base, by_time.verdicts
    seen = [column.tolist() for column in (*columns, by_offset.verdicts)]
    plain_data = [
        getattr(report, field.name) for field in fields(report) if field.name != "producer_rows"
    ]
    return log_pass.findings, plain_data, as_data[0], state, seen, by_time.max_timestamp


@given(tables(), st.data())
def test_short_ways_lead_where_the_long_ones_do(table, data):
    cut = data.draw(st.integers(1, len(table) - 1))
    parts = [table[:cut], table[cut:]]
    entry = st.tuples(st.integers(1, 12), st.integers(1, 8).map(lambda row: row * SIZE))
    entries = sorted(data.draw(st.lists(entry, max_size=4)))
    stamps = sorted(data.draw(st.lists(st.tuples(st.integers(1000, 1006), st.integers(0, 12)))))
    offsets = np.array(entries, offset_index.ENTRY).tobytes()
    times = np.array(stamps, time_index.ENTRY).tobytes()

    short = outcome(chunks_of(parts, short=True), offsets, times)

    assert short == outcome(chunks_of(parts, short=False), offsets, times)


change = st.tuples(
    st.sampled_from(["none", "cut", "drop", "repeat", "more", "more", "other", "other", "zeros"]),
    st.integers(0, 7),
    st.integers(-3, 3),
)


def changed(entries: np.ndarray, how: tuple[str, int, int], more: tuple[int, int]) -> bytes:
    """Return the bytes of an index in which one thing is not as it was rebuilt."""
    what, number, by = how
    at = number % len(entries) if len(entries) else 0
    odd = np.array([more], entries.dtype)
    if what == "cut":
        entries = entries[:at]
    elif what == "drop":
        entries = np.delete(entries, slice(at, at + 1))
    elif what == "repeat":
        entries = np.insert(entries, at, entries[at : at + 1])
    elif what == "more":
        entries = np.sort(np.concatenate((entries, odd)), order=entries.dtype.names[0])
    elif what == "other" and len(entries):
        entries = entries.copy()
        entries[entries.dtype.names[number % 2]][at] += by
    return entries.tobytes() + bytes(entries.dtype.itemsize * 3 * (what == "zeros"))


@given(tables(st.sampled_from([None] * 15 + [("attributes", 16)])), st.data())
def test_indexes_that_go_like_rebuilt_ones_are_judged_as_by_the_log(table, data):
    cuts = sorted(data.draw(st.sets(st.integers(1, len(table) - 1), max_size=3)))
    parts = [table[a:b] for a, b in zip([0, *cuts], [*cuts, None], strict=True)]
    chunks = [Chunk(part, memoryview(b""), 0, None, [], plain=facts_of(part)) for part in parts]
    interval = data.draw(st.sampled_from([SIZE, 2 * SIZE, 4 * SIZE]))
    built = IndexBuilder(BASE, interval)
    try:
        for part in parts:
            built.add(part)
        rebuilt = built.finish(0)
    except InvalidOffsetError:
        reject()
    row, less = data.draw(st.integers(0, len(table) - 1)), data.draw(st.sampled_from([0, 0, 1, 2]))
    offset = max(0, int(table.last_offset[row]) - BASE - less)
    more = (offset, int(table.position[row])), (int(table.max_timestamp[row]), offset)
    files = [
        changed(np.frombuffer(whole, dtype), data.draw(change), odd)
        for whole, dtype, odd in zip(
            rebuilt, (offset_index.ENTRY, time_index.ENTRY), more, strict=True
        )
    ]
    offsets, times = offset_index.parse(files[0]), time_index.parse(files[1])
    joins = OffsetIndexJoin(offsets, BASE), TimeIndexJoin(times, BASE)
    kept, again = IndexComparison(BASE, *files), IndexBuilder(BASE, interval)
    for chunk in chunks:
        again.add(chunk.table)
        kept.add(chunk, again.added)
        for join in joins:
            join.feed(chunk)
    for join in joins:
        join.finish()
    assert (kept.right_offsets(), kept.right_times()) == (
        prefix(offset_index.check(offsets), joins[0].verdicts != 0, offset_index.ENTRY_SIZE),
        prefix(time_index.check(times), joins[1].verdicts != 0, time_index.ENTRY_SIZE),
    )


def right_ones(stamps: list[int], offsets: list, times: list, interval: int, magic: int = 2):
    """Hold indexes against batches of two records, of which the first four are one chunk."""
    first = np.arange(len(stamps)) * 2 + BASE
    ones = np.ones(len(stamps), np.int64)
    table = BatchTable(
        position=np.arange(len(stamps)) * SIZE, size=ones * SIZE, base_offset=first,
        last_offset=first + 1, leader_epoch=ones, magic=ones * 2, crc=ones, attributes=ones * 0,
        base_timestamp=ones * 1000, max_timestamp=np.array(stamps), producer_id=-ones,
        producer_epoch=-ones, base_sequence=-ones, record_count=ones * 2, batch_type=-ones,
        control_type=-ones, coordinator_epoch=-ones,
    )  # fmt: skip
    if magic < 2:
        table.magic[4:], table.attributes[4:] = magic, 1
    files = np.array(offsets, offset_index.ENTRY), np.array(times, time_index.ENTRY)
    kept, built = (
        IndexComparison(BASE, files[0].tobytes(), files[1].tobytes()),
        IndexBuilder(BASE, interval),
    )
    for part in (table[:4], table[4:]):
        built.add(part)
        kept.add(Chunk(part, memoryview(b""), 0, None, [], plain=facts_of(part)), built.added)
    return kept.right_offsets(), kept.right_times()


def test_an_entry_that_a_rebuilt_index_lacks_is_looked_up_in_its_own_chunk():
    offsets = [(5, 2 * SIZE), (11, 5 * SIZE)]
    times = [(1005, 11)]
    assert right_ones([1000, 1001, 1002, 1003, 1004, 1005], offsets, times, 4 * SIZE) == (2, 1)


def test_what_was_not_looked_up_still_counts_as_read():
    # An older broker named the first offset inside of a wrapper, never one before it.
    offsets = [(5, 2 * SIZE), (7, 4 * SIZE)]
    # A lookup of 1004 through the last entry would miss the batch of 1009.
    times = [(1003, 5), (1005, 9)]
    assert right_ones([1000, 1001, 1003, 1009, 1005, 1004], offsets, times, SIZE, 1) == (1, 1)


@given(tables(), st.sampled_from([0, BASE, BASE + 1, BASE + 4]), st.integers(1, 7))
def test_short_ways_to_gaps_lead_where_the_long_ones_do(table, start, cut):
    parts = [part for part in (table[:cut], table[cut:]) if len(part)]
    found = []
    for short in (True, False):
        one = _Pass(CoverageTask(TASK.segment, start))
        for chunk in chunks_of(parts, short=short):
            one.feed(chunk)
        one.finish()
        found.append(as_data(one.coverage))
    assert found[0] == found[1]


@given(tables())
def test_plain_batches_add_up_to_the_same_as_any(table):
    facts = facts_of(table)
    short = of_plain(table, facts) if facts else None
    assert short is None or as_data(short) == as_data(of_table(table))


@given(tables())
def test_plain_batches_are_those_in_which_no_rule_can_find_anything(table):
    facts = facts_of(table)
    if facts is None:
        return
    report = SegmentReport(BASE)

    log_pass = LogPass(TASK, report)
    log_pass.feed(Chunk(table, memoryview(b""), 0, None, []))
    assert not log_pass.findings
    assert facts.records == report.records == table.record_count.sum()
    assert facts.largest_batch == SIZE
    assert facts.max_timestamp == table.max_timestamp.max()
    assert facts.min_timestamp == table.max_timestamp.min()
    assert facts.timestamps_rise == bool((np.diff(table.max_timestamp) >= 0).all())
    kinds = set(zip(table.producer_id.tolist(), table.producer_epoch.tolist(), strict=True))
    assert facts.producers == (2 if len(kinds) > 1 else int(min(kinds)[0] >= 0))


@given(tables(), st.data())
def test_facts_that_are_added_up_piece_by_piece_are_those_of_the_whole(table, data):
    rows = np.array([getattr(table, field.name) for field in fields(BatchTable)])
    cut = data.draw(st.integers(0, len(table)))
    facts = np.zeros(_kernels.FACTS, np.int64)
    is_plain = _kernels.plain_facts(rows, 0, cut, facts)
    is_plain = is_plain and _kernels.plain_facts(rows, cut, len(table), facts)

    assert (PlainTotals(*[*facts.tolist(), len(table)]) if is_plain else None) == facts_of(table)


WRITTEN_MS = 1_700_000_000_000


@given(tables(), st.sampled_from([None, 0, 3_600_000]), st.data())
def test_odd_timestamps_are_found_by_the_facts_too(table, ahead_ms, data):
    mtime_ns = WRITTEN_MS * 1_000_000
    least, most = timestamps.ordinary(mtime_ns, ahead_ms)
    stamps = table.max_timestamp
    distance = data.draw(st.integers(-1, 1))
    shift = data.draw(st.sampled_from([least - stamps.min(), most - stamps.max()])) + distance
    moved = replace(table, max_timestamp=stamps + shift)
    found = []
    for facts in (facts_of(moved), None):
        rules = timestamps.TimestampRules(mtime_ns, ahead_ms)
        rules.add(moved, facts)
        found.append(list(rules.finish(Path("0.log"))))

    assert found[0] == found[1]


def test_what_the_benchmark_writes_is_plain():
    count = 50
    rows = np.full((_kernels.BATCH_COLUMNS, count), -1, np.int64)
    rows[1] = SIZE
    rows[2] = rows[3] = np.arange(count)
    rows[4] = rows[7] = 0
    rows[5], rows[8], rows[9], rows[13] = 2, 1000, np.arange(count), 1
    facts = np.zeros(_kernels.FACTS, np.int64)

    assert _kernels.plain_facts(rows, 0, count, facts)
    assert facts.tolist() == [count, SIZE, count - 1, 1, 0, 0]
    assert not _kernels.plain_facts(rows[:, ::-1].copy(), 0, count, facts)
