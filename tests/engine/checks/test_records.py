"""Records of many batches are judged at once, with the findings of each batch alone."""

import random
import struct
from pathlib import Path

import cramjam
import numpy as np
import pytest
from crc32c import crc32c

from logtool.checks import records
from logtool.disk.files import LogFile
from logtool.formats import compression, record, record_batch
from logtool.formats.record_batch import HEADER_SIZE, LOG_OVERHEAD, TIMESTAMP_TYPE
from logtool.log.batches import read_batches
from logtool.log.chunk import Chunk

LIMIT = 3_000_000
SIZES = (10, 16_000, 70_000, 16_000, 300_000, 16_000, 16_000, 600_000)
"""Bytes of a record; the room into which batches are decompressed has 512 KiB."""


CODES = {
    "offset": ["batch/record-offsets"],
    "stamp": ["batch/max-timestamp"],
    "stream": ["batch/records"],
    # The last record, which has the largest timestamp, is not all there.
    "length": ["batch/records", "batch/max-timestamp"],
}


def batch(offset: int, size: int, codec: int, fault: str) -> bytes:
    value = random.Random(offset).randbytes(size // 2) + bytes(size - size // 2)
    late = 3 if fault == "offset" else 1
    payload = record.encode([record.Record(0, 3, value=value), record.Record(late, 4)])
    if fault == "length":
        payload = payload[:-1]
    latest = 9 if fault in ("stamp", "append") else 4
    made = record_batch.encode(
        payload, base_offset=offset, last_offset_delta=1, record_count=2, leader_epoch=0,
        base_timestamp=0, max_timestamp=latest,
        attributes=codec | (TIMESTAMP_TYPE if fault == "append" else 0),
    )  # fmt: skip
    if fault != "stream":
        return made
    cut = bytearray(made[: len(made) // 2 + 40])
    struct.pack_into(">i", cut, 8, len(cut) - LOG_OVERHEAD)
    struct.pack_into(">I", cut, 17, crc32c(bytes(cut[21:])))
    return bytes(cut)


@pytest.mark.parametrize("payload", [True, False])
def test_every_batch_is_judged_whatever_stands_next_to_it(tmp_path: Path, payload: bool) -> None:
    log = tmp_path / f"{0:020d}.log"
    faults = ("", "", "offset", "", "length", "append", "", "stream", "", "stamp", "")
    expected = []
    parts: list[bytes] = []
    draw = random.Random(7)
    for number in range(110):
        fault = faults[number % len(faults)]
        codec = draw.randrange(5)
        if fault == "stream" and codec == compression.NONE:
            codec = compression.GZIP
        parts.append(batch(2 * number, draw.choice(SIZES), codec, fault))
        expected += [(2 * number, code) for code in CODES.get(fault, ())]
    log.write_bytes(b"".join(parts))

    reported, alone = [], []
    with LogFile(log) as source:
        for chunk in read_batches(
            source, base_offset=0, payload=payload,
            inspect=lambda chunk: list(records.check_records(chunk, LIMIT)),
        ):  # fmt: skip
            reported += chunk.inspected
        for chunk in read_batches(source, base_offset=0):
            for row in range(len(chunk.table)):
                alone += records._check_batch(chunk, row, LIMIT)

    assert [(finding.first_offset, finding.code) for finding in reported] == expected
    assert reported == alone


@pytest.mark.parametrize("codec", range(5))
def test_only_what_looks_wrong_is_gone_through_alone(codec: int, monkeypatch) -> None:
    faults = ("", "append", "stamp", "", "append")
    parts = [batch(2 * at, 16_000, codec, fault) for at, fault in enumerate(faults)]
    data = b"".join(parts)
    positions = np.cumsum([0] + [len(part) for part in parts])[:-1]
    table = record_batch.parse(memoryview(data), positions.tolist())
    looked: list[int] = []
    monkeypatch.setattr(
        records, "_check_batch", lambda chunk, row, limit: looked.append(row) or iter(())
    )

    list(records.check_records(Chunk(table, memoryview(data), 0, None, []), LIMIT))

    assert looked == [2]


def one_block(payload: bytes) -> bytes:
    return xerial(bytes(cramjam.snappy.compress_raw(payload)))


def xerial(*blocks: bytes) -> bytes:
    framed = b"".join(struct.pack(">i", len(block)) + block for block in blocks)
    return compression.XERIAL_MAGIC + struct.pack(">ii", 1, 1) + framed


STREAMS = {
    "one block": one_block,
    "a raw block": lambda payload: bytes(cramjam.snappy.compress_raw(payload)),
    "blocks of 32 KiB": lambda payload: bytes(compression.compress(compression.SNAPPY, payload)),
    "two streams": lambda payload: one_block(payload[:9]) + one_block(payload[9:]),
    "an empty block": lambda payload: xerial(b"", bytes(cramjam.snappy.compress_raw(payload))),
    "a cut stream": lambda payload: one_block(payload)[:-1],
    "a block with a cut end": lambda payload: xerial(one_block(payload)[20:-1]),
    "a block that claims more": lambda payload: xerial(b"\xff\xff\x7f" + one_block(payload)[23:]),
    "nothing": lambda payload: b"",
    "a header alone": lambda payload: xerial(),
}


@pytest.mark.parametrize("limit", [100_000, LIMIT])
def test_every_shape_of_a_snappy_stream_is_judged_as_it_is_alone(limit: int) -> None:
    parts: list[bytes] = []
    for pack in STREAMS.values():
        for size in SIZES:
            for fault in ("", "offset", "length"):
                made = batch(2 * len(parts), size, compression.NONE, fault)
                head, payload = bytearray(made[:HEADER_SIZE]), made[HEADER_SIZE:]
                stream = pack(payload)
                struct.pack_into(">i", head, 8, HEADER_SIZE + len(stream) - LOG_OVERHEAD)
                struct.pack_into(">h", head, 21, compression.SNAPPY)
                parts.append(bytes(head) + stream)
    random.Random(3).shuffle(parts)
    data = memoryview(b"".join(parts))
    positions = np.cumsum([0] + [len(part) for part in parts])[:-1]
    chunk = Chunk(record_batch.parse(data, positions.tolist()), data, 0, None, [])

    reported = list(records.check_records(chunk, limit))

    alone = [f for row in range(len(parts)) for f in records._check_batch(chunk, row, limit)]
    assert reported == alone
    assert {finding.code for finding in reported} >= {"batch/records", "batch/record-offsets"}
    assert ("batch/too-large" in {finding.code for finding in reported}) == (limit < max(SIZES))


MIN = -(2**63)


@pytest.mark.parametrize(
    ("base", "deltas", "stored", "codes"),
    [
        # As brokers of 4.1.1 wrote the batches of librdkafka.
        (MIN, [0], -1, []),
        (MIN, [0, 1795619351180 - MIN - 2**64], 1795619351180, []),
        (-1000, [0, -5], -1, []),
        (-1000, [0, -5], -1000, []),
        (-1000, [0, 1001], 1, []),
        (-1000, [0, -5], -2, ["batch/max-timestamp"]),
        (-1000, [0, 1001], -1, ["batch/max-timestamp"]),
        (-1, [0], 7, ["batch/max-timestamp"]),
        (MIN, [0, -1], 5, ["batch/max-timestamp"]),
    ],
)
def test_the_largest_timestamp_wraps_and_is_never_below_none(
    tmp_path: Path, base: int, deltas: list[int], stored: int, codes: list[str]
) -> None:
    payload = record.encode([record.Record(at, delta) for at, delta in enumerate(deltas)])
    log = tmp_path / f"{0:020d}.log"
    log.write_bytes(record_batch.encode(
        payload, base_offset=0, last_offset_delta=len(deltas) - 1, record_count=len(deltas),
        leader_epoch=0, base_timestamp=base, max_timestamp=stored,
    ))  # fmt: skip
    with LogFile(log) as source:
        (chunk,) = read_batches(source, base_offset=0)
        assert [finding.code for finding in records.check_records(chunk, LIMIT)] == codes
        alone = records._check_batch(chunk, 0, LIMIT)
        assert [finding.code for finding in alone] == codes
