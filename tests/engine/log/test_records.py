"""Records come out as the formats decode them, for batches of every kind."""

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from conftest import SCENARIOS, new_logs
from hypothesis import given
from hypothesis import strategies as st

from logtool.disk.files import LogFile
from logtool.errors import FormatError, LimitError
from logtool.formats import compression, legacy_batch, record, record_batch
from logtool.formats.crc import crc32c
from logtool.formats.record import Record
from logtool.formats.record_batch import HEADER_SIZE, MAGIC, SEQUENCES
from logtool.log import records as log_records
from logtool.log.batches import read_batches
from logtool.log.chunk import Chunk
from logtool.log.record_table import RecordTable, Unread
from logtool.log.records import batch_records, payload, record_offsets, records, unpack

Row = tuple[int, int, int, bytes | None, bytes | None, list[record.Header], int | None]
"""Offset, timestamp, sequence, key, value, headers and CRC of a record."""
CODECS = range(len(compression.NAMES))
TIME = 1_700_000_000_000
LIMIT = 1 << 20
LEGACY_HEAD = 26
"""Bytes of a message of magic 1 before its key, and more of one of magic 0."""


class Bytes:
    """A log in memory, to scan and to read batches from."""

    def __init__(self, data: bytes) -> None:
        self.data, self.size = data, len(data)

    def read_into(self, buffer: memoryview, position: int) -> int:
        piece = self.data[position : position + len(buffer)]
        buffer[: len(piece)] = piece
        return len(piece)


def expected(data: memoryview, limit: int = LIMIT) -> tuple[list[Row], FormatError | None]:
    """Return the records of one batch as the formats decode them, and what is wrong with it."""
    head = log_records.one_batch(data).table.row(0)
    rows: list[Row] = []
    try:
        if head["magic"] < MAGIC:
            for message in legacy_batch.parse_messages(data, limit):
                rows.append(
                    (message.offset, message.timestamp, -1, message.key, message.value, [],
                     message.crc)
                )  # fmt: skip
            return rows, None
        body = compression.decompress(head["attributes"] & 7, data[HEADER_SIZE:], limit)
    except FormatError as error:
        return rows, error
    spans, damage = record.parse(body, head["record_count"])
    names = (
        "offset_delta", "timestamp_delta", "key_position", "key_length", "value_position",
        "value_length", "header_position", "header_count",
    )  # fmt: skip
    columns = [getattr(spans, name).tolist() for name in names]
    for delta, later, key, key_size, value, value_size, headers, count in zip(
        *columns, strict=True
    ):
        stamped, first = head["attributes"] & 8, head["base_sequence"]
        rows.append((
            head["base_offset"] + delta,
            head["max_timestamp"] if stamped else head["base_timestamp"] + later,
            -1 if first == -1 else (first + delta) % SEQUENCES,
            None if key_size < 0 else bytes(body[key : key + key_size]),
            None if value_size < 0 else bytes(body[value : value + value_size]),
            record.parse_headers(body, headers, count),
            None,
        ))  # fmt: skip
    return rows, damage


def rows_of(table: RecordTable) -> list[Row]:
    """Return the rows of a table, which must agree with each other."""
    spans = table.spans
    count = len(spans)
    assert int(table.counts.sum()) == count
    assert len(table.batches) == len(table.counts)
    for column in (table.offset, table.timestamp, table.sequence):
        assert column.dtype == np.int64
        assert column.shape == (count,)
    assert table.columns().shape == (count, 14)
    return [
        (
            int(table.offset[row]), int(table.timestamp[row]), int(table.sequence[row]),
            table.key(row), table.value(row),
            record.parse_headers(
                table.data, int(spans.header_position[row]), int(spans.header_count[row])
            ),
            None if table.crc is None else int(table.crc[row]),
        )
        for row in range(count)
    ]  # fmt: skip


