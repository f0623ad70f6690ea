"""The log dirs of one broker taken together: who they are, and what is said where one is missing.

What brokers do with each fault is held against them in ``tests/broker/test_log_dirs_agree.py``.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from metadata_logs import voters_batch
from verification import has_numbers

from logtool.actions import Action
from logtool.checks.broker_dirs import BrokerDirs
from logtool.findings import Finding
from logtool.log import opening
from logtool.metadata.releases import NEWEST
from logtool.node.identity import LogDirIdentity, identify
from logtool.node.node import Node, nodes_of
from logtool.node.options import StartOptions
from logtool.quorum.voters import Voter
from logtool.startup.forecast import Forecast
from logtool.startup.partition import PartitionForecast

Copy = Callable[[str], Path]


def identities(paths: Sequence[Path]) -> list[LogDirIdentity]:
    return [identify(opening.open_log_dir(path)) for path in paths]


def actions(paths: Sequence[Path], kafka: tuple[int, int] = NEWEST) -> list[Action]:
    """Return the actions of a forecast, of partitions and of log dirs."""
    found: list[Action] = []
    for item in Forecast(paths, StartOptions(kafka)):
        if isinstance(item, PartitionForecast):
            found += item.actions
        else:
            assert isinstance(item, Action)
            found.append(item)
    return found


def actions_of(paths: Sequence[Path], action: str) -> list[Action]:
    return [one for one in actions(paths) if one.action == action]


@pytest.fixture
def dirs(copy_of: Copy) -> list[Path]:
    """The two log dirs of one broker, that with the metadata log first."""
    home = copy_of("4.3.1/two-log-dirs")
    found = [home / "dir-1", home / "dir-2"]
    return sorted(found, key=lambda path: not (path / "__cluster_metadata-0").is_dir())


def directory_id(log_dir: Path) -> str:
    (one,) = identities([log_dir])
    assert one.meta and one.meta.directory_id
    return one.meta.directory_id


def future_of(dirs: Sequence[Path]) -> Path:
    (future,) = (path for log_dir in dirs for path in log_dir.glob("*-future"))
    return future


def test_with_all_log_dirs_nothing_is_left_open(dirs: list[Path]) -> None:
    assert actions_of(dirs, "limits") == []


def verdicts(paths: Sequence[Path], static: Mapping[str, str] | None = None) -> list[Finding]:
    (node,) = nodes_of(identities(paths), NEWEST, static)
    return [one.finding for one in BrokerDirs(node).verdicts]


def test_with_one_of_two_log_dirs_the_other_is_named(dirs: list[Path]) -> None:
    (action,) = actions_of(dirs[:1], "unknown")
    assert directory_id(dirs[1]) in action.reason
    assert directory_id(dirs[0]) not in action.reason
    (finding,) = verdicts(dirs[:1])
    assert finding.code == "data-dir/not-given"


def test_a_log_dir_that_only_the_own_file_names_was_left_out_on_purpose(dirs: list[Path]) -> None:
    static = {"log.dirs": f"{dirs[0]},{dirs[1]}", "process.roles": "broker,controller"}
    assert [one.code for one in verdicts(dirs[:1], static)] == ["data-dir/left-out"]


def test_without_the_metadata_log_its_absence_is_reported(dirs: list[Path]) -> None:
    assert [one.path for one in actions_of(dirs[1:], "unknown")] == [dirs[1]]
    (finding,) = verdicts(dirs[1:])
    assert (finding.code, finding.path) == ("metadata/absent", dirs[1])


def test_a_log_dir_that_lost_its_id_is_not_said_to_be_missing(dirs: list[Path]) -> None:
    meta = dirs[1] / "meta.properties"
    meta.write_text(meta.read_text().replace("directory.id", "directory.no"))
    assert actions_of(dirs, "limits") == []


def test_a_partition_that_the_metadata_log_does_not_know_is_stray_in_the_other_log_dir(
    dirs: list[Path],
) -> None:
    path = sorted(dirs[1].glob("staying.topic-*"))[0]
    (path / "partition.metadata").write_bytes(b"version: 0\ntopic_id: yyyyyyyyyyyyyyyyyyyyyw")
    assert [one.path for one in actions_of(dirs, "stray")] == [path]
    assert actions_of(dirs[1:], "stray") == []


def test_a_copy_on_its_way_goes_on_and_names_what_it_replaces(dirs: list[Path]) -> None:
    future = future_of(dirs)
    (move,) = actions_of(dirs, "move")
    assert (move.path, move.is_grave) == (future, False)
    assert move.reason.endswith("moving.topic-0")


def test_a_copy_on_its_way_without_a_live_one_is_emptied(dirs: list[Path]) -> None:
    future = future_of(dirs)
    (live,) = (path / "moving.topic-0" for path in dirs if (path / "moving.topic-0").is_dir())
    shutil.rmtree(future)
    live.rename(future)
    (gone,) = actions_of(dirs, "discard")
    assert gone.path == future
    assert gone.is_grave
    assert gone.loss.first_offset == 0
    assert has_numbers(gone.reason, 0, gone.loss.last_offset)


def test_a_copy_in_the_assigned_log_dir_replaces_the_live_one_and_what_it_lacks_goes(
    dirs: list[Path],
) -> None:
    future = future_of(dirs)
    (live,) = (path / "moving.topic-0" for path in dirs if (path / "moving.topic-0").is_dir())
    other = live.parent / future.name
    future.rename(live.parent / "kept-0")  # The names change places.
    live.rename(other)
    (live.parent / "kept-0").rename(future.parent / live.name)
    (promoted,) = actions_of(dirs, "promote")
    assert promoted.path == other
    assert actions_of(dirs, "discard") == []  # What replaces it has all that it had.
    for path in other.glob("*.log"):
        path.write_bytes(b"")
    (gone,) = actions_of(dirs, "discard")
    assert gone.path == future.parent / live.name
    assert gone.loss.first_offset == 0


def test_releases_before_directory_ids_want_the_same_file_in_all_log_dirs(
    dirs: list[Path],
) -> None:
    assert BrokerDirs(Node(identities(dirs), (3, 7))).refuses is False
    (verdict,) = BrokerDirs(Node(identities(dirs), (3, 3))).verdicts
    assert verdict.finding.code == "meta-properties/mismatch"
    assert verdict.finding.path == dirs[1] / "meta.properties"
    assert directory_id(dirs[1]) in verdict.finding.message


def test_log_dirs_of_several_brokers_are_distinguished_by_their_metadata_logs(
    scenario: Copy, dirs: list[Path]
) -> None:
    home = scenario("4.3.1/replicas")
    nodes = [home / f"node-{node}" for node in (1, 2, 3)]
    found = nodes_of(identities(nodes), NEWEST)
    assert [[one.path for one in node.log_dirs] for node in found] == [[path] for path in nodes]
    assert not any(BrokerDirs(node).verdicts for node in found)
    (alone,) = nodes_of(identities(dirs), NEWEST)
    assert [one.path for one in alone.log_dirs] == dirs


def test_another_node_id_next_to_the_only_metadata_log_is_no_other_broker(dirs: list[Path]) -> None:
    meta = dirs[1] / "meta.properties"
    meta.write_text(meta.read_text().replace("node.id=1", "node.id=2"))
    (node,) = nodes_of(identities(dirs), NEWEST)
    assert BrokerDirs(node).refuses


def test_when_every_log_dir_goes_offline_the_broker_does_not_start(dirs: list[Path]) -> None:
    for log_dir in dirs:
        meta = log_dir / "meta.properties"
        meta.write_text(meta.read_text().replace("version=1", "version=9"))
    assert {one.path.parent for one in actions_of(dirs, "refuse")} == set(dirs)


BROKEN = b"0\n1\norders 0\n"
"""An offset checkpoint whose only row lacks its offset."""


@pytest.fixture
def assigned(dirs: list[Path]) -> list[Path]:
    """Return the two log dirs with each other's id: the second holds an assigned future copy.

    The voter of the metadata log gets the id of its log dir.
    """
    first, second = (one / "meta.properties" for one in dirs)
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)
    image = nodes_of(identities(dirs), NEWEST)[0].image
    assert image
    log = dirs[0] / "__cluster_metadata-0" / f"{0:020d}.log"
    batch = voters_batch(image.offset, (Voter(1, directory_id(dirs[0])),), image.epoch)
    log.write_bytes(log.read_bytes() + batch)
    return dirs


@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        ("recovery-point-offset-checkpoint", ["offline", "refuse"]),
        ("log-start-offset-checkpoint", ["offline", "refuse"]),
        ("replication-offset-checkpoint", ["offline", "promote"]),
    ],
)
def test_a_log_dir_that_fails_before_an_assigned_future_copy_is_promoted_stops_the_broker(
    assigned: list[Path], broken: str, expected: list[str]
) -> None:
    home = assigned[1]
    assert [one.path.parent for one in actions_of(assigned, "promote")] == [home]
    (home / broken).write_bytes(BROKEN)
    kinds = ("offline", "refuse", "promote", "move")
    assert [one.action for one in actions(assigned) if one.action in kinds] == expected


def test_a_log_that_cannot_be_read_next_to_an_assigned_future_copy_stops_the_broker(
    assigned: list[Path],
) -> None:
    (future,) = assigned[1].glob("*-future")
    other = next(path for path in sorted(assigned[1].glob("staying.topic-*")))
    (other / "leader-epoch-checkpoint").unlink()
    (other / "leader-epoch-checkpoint").mkdir()
    assert [one.path for one in actions_of(assigned, "refuse")] == [future.parent]
    assert actions_of(assigned, "promote") == []


def test_a_move_does_not_go_on_if_one_of_its_log_dirs_is_offline(dirs: list[Path]) -> None:
    assert len(actions_of(dirs, "move")) == 1
    (dirs[1] / "recovery-point-offset-checkpoint").write_bytes(BROKEN)
    assert [actions_of(dirs, kind) for kind in ("move", "refuse")] == [[], []]
    assert len(actions_of(dirs, "offline")) == 1


@pytest.mark.parametrize("own", [None, "zzzzzzzzzzzzzzzzzzzzzw"])
def test_replicas_in_a_log_dir_that_lost_its_id_do_not_lead_for_a_start(
    dirs: list[Path], own: str | None
) -> None:
    meta = dirs[1] / "meta.properties"
    lines = [line for line in meta.read_text().splitlines() if "directory.id" not in line]
    meta.write_text("\n".join([*lines, f"directory.id={own}"] if own else lines))
    (finding,) = verdicts(dirs)
    assert (finding.code, finding.path) == ("meta-properties/unregistered-id", meta)
    assert [one.path for one in actions_of(dirs, "leaderless")] == [meta]


def test_a_log_dir_without_replicas_gets_an_id_without_a_word(dirs: list[Path]) -> None:
    new = dirs[0].parent / "new"
    new.mkdir()
    lines = (dirs[1] / "meta.properties").read_text().splitlines()
    kept = "\n".join(line for line in lines if "directory.id" not in line)
    (new / "meta.properties").write_text(kept)
    assert verdicts([*dirs, new]) == []
    assert actions_of([*dirs, new], "leaderless") == []


def test_an_empty_meta_properties_with_zookeeper_is_a_finding(copy_of: Copy) -> None:
    home = copy_of("2.8.2/zookeeper")
    assert verdicts([home]) == []
    meta = home / "meta.properties"
    meta.write_bytes(b"")
    (finding,) = verdicts([home])
    assert (finding.code, finding.path) == ("meta-properties/empty", meta)
    assert actions_of([home], "refuse") == []
