"""The end of an active segment, which is not cleaned before a broker begins another one.

That happens at an append: of a batch that would make the segment larger than ``segment.bytes``, or
whose timestamp is more than ``segment.ms`` after the first batch of the segment. In a compacted
topic ``max.compaction.lag.ms`` counts in place of ``segment.ms`` if it is smaller. A random part of
``segment.jitter.ms`` makes it earlier.

Source: ``LogSegment.shouldRoll``, ``timeWaitedForRoll``, ``LogConfig.maxSegmentMs`` (Kafka
4.0.0-SNAPSHOT, 1eb7644349c).
"""

from logtool.cleaner import reading
from logtool.cleaner.rules import NO_LAG
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import Partition
from logtool.metadata.setting_values import SettingValue
from logtool.retention import settings
from logtool.retention.settings import RetentionSettings
from logtool.times import rfc3339


@dataclass(frozen=True, slots=True)
class SegmentRoll:
    """The limits at which a broker begins another segment."""

    age: SettingValue
    """``segment.ms`` or ``max.compaction.lag.ms``, the one that counts."""
    size: SettingValue
    """``segment.bytes``."""
    first_ms: int | None
    """Timestamp of the first batch of the active segment, in ms; None if it has none."""
    bytes_left: int
    """Bytes that the active segment may still get."""

    @property
    def after_ms(self) -> int | None:
        """Return the time from which on an append begins another segment; None if not known."""
        return None if self.first_ms is None else self.first_ms + self.age.number + 1

    @property
    def after(self) -> str | None:
        """Return that time in UTC."""
        return rfc3339(self.after_ms)


def of_active_segment(partition: Partition, known: RetentionSettings, size: int) -> SegmentRoll:
    """Return when the active segment of a compacted partition ends; UnreadableError.

    `size` is the size of its .log file, in bytes.
    """
    topic, last = partition.topic or "", len(partition.segments) - 1
    age, lag = (known.value(topic, name) for name in (settings.SEGMENT_MS, settings.MAX_LAG))
    if 0 < lag.number < age.number:
        age = lag
    limit = known.value(topic, settings.SEGMENT_BYTES)
    first, _ = reading.first_batches(partition, range(last, last + 1), NO_LAG)
    return SegmentRoll(
        age=age,
        size=limit,
        first_ms=None if first == NO_LAG else first,
        bytes_left=max(0, limit.number - size),
    )
