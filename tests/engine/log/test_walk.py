import gc
import itertools
import random
import struct
import tracemalloc
import zlib
from dataclasses import fields

import pytest
from calls import calls_of
from crc32c import crc32c
from damage import cut, drop, flip, overwrite, repeat, swap, zero
from hypothesis import given
from hypothesis import strategies as st

from logtool.errors import UnreadableError
from logtool.formats import compression, control_record, record, record_batch
from logtool.log.batches import read_batches
from logtool.log.damage import DamageReason
from logtool.log.walk import resync, scanner

BASE = 1000
MASKS = (1, 2, 4, 8, 16, 32, 64, 128, 255)


class Bytes:
    """A source that counts what is read, and may change under the reader."""

    def __init__(self, data: bytes, size: int | None = None) -> None:
        self.data = data
        self.size = len(data) if size is None else size
        self.calls = 0
        self.bytes_read = 0
        self.largest_read = 0

    def read_into(self, buffer: memoryview, position: int) -> int:
        assert position >= 0
        self.calls += 1
        piece = self.data[position : position + len(buffer)]
        buffer[: len(piece)] = piece
        self.bytes_read += len(piece)
        self.largest_read = max(self.largest_read, len(buffer))
        return len(piece)


def batch(
    offset: int, *values: bytes, codec: int = 0, payload: bytes | None = None, **more
) -> bytes:
    records = [record.Record(i, i, b"key", value) for i, value in enumerate(values)]
    return record_batch.encode(
        record.encode(records) if payload is None else payload,
        **{
            "base_offset": offset,
            "last_offset_delta": max(len(values) - 1, 0),
            "record_count": len(values),
            "leader_epoch": 3,
            "attributes": codec,
            "base_timestamp": 1700000000000,
            "max_timestamp": 1700000000009,
        }
        | more,
    )


def marker(offset: int, *, commit: bool = True, **more) -> bytes:
    key, value = control_record.encode_end_transaction(commit=commit, coordinator_epoch=7)
    return control(offset, key, value, **({"producer_id": 4000, "producer_epoch": 1} | more))


def control(offset: int, key: bytes | None, value: bytes | None, **more) -> bytes:
    payload = record.encode([record.Record(0, 0, key, value)])
    return batch(offset, payload=payload, record_count=1, codec=0x30, **more)


def message(offset: int, value: bytes, *, magic: int, codec: int = 0) -> bytes:
    stamp = struct.pack(">q", 1700000000000) if magic else b""
    body = bytes([magic, codec]) + stamp + struct.pack(">ii", -1, len(value)) + value
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def wrapper(offset: int, *values: bytes, magic: int, codec: int) -> bytes:
    first = 0 if magic else offset - len(values) + 1
    inner = b"".join(message(first + i, v, magic=magic) for i, v in enumerate(values))
    return message(offset, compression.compress(codec, inner), magic=magic, codec=codec)


def modern(codec: int) -> list[bytes]:
    return [
        batch(1000, b"one", b"two", codec=codec),
        marker(1002),
        batch(1003, b"three" * 4, codec=codec, producer_id=4000, producer_epoch=1, base_sequence=0),
        batch(1010, payload=b"", last_offset_delta=5),
        marker(1016, commit=False),
        batch(1020, b"last", b"words", codec=codec),
    ]


def legacy(magic: int) -> list[bytes]:
    return [
        message(1000, b"one", magic=magic),
        wrapper(1002, b"two", b"three", magic=magic, codec=compression.GZIP),
        message(1003, b"", magic=magic),
        wrapper(1005, b"two", b"three", magic=magic, codec=compression.LZ4),
        message(1006, b"last", magic=magic),
    ]


SEGMENTS = {f"magic 2 {name}": modern(codec) for codec, name in enumerate(compression.NAMES)}
SEGMENTS |= {f"magic {magic}": legacy(magic) for magic in (0, 1)}
SEGMENTS["upgraded"] = [
    message(1000, b"old", magic=0),
    wrapper(1003, b"a", b"b", magic=1, codec=compression.SNAPPY),
    batch(1004, b"new"),
    batch(1005, b"newer", codec=compression.ZSTD),
]
MODERN = [name for name in SEGMENTS if name.startswith("magic 2")]
every_segment = pytest.mark.parametrize("name", SEGMENTS)


