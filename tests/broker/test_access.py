"""Files that the user of the broker cannot use: what `plan` predicts, and what happens."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from broker import workloads
from broker.command import objects, of_type
from broker.install import KAFKA_3, KAFKA_4, HarnessError, install
from broker.kafka import Broker, format_log_dir
from broker.log_dirs import OFFLINE
from broker.topics import Topic
from confluent_kafka import Consumer, TopicPartition
from deadlines import deadline_in

pytestmark = [pytest.mark.broker, pytest.mark.timeout(600)]

USER = 65534 if os.geteuid() == 0 else None
"""The user of the brokers; root may read and write everything."""
DIRS = ("one", "two")
"""The log dirs; the first one has the metadata log."""
TOPIC = Topic("orders", "segments in both log dirs", partitions=6, config={"segment.bytes": "4000"})
CONFIG = {"replica.high.watermark.checkpoint.interval.ms": "500"}


def _partition(home: Path, log_dir: str) -> Path:
    return sorted((home / log_dir).glob("orders-*"))[0]


def _sealed(log_dir: str, suffix: str, mode: int) -> Callable[[Path], object]:
    """Return a function that changes the mode of a file of a segment that is not active."""
    return lambda home: sorted(_partition(home, log_dir).glob(f"*{suffix}"))[0].chmod(mode)


def _file(name: str, mode: int, log_dir: str = "two") -> Callable[[Path], object]:
    return lambda home: (home / log_dir / name).chmod(mode)


def _made(name: str) -> Callable[[Path], object]:
    """Return a function that makes an empty file that cannot be written."""

    def make(home: Path) -> None:
        path = home / "two" / name
        path.touch()
        path.chmod(0o444)
        if USER is not None:
            os.chown(path, USER, USER)

    return make


def _link(home: Path) -> None:
    folder = _partition(home, "two")
    folder.rename(home / folder.name)
    folder.symlink_to(home / "gone" / folder.name)


FAULTS: dict[str, Callable[[Path], object]] = {
    "a log that is not active": _sealed("two", ".log", 0o444),
    "a log in the log dir of the metadata log": _sealed("one", ".log", 0o444),
    "a partition dir": lambda home: _partition(home, "two").chmod(0o555),
    "a producer snapshot": _sealed("two", ".snapshot", 0o000),
    "quorum-state": _file("__cluster_metadata-0/quorum-state", 0o000, "one"),
    ".lock": _made(".lock"),
    "an offset index that is not active": _sealed("two", ".index", 0o444),
    "a checkpoint that was not finished": _made("replication-offset-checkpoint.tmp"),
    "a checkpoint": _file("recovery-point-offset-checkpoint", 0o444),
    "a link to a partition that is gone": _link,
}


@pytest.fixture(scope="module", params=[KAFKA_4, KAFKA_3])
def stopped(request: pytest.FixtureRequest) -> Iterator[tuple[str, Path]]:
    """Yield a release, and a folder that all may enter with log dirs that belong to `USER`."""
    work = Path(tempfile.mkdtemp(prefix="logtool-access-"))
    work.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        if USER is not None:
            shutil.copytree(install(request.param), work / "jars" / request.param)
            patch.setenv("LOGTOOL_KAFKA_CACHE", str(work / "jars"))
        dirs = [work / "base" / name for name in DIRS]
        format_log_dir(request.param, dirs, extra_config=CONFIG)
        with Broker(request.param, dirs, CONFIG) as broker:
            broker.start()
            workloads.create_topics(broker.bootstrap, request.param, (TOPIC,))
            writer = workloads.Writer(broker.bootstrap, enable_idempotence=True)
            for number in range(TOPIC.partitions):
                found = workloads.messages(f"orders-{number}", 200, workloads.now_ms())
                writer.batches(TOPIC.name, found, [5], number)
            broker.stop()
        yield request.param, work
    shutil.rmtree(work)


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_predicted_for_a_file_without_access_is_what_happens(
    stopped: tuple[str, Path], name: str
) -> None:
    version, work = stopped
    home = work / "case"
    shutil.copytree(work / "base", home, symlinks=True)
    try:
        for path in (home, *home.rglob("*")) if USER is not None else ():
            os.chown(path, USER, USER, follow_symlinks=False)
        FAULTS[name](home)
        assert _outcome(version, home) == _predicted(home)
    finally:
        for path in home.rglob("*"):
            if path.is_dir():
                path.chmod(0o755)
        shutil.rmtree(home)


def _predicted(home: Path) -> tuple[str, set[str]]:
    """Return the prediction of `plan`: the outcome, and the log dirs that go offline."""
    found = of_type(objects("plan", *(home / one for one in DIRS), statuses=(0, 1)), "action")
    paths = {
        kind: {
            Path(one["path"]).relative_to(home).parts[0] for one in found if one["action"] == kind
        }
        for kind in ("refuse", "offline", "ignore")
    }
    if paths["refuse"]:
        return "ends", set()
    gone = paths["offline"] | paths["ignore"]
    return ("offline" if gone else "starts"), gone


def _outcome(version: str, home: Path) -> tuple[str, set[str]]:
    """Start a broker, read all records, and return what became of it and of its log dirs."""
    dirs = [home / one for one in DIRS]
    with Broker(version, dirs, CONFIG, user=USER) as broker:
        try:
            broker.start()
        except HarnessError as error:
            if "ended with" not in str(error):
                raise
            return "ends", set()
        checkpoint = dirs[1] / "replication-offset-checkpoint"
        before = checkpoint.stat().st_ino
        _read(broker)
        workloads.wait_for(
            lambda: bool(_gone(broker)) or checkpoint.stat().st_ino != before, 60, "a checkpoint"
        )
        gone = _gone(broker)
        broker.kill()
    return ("offline" if gone else "starts"), gone


def _read(broker: Broker) -> None:
    """Read all records, or until a log dir is offline."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap, "group.id": "unused", "log_level": 0,
            "auto.offset.reset": "earliest", "enable.partition.eof": True,
        }
    )  # fmt: skip
    left = set(range(TOPIC.partitions))
    consumer.assign([TopicPartition(TOPIC.name, number, 0) for number in left])
    deadline = deadline_in(60)
    while left and not _gone(broker):
        assert time.monotonic() < deadline, f"nothing more of {left}"
        message = consumer.poll(0.2)
        if message and message.error() and message.error().name() == "_PARTITION_EOF":
            left.discard(message.partition())
    consumer.close()


def _gone(broker: Broker) -> set[str]:
    return {Path(one["stopped"] or one["invalid"]).name for one in OFFLINE.finditer(broker.log)}
