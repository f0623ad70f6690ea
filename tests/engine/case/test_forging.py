"""Forged CRCs, bodies without content, and streams of an exact size."""

import random
import zlib

import numpy as np
import pytest

from logtool.case import bodies, packing
from logtool.case.forging import SIZE, forge
from logtool.formats import compression, record
from logtool.formats.crc import crc32c


@pytest.mark.parametrize("magic", [1, 2])
def test_four_bytes_give_any_crc(magic):
    draw = random.Random(magic)
    checksum = crc32c if magic == 2 else zlib.crc32
    for size in (4, 5, 20, 300):
        for _ in range(20):
            data = bytearray(draw.randbytes(size))
            position, crc = draw.randrange(size - SIZE + 1), draw.getrandbits(32)
            before = bytes(data)
            forge(data, position, 0, size, crc, magic=magic)
            assert checksum(data) == crc
            assert data[:position] == before[:position]
            assert data[position + SIZE :] == before[position + SIZE :]


def test_a_body_has_the_offsets_the_largest_timestamp_and_exactly_the_size():
    draw, unmade = random.Random(7), []
    for count in (1, 2, 3, 40, 200):
        for gaps in (1, 5):
            offsets = np.cumsum([0, *(draw.randint(1, gaps) for _ in range(count - 1))])
            times = np.array([draw.randint(-3, 300) for _ in range(count)])
            least = 14 * count
            for size in (*range(least, least + 90), least + 8100, least + 20_000):
                made = bodies.body(offsets, times, size)
                if count == 1 and made is None:
                    unmade.append(size)
                    continue
                assert made is not None
                assert len(made.data) == size
                spans, damage = record.parse(memoryview(made.data), count)
                assert damage is None
                assert spans.offset_delta.tolist() == offsets.tolist()
                assert spans.timestamp_delta.max() == times.max()
                assert int(spans.timestamp_delta.argmax()) == int(times.argmax()) or times.max() < 1
                assert not any(made.data[size - 1 - made.free :])
    assert set(unmade) <= {65}  # no record has a length field for it


def test_a_body_that_does_not_fit_is_none():
    assert bodies.body(np.arange(3), np.zeros(3, int), 20) is None
    made = bodies.body(np.arange(3), np.zeros(3, int), 21)
    assert made is not None
    assert (len(made.data), made.free) == (21, 0)


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_stream_of_an_exact_size_has_free_bytes_in_the_value(codec):
    draw = random.Random(codec)
    fitted = 0
    for count in (1, 9, 30):
        for size in (count * 7 + 9, count * 7 + 60, count * 7 + 3000):
            made = bodies.body(np.arange(count), np.zeros(count, int), size)
            assert made is not None
            for wanted in (*range(20, 120, 7), size, size + 9, size + 40):
                packed = packing.pack(codec, made.data, wanted)
                if packed is None or packed.free is None:
                    continue
                fitted += 1
                data = bytearray(packed.data)
                assert len(data) == wanted
                data[packed.free : packed.free + 4] = draw.randbytes(4)
                found = bytes(compression.decompress(codec, memoryview(data)))
                assert len(found) == size
                begin = size - 1 - made.free
                assert found[:begin] == made.data[:begin]
                assert found[-1] == 0
    assert fitted > 20
