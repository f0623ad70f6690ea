"""Redpanda's batches and segments agree with two files that brokers wrote."""

from pathlib import Path

import pytest
import redpanda_segment as segment
from hypothesis import given
from hypothesis import strategies as st
from redpanda_segment import Reason

from logtool.formats import record
from logtool.formats import record_batch as kafka_batch
from logtool.formats.redpanda import ghost_batch, record_batch
from logtool.formats.redpanda.record_batch import BatchType

DATA = Path(__file__).parents[2] / "data" / "redpanda"
COMPACTED = (DATA / "3676-7429-77-1-v1.log.1").read_bytes()
SEGMENT = (DATA / "test_segment.bin").read_bytes()
KAFKA = bytes.fromhex(
    "0000000000001bfc000000410000000102d065deeb000800000109000001848a5d4e33000001848a5d4e37"
    "0000000000000002000000000000000000011e000092040110c5cfc5a6a6f517fa00"
)


def test_a_compacted_batch_is_read() -> None:
    (batch,) = segment.parse(COMPACTED).parts
    header = batch.header
    assert (header.header_crc, header.size, header.crc) == (328222904, 77, 3496337131)
    assert (header.base_offset, header.last_offset, header.record_count) == (7164, 7429, 1)
    assert (header.type, header.attributes) == (BatchType.RAFT_DATA, 8)
    assert (header.base_timestamp, header.max_timestamp) == (1668768681523, 1668768681527)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (2, 0, 0)


def test_a_batch_of_redpanda_is_one_of_kafka_with_the_same_crc() -> None:
    (batch,) = segment.parse(COMPACTED).batches
    assert record_batch.to_kafka(batch.header, term=1) + batch.body == KAFKA
    table = kafka_batch.parse(memoryview(KAFKA), [0])
    moved = bytearray(KAFKA)
    record_batch.put_headers(moved, table.position, table, table.base_offset)
    assert record_batch.parse(bytes(moved)) == batch.header
    assert moved[61:] == KAFKA[61:]
    assert table.row(0)["crc"] == batch.header.crc
    records, damage = record.parse(memoryview(KAFKA)[61:], 1)
    assert damage is None
    assert (records.offset_delta[0], records.value_length[0]) == (265, 8)


def test_a_term_beyond_an_epoch_becomes_no_epoch() -> None:
    header = segment.parse(COMPACTED).batches[0].header
    front = record_batch.to_kafka(header, term=2**31, base_offset=5)
    row = kafka_batch.parse(memoryview(front), [0]).row(0)
    assert (row["leader_epoch"], row["base_offset"], row["last_offset"]) == (-1, 5, 270)


def test_a_segment_is_read_up_to_its_zeros() -> None:
    parsed = segment.parse(SEGMENT)

    headers = [batch.header for batch in parsed.batches]
    assert [(h.size, h.base_offset, h.type, h.producer_id) for h in headers] == [
        (176, 4, 2, -1),
        (173, 5, 1, 6001),
        (173, 6, 1, 6002),
        (173, 7, 1, 6003),
        (173, 8, 1, 6004),
    ]
    assert [(h.header_crc, h.crc) for h in headers] == [
        (2857278610, 1312187775),
        (1833396293, 2139338321),
        (881541767, 2048321278),
        (1773676556, 3353449318),
        (3541416565, 1899775904),
    ]
    ((position, rest),) = parsed.rests
    assert (position, len(rest.data), rest.reason) == (868, 4096 - 868, Reason.ZEROS)
    assert segment.encode(parsed) == SEGMENT


def test_every_flipped_bit_is_found_and_costs_one_batch() -> None:
    whole = segment.parse(SEGMENT[:868]).batches
    sizes = [0, 176, 349, 522, 695, 868]
    for position in range(868):
        hit = next(number for number in range(5) if position < sizes[number + 1])
        for bit in range(8):
            damaged = bytearray(SEGMENT[:868])
            damaged[position] ^= 1 << bit
            parsed = segment.parse(bytes(damaged))
            assert parsed.batches == whole[:hit] + whole[hit + 1 :], (position, bit)
            ((at, rest),) = parsed.rests
            assert (at, len(rest.data)) == (sizes[hit], sizes[hit + 1] - sizes[hit])


