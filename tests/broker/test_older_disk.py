"""A disk that an older copy replaced: what `verify`, `plan` and `dirs` say of it, and a broker."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from broker import workloads
from broker.command import objects, of_type
from broker.install import VERSIONS
from broker.kafka import Broker, format_log_dir
from broker.protocol import offsets
from broker.topics import Topic
from verification import verify

pytestmark = [pytest.mark.broker, pytest.mark.timeout(600)]

ORDERS = Topic("orders", "partitions in each log dir", partitions=4)
OLD, NEW = 20, 50
"""Log ends of each partition: in the older copy of the disk, and at the kill."""
CONFIG = {"log.segment.delete.delay.ms": "3600000"}


@pytest.mark.parametrize("version", VERSIONS)
def test_records_of_a_future_copy_that_the_older_copy_of_the_disk_lacks(
    version: str, tmp_path: Path
) -> None:
    homes = [tmp_path / name for name in ("a", "b")]
    format_log_dir(version, homes, extra_config=CONFIG)
    with Broker(version, homes, CONFIG) as broker:
        broker.start()
        workloads.create_topics(broker.bootstrap, version, (ORDERS,))
        _write(broker, OLD)
        broker.stop()
        shutil.copytree(homes[1], tmp_path / "old")
        assert _older(homes) == []
        broker.start()
        _write(broker, NEW - OLD)
        broker.kill()
    assert _older(homes) == []
    assert _losses(homes) == []
    name = min(one.name for one in homes[1].glob("orders-*"))
    future = homes[0] / f"{name}.0123456789abcdef0123456789abcdef-future"
    homes[1].rename(tmp_path / "lost")
    shutil.copytree(tmp_path / "lost" / name, future)
    (tmp_path / "old").rename(homes[1])
    assert _older(homes) == [homes[1] / ".kafka_cleanshutdown"]
    assert _losses(homes) == [(str(future), OLD, NEW - 1)]
    (moved,) = of_type(objects("dirs", *homes, statuses=(1,)), "future")
    assert (moved["status"], moved["ahead"], moved["superset"]) == ("ahead", NEW - OLD, True)
    mended = [Path(shutil.copytree(home, tmp_path / f"mended-{home.name}")) for home in homes]
    assert _end_after_a_start(version, homes, name) == OLD
    # The copy as the partition itself, in place of the older log, keeps every record.
    (mended[1] / name).rename(tmp_path / "aside")
    (mended[0] / future.name).rename(mended[0] / name)
    assert _losses(mended) == []
    assert _end_after_a_start(version, mended, name) == NEW


def _write(broker: Broker, count: int) -> None:
    writer = workloads.Writer(broker.bootstrap, acks="all")
    for number in range(ORDERS.partitions):
        content = workloads.messages(f"orders-{number}", count, workloads.now_ms())
        writer.batches(ORDERS.name, content, (5,), number)


def _older(homes: list[Path]) -> list[Path | None]:
    """Return the paths of the findings about an older copy."""
    return [one.path for one in verify(*homes).findings if one.code == "clean-shutdown/older"]


def _losses(homes: list[Path]) -> list[tuple[str, int, int]]:
    """Return the copies that a start cuts, with the offsets that it loses."""
    actions = of_type(objects("plan", *homes), "action")
    return [
        (one["path"], one["first_offset"], one["last_offset"])
        for one in actions
        if one["action"] == "discard"
    ]


def _end_after_a_start(version: str, homes: list[Path], name: str) -> int:
    """Return the log end of a partition once the broker has finished the move."""
    with Broker(version, homes, CONFIG) as broker:
        broker.start()
        place = homes[0] / name
        workloads.wait_for(place.is_dir, 60, "the end of the move")
        end = offsets(broker.bootstrap, ORDERS.name, int(name.rpartition("-")[2])).log_end
        broker.kill()
    return end
