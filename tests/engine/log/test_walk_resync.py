"""Resynchronisation: the scan goes on at the next batch of the log, never inside a record."""

import itertools
import random
import struct

import pytest
from damage import flip, overwrite, zero
from scans import BASE, batch, cut_out, entry_of, message, ranges, scanned, starts_of, wrapper

from logtool.formats import compression
from logtool.log.damage import DamageReason
from logtool.log.walk import resync


def test_a_batch_in_the_value_of_a_damaged_record_is_not_taken_for_one_of_the_log():
    nested = batch(1003, b"a copy from elsewhere") + batch(1004, b"another")
    parts = [batch(1000, b"x"), batch(1005, nested), batch(1006, b"y"), batch(1007, b"z")]
    data, starts = b"".join(parts), starts_of(parts)
    earlier = [batch(1000, *[b"x"] * 6), batch(1006, nested), batch(1007, b"y"), batch(1008, b"z")]

    for at in (17, 40, len(parts[1]) - 1):
        table, damages, _ = scanned(flip(data, starts[1] + at))
        assert ranges(damages) == [(starts[1], len(parts[1]))]
        assert table.position.tolist() == [starts[0], *starts[2:]]

    # Framing lost as well: the offsets below the last one seen give the copies away.
    for size in (0, 70, 2**31 - 1):
        wrong = overwrite(b"".join(earlier), len(earlier[0]) + 8, struct.pack(">i", size))
        table, damages, _ = scanned(wrong)
        assert ranges(damages) == [(len(earlier[0]), len(earlier[1]))]
        assert table.base_offset.tolist() == [1000, 1007, 1008]


NESTED = {
    "of its own offset": lambda offset: entry_of(2, offset),
    "of the offset behind it": lambda offset: entry_of(2, offset + 1),
    "of offsets far ahead": lambda offset: entry_of(2, offset + 500) + entry_of(2, offset + 501),
    "of magic 1": lambda offset: entry_of(1, offset + 500),
    "of magic 0": lambda offset: entry_of(0, offset),
}


@pytest.mark.parametrize("nested", NESTED)
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_a_batch_in_a_record_is_not_taken_whatever_became_of_the_header_around_it(magic, nested):
    values = [b"x", b"y", NESTED[nested](1002), b"z", b"u", b"w" * 30]
    parts = [entry_of(magic, 1000 + number, value) for number, value in enumerate(values)]
    data, starts = b"".join(parts), starts_of(parts)
    wrong = {
        "a size of nothing": overwrite(data, starts[2] + 8, bytes(4)),
        "a size beyond the end": overwrite(data, starts[2] + 8, struct.pack(">i", 2**30)),
        "a size that leads into the value": overwrite(data, starts[2] + 11, b"\x4b"),
        "a size and a CRC": flip(overwrite(data, starts[2] + 8, bytes(4)), starts[2] + 20),
        "a CRC": flip(data, starts[2] + 20),
    }
    if nested in ("of offsets far ahead", "of magic 1"):  # others are reported apart by nothing
        wrong["all of the header"] = overwrite(data, starts[2], b"\xff" * 24)
        wrong["zeros in place of the header"] = zero(data, starts[2], 24)

    for what, damaged in wrong.items():
        table, damages, _ = scanned(damaged)

        assert table.position.tolist() == [*starts[:2], *starts[3:]], (what, ranges(damages))


@pytest.mark.parametrize("nested", NESTED)
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_a_batch_in_a_record_that_is_torn_is_not_taken(magic, nested):
    parts = [entry_of(magic, 1000), entry_of(magic, 1001, NESTED[nested](1001) + b"v" * 100)]

    table, (damage,), _ = scanned(b"".join(parts)[:-50])

    assert table.base_offset.tolist() == [1000]
    assert damage.reason is DamageReason.INCOMPLETE


