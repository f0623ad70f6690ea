"""The compiled kernels and their plain text give the same results for any bytes."""

import os
import struct
from dataclasses import fields

import format_checks
import numpy as np
import pytest
from conftest import SCENARIOS
from crc32c import crc32c
from hypothesis import example, given
from hypothesis import strategies as st

from logtool.formats import _kernels as compiled
from logtool.formats import record, record_batch
from logtool.loading.index_building import IndexBuilder

SLICE = 200_000
LATEST = 253402300799999


plain = format_checks.plain("_kernels")
pytestmark = pytest.mark.skipif(
    not compiled.COMPILED and "LOGTOOL_KERNELS" not in os.environ,
    reason="installed without a C compiler: only the plain text exists",
)


def walk(kernels, data: bytes, columns: int = 500):
    rows = np.zeros((kernels.BATCH_COLUMNS, columns), np.int64)
    found = kernels.walk_batches(memoryview(data), 0, len(data), 7, rows, 0)
    return tuple(found), rows.tolist()


def decode(kernels, data: bytes, counts: list[int]):
    """Decode pieces of `data`, each with a count that fits its size."""
    bounds = np.linspace(0, len(data), len(counts) + 1).astype(np.int64)
    room = (bounds[1:] - bounds[:-1]) // kernels.SMALLEST_RECORD + 1
    counted = np.minimum(np.array(counts, np.int64), room)
    rows = np.zeros((int(counted.sum()), kernels.RECORD_COLUMNS), np.int64)
    results = np.zeros((len(counts), 3), np.int64)
    total = kernels.decode_batches(
        memoryview(data), bounds[:-1].copy(), bounds[1:].copy(), counted, rows, results
    )
    return total, rows[:total].tolist(), results.tolist()


@pytest.mark.parametrize("name", SCENARIOS)
def test_they_agree_on_every_log_of_a_real_broker(scenario, name):
    for log in sorted(scenario(name).rglob("*.log")):
        data = log.read_bytes()[:SLICE]
        assert walk(compiled, data) == walk(plain, data), log
        payload = data[record_batch.HEADER_SIZE :][:20_000]
        assert decode(compiled, payload, [50]) == decode(plain, payload, [50]), log


batches = st.lists(
    st.one_of(
        st.binary(max_size=80),
        st.binary(max_size=40).map(
            lambda value: record_batch.encode(
                record.encode([record.Record(0, value=value)]),
                base_offset=5, last_offset_delta=0, record_count=1,
            )
        ),
        st.tuples(st.binary(min_size=16, max_size=16), st.binary(min_size=20, max_size=60)).map(
            # Any header with a correct CRC.
            lambda two: two[0][:8] + (len(two[1]) + 40 + 9).to_bytes(4, "big") + two[0][12:16]
            + b"\2" + crc32c(bytes(40) + two[1]).to_bytes(4, "big") + bytes(40) + two[1]
        ),
    ),
    max_size=6,
).map(b"".join)  # fmt: skip


@given(batches, st.integers(0, 3))
def test_they_agree_on_any_batches(data, columns):
    assert walk(compiled, data) == walk(plain, data)
    assert walk(compiled, data, columns) == walk(plain, data, columns)


@given(batches, st.integers(0, 3), st.integers(0, 80))
def test_they_agree_on_any_headers(data, columns, hidden):
    walks = []
    for kernels in (compiled, plain):
        rows = np.zeros((kernels.BATCH_COLUMNS, columns), np.int64)
        shown = memoryview(data)[: max(len(data) - hidden, 0)]
        found = kernels.walk_headers(shown, 0, len(shown), len(data), 7, rows, 0)
        walks.append((tuple(found), rows.tolist()))
    assert walks[0] == walks[1]


