"""Fixtures of the broker tests, which are skipped without Java, unless LOGTOOL_REQUIRE_BROKER=1."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from broker.install import LOADING_VERSIONS, VERSIONS, ZOOKEEPER_VERSIONS, available
from broker.kafka import Broker, format_log_dir, share_classes
from broker.zookeeper import ZooKeeper
from conftest import GROWN

_ONCE_MORE = "3.7.2"
"""A release between other tested releases; only `make test-broker-long` tests it."""
_MOST_GROWTH = 1024
"""MiB by which a test may raise the peak of its process before the end of the run names it."""


@pytest.fixture(autouse=True)
def _growth(request: pytest.FixtureRequest) -> Iterator[None]:
    """Keep how much the test raised the peak of the memory of this process, if that is much."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    if grown > _MOST_GROWTH:
        request.node.user_properties.append((GROWN, grown))


_FIRST = (
    "test_recovery_agrees.py", "test_healthy_matrix.py", "test_replicas_agree.py",
    "test_harness.py", "test_recovered_starts.py", "test_healthy_zookeeper.py",
    "test_coordinators.py", "test_log_dirs_agree.py", "test_mended_starts.py",
    "test_dump_agrees.py", "test_zombies.py", "test_export.py", "test_trim_starts.py",
    "test_start_room.py", "test_filled_log_is_read.py", "test_deletions.py",
)  # fmt: skip
"""The files that take longest: they begin first, so that no worker is left alone with one."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of `_ONCE_MORE` as long, and put the files of `_FIRST` first."""
    ranks = {name: rank for rank, name in enumerate(_FIRST)}
    items.sort(key=lambda item: ranks.get(item.path.name, len(ranks)))
    for item in items:
        call = getattr(item, "callspec", None)
        if call and item.get_closest_marker("broker") and _ONCE_MORE in call.params.values():
            item.add_marker(pytest.mark.long)


@pytest.fixture(params=VERSIONS)
def kafka_version(request: pytest.FixtureRequest) -> str:
    """Each release of Kafka in turn, see `runnable`."""
    return runnable(str(request.param))


@pytest.fixture(params=LOADING_VERSIONS)
def loading_version(request: pytest.FixtureRequest) -> str:
    """Each release with known rules for the load of logs in turn, see `runnable`."""
    return runnable(str(request.param))


@pytest.fixture(params=ZOOKEEPER_VERSIONS)
def zookeeper_version(request: pytest.FixtureRequest) -> str:
    """Each release that needs ZooKeeper in turn, see `runnable`."""
    return runnable(str(request.param))


def runnable(version: str) -> str:
    """Return a release; if it cannot run, skip the test or, with LOGTOOL_REQUIRE_BROKER=1, fail."""
    reason = available(version)
    if reason is not None:
        if os.environ.get("LOGTOOL_REQUIRE_BROKER") == "1":
            pytest.fail(f"LOGTOOL_REQUIRE_BROKER=1, but {reason}")
        pytest.skip(reason)
    share_classes(version)
    return version


@pytest.fixture
def zookeeper() -> Iterator[ZooKeeper]:
    """A running ZooKeeper, for brokers of the test that need one."""
    with ZooKeeper() as running:
        yield running


@pytest.fixture
def log_dir(kafka_version: str, tmp_path: Path) -> Path:
    """A freshly formatted log dir."""
    path = tmp_path / "log-dir"
    format_log_dir(kafka_version, [path])
    return path


@pytest.fixture
def broker(kafka_version: str, log_dir: Path) -> Iterator[Broker]:
    """A broker on ``log_dir``, not started yet; it is killed after the test."""
    with Broker(kafka_version, [log_dir]) as made:
        yield made
