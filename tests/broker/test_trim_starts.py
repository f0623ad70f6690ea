"""Starts a broker on a log dir that `logtool trim` changed, and asks it for what is left."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from broker import command
from broker.conftest import runnable
from broker.consuming import Records, consumed, ends
from broker.install import KAFKA_NEWEST
from broker.kafka import Broker, errors_in, format_log_dir
from deadlines import deadline_in
from verification import fingerprint

from logtool import cli
from logtool.formats import leader_epoch_checkpoint, offset_checkpoint
from logtool.space import trimming

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]

MINUTE = 60_000
SETTINGS = {
    "log.segment.delete.delay.ms": "600000",
    "replica.high.watermark.checkpoint.interval.ms": "200",
    "log.cleaner.enable": "false",
}
POLICIES = {"aged": "delete", "both": "compact,delete", "keyed": "compact", "transacted": "delete",
            "begun": "delete", "doomed": "delete"}  # fmt: skip
TRIMMED = ("aged", "begun", "both", "transacted")
READ = [(topic, 0) for topic in POLICIES if topic != "doomed"]
SEGMENTS = 6
"""Segments that each of the two starts fills in each topic."""

Trim = Callable[..., list[command.Object]]


@pytest.fixture
def trim(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Trim:
    """Return a function that runs trim, as if the undo directory were on another disk."""
    monkeypatch.setattr(trimming, "is_same_disk", lambda place, log_dir: False)

    def run(*words: object, status: int) -> list[command.Object]:
        capsys.readouterr()
        assert cli.run(["trim", "-f", "ndjson", *map(str, words)]) == status
        return list(map(json.loads, capsys.readouterr().out.splitlines()))

    return run


@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_a_broker_begins_where_trim_says_and_serves_the_rest(
    tmp_path: Path, trim: Trim, end: str
) -> None:
    from confluent_kafka import Consumer

    version, home = runnable(KAFKA_NEWEST), tmp_path / "data"
    format_log_dir(version, [home])
    now = time.time_ns() // 1_000_000
    with Broker(version, [home], SETTINGS) as broker:
        broker.start()
        _create(broker)
        _fill(broker, now - 50 * MINUTE)
        _delete(broker, "begun", 1)
        broker.stop()
        broker.start()  # in a later leader epoch
        _fill(broker, now - 20 * MINUTE)
        _drop(broker, home, "doomed")
        before = consumed(broker, READ, "read_uncommitted")
        committed = consumed(broker, [("transacted", 0)], "read_committed")
        limits = _ends(broker, Consumer)
        _wait_for_watermarks(broker, home, limits)
        broker.stop() if end == "stopped" else broker.kill()

    untouched, found = fingerprint(home), _findings(home)
    planned = trim("--free", "1T", home, status=1)
    starts = {one["topic"]: one for one in planned if one.get("kind") == "segments"}
    assert sorted(starts) == sorted(TRIMMED)
    assert {Path(one["path"]).name.rpartition("-")[2] for one in planned
            if one.get("kind") == "leftovers"} == {"delete"}  # fmt: skip
    assert all(0 < one["new_log_start_offset"] < limits[name][1] for name, one in starts.items())
    assert starts["begun"]["first_offset"] == 1
    assert fingerprint(home) == untouched
    accept = [word for name in TRIMMED for word in ("--accept-loss", f"{name}-0")]
    made = trim("--free", "1T", "--apply", *accept, home, status=1)
    (undo_dir,) = (Path(one["path"]) for one in made if one["type"] == "undo")
    assert _findings(home) <= found
    _assert_begins_at(home, {name: one["new_log_start_offset"] for name, one in starts.items()})

    assert cli.run(["undo", "--apply", str(undo_dir)]) == 0
    assert fingerprint(home) == untouched
    assert cli.run(["undo", "--redo", "--apply", str(undo_dir)]) == 0

    with Broker(version, [home], SETTINGS) as broker:
        broker.start()
        for name, (low, high) in _ends(broker, Consumer).items():
            begin = starts[name]["new_log_start_offset"] if name in starts else limits[name][0]
            assert (name, low, high) == (name, begin, limits[name][1])
        assert consumed(broker, READ, "read_uncommitted") == _behind(before, starts)
        left = consumed(broker, [("transacted", 0)], "read_committed")
        assert left == _behind(committed, starts)
        _fill(broker, now - 10 * MINUTE)
        assert errors_in(broker.log) == []
        assert [line for line in broker.log.splitlines()
                if "orrupt" in line or "runcat" in line] == []  # fmt: skip
        broker.stop()
    assert not {code for code, severity in _findings(home) if severity != "info"}


def _behind(records: Records, starts: dict[str, command.Object]) -> Records:
    """Return the records from the new log starts on."""
    begin = {name: one["new_log_start_offset"] for name, one in starts.items()}
    return {
        (topic, number): [one for one in found if one[0] >= begin.get(topic, 0)]
        for (topic, number), found in records.items()
    }


def _findings(home: Path) -> set[tuple[str, str]]:
    """Return codes and severities, but for the emptied directory that the broker deletes."""
    found = command.of_type(command.objects("verify", home), "finding")
    return {(one["code"], one["severity"]) for one in found if "-delete" not in one["path"]}


def _assert_begins_at(home: Path, starts: dict[str, int]) -> None:
    """Check that no file below a new log start is left, and the rows that a broker keeps."""
    data = (home / "log-start-offset-checkpoint").read_bytes()
    rows = offset_checkpoint.parse(data).offsets
    data = (home / "recovery-point-offset-checkpoint").read_bytes()
    points = offset_checkpoint.parse(data).offsets
    for name, start in starts.items():
        assert rows[name, 0] == start
        assert points[name, 0] >= start
        folder = home / f"{name}-0"
        bases = [int(path.name[:20]) for path in folder.iterdir() if path.name[:20].isdigit()]
        assert min(bases) == start
        data = (folder / "leader-epoch-checkpoint").read_bytes()
        assert leader_epoch_checkpoint.parse(data).epochs[0][1] == start


def _create(broker: Broker) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    new = [
        NewTopic(name, 1, 1, config={
            "internal.segment.bytes": "1000", "retention.ms": str(600 * MINUTE),
            "cleanup.policy": policy,
        })
        for name, policy in POLICIES.items()
    ]  # fmt: skip
    for future in client.create_topics(new).values():
        future.result(60)


def _fill(broker: Broker, first_ms: int) -> None:
    """Produce some segments of one batch to each topic; every third transaction is aborted."""
    from confluent_kafka import Producer

    settings: dict[str, Any] = {"bootstrap.servers": broker.bootstrap, "batch.num.messages": 1}
    plain = Producer({**settings, "enable.idempotence": True})
    bound = Producer({**settings, "transactional.id": "one"})
    bound.init_transactions(60)
    missing = {topic for topic in POLICIES if topic not in bound.list_topics(timeout=60).topics}
    for number in range(SEGMENTS):
        stamp = first_ms + number * MINUTE
        for topic in POLICIES.keys() - missing - {"transacted"}:
            for key in (b"a", b"b"):
                plain.produce(topic, b"v" * 700, key, partition=0, timestamp=stamp)
        assert plain.flush(60) == 0
        bound.begin_transaction()
        bound.produce("transacted", b"v" * 700, b"k", partition=0, timestamp=stamp)
        assert bound.flush(60) == 0
        bound.abort_transaction(60) if number % 3 == 0 else bound.commit_transaction(60)


def _delete(broker: Broker, topic: str, offset: int) -> None:
    """Delete the records below an offset, and wait until the partition begins there."""
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in client.delete_records([TopicPartition(topic, 0, offset)]).values():
        future.result(60)


def _drop(broker: Broker, home: Path, topic: str) -> None:
    """Delete a topic, and wait for the directory that waits for its deletion."""
    from confluent_kafka.admin import AdminClient

    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    client.delete_topics([topic])[topic].result(60)
    _wait(broker, lambda: any(home.glob(f"{topic}-0.*-delete")))


def _ends(broker: Broker, consumer: Any) -> dict[str, tuple[int, int]]:
    client = consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused"})
    found = {topic: ends(client, topic, number) for topic, number in READ}
    client.close()
    return found


def _wait_for_watermarks(broker: Broker, home: Path, limits: dict[str, tuple[int, int]]) -> None:
    """Wait until the checkpoint of the high watermarks has the ends of the logs."""

    def written() -> bool:
        data = (home / "replication-offset-checkpoint").read_bytes()
        rows = offset_checkpoint.parse(data).offsets
        return all(rows.get((topic, 0)) == end for topic, (_, end) in limits.items())

    _wait(broker, written)


def _wait(broker: Broker, is_there: Callable[[], bool]) -> None:
    deadline = deadline_in(120)
    while not is_there():
        assert time.monotonic() < deadline, broker.log_tail()
        time.sleep(0.05)