@pytest.mark.parametrize("nested", NESTED)
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_a_batch_in_a_record_that_lost_bytes_is_not_taken(magic, nested):
    values = [b"x", b"v" * 60 + NESTED[nested](1001), b"y", b"z", b"w" * 30]
    parts = [entry_of(magic, 1000 + number, value) for number, value in enumerate(values)]
    at = len(parts[0]) + len(parts[1]) - len(NESTED[nested](1001)) - 20
    for count in (1, 7, 15):
        data = cut_out(b"".join(parts), at - count, count)
        starts = [start - count for start in starts_of(parts)[2:]]

        table, _, _ = scanned(data)

        assert table.position.tolist() == [0, *starts], count


@pytest.mark.parametrize("lost", [0, 1, 20, 90])
@pytest.mark.parametrize("value", [b"v" * 150, batch(1001, b"a copy" * 9)])
def test_no_sound_batch_is_given_up_for_the_offsets_of_a_header_that_is_wrong(value, lost):
    parts = [batch(1000, b"x"), batch(1001, value)] + [batch(1002 + n, b"y") for n in range(20)]
    start = len(parts[0])
    # It claims offsets up to 1012: of the records that its size allows for, far too many.
    wrong = overwrite(b"".join(parts), start + 23, struct.pack(">i", 11))
    wrong = overwrite(wrong, start + 57, struct.pack(">i", 2**30))
    wrong = cut_out(wrong, start + 61, lost)

    table, (damage,), _ = scanned(wrong)

    assert (damage.position, damage.length) == (start, len(parts[1]) - lost)
    assert table.base_offset.tolist() == [1000, *range(1002, 1022)]


def test_messages_in_a_wrapper_that_stores_them_as_they_are_are_not_taken():
    noise = [bytes(random.Random(n).randbytes(200)) for n in range(4)]
    for magic, base in itertools.product((0, 1), (0, 1000)):
        parts = [
            wrapper(base + 3, *noise, magic=magic, codec=compression.SNAPPY),
            message(base + 4, b"x", magic=magic),
            message(base + 5, b"y", magic=magic),
        ]
        data, starts = b"".join(parts), starts_of(parts)
        assert noise[0] in data
        for at in (8, 10, 11, 20, 30):
            table, _, _ = scanned(flip(data, at), base_offset=base)

            assert table.position.tolist() == starts[1:], (magic, base, at)


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_sound_batches_between_two_damages_are_found_whatever_is_wrong_with_the_sizes(magic):
    parts = [entry_of(magic, 1000 + number, b"v" * 30) for number in range(9)]
    data, starts = b"".join(parts), starts_of(parts)
    for one, other in itertools.combinations(range(9), 2):
        for how in (bytes(4), struct.pack(">i", 2**30), b"\0\0\0\x50"):
            wrong = overwrite(overwrite(data, starts[one] + 8, how), starts[other] + 8, how)
            table, _, _ = scanned(wrong)

            kept = [at for number, at in enumerate(starts) if number not in (one, other)]
            assert table.position.tolist() == kept, (one, other, how)


def test_a_batch_whose_offset_lies_beyond_the_reach_of_the_segment_is_no_place_to_go_on():
    for offset in (BASE + 2**31, 2**62, BASE - 1, -1):
        data = b"\xff" * 30 + batch(offset, b"v")

        table, damages, _ = scanned(data)

        assert len(table) == 0
        assert ranges(damages) == [(0, len(data))]


def test_segments_at_the_ends_of_the_offset_range_are_scanned():
    largest = 2**63 - 1
    for base in (0, 2**31, largest - 2**31, largest - 1, largest):
        data = batch(base, b"v")

        table, damages, _ = scanned(b"\xff" * 30 + data, base_offset=base)

        assert table.base_offset.tolist() == [base]
        assert ranges(damages) == [(0, 30)]


def test_a_batch_found_by_a_search_may_begin_at_every_byte_of_a_window():
    window = resync.FIRST_WINDOW
    data = batch(BASE, b"v")

    for junk in [*range(1, 90), *range(window - 90, window + 90)]:
        table, damages, _ = scanned(b"\xee" * junk + data)

        assert ranges(damages) == [(0, junk)]
        assert table.position.tolist() == [junk]
