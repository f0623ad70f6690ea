"""Batches and damage without payload: the same headers at the same positions.

The header of each batch stays as it is, with its CRC: four of the bytes that stand for payload are
chosen so that it holds (`logtool.case.forging`). A CRC gives away a payload of a few bytes, so the
CRC of a batch with less than `LEAST_FREE` bytes of payload is replaced.
"""

import zlib
from collections.abc import Iterator
from dataclasses import field
from enum import Enum
from itertools import product

import numpy as np

from logtool.case import bodies, packing, renamed_records
from logtool.case.forging import SIZE, forge
from logtool.case.renaming import Renaming
from logtool.errors import FormatError
from logtool.formats import compression, legacy_batch
from logtool.formats.crc import crc32c
from logtool.formats.messages.internal_topics import framed_message, parse_frame
from logtool.formats.names import CLUSTER_METADATA
from logtool.formats.record import RecordSpans
from logtool.formats.record_batch import CODEC_MASK, HEADER_SIZE, LOG_OVERHEAD, MAGIC, Column
from logtool.lazy_dataclass import dataclass
from logtool.log.chunk import Chunk
from logtool.log.decoded import without_secrets
from logtool.log.record_table import RecordTable, Unread
from logtool.log.records import batch_records, batch_spans, one_batch, pieces, read_together

LEAST_FREE = 8
"""Bytes of payload from which on a batch keeps its CRC."""
_LARGEST_MARKER = 128
"""Bytes of the largest control batch that is kept as it is; an end-transaction marker has 78."""
_STAR = b"*"
_FAULTS = (b"", b"\xff" * 11, b"\xfe\xff\xff\xff\x0f", b"\x10" + bytes(3) + b"\x7e", b"\2", b"\1")
"""Bytes that make a decoder of records stop, for one reason or another."""
_LONGEST_FAULT = 12
_CRC, _CRC_START, _LEGACY_CRC, _LEGACY_START = 17, 21, 12, 16


class KeptContent(Enum):
    """Records that a case file keeps."""

    NOTHING = "nothing"
    METADATA = "metadata"
    """Records of the metadata log, without secrets."""
    STATE = "state"
    """Records of ``__transaction_state``, which hold no data of users."""


@dataclass(slots=True)
class BlankedCounts:
    """Numbers about logs without payload."""

    batches: int = 0
    records: int = 0
    replaced: int = 0
    """Batches with another CRC, because their payload is too small."""
    renamed: int = 0
    """Batches with another CRC, because names in them were replaced, and nothing else."""
    inexact: list[tuple[int, str, bool]] = field(default_factory=list)
    """Position of each batch whose records cannot be kept as they are, the reason, and whether all
    commands see it."""