def starts_of(parts: list[bytes]) -> list[int]:
    return list(itertools.accumulate(map(len, parts[:-1]), initial=0))


def is_sound(entry: bytes) -> bool:
    if len(entry) != 12 + int.from_bytes(entry[8:12], "big"):
        return False
    if entry[16] == 2:
        return len(entry) >= 61 and crc32c(entry[21:]) == int.from_bytes(entry[17:21], "big")
    least = {0: 26, 1: 34}[entry[16]]
    return len(entry) >= least and zlib.crc32(entry[16:]) == int.from_bytes(entry[12:16], "big")


def scanned(data: bytes | Bytes, *, start: int = 0, base_offset: int = BASE):
    """Return (table, damages, control errors by position); assert what holds for any bytes."""
    source = Bytes(data) if isinstance(data, bytes) else data
    tables, damages, errors, at = [], [], [], start
    for chunk in read_batches(source, base_offset=base_offset, start=start):
        if chunk.damage:
            assert len(chunk.table) == 0
            assert chunk.damage.position == at
            assert chunk.damage.length > 0
            assert chunk.damage.message
            assert not damages or damages[-1].resynchronised or damages[-1].framed
            damages.append(chunk.damage)
            at += chunk.damage.length
        else:
            assert len(chunk.table) > 0
            for row, position in enumerate(chunk.table.position.tolist()):
                assert position == at
                at += int(chunk.table.size[row])
                if isinstance(data, bytes):
                    assert is_sound(data[position:at])
                    assert chunk.batch(row) == data[position:at]
        errors += [(int(chunk.table.position[row]), str(e)) for row, e in chunk.control_errors]
        tables.append(chunk.table)
    if isinstance(data, bytes):
        assert at == max(len(data), start)
    table = record_batch.concat(tables)
    for damage in damages if isinstance(data, bytes) else ():
        assert damage.resynchronised == (damage.position + damage.length in table.position)
    return table, damages, errors


def ranges(damages) -> list[tuple[int, int]]:
    return [(damage.position, damage.length) for damage in damages]


def rows(table) -> list[dict[str, int]]:
    return [table.row(index) for index in range(len(table))]


# Sound files


@every_segment
def test_a_sound_segment_is_a_table_and_no_damage(name):
    parts = SEGMENTS[name]

    table, damages, errors = scanned(b"".join(parts))

    assert not damages
    assert not errors
    assert table.position.tolist() == starts_of(parts)
    assert table.size.tolist() == [len(part) for part in parts]
    assert table.magic.tolist() == [part[16] for part in parts]


def test_the_columns_of_a_sound_segment_hold_what_was_written():
    table, _, _ = scanned(b"".join(modern(0)))

    assert table.base_offset.tolist() == [1000, 1002, 1003, 1010, 1016, 1020]
    assert table.last_offset.tolist() == [1001, 1002, 1003, 1015, 1016, 1021]
    assert table.control_type.tolist() == [-1, 1, -1, -1, 0, -1]
    assert table.coordinator_epoch.tolist() == [-1, 7, -1, -1, 7, -1]
    assert table.record_count.tolist() == [2, 1, 1, 0, 1, 2]


def test_bytes_that_are_held_stay_as_they_are_while_the_scan_goes_on(monkeypatch):
    monkeypatch.setattr(scanner, "BUFFER_SIZE", 1000)
    data = b"".join(batch(BASE + n, b"%d" % n * (n % 40 + 1)) for n in range(200))
    held = [
        (chunk.data, chunk.data_position) for chunk in read_batches(Bytes(data), base_offset=BASE)
    ]
    assert len(held) > 9
    for piece, position in held:
        assert piece == data[position : position + len(piece)]


