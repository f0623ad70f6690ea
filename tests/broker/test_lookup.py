"""`lookup` by the index finds the same offset for a timestamp as a broker on the same log."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from broker.consuming import ends
from broker.kafka import Broker

from logtool.formats.names import DirectoryKind
from logtool.log import opening
from logtool.lookup.run import Lookup, LookupResult, LookupTarget
from logtool.running.summary import Summary

pytestmark = pytest.mark.broker

_RECORD = re.compile(rb"^\| offset: \d+ (?:CreateTime|LogAppendTime): (\d+) ", re.MULTILINE)
NOTHING = -1
Key = tuple[str, int]


def look(path: Path, asked: LookupTarget, value: int | None = None) -> LookupResult:
    return Lookup(path, Summary()).find(asked, value)


def timestamps(folder: Path) -> list[int]:
    """Return some timestamps of the records in Kafka's dump, and those just before and behind."""
    text = b"\n".join(file.read_bytes() for file in folder.glob("*.log.txt"))
    stamps = sorted({int(stamp) for stamp in _RECORD.findall(text)})
    chosen = [*stamps[:: max(1, len(stamps) // 12)], *stamps[-1:]]
    return [near for stamp in chosen for near in (stamp - 1, stamp, stamp + 1)]


def answered(consumer: Any, question: list[Any]) -> list[Any]:
    """Return a broker's answers; repeat the request while it starts."""
    from confluent_kafka import KafkaException

    problems: list[Any] = []
    for _ in range(60):
        try:
            answers = consumer.offsets_for_times(question, timeout=30)
        except KafkaException as error:
            # A broker that just started may know fewer leader epochs than its metadata.
            problems = [error]
        else:
            problems = [one.error for one in answers if one.error is not None]
            if not problems:
                return list(answers)
        time.sleep(0.5)
    raise AssertionError(problems)


def test_a_timestamp_leads_to_the_offset_that_a_broker_names(
    kafka_version: str, scenario: Callable[[str], Path], tmp_path: Path
) -> None:
    # Imported here: without confluent-kafka these tests are skipped.
    from confluent_kafka import Consumer, TopicPartition

    name = f"{kafka_version}/killed"
    ours, theirs = scenario(name), tmp_path / "theirs"
    shutil.copytree(ours, theirs)
    partitions: dict[Key, Path] = {
        (directory.topic, directory.partition): path
        for path, directory in opening.open_log_dir(ours).partitions
        if directory.kind is DirectoryKind.LIVE and not directory.topic.startswith("__")
    }
    asked = {
        key: timestamps(scenario(f"{name}.expected") / "records" / path.name)
        for key, path in partitions.items()
    }
    answers = {}
    with Broker(kafka_version, [theirs], {"log.cleaner.enable": "false"}) as broker:
        broker.start()
        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap, "group.id": "unused",
                "isolation.level": "read_uncommitted",
            }
        )  # fmt: skip
        for number in range(max(map(len, asked.values()))):
            question = [
                TopicPartition(*key, stamps[number])
                for key, stamps in asked.items()
                if number < len(stamps)
            ]
            for answer in answered(consumer, question):
                key = answer.topic, answer.partition
                answers[key, asked[key][number]] = answer.offset
        bounds = {key: ends(consumer, *key) for key in partitions}
        consumer.close()
    assert len(answers) > 800

    for key, (low, high) in bounds.items():
        answer = look(partitions[key], LookupTarget.LATEST)
        assert (answer.log_start, answer.log_end) == (low, high)
        assert answer.by_index.offset == answer.by_scan.offset == high
    disagree = set()
    for (key, stamp), offset in answers.items():
        answer = look(partitions[key], LookupTarget.TIMESTAMP, stamp)
        assert (NOTHING if answer.by_index.offset is None else answer.by_index.offset) == offset
        if not answer.agree:
            disagree.add(key[0])
            assert answer.by_index.problem
    # A batch that compaction emptied keeps its largest timestamp, which misleads brokers.
    assert disagree == {"compacted.keys"}
