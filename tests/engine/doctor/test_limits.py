"""The limits of the process that runs the broker, or of this machine."""

import os
import resource

import pytest

from logtool.doctor import diagnosis


def test_the_hard_limit_of_a_running_broker_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "open_files_of", lambda pid: (10, 20) if pid == 7 else None)
    files, maps = diagnosis.limits([], 7)
    assert (files.name, files.allowed, files.pid) == ("open-files", 20, 7)
    assert (maps.name, maps.pid) == ("max-map-count", None)


def test_without_a_broker_the_limit_of_this_machine_counts() -> None:
    files, _ = diagnosis.limits([], None)
    assert files.pid is None


def test_both_limits_of_a_process_are_read() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert diagnosis.open_files_of(os.getpid()) == (soft, hard)
    assert diagnosis.open_files_of(2**22 + 1) is None
