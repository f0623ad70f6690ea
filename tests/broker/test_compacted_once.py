"""A topic that was compacted once keeps lawful gaps: a live broker, altered and stopped."""

from __future__ import annotations

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
    """Return what `verify` says of missing offsets, by topic."""
    found: dict[str, set[str]] = {"once": set(), "never": set()}
    for finding in verify(path).findings:
        if finding.code in CODES:
            found[finding.topic or ""].add(finding.code)
    return found


def evidence(path: Path, static: Mapping[str, str] = NO_FILE) -> set[tuple[str, str]]:
    """Return the reasons for gaps in a partition, and what they rest on."""
    (result,) = Gaps([path], GapOptions(static=static))
    assert isinstance(result, Result)
    verdicts = result.ledger.verdicts
    return {(verdicts[n].reason, verdicts[n].evidence) for n in set(result.ledger.verdict.tolist())}


def test_a_policy_of_the_past_explains_gaps_and_nothing_else_does(
    tmp_path: Path,
) -> None:
    from confluent_kafka.admin import AdminClient, ResourceType

    version, log_dir = runnable(KAFKA_4), tmp_path / "log-dir"
    format_log_dir(version, [log_dir])
    with Broker(version, [log_dir], {"log.cleaner.backoff.ms": "100"}) as broker:
        broker.start()
        workloads.create_topics(broker.bootstrap, broker.version, TOPICS)
        start = workloads.now_ms()
        # One record a batch, of no idempotent producer: the cleaner takes batches as wholes, and
        # leaves no trace in those that stay.
        content = [Message(b"key-%d" % (n % 3), b"v" * 60, start) for n in range(120)]
        content += [Message(b"last-%d" % n, b"v" * 60, start) for n in range(40)]
        for topic in ("once", "never"):
            Writer(broker.bootstrap).batches(topic, content, (1,))
        workloads.wait_for_cleaner(log_dir, "once", 0)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        alter(admin, ResourceType.TOPIC, "once", cleanup_policy="delete")
        broker.stop()
    (log_dir / "cleaner-offset-checkpoint").unlink()  # it names the partition: a proof by itself
    before = missing_offsets(log_dir)
    assert before["once"] <= {"segment/gap"}
    assert before["never"] == set()
    ((reason, why),) = evidence(log_dir / "once-0")
    assert reason == "compaction"
    assert why.startswith("the topic was compacted before, see offset ")
    log = sorted((log_dir / "never-0").glob("*.log"))[1]
    table, data = batches(log), log.read_bytes()
    at, size = int(table.position[-2]), int(table.size[-2])
    log.write_bytes(data[:at] + data[at + size :])
    assert "batch/hole" in missing_offsets(log_dir)["never"]
    assert missing_offsets(log_dir)["once"] == before["once"]
    ((reason, why),) = evidence(log_dir / "never-0")
    assert reason == "unknown"
    assert "never compact in the whole of the metadata log" in why


DEFAULTS = (
    Topic("plain", "has no policy of its own", config=ROLLED),
    Topic("own", "has one", config={**ROLLED, "cleanup.policy": "delete"}),
)
POLICY = "log.cleanup.policy"
DEFAULT = ("--entity-type", "brokers", "--entity-default", "--alter", "--add-config")


def policies(broker: Broker, *topics: str) -> dict[str, str]:
    """Return the policies that count, as the broker says."""
    from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    asked = admin.describe_configs([ConfigResource(ResourceType.TOPIC, one) for one in topics])
    return {one.name: done.result()["cleanup.policy"].value for one, done in asked.items()}


def believed(log_dir: Path, static: Mapping[str, str], *topics: str) -> dict[str, str | None]:
    """Return the policies that the tool goes by."""
    known = settings.within(log_dir, static)
    return {one: known.policy(one, topic_id_of(log_dir / f"{one}-0"))[0] for one in topics}


def write_and_clean(broker: Broker, cleaned: str, *others: str) -> None:
    """Write the same into topics, and wait until the cleaner has been through one of them."""
    content = [Message(b"key-%d" % (n % 3), b"v" * 60, workloads.now_ms()) for n in range(120)]
    content += [Message(b"last-%d" % n, b"v" * 60, workloads.now_ms()) for n in range(40)]
    for topic in (*others, cleaned):
        Writer(broker.bootstrap).batches(topic, content, (1,))
    workloads.wait_for_cleaner(broker.log_dirs[0], cleaned, 0)


def test_the_default_of_a_broker_counts_where_a_topic_has_no_policy(tmp_path: Path) -> None:
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
    (log_dir / "cleaner-offset-checkpoint").unlink()  # it names the partition: a proof by itself
    ((reason, why),) = evidence(log_dir / "plain-0", static)
    assert (reason, "the broker's own file" in why) == ("compaction", True)
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
    # What a file says does not count beside that.
    for file in ({}, {POLICY: "delete"}):
        assert believed(log_dir, file, *dynamic) == dynamic
    (log_dir / "cleaner-offset-checkpoint").unlink()
    ((reason, why),) = evidence(log_dir / "later-0")
    assert (reason, "the metadata log" in why) == ("compaction", True)
    assert evidence(log_dir / "own-0") == set()
