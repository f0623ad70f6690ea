"""Raft offsets as Kafka offsets, and back.

In the namespace ``kafka`` some batches of a log have Raft offsets and no Kafka offsets: those of
the types in `FILTERED`. The delta at a Raft offset is how many such offsets there are below it, and
the Kafka offset is the Raft offset without the delta. All Raft offsets in such a batch mean the
Kafka offset of what follows it. In other namespaces the two offsets are the same.

Where a log begins behind offset 0, the delta there is not in the log: the snapshot of Raft has it
(``log_start_delta``), and so has the kvstore of the broker, in the keyspace ``offset_translator``:

=====================  ======  ====================================================================
version, compat        2 x u8  the envelope of the map
size                   uint32  bytes that follow
start_delta            int64   delta behind the first element
n                      uint32  elements; the first stands for all that was before the log
base_offset            int64   of a batch
length                 int32   offsets that it has
=====================  ======  ====================================================================

The length of the first element is not added: the delta behind it is the start delta. Source:
``model/record_batch_types.h``, ``storage/offset_translator_state.cc`` (Redpanda 1c6cff34ea,
2024-12-20).
"""

import struct
from bisect import bisect_right
from collections.abc import Iterable
from typing import Self

from logtool.formats.redpanda._reader import Reader, TooShortError
from logtool.formats.redpanda.record_batch import BatchType
from logtool.lazy_dataclass import dataclass

FILTERED = frozenset(
    {
        BatchType.RAFT_CONFIGURATION,
        BatchType.ARCHIVAL_METADATA,
        BatchType.VERSION_FENCE,
        BatchType.PREFIX_TRUNCATE,
        BatchType.PARTITION_PROPERTIES_UPDATE,
        BatchType.DATALAKE_TRANSLATION_STATE,
    }
)
"""Types of batches that have no Kafka offset."""
FIRST_OF_A_WHOLE_LOG = -(2**63)
"""Base offset of the first element of the map of a log that was never cut at its beginning."""

_ENVELOPE = struct.Struct("<BBI")
_MAP = struct.Struct("<qI")
_ELEMENT = struct.Struct("<qi")


@dataclass(frozen=True, slots=True)
class OffsetMap:
    """The map as the kvstore has it."""

    version: int
    compat_version: int
    start_delta: int
    elements: tuple[tuple[int, int], ...]
    """(base offset, length) of each."""


class Translation:
    """Translates the offsets of a log that begins at Raft offset `start` with `start_delta`."""

    def __init__(
        self, filtered: Iterable[tuple[int, int]], *, start: int = 0, start_delta: int = 0
    ) -> None:
        """Take the (base offset, last offset) of each batch of a type in `FILTERED`, in order."""
        self._start, self._start_delta = start, start_delta
        self._bases: list[int] = []
        self._lasts: list[int] = []
        self._deltas = [start_delta]
        """Delta behind each batch, and before the first."""
        for base, last in filtered:
            if last < start:
                continue
            self._bases.append(max(base, start))
            self._lasts.append(last)
            self._deltas.append(self._deltas[-1] + last - self._bases[-1] + 1)

    @classmethod
    def of_map(cls, stored: OffsetMap) -> Self:
        """Return the translation by a map of the kvstore, up to the highest offset in the map."""
        (first, length), *others = stored.elements or ((FIRST_OF_A_WHOLE_LOG, 1),)
        start = max(first + length, 0)
        filtered = [(base, base + size - 1) for base, size in others]
        return cls(filtered, start=start, start_delta=stored.start_delta)

    def to_kafka(self, raft_offset: int) -> int | None:
        """Return the Kafka offset; None below the start, where it is not known."""
        if raft_offset < self._start:
            return None
        count = bisect_right(self._bases, raft_offset)
        if count and raft_offset <= self._lasts[count - 1]:
            return self._bases[count - 1] - self._deltas[count - 1]
        return raft_offset - self._deltas[count]

    def to_raft(self, kafka_offset: int) -> int | None:
        """Return the Raft offset of what has this Kafka offset; None below the start."""
        if kafka_offset < self._start - self._start_delta:
            return None
        # What a batch without Kafka offsets begins with is the Kafka offset of what follows it.
        firsts = [base - delta for base, delta in zip(self._bases, self._deltas, strict=False)]
        return kafka_offset + self._deltas[bisect_right(firsts, kafka_offset)]


def parse_map(data: bytes) -> OffsetMap | None:
    """Read a map as the kvstore has it; None where it is not whole."""
    try:
        reader = Reader(data)
        version, compat_version, size = reader.numbers(_ENVELOPE)
        reader = Reader(reader.take(size))
        start_delta, count = reader.numbers(_MAP)
        if count > reader.left // _ELEMENT.size:
            return None
        pairs = [reader.numbers(_ELEMENT) for _ in range(count)]
    except TooShortError:
        return None
    elements = tuple((base, length) for base, length in pairs)
    return OffsetMap(version, compat_version, start_delta, elements)


def encode_map(stored: OffsetMap) -> bytes:
    """Return the bytes of a map."""
    elements = b"".join(_ELEMENT.pack(*element) for element in stored.elements)
    count = len(stored.elements)
    size = _MAP.size + len(elements)
    front = _ENVELOPE.pack(stored.version, stored.compat_version, size)
    return front + _MAP.pack(stored.start_delta, count) + elements
