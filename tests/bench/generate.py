"""Writes partition directories of sound segments, fast and always the same.

The records of a batch are one of a few bodies. The header differs from batch to batch (offsets,
timestamps, sequence numbers), and its CRC is joined with that of the body by the linearity of CRCs,
for thousands of batches at a time. Indexes are those of ``LogSegment.recover`` with the default
``index.interval.bytes``.
"""

import random
import shutil
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from crc32c import crc32c
from numpy.typing import NDArray

from logtool.formats import compression, offset_index, record, record_batch, time_index
from logtool.formats.record import Record
from logtool.formats.record_batch import HEADER, HEADER_SIZE, LOG_OVERHEAD, NO_PRODUCER_ID

KIB, MIB, GIB = 1024, 1024**2, 1024**3
RECORD_SIZE = 200
"""Bytes of a record, length field included; the last of a batch fills the rest."""
BODIES = 8
"""Different bodies that take turns."""

_VERSION = 1
_SEED = 4711
_BLOCK = 8 * MIB
_INTERVAL = 4096
_START = 1_700_000_000_000
_COVERED = HEADER_SIZE - 40
"""First byte of a header that the CRC covers."""


@dataclass(frozen=True)
class Spec:
    """The contents to write; sizes are bytes, those of batches before compression."""

    batch_size: int
    total_size: int
    codec: int = compression.NONE
    segment_size: int = GIB
    producers: int = 1
    """Idempotent producers that take turns; 0 for none."""

    @property
    def name(self) -> str:
        """Return a unique name of the spec."""
        return (
            f"v{_VERSION}-{compression.name(self.codec)}-{self.batch_size}b-{self.total_size}t-"
            f"{self.segment_size}s-{self.producers}p"
        )


def generate(root: Path, spec: Spec) -> Path:
    """Return a partition directory of `spec` below `root`; an existing one is reused."""
    target = root / spec.name
    if not target.is_dir():
        part = root / f"{spec.name}.part"
        shutil.rmtree(part, ignore_errors=True)
        directory = part / "bench-0"
        directory.mkdir(parents=True)
        _write(directory, spec)
        part.rename(target)
    return target / "bench-0"


