"""Loading a log takes a time that grows with its segments, not with their square.

Calls are counted, not seconds: those are the same on every machine.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from logtool.disk import partition
from logtool.formats import record, record_batch
from logtool.loading.loaded import Loaded, Outcome, Start
from logtool.loading.loader import load
from logtool.loading.supplement import supplement


def write(path: Path, segments: int) -> Path:
    """Write a partition of segments of one record each, with snapshots at all their bases."""
    path.mkdir()
    payload = record.encode([record.Record(0, 0, b"key", b"value")])
    for base in range(segments):
        name = f"{base:020d}"
        header = {"last_offset_delta": 0, "record_count": 1, "leader_epoch": 0}
        data = record_batch.encode(payload, base_offset=base, **header)
        (path / f"{name}.log").write_bytes(data)
        (path / f"{name}.index").write_bytes(b"")
        (path / f"{name}.timeindex").write_bytes(b"")
        (path / f"{name}.snapshot").write_bytes(b"")
    return path


def calls_of(function: Callable[[], Loaded]) -> tuple[int, Loaded]:
    """Return how many functions are called, those written in C too, and what comes back."""
    count = 0

    def on_event(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(on_event)
    try:
        result = function()
    finally:
        sys.setprofile(None)
    return count, result


@pytest.mark.parametrize("job", [load, supplement])
@pytest.mark.parametrize("clean", [False, True])
def test_four_times_the_segments_are_about_four_times_the_work(
    tmp_path: Path, job: Callable[..., Loaded], clean: bool
) -> None:
    counts = []
    for segments in (40, 160):
        found = partition.read(write(tmp_path / f"t-{segments}", segments))
        count, loaded = calls_of(lambda found=found: job(found, Start(clean=clean)))  # type: ignore[misc]
        assert (loaded.outcome, loaded.log_end) == (Outcome.LOADS, segments)
        counts.append(count)
        assert loaded.shadow.changes()
    assert counts[1] < 5 * counts[0]
