"""Gaps of a log of Redpanda in Kafka's offsets, in addition to Raft's.

Compaction removes no batch without Kafka offsets, so all offsets of a gap that it left have Kafka
offsets. After a gap that may mean loss, and after damage, the number of Kafka offsets is not known.
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
    """The Kafka offsets of one log, as far as they are known."""

    source: str | None = None
    """Source of the first Kafka offset; None if there is no source."""
    hidden: str | None = None
    """Reason why the Kafka offsets of a log that has some are not known; None if known."""
    _translation: Translation | None = None
    _end: int = 0
    """The Raft offset up to which they are known."""

    def of(self, raft_offset: int) -> int | None:
        """Return the Kafka offset of a Raft offset, or of the next with one; None if unknown."""
        if self._translation is None or raft_offset > self._end:
            return None
        return self._translation.to_kafka(raft_offset)

    def last_of(self, raft_offset: int) -> int | None:
        """Return the Kafka offset of the last Raft offset of a range; None if unknown."""
        behind = self.of(raft_offset + 1)
        return None if behind is None else behind - 1


NO_VIEW = KafkaView()
"""View of a log whose own offsets are its only offsets."""


def view(listed: Partition, ledger: Ledger, ranges: Ranges) -> KafkaView | None:
    """Return the Kafka offsets of a log of Redpanda in the namespace ``kafka``; None for others.

    `ranges` are its batches without Kafka offsets.
    """
    if not listed.flavour.has_raft_offsets or not listed.segments:
        return None
    folder = listed.segments[0].log.path.parent
    if not kafka_start.in_kafka(folder):
        return None
    known = kafka_start.translation(listed, ranges)
    if known is None:
        return KafkaView(hidden=kafka_start.unknown(listed))
    end = ledger.log_end
    rows = ledger.having([reason for reason in GapReason if reason.is_loss])
    if rows.any():
        end = int(ledger.gaps.first_offset[rows].min())
    source, translation = known
    return KafkaView(source=source, _translation=translation, _end=end)
