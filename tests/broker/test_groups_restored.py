"""A broker commits removed offsets again, and consumers go on where `groups` says."""

from __future__ import annotations

import re
import shlex
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from broker import workloads
from broker.command import objects, of_type
from broker.install import VERSIONS, HarnessError, java_command
from broker.kafka import Broker, run_tool
from broker.topics import Topic
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]

READ = Topic("groups.input", "read by groups", partitions=2)
TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
PROGRAM = Path(__file__).with_name("GroupStarts.java")
START, END = 50, 200


def write(broker: Broker, count: int) -> None:
    writer = workloads.Writer(broker.bootstrap)
    for partition in range(2):
        content = workloads.messages(f"p{partition}", count, workloads.now_ms())
        writer.batches(READ.name, content, (20,), partition)


def commit(broker: Broker, group: str, offsets: dict[int, int]) -> None:
    """Commit offsets; the coordinator of the group may still have to load.

    A commit of librdkafka's consumer either has no time limit, or may still come after a later
    deletion.
    """
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    places = [TopicPartition(READ.name, number, offset) for number, offset in offsets.items()]
    wanted = ConsumerGroupTopicPartitions(group, places)

    def done() -> bool:
        with suppress(KafkaException):
            (answer,) = admin.alter_consumer_group_offsets([wanted]).values()
            return not any(one.error for one in answer.result().topic_partitions)
        return False

    workloads.wait_for(done, 60, "committed offsets")


def committed(reader: Consumer) -> dict[int, int]:
    places = [TopicPartition(READ.name, number) for number in range(2)]
    found = reader.committed(places, timeout=30)
    return {one.partition: one.offset for one in found if one.offset >= 0}


@pytest.mark.parametrize("kafka_version", VERSIONS[:2], indirect=True)
def test_removed_offsets_are_committed_again_and_no_living_one_moves(
    broker: Broker, log_dir: Path, tmp_path: Path
) -> None:
    broker.start()
    workloads.create_topics(broker.bootstrap, broker.version, [READ])
    write(broker, 100)
    before = {"gone": {0: 60, 1: 70}, "partly": {0: 10, 1: 20}, "whole": {0: 30}}
    readers = {group: workloads.consumer(broker.bootstrap, group, "classic") for group in before}
    for group, offsets in before.items():
        commit(broker, group, offsets)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for done in admin.delete_consumer_groups(["gone"]).values():
        done.result()
    server = ("--bootstrap-server", broker.bootstrap)
    place = ("--group", "partly", "--topic", f"{READ.name}:0")
    run_tool(broker.version, TOOL, *server, "--delete-offsets", *place)
    assert committed(readers["partly"]) == {1: 20}
    asked = ("groups", "--restore-plan", *server)

    def planned() -> dict[str, tuple[int, int]]:
        plans = of_type(objects(*asked, log_dir, statuses=(0,)), "restore")
        return {one["group"]: (one["offsets"], one["removed_left_out"]) for one in plans}

    expected = {"gone": (0, 2), "partly": (1, 1), "whole": (1, 0)}
    # A broker of 4.x may write the tombstones a moment after its answer.
    with suppress(HarnessError):
        workloads.wait_for(lambda: planned() == expected, 30, "the tombstones")
    assert planned() == expected
    removed = of_type(objects(*asked, "--removed", log_dir, statuses=(0,)), "restore")
    commit(broker, "partly", {1: 25})  # the group works on after the plan was made
    java = shlex.join(java_command(broker.version, TOOL, heap="256m", level="WARN"))
    for plan in removed:
        command = plan["command"].replace("kafka-consumer-groups.sh", java)
        subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, check=True)
    after = {group: committed(reader) for group, reader in readers.items()}
    assert after == {**before, "partly": {0: 10, 1: 25}}


# Older releases answer in the same way; their consumers print their logs to stdout.
@pytest.mark.parametrize("kafka_version", VERSIONS[:1], indirect=True)
def test_consumers_outside_of_the_log_go_on_where_the_findings_say(
    broker: Broker, log_dir: Path
) -> None:
    broker.start()
    workloads.create_topics(broker.bootstrap, broker.version, [READ])
    write(broker, 100)
    broker.stop()
    broker.start()  # with a new leader epoch
    write(broker, 100)
    workloads.delete_records_up_to(broker.bootstrap, {READ.name: START})
    rows = (log_dir / f"{READ.name}-0" / "leader-epoch-checkpoint").read_text().split("\n")[2:4]
    (old, _), (new, change) = (map(int, row.split()) for row in rows)
    assert change == END // 2
    cases = {
        "below": (20, -1), "below-by-epoch": (20, old),
        "beyond": (900, -1), "beyond-new": (900, new), "beyond-old": (900, old),
    }  # fmt: skip
    words = [f"{group}:{READ.name}:0:{at}:{epoch}" for group, (at, epoch) in cases.items()]
    java = java_command(broker.version, str(PROGRAM), heap="256m", level="OFF")

    def started(what: str) -> dict[str, int]:
        done = subprocess.run(
            [*java, broker.bootstrap, what, *words], capture_output=True, text=True, check=True
        )
        return {line.split("\t")[0]: int(line.split("\t")[1]) for line in done.stdout.splitlines()}

    started("commit")
    broker.stop()  # a broker that runs writes log start offsets to the disk once a minute
    findings = of_type(objects("groups", log_dir), "finding")
    said = {}
    for one in findings:
        text, _, goes_on = one["message"].partition(";")
        numbers = [int(number) for number in re.findall(r"\d+", goes_on)]
        # After a leader epoch the second number is the epoch.
        said[text.split()[1]] = numbers[:2] if "latest" in goes_on else numbers[:1] * 2
    broker.start()
    earliest, latest = started("earliest"), started("latest")
    assert said == {group: [earliest[group], latest[group]] for group in cases}
    assert said == {
        "below": [START, END], "below-by-epoch": [START, END], "beyond": [START, END],
        "beyond-new": [END, END], "beyond-old": [change, change],
    }  # fmt: skip