class Blanking:
    """Takes the payload out of the batches of one log."""

    def __init__(
        self,
        content: KeptContent,
        limit: int = compression.DEFAULT_LIMIT,
        renaming: Renaming | None = None,
    ) -> None:
        self.counts = BlankedCounts()
        self._content, self._limit, self._renaming = content, limit, renaming

    def batches(self, chunk: Chunk) -> bytearray:
        """Return the bytes of the sound batches of a chunk, which holds all of theirs."""
        table = chunk.table
        start = int(table.position[0])
        out = bytearray(chunk.stretch(slice(0, len(table))))
        self.counts.batches += len(table)
        self.counts.records += table.records
        if self._content is KeptContent.STATE and not self._renaming:
            return out
        for some, ordinary in pieces(chunk, np.arange(len(table))):
            if self._content is not KeptContent.NOTHING:
                for row in some.tolist():
                    self._mask(chunk, row, out, int(table.position[row]) - start)
                continue
            together = read_together(chunk, some, limit=self._limit) if ordinary else None
            parts = _each(together) if together else (None for _ in some)
            for row, spans in zip(some.tolist(), parts, strict=True):
                self._blank(chunk, row, out, int(table.position[row]) - start, spans)
        return out

    def _blank(
        self, chunk: Chunk, row: int, out: bytearray, at: int, spans: RecordSpans | None
    ) -> None:
        """Take the payload out of one batch, which begins at `at` in `out`."""
        table = chunk.table
        if table.magic[row] < MAGIC:
            self._blank_legacy(chunk, row, out, at)
            return
        if table.is_control[row] and table.size[row] <= _LARGEST_MARKER:
            return  # clients cannot write it
        if spans is None:
            parts = list(batch_spans(chunk, row, limit=self._limit))
            if isinstance(parts[-1], Unread):
                self._blank_unread(chunk, row, out, at, parts)
                return
            spans = _joined([part for part in parts if isinstance(part, RecordSpans)])
        if not _content_of(spans):
            return
        size, codec = int(table.size[row]), int(table.codec[row])
        end = at + size
        whole = bodies.body(spans.offset_delta, spans.timestamp_delta, int(spans.size.sum()))
        if whole is None:
            self._give_up(chunk, row, out, at, "its records cannot be written without content")
            return
        if codec == compression.NONE:
            out[at + HEADER_SIZE : end] = whole.data
            free = end - 1 - SIZE if whole.free >= SIZE else None
        else:
            packed = packing.pack(codec, whole.data, size - HEADER_SIZE)
            if packed is None:
                self._give_up(chunk, row, out, at, "its stream is too small")
                return
            out[at + HEADER_SIZE : end] = packed.data
            free = None if packed.free is None else at + HEADER_SIZE + packed.free
        self._close(chunk, row, out, at, free if whole.free >= LEAST_FREE else None)

    def _close(self, chunk: Chunk, row: int, out: bytearray, at: int, free: int | None) -> None:
        """Make the CRC hold, by four bytes at `free` or by another CRC."""
        end = at + int(chunk.table.size[row])
        if free is not None:
            forge(out, free, at + _CRC_START, end, int(chunk.table.crc[row]), magic=MAGIC)
            return
        self.counts.replaced += 1
        _write_crc(out, at, end)

    def _give_up(self, chunk: Chunk, row: int, out: bytearray, at: int, reason: str) -> None:
        """Keep the header alone."""
        table = chunk.table
        end = at + int(table.size[row])
        out[at : at + HEADER_SIZE] = chunk.batch(row)[:HEADER_SIZE]
        out[at + HEADER_SIZE : end] = bytes(end - at - HEADER_SIZE)
        self._close(chunk, row, out, at, end - SIZE if end - at - HEADER_SIZE >= SIZE else None)
        self.counts.inexact.append((int(table.position[row]), reason, False))

    def _blank_unread(
        self,
        chunk: Chunk,
        row: int,
        out: bytearray,
        at: int,
        parts: list[RecordSpans | Unread],
    ) -> None:
        """Keep the framing of the records before the fault in a batch that does not decode."""
        fault = parts[-1]
        end = at + int(chunk.table.size[row])
        if chunk.table.codec[row] != compression.NONE or not isinstance(fault, Unread):
            self._give_up(chunk, row, out, at, "its records do not decode")
            return
        kept = bytearray(out[at + HEADER_SIZE : end])
        behind = 0
        for part in parts:
            if isinstance(part, RecordSpans) and len(part):
                _clear(kept, part)
                behind = int(part.position[-1] + part.size[-1])
        free = _largest_content([part for part in parts if isinstance(part, RecordSpans)])
        if len(kept) - behind >= LEAST_FREE + _LONGEST_FAULT:
            free = len(kept) - SIZE
        for place, pattern in product((behind, fault.error.position), _FAULTS):
            kept[behind:] = bytes(len(kept) - behind)
            kept[place : place + len(pattern)] = pattern[: len(kept) - place]
            out[at + HEADER_SIZE : end] = kept
            again = one_batch(memoryview(bytes(out[at:end])), int(chunk.table.position[row]))
            found = list(batch_spans(again, 0, limit=self._limit))[-1]
            if isinstance(found, Unread) and str(found.error) == str(fault.error):
                self._close(chunk, row, out, at, None if free is None else at + HEADER_SIZE + free)
                return
        self._give_up(chunk, row, out, at, "its records do not decode")

    def _mask(self, chunk: Chunk, row: int, out: bytearray, at: int) -> None:
        """Put stars in the place of the secrets in one batch, and others in the place of names."""
        table, renaming = chunk.table, self._renaming
        end, is_control = at + int(table.size[row]), bool(table.is_control[row])
        if is_control and not renaming:
            return
        is_plain = table.magic[row] == MAGIC and table.codec[row] == compression.NONE
        parts = list(batch_records(chunk, row, limit=self._limit)) if is_plain else []
        tables = [part for part in parts if isinstance(part, RecordTable)]
        has_headers = renaming and any(part.spans.header_count.any() for part in tables)
        if not is_plain or len(tables) < len(parts) or has_headers:
            self._give_up(chunk, row, out, at, "its records cannot be searched for secrets")
            return
        starred, changed, masked = renaming.starred if renaming else 0, False, False
        for part in tables:
            for number in range(len(part.offset)):
                old = part.key(number), part.value(number)
                shown = old if is_control else self._without_secrets(*old)
                masked |= shown != old
                if renaming:
                    shown = _renamed(renaming, self._content, is_control, *shown)
                changed |= shown != old
                places = part.spans.key_position[number], part.spans.value_position[number]
                for data, place in zip(shown, places, strict=True):
                    begin = at + HEADER_SIZE + int(place)
                    out[begin : begin + len(data or b"")] = data or b""
        if changed:
            lost = masked or (renaming is not None and renaming.starred > starred)
            self.counts.replaced += lost
            self.counts.renamed += not lost
            _write_crc(out, at, end)

    def _without_secrets(
        self, key: bytes | None, value: bytes | None
    ) -> tuple[bytes | None, bytes | None]:
        return key, _masked(value) if value and self._content is KeptContent.METADATA else value

    def _blank_legacy(self, chunk: Chunk, row: int, out: bytearray, at: int) -> None:
        """Take the payload out of an entry of magic 0 or 1."""
        table = chunk.table
        end = at + int(table.size[row])
        entry = memoryview(bytes(out[at:end]))
        try:
            message = legacy_batch.parse(entry)
        except FormatError:
            return  # no length fits, and so no walk takes it for an entry
        key, value = (len(one) if one else 0 for one in (message.key, message.value))
        if not key + value:
            return
        value_at = end - value
        key_at = value_at - 4 - key
        free = value_at + value - SIZE if value >= SIZE else key_at + key - SIZE
        if message.attributes & CODEC_MASK:
            self._blank_wrapper(chunk, row, out, at, message)
            return
        out[key_at : key_at + key] = bytes(key)
        out[value_at:end] = bytes(value)
        self._close_legacy(chunk, row, out, at, free if key + value >= LEAST_FREE else None)

    def _close_legacy(
        self, chunk: Chunk, row: int, out: bytearray, at: int, free: int | None
    ) -> None:
        end = at + int(chunk.table.size[row])
        if free is not None:
            crc = int(chunk.table.crc[row])
            forge(out, free, at + _LEGACY_START, end, crc, magic=int(chunk.table.magic[row]))
            return
        self.counts.replaced += 1
        _write_legacy_crc(out, at, end)

    def _blank_wrapper(
        self, chunk: Chunk, row: int, out: bytearray, at: int, message: legacy_batch.Message
    ) -> None:
        """Take the payload out of the messages in a wrapper."""
        end = at + int(chunk.table.size[row])
        size = len(message.value or b"")
        codec = message.attributes & CODEC_MASK
        packed = None
        if message.value:
            stream = message.value
            if message.magic == 0 and codec == compression.LZ4:
                stream = legacy_batch.with_sound_lz4_checksum(stream)
            try:
                inner = compression.decompress(codec, memoryview(stream), self._limit)
                plain = bytearray(inner)
                _clear_entries(plain)
                packed = packing.pack(codec, bytes(plain), size)
            except FormatError:
                packed = None
        key = len(message.key or b"")
        key_at = end - size - 4 - key
        out[key_at : key_at + key] = bytes(key)
        if packed is None:
            out[end - size : end] = bytes(size)
            self._close_legacy(chunk, row, out, at, end - SIZE if size >= SIZE else None)
            text = "its messages cannot be written without content"
            self.counts.inexact.append((int(chunk.table.position[row]), text, True))
            return
        out[end - size : end] = packed.data
        free = None if packed.free is None else end - size + packed.free
        self._close_legacy(chunk, row, out, at, free)


