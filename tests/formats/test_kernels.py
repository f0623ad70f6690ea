import itertools
import zlib
from dataclasses import fields

import numpy as np
import pytest
from crc32c import crc32c
from hypothesis import example, given
from hypothesis import strategies as st

from logtool.formats import _kernels, legacy_batch, record, record_batch
from logtool.formats.record_batch import BatchTable

BATCH = record_batch.encode(
    record.encode([record.Record(0, key=b"k", value=b"v1")]),
    base_offset=0,
    last_offset_delta=0,
    record_count=1,
)


def as_java_reads(data: bytes, most: int) -> tuple[int, int]:
    """Decode like ByteUtils.readVarint and readVarlong, written from the reference."""
    raw = 0
    for index in range(most):
        if index == len(data):
            return 0, -1
        raw |= (data[index] & 0x7F) << (7 * index)
        if not data[index] & 0x80:
            bits = 32 if most == 5 else 64
            raw %= 1 << bits
            value = raw // 2 if raw % 2 == 0 else -(raw // 2) - 1
            return value, index + 1
    return 0, -1


def test_every_varint_of_up_to_two_bytes_decodes_as_java_does():
    inputs = [bytes(b) for n in range(3) for b in itertools.product(range(256), repeat=n)]
    for data in inputs:
        for most in (5, 10):
            got = _kernels.decode_varint(memoryview(data), 0, len(data), most)
            assert got == as_java_reads(data, most), data.hex()


def test_every_varint_of_six_edge_bytes_decodes_as_java_does():
    edges = (0x00, 0x01, 0x0F, 0x10, 0x7F, 0x80, 0xFF)
    for data in map(bytes, itertools.product(edges, repeat=6)):
        got = _kernels.decode_varint(memoryview(data), 0, 6, 5)
        assert got == as_java_reads(data, 5), data.hex()


def test_a_tenth_byte_ends_a_varlong_unless_its_top_bit_is_set():
    for nine in (b"\x80" * 9, b"\xff" * 9, b"\x81" * 9):
        for tenth in range(256):
            data = nine + bytes([tenth, 0])
            got = _kernels.decode_varint(memoryview(data), 0, len(data), 10)
            assert got == as_java_reads(data, 10)
            assert (got[1] == -1) == (tenth >= 0x80)


def test_a_fifth_byte_ends_a_varint_unless_its_top_bit_is_set():
    for fifth in range(256):
        data = b"\xff\xff\xff\xff" + bytes([fifth, 0])
        got = _kernels.decode_varint(memoryview(data), 0, len(data), 5)
        assert (got[1] == -1) == (fifth >= 0x80)


def test_overlong_encodings_are_accepted():
    for padding in range(4):
        data = b"\x82" + b"\x80" * padding + b"\x00"
        assert _kernels.decode_varint(memoryview(data), 0, len(data), 5) == (1, len(data))


@given(st.binary(max_size=12), st.binary(max_size=12), st.integers(0, 12), st.sampled_from([5, 10]))
def test_a_varint_never_depends_on_bytes_outside_its_bounds(inside, outside, start, most):
    prefix = outside[:start]
    data = prefix + inside + outside
    end = len(prefix) + len(inside)
    value, position = _kernels.decode_varint(memoryview(data), len(prefix), end, most)
    assert (value, position - len(prefix) if position >= 0 else -1) == as_java_reads(inside, most)


def walk(data: memoryview, start: int, end: int) -> tuple[list[int], int, int]:
    """Return the positions found, the position at which the walk stopped, and the reason."""
    rows = np.full((_kernels.BATCH_COLUMNS, 1000), 77, np.int64)
    count, stop, why = _kernels.walk_batches(data, start, end, 500, rows, 3)
    table = BatchTable(*rows[:, 3 : 3 + count])
    found = (table.position - 500).tolist()
    # The same fields as NumPy reads them out of the headers.
    expected = record_batch.parse(data[:end], found, base=500)
    legacy_batch.fill(expected, data[:end], np.array(found, np.int64))
    for field in fields(BatchTable)[: -_kernels.TYPE_COLUMNS]:
        assert np.array_equal(getattr(table, field.name), getattr(expected, field.name)), field.name
    assert (rows[-_kernels.TYPE_COLUMNS :] == 77).all()
    assert (rows[:, :3] == 77).all()
    assert (rows[:, 3 + count :] == 77).all()
    return found, stop, why