def check(chunk: Chunk, limit: int = LIMIT, **more: Any) -> list[Unread]:
    """Compare all batches of a chunk with what the formats make of each; returns those unread."""
    found: dict[int, list[Row]] = {int(at): [] for at in chunk.table.position}
    wrong: dict[int, Unread] = {}
    for part in records(chunk, limit=limit, **more):
        if isinstance(part, Unread):
            assert part.position == chunk.table.position[part.row]
            assert part.last_offset == chunk.table.last_offset[part.row]
            wrong[part.row] = part
            continue
        rows = iter(rows_of(part))
        for at, count in zip(part.batches.position.tolist(), part.counts.tolist(), strict=True):
            found[at] += [next(rows) for _ in range(count)]
    for row in range(len(chunk.table)):
        wanted, error = expected(chunk.batch(row), limit)
        assert found[int(chunk.table.position[row])] == wanted
        assert (row in wrong) == (error is not None)
        offsets = record_offsets(chunk, row, limit=limit)
        expected_offsets = None if error else sorted({one[0] for one in wanted})
        assert (None if offsets is None else offsets.tolist()) == expected_offsets
        if error:
            assert (wrong[row].reason, wrong[row].error.position) == (error.reason, error.position)
            assert wrong[row].beyond_limit == isinstance(error, LimitError)
            assert wrong[row].in_memory
    return list(wrong.values())


def chunks_of(data: bytes) -> Iterator[Chunk]:
    return (chunk for chunk in read_batches(Bytes(data), base_offset=0) if not chunk.damage)


def with_sound_crc(batch: bytearray) -> bytes:
    """Return a batch with the CRC of its bytes."""
    if batch[16] < MAGIC:
        batch[12:16] = zlib.crc32(batch[16:]).to_bytes(4, "big")
    else:
        batch[17:21] = crc32c(memoryview(batch)[21:]).to_bytes(4, "big")
    return bytes(batch)


def batch(offset: int, items: list[Record], *, body: bytes | None = None, **header: int) -> bytes:
    last = max((item.offset_delta for item in items), default=0)
    fields = {
        "base_offset": offset, "last_offset_delta": last, "record_count": len(items),
        "base_timestamp": TIME, "max_timestamp": TIME + 9,
    } | header  # fmt: skip
    return record_batch.encode(record.encode(items) if body is None else body, **fields)


def some_records(count: int = 5) -> list[Record]:
    return [
        Record(n, n, None if n % 3 == 2 else b"k%d" % n, b"v" * (n * 37), [(b"h", None)] * (n % 2))
        for n in range(count)
    ]


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_batch_that_brokers_wrote(scenario: Any, name: str) -> None:
    for log in new_logs(name, scenario(name)):
        with LogFile(log) as source:
            for chunk in read_batches(source, base_offset=0):
                assert check(chunk, compression.DEFAULT_LIMIT) == []
                for row in range(min(len(chunk.table), 20)):
                    alone = list(batch_records(chunk, row))
                    wanted = [row for part in alone for row in rows_of(part)]  # type: ignore[arg-type]
                    assert wanted == expected(chunk.batch(row))[0]


@pytest.mark.parametrize("name", ["2.8.2/magic-0", "2.8.2/magic-1", "4.3.1/clean"])
def test_damage_inside_batches_that_brokers_wrote(scenario: Any, name: str) -> None:
    draw = np.random.default_rng(7)
    some = 0
    for log in new_logs(name, scenario(name)):
        for chunk in chunks_of(log.read_bytes()[: 1 << 16]):
            data = bytearray(chunk.data)
            for row in range(0, len(chunk.table), 2):
                start = int(chunk.table.position[row]) - chunk.data_position
                end = start + int(chunk.table.size[row])
                first = start + (HEADER_SIZE if chunk.table.magic[row] == MAGIC else LEGACY_HEAD)
                if first < end:
                    data[int(draw.integers(first, end))] ^= 1 << int(draw.integers(8))
                    data[start:end] = with_sound_crc(data[start:end])
            damaged = Chunk(chunk.table, memoryview(data), chunk.data_position, None, [])
            some += len(check(damaged))
    assert some


