"""Transactions of a log that has lost a part of its records."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path

import numpy as np

from logtool.formats.record_batch import SEQUENCES, BatchTable
from logtool.lazy_dataclass import dataclass
from logtool.log.batches import read_batches
from logtool.log.flavour import Flavour
from logtool.log.kafka import KAFKA
from logtool.log.producer_state import NONE, ProducerState, significant
from logtool.repair.bad_sectors import SectorTolerantFile
from logtool.repair.ranges import Kept, Part, Rejected
from logtool.repair.reading import take

_NO_IMAGES: Mapping[Path, Path] = {}


@dataclass(frozen=True, slots=True)
class Torn:
    """A transaction that may have lost records, or its marker."""

    producer_id: int
    producer_epoch: int
    first_offset: int
    """First offset of the part of the transaction that is left."""
    lost_from: int
    """The first offset that is missing."""
    text: str

    @property
    def reason(self) -> str:
        """Return a text with the part that may be lost, and the reason."""
        return self.text.format(
            of=f"producer {self.producer_id}",
            first=self.first_offset,
            lost=f"the log lacks records from offset {self.lost_from} onwards",
        )


_OPEN = (
    "the transaction of {of} that began at offset {first} was open where {lost}: some of "
    "its records, or its marker, may be lost"
)
_HEADLESS = (
    "offset {first} is the first remaining offset of a transaction of {of}, after the "
    "place where {lost}: some of its records may be lost"
)
_MARKER = (
    "of a transaction of {of} only the marker at offset {first} remains, after the place "
    "where {lost}: its records may be lost"
)


def torn(
    parts: Sequence[Part], images: Mapping[Path, Path] = _NO_IMAGES, flavour: Flavour = KAFKA
) -> Iterator[Torn]:
    """Yield the transactions that were open at missing offsets, or may have begun there.

    `images` are the readable bytes of logs that a failing disk gives only in part. Nothing is read
    if no offset is missing. A transaction that is lost with its marker leaves no trace.
    """
    if any(isinstance(one, Rejected) and one.filled_from is None for one in parts):
        yield from _OpenTransactions(images, flavour).of(parts)


@dataclass(slots=True)
class _OpenTransactions:
    images: Mapping[Path, Path]
    flavour: Flavour
    state: ProducerState = field(default_factory=ProducerState)
    reported: set[tuple[int, int]] = field(default_factory=set)
    lost_from: int | None = None
    """The first offset of the last place where offsets are missing."""
    seen: set[int] = field(default_factory=set)
    """The producers that wrote behind it, or were reported there."""

    def of(self, parts: Sequence[Part]) -> Iterator[Torn]:
        end = 0
        for part in parts:
            if isinstance(part, Kept):
                yield from self._extent(part)
                end = part.last.last_offset + 1
            elif part.filled_from is None:
                self.lost_from = end
                self.seen.clear()
                yield from self._open()

    def _open(self) -> Iterator[Torn]:
        assert self.lost_from is not None
        for producer_id, producer in self.state.producers.items():
            first = producer.transaction_first_offset
            if first == NONE:
                continue
            self.seen.add(producer_id)
            if (producer_id, first) not in self.reported:
                self.reported.add((producer_id, first))
                yield Torn(producer_id, producer.epoch, first, self.lost_from, _OPEN)

    def _extent(self, extent: Kept) -> Iterator[Torn]:
        from logtool.disk.files import LogFile

        with LogFile(self.images.get(extent.path, extent.path)) as log:
            source, base = SectorTolerantFile(log), extent.first.base_offset
            for chunk in read_batches(
                source,
                base_offset=base,
                form=self.flavour.form(extent.path),
                start=extent.position,
                stop=extent.end,
                payload=False,
            ):
                rows = np.flatnonzero(chunk.table.producer_id >= 0)
                if len(rows):
                    found = significant(take(chunk.table, rows))
                    yield from self._begun_before(found)
                    self.state.apply(found)

    def _begun_before(self, rows: BatchTable) -> Iterator[Torn]:
        """Yield transactions whose first batch behind missing offsets continues lost ones."""
        if self.lost_from is None:
            return
        producers, places = np.unique(rows.producer_id, return_index=True)
        for producer_id, row in zip(producers.tolist(), places.tolist(), strict=True):
            if producer_id in self.seen or not rows.is_transactional[row]:
                continue
            self.seen.add(producer_id)
            epoch, offset = int(rows.producer_epoch[row]), int(rows.base_offset[row])
            if rows.is_control[row]:
                yield Torn(producer_id, epoch, offset, self.lost_from, _MARKER)
            elif int(rows.base_sequence[row]) != self._next_sequence(producer_id, epoch):
                yield Torn(producer_id, epoch, offset, self.lost_from, _HEADLESS)

    def _next_sequence(self, producer_id: int, epoch: int) -> int:
        """Return the next sequence number of a producer that lost nothing."""
        before = self.state.producers.get(producer_id)
        if before is None or before.epoch != epoch or before.last_sequence == NONE:
            return 0
        return (before.last_sequence + 1) % SEQUENCES
