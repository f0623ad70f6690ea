"""Starts of a broker with checkpoints and logs that logtool changed."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from broker.command import objects, of_type, run, succeed
from broker.consuming import ends
from broker.kafka import Broker, HarnessError, errors_in
from broker.scenarios import SMALL
from damage import damage_file, overwrite
from verification import batches, set_offsets

pytestmark = pytest.mark.broker

POINTS = "recovery-point-offset-checkpoint"
WATERMARKS = "replication-offset-checkpoint"
EPOCHS = "leader-epoch-checkpoint"
NAME = "small-segments-0"
STARTED = "Kafka Server started"


@pytest.fixture
def unmarked(kafka_version: str, copy_of: Callable[[str], Path]) -> Path:
    """Return a log dir of an orderly stop, without the clean marker."""
    home = copy_of(f"{kafka_version}/clean")
    (home / ".kafka_cleanshutdown").unlink()
    return home


def started(version: str, log_dir: Path) -> str:
    """Start a broker on a log dir; return its log of the whole start."""
    from broker import workloads

    with Broker(version, [log_dir], SMALL) as broker:
        broker.start()
        # Clients see a broker a moment before its start ends.
        workloads.wait_for(lambda: STARTED in broker.log, 60, "the end of the start")
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
    succeed("checkpoint", "set", unmarked / POINTS, NAME, "--delete", "--apply")
    (undo_dir,) = tmp_path.glob("clean.logtool-undo-*")
    changed = tmp_path / "changed"
    shutil.copytree(unmarked, changed)
    succeed("undo", "--apply", undo_dir)
    assert (unmarked / POINTS).read_bytes() == before
    assert recovered(started(kafka_version, changed)) == bases
    assert recovered(started(kafka_version, unmarked)) == bases[-1:]


def test_a_broker_appends_at_the_end_of_a_truncated_log(
    kafka_version: str, copy_of: Callable[[str], Path]
) -> None:
    # Imported here: without confluent-kafka these tests are skipped.
    from broker import workloads
    from confluent_kafka import Consumer

    home = copy_of(f"{kafka_version}/killed")
    words = ["recover", "--truncate-to", f"{NAME}=100", home]
    (planned,) = of_type(objects(*words, statuses=(0, 1, 5)), "partition")
    end = planned["log_end_offset"]
    assert 77 < end <= 100
    succeed(*words, "--apply", "--accept-loss", NAME)
    with Broker(kafka_version, [home], SMALL) as broker:
        broker.start()
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused"})
        assert ends(consumer, "small-segments", 0) == (0, end)
        writer = workloads.Writer(broker.bootstrap)
        writer.batch("small-segments", workloads.messages("again", 1, 1_700_000_000_000))
        assert ends(consumer, "small-segments", 0) == (0, end + 1)
        consumer.close()
        lines = [line for line in broker.log.splitlines() if f"partition={NAME}" in line]
        assert [line for line in lines if " ERROR " in line or " WARN " in line] == []
    after = objects("verify", home / NAME)
    assert [one for one in after if one.get("severity") == "error"] == []


def test_a_log_that_stops_a_broker_for_a_batch_outside_of_its_segment_is_brought_back(
    kafka_version: str, copy_of: Callable[[str], Path], tmp_path: Path
) -> None:
    home = copy_of(f"{kafka_version}/killed")
    (home / POINTS).unlink()
    log = home / "codec-none-0" / f"{0:020d}.log"
    table = batches(log)
    damage_file(log, overwrite, int(table.position[5]), (2**33).to_bytes(8, "big"))
    as_it_is = tmp_path / "as-it-is"
    shutil.copytree(home, as_it_is)
    with Broker(kafka_version, [as_it_is], SMALL) as broker:
        with pytest.raises(HarnessError, match="the broker ended with"):
            broker.start()
        assert "Split operation" in broker.log
    succeed("recover", "--apply", "--accept-loss", "codec-none-0", home)
    log_text = started(kafka_version, home)
    assert STARTED in log_text
    assert f"logEndOffset={table.base_offset[5]})" in next(
        line
        for line in log_text.splitlines()
        if "Completed load of Log" in line and "codec-none-0" in line
    )


def test_a_log_dir_whose_checkpoints_were_mended_starts_with_no_error(
    unmarked: Path, kafka_version: str
) -> None:
    for name in (POINTS, WATERMARKS):
        set_offsets(unmarked / name, {("codec-lz4", 0): 9_999_999})
    (unmarked / "codec-none-0" / EPOCHS).write_bytes(b"0\n2\n7 100\nno row\n")
    (unmarked / "codec-zstd-0" / EPOCHS).unlink()
    assert run("checkpoint", "lint", "--fail-on", "error", unmarked).returncode == 1
    succeed("checkpoint", "rebuild", unmarked, "--apply")
    assert run("checkpoint", "lint", "--fail-on", "error", unmarked).returncode == 0
    log = started(kafka_version, unmarked)
    assert errors_in(log) == []
    assert STARTED in log
