"""`groups` on the disks of a killed broker agrees with the broker before the kill."""

from __future__ import annotations

import shlex
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from broker.command import Object, objects, of_type
from broker.install import VERSIONS, java_command, major
from broker.kafka import SHARE_CONFIG, Broker, run_tool
from broker.topics import Topic
from deadlines import deadline_in

pytestmark = pytest.mark.broker

READ = Topic(
    "groups.input", "read by groups of every kind", partitions=2,
    config={"retention.ms": "-1"},  # its records are old
)  # fmt: skip
TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
STREAMS_TOOL = "org.apache.kafka.tools.streams.StreamsGroupCommand"
SHARE_TOOL = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
NEWER = {
    **SHARE_CONFIG,
    "group.streams.initial.rebalance.delay.ms": "0",
    # The member of the streams group sends no heartbeats.
    "group.streams.session.timeout.ms": "3600000",
    "group.streams.max.session.timeout.ms": "3600000",
}
OFFSETS = ("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID")


def groups(*arguments: object) -> list[Object]:
    return objects("groups", *arguments, statuses=(0,))


def rows(text: str) -> list[dict[str, str]]:
    """Return the tables that Kafka's tool printed, a dictionary for each row."""
    found: list[dict[str, str]] = []
    head: list[str] = []
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["GROUP"]:
            head = words
        elif head and len(words) >= 3:
            found.append(dict(zip(head, words, strict=False)))
    return found


def write(broker: Broker) -> list[Any]:
    """Create groups of every kind; return the clients that must stay members."""
    from broker import java_clients, streams_group, workloads
    from confluent_kafka import ShareConsumer, TopicPartition

    workloads.create_topics(broker.bootstrap, broker.version, [READ, java_clients.SHARED])
    writer = workloads.Writer(broker.bootstrap)
    for partition in range(2):
        content = workloads.messages(f"p{partition}", 200, workloads.EPOCH_MS)
        writer.batches(READ.name, content, (20,), partition)
    workloads.write_groups(broker.bootstrap, broker.version)
    clients: list[Any] = []
    for protocol in ("classic", "consumer")[: major(broker.version) - 2]:
        reader = workloads.consumer(broker.bootstrap, f"stays-{protocol}", protocol)
        reader.subscribe([READ.name])
        deadline = deadline_in(60)
        while not reader.consume(30, timeout=1.0):
            assert time.monotonic() < deadline
        reader.commit(asynchronous=False)
        clients.append(reader)
    alone = workloads.consumer(broker.bootstrap, "only-commits", "classic")
    place = TopicPartition(READ.name, 1, 7, metadata="by hand")
    alone.commit(offsets=[place], asynchronous=False)
    left_open = workloads.transactional(broker.bootstrap, "left-open")
    left_open.producer.begin_transaction()
    left_open.producer.send_offsets_to_transaction(
        [TopicPartition(READ.name, 0, 77)], alone.consumer_group_metadata(), 30
    )
    java_clients.share(broker.bootstrap)
    stays = ShareConsumer({"bootstrap.servers": broker.bootstrap, "group.id": "stays-share"})
    stays.subscribe([java_clients.SHARED.name])
    streams_group.join(broker.bootstrap, broker.version, "stays-streams", READ.name)
    return [*clients, alone, left_open, stays]


def tool(broker: Broker, *arguments: str, name: str = TOOL) -> str:
    return run_tool(broker.version, name, "--bootstrap-server", broker.bootstrap, *arguments)


def of_newer_kinds(broker: Broker, stays: Any) -> dict[str, tuple[str, str, int]]:
    """Return type, state and members of the share and streams groups when they are stable."""
    asked = ("--describe", "--all-groups", "--state")
    deadline = deadline_in(120)
    while True:
        stays.poll(timeout=0.1)  # a member joins while it is polled
        shares = rows(tool(broker, *asked, name=SHARE_TOOL))
        if all(row["STATE"] == "Stable" for row in shares if row["GROUP"] == "stays-share"):
            break
        assert time.monotonic() < deadline, shares
    kinds = {"share": shares, "streams": rows(tool(broker, *asked, name=STREAMS_TOOL))}
    return {
        row["GROUP"]: (kind, row["STATE"], int(row["#MEMBERS"]))
        for kind, found in kinds.items()
        for row in found
    }


