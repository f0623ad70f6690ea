"""A whole log without payload, at the same size, compared with the log that it stands for."""

import os
import tempfile
from collections.abc import Iterator
from dataclasses import fields
from typing import BinaryIO

import numpy as np

from logtool.case.blanking import BlankedCounts, Blanking, KeptContent
from logtool.case.forging import SIZE, forge, four_bytes
from logtool.case.renaming import Renaming
from logtool.disk.files import LogFile
from logtool.errors import UnreadableError
from logtool.formats import compression
from logtool.formats.crc import crc32c
from logtool.formats.record_batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    BatchTable,
)
from logtool.log.batches import read_batches
from logtool.log.chunk import LARGEST_BUFFERED_BATCH, Chunk
from logtool.log.damage import LONGEST_STUB, Damage, DamageReason

_PIECE = 1024 * 1024
_CRC_START = 21
_CRC_AT = {0: 12, 1: 12, 2: 17}
"""Position of the CRC by magic: damage is described by size field, magic byte and CRC."""
_MAGIC_AT = 16
_HEADS = {0: 18, 1: 26, 2: HEADER_SIZE}
"""Bytes of the fields before the key, or before the records, by magic."""
_REACH = 2**31
_COLUMNS = [one.name for one in fields(BatchTable)]


class BlankedLog:
    """A log without payload: its bytes in order, and what became of its batches."""

    def __init__(
        self,
        log: LogFile,
        base_offset: int,
        content: KeptContent,
        limit: int = compression.DEFAULT_LIMIT,
        renaming: Renaming | None = None,
    ) -> None:
        self._log, self._base_offset = log, base_offset
        self._blanking = Blanking(content, limit, renaming)
        self._kept: list[tuple[BatchTable, Damage | None]] = []
        self._spool: BinaryIO | None = None
        self.damages = 0

    @property
    def counts(self) -> BlankedCounts:
        """Return the numbers, complete after the last of the `blocks`."""
        return self._blanking.counts

    def blocks(self) -> Iterator[bytes | bytearray]:
        """Yield all its bytes; UnreadableError for a log that cannot be read, or changes.

        Each block is written to a file of its own, so that the whole can be compared.
        """
        at = 0
        with tempfile.TemporaryFile() as spool:
            for chunk in read_batches(self._log, base_offset=self._base_offset):
                self._kept.append((chunk.table, chunk.damage))
                for block in self._chunk(chunk):
                    _write(spool, block, at)
                    at += len(block)
                    yield block
            while at < self._log.size:
                # Nothing of Kafka's: what a walk leaves out at the end.
                block = bytes(min(_PIECE, self._log.size - at))
                at += len(block)
                yield block
            if at != self._log.size:
                raise UnreadableError(self._log.path, "changed while logtool read it")
            spool.truncate(at)
            if self.damages:
                self._compare(spool, at)

    def _chunk(self, chunk: Chunk) -> Iterator[bytes | bytearray]:
        if chunk.damage:
            self.damages += 1
            yield from self._damage(chunk.damage)
        elif int(chunk.table.size.max()) > LARGEST_BUFFERED_BATCH:
            yield from self._largest(chunk)
        else:
            yield self._blanking.batches(chunk)

    def _largest(self, chunk: Chunk) -> Iterator[bytes]:
        """Yield a batch that is too large to hold: its header, zeros, and bytes for its CRC."""
        head, size = bytes(chunk.data[:HEADER_SIZE]), int(chunk.table.size[0])
        magic = int(chunk.table.magic[0])
        self.counts.batches += 1
        self.counts.records += chunk.table.records
        if magic < MAGIC:
            text = "a message of more than 64 MiB cannot be put into a case file"
            raise UnreadableError(self._log.path, text)
        yield head
        crc = crc32c(head[_CRC_START:])
        left = size - HEADER_SIZE - SIZE
        while left:
            block = bytes(min(_PIECE, left))
            left -= len(block)
            crc = crc32c(block, crc)
            yield block
        yield four_bytes(crc, int(chunk.table.crc[0]), magic=magic)

    def _damage(self, damage: Damage) -> Iterator[bytes | bytearray]:
        """Yield the bytes of damage: its header where it has one, and zeros."""
        head = bytearray(self._log.read(damage.position, min(HEADER_SIZE, damage.length)))
        kept = _kept_bytes(head, damage.reason, self._base_offset)
        end = damage.position + damage.length
        crc = _sound_crc(self._log, damage, head)
        if crc is not None and len(head) == HEADER_SIZE:
            data = head + bytes(damage.length - HEADER_SIZE)
            forge(data, len(data) - SIZE, _CRC_START, len(data), crc, magic=MAGIC)
            yield data
            return
        yield kept
        at = damage.position + len(kept)
        # What is more than zeros must not look like zeros.
        marked = damage.reason is not DamageReason.ZEROS and not any(kept)
        while at < end:
            block = bytearray(min(_PIECE, end - at))
            at += len(block)
            block[-1] = marked and at == end
            yield block

    def _compare(self, spool: BinaryIO, size: int) -> None:
        """Note it if a walk finds other batches or other damage without the payload."""
        again = [
            (chunk.table, chunk.damage)
            for chunk in read_batches(_Spool(spool, size), base_offset=self._base_offset)
        ]
        if _plain(again) != _plain(self._kept):
            position = next((damage.position for _, damage in self._kept if damage), 0)
            text = "damage looks different without the payload around it"
            self.counts.inexact.append((position, text, True))


