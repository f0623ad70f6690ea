"""XXH64 with seed 0, which closes an index of version 3; nothing else here needs it."""

import struct

_PRIMES = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_MASK = 2**64 - 1
_STRIPE = struct.Struct("<4Q")
_LANE, _HALF = struct.Struct("<Q"), struct.Struct("<I")


def xxhash64(data: bytes) -> int:
    """Return the hash of `data`, unsigned. Source: the specification of XXH64."""
    p1, p2, p3, p4, p5 = _PRIMES
    at = 0
    if len(data) >= _STRIPE.size:
        lanes = [(p1 + p2) & _MASK, p2, 0, -p1 & _MASK]
        while len(data) - at >= _STRIPE.size:
            values = _STRIPE.unpack_from(data, at)
            lanes = [_round(lane, value) for lane, value in zip(lanes, values, strict=True)]
            at += _STRIPE.size
        total = sum(map(_rotated, lanes, (1, 7, 12, 18))) & _MASK
        for lane in lanes:
            total = ((total ^ _round(0, lane)) * p1 + p4) & _MASK
    else:
        total = p5
    total = (total + len(data)) & _MASK
    while len(data) - at >= _LANE.size:
        total ^= _round(0, _LANE.unpack_from(data, at)[0])
        total = (_rotated(total, 27) * p1 + p4) & _MASK
        at += _LANE.size
    if len(data) - at >= _HALF.size:
        total ^= (_HALF.unpack_from(data, at)[0] * p1) & _MASK
        total = (_rotated(total, 23) * p2 + p3) & _MASK
        at += _HALF.size
    for byte in data[at:]:
        total = (_rotated(total ^ (byte * p5 & _MASK), 11) * p1) & _MASK
    total = ((total ^ total >> 33) * p2) & _MASK
    total = ((total ^ total >> 29) * p3) & _MASK
    return total ^ total >> 32


def _round(lane: int, value: int) -> int:
    return (_rotated((lane + value * _PRIMES[1]) & _MASK, 31) * _PRIMES[0]) & _MASK


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK
