"""Compares the forecast of `logtool retention` with the files that a broker deletes."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from broker.conftest import runnable
from broker.install import KAFKA_3, KAFKA_4, KAFKA_NEWEST, major
from broker.kafka import Broker, format_log_dir

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]

HOUR = 3_600_000
QUIET = {
    "log.initial.task.delay.ms": "600000",
    "log.cleaner.backoff.ms": "600000",
    "log.segment.delete.delay.ms": "600000",
    "replica.high.watermark.checkpoint.interval.ms": "200",
}
"""A broker that deletes nothing while the topics are filled."""
DELAY, EVERY = 2000, 4000
TICK = 20
"""The time of a change is that of the kernel's last tick: up to so many ms before the change."""
CLOCK = 200
"""Segments of the topic `clock`, which grow old by one a second."""
ROUNDS = {
    **QUIET,
    "log.initial.task.delay.ms": str(DELAY),
    "log.retention.check.interval.ms": str(EVERY),
    "log.cleaner.backoff.ms": "1000",
}
RELEASES = [
    KAFKA_NEWEST,
    *(pytest.param(one, marks=pytest.mark.long) for one in (KAFKA_4, KAFKA_3)),
]
_FOREVER = str(2**63 - 1)
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
            _fill(broker, "behind", [now - 5 * HOUR, now - 4 * HOUR], acks="all")
            two.stop()
        _fill(broker, "behind", [now - 3 * HOUR, now - 2 * HOUR], acks="1")
        for topic, (_, hours) in TOPICS.items():
            _fill(broker, topic, [now + round(hour * HOUR) for hour in hours])
        _fill(broker, "seconds", [now // 1000 + number for number in range(3)])
        _fill(broker, "clock", [now] * CLOCK)
        _delete_records(broker, {"started": 2, "started-compacted": 2})
        broker.stop()
    _damage(home, now)
    subprocess.run(["cp", "-a", home, copy], check=True)
    with Broker(version, [home], ROUNDS) as broker:
        broker.start()
        start = _started_ms(broker)
        _wait_for(broker, home, rounds=3, start=start)
        broker.kill()
    forecast = _forecast(copy, start)
    deleted = _deleted(home)
    assert len(forecast) > 150
    clock_rounds = set()
    for (name, base), segment in forecast.items():
        at_ms = deleted.pop((name, base), None)
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
    assert not deleted
    assert len(clock_rounds) > 1  # A busy machine may leave a round out.
    gone = Counter(name for (name, _), segment in forecast.items() if segment["round"] == 1)
    expected = {"aged-0": 3, "aged-whole-0": 3, "future-0": 2, "sized-0": 3, "started-0": 2,
                "sized-and-aged-0": 4, "compacted-0": 0, "compacted-aged-0": 2, "unlimited-0": 0,
                "started-compacted-0": 2, "no-times-0": 1, "no-times-old-0": 2, "zero-times-0": 1,
                "behind-0": 2, "seconds-0": 3}  # fmt: skip
    assert {name: gone[name] for name in expected} == expected


def _create(broker: Broker, version: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    name = "internal.segment.bytes" if major(version) >= 4 else "segment.bytes"
    common = {name: "1000", "message.timestamp.after.max.ms": _FOREVER}
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


def _fill(broker: Broker, topic: str, times: Sequence[int], acks: str = "1") -> None:
    """Produce a segment of one batch for each time."""
    from confluent_kafka import Producer

    config = {"bootstrap.servers": broker.bootstrap, "acks": acks, "linger.ms": 0}
    # One request at a time: a batch that is sent again keeps its place.
    producer = Producer({**config, "batch.num.messages": 1, "max.in.flight": 1})
    errors: list[object] = []
    for number, stamp in enumerate(times):
        producer.produce(
            topic, b"v" * 700, str(number).encode(), partition=0, timestamp=stamp,
            on_delivery=lambda error, _: errors.append(error),
        )  # fmt: skip
    assert producer.flush(60) == 0
    assert errors == [None] * len(times)


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
    # Segments that grow old one by one while the broker runs.
    begin = time.time_ns() // 1_000_000 - HOUR
    for at, name in enumerate(sorted((home / "clock-0").glob("*.timeindex"))):
        name.write_bytes(struct.pack(">qi", begin + at * 1000, 0))


def _started_ms(broker: Broker) -> int:
    """Return the time at which the broker scheduled its rounds."""
    line = next(one for one in broker.log.splitlines() if "Starting log cleanup with" in one)
    stamp = line.partition("[")[2].partition("]")[0]
    moment = time.strptime(stamp.partition(",")[0], "%Y-%m-%d %H:%M:%S")
    return round(time.mktime(moment)) * 1000 + int(stamp.partition(",")[2])


def _wait_for(broker: Broker, home: Path, *, rounds: int, start: int) -> None:
    """Wait until the broker has deleted segments of `clock` in a round, or in a later one."""
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        times = _deleted(home)
        last = max((at for (name, _), at in times.items() if name == "clock-0"), default=0)
        if last >= start + DELAY + (rounds - 1) * EVERY:
            return
        time.sleep(0.1)
    pytest.fail(f"fewer than {rounds} rounds:\n{broker.log_tail()}")


def _deleted(home: Path) -> dict[tuple[str, int], int]:
    """Return the time at which each log was renamed for deletion, in ms."""
    return {
        (path.parent.name, int(path.name.partition(".")[0])): path.stat().st_ctime_ns // 1_000_000
        for path in home.glob("*/*.log.deleted")
    }


def _forecast(copy: Path, start: int) -> dict[tuple[str, int], dict[str, Any]]:
    settings = copy.with_name("server.properties")
    lines = {**ROUNDS}
    settings.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    command = [sys.executable, "-m", "logtool", "retention", "-f", "ndjson", "--segments"]
    command += ["--at", str(start), "--broker-config", str(settings), str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    return {
        (Path(one["path"]).parent.name, one["base_offset"]): one
        for one in objects
        if one["type"] == "segment"
    }
