"""The settings of topics that retention and the log cleaner depend on, each with its source.

A setting of the topic counts before a dynamic one of the broker, that before the dynamic default
of all brokers, and that before the broker's own file. Source: ``LogConfig``,
``ServerTopicConfigSynonyms``, ``KafkaConfig.logRetentionTimeMillis``,
``UnifiedLog.localRetentionMs`` (Kafka 3.9 and 4.2).
"""

from collections.abc import Mapping, Sequence
from dataclasses import field

from logtool.errors import UsageError
from logtool.formats.java_text import parse_long
from logtool.lazy_dataclass import dataclass
from logtool.metadata.image import MetadataImage
from logtool.metadata.setting_values import (
    BROKER_NAMES,
    OTHER_UNITS,
    SettingSource,
    SettingValue,
    fraction,
    in_file,
)
from logtool.node.settings import ALWAYS_COMPACTED

_DAY_MS = 86_400_000
POLICY, MS, BYTES = "cleanup.policy", "retention.ms", "retention.bytes"
LOCAL_MS, LOCAL_BYTES = "local.retention.ms", "local.retention.bytes"
REMOTE, NO_COPY = "remote.storage.enable", "remote.log.copy.disable"
DIRTY_RATIO, DELETE_RETENTION = "min.cleanable.dirty.ratio", "delete.retention.ms"
MIN_LAG, MAX_LAG = "min.compaction.lag.ms", "max.compaction.lag.ms"
SEGMENT_MS, SEGMENT_BYTES = "segment.ms", "segment.bytes"
OF_RETENTION: Mapping[str, str] = {
    POLICY: "delete",
    MS: str(7 * _DAY_MS),
    BYTES: "-1",
    LOCAL_MS: "-2",
    LOCAL_BYTES: "-2",
    REMOTE: "false",
    NO_COPY: "false",
}
"""Settings of a topic that retention depends on, with Kafka's defaults."""
OF_CLEANER: Mapping[str, str] = {
    POLICY: "delete",
    DIRTY_RATIO: "0.5",
    MIN_LAG: "0",
    MAX_LAG: str(2**63 - 1),
    DELETE_RETENTION: str(_DAY_MS),
    SEGMENT_MS: str(7 * _DAY_MS),
    SEGMENT_BYTES: str(1 << 30),
}
"""Settings of a topic that the log cleaner depends on, with Kafka's defaults."""
FILE_DELAY = "file.delete.delay.ms"
INDEX_BYTES, INDEX_INTERVAL = "segment.index.bytes", "index.interval.bytes"
_OF_INDEXES = {INDEX_BYTES: "10485760", INDEX_INTERVAL: "4096"}
_DEFAULTS = {**OF_RETENTION, **OF_CLEANER, **_OF_INDEXES, FILE_DELAY: "60000"}
_LEAST = {
    MS: -1, LOCAL_MS: -2, LOCAL_BYTES: -2, MIN_LAG: 0, MAX_LAG: 1, DELETE_RETENTION: 0,
    SEGMENT_MS: 1, SEGMENT_BYTES: 14,
}  # fmt: skip
"""The least value that Kafka takes; -1 means no limit, and -2 the limit of the whole log."""
FIRST_DELAY, INTERVAL = "log.initial.task.delay.ms", "log.retention.check.interval.ms"
BACKOFF, CLEANER = "log.cleaner.backoff.ms", "log.cleaner.enable"
_OF_BROKER = {FIRST_DELAY: "30000", INTERVAL: "300000", BACKOFF: "15000", CLEANER: "true"}
"""Settings of the broker alone, with Kafka's defaults."""
CHANGES_OF_CLEANER: Mapping[str, str] = {**OF_CLEANER, CLEANER: "true"}
"""Settings of the log cleaner that ``--with`` takes, with Kafka's defaults."""
CLEANER_THREADS, CLEANER_MAP = "log.cleaner.threads", "log.cleaner.dedupe.buffer.size"
CLEANER_BUFFERS = "log.cleaner.io.buffer.size"
_OF_THREADS = {CLEANER_THREADS: "1", CLEANER_MAP: "134217728", CLEANER_BUFFERS: "524288"}
"""Settings of the threads of the log cleaner, with Kafka's defaults."""
FROM_FILE = (
    *(BROKER_NAMES[name] for name in OF_RETENTION if name in BROKER_NAMES),
    *(name for name, _ in OTHER_UNITS[MS]),
    *_OF_BROKER,
)
"""Settings of retention to take from the broker's own file."""
CLEANER_FROM_FILE = (
    *(BROKER_NAMES[name] for name in OF_CLEANER),
    *(name for name, _ in OTHER_UNITS[SEGMENT_MS]),
    BACKOFF,
    CLEANER,
)
"""Settings of the log cleaner to take from it."""
ALL_FROM_FILE = tuple(dict.fromkeys((*FROM_FILE, *CLEANER_FROM_FILE, BROKER_NAMES[FILE_DELAY])))
"""Settings of both, and of the deletion of files, to take from it."""
SPACE_FROM_FILE = (
    *FROM_FILE,
    *(BROKER_NAMES[name] for name in (*_OF_INDEXES, FILE_DELAY)),
    *_OF_THREADS,
)
"""Settings of retention and of the deletion of files, and those that the room of a start depends
on, to take from it."""
_AS_WHOLE = -2
"""The value of a local limit that stands for the limit of the whole log."""


