import gzip
import random
import struct
import tracemalloc

import cramjam
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logtool.errors import FormatError, LimitError
from logtool.formats import compression
from logtool.formats.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD

CODECS = (NONE, GZIP, SNAPPY, LZ4, ZSTD)
PACKERS = (GZIP, SNAPPY, LZ4, ZSTD)
TEXT = b"".join(b"a record of number %d. " % number for number in range(60))
MIB = 1024 * 1024


def unpacked(codec: int, data: bytes, limit: int = MIB) -> bytes:
    return bytes(compression.decompress(codec, memoryview(data), limit))


def raw_snappy(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data))


def xerial(*chunks: bytes, versions: str = ">ii") -> bytes:
    header = compression.XERIAL_MAGIC + struct.pack(versions, 1, 1)
    return header + b"".join(struct.pack(">i", len(chunk)) + chunk for chunk in chunks)


def lz4_frame(*blocks: bytes, header: str = "04224d18604082") -> bytes:
    stored = b"".join(struct.pack("<I", len(block) | 1 << 31) + block for block in blocks)
    return bytes.fromhex(header) + stored + bytes(4)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("size", [0, 1, 100, 32767, 32768, 32769, 65535, 65536, 65537, 300000])
def test_every_size_around_a_block_survives_a_round_trip(codec, size):
    for data in (bytes(size), random.Random(size).randbytes(size)):
        packed = compression.compress(codec, data)
        assert unpacked(codec, packed) == data


@given(st.sampled_from(CODECS), st.binary(max_size=2000), st.integers(1, 50))
def test_any_bytes_survive_a_round_trip(codec, data, times):
    assert unpacked(codec, compression.compress(codec, data * times)) == data * times


@pytest.mark.parametrize("codec", [SNAPPY, LZ4, ZSTD])
def test_decompressed_bytes_stay_unchanged_by_the_next_call(codec):
    first, second = b"a" * 1000, random.Random(1).randbytes(1000)
    packed = memoryview(compression.compress(codec, first))
    kept = compression.decompress(codec, packed)
    compression.decompress(codec, memoryview(compression.compress(codec, second)))
    assert bytes(kept) == first


@pytest.mark.parametrize("codec", [LZ4, ZSTD])
@pytest.mark.parametrize("more", [-1, 0, 1, 2])
def test_every_size_around_the_scratch_buffer_comes_out_whole(codec, more):
    data = bytes(compression._SCRATCH_SIZE + more)
    packed = compression.compress(codec, data)
    assert unpacked(codec, packed, len(data)) == data
    with pytest.raises(FormatError, match="limit"):
        unpacked(codec, packed, len(data) - 1)


def test_codecs_have_kafkas_names():
    assert [compression.name(codec) for codec in range(-1, 8)] == [
        "unknown(-1)", "none", "gzip", "snappy", "lz4", "zstd", "unknown(5)", "unknown(6)",
        "unknown(7)",
    ]  # fmt: skip


@pytest.mark.parametrize("codec", [-1, 5, 6, 7])
def test_a_codec_that_does_not_exist_is_a_format_error(codec):
    with pytest.raises(FormatError, match=f"codec {codec}\\b"):
        unpacked(codec, TEXT)


# Framing


def test_snappy_is_written_with_the_header_of_snappy_java():
    packed = compression.compress(SNAPPY, TEXT)
    assert packed[:16].hex() == "82534e415050590000000001" + "00000001"
    assert packed == xerial(raw_snappy(TEXT))


def test_snappy_version_numbers_of_either_byte_order_are_ignored():
    assert unpacked(SNAPPY, xerial(raw_snappy(TEXT), versions="<ii")) == TEXT


def test_snappy_without_a_header_is_one_raw_block():
    for data in (b"", b"x", TEXT):
        assert unpacked(SNAPPY, raw_snappy(data)) == data


def test_snappy_shorter_than_a_header_is_one_raw_block():
    assert unpacked(SNAPPY, raw_snappy(b"abc")) == b"abc"
    with pytest.raises(FormatError):
        unpacked(SNAPPY, compression.XERIAL_MAGIC + bytes(7))


def test_snappy_streams_may_be_concatenated():
    one, two = xerial(raw_snappy(b"one"), raw_snappy(b"more")), xerial(raw_snappy(b"two"))
    assert unpacked(SNAPPY, one + two + xerial() + one) == b"onemoretwoonemore"


