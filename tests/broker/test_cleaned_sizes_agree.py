"""Compares `logtool cleaner --sizes` with the segments that the log cleaner of a broker leaves."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from broker.conftest import runnable
from broker.install import KAFKA_3, KAFKA_NEWEST, major
from broker.kafka import Broker, format_log_dir
from deadlines import deadline_in

from logtool.formats import offset_checkpoint

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]

QUIET = {"log.cleaner.backoff.ms": "600000"}
BUSY = {"log.cleaner.backoff.ms": "200"}
RELEASES = [KAFKA_NEWEST, pytest.param(KAFKA_3, marks=pytest.mark.long)]
KEYS, RECORDS = 700, 4000
TOPICS = {"plain": ("none", 0.04), "packed": ("gzip", 0.12), "aborted": ("lz4", 0.12)}
"""The codec of the producer, and how wrong the bytes may be: fewer records compress less well, and
a batch with a delete horizon has longer timestamps."""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A log dir, which is deleted at the end."""
    yield tmp_path / "home"
    shutil.rmtree(tmp_path / "home", ignore_errors=True)


@pytest.mark.parametrize("release", RELEASES)
def test_a_cleaning_leaves_the_forecast_records_and_about_the_bytes(
    release: str, home: Path
) -> None:
    version = runnable(release)
    with Broker(version, [home], QUIET) as broker:
        format_log_dir(version, [home])
        broker.start()
        _create(broker, version)
        for topic, (codec, _) in TOPICS.items():
            _fill(broker, topic, codec, aborts=topic == "aborted")
        broker.stop()
    forecast = {one["topic"]: one for one in _objects("cleaner", "--sizes", home)}
    rows = {topic: forecast[topic]["checkpoint_after"] for topic in TOPICS}
    before = {topic: _left(home, topic, rows[topic])[0] for topic in TOPICS}
    with Broker(version, [home], BUSY) as broker:
        broker.start()
        deadline = deadline_in(180)
        while not rows.items() <= _rows(home).items():
            assert time.monotonic() < deadline, broker.log_tail()
            time.sleep(0.1)
        broker.stop()
    for topic, row in rows.items():
        sizes = forecast[topic]["sizes"]
        records, size = _left(home, topic, row)
        assert sizes["is_exact"]
        assert (sizes["records"], sizes["records_after"]) == (before[topic], records), topic
        assert sizes["records_after"] < sizes["records"] / 2
        assert sizes["bytes_after"] == pytest.approx(size, rel=TOPICS[topic][1]), topic


def _create(broker: Broker, version: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    name = "internal.segment.bytes" if major(version) >= 4 else "segment.bytes"
    config = {name: "50000", "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.0"}
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    new = [NewTopic(topic, 1, 1, config=config) for topic in TOPICS]
    for future in client.create_topics(new).values():
        future.result(60)


def _fill(broker: Broker, topic: str, codec: str, *, aborts: bool) -> None:
    """Produce records of few keys, with tombstones; with `aborts` one half in such transactions."""
    from confluent_kafka import Producer

    random = Random(topic)
    config: dict[str, Any] = {
        "bootstrap.servers": broker.bootstrap, "batch.num.messages": 100, "linger.ms": 1000,
        "compression.type": codec,
    }  # fmt: skip
    if aborts:
        config |= {"transactional.id": "sizes"}
    producer = Producer(config)
    if aborts:
        producer.init_transactions(60)
    for part in range(4):
        if aborts:
            producer.begin_transaction()
        for _ in range(RECORDS // 4):
            key = f"key-{random.randrange(KEYS)}"
            value = f"{random.random()} {'text ' * random.randrange(30)}".encode()
            producer.produce(topic, None if random.random() < 0.05 else value, key, partition=0)
        assert producer.flush(60) == 0
        if aborts:
            (producer.abort_transaction if part % 2 else producer.commit_transaction)(60)


def _rows(home: Path) -> Mapping[str, int]:
    path = home / "cleaner-offset-checkpoint"
    data = path.read_bytes() if path.exists() else b""
    return {topic: row for (topic, _), row in offset_checkpoint.parse(data).offsets.items()}


def _left(home: Path, topic: str, row: int) -> tuple[int, int]:
    """Return the data records of the segments before a row, and their bytes."""
    logs = [path for path in (home / f"{topic}-0").glob("*.log") if int(path.stem) < row]
    found = _objects("dump", "--records", "--values", "len", *logs)
    records = [one for one in found if one["type"] == "record" and not one["control"]]
    return len(records), sum(path.stat().st_size for path in logs)


def _objects(name: str, *words: object) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "logtool", name, "-f", "ndjson", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    return [one for one in objects if name != "cleaner" or one["type"] == "partition"]
