"""The topics of `healthy.Workload`, each with the job that writes to it."""

from __future__ import annotations

from dataclasses import replace

from broker import healthy_jobs as jobs
from broker.healthy import Job, Subject
from broker.install import major, minor
from broker.kafka import WITH_SHARE_GROUPS
from broker.topics import Topic

MANY = 300
"""Number of partitions of the topic `many`."""
MOVING = "moving"
"""The topic whose partition moves to the other log dir."""


def subjects(version: str) -> list[Subject]:
    """Return the topics that a release can have."""
    chosen = [one for one in _SUBJECTS if one.since <= minor(version)]
    return [_allow_future(one) if major(version) >= 4 else one for one in chosen]


def _allow_future(subject: Subject) -> Subject:
    """Let a topic take any timestamp: since Kafka 4 an hour ahead is too much by default."""
    config = {**subject.topic.config, "message.timestamp.after.max.ms": str(2**63 - 1)}
    return replace(subject, topic=replace(subject.topic, config=config))


def _topic(name: str, shows: str, job: Job, *, lively: bool = False, **config: str) -> Subject:
    settings = {key.replace("_", "."): value for key, value in config.items()}
    return Subject(Topic(name, shows, config=settings), job, lively=lively)


def _compacted(name: str, shows: str, job: Job, *, lively: bool = False, **config: str) -> Subject:
    often = {
        "cleanup_policy": "compact",
        "min_cleanable_dirty_ratio": "0.01",
        "segment_bytes": "8192",
        "delete_retention_ms": "400",
        "file_delete_delay_ms": "500",
    }
    return _topic(name, shows, job, lively=lively, **often | config)


_SUBJECTS = (
    _compacted("compact.plain", "no producer ids", jobs.plain_keys, lively=True),
    _compacted("compact.idempotent", "producer ids", jobs.idempotent_keys),
    _compacted("compact.tx", "transactions", jobs.transactions),
    _compacted("compact.tx.slow", "markers and tombstones stay", jobs.transactions,
               delete_retention_ms="86400000"),
    _compacted("compact.tx.fast", "markers and tombstones go at once", jobs.transactions,
               delete_retention_ms="0", segment_bytes="7000"),
    _compacted("compact.tx.short", "transactions of many producers", jobs.short_transactions,
               lively=True,                segment_bytes="7000"),
    _compacted("compact.tx.wide", "few segments", jobs.transactions,
               delete_retention_ms="0", segment_bytes="60000"),
    _compacted("compact.append", "LogAppendTime", jobs.plain_keys,
               message_timestamp_type="LogAppendTime"),
    _compacted("compact.dense", "an index entry for each append", jobs.idempotent_keys,
               index_interval_bytes="1"),
    _topic("tx", "transactions, kept", jobs.transactions, segment_bytes="9000"),
    _topic("append", "LogAppendTime", jobs.records,
           message_timestamp_type="LogAppendTime", segment_bytes="20000"),
    _topic("big", "batches of 5 MB", jobs.big_batches,
           max_message_bytes="8000000", segment_bytes="16000000"),
    _topic("big.dense", "batches of 5 MB, an index entry for each", jobs.big_batches,
           max_message_bytes="8000000", index_interval_bytes="1"),
    _topic("dense", "an index entry for each append", jobs.records, lively=True,
           index_interval_bytes="1", segment_bytes="20000"),
    _topic("sparse", "an index entry for each 64 KiB", jobs.records,
           index_interval_bytes="65536", segment_bytes="200000"),
    _topic("rolled", "segments of half a minute", jobs.rolled_by_time, segment_ms="30000"),
    _topic("odd.times", "timestamps years ahead and back", jobs.odd_times, segment_bytes="9000"),
    _topic("shortened", "DeleteRecords", jobs.shortened, lively=True,
           segment_bytes="6000", file_delete_delay_ms="500"),
    _topic("preallocated", "zeros behind the last batch", jobs.records, lively=True,
           preallocate="true", segment_bytes="1048576"),
    _topic("index.large", "indexes of 10 MiB", jobs.records, segment_index_bytes="10485760"),
    Subject(Topic("grouped", "read by groups", partitions=2), jobs.grouped),
    Subject(Topic("shared", "read by a share group"), jobs.shared, since=WITH_SHARE_GROUPS),
    Subject(Topic("many", "many partitions", partitions=MANY), jobs.spread),
    _topic(MOVING, "on its way to the other log dir", jobs.once),
)  # fmt: skip