def test_snappy_ends_where_fewer_bytes_than_a_length_are_left():
    for rest in (b"", b"\xff", b"\xff\xff\xff"):
        assert unpacked(SNAPPY, xerial(raw_snappy(TEXT)) + rest) == TEXT


def test_the_one_block_of_a_snappy_stream_is_found_for_many_streams_at_once():
    block, other = raw_snappy(TEXT), raw_snappy(TEXT[::-1])
    one, header = xerial(block), len(xerial())
    streams = {
        one: header + 4,
        xerial(block, versions="<ii"): header + 4,
        block: 0,
        xerial(block, other): -1,
        one + xerial(other): -1,
        one[:-1]: -1,
        one + b"\0": -1,
        one[: header + 4]: -1,
        one[:header]: -1,
        one[:5]: -1,
        b"": -1,
        one[1:]: 0,
        one[:8] + b"\xff" * 30: -1,
    }
    data = b"odd" + b"".join(streams)
    ends = 3 + np.cumsum([len(stream) for stream in streams])
    starts = ends - [len(stream) for stream in streams]

    found = compression.lone_snappy_blocks(memoryview(data), starts, ends)

    relative = np.where(found < 0, -1, found - starts)
    assert relative.tolist() == list(streams.values())
    for stream, block_start in streams.items():
        if block_start >= 0:
            blocks = compression._snappy_blocks(memoryview(stream))
            assert blocks == [stream[block_start:]]


@pytest.mark.parametrize("length", [-1, -(2**31), 1000, 2**31 - 1])
def test_a_snappy_chunk_length_that_does_not_fit_is_a_format_error(length):
    packed = xerial(raw_snappy(TEXT)) + struct.pack(">i", length) + b"rest"
    with pytest.raises(FormatError, match=f"{length} bytes"):
        unpacked(SNAPPY, packed)


def test_lz4_is_written_as_kafka_can_read_it():
    packed = compression.compress(LZ4, TEXT * 100)
    # Independent blocks of at most 64 KiB, no checksums: a dependent block is an error for Kafka.
    assert packed[:7].hex() == "04224d18604082"
    assert packed[-4:] == bytes(4)


def test_lz4_blocks_that_do_not_shrink_are_stored():
    noise = random.Random(1).randbytes(70000)
    packed = compression.compress(LZ4, noise)
    assert packed == lz4_frame(noise[:65536], noise[65536:])


def test_lz4_ignores_bytes_after_the_end_mark():
    packed = compression.compress(LZ4, TEXT)
    for rest in (b"\0", b"garbage", packed, bytes(100)):
        assert unpacked(LZ4, packed + rest) == TEXT


def test_lz4_frames_of_other_writers_are_read():
    # Dependent blocks, block checksums and a content checksum.
    assert unpacked(LZ4, bytes(cramjam.lz4.compress(TEXT)) + b"garbage") == TEXT
    assert unpacked(LZ4, lz4_frame()) == b""
    assert unpacked(LZ4, lz4_frame(b"one", b"", b"two")) == b"onetwo"


def test_lz4_frames_with_a_content_size_are_read():
    descriptor = bytes([0x68, 0x40]) + (3).to_bytes(8, "little")
    accepted = []
    for checksum in range(256):
        header = "04224d18" + descriptor.hex() + f"{checksum:02x}"
        try:
            accepted.append(unpacked(LZ4, lz4_frame(b"one", header=header) + b"garbage"))
        except FormatError:
            continue
    assert accepted == [b"one"]


def test_lz4_with_the_descriptor_checksum_of_magic_0_is_left_to_the_caller():
    with pytest.raises(FormatError):
        unpacked(LZ4, lz4_frame(b"one", header="04224d1860401a"))


@pytest.mark.parametrize("size", range(14))
def test_an_lz4_frame_that_ends_early_is_a_format_error(size):
    with pytest.raises(FormatError):
        unpacked(LZ4, lz4_frame(b"one")[:size])


def test_zstd_frames_without_a_content_size_are_read():
    packer = cramjam.zstd.Compressor()
    packer.compress(TEXT)
    streamed = bytes(packer.finish())
    # Bits 6-7 and 5 of the descriptor: no content size field at all.
    assert streamed[4] & 0xE0 == 0
    assert unpacked(ZSTD, streamed) == TEXT


