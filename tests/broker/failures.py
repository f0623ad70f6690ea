"""Scenarios of batches cut short by SIGKILL, and of the next start of the broker."""

from __future__ import annotations

import shutil
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from broker import workloads
from broker.install import HarnessError
from broker.kafka import BASE_CONFIG, Broker, format_log_dir
from broker.scenarios import SMALL, Scenario
from broker.topics import TOPICS, Topic
from broker.traffic import try_batch

TORN_TOPIC = Topic(
    "torn.tail",
    "small batches, then batches of 3 MB; SIGKILL came while the broker wrote one of these",
    partitions=4,
    config={"max.message.bytes": "8000000"},
)

_TRIES = 60
_BATCH_RECORDS = 30
_ENOUGH_BYTES = 12_000_000


def torn(version: str, work: Path) -> Iterator[Scenario]:
    """Kill a broker during writes until the last batch of a log is cut short.

    The kernel ends a large write() early when a fatal signal arrives; about one kill in four hits.
    """
    root = work / "torn"
    for _ in range(_TRIES):
        shutil.rmtree(root, ignore_errors=True)
        format_log_dir(version, [root], extra_config=SMALL)
        _write_until_killed(version, root)
        tails = {path.parent.name: torn_bytes(path) for path in sorted(root.glob("torn*/*.log"))}
        if any(tails.values()):
            break
    else:
        raise HarnessError(f"{_TRIES} kills, and not one tore a batch")
    notes = [f"{name}: incomplete last batch, {size} bytes" for name, size in tails.items() if size]
    about = "SIGKILL while the broker wrote batches of 3 MB; nothing was altered afterwards."
    config = {**BASE_CONFIG, **SMALL}
    yield Scenario("torn", version, root, about, tuple(notes), (TORN_TOPIC,), config)


def recovered(version: str, archive: Path, work: Path) -> Iterator[Scenario]:
    """Start a broker on an archived scenario, and stop it as soon as it is ready."""
    before = archive.name.removesuffix(".tar.xz")
    with tarfile.open(archive) as packed:
        packed.extractall(work, filter="tar")
    root = work / f"{before}-recovered"
    (work / before).rename(root)
    with Broker(version, [root], SMALL) as broker:
        broker.start()
        broker.stop()
    notes = (
        "segments from the recovery point on were scanned, cut, and their indexes rebuilt",
        "the restart put a row into every leader-epoch-checkpoint; __cluster_metadata-0 went on",
    )
    about = f"What Kafka made of `{before}`: started on it, and stopped in order when ready."
    topics = (TORN_TOPIC,) if before == "torn" else TOPICS
    config = {**BASE_CONFIG, **SMALL}
    name = root.name
    yield Scenario(name, version, root, about, notes, topics, config, with_records=False)


def torn_bytes(path: Path) -> int:
    """Return the number of bytes after the last whole batch of a log."""
    size = path.stat().st_size
    position = 0
    with path.open("rb") as log:
        while position + 12 <= size:
            log.seek(position + 8)
            end = position + 12 + int.from_bytes(log.read(4), "big")
            if end > size:
                break
            position = end
    return size - position


def _write_until_killed(version: str, root: Path) -> None:
    with Broker(version, [root], SMALL) as broker:
        broker.start()
        workloads.create_topics(broker.bootstrap, version, [TORN_TOPIC])
        writer = workloads.Writer(broker.bootstrap)
        for partition in range(TORN_TOPIC.partitions):
            small = workloads.messages(f"torn-{partition}", 60, workloads.EPOCH_MS)
            writer.batches(TORN_TOPIC.name, small, (5, 20), partition)
        threads = [
            threading.Thread(target=_write_big, args=(broker.bootstrap, partition), daemon=True)
            for partition in range(TORN_TOPIC.partitions)
        ]
        for thread in threads:
            thread.start()
        logs = list(root.glob("torn*/*.log"))
        while sum(path.stat().st_size for path in logs) < _ENOUGH_BYTES:
            time.sleep(0.0005)
        broker.kill()
        for thread in threads:
            thread.join(30)


def _write_big(bootstrap: str, partition: int) -> None:
    writer = workloads.Writer(bootstrap)
    writer.patience = 2.0
    value = b"a large batch takes the broker long to write " * 2200
    batch = [workloads.Message(None, value, workloads.EPOCH_MS)] * _BATCH_RECORDS
    while try_batch(writer, TORN_TOPIC.name, batch, partition):
        pass
