"""Keys of the objects in a bucket of AutoMQ; ``ns`` is ``_kafka_`` and the id of the cluster.

=======================================  ===========================================================
``<hash>/ns/<object>``                   a stream object, a stream set object or a composite object;
                                         the hash is the object id as at least 8 hexadecimal digits,
                                         in reverse order
``<hash>/ns/node-<node>``                the sparse range index of a node; the hash is Java's hash
                                         of ``sparse-index<node>`` as 8 hexadecimal digits
``<MD5>/ns/<node>/<epoch>/wal/<a>-<b>``  an object of a WAL, for the WAL offsets from a below b; MD5
                                         of the node id; ``_<type>`` may follow the node id
``<MD5>/ns/<node>/<epoch>/wal/<a>``      the same, older: b is a plus the bytes of the records
``reservation/ns/<node>``                the owner of the WAL of a node
=======================================  ===========================================================

The key does not say the kind of a data object. A bucket may hold several clusters, and other keys,
such as those below ``__automq/``. Source: ``ObjectUtils`` (of ``s3.metadata`` and of
``s3.wal.impl.object``), ``ObjectReservationService``, ``Constants`` (AutoMQ f1ce98ec8981,
2026-08-21).
"""

import hashlib
import re
from enum import StrEnum

from logtool.lazy_dataclass import dataclass

NAMESPACE = "_kafka_"
RESERVATION = "reservation"
_LARGEST = 2**63 - 1


class ObjectKind(StrEnum):
    """Kind of an object by its key."""

    DATA = "data"
    RANGE_INDEX = "range-index"
    WAL = "wal"
    RESERVATION = "reservation"
    BLOCK_WAL = "block-wal"
    """A WAL on a device or in a file, of any name; no key in a bucket."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectName:
    """Parts of a key; None for a part that its kind does not have."""

    key: str
    kind: ObjectKind
    cluster_id: str | None = None
    object_id: int | None = None
    node_id: int | None = None
    wal_type: str | None = None
    """Type of the WAL; None for the usual one."""
    epoch: int | None = None
    """Epoch of the node that wrote the object of a WAL."""
    start_offset: int | None = None
    """WAL offset."""
    end_offset: int | None = None
    """WAL offset behind the object; None in the older form."""


_DATA = re.compile(r"([0-9a-f]{8,16})/_kafka_([^/]+)/([0-9]{1,19})", re.ASCII)
_INDEX = re.compile(r"([0-9a-f]{8})/_kafka_([^/]+)/node-([0-9]{1,10})", re.ASCII)
_RESERVATION = re.compile(r"reservation/_kafka_([^/]+)/([0-9]{1,10})(?:_([^/]+))?", re.ASCII)
_WAL = re.compile(
    r"([0-9A-F]{32})/_kafka_([^/]+)/([0-9]{1,10})(?:_([^/]+))?/([0-9]{1,19})/wal/"
    r"([0-9]{1,19})(?:-([0-9]{1,19}))?",
    re.ASCII,
)


def parse(key: str) -> ObjectName:
    """Read a key; a key that AutoMQ would not look for is of the kind UNKNOWN."""
    if (match := _DATA.fullmatch(key)) and key == data_key(match[2], int(match[3])):
        return ObjectName(
            key=key, kind=ObjectKind.DATA, cluster_id=match[2], object_id=int(match[3])
        )
    if (match := _INDEX.fullmatch(key)) and key == range_index_key(match[2], int(match[3])):
        return ObjectName(
            key=key, kind=ObjectKind.RANGE_INDEX, cluster_id=match[2], node_id=int(match[3])
        )
    if match := _RESERVATION.fullmatch(key):
        return ObjectName(
            key=key,
            kind=ObjectKind.RESERVATION,
            cluster_id=match[1],
            node_id=int(match[2]),
            wal_type=match[3],
        )
    match = _WAL.fullmatch(key)
    numbers = [int(one) for one in (match[5], match[6], match[7] or "0")] if match else []
    if match and match[1] == _md5(int(match[3])) and max(numbers) <= _LARGEST:
        return ObjectName(
            key=key,
            kind=ObjectKind.WAL,
            cluster_id=match[2],
            node_id=int(match[3]),
            wal_type=match[4],
            epoch=numbers[0],
            start_offset=numbers[1],
            end_offset=numbers[2] if match[7] else None,
        )
    return ObjectName(key=key, kind=ObjectKind.UNKNOWN)


def data_key(cluster_id: str, object_id: int) -> str:
    """Return the key of a stream object, a stream set object or a composite object."""
    return f"{f'{object_id:08x}'[::-1]}/{NAMESPACE}{cluster_id}/{object_id}"


def range_index_key(cluster_id: str, node_id: int) -> str:
    """Return the key of the sparse range index of a node."""
    hashed = 0
    for letter in f"sparse-index{node_id}":
        hashed = (hashed * 31 + ord(letter)) & 0xFFFFFFFF
    return f"{hashed:08x}/{NAMESPACE}{cluster_id}/node-{node_id}"


def wal_prefix(cluster_id: str, node_id: int) -> str:
    """Return the beginning of the keys of the objects of a node's WAL."""
    return f"{_md5(node_id)}/{NAMESPACE}{cluster_id}/{node_id}/"


def wal_key(cluster_id: str, node_id: int, epoch: int, start_offset: int, end_offset: int) -> str:
    """Return the key of an object of a WAL."""
    return f"{wal_prefix(cluster_id, node_id)}{epoch}/wal/{start_offset}-{end_offset}"


def reservation_key(cluster_id: str, node_id: int) -> str:
    """Return the key of the object that names the owner of a WAL."""
    return f"{RESERVATION}/{NAMESPACE}{cluster_id}/{node_id}"


def _md5(node_id: int) -> str:
    return hashlib.md5(str(node_id).encode(), usedforsecurity=False).hexdigest().upper()