@given(batches.filter(bool), st.integers(0, 2**20), st.sampled_from([-1, 0, 2, 5, 2**63 - 1]))
def test_they_agree_on_which_batches_are_plain(data, place, value):
    outcomes = []
    for kernels in (compiled, plain):
        rows = np.zeros((kernels.BATCH_COLUMNS, 10), np.int64)
        count, _, _ = kernels.walk_batches(memoryview(data), 0, len(data), 7, rows, 0)
        # Offsets rise, so that the kernel looks at several batches; one other value is random.
        rows[2] = rows[3] = np.arange(10)
        rows[place % 14, place % 3] = value
        facts = np.zeros(kernels.FACTS, np.int64)
        outcomes.append((bool(kernels.plain_facts(rows, 0, count, facts)), facts.tolist()))
    assert outcomes[0] == outcomes[1]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(4, 6), st.integers(-1, 3)), max_size=8),
       st.integers(0, 999), st.integers(0, 9), st.integers(3, 9), st.integers(8, 12))  # fmt: skip
def test_they_agree_on_a_walk_over_plain_batches(kinds, flipped, cut, columns, until):
    """The second call continues the first; at most one bit is wrong."""
    parts, at = [], [0]
    for number, (size, producer, stamp) in enumerate(kinds):
        parts.append(record_batch.encode(
            bytes(size), base_offset=7 + number, last_offset_delta=0, record_count=1,
            leader_epoch=number // 4, base_timestamp=1, max_timestamp=stamp,
            producer_id=producer, producer_epoch=1, base_sequence=number,
        ))  # fmt: skip
        at.append(at[-1] + len(parts[-1]))
    data = bytearray(b"".join(parts))
    if flipped < len(data):
        data[flipped] ^= 1
    edge = at[min(cut, len(kinds))]
    walks = []
    for kernels in (compiled, plain):
        rows = np.zeros((kernels.BATCH_COLUMNS, columns), np.int64)
        state = np.array([*[0] * 9, 6, -1, 0, 100, -2, 3, until], np.int64)
        entries = np.zeros((5, 9), np.int64)
        entries[0, : len(at)] = at
        entries[0, len(at) :] = 10**6
        times = np.zeros((5, 4), np.int64)
        times[0] = [7, 9, 9, 30]
        calls = []
        for begin, end in ((0, edge), (edge, len(data))):
            first = sum(found for found, *_ in calls)
            span = memoryview(data), begin, end, 0, rows, first
            calls.append(tuple(kernels.walk_plain(*span, state, entries, times)))
            if calls[-1][1] != end:
                break
        walks.append((calls, rows.tolist(), state.tolist(), entries.tolist(), times.tolist()))
    assert walks[0] == walks[1]


FLIPS = st.lists(st.tuples(st.integers(0, 999), st.integers(0, 7)), max_size=2)


@given(st.data(), st.lists(st.integers(1, 3), min_size=1, max_size=5), FLIPS)
def test_they_agree_on_which_segments_are_plain(draw, sizes, flips):
    parts, index, times, at, offset = [], b"", b"", 0, 7
    for number, size in enumerate(sizes):
        body = bytes(number)
        parts.append(record_batch.encode(
            body, base_offset=offset, last_offset_delta=size - 1, record_count=size,
            leader_epoch=0, base_timestamp=number, max_timestamp=number,
        ))  # fmt: skip
        if number:
            index += (offset + size - 8).to_bytes(4, "big") + at.to_bytes(4, "big")
        times += number.to_bytes(8, "big") + (offset + size - 8).to_bytes(4, "big")
        at, offset = at + len(parts[-1]), offset + size
    files = [bytearray(b"".join(parts)), bytearray(index), bytearray(times)]
    assert segment(compiled, files)[0] is True
    for place, bit in flips:
        data = files[draw.draw(st.sampled_from([n for n, file in enumerate(files) if file]))]
        data[place % len(data)] ^= 1 << bit
    assert segment(compiled, files) == segment(plain, files)


def segment(kernels, files):
    rows = np.zeros((kernels.BATCH_COLUMNS, 10), np.int64)
    facts = np.zeros(kernels.SEGMENT_FACTS, np.int64)
    said = bool(kernels.plain_segment(*[memoryview(file) for file in files], 7, rows, facts))
    return said, facts.tolist() if said else None


