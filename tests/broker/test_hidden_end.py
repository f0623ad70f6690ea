"""Starts after a clean stop with an offset index that leads past the log."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from broker.command import objects, of_type, run
from broker.consuming import consumed, ends
from broker.kafka import Broker
from broker.scenarios import SMALL
from verification import batches

pytestmark = pytest.mark.broker

TOPIC = "index.dense"
NAME = f"{TOPIC}-0"
KEEPING = {**SMALL, "log.retention.ms": "-1"}


def test_sound_batches_are_hidden_until_the_index_is_repaired(
    kafka_version: str, copy_of: Callable[[str], Path], tmp_path: Path
) -> None:
    from confluent_kafka import Consumer

    home = copy_of(f"{kafka_version}/clean")
    log = max((home / NAME).glob("*.log"))
    log.write_bytes(log.read_bytes()[:-10])
    base, end = int(log.stem), int(batches(log).last_offset[-1]) + 1
    (planned,) = of_type(objects("plan", home / NAME), "partition")
    assert planned["log_end_offset"] == base
    as_it_is = tmp_path / "as-it-is"
    shutil.copytree(home, as_it_is)
    done = run(
        "recover", "--from-offset", f"{NAME}={base}", "--apply", "--accept-loss", NAME, home / NAME
    )
    assert done.returncode == 0, done.stderr
    for log_dir, expected in ((as_it_is, base), (home, end)):
        with Broker(kafka_version, [log_dir], KEEPING) as broker:
            broker.start()
            consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused"})
            assert ends(consumer, TOPIC, 0)[1] == expected
            consumer.close()
            found = consumed(broker, [(TOPIC, 0)], "read_uncommitted")[TOPIC, 0]
            assert [one[0] for one in found if one[0] >= base] == list(range(base, expected))
