"""Absence within one partition: snapshots, the beginning and the end of a log, its start row."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from copies_campaign import batch
from verification import batches, small_log_dir, verify

from logtool.actions import Action
from logtool.checks import log_absence
from logtool.findings import Finding, Severity
from logtool.log import opening
from logtool.log.inputs import NodeDir
from logtool.node.options import StartOptions
from logtool.node.settings import LogRetention
from logtool.node.surroundings import Surroundings
from logtool.startup.forecast import Forecast
from logtool.startup.partition import PartitionForecast
from logtool.verify import Level
from logtool.watermark.replica import SOUND, Replica
from logtool.watermark.run import Watermarks

Small = Callable[[str, str], Path]
METADATA = "__cluster_metadata-0"
FOREVER = LogRetention(deletes=True, ms=-1)
COMPACTED = LogRetention(deletes=False, compacts=True)


@pytest.fixture
def small(scenario: Callable[[str], Path], tmp_path: Path) -> Small:
    """Return a function that copies one partition, with the metadata log, out of a scenario."""

    def made(state: str, partition: str) -> Path:
        home = small_log_dir(scenario(f"4.3.1/{state}"), tmp_path / "log", partition, METADATA)
        return home / partition

    return made


def found(partition: Path) -> list[str]:
    """Return the codes above info that a quick look at the log dir gives."""
    findings = verify(partition.parent, level=Level.QUICK).findings
    return [one.code for one in findings if one.severity is not Severity.INFO]


def judged(partition: Path, **known: Any) -> list[Finding]:
    """Return the findings about absent parts of a partition in the given surroundings."""
    around = Surroundings(log_dir=partition.parent)
    listed = opening.open_partition(partition)
    end = max(int(path.stem) for path in partition.glob("*.snapshot"))
    return list(log_absence.check(listed, replace(around, **known), end))


def planned(partition: Path) -> list[str]:
    """Return the kinds of the grave actions of the next start."""
    kinds: list[str] = []
    for item in Forecast([partition.parent], StartOptions()):
        actions = item.actions if isinstance(item, PartitionForecast) else [item]
        kinds += [one.action for one in actions if isinstance(one, Action) and one.is_grave]
    return kinds


def watermark(partition: Path) -> tuple[list[str], list[str]]:
    """Return the codes above info of `watermark`, and the tails of the replicas that are broken."""
    items = list(Watermarks([NodeDir(partition.parent, None)], StartOptions()))
    findings = [one for one in items if isinstance(one, Finding)]
    tails = [one.tail for one in items if isinstance(one, Replica) and one.tail != SOUND]
    return [one.code for one in findings if one.severity is not Severity.INFO], tails


def set_rows(partition: Path, name: str, offset: int | None) -> None:
    """Write a checkpoint with one row of the partition, or with none; its time stays."""
    path = partition.parent / name
    at = path.stat()
    topic, _, number = partition.name.rpartition("-")
    rows = [] if offset is None else [f"{topic} {number} {offset}"]
    path.write_text("\n".join(["0", str(len(rows)), *rows, ""]))
    os.utime(path, ns=(at.st_atime_ns, at.st_mtime_ns))


def drop(partition: Path, pattern: str) -> None:
    """Remove files of a partition."""
    names = sorted(partition.glob(pattern))
    assert names
    for path in names:
        path.unlink()


@pytest.mark.parametrize("state", ["clean", "killed"])
def test_a_snapshot_that_a_kill_left_empty_is_no_fault(small: Small, state: str) -> None:
    partition = small(state, "tx.mixed-0")
    newest = max(partition.glob("*.snapshot"))
    newest.write_bytes(b"")
    one = verify(partition.parent).one("producer-snapshot/empty-file")
    assert (one.path, one.severity) == (newest, Severity.INFO)
    assert found(partition) == []


@pytest.mark.parametrize(
    ("topic", "codes"),
    [
        ("tx.mixed-0", ["producer-snapshot/lost-transaction"]),
        ("idempotent_writes-0", ["producer-snapshot/lost"]),
        ("codec-none-0", []),
    ],
)
def test_after_a_clean_stop_a_log_without_snapshots_loses_its_producers(
    small: Small, topic: str, codes: list[str]
) -> None:
    partition = small("clean", topic)
    drop(partition, "*.snapshot")
    assert found(partition) == codes
    (partition.parent / ".kafka_cleanshutdown").unlink()
    assert found(partition) == []


def test_without_the_newest_snapshot_an_older_one_is_enough(small: Small) -> None:
    partition = small("clean", "tx.mixed-0")
    max(partition.glob("*.snapshot")).unlink()
    assert found(partition) == []
    assert verify(partition.parent).one("producer-snapshot/absent").path == partition


def test_a_snapshot_that_a_start_deletes_does_not_help(small: Small) -> None:
    partition = small("clean", "tx.mixed-0")
    (kept,) = partition.glob(f"{336:020}.snapshot")
    for path in partition.glob("*.snapshot"):
        if path != kept:
            path.unlink()
    assert found(partition) == ["producer-snapshot/lost-transaction"]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("how", ["removed", "emptied"])
def test_a_beginning_that_retention_cannot_have_deleted_is_lost(
    small: Small, how: str, *, clean: bool
) -> None:
    partition = small("clean", "small-segments-0")
    for path in partition.glob(f"{0:020}.*"):
        path.unlink() if how == "removed" else path.write_bytes(b"")
    (one,) = judged(partition, clean=clean, retention=FOREVER)
    assert (one.code, one.severity) == ("log/beginning-lost", Severity.ERROR)
    assert (one.first_offset, one.last_offset, one.path) == (0, 41, partition)


@pytest.mark.parametrize(
    ("clean", "cleaned", "indexes", "codes"),
    [
        (True, 42, "removed", ["log/beginning-cleaned"]),
        (True, 42, "kept", ["log/beginning-cleaned"]),
        (True, 42, "emptied", []),
        (True, 41, "emptied", ["log/beginning-lost"]),
        (True, 0, "removed", ["log/beginning-lost"]),
        (False, 0, "removed", ["log/beginning-cleaned"]),
        (True, None, "removed", ["log/beginning-cleaned"]),
    ],
)
def test_compaction_deletes_no_beginning_but_empties_it(
    small: Small, indexes: str, codes: list[str], *, clean: bool, cleaned: int | None
) -> None:
    partition = small("clean", "small-segments-0")
    log = partition / f"{0:020}.log"
    log.write_bytes(b"")
    assert judged(partition, retention=COMPACTED, clean=clean, cleaned=cleaned) == []
    log.unlink()
    for path in partition.glob(f"{0:020}.*"):
        if indexes == "removed":
            path.unlink()
        elif indexes == "emptied":
            path.write_bytes(b"")
    findings = judged(partition, retention=COMPACTED, clean=clean, cleaned=cleaned)
    assert [one.code for one in findings] == codes
    actions = {"log/beginning-lost": "lacks", "log/beginning-cleaned": "unnoticed"}
    assert [log_absence.action_of(one) for one in findings] == [actions[one] for one in codes]


def test_a_beginning_that_waits_for_the_last_rename_of_a_cleaning_is_there(small: Small) -> None:
    partition = small("clean", "small-segments-0")
    for path in partition.glob(f"{0:020}.*"):
        path.rename(f"{path}.swap")
    assert judged(partition, retention=COMPACTED, cleaned=42) == []
    # A start removes the output of a cleaning that was not committed.
    (partition / f"{0:020}.log.cleaned").write_bytes(b"")
    (one,) = judged(partition, retention=COMPACTED, cleaned=42)
    assert (one.code, one.last_offset) == ("log/beginning-cleaned", 41)


@pytest.mark.parametrize(
    ("clean", "left", "code"),
    [
        (True, "", "log/beginning-absent"),
        (False, "", "log/beginning-deleted"),
        (True, ".index", "log/beginning-lost"),
        (False, ".index", "log/beginning-absent"),
    ],
)
def test_retention_explains_a_beginning_only_after_a_kill(
    small: Small, left: str, code: str, *, clean: bool
) -> None:
    partition = small("clean", "small-segments-0")
    for path in partition.glob(f"{0:020}.*"):
        if path.suffix != left:
            path.unlink()
    # The records of the fixture are older than a week.
    (one,) = judged(partition, clean=clean, retention=LogRetention(deletes=True))
    assert one.code == code


@pytest.mark.parametrize(
    ("retention", "oldest_s", "made_s", "deleted"),
    [
        (LogRetention(deletes=True, ms=1000), 10, 10, False),
        (LogRetention(deletes=True, ms=1000), 8, 10, True),
        (LogRetention(deletes=True, ms=1000), 10, 8, True),
        (LogRetention(deletes=True, ms=-1), 0, 0, False),
        (LogRetention(deletes=True, ms=-1, bytes=100), 10, 10, True),
        (LogRetention(deletes=True, ms=-1, bytes=101), 10, 10, False),
        (LogRetention(deletes=False, ms=1, bytes=1), 0, 0, False),
    ],
)
def test_retention_deletes_by_time_and_by_size(
    retention: LogRetention, oldest_s: int, made_s: int, *, deleted: bool
) -> None:
    times = oldest_s * 1000, made_s * 10**9, 10 * 10**9
    assert retention.may_have_deleted(100, *times) is deleted


def test_remote_storage_and_a_deletion_that_a_kill_interrupted_explain_a_beginning(
    small: Small,
) -> None:
    partition = small("clean", "small-segments-0")
    for path in partition.glob(f"{0:020}.*"):
        path.rename(f"{path}.deleted")
    assert judged(partition, retention=FOREVER) == []
    drop(partition, "*.deleted")
    assert judged(partition, retention=LogRetention(deletes=True, is_remote=True)) == []
    assert [one.code for one in judged(partition)] == ["log/beginning-absent"]


def test_after_a_clean_stop_the_log_start_row_claims_a_segment(small: Small) -> None:
    partition = small("clean", "small-segments-0")
    drop(partition, f"{0:020}.*")
    drop(partition, "leader-epoch-checkpoint")
    assert judged(partition, retention=FOREVER, log_start=30) == []
    (one,) = judged(partition, retention=FOREVER, log_start=30, clean=True)
    assert (one.code, one.first_offset, one.last_offset) == ("log/beginning-lost", 30, 41)


@pytest.mark.parametrize("rows", [None, [], ["deleted-records.mid 0 70"]])
@pytest.mark.parametrize("away", [-31, 2])
def test_deleted_records_without_their_row_are_readable_again(
    small: Small, rows: list[str] | None, away: int
) -> None:
    partition = small("clean", "deleted-records.mid-0")
    assert found(partition) == []
    path = log_starts(partition, rows)
    if rows is None:
        path.unlink()
    else:
        since_stop(path, away)
    one = verify(partition.parent, level=Level.QUICK).one("checkpoint/log-start-lost")
    first = 70 if rows else 0
    assert (one.severity, one.first_offset, one.last_offset) == (Severity.WARNING, first, 76)


@pytest.mark.parametrize("state", ["clean", "killed"])
@pytest.mark.parametrize("rows", [[], ["deleted-records.mid 0 70"]])
def test_a_row_that_a_killed_broker_had_no_time_to_write_is_an_info(
    small: Small, state: str, rows: list[str]
) -> None:
    """A broker that starts after the kill goes on with the lower log start."""
    partition = small(state, "deleted-records.mid-0")
    path = log_starts(partition, rows)
    if state == "clean":
        since_stop(path, 0)
    one = verify(partition.parent, level=Level.QUICK).one("checkpoint/log-start-behind")
    assert one.severity is Severity.INFO
    assert found(partition) == []
    (action,) = reappearing(partition)
    first = 70 if rows else 0
    assert (action.first_offset, action.last_offset) == (one.first_offset, one.last_offset)
    assert (action.first_offset, action.last_offset) == (first, 76)


def test_deleted_records_are_reported_if_the_active_segment_has_no_sound_batch(
    small: Small,
) -> None:
    partition = small("killed", "deleted-records.mid-0")
    log_starts(partition, [])
    last = max(partition.glob("*.log"))
    end = batches(last).last_offset[-1] + 1
    torn = partition / f"{end:020d}.log"
    torn.write_bytes(batch(int(end), 2, 0, random.Random(1))[:-1])
    one = verify(partition.parent).one("checkpoint/log-start-behind")
    assert (one.first_offset, one.last_offset) == (0, 76)


def reappearing(partition: Path) -> list[Action]:
    """Return the actions of the next start about deleted records that are readable again."""
    forecasts = Forecast([partition.parent], StartOptions())
    actions = [one.actions for one in forecasts if isinstance(one, PartitionForecast)]
    return [one for found in actions for one in found if one.action == "reappear"]


def log_starts(partition: Path, rows: list[str] | None) -> Path:
    """Write log-start-offset-checkpoint with these rows, and return its path."""
    path = partition.parent / "log-start-offset-checkpoint"
    path.write_text("\n".join(["0", str(len(rows or ())), *(rows or ()), ""]))
    return path


def since_stop(path: Path, seconds: int) -> None:
    """Set the time of a checkpoint to some seconds after the marker of the stop."""
    at = (path.parent / ".kafka_cleanshutdown").stat().st_mtime + seconds
    os.utime(path, (at, at))


HIGH_WATERMARKS, RECOVERY_POINTS = (
    "replication-offset-checkpoint",
    "recovery-point-offset-checkpoint",
)


@pytest.mark.parametrize(
    ("state", "witness"),
    [
        ("clean", HIGH_WATERMARKS),
        ("clean", RECOVERY_POINTS),
        ("clean", "snapshot"),
        ("killed", HIGH_WATERMARKS),
        ("killed", RECOVERY_POINTS),
    ],
)
def test_three_commands_agree_on_a_log_without_its_end(
    small: Small, state: str, witness: str
) -> None:
    partition = small(state, "small-segments-0")
    end = max(int(path.stem) for path in partition.glob("*.log"))
    for path in partition.glob(f"{end:020}.*"):
        if witness != "snapshot" or path.suffix != ".snapshot":
            path.unlink()
    for path in partition.glob("*.snapshot") if witness != "snapshot" else ():
        if int(path.stem) >= end:
            path.unlink()
    drop(partition, "leader-epoch-checkpoint")
    for name in (HIGH_WATERMARKS, RECOVERY_POINTS):
        set_rows(partition, name, end + 7 if name == witness else None)
    codes, tails = watermark(partition)
    assert codes
    assert tails
    assert "lacks" in planned(partition)
    assert set(found(partition)) >= set(codes)


def test_a_copy_of_a_running_broker_may_be_a_loss(small: Small) -> None:
    partition = small("killed", "codec-none-0")
    end = max(int(path.stem) for path in partition.glob("*.snapshot")) + 10**6
    set_rows(partition, HIGH_WATERMARKS, end)
    now = time.time() - 3600
    os.utime(partition.parent / HIGH_WATERMARKS, (now, now))
    assert found(partition) == ["checkpoint/high-watermark-ahead"]
    assert watermark(partition) == (["checkpoint/high-watermark-ahead"], [])


@pytest.mark.parametrize(
    ("topic", "damage", "action"),
    [
        ("tx.mixed-0", "*.snapshot", "lacks"),
        ("idempotent_writes-0", "*.snapshot", "unnoticed"),
        ("small-segments-0", f"{0:020}.*", "lacks"),
        ("small-segments-0", f"{0:020}.log", "lacks"),
    ],
)
def test_plan_and_watermark_say_what_is_absent(
    small: Small, topic: str, damage: str, action: str
) -> None:
    partition = small("clean", topic)
    assert planned(partition) == []
    drop(partition, damage)
    assert planned(partition) == [action]
    codes, _ = watermark(partition)
    assert codes
    assert set(codes) <= set(found(partition))


def test_plan_and_watermark_miss_the_row_of_a_log_start(small: Small) -> None:
    partition = small("clean", "deleted-records.mid-0")
    set_rows(partition, "log-start-offset-checkpoint", None)
    since_stop(partition.parent / "log-start-offset-checkpoint", 60)
    assert planned(partition) == ["unnoticed"]
    assert watermark(partition)[0] == ["checkpoint/log-start-lost"]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(
    ("base", "damage"),
    [
        (0, "emptied"),
        (42, ".log"),
        (42, "emptied"),
        (42, ".log .index .timeindex"),
        (42, ".log .index .timeindex .snapshot"),
    ],
)
def test_plan_lacks_a_segment_between_two_others(
    small: Small, base: int, damage: str, *, clean: bool
) -> None:
    partition = small("clean", "small-segments-0")
    for path in partition.glob(f"{base:020}.*"):
        if damage == "emptied" and path.suffix == ".log":
            path.write_bytes(b"")
        elif path.suffix in damage.split():
            path.unlink()
    if not clean:
        (partition.parent / ".kafka_cleanshutdown").unlink()
    assert "lacks" in planned(partition)
    codes = {one.code for one in verify(partition.parent).findings}
    assert codes & {"segment/missing", "segment/hole"}


@pytest.mark.parametrize(
    ("damage", "row", "actions"),
    [
        (f"{0:020}.*", None, ["unnoticed"]),
        (f"{0:020}.*", 42, []),
        ("*.nothing", None, []),
    ],
)
def test_without_epochs_a_beginning_is_not_proven(
    small: Small, damage: str, row: int | None, actions: list[str]
) -> None:
    partition = small("clean", "small-segments-0")
    for path in (*partition.glob(damage), partition / "leader-epoch-checkpoint"):
        path.unlink()
    set_rows(partition, "log-start-offset-checkpoint", row)
    assert planned(partition) == actions
    assert verify(partition.parent).one("leader-epoch/missing").severity is Severity.WARNING
