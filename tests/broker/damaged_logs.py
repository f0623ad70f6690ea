"""Damage to the batches and bytes of logs."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from random import Random

import numpy as np
from broker.damage_tools import UnfitError, flip_bit, pick_log, replace
from crc32c import crc32c
from log_dir_damage import MARKER, new_batch

from logtool.formats import compression, record
from logtool.formats.record_batch import HEADER, HEADER_SIZE


def flip_in_header(directory: Path, rng: Random) -> str:
    path, data, batches = pick_log(directory, rng)
    number, at, bit = rng.randrange(len(batches)), rng.randrange(HEADER_SIZE), rng.randrange(8)
    position = batches[number].position + at
    path.write_bytes(replace(data, position, bytes([data[position] ^ 1 << bit])))
    return f"{path.name}: bit {bit} of byte {at} of batch {number} flipped"


def flip_in_payload(directory: Path, rng: Random) -> str:
    path, data, batches = pick_log(directory, rng)
    number = rng.randrange(len(batches))
    batch = batches[number]
    if batch.size == HEADER_SIZE:
        raise UnfitError
    position = rng.randrange(batch.position + HEADER_SIZE, batch.position + batch.size)
    path.write_bytes(flip_bit(data, position, rng))
    return f"{path.name}: a bit of the payload of batch {number} flipped at {position}"


_VALUES: dict[str, tuple[int, ...]] = {
    "base_offset": (-1, -100, 1, 7, 1000, 2**31, 2**33),
    "batch_length": (-1, 1, -60, 100),
    "leader_epoch": (-1, 1, 2, 50, -10),
    "magic": (-1, -2, 1, 125, -3),
    "attributes": (1, 2, 5, 7, 8, 16, 32, 64, 128),
    "last_offset_delta": (-1, 1, -50, 2**30, 3000),
    "max_timestamp": (-1, 1, 10**12, -(10**13)),
    "producer_id": (-1, 1, 7, -20000),
    "producer_epoch": (1, -1, 5),
    "base_sequence": (1, -1, 100, -50),
    "record_count": (1, -1, 100),
}


def set_field(directory: Path, rng: Random) -> str:
    """Change a field by a sum (flags: by an exclusive or), with a right CRC: damage it misses."""
    path, data, batches = pick_log(directory, rng)
    number = rng.randrange(len(batches))
    batch = batches[number]
    raw = data[batch.position : batch.position + batch.size]
    header = np.frombuffer(raw, HEADER, 1).copy()
    name = rng.choice(list(_VALUES))
    by, old = rng.choice(_VALUES[name]), int(header[name][0])
    new = old ^ by if name == "attributes" else old + by
    try:
        header[name] = new
    except OverflowError:
        raise UnfitError from None
    path.write_bytes(replace(data, batch.position, _with_crc(header.tobytes() + raw[HEADER_SIZE:])))
    return f"{path.name}: {name} of batch {number} is {new} instead of {old}, CRC right"


def set_size(directory: Path, rng: Random) -> str:
    path, data, batches = pick_log(directory, rng)
    number = rng.randrange(len(batches))
    size = rng.choice((0, -1, -(2**31), 1, 2, 13, 14, 20, 48, 49, 60, 10_000, 2**31 - 1))
    path.write_bytes(replace(data, batches[number].position + 8, struct.pack(">i", size)))
    return f"{path.name}: batch {number} says that it has {size} bytes"


def replace_marker(directory: Path, rng: Random) -> str:
    """Put another control record, sound or not, in the place of a transaction marker."""
    path, data, batches = pick_log(directory, rng)
    markers = [batch for batch in batches if batch.attributes & MARKER == MARKER]
    if not markers:
        raise UnfitError
    batch = rng.choice(markers)
    key = struct.pack(">hh", rng.choice((0, 0, 1, -1)), rng.choice((0, 1, 0, 1, 2, 3, 5, 6, 7, -1)))
    value = struct.pack(">hi", rng.choice((0, 0, 1, -1)), rng.choice((0, 7, -1)))
    key, value = key[: rng.choice((4, 4, 4, 2, 0))], value[: rng.choice((6, 6, 6, 4, 0))]
    parts: tuple[bytes | None, bytes | None] = (key, value)
    if rng.random() < 0.15:
        parts = rng.choice(((None, value), (key, None)))
    records = [record.Record(0, 0, *parts)]
    header = np.frombuffer(data, HEADER, 1, batch.position)
    fields = {
        name: int(header[name][0])
        for name in ("attributes", "producer_id", "producer_epoch", "base_timestamp")
    }
    count = 0 if rng.random() < 0.15 else 1
    new = new_batch(
        batch.base_offset, b"", epoch=int(header["leader_epoch"][0]),
        payload=record.encode(records[:count]), record_count=count,
        max_timestamp=int(header["max_timestamp"][0]), **fields,
    )  # fmt: skip
    end = batch.position + batch.size
    path.write_bytes(data[: batch.position] + new + data[end:])
    return f"{path.name}: marker at {batch.position} has key {parts[0]!r} and value {parts[1]!r}"


def append_batch(directory: Path, rng: Random) -> str:
    """Write one more sound batch that does not fit: old offsets, plain data in a transaction."""
    path, data, batches = pick_log(directory, rng)
    last = batches[-1]
    header = np.frombuffer(data, HEADER, 1, last.position)
    offset = rng.choice((last.last_offset + 1, last.base_offset, batches[0].base_offset, 0))
    producers = [p for p in (9000, 8000, int(header["producer_id"][0])) if p >= 0]
    new = new_batch(
        offset, *[b"one more"] * rng.randint(1, 3),
        epoch=max(0, int(header["leader_epoch"][0]) + rng.choice((-1, 0, 0, 1, 9))),
        producer_id=rng.choice(producers), producer_epoch=rng.choice((0, 0, 1)),
        base_sequence=rng.choice((0, 5)), attributes=rng.choice((0, 0, 0x10)),
    )  # fmt: skip
    path.write_bytes(data[: last.position + last.size] + new * rng.choice((1, 1, 2)))
    return f"{path.name}: a batch of offset {offset} behind {last.last_offset}"


def repeat_batches(directory: Path, rng: Random) -> str:
    path, data, batches = pick_log(directory, rng)
    first = rng.randrange(len(batches))
    end = min(len(batches), first + rng.choice((1, 1, 2, 5))) - 1
    start, stop = batches[first].position, batches[end].position + batches[end].size
    path.write_bytes(data[:stop] + data[start:stop] + data[stop:])
    return f"{path.name}: batches {first} to {end} twice"


def drop_batches(directory: Path, rng: Random) -> str:
    path, data, batches = pick_log(directory, rng)
    first = rng.randrange(len(batches))
    end = min(len(batches), first + rng.choice((1, 1, 2, 5))) - 1
    start, stop = batches[first].position, batches[end].position + batches[end].size
    path.write_bytes(data[:start] + data[stop:])
    return f"{path.name}: batches {first} to {end} gone"


def swap_batches(directory: Path, rng: Random) -> str:
    path, data, batches = pick_log(directory, rng)
    if len(batches) < 2:
        raise UnfitError
    first, second = sorted(rng.sample(range(len(batches)), 2))
    pieces = [data[b.position : b.position + b.size] for b in batches]
    pieces[first], pieces[second] = pieces[second], pieces[first]
    path.write_bytes(b"".join(pieces) + data[batches[-1].position + batches[-1].size :])
    return f"{path.name}: batches {first} and {second} swapped"


def overflow(directory: Path, rng: Random) -> str:
    """Let offsets jump so far that one segment cannot hold them: a broker splits it."""
    path, data, batches = pick_log(directory, rng)
    first = rng.randrange(len(batches))
    by = rng.choice((2**31 - 1, 2**31, 2**32 + 5)) - rng.choice((0, 0, 40))
    pieces = [data[b.position : b.position + b.size] for b in batches]
    for number in range(first, len(batches)):
        moved = batches[number].base_offset + by
        pieces[number] = moved.to_bytes(8, "big") + pieces[number][8:]
    path.write_bytes(b"".join(pieces))
    return f"{path.name}: offsets from batch {first} of {len(batches)} on {by} higher"


def legacy_messages(directory: Path, rng: Random) -> str:
    """Write messages of magic 0 or 1 behind a log, some with a bad CRC."""
    path, data, batches = pick_log(directory, rng)
    offset, magic = batches[-1].last_offset + 1, rng.randrange(2)
    new = b""
    for number in range(rng.randint(1, 4)):
        stamp = struct.pack(">q", 1_700_000_000_000 + number) if magic else b""
        body = bytes([magic, 0]) + stamp + struct.pack(">i", -1) + struct.pack(">i", 3) + b"old"
        crc = zlib.crc32(body) ^ (rng.random() < 0.1)
        new += struct.pack(">qiI", offset + number, len(body) + 4, crc) + body
    path.write_bytes(data[: batches[-1].position + batches[-1].size] + new)
    return f"{path.name}: {len(new)} bytes of messages of magic {magic} behind the end"


def old_messages(directory: Path, rng: Random) -> str:
    """Put a log of messages of magic 0 or 1 in the place of one, packed into others or not.

    Offsets may jump so far that the segment has to be split.
    """
    path, _, _ = pick_log(directory, rng)
    magic, offset = rng.randrange(2), int(path.stem)
    pieces = []
    for _ in range(rng.randint(2, 30)):
        offset += rng.choice((0, 0, 0, 0, 1, 7))
        if rng.random() < 0.04:
            offset += rng.choice((2**31 - 1, 2**31, 2**32 + 5))
        count = rng.choice((0, 1, 2, 3, 5))
        codec = rng.choice((1, 2, 3) if magic else (1, 2)) if count else 0
        pieces.append(_old(offset, count, magic, codec, rng))
        offset += max(1, count)
    path.write_bytes(b"".join(pieces))
    return f"{path.name}: {len(pieces)} messages of magic {magic} in it, up to offset {offset - 1}"


def _old(offset: int, count: int, magic: int, codec: int, rng: Random) -> bytes:
    """Return one message, or one that holds several as compressed ones did; `codec` is its own."""
    if not count:
        return _message(offset, rng.randbytes(20), magic, 0)
    first = 0 if magic else offset
    inner = [_message(first + number, rng.randbytes(20), magic, 0) for number in range(count)]
    packed = compression.compress(codec, b"".join(inner))
    return _message(offset + count - 1, packed, magic, codec)


def _message(offset: int, value: bytes, magic: int, attributes: int) -> bytes:
    stamp = struct.pack(">q", 1_700_000_000_000 + offset % 1000) if magic else b""
    body = bytes([magic, attributes]) + stamp + struct.pack(">ii", -1, len(value)) + value
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def extreme_offset(directory: Path, rng: Random) -> str:
    """Give a batch an offset where 64 bits end: the next one is negative."""
    path, data, batches = pick_log(directory, rng)
    number = rng.choice((-1, -1, rng.randrange(len(batches))))
    delta = batches[number].last_offset - batches[number].base_offset
    most = 2**63 - 1
    offset = rng.choice((most, most, most - delta, most - delta - 1, most - 1, -(2**63)))
    position = batches[number].position
    path.write_bytes(replace(data, position, struct.pack(">q", offset)))
    return f"{path.name}: batch {number} of {len(batches)} has offset {offset}, delta {delta}"


def overflow_without_index(directory: Path, rng: Random) -> str:
    """Let a segment be split while it is opened, before any recovery from the recovery point."""
    done = overflow(directory, rng)
    index = (directory / done.partition(":")[0]).with_suffix(".index")
    index.unlink(missing_ok=True)
    return f"{done}, {index.name} gone"


def cut_log(directory: Path, rng: Random) -> str:
    path, data, batches = pick_log(directory, rng)
    batch = rng.choice((batches[-1], rng.choice(batches)))
    inside = rng.choice(
        (0, rng.randint(1, 17), rng.randrange(HEADER_SIZE), rng.randrange(batch.size))
    )
    size = batch.position + inside
    path.write_bytes(data[:size])
    return f"{path.name}: cut to {size} bytes, {inside} of a batch left"


def zero_log(directory: Path, rng: Random) -> str:
    path, data, _ = pick_log(directory, rng)
    start = rng.randrange(len(data))
    start -= start % rng.choice((1, 512, 4096))
    length = rng.choice((len(data), 4096, 512, rng.randint(1, 200)))
    length = min(length, len(data) - start)
    path.write_bytes(replace(data, start, bytes(length)))
    return f"{path.name}: {length} bytes of zeros from {start} of {len(data)}"


def append_garbage(directory: Path, rng: Random) -> str:
    path, data, batches = pick_log(directory, rng)
    last = batches[-1]
    copy = data[last.position : last.position + last.size]
    size = rng.choice((1, 8, 11, 12, 16, 17, 18, 61, 300, 6000))
    tail = rng.choice(
        (bytes(size), rng.randbytes(size), copy[:size], b"\xff" * size, b"text\n" * 9)
    )
    path.write_bytes(data + tail)
    return f"{path.name}: {len(tail)} bytes appended, {tail[:20].hex()}..."


def _with_crc(batch: bytes) -> bytes:
    return replace(batch, 17, crc32c(batch[21:]).to_bytes(4, "big"))