def _renamed(
    renaming: Renaming, content: KeptContent, control: bool, key: bytes | None, value: bytes | None
) -> tuple[bytes | None, bytes | None]:
    """Return key and value of a record with other names in them."""
    if control:
        return key, renamed_records.control(renaming, key or b"", value or b"") if value else value
    if content is KeptContent.STATE:
        return renamed_records.state(renaming, key or b"", value)
    return _STAR * len(key) if key else key, (
        renamed_records.metadata(renaming, value) if value else value
    )


def _masked(value: bytes) -> bytes:
    """Return a record of the metadata log with stars in the place of what may be secret."""
    try:
        kind, _, at = parse_frame(value)
    except FormatError:
        return _STAR * len(value)
    if framed_message(CLUSTER_METADATA, kind) is None:
        return value[:at] + _STAR * (len(value) - at)
    return without_secrets(value)


def _each(together: RecordTable) -> Iterator[RecordSpans]:
    """Yield the records of each batch."""
    end = 0
    names = RecordSpans.__slots__
    for count in together.counts.tolist():
        start, end = end, end + count
        yield RecordSpans(*(getattr(together.spans, name)[start:end] for name in names))


def _joined(parts: list[RecordSpans]) -> RecordSpans:
    if len(parts) == 1:
        return parts[0]
    names = RecordSpans.__slots__
    return RecordSpans(*(np.concatenate([getattr(p, name) for p in parts]) for name in names))


