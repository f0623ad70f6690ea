"""Manifests of remote segments as the tiered storage plugin of Aiven writes them.

A remote segment is three objects with one key but for the suffix:

========================  ==========================================================================
``KEY.log``               the chunks of the log, one behind the other
``KEY.indexes``           the indexes, one behind the other; encrypted one by one, never compressed
``KEY.rsm-manifest``      JSON: sizes of the chunks, ranges of the indexes, compression, encryption
========================  ==========================================================================

The key is ``<prefix><topic>-<topic id>/<partition>/<offset, 20 digits>-<segment id>``. A chunk has
``originalChunkSize`` bytes of the log, the last one what is left. It is a zstd frame if
``compression`` is true, and is then encrypted with AES-256-GCM (12 bytes in front, 16 behind) if
there is ``encryption``. The sizes of the chunks in the object are all the same but for the last
(``fixed``), or are listed (``variable``): base64 of a zstd frame of big-endian numbers, which are
count int32, and with one chunk its size int32; else a base int32, the bytes of a difference int8,
the differences to the base of all chunks but the last, and the size of the last int32.

Custom metadata of a segment in ``__remote_log_metadata`` are tagged fields: 0 remote size (zigzag
varint), 1 prefix and 2 key of the objects (compact strings), if they differ from the rule.

Source: ``SegmentManifestV1``, ``FixedSizeChunkIndex``, ``VariableSizeChunkIndex``,
``ChunkSizesBinaryCodec``, ``SegmentIndexesV1``, ``ObjectKeyFactory``,
``SegmentCustomMetadataField`` (tiered-storage-for-apache-kafka 8fb15816, 2026-05-04).
"""

import base64
import binascii
import json
import struct
from typing import Any

import cramjam

from logtool.errors import FormatError
from logtool.formats.java_text import parse_uuid
from logtool.lazy_dataclass import dataclass

VERSION = "1"
INDEXES = ("offset", "timestamp", "producerSnapshot", "leaderEpoch", "transaction")
"""Names of the indexes, in the order in which they lie in the object."""
OVERHEAD = 28
"""Bytes by which encryption makes a chunk or an index longer."""
_INT = struct.Struct(">i")
_HEAD = struct.Struct(">iib")
_MOST_CHUNKS = 2**24
"""More chunks than a segment of 2 GiB has with chunks of 128 bytes."""


@dataclass(frozen=True, slots=True)
class SegmentManifest:
    """One manifest."""

    chunk_size: int
    """Bytes of the log in each chunk but the last."""
    log_size: int
    """Bytes of the log."""
    chunks: tuple[int, ...]
    """Size of each chunk in the object."""
    indexes: dict[str, tuple[int, int]]
    """Position and size of each index in its object, by the names in `INDEXES`."""
    is_compressed: bool
    is_encrypted: bool
    segment: dict[str, Any] | None
    """The object ``remoteLogSegmentMetadata``; None without it."""

    @property
    def object_size(self) -> int:
        """Return the size of the object with the chunks."""
        return sum(self.chunks)

    @property
    def indexes_size(self) -> int:
        """Return the size of the object with the indexes."""
        return max((position + size for position, size in self.indexes.values()), default=0)

    @property
    def segment_id(self) -> str | None:
        """Return the id of the segment; None if the manifest does not say."""
        found = (self.segment or {}).get("remoteLogSegmentId")
        text = found.get("id") if isinstance(found, dict) else None
        return parse_uuid(text) if isinstance(text, str) else None

    def original_size(self, chunk: int) -> int:
        """Return the bytes of the log in a chunk."""
        return min(self.chunk_size, self.log_size - chunk * self.chunk_size)