def test_two_buffers_suffice_who_holds_no_more_than_a_chunk_and_the_one_before(monkeypatch):
    monkeypatch.setattr(scanner, "BUFFER_SIZE", 1000)
    data = b"".join(batch(BASE + n, b"%d" % n) for n in range(200))
    before, buffers = None, {}
    for chunk in read_batches(Bytes(data), base_offset=BASE):
        buffers[id(chunk.data.obj)] = chunk.data.obj
        if before:
            piece, position = before
            assert piece == data[position : position + len(piece)]
            del piece
        before = chunk.data, chunk.data_position
        del chunk
    assert len(buffers) == 2


def test_nothing_is_in_an_empty_file_or_behind_the_end():
    assert list(read_batches(Bytes(b""), base_offset=0)) == []
    assert list(read_batches(Bytes(b"x" * 50), base_offset=0, start=50)) == []
    assert list(read_batches(Bytes(b"x" * 50), base_offset=0, start=99)) == []


@every_segment
def test_a_scan_may_begin_at_every_batch(name):
    parts = SEGMENTS[name]

    for index, start in enumerate(starts_of(parts)):
        table, damages, _ = scanned(b"".join(parts), start=start)

        assert not damages
        assert table.position.tolist() == starts_of(parts)[index:]


def test_a_valid_batch_whose_crc_is_0_is_sound():
    # Solve for the four bytes of the value that make the CRC zero: it is linear in its bits.
    def crc_of(value: int) -> int:
        return crc32c(batch(BASE, struct.pack(">I", value))[21:])

    basis: dict[int, tuple[int, int]] = {}
    for bit in range(32):
        column, chosen = crc_of(0) ^ crc_of(1 << bit), 1 << bit
        while column and column.bit_length() in basis:
            other, mask = basis[column.bit_length()]
            column, chosen = column ^ other, chosen ^ mask
        basis[column.bit_length()] = column, chosen
    left, value = crc_of(0), 0
    while left:
        other, mask = basis[left.bit_length()]
        left, value = left ^ other, value ^ mask

    table, damages, _ = scanned(batch(BASE, struct.pack(">I", value)))

    assert table.crc.tolist() == [0]
    assert not damages


# Every truncation


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


# Every flip

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
        assert "the CRC is that of a sound magic 2 batch" in damage.message
        if magic > 2:
            assert f"magic byte is {magic}" in damage.message


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


# Other damage: what is done on the left, what the scan says on the right

PARTS = modern(0)
WHOLE = b"".join(PARTS)
AT = starts_of(PARTS)
LEN = [len(part) for part in PARTS]


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
        assert f"{length:,} zero bytes" in damage.message
        assert damage.resynchronised
        assert len(table) == len(PARTS)


# Control batches


@pytest.mark.parametrize(
    ("data", "kind", "words"),
    [
        (marker(BASE), 1, None),
        (marker(BASE, commit=False), 0, None),
        (control(BASE, b"\0\0\0\2", b"", producer_id=-1), 2, None),
        (control(BASE, b"\0\0\x7f\xff", b"", producer_id=5), 32767, None),
        (control(BASE, None, b"", producer_id=5), -1, "key is null"),
        (control(BASE, b"\0\0\0\1", b"\0", producer_id=0), -1, "value is 1 bytes"),
        (control(BASE, b"\0", b"", producer_id=-1), -1, None),
        (batch(BASE, payload=b"", codec=0x30, producer_id=5), -1, None),
        (batch(BASE, payload=b"", codec=0x30, producer_id=5, record_count=1), -1, "not decode"),
        (batch(BASE, payload=b"", codec=0x30, producer_id=5, record_count=-1), -1, None),
        (message(BASE, b"v", magic=1, codec=0x20), -1, None),
    ],
    ids=itertools.count(),
)
def test_a_control_batch_is_its_type_or_an_error_at_its_row(data, kind, words):
    prefix = batch(BASE - 10, b"before")

    table, damages, errors = scanned(prefix + data, base_offset=0)

    assert not damages
    assert table.control_type.tolist() == [-1, kind]
    assert [position for position, _ in errors] == ([] if words is None else [len(prefix)])
    assert all(words in text for _, text in errors)


# Resynchronisation


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


