"""``--broker-config``: the configuration file of a broker, such as server.properties.

The file is read as a broker reads it: Java properties in Latin-1, the last of several lines with
one key counts, and values are trimmed. ``log.dirs`` goes before ``log.dir``, which is
``/tmp/kafka-logs`` where neither is set, and empty names in the list count for nothing. With KRaft
(``process.roles``) ``metadata.log.dir`` is one more log dir. A relative path begins at the current
directory, as it does for a broker that is started in it.
Source: ``Utils.loadProps``, ``ConfigDef.parseType``, ``AbstractKafkaConfig.logDirs``,
``KafkaConfig.metadataLogDir``, ``KafkaRaftServer.initializeLogDirs`` (Kafka 3.9 and 4.x).

A broker uses a setting of this file for a topic only if neither the topic nor the dynamic
configuration sets it, so the engine reads the metadata log first.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from logtool.errors import UsageError

OPTION = "--broker-config"
LOG_DIRS, LOG_DIR, METADATA_LOG_DIR = "log.dirs", "log.dir", "metadata.log.dir"
INDEXES = ("log.index.interval.bytes", "log.index.size.max.bytes")
THREADS = "num.recovery.threads.per.data.dir"
TIMESTAMPS = ("log.message.timestamp.after.max.ms", "log.message.timestamp.difference.max.ms")
POLICY = "log.cleanup.policy"
JUDGED = (*TIMESTAMPS, POLICY, INDEXES[0])
"""Settings that the findings of `verify` depend on."""
LEAST_IN_SYNC = "min.insync.replicas"
VOTERS = "controller.quorum.voters"
NODE_IDS = ("node.id", "broker.id")
PROTOCOL, ROLES, ZOOKEEPER = "inter.broker.protocol.version", "process.roles", "zookeeper.connect"
BOOTSTRAP_SERVERS = "controller.quorum.bootstrap.servers"
CLEANER, REMOTE_STORAGE = "log.cleaner.enable", "remote.log.storage.system.enable"
_DEFAULTS = {CLEANER: "true", REMOTE_STORAGE: "false"}
"""Settings that are true or false, with Kafka's default."""
OF_NODE = (LOG_DIRS, LOG_DIR, METADATA_LOG_DIR, ROLES, *NODE_IDS, VOTERS, BOOTSTRAP_SERVERS,
           *_DEFAULTS)  # fmt: skip
"""Settings that are compared with the log dirs."""
_NOT_JUDGED = frozenset({
    "broker.id.generation.enable", "log.message.format.version", "reserved.broker.max.id",
    "unstable.feature.versions.enable", "zookeeper.metadata.migration.enable",
})  # fmt: skip
"""Settings on which a start depends and that no rule here reads."""
DEFAULT_LOG_DIR = "/tmp/kafka-logs"
_INTEGERS = {
    INDEXES[0]: 0, INDEXES[1]: 12, THREADS: 1, LEAST_IN_SYNC: 1, "log.segment.bytes": 14,
    "log.retention.minutes": -1, "log.retention.hours": -1, "log.roll.hours": 1,
    "log.cleaner.threads": 0, "log.cleaner.io.buffer.size": 0, **dict.fromkeys(NODE_IDS, -1),
}  # fmt: skip
_LONGS = {
    **dict.fromkeys(TIMESTAMPS, 0), "log.message.timestamp.before.max.ms": 0,
    "log.retention.ms": -1, "log.retention.bytes": -1, "log.roll.ms": 1,
    "log.local.retention.ms": -2, "log.local.retention.bytes": -2,
    "log.initial.task.delay.ms": 0, "log.retention.check.interval.ms": 1,
    "log.cleaner.backoff.ms": 0, "log.cleaner.delete.retention.ms": 0,
    "log.cleaner.min.compaction.lag.ms": 0, "log.cleaner.max.compaction.lag.ms": 1,
    "log.segment.delete.delay.ms": 0, "log.cleaner.dedupe.buffer.size": 0,
}  # fmt: skip
"""By key: the least value."""
_RATIO = "log.cleaner.min.cleanable.ratio"
_TEXTS = (*OF_NODE, POLICY, PROTOCOL, ZOOKEEPER, _RATIO)
_KNOWN = frozenset({*_INTEGERS, *_LONGS, *_TEXTS})
_CHOICES = {
    **dict.fromkeys(_DEFAULTS, (r"(?i)true|false", "true or false")),
    _RATIO: (r"0(\.\d*)?|\.\d+|1(\.0*)?", "a number from 0 to 1"),
    ROLES: (r"|(broker|controller)(\s*,\s*(broker|controller))?", "broker, controller or both"),
    VOTERS: (r"|\d+@[^,@]+:\d+(\s*,\s*\d+@[^,@]+:\d+)*", "voters such as 1@host:9093"),
}
"""By key: a pattern of its values, and their description."""
_RELEASE = re.compile(r"[0-9]{1,4}\.[0-9]{1,4}(?![0-9])")
_CONTROLS_AND_SPACE = "".join(map(chr, range(ord(" ") + 1)))
"""Characters that Java's ``String.trim`` removes."""
_MOST = 1024 * 1024
"""Bytes of the largest file that is read."""
_LONGEST = 100
"""Characters of a value that a message shows."""