@pytest.mark.parametrize("codec", CODECS)
def test_a_cut_batch_gives_the_records_before_the_cut(codec: int) -> None:
    whole = record.encode(some_records(9))
    for size in range(0, len(whole), 7):
        made = batch(40, some_records(9), body=whole[:size], attributes=codec)
        (chunk,) = chunks_of(batch(0, some_records()) + made + batch(90, some_records()))
        (unread,) = check(chunk)
        assert (unread.row, unread.first_offset, unread.last_offset) == (1, 40, 48)
        assert (unread.in_records, unread.beyond_limit) == (True, False)


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_beyond_the_limit_is_a_value_and_the_next_one_is_read(codec: int) -> None:
    large = [Record(0, value=bytes(40_000))]
    made = batch(0, some_records()) + batch(40, large, attributes=codec) + batch(90, [Record(0)])
    (chunk,) = chunks_of(made)
    unread = check(chunk, 30_000)
    # What is not compressed takes no more than it does on the disk.
    assert [(one.row, one.beyond_limit) for one in unread] == ([(1, True)] if codec else [])
    body = payload(chunk, 1, limit=30_000)
    assert isinstance(body, Unread) == bool(codec)
    body = payload(chunk, 1, limit=50_000)
    assert isinstance(body, memoryview)
    assert bytes(body) == record.encode(large)


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_that_the_chunk_does_not_hold_is_read_from_the_source(codec: int) -> None:
    first, second = batch(0, some_records()), batch(5, some_records(), attributes=codec)
    (whole,) = chunks_of(first + second)
    chunk = Chunk(whole.table, whole.data[: len(first) + HEADER_SIZE], 0, None, [])
    table, unread = records(chunk)
    assert isinstance(table, RecordTable)
    assert isinstance(unread, Unread)
    assert rows_of(table) == expected(memoryview(first))[0]
    assert (unread.row, unread.in_memory, unread.beyond_limit) == (1, False, False)
    table, more = records(chunk, source=Bytes(first + second))
    assert isinstance(more, RecordTable)
    assert rows_of(more) == expected(memoryview(second))[0]
    # A source that has fewer bytes, and a limit below its size.
    rest: dict[str, Any]
    for rest in ({"source": Bytes(first)}, {"source": Bytes(first + second), "limit": 80}):
        *_, unread = records(chunk, **rest)
        assert isinstance(unread, Unread)
        assert (unread.in_memory, isinstance(payload(chunk, 1, **rest), Unread)) == (False, True)


ODD: dict[str, dict[str, Any]] = {
    "of LogAppendTime": {"attributes": 0x08},
    "of LogAppendTime without a time": {"attributes": 0x08, "max_timestamp": -1},
    "a control batch": {"attributes": 0x20},
    "of a producer whose sequence wraps": {"producer_id": 7, "base_sequence": 2**31 - 2},
    "with a delete horizon": {"attributes": 0x40},
    "with times beyond every calendar": {"base_timestamp": 2**62},
    "with a base timestamp of none": {"base_timestamp": -1},
    "with a count that is too large": {"record_count": 6},
    "with a count that is too small": {"record_count": 4},
    "with a count below 0": {"record_count": -4},
    "of a codec that does not exist": {"attributes": 0},
    "empty": {"body": b"", "record_count": 0},
    "empty by its count alone": {"record_count": 0},
}


