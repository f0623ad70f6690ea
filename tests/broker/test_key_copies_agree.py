"""Compares the ends in `logtool retention --key` with the files of a broker after its rounds."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from broker.conftest import runnable
from broker.install import KAFKA_3, KAFKA_NEWEST, major
from broker.kafka import Broker, format_log_dir
from deadlines import deadline_in

from logtool.formats import offset_checkpoint

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]

HOUR = 3_600_000
QUIET = {
    "log.initial.task.delay.ms": "600000",
    "log.cleaner.backoff.ms": "600000",
    "log.segment.delete.delay.ms": "600000",
}
"""A broker that deletes nothing while the topics are filled."""
ROUNDS = {
    "log.initial.task.delay.ms": "1000",
    "log.retention.check.interval.ms": "600000",
    "log.cleaner.backoff.ms": "200",
    "log.segment.delete.delay.ms": "500",
}
RELEASES = [KAFKA_NEWEST, pytest.param(KAFKA_3, marks=pytest.mark.long)]
KEY = "person"
_COMPACT = {"cleanup.policy": "compact", "retention.ms": "-1", "min.cleanable.dirty.ratio": "0.0"}
_OLD = {"retention.ms": str(HOUR)}
TOPICS: Mapping[str, tuple[Mapping[str, str], tuple[str, ...]]] = {
    # Settings, and the keys of the records, each in a segment of its own; "-" is a tombstone.
    "replaced": (_COMPACT, (KEY, "a", KEY, "b", "c")),
    "replaced-late": (_COMPACT, (KEY, "a", KEY)),
    "buried": (_COMPACT, (KEY, "-", "a", "b")),
    "aborted": (_COMPACT, (KEY, "a")),
    "both": ({**_COMPACT, **_OLD, "cleanup.policy": "compact,delete"}, (KEY, "a", KEY, "b")),
    "aged": (_OLD, (KEY, "a", KEY, "b")),
    "kept": ({"retention.ms": "-1"}, (KEY, "a", KEY, "b")),
    "doomed": (_OLD, (KEY, KEY)),
}
ENDS = {
    # Offset of a copy, its rule, and the obstacle of one that stays.
    "replaced": {0: "cleaner", 2: "latest-value"},
    "replaced-late": {0: "active-segment", 2: "latest-value"},
    "buried": {0: "cleaner", 1: "tombstone"},
    "aborted": {0: "latest-value", 2: "cleaner"},
    "both": {0: "time", 2: "time"},
    "aged": {0: "time", 2: "time"},
    "kept": {0: "no-limit", 2: "no-limit"},
    "doomed": {0: "deleted-partition", 1: "deleted-partition"},
    "left": {0: "start"},
}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A log dir, which is deleted at the end."""
    yield tmp_path / "home"
    for name in ("home", "copy"):
        shutil.rmtree(tmp_path / name, ignore_errors=True)


@pytest.mark.parametrize("release", RELEASES)
def test_each_copy_goes_or_stays_as_forecast(release: str, home: Path) -> None:
    version = runnable(release)
    copy = home.with_name("copy")
    with Broker(version, [home], QUIET) as broker:
        format_log_dir(version, [home])
        broker.start()
        _create(broker, version)
        for topic, (_, keys) in TOPICS.items():
            _fill(broker, topic, keys)
        _abort(broker, "aborted")
        _fill(broker, "aborted", ("b", "c"))
        _delete_topic(broker, home, "doomed")
        broker.stop()
    first = home / "kept-0" / f"{0:020d}.log"
    shutil.copy2(first, home / "kept-0" / f"{first.name}.deleted")
    subprocess.run(["cp", "-a", home, copy], check=True)
    copies, total = _search(copy)
    found: dict[str, dict[int, str]] = {}
    for one in copies:
        topic = "left" if one["state"] == "deleted" else one["topic"]
        for offset in {one["first_offset"], one["last_offset"]}:
            found.setdefault(topic, {})[offset] = one["rule"] or one["obstacle"]
    assert found == ENDS
    assert total["gone_ms"] is None
    staying = _places(one for one in copies if one["gone_ms"] is None)
    rows = _forecast_rows(copy)
    del rows["both"]  # Retention comes first, so that nothing is left to clean.
    with Broker(version, [home], ROUNDS) as broker:
        broker.start()
        deadline = deadline_in(180)
        while not (rows.items() <= _rows(home).items() and _places(_search(home)[0]) == staying):
            if time.monotonic() > deadline:
                left = sorted(_places(_search(home)[0]) ^ staying)
                pytest.fail(f"{left}, {_rows(home)} for {rows}\n{broker.log_tail()}")
            time.sleep(0.2)
        broker.kill()
    after, total = _search(home)
    assert _places(after) == staying
    assert total["hidden"] == 0