def parse(data: bytes) -> SegmentManifest:
    """Return the manifest in an object; FormatError if the plugin could not read it."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"not JSON: {error}", getattr(error, "pos", 0)) from None
    if not isinstance(found, dict):
        raise FormatError("expected an object of JSON")
    version = found.get("version")
    if version != VERSION:
        raise FormatError(f"expected version {VERSION!r}, found {version!r}")
    index = _member(found, "chunkIndex", dict)
    chunk_size, log_size = _size(index, "originalChunkSize"), _size(index, "originalFileSize")
    if chunk_size < 1:
        raise FormatError("originalChunkSize is 0")
    metadata = found.get("remoteLogSegmentMetadata")
    return SegmentManifest(
        chunk_size=chunk_size,
        log_size=log_size,
        chunks=_chunks(index, -(-log_size // chunk_size)),
        indexes=_indexes(_member(found, "segmentIndexes", dict)),
        is_compressed=_member(found, "compression", bool),
        is_encrypted=found.get("encryption") is not None,
        segment=metadata if isinstance(metadata, dict) else None,
    )


def encode_sizes(sizes: tuple[int, ...]) -> bytes:
    """Return the list of a variable chunk index, before zstd and base64."""
    *others, last = sizes
    if not others:
        return _INT.pack(1) + _INT.pack(last)
    base = min(others)
    width = max(1, *((size - base).bit_length() + 7 >> 3 for size in others))
    deltas = b"".join((size - base).to_bytes(width, "big") for size in others)
    return _HEAD.pack(len(sizes), base, width) + deltas + _INT.pack(last)


def decode_sizes(data: bytes) -> tuple[int, ...]:
    """Return the sizes in such a list; FormatError where it does not follow its format."""
    if len(data) < 2 * _INT.size:
        raise FormatError("the list of chunk sizes is too short")
    count, first = _INT.unpack_from(data)[0], _INT.unpack_from(data, _INT.size)[0]
    if count == 1:
        return (first,)
    width = data[_HEAD.size - 1] if len(data) >= _HEAD.size else 0
    end = _HEAD.size + (count - 1) * width
    if not 1 <= width <= _INT.size or count < 1 or len(data) != end + _INT.size:
        raise FormatError(f"the list of {count} chunk sizes has {len(data)} bytes")
    deltas = (data[at : at + width] for at in range(_HEAD.size, end, width))
    others = (first + int.from_bytes(delta, "big") for delta in deltas)
    return (*others, _INT.unpack_from(data, end)[0])


def _chunks(index: dict[str, Any], count: int) -> tuple[int, ...]:
    if count > _MOST_CHUNKS:
        raise FormatError(f"{count} chunks")
    kind = index.get("type")
    if kind == "fixed":
        size, last = _size(index, "transformedChunkSize"), _size(index, "finalTransformedChunkSize")
        return (*[size] * (count - 1), last) if count else ()
    if kind != "variable":
        raise FormatError(f"unknown type of chunk index {kind!r}")
    try:
        packed = base64.b64decode(_member(index, "transformedChunks", str), validate=True)
        sizes = decode_sizes(bytes(cramjam.zstd.decompress(packed)))
    except (binascii.Error, ValueError) as error:
        raise FormatError(f"transformedChunks: {error}") from None
    except cramjam.DecompressionError as error:
        raise FormatError(f"transformedChunks: {error}") from None
    if len(sizes) != count or min(sizes, default=0) < 0:
        raise FormatError(f"expected {count} chunks, found {len(sizes)}")
    return sizes


def _indexes(given: dict[str, Any]) -> dict[str, tuple[int, int]]:
    found = {}
    for name in INDEXES:
        one = given.get(name)
        if one is None and name == INDEXES[-1]:
            continue
        if not isinstance(one, dict):
            raise FormatError(f"index {name} is missing")
        found[name] = _size(one, "position"), _size(one, "size")
    return found


def _member(of: dict[str, Any], name: str, kind: type) -> Any:
    value = of.get(name)
    if not isinstance(value, kind):
        raise FormatError(f"{name}: expected {kind.__name__}, found {type(value).__name__}")
    return value


def _size(of: dict[str, Any], name: str) -> int:
    value = of.get(name)
    if type(value) is not int or not 0 <= value < 2**31:
        raise FormatError(f"{name}: expected a size, found {value!r}")
    return value