@given(
    st.lists(st.tuples(st.integers(61, 300), st.integers(-1, 9)), max_size=9), st.integers(0, 400)
)
def test_due_entries_are_those_of_the_index_builder(sizes, interval):
    rows = np.zeros((compiled.BATCH_COLUMNS, max(len(sizes), 1)), np.int64)
    for row, (size, stamp) in enumerate(sizes):
        rows[[1, 2, 3, 9], row] = size, 7 + 2 * row, 8 + 2 * row, stamp
    rows[0, 1:] = np.cumsum(rows[1])[:-1]
    built = IndexBuilder(7, interval)
    if sizes:
        built.add(record_batch.BatchTable(*rows[: len(fields(record_batch.BatchTable))]))
    expected = built.finish(0)
    for kernels in (compiled, plain):
        entries = np.zeros((4, len(sizes) + 1), np.int64)
        counts = kernels.due_entries(rows, len(sizes), 7, interval, entries[:2], entries[2:])
        offsets = [struct.pack(">ii", *row) for row in entries[:2, : counts[0]].T.tolist()]
        times = [struct.pack(">qi", *row) for row in entries[2:, : counts[1]].T.tolist()]
        assert (b"".join(offsets), b"".join(times)) == expected


@given(st.lists(st.integers(14, 300), max_size=12), st.integers(0, 12), st.integers(0, 400))
def test_an_entry_is_due_at_the_interval_after_the_last_entry(sizes, cut, interval):
    positions = np.cumsum([0, *sizes])
    expected, last = [], 0
    for row, position in enumerate(positions.tolist()):
        if position - last > interval:
            expected.append(row)
            last = position
    cut = min(cut, len(positions))
    for kernels in (compiled, plain):
        found: list[int] = []
        for first, part in ((0, positions[:cut]), (cut, positions[cut:])):
            rows = np.zeros(len(part), np.int64)
            indexed = int(positions[found[-1]]) if found else 0
            count = kernels.due_rows(part, indexed, interval, rows)
            found += (rows[:count] + first).tolist()
        assert found == expected


@given(st.binary(max_size=200), st.lists(st.integers(0, 30), min_size=1, max_size=4))
def test_they_agree_on_any_records(data, counts):
    assert decode(compiled, data, counts) == decode(plain, data, counts)


def head(count: int, span: int, base: int, newest: int, attributes: int) -> bytes:
    """Return a header of magic 2 with these values; the timestamps are in ms."""
    return struct.pack(
        ">qiibIhiqqqhii", 0, 0, 0, 2, 0, attributes, span, base, newest, -1, -1, -1, count
    )


def judge(kernels, heads: bytes, data: bytes) -> int:
    wrong = np.full(1, 7, np.uint8)
    at, starts, ends = np.array([[0], [0], [len(data)]])
    kernels.judge_records(memoryview(heads), at, memoryview(data), starts, ends, wrong)
    return int(wrong[0])


values = st.none() | st.binary(max_size=3) | st.just(bytes(70))
some_records = st.lists(
    st.builds(
        record.Record, st.integers(-1, 4) | st.just(2**31 - 1), st.integers(-(2**63), 2**63 - 1),
        values, values, st.lists(st.tuples(st.binary(max_size=2), values), max_size=2),
    ),
    max_size=4,
)  # fmt: skip


@given(
    some_records, st.integers(-1, 1), st.sampled_from([-1, 0, 3, 2**31 - 1]),
    st.sampled_from([7, -(2**63), 2**63 - 1]), st.sampled_from(["highest", -1, 5]),
    st.sampled_from([0, 0x10, 8, 0x20, 0x28]), FLIPS, st.integers(0, 2),
)  # fmt: skip
@example([record.Record(0, 2**63 - 1), record.Record(1, 3)], 0, 1, 7, "highest", 0, [], 0)
@example([record.Record(0, -9)], 0, 0, 7, -1, 0, [], 0)
@example([record.Record(0, -9)], 0, 0, 7, "highest", 0, [], 0)
@example([record.Record(0, -6)], 0, 0, 7, -1, 0, [], 0)
def test_a_batch_is_judged_as_its_columns_are(
    records, more, span, base, newest, attributes, flips, behind
):
    data = bytearray(record.encode(records) + bytes(behind))
    for place, bit in flips if data else ():
        data[place % len(data)] ^= 1 << bit
    count = max(len(records) + more, 0)
    table, damage = record.parse(memoryview(data), count)
    steps = np.diff(table.offset_delta, prepend=-1)
    highest = int((np.int64(base) + table.timestamp_delta).max(initial=-(2**63)))
    newest = highest if newest == "highest" else newest
    sound = damage is None and bool((steps > 0).all() and (table.offset_delta <= span).all())
    if len(table) and not attributes & 0x28:  # the time of an append or of a control batch
        sound = sound and newest in (highest, max(highest, -1))
    heads = head(count, span, base, newest, attributes)
    for kernels in (compiled, plain):
        assert judge(kernels, heads, bytes(data)) == (not sound)


