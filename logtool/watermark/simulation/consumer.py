"""The part of a log that consumers can read: to the high watermark or the last stable offset.

``read_uncommitted`` ends at the high watermark, exclusive. ``read_committed`` ends at the last
stable offset: the first offset of the oldest transaction that is open, or whose marker is not below
the high watermark yet, else the high watermark. Below it a consumer leaves out the records of
aborted transactions; no consumer gets the markers.
Source: ``UnifiedLog.fetchLastStableOffsetMetadata``, ``ProducerStateManager.firstUnstableOffset``
(Kafka 3.9 and 4.x).
"""

from collections.abc import Sequence

from logtool.watermark.simulation.node import SimulatedRecord


def open_transactions(log: Sequence[SimulatedRecord]) -> dict[str, int]:
    """Return the first offset of each transaction without a marker, by name."""
    begun: dict[str, int] = {}
    for offset, record in enumerate(log):
        if record.transaction and record.marker:
            begun.pop(record.transaction, None)
        elif record.transaction:
            begun.setdefault(record.transaction, offset)
    return begun


def last_stable_offset(log: Sequence[SimulatedRecord], high_watermark: int) -> int:
    """Return the offset below which every transaction is decided, and replicated as such."""
    # A marker at the high watermark or behind it decides nothing yet.
    unstable = open_transactions(log[:high_watermark])
    return min([high_watermark, *unstable.values()])


def read_uncommitted(log: Sequence[SimulatedRecord], high_watermark: int) -> list[str]:
    """Return the records that a consumer is given without regard to transactions."""
    return [record.name for record in log[:high_watermark] if not record.marker]


def read_committed(log: Sequence[SimulatedRecord], high_watermark: int) -> list[str]:
    """Return the records that a consumer of committed transactions is given."""
    given: list[str] = []
    aborted: set[int] = set()
    of: dict[str, list[int]] = {}
    for offset, record in enumerate(log):
        if record.transaction and record.marker:
            offsets = of.pop(record.transaction, [])
            aborted.update(offsets if record.marker == "abort" else ())
        elif record.transaction:
            of.setdefault(record.transaction, []).append(offset)
    for offset, record in enumerate(log[: last_stable_offset(log, high_watermark)]):
        if not record.marker and offset not in aborted:
            given.append(record.name)
    return given