def compare_shares(expected: list[dict[str, str]], items: list[Object]) -> None:
    def spelled(number: int | None) -> str:
        return "-" if number is None else str(number)

    found = {
        (one["group"], one["topic"], str(one["partition"])): (
            spelled(one["start_offset"]), spelled(one["lag"])
        )
        for one in of_type(items, "share-offset")
    }  # fmt: skip
    counted = [one for one in of_type(items, "share-offset") if one["delivered"] is not None]
    assert [one["acknowledged"] + one["archived"] for one in counted] == [
        one["delivered"] for one in counted
    ]
    names = ("GROUP", "TOPIC", "PARTITION")
    wanted = {
        tuple(row[name] for name in names): (row["START-OFFSET"], row["LAG"]) for row in expected
    }
    assert found == wanted
    assert any(start not in ("0", "-") for start, _ in wanted.values())


def restore(broker: Broker, log_dir: Path, work: Path) -> str:
    """Run the command of --restore-plan for a group without members; return its output."""
    given = ["--group", "only-commits", "--bootstrap-server", broker.bootstrap, "--restore-plan"]
    (plan,) = of_type(groups(*given, log_dir), "restore")
    java = java_command(broker.version, TOOL, heap="256m", level="WARN")
    command = plan["command"].replace("kafka-consumer-groups.sh", shlex.join(java))
    done = subprocess.run(["bash", "-c", command], cwd=work, capture_output=True, check=True)
    return done.stdout.decode()


def compare_offsets(wanted: list[dict[str, str]], items: list[Object]) -> None:
    members = {(one["group"], name): one["member"] for one in of_type(items, "member")
               for name in one["assigned"]}  # fmt: skip
    found = {}
    for one in of_type(items, "offset"):
        owner = members.get((one["group"], f"{one['topic']}-{one['partition']}"), "-")
        numbers = (one["offset"], one["log_end_offset"], one["lag"])
        found[one["group"], one["topic"], str(one["partition"])] = (*map(str, numbers), owner)
    expected = [tuple(row.get(name, "-") for name in OFFSETS) for row in wanted]
    assert found == {row[:3]: row[3:] for row in expected if row[3] != "-"}
    assert len(found) >= 8


# The other release has classic groups only.
@pytest.mark.parametrize("kafka_version", VERSIONS[:1], indirect=True)
def test_groups_are_those_that_the_broker_had(
    broker: Broker, log_dir: Path, tmp_path: Path
) -> None:
    broker.extra_config |= NEWER
    broker.start()
    clients = write(broker)
    newer = of_newer_kinds(broker, clients[-1])
    restored = restore(broker, log_dir, tmp_path)
    shares = tool(broker, "--describe", "--all-groups", "--offsets", name=SHARE_TOOL)
    with ThreadPoolExecutor(2) as pool:
        listing = pool.submit(tool, broker, "--list", "--type", "--state")
        offsets = pool.submit(tool, broker, "--describe", "--all-groups", "--offsets")
        listed, described = rows(listing.result()), rows(offsets.result())
    broker.kill()
    items = groups(log_dir)

    found = {
        one["group"]: (one["group_type"], one["state"], one["members"])
        for one in of_type(items, "group")
        if one["state"] != "Dead"
    }
    assert {name: one for name, one in found.items() if one[0] in ("share", "streams")} == newer
    assert newer == {
        "group-share": ("share", "Empty", 0),
        "stays-share": ("share", "Stable", 1),
        "stays-streams": ("streams", "Stable", 1),
    }
    states = {name: one[:2] for name, one in found.items() if name not in newer}
    wanted = {row["GROUP"]: (row["TYPE"].lower(), row["STATE"]) for row in listed}
    assert states == wanted
    assert states["stays-classic"] == ("classic", "Stable")
    compare_offsets(described, items)
    compare_shares(rows(shares), items)
    (pending,) = of_type(items, "pending")
    assert (pending["group"], pending["offset"]) == ("only-commits", 77)
    (by_hand,) = [one for one in of_type(items, "offset") if one["group"] == pending["group"]]
    assert (by_hand["offset"], by_hand["metadata"]) == (7, "")  # restored without metadata
    assert [line.split()[-1] for line in restored.splitlines() if READ.name in line] == ["7"]
    history = of_type(groups("--history", "group-tx", log_dir), "event")
    events = [one["event"] for one in history]
    assert events.count("committed") == events.count("aborted") == 1
    del clients  # a client that is deleted leaves its group