def test_zstd_frames_may_be_concatenated():
    one, two = compression.compress(ZSTD, b"one"), compression.compress(ZSTD, TEXT)
    skippable = bytes.fromhex("502a4d18 04000000 01020304")
    assert unpacked(ZSTD, one + two + skippable + one) == b"one" + TEXT + b"one"


def test_gzip_members_may_be_concatenated():
    one, two = gzip.compress(b"one"), gzip.compress(TEXT)
    assert unpacked(GZIP, one + two + gzip.compress(b"") + one) == b"one" + TEXT + b"one"


def test_gzip_ignores_other_bytes_after_a_member_as_java_does():
    for rest in (b"\0", b"garbage", bytes(100), b"\x1f"):
        assert unpacked(GZIP, gzip.compress(TEXT) + rest) == TEXT


def test_a_gzip_member_may_carry_a_name():
    named = bytes.fromhex("1f8b0808 00000000 00ff") + b"name\0" + gzip.compress(TEXT)[10:]
    assert unpacked(GZIP, named) == TEXT


def test_many_gzip_members_cost_time_in_proportion():
    # Copying the rest once for each member would take minutes here.
    members = gzip.compress(b"x") * 100_000
    assert unpacked(GZIP, members) == b"x" * 100_000


# Damage


def broken(packed: bytes) -> list[bytes]:
    cuts = [packed[:size] for size in range(len(packed))]
    flips = [
        packed[:at] + bytes([packed[at] ^ mask]) + packed[at + 1 :]
        for at in range(len(packed))
        for mask in (0x01, 0x10, 0x80, 0xFF)
    ]
    return cuts + flips


@pytest.mark.parametrize("codec", PACKERS)
def test_every_cut_and_every_flipped_byte_is_bytes_or_a_format_error(codec):
    for data in broken(compression.compress(codec, TEXT)):
        try:
            out = unpacked(codec, data, 4 * len(TEXT))
        except FormatError as error:
            assert error.reason
        else:
            assert len(out) <= 4 * len(TEXT)


@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD])
def test_every_cut_of_a_stream_with_an_end_is_a_format_error(codec):
    packed = compression.compress(codec, TEXT)
    for size in range(len(packed)):
        with pytest.raises(FormatError):
            unpacked(codec, packed[:size])


@pytest.mark.parametrize("codec", PACKERS)
def test_the_same_bytes_are_decompressed_with_and_without_a_room(codec):
    for data in [compression.compress(codec, TEXT), *broken(compression.compress(codec, TEXT))]:
        try:
            expected = unpacked(codec, data, 4 * len(TEXT))
        except FormatError:
            expected = None
        for size in (8 * len(TEXT), len(TEXT), len(TEXT) - 1, 0):
            room = memoryview(bytearray(size))
            try:
                out = compression.decompress(codec, memoryview(data), 4 * len(TEXT), room)
            except FormatError:
                assert expected is None
            else:
                assert bytes(out) == expected
                assert out.obj is not room.obj or bytes(room[: len(out)]) == expected


@pytest.mark.parametrize("codec", PACKERS)
def test_a_room_is_used_only_if_it_is_large_enough(codec):
    packed = memoryview(compression.compress(codec, TEXT))
    room = memoryview(bytearray(2 * len(TEXT)))
    assert compression.decompress(codec, packed, 2 * len(TEXT), room).obj is room.obj
    for small in (room[:0], room[: len(TEXT) - 1]):
        assert compression.decompress(codec, packed, 2 * len(TEXT), small).obj is not room.obj


magics = st.sampled_from([b"", compression.XERIAL_MAGIC + bytes(8), b"\x04\x22\x4d\x18",
                          b"\x28\xb5\x2f\xfd", b"\x1f\x8b\x08\x00",
                          bytes.fromhex("04224d18604082")])  # fmt: skip


@given(st.sampled_from(PACKERS), magics, st.binary(max_size=200))
def test_any_bytes_are_bytes_or_a_format_error(codec, magic, data):
    try:
        out = unpacked(codec, magic + data, 100_000)
    except FormatError:
        return
    assert len(out) <= 100_000


# The limit