def entry_of(magic: int, offset: int, value: bytes = b"nested" * 5) -> bytes:
    return batch(offset, value) if magic == 2 else message(offset, value, magic=magic)


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
    if nested in ("of offsets far ahead", "of magic 1"):  # others are told apart by nothing
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


def cut_out(data: bytes, at: int, count: int) -> bytes:
    return data[:at] + data[at + count :]


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


# Hostile bytes


@pytest.mark.parametrize("byte", range(256))
def test_a_file_of_one_byte_repeated_is_one_damage(byte):
    for size in (1, 17, 18, 20, 21, 60, 61, 5000):
        _, damages, _ = scanned(bytes([byte]) * size)

        assert ranges(damages) == [(0, size)]


pieces = st.one_of(
    st.binary(max_size=80),
    st.sampled_from([b"\0", b"\xff", b"\2"]).flatmap(
        lambda byte: st.integers(1, 90).map(lambda size: byte * size)
    ),
    st.sampled_from([part for parts in SEGMENTS.values() for part in parts]),
    st.tuples(st.sampled_from(PARTS), st.integers(0, 60), st.sampled_from(MASKS)).map(
        lambda t: flip(*t)
    ),
    st.tuples(st.sampled_from(PARTS), st.integers(0, 60)).map(lambda t: cut(*t)),
    st.builds(
        lambda size, magic: PARTS[2][:8] + struct.pack(">iib", size, 0, magic) + PARTS[2][17:],
        st.one_of(st.integers(-5, 400), st.integers(-(2**31), 2**31 - 1)),
        st.integers(-1, 3),
    ),
    st.integers(0, 2**62).map(lambda offset: batch(offset, b"v")),
)
files = st.lists(pieces, max_size=12).map(b"".join)


@given(files, st.integers(0, 40))
def test_any_bytes_are_sound_batches_and_damage_without_gap_or_overlap(data, start):
    scanned(data, start=start)


@given(files, st.sampled_from([61, 64, 100, 333, 1000]))
def test_any_bytes_scan_alike_with_every_buffer(data, size):
    wanted = scanned(data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scanner, "BUFFER_SIZE", size)
        got = scanned(data)

    assert rows(got[0]) == rows(wanted[0])
    assert got[1:] == wanted[1:]


@every_segment
@pytest.mark.parametrize("size", [1, 21, 61, 100, 150, 1000])
def test_every_damaged_segment_scans_alike_with_every_buffer(name, size, monkeypatch):
    data = b"".join(SEGMENTS[name])
    inputs = [data, data + bytes(30)] + [flip(data, at) for at in range(0, len(data), 7)]
    wanted = [scanned(each) for each in inputs]
    monkeypatch.setattr(scanner, "BUFFER_SIZE", size)

    for each, (table, damages, errors) in zip(inputs, wanted, strict=True):
        got = scanned(each)

        assert rows(got[0]) == rows(table)
        assert got[1:] == (damages, errors)


def test_where_one_offset_is_out_of_range_every_buffer_resynchronises_alike(monkeypatch):
    # The offset to beat is that of the last batch in range, wherever the buffer ends.
    odd = batch(2**40, b"far away")
    data = batch(1000, *[b"v"] * 20) + odd + b"\xff" * 30 + batch(1010, b"w") + batch(1020, b"x")

    for size in (61, 100, 1 << 20):
        monkeypatch.setattr(scanner, "BUFFER_SIZE", size)
        table, _, _ = scanned(data)

        assert table.base_offset.tolist() == [1000, 2**40, 1020]


def test_a_batch_larger_than_the_buffer_is_held_whole(monkeypatch):
    monkeypatch.setattr(scanner, "BUFFER_SIZE", 100)
    parts = [batch(1000, b"a"), batch(1001, b"b" * 5000), marker(1002), batch(1003, b"c")]

    table, damages, _ = scanned(b"".join(parts))
    assert not damages
    assert table.position.tolist() == starts_of(parts)

    table, damages, _ = scanned(flip(b"".join(parts), len(parts[0]) + 3000))
    assert ranges(damages) == [(len(parts[0]), len(parts[1]))]
    assert damages[0].framed