DAMAGED = {
    "with a count that is too large", "with a count that is too small", "with a count below 0",
    "of a codec that does not exist",
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("codec", CODECS)
def test_odd_batches_between_others(codec: int, name: str) -> None:
    header = ODD[name] | {"attributes": ODD[name].get("attributes", 0) | codec}
    odd = bytearray(batch(40, some_records(), **header))
    if name == "of a codec that does not exist":
        odd[22] |= 7
    parts = [batch(0, some_records()), with_sound_crc(odd), batch(50, []), batch(60, [Record(0)])]
    (chunk,) = chunks_of(b"".join(parts))
    assert [one.row for one in check(chunk)] == ([1] if name in DAMAGED else [])


def test_log_append_time_wins_in_every_batch() -> None:
    # The second is not read together with others: no calendar has its base timestamp.
    parts = [
        batch(0, some_records(), attributes=0x08, max_timestamp=TIME + 100),
        batch(9, some_records(), attributes=0x08, max_timestamp=TIME + 200, base_timestamp=2**62),
    ]
    (chunk,) = chunks_of(b"".join(parts))
    tables = [part for part in records(chunk) if isinstance(part, RecordTable)]
    assert [set(table.timestamp.tolist()) for table in tables] == [{TIME + 100}, {TIME + 200}]


def test_the_rows_that_are_asked_for_come_in_order() -> None:
    parts = [batch(10 * n, some_records(), attributes=0x20 * (n == 2)) for n in range(6)]
    (chunk,) = chunks_of(b"".join(parts))
    tables = list(records(chunk, np.array([1, 2, 4, 5])))
    offsets = [table.offset.tolist() for table in tables if isinstance(table, RecordTable)]
    assert offsets == [
        [*range(10, 15)], [*range(20, 25)], [*range(40, 45), *range(50, 55)]
    ]  # fmt: skip


def test_a_large_batch_comes_some_records_at_a_time() -> None:
    count = record.MOST_AT_ONCE * 4 + 5
    made = batch(0, [Record(n) for n in range(count)], attributes=compression.ZSTD)
    (chunk,) = chunks_of(made)
    tables = [part for part in records(chunk, limit=1 << 28) if isinstance(part, RecordTable)]
    assert [len(table.offset) for table in tables] == [record.MOST_AT_ONCE] * 4 + [5]
    assert np.concatenate([table.offset for table in tables]).tolist() == list(range(count))


def test_which_batches_are_read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_records, "BLOCK_SIZE", 900)
    parts = [batch(10 * n, some_records()) for n in range(9)]
    (chunk,) = chunks_of(b"".join(parts))
    sizes = [len(part.counts) for part in records(chunk) if isinstance(part, RecordTable)]
    assert sum(sizes) == 9
    assert 1 < len(sizes) < 9


@given(
    st.lists(
        st.tuples(
            st.sampled_from(CODECS), st.integers(0, 4), st.binary(max_size=40),
            st.sampled_from([0, 0x08, 0x20, 0x48]), st.integers(-2, 6), st.booleans(),
        ),
        min_size=1, max_size=6,
    ),
    st.sampled_from([8, 200, LIMIT]),
)  # fmt: skip
def test_any_batches(drawn: list[tuple[int, int, bytes, int, int, bool]], limit: int) -> None:
    parts = []
    for number, (codec, count, content, flags, claimed, odd) in enumerate(drawn):
        items = [Record(n, n, content[:n], content) for n in range(count)]
        more = {"body": content, "record_count": claimed} if odd else {}
        parts.append(batch(10 * number, items, attributes=flags | codec, **more))  # type: ignore[arg-type]
    for chunk in chunks_of(b"".join(parts)):
        check(chunk, limit)


def test_unpack_gives_each_payload_or_leaves_it_out() -> None:
    made, streams = [], []
    for number in range(300):
        codec = number % 4 + 1
        body = bytes([number % 251]) * (number * 41 if number % 50 else 300_000)
        packed = compression.compress(codec, body)
        streams.append((codec, packed[:-9] if number % 7 == 3 else packed))
        made.append(body)
    ends = np.cumsum([len(packed) for _, packed in streams])
    starts = ends - [len(packed) for _, packed in streams]
    data = memoryview(b"".join(packed for _, packed in streams))
    codecs = np.array([codec for codec, _ in streams])
    found = {}
    for rows, room, edges in unpack(data, codecs, starts, ends, limit=200_000):
        for row, first, last in zip(rows, edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            found[row] = bytes(room[first:last])
    for row, (codec, packed) in enumerate(streams):
        try:
            unpacked = bytes(compression.decompress(codec, memoryview(packed), 200_000))
        except FormatError:
            assert row not in found
        else:
            assert found[row] == unpacked
