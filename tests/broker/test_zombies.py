"""Segments that a truncation removed and a crash brought back ("zombies"), and a broker.

Brokers alone write the log: the log of a first broker is truncated, a second broker appends in a
later leader epoch and is killed, then segments of the first are copied back. A consumer reads at
each offset. The test compares its records with the prediction of `plan` and with the log that
`recover` leaves.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from broker.command import Object, objects, of_type, run, succeed
from broker.consuming import ends
from broker.kafka import Broker
from broker.scenarios import SMALL

pytestmark = pytest.mark.broker

TOPIC, NAME = "small-segments", "small-segments-0"
TO = 60
Records = dict[int, tuple[bytes | None, bytes | None]]
"""Key and value by offset."""


def served(broker: Broker, offsets: Sequence[int]) -> Records:
    """Return the first record that a consumer reads at each of the offsets."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused"})
    found: Records = {}
    for offset in offsets:
        consumer.assign([TopicPartition(TOPIC, 0, offset)])
        message = consumer.poll(30)
        assert message is not None and not message.error(), (offset, message)
        found[message.offset()] = message.key(), message.value()
    consumer.close()
    return found


def end(broker: Broker) -> int:
    from confluent_kafka import Consumer

    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused"})
    _, high = ends(consumer, TOPIC, 0)
    consumer.close()
    return high


@pytest.fixture
def histories(kafka_version: str, copy_of: Callable[[str], Path], tmp_path: Path) -> Path:
    """Return a log dir that was truncated and continued; ``before`` next to it is the old log."""
    from broker import workloads

    home = copy_of(f"{kafka_version}/killed")
    shutil.copytree(home / NAME, tmp_path / "before")
    succeed("recover", "--truncate-to", f"{NAME}={TO}", "--apply", "--accept-loss", NAME, home)
    with Broker(kafka_version, [home], SMALL) as broker:
        broker.start()
        writer = workloads.Writer(broker.bootstrap)
        content = workloads.messages("in a later epoch", 60, 1_700_000_000_000)
        writer.batches(TOPIC, content, (5, 2))
        broker.kill()
    return home


def bases(home: Path) -> list[int]:
    return sorted(int(path.stem) for path in home.glob("*.log"))


def come_back(before: Path, home: Path, base_offset: int) -> None:
    for path in before.glob(f"{base_offset:020d}.*"):
        shutil.copy2(path, home / NAME)


def read_from(before: Path, home: Path, base: int) -> set[int]:
    """Return the offsets for which a broker reads a zombie: up to the next segment."""
    ends = [min(one for one in bases(path) if one > base) for path in (before, home / NAME)]
    return set(range(base, min(ends)))


def test_plan_predicts_the_served_records_of_a_zombie_and_recover_drops_it(
    kafka_version: str, histories: Path, tmp_path: Path
) -> None:
    before = tmp_path / "before"
    truth_end = partition(histories)["log_end_offset"]
    live = bases(histories / NAME)
    inner = [base for base in bases(before) if TO < base < truth_end and base not in live]
    last = min(base for base in bases(before) if base > truth_end)
    for base in (*inner, last):
        come_back(before, histories, base)

    zombies = [one for one in objects("plan", histories) if one.get("action") == "zombie"]
    assert [one["segment"] for one in zombies] == [*inner, last]
    served_by_zombies = [read_from(before, histories, base) for base in inner]
    for one, expected in zip(zombies, served_by_zombies, strict=False):
        assert {str(min(expected)), str(max(expected))} <= set(re.findall(r"\d+", one["reason"]))
    assert run("plan", histories).returncode == 1
    mended = tmp_path / "mended"
    shutil.copytree(histories, mended)
    assert run("recover", "--apply", mended).returncode == 5  # records go
    succeed("recover", "--apply", "--accept-loss", NAME, mended)

    offsets = list(range(inner[0] - 2, truth_end))
    with Broker(kafka_version, [mended], SMALL) as broker:
        broker.start()
        assert end(broker) == truth_end
        truth = served(broker, offsets)
        assert list(truth) == offsets
    predicted = partition(histories)
    with Broker(kafka_version, [histories], SMALL) as broker:
        broker.start()
        assert end(broker) == predicted["log_end_offset"] > truth_end
        found = served(broker, [*offsets, last])
        wrong = {offset for offset in offsets if found[offset] != truth[offset]}
        assert wrong == set().union(*served_by_zombies) & set(offsets) != set()
        assert last in found
        lines = [line for line in broker.log.splitlines() if f"={NAME}," in line]
        assert [line for line in lines if " WARN " in line or " ERROR " in line] == []
    findings = of_type(objects("verify", mended / NAME), "finding")
    assert {one["code"] for one in findings if one["severity"] != "info"} == set()


def partition(home: Path) -> Object:
    (one,) = of_type(objects("plan", home / NAME), "partition")
    return one
