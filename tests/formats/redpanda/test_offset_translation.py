"""Translation of Raft offsets agrees with a plain count and with a segment of a broker."""

from pathlib import Path

import redpanda_segment as segment
from hypothesis import given
from hypothesis import strategies as st

from logtool.formats.redpanda.offset_translation import (
    FILTERED,
    FIRST_OF_A_WHOLE_LOG,
    OffsetMap,
    Translation,
    encode_map,
    parse_map,
)

SEGMENT = Path(__file__).parents[2] / "data" / "redpanda" / "test_segment.bin"


def test_a_configuration_has_the_kafka_offset_of_what_follows_it() -> None:
    headers = [batch.header for batch in segment.parse(SEGMENT.read_bytes()).batches]
    filtered = [(h.base_offset, h.last_offset) for h in headers if h.type in FILTERED]
    translation = Translation(filtered, start=4, start_delta=3)
    assert [translation.to_kafka(offset) for offset in range(3, 9)] == [None, 1, 1, 2, 3, 4]
    assert [translation.to_raft(offset) for offset in range(5)] == [None, 5, 6, 7, 8]


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 4)), max_size=8),
    st.integers(0, 50),
    st.integers(0, 9),
)
def test_offsets_are_translated_as_they_are_counted(
    shape: list[tuple[int, int]], start: int, below: int
) -> None:
    """`shape` has pairs of (data offsets, filtered offsets after them)."""
    delta = min(below, start)
    kafka, raft_of, filtered, offset = {}, {}, [], start
    number = start - delta
    for data, skipped in [*shape, (3, 0)]:
        for _ in range(data):
            kafka[offset], raft_of[number] = number, offset
            offset, number = offset + 1, number + 1
        if skipped:
            filtered.append((offset, offset + skipped - 1))
            kafka |= dict.fromkeys(range(offset, offset + skipped), number)
            offset += skipped

    translation = Translation(filtered, start=start, start_delta=delta)

    assert {raft: translation.to_kafka(raft) for raft in kafka} == kafka
    assert {number: translation.to_raft(number) for number in raft_of} == raft_of
    assert translation.to_kafka(start - 1) is None
    assert translation.to_raft(start - delta - 1) is None


def test_the_map_of_the_kvstore_translates() -> None:
    stored = OffsetMap(0, 0, 12, ((95, 5), (100, 1), (120, 2)))
    assert parse_map(encode_map(stored)) == stored
    translation = Translation.of_map(stored)
    assert [translation.to_kafka(o) for o in (99, 100, 101, 119, 120, 121, 122)] == [
        None,
        88,
        88,
        106,
        107,
        107,
        107,
    ]


def test_the_map_of_a_whole_log_begins_at_zero() -> None:
    translation = Translation.of_map(OffsetMap(0, 0, 0, ((FIRST_OF_A_WHOLE_LOG, 1), (0, 1))))
    assert [translation.to_kafka(offset) for offset in (0, 1, 2)] == [0, 0, 1]


def test_a_map_that_is_cut_is_not_read() -> None:
    data = encode_map(OffsetMap(0, 0, 12, ((95, 5), (100, 1))))
    for size in range(len(data)):
        assert parse_map(data[:size]) is None
