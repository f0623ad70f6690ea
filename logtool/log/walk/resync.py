"""Search for the next sound batch behind damage, of any magic.

A broker never does this, so there is no rule of Kafka's to follow. Damage hides where the next
batch begins, and a record may hold whole batches in its value, with sound CRCs. So a candidate is a
header whose fields could all be real and whose CRC holds, and these rules decide whether it is one
of the log:

1. Its offsets lie behind the last sound batch before the damage, and in reach of the segment.
2. A candidate inside of an earlier candidate is never taken.
3. If a sound batch begins where the size field of the damage says, which rules 4 and 5 do not
   speak against, the damage is *framed*. Candidates before that count only if they are proven, and
   sound batches follow them without a gap up to there: a wrong size can lead to a batch, too.
4. If the damage still begins with a header that could be real, but for its size, that header
   vouches for its offsets and its CRC. A candidate up to whose first byte that CRC holds is proven:
   only the size was wrong. Others whose offsets are not behind those of the header, or whose magic
   is below it, are suspects: that is what a record, or a compressed message whose stream stores
   bytes as they are, holds of its own.
5. A candidate that is not proven counts if the chain of sound batches that it begins reaches the
   end, or `FAR`. Else the next candidate behind the chain decides. Within what the size of a header
   that vouches says, the chain counts only if there are offsets between the two for another damaged
   batch; where no candidate follows, if its offset is the very next one and the damage is not cut
   off by the end of the file.
6. Elsewhere the chain counts, unless the offsets of the next candidate contradict it: then the
   longer of the two chains counts. A batch inside a record of a batch with a destroyed header can
   still be taken, if its offset is one of those that are missing; nothing shows the difference.
7. If a candidate counts that lies beyond the end by the size of the damaged header, the first
   suspect whose chain leads up to it counts instead: batches in a record do not go on behind the
   batch of the record, so the offsets of that header are wrong. If no candidate counts, the first
   suspect counts whose chain reaches the end.
"""

import zlib
from collections.abc import Iterator
from dataclasses import fields
from typing import Protocol

import numpy as np

from logtool.formats import _kernels
from logtool.formats.crc import crc32c
from logtool.formats.record_batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MIN_ENTRY_SIZE,
    BatchTable,
    Column,
)
from logtool.lazy_dataclass import dataclass
from logtool.log.damage import entry_size
from logtool.log.walk.candidates import (
    LENGTHS,
    MIN_SIZES,
    CandidateHeader,
    OffsetBounds,
    candidates,
    header_of,
)

FAR = 4 * 1024 * 1024
"""Bytes of sound batches that no value of a record holds by accident: several times the 1 MiB that
``max.message.bytes`` is by default."""

FIRST_WINDOW, WIDEST_WINDOW = 4096, 256 * 1024
"""Bytes that a search looks at in one go: few where the next batch is likely to be near."""
_CRC_FIELDS = (slice(12, 16), slice(12, 16), slice(17, 21))
_CRC_STARTS = (16, 16, 21)
_Rising = tuple[int, tuple[int, int], bool]
_COLUMNS = [field.name for field in fields(BatchTable)]
_PLACE = [_COLUMNS.index(name) for name in ("position", "size", "base_offset", "last_offset")]


class ScannedBytes(Protocol):
    """The bytes of a scan, up to its end."""

    end: int
    """Position where the file ends, or is taken to end; lower once it is found to have shrunk."""

    def ahead(self, position: int, need: int) -> memoryview:
        """Return the bytes of a buffer from `position` on: `need` or more, fewer at the end."""

    def read(self, position: int, size: int) -> memoryview:
        """Return `size` bytes, fewer at the end."""


@dataclass(slots=True)
class _Floor:
    """The byte before which no candidate counts; the caller raises it between candidates."""

    position: int