def decode(data: bytes, count: int) -> tuple[list[list[int]], int]:
    """Return the decoded rows and the position at which decoding stopped."""
    rows = np.empty((len(data) // _kernels.SMALLEST_RECORD + 1, _kernels.RECORD_COLUMNS), np.int64)
    count = min(count, len(rows))
    done, position, _ = _kernels.decode_records(memoryview(data), 0, len(data), count, rows, 0)
    return rows[:done].tolist(), position


hostile = st.lists(
    st.one_of(
        st.binary(max_size=40),
        st.just(BATCH),
        st.integers(0, len(BATCH)).map(lambda size: BATCH[:size]),
        st.sampled_from([bytes(30), b"\xff" * 30, b"\x02" * 30]),
        st.tuples(st.integers(-(2**31), 2**31 - 1), st.integers(-128, 127)).map(
            lambda pair: (
                bytes(8)
                + pair[0].to_bytes(4, "big", signed=True)
                + bytes(4)
                + pair[1].to_bytes(1, "big", signed=True)
                + bytes(50)
            )
        ),
    ),
    max_size=6,
).map(b"".join)


@given(hostile, st.binary(max_size=70), st.integers(0, 3))
@example(b"", b"", 0)
@example(BATCH * 3, BATCH, 0)
def test_a_walk_stays_inside_its_bounds_and_finds_only_sound_entries(inside, outside, skip):
    start = min(skip, len(outside))
    data = memoryview(outside[:start] + inside + outside)
    found, stop, why = walk(data, start, start + len(inside))
    alone, *again = walk(memoryview(inside), 0, len(inside))
    assert [stop - start, why] == again
    assert [position - start for position in found] == alone
    assert 0 <= again[0] <= len(inside)
    for position, end in itertools.pairwise([*alone, again[0]]):
        entry = inside[position:end]
        assert len(entry) == 12 + int.from_bytes(entry[8:12], "big")
        if entry[16] == 2:
            assert crc32c(entry[21:]) == int.from_bytes(entry[17:21], "big")
        else:
            assert zlib.crc32(entry[16:]) == int.from_bytes(entry[12:16], "big")


@pytest.mark.long
def test_every_size_field_of_a_short_file_is_survived():
    for size in [*range(-20, 120), 2**31 - 1, -(2**31), 2**31 - 13]:
        for magic in range(256):
            data = bytearray(BATCH)
            data[8:12] = size.to_bytes(4, "big", signed=True)
            data[16] = magic

            found, stop, why = walk(memoryview(data), 0, len(data))

            sound = size == len(BATCH) - 12 and magic == 2
            assert found == ([0] if sound else [])
            assert stop == (len(BATCH) if sound else 0)
            least = 49 if magic == 2 else 22 if magic == 1 else 14
            if size < 14:
                assert why == _kernels.BAD_SIZE
            elif magic > 2:
                assert why == _kernels.BAD_MAGIC
            elif size < least:
                assert why == _kernels.BAD_SIZE
            elif size > len(BATCH) - 12:
                assert why == _kernels.MORE


def assert_rows_lie_inside(rows: list[list[int]], size: int, position: int) -> None:
    end = 0
    for row in rows:
        start, length, attributes, _, _, key, key_size, value, value_size, headers, count = row
        assert start == end
        end = start + length
        assert end <= size
        assert 0 <= attributes <= 255
        assert start < key <= key + max(key_size, 0) < value
        assert value + max(value_size, 0) < headers <= end
        assert min(key_size, value_size) >= -1
        assert 0 <= count <= end - headers
    assert position >= end


@given(st.binary(max_size=80), st.integers(0, 20))
@example(b"", 0)
@example(b"", 2**31 - 1)
@example(b"\x00" * 50, 2**31 - 1)
def test_records_of_any_bytes_lie_inside_them(data, count):
    rows, position = decode(data, count)
    assert len(rows) <= count
    assert 0 <= position <= len(data)
    assert_rows_lie_inside(rows, len(data), position)


def test_every_cut_and_every_byte_value_of_a_record_is_survived():
    whole = record.encode(
        [
            record.Record(0, 5, b"key", b"value", [(b"h", b"x"), (b"", None)]),
            record.Record(1, -5, None, None, []),
        ]
    )
    inputs = [whole[:size] for size in range(len(whole))]
    inputs += [
        whole[:at] + bytes([value]) + whole[at + 1 :]
        for at in range(len(whole))
        for value in range(256)
    ]
    for data in inputs:
        rows, position = decode(data, 2)
        assert_rows_lie_inside(rows, len(data), position)