def _content_of(spans: RecordSpans) -> int:
    """Return the bytes of keys, values and headers."""
    if not len(spans):
        return 0
    content = np.maximum(spans.key_length, 0) + np.maximum(spans.value_length, 0)
    return int((content + _header_sizes(spans)).sum())


def _largest_content(parts: list[RecordSpans]) -> int | None:
    """Return where four bytes of the largest value or key begin; None if all are too small."""
    places: list[tuple[int, int]] = []
    for part in parts:
        for start, length in (
            (part.key_position, part.key_length), (part.value_position, part.value_length)
        ):  # fmt: skip
            places += zip(length.tolist(), start.tolist(), strict=True)
    most, at = max(places, default=(0, 0))
    return at if most >= LEAST_FREE else None


def _header_sizes(spans: RecordSpans) -> Column:
    """Return the bytes of the headers of each record, with their lengths."""
    sizes: Column = spans.position + spans.size - spans.header_position
    return np.where(spans.header_count > 0, sizes, 0)


def _clear(data: bytearray, spans: RecordSpans) -> None:
    """Put zeros in the place of the keys and values of records; headers become one key."""
    for start, length in (
        *zip(spans.key_position.tolist(), spans.key_length.tolist(), strict=True),
        *zip(spans.value_position.tolist(), spans.value_length.tolist(), strict=True),
        *zip(spans.header_position.tolist(), _header_sizes(spans).tolist(), strict=True),
    ):
        if length > 0:
            data[start : start + length] = bytes(length)


def _clear_entries(data: bytearray) -> None:
    """Put zeros in the place of keys and values of entries of magic 0 and 1, one after the other.

    FormatError where they do not decode.
    """
    at = 0
    while at < len(data):
        size = LOG_OVERHEAD + int.from_bytes(data[at + 8 : at + LOG_OVERHEAD], "big", signed=True)
        end = at + size
        if size <= LOG_OVERHEAD or end > len(data):
            raise FormatError("an entry that does not fit", at)
        message = legacy_batch.parse(memoryview(bytes(data[at:end])))
        key, value = (len(one) if one else 0 for one in (message.key, message.value))
        data[end - value : end] = bytes(value)
        data[end - value - 4 - key : end - value - 4] = bytes(key)
        _write_legacy_crc(data, at, end)
        at = end


def _write_crc(data: bytearray, at: int, end: int) -> None:
    crc = crc32c(memoryview(data)[at + _CRC_START : end])
    data[at + _CRC : at + _CRC_START] = crc.to_bytes(4, "big")


def _write_legacy_crc(data: bytearray, at: int, end: int) -> None:
    crc = zlib.crc32(memoryview(data)[at + _LEGACY_START : end])
    data[at + _LEGACY_CRC : at + _LEGACY_START] = crc.to_bytes(4, "big")
