"""Whatever a broker leaves behind when nothing went wrong, logtool finds nothing wrong there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from broker.install import KAFKA_3, KAFKA_4, available

pytestmark = pytest.mark.broker


@pytest.mark.parametrize("version", ["3.3.2", "3.7.2", KAFKA_3, KAFKA_4])
def test_a_healthy_log_dir_raises_no_alarm_in_any_state(version: str, tmp_path: Path) -> None:
    reason = available(version)
    if reason is not None:
        if os.environ.get("LOGTOOL_REQUIRE_BROKER") == "1":
            pytest.fail(f"LOGTOOL_REQUIRE_BROKER=1, but {reason}")
        pytest.skip(reason)
    # Not at the top: where confluent-kafka is missing this test is skipped, not in error.
    from broker.healthy_campaign import run

    verdicts = run(version, "1", 1, tmp_path)
    assert verdicts.alarms == []
    assert verdicts.states == 7
    # What was looked at is what the matrix is there for: the move lasted until the first kill.
    seen = set(verdicts.findings)
    assert seen >= {"data-dir/in-use", "segment/gap", "log/zero-tail", "partition/leftover-deleted"}
    assert verdicts.findings["partition/future"] >= 9
