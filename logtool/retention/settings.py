"""The settings of topics that retention depends on, each with its source.

A setting of the topic counts before a dynamic one of the broker, that before the dynamic default
of all brokers, and that before the broker's own file. Source: ``LogConfig``,
``ServerTopicConfigSynonyms``, ``KafkaConfig.logRetentionTimeMillis``,
``UnifiedLog.localRetentionMs`` (Kafka 3.9 and 4.2).
"""

from collections.abc import Mapping
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
)
from logtool.node.settings import ALWAYS_COMPACTED

_DAY_MS = 86_400_000
POLICY, MS, BYTES = "cleanup.policy", "retention.ms", "retention.bytes"
LOCAL_MS, LOCAL_BYTES = "local.retention.ms", "local.retention.bytes"
REMOTE, NO_COPY = "remote.storage.enable", "remote.log.copy.disable"
_DEFAULTS: Mapping[str, str] = {
    POLICY: "delete",
    MS: str(7 * _DAY_MS),
    BYTES: "-1",
    LOCAL_MS: "-2",
    LOCAL_BYTES: "-2",
    REMOTE: "false",
    NO_COPY: "false",
}
"""Kafka's defaults of the settings of a topic."""
FIRST_DELAY, INTERVAL = "log.initial.task.delay.ms", "log.retention.check.interval.ms"
BACKOFF, CLEANER = "log.cleaner.backoff.ms", "log.cleaner.enable"
_OF_BROKER = {FIRST_DELAY: "30000", INTERVAL: "300000", BACKOFF: "15000", CLEANER: "true"}
"""Settings of the broker alone, with Kafka's defaults."""
FROM_FILE = (
    *(BROKER_NAMES[name] for name in _DEFAULTS if name in BROKER_NAMES),
    *(name for name, _ in OTHER_UNITS),
    *_OF_BROKER,
)
"""Settings to take from the broker's own file."""
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
        if name in self.static:
            return SettingValue(name, self.static[name], SettingSource.FILE)
        return SettingValue(name, _OF_BROKER[name], SettingSource.DEFAULT)

    def value(self, topic: str, name: str) -> SettingValue:
        """Return one setting of a topic."""
        if name in self.changed:
            return SettingValue(name, self.changed[name], SettingSource.OPTION)
        image = self.image or MetadataImage(static=self.static)
        for found in image.sourced_values(topic, name, self.node_id):
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


def parse_change(texts: "list[str] | tuple[str, ...]") -> dict[str, str]:
    """Return the settings in texts such as ``retention.ms=3600000``; UsageError for others."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name not in _DEFAULTS:
            names = ", ".join(_DEFAULTS)
            raise UsageError(f"--with {text}: expected NAME=VALUE with one of the names {names}")
        is_word = name in (POLICY, REMOTE, NO_COPY)
        if not is_word and (parse_long(value) is None or int(value) < _AS_WHOLE):
            raise UsageError(f"--with {text}: expected a whole number, or -1 for no limit")
        allowed = {"compact", "delete", ""} if name == POLICY else {"true", "false"}
        if is_word and not {part.strip() for part in value.split(",")} <= allowed:
            words = " and ".join(sorted(allowed - {""}))
            raise UsageError(f"--with {text}: expected {words}")
        found[name] = value
    return found