def _write(directory: Path, spec: Spec) -> None:
    (directory / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (directory / "partition.metadata").write_text("version: 0\ntopic_id: bGlnaHRseUJlbmNoZWQxMg\n")
    batches = _Batches(spec)
    left, number = float(spec.total_size), 0
    while left >= batches.mean_size:
        count = max(1, int(min(spec.segment_size, left) / batches.mean_size))
        left -= _write_segment(directory, batches, number, count)
        number += count


def _write_segment(directory: Path, batches: "_Batches", number: int, count: int) -> int:
    """Write the segment of the batches `number` to `number + count`; return the size of the log."""
    stem = directory / f"{number * batches.records:020d}"
    sizes = batches.sizes[np.arange(number, number + count) % BODIES]
    ends = np.cumsum(sizes)
    with stem.with_suffix(".log").open("wb") as log:
        for piece in batches.take(int(ends[-1])):
            log.write(piece)
    _write_indexes(stem, ends - sizes, batches, number)
    return int(ends[-1])


def _write_indexes(
    stem: Path, positions: NDArray[np.int64], batches: "_Batches", number: int
) -> None:
    """Write both indexes by the rule of recovery; timestamps rise from batch to batch."""
    rows, last = [], 0
    where = positions.tolist()
    while (row := bisect_right(where, last + _INTERVAL)) < len(where):
        rows.append(row)
        last = where[row]
    offsets = (np.array(rows, np.int64) + 1) * batches.records - 1
    entries = np.empty(len(rows), offset_index.ENTRY)
    entries["relative_offset"], entries["position"] = offsets, positions[rows]
    stem.with_suffix(".index").write_bytes(entries.tobytes())
    if not rows or rows[-1] != len(where) - 1:
        rows.append(len(where) - 1)
    times = np.empty(len(rows), time_index.ENTRY)
    times["relative_offset"] = (np.array(rows, np.int64) + 1) * batches.records - 1
    times["timestamp"] = _START + (np.array(rows, np.int64) + number + 1) * batches.records - 1
    stem.with_suffix(".timeindex").write_bytes(times.tobytes())


class _Batches:
    """The batches of a spec in order, some MiB of them at a time."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        payload = spec.batch_size - HEADER_SIZE
        self.records = max(1, payload // RECORD_SIZE)
        plain = [_payload(payload, self.records, number) for number in range(BODIES)]
        self._bodies = [compression.compress(spec.codec, body) for body in plain]
        self.sizes = np.array([HEADER_SIZE + len(body) for body in self._bodies], np.int64)
        self.mean_size = float(self.sizes.mean())
        self._joins = [_CrcJoin(body) for body in self._bodies]
        turn = int(self.sizes.sum())
        self._turns = max(1, _BLOCK // turn)
        self._next = 0
        self._left = memoryview(b"")
        rows = [bytes(HEADER_SIZE) + body for body in self._bodies]
        self._block = np.tile(np.frombuffer(b"".join(rows), np.uint8), (self._turns, 1))

    def take(self, size: int) -> Iterator[memoryview]:
        """Yield the next `size` bytes of the log in pieces, each good until the next."""
        while size > 0:
            if not len(self._left):
                self._left = self._block_from(self._next)
                self._next += self._turns * BODIES
            piece = self._left[:size]
            self._left = self._left[len(piece) :]
            size -= len(piece)
            yield piece

    def _block_from(self, number: int) -> memoryview:
        """Return a block of batches, of which the first is batch `number` of the log."""
        at = 0
        for body, size in enumerate(self.sizes.tolist()):
            numbers = number + body + BODIES * np.arange(self._turns, dtype=np.int64)
            header = self._headers(numbers, size)
            raw = header.view(np.uint8).reshape(self._turns, HEADER_SIZE)
            header["crc"] = self._joins[body](raw[:, _COVERED:])
            self._block[:, at : at + HEADER_SIZE] = raw
            at += size
        return memoryview(self._block.data).cast("B")

    def _headers(self, numbers: NDArray[np.int64], size: int) -> NDArray[np.void]:
        first, producers = numbers * self.records, self._spec.producers
        header = np.zeros(len(numbers), HEADER)
        header["base_offset"] = first
        header["batch_length"] = size - LOG_OVERHEAD
        header["magic"] = record_batch.MAGIC
        header["attributes"] = self._spec.codec
        header["last_offset_delta"] = self.records - 1
        header["record_count"] = self.records
        header["base_timestamp"] = _START + first
        header["max_timestamp"] = _START + first + self.records - 1
        for name in ("producer_id", "producer_epoch", "base_sequence"):
            header[name] = NO_PRODUCER_ID
        if producers:
            header["producer_id"] = 1000 + numbers % producers
            header["producer_epoch"] = 0
            header["base_sequence"] = numbers // producers * self.records
        return header


class _CrcJoin:
    """Makes CRC-32Cs of rows of bytes with one body behind them, all rows at once."""

    def __init__(self, body: bytes) -> None:
        self._body_crc = crc32c(body)
        # The CRC of A + B is linear in that of A: one bit of it flips always the same bits.
        flips = [crc32c(body, 1 << bit) ^ crc32c(body, 0) for bit in range(32)]
        self._flips = np.zeros((4, 256), np.uint32)
        for bit, flip in enumerate(flips):
            with_bit = np.arange(256) >> bit % 8 & 1 == 1
            self._flips[bit // 8, with_bit] ^= np.uint32(flip)

    def __call__(self, rows: NDArray[np.uint8]) -> NDArray[np.uint32]:
        crc = np.full(len(rows), 0xFFFFFFFF, np.uint32)
        for column in rows.T:
            crc = _TABLE[(crc ^ column) & 0xFF] ^ crc >> np.uint32(8)
        crc = ~crc
        joined = np.full(len(rows), self._body_crc, np.uint32)
        for byte, flips in enumerate(self._flips):
            joined ^= flips[crc >> np.uint32(8 * byte) & 0xFF]
        return joined


# What one byte does to a CRC of zero, without the inversions before and behind.
_TABLE = np.array(
    [crc32c(bytes([byte]), 0xFFFFFFFF) ^ 0xFFFFFFFF for byte in range(256)], np.uint32
)


def _payload(size: int, count: int, number: int) -> bytes:
    """Return `count` records in `size` bytes: JSON of which a codec can save about a half."""
    source = random.Random(_SEED + number)
    parts, guess, left = [], size, size
    for row in range(count):
        want = RECORD_SIZE if row < count - 1 else left
        guess = min(guess, want)
        text = (
            f'{{"order":{source.randrange(10**9)},"customer":"{source.randbytes(16).hex()}",'
            f'"status":"paid","currency":"EUR","amount":{source.randrange(10**5)},"note":"'
        ).encode() + source.randbytes(want).hex().encode()
        for length in (guess, *range(want, 0, -1)):
            made = record.encode([Record(row, row, None, text[:length])])
            if len(made) == want:
                guess = length
                break
        else:
            raise ValueError(f"no record has {want} bytes")
        parts.append(made)
        left -= want
    return b"".join(parts)
