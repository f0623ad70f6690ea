import random
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logtool.errors import FormatError, LimitError
from logtool.formats import compression, legacy_batch, record_batch
from logtool.formats.legacy_batch import Message

MAGIC_0 = bytes.fromhex("0000000000000005 00000010 1fecd70a 00 00 00000001 6b 00000001 76")
MAGIC_1 = bytes.fromhex(
    "0000000000000005 00000018 39268c33 01 00 0000018bcfe56800 00000001 6b 00000001 76"
)
LIMIT = 1 << 20
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4


def sized(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def entry(
    offset: int,
    value: bytes | None,
    *,
    magic: int = 1,
    key: bytes | None = None,
    attributes: int = 0,
    timestamp: int = 1000,
) -> bytes:
    stamp = struct.pack(">q", timestamp) if magic == 1 else b""
    body = bytes([magic & 0xFF, attributes]) + stamp + sized(key) + sized(value)
    return struct.pack(">qiI", offset, 4 + len(body), zlib.crc32(body)) + body


def wrapper(offset: int, codec: int, *inner: bytes, magic: int = 1, attributes: int = 0) -> bytes:
    packed = compression.compress(codec, b"".join(inner))
    return entry(offset, packed, magic=magic, attributes=codec | attributes, timestamp=9000)


def messages(data: bytes, limit: int = LIMIT) -> list[Message]:
    return list(legacy_batch.parse_messages(memoryview(data), limit))


def offsets(data: bytes) -> list[int]:
    return [message.offset for message in messages(data)]


def table_of(*entries: bytes):
    data = b"".join(entries)
    found = [sum(map(len, entries[:i])) for i in range(len(entries))]
    table = record_batch.parse(memoryview(data), found)
    legacy_batch.fill(table, memoryview(data), np.array(found))
    return table


def test_the_reference_messages_decode():
    assert messages(MAGIC_0) == [Message(5, 0x1FECD70A, 0, 0, -1, b"k", b"v")]
    assert messages(MAGIC_1) == [Message(5, 0x39268C33, 1, 0, 1700000000000, b"k", b"v")]


def test_the_writer_of_these_tests_makes_the_reference_messages():
    assert entry(5, b"v", magic=0, key=b"k") == MAGIC_0
    assert entry(5, b"v", magic=1, key=b"k", timestamp=1700000000000) == MAGIC_1


def test_a_table_holds_what_the_old_formats_store_and_minus_one_for_the_rest():
    batch = record_batch.encode(
        b"", base_offset=7, last_offset_delta=2, record_count=0, producer_id=9, leader_epoch=4
    )
    table = table_of(MAGIC_0, batch, MAGIC_1)
    assert table.magic.tolist() == [0, 2, 1]
    assert table.base_offset.tolist() == [5, 7, 5]
    assert table.last_offset.tolist() == [5, 9, 5]
    assert table.size.tolist() == [28, 61, 36]
    assert table.crc.tolist() == [0x1FECD70A, int.from_bytes(batch[17:21], "big"), 0x39268C33]
    assert table.max_timestamp.tolist() == [-1, -1, 1700000000000]
    assert table.base_timestamp.tolist() == [-1, -1, 1700000000000]
    assert table.leader_epoch.tolist() == [-1, 4, -1]
    assert table.producer_id.tolist() == [-1, 9, -1]
    assert table.producer_epoch.tolist() == table.base_sequence.tolist() == [-1, -1, -1]
    assert table.record_count.tolist() == [-1, 0, -1]


def test_the_codec_and_the_timestamp_type_are_read_from_the_old_attributes():
    inner = entry(0, b"v")
    table = table_of(wrapper(3, LZ4, inner), wrapper(4, SNAPPY, inner, attributes=8))
    assert table.codec.tolist() == [LZ4, SNAPPY]
    assert table.is_log_append_time.tolist() == [False, True]
    assert not table.is_control.any()


@pytest.mark.parametrize("magic", [0, 1])
def test_null_and_empty_are_not_the_same(magic):
    for key in (None, b"", b"k"):
        for value in (None, b"", b"v"):
            (message,) = messages(entry(5, value, key=key, magic=magic))
            assert (message.key, message.value) == (key, value)


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
def test_a_wrapper_of_magic_0_holds_absolute_offsets(codec):
    inner = [entry(offset, b"v%d" % offset, magic=0) for offset in (7, 8, 12)]
    got = messages(wrapper(12, codec, *inner, magic=0))
    assert [(m.offset, m.value, m.timestamp) for m in got] == [
        (7, b"v7", -1),
        (8, b"v8", -1),
        (12, b"v12", -1),
    ]


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
def test_a_wrapper_of_magic_1_holds_relative_offsets_and_the_last_absolute_one(codec):
    inner = [entry(offset, b"v", timestamp=offset) for offset in (0, 1, 4)]
    got = messages(wrapper(104, codec, *inner))
    assert [(m.offset, m.timestamp) for m in got] == [(100, 0), (101, 1), (104, 4)]


def test_a_wrapper_at_offset_0_counts_from_0():
    assert offsets(wrapper(0, GZIP, *(entry(i, b"v") for i in range(3)))) == [0, 1, 2]


def test_a_wrapper_offset_below_its_last_message_is_a_format_error():
    with pytest.raises(FormatError, match=r"offset 1\b.*\b2\b"):
        messages(wrapper(1, GZIP, *(entry(i, b"v") for i in range(3))))


def test_log_append_time_of_a_wrapper_overrides_the_messages():
    inner = [entry(0, b"v", timestamp=1), entry(1, b"v", timestamp=2)]
    got = messages(wrapper(1, GZIP, *inner, attributes=8))
    assert [m.timestamp for m in got] == [9000, 9000]
    assert all(m.attributes & 8 for m in got)


def test_a_wrapper_of_magic_1_may_hold_messages_of_magic_0():
    got = messages(wrapper(11, GZIP, entry(0, b"a", magic=0), entry(1, b"b", magic=0)))
    assert [(m.offset, m.magic, m.timestamp) for m in got] == [(10, 0, -1), (11, 0, -1)]


def test_the_wrong_lz4_checksum_of_magic_0_is_accepted_there_and_only_there():
    inner = entry(5, b"v", magic=0)
    packed = bytearray(compression.compress(LZ4, inner))
    packed[6] = 0x1A
    assert offsets(entry(5, bytes(packed), magic=0, attributes=LZ4)) == [5]
    with pytest.raises(FormatError):
        messages(entry(5, bytes(packed), magic=1, attributes=LZ4))


def test_every_cut_of_the_inner_stream_of_a_wrapper_of_magic_0_is_a_format_error():
    packed = compression.compress(LZ4, entry(5, b"v", magic=0))
    for size in range(len(packed)):
        with pytest.raises(FormatError):
            messages(entry(5, packed[:size], magic=0, attributes=LZ4))


def test_an_inner_message_that_is_cut_off_at_the_end_is_ignored():
    whole, cut = entry(0, b"a"), entry(1, b"b")
    for size in range(len(cut)):
        assert offsets(wrapper(9, GZIP, whole, cut[:size])) == [9]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (entry(5, None, attributes=GZIP), "null"),
        (wrapper(5, GZIP), "no messages"),
        (wrapper(5, ZSTD, entry(0, b"v")), "zstd"),
        (entry(5, b"v", attributes=5), r"unknown\(5\)"),
        (entry(5, b"v", attributes=7, magic=0), r"unknown\(7\)"),
        (wrapper(5, GZIP, wrapper(0, GZIP, entry(0, b"v"))), "itself"),
        (wrapper(5, GZIP, entry(0, b"v", magic=2)), "batch or"),
        (wrapper(5, GZIP, entry(0, b"v", magic=-1)), "batch or"),
        (wrapper(5, GZIP, bytes(40)), r"size 0\b"),
        (wrapper(5, GZIP, b"\xff" * 40), "size -1"),
        (entry(5, b"not gzip", attributes=GZIP), "gzip"),
    ],
)
def test_a_wrapper_that_a_broker_refuses_is_a_format_error(data, words):
    with pytest.raises(FormatError, match=words):
        messages(data)


