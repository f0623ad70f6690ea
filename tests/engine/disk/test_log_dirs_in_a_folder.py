"""A folder of log dirs is not a log dir: nothing in it may pass for sound."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from logtool.errors import NothingMatchedError
from logtool.log import inputs
from logtool.log.inputs import PathKind

COMMANDS = ["verify", "doctor", "gaps", "stat", "txns", "plan", "sanity", "diff", "watermark"]


@pytest.fixture
def folder(scenario: Callable[[str], Path], tmp_path: Path) -> Path:
    """Return a folder with two log dirs, whose names could be those of partitions."""
    for name in ("broker-1", "broker-2"):
        shutil.copytree(scenario("4.3.1/empty"), tmp_path / "mnt" / name)
    return tmp_path / "mnt"


def test_the_log_dirs_to_name_are_listed(folder: Path) -> None:
    names = re.escape(f"{folder}/broker-1 {folder}/broker-2")
    with pytest.raises(NothingMatchedError, match=names):
        inputs.kind_of(folder)
    (folder / "dbus-1").mkdir()  # An empty directory with the name of a partition changes nothing.
    with pytest.raises(NothingMatchedError, match=names):
        inputs.kind_of(folder)


def test_a_log_dir_stays_one(folder: Path, scenario: Callable[[str], Path]) -> None:
    assert inputs.kind_of(folder / "broker-1") is PathKind.LOG_DIR
    clean = shutil.copytree(scenario("4.3.1/clean"), folder / "clean")
    for path in clean.iterdir():
        if path.is_file():
            path.unlink()
    assert inputs.kind_of(clean) is PathKind.LOG_DIR  # by its partitions alone


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_refuses_such_a_folder(folder: Path, command: str) -> None:
    others = [str(folder / "broker-1")] if command == "diff" else []
    done = subprocess.run(
        [sys.executable, "-m", "logtool", command, str(folder), *others],
        capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip
    assert done.returncode == 4, done.stderr
    assert f"{folder}/broker-1 {folder}/broker-2" in done.stderr
