"""Leader epochs of a log above that of its partition in the metadata log."""

from __future__ import annotations

import os
from pathlib import Path

import metadata_records
import pytest
from metadata_logs import log_dir

from logtool.findings import Finding, Severity
from logtool.formats import record, record_batch
from logtool.log.inputs import NodeDir
from logtool.node.options import StartOptions
from logtool.startup.forecast import Forecast
from logtool.startup.partition import PartitionForecast
from logtool.verify import Level, Verification
from logtool.watermark.run import Watermarks

TOPIC_ID = "bG9ndG9vbC10ZXN0cy10MQ"
ABOVE, AHEAD = "leader-epoch/above-metadata", "leader-epoch/ahead-of-metadata"
NOW_MS = 1_790_000_000_000


def metadata_batch(base_offset: int, *values: bytes, at_ms: int = NOW_MS) -> bytes:
    """Return a batch of metadata records whose time is `at_ms`."""
    return metadata_records.batch(base_offset, *values, base_timestamp=at_ms, max_timestamp=at_ms)


def partition_dir(home: Path, *batches: tuple[int, int]) -> Path:
    """Write the directory of t-0 with batches of one record, (leader epoch, offset) each."""
    path = home / "t-0"
    path.mkdir()
    data = b"".join(
        record_batch.encode(
            record.encode([record.Record(0, value=b"v")]), base_offset=offset,
            last_offset_delta=0, record_count=1, leader_epoch=epoch, base_timestamp=NOW_MS,
            max_timestamp=NOW_MS,
        )
        for epoch, offset in batches
    )  # fmt: skip
    log = path / f"{0:020d}.log"
    log.write_bytes(data)
    os.utime(log, (NOW_MS / 1000, NOW_MS / 1000))
    (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}")
    starts = dict(reversed(batches))
    rows = "".join(f"{epoch} {starts[epoch]}\n" for epoch in sorted(starts))
    (path / "leader-epoch-checkpoint").write_text(f"0\n{len(starts)}\n{rows}")
    return path


def node(home: Path, *batches: tuple[int, int], number: int = 1, later_ms: int = 0) -> Path:
    """Write the log dir of a node whose metadata log gives t-0 leader epoch 0."""
    first = metadata_batch(
        0, metadata_records.topic("t", TOPIC_ID),
        metadata_records.partition(TOPIC_ID, 0, (1, 2)),
    )  # fmt: skip
    path = log_dir(home, number, first, metadata_batch(2, NO_OP, at_ms=NOW_MS + later_ms))
    partition_dir(path, *batches)
    return path


NO_OP = metadata_records.framed(20, 0)
BACK = (0, 0), (7, 1), (7, 2)


def codes(*paths: Path, level: Level = Level.BATCHES) -> list[tuple[str, int | None]]:
    """Return code and first offset of the findings of verify about the metadata log."""
    found = [one for one in Verification(paths, level=level) if isinstance(one, Finding)]
    return [(one.code, one.first_offset) for one in found if one.code in (ABOVE, AHEAD)]


@pytest.mark.parametrize("proof", ["clean stop", "younger metadata log"])
@pytest.mark.parametrize("level", [Level.QUICK, Level.BATCHES])
def test_an_epoch_above_that_of_the_metadata_log(tmp_path: Path, proof: str, level: Level) -> None:
    home = node(tmp_path, *BACK, later_ms=0 if proof == "clean stop" else 3_600_000)
    if proof == "clean stop":
        (home / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":3}')
    ((code, offset),) = codes(home, level=level)
    assert code == ABOVE
    assert level is Level.QUICK or offset == 1


def test_a_metadata_log_that_may_be_older_proves_nothing(tmp_path: Path) -> None:
    assert codes(node(tmp_path, *BACK)) == [(AHEAD, 1)]
    assert Finding(AHEAD, "").severity is Severity.INFO


def test_epochs_that_the_metadata_log_knows_are_sound(tmp_path: Path) -> None:
    home = node(tmp_path, (0, 0), (0, 1), later_ms=3_600_000)
    (home / ".kafka_cleanshutdown").touch()
    assert codes(home) == []


def test_the_newest_metadata_log_of_the_cluster_decides(tmp_path: Path) -> None:
    home = node(tmp_path, *BACK)
    raised = metadata_records.change(
        TOPIC_ID, 0, {1: metadata_records.int32(2), 2: metadata_records.numbers(1, 2)}
    )
    first = metadata_batch(
        0, metadata_records.topic("t", TOPIC_ID),
        metadata_records.partition(TOPIC_ID, 0, (1, 2)),
    )  # fmt: skip
    changes = [metadata_batch(2 + n, raised, at_ms=NOW_MS + 3_600_000) for n in range(7)]
    controller = log_dir(tmp_path, 9, first, *changes)
    assert codes(home, controller) == []
    short = log_dir(tmp_path, 8, first, *changes[:3])
    assert codes(home, short) == [(ABOVE, 1)]


def test_another_topic_of_that_name_is_not_compared(tmp_path: Path) -> None:
    home = node(tmp_path, *BACK, later_ms=3_600_000)
    (home / "t-0" / "partition.metadata").write_text("version: 0\ntopic_id: " + "Q" * 21 + "A")
    assert codes(home) == []


def actions(home: Path) -> list[str]:
    """Return the actions of plan on t-0 that are about leader epochs."""
    found = [one for one in Forecast([home], StartOptions()) if isinstance(one, PartitionForecast)]
    return [one.action for all_of in found for one in all_of.actions
            if one.action in ("ahead", "limits")]  # fmt: skip


def test_watermark_says_the_same(tmp_path: Path) -> None:
    home = node(tmp_path, *BACK, later_ms=3_600_000)
    found = [one for one in Watermarks([NodeDir(home)], StartOptions()) if isinstance(one, Finding)]
    assert [one.code for one in found if one.topic == "t" and one.code in (ABOVE, AHEAD)] == [ABOVE]


def test_plan_says_the_same(tmp_path: Path) -> None:
    home = node(tmp_path, *BACK)
    assert actions(home) == ["limits"]
    (home / ".kafka_cleanshutdown").touch()
    assert actions(home) == ["ahead"]
    assert actions(node(tmp_path, (0, 0), number=2)) == []


@pytest.mark.parametrize(("other", "proposed"), [([(0, 0), (2, 1), (2, 2)], 1), ([(0, 0)], 0)])
def test_only_a_copy_with_the_batch_is_proposed_for_its_epoch(
    tmp_path: Path, other: list[tuple[int, int]], proposed: int
) -> None:
    fallen = partition_dir(make(tmp_path / "1"), (0, 0), (7, 1), (2, 2))
    copy = partition_dir(make(tmp_path / "2"), *other)
    found = [one for one in Verification([fallen, copy]) if isinstance(one, Finding)]
    (finding,) = [one for one in found if one.code == "batch/leader-epoch-order"]
    assert str(finding.next).count("--fill-from") == proposed


def make(path: Path) -> Path:
    """Make a directory and return it."""
    path.mkdir()
    return path
