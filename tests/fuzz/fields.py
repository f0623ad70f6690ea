"""Fields of files set to the limits of their types, behind CRCs that hold.

A random byte in a log breaks its CRC, and what reads the fields never sees it. These changes keep
the CRC right, so that every number a file can hold reaches the code that computes with it.
"""

import random
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

from crc32c import crc32c

_MAGIC_2 = (
    ("base_offset", 0, "q"), ("size", 8, "i"), ("leader_epoch", 12, "i"), ("magic", 16, "b"),
    ("attributes", 21, "h"), ("last_offset_delta", 23, "i"), ("base_timestamp", 27, "q"),
    ("max_timestamp", 35, "q"), ("producer_id", 43, "q"), ("producer_epoch", 51, "h"),
    ("base_sequence", 53, "i"), ("count", 57, "i"),
)  # fmt: skip
_REDPANDA = (
    ("size", 4, "i"), ("base_offset", 8, "q"), ("type", 16, "b"), ("attributes", 21, "h"),
    ("last_offset_delta", 23, "i"), ("first_timestamp", 27, "q"), ("max_timestamp", 35, "q"),
    ("producer_id", 43, "q"), ("producer_epoch", 51, "h"), ("base_sequence", 53, "i"),
    ("count", 57, "i"),
)  # fmt: skip
_LEGACY = (
    ("offset", 0, "q"), ("size", 8, "i"), ("magic", 16, "b"), ("attributes", 17, "b"),
    ("timestamp or key length", 18, "i"), ("timestamp", 18, "q"), ("key length", 26, "i"),
)  # fmt: skip
_HEADER = 61
_BITS = {"b": 8, "h": 16, "i": 32, "q": 64}
_NATURAL = (0, 1, 2, 3, -1, -2, 5, 29, 2**31 - 1, 2**31, -(2**31), 2**32, 2**53)
_VARINTS = (
    b"\x00", b"\x01", b"\x02", b"\x7f", b"\xfe\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x0f",
    b"\xff" * 9 + b"\x01", b"\xfe" + b"\xff" * 8 + b"\x01", b"\x80" * 10, b"\xff" * 11,
)  # fmt: skip
"""Varints at the limits of 32 and 64 bits, and some that are too long."""
Writer = Callable[[random.Random, bytes], tuple[bytes, str]]


def kind_of(path: Path) -> str:
    """Return the kind of a file by its name: a key of `WRITERS`, or another text."""
    name = path.name
    if ".base_index" in name or ".compaction_index" in name:
        return "redpanda-index"
    if "-v1.log" in name:
        return "redpanda"
    if name == "snapshot":
        return "redpanda-snapshot"
    if ".log" in name or name.endswith(".checkpoint"):
        return "log"
    for one in ("index", "timeindex", "txnindex", "snapshot"):
        if f".{one}" in name:
            return one
    return ""


def at_a_limit(draw: random.Random, code: str) -> int:
    """Return a number at or near a limit of the type of a field, or a small one."""
    bits = _BITS[code]
    top = 1 << (bits - 1)
    value = draw.choice((top - 1, -top, top - 2, 1 - top, *_NATURAL, draw.getrandbits(bits)))
    return (value + top) % (2 * top) - top


def _log(draw: random.Random, data: bytes) -> tuple[bytes, str]:
    """Change one entry of a log of Kafka, of any magic."""
    starts = _kafka_positions(data)
    if not starts:
        return data, "no batch"
    at = draw.choice(starts)
    end = at + 12 + struct.unpack_from(">i", data, at + 8)[0]
    entry = bytearray(data[at:end])
    if entry[16] == 2 and len(entry) >= _HEADER:
        done = _change(draw, entry, ">", _MAGIC_2, _HEADER)
        struct.pack_into(">I", entry, 17, crc32c(bytes(entry[21:])))
    else:
        done = _change(draw, entry, ">", _LEGACY, 18)
        struct.pack_into(">I", entry, 12, zlib.crc32(bytes(entry[16:])))
    return data[:at] + entry + data[end:], f"{done} of the batch at {at}"


def _redpanda(draw: random.Random, data: bytes) -> tuple[bytes, str]:
    """Change one batch of a segment of Redpanda."""
    starts, at = [], 0
    while at + _HEADER <= len(data):
        size = struct.unpack_from("<i", data, at + 4)[0]
        if size < _HEADER or at + size > len(data):
            break
        starts.append(at)
        at += size
    if not starts:
        return data, "no batch"
    at = draw.choice(starts)
    end = at + struct.unpack_from("<i", data, at + 4)[0]
    entry = bytearray(data[at:end])
    done = _change(draw, entry, "<", _REDPANDA, _HEADER)
    covered = struct.pack(">hiqqqhii", *struct.unpack_from("<hiqqqhii", entry, 21))
    struct.pack_into("<I", entry, 17, crc32c(covered + bytes(entry[_HEADER:])))
    struct.pack_into("<I", entry, 0, crc32c(bytes(entry[4:_HEADER])))
    return data[:at] + entry + data[end:], f"{done} of the batch at {at}"


