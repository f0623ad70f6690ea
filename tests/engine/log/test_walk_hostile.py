"""Hostile bytes: any bytes are scanned, and what a scan costs is bounded."""

import struct
import tracemalloc
import zlib

import pytest
from calls import calls_of
from damage import cut, flip, overwrite
from hypothesis import given
from hypothesis import strategies as st
from scans import MASKS, PARTS, SEGMENTS, Bytes, batch, message, ranges, rows, scanned

from logtool.log.batches import read_batches
from logtool.log.walk import scanner


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
    sound = [batch(1000 + i, b"v") for i in range(1000)]
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
    for i in range(2000):
        part = batch(1000 + i, b"v")
        parts.append(part if i % 2 else flip(part, 8 if i % 4 else 30))
    source = Bytes(b"".join(parts))

    table, damages, _ = scanned(source)

    assert len(table) == len(damages) == 1000
    assert source.bytes_read <= 3 * source.size
    few = Bytes(b"".join(parts[:500]))
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
