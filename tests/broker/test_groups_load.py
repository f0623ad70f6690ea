"""`groups` and a live broker agree on records that stop a coordinator from loading."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from broker import workloads
from broker.conftest import runnable
from broker.install import KAFKA_4
from broker.kafka import Broker, format_log_dir
from broker.topics import Topic
from group_records import OffsetsLog

from logtool.groups.loading import load
from logtool.log import opening

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]

KINDS = {
    "consumer": (3, 5, 6, 7, 8), "share": (11, 10, 12, 13, 14), "streams": (17, 19, 20, 21, 22),
}  # fmt: skip
"""Record types of the group epoch, of a member, of the target assignment, of a member's part in the
target, and of a member's current state."""
HISTORIES = {
    "a group with a member": "EMTPC",
    "a group that a member left": "EMTPCcpm",
    "a group that went": "EMTPCcpmte",
    "a group that went, the member first": "EMTPCcpmet",
    "tombstones of what is not there": "cpmte",
    "a member that leaves without its epoch": "EMTPCpm",
    "a member that leaves without its part": "EMTPCcm",
    "a member that leaves and was never current": "EMpm",
    "a member of which only the epoch is known": "ECcpm",
    "a group that goes with a member": "EMTPCe",
    "a group that goes with a part": "EMTPCcpmPe",
    "a group that goes with a target": "EMTPCcpme",
    "a target that goes with a part": "EMTPCt",
    "a target that goes with nothing else": "ETte",
    "a member without a group": "MCcpm",
    "a member that was left out of the target": "EMCcm",
    "a part that goes twice": "EMTPCcppm",
    "a member that leaves twice": "EMTPCcpmm",
    "a member that comes back": "EMTPCcpmMPCe",
}
"""Records by letter: Epoch, Member, Target, Part, Current state; a small letter is a tombstone."""


def add(log: OffsetsLog, group_type: str, letter: str) -> None:
    """Add the record of a letter."""
    place = "EMTPC".index(letter.upper())
    key = {"groupId": "g"} | ({"memberId": "m"} if letter.upper() in "MPC" else {})
    value = VALUE[letter](group_type) if letter.isupper() else None
    log.add(KINDS[group_type][place], key, value)


VALUE: dict[str, Callable[[str], Any]] = {
    "E": lambda kind: {"epoch": 1} | ({} if kind == "consumer" else {"metadataHash": 0}),
    "M": lambda kind: {
        "consumer": {
            "instanceId": None, "rackId": None, "clientId": "c", "clientHost": "/h",
            "subscribedTopicNames": ["t"], "subscribedTopicRegex": None, "serverAssignor": None,
        },
        "share": {
            "rackId": None, "clientId": "c", "clientHost": "/h", "subscribedTopicNames": ["t"],
        },
        "streams": {
            "instanceId": None, "rackId": None, "clientId": "c", "clientHost": "/h",
            "rebalanceTimeoutMs": 1, "topologyEpoch": 0, "processId": "p", "userEndpoint": None,
            "clientTags": [],
        },
    }[kind],
    "T": lambda kind: {"assignmentEpoch": 1},
    "P": lambda kind: (
        {"activeTasks": [], "standbyTasks": [], "warmupTasks": []} if kind == "streams"
        else {"topicPartitions": []}
    ),
    "C": lambda kind: {"memberEpoch": 1, "previousMemberEpoch": 0, "state": 1} | {
        "consumer": {"assignedPartitions": [], "partitionsPendingRevocation": []},
        "share": {"assignedPartitions": []},
        "streams": {
            "activeTasks": [], "standbyTasks": [], "warmupTasks": [],
            "activeTasksPendingRevocation": [], "standbyTasksPendingRevocation": [],
            "warmupTasksPendingRevocation": [],
        },
    }[kind],
}  # fmt: skip


Case = tuple[str, str]
CASES: list[Case] = [(kind, name) for kind in KINDS for name in HISTORIES]
LOADED = "Finished loading of metadata from __consumer_offsets-{} "
FAILED = "Failed to load metadata from __consumer_offsets-{} "


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[Case, int | None]]:
    """Return a log dir, and the offset at which a broker failed to load the partition of a case."""
    from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
    from confluent_kafka.admin import AdminClient

    version, home = runnable(KAFKA_4), tmp_path_factory.mktemp("loads") / "log-dir"
    format_log_dir(version, [home])
    more = {
        "offsets.topic.num.partitions": str(len(CASES)),
        "offsets.topic.segment.bytes": "1048576",
    }
    with Broker(version, [home], more) as broker:
        broker.start()
        workloads.create_topics(broker.bootstrap, version, [Topic("t", "is read")])
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        offset = ConsumerGroupTopicPartitions("other", [TopicPartition("t", 0, 0)])
        # Not the answer counts, which may come late, but that the broker makes the partitions.
        admin.alter_consumer_group_offsets([offset], request_timeout=300)
        folders = [home / f"__consumer_offsets-{number}" for number in range(len(CASES))]
        workloads.wait_for(
            lambda: all(folder.is_dir() for folder in folders),
            120,
            "the partitions of __consumer_offsets",
        )
        broker.stop()
    for number, (kind, name) in enumerate(CASES):
        log = OffsetsLog()
        for letter in HISTORIES[name]:
            add(log, kind, letter)
        log.write(home, number)
    (home / ".kafka_cleanshutdown").unlink()
    with Broker(version, [home], more) as broker:
        broker.start()

        def all_decided() -> bool:
            text = broker.log
            return all(
                FAILED.format(n) in text or LOADED.format(n) in text for n in range(len(CASES))
            )

        workloads.wait_for(all_decided, 120, "the coordinators to load or fail")
        text = broker.log
        broker.stop()
    offsets: dict[Case, int | None] = {}
    for number, case in enumerate(CASES):
        line = text.partition(FAILED.format(number))[2].partition("\n")[0]
        at = re.search(r" at offset (\d+) ", line)
        offsets[case] = int(at[1]) if at else None
    return home, offsets


def test_a_partition_loads_where_no_record_is_refused(
    judged: tuple[Path, dict[Case, int | None]],
) -> None:
    home, offsets = judged
    ours: dict[Case, int | None] = {}
    for number, case in enumerate(CASES):
        loaded = load(opening.open_partition(home / f"__consumer_offsets-{number}"), lambda _: None)
        assert not loaded.wrong
        ours[case] = loaded.refused[0].first_offset if loaded.refused else None
    assert ours == offsets
    assert len([one for one in offsets.values() if one is not None]) > 20