@dataclass(frozen=True, slots=True)
class TopicRetention:
    """The limits of one topic."""

    policy: SettingValue
    ms: SettingValue
    """Longest age: ``retention.ms``, or ``local.retention.ms`` for a log that is copied away."""
    bytes: SettingValue
    """Largest size: ``retention.bytes`` or ``local.retention.bytes``."""
    is_copied: bool = False
    """True if closed segments are copied to remote storage, and only copied ones are deleted."""

    @property
    def compacts(self) -> bool:
        """Return whether the topic is compacted."""
        return "compact" in self.policy.value

    @property
    def deletes(self) -> bool:
        """Return whether age and size count.

        With an empty policy, which Kafka takes since 4.2, they count for the local part of a log
        that is copied to remote storage.
        """
        return "delete" in self.policy.value or (self.is_copied and not self.compacts)

    @property
    def settings(self) -> tuple[SettingValue, SettingValue, SettingValue]:
        """Return policy, longest age and largest size."""
        return self.policy, self.ms, self.bytes


@dataclass()
class RetentionSettings:
    """The settings of all topics of one broker."""

    image: MetadataImage | None = None
    """None if the log dirs have no metadata log, so that settings of topics are not known."""
    node_id: int | None = None
    static: Mapping[str, str] = field(default_factory=dict)
    """The settings in the broker's own file."""
    changed: Mapping[str, str] = field(default_factory=dict)
    """Settings of a planned change, which count for all topics."""
    _known: dict[str, TopicRetention] = field(default_factory=dict)

    def of(self, topic: str) -> TopicRetention:
        """Return the limits of a topic."""
        if topic not in self._known:
            self._known[topic] = self._read(topic)
        return self._known[topic]

    def of_broker(self, name: str) -> SettingValue:
        """Return a setting of the broker alone, such as ``log.initial.task.delay.ms``."""
        if name in self.changed:
            return SettingValue(name, self.changed[name], SettingSource.OPTION)
        if name in self.static:
            return SettingValue(name, self.static[name], SettingSource.FILE)
        default = _OF_BROKER.get(name) or _OF_THREADS[name]
        return SettingValue(name, default, SettingSource.DEFAULT)

    def value(self, topic: str, name: str) -> SettingValue:
        """Return one setting of a topic."""
        if name in self.changed:
            return SettingValue(name, self.changed[name], SettingSource.OPTION)
        image = self.image or MetadataImage()
        # The image may know less of the broker's own file: `plan` shares that of another job.
        for found in (
            *image.sourced_values(topic, name, self.node_id),
            *in_file(name, self.static),
        ):
            return found
        is_compacted = name == POLICY and topic in ALWAYS_COMPACTED
        default = "compact" if is_compacted else _DEFAULTS[name]
        return SettingValue(name, default, SettingSource.DEFAULT)

    def _read(self, topic: str) -> TopicRetention:
        ms, size = self.value(topic, MS), self.value(topic, BYTES)
        remote = self.value(topic, REMOTE).is_true
        is_copied = remote and not self.value(topic, NO_COPY).is_true
        if is_copied:
            local_ms, local_size = self.value(topic, LOCAL_MS), self.value(topic, LOCAL_BYTES)
            ms = ms if local_ms.number == _AS_WHOLE else local_ms
            size = size if local_size.number == _AS_WHOLE else local_size
        return TopicRetention(self.value(topic, POLICY), ms, size, is_copied)


def parse_change(texts: Sequence[str], known: Mapping[str, str] = OF_RETENTION) -> dict[str, str]:
    """Return the settings in texts such as ``retention.ms=3600000``; UsageError for others."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name not in known:
            names = ", ".join(known)
            raise UsageError(f"--with {text}: expected NAME=VALUE with one of the names {names}")
        expected = _expected(name, value)
        if expected:
            raise UsageError(f"--with {text}: expected {expected}")
        found[name] = value
    return found


def _expected(name: str, value: str) -> str | None:
    """Return the kind of values that a setting takes, if this is not one; else None."""
    if name in (POLICY, REMOTE, NO_COPY, CLEANER):
        allowed = {"compact", "delete", ""} if name == POLICY else {"true", "false"}
        is_one = {part.strip() for part in value.split(",")} <= allowed
        return None if is_one else " and ".join(sorted(allowed - {""}))
    if name == DIRTY_RATIO:
        return None if 0 <= fraction(value, -1) <= 1 else "a number from 0 to 1"
    number, least = parse_long(value), _LEAST.get(name, -1)
    if number is not None and number >= least:
        return None
    return f"a whole number from {least} on" + ("; -1 is no limit" if least < 0 else "")
