import re

import numpy as np
import pytest
from format_checks import findings_of

from logtool.formats import time_index

# The reference rebuild: timestamps 30 and 40 at relative offsets 3 and 7, no padding.
ON_DISK = bytes.fromhex("000000000000001e 00000003  0000000000000028 00000007")
ZERO = "00" * 12


def entry(timestamp: int, relative_offset: int) -> str:
    return np.array([(timestamp, relative_offset)], time_index.ENTRY).tobytes().hex()


found_in = findings_of(time_index)


def test_columns_hold_what_is_on_disk_in_native_order() -> None:
    index = time_index.parse(ON_DISK + bytes(24) + b"\0")
    assert index.timestamps.tolist() == [30, 40]
    assert index.relative_offsets.tolist() == [3, 7]
    assert index.offsets(1000).tolist() == [1003, 1007]
    assert index.timestamps.dtype == np.dtype("=i8")
    assert index.relative_offsets.dtype == np.dtype("=i4")
    assert (len(index), index.padding, index.trailing) == (2, 24, b"\0")


@pytest.mark.parametrize(("slots", "entries"), [(0, 0), (1, 1), (2, 0), (873813, 0)])
def test_only_a_single_slot_of_zeros_is_an_entry(slots: int, entries: int) -> None:
    index = time_index.parse(bytes(12 * slots))
    assert len(index) == entries
    assert index.padding == 12 * (slots - entries)
    assert list(time_index.check(index)) == []


def test_zeros_in_slot_0_are_an_entry_when_another_entry_follows() -> None:
    index = time_index.parse(bytes(12) + ON_DISK)
    assert index.timestamps.tolist() == [0, 30, 40]
    assert list(time_index.check(index)) == []


@pytest.mark.parametrize(
    ("damaged", "expected"),
    [
        pytest.param(entry(30, 3) + entry(40, 3), [], id="offsets-may-repeat"),
        pytest.param(entry(30, 3) + entry(30, 7), [("timestamp-order", 12)], id="equal-time"),
        pytest.param(entry(30, 3) + entry(29, 7), [("timestamp-order", 12)], id="time-falls"),
        pytest.param(entry(-1, 3), [("timestamp-order", 0)], id="time-negative"),
        pytest.param(entry(30, 3) + entry(40, 2), [("offset-order", 12)], id="offset-falls"),
        pytest.param(entry(30, -3), [("offset-range", 0)], id="offset-negative"),
        pytest.param(
            entry(30, 3) + entry(-5, 4) + entry(40, 7),
            [("timestamp-order", 12)],
            id="an-impossible-time-does-not-accuse-its-neighbour",
        ),
        pytest.param(
            entry(30, 3) + ZERO * 3 + entry(40, 7),
            [("zero-entry", 12)],
            id="hole-of-three-entries-is-one-finding",
        ),
        pytest.param(
            ZERO * 2 + entry(40, 7), [("zero-entry", 12)], id="the-first-zeros-are-an-entry"
        ),
        pytest.param(
            entry(30, 3) + entry(29, 3) + entry(28, 3), [("timestamp-order", 12)], id="run"
        ),
        pytest.param(entry(30, 3) + "0000", [("length", 12)], id="torn-entry"),
        pytest.param(entry(30, 3) + ZERO + "01", [("length", 24)], id="torn-after-padding"),
    ],
)
def test_each_kind_of_damage_is_found_once(damaged: str, expected: list[tuple[str, int]]) -> None:
    assert found_in(bytes.fromhex(damaged)) == expected


def test_a_message_has_both_numbers_and_both_entries() -> None:
    (found,) = time_index.check(time_index.parse(bytes.fromhex(entry(30, 3) + entry(29, 7))))
    assert re.findall(r"entry \d+|\d+", found.message) == ["entry 1", "30", "entry 0", "29"]
    assert found.length == 12
