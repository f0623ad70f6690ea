"""logtool and Kafka's own reader agree on every damaged byte of ``bootstrap.checkpoint``."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from broker.install import java_command

from logtool.metadata import bootstrap

pytestmark = pytest.mark.broker

UNKNOWN_LEVEL = "No MetadataVersion with feature level"
"""Failure of a release that has not that level: see `release_support.check_bootstrap`."""
PROGRAM = Path(__file__).with_name("ReadBootstrap.java")


def test_a_damaged_bootstrap_file_is_read_by_logtool_as_by_a_node(
    kafka_version: str, copy_of: Callable[[str], Path], tmp_path: Path
) -> None:
    file = copy_of(f"{kafka_version}/clean") / "bootstrap.checkpoint"
    sound = file.read_bytes()
    work = tmp_path / "work"
    work.mkdir()
    command = java_command(kafka_version, str(PROGRAM), heap="512m", level="OFF")
    done = subprocess.run(
        [*command, str(file), str(work)], capture_output=True, text=True, timeout=60, check=True
    )
    seen, said, refused = {}, {}, 0
    for line in done.stdout.splitlines():
        kind, at, mask, outcome = line.split("\t")
        if UNKNOWN_LEVEL in outcome:
            continue
        data = bytearray(sound[: int(at)] if kind == "cut" else sound)
        if kind == "flip":
            data[int(at)] ^= int(mask)
        file.write_bytes(data)
        failure = bootstrap.read_failure(file)
        if (outcome == "read") is not (failure is None):
            seen[kind, at, mask] = outcome
            said[kind, at, mask] = str(failure)
        refused += outcome != "read"
    assert (seen, said) == ({}, {})
    assert 0 < refused < 4 * len(sound)
