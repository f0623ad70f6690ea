"""A broker serves a log that was filled, with ghosts or from a copy, as it served it before."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from broker.consuming import ends
from broker.kafka import Broker
from verification import batches

from logtool.gaps import fill, ghosts
from logtool.gaps.run import GapOptions, Gaps, Result
from logtool.node.options import StartOptions
from logtool.startup.recover import ApplyConsent, Recover

pytestmark = pytest.mark.broker

TOPICS = ("compacted.keys", "compacted-tx")
KEPT = ("leader-epoch-checkpoint", "partition.metadata")
Answer = tuple[int, bytes | None, bytes | None, tuple[int, int], Any]


def filled(folder: Path, work: Path) -> list[int]:
    """Replace all segments by the filled log; return the last offset of each ghost."""
    (result,) = Gaps([folder], GapOptions())
    assert isinstance(result, Result)
    filling = ghosts.of(result.ledger, result.subject.facts)
    log = work / folder.name / f"{0:020d}.log"
    log.parent.mkdir()
    fill.write(result, filling, log)
    for path in folder.iterdir():
        if path.name not in KEPT:
            path.unlink()
    shutil.copy(log, folder)
    return [int(offset) for offset in filling.last_offset]


class Reader:
    """A consumer of one topic after another."""

    def __init__(self, bootstrap: str, isolation: str) -> None:
        # Imported here: without confluent-kafka these tests are skipped.
        from confluent_kafka import Consumer, TopicPartition

        self._place = TopicPartition
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap, "group.id": "unused", "log_level": 0,
                "isolation.level": isolation, "enable.auto.commit": False,
                "auto.offset.reset": "error", "enable.partition.eof": True,
                "fetch.wait.max.ms": 10,
            }
        )  # fmt: skip

    def ends(self, topic: str) -> tuple[int, int]:
        """Return the first offset and the end."""
        return ends(self._consumer, topic, 0)

    def read(self, topic: str, offset: int) -> Iterator[Answer]:
        """Yield all records from an offset on."""
        from confluent_kafka import KafkaError

        self._consumer.assign([self._place(topic, 0, offset)])
        while True:
            message = self._consumer.poll(30)
            assert message is not None, f"{topic}: no end within 30 s"
            error = message.error()
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                return
            yield (
                message.offset(), message.key(), message.value(), message.timestamp(),
                message.headers(),
            )  # fmt: skip

    def close(self) -> None:
        self._consumer.close()


def served(version: str, log_dir: Path, asked: dict[str, list[int]]) -> dict[str, Any]:
    """Start a broker; return all records and ends, and the first record from each offset on."""
    with Broker(version, [log_dir], {"log.cleaner.enable": "false"}) as broker:
        broker.start()
        found: dict[str, Any] = {}
        for isolation in ("read_uncommitted", "read_committed"):
            reader = Reader(broker.bootstrap, isolation)
            for topic in asked:
                found[f"{topic} ends"] = reader.ends(topic)
                found[f"{topic} {isolation}"] = list(reader.read(topic, 0))
                found[f"{topic} {isolation} from"] = {
                    offset: next(reader.read(topic, offset), None) for offset in asked[topic]
                }
            reader.close()
        broker.stop()
        return found


def test_consumers_read_from_a_filled_log_what_they_read_before(
    kafka_version: str, copy_of: Callable[[str], Path], tmp_path: Path
) -> None:
    ours = copy_of(f"{kafka_version}/clean")
    theirs = tmp_path / "theirs"
    shutil.copytree(ours, theirs)
    # Without the marker the broker recovers all logs and rebuilds the indexes.
    (ours / ".kafka_cleanshutdown").unlink()
    work = tmp_path / "work"
    work.mkdir()
    asked = {}
    for topic in TOPICS:
        behind = filled(ours / f"{topic}-0", work)
        assert len(behind) >= 8
        asked[topic] = [*behind[::2], 0, 1]
    before = served(kafka_version, theirs, asked)
    after = served(kafka_version, ours, asked)
    for what, expected in before.items():
        assert after[what] == expected, what
    for topic in TOPICS:
        committed = before[f"{topic} read_committed"]
        assert len(committed) > 50
        offsets = [record[0] for record in committed]
        assert offsets == sorted(set(offsets))
        assert set(offsets).isdisjoint(asked[topic][:-2])


def test_consumers_read_what_a_hole_held_that_was_filled_from_another_copy(
    kafka_version: str, copy_of: Callable[[str], Path], tmp_path: Path
) -> None:
    ours = copy_of(f"{kafka_version}/clean")
    theirs = tmp_path / "theirs"
    shutil.copytree(ours, theirs)
    (ours / ".kafka_cleanshutdown").unlink()
    folder = ours / "tx.mixed-0"
    log = max(folder.glob("*.log"), key=lambda path: path.stat().st_size)
    table, data = batches(log), log.read_bytes()
    marker = next(row for row in range(3, len(table)) if table.is_control[row])
    gone = {marker, next(row for row in range(marker + 2, len(table)) if not table.is_control[row])}
    spans = [(int(table.position[row]), int(table.size[row])) for row in range(len(table))]
    stays = [data[at : at + size] for row, (at, size) in enumerate(spans) if row not in gone]
    log.write_bytes(b"".join(stays))
    job = Recover(
        [folder],
        StartOptions(fill_from=(theirs,), cut_precisely=True),
        ApplyConsent(apply=True, undo_dir=tmp_path / "undo"),
    )
    actions = [one for item in job for one in getattr(item, "actions", ())]
    assert [one.action for one in actions if one.action in ("fill", "unfilled")] == ["fill"] * 2
    assert log.read_bytes() == data[: len(log.read_bytes())]
    asked = {"tx.mixed": [0]}
    assert served(kafka_version, ours, asked) == served(kafka_version, theirs, asked)


def test_consumers_read_a_beginning_that_was_filled_from_another_copy(
    kafka_version: str, copy_of: Callable[[str], Path], tmp_path: Path
) -> None:
    ours = copy_of(f"{kafka_version}/clean")
    theirs = tmp_path / "theirs"
    shutil.copytree(ours, theirs)
    topics = ("index.dense", "small-segments")
    for topic in topics:
        folder = ours / f"{topic}-0"
        first, second = sorted(folder.glob("*.log"))[:2]
        before = {path.name: path.read_bytes() for path in folder.glob("*.log")}
        for path in folder.glob(f"{first.stem}.*"):
            path.unlink()
        job = Recover(
            [folder],
            StartOptions(fill_from=(theirs,), cut_precisely=True),
            ApplyConsent(apply=True, undo_dir=tmp_path / topic),
        )
        actions = [one for item in job for one in getattr(item, "actions", ())]
        fills = [one.offsets for one in actions if one.action in ("fill", "unfilled")]
        assert fills == [(0, int(second.stem) - 1)]
        assert {path.name: path.read_bytes() for path in folder.glob("*.log")} == before
    # The stop in order holds: the broker opens the logs and recovers none of them.
    assert (ours / ".kafka_cleanshutdown").exists()
    asked = {topic: [0, 1] for topic in topics}
    assert served(kafka_version, ours, asked) == served(kafka_version, theirs, asked)
