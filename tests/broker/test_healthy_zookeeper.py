"""logtool finds nothing wrong in the log dirs of a healthy broker with ZooKeeper."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from broker.conftest import runnable
from broker.install import KAFKA_2
from broker.kafka import Broker
from broker.zookeeper import ZooKeeper

pytestmark = pytest.mark.broker


def test_a_healthy_log_dir_with_zookeeper_raises_no_alarm_in_any_state(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    version = runnable(KAFKA_2)
    # Imported here: without confluent-kafka this test is skipped.
    from broker.healthy_states import BROKER_CONFIG, Verdicts, states
    from broker.replicas import move

    log_dirs = [tmp_path / "log-dir-1", tmp_path / "log-dir-2"]
    verdicts = Verdicts()
    with Broker(version, log_dirs, BROKER_CONFIG, zookeeper=zookeeper) as broker:
        seed = os.environ.get("LOGTOOL_HEALTHY_SEED", "1")
        for state in states(broker, seed, tmp_path, 1, lambda topic: move(broker, topic, tmp_path)):
            verdicts.judge(state)
    assert verdicts.alarms == []
    assert verdicts.states == 7
    assert verdicts.findings >= Counter(("partition-metadata/not-written", "segment/gap"))