def test_a_batch_too_large_to_hold_is_checked_without_holding_it(monkeypatch):
    monkeypatch.setattr(scanner, "BUFFER_SIZE", 100)
    monkeypatch.setattr(scanner, "LARGEST_BUFFERED_BATCH", 1000)
    big = [batch(1001, b"b" * 5000), message(1001, b"b" * 5000, magic=1)]
    for large in big:
        parts = [batch(1000, b"a"), large, marker(1002), batch(1003, b"c")]
        data = b"".join(parts)

        source = Bytes(data)
        table, damages, errors = scanned(source)
        assert not damages
        assert not errors
        assert source.largest_read <= 100
        assert table.position.tolist() == starts_of(parts)
        assert table.last_offset.tolist() == [1000, 1001, 1002, 1003]
        assert table.max_timestamp[1] in (1700000000009, 1700000000000)

        _, damages, _ = scanned(Bytes(flip(data, len(parts[0]) + 3000)))
        assert ranges(damages) == [(len(parts[0]), len(large))]
        assert damages[0].reason is DamageReason.CRC
        assert damages[0].framed


def look_alike(size: int, *, offset: int = 2000) -> bytes:
    """Return a header that could be real, with a CRC that is not."""
    header = bytearray(batch(offset, payload=b"", record_count=1))
    header[8:12] = struct.pack(">i", size - 12)
    return bytes(header)


def assert_cost_is_bounded(data: bytes, budget: int) -> None:
    source = Bytes(data)

    calls = calls_of(lambda: scanned(source))

    assert source.bytes_read <= 8 * len(data) + budget
    assert calls <= 2.5 * len(data)


def test_look_alikes_by_the_thousand_cost_no_more_than_the_budget(monkeypatch):
    monkeypatch.setattr(scanner, "BUFFER_SIZE", 1 << 16)
    budget = 1 << 22
    monkeypatch.setattr(scanner, "SEARCH_BUDGET", budget)
    count = 10_000
    fakes = [look_alike((count - i) * 61) for i in range(count)]

    assert_cost_is_bounded(b"".join(fakes), budget)


def test_look_alikes_between_sound_batches_share_one_budget(monkeypatch):
    monkeypatch.setattr(scanner, "BUFFER_SIZE", 1 << 16)
    budget = 1 << 22
    monkeypatch.setattr(scanner, "SEARCH_BUDGET", budget)
    sound = [batch(1000 + i, b"v") for i in range(2000)]
    unit = len(sound[0]) + 61 + 30
    for largest in (10**9, 100_000):
        parts = []
        for i, part in enumerate(sound):
            left = (len(sound) - i) * unit
            parts.append(b"\xff" * 30 + look_alike(min(left, largest), offset=1000 + i) + part)

        assert_cost_is_bounded(b"".join(parts), budget)


@pytest.mark.parametrize("before", ["", "a damaged batch"])
def test_look_alikes_of_the_old_formats_share_the_budget_too(before, monkeypatch):
    # No search looks for them, but a size field can lead to one, and the scan can stop at one.
    monkeypatch.setattr(scanner, "BUFFER_SIZE", 1 << 16)
    monkeypatch.setattr(scanner, "LARGEST_BUFFERED_BATCH", 1000)
    budget = 1 << 22
    monkeypatch.setattr(scanner, "SEARCH_BUDGET", budget)
    damaged = flip(batch(1000, b"v"), 30) if before else b""
    fake = message(2000, b"v", magic=0)
    unit = len(damaged) + len(fake) + len(batch(1000, b"v"))
    count = 3000
    parts = [
        damaged
        + overwrite(fake, 8, struct.pack(">i", (count - i) * unit - len(damaged) - 13))
        + batch(1000 + i, b"v")
        for i in range(count)
    ]

    assert_cost_is_bounded(b"".join(parts), budget)


