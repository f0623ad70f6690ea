"""Broker tests are skipped where there is no Java or Kafka, unless LOGTOOL_REQUIRE_BROKER=1."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from broker.install import LOADING_VERSIONS, VERSIONS, ZOOKEEPER_VERSIONS, available
from broker.kafka import Broker, format_log_dir
from broker.zookeeper import ZooKeeper

_ONCE_MORE = "3.7.2"
"""A release between others that are tried, so that CI leaves it to `make test-broker-long`."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is tried with one more release as long."""
    for item in items:
        call = getattr(item, "callspec", None)
        if call and item.get_closest_marker("broker") and _ONCE_MORE in call.params.values():
            item.add_marker(pytest.mark.long)


@pytest.fixture(params=VERSIONS)
def kafka_version(request: pytest.FixtureRequest) -> str:
    """Each release of Kafka in turn; skips, or fails if so asked, where it cannot run."""
    return runnable(str(request.param))


@pytest.fixture(params=LOADING_VERSIONS)
def loading_version(request: pytest.FixtureRequest) -> str:
    """Each release whose loading of logs is known in turn, as `kafka_version`."""
    return runnable(str(request.param))


@pytest.fixture(params=ZOOKEEPER_VERSIONS)
def zookeeper_version(request: pytest.FixtureRequest) -> str:
    """Each release that needs ZooKeeper in turn, as `kafka_version`."""
    return runnable(str(request.param))


def runnable(version: str) -> str:
    """Return a release; skip the test, or let it fail if so asked, where it cannot run."""
    reason = available(version)
    if reason is not None:
        if os.environ.get("LOGTOOL_REQUIRE_BROKER") == "1":
            pytest.fail(f"LOGTOOL_REQUIRE_BROKER=1, but {reason}")
        pytest.skip(reason)
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
    """A broker on ``log_dir`` that is not started yet, and is gone after the test."""
    with Broker(kafka_version, [log_dir]) as made:
        yield made