class _Spool:
    """The bytes of a log without payload, in a temporary file."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self.size = file, size

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill `buffer` from `position`; return the number of bytes that there were."""
        done = 0
        while done < len(buffer):
            count = os.preadv(self._file.fileno(), [buffer[done:]], position + done)
            if not count:
                break
            done += count
        return done


def _write(spool: BinaryIO, block: bytes | bytearray, at: int) -> None:
    """Write a block; one of zeros becomes a hole."""
    if np.frombuffer(block, np.uint8).any():
        spool.seek(at)
        spool.write(block)
        spool.flush()


def _plain(found: list[tuple[BatchTable, Damage | None]]) -> list[object]:
    """Return batches and damage in a form that can be compared; where chunks end does not count."""
    rows: list[object] = []
    for table, damage in found:
        columns = [getattr(table, name).tolist() for name in _COLUMNS if name != "crc"]
        rows += zip(*columns, strict=True) if len(table) else ()
        if damage:
            rows.append(damage)
    return rows


def _kept_bytes(head: bytearray, reason: DamageReason, base_offset: int) -> bytearray:
    """Return the first bytes of damage: a header that may be real, else the fields that are named.

    Anything else may be payload.
    """
    kept = bytearray(len(head))
    if len(head) > LONGEST_STUB:
        at = _CRC_AT.get(head[_MAGIC_AT], 0)
        of_crc = (slice(_MAGIC_AT, _MAGIC_AT + 1), slice(at, at + 4))
        named = of_crc if reason is DamageReason.CRC else of_crc[:1]
        size = slice(8, LOG_OVERHEAD)
        for part in (slice(0, _header_length(head, base_offset)), size, *named):
            kept[part] = head[part]
    return kept


def _header_length(head: bytearray, base_offset: int) -> int:
    """Return the bytes of the header that damage begins with; 0 without a header.

    Its offset has to be one of the segment: other bytes there have hardly ever such a number.
    """
    offset, size = int.from_bytes(head[:8], "big"), int.from_bytes(head[8:LOG_OVERHEAD], "big")
    if not base_offset <= offset < base_offset + _REACH or not size:
        return 0
    return _HEADS.get(head[_MAGIC_AT], LOG_OVERHEAD)


def _sound_crc(log: LogFile, damage: Damage, head: bytearray) -> int | None:
    """Return the CRC of damage that is sound but for the bytes that no CRC covers; else None."""
    if not HEADER_SIZE + SIZE <= damage.length <= LARGEST_BUFFERED_BATCH:
        return None
    crc = int.from_bytes(head[17:_CRC_START], "big")
    found = crc32c(log.read(damage.position + _CRC_START, damage.length - _CRC_START))
    return crc if found == crc else None
