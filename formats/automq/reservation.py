"""The object that names the owner of a WAL (``reservation/...``): 21 bytes, big-endian.

===========  ======  ===============================================================================
magic        uint32  0x12345678
node_id      int64
epoch        int64   of the node
is_failover  uint8   1 while another node recovers the WAL
===========  ======  ===============================================================================

A writer compares the object after each upload, and stops if it is not as the writer wrote it.
Source: ``ObjectReservationService`` (AutoMQ f1ce98ec8981, 2026-08-21).
"""

import struct
from collections.abc import Iterator

from logtool.findings import Finding
from logtool.lazy_dataclass import dataclass

MAGIC = 0x12345678
_LAYOUT = struct.Struct(">IqqB")


@dataclass(frozen=True, slots=True)
class Reservation:
    """One reservation; None for fields of an object that is too short."""

    magic: int | None
    node_id: int | None
    epoch: int | None
    is_failover: int | None
    """The byte as stored."""
    trailing: bytes
    """Bytes behind the fields, or the whole object if it is too short."""


def parse(data: bytes) -> Reservation:
    """Read a reservation. Never fails."""
    if len(data) < _LAYOUT.size:
        return Reservation(None, None, None, None, data)
    magic, node_id, epoch, is_failover = _LAYOUT.unpack_from(data)
    return Reservation(magic, node_id, epoch, is_failover, data[_LAYOUT.size :])


def encode(parsed: Reservation) -> bytes:
    """Return the bytes `parse` was given; the two are exact inverses."""
    fields = (parsed.magic, parsed.node_id, parsed.epoch, parsed.is_failover)
    return (b"" if parsed.magic is None else _LAYOUT.pack(*fields)) + parsed.trailing


def check(parsed: Reservation, *, node_id: int | None = None) -> Iterator[Finding]:
    """Yield the finding for a reservation that AutoMQ did not write; `node_id` is of the key."""
    size = len(encode(parsed))
    sound = parsed.magic == MAGIC and parsed.is_failover in (0, 1) and not parsed.trailing
    own = node_id is None or parsed.node_id == node_id
    if not (sound and own and (parsed.epoch or 0) >= 0):
        yield Finding(
            "automq-reservation/format",
            f"expected {_LAYOUT.size} bytes with magic {MAGIC:#010x} and the node of the key, "
            f"found {size} bytes, node {parsed.node_id}",
            position=0,
            length=size,
        )


def build(node_id: int, epoch: int, *, is_failover: bool = False) -> bytes:
    """Return the object for an owner."""
    return _LAYOUT.pack(MAGIC, node_id, epoch, is_failover)
