"""The records that an unsound batch held, as far as its header is credible.

The CRC of such a batch does not match, or the file ends in it. Its records were written once, so
they count as lost. The header gives the offsets and the number of records, unless it contradicts
the batches around it.
"""

from collections.abc import Iterator

import numpy as np

from logtool.formats.record_batch import HEADER, HEADER_SIZE, LOG_OVERHEAD, MAGIC
from logtool.lazy_dataclass import dataclass
from logtool.loading.shadow import ShadowFile
from logtool.log.chunk import Chunk
from logtool.log.damage import Damage, DamageReason


@dataclass(frozen=True, slots=True)
class Unsound:
    """One batch that cannot be read."""

    first_offset: int
    last_offset: int
    records: int
    unfinished: bool = False
    """True if the file ends in the batch: then, by the file, its append was never answered."""


def batches_in(damage: Damage, log: ShadowFile, start: int, end: int | None) -> Iterator[Unsound]:
    """Yield the batches of a damaged range, up to the first whose header is not credible.

    They lie between the offsets `start` and `end` of the sound batches around the range; `end` may
    be None: no sound batch follows.
    """
    position, limit = damage.position, damage.position + damage.length
    while position + HEADER_SIZE <= limit:
        header = np.frombuffer(log.read(position, HEADER_SIZE), HEADER, 1)[0]
        size = int(header["batch_length"]) + LOG_OVERHEAD
        first, delta = int(header["base_offset"]), int(header["last_offset_delta"])
        count = int(header["record_count"])
        believable = (
            header["magic"] == MAGIC
            and size >= HEADER_SIZE
            and first >= start
            and 0 < count <= delta + 1
            and (end is None or first + delta < end)
        )
        if not believable:
            return
        unfinished = damage.reason is DamageReason.INCOMPLETE and position + size > limit
        yield Unsound(
            first_offset=first, last_offset=first + delta, records=count, unfinished=unfinished
        )
        position, start = position + size, first + delta + 1


class LossCount:
    """A search for the unsound batches of a log that is read chunk by chunk."""

    def __init__(self, log: ShadowFile, start: int) -> None:
        """Begin at the offset `start`."""
        self._log = log
        self._end = start
        self._damage: Damage | None = None
        self._found: list[Unsound] = []

    def add(self, chunk: Chunk, *, counts: bool) -> None:
        """Take the next chunk; its damage matters if it `counts`."""
        if len(chunk.table):
            self._settle(int(chunk.table[:1].first_offset[0]))
            self._end = max(self._end, int(chunk.table.last_offset.max()) + 1)
        if chunk.damage and counts:
            self._settle(None)
            self._damage = chunk.damage

    def finish(self) -> list[Unsound]:
        """Return the unsound batches, after the last chunk was added."""
        self._settle(None)
        return self._found

    def _settle(self, end: int | None) -> None:
        if self._damage:
            self._found += batches_in(self._damage, self._log, self._end, end)
            self._damage = None
