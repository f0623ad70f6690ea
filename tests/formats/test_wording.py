import pytest

from logtool.formats import wording

SIZES = {
    0: "0 B", 1: "1 B", 1023: "1,023 B", 1024: "1.0 KiB", 3_298_050: "3.1 MiB",
    5 << 40: "5.0 TiB", 1 << 60: "1,024.0 PiB",
}  # fmt: skip
DURATIONS = {
    0: "0 s", 5e-8: "50.0 ns", 12.3e-6: "12.3 us", 0.04: "40.0 ms", 0.9999: "1.0 s", 59.9: "59.9 s",
    59.96: "1 min 00 s", 61: "1 min 01 s", 7260: "2 h 01 min", 86_399: "23 h 59 min",
    86_467: "1 d 0 h", 35_164_800: "407 d 0 h", 1e9: "11,574 d 1 h",
}  # fmt: skip


@pytest.mark.parametrize("number", SIZES)
def test_a_size_is_said_in_the_unit_that_makes_it_short(number):
    assert wording.size(number) == SIZES[number]


@pytest.mark.parametrize("seconds", DURATIONS)
def test_a_duration_is_said_in_its_two_largest_units(seconds):
    assert wording.duration(seconds) == DURATIONS[seconds]


def test_a_rate_is_bytes_in_a_second():
    assert wording.rate(3 << 20, 2) == "1.5 MiB/s"


def test_a_count_has_its_noun_and_separators():
    assert wording.count(1, "byte") == "1 byte"
    assert wording.count(10_485_761, "byte") == "10,485,761 bytes"
    assert wording.count(2, "batch", "batches") == "2 batches"


def test_a_stretch_of_offsets_includes_both_ends():
    assert wording.offsets(5, 9) == "offsets 5 through 9"
    assert wording.offsets(5, 5) == "offset 5"
    assert wording.offsets(5, "the end") == "offsets 5 through the end"


def test_the_end_of_a_log_is_the_offset_behind_its_last():
    assert wording.extent(0, 149) == "offsets 0 through 148"
    assert wording.extent(148, 149) == "offset 148"
    assert wording.extent(149, 149) == "no offsets, ends at 149"
