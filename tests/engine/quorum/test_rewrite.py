"""A change of voters; `tests/broker/test_quorum_starts.py` starts controllers from its result."""

import json
from pathlib import Path

import metadata_records
import pytest
from metadata_logs import NO_OP, data, directory_id, log_dir, voter, voters_batch

from logtool.apply import Journal
from logtool.errors import RefusedError
from logtool.formats import quorum_state
from logtool.log.inputs import NodeDir
from logtool.quorum.copy import MetadataCopy
from logtool.quorum.rewrite import Rewrite
from logtool.quorum.run import Inquiry, Order
from logtool.quorum.voters import Endpoint, Voter, parse_named
from logtool.running.run import Run

BEGIN = voters_batch(0, (1, 2, 3))
TOPIC = "bG9ndG9vbC10b3BpYy0tMQ"
ALONE = "1@10.0.0.1:9093"


def topic(*replicas: int) -> bytes:
    """Return the records of a topic with one partition."""
    return data(
        2, metadata_records.topic("orders", TOPIC),
        metadata_records.partition(TOPIC, 0, replicas, replicas[0]),
    )  # fmt: skip


def ordered(
    *dirs: Path, voters: str = ALONE, apply: bool = False, accepted: str | None = None
) -> list[object]:
    order = Order(
        voters=parse_named(voters),
        apply=apply,
        accepted={(accepted, 0)} if accepted else frozenset(),
        undo_dir=None,
        command="logtool quorum",
    )
    return list(Inquiry([NodeDir(path) for path in dirs], Run(), order=order))


def planned(*dirs: Path, **more: str) -> Rewrite:
    *_, last = ordered(*dirs, **more)  # type: ignore[arg-type]
    assert isinstance(last, Rewrite)
    return last


def refused(*dirs: Path, **more: str) -> str:
    with pytest.raises(RefusedError) as caught:
        planned(*dirs, **more)
    return str(caught.value)


def files_of(home: Path) -> dict[str, bytes]:
    return {str(p.relative_to(home)): p.read_bytes() for p in home.rglob("*") if p.is_file()}


def after(home: Path) -> MetadataCopy:
    (copy, *_) = Inquiry([NodeDir(home)], Run())
    assert isinstance(copy, MetadataCopy)
    return copy


def test_one_voter_of_three_is_alone_afterwards_and_undo_takes_it_back(tmp_path: Path) -> None:
    home = log_dir(tmp_path, 1, BEGIN, topic(4), BEGIN[:40], state={"leaderEpoch": 6})
    before = files_of(home)
    planned(home)
    assert files_of(home) == before
    ordered(home, apply=True)
    copy = after(home)
    alone = Voter(1, directory_id(1), (Endpoint("CONTROLLER", "10.0.0.1", 9093),))
    assert copy.voted == ((alone,), "log", 4)
    assert (copy.position, copy.problems) == ((7, 5), ())
    assert not copy.batches.damages  # the half append is cut off
    inner = home / "__cluster_metadata-0"
    state = quorum_state.parse((inner / "quorum-state").read_bytes())
    assert not list(quorum_state.check(state))
    assert (state.leader_epoch, state.leader_id, state.voted_id) == (7, -1, -1)
    assert planned(home).actions == ()
    (undo,) = tmp_path.glob("node-1.logtool-undo-*")
    Journal.open(undo).undo()
    assert files_of(home) == before


def test_an_empty_active_segment_takes_the_voters(tmp_path: Path) -> None:
    home = log_dir(tmp_path, 1, BEGIN)
    inner = home / "__cluster_metadata-0"
    (inner / f"{2:020d}.log").write_bytes(b"")
    ordered(home, apply=True)
    assert after(home).voted[1:] == ("log", 2)
    assert len(list(inner.glob("*.log"))) == 2


def test_endpoints_change_alone(tmp_path: Path) -> None:
    homes = [log_dir(tmp_path, node, BEGIN, topic(2)) for node in (1, 2, 3)]
    found = planned(*homes, voters="1@a:1,2@b:2,3@c:3")
    assert found.gone == ()
    assert [str(one.endpoints[0]) for one in found.voters] == ["a:1", "b:2", "c:3"]
    assert [one.directory_id for one in found.voters] == [directory_id(n) for n in (1, 2, 3)]
    assert found.settings == {"controller.quorum.bootstrap.servers": "a:1,b:2,c:3"}


def test_a_static_quorum_changes_quorum_state_alone(tmp_path: Path) -> None:
    state = {"data_version": 0, "clusterId": "", "appliedOffset": 0,
             "currentVoters": [{"voterId": 1}, {"voterId": 2}]}  # fmt: skip
    home = log_dir(tmp_path, 1, data(0, NO_OP), state=state)
    found = planned(home)
    assert (found.offset, found.gone) == (None, (2,))
    assert found.settings == {"controller.quorum.voters": ALONE}
    (action,) = found.actions
    assert action.change and action.change.content
    written = json.loads(action.change.content)
    assert written["currentVoters"] == [{"voterId": 1}]
    assert (written["leaderId"], written["leaderEpoch"], written["data_version"]) == (-1, 2, 0)
    ordered(home, apply=True)
    assert planned(home).actions == ()
    assert "directory id" in refused(home, voters=f"1-{directory_id(1)}@a:1")


