"""Compares the forecast of `logtool retention` with the files that a broker deletes."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from broker.conftest import runnable
from broker.install import KAFKA_3, KAFKA_4, KAFKA_NEWEST, major
from broker.kafka import Broker, format_log_dir
from broker.rounds import (
    CLOCK,
    DELAY,
    EVERY,
    FOREVER,
    HOUR,
    QUIET,
    ROUNDS,
    TICK,
    deleted,
    early,
    fill,
    forecast,
    start_clock,
    started_ms,
    wait_for,
)

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]

RELEASES = [
    KAFKA_NEWEST,
    *(pytest.param(one, marks=pytest.mark.long) for one in (KAFKA_4, KAFKA_3)),
]
_AGED = {"retention.ms": str(HOUR)}
_KEPT = {"retention.ms": "-1"}
_BOTH = {"cleanup.policy": "compact,delete"}
_DIRTY = {"min.cleanable.dirty.ratio": "1.0"}
"""With it the cleaner rewrites no segment."""
TOPICS: Mapping[str, tuple[Mapping[str, str], Sequence[float]]] = {
    # The timestamps of the segments, in hours after now; the last segment is the active one.
    "aged": (_AGED, (-5, -4, -3, -0.5, -2, -0.1)),
    "aged-whole": (_AGED, (-5, -4, -3)),
    "future": (_AGED, (-5, -4, 500_000, -4, -3, -2)),
    "sized": ({**_KEPT, "retention.bytes": "1500"}, (-5, -4, -3, -2, -1)),
    "sized-and-aged": ({**_AGED, "retention.bytes": "2400"}, (-5, -4, -3, -2, -0.5)),
    "compacted": ({**_AGED, **_DIRTY, "cleanup.policy": "compact"}, (-5, -4, -3)),
    "compacted-aged": ({**_AGED, **_DIRTY, **_BOTH}, (-5, -4, -0.5, -3)),
    "unlimited": (_KEPT, (-5, -4, -3)),
    "started": (_KEPT, (-5, -4, -3, -2)),
    "started-compacted": ({**_KEPT, **_DIRTY, **_BOTH}, (-5, -4, -3, -2)),
    "no-times": (_AGED, (-5, -4, -3, -2)),
    "no-times-old": (_AGED, (-0.5, -0.4, -0.3, -0.2)),
    "zero-times": (_AGED, (-0.5, -0.4, -0.3)),
    "nothing": (_AGED, ()),
}


@pytest.fixture
def log_dirs(tmp_path: Path) -> Iterator[list[Path]]:
    """Log dirs of two brokers, which take little room."""
    yield [tmp_path / "one", tmp_path / "two"]
    for name in ("one", "two", "copy"):
        shutil.rmtree(tmp_path / name, ignore_errors=True)


@pytest.mark.parametrize("release", RELEASES)
def test_the_broker_deletes_each_segment_in_its_round(release: str, log_dirs: list[Path]) -> None:
    version = runnable(release)
    home, copy = log_dirs[0], log_dirs[0].with_name("copy")
    now = time.time_ns() // 1_000_000
    with Broker(version, [home], QUIET) as broker:
        format_log_dir(version, [home])
        broker.start()
        with Broker(version, [log_dirs[1]], QUIET, node_id=2, controller=broker.controller) as two:
            format_log_dir(version, [log_dirs[1]], node_id=2)
            two.start()
            _create(broker, version)
            fill(broker, "behind", [now - 5 * HOUR, now - 4 * HOUR], acks="all")
            two.stop()
        fill(broker, "behind", [now - 3 * HOUR, now - 2 * HOUR], acks="1")
        for topic, (_, hours) in TOPICS.items():
            fill(broker, topic, [now + round(hour * HOUR) for hour in hours])
        fill(broker, "seconds", [now // 1000 + number for number in range(3)])
        fill(broker, "clock", [now] * CLOCK)
        _delete_records(broker, {"started": 2, "started-compacted": 2})
        broker.stop()
    _damage(home, now)
    subprocess.run(["cp", "-a", home, copy], check=True)
    with Broker(version, [home], ROUNDS) as broker:
        broker.start()
        start = started_ms(broker)
        wait_for(broker, home, rounds=3, start=start)
        broker.kill()
    predicted, gone_ms = forecast(copy, start), deleted(home)
    assert len(predicted) > 150
    clock_rounds = set()
    for (name, base), segment in predicted.items():
        at_ms = gone_ms.pop((name, base), None)
        if at_ms is None:
            # What goes in a later round was not waited for.
            assert segment["round"] is None or segment["round"] > 3, (name, base, segment)
            continue
        assert segment["round"] is not None, (name, base, segment)
        if name.startswith(("compacted", "started-compacted")):
            continue  # The thread of the cleaner has a beat of its own.
        found = (at_ms + TICK - start - DELAY) // EVERY + 1
        due = segment["timestamp_ms"] + HOUR
        is_late = segment["rule"] == "time" and found + 1 == segment["round"] and due < at_ms
        assert found == segment["round"] or is_late, (name, base, segment, found)
        clock_rounds |= {found} if name == "clock-0" else set()
    assert not gone_ms
    assert len(clock_rounds) > 1  # A busy machine may leave a round out.
    gone = Counter(name for (name, _), segment in predicted.items() if segment["round"] == 1)
    expected = {"aged-0": 3, "aged-whole-0": 3, "future-0": 2, "sized-0": 3, "started-0": 2,
                "sized-and-aged-0": 4, "compacted-0": 0, "compacted-aged-0": 2, "unlimited-0": 0,
                "started-compacted-0": 2, "no-times-0": 1, "no-times-old-0": 2, "zero-times-0": 1,
                "behind-0": 2, "seconds-0": 3}  # fmt: skip
    assert {name: gone[name] for name in expected} == expected


@pytest.mark.parametrize("release", RELEASES)
def test_records_in_seconds_are_kept_as_the_command_says(
    release: str, log_dirs: list[Path]
) -> None:
    """The topic is changed before a first round; the interval and the broker's file do not help."""
    version = runnable(release)
    home, copy = log_dirs[0], log_dirs[0].with_name("copy")
    now = time.time_ns() // 1_000_000
    with Broker(version, [home], QUIET) as broker:
        format_log_dir(version, [home])
        broker.start()
        for name in ("gone", "kept"):
            _new_topic(broker, version, name, _AGED)
            fill(broker, name, [now // 1000 + number for number in range(3)])
        _new_topic(broker, version, "clock", _AGED)
        fill(broker, "clock", [now] * CLOCK)
        # This is what the command says: the first round waits, and the topic is changed then.
        _set(broker, "kept", {"retention.ms": "-1"})
        broker.stop()
    start_clock(home)
    subprocess.run(["cp", "-a", home, copy], check=True)
    settings = {**ROUNDS, "log.retention.check.interval.ms": "3600000", "log.retention.ms": "-1"}
    with Broker(version, [home], settings) as broker:
        broker.start()
        start = started_ms(broker)
        wait_for(broker, home, rounds=1, start=start)
        broker.kill()
    found = early(copy, start, settings)
    assert found == {"gone-0": (0, 2)}
    gone = Counter(name for name, _ in deleted(home))
    assert (gone["gone-0"], gone["kept-0"]) == (3, 0)


def _new_topic(broker: Broker, version: str, name: str, config: Mapping[str, str]) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    size = "internal.segment.bytes" if major(version) >= 4 else "segment.bytes"
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    topic = NewTopic(name, 1, replica_assignment=[[1]], config={size: "1000", **config})
    for future in client.create_topics([topic]).values():
        future.result(60)


def _set(broker: Broker, topic: str, config: Mapping[str, str]) -> None:
    from confluent_kafka.admin import (
        AdminClient,
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        ResourceType,
    )

    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in config.items()
    ]
    asked = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    for future in client.incremental_alter_configs([asked]).values():
        future.result(60)


def _create(broker: Broker, version: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    name = "internal.segment.bytes" if major(version) >= 4 else "segment.bytes"
    common = {name: "1000", "message.timestamp.after.max.ms": FOREVER}
    new = [
        NewTopic(topic, 1, replica_assignment=[[1]], config={**common, **config})
        for topic, config in (
            *((topic, config) for topic, (config, _) in TOPICS.items()),
            ("seconds", _AGED),
            ("clock", _AGED),
        )
    ]
    two = {**common, **_AGED, "min.insync.replicas": "2"}
    new.append(NewTopic("behind", 1, replica_assignment=[[1, 2]], config=two))
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in client.create_topics(new).values():
        future.result(60)


def _delete_records(broker: Broker, offsets: Mapping[str, int]) -> None:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    asked = [TopicPartition(topic, 0, offset) for topic, offset in offsets.items()]
    for future in client.delete_records(asked).values():
        future.result(60)


def _damage(home: Path, now: int) -> None:
    """Take timestamps out of time indexes, and change the times of files."""
    for base, name in enumerate(sorted((home / "no-times-0").glob("*.timeindex"))):
        if base:
            name.write_bytes(b"")
    for base, name in enumerate(sorted((home / "no-times-old-0").glob("*.timeindex"))):
        name.write_bytes(b"")
        old = now / 1000 - (7200 if base < 2 else 60)
        os.utime(name.with_suffix(".log"), (old, old))
    first = min((home / "zero-times-0").glob("*.timeindex"))
    first.write_bytes(bytes(24))
    start_clock(home)
