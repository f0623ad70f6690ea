"""Values of settings, each with its source."""

from collections.abc import Iterator, Mapping
from enum import StrEnum

from logtool.formats.java_text import parse_long
from logtool.lazy_dataclass import dataclass

BROKER_NAMES: Mapping[str, str] = {
    "cleanup.policy": "log.cleanup.policy",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "index.interval.bytes": "log.index.interval.bytes",
    "local.retention.bytes": "log.local.retention.bytes",
    "local.retention.ms": "log.local.retention.ms",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.difference.max.ms": "log.message.timestamp.difference.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "min.insync.replicas": "min.insync.replicas",
    "preallocate": "log.preallocate",
    "retention.bytes": "log.retention.bytes",
    "retention.ms": "log.retention.ms",
    "segment.bytes": "log.segment.bytes",
    "segment.index.bytes": "log.index.size.max.bytes",
    "segment.ms": "log.roll.ms",
}
"""A broker's name for the default of a topic's setting (``ServerTopicConfigSynonyms``)."""
OTHER_UNITS: Mapping[str, tuple[tuple[str, int], ...]] = {
    "retention.ms": (("log.retention.minutes", 60_000), ("log.retention.hours", 3_600_000)),
    "segment.ms": (("log.roll.hours", 3_600_000),),
}
"""A broker's names for these in other units, in the order in which they count, with their ms."""


class SettingSource(StrEnum):
    """The places from which a setting comes."""

    OPTION = "option"
    TOPIC = "topic"
    BROKER = "broker"
    ALL_BROKERS = "all-brokers"
    FILE = "file"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class SettingValue:
    """One setting with its source."""

    name: str
    value: str
    source: SettingSource

    @property
    def number(self) -> int:
        """Return the value as a whole number; -1, no limit, for a text that is not one."""
        found = parse_long(self.value)
        return -1 if found is None else found

    @property
    def is_true(self) -> bool:
        """Return whether the value is ``true``."""
        return self.value.strip().lower() == "true"

    @property
    def fraction(self) -> float:
        """Return the value as a number; 1 for a text that is not one."""
        return fraction(self.value, 1.0)


def fraction(text: str, default: float) -> float:
    """Return the number in a text, or `default` if the text is not a number."""
    try:
        return float(text)
    except ValueError:
        return default


def in_file(name: str, static: Mapping[str, str]) -> Iterator[SettingValue]:
    """Yield the values of a topic's setting in the broker's own file, the one that counts first.

    Source: ``KafkaConfig.logRetentionTimeMillis`` (Kafka 3.9 and 4.2).
    """
    own = BROKER_NAMES.get(name)
    if own in static:
        yield SettingValue(name, static[own or ""], SettingSource.FILE)
    for other, factor in OTHER_UNITS.get(name, ()):
        count = parse_long(static.get(other, ""))
        if count is not None:
            yield SettingValue(name, str(max(count * factor, -1)), SettingSource.FILE)
