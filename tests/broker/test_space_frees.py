"""Lets a broker run the commands of `logtool space --free`, and looks at the files that go."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from broker import command
from broker.conftest import runnable
from broker.install import KAFKA_NEWEST, major
from broker.kafka import Broker, format_log_dir, run_tool
from deadlines import deadline_in

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]

MINUTE = 60_000
QUICK = {
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "1000",
    "log.segment.delete.delay.ms": "600000",
}
TOPICS = {"early": (-50, -40, -30, -20), "late": (-45, -35, -25), "compacted": (-50, -40, -30)}
"""Timestamps of the segments in minutes; the last segment is the active one."""


def test_the_printed_command_frees_what_the_steps_say(tmp_path: Path) -> None:
    version = runnable(KAFKA_NEWEST)
    home, offsets = tmp_path / "data", tmp_path / "offsets.json"
    now = time.time_ns() // 1_000_000
    with Broker(version, [home], QUICK) as broker:
        format_log_dir(version, [home])
        broker.start()
        _create(broker, version)
        for topic, minutes in TOPICS.items():
            _fill(broker, topic, [now + minute * MINUTE for minute in minutes])
        broker.stop()
    sizes = {(p.parent.name, int(p.stem)): p.stat().st_size for p in home.glob("*-0/*.log")}
    one = _blocks(home / "early-0", 1)
    wanted = 2 * one + 1
    found = command.objects("space", "--free", wanted, home, statuses=(0,))
    steps = {Path(step["path"]).name: step for step in command.of_type(found, "step")}
    # The oldest three records of both topics: 50, 45 and 40 minutes old.
    assert {name: step["before_offset"] for name, step in steps.items()} == {
        "early-0": 2, "late-0": 1,
    }  # fmt: skip
    (total,) = command.of_type(found, "total")
    freed = {name: _blocks(home / name, step["before_offset"]) for name, step in steps.items()}
    assert {name: step["bytes"] for name, step in steps.items()} == freed
    assert total["step_bytes"] == sum(freed.values())
    offsets.write_text(total["offsets_file"])
    with Broker(version, [home], QUICK) as broker:
        broker.start()
        in_tools = "org.apache.kafka.tools.DeleteRecordsCommand"
        tool = in_tools if major(version) >= 4 else "kafka.admin.DeleteRecordsCommand"
        arguments = ["--bootstrap-server", broker.bootstrap, "--offset-json-file", str(offsets)]
        run_tool(version, tool, *arguments)
        _wait_for_deleted(broker, home, 3)
        broker.stop()
    gone = {(p.parent.name, int(p.name[:20])): p.stat().st_size for p in _deleted(home)}
    assert gone == {key: sizes[key] for key in (("early-0", 0), ("early-0", 1), ("late-0", 0))}
    after = command.objects("space", home, statuses=(0,))
    topics = {one["topic"]: one for one in command.of_type(after, "topic")}
    assert all(topics[name]["leftover_bytes"] for name in ("early", "late"))


def _create(broker: Broker, version: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    name = "internal.segment.bytes" if major(version) >= 4 else "segment.bytes"
    config = {name: "1000", "retention.ms": str(60 * MINUTE)}
    policies = {"compacted": {"cleanup.policy": "compact"}}
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    new = [NewTopic(one, 1, 1, config={**config, **policies.get(one, {})}) for one in TOPICS]
    for future in client.create_topics(new).values():
        future.result(60)


def _fill(broker: Broker, topic: str, times: list[int]) -> None:
    """Produce a segment of one batch for each time."""
    from confluent_kafka import Producer

    producer = Producer({
        "bootstrap.servers": broker.bootstrap, "batch.num.messages": 1, "enable.idempotence": True,
    })  # fmt: skip
    for stamp in times:
        producer.produce(topic, b"v" * 700, b"k", partition=0, timestamp=stamp)
    assert producer.flush(60) == 0


def _blocks(folder: Path, before: int) -> int:
    """Return the bytes of the blocks of the files of a partition dir below an offset."""
    gone = [one for one in folder.iterdir() if one.stem.isdigit() and int(one.stem) < before]
    return sum(one.stat().st_blocks * 512 for one in gone)


def _wait_for_deleted(broker: Broker, home: Path, count: int) -> None:
    deadline = deadline_in(120)
    while len(_deleted(home)) < count:
        assert time.monotonic() < deadline, broker.log_tail()
        time.sleep(0.1)


def _deleted(home: Path) -> list[Path]:
    """Return the logs that wait to be deleted, but for those that the cleaner replaced."""
    return [*home.glob("early-0/*.log.deleted"), *home.glob("late-0/*.log.deleted")]
