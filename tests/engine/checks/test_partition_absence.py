"""Absence within one partition: snapshots, the beginning and the end of a log, its start row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from verification import small_log_dir, verify

from logtool.findings import Severity

Small = Callable[[str, str], Path]


@pytest.fixture
def small(scenario: Callable[[str], Path], tmp_path: Path) -> Small:
    """Return a function that makes a log dir of one partition of a scenario of 4.3.1."""

    def made(state: str, partition: str) -> Path:
        home = small_log_dir(scenario(f"4.3.1/{state}"), tmp_path / "log-dir", partition)
        return home / partition

    return made


@pytest.mark.parametrize("state", ["clean", "killed"])
def test_a_snapshot_that_a_kill_left_empty_is_no_fault(small: Small, state: str) -> None:
    partition = small(state, "tx.mixed-0")
    newest = max(partition.glob("*.snapshot"))
    newest.write_bytes(b"")
    found = verify(partition.parent).one("producer-snapshot/empty-file")
    assert (found.path, found.severity) == (newest, Severity.INFO)
