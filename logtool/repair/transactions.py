"""Transactions of a log that has lost a part of its records."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path

import numpy as np

from logtool.disk.files import LogFile
from logtool.formats import wording
from logtool.formats.record_batch import SEQUENCES, BatchTable
from logtool.lazy_dataclass import dataclass
from logtool.log.batches import read_batches
from logtool.log.flavour import Flavour
from logtool.log.kafka import KAFKA
from logtool.log.lost_data import LostData, lost_data
from logtool.log.producer_state import (
    NONE,
    AbortedTransaction,
    CommittedTransaction,
    ProducerState,
    significant,
)
from logtool.repair.bad_sectors import SectorTolerantFile
from logtool.repair.ranges import Kept, Part, Rejected, RejectReason
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
    outcome: str | None = None
    """``committed`` or ``aborted`` where its marker is there; None where it may be lost."""
    lost_records: int | None = None
    """Records of it that are lost, by the headers of their batches; None if not known."""

    @property
    def reason(self) -> str:
        """Return a text with the part that may be lost, and the reason."""
        return self.text.format(
            outcome=self.outcome,
            lost_records=wording.count(self.lost_records or 0, "record"),
            of=f"producer {self.producer_id}",
            first=self.first_offset,
            lost=f"the log lacks records from offset {self.lost_from} onwards",
        )


_OPEN = (
    "the transaction of {of} that began at offset {first} was open where {lost}: some of "
    "its records, or its marker, may be lost"
)
_ENDED = (
    "the transaction of {of} that began at offset {first} is {outcome}: its marker is there, but "
    "{lost_records} of it are lost: {lost}"
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
    state: ProducerState = field(default_factory=lambda: ProducerState(committed=[]))
    lacking: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """By producer and first offset of an open transaction: its first missing offset, and how many
    of its records are missing. Its marker is not among what is lost."""
    reported: set[tuple[int, int]] = field(default_factory=set)
    lost_from: int | None = None
    """The first offset of the last place where offsets are missing."""
    seen: set[int] = field(default_factory=set)
    """The producers that wrote behind it, or were reported there."""

    def of(self, parts: Sequence[Part]) -> Iterator[Torn]:
        end = 0
        for number, part in enumerate(parts):
            if isinstance(part, Kept):
                yield from self._extent(part)
                end = part.last.last_offset + 1
            elif part.filled_from is None:
                self.lost_from = end
                self.seen.clear()
                yield from self._open(self._data(parts[max(number - 1, 0) : number + 2]))
        for (producer_id, first), (lost_from, _) in self.lacking.items():
            epoch = self.state.producers[producer_id].epoch
            yield Torn(producer_id, epoch, first, lost_from, _OPEN)

    def _data(self, around: Sequence[Part]) -> LostData | None:
        """Return the batch of data that a reject between two kept parts was; None else."""
        if len(around) < 3:
            return None
        before, part, behind = around
        if not (isinstance(before, Kept) and isinstance(part, Rejected)):
            return None
        if not isinstance(behind, Kept) or part.kind is not RejectReason.DAMAGE:
            return None
        with LogFile(self.images.get(part.path, part.path)) as log:
            place = range(part.position, part.position + part.length)
            data = lost_data(log, place, range(before.last.last_offset + 1, behind.first.start))
        if data is None or data.is_plain:
            return data
        # No CRC holds: the producer id counts only if its sequence goes on there.
        known = self.state.producers.get(data.producer_id)
        is_sure = known is not None and data.continues(known.epoch, known.last_sequence)
        return data if is_sure else None

    def _open(self, data: LostData | None) -> Iterator[Torn]:
        assert self.lost_from is not None
        for producer_id, producer in self.state.producers.items():
            first = producer.transaction_first_offset
            if first == NONE:
                continue
            self.seen.add(producer_id)
            if data and self.flavour.has_checkpoints and (producer_id, first) not in self.reported:
                if data.producer_id == producer_id:
                    begin, records = self.lacking.get((producer_id, first), (self.lost_from, 0))
                    self.lacking[producer_id, first] = begin, records + data.records
            elif (producer_id, first) not in self.reported:
                self.reported.add((producer_id, first))
                self.lacking.pop((producer_id, first), None)
                yield Torn(producer_id, producer.epoch, first, self.lost_from, _OPEN)

    def _extent(self, extent: Kept) -> Iterator[Torn]:
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
                    aborted, _ = self.state.apply(found)
                    yield from self._ended(aborted)

    def _ended(self, aborted: Sequence[AbortedTransaction]) -> Iterator[Torn]:
        """Yield the transactions with missing records whose markers were found."""
        committed = self.state.committed or []
        every: tuple[tuple[Sequence[AbortedTransaction | CommittedTransaction], str], ...]
        every = (aborted, "aborted"), (committed, "committed")
        for ended, outcome in every:
            for one in ended:
                key = one.producer_id, one.first_offset
                if key in self.lacking:
                    self.reported.add(key)
                    lost_from, records = self.lacking.pop(key)
                    epoch = self.state.producers[one.producer_id].epoch
                    yield Torn(
                        one.producer_id,
                        epoch,
                        one.first_offset,
                        lost_from,
                        _ENDED,
                        outcome,
                        records,
                    )
        committed.clear()

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