def judged_on_the_way(kernels, data: bytes):
    rows = np.zeros((kernels.BATCH_COLUMNS, 500), np.int64)
    wrong = np.full(500, 7, np.uint8)
    found = kernels.walk_records(memoryview(data), 0, len(data), 7, rows, 0, wrong)
    return tuple(found), rows.tolist(), wrong.tolist()


def some_batches(draw: st.DataObject, count: int) -> bytes:
    """Return batches; some are larger than the stretch of a walk, and some are wrong."""
    parts = []
    for _ in range(count):
        size = draw.draw(st.sampled_from([0, 40, 30_000, compiled.STRETCH, 3 * compiled.STRETCH]))
        parts.append(record_batch.encode(
            record.encode([record.Record(0, 3, value=bytes(size))]), base_offset=5,
            last_offset_delta=0, record_count=1, base_timestamp=1,
            max_timestamp=draw.draw(st.sampled_from([4, 5])),
            attributes=draw.draw(st.sampled_from([0, 1, 7, 8])),
        ))  # fmt: skip
    return b"".join(parts)


@given(st.data(), st.integers(0, 4), st.integers(0, 70), FLIPS)
def test_records_are_judged_during_a_walk_as_after_it(draw, count, cut, flips):
    written = bytearray(some_batches(draw, count))
    for place, bit in flips if written else ():
        written[place % len(written)] ^= 1 << bit
    data = bytes(written[: max(len(written) - cut, 0)])
    for kernels in (compiled, plain):
        found, rows = walk(kernels, data)
        walked = judged_on_the_way(kernels, data)
        assert walked[:2] == (found, rows)
        expected = [7] * 500
        for row in range(found[0]):
            at, size = rows[0][row] - 7, rows[1][row]
            payload = data[at + record_batch.HEADER_SIZE : at + size]
            packed = rows[5][row] < 2 or rows[7][row] & 7
            expected[row] = 1 if packed else judge(kernels, data[at:], payload)
        assert walked[2] == expected


def gathered(kernels, data: bytes, positions: list[int], lengths: list[int], room: int):
    out, edges = np.zeros(room, np.uint8), np.zeros(len(positions) + 1, np.int32)
    places, sizes = np.array(positions, np.int64), np.array(lengths, np.int64)
    done = kernels.gather(memoryview(data), places, sizes, out, edges)
    return done, out[: edges[done]].tobytes(), edges[: done + 1].tolist()


PLACES = st.integers(-2, 60)


@given(st.binary(max_size=50), st.lists(st.tuples(PLACES, PLACES), max_size=6), PLACES)
def test_they_gather_the_same_pieces_within_the_bounds(data, pieces, room):
    positions, lengths = [at for at, _ in pieces], [size for _, size in pieces]
    room = max(room, 0)
    whole, expected = True, list[bytes]()
    for at, size in pieces:
        size = max(size, 0)
        fits = len(b"".join(expected)) + size <= room
        whole = whole and (not size or (fits and 0 <= at <= len(data) - size))
        if whole:
            expected.append(data[at : at + size] if size else b"")
    ends = np.cumsum([0] + [len(piece) for piece in expected]).tolist()
    for kernels in (compiled, plain):
        found = gathered(kernels, data, positions, lengths, room)
        assert found == (len(expected), b"".join(expected), ends)


NAMES = st.binary(max_size=70)
HEADERS = st.lists(st.lists(st.tuples(NAMES, st.none() | NAMES), max_size=4), max_size=4)


