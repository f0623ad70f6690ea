"""A topic that was compacted once keeps lawful gaps: a live broker, altered and stopped."""

from __future__ import annotations

from pathlib import Path

import pytest
from broker import workloads
from broker.conftest import runnable
from broker.install import KAFKA_4
from broker.kafka import Broker, format_log_dir
from broker.test_metadata_agrees import alter
from broker.topics import Topic
from broker.workloads import Message, Writer
from verification import batches, verify

from logtool.gaps.run import GapOptions, Gaps, Result

pytestmark = pytest.mark.broker

ROLLED = {"segment.bytes": "2048", "file.delete.delay.ms": "100"}
COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
TOPICS = (
    Topic("once", "was compacted", config={**ROLLED, **COMPACTED}),
    Topic("never", "was not", config=ROLLED),
)
CODES = {"batch/hole", "segment/hole", "segment/gap", "segment/missing"}


def told(path: Path) -> dict[str, set[str]]:
    """Return what `verify` says of missing offsets, by topic."""
    found: dict[str, set[str]] = {"once": set(), "never": set()}
    for finding in verify(path).findings:
        if finding.code in CODES:
            found[finding.topic or ""].add(finding.code)
    return found


def evidence(path: Path) -> set[tuple[str, str]]:
    """Return the reasons for gaps in a partition, and what they rest on."""
    (result,) = Gaps([path], GapOptions())
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
    before = told(log_dir)
    assert before["once"] <= {"segment/gap"}
    assert before["never"] == set()
    ((reason, why),) = evidence(log_dir / "once-0")
    assert reason == "compaction"
    assert why.startswith("the topic was compacted before, see offset ")
    log = sorted((log_dir / "never-0").glob("*.log"))[1]
    table, data = batches(log), log.read_bytes()
    at, size = int(table.position[-2]), int(table.size[-2])
    log.write_bytes(data[:at] + data[at + size :])
    assert "batch/hole" in told(log_dir)["never"]
    assert told(log_dir)["once"] == before["once"]
    ((reason, why),) = evidence(log_dir / "never-0")
    assert reason == "unknown"
    assert "never compact in the whole of the metadata log" in why
