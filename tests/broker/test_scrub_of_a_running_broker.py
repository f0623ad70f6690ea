"""`scrub` next to a broker that writes, cleans and deletes: no alarm, and exact coverage."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from broker.install import VERSIONS
from broker.kafka import Broker, format_log_dir

pytestmark = [pytest.mark.broker, pytest.mark.timeout(900)]
RUNS = int(os.environ.get("LOGTOOL_SCRUB_RUNS", "20"))


def scrub(state: Path, *options: object) -> tuple[int, list[dict[str, Any]], str]:
    """Return exit status, items and error output of a run."""
    command = [sys.executable, "-m", "logtool", "scrub", "--state", str(state), "--json"]
    done = subprocess.run(
        [*command, *map(str, options)], capture_output=True, text=True, check=False, timeout=300
    )
    return done.returncode, json.loads(done.stdout)["items"], done.stderr


def grave(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the errors, and the findings that are more than an info."""
    found = [one for one in items if one["type"] in ("finding", "error")]
    return [one for one in found if one.get("severity") != "info"]


def coverage(state: Path) -> dict[str, Any]:
    """Return the coverage of all segments."""
    status, items, _ = scrub(state, "--status")
    assert status == 0
    (whole,) = (one for one in items if one["type"] == "coverage" and one["scope"] == "all")
    return whole


def test_a_broker_at_work_raises_no_alarm_and_each_segment_is_checked(tmp_path: Path) -> None:
    # Imported here: without confluent-kafka this test is skipped.
    from broker import healthy_topics, workloads
    from broker.healthy import Workload
    from broker.healthy_states import BROKER_CONFIG, traffic

    version = VERSIONS[-1]
    log_dirs = [tmp_path / "log-dir-1", tmp_path / "log-dir-2"]
    state = tmp_path / "scrub.db"
    options = ("--cycle", "10s", "-v", *log_dirs)
    checked: list[int] = []
    format_log_dir(version, log_dirs, extra_config=BROKER_CONFIG)
    with Broker(version, log_dirs, BROKER_CONFIG) as broker:
        load = Workload(broker, "1", healthy_topics.subjects(version))
        broker.start()
        load.create()
        load.round()
        with traffic(load):
            for number in range(RUNS):
                status, items, errors = scrub(state, *options)
                assert (status, grave(items)) == (0, []), (number, errors)
                (run,) = (one for one in items if one["type"] == "run")
                checked.append(run["segments"])
            broker.kill()
        load.forget_clients()
        broker.start()
        load.forget_clients()
        broker.stop()
    assert all(checked)

    def covered() -> bool:
        status, items, _ = scrub(state, *options)
        assert (status, grave(items)) == (0, [])
        return coverage(state)["never_bytes"] == 0

    workloads.wait_for(covered, 60, "a check of every segment")
    logs = [path.stat().st_size for root in log_dirs for path in root.glob("*/*.log")]
    whole = coverage(state)
    assert (whole["segments"], whole["bytes"], whole["share"]) == (len(logs), sum(logs), 1.0)