@pytest.mark.parametrize("size", range(14, 22))
def test_a_message_too_short_for_its_own_fields_is_no_place_to_go_on(size):
    body = b"\1" + bytes(size - 5)
    short = struct.pack(">qiI", 1002, size, zlib.crc32(body)) + body
    parts = [batch(1000, b"v"), batch(1001, b"w"), short, batch(1003, b"x")]

    for data in (b"".join(parts), flip(b"".join(parts), len(parts[0]) + 30)):
        table, damages, _ = scanned(data)

        assert table.base_offset.tolist()[-1] == 1003
        assert sum(map(len, parts[:2])) not in table.position
        assert damages


def test_a_whole_log_in_the_value_of_a_damaged_record_is_walked_once(monkeypatch):
    monkeypatch.setattr(scanner, "BUFFER_SIZE", 1 << 14)
    monkeypatch.setattr(scanner, "LARGEST_BUFFERED_BATCH", 1 << 14)
    monkeypatch.setattr(scanner, "SEARCH_BUDGET", 1 << 18)
    nested = b"".join(batch(1001 + i, b"v") for i in range(2000))
    parts = [batch(1000, b"x"), batch(1001, nested), batch(1002, b"y")]
    source = Bytes(flip(b"".join(parts), len(parts[0]) + 20))

    table, damages, _ = scanned(source)

    assert ranges(damages) == [(len(parts[0]), len(parts[1]))]
    assert table.base_offset.tolist() == [1000, 1002]
    assert source.bytes_read <= 6 * source.size


def test_the_budget_does_not_keep_a_scan_from_the_batches_behind_honest_damage(monkeypatch):
    monkeypatch.setattr(scanner, "SEARCH_BUDGET", 4000)
    parts = [b"\xff" * 30 + batch(1000 + i, b"v" * 300) for i in range(200)]

    table, damages, _ = scanned(b"".join(parts))

    assert len(table) == len(damages) == 200


def test_damage_at_every_other_batch_costs_time_and_reads_in_proportion():
    parts = []
    for i in range(4000):
        part = batch(1000 + i, b"v")
        parts.append(part if i % 2 else flip(part, 8 if i % 4 else 30))
    source = Bytes(b"".join(parts))

    table, damages, _ = scanned(source)

    assert len(table) == len(damages) == 2000
    assert source.bytes_read <= 3 * source.size
    few = Bytes(b"".join(parts[:1000]))
    assert calls_of(lambda: scanned(source)) <= 4.2 * calls_of(lambda: scanned(few))


@pytest.mark.parametrize("byte", [0x00, 0x02, 0xFF])
def test_memory_stays_flat_on_hostile_bytes(byte):
    data = Bytes(bytes([byte]) * (16 << 20))
    tracemalloc.start()
    try:
        list(read_batches(data, base_offset=0))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 4 * scanner.BUFFER_SIZE


def test_memory_stays_flat_where_every_other_byte_could_be_a_magic():
    data = Bytes(bytes([2, 0]) * (8 << 20))
    tracemalloc.start()
    try:
        list(read_batches(data, base_offset=0))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 32 * 1024 * 1024


@pytest.mark.parametrize("most", [1, 10])
def test_what_a_scan_held_goes_with_it_and_waits_for_no_garbage_collector(most):
    data = batch(BASE, b"a") + flip(batch(BASE + 1, b"b"), 40) + batch(BASE + 2, b"c")
    gc.collect()
    gc.disable()
    try:
        taken = list(itertools.islice(read_batches(Bytes(data), base_offset=BASE), most))
        found = gc.collect()
    finally:
        gc.enable()

    assert taken
    assert not found


# Files that change while they are read


@pytest.mark.parametrize("buffer", [61, 150, 1 << 20])
@pytest.mark.parametrize("broken", [False, True])
def test_a_file_that_shrinks_at_any_read_to_any_size_ends_early(buffer, broken, monkeypatch):
    monkeypatch.setattr(scanner, "BUFFER_SIZE", buffer)
    monkeypatch.setattr(scanner, "LARGEST_BUFFERED_BATCH", 100)
    data = flip(flip(WHOLE, AT[1] + 70), AT[3] + 8) if broken else WHOLE

    class Shrinking(Bytes):
        def __init__(self, when: int, left: int) -> None:
            super().__init__(data)
            self.when, self.left = when, left

        def read_into(self, buffer, position):
            if self.calls == self.when:
                self.data = self.data[: self.left]
            return super().read_into(buffer, position)

    for when in range(1, 25):
        for left in range(0, len(data), 13):
            table, damages, _ = scanned(Shrinking(when, left))

            end = sum(d.length for d in damages) + int(table.size.sum())
            assert end <= len(data)


