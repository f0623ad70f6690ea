"""Damage in a segment: each truncation, each flip and other damage is reported at its batch."""

import itertools
import random
import re
import struct

import pytest
from damage import cut, drop, flip, overwrite, repeat, swap, zero
from scans import (
    AT,
    BASE,
    LEN,
    MASKS,
    MODERN,
    PARTS,
    SEGMENTS,
    WHOLE,
    batch,
    every_segment,
    legacy,
    modern,
    ranges,
    rows,
    scanned,
    starts_of,
)

from logtool.log.damage import DamageReason


@every_segment
def test_every_truncation_keeps_the_whole_batches_and_reports_the_rest_as_incomplete(name):
    parts = SEGMENTS[name]
    data, starts = b"".join(parts), starts_of(parts)

    for size in range(1, len(data)):
        table, damages, _ = scanned(cut(data, size))

        whole = [at for at, part in zip(starts, parts, strict=True) if at + len(part) <= size]
        assert table.position.tolist() == whole
        end = sum(map(len, parts[: len(whole)]))
        assert ranges(damages) == ([] if end == size else [(end, size - end)])
        assert [d.reason for d in damages] == [DamageReason.INCOMPLETE] * len(damages)
        assert not any(d.resynchronised or d.framed for d in damages)


NOT_COVERED = frozenset([*range(8), *range(12, 16)])
"""Bytes of a magic 2 batch that no CRC covers and no scan can judge: its base offset and leader
epoch. Magic 0 and 1 have one such field, the offset."""


@pytest.mark.long
@pytest.mark.parametrize("name", MODERN)
def test_every_flip_is_reported_at_its_batch_and_every_other_batch_is_found(name):
    parts = SEGMENTS[name]
    data, starts = b"".join(parts), starts_of(parts)
    sound = rows(scanned(data)[0])

    for index, (start, part) in enumerate(zip(starts, parts, strict=True)):
        for at in range(len(part)):
            for mask in MASKS:
                table, damages, _ = scanned(flip(data, start + at, mask))

                if at in NOT_COVERED:
                    continue
                assert ranges(damages) == [(start, len(part))], (index, at, mask)
                assert rows(table) == sound[:index] + sound[index + 1 :]
                if at >= 16:
                    assert damages[0].framed
                    assert damages[0].reason in (DamageReason.CRC, DamageReason.MAGIC)
                    assert at == 16 or damages[0].reason is DamageReason.CRC


@pytest.mark.parametrize("name", MODERN)
def test_flips_outside_the_crc_are_not_seen_by_a_scan(name):
    parts = SEGMENTS[name]
    data = b"".join(parts)
    sound = rows(scanned(data)[0])

    for index, start in enumerate(starts_of(parts)):
        for at in sorted(NOT_COVERED):
            table, damages, _ = scanned(flip(data, start + at, 0x01))

            changed = {"base_offset", "last_offset"} if at < 8 else {"leader_epoch"}
            assert not damages
            for i, (before, after) in enumerate(zip(sound, rows(table), strict=True)):
                differing = {key for key in before if before[key] != after[key]}
                assert differing == (changed if i == index else set())


@pytest.mark.parametrize("magic", [0, 1])
def test_every_flip_in_an_old_format_is_reported_at_its_message(magic):
    parts = legacy(magic)
    data, starts = b"".join(parts), starts_of(parts)
    sound = rows(scanned(data)[0])

    for index, (start, part) in enumerate(zip(starts, parts, strict=True)):
        for at in range(len(part)):
            for mask in MASKS:
                table, damages, _ = scanned(flip(data, start + at, mask))

                if at < 8:
                    assert not damages
                    continue
                assert ranges(damages) == [(start, len(part))], (index, at, mask)
                assert rows(table) == sound[:index] + sound[index + 1 :]
                if at >= 12:
                    assert damages[0].framed


def test_a_flipped_magic_is_named_and_the_crc_vouches_for_the_rest():
    parts = modern(0)
    data = b"".join(parts)

    for magic in set(range(256)) - {2}:
        _, (damage,), _ = scanned(overwrite(data, len(parts[0]) + 16, bytes([magic])))

        assert damage.reason is (DamageReason.CRC if magic < 2 else DamageReason.MAGIC)
        assert damage.framed
        assert "magic 2" in damage.message
        if magic > 2:
            assert str(magic) in re.findall(r"\d+", damage.message)


@pytest.mark.parametrize(
    "size", [0, 1, 13, 14, 22, 48, 49, 100, 2**31 - 1, 2**31 - 13, -1, -12, -(2**31)]
)
def test_every_odd_size_field_is_damage_of_that_batch_alone(size):
    parts = modern(0)
    starts = starts_of(parts)

    for index, start in enumerate(starts):
        if len(parts[index]) - 12 == size:
            continue
        wrong = overwrite(b"".join(parts), start + 8, struct.pack(">i", size))
        table, damages, _ = scanned(wrong)

        assert ranges(damages) == [(start, len(parts[index]))]
        assert table.position.tolist() == starts[:index] + starts[index + 1 :]


