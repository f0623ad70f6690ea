"""A broker with Kafka's own remote storage for tests: its log dir, its objects, and its answers.

``python tests/broker/tiered.py`` writes tests/data/tiered again (Java 17, Maven, confluent-kafka;
about a minute). Times and ids differ from run to run.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from broker import consuming
from broker.install import KAFKA_3, KAFKA_4, major, tiered_storage
from broker.kafka import Broker, format_log_dir, run_tool
from broker.rounds import FOREVER, HOUR, fill
from deadlines import deadline_in

from logtool.log import opening
from logtool.remote.loading import load

DATA = Path(__file__).resolve().parents[1] / "data" / "tiered"
SETTINGS: Mapping[str, str] = {
    "log.index.size.max.bytes": "8192",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "log.retention.check.interval.ms": "300",
    "log.initial.task.delay.ms": "300",
    "log.segment.delete.delay.ms": "100",
    "log.flush.start.offset.checkpoint.interval.ms": "300",
    "log.flush.offset.checkpoint.interval.ms": "300",
    "replica.high.watermark.checkpoint.interval.ms": "200",
    "remote.log.storage.system.enable": "true",
    "remote.log.storage.manager.class.name": (
        "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"
    ),
    "remote.log.metadata.manager.listener.name": "PLAINTEXT",
    "remote.log.manager.task.interval.ms": "300",
    "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "3",
    "rsm.config.delete.on.close": "false",
}
_REMOTE = {
    "remote.storage.enable": "true", "retention.ms": "-1", "message.timestamp.after.max.ms": FOREVER
}  # fmt: skip
TOPICS: Mapping[str, tuple[Mapping[str, str], int]] = {
    # The settings, and the number of partitions. A segment holds one batch of a record.
    "aged": ({**_REMOTE, "local.retention.bytes": "1"}, 2),
    "kept": (_REMOTE, 1),
    "sized": ({**_REMOTE, "retention.bytes": "4000", "local.retention.bytes": "1"}, 1),
    "timed": ({**_REMOTE, "retention.ms": str(HOUR)}, 1),
    "aborted": (_REMOTE, 1),
    "doomed": (_REMOTE, 1),
    "plain": ({"message.timestamp.after.max.ms": FOREVER}, 1),
}
FINISHED = ("copy-finished", "delete-finished")
TIMES = ("earliest", "latest", "earliest-local", "latest-tiered")
"""Words of kafka-get-offsets.sh: log start, log end, first local offset, last remote offset."""


def settings(version: str, remote: Path) -> dict[str, str]:
    """Return the settings of a broker that copies segments into the folder `remote`."""
    jar = str(tiered_storage(version))
    return {
        **SETTINGS, "remote.log.storage.manager.class.path": jar, "rsm.config.dir": str(remote),
    }  # fmt: skip


def objects(remote: Path, topic: str) -> set[tuple[int, int]]:
    """Return partition and first offset of each segment of a topic that is in remote storage."""
    found = set()
    for path in remote.glob(f"*/{topic}-*/*.log"):
        folder = path.parent.name.removeprefix(f"{topic}-")
        found.add((int(folder.partition("-")[0]), int(path.name.partition("-")[0])))
    return found


def local(home: Path, partition: str) -> list[int]:
    """Return the base offsets of the local segments of a partition."""
    return sorted(int(path.stem) for path in (home / partition).glob("*.log"))


def wait(condition: Callable[[], bool], broker: Broker, what: str) -> None:
    """Wait until a condition holds."""
    deadline = deadline_in(300)
    while not condition():
        assert time.monotonic() < deadline, f"{what}:\n{broker.log_tail()}"
        time.sleep(0.05)


def create(broker: Broker) -> None:
    """Create the topics."""
    from confluent_kafka.admin import AdminClient, NewTopic

    name = "internal.segment.bytes" if major(broker.version) >= 4 else "segment.bytes"
    new = [NewTopic(topic, count, 1, config={name: "1000", **config})
           for topic, (config, count) in TOPICS.items()]  # fmt: skip
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in client.create_topics(new).values():
        future.result(60)


def write(broker: Broker, now: int, count: int) -> None:
    """Write `count` segments to each topic, but for the one that is deleted."""
    from confluent_kafka import Producer

    for topic, (_, partitions) in TOPICS.items():
        if topic == "doomed":
            continue
        # The first segments of `timed` are past their retention once they are copied.
        early = 5 * HOUR if topic == "timed" and count > 4 else 0
        stamps = [now - early + at for at in range(count)]
        for partition in range(partitions if topic != "aborted" else 0):
            fill_partition(broker, topic, stamps, partition)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "tiered"})
    producer.init_transactions(30)
    for at in range(count):
        producer.begin_transaction()
        producer.produce("aborted", b"v" * 500, str(at).encode(), partition=0, timestamp=now + at)
        if at % 2:
            producer.commit_transaction(30)
        else:
            producer.flush(30)
            producer.abort_transaction(30)


def fill_partition(broker: Broker, topic: str, stamps: list[int], partition: int) -> None:
    """Write one batch for each time to a partition."""
    if partition == 0:
        fill(broker, topic, stamps)
        return
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0,
                         "batch.num.messages": 1, "max.in.flight": 1})  # fmt: skip
    for at, stamp in enumerate(stamps):
        producer.produce(topic, b"w" * 700, str(at).encode(), partition=partition, timestamp=stamp)
    assert producer.flush(60) == 0


def delete(broker: Broker, topic: str) -> None:
    """Delete a topic."""
    from confluent_kafka.admin import AdminClient

    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    client.delete_topics([topic])[topic].result(60)


def offsets(broker: Broker) -> dict[str, dict[str, int]]:
    """Return the offsets that kafka-get-offsets.sh prints for each of `TIMES`, by partition."""
    found: dict[str, dict[str, int]] = {}
    for word in TIMES:
        printed = run_tool(
            broker.version, "org.apache.kafka.tools.GetOffsetShell",
            "--bootstrap-server", broker.bootstrap, "--time", word,
        )  # fmt: skip
        for line in printed.splitlines():
            topic, partition, offset = line.rsplit(":", 2)
            if topic in TOPICS:
                found.setdefault(f"{topic}-{partition}", {})[word] = int(offset or -1)
    return found


def consumed(broker: Broker) -> dict[str, list[int]]:
    """Return the offsets of the records that a consumer reads from the beginning, by partition."""
    wanted = [(topic, number) for topic, (_, count) in TOPICS.items() if topic != "doomed"
              for number in range(count)]  # fmt: skip
    found = consuming.consumed(broker, wanted, "read_uncommitted")
    return {f"{topic}-{number}": [offset for offset, *_ in records]
            for (topic, number), records in found.items()}  # fmt: skip


def is_copied(remote: Path, count: int) -> bool:
    """Return whether every closed segment is in remote storage, where none is deleted there."""
    closed = {(0, at) for at in range(count - 1)}
    # The end of a transaction takes an offset, too.
    aborted = {(0, 2 * at) for at in range(count - 1)}
    return objects(remote, "kept") >= closed and objects(remote, "aborted") >= aborted


def unfinished(home: Path) -> list[str]:
    """Return the remote segments whose copy or deletion is not finished, by the records."""
    states: dict[str, str] = {}
    for folder in home.glob("__remote_log_metadata-*"):
        for remote in load(opening.open_partition(folder), lambda _: None).partitions.values():
            states |= {one.segment_id: one.state_word for one in remote.segments.values()}
    return [one for one, state in states.items() if state not in FINISHED]


def is_settled(home: Path, remote: Path, first: int, second: int) -> bool:
    """Return whether the broker has copied and deleted all that it will."""
    total = first + second
    closed = set(range(total - 1))
    sized = objects(remote, "sized")
    return (
        objects(remote, "aged") == {(number, at) for number in (0, 1) for at in closed}
        and objects(remote, "kept") == {(0, at) for at in closed}
        and objects(remote, "timed") == {(0, at) for at in closed if at >= first}
        and len(sized) <= 5 and max(sized, default=(0, 0))[1] == total - 2
        and not objects(remote, "doomed")
        and all(local(home, name) == [total - 1] for name in ("aged-0", "aged-1", "sized-0"))
        and not any(home.glob("*-delete"))
    )  # fmt: skip


def run(version: str, work: Path) -> dict[str, Any]:
    """Fill `data` and `remote` below `work`; return what Kafka says of them."""
    home, remote = work / "data", work / "remote"
    remote.mkdir(parents=True)
    first, second = 6, 4
    now = time.time_ns() // 1_000_000
    format_log_dir(version, [home])
    with Broker(version, [home], settings(version, remote)) as broker:
        broker.start()
        create(broker)
        fill(broker, "doomed", [now] * 4)
        wait(lambda: len(objects(remote, "doomed")) == 3, broker, "no copy of doomed")
        write(broker, now, first)
        delete(broker, "doomed")
        wait(lambda: not objects(remote, "doomed"), broker, "doomed is still there")
        wait(lambda: is_copied(remote, first), broker, "not all was copied")
        broker.stop()  # the next start begins a leader epoch
        broker.start()
        write(broker, now, second)
        wait(lambda: is_copied(remote, first + second), broker, "not all was copied")
        wait(lambda: is_settled(home, remote, first, second), broker, "not settled")
        wait(lambda: not unfinished(home), broker, "records are missing")
        answers = {"offsets": offsets(broker), "consumed": consumed(broker)}
        broker.stop()
    return {"kafka_version": version, "settings": dict(SETTINGS), **answers}


def main() -> None:
    """Write an archive for each release, and the manifest."""
    from broker.regenerate import _to_json, write_archive

    entries = []
    for version in sys.argv[1:] or (KAFKA_4, KAFKA_3):
        with tempfile.TemporaryDirectory(prefix="logtool-tiered-") as temporary:
            work = Path(temporary) / "tiered"
            entry = run(version, work)
            root = Path(shutil.move(next((work / "remote").iterdir()), work / "objects")).parent
            shutil.rmtree(work / "remote")
            entry["files"] = {
                path.relative_to(root).as_posix(): [path.stat().st_size, _sha256(path)]
                for path in sorted(root.rglob("*")) if path.is_file()
            }  # fmt: skip
            DATA.mkdir(exist_ok=True)
            write_archive(root, DATA / f"{version}.tar.xz", version, keep_mtimes=True)
            entries.append(entry)
    (DATA / "manifest.json").write_text(_to_json(entries))


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    main()