def test_no_partition_is_left_without_a_replica(tmp_path: Path) -> None:
    home = log_dir(tmp_path, 1, BEGIN, topic(2, 3))
    assert "orders-0" in refused(home)
    assert "replica" in refused(home, accepted="other")
    assert planned(home, accepted="orders").gone == (2, 3)
    planned(home, voters=f"1@a:1,3-{directory_id(3)}@c:3")


def test_partitions_that_only_an_unclean_election_brings_back_are_counted(tmp_path: Path) -> None:
    isr_of_two = metadata_records.change(TOPIC, 0, {0: metadata_records.numbers(2)})
    home = log_dir(tmp_path, 1, BEGIN, topic(2, 4), data(4, isr_of_two))
    assert planned(home).unclean == 1


def test_the_copy_to_keep_must_be_that_of_a_voter(tmp_path: Path) -> None:
    one = log_dir(tmp_path, 1, BEGIN, topic(4))
    broker = log_dir(tmp_path, 9, BEGIN, topic(4), data(4, NO_OP))
    assert "--voters" in refused(broker)
    found = planned(one, broker)
    assert (found.copy.node, found.lost_changes, found.unaccepted) == (1, (), ())
    assert "--voters" in refused(one, voters=f"1-{directory_id(5)}@a:1")


def test_changes_that_only_a_broker_has_are_lost_with_consent_alone(tmp_path: Path) -> None:
    one = log_dir(tmp_path, 1, BEGIN)
    broker = log_dir(tmp_path, 9, BEGIN, topic(4), state={"leaderEpoch": 5})
    found = planned(one, broker)
    assert (found.copy.node, found.epoch) == (1, 6)
    lost = [(change.entity.kind, change.entity.name, change.word) for change in found.lost_changes]
    assert lost == [("topic", "orders", "removed"), ("partition", "orders-0", "removed")]
    assert found.unaccepted_names == ("__cluster_metadata-0",)
    before = files_of(one)
    with pytest.raises(RefusedError):
        ordered(one, broker, apply=True)
    assert files_of(one) == before
    ordered(one, broker, apply=True, accepted="__cluster_metadata")
    assert after(one).position == (6, 3)
    assert planned(broker, voters="9@a:1").copy.node == 9  # a person may give it the role


def test_of_equal_copies_that_of_a_voter_to_be_is_kept(tmp_path: Path) -> None:
    homes = [log_dir(tmp_path, node, BEGIN, topic(4)) for node in (1, 2, 3)]
    assert planned(*homes, voters="3@a:1").copy.node == 3


def test_a_voter_of_unknown_directory_is_refused(tmp_path: Path) -> None:
    home = log_dir(tmp_path, 1, BEGIN)
    error = refused(home, voters=f"{ALONE},7@b:1")
    assert "directory id" in error and "7" in error
    found = planned(home, voters=f"{ALONE},7-{directory_id(7)}@b:1")
    assert [one.node for one in found.voters] == [1, 7]
    assert found.voters[1].endpoints[0].listener == "CONTROLLER"


def test_damage_is_refused(tmp_path: Path) -> None:
    bad = bytearray(data(2, NO_OP))
    bad[-1] ^= 1
    home = log_dir(tmp_path, 1, BEGIN, bytes(bad), data(3, NO_OP))
    assert "damaged" in refused(home)


def test_a_broken_snapshot_is_refused(tmp_path: Path) -> None:
    home = log_dir(tmp_path, 1, BEGIN)
    (home / "__cluster_metadata-0" / f"{2:020d}-{1:010d}.checkpoint").write_bytes(b"torn")
    assert f"{2:020d}-{1:010d}.checkpoint" in refused(home)


def test_the_epoch_is_above_all_that_any_copy_knows(tmp_path: Path) -> None:
    one = log_dir(tmp_path, 1, BEGIN, topic(4))
    two = log_dir(tmp_path, 2, BEGIN, state={"leaderEpoch": 11})
    assert planned(one, two).epoch == 12


def test_known_voters_keep_what_they_support(tmp_path: Path) -> None:
    known = Voter(1, directory_id(1), (Endpoint("KRAFT", "a", 1), Endpoint("MORE", "a", 2)), (0, 1))
    home = log_dir(tmp_path, 1, voters_batch(0, (known, voter(2))))
    (found,) = planned(home).voters
    assert found.endpoints == (Endpoint("KRAFT", "10.0.0.1", 9093),)
    assert found.versions == (0, 1)