def test_a_wrong_size_that_leads_to_a_later_batch_or_the_end_does_not_hide_those_between():
    parts = [batch(BASE + i, b"v" * 20) for i in range(6)]
    starts, length = starts_of(parts), len(parts[0])

    for first, last in itertools.combinations(range(len(parts) + 1), 2):
        if last == first + 1:
            continue
        swallowing = struct.pack(">i", (last - first) * length - 12)
        table, damages, _ = scanned(overwrite(b"".join(parts), starts[first] + 8, swallowing))

        assert ranges(damages) == [(starts[first], length)]
        assert table.position.tolist() == starts[:first] + starts[first + 1 :]


def test_every_pair_of_damaged_batches_is_reported_and_the_others_are_found():
    parts = modern(0)
    data, starts = b"".join(parts), starts_of(parts)

    for one, other in itertools.combinations(range(len(parts)), 2):
        for field in (8, 16, 30):
            wrong = flip(flip(data, starts[one] + field, 0x40), starts[other] + field, 0x40)
            table, damages, _ = scanned(wrong)

            kept = [at for i, at in enumerate(starts) if i not in (one, other)]
            assert table.position.tolist() == kept
            assert damages[0].position == starts[one]
            assert sum(d.length for d in damages) == len(parts[one]) + len(parts[other])


@pytest.mark.parametrize(
    ("data", "damages"),
    [
        (zero(WHOLE, AT[2], LEN[2]), [(AT[2], LEN[2], "zeros", False)]),
        (zero(WHOLE, AT[2] + 10, 50), [(AT[2], LEN[2], "size", False)]),
        (zero(WHOLE, AT[2] + 61, 5), [(AT[2], LEN[2], "crc", True)]),
        (zero(WHOLE, AT[1] + 20, LEN[1]), [(AT[1], LEN[1] + LEN[2], "crc", False)]),
        (zero(WHOLE, AT[5], LEN[5]), [(AT[5], LEN[5], "zeros", False)]),
        (WHOLE + bytes(5), [(len(WHOLE), 5, "incomplete", False)]),
        (WHOLE + bytes(20), [(len(WHOLE), 20, "zeros", False)]),
        (WHOLE + bytes(21), [(len(WHOLE), 21, "zeros", False)]),
        (WHOLE + bytes(9000), [(len(WHOLE), 9000, "zeros", False)]),
        (WHOLE + bytes(9000) + b"\1", [(len(WHOLE), 9001, "size", False)]),
        (WHOLE + bytes(14) + b"\1" * 12, [(len(WHOLE), 26, "size", False)]),
        (WHOLE + b"\xff" * 9000, [(len(WHOLE), 9000, "size", False)]),
        (drop(WHOLE, AT[1], LEN[1]), []),
        (drop(WHOLE, AT[1], 10), [(AT[1], LEN[1] - 10, "size", False)]),
        (drop(WHOLE, AT[1] + 70, 3), [(AT[1], LEN[1] - 3, "crc", False)]),
        (repeat(WHOLE, AT[1], LEN[1]), []),
        (repeat(WHOLE, AT[1] + 61, 4), [(AT[1], LEN[1] + 4, "crc", False)]),
        (swap(WHOLE, AT[1], AT[4], LEN[1]), []),
        (
            swap(WHOLE, AT[1] + 61, AT[4] + 61, LEN[1] - 61),
            [(AT[1], LEN[1], "crc", True), (AT[4], LEN[4], "crc", True)],
        ),
        (overwrite(WHOLE, AT[2], WHOLE[: LEN[1]])[: AT[3]], None),
    ],
    ids=itertools.count(),
)
def test_damage_is_reported_where_it_is(data, damages):
    table, found, _ = scanned(data)

    if damages is not None:
        got = [(d.position, d.length, str(d.reason), d.framed) for d in found]
        assert got == damages
        assert len(table) >= 4


def test_zeros_in_the_middle_followed_by_sound_batches_are_zeros_of_their_exact_length():
    for length in (12, 20, 21, 61, 4096, 4097, 300_000):
        data = PARTS[0] + bytes(length) + b"".join(PARTS[1:])

        table, (damage,), _ = scanned(data)

        assert (damage.position, damage.length, damage.reason) == (
            AT[1],
            length,
            DamageReason.ZEROS,
        )
        assert f"{length:,}" in damage.message
        assert damage.resynchronised
        assert len(table) == len(PARTS)


def test_a_real_size_of_random_damage_is_covered():
    rng = random.Random(5)
    parts = [batch(1000 + 3 * i, b"v" * rng.randrange(400), b"w", b"x") for i in range(300)]
    data, starts = b"".join(parts), starts_of(parts)

    for _ in range(40):
        wrong, hit = data, set()
        for index in rng.sample(range(300), 4):
            at = rng.choice([*range(8, 12), *range(16, len(parts[index]))])
            wrong = flip(wrong, starts[index] + at, rng.choice(MASKS))
            hit.add(index)

        table, _, _ = scanned(wrong)

        kept = [at for i, at in enumerate(starts) if i not in hit]
        assert table.position.tolist() == kept
