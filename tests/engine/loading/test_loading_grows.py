"""Loading a log takes a time that grows with its segments, not with their square.

Calls are counted, not seconds: those are the same on every machine.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from calls import calls_of

from logtool.formats import record, record_batch
from logtool.loading.loader import load
from logtool.loading.result import LoadResult, Outcome, StartConditions
from logtool.loading.supplement import supplement
from logtool.log import opening


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


@pytest.mark.parametrize("job", [load, supplement])
@pytest.mark.parametrize("clean", [False, True])
def test_four_times_the_segments_are_about_four_times_the_work(
    tmp_path: Path, job: Callable[..., LoadResult], clean: bool
) -> None:
    counts = []
    for segments in (40, 160):
        found = opening.open_partition(write(tmp_path / f"t-{segments}", segments))
        start = StartConditions(clean=clean)
        loaded = job(found, start)
        assert (loaded.outcome, loaded.log_end) == (Outcome.LOADS, segments)
        counts.append(calls_of(partial(job, found, start)))
        assert loaded.shadow.changes()
    assert counts[1] < 5 * counts[0]
