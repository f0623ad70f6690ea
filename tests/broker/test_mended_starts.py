"""Checkpoints that logtool changed, as a broker takes them at its next start."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from broker.kafka import Broker
from broker.scenarios import SMALL
from verification import set_offsets

pytestmark = pytest.mark.broker

LOGTOOL = Path(sys.executable).parent / "logtool"
POINTS = "recovery-point-offset-checkpoint"
WATERMARKS = "replication-offset-checkpoint"
EPOCHS = "leader-epoch-checkpoint"
NAME = "small-segments-0"


def logtool(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [str(LOGTOOL), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def unmarked(kafka_version: str, copy_of: Callable[[str], Path]) -> Path:
    """A log dir that was stopped in order, without the marker that says so."""
    home = copy_of(f"{kafka_version}/clean")
    (home / ".kafka_cleanshutdown").unlink()
    return home


def started(version: str, log_dir: Path) -> str:
    """Start a broker on a log dir; returns what it logged until it was ready."""
    with Broker(version, [log_dir], SMALL) as broker:
        broker.start()
        return broker.log


def recovered(log: str) -> list[int]:
    """Return the base offsets of the segments of one log that a broker recovered."""
    found = re.findall(rf"partition={NAME}, .*Recovering unflushed segment (\d+)", log)
    return list(map(int, found))


def test_a_log_without_a_recovery_point_is_read_from_its_first_segment_until_that_is_undone(
    unmarked: Path, kafka_version: str, tmp_path: Path
) -> None:
    bases = sorted(int(path.stem) for path in (unmarked / NAME).glob("*.log"))
    before = (unmarked / POINTS).read_bytes()
    done = logtool("checkpoint", "set", unmarked / POINTS, NAME, "--delete", "--apply")
    assert done.returncode == 0, done.stderr
    (undo_dir,) = tmp_path.glob("clean.logtool-undo-*")
    changed = tmp_path / "changed"
    shutil.copytree(unmarked, changed)
    undone = logtool("undo", "--apply", undo_dir)
    assert undone.returncode == 0, undone.stderr
    assert (unmarked / POINTS).read_bytes() == before
    assert recovered(started(kafka_version, changed)) == bases
    assert recovered(started(kafka_version, unmarked)) == bases[-1:]


def test_a_log_dir_whose_checkpoints_were_mended_starts_with_no_error(
    unmarked: Path, kafka_version: str
) -> None:
    for name in (POINTS, WATERMARKS):
        set_offsets(unmarked / name, {("codec-lz4", 0): 9_999_999})
    (unmarked / "codec-none-0" / EPOCHS).write_bytes(b"0\n2\n7 100\nno row\n")
    (unmarked / "codec-zstd-0" / EPOCHS).unlink()
    assert logtool("checkpoint", "lint", "--fail-on", "error", unmarked).returncode == 1
    mended = logtool("checkpoint", "rebuild", unmarked, "--apply")
    assert mended.returncode == 0, mended.stderr
    assert logtool("checkpoint", "lint", "--fail-on", "error", unmarked).returncode == 0
    log = started(kafka_version, unmarked)
    assert [line for line in log.splitlines() if " ERROR " in line or " FATAL " in line] == []
    assert "Kafka Server started" in log
