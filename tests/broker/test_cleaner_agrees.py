"""Compares the forecast of `logtool cleaner` with what the log cleaner of a broker does."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from broker.conftest import runnable
from broker.install import KAFKA_3, KAFKA_4, KAFKA_NEWEST, major
from broker.kafka import Broker, format_log_dir
from deadlines import deadline_in

from logtool.formats import offset_checkpoint
from logtool.formats.record_batch import HEADER_SIZE

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]

HOUR = 3_600_000
QUIET = {"log.cleaner.backoff.ms": "600000", "log.initial.task.delay.ms": "600000"}
"""A broker that cleans nothing while the topics are filled."""
BUSY = {**QUIET, "log.cleaner.backoff.ms": "200"}
RELEASES = [
    KAFKA_NEWEST,
    *(pytest.param(one, marks=pytest.mark.long) for one in (KAFKA_4, KAFKA_3)),
]
SEGMENTS = 6
"""Segments of one batch that most topics have."""
WHOLE, HALF = 700, 300
"""Bytes of a record of which one or two fit into a segment."""
BEYOND = 10**6
_HIGH = {"min.cleanable.dirty.ratio": "0.99"}
_ANY = {"min.cleanable.dirty.ratio": "0.0"}
"""The cleaner may come while a topic is filled, and comes again for the rest."""
TOPICS: Mapping[str, tuple[Mapping[str, str], int, int | None, str | None, int | None]] = {
    # Settings, records, the row before; the obstacle, and the row after.
    "ready": ({}, SEGMENTS, None, None, 5),
    "single": ({}, 1, None, "active-segment", None),
    "clean": ({}, SEGMENTS, 5, "active-segment", 5),
    "ratio": (_HIGH, SEGMENTS, 2, "dirty-ratio", 2),
    "max-lag": ({**_HIGH, "max.compaction.lag.ms": str(HOUR)}, SEGMENTS, 2, None, 5),
    "min-lag": ({"min.compaction.lag.ms": str(100 * HOUR)}, SEGMENTS, None, "min-lag", None),
    "above": ({}, SEGMENTS, BEYOND, None, 5),
    "above-ratio": ({"min.cleanable.dirty.ratio": "1.0"}, SEGMENTS, BEYOND, "dirty-ratio", 0),
    "started": ({}, SEGMENTS, 1, None, 5),
    "inside": ({"cleanup.policy": "compact,delete"}, SEGMENTS, 4, "dirty-ratio", 4),
    "damaged": ({}, SEGMENTS, None, "damaged-batch", None),
    "damaged-deep": ({}, 0, None, "damaged-batch", 0),
    "damaged-ratio": (_HIGH, SEGMENTS, 2, "damaged-batch", 2),
    "damaged-record": ({}, SEGMENTS, None, "damaged-batch", 0),
    "damaged-clean": (_ANY, SEGMENTS, 3, "damaged-batch", 3),
    "damaged-crc": ({}, SEGMENTS, None, None, 5),
    "keyless": ({"cleanup.policy": "delete"}, SEGMENTS, None, None, 5),
    "open": ({}, 0, None, "open-transaction", None),
    "watch-1": (_ANY, 0, None, "empty", None),
    "watch-2": (_ANY, 0, None, "empty", None),
}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A log dir, which is deleted at the end."""
    yield tmp_path / "home"
    for name in ("home", "copy"):
        shutil.rmtree(tmp_path / name, ignore_errors=True)


@pytest.mark.parametrize("release", RELEASES)
def test_the_cleaner_cleans_what_was_forecast(release: str, home: Path) -> None:
    version = runnable(release)
    copy = home.with_name("copy")
    with Broker(version, [home], QUIET) as broker:
        format_log_dir(version, [home])
        broker.start()
        _create(broker, version)
        for topic, (_, count, *_) in TOPICS.items():
            _fill(broker, topic, count, keyed=topic != "keyless")
        transaction = _begin(broker, "open")
        _fill(broker, "open", SEGMENTS)
        _fill(broker, "damaged-deep", 2 * SEGMENTS, size=HALF)
        _compact(broker, "keyless")
        broker.stop()
    del transaction
    rows = {topic: row for topic, (_, _, row, _, _) in TOPICS.items() if row is not None}
    _write_rows(home, rows)
    _damage(home / "damaged-0" / f"{1:020d}.log", 0)
    _damage(home / "damaged-ratio-0" / f"{4:020d}.log", 0)
    _damage(home / "damaged-deep-0" / f"{2:020d}.log", 1)
    _flip(home / "damaged-record-0" / f"{2:020d}.log", HEADER_SIZE)  # the length of the record
    _flip(home / "damaged-clean-0" / f"{1:020d}.log", HEADER_SIZE)
    _flip(home / "damaged-crc-0" / f"{2:020d}.log", 17)
    subprocess.run(["cp", "-a", home, copy], check=True)
    forecast = _forecast(copy)
    for topic, (_, _, _, obstacle, after) in TOPICS.items():
        one = forecast[topic]
        assert (one["obstacle"], one["checkpoint_after"]) == (obstacle, after), topic
    assert forecast["keyless"]["without_key"] == SEGMENTS - 1
    assert forecast["open"]["transaction_first_offset"] == 0
    with Broker(version, [home], BUSY) as broker:
        broker.start()
        _wait_for(broker, home, {topic: after for topic, (*_, after) in TOPICS.items()})
        # A log that is dirty only now is cleaned: by then, the others were looked at again.
        for topic in ("watch-1", "watch-2"):
            _fill(broker, topic, SEGMENTS)
            _wait_for(broker, home, {topic: 5})
        broker.kill()
        said = broker.log
    found = _rows(home)
    for topic, (_, _, _, obstacle, after) in TOPICS.items():
        if topic.startswith("watch-"):
            continue
        assert found.get(topic) == after, topic
        assert (f"cleaned log {topic}-0 " in said) == (obstacle is None), topic
        is_damaged = obstacle == "damaged-batch"
        assert (f"partition ({topic}-0) as uncleanable" in said) == is_damaged, topic


