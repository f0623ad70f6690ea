"""Redpanda's snapshots (``snapshot``): a frame, metadata, and a payload.

The frame and what Raft has as metadata, little-endian:

====================  ======  =====================================================================
header_crc            uint32  CRC-32C of the 9 bytes behind it
metadata_crc          uint32  CRC-32C of the metadata
version               int8    1
metadata_size         int32
metadata                      see below; that of the kvstore is its last offset, an int64
payload                       to the end of the file; no CRC covers it
--------------------  ------  ---------------------------------------------------------------------
last_included_index   int64   the log begins behind this Raft offset
last_included_term    int64
version               int8    64 or more; less is the first byte of the configuration
latest_configuration          of the group; its form differs by release
cluster_time          int64   milliseconds
log_start_delta       int64   from version 64 on: see `offset_translation`
====================  ======  =====================================================================

The configuration is not decoded: what stands behind it is found from the end of the metadata.
Source: ``storage/snapshot.h``, ``raft/types.cc`` (Redpanda 1c6cff34ea, 2024-12-20).
"""

import struct

from logtool.formats.crc import crc32c
from logtool.lazy_dataclass import dataclass

VERSION = 1
FIRST_RAFT_VERSION = 64

_FRAME = struct.Struct("<IIbi")
_COVERED = struct.Struct("<Ibi")
_RAFT_HEAD = struct.Struct("<qqb")
_RAFT_FOOT = struct.Struct("<qq")
_INT64 = struct.Struct("<q")


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftSnapshot:
    """One snapshot; None for fields of the frame if the file is too short for a frame."""

    header_crc: int | None
    metadata_crc: int | None
    version: int | None
    metadata_size: int | None
    """Size of the metadata as stored."""
    metadata: bytes
    """Metadata, or as much of it as the file holds."""
    payload: bytes
    """Bytes behind the metadata, or the whole file if it has no frame."""

    @property
    def header_crc_holds(self) -> bool:
        """Return whether the frame is as it was written."""
        return self.header_crc is not None and self.header_crc == _header_crc(self)

    @property
    def metadata_crc_holds(self) -> bool:
        """Return whether all of the metadata is there, as it was written."""
        whole = len(self.metadata) == self.metadata_size
        return whole and self.metadata_crc == crc32c(self.metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftMetadata:
    """Description of a partition's log in its snapshot."""

    last_included_index: int
    last_included_term: int
    version: int | None
    """Version; None before versions were stored."""
    configuration: bytes
    """Not decoded."""
    cluster_time: int
    """Milliseconds."""
    log_start_delta: int | None
    """Raft offsets that are no Kafka offsets, up to `last_included_index`; None where the form has
    no such field."""


def parse(data: bytes) -> RaftSnapshot:
    """Split `data` into frame, metadata and payload. Never fails."""
    if len(data) < _FRAME.size:
        return RaftSnapshot(
            header_crc=None,
            metadata_crc=None,
            version=None,
            metadata_size=None,
            metadata=b"",
            payload=data,
        )
    header_crc, metadata_crc, version, size = _FRAME.unpack_from(data)
    behind = _FRAME.size + max(size, 0)
    return RaftSnapshot(
        header_crc=header_crc,
        metadata_crc=metadata_crc,
        version=version,
        metadata_size=size,
        metadata=data[_FRAME.size : behind],
        payload=data[behind:],
    )


def encode(snapshot: RaftSnapshot) -> bytes:
    """Return the bytes `parse` was given; the two are exact inverses."""
    fields = (
        snapshot.header_crc,
        snapshot.metadata_crc,
        snapshot.version,
        snapshot.metadata_size,
    )
    front = b"" if snapshot.header_crc is None else _FRAME.pack(*fields)
    return front + snapshot.metadata + snapshot.payload


def build(metadata: bytes, payload: bytes = b"") -> bytes:
    """Return a snapshot with both CRCs."""
    covered = _COVERED.pack(crc32c(metadata), VERSION, len(metadata))
    return struct.pack("<I", crc32c(covered)) + covered + metadata + payload


def raft_metadata(metadata: bytes) -> RaftMetadata | None:
    """Read the metadata of a partition's snapshot; None where it is too short."""
    if len(metadata) < _RAFT_HEAD.size + _RAFT_FOOT.size:
        return None
    index, term, version = _RAFT_HEAD.unpack_from(metadata)
    if version < FIRST_RAFT_VERSION:
        return RaftMetadata(
            last_included_index=index,
            last_included_term=term,
            version=None,
            configuration=metadata[_RAFT_HEAD.size - 1 : -_INT64.size],
            cluster_time=_INT64.unpack(metadata[-_INT64.size :])[0],
            log_start_delta=None,
        )
    cluster_time, delta = _RAFT_FOOT.unpack(metadata[-_RAFT_FOOT.size :])
    return RaftMetadata(
        last_included_index=index,
        last_included_term=term,
        version=version,
        configuration=metadata[_RAFT_HEAD.size : -_RAFT_FOOT.size],
        cluster_time=cluster_time,
        log_start_delta=delta,
    )


def encode_raft_metadata(raft: RaftMetadata) -> bytes:
    """Return the bytes `raft_metadata` was given."""
    head = struct.pack("<qq", raft.last_included_index, raft.last_included_term)
    version = b"" if raft.version is None else struct.pack("<b", raft.version)
    delta = b"" if raft.log_start_delta is None else _INT64.pack(raft.log_start_delta)
    return head + version + raft.configuration + _INT64.pack(raft.cluster_time) + delta


def _header_crc(snapshot: RaftSnapshot) -> int:
    fields = (snapshot.metadata_crc, snapshot.version, snapshot.metadata_size)
    return crc32c(_COVERED.pack(*fields))
