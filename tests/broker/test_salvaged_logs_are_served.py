"""A broker serves damaged logs that logtool salvaged or repaired.

A seed damages every partition of a log dir. logtool repairs every second topic in place from an
undamaged copy and salvages the other topics, whose directories are then replaced. A broker loads
the log dir without a clean marker. A consumer reads every record of a repaired partition, and
exactly the records of the undamaged batches of a salvaged partition.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from broker.command import objects, of_type
from broker.conftest import runnable
from broker.consuming import consumed
from broker.install import KAFKA_2, KAFKA_4
from broker.kafka import Broker
from broker.zookeeper import ZooKeeper
from salvage_campaign import WAYS, batches, partitions

pytestmark = pytest.mark.broker

CONFIG = {"log.cleaner.enable": "false", "log.retention.ms": "-1"}
Place = tuple[str, int]


def damage(log_dir: Path, seed: int) -> set[bytes]:
    """Damage one log of every partition; return the undamaged batches."""
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
    """Repair every second topic from the original; return all offsets of its partitions."""
    starts: dict[Place, int] = {}
    for folder in partitions(log_dir):
        topic, _, digits = folder.name.rpartition("-")
        if not topic.startswith("__"):
            starts[topic, int(digits)] = 0
    topics = sorted({topic for topic, _ in starts})[::2]
    words = [word for topic in topics for word in ("--topic", topic)]
    said = objects("recover", "--apply", "--fill-from", original, *words, log_dir)
    assert not any(obj.get("action") in ("unfilled", "truncate") for obj in said)
    places = [place for place in starts if place[0] in topics]
    for obj in of_type(said, "partition"):
        starts[obj["topic"], obj["partition"]] = obj["log_start_offset"]
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
    for obj in objects("dump", "--records", "--values", "len", *words, home):
        if obj["type"] == "record" and not obj["control"]:
            place, offset = (obj["topic"], obj["partition"]), obj["offset"]
            found[place] += [offset] if offset >= starts[place] else []
    return found


def salvage(log_dir: Path, work: Path, repaired: set[str]) -> dict[Place, list[int]]:
    """Replace the partitions by salvaged ones; return the offsets that each must have."""
    saved = work / "saved"
    away = [word for topic in ("__*", *sorted(repaired)) for word in ("--exclude-topic", topic)]
    said = objects("salvage", "--output", saved, *away, log_dir)
    starts: dict[Place, int] = {}
    for obj in of_type(said, "partition"):
        folder = Path(obj["target"])
        shutil.rmtree(log_dir / folder.name)
        shutil.copytree(folder, log_dir / folder.name)
        starts[obj["topic"], obj["partition"]] = obj["log_start_offset"]
    (log_dir / ".kafka_cleanshutdown").unlink(missing_ok=True)
    return offsets(saved / "partitions", starts)


def check(log_dir: Path, sound: set[bytes], promised: dict[Place, list[int]]) -> None:
    """Assert that the partitions have sound batches only, and enough records."""
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
    """Copy a salvaged partition into a log dir; its new name has the kind of its messages."""
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
        # A new topic takes over a directory of its name.
        topics = [NewTopic(topic, count, 1) for topic, count in counts.items()]
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        for made in admin.create_topics(topics, operation_timeout=60).values():
            made.result(60)
        served(broker, promised)
        broker.stop()