def _create(broker: Broker, version: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    name = "internal.segment.bytes" if major(version) >= 4 else "segment.bytes"
    common = {name: "1000", "cleanup.policy": "compact", "retention.ms": "-1"}
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    new = [NewTopic(topic, 1, 1, config={**common, **own}) for topic, (own, *_) in TOPICS.items()]
    for future in client.create_topics(new).values():
        future.result(60)


def _compact(broker: Broker, topic: str) -> None:
    from confluent_kafka.admin import (
        AdminClient,
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        ResourceType,
    )

    set_to = AlterConfigOpType.SET
    entry = ConfigEntry("cleanup.policy", "compact", incremental_operation=set_to)
    asked = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in client.incremental_alter_configs([asked]).values():
        future.result(60)


def _fill(broker: Broker, topic: str, count: int, *, keyed: bool = True, size: int = WHOLE) -> None:
    """Produce batches with one record of five hours ago each; a retry writes no batch twice."""
    from confluent_kafka import Producer

    old = time.time_ns() // 1_000_000 - 5 * HOUR
    producer = Producer({
        "bootstrap.servers": broker.bootstrap, "batch.num.messages": 1, "enable.idempotence": True,
    })  # fmt: skip
    errors: list[object] = []
    for number in range(count):
        producer.produce(
            topic, b"v" * size, str(number).encode() if keyed else None, partition=0, timestamp=old,
            on_delivery=lambda error, _: errors.append(error),
        )  # fmt: skip
    assert producer.flush(60) == 0
    assert errors == [None] * count


def _begin(broker: Broker, topic: str) -> Any:
    """Begin a transaction with one record, and leave it open."""
    from confluent_kafka import Producer

    producer = Producer({
        "bootstrap.servers": broker.bootstrap, "transactional.id": "never-ended",
        "transaction.timeout.ms": 900_000,
    })  # fmt: skip
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, b"v" * 700, b"open", partition=0)
    assert producer.flush(60) == 0
    return producer


def _damage(log: Path, number: int) -> None:
    """Set the length of a batch to 0, counted from 0 in a log."""
    data, position = bytearray(log.read_bytes()), 0
    for _ in range(number):
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    data[position + 8 : position + 12] = bytes(4)
    log.write_bytes(data)


def _flip(log: Path, position: int) -> None:
    """Change one bit of the first batch of a log."""
    data = bytearray(log.read_bytes())
    data[position] ^= 2
    log.write_bytes(data)


def _write_rows(home: Path, rows: Mapping[str, int]) -> None:
    offsets = {(topic, 0): row for topic, row in rows.items()}
    data = offset_checkpoint.encode(offset_checkpoint.build(offsets))
    (home / "cleaner-offset-checkpoint").write_bytes(data)


def _rows(home: Path) -> dict[str, int]:
    data = (home / "cleaner-offset-checkpoint").read_bytes()
    return {topic: row for (topic, _), row in offset_checkpoint.parse(data).offsets.items()}


def _wait_for(broker: Broker, home: Path, rows: Mapping[str, int | None]) -> None:
    """Wait until the checkpoint has these rows; it may also have others."""
    wanted = {topic: row for topic, row in rows.items() if row is not None}.items()
    deadline = deadline_in(180)
    while time.monotonic() < deadline:
        if wanted <= _rows(home).items():
            return
        time.sleep(0.1)
    missing: Sequence[object] = sorted(wanted - _rows(home).items())
    pytest.fail(f"the cleaner did not write {missing}:\n{broker.log_tail()}")


def _forecast(copy: Path) -> dict[str, dict[str, Any]]:
    command = [sys.executable, "-m", "logtool", "cleaner", "-f", "ndjson", "--records", str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    return {one["topic"]: one for one in objects if one["type"] == "partition"}
