"""Log dirs from which something is missing: the prediction of plan, and what a real broker does."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from broker import log_dirs
from broker.install import KAFKA_3, KAFKA_4, HarnessError
from broker.kafka import Broker
from broker.log_dirs import CONFIG, DENSE, DIRS, ORDERS, OTHER_UUID, Home

from logtool.errors import LogtoolError
from logtool.findings import Finding, Severity
from logtool.node.options import StartOptions
from logtool.startup.forecast import Forecast
from logtool.startup.partition import PartitionForecast
from logtool.verify import Level, Verification

pytestmark = pytest.mark.broker

METADATA = "a/__cluster_metadata-0"
SHORT = frozenset({"none", "partition", "empty logs", "empty disk", "other order", "other node"})
"""Absences that the short run tries; the others are in the long one, as each start takes time."""
HAS_STRAYS = (3, 7)
"""The first release that renames what the metadata log does not know."""
Names = frozenset[str]


@dataclass(frozen=True)
class Absence:
    """Something that is removed from the log dirs of a broker that was stopped in order."""

    name: str
    remove: Callable[[Home], object]
    config: Callable[[Home], Mapping[str, str]] = lambda home: {}
    """Settings that the broker starts with, and that its own file then has."""


@dataclass(frozen=True)
class Start:
    """The outcome of a start."""

    starts: bool
    lost: Names = field(default=frozenset())
    """Partitions whose records are gone."""
    strays: Names = field(default=frozenset())
    """Directories that are renamed to ``-stray``."""


def _remove(pattern: str) -> Callable[[Home], object]:
    """Return a function that removes the directories and files of a pattern."""

    def remove(home: Home) -> None:
        found = list(home.root.glob(pattern))
        assert found
        for path in found:
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return remove


def _empty(pattern: str) -> Callable[[Home], object]:
    """Return a function that cuts files to 0 bytes."""
    return lambda home: [path.write_bytes(b"") for path in home.root.glob(pattern)]


def _empty_metadata_log(home: Home) -> None:
    _empty(f"{METADATA}/*.log")(home)
    for path in (home.root / METADATA).glob("*.checkpoint"):
        path.unlink()


def _one_partition(home: Home) -> None:
    shutil.rmtree(home.partition("b"))


def _one_log(home: Home) -> None:
    for path in home.partition("b").glob("*.log"):
        path.unlink()


def _formatted_disk(home: Home) -> None:
    text = home.meta("b").read_text()
    _empty_disk(home)
    home.meta("b").write_text(re.sub(r"directory\.id=.*", f"directory.id={OTHER_UUID}", text))


def _empty_disk(home: Home) -> None:
    shutil.rmtree(home.root / "b")
    (home.root / "b").mkdir()


def _order(*names: str) -> Callable[[Home], Mapping[str, str]]:
    return lambda home: {"log.dirs": ",".join(str(home.root / name) for name in names)}


ABSENCES = (
    Absence("none", lambda home: None),
    Absence("partition", _one_partition),
    Absence("topic", _remove("*/orders-*")),
    Absence("log", _one_log),
    Absence("empty logs", _empty("b/orders-*/*.log")),
    Absence("formatted disk", _formatted_disk),
    Absence("empty disk", _empty_disk),
    Absence("metadata log", _remove(METADATA)),
    Absence("empty metadata log", _empty_metadata_log),
    Absence("other order", lambda home: None, _order("b", "a", "c")),
    Absence("other node", lambda home: None, lambda home: {"node.id": "7"}),
)


def _static(release: tuple[int, ...], home: Home, absence: Absence) -> dict[str, str]:
    """Return the broker's own file, with the kind of quorum that the harness gives a release."""
    quorum = {"controller.quorum.bootstrap.servers": "127.0.0.1:9093"}
    if release < (4,):
        quorum = {"controller.quorum.voters": "1@127.0.0.1:9093"}
    return {"log.dirs": ",".join(str(home.root / name) for name in DIRS), "node.id": "1",
            "process.roles": "broker,controller", **quorum, **absence.config(home)}  # fmt: skip