def test_every_cut_leaves_the_batches_before_it() -> None:
    for size in range(0, 869, 7):
        parsed = segment.parse(SEGMENT[:size])
        assert len(parsed.batches) == sum(end <= size for end in (176, 349, 522, 695, 868))
        for _, rest in parsed.rests:
            assert rest.reason in (Reason.SHORT_HEADER, Reason.SHORT_BODY)


def test_a_header_crc_of_zero_is_as_good_as_another() -> None:
    # The CRC is linear in the timestamp, so 32 equations give the timestamp of CRC 0.
    batch = record_batch.build(b"", base_offset=0, base_timestamp=9804131941)
    assert batch.header.header_crc == 0
    assert segment.parse(segment.build([batch], room=100)).batches == (batch,)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (bytes(60), Reason.ZEROS),
        (bytes(5000), Reason.ZEROS),
        (bytes(5000) + b"\1", Reason.HEADER_CRC),
        (b"\1" + bytes(20), Reason.SHORT_HEADER),
        (b"\1" * 61, Reason.HEADER_CRC),
    ],
)
def test_bytes_that_are_not_a_batch_have_a_reason(data: bytes, reason: Reason) -> None:
    ((position, rest),) = segment.parse(data).rests
    assert (position, rest.data, rest.reason) == (0, data, reason)


@given(st.binary(max_size=300), st.integers(0, 868), st.integers(0, 868))
def test_any_bytes_survive(data: bytes, first: int, last: int) -> None:
    spliced = SEGMENT[:first] + data + SEGMENT[last:868]
    assert segment.encode(segment.parse(spliced)) == spliced


@given(st.binary(min_size=61, max_size=61))
def test_any_header_survives(data: bytes) -> None:
    assert record_batch.encode(record_batch.parse(data)) == data


def test_types_have_names_and_those_of_later_releases_numbers() -> None:
    assert record_batch.type_name(29) == "compaction_placeholder"
    assert record_batch.type_name(0) == "0"
    assert record_batch.type_name(77) == "77"


@pytest.mark.parametrize(
    ("gap", "ghost"),
    [
        (
            (21, 32),
            "2e40a0c63d0000001500000000000000075fb030cf00000b00000000000000000000000000000000000000"
            "ffffffffffffffffffffffffffff0c000000",
        ),
        (
            (3676, 7163),
            "165053b43d0000005c0e00000000000007a9a754aa00009f0d000000000000000000000000000000000000"
            "ffffffffffffffffffffffffffffa00d0000",
        ),
        (
            (5, 5),
            "2aa04fd13d00000005000000000000000700818b1900000000000000000000000000000000000000000000"
            "ffffffffffffffffffffffffffff01000000",
        ),
    ],
)
def test_a_gap_is_filled_with_a_ghost(gap: tuple[int, int], ghost: str) -> None:
    (batch,) = ghost_batch.build(*gap)
    assert record_batch.encode(batch.header).hex() == ghost
    assert segment.parse(bytes.fromhex(ghost)).batches == (batch,)


def test_gaps_lie_before_batches_and_never_behind_the_last() -> None:
    assert list(ghost_batch.gaps([(0, 10), (11, 20), (33, 40)], 0)) == [(21, 32)]
    assert list(ghost_batch.gaps([(33, 40)], 25)) == [(25, 32)]
    assert list(ghost_batch.gaps([(0, 4), (2, 9), (11, 11)], 0)) == [(10, 10)]


def test_a_gap_beyond_an_int32_takes_several_ghosts() -> None:
    first, last = 10, 10 + 3 * (2**31 - 1) + 5
    of_redpanda = list(ghost_batch.build(first, last, largest_delta=ghost_batch.LARGEST_DELTA))
    sound = list(ghost_batch.build(first, last))
    assert [b.header.record_count for b in of_redpanda] == [-(2**31)] * 3 + [3]
    assert [b.header.record_count for b in sound] == [2**31 - 1] * 3 + [6]
    for ghosts in (of_redpanda, sound):
        assert ghosts[0].header.base_offset == first
        assert ghosts[-1].header.last_offset == last