def test_a_bomb_in_a_wrapper_is_a_format_error():
    for codec in (GZIP, SNAPPY, LZ4):
        bomb = wrapper(5, codec, entry(0, bytes(4 * LIMIT)))
        with pytest.raises(FormatError, match="limit"):
            messages(bomb)


@pytest.mark.parametrize("whole", [MAGIC_0, MAGIC_1], ids=["magic 0", "magic 1"])
def test_every_cut_of_a_message_is_a_format_error(whole):
    for size in range(len(whole)):
        with pytest.raises(FormatError):
            legacy_batch.parse(memoryview(whole)[:size])


@pytest.mark.parametrize("codec", [0, GZIP, SNAPPY, LZ4])
@pytest.mark.parametrize("magic", [0, 1])
def test_every_flipped_byte_is_messages_or_a_format_error(codec, magic):
    inner = [entry(offset, b"value", magic=magic) for offset in (0, 1)]
    whole = wrapper(1, codec, *inner, magic=magic) if codec else inner[0]
    for at in range(len(whole)):
        for mask in (1, 2, 4, 8, 16, 32, 64, 128, 255):
            data = bytearray(whole)
            data[at] ^= mask
            try:
                got = messages(bytes(data))
            except FormatError as error:
                assert error.reason
            else:
                assert got


@given(st.binary(max_size=80))
def test_any_bytes_are_messages_or_a_format_error(data):
    try:
        messages(data)
    except FormatError as error:
        assert error.reason


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
@pytest.mark.parametrize("magic", [0, 1])
def test_every_message_with_a_crc_that_holds_is_as_it_was(codec, magic):
    noise = random.Random(7).randbytes(80_000)
    values = [noise[start : start + 8_000] for start in range(0, len(noise), 8_000)]
    inner = [entry(at + 5 * (magic == 0), one, magic=magic) for at, one in enumerate(values)]
    whole = wrapper(14, codec, *inner, magic=magic)
    sound = {message.offset: message.value for message in messages(whole)}
    seen = set()
    for at in range(40, len(whole), 997):
        data = bytearray(whole)
        data[at] ^= 0xFF
        found, error = legacy_batch.decodable_messages(memoryview(data), LIMIT)
        for one in found:
            assert not one.crc_valid or one.message.value in values
            assert not one.crc_valid or one.offset is None or one.message.value == sound[one.offset]
        seen.add((sum(one.crc_valid for one in found), error is None))
        assert error or len(found) == len(values)
    assert max(count for count, _ in seen) >= len(values) - 2


def test_a_wrapper_with_a_wrong_checksum_of_its_stream_gives_back_every_message():
    inner = [entry(at, b"value", magic=1) for at in range(3)]
    whole = bytearray(wrapper(7, GZIP, *inner))
    whole[-8] ^= 1
    with pytest.raises(FormatError):
        messages(bytes(whole))
    found, error = legacy_batch.decodable_messages(memoryview(whole), LIMIT)
    assert [(one.offset, one.crc_valid) for one in found] == [(5, True), (6, True), (7, True)]
    assert error is None
    with pytest.raises(LimitError):
        legacy_batch.decodable_messages(memoryview(wrapper(7, GZIP, *inner)), 10)