@pytest.mark.parametrize("codec", PACKERS)
@pytest.mark.parametrize("size", [1, 1000, 65536, 65537, 262144, 400_000])
def test_the_limit_is_exact(codec, size):
    packed = compression.compress(codec, bytes(size))
    assert len(unpacked(codec, packed, size)) == size
    for limit in (0, size // 2, size - 1):
        with pytest.raises(FormatError, match=f"limit of {limit} bytes"):
            unpacked(codec, packed, limit)


@pytest.mark.parametrize("codec", PACKERS)
def test_a_bomb_is_a_format_error_and_costs_no_more_memory_than_the_limit(codec):
    bomb = compression.compress(codec, bytes(64 * MIB))
    limit = MIB
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match="limit"):
            unpacked(codec, bomb, limit)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(bomb) < 64 * MIB // 10
    assert peak < 3 * limit


def test_bombs_of_many_members_frames_and_chunks_add_up():
    mebi = bytes(MIB)
    for codec, bomb in [
        (GZIP, compression.compress(GZIP, mebi) * 64),
        (ZSTD, compression.compress(ZSTD, mebi) * 64),
        (SNAPPY, xerial(*[raw_snappy(mebi)] * 64)),
    ]:
        with pytest.raises(FormatError, match="limit"):
            unpacked(codec, bomb, 8 * MIB)
        assert len(unpacked(codec, bomb, 64 * MIB)) == 64 * MIB


def test_a_snappy_block_that_claims_gigabytes_is_refused_before_memory_is_taken():
    for claim in ("ffffffff0f", "8080808004", "ffffffff07"):
        with pytest.raises(FormatError, match="limit"):
            unpacked(SNAPPY, bytes.fromhex(claim) + bytes(20))
        with pytest.raises(FormatError, match="limit"):
            unpacked(SNAPPY, xerial(bytes.fromhex(claim) + bytes(20)))


def test_a_zstd_frame_that_claims_a_huge_window_or_content_is_a_format_error():
    for frame in (
        "28b52ffd 00 ff 010000",  # a window of 3.75 TiB
        "28b52ffd 00 a8 010000",  # a window of 2 GiB
        "28b52ffd e0 ffffffffffffff7f 010000",
        "28b52ffd a0 ffffffff 010000",
    ):
        with pytest.raises(FormatError):
            unpacked(ZSTD, bytes.fromhex(frame))


@pytest.mark.parametrize("text", [b"", bytes(70_000), TEXT, bytes(500) + TEXT + bytes(40_000)])
@pytest.mark.parametrize("flipped", [None, 0, 8, 17, 20, 21, 24, -1])
def test_a_snappy_stream_has_the_same_outcome_in_any_room(text, flipped):
    data = bytearray(compression.compress(compression.SNAPPY, text))
    if flipped is not None and -len(data) <= flipped < len(data):
        data[flipped] ^= 1

    def outcome(limit, size):
        room = memoryview(bytearray(size))
        try:
            return bytes(compression.decompress(2, memoryview(data), limit, room))
        except FormatError as error:
            return str(error)

    for limit in (0, max(len(text) - 1, 0), len(text), 10**6):
        expected = outcome(limit, 0)
        for size in (1, len(text), 8 * len(data), 10**6):
            assert outcome(limit, size) == expected


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
def test_the_bytes_before_damage_come_out(codec):
    data = b"".join(bytes([at % 251]) * 3 + at.to_bytes(4) for at in range(40_000))
    packed = compression.compress(codec, data)
    for at in (0, len(packed) // 4, len(packed) // 2, len(packed) - 5):
        damaged = bytearray(packed)
        damaged[at : at + 4] = b"\xff" * 4
        out, error = compression.decompress_front(codec, memoryview(damaged), MIB)
        assert len(out) <= len(data)
        assert error is None or bytes(out[:100]) == data[: min(len(out), 100)]
    cut = memoryview(packed)[: len(packed) * 3 // 4]
    out, error = compression.decompress_front(codec, cut, MIB)
    assert data.startswith(bytes(out))
    assert len(out) > len(data) // 4
    assert error
    out, error = compression.decompress_front(codec, memoryview(packed), MIB)
    assert (bytes(out), error) == (data, None)


def test_all_bytes_of_gzip_come_out_before_a_wrong_checksum():
    packed = bytearray(compression.compress(GZIP, b"x" * 100))
    packed[-1] ^= 1
    out, error = compression.decompress_front(GZIP, memoryview(packed), MIB)
    assert (bytes(out), error) == (b"x" * 100, None)
    with pytest.raises(LimitError):
        compression.decompress_front(GZIP, memoryview(packed), 50)
