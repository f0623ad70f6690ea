"""The scan of Redpanda's segments: Kafka's table, the term and the type, and what is no batch."""

import struct
from pathlib import Path

import numpy as np
import pytest
import redpanda_files as rp
from crc32c import crc32c

from logtool.formats import _kernels
from logtool.formats.redpanda import record_batch
from logtool.log.batches import read_batches
from logtool.log.chunk import Chunk
from logtool.log.damage import DamageReason
from logtool.log.walk.redpanda_form import form_of

DATA = Path(__file__).parents[2] / "data" / "redpanda"
SEGMENT = (DATA / "test_segment.bin").read_bytes()
TIERED = (DATA / "3676-7429-77-1-v1.log.1").read_bytes()


FORM = form_of(3)


class Segment:
    def __init__(self, data: bytes) -> None:
        self.data, self.size = data, len(data)

    def read_into(self, buffer: memoryview, position: int) -> int:
        piece = self.data[position : position + len(buffer)]
        buffer[: len(piece)] = piece
        return len(piece)


def chunks(data: bytes, base: int = 0, **options) -> list[Chunk]:
    return [
        _kept(chunk)
        for chunk in read_batches(Segment(data), base_offset=base, form=FORM, **options)
    ]


def _kept(chunk: Chunk) -> Chunk:
    return Chunk(chunk.table, memoryview(bytes(chunk.data)), chunk.data_position, chunk.damage, [])


def found(data: bytes, base: int = 0) -> list[int]:
    return [int(at) for chunk in chunks(data, base) for at in chunk.table.position]


def damages(data: bytes, base: int = 0) -> list[tuple[int, int, DamageReason]]:
    return [(d.position, d.length, d.reason) for chunk in chunks(data, base) if (d := chunk.damage)]


def test_a_real_segment_has_kafkas_table_with_term_and_type():
    (chunk,) = chunks(SEGMENT, base=4)

    table = chunk.table
    assert table.position.tolist() == [0, 176, 349, 522, 695]
    assert table.size.tolist() == [176, 173, 173, 173, 173]
    assert table.base_offset.tolist() == table.last_offset.tolist() == [4, 5, 6, 7, 8]
    assert table.batch_type.tolist() == [2, 1, 1, 1, 1]
    assert table.leader_epoch.tolist() == [3] * 5
    assert table.producer_id.tolist() == [-1, 6001, 6002, 6003, 6004]
    assert table.crc.tolist() == [1312187775, 2139338321, 2048321278, 3353449318, 1899775904]
    assert table.magic.tolist() == [2] * 5


def test_its_batches_come_as_kafka_has_them():
    (chunk,) = chunks(TIERED, base=3676)

    header = record_batch.parse(TIERED)
    assert bytes(chunk.batch(0)) == record_batch.to_kafka(header, term=3) + TIERED[61:]
    assert chunk.table.last_offset.tolist() == [7429]


def test_zeros_behind_the_last_batch_are_no_damage():
    data = rp.log()
    for room in (1, 11, 60, 61, 4096, 5 * 1024 * 1024):
        assert found(data + bytes(room)) == rp.positions(data)
        assert damages(data + bytes(room)) == []
    assert chunks(bytes(4096)) == []
    assert damages(data + bytes(100) + rp.batch(40, b"x")) == [(len(data), 100, DamageReason.ZEROS)]


def test_a_header_crc_of_zero_is_a_crc():
    data = bytearray(rp.batch(5, b"x"))
    data[:4] = bytes(4)
    assert damages(bytes(data), 5)[0][2] is DamageReason.HEADER
    assert found(zero_crc()) == [0]


def zero_crc() -> bytes:
    """Return a batch without a body whose header's CRC is 0, by its base offset."""
    fields = (0, 0, 0, 0, -1, -1, -1, 1)
    crc = crc32c(struct.pack(">hiqqqhii", *fields))

    def head(base: int) -> bytes:
        return struct.pack(rp.HEADER, 0, 61, base, 1, crc, *fields)[4:]

    # The CRC is affine in the bits of the offset: solve for the bits that make it 0.
    zero = crc32c(head(0))
    rows = [(crc32c(head(1 << bit)) ^ zero, 1 << bit) for bit in range(62)]
    target, answer = zero, 0
    basis: dict[int, tuple[int, int]] = {}
    for value, bits in rows:
        while value and value.bit_length() in basis:
            other, more = basis[value.bit_length()]
            value, bits = value ^ other, bits ^ more
        if value:
            basis[value.bit_length()] = value, bits
    while target:
        value, bits = basis[target.bit_length()]
        target, answer = target ^ value, answer ^ bits
    return bytes(4) + head(answer)


@pytest.mark.parametrize("size", [1, 60, 61, 62, 200])
def test_every_cut_of_the_last_batch_is_reported(size):
    data = rp.log(batches=2)
    last = rp.positions(data)[-1]
    assert damages(data[: last + size]) == [(last, size, DamageReason.INCOMPLETE)]