def _change(
    draw: random.Random,
    entry: bytearray,
    order: str,
    layout: tuple[tuple[str, int, str], ...],
    body: int,
) -> str:
    """Set a field of the header, or change bytes of the records; return what was done."""
    way = draw.randrange(10)
    if way < 6 or len(entry) <= body:
        name, at, code = draw.choice(layout)
        at = min(at, len(entry) - _BITS[code] // 8)
        value = at_a_limit(draw, code)
        struct.pack_into(order + code, entry, at, value)
        return f"{name}={value}"
    for _ in range(draw.choice((1, 1, 3))):
        at = draw.randrange(body, len(entry))
        some = draw.choice((
            bytes((draw.choice((0, 1, 127, 128, 255, draw.randrange(256))),)),
            draw.choice(_VARINTS),
            struct.pack(">i", at_a_limit(draw, "i")),
            struct.pack(">q", at_a_limit(draw, "q")),
        ))  # fmt: skip
        # An entry of another size would need another frame.
        entry[at : at + len(some)] = some[: len(entry) - at]
    return "bytes of the records"


def _kafka_positions(data: bytes) -> list[int]:
    """Return where the entries of a log begin, as far as their sizes lead."""
    found, at = [], 0
    while at + 26 <= len(data):
        size = struct.unpack_from(">i", data, at + 8)[0]
        if size < 14 or at + 12 + size > len(data):
            break
        found.append(at)
        at += 12 + size
    return found


def _numbers(order: str, codes: str, start: int = 0) -> Writer:
    """Return a writer that sets one of the numbers of a table with rows of these types."""

    def write(draw: random.Random, data: bytes) -> tuple[bytes, str]:
        size = struct.calcsize(f"{order}{codes}")
        rows = (len(data) - start) // size
        if rows < 1:
            return data, "no row"
        # The end of an index is room that no broker reads.
        row = draw.choice((0, 0, 1, rows - 1, draw.randrange(rows))) % rows
        column = draw.randrange(len(codes))
        at = start + row * size + struct.calcsize(f"{order}{codes[:column]}")
        value = at_a_limit(draw, codes[column])
        out = bytearray(data)
        struct.pack_into(order + codes[column], out, at, value)
        return bytes(out), f"column {column} of row {row} = {value}"

    return write


def _snapshot(draw: random.Random, data: bytes) -> tuple[bytes, str]:
    """Change a producer snapshot."""
    if len(data) < 10:
        return data, "too short"
    if draw.random() < 0.2:
        out, done = bytearray(data), "count"
        struct.pack_into(">i", out, 6, at_a_limit(draw, "i"))
    else:
        changed, done = _numbers(">", "qhiqiqiq", 10)(draw, data)
        out = bytearray(changed)
    struct.pack_into(">I", out, 2, crc32c(bytes(out[6:])))
    return bytes(out), done


def _base_index(draw: random.Random, data: bytes) -> tuple[bytes, str]:
    """Change a number of an index of Redpanda, whose last four bytes are its CRC."""
    if len(data) < 20:
        return data, "too short"
    out = bytearray(data)
    at = draw.randrange(len(data) - 12)
    code = draw.choice("biq")
    value = at_a_limit(draw, code)
    struct.pack_into(f"<{code}", out, at, value)
    struct.pack_into("<I", out, len(out) - 4, crc32c(bytes(out[10:-4])))
    return bytes(out), f"{value} at {at}"


def _raft_snapshot(draw: random.Random, data: bytes) -> tuple[bytes, str]:
    """Change the metadata of a snapshot of Redpanda."""
    if len(data) < 22:
        return data, "too short"
    out = bytearray(data)
    at = draw.randrange(8, len(data) - 8)
    code = draw.choice("biq")
    value = at_a_limit(draw, code)
    struct.pack_into(f"<{code}", out, at, value)
    size = struct.unpack_from("<i", out, 9)[0]
    struct.pack_into("<I", out, 4, crc32c(bytes(out[13 : 13 + max(size, 0)])))
    struct.pack_into("<I", out, 0, crc32c(bytes(out[4:13])))
    return bytes(out), f"{value} at {at}"


WRITERS: dict[str, Writer] = {
    "log": _log,
    "redpanda": _redpanda,
    "redpanda-index": _base_index,
    "redpanda-snapshot": _raft_snapshot,
    "index": _numbers(">", "ii"),
    "timeindex": _numbers(">", "qi"),
    "txnindex": _numbers(">", "hqqqq"),
    "snapshot": _snapshot,
}
"""Functions that change a file, by its kind."""
