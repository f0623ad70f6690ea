"""The levels and records that a release does not support, on built metadata logs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import metadata_records as made
import pytest

from logtool.formats.messages import codec, schema
from logtool.loading import release_support
from logtool.loading.metadata_log import Hindrance
from logtool.log import opening
from logtool.node import written_by
from logtool.node.identity import identify
from logtool.node.node import Node
from logtool.node.options import StartOptions
from logtool.startup.releases import ReleaseStart, of_all_releases

ID = "J8aAPcfLQt2bqs1JT_rMgQ"
ENDPOINT = {"name": "C", "host": "h", "port": 1, "securityProtocol": 0}


def record(name: str, version: int = 0, /, **fields: Any) -> bytes:
    """Return a record of any type; fields that are left out have their defaults."""
    message = schema.table("cluster_metadata").named(name)
    return made.framed(message.type, version)[:-1] + codec.encode(message, version, fields)


def level(number: int, name: str = "metadata.version") -> bytes:
    return record("FeatureLevelRecord", name=name, featureLevel=number)


def broker(version: int, newest: int, endpoints: Sequence[dict[str, Any]] = (ENDPOINT,)) -> bytes:
    features = [{"name": "metadata.version", "minSupportedVersion": 7,
                 "maxSupportedVersion": newest}]  # fmt: skip
    return record(
        "RegisterBrokerRecord", version, brokerId=1, brokerEpoch=5, incarnationId=ID,
        endPoints=list(endpoints), features=features, rack=None,
    )  # fmt: skip


def log_dir(root: Path, *values: bytes, meta: str = "version=1\nnode.id=1\n") -> Path:
    root.mkdir(exist_ok=True)
    made.log_dir_of(root, list(values))
    (root / "meta.properties").write_text(f"{meta}cluster.id={ID}\n")
    return root


def node_of(home: Path, kafka: tuple[int, int] | None = None) -> Node:
    return Node([identify(opening.open_log_dir(home))], kafka)


def found(home: Path, kafka: tuple[int, int] | None = None) -> list[Hindrance]:
    return list(release_support.check(node_of(home, kafka)))


@pytest.mark.parametrize(
    ("number", "kafka", "stops"),
    [(33, (4, 4), False), (33, (4, 3), True), (31, (4, 3), True), (30, (4, 3), False),
     (27, (3, 9), True), (21, (3, 9), False), (22, (3, 9), True), (6, (4, 0), True),
     (6, (3, 9), False), (34, (4, 4), True), (99, (4, 4), True)],
)  # fmt: skip
def test_a_level_that_a_release_does_not_offer_stops_it(
    tmp_path: Path, number: int, kafka: tuple[int, int], stops: bool
) -> None:
    home = log_dir(tmp_path, made.topic("t", ID), level(number))
    hindrances = found(home, kafka)
    assert [one.cause for one in hindrances] == ["level"] * stops
    assert all(one.path.name.endswith(".log") for one in hindrances)


def test_the_release_that_the_files_show_is_judged(tmp_path: Path) -> None:
    assert found(log_dir(tmp_path / "a", level(33), broker(4, 33))) == []
    assert [one.cause for one in found(log_dir(tmp_path / "b", level(33), broker(4, 30)))] == [
        "level"
    ]


@pytest.mark.parametrize(
    ("name", "value", "kafka", "stops"),
    [("share.version", 2, (4, 3), True), ("share.version", 2, (4, 4), False),
     ("share.version", 0, (3, 9), False), ("streams.version", 1, (4, 1), True),
     ("group.version", 1, (3, 9), True), ("kraft.version", 1, (3, 7), False)],
)  # fmt: skip
def test_a_feature_that_a_release_does_not_have_stops_it(
    tmp_path: Path, name: str, value: int, kafka: tuple[int, int], stops: bool
) -> None:
    home = log_dir(tmp_path, level(15), level(value, name))
    assert [one.cause for one in found(home, kafka)] == ["level"] * stops


def test_a_record_that_cannot_be_read_is_found_before_the_levels(tmp_path: Path) -> None:
    home = log_dir(tmp_path, level(30), broker(4, 30))
    assert [one.cause for one in found(home, (4, 2))] == ["record", "level"]
    assert [one.cause for one in found(home, (3, 7))] == ["level", "record"]
    assert found(home, (4, 3)) == []


@pytest.mark.parametrize(
    ("value", "kafka", "stops"),
    [
        (made.change(ID, 0, {}), (3, 3), False),
        (record("PartitionChangeRecord", 2, topicId=ID), (3, 3), False),
        (record("BrokerRegistrationChangeRecord", 3, brokerId=1, brokerEpoch=5), (3, 3), False),
        (record("PartitionRecord", 1, topicId=ID), (3, 3), True),
        (record("UnregisterControllerRecord", controllerId=3), (4, 3), True),
        (record("UnregisterControllerRecord", controllerId=3), (4, 4), False),
    ],
)
def test_a_newer_version_stops_a_release_unless_it_has_tagged_fields_alone(
    tmp_path: Path, value: bytes, kafka: tuple[int, int], stops: bool
) -> None:
    assert [one.cause for one in found(log_dir(tmp_path, value), kafka)] == ["record"] * stops


def test_a_controller_that_is_no_voter_is_named(tmp_path: Path) -> None:
    features = [{"name": "metadata.version", "minSupportedVersion": 7, "maxSupportedVersion": 27}]
    controllers = [
        record("RegisterControllerRecord", controllerId=one, incarnationId=ID, features=features,
               endPoints=[])
        for one in (1, 2)
    ]  # fmt: skip
    home = log_dir(tmp_path, level(27), *controllers)
    node = Node([identify(opening.open_log_dir(home))], (4, 3),
                {"controller.quorum.voters": "1@h:1"})  # fmt: skip
    (text,) = release_support.vetoes(node)
    assert "controller 2" in text
    node.given_kafka = (4, 1)
    assert list(release_support.vetoes(node)) == []


@pytest.mark.parametrize(
    ("levels", "kafka", "lowers", "waits"),
    [
        ((("share.version", 2),), (4, 3), ["share.version=1"], True),
        ((("share.version", 2), ("share.version", 1)), (4, 3), [], True),
        ((("share.version", 1),), (4, 3), [], False),
        ((("share.version", 2), ("metadata.version", 33)), (4, 3), [], False),
    ],
)
def test_the_way_back_from_a_newer_release(
    tmp_path: Path, levels: Sequence[tuple[str, int]], kafka: tuple[int, int], lowers: list[str],
    waits: bool,
) -> None:  # fmt: skip
    """Kafka 4.3.1 read share.version 2 again after 4.4.0 had lowered it, until a new snapshot."""
    home = log_dir(tmp_path, level(30), *(level(number, name) for name, number in levels))
    said = " ".join(release_support.ways_back(node_of(home, kafka)))
    assert [
        one.removeprefix("--feature ") for one in re.findall(r"--feature \S+\d", said)
    ] == lowers
    assert ("metadata.log.max.snapshot.interval.ms" in said) is waits
    assert bool(said) is bool(found(home, kafka))


def test_there_is_no_way_back_from_a_newer_kraft_version(tmp_path: Path) -> None:
    node = node_of(log_dir(tmp_path, level(19)), (3, 8))
    assert node.image is not None
    assert list(release_support.ways_back(node)) == []
    node.image.kraft_version = 1
    (text,) = release_support.ways_back(node)
    assert "kraft.version" in text


def zookeeper(root: Path, meta: str = "version=0\nbroker.id=1\n") -> Path:
    partition = root / "t-0"
    partition.mkdir(parents=True)
    (partition / f"{0:020d}.log").touch()
    (partition / "leader-epoch-checkpoint").write_text("0\n0\n")
    (root / "meta.properties").write_text(meta)
    return root


@pytest.mark.parametrize(("kafka", "puts_aside"), [((3, 9), False), ((4, 0), True), ((4, 4), True)])
def test_a_release_without_zookeeper_puts_partitions_aside(
    tmp_path: Path, kafka: tuple[int, int], puts_aside: bool
) -> None:
    node = node_of(zookeeper(tmp_path), kafka)
    text = release_support.puts_all_aside(node, node.log_dirs[0].root)
    assert (text is not None) is puts_aside


def all_releases(home: Path) -> dict[str, ReleaseStart]:
    starts = list(of_all_releases([home], StartOptions()))
    assert all(isinstance(one, ReleaseStart) for one in starts)
    return {one.kafka: one for one in starts if isinstance(one, ReleaseStart)}


def test_every_release_has_a_verdict(tmp_path: Path) -> None:
    starts = all_releases(log_dir(tmp_path, level(30), broker(4, 33)))
    outcomes = {kafka: (one.outcome, one.cause) for kafka, one in starts.items()}
    assert outcomes["4.4"] == outcomes["4.3"] == ("starts", None)
    assert outcomes["4.2"] == ("refuses", "record")
    assert outcomes["3.7"] == ("refuses", "level")
    assert starts["4.2"].path is not None and starts["4.2"].position == 0


def test_with_zookeeper_every_release_before_4_starts(tmp_path: Path) -> None:
    starts = all_releases(zookeeper(tmp_path))
    assert {kafka for kafka, one in starts.items() if one.outcome == "strays"} == {
        "4.0", "4.1", "4.2", "4.3", "4.4",
    }  # fmt: skip
    assert starts["3.9"].outcome == "starts"


def test_a_release_of_zookeeper_is_assumed_for_its_log_dirs(tmp_path: Path) -> None:
    assert node_of(zookeeper(tmp_path)).kafka == (3, 9)


def test_a_release_newer_than_this_program_has_no_name(tmp_path: Path) -> None:
    node = node_of(log_dir(tmp_path, level(33), broker(4, 99)))
    assert node.is_newer_than_known
    assert (node.shown_kafka, node.shown_level, node.kafka) == (None, 99, (4, 4))
    assert written_by.of_node(node).text == "4.4 or later"


def test_the_files_bound_the_releases_that_wrote_them(tmp_path: Path) -> None:
    old = zookeeper(tmp_path / "old")
    assert written_by.of_node(node_of(old)).text == "0.11 to 3.9"
    named = zookeeper(tmp_path / "named", f"version=0\nbroker.id=1\ncluster.id={ID}\n")
    assert written_by.of_node(node_of(named)).text == "2.4 to 3.9"
    (named / "t-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {ID}\n")
    found = written_by.of_node(node_of(named))
    assert (found.first, found.last, len(found.reasons)) == ((2, 8), (3, 9), 2)
    kraft = log_dir(tmp_path / "kraft", level(20), meta="version=1\nnode.id=1\n")
    assert written_by.of_node(node_of(kraft)).text == "3.8 or later"
    registered = log_dir(tmp_path / "registered", level(20), broker(3, 21))
    assert written_by.of_node(node_of(registered)).text == "3.9"