class BrokerConfig:
    """The settings of one file that matter here; it remembers which of them were asked for."""

    def __init__(
        self, path: str = "", values: Mapping[str, str] | None = None,
        lines: Mapping[str, int] | None = None, warnings: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        """Take the values by key and the line of each; without arguments, of no file."""
        self.path = path
        self._values, self._lines = values or {}, lines or {}
        self._taken: dict[str, str] = {}
        """By key: how the summary line names it."""
        self._sources: dict[Path, str] = {}
        self.warnings = warnings

    def __bool__(self) -> bool:
        return bool(self.path)

    def take(self, *keys: str) -> dict[str, str]:
        """Return the values of the given keys that are set, as in the file."""
        found = {key: self._values[key] for key in keys if key in self._values}
        for key, value in found.items():
            self._taken[key] = f"{key}={value} (line {self._lines[key]})"
        return found

    def of_node(self) -> dict[str, str]:
        """Return the settings of the node and its log dirs, to compare them with the disk.

        The log dirs are compared only where they are the given ones. The summary line names them
        only if they come from the file.
        """
        if not self:
            return {}
        dirs = {LOG_DIRS, LOG_DIR, METADATA_LOG_DIR}
        if self._sources:
            return {**_DEFAULTS, **self.take(*OF_NODE)}
        quiet = {key: self._values[key] for key in dirs & self._values.keys()}
        return {**_DEFAULTS, **quiet, **self.take(*(key for key in OF_NODE if key not in dirs))}

    def hints(self) -> tuple[str, ...]:
        """Return the keys that hint at the release: those of ZooKeeper only without KRaft."""
        return (PROTOCOL,) if self._values.get(ROLES) else (PROTOCOL, ZOOKEEPER)

    def number(self, key: str, default: int) -> int:
        """Return one setting that is a whole number."""
        return int(self.take(key).get(key, default))

    def log_dirs(self) -> list[str]:
        """Return the log dirs of the broker, each once; UsageError for an empty list."""
        key = LOG_DIRS if LOG_DIRS in self._values else LOG_DIR
        given = self.take(key)
        if not given:
            self._taken[key] = f"log.dir={DEFAULT_LOG_DIR} (the default)"
        named = dict.fromkeys(_names(given.get(key, DEFAULT_LOG_DIR)), key)
        if not named:
            raise UsageError(f"{self.path}:{self._lines[key]}: {key} contains no log dir")
        if self._values.get(ROLES) and self._values.get(METADATA_LOG_DIR):
            named.setdefault(self.take(METADATA_LOG_DIR)[METADATA_LOG_DIR], METADATA_LOG_DIR)
        for name, of in named.items():
            if of in self._lines:
                self._sources[Path(name)] = f"{self.path}:{self._lines[of]}: {of}"
        return list(named)

    def source_of(self, path: Path) -> str | None:
        """Return file, line and key of a log dir; None if it is the default."""
        return self._sources.get(path)

    def summary_line(self) -> str:
        """Return the line with the settings that were used."""
        if not self._taken:
            return f"{self.path}: no setting was used"
        return f"taken from {self.path}: {', '.join(self._taken.values())}"


NO_CONFIG = BrokerConfig()
"""Without a file."""


def load(text: str) -> BrokerConfig:
    """Read a file by name; UsageError in one line for a value that a broker could not use."""
    from logtool.formats import meta_properties  # whose lines are Java properties too

    path = Path(text)
    try:
        with path.open("rb") as opened:
            data = opened.read(_MOST + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot read {OPTION} {text}: {reason}") from error
    if len(data) > _MOST:
        raise UsageError(
            f"{OPTION} {text}: is larger than 1 MiB; this does not look like a properties file"
        )
    parsed = meta_properties.parse(data)
    if parsed.unread:
        line = 1 + len(data[: len(data) - len(parsed.unread)].splitlines())
        raise UsageError(rf"{text}:{line}: expected four hex digits after every '\u'")
    values: dict[str, str] = {}
    lines: dict[str, int] = {}
    warnings = []
    for element in parsed.elements:
        key = element.key
        number = element.line.number
        if key in _NOT_JUDGED:
            warnings.append(f"{text}:{number}: {key}: a start depends on it, and logtool does not")
            warnings[-1] += " judge it"
        if key is None or key not in _KNOWN:
            continue
        if key in values:
            before = f"line {lines[key]} sets it too; the last line counts"
            warnings.append(f"{text}:{number}: {key}: {before}")
        values[key], lines[key] = (element.value or "").strip(_CONTROLS_AND_SPACE), number
    for key, value in values.items():
        _check(key, value, f"{text}:{lines[key]}")
    return BrokerConfig(text, values, lines, tuple(warnings))


def _check(key: str, value: str, where: str) -> None:
    """Raise UsageError for a value that a broker could not use."""
    from logtool.formats.java_text import parse_int, parse_long

    shown = f'"{value}"' if len(value) <= _LONGEST else f'"{value[:_LONGEST]}..."'
    if re.search(r"\$\{[^}]*\}", value):
        reason = f"{shown} requires a config provider; logtool does not run config providers"
        raise UsageError(f"{where}: {key}: {reason}")
    if key == PROTOCOL and not _RELEASE.match(value):
        raise UsageError(f"{where}: {key}: expected a release such as 3.7-IV4, found {shown}")
    if key in _CHOICES:
        pattern, described = _CHOICES[key]
        if not re.fullmatch(pattern, value):
            raise UsageError(f"{where}: {key}: expected {described}, found {shown}")
    for least_of, parse in ((_INTEGERS, parse_int), (_LONGS, parse_long)):
        if key in least_of:
            number, least = parse(value), least_of[key]
            if number is None or number < least:
                reason = f"expected a whole number of at least {least}, found {shown}"
                raise UsageError(f"{where}: {key}: {reason}")


def _names(text: str) -> Iterator[str]:
    return (name for name in re.split(r"\s*,\s*", text) if name)
