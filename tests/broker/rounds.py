"""Rounds in which a broker deletes segments: topics to fill, the forecast, and what was deleted."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from broker.kafka import Broker
from deadlines import deadline_in

HOUR = 3_600_000
FOREVER = str(2**63 - 1)
CLOCK = 200
"""Segments of the topic `clock`, which grow old by one a second."""
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
ROUNDS = {
    **QUIET,
    "log.initial.task.delay.ms": str(DELAY),
    "log.retention.check.interval.ms": str(EVERY),
    "log.cleaner.backoff.ms": "1000",
}


def fill(broker: Broker, topic: str, times: Sequence[int], acks: str = "1") -> None:
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


def start_clock(home: Path) -> None:
    """Make the segments of the topic `clock` grow old one by one while the broker runs."""
    begin = time.time_ns() // 1_000_000 - HOUR
    for at, name in enumerate(sorted((home / "clock-0").glob("*.timeindex"))):
        name.write_bytes(struct.pack(">qi", begin + at * 1000, 0))


def started_ms(broker: Broker) -> int:
    """Return the time at which the broker scheduled its rounds."""
    line = next(one for one in broker.log.splitlines() if "Starting log cleanup with" in one)
    stamp = line.partition("[")[2].partition("]")[0]
    moment = time.strptime(stamp.partition(",")[0], "%Y-%m-%d %H:%M:%S")
    return round(time.mktime(moment)) * 1000 + int(stamp.partition(",")[2])


def wait_for(broker: Broker, home: Path, *, rounds: int, start: int, delay: int = DELAY) -> None:
    """Wait until the broker has deleted segments of `clock` in a round, or in a later one."""
    deadline = deadline_in(180)
    while time.monotonic() < deadline:
        times = deleted(home)
        last = max((at for (name, _), at in times.items() if name == "clock-0"), default=0)
        if last >= start + delay + (rounds - 1) * EVERY:
            return
        time.sleep(0.1)
    pytest.fail(f"fewer than {rounds} rounds:\n{broker.log_tail()}")


def deleted(home: Path) -> dict[tuple[str, int], int]:
    """Return the time at which each log was renamed for deletion, in ms."""
    return {
        (path.parent.name, int(path.name.partition(".")[0])): path.stat().st_ctime_ns // 1_000_000
        for path in home.glob("*/*.log.deleted")
    }


def forecast(
    copy: Path, start: int, settings: Mapping[str, str] = ROUNDS
) -> dict[tuple[str, int], dict[str, Any]]:
    """Return the forecast of `logtool retention` for each segment in a copy of a log dir."""
    return {
        (Path(one["path"]).parent.name, one["base_offset"]): one
        for one in _objects(copy, start, settings)
        if one["type"] == "segment"
    }


def early(copy: Path, start: int, settings: Mapping[str, str]) -> dict[str, tuple[int, int | None]]:
    """Return the first and the last offset that go too early, for each partition dir with such."""
    return {
        Path(one["path"]).name: (one["early"]["first_offset"], one["early"]["last_offset"])
        for one in _objects(copy, start, settings)
        if one["type"] == "partition" and one["early"]
    }


def _objects(copy: Path, start: int, settings: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the objects that `logtool retention` prints for a copy of a log dir."""
    file = copy.with_name("server.properties")
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    command = [sys.executable, "-m", "logtool", "retention", "-f", "ndjson", "--segments"]
    command += ["--at", str(start), "--broker-config", str(file), str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]
