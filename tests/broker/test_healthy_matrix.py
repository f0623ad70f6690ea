"""Whatever a broker leaves behind when nothing went wrong, logtool finds nothing wrong there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from broker.install import KAFKA_3, KAFKA_4, available, major
from broker.kafka import Broker, format_log_dir

pytestmark = pytest.mark.broker

VERSIONS = ("3.3.2", "3.7.2", KAFKA_3, KAFKA_4)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_healthy_log_dir_raises_no_alarm_in_any_state(version: str, tmp_path: Path) -> None:
    reason = available(version)
    if reason is not None:
        if os.environ.get("LOGTOOL_REQUIRE_BROKER") == "1":
            pytest.fail(f"LOGTOOL_REQUIRE_BROKER=1, but {reason}")
        pytest.skip(reason)
    # Not at the top: where confluent-kafka is missing this test is skipped, not in error.
    from broker.healthy_states import BROKER_CONFIG, SHARE_CONFIG, Verdicts, states
    from broker.replicas import move

    log_dirs = [tmp_path / "log-dir-1", tmp_path / "log-dir-2"]
    config = BROKER_CONFIG | (SHARE_CONFIG if major(version) >= 4 else {})
    format_log_dir(version, log_dirs, extra_config=config)
    verdicts = Verdicts()
    with Broker(version, log_dirs, config) as broker:
        seed = os.environ.get("LOGTOOL_HEALTHY_SEED", "1")
        rounds = int(os.environ.get("LOGTOOL_HEALTHY_ROUNDS", "2"))
        for state in states(
            broker, seed, tmp_path, rounds, lambda topic: move(broker, topic, tmp_path)
        ):
            verdicts.judge(state)
    assert verdicts.alarms == []
    assert verdicts.states == 7
    # What was looked at is what the matrix is there for: so the move lasted until the first kill.
    assert verdicts.findings >= {
        "data-dir/in-use": 1, "partition/future": 9, "segment/gap": 1, "log/zero-tail": 1
    }  # fmt: skip
