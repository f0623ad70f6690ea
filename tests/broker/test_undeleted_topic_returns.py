"""A deleted topic comes back into its cluster with its records and offsets.

The steps are those of "A topic was deleted by mistake" in the recipes.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from broker import command, workloads
from broker.conftest import runnable
from broker.consuming import consumed
from broker.install import KAFKA_NEWEST
from broker.kafka import Broker, format_log_dir
from broker.topics import Topic

from logtool.formats import partition_metadata

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]

ORDERS = Topic("orders", "deleted by mistake", partitions=2, config={"retention.ms": "-1"})
OTHER = Topic("other", "not deleted")
PLACES = [(ORDERS.name, 0), (ORDERS.name, 1)]
CONFIG = {"log.segment.delete.delay.ms": "600000", "log.retention.ms": "-1"}


def test_a_deleted_topic_comes_back_with_its_offsets(tmp_path: Path) -> None:
    version = runnable(KAFKA_NEWEST)
    home, saved = tmp_path / "data", tmp_path / "back"
    with Broker(version, [home], CONFIG) as broker:
        format_log_dir(version, [home])
        broker.start()
        workloads.create_topics(broker.bootstrap, version, [ORDERS, OTHER])
        writer = workloads.Writer(broker.bootstrap)
        for number in range(ORDERS.partitions):
            content = workloads.messages(f"orders-{number}", 200, workloads.EPOCH_MS)
            writer.batches(ORDERS.name, content, (9, 4), number)
        writer.batches(OTHER.name, workloads.messages("other", 50, workloads.EPOCH_MS), (5,))
        before = consumed(broker, PLACES, "read_uncommitted")
        workloads.delete_topic(broker.bootstrap, home, ORDERS.name)
        broker.stop()

        command.succeed("undelete", "--output", saved, "--topic", ORDERS.name, home)
        broker.start()
        workloads.create_topics(broker.bootstrap, version, [ORDERS])
        broker.stop()
        for topic, number in PLACES:
            _replace(saved / "partitions" / f"{topic}-{number}", home / f"{topic}-{number}")
        assert command.objects("plan", home, statuses=(0,))
        broker.start()
        assert consumed(broker, PLACES, "read_uncommitted") == before
        writer = workloads.Writer(broker.bootstrap)
        writer.batch(ORDERS.name, workloads.messages("later", 3, workloads.EPOCH_MS), 0)
        after = consumed(broker, PLACES, "read_uncommitted")
        assert {place: len(found) for place, found in after.items()} == {
            PLACES[0]: len(before[PLACES[0]]) + 3,
            PLACES[1]: len(before[PLACES[1]]),
        }
        broker.stop()
    assert command.objects("verify", "--level", "records", home, statuses=(0,))


def _replace(saved: Path, new: Path) -> None:
    """Put the saved files in the place of those of a new topic, whose topic id stays."""
    path = new / "partition.metadata"
    kept = path.read_bytes()
    assert partition_metadata.parse(kept).topic_id not in (saved / path.name).read_text()
    shutil.rmtree(new)
    shutil.copytree(saved, new)
    path.write_bytes(kept)
