"""Damaged logs that were salvaged or repaired, served by a broker: consumers read what is promised.

Every partition of a log dir is damaged by a seed. Every second topic is repaired in place from an
undamaged copy. Of the others, what is saved takes the place of the old directories. A broker loads
all of it without a marker. A consumer of each repaired partition gets every record, and of each
other one those of the batches that were not damaged, and no other.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from broker.conftest import runnable
from broker.consuming import consumed
from broker.install import KAFKA_2, KAFKA_4
from broker.kafka import Broker
from broker.zookeeper import ZooKeeper
from salvage_campaign import WAYS, batches, partitions

pytestmark = pytest.mark.broker

LOGTOOL = Path(sys.executable).parent / "logtool"
CONFIG = {"log.cleaner.enable": "false", "log.retention.ms": "-1"}
Place = tuple[str, int]


def logtool(*arguments: object) -> list[dict[str, object]]:
    command = [str(LOGTOOL), *map(str, arguments), "-f", "ndjson"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return list(map(json.loads, done.stdout.splitlines()))


def damage(log_dir: Path, seed: int) -> set[bytes]:
    """Damage one log of every partition; returns the batches that no damage touched."""
    rng, sound = random.Random(seed), set()
    for folder in partitions(log_dir):
        logs = [log for log in sorted(folder.glob("*.log")) if log.stat().st_size]
        hit = rng.choice(logs)
        data, touched = WAYS[rng.choice(list(WAYS))](hit.read_bytes(), rng)
        for log in logs:
            for at, batch in batches(log):
                if log != hit or not any(a < at + len(batch) and at < a + n for a, n in touched):
                    sound.add(batch)
        if not folder.name.startswith("__"):
            hit.write_bytes(data)
    return sound


def repair(log_dir: Path, original: Path) -> dict[Place, list[int]]:
    """Repair every second topic from the original; returns all offsets of its partitions."""
    starts: dict[Place, int] = {}
    for folder in partitions(log_dir):
        topic, _, digits = folder.name.rpartition("-")
        if not topic.startswith("__"):
            starts[topic, int(digits)] = 0
    topics = sorted({topic for topic, _ in starts})[::2]
    words = [word for topic in topics for word in ("--topic", topic)]
    said = logtool("recover", "--apply", "--fill-from", original, *words, log_dir)
    assert not any(obj.get("action") in ("unfilled", "truncate") for obj in said)
    places = [place for place in starts if place[0] in topics]
    for obj in (obj for obj in said if obj["type"] == "partition"):
        place = str(obj["topic"]), int(str(obj["partition"]))
        starts[place] = int(str(obj["log_start_offset"]))
    for name in (f"{topic}-{number}" for topic, number in places):
        for log in (original / name).glob("*.log"):
            assert (log_dir / name / log.name).read_bytes() == log.read_bytes()
    return offsets(original, {place: starts[place] for place in places})


def offsets(home: Path, starts: dict[Place, int]) -> dict[Place, list[int]]:
    """Return the offsets of all records from the given starts on."""
    found: dict[Place, list[int]] = {place: [] for place in starts}
    words = [
        word for topic in sorted({place[0] for place in starts}) for word in ("--topic", topic)
    ]
    for obj in logtool("dump", "--records", "--values", "len", *words, home):
        if obj["type"] == "record" and not obj["control"]:
            place, offset = (str(obj["topic"]), int(str(obj["partition"]))), int(str(obj["offset"]))
            found[place] += [offset] if offset >= starts[place] else []
    return found


def salvage(log_dir: Path, work: Path, repaired: set[str]) -> dict[Place, list[int]]:
    """Put what is saved in the place of the partitions; returns the offsets promised of each."""
    saved = work / "saved"
    away = [word for topic in ("__*", *sorted(repaired)) for word in ("--exclude-topic", topic)]
    said = logtool("salvage", "--output", saved, *away, log_dir)
    starts: dict[Place, int] = {}
    for obj in (obj for obj in said if obj["type"] == "partition"):
        folder = Path(str(obj["target"]))
        shutil.rmtree(log_dir / folder.name)
        shutil.copytree(folder, log_dir / folder.name)
        place = str(obj["topic"]), int(str(obj["partition"]))
        starts[place] = int(str(obj["log_start_offset"]))
    (log_dir / ".kafka_cleanshutdown").unlink(missing_ok=True)
    return offsets(saved / "partitions", starts)


def check(log_dir: Path, sound: set[bytes], promised: dict[Place, list[int]]) -> None:
    """Ask whether every sound batch is there and no other, and that much was promised at all."""
    there = [
        batch
        for topic, number in promised
        for log in (log_dir / f"{topic}-{number}").glob("*.log")
        for _, batch in batches(log)
    ]
    assert set(there) <= sound
    assert sum(map(len, promised.values())) > 1000


def served(broker: Broker, promised: dict[Place, list[int]]) -> None:
    found = consumed(broker, list(promised), "read_uncommitted")
    for place, offsets in promised.items():
        assert [record[0] for record in found[place]] == offsets, place


def test_a_broker_serves_what_was_saved_or_repaired(
    copy_of: Callable[[str], Path], tmp_path: Path
) -> None:
    version = runnable(KAFKA_4)
    log_dir = copy_of(f"{version}/clean")
    original = shutil.copytree(log_dir, tmp_path / "original")
    sound = damage(log_dir, 7)
    repaired = repair(log_dir, original)
    promised = salvage(log_dir, tmp_path, {topic for topic, _ in repaired})
    check(log_dir, sound, promised)
    promised |= repaired
    with Broker(version, [log_dir], CONFIG) as broker:
        broker.start()
        served(broker, promised)
        broker.stop()


def saved_as(folder: Path, home: Path, kind: str) -> None:
    """Put what was saved of a partition into a log dir, the kind of its messages in its name."""
    shutil.copytree(folder, home / f"{kind}.{folder.name}")


def test_an_old_broker_serves_what_was_saved_of_messages_of_magic_0_and_1(
    zookeeper: ZooKeeper, copy_of: Callable[[str], Path], tmp_path: Path
) -> None:
    version = runnable(KAFKA_2)
    from confluent_kafka.admin import AdminClient, NewTopic

    home = tmp_path / "home"
    home.mkdir()
    promised: dict[Place, list[int]] = {}
    for kind in ("magic-0", "magic-1"):
        log_dir = copy_of(f"{version}/{kind}")
        sound = damage(log_dir, 7)
        work = tmp_path / f"work-{kind}"
        work.mkdir()
        before = salvage(log_dir, work, set())
        check(log_dir, sound, before)
        for (topic, number), offsets in before.items():
            saved_as(log_dir / f"{topic}-{number}", home, kind)
            promised[f"{kind}.{topic}", number] = offsets
    counts = {topic: 1 + max(n for name, n in promised if name == topic) for topic, _ in promised}
    with Broker(version, [home], CONFIG, zookeeper=zookeeper) as broker:
        broker.start()
        # Logs that are there when their topics are made are the logs of these.
        topics = [NewTopic(topic, count, 1) for topic, count in counts.items()]
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        for made in admin.create_topics(topics, operation_timeout=60).values():
            made.result(60)
        served(broker, promised)
        broker.stop()
