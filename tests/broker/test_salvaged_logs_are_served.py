"""Damaged logs that were salvaged, served by a broker: consumers read all that was promised.

Every partition of a log dir is damaged by a seed. What is saved takes the place of the old
directories; a broker loads it without a marker, and a consumer of each partition gets the records
of the batches that were not damaged, and no other.
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
from broker.install import KAFKA_4
from broker.kafka import Broker
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


def salvage(log_dir: Path, work: Path) -> dict[Place, list[int]]:
    """Put what is saved in the place of the partitions; returns the offsets promised of each."""
    saved = work / "saved"
    said = logtool("salvage", "--output", saved, "--exclude-topic", "__*", log_dir)
    starts: dict[Place, int] = {}
    for told in (obj for obj in said if obj["type"] == "partition"):
        folder = Path(str(told["target"]))
        shutil.rmtree(log_dir / folder.name)
        shutil.copytree(folder, log_dir / folder.name)
        place = str(told["topic"]), int(str(told["partition"]))
        starts[place] = int(str(told["log_start_offset"]))
    promised: dict[Place, list[int]] = {place: [] for place in starts}
    for obj in logtool("dump", "--records", "--values", "len", saved / "partitions"):
        if obj["type"] == "record" and not obj["control"]:
            place, offset = (str(obj["topic"]), int(str(obj["partition"]))), int(str(obj["offset"]))
            promised[place] += [offset] if offset >= starts[place] else []
    (log_dir / ".kafka_cleanshutdown").unlink(missing_ok=True)
    return promised


def held(log_dir: Path, sound: set[bytes], promised: dict[Place, list[int]]) -> None:
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


def test_a_broker_serves_what_was_saved(copy_of: Callable[[str], Path], tmp_path: Path) -> None:
    version = runnable(KAFKA_4)
    log_dir = copy_of(f"{version}/clean")
    sound = damage(log_dir, 7)
    promised = salvage(log_dir, tmp_path)
    held(log_dir, sound, promised)
    with Broker(version, [log_dir], CONFIG) as broker:
        broker.start()
        served(broker, promised)
        broker.stop()
