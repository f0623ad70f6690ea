"""Gaps of a log of Redpanda in Kafka's offsets, beside Raft's.

Compaction takes no batch that has no Kafka offset, so the offsets of a gap that it left are all
Kafka's. Behind a gap that may mean loss, and behind damage, it is not known how many were.
"""

from logtool.formats.redpanda.offset_translation import Translation
from logtool.gaps.ledger import Ledger
from logtool.gaps.table import GapReason
from logtool.lazy_dataclass import dataclass
from logtool.log import kafka_start
from logtool.log.dir import Partition
from logtool.log.kafka_start import Ranges


@dataclass(frozen=True, slots=True)
class KafkaView:
    """What is known of the Kafka offsets of one log."""

    source: str | None = None
    """What tells where they begin; None where nothing does."""
    hidden: str | None = None
    """Why they are not known, of a log that has some."""
    _translation: Translation | None = None
    _end: int = 0
    """The Raft offset up to which they are known."""

    def of(self, raft_offset: int) -> int | None:
        """Return the Kafka offset of a Raft offset, or of what follows it; None if not known."""
        if self._translation is None or raft_offset > self._end:
            return None
        return self._translation.to_kafka(raft_offset)

    def last_of(self, raft_offset: int) -> int | None:
        """Return the same of the last Raft offset of a range, which itself has one."""
        behind = self.of(raft_offset + 1)
        return None if behind is None else behind - 1


NO_VIEW = KafkaView()
"""Of a log that has no offsets but its own."""


def view(listed: Partition, ledger: Ledger, ranges: Ranges) -> KafkaView | None:
    """Return what is known of a log; None of one of Kafka, or outside of the namespace ``kafka``.

    `ranges` are its batches that have no Kafka offset.
    """
    if not listed.flavour.has_raft_offsets or not listed.segments:
        return None
    folder = listed.segments[0].log.path.parent
    if not kafka_start.in_kafka(folder):
        return None
    told = kafka_start.translation(listed, ranges)
    if told is None:
        return KafkaView(hidden=kafka_start.unknown(listed))
    end = ledger.log_end
    rows = ledger.having([reason for reason in GapReason if reason.is_loss])
    if rows.any():
        end = int(ledger.gaps.first_offset[rows].min())
    source, translation = told
    return KafkaView(source=source, _translation=translation, _end=end)