def _names(home: Home) -> set[str]:
    """Return the partitions with records, by name."""
    return {
        path.parent.name for topic in (ORDERS, DENSE)
        for path in home.root.glob(f"*/{topic.name}-*/*.log") if path.stat().st_size
    }  # fmt: skip


def predicted(version: tuple[int, int], home: Home, static: Mapping[str, str]) -> Start:
    """Return the outcome that plan predicts."""
    starts, lost, strays = True, set(), set()
    for item in Forecast(home.dirs, StartOptions(version, static=static)):
        if isinstance(item, LogtoolError):
            raise item
        for action in item.actions if isinstance(item, PartitionForecast) else (item,):
            name = f"{action.topic}-{action.partition}"
            starts &= action.action != "refuse"
            if action.action in ("lost", "lacks") and action.topic:
                lost.add(name)
            elif action.action == "stray":
                strays.add(name)
    return Start(starts, frozenset(lost), frozenset(strays)) if starts else Start(False)


def carried_out(version: str, home: Home, before: set[str], config: Mapping[str, str]) -> Start:
    """Start a broker, and return what became of the partitions that it before before."""
    with Broker(version, [home.root / name for name in DIRS], {**CONFIG, **config}) as broker:
        try:
            broker.start(timeout=120)
        except HarnessError:
            # It ended, or waits for controllers that there are not.
            assert "BindException" not in broker.log
            return Start(False)
        strays = {re.sub(r"\.[0-9a-f]{32}-stray$", "", path.name)
                  for path in home.root.glob("*/*-stray")}  # fmt: skip
        lost = {name for name in before - strays if not _has_records(broker, name)}
    return Start(True, frozenset(lost), frozenset(strays))


def _has_records(broker: Broker, name: str) -> bool:
    """Return whether a partition has a leader and records; a leader may need some seconds."""
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    topic, _, number = name.rpartition("-")
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "absence"})
    deadline = time.monotonic() + 60
    try:
        while True:
            try:
                _, end = consumer.get_watermark_offsets(TopicPartition(topic, int(number)), 2)
                return bool(end > 0)
            except KafkaException:
                if time.monotonic() > deadline:
                    return False
    finally:
        consumer.close()


@pytest.mark.parametrize(
    ("kafka_version", "names"),
    [
        pytest.param(KAFKA_4, SHORT, id=f"{KAFKA_4}-short"),
        *(pytest.param(one, {absence.name for absence in ABSENCES}, marks=pytest.mark.long, id=one)
          for one in (KAFKA_4, KAFKA_3)),
    ],
    indirect=["kafka_version"],
)  # fmt: skip
def test_plan_and_verify_know_what_a_start_does_without_something(
    kafka_version: str, names: Set[str], tmp_path: Path
) -> None:
    release = tuple(map(int, kafka_version.split(".")[:2]))
    log_dirs.make_base(kafka_version, tmp_path / "base")
    said, done, errors = {}, {}, {}
    for absence in ABSENCES:
        if absence.name not in names:
            continue
        if absence.name == "empty metadata log" and release >= (4,):
            continue  # It waits as without one, and each wait takes a minute.
        home = Home(tmp_path / absence.name)
        shutil.copytree(tmp_path / "base", home.root)
        before = _names(home)
        absence.remove(home)
        static = _static(release, home, absence)
        said[absence.name] = predicted((release[0], release[1]), home, static)
        errors[absence.name] = any(
            isinstance(item, Finding) and item.severity is Severity.ERROR
            for item in Verification(home.dirs, level=Level.QUICK, static=static)
        )
        done[absence.name] = carried_out(kafka_version, home, before, absence.config(home))
        shutil.rmtree(home.root)
    if release < HAS_STRAYS:  # Its metadata log begins again, and topics are not known any more.
        for one in ("metadata log", "empty metadata log"):
            said.pop(one, None)
            done.pop(one, None)
    assert said == done
    assert errors == {name: name != "none" for name in errors}
    assert len(set(done.values())) > (3 if names == SHORT else 4)
