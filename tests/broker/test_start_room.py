"""Compares the room that `logtool space` reports for a start with what a broker writes."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from broker.command import Object, objects, of_type
from broker.conftest import runnable
from broker.install import KAFKA_NEWEST
from broker.kafka import Broker, format_log_dir
from deadlines import deadline_in

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]

QUIET = {
    "log.initial.task.delay.ms": "600000",
    "log.cleaner.backoff.ms": "600000",
    "log.segment.delete.delay.ms": "600000",
}
"""A broker that neither deletes nor cleans."""
CLEANING = {**QUIET, "log.cleaner.backoff.ms": "200"}
MIB = 1 << 20
PARTITIONS = 3
TOPICS: Mapping[str, Mapping[str, str]] = {
    "plain": {"segment.bytes": str(MIB)},
    "dense": {"segment.bytes": str(MIB), "index.interval.bytes": "2000"},
    "small-indexes": {"segment.index.bytes": str(MIB), "index.interval.bytes": "1000"},
    "compacted": {
        "cleanup.policy": "compact", "segment.bytes": str(MIB), "min.cleanable.dirty.ratio": "0.1"
    },
}  # fmt: skip
SLACK = 64 * 1024
"""Bytes by which the room may be too large: small files, and a snapshot for each log."""
TIMES = 4
"""An index has an entry for a batch at most; the room assumes one for each interval of bytes."""


@pytest.mark.parametrize("end", ["stopped", "killed", "no-indexes"])
def test_a_start_writes_no_more_than_space_says(tmp_path: Path, end: str) -> None:
    version, home = runnable(KAFKA_NEWEST), tmp_path / "data"
    format_log_dir(version, [home])
    with Broker(version, [home], QUIET) as broker:
        broker.start()
        _fill(broker)
        broker.stop() if end == "stopped" else broker.kill()
    if end == "no-indexes":
        for path in home.glob("*-[0-9]/*index"):
            path.unlink()
    (room,) = of_type(_space(home), "file-system")
    before = _files(home)
    with Broker(version, [home], QUIET) as broker:
        broker.start()
        after, indexes = _files(home), _index_sizes(home, _files(home))
        broker.stop()
    grown = sum(blocks for _, blocks in after.values()) - _blocks(before)
    assert grown <= room["start_bytes"] <= TIMES * max(0, grown) + SLACK
    assert indexes - _index_sizes(home, before) == room["index_growth_bytes"]
    assert (room["recovery_bytes"] > 0) is (end != "stopped")
    # The metadata log may begin another block.
    assert (grown > SLACK // 4) is (end != "stopped")

    # The next start cleans the compacted logs; what it replaces keeps its room.
    (room,) = of_type(_space(home, threads=PARTITIONS), "file-system")
    before = _files(home)
    with Broker(version, [home], CLEANING) as broker:
        broker.start()
        _wait_for_cleaning(home)
        grown = _blocks(_files(home)) - _blocks(before)
    assert 0 < grown <= room["start_bytes"] + room["cleaner_bytes"]
    assert room["cleaner_bytes"] == sum(
        size for folder in home.glob("compacted-*")
        for size in (one.stat().st_size for one in folder.glob("*.log.deleted"))
    )  # fmt: skip


def _fill(broker: Broker) -> None:
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    new = [NewTopic(name, PARTITIONS, 1, config=dict(config)) for name, config in TOPICS.items()]
    for future in client.create_topics(new).values():
        future.result(60)
    producer = Producer({
        "bootstrap.servers": broker.bootstrap, "linger.ms": 5, "batch.num.messages": 5,
        "enable.idempotence": True,
    })  # fmt: skip
    for number in range(6000):
        for topic in TOPICS:
            value, key = os.urandom(700), str(number % 500)
            producer.produce(topic, value, key, partition=number % PARTITIONS)
        producer.poll(0)
    assert producer.flush(60) == 0


def _space(home: Path, threads: int = 1) -> list[Object]:
    settings = home.with_name("server.properties")
    settings.write_text(f"log.cleaner.threads={threads}\n")
    return objects("space", "--broker-config", settings, home)


def _files(home: Path) -> dict[Path, tuple[int, int]]:
    """Return size and bytes of blocks of each file."""
    found = ((path, path.stat()) for path in home.rglob("*") if path.is_file())
    return {path: (status.st_size, status.st_blocks * 512) for path, status in found}


def _blocks(files: Mapping[Path, tuple[int, int]]) -> int:
    return sum(blocks for _, blocks in files.values())


def _index_sizes(home: Path, files: Mapping[Path, tuple[int, int]]) -> int:
    """Return the sizes of the indexes of active segments."""
    found = 0
    for topic in TOPICS:
        for folder in home.glob(f"{topic}-[0-9]"):
            active = max(folder.glob("*.log"))
            ends = (active.with_suffix(".index"), active.with_suffix(".timeindex"))
            found += sum(files.get(path, (0, 0))[0] for path in ends)
    return found


def _wait_for_cleaning(home: Path) -> None:
    """Wait until the segments of all compacted logs were replaced."""
    deadline = deadline_in(60)
    while time.monotonic() < deadline:
        replaced = {path.parent for path in home.glob("compacted-*/*.log.deleted")}
        if len(replaced) == PARTITIONS and not [*home.glob("*/*.cleaned"), *home.glob("*/*.swap")]:
            return
        time.sleep(0.1)
    pytest.fail("the log cleaner replaced no segment")
