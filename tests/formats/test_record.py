import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from logtool.formats import _kernels, record
from logtool.formats.record import Record

PAYLOAD = bytes.fromhex("12 00 00 00 02 6b 04 7631 00  16 00 0a 02 02 6b 01 02 02 68 02 78")
RECORDS = [Record(0, 0, b"k", b"v1"), Record(1, 5, b"k", None, [(b"h", b"x")])]

texts = st.binary(max_size=70)
records = st.lists(
    st.builds(
        Record,
        st.one_of(st.sampled_from([-(2**31), 0, 2**31 - 1]), st.integers(-(2**31), 2**31 - 1)),
        st.one_of(st.sampled_from([-(2**63), 0, 2**63 - 1]), st.integers(-(2**63), 2**63 - 1)),
        st.none() | texts,
        st.none() | texts,
        st.lists(st.tuples(texts, st.none() | texts), max_size=3),
    ),
    max_size=5,
)


def decoded(payload: bytes, count: int) -> list[Record]:
    view = memoryview(payload)
    table, error = record.parse(view, count)
    assert error is None

    def field(position: int, length: int) -> bytes | None:
        return None if length < 0 else payload[position : position + length]

    return [
        Record(
            int(table.offset_delta[i]),
            int(table.timestamp_delta[i]),
            field(int(table.key_position[i]), int(table.key_length[i])),
            field(int(table.value_position[i]), int(table.value_length[i])),
            record.parse_headers(view, int(table.header_position[i]), int(table.header_count[i])),
        )
        for i in range(len(table))
    ]


def error_of(payload: bytes, count: int):
    table, error = record.parse(memoryview(payload), count)
    return len(table), error


def test_the_records_of_the_reference_batch_decode_and_encode():
    assert decoded(PAYLOAD, 2) == [Record(0, 0, b"k", b"v1", []), RECORDS[1]]
    assert record.encode(RECORDS) == PAYLOAD


@given(records)
def test_records_survive_a_round_trip(wanted):
    assert decoded(record.encode(wanted), len(wanted)) == wanted


def test_null_and_empty_are_not_the_same():
    for key in (None, b""):
        for value in (None, b""):
            for header in (None, b""):
                wanted = [Record(0, 0, key, value, [(b"", header)])]
                assert decoded(record.encode(wanted), 1) == wanted


def test_any_negative_length_is_null():
    for negative in (-1, -2, -(2**31)):
        field = record.encode_varint(negative)
        body = b"\0\0\0" + field + field + b"\x02\x02h" + field
        assert decoded(record.encode_varint(len(body)) + body, 1) == [
            Record(0, 0, None, None, [(b"h", None)])
        ]


@given(st.integers(-(2**63), 2**63 - 1))
@example(-(2**63))
@example(2**63 - 1)
@example(-(2**31))
@example(2**31 - 1)
@example(2**31)
def test_a_varint_survives_a_round_trip(value):
    encoded = record.encode_varint(value)
    got = _kernels.decode_varint(memoryview(encoded), 0, len(encoded), 10)
    assert got == (value, len(encoded))
    if -(2**31) <= value < 2**31:
        assert _kernels.decode_varint(memoryview(encoded), 0, len(encoded), 5) == got


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (2**31 - 1, "feffffff0f"),
        (-(2**31), "ffffffff0f"),
        (2**63 - 1, "feffffffffffffffff01"),
        (-(2**63), "ffffffffffffffffff01"),
    ],
)
def test_varints_have_the_bytes_that_protobuf_gives_them(value, encoded):
    assert record.encode_varint(value).hex() == encoded


def test_every_cut_reports_the_record_that_it_hit_and_keeps_those_before():
    for size in range(len(PAYLOAD)):
        count, error = error_of(PAYLOAD[:size], 2)
        assert count == (1 if size >= 10 else 0)
        assert error is not None
        assert error.position == (10 if size >= 10 else 0)


def test_every_flipped_bit_ends_in_a_value_or_an_error():
    for at in range(len(PAYLOAD)):
        for bit in range(8):
            data = bytearray(PAYLOAD)
            data[at] ^= 1 << bit
            count, error = error_of(bytes(data), 2)
            assert (error is None) == (count == 2)


@pytest.mark.parametrize(
    ("payload", "count", "kept", "position", "words"),
    [
        ("", 1, 0, 0, "varint"),
        ("ff", 1, 0, 0, "varint"),
        ("ffffffffff00", 1, 0, 0, "varint"),
        ("00", 1, 0, 0, "exceeds"),
        ("01", 1, 0, 0, "length field"),
        ("7e 00", 1, 0, 0, "exceeds"),
        ("0c 00 00 00 01 01 00", 2, 1, 7, "record 1 of 2"),
        ("0c 00 00 00 01 01 00", 0, 0, 0, None),
        ("0c 00 00 00 01 01 00 ff", 1, 1, 7, "1 bytes after"),
        ("0e 00 00 00 01 01 00 00", 1, 0, 0, "length field"),
        ("0c 00 00 00 06 01 00", 1, 0, 0, "exceeds"),
        ("0c 00 00 00 01 06 00", 1, 0, 0, "exceeds"),
        ("0c 00 00 00 01 01 01", 1, 0, 0, "header count"),
        ("0c 00 00 00 01 01 02", 1, 0, 0, "header count"),
        ("10 00 00 00 01 01 02 01 00", 1, 0, 0, "header length"),
        ("10 00 00 00 01 01 02 00 06", 1, 0, 0, "header length"),
        ("14 00 00 00 01 01 feffffff0f", 1, 0, 0, "header count"),
        ("14 00 00 00 feffffff0f 01 00", 1, 0, 0, "exceeds"),
    ],
)
def test_an_error_has_its_place_and_topic(payload, count, kept, position, words):
    got, error = error_of(bytes.fromhex(payload), count)
    assert got == kept
    if words is None:
        assert error is None
    else:
        assert error is not None
        assert error.position == position
        assert words in error.reason


def test_a_negative_count_is_damage_and_not_a_crash():
    for count in (-1, -(2**31)):
        got, error = error_of(PAYLOAD, count)
        assert got == 0
        assert error is not None
        assert str(count) in error.reason


def test_a_huge_count_costs_no_more_than_the_bytes():
    got, error = error_of(PAYLOAD, 2**31 - 1)
    assert got == 2
    assert error is not None
    assert error.position == len(PAYLOAD)


@given(st.binary(max_size=60), st.integers(-3, 9))
def test_any_bytes_end_in_a_table_and_perhaps_an_error(data, count):
    got, error = error_of(data, count)
    assert got <= max(count, 0)
    assert error is not None or got == count
