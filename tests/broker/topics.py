"""The topics of the fixtures, with their settings and purposes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from broker.install import major

_MIB = 1 << 20


@dataclass(frozen=True)
class Topic:
    """A topic to create; ``shows`` goes into the manifest."""

    name: str
    shows: str
    partitions: int = 1
    replicas: tuple[int, ...] = ()
    """The nodes that hold the topic, leader first; by default the broker chooses one."""
    config: Mapping[str, str] = field(default_factory=dict)

    def config_for(self, version: str) -> dict[str, str]:
        """Return the settings as this release spells them.

        Since KIP-1030 ``segment.bytes`` must be at least 1 MiB; the internal twin of the setting,
        which Kafka's own tests use, still takes less.
        """
        config = dict(self.config)
        small = int(config.get("segment.bytes", _MIB)) < _MIB
        if small and major(version) >= 4:
            config["internal.segment.bytes"] = config.pop("segment.bytes")
        return config


CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

TOPICS = (
    Topic("codec-none", "uncompressed batches in three partitions", partitions=3),
    *(Topic(f"codec-{codec}", f"batches compressed with {codec}") for codec in CODECS[1:]),
    Topic("mixed_codecs", "every codec in turn, two segments", config={"segment.bytes": "40000"}),
    Topic("headers.and-nulls", "null and empty keys, values, header values; no records but edges"),
    Topic("idempotent_writes", "three idempotent producers; producer ids and sequences"),
    Topic(
        "tx.mixed",
        "committed, aborted and open transactions over many segments, .txnindex files",
        config={"segment.bytes": "12000"},
    ),
    Topic(
        "tx-interleaved_v2",
        "overlapping transactions of several producers next to plain records, two partitions",
        partitions=2,
    ),
    Topic(
        "log_append_time",
        "timestamps set by the broker",
        config={"message.timestamp.type": "LogAppendTime"},
    ),
    Topic("odd.timestamps", "timestamps out of order, equal, zero and far in the past"),
    Topic("small-segments", "more than 20 segments", config={"segment.bytes": "4096"}),
    Topic(
        "index.dense",
        "an index entry for every append but the first (index.interval.bytes 0)",
        config={"index.interval.bytes": "0", "segment.bytes": "30000"},
    ),
    Topic("big-batches", "batches of 64 KiB to 512 KiB, with and without compression"),
    Topic(
        "preallocated.log",
        "log files preallocated to a full segment (zeros after the last batch unless stopped)",
        config={"preallocate": "true", "segment.bytes": str(_MIB)},
    ),
    Topic(
        "compacted.keys",
        "cleaned at least twice: gaps, empty batches, tombstones with a delete horizon",
        config={
            "cleanup.policy": "compact",
            "segment.bytes": "8192",
            "min.cleanable.dirty.ratio": "0.01",
            "file.delete.delay.ms": "500",
        },
    ),
    Topic(
        "compacted-tx",
        "compacted with transactions and a short delete.retention.ms: aborted records gone",
        config={
            "cleanup.policy": "compact",
            "segment.bytes": "8192",
            "min.cleanable.dirty.ratio": "0.01",
            "delete.retention.ms": "500",
            "file.delete.delay.ms": "500",
        },
    ),
    Topic("deleted-records.mid", "DeleteRecords moved the log start into the first segment"),
    Topic(
        "deleted_segments",
        "DeleteRecords removed whole segments; their files are gone",
        config={"segment.bytes": "6000", "file.delete.delay.ms": "100"},
    ),
    Topic(
        "deleted-pending",
        "DeleteRecords removed whole segments; their files still wait, renamed to .deleted",
        config={"segment.bytes": "6000", "file.delete.delay.ms": "3600000"},
    ),
    Topic("groups.input", "read by consumer groups", partitions=2),
    Topic("empty-topic", "created and never written", partitions=2),
    Topic(
        "doomed-topic.v1_x", "deleted shortly before the stop: a -delete directory", partitions=2
    ),
)
