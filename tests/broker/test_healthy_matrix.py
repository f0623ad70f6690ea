"""logtool finds nothing wrong in the log dirs of a healthy broker."""

from __future__ import annotations

from pathlib import Path

import pytest
from broker.conftest import runnable
from broker.install import KAFKA_3, KAFKA_4

pytestmark = pytest.mark.broker


# Before the newest: `make test-broker-long`. A release with ZooKeeper has a test of its own.
_BEFORE = [pytest.param(one, marks=pytest.mark.long) for one in ("3.3.2", "3.7.2", KAFKA_3)]


@pytest.mark.parametrize("version", [*_BEFORE, KAFKA_4])
def test_a_healthy_log_dir_raises_no_alarm_in_any_state(version: str, tmp_path: Path) -> None:
    runnable(version)
    # Imported here: without confluent-kafka this test is skipped.
    from broker.healthy_campaign import run

    verdicts = run(version, "1", 1, tmp_path)
    assert verdicts.alarms == []
    assert verdicts.states == 7
    # The move lasted until the first kill.
    seen = set(verdicts.findings)
    assert seen >= {"data-dir/in-use", "segment/gap", "log/zero-tail", "partition/leftover-deleted"}
    assert verdicts.findings["partition/future"] >= 9
