"""logtool predicts the open files and maps of a broker for its logs."""

from __future__ import annotations

import resource
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from broker import many_logs
from broker.conftest import runnable
from broker.kafka import Broker, HarnessError

from logtool.log import opening
from logtool.node import host_limits

pytestmark = pytest.mark.broker

LOGS, SEGMENTS = 40, 12


def log_dir_of(version: str, scenario: Callable[[str], Path], work: Path) -> Path:
    """Make a log dir of many equal logs, and of one with transaction indexes."""
    source = scenario("4.3.1/clean")
    many_logs.write_template(source / "index.dense-0", work / "template", SEGMENTS)
    home = work / "log-dir"
    many_logs.fill(version, home, work / "template", LOGS)
    other = next(home.glob("load-0*")).name.replace("load-0", f"load-{LOGS}")
    shutil.copytree(source / "tx.mixed-0", home / other)
    (home / other / "partition.metadata").unlink()
    return home


def needed(home: Path) -> host_limits.Needs:
    each = (host_limits.needs(opening.open_partition(folder)) for folder in home.glob("load-*"))
    return sum(each, host_limits.Needs())


@pytest.mark.parametrize("version", ["4.3.1", "2.2.2"])
def test_a_broker_has_the_predicted_files_and_maps(
    version: str, scenario: Callable[[str], Path], tmp_path: Path
) -> None:
    home = log_dir_of(runnable(version), scenario, tmp_path)
    needs = needed(home)
    assert needs == host_limits.Needs(
        LOGS + 1, LOGS * SEGMENTS + 4, 3, 2 * (LOGS * SEGMENTS + 4), 4
    )
    with many_logs.loaded(version, home) as (_, opened):
        pass
    assert opened.files[".log"] == needs.segments
    assert opened.files[".txnindex"] == needs.transaction_indexes
    assert (opened.files[".index"], opened.files[".timeindex"]) == (0, 0)
    assert opened.files[""] <= host_limits.BROKER_FILES + 20
    eager = version == "2.2.2"
    maps = opened.maps[".index"] + opened.maps[".timeindex"]
    wanted = (needs.most_maps if eager else needs.lazy_maps) - host_limits.BROKER_MAPS
    # Up to 2.2 the old map of an extended active index stays until the garbage collection. Later
    # releases look up the first offset of an open transaction in the index of its segment.
    assert wanted <= maps <= wanted + (2 * needs.logs if eager else 1)
    assert opened.maps[""] <= host_limits.BROKER_MAPS


def test_a_broker_with_a_lower_limit_than_predicted_does_not_start(
    scenario: Callable[[str], Path], tmp_path: Path
) -> None:
    home = log_dir_of(runnable("4.3.1"), scenario, tmp_path)
    limit = needed(home).segments
    with Broker("4.3.1", [home], many_logs.CONFIG) as broker:
        broker.launch()
        assert broker.pid is not None
        # Both limits, because the JVM raises its soft limit at some time.
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (limit, limit))
        with pytest.raises(HarnessError, match="ended with"):
            broker.wait_until_ready()
        assert "Too many open files" in broker.log