@given(HEADERS)
def test_they_decode_the_headers_that_were_encoded(wanted):
    payload = record.encode([record.Record(i, headers=some) for i, some in enumerate(wanted)])
    table, damage = record.parse(memoryview(payload), len(wanted))
    assert damage is None
    expected = [pair for some in wanted for pair in some]
    for kernels in (compiled, plain):
        rows = np.zeros((len(expected), kernels.HEADER_COLUMNS), np.int64)
        done = kernels.decode_headers(
            memoryview(payload), table.header_position, table.header_count, rows
        )
        found = [
            (payload[key : key + key_size], None if size < 0 else payload[at : at + size])
            for key, key_size, at, size in rows.tolist()
        ]
        assert (done, found) == (len(expected), expected)


@given(st.binary(max_size=60), st.lists(st.tuples(PLACES, st.integers(0, 5)), max_size=3))
def test_they_decode_the_same_headers_of_any_bytes(data, records):
    positions = np.array([max(at, 0) for at, _ in records], np.int64)
    counts = np.array([count for _, count in records], np.int64)
    found = []
    for kernels in (compiled, plain):
        rows = np.zeros((int(counts.sum()), kernels.HEADER_COLUMNS), np.int64)
        done = kernels.decode_headers(memoryview(data), positions, counts, rows)
        found.append((done, rows[:done].tolist()))
    assert found[0] == found[1]


@given(st.binary(max_size=12), st.sampled_from([5, 10]))
def test_they_agree_on_any_varint(data, most):
    got = compiled.decode_varint(memoryview(data), 0, len(data), most)
    assert tuple(got) == plain.decode_varint(memoryview(data), 0, len(data), most)


@pytest.mark.parametrize("size", [*range(300), 1000, 4095, 4096, 6144, 12_287, 12_289, 100_001])
def test_the_crc_of_the_kernel_is_that_of_the_crc32c_package(size):
    body = bytes(range(251)) * (size // 251 + 1)
    body = bytes(40) + body[:size]
    head = bytes(8) + (len(body) + 9).to_bytes(4, "big") + bytes(4) + b"\2"
    rows = np.zeros((compiled.BATCH_COLUMNS, 1), np.int64)
    assert compiled.checksum(body[40:], 0) == crc32c(body[40:])
    for cut in (0, 1, size // 2, size):
        before = crc32c(body[40 : 40 + cut])
        assert compiled.checksum(memoryview(body)[40 + cut :], before) == crc32c(body[40:])
    for crc, expected in ((crc32c(body), 1), (crc32c(body) ^ 1, 0)):
        data = head + crc.to_bytes(4, "big") + body
        found = compiled.walk_batches(memoryview(data), 0, len(data), 0, rows, 0)
        assert found[0] == expected


int64 = st.integers(-(2**63), 2**63 - 1)
times = st.integers(-1, LATEST) | st.sampled_from([-1, 0, LATEST])
deltas = st.integers(-3, 9) | int64


@pytest.mark.parametrize("kernels", [compiled, plain], ids=["compiled", "plain"])
@given(st.lists(st.tuples(
    st.integers(-(2**62), 2**62), st.integers(0, 255), times, times,
    st.integers(-1, 2**31 - 1), st.lists(st.tuples(deltas, st.integers(-(2**31), 2**31 - 1)),
                                         max_size=4),
), max_size=4))  # fmt: skip
def test_records_take_offset_time_and_sequence_from_their_batch(kernels, batches):
    counts = [len(records) for *_, records in batches]
    rows = np.zeros((sum(counts), kernels.PLACED_COLUMNS), np.int64)
    expected = []
    for base, attributes, first, largest, sequence, records in batches:
        for stamp, delta in records:
            row = rows[len(expected)]
            row[3:5] = stamp, delta
            # Java's sums wrap.
            time = (first + stamp + 2**63) % 2**64 - 2**63
            time = largest if attributes & 8 else time
            number = -1 if sequence == -1 else (sequence + delta) % 2**31
            expected.append([base + delta, time, number])
    columns = [np.array([one[i] for one in batches], np.int64) for i in range(5)]
    placed = kernels.place_records(*columns, np.array(counts, np.int64), LATEST, rows)
    assert placed == all(-1 <= time <= LATEST for _, time, _ in expected)
    if placed:
        assert rows[:, 11:].tolist() == expected