def _create(broker: Broker, version: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    name = "internal.segment.bytes" if major(version) >= 4 else "segment.bytes"
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    new = [
        NewTopic(topic, 1, 1, config={name: "1000", **config})
        for topic, (config, _) in TOPICS.items()
    ]
    for future in client.create_topics(new).values():
        future.result(60)


def _delete_topic(broker: Broker, home: Path, topic: str) -> None:
    from confluent_kafka.admin import AdminClient

    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    client.delete_topics([topic])[topic].result(60)
    deadline = deadline_in(60)
    while not list(home.glob(f"{topic}-0.*-delete")):
        assert time.monotonic() < deadline, broker.log_tail()
        time.sleep(0.1)


def _fill(broker: Broker, topic: str, keys: tuple[str, ...]) -> None:
    """Produce batches with one record of five hours ago each; a retry writes no batch twice."""
    from confluent_kafka import Producer

    old = time.time_ns() // 1_000_000 - 5 * HOUR
    producer = Producer({
        "bootstrap.servers": broker.bootstrap, "batch.num.messages": 1, "enable.idempotence": True,
    })  # fmt: skip
    errors: list[object] = []
    for key in keys:
        is_tombstone = key == "-"
        producer.produce(
            topic, None if is_tombstone else b"v" * 700, KEY if is_tombstone else key, partition=0,
            timestamp=old, on_delivery=lambda error, _: errors.append(error),
        )  # fmt: skip
    assert producer.flush(60) == 0
    assert errors == [None] * len(keys)


def _abort(broker: Broker, topic: str) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "undone"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, b"v" * 700, KEY, partition=0)
    assert producer.flush(60) == 0
    producer.abort_transaction(60)


def _rows(home: Path) -> dict[str, int]:
    path = home / "cleaner-offset-checkpoint"
    data = path.read_bytes() if path.exists() else b""
    return {topic: row for (topic, _), row in offset_checkpoint.parse(data).offsets.items()}


def _places(copies: Any) -> set[tuple[str, int, int]]:
    """Return topic and offsets of copies: a cleaned segment may have the name of another one."""
    return {(one["topic"], one["first_offset"], one["last_offset"]) for one in copies}


def _search(log_dir: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    settings = log_dir.with_name("server.properties")
    settings.write_text("".join(f"{name}={value}\n" for name, value in ROUNDS.items()))
    objects = _objects("retention", "--key", KEY, "--broker-config", str(settings), log_dir)
    copies = [one for one in objects if one["type"] == "copy"]
    return copies, next(one for one in objects if one["type"] == "copies")


def _forecast_rows(log_dir: Path) -> dict[str, int]:
    found = [one for one in _objects("cleaner", log_dir) if one["type"] == "partition"]
    return {one["topic"]: one["checkpoint_after"] for one in found if one["topic"] in TOPICS}


def _objects(name: str, *words: object) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "logtool", name, "-f", "ndjson", *map(str, words)]
    # Status 4: a file has vanished, because the broker deleted it. The next look has the answer.
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 4), done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
