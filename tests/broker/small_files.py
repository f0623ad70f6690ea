"""Starts of real brokers with damaged small files, in the root of a log dir or in a partition.

The log dirs of one broker are made once for each release and copied for each start. The first log
dir holds the metadata log. The others hold partitions of the same topics, so one start tests
several damaged log dirs: a broker continues without a log dir that it takes offline.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from broker.install import HarnessError
from broker.kafka import Broker, format_log_dir
from deadlines import deadline_in

from logtool.formats import offset_checkpoint

TOPIC = "kept"
COMPACTED = "compacted"
METADATA_DIR = "dir-0"
CONFIG: Mapping[str, str] = {
    "log.index.size.max.bytes": "4096",
    "num.recovery.threads.per.data.dir": "1",
    "log.cleaner.backoff.ms": "3600000",
    "log.segment.delete.delay.ms": "3600000",
    "file.delete.delay.ms": "3600000",
    "log.dir.failure.timeout.ms": "600000",
}
"""Settings for small files, for a cleaner that runs once, and for late deletions."""

_DIRECTORY = re.compile(r"(?P<name>.+-\d+)\.[0-9a-f]{32}-(?P<kind>stray|delete)")
_CLEANER_ENDS = re.compile(r"kafka-log-cleaner-thread-0.*(?:Error due to|[Uu]nexpected exception)")
_OFFLINE = re.compile(
    r"(?:Stopping serving logs in dir|Failed to create or validate data directory) ([^ ]*dir-\d+)"
)


@dataclass(frozen=True)
class Started:
    """The outcome of one start."""

    runs: bool
    offline: frozenset[str] = frozenset()
    """Names of the log dirs that the broker took offline."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """``stray`` or ``delete`` by ``log dir/partition``."""
    served: frozenset[str] = frozenset()
    """``topic-partition`` that took a record."""
    cleaner: bool = True
    """True if the log cleaner runs."""
    errors: tuple[str, ...] = ()
    """Lines of the broker's log that give the reason."""


def make(version: str, home: Path, dirs: int) -> None:
    """Make the log dirs of a broker that was stopped in order: `dirs` log dirs of four logs.

    Each log has two segments, so the log cleaner cleans something in every log dir.
    """
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    paths = log_dirs(home, dirs)
    format_log_dir(version, paths, extra_config=CONFIG)
    with Broker(version, paths, CONFIG) as broker:
        broker.start()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        rolled = {"segment.ms": "60000", "min.cleanable.dirty.ratio": "0.01"}
        topics = [
            NewTopic(TOPIC, dirs * 2, 1, config={}),
            NewTopic(COMPACTED, dirs * 2, 1, config={"cleanup.policy": "compact", **rolled}),
        ]
        for future in admin.create_topics(topics).values():
            future.result(30)
        now = int(time.time() * 1000)
        for age_ms in (600_000, 300_000, 0):
            producer = Producer(
                {
                    "bootstrap.servers": broker.bootstrap,
                    "linger.ms": 0,
                    "log_level": 0,
                    "log.connection.close": False,
                }
            )
            for topic in (TOPIC, COMPACTED):
                for number in range(dirs * 2):
                    for key in (b"a", b"b"):
                        producer.produce(topic, b"x" * 50, key, number, timestamp=now - age_ms)
            if producer.flush(60):
                raise HarnessError("not all records were produced")
        broker.stop()
    for path in paths:
        names = [entry.name for entry in path.iterdir() if entry.name.startswith(f"{COMPACTED}-")]
        rows = {(COMPACTED, int(name.rpartition("-")[2])): 2 for name in names}
        data = offset_checkpoint.encode(offset_checkpoint.build(rows))
        (path / "cleaner-offset-checkpoint").write_bytes(data)


def log_dirs(home: Path, dirs: int) -> list[Path]:
    """Return the paths of the log dirs in `home`."""
    return [home / f"dir-{number}" for number in range(dirs)]


def start(version: str, home: Path, dirs: int, *, timeout: float = 120.0) -> Started:
    """Start a broker on the log dirs in `home`, wait until nothing changes, and kill it."""
    paths = log_dirs(home, dirs)
    before = {path: _identity(path / "cleaner-offset-checkpoint") for path in paths}
    homes = {
        entry.name: path.name
        for path in paths for entry in path.iterdir() if entry.name.startswith((TOPIC, COMPACTED))
    }  # fmt: skip
    with Broker(version, paths, CONFIG) as broker:
        broker.launch()
        deadline = deadline_in(timeout)
        while broker.pid is not None and "Kafka Server started" not in broker.log:
            if time.monotonic() > deadline:
                break
            time.sleep(0.1)
        if broker.pid is None:
            return Started(False, errors=_reasons(broker.log))
        served = _produce(broker, homes)
        limit = time.monotonic() + 30
        while broker.pid is not None and time.monotonic() < limit:
            log = broker.log
            gone = _offline(log)
            ends = _CLEANER_ENDS.search(log)
            if ends or all(
                path.name in gone or _identity(path / "cleaner-offset-checkpoint") != before[path]
                for path in paths
            ):
                break
            time.sleep(0.1)
        log = broker.log
        runs = broker.pid is not None and "Kafka Server started" in log
        broker.kill()
    renamed = {}
    for path in paths:
        for entry in path.iterdir():
            found = _DIRECTORY.fullmatch(entry.name)
            if found:
                renamed[f"{path.name}/{found['name']}"] = found["kind"]
    return Started(
        runs, frozenset(_offline(log)) if runs else frozenset(), renamed, served,
        not _CLEANER_ENDS.search(log), _reasons(log),
    )  # fmt: skip


def _produce(broker: Broker, homes: Mapping[str, str]) -> frozenset[str]:
    """Return the partitions that accept a record."""
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap, "linger.ms": 0, "log_level": 0, "acks": "all",
            "log.connection.close": False,
            "message.timeout.ms": 4000, "retry.backoff.ms": 50,
            "topic.metadata.refresh.interval.ms": 500,
        }
    )  # fmt: skip
    served = set()

    def delivered(error: object, message: object) -> None:
        if error is None:
            served.add(f"{message.topic()}-{message.partition()}")  # type: ignore[attr-defined]

    for name in homes:
        topic, _, number = name.rpartition("-")
        producer.produce(topic, b"new", b"c", int(number), on_delivery=delivered)
    while len(producer) and broker.pid is not None:
        producer.poll(0.1)
        gone = _offline(broker.log)
        if all(name in served or homes[name] in gone for name in homes):
            break
    return frozenset(served)


def _offline(log: str) -> set[str]:
    return {Path(found).name for found in _OFFLINE.findall(log)}


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns


def _reasons(log: str) -> tuple[str, ...]:
    return tuple(
        line
        for line in log.splitlines()
        if re.search(r"ERROR|FATAL|Exception|stray|resetting", line)
    )[:12]
