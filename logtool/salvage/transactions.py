"""Transactions of a log that has lost a part of what it held."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from logtool.formats import wording
from logtool.salvage.parts import Extent, Part, Reject
from logtool.salvage.patient import Patient
from logtool.salvage.reading import take
from logtool.segment import walk
from logtool.segment.producer_state import NONE, ProducerState, significant

_NO_IMAGES: Mapping[Path, Path] = {}


@dataclass(frozen=True, slots=True)
class Torn:
    """A transaction that may have lost records, or its marker."""

    producer_id: int
    producer_epoch: int
    first_offset: int
    lost_from: int
    """The first offset that is missing in it."""

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of the contract, without where it is."""
        text = (
            f"was open where the log lacks something from offset {self.lost_from} on: records of "
            "it, or its marker, may be among what is lost"
        )
        return {
            "type": "transaction",
            "producer_id": self.producer_id,
            "producer_epoch": self.producer_epoch,
            "first_offset": self.first_offset,
            "lost_from": self.lost_from,
            "reason": f"the transaction of {wording.count(1, 'producer')[2:]} {self.producer_id} "
            f"that began at offset {self.first_offset} {text}",
        }


def torn(parts: Sequence[Part], images: Mapping[Path, Path] = _NO_IMAGES) -> Iterator[Torn]:
    """Yield the transactions that were open where something is missing.

    `images` are where the bytes of a log are that its disk does not give whole. Nothing is read
    where all is there. A transaction all of whose records are lost leaves nothing
    but perhaps its marker, and is not told.
    """
    lost = [one for one in parts if isinstance(one, Reject) and one.filled_from is None]
    if not lost:
        return
    state, told, end = ProducerState(), set[tuple[int, int]](), 0
    for part in parts:
        if isinstance(part, Reject):
            for producer_id, producer in state.producers.items():
                key = producer_id, producer.transaction_first_offset
                if part.filled_from is None and key[1] != NONE and key not in told:
                    told.add(key)
                    yield Torn(producer_id, producer.epoch, key[1], end)
        else:
            _replay(part, state, images)
            end = part.last.last_offset + 1


def _replay(extent: Extent, state: ProducerState, images: Mapping[Path, Path]) -> None:
    from logtool.disk.files import LogFile

    with LogFile(images.get(extent.path, extent.path)) as log:
        source, base = Patient(log, extent.path), extent.first.base_offset
        for chunk in walk.scan(
            source, base_offset=base, start=extent.position, stop=extent.end, payload=False
        ):
            rows = np.flatnonzero(chunk.table.producer_id >= 0)
            if len(rows):
                state.apply(significant(take(chunk.table, rows)))
