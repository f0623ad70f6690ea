"""The situations in which a log dir is copied; each becomes one archive."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from broker import healthy, healthy_topics, workloads
from broker.kafka import BASE_CONFIG, Broker, format_log_dir
from broker.topics import TOPICS, Topic
from broker.traffic import Traffic

SMALL: Mapping[str, str] = {
    # Preallocated indexes of active segments: visible, yet small (the default is 10 MiB).
    "log.index.size.max.bytes": "8192",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    # The fixed timestamps are years old: retention must not delete the fixtures.
    "log.retention.ms": "-1",
    "log.retention.check.interval.ms": "500",
    "log.cleaner.backoff.ms": "200",
    "log.initial.task.delay.ms": "300",
    "log.flush.offset.checkpoint.interval.ms": "1000",
    "log.flush.start.offset.checkpoint.interval.ms": "1000",
    # Directories of deleted topics stay until the stop.
    "log.segment.delete.delay.ms": "3600000",
    # Makes the controller write snapshots of the metadata log within these few seconds.
    "metadata.log.max.snapshot.interval.ms": "4000",
}
"""Broker settings of all scenarios but ``default-settings``."""

DEFAULT_TOPIC = Topic("plain", "default settings throughout; indexes preallocated to 10 MiB")


@dataclass(frozen=True)
class Scenario:
    """A finished log dir and its entry in the manifest."""

    name: str
    version: str
    root: Path
    about: str
    notes: tuple[str, ...]
    topics: tuple[Topic, ...] = ()
    broker_config: Mapping[str, str] = field(default_factory=dict)
    with_records: bool = True
    """False omits the dump of all records; another scenario has the same records."""

    def entry(self) -> dict[str, Any]:
        """Return the part of the manifest entry that does not depend on a dump."""
        return {
            "kafka_version": self.version,
            "name": self.name,
            "about": self.about,
            "notes": list(self.notes),
            "archive": f"{self.version}/{self.name}.tar.xz",
            "expected": f"{self.version}/{self.name}.expected.tar.xz",
            "with_records": self.with_records,
            "broker_config": dict(sorted(self.broker_config.items())),
            "topics": {
                topic.name: {
                    "shows": topic.shows,
                    "partitions": topic.partitions,
                    "config": topic.config_for(self.version),
                }
                for topic in self.topics
            },
        }


def fresh(version: str, work: Path) -> Iterator[Scenario]:
    """Make a formatted log dir, and one whose broker was started and stopped once."""
    formatted = work / "formatted"
    format_log_dir(version, [formatted], extra_config=SMALL)
    notes = (
        "no broker has ever run here: no .log, no offset checkpoints, no .lock",
        "Kafka 4 leaves a first snapshot (offset 0, epoch 0) in __cluster_metadata-0",
    )
    yield Scenario("formatted", version, formatted, "Formatted, never started.", notes)
    empty = work / "empty"
    format_log_dir(version, [empty], extra_config=SMALL)
    with Broker(version, [empty], SMALL) as broker:
        broker.start()
        broker.stop()
    about = "Started and stopped once."
    seen = ("clean marker present", "no topic; all checkpoint files without a row")
    yield Scenario("empty", version, empty, about, seen, (), {**BASE_CONFIG, **SMALL})


def default_settings(version: str, work: Path) -> Iterator[Scenario]:
    """Make one topic under default settings, with a killed broker."""
    root = work / "default-settings"
    format_log_dir(version, [root])
    with Broker(version, [root]) as broker:
        broker.start()
        workloads.create_topics(broker.bootstrap, version, [DEFAULT_TOPIC])
        content = workloads.messages("plain", 400, workloads.EPOCH_MS)
        workloads.Writer(broker.bootstrap).batches("plain", content, (10, 3, 25))
        broker.kill()
    notes = (
        "plain-0 and __cluster_metadata-0: .index and .timeindex preallocated to 10 MiB",
        "no clean marker; .lock present",
        "checkpoint files may lack plain-0: the first periodic write was not due yet",
    )
    about = "One topic under default settings; the broker was killed after the last write."
    yield Scenario("default-settings", version, root, about, notes, (DEFAULT_TOPIC,), BASE_CONFIG)


def clean(version: str, work: Path) -> Iterator[Scenario]:
    """Write all topics, with an orderly stop in the middle and at the end."""
    root = work / "clean"
    format_log_dir(version, [root], extra_config=SMALL)
    with Broker(version, [root], SMALL) as broker:
        writers = _write_all(broker, root)
        workloads.delete_topic(broker.bootstrap, root)
        broker.stop()
        del writers
    notes = (
        "clean marker present, no .lock; all indexes trimmed",
        "doomed-topic.v1_x: two -delete directories, their indexes still preallocated",
        *_COMMON_NOTES,
    )
    about = "All workloads, one orderly restart half-way, an orderly stop at the end."
    yield Scenario("clean", version, root, about, notes, TOPICS, {**BASE_CONFIG, **SMALL})


def compaction(version: str, work: Path) -> Iterator[Scenario]:
    """Write the compacted topics alone, clean them and stop the broker."""
    root = work / "compaction"
    topics = tuple(topic for topic in TOPICS if topic.name.startswith("compacted"))
    format_log_dir(version, [root], extra_config=SMALL)
    with Broker(version, [root], SMALL) as broker:
        broker.start()
        workloads.create_topics(broker.bootstrap, version, topics)
        for generation in (1, 2):
            workloads.write_compacted(broker.bootstrap, root, generation)
        workloads.write_compacted_transactions(broker.bootstrap, root)
        broker.stop()
    notes = (
        "compacted.keys-0: gaps, empty batches, delete horizons",
        "compacted-tx-0: aborted records removed, markers with delete horizons",
        "the cleaner appends many batches at once: see the indexes",
    )
    about = "The compacted topics of `clean` alone; an orderly stop."
    yield Scenario("compaction", version, root, about, notes, topics, {**BASE_CONFIG, **SMALL})


CLEANED = ("compact.plain", "compact.tx", "compact.tx.short")


def cleaned(version: str, work: Path) -> Iterator[Scenario]:
    """Make compacted topics that are cleaned after an orderly stop, so the stop is inside a gap."""
    root = work / "cleaned"
    config = {**SMALL, "log.cleaner.backoff.ms": "100"}
    format_log_dir(version, [root], extra_config=config)
    subjects = [one for one in healthy_topics.subjects(version) if one.topic.name in CLEANED]
    with Broker(version, [root], config) as broker:
        load = healthy.Workload(broker, "cleaned", subjects)
        broker.start()
        load.create()
        for stop in range(3):
            if stop:
                broker.start()
            load.round()
            load.round()
            load.forget_clients()
            broker.stop()
    notes = (
        "compact.plain-0: no segment has the offsets around a producer snapshot of an earlier stop",
        "compact.tx-0, compact.tx.short-0: snapshots know of batches and markers that are gone",
    )
    about = "Compacted topics that were cleaned after each of two orderly restarts."
    topics = tuple(one.topic for one in subjects)
    yield Scenario("cleaned", version, root, about, notes, topics, {**BASE_CONFIG, **config})


def killed(version: str, work: Path) -> Iterator[Scenario]:
    """Copy a log dir while its broker is busy, and again after SIGKILL."""
    root, copy = work / "killed", work / "running"
    format_log_dir(version, [root], extra_config=SMALL)
    with Broker(version, [root], SMALL) as broker:
        writers = _write_all(broker, root, edges=False)
        traffic = Traffic(broker.bootstrap)
        traffic.start()
        time.sleep(2.0)
        _copy_living(root, copy)
        workloads.delete_topic(broker.bootstrap, root)
        time.sleep(1.5)
        broker.kill()
        traffic.stop()
        del writers
    padded = (
        ".lock present, no clean marker",
        "indexes of active segments preallocated to 8192 bytes (.timeindex 8184)",
        "preallocated.log-0: the active .log has its full size, zeros after the last batch",
        "tx.mixed-0: a transaction of the background writer may be open besides the two",
        "headers.and-nulls, odd.timestamps, log_append_time, big-batches: created, never written",
        *_COMMON_NOTES,
    )
    about = "A copy taken, file after file, while the broker ran and clients wrote."
    shared = (TOPICS, {**BASE_CONFIG, **SMALL})
    note = "files are of slightly different moments; the copy is not a consistent snapshot"
    yield Scenario("running", version, copy, about, (note, *padded), *shared, with_records=False)
    about = "SIGKILL while clients wrote, 1.5 s after the copy of `running`, on the same data."
    notes = ("doomed-topic.v1_x: two -delete directories", *padded)
    yield Scenario("killed", version, root, about, notes, *shared)


_COMMON_NOTES = (
    "tx.mixed-0, tx-interleaved_v2-0 and -1: transactions fixture-open-0 and -1 left open",
    "compacted.keys-0: gaps, empty batches, delete horizons",
    "compacted-tx-0: aborted records removed, markers with delete horizons",
    "deleted-pending-0: whole segments renamed to .deleted; log start inside a segment",
    "deleted-records.mid-0: log start 77 inside the first segment (log-start-offset-checkpoint)",
    "deleted_segments-0: first segment base above 0, no row in log-start-offset-checkpoint",
    "leader-epoch-checkpoint files have two rows where records came after the restart",
    "__cluster_metadata-0: snapshots of the controller (.checkpoint)",
)


def _write_all(broker: Broker, root: Path, *, edges: bool = True) -> list[workloads.Writer]:
    broker.start()
    workloads.create_topics(broker.bootstrap, broker.version)
    workloads.write_first_half(broker.bootstrap, root, edges=edges)
    broker.stop()
    broker.start()
    return workloads.write_second_half(broker.bootstrap, broker.version, root)


def _copy_living(root: Path, copy: Path) -> None:
    # Segments roll and the cleaner renames files during the copy: a listed file may be gone.
    with contextlib.suppress(shutil.Error):
        shutil.copytree(root, copy)
