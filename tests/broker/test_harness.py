"""The harness starts, stops and kills real brokers, and leaves none behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from broker.dump import dump, dumpable
from broker.install import HarnessError
from broker.kafka import Broker
from broker.topics import Topic
from broker.zookeeper import ZooKeeper

pytestmark = pytest.mark.broker

TOPIC = Topic("some.topic-name", "what the tests write to", config={"segment.bytes": "3000"})


def write_some(broker: Broker, count: int = 60, *, create: bool = True) -> None:
    # Imported here: without confluent-kafka these tests are skipped.
    from broker.workloads import EPOCH_MS, Writer, create_topics, messages

    if create:
        create_topics(broker.bootstrap, broker.version, [TOPIC])
    content = messages("test", count, EPOCH_MS)
    Writer(broker.bootstrap).batches(TOPIC.name, content, (4, 7))


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_an_orderly_stop_leaves_a_clean_marker_and_no_lock(broker: Broker, log_dir: Path) -> None:
    broker.start()
    pid = broker.pid
    assert pid is not None
    write_some(broker)
    assert (log_dir / ".lock").exists()
    broker.stop()
    assert (log_dir / ".kafka_cleanshutdown").exists()
    assert not (log_dir / ".lock").exists()
    assert broker.pid is None
    assert not is_alive(pid)


def test_a_kill_leaves_the_lock_and_no_clean_marker(broker: Broker, log_dir: Path) -> None:
    broker.start()
    pid = broker.pid
    assert pid is not None
    write_some(broker)
    broker.kill()
    assert (log_dir / ".lock").exists()
    assert not (log_dir / ".kafka_cleanshutdown").exists()
    assert not is_alive(pid)


def test_a_killed_broker_can_be_started_again_and_keeps_its_records(
    broker: Broker, log_dir: Path
) -> None:
    broker.start()
    write_some(broker)
    broker.kill()
    broker.start()
    write_some(broker, 5, create=False)
    broker.stop()
    name = f"{TOPIC.name}-0"
    logs = [path for path in dumpable(log_dir) if path.startswith(name) and path.endswith(".log")]
    assert len(logs) > 1
    output = dump(broker.version, log_dir, logs, "--deep-iteration")
    records = sum(text.count(b"\n| offset: ") for text in output.stdout.values())
    assert records == 65


def test_a_broker_with_zookeeper_is_killed_and_stopped_like_any_other(
    zookeeper_version: str, zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    with Broker(zookeeper_version, [tmp_path / "log-dir"], zookeeper=zookeeper) as broker:
        broker.start()
        write_some(broker)
        broker.kill()
        assert not (tmp_path / "log-dir" / ".kafka_cleanshutdown").exists()
        broker.start()
        write_some(broker, 5, create=False)
        broker.stop()
    assert (tmp_path / "log-dir" / ".kafka_cleanshutdown").exists()
    logs = [path for path in dumpable(tmp_path / "log-dir") if path.endswith(".log")]
    output = dump(zookeeper_version, tmp_path / "log-dir", logs, "--deep-iteration")
    # Each release has its own way to print a record, but all give the size of its key.
    assert sum(text.lower().count(b" keysize: ") for text in output.stdout.values()) == 65
    assert not output.failed


def test_leaving_the_context_ends_the_process(kafka_version: str, log_dir: Path) -> None:
    with pytest.raises(RuntimeError), Broker(kafka_version, [log_dir]) as broker:
        broker.start()
        pid = broker.pid
        raise RuntimeError("a test went wrong")
    assert pid is not None
    assert not is_alive(pid)


def test_a_broker_that_cannot_start_says_why(broker: Broker, log_dir: Path) -> None:
    (log_dir / "lost+found").mkdir()
    with pytest.raises(HarnessError, match=r"lost\+found"):
        broker.start()
    assert broker.pid is None


def test_the_dump_tool_gives_the_output_of_each_file(broker: Broker, log_dir: Path) -> None:
    broker.start()
    write_some(broker)
    broker.stop()
    files = dumpable(log_dir)
    output = dump(broker.version, log_dir, files)
    assert sorted(output.stdout) == files
    assert all(
        text.startswith(f"Dumping {name}\n".encode()) for name, text in output.stdout.items()
    )
    assert not output.failed


def test_the_dump_tool_goes_on_after_a_file_that_makes_it_fail(
    broker: Broker, log_dir: Path
) -> None:
    broker.start()
    write_some(broker)
    broker.stop()
    logs = [name for name in dumpable(log_dir) if name.startswith(TOPIC.name)]
    logs = [name for name in logs if name.endswith(".log")]
    first = log_dir / logs[0]
    # A batch that claims to be 3 bytes long ends the tool's iteration with an exception.
    first.write_bytes(bytes(8) + (3).to_bytes(4, "big") + bytes(100))
    output = dump(broker.version, log_dir, logs)
    assert output.failed == logs[:1]
    assert sorted(output.stdout) == logs
    assert b"Exception" in output.stderr[""]