def test_a_file_that_shrinks_while_damage_is_described_ends_there(monkeypatch):
    monkeypatch.setattr(scanner, "BUFFER_SIZE", AT[3] + 30)
    data = flip(WHOLE, AT[3] + 16, 0x40)

    class ShrinkingAtTheSecondRead(Bytes):
        def __init__(self, left: int) -> None:
            super().__init__(data)
            self.left = left

        def read_into(self, buffer, position):
            if self.calls == 1:
                self.data = self.data[: self.left]
            return super().read_into(buffer, position)

    for left in range(len(data)):
        source = ShrinkingAtTheSecondRead(left)
        table, damages, _ = scanned(source)

        assert source.calls > 1
        assert table.position.tolist()[:3] == AT[:3]
        assert sum(d.length for d in damages) <= max(0, left - AT[3])


def test_a_file_shorter_than_it_said_is_scanned_to_its_end():
    for size in range(0, len(WHOLE), 11):
        table, damages, _ = scanned(Bytes(WHOLE[:size], size=len(WHOLE)))
        wanted, wanted_damages, _ = scanned(WHOLE[:size])

        assert rows(table) == rows(wanted)
        assert ranges(damages) == ranges(wanted_damages)


def test_what_is_appended_meanwhile_is_not_looked_at():
    for size in (AT[2], AT[2] + 30, AT[3]):
        table, damages, _ = scanned(Bytes(WHOLE, size=size))
        wanted, wanted_damages, _ = scanned(WHOLE[:size])

        assert rows(table) == rows(wanted)
        assert damages == wanted_damages


def test_an_error_of_the_disk_ends_the_scan_and_no_other_error_takes_its_place(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(scanner, "BUFFER_SIZE", 100)
    data = flip(flip(WHOLE, AT[1] + 70), AT[3] + 8)

    class Failing(Bytes):
        def __init__(self, when: int) -> None:
            super().__init__(data)
            self.when = when

        def read_into(self, buffer, position):
            if self.calls == self.when:
                raise UnreadableError(tmp_path, "Input/output error")
            return super().read_into(buffer, position)

    whole = Bytes(data)
    scanned(whole)
    for when in range(whole.calls):
        with pytest.raises(UnreadableError):
            scanned(Failing(when))


def test_chunks_keep_their_tables_when_the_buffer_is_used_again(monkeypatch):
    monkeypatch.setattr(scanner, "BUFFER_SIZE", 200)
    tables = [chunk.table for chunk in read_batches(Bytes(WHOLE), base_offset=BASE)]

    assert rows(record_batch.concat(tables)) == rows(scanned(WHOLE)[0])
    assert len(tables) > 1


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


def test_the_table_has_a_column_for_everything_that_is_asked():
    table, _, _ = scanned(WHOLE)

    assert all(len(getattr(table, field.name)) == len(PARTS) for field in fields(table))


def test_tables_that_are_kept_hold_no_more_than_their_batches():
    between = b"\xff" * 100
    data = between.join(PARTS) + bytes(scanner.MOST_ROWS * 26)
    tables = [
        chunk.table for chunk in read_batches(Bytes(data), base_offset=BASE) if len(chunk.table)
    ]

    assert len(tables) == len(PARTS)
    for table in tables:
        held = table.position.base
        assert held is None or held.nbytes <= 8 * len(fields(table)) * len(table)


def test_a_scan_that_is_over_waits_for_no_garbage_collection():
    data = bytes(scanner.MOST_ROWS * 26)
    tracemalloc.start()
    gc.disable()
    try:
        for _ in range(20):
            list(read_batches(Bytes(data), base_offset=BASE))
        held, most = tracemalloc.get_traced_memory()
    finally:
        gc.enable()
        tracemalloc.stop()

    assert held < most / 4
