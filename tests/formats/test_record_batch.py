import tracemalloc

import numpy as np
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from logtool.formats import compression, record, record_batch

TWO_RECORDS = bytes.fromhex(
    "0000000000000064 00000047 00000007 02 2d0c1dd1 0000 00000001 0000018bcfe56800"
    "0000018bcfe56805 ffffffffffffffff ffff ffffffff 00000002"
    "12 00 00 00 02 6b 04 7631 00  16 00 0a 02 02 6b 01 02 02 68 02 78"
)
EMPTY = bytes.fromhex(
    "0000000000000064 00000031 00000007 02 f09fb9d3 0000 00000009 ffffffffffffffff"
    "0000018bcfe56805 0000000000000fa0 0002 0000000a 00000000"
)


def table_of(data: bytes, found: list[int] | None = None, base: int = 0):
    return record_batch.parse(memoryview(data), [0] if found is None else found, base=base)


def test_the_reference_batch_decodes():
    table = table_of(TWO_RECORDS, base=1000)

    assert table.row(0) == {
        "position": 1000,
        "size": 83,
        "base_offset": 100,
        "last_offset": 101,
        "leader_epoch": 7,
        "magic": 2,
        "crc": 0x2D0C1DD1,
        "attributes": 0,
        "base_timestamp": 1700000000000,
        "max_timestamp": 1700000000005,
        "producer_id": -1,
        "producer_epoch": -1,
        "base_sequence": -1,
        "record_count": 2,
        "batch_type": -1,
        "control_type": -1,
        "coordinator_epoch": -1,
    }
    assert table.last_sequence.tolist() == [-1]


def test_the_reference_batch_encodes():
    payload = record.encode(
        [record.Record(0, 0, b"k", b"v1"), record.Record(1, 5, b"k", None, [(b"h", b"x")])]
    )
    encoded = record_batch.encode(
        payload,
        base_offset=100,
        last_offset_delta=1,
        record_count=2,
        leader_epoch=7,
        base_timestamp=1700000000000,
        max_timestamp=1700000000005,
    )
    assert encoded == TWO_RECORDS


def test_the_reference_batch_that_compaction_emptied_decodes_and_encodes():
    row = table_of(EMPTY).row(0)

    assert (row["base_offset"], row["last_offset"], row["record_count"]) == (100, 109, 0)
    assert (row["producer_id"], row["producer_epoch"], row["base_sequence"]) == (4000, 2, 10)
    assert table_of(EMPTY).last_sequence.tolist() == [19]
    assert (
        record_batch.encode(
            b"",
            base_offset=100,
            last_offset_delta=9,
            record_count=0,
            leader_epoch=7,
            max_timestamp=1700000000005,
            producer_id=4000,
            producer_epoch=2,
            base_sequence=10,
        )
        == EMPTY
    )


def test_the_checksum_is_castagnoli():
    assert crc32c(b"123456789") == 0xE3069283


def test_the_header_is_61_bytes_without_padding():
    assert record_batch.HEADER_SIZE == 61
    assert [record_batch.HEADER.fields[name][1] for name in record_batch.HEADER.names] == [
        0, 8, 12, 16, 17, 21, 23, 27, 35, 43, 51, 53, 57,
    ]  # fmt: skip


def integers(bits: int):
    return st.one_of(
        st.sampled_from([-(1 << bits - 1), -1, 0, 1, (1 << bits - 1) - 1]),
        st.integers(-(1 << bits - 1), (1 << bits - 1) - 1),
    )


@given(
    st.fixed_dictionaries(
        {
            "base_offset": integers(64),
            "last_offset_delta": integers(32),
            "record_count": integers(32),
            "leader_epoch": integers(32),
            "attributes": integers(16),
            "base_timestamp": integers(64),
            "max_timestamp": integers(64),
            "producer_id": integers(64),
            "producer_epoch": integers(16),
            "base_sequence": integers(32),
        }
    ),
    st.binary(max_size=100),
)
def test_every_field_survives_a_round_trip(header, payload):
    # The ids 5 to 7 name no codec.
    header["attributes"] &= ~(4 if header["attributes"] & 3 else 0)
    encoded = record_batch.encode(payload, **header)
    row = table_of(encoded).row(0)
    delta = header.pop("last_offset_delta")
    assert row | header == row
    assert row["size"] == len(encoded)
    assert row["crc"] == crc32c(encoded[21:])
    assert (row["last_offset"] - row["base_offset"] - delta) % 2**64 == 0
    codec = row["attributes"] & record_batch.CODEC_MASK
    assert compression.decompress(codec, memoryview(encoded)[61:]) == payload


def test_the_last_sequence_wraps_behind_the_largest():
    for base, delta, last in [
        (0, 0, 0),
        (2147483647, 0, 2147483647),
        (2147483647, 1, 0),
        (2147483646, 5, 3),
        (-1, 7, -1),
    ]:
        encoded = record_batch.encode(
            b"", base_offset=50, last_offset_delta=delta, record_count=0, base_sequence=base
        )
        assert table_of(encoded).last_sequence.tolist() == [last]


def test_flags_are_read_from_their_own_bits_and_only_in_the_magics_that_have_them():
    for attributes in range(128):
        for magic in (0, 1, 2):
            encoded = bytearray(EMPTY)
            encoded[16], encoded[22] = magic, attributes
            table = table_of(bytes(encoded))
            assert table.codec.tolist() == [attributes & 7]
            assert table.is_log_append_time.tolist() == [magic >= 1 and attributes & 8 != 0]
            assert table.is_transactional.tolist() == [magic == 2 and attributes & 16 != 0]
            assert table.is_control.tolist() == [magic == 2 and attributes & 32 != 0]
            assert table.has_delete_horizon.tolist() == [magic == 2 and attributes & 64 != 0]


def test_an_entry_shorter_than_a_header_at_the_end_is_read_inside_the_bytes():
    short = EMPTY + TWO_RECORDS[:26]
    table = table_of(short, [0, 61])
    assert table.base_offset.tolist() == [100, 100]
    assert table.magic.tolist() == [2, 2]
    assert table.last_offset[0] == 109


def test_no_positions_make_an_empty_table_of_the_same_types():
    for data in (b"", b"short", TWO_RECORDS):
        table = table_of(data, [])
        assert len(table) == 0
        assert [getattr(table, n).dtype for n in table.__slots__] == [
            getattr(table_of(TWO_RECORDS), n).dtype for n in table.__slots__
        ]
    assert len(record_batch.concat([])) == 0


def test_columns_own_their_bytes():
    data = bytearray(TWO_RECORDS)
    table = record_batch.parse(memoryview(data), [0])
    data[:] = bytes(len(data))
    assert table.base_offset.tolist() == [100]
    table.base_offset[0] = 1


def test_a_table_is_cut_by_slices_masks_and_indices_and_put_together_again():
    data = TWO_RECORDS + EMPTY + TWO_RECORDS
    table = table_of(data, [0, 83, 144])
    assert table[1:].position.tolist() == [83, 144]
    assert table[table.record_count > 0].position.tolist() == [0, 144]
    assert table[np.array([2, 0])].position.tolist() == [144, 0]
    together = record_batch.concat([table[:1], table[1:1], table[1:]])
    assert [together.row(i) for i in range(3)] == [table.row(i) for i in range(3)]
    assert table.end_position.tolist() == [83, 144, 227]


def test_memory_for_many_small_entries_is_a_small_multiple_of_them():
    data = EMPTY * 20000
    found = list(range(0, len(data), 61))
    tracemalloc.start()
    try:
        table_of(data, found)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5 * len(data)