def test_one_flipped_bit_costs_one_batch():
    data = rp.log(batches=3, size=8)
    at = rp.positions(data)
    ends = [*at[1:], len(data)]
    for byte in range(len(data)):
        hit = max(n for n, start in enumerate(at) if start <= byte)
        for bit in range(8):
            flipped = bytearray(data)
            flipped[byte] ^= 1 << bit
            reported = damages(bytes(flipped))
            reason = DamageReason.HEADER if byte - at[hit] < 61 else DamageReason.CRC
            assert reported == [(at[hit], ends[hit] - at[hit], reason)], (byte, bit)
            assert found(bytes(flipped)) == at[:hit] + at[hit + 1 :], (byte, bit)


def test_a_whole_batch_in_a_record_is_none_of_the_log():
    inner = rp.batch(500, b"inner")
    data = rp.batch(0, b"a") + rp.batch(1, inner, inner) + rp.batch(3, b"b") + rp.batch(4, b"c")
    at = rp.positions(data)
    for byte in (at[1], at[1] + 5, at[1] + 20, at[1] + 40, at[1] + 70):
        flipped = bytearray(data)
        flipped[byte] ^= 4
        assert found(bytes(flipped)) == [at[0], at[2], at[3]], byte - at[1]


@pytest.mark.parametrize("filler", [b"\0", b"\xff", b"\x55"])
def test_batches_between_two_damages_are_of_the_log(filler):
    """A disk lost two pages, each with a header whose size is gone."""
    data = bytearray(rp.log(batches=9))
    at = rp.positions(bytes(data))
    for hit in (2, 6):
        data[at[hit] : at[hit] + 70] = filler * 70
    assert found(bytes(data)) == [one for one in at if one not in (at[2], at[6])]
    # The batch before the second is damaged, too: its own size leads to none.
    data[at[5] : at[5] + 70] = filler * 70
    assert found(bytes(data)) == [one for one in at if one not in (at[2], at[5], at[6])]


def test_a_wrong_size_does_not_hide_where_the_next_batch_begins():
    inner = [rp.batch(base, b"inner") for base in (500, 600)]
    data = rp.batch(0, b"a") + rp.batch(1, *inner) + rp.batch(3, b"b") + rp.batch(4, b"c")
    at = rp.positions(data)
    for size in (61, 200, 2**20, 2**31 - 1):
        wrong = data[: at[1] + 4] + struct.pack("<i", size) + data[at[1] + 8 :]
        # Behind it comes more damage, up to which batches in records would be a chain as well.
        wrong = wrong[: at[3] + 66] + bytes([wrong[at[3] + 66] ^ 1]) + wrong[at[3] + 67 :]
        assert found(wrong) == [at[0], at[2]], size


def test_a_size_that_says_less_than_a_header_is_damage():
    data = rp.log(batches=3)
    at = rp.positions(data)[1]
    wrong = data[: at + 4] + struct.pack("<i", 60) + data[at + 8 :]
    assert damages(rp.sealed(wrong, at))[0][::2] == (at, DamageReason.SIZE)


def test_batches_go_by_in_flat_memory_and_in_any_buffers(monkeypatch):
    from logtool.log.walk import scanner

    data = rp.log(batches=200, size=100) + bytes(1000)
    whole = found(data)
    monkeypatch.setattr(scanner, "BUFFER_SIZE", 700)
    assert found(data) == whole == rp.positions(data)


def test_a_batch_that_is_not_held_in_memory_is_checked_all_the_same(monkeypatch):
    from logtool.log.walk import scanner

    monkeypatch.setattr(scanner, "LARGEST_BUFFERED_BATCH", 5000)
    monkeypatch.setattr(scanner, "BUFFER_SIZE", 1000)
    data = rp.batch(0, b"a") + rp.batch(1, bytes(9000)) + rp.batch(2, b"b")
    at = rp.positions(data)
    (first, large, last) = chunks(data)
    assert [*first.table.position, *large.table.position, *last.table.position] == at
    assert large.table.row(0) | {"position": 0} == chunks(data[at[1] : at[2]], 1)[0].table.row(
        0
    ) | {"position": 0}
    flipped = bytearray(data)
    flipped[at[1] + 8000] ^= 1
    assert damages(bytes(flipped)) == [(at[1], at[2] - at[1], DamageReason.CRC)]


def test_only_data_in_one_piece_is_plain():
    data = rp.batch(0, b"a") + rp.batch(1, b"b")
    assert next(read_batches(Segment(data), base_offset=0, form=FORM)).plain is not None
    data += rp.batch(2, b"c", kind=rp.TX_FENCE)
    assert next(read_batches(Segment(data), base_offset=0, form=FORM)).plain is None


def test_the_walk_leaves_what_is_no_sound_batch_as_it_was():
    data = bytearray(rp.log(batches=2))
    at = rp.positions(bytes(data))
    data[at[2] + 100] ^= 1
    before = bytes(data)
    rows = np.full((_kernels.BATCH_COLUMNS, 9), 77, np.int64)

    count, stop, why = _kernels.walk_redpanda(memoryview(data), 0, len(data), 0, 3, rows, 0)

    assert (count, stop, why) == (2, at[2], _kernels.BAD_CRC)
    assert bytes(data[at[2] :]) == before[at[2] :]
    assert (rows[-_kernels.CONTROL_COLUMNS :] == 77).all()
