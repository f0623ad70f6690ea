"""Offsets that are missing between the segments of a log without gaps are reported."""

from pathlib import Path

import pytest

from logtool.repair.ranges import BatchKey, Kept, Rejected, RejectReason, with_gaps

HOME = Path("orders-0")


def kept(segment: int, first: int, last: int, records: int | None = None) -> Kept:
    """Return the sound batches of a segment, with a record for each offset by default."""
    edge = BatchKey(first, last, 100, 1, 0, 2, first)
    count = last - first + 1 if records is None else records
    return Kept(
        path=HOME / f"{segment:020}.log", position=0, size=100, first=edge, last=edge, batches=1,
        records=count,
    )  # fmt: skip


def missing_in(*parts: Kept) -> list[str]:
    """Return the names of the logs that are reported as missing."""
    return [
        one.path.name
        for one in with_gaps(parts, HOME)
        if isinstance(one, Rejected) and one.kind is RejectReason.MISSING
    ]


@pytest.mark.parametrize(
    ("begin", "names"),
    [(10, []), (11, ["00000000000000000010.log"]), (30, ["00000000000000000010.log"])],
)
def test_a_missing_offset_between_two_segments_is_reported(begin: int, names: list[str]) -> None:
    assert missing_in(kept(0, 0, 9), kept(begin, begin, begin + 5)) == names


def test_a_gap_inside_one_segment_is_not_a_missing_segment() -> None:
    assert missing_in(kept(0, 0, 9), kept(0, 12, 15)) == []


def test_in_a_log_with_gaps_nothing_is_reported() -> None:
    assert missing_in(kept(0, 0, 9, records=4), kept(30, 30, 35)) == []
