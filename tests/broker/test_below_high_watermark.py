"""`plan` and `verify` report acknowledged records that a log lost, which a start then drops."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from broker import workloads
from broker.kafka import Broker
from broker.protocol import offsets
from verification import batches, logs, verify

from logtool.findings import Severity
from logtool.formats import offset_checkpoint
from logtool.node.options import StartOptions
from logtool.startup.forecast import Forecast
from logtool.startup.partition import PartitionForecast

pytestmark = pytest.mark.broker

QUICK = {"replica.high.watermark.checkpoint.interval.ms": "200"}
TOPIC, BATCH = "orders", 10
WATERMARKS = "replication-offset-checkpoint"
GONE, AHEAD = "checkpoint/high-watermark-beyond-end", "checkpoint/high-watermark-ahead"


def write(broker: Broker) -> None:
    """Have one batch acknowledged."""
    content = workloads.messages("below-high-watermark", BATCH, workloads.now_ms())
    workloads.Writer(broker.bootstrap, acks="all").batch(TOPIC, content)


def wait_for_checkpoint(log_dir: Path, offset: int) -> None:
    """Wait until the checkpointed high watermark is `offset`."""

    def is_written() -> bool:
        path = log_dir / WATERMARKS
        rows = offset_checkpoint.parse(path.read_bytes()).offsets if path.exists() else {}
        return rows.get((TOPIC, 0)) == offset

    workloads.wait_for(is_written, 30, f"a high watermark of {offset}")


def codes_above_info(log_dir: Path) -> list[str]:
    return [one.code for one in verify(log_dir).findings if one.severity is not Severity.INFO]


def plan(log_dir: Path) -> PartitionForecast:
    found = [one for one in Forecast([log_dir], StartOptions((4, 3)))
             if isinstance(one, PartitionForecast) and one.request.topic == TOPIC]  # fmt: skip
    return found[0]


def end_after_a_start(version: str, log_dir: Path) -> int:
    with Broker(version, [log_dir], QUICK) as broker:
        broker.start()
        return offsets(broker.bootstrap, TOPIC).log_end


@pytest.fixture
def killed(kafka_version: str, log_dir: Path, tmp_path: Path) -> Path:
    """Return the log dir of a killed broker with 30 acknowledged records in three batches."""
    from confluent_kafka.admin import AdminClient, NewTopic

    with Broker(kafka_version, [log_dir], QUICK) as broker:
        broker.start()
        client = AdminClient({"bootstrap.servers": broker.bootstrap})
        (made,) = client.create_topics([NewTopic(TOPIC, 1, 1)]).values()
        made.result(30)
        for number in (1, 2):
            write(broker)
            wait_for_checkpoint(log_dir, number * BATCH)
        # A copy of a running broker's log dir, its checkpoints copied last.
        copy = tmp_path / "copy"
        shutil.copytree(log_dir / f"{TOPIC}-0", copy / f"{TOPIC}-0")
        write(broker)
        wait_for_checkpoint(log_dir, 3 * BATCH)
        for path in log_dir.iterdir():
            if path.is_file() and path.name != ".lock":
                shutil.copy2(path, copy)
        broker.kill()
    found = verify(copy)
    assert AHEAD in [one.code for one in found.findings]
    assert GONE not in [one.code for one in found.findings]
    assert codes_above_info(log_dir) == []
    assert plan(log_dir).lost_acknowledged == 0
    return log_dir


def test_a_last_batch_that_is_cut_off_was_acknowledged(killed: Path, kafka_version: str) -> None:
    (log,) = logs(killed / f"{TOPIC}-0")
    os.truncate(log, log.stat().st_size - 20)
    assert codes_above_info(killed) == [GONE]
    forecast = plan(killed)
    assert (forecast.log_end, forecast.lost_acknowledged) == (2 * BATCH, BATCH)
    (loss,) = forecast.losses
    assert (loss.records, loss.bad_records, loss.below_high_watermark) == (BATCH, BATCH, True)
    assert (loss.first_offset, loss.last_offset) == (2 * BATCH, 3 * BATCH - 1)
    assert end_after_a_start(kafka_version, killed) == forecast.log_end


def test_a_log_that_ends_between_batches_lacks_records_and_loses_nothing(
    killed: Path, kafka_version: str
) -> None:
    (log,) = logs(killed / f"{TOPIC}-0")
    os.truncate(log, int(batches(log).position[-1]))
    assert codes_above_info(killed) == [GONE]
    forecast = plan(killed)
    assert (forecast.log_end, forecast.lost_acknowledged, forecast.losses) == (2 * BATCH, BATCH, [])
    assert [one.action for one in forecast.actions if one.is_grave] == ["lacks"]
    assert end_after_a_start(kafka_version, killed) == forecast.log_end
