"""Scans of sound segments, of control batches, and of batches larger than a buffer."""

import gc
import itertools
import tracemalloc
from dataclasses import fields

import pytest
from damage import flip
from log_dir_damage import crc_zero
from scans import (
    AT,
    BASE,
    LEN,
    PARTS,
    SEGMENTS,
    WHOLE,
    Bytes,
    batch,
    control,
    every_segment,
    marker,
    message,
    modern,
    ranges,
    rows,
    scanned,
    starts_of,
)

from logtool.formats import record_batch
from logtool.log.batches import read_batches
from logtool.log.damage import DamageReason
from logtool.log.walk import scanner


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
    kept = [
        (chunk.data, chunk.data_position) for chunk in read_batches(Bytes(data), base_offset=BASE)
    ]
    assert len(kept) > 9
    for piece, position in kept:
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


@pytest.mark.parametrize("damaged", [False, True])
def test_positions_may_be_larger_than_2_gib(damaged):
    far = 2**31 - AT[1]

    class Far(Bytes):
        def read_into(self, buffer, position):
            return super().read_into(buffer, position - far)

    data = flip(WHOLE, AT[3] + 30) if damaged else WHOLE
    table, damages, _ = scanned(Far(data, size=far + len(WHOLE)), start=far)

    assert table.position.tolist() == [far + at for at in AT if not damaged or at != AT[3]]
    assert ranges(damages) == ([(far + AT[3], LEN[3])] if damaged else [])


def test_a_valid_batch_whose_crc_is_0_is_sound():
    table, damages, _ = scanned(crc_zero(BASE))

    assert table.crc.tolist() == [0]
    assert not damages


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
        (batch(BASE, payload=b"", codec=0x30, producer_id=5, record_count=-1), -1, "record count"),
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


def test_no_chunk_is_long_in_front_of_damage_or_behind_it(monkeypatch):
    """A run keeps to its rate and to its time from chunk to chunk."""
    monkeypatch.setattr(scanner, "BUFFER_SIZE", 1000)
    monkeypatch.setattr(scanner, "_LONGEST_CHUNK", 2000)
    parts = [batch(1000 + number, b"a" * 100) for number in range(200)]
    for data in (b"".join(parts), flip(b"".join(parts), sum(map(len, parts[:50])) + 90)):
        chunks = list(read_batches(Bytes(data), base_offset=BASE))
        ends = [chunk.end_position for chunk in chunks]
        assert ends[-1] == len(data)
        assert max(end - start for start, end in zip([0, *ends], ends, strict=False)) <= 3000


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


@pytest.mark.parametrize("most", [1, 10])
def test_what_a_scan_held_goes_with_it_and_waits_for_no_garbage_collector(most):
    data = batch(BASE, b"a") + flip(batch(BASE + 1, b"b"), 40) + batch(BASE + 2, b"c")
    while gc.collect():  # what one collection finalizes may free more for the next
        pass
    gc.disable()
    try:
        taken = list(itertools.islice(read_batches(Bytes(data), base_offset=BASE), most))
        found = gc.collect()
    finally:
        gc.enable()

    assert taken
    assert not found


def test_chunks_keep_their_tables_when_the_buffer_is_used_again(monkeypatch):
    monkeypatch.setattr(scanner, "BUFFER_SIZE", 200)
    tables = [chunk.table for chunk in read_batches(Bytes(WHOLE), base_offset=BASE)]

    assert rows(record_batch.concat(tables)) == rows(scanned(WHOLE)[0])
    assert len(tables) > 1


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
        kept = table.position.base
        assert kept is None or kept.nbytes <= 8 * len(fields(table)) * len(table)


def test_a_scan_that_is_over_waits_for_no_garbage_collection():
    data = bytes(scanner.MOST_ROWS * 26)
    tracemalloc.start()
    gc.disable()
    try:
        for _ in range(20):
            list(read_batches(Bytes(data), base_offset=BASE))
        kept, most = tracemalloc.get_traced_memory()
    finally:
        gc.enable()
        tracemalloc.stop()

    assert kept < most / 4