class Resync:
    """The search of one scan; `budget` is the number of bytes that it may still hash in vain."""

    def __init__(self, source: ScannedBytes, budget: int, piece: int) -> None:
        self._source = source
        self.budget = budget
        self._piece = piece
        """Bytes that are read at once for a CRC."""
        self._follower: tuple[int, CandidateHeader] | None = None
        """Start of the last search for a batch that follows a chain, and the batch found."""
        self._rows: Column | None = None

    def next_batch(
        self, at: int, behind: int | None, offsets: OffsetBounds, *, torn: bool
    ) -> int | None:
        """Return the position of the next batch behind damage at `at`; None without one.

        `behind` is the end of framed damage, None if it is not framed; `torn` is True if its size
        field leads beyond the end of the file.
        """
        damaged = header_of(self._source.read(at, HEADER_SIZE), at, offsets)
        if behind is not None:
            return self._swallowed(damaged, behind, offsets) if damaged else None
        proof = _SoundnessProof(self, damaged) if damaged else None
        suspects: list[CandidateHeader] = []
        refuted = _Floor(at)
        for candidate in self._sound(at + 1, self._source.end, offsets, refuted):
            refuted.position = candidate.position + candidate.size
            if proof and proof.holds(candidate.position):
                return candidate.position
            if damaged and _is_suspect(candidate, damaged):
                suspects.append(candidate)
                continue
            # Behind what its size says a batch may be damaged that has no header any more.
            beyond = damaged and 0 < damaged.size <= candidate.position - at
            around = None if beyond else damaged
            refuted.position, taken = self._judge(candidate, around, offsets, torn=torn)
            if taken:
                is_behind = damaged and 0 < damaged.size < candidate.position - at
                led = self._leading(suspects, candidate.position) if is_behind else None
                return candidate.position if led is None else led
        return self._leading(suspects, self._source.end)

    def frames(self, at: int, behind: int, offsets: OffsetBounds) -> bool:
        """Return whether damage at `at` is framed: whether a sound batch of the log is `behind`."""
        if behind == self._source.end:
            return True
        if not self.begins_batch(behind):
            return False
        damaged = header_of(self._source.read(at, HEADER_SIZE), at, offsets)
        entry = header_of(self._source.read(behind, HEADER_SIZE), behind, None)
        if damaged is None or entry is None:
            return True
        if entry.base_offset <= damaged.last_offset:
            return False
        enough = min(self._source.end, behind + FAR)
        end, last = self._chain(entry, enough)
        if end >= enough:
            return True
        follower = next(self._sound(end, self._source.end, offsets), None)
        self._follower = follower and (end + 1, follower)
        return follower is None or follower.base_offset > last + 1

    def _swallowed(self, damaged: CandidateHeader, stop: int, offsets: OffsetBounds) -> int | None:
        """Return the start of sound batches up to `stop` that a wrong size skips; None without any.

        A message may end with sound batches in its value: the CRC shows the difference.
        """
        proof = _SoundnessProof(self, damaged)
        for candidate in self._sound(damaged.position + 1, stop, offsets):
            if proof.holds(candidate.position) and self._chain(candidate, stop)[0] == stop:
                return candidate.position
        return None

    def _judge(
        self,
        candidate: CandidateHeader,
        damaged: CandidateHeader | None,
        offsets: OffsetBounds,
        *,
        torn: bool,
    ) -> tuple[int, bool]:
        """Return the end of a candidate's chain, and whether it is of the log (rules 5, 6)."""
        enough = min(self._source.end, candidate.position + FAR)
        end, last = self._chain(candidate, enough)
        if end >= enough:
            return end, True
        follower = next(self._sound(end, self._source.end, offsets), None)
        self._follower = follower and (end + 1, follower)
        if follower is None:
            next_one = damaged is not None and candidate.base_offset == damaged.last_offset + 1
            return end, damaged is None or (next_one and not torn)
        if damaged:
            return end, follower.base_offset > last + 1
        if follower.base_offset > last:
            return end, True
        enough = min(self._source.end, follower.position + FAR)
        reached, _ = self._chain(follower, enough)
        longer = reached >= enough or reached - follower.position > end - candidate.position
        return end, not longer

    def _leading(self, suspects: list[CandidateHeader], stop: int) -> int | None:
        """Return the first suspect whose chain leads up to `stop`; None without one."""
        reached = 0
        for suspect in suspects:
            if suspect.position < reached:
                continue
            reached, _ = self._chain(suspect, stop)
            if reached == stop:
                return suspect.position
        return None

    def _chain(self, first: CandidateHeader, stop: int) -> tuple[int, int]:
        """Return the end of the sound batches that begin with `first`, and their last offset.

        Their offsets rise, except for single batches: no CRC covers a base offset.
        """
        position, last = first.position + first.size, first.last_offset
        before: int | None = None
        odd: int | None = None
        while position < stop:
            if odd is None:
                end, lasts, is_over = self._rising(position, last, stop)
                is_further = end > position
                if is_further:
                    position, (before, last) = end, lasts
                if is_over:
                    break
                if is_further:
                    continue
            head = header_of(self._source.read(position, HEADER_SIZE), position, None)
            if head is None or not self.begins_batch(position):
                break
            if head.base_offset > last:
                before, last, odd = last, head.last_offset, None
            elif before is not None and before < head.base_offset:
                last, odd = head.last_offset, None  # the one in front was too high
            elif odd is None and before is not None:
                odd = position
            else:
                break
            position += head.size
        return position if odd is None else odd, last

    def _rising(self, position: int, last: int, stop: int) -> _Rising:
        """Return the end of sound batches whose offsets rise, from a byte and behind offset `last`.

        Return the end, the last offsets of the last two batches, and True if no header stands at
        the end, so that the caller need not look again. Only batches that the kernel walks over at
        once are counted, not one that is too large for that.
        """
        before, width, why = last, FIRST_WINDOW, _kernels.MORE
        if self._rows is None:
            most = WIDEST_WINDOW // MIN_ENTRY_SIZE + 1
            self._rows = np.empty((_kernels.BATCH_COLUMNS, most), np.int64)
        while position < stop:
            data = self._source.read(position, width)
            count, _, why = _kernels.walk_batches(data, 0, len(data), position, self._rows, 0)
            if not count:
                if why != _kernels.MORE or width >= WIDEST_WINDOW:
                    break
                width *= 4
                continue
            starts, sizes, bases, lasts = self._rows[_PLACE, :count]
            good = (bases > np.concatenate(([last], lasts[:-1]))) & (starts < stop)
            rising = count if good.all() else int(good.argmin())
            if rising:
                before = int(lasts[rising - 2]) if rising > 1 else last
                last, position = int(lasts[rising - 1]), int(starts[rising - 1] + sizes[rising - 1])
            if rising < count:
                return position, (before, last), False
            if why not in (_kernels.MORE, _kernels.FULL):
                break  # what comes next is known not to go on with the chain
            width = min(width * 4, WIDEST_WINDOW)
        return position, (before, last), why in (_kernels.BAD_SIZE, _kernels.BAD_MAGIC)

    def begins_batch(self, position: int) -> bool:
        """Return whether a sound entry begins at `position`; if not, charge it to the budget."""
        head = bytes(self._source.read(position, LOG_OVERHEAD + 5))
        size = entry_size(head)
        if size is None or size > self._source.end - position or head[16] > MAGIC:
            return False
        if self.holds(position, size):
            return True
        self.budget -= size
        return False

    def holds(self, position: int, size: int, magic: int | None = None) -> bool:
        """Return whether the CRC of the entry at `position` holds, reading it piece by piece."""
        head = bytes(self._source.read(position, 21))
        if len(head) < 21:
            return False
        magic = head[16] if magic is None else magic
        if size < MIN_SIZES[magic]:
            return False
        done = _CRC_STARTS[magic]
        crc = self.crc(magic, 0, position + done, position + size)
        return crc == int.from_bytes(head[_CRC_FIELDS[magic]], "big")

    def crc(self, magic: int, crc: int, start: int, stop: int) -> int | None:
        """Return the CRC of a magic, continued over more bytes; None if the file ends before."""
        while start < stop:
            piece = self._source.read(start, min(self._piece, stop - start))
            if not len(piece):
                return None
            crc = crc32c(piece, crc) if magic == MAGIC else zlib.crc32(piece, crc)
            start += len(piece)
        return crc

    def _sound(
        self, start: int, stop: int, offsets: OffsetBounds, floor: "_Floor | None" = None
    ) -> Iterator[CandidateHeader]:
        """Yield the candidates in ``[start, stop)`` whose CRC holds; charge the others."""
        seen, follower = self._follower or (None, None)
        if follower and seen == start and follower.base_offset > offsets.last:
            start = follower.position  # it was found when the chain before it was judged
        width = FIRST_WINDOW
        while (end := min(stop, self._source.end)) - start >= MIN_ENTRY_SIZE:
            data = self._source.ahead(start, HEADER_SIZE)[: min(width, stop - start)]
            if len(data) < MIN_ENTRY_SIZE:
                return
            # The last bytes of a file may hold a message of magic 0 and no longer header.
            keep = MIN_ENTRY_SIZE if start + len(data) >= end else HEADER_SIZE
            for candidate in candidates(data, len(data) - keep + 1, start, end, offsets):
                if candidate.size > self.budget or (floor and candidate.position < floor.position):
                    continue
                if self._fits(candidate) and self.begins_batch(candidate.position):
                    yield candidate
            start += len(data) - keep + 1
            width = min(width * 4, WIDEST_WINDOW)

    def _fits(self, candidate: CandidateHeader) -> bool:
        """Return whether the lengths in a message of magic 0 or 1 come to its size."""
        if candidate.magic == MAGIC:
            return True
        at = LENGTHS[candidate.magic]
        key = int.from_bytes(self._source.read(candidate.position + at, 4), "big", signed=True)
        at += 4 + max(key, 0)
        if key < -1 or at + 4 > candidate.size:
            return False
        value = int.from_bytes(self._source.read(candidate.position + at, 4), "big", signed=True)
        return value >= -1 and at + 4 + max(value, 0) == candidate.size


class _SoundnessProof:
    """The CRC of a damaged entry, up to one end after another: only its size may be wrong."""

    def __init__(self, search: Resync, damaged: CandidateHeader) -> None:
        self._search = search
        self._magic = damaged.magic
        start = _CRC_STARTS[damaged.magic]
        head = bytes(search._source.read(damaged.position, 21))
        self._stored = int.from_bytes(head[_CRC_FIELDS[damaged.magic]], "big")
        self._done = damaged.position + start
        self._least = damaged.position + MIN_SIZES[damaged.magic]
        self._crc: int | None = 0

    def holds(self, position: int) -> bool:
        """Return whether the entry is sound if it ends at `position`; these rise."""
        if position < self._least or self._crc is None:
            return False
        self._crc = self._search.crc(self._magic, self._crc, self._done, position)
        self._done = position
        return self._crc == self._stored


def _is_suspect(candidate: CandidateHeader, damaged: CandidateHeader) -> bool:
    return candidate.base_offset <= damaged.last_offset or candidate.magic < damaged.magic
