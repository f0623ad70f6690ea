"""A topic that was compacted once keeps legitimate gaps; tested with a live broker."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from broker import workloads
from broker.conftest import runnable
from broker.install import KAFKA_4
from broker.kafka import Broker, format_log_dir, run_tool
from broker.test_metadata_agrees import alter
from broker.topics import Topic
from broker.workloads import Message, Writer
from verification import batches, verify

from logtool.gaps.run import GapOptions, Gaps, Result
from logtool.node import settings
from logtool.node.identity import topic_id_of

pytestmark = pytest.mark.broker

ROLLED = {"segment.bytes": "2048", "file.delete.delay.ms": "100"}
COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
TOPICS = (
    Topic("once", "was compacted", config={**ROLLED, **COMPACTED}),
    Topic("never", "was not", config=ROLLED),
)
NO_FILE: Mapping[str, str] = {}
CODES = {"batch/hole", "segment/hole", "segment/gap", "segment/missing"}


def missing_offsets(path: Path) -> dict[str, set[str]]:
    """Return the findings of `verify` about missing offsets, by topic."""
    found: dict[str, set[str]] = {"once": set(), "never": set()}
    for finding in verify(path).findings:
        if finding.code in CODES:
            found[finding.topic or ""].add(finding.code)
    return found


def evidence(path: Path, static: Mapping[str, str] = NO_FILE) -> set[tuple[str, str]]:
    """Return the reasons for gaps in a partition, with their evidence."""
    (result,) = Gaps([path], GapOptions(static=static))
    assert isinstance(result, Result)
    verdicts = result.ledger.verdicts
    return {(verdicts[n].reason, verdicts[n].evidence) for n in set(result.ledger.verdict.tolist())}


def test_only_a_former_policy_explains_gaps(tmp_path: Path) -> None:
    from confluent_kafka.admin import AdminClient, ResourceType

    version, log_dir = runnable(KAFKA_4), tmp_path / "log-dir"
    format_log_dir(version, [log_dir])
    with Broker(version, [log_dir], {"log.cleaner.backoff.ms": "100"}) as broker:
        broker.start()
        workloads.create_topics(broker.bootstrap, broker.version, TOPICS)
        write_and_clean(broker, "once", "never")
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        alter(admin, ResourceType.TOPIC, "once", cleanup_policy="delete")
        broker.stop()
    (log_dir / "cleaner-offset-checkpoint").unlink()  # its row proves compaction
    before = missing_offsets(log_dir)
    assert before["once"] <= {"segment/gap"}
    assert before["never"] == set()
    ((reason, why),) = evidence(log_dir / "once-0")
    assert reason == "compaction"
    assert re.search(r"\boffset \d+\b.*\bmetadata log\b", why)
    log = sorted((log_dir / "never-0").glob("*.log"))[1]
    table, data = batches(log), log.read_bytes()
    at, size = int(table.position[-2]), int(table.size[-2])
    log.write_bytes(data[:at] + data[at + size :])
    assert "batch/hole" in missing_offsets(log_dir)["never"]
    assert missing_offsets(log_dir)["once"] == before["once"]
    ((reason, why),) = evidence(log_dir / "never-0")
    assert reason == "unknown"
    assert re.search(r"\bmetadata log\b.*\bnever\b", why)


DEFAULTS = (
    Topic("plain", "has no policy of its own", config=ROLLED),
    Topic("own", "has one", config={**ROLLED, "cleanup.policy": "delete"}),
)
POLICY = "log.cleanup.policy"
DEFAULT = ("--entity-type", "brokers", "--entity-default", "--alter", "--add-config")


def policies(broker: Broker, *topics: str) -> dict[str, str]:
    """Return the effective policies that the broker reports."""
    from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    asked = admin.describe_configs([ConfigResource(ResourceType.TOPIC, one) for one in topics])
    return {one.name: done.result()["cleanup.policy"].value for one, done in asked.items()}


def believed(log_dir: Path, static: Mapping[str, str], *topics: str) -> dict[str, str | None]:
    """Return the effective policies that logtool reads."""
    known = settings.within(log_dir, static)
    return {one: known.policy(one, topic_id_of(log_dir / f"{one}-0"))[0] for one in topics}


def write_and_clean(broker: Broker, cleaned: str, *others: str) -> None:
    """Write the same records to topics, and wait until the cleaner has cleaned one of them.

    Each batch has one record of a producer without an id: the cleaner removes whole batches and
    leaves no trace in the others.
    """
    content = [Message(b"key-%d" % (n % 3), b"v" * 60, workloads.now_ms()) for n in range(120)]
    content += [Message(b"last-%d" % n, b"v" * 60, workloads.now_ms()) for n in range(40)]
    for topic in (*others, cleaned):
        Writer(broker.bootstrap).batches(topic, content, (1,))
    workloads.wait_for_cleaner(broker.log_dirs[0], cleaned, 0)


def test_the_default_of_a_broker_applies_to_a_topic_without_policy(tmp_path: Path) -> None:
    version, log_dir = runnable(KAFKA_4), tmp_path / "log-dir"
    format_log_dir(version, [log_dir])
    quick = {"log.cleaner.backoff.ms": "100", "log.cleaner.min.cleanable.ratio": "0.01"}
    static = {POLICY: "compact"}
    with Broker(version, [log_dir], quick | static) as broker:
        broker.start()
        workloads.create_topics(broker.bootstrap, version, DEFAULTS)
        write_and_clean(broker, "plain", "own")
        by_file = policies(broker, "plain", "own")
        broker.stop()
    assert by_file == {"plain": "compact", "own": "delete"}
    assert believed(log_dir, static, "plain", "own") == by_file
    (log_dir / "cleaner-offset-checkpoint").unlink()  # its row proves compaction
    ((reason, why),) = evidence(log_dir / "plain-0", static)
    assert reason == "compaction"
    assert re.search(r"cleanup\.policy=compact\b.*\bfile\b", why)
    assert evidence(log_dir / "own-0", static) == set()

    with Broker(version, [log_dir], quick) as broker:
        broker.start()
        words = ("--bootstrap-server", broker.bootstrap, *DEFAULT, f"{POLICY}=compact")
        run_tool(version, "kafka.admin.ConfigCommand", *words)
        workloads.create_topics(
            broker.bootstrap, version, [Topic("later", "is new", config=ROLLED)]
        )
        write_and_clean(broker, "later", "own")
        dynamic = policies(broker, "plain", "own", "later")
        broker.stop()
    assert dynamic == {"plain": "compact", "own": "delete", "later": "compact"}
    # The settings of a file do not override the dynamic default.
    for file in ({}, {POLICY: "delete"}):
        assert believed(log_dir, file, *dynamic) == dynamic
    (log_dir / "cleaner-offset-checkpoint").unlink()
    ((reason, why),) = evidence(log_dir / "later-0")
    assert reason == "compaction"
    assert re.search(r"cleanup\.policy=compact\b.*\bmetadata log\b", why)
    assert evidence(log_dir / "own-0") == set()
