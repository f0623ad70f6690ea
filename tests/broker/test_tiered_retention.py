"""Compares the forecast for topics in remote storage with the segments that a broker deletes."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from broker.conftest import runnable
from broker.install import KAFKA_3, KAFKA_4, major, tiered_storage
from broker.kafka import Broker, format_log_dir
from broker.rounds import (
    CLOCK,
    EVERY,
    FOREVER,
    HOUR,
    QUIET,
    ROUNDS,
    TICK,
    deleted,
    fill,
    forecast,
    start_clock,
    started_ms,
    wait_for,
)
from deadlines import deadline_in

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]

RELEASES = [KAFKA_4, pytest.param(KAFKA_3, marks=pytest.mark.long)]
DELAY = 10_000
"""Time until the first round: the broker first reads which segments are in remote storage."""
_REMOTE = {"remote.storage.enable": "true", "retention.ms": "-1"}
TOPICS: Mapping[str, tuple[Mapping[str, str], Sequence[float]]] = {
    # The timestamps of the segments, in hours after now; the last segment is the active one.
    "aged": ({**_REMOTE, "local.retention.ms": str(HOUR)}, (-5, -4, -3, -0.5, -2, -0.1)),
    "aged-whole": ({**_REMOTE, "local.retention.ms": str(HOUR)}, (-5, -4, -3)),
    "sized": ({**_REMOTE, "local.retention.bytes": "1500"}, (-5, -4, -3, -2, -1)),
    "as-all": ({"remote.storage.enable": "true", "retention.ms": str(HOUR)}, (-5, -4, -0.5, -2)),
    "kept": (_REMOTE, (-5, -4, -3)),
    "not-copied": (
        {"remote.storage.enable": "true", "remote.log.copy.disable": "true",
         "retention.ms": str(HOUR)},
        (-5, -4, -3, -0.5),
    ),
    "clock": ({"retention.ms": str(HOUR)}, ()),
}  # fmt: skip
COPIED = {
    "aged": {0, 1, 2, 3, 4}, "aged-whole": {0, 1}, "sized": {0, 1, 2, 3}, "as-all": {2},
    "kept": {0, 1},
}  # fmt: skip
"""The closed segments of each topic, which the broker copies; copies that are too old go."""
GONE = {"aged": 3, "aged-whole": 3, "sized": 3, "as-all": 2, "kept": 0, "not-copied": 3}
"""The local segments that the first rounds delete."""
LAST = 2
"""The last round that is compared; the broker is killed after the next."""


@pytest.mark.parametrize("release", RELEASES)
def test_the_broker_deletes_the_local_segments_of_the_forecast(
    release: str, tmp_path: Path
) -> None:
    version = runnable(release)
    home, copy, remote = tmp_path / "data", tmp_path / "copy", tmp_path / "remote"
    remote.mkdir()
    tiered = {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": (
            "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"
        ),
        "remote.log.storage.manager.class.path": str(tiered_storage(version)),
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "remote.log.manager.task.interval.ms": "500",
        "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
        "rsm.config.dir": str(remote),
        "rsm.config.delete.on.close": "false",
    }
    now = time.time_ns() // 1_000_000
    format_log_dir(version, [home])
    with Broker(version, [home], {**QUIET, **tiered}) as broker:
        broker.start()
        _create(broker, version)
        for topic, (_, hours) in TOPICS.items():
            fill(broker, topic, [now + round(hour * HOUR) for hour in hours])
        fill(broker, "clock", [now] * CLOCK)
        _wait_for_copies(remote)
        broker.stop()
    start_clock(home)
    subprocess.run(["cp", "-a", home, copy], check=True)
    rounds = {**ROUNDS, "log.initial.task.delay.ms": str(DELAY)}
    with Broker(version, [home], {**rounds, **tiered}) as broker:
        broker.start()
        start = started_ms(broker)
        wait_for(broker, home, rounds=LAST + 1, start=start, delay=DELAY)
        broker.kill()
    predicted, gone = forecast(copy, start, rounds), deleted(home)
    for (name, base), segment in predicted.items():
        if name in {f"{topic}-0" for topic in GONE}:
            at_ms = gone.get((name, base))
            found = None if at_ms is None else (at_ms + TICK - start - DELAY) // EVERY + 1
            is_due = segment["round"] is not None and segment["round"] <= LAST
            assert found == (segment["round"] if is_due else None), (name, base, segment)
    count = {topic: sum(name == f"{topic}-0" for name, _ in gone) for topic in GONE}
    assert count == GONE


def _create(broker: Broker, version: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    name = "internal.segment.bytes" if major(version) >= 4 else "segment.bytes"
    common = {name: "1000", "message.timestamp.after.max.ms": FOREVER}
    new = [NewTopic(topic, 1, 1, config={**common, **config}) for topic, (config, _) in
           TOPICS.items()]  # fmt: skip
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in client.create_topics(new).values():
        future.result(60)


def _wait_for_copies(remote: Path) -> None:
    """Wait until the remote storage has every closed segment."""
    deadline = deadline_in(60)
    while time.monotonic() < deadline:
        found: dict[str, set[int]] = {topic: set() for topic in COPIED}
        for path in remote.rglob("*.log"):
            # The folder is that of a partition with the id of its topic, of 22 characters.
            found[path.parent.name[: -len("-0-") - 22]].add(int(path.name.partition("-")[0]))
        if found == COPIED:
            return
        time.sleep(0.1)
    pytest.fail(f"not all segments were copied: {found}")
