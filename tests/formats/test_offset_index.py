import re

import numpy as np
import pytest
from calls import calls_of
from format_checks import findings_of

from logtool.formats import offset_index

# Two entries, then one entry of preallocated zeros.
ON_DISK = bytes.fromhex("00000005 00001064  00000009 00002100  00000000 00000000")
found_in = findings_of(offset_index, log_size=9000)


def test_columns_hold_what_is_on_disk_in_native_order() -> None:
    index = offset_index.parse(ON_DISK)
    assert index.relative_offsets.tolist() == [5, 9]
    assert index.positions.tolist() == [4196, 8448]
    assert index.relative_offsets.dtype == np.dtype("=i4")
    assert (len(index), index.padding, index.trailing) == (2, 8, b"")


@pytest.mark.parametrize("count", [2, 8190, 8191, 8192, 8193, 20_000])
@pytest.mark.parametrize("padding", [1, 8189, 8191, 8192, 1_310_720])
def test_padding_of_any_length_ends_where_the_last_entry_does(count: int, padding: int) -> None:
    entries = ON_DISK[:8] * (count - 1) + bytes.fromhex("00000900 00000000")
    index = offset_index.parse(entries + bytes(8 * padding) + b"\0\0\0")
    assert (len(index), index.padding, index.trailing) == (count, 8 * padding, bytes(3))


def test_offsets_are_absolute_even_beyond_32_bits() -> None:
    index = offset_index.parse(ON_DISK)
    assert index.offsets(2**40).tolist() == [2**40 + 5, 2**40 + 9]


def test_columns_cannot_be_written() -> None:
    index = offset_index.parse(ON_DISK)
    with pytest.raises(ValueError, match="read-only"):
        index.positions[0] = 1


def test_the_index_of_the_reference_rebuild_is_sound() -> None:
    index = offset_index.parse(bytes.fromhex("00000005 000000a6"))
    assert (index.relative_offsets.tolist(), index.positions.tolist()) == ([5], [166])
    assert list(offset_index.check(index, log_size=4 * 83)) == []


@pytest.mark.parametrize("hex_bytes", ["", "00" * 8, "00" * 800, ON_DISK.hex()])
def test_a_sound_index_has_no_findings_with_or_without_padding(hex_bytes: str) -> None:
    assert found_in(bytes.fromhex(hex_bytes)) == []


@pytest.mark.parametrize(
    ("damaged", "expected"),
    [
        pytest.param("00000005 00001064 00000005 00002100", [("offset-order", 8)], id="equal"),
        pytest.param("00000005 00001064 00000004 00002100", [("offset-order", 8)], id="falls"),
        pytest.param(
            "00000005 00001064 00000009 00001064", [("position-order", 8)], id="pos-equal"
        ),
        pytest.param("80000000 00001064", [("offset-range", 0)], id="offset-negative"),
        pytest.param("00000005 00002328", [("position-range", 0)], id="position-at-end-of-log"),
        pytest.param("00000005 80001064", [("position-range", 0)], id="position-negative"),
        pytest.param("00000005 00000000", [("position-range", 0)], id="position-zero"),
        pytest.param("00000000 00001064", [("relative-zero", 0)], id="zero-with-position"),
        pytest.param(
            "00000005 00001064" + "00" * 16 + "00000009 00002100",
            [("relative-zero", 8)],
            id="hole-of-two-entries-is-one-finding",
        ),
        pytest.param(
            "00000005 00001064" + "00" * 8 + "00000005 00002100",
            [("relative-zero", 8), ("offset-order", 16)],
            id="order-looks-across-a-hole",
        ),
        pytest.param(
            "00000005 00001064 80000000 00001100 00000009 00002100",
            [("offset-range", 8)],
            id="an-impossible-offset-does-not-accuse-its-neighbour",
        ),
        pytest.param(
            "00000005 00001064 00000007 00ffffff 00000009 00002100",
            [("position-range", 8)],
            id="an-impossible-position-does-not-accuse-its-neighbour",
        ),
        pytest.param("00000005 00001064 000000", [("length", 8)], id="torn-entry"),
        pytest.param("00000005 00001064" + "00" * 9, [("length", 16)], id="torn-after-padding"),
    ],
)
def test_each_kind_of_damage_is_found_once(damaged: str, expected: list[tuple[str, int]]) -> None:
    assert found_in(bytes.fromhex(damaged)) == expected


def test_a_run_of_the_same_damage_is_one_finding_of_its_whole_length() -> None:
    data = bytes.fromhex("00000005 00001064 00000004 00001065 00000003 00001066 00000009 00002100")
    (found,) = offset_index.check(offset_index.parse(data))
    assert (found.code, found.position, found.length) == ("offset-index/offset-order", 8, 16)
    assert re.findall(r"entry \d+|\d+", found.message) == [
        "entry 1",
        "5",
        "entry 0",
        "4",
        "entry 2",
    ]


def test_without_the_size_of_the_log_no_position_is_beyond_it() -> None:
    assert found_in(bytes.fromhex("00000005 7fffffff"), log_size=None) == []


def test_a_full_index_is_parsed_and_checked_without_a_loop_over_entries() -> None:
    rows = np.zeros(10485760 // offset_index.ENTRY_SIZE, offset_index.ENTRY)
    rows["relative_offset"] = np.arange(1, len(rows) + 1)
    rows["position"] = np.arange(1, len(rows) + 1) * 1000
    data = rows.tobytes()

    def check() -> None:
        assert list(offset_index.check(offset_index.parse(data), log_size=2**31 - 1)) == []

    assert calls_of(check) < 1000  # a loop over entries would make millions
