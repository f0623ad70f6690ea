"""Releases start, or refuse, on a directory of 4.4.0 as predicted; ``make releases`` does more."""

from __future__ import annotations

from pathlib import Path

import pytest
from broker import releases as directories
from broker.command import run
from broker.conftest import runnable
from broker.install import KAFKA_3, KAFKA_4, KAFKA_NEWEST

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory of the newest release with its newest levels, stopped in order."""
    written = directories.Written(runnable(KAFKA_NEWEST), dynamic=True)
    return directories.write(written, tmp_path_factory.mktemp("releases"))


@pytest.mark.parametrize(
    ("version", "cause"), [(KAFKA_NEWEST, None), (KAFKA_4, "level"), (KAFKA_3, "record")]
)
def test_a_release_starts_or_refuses_as_predicted(home: Path, version: str, cause: str) -> None:
    written = directories.Written(KAFKA_NEWEST, dynamic=True)
    expected = directories.predicted(home)[version.rpartition(".")[0]]
    seen = directories.start(written, home, runnable(version))
    assert (expected.cause, seen.cause, seen.starts) == (cause, cause, cause is None)
    assert directories.difference(expected, seen) is None


def test_the_newest_directory_is_healthy(home: Path) -> None:
    assert run("verify", home).returncode == 0
    assert run("plan", home).returncode == 0
    assert run("plan", "--kafka-version", "4.3", home).returncode == 1
    assert run("plan", "--kafka-version", "3.9", home).returncode == 1
