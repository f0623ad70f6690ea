"""Copies of a metadata log judged together; `tests/broker` has those of real controllers."""

import shlex
import subprocess
from pathlib import Path

import pytest
from metadata_logs import (
    NO_OP,
    control,
    data,
    directory_id,
    log_dir,
    registration,
    static,
    voter,
    voters_batch,
)

from logtool.commands.views.quorum_tables import LOSS
from logtool.errors import FormatError, NothingMatchedError, UnreadableError, UsageError
from logtool.formats import control_record
from logtool.log.inputs import NodeDir
from logtool.log.records import one_batch
from logtool.metadata.image import DIRECTORY
from logtool.quorum import voters
from logtool.quorum.copy import MetadataCopy, read
from logtool.quorum.verdict import Quorum, judge
from logtool.quorum.voters import Endpoint, Voter, parse_named
from logtool.running.run import Run

STATE = f"{DIRECTORY}/quorum-state"
BEGIN = voters_batch(0, (1, 2, 3))
"""Offsets 0 and 1."""


def read_all(*dirs: Path) -> list[MetadataCopy | UnreadableError]:
    return list(read([NodeDir(path) for path in dirs], Run()))


def copies_of(*dirs: Path) -> list[MetadataCopy]:
    found = []
    for item in read_all(*dirs):
        assert isinstance(item, MetadataCopy), item
        found.append(item)
    return found


def judged(*dirs: Path) -> Quorum:
    return judge(copies_of(*dirs))


def test_a_copy_says_who_votes_and_how_far_it_goes(tmp_path: Path) -> None:
    home = log_dir(tmp_path, 1, BEGIN, data(2, NO_OP, NO_OP, epoch=3))
    (copy,) = copies_of(home)
    assert (copy.log_end, copy.last_epoch, copy.kraft_version) == (4, 3, 1)
    assert copy.voted == ((voter(1), voter(2), voter(3)), "log", 0)
    assert (copy.role, copy.directory_id) == ("voter", directory_id(1))
    assert not copy.problems


def test_the_last_voters_count(tmp_path: Path) -> None:
    home = log_dir(tmp_path, 2, BEGIN, voters_batch(2, (1, 3), epoch=2))
    (copy,) = copies_of(home)
    assert copy.voted == ((voter(1), voter(3)), "log", 2)
    assert copy.role == "observer"


def test_another_directory_of_a_node_is_another_voter(tmp_path: Path) -> None:
    home = log_dir(tmp_path, 1, BEGIN)
    meta = home / "meta.properties"
    meta.write_text(meta.read_text().replace(directory_id(1), directory_id(7)))
    (copy,) = copies_of(home)
    assert copy.role == "observer"
    assert [one.node for one in judge([copy]).missing] == [1, 2, 3]


def test_what_follows_damage_does_not_count(tmp_path: Path) -> None:
    bad = bytearray(voters_batch(2, (1,), epoch=2))
    bad[-1] ^= 1
    home = log_dir(tmp_path, 1, BEGIN, bytes(bad), voters_batch(4, (3,), epoch=2))
    (copy,) = copies_of(home)
    assert (copy.log_end, copy.last_epoch) == (2, 1)
    assert copy.voted[2] == 0
    assert judge([copy]).is_grave


def test_an_unfinished_append_is_no_damage(tmp_path: Path) -> None:
    homes = [log_dir(tmp_path, node, BEGIN, BEGIN[:30]) for node in (1, 2, 3)]
    assert not judged(*homes).is_grave


def test_a_static_quorum_is_known_from_quorum_state_or_the_configuration(tmp_path: Path) -> None:
    state = {"data_version": 0, "clusterId": "", "appliedOffset": 0,
             "currentVoters": [{"voterId": 1}, {"voterId": 2}]}  # fmt: skip
    (copy,) = copies_of(log_dir(tmp_path, 1, data(0, NO_OP), state=state))
    assert copy.kraft_version == 0
    assert copy.voted == ((Voter(1), Voter(2)), "quorum-state", None)
    configured = parse_named("1@a:1,2@b:2,3@c:3")
    found = judge([copy], configured)
    assert (found.voters, found.voters_from) == (configured, "controller.quorum.voters")
    assert found.majority == 2


@pytest.mark.parametrize(
    ("ends", "majority", "most", "missing"),
    [
        ({1: 9, 2: 7, 3: 4}, 7, 7, []),
        ({1: 9, 2: 7}, 7, 9, [3]),
        ({3: 4, 2: 7}, 4, 7, [1]),
        ({2: 7}, None, None, [1, 3]),
    ],
)
def test_the_majority(tmp_path: Path, ends, majority, most, missing) -> None:
    log = [BEGIN, *(data(offset, NO_OP) for offset in range(2, 9))]
    homes = [log_dir(tmp_path, node, *log[: end - 1]) for node, end in ends.items()]
    found = judged(*homes)
    assert found.majority_offset == majority
    assert found.majority_at_most == most
    assert [one.node for one in found.missing] == missing
    assert found.keep.node == max(ends, key=lambda node: ends[node])
    assert found.is_grave == (majority is None)
    assert (found.unknown is None) == (not missing)
    assert found.may_lack_committed == (len(missing) >= 2)


def test_the_copy_of_the_later_epoch_is_kept_though_it_is_shorter(tmp_path: Path) -> None:
    longer = log_dir(tmp_path, 1, BEGIN, data(2, NO_OP), data(3, NO_OP, NO_OP), data(5, NO_OP))
    shorter = log_dir(tmp_path, 2, BEGIN, data(2, NO_OP), data(3, NO_OP, epoch=2))
    other = log_dir(tmp_path, 3, BEGIN, data(2, NO_OP))
    found = judged(longer, shorter, other)
    assert found.keep.node == 2
    pair = found.diverges
    assert pair is not None
    assert pair.diverges_at == 3
    assert found.majority_offset == 3
    (loss,) = found.losses
    assert LOSS.row(loss) == {
        "copy": "1", "first_offset": 3, "last_offset": 5, "batches": 2, "records": 3,
    }  # fmt: skip
    assert found.is_grave


def test_a_broker_has_a_copy_and_no_vote(tmp_path: Path) -> None:
    broker = log_dir(tmp_path, 9, BEGIN, data(2, NO_OP), data(3, NO_OP))
    one = log_dir(tmp_path, 1, BEGIN, data(2, NO_OP))
    two = log_dir(tmp_path, 2, BEGIN, data(2, NO_OP))
    found = judged(one, two, broker)
    assert [copy.role for copy in found.copies] == ["voter", "voter", "observer"]
    assert found.keep.node == 9
    assert (found.majority_offset, found.majority_at_most) == (3, 3)


def test_the_voters_of_a_static_quorum_are_those_of_the_newest_election(tmp_path: Path) -> None:
    one = log_dir(tmp_path, 1, data(0, NO_OP), state=static(1, epoch=2))
    broker = log_dir(tmp_path, 9, data(0, NO_OP), data(1, NO_OP), state=static(1, 2, 3))
    found = judged(broker, one)
    assert (found.keep.node, found.voters, found.voters_from) == (9, (Voter(1),), "quorum-state")
    assert (found.majority_offset, found.voters_are_behind) == (1, False)


def test_the_copy_of_a_broker_is_given_to_a_controller(tmp_path: Path) -> None:
    state = static(1, 2, 3)
    one = log_dir(tmp_path, 1, data(0, NO_OP), state=state)
    broker = log_dir(tmp_path, 9, data(0, NO_OP), data(1, NO_OP), state=state)
    found = judged(one, broker)
    assert (found.keep.node, found.heir and found.heir.node) == (9, 1)
    assert found.command and found.copying
    assert shlex.split(found.command)[3] == "1@HOST:PORT"
    own = [(path, path.read_bytes()) for path in (one / "meta.properties", one / STATE)]
    subprocess.run(found.copying, shell=True, check=True, cwd=tmp_path)
    assert all(path.read_bytes() == content for path, content in own)
    again = judged(one, broker)
    assert (again.keep.node, again.keep.log_end, again.copying) == (1, 2, None)
    assert (tmp_path / "node-1.metadata-log" / f"{0:020d}.log").is_file()


def test_no_controller_is_made_of_brokers_alone(tmp_path: Path) -> None:
    found = judged(log_dir(tmp_path, 9, data(0, NO_OP), state=static(1, 2, 3)))
    assert (found.heir, found.command, found.copying) == (None, None, None)


def test_a_registered_controller_without_a_vote_may_start_from_its_copy(tmp_path: Path) -> None:
    registered = data(0, registration(9, "controller"))
    found = judged(log_dir(tmp_path, 9, registered, state=static(1, 2, 3)))
    assert found.heir is found.keep
    assert found.copying is None
    assert found.command and shlex.split(found.command)[3] == "9@HOST:PORT"


@pytest.mark.parametrize(("missing", "brokers"), [((), ()), ((3,), ()), ((2, 3), (8, 9))])
def test_brokers_may_know_more_without_a_majority(tmp_path: Path, missing, brokers) -> None:
    known = data(2, registration(8), registration(9))
    nodes = [node for node in (1, 2, 3) if node not in missing]
    found = judged(*(log_dir(tmp_path, node, BEGIN, known) for node in nodes))
    assert found.brokers_not_given == brokers


def test_a_snapshot_ahead_of_the_log_takes_its_place(tmp_path: Path) -> None:
    home = log_dir(tmp_path, 1, BEGIN)
    snapshot = home / "__cluster_metadata-0" / "00000000000000000040-0000000003.checkpoint"
    head = control(
        0, control_record.SNAPSHOT_HEADER, bytes((0, 0, *bytes(8), 0)), bytes((0, 0, 0, 1, 0)),
        voters.to_record([voter(2)]), epoch=3,
        kinds=(control_record.KRAFT_VERSION, control_record.KRAFT_VOTERS),
    )  # fmt: skip
    foot = control(3, control_record.SNAPSHOT_FOOTER, bytes((0, 0, 0)), epoch=3)
    snapshot.write_bytes(head + foot)
    (copy,) = copies_of(home)
    assert (copy.log_end, copy.last_epoch) == (40, 3)
    assert copy.voted == ((voter(2),), "snapshot", 40)
    assert judge([copy]).committed_at_least == 40
    snapshot.write_bytes(head)
    (copy,) = copies_of(home)
    assert copy.log_end == 2
    (problem,) = copy.problems
    assert "no footer" in problem


@pytest.mark.parametrize("content", [b"", b"version: 0\n"])
def test_an_unsound_partition_metadata_is_a_problem(tmp_path: Path, content: bytes) -> None:
    """A controller does not start with it."""
    home = log_dir(tmp_path, 1, BEGIN)
    (copy,) = copies_of(home)
    assert not copy.problems
    (home / "__cluster_metadata-0" / "partition.metadata").write_bytes(content)
    (copy,) = copies_of(home)
    (problem,) = copy.problems
    assert problem.startswith("partition.metadata: ")


def test_copies_of_two_clusters_are_no_quorum(tmp_path: Path) -> None:
    one, two = (log_dir(tmp_path, node, BEGIN) for node in (1, 2))
    meta = two / "meta.properties"
    meta.write_text(meta.read_text().replace("cluster.id=bG9", "cluster.id=cG9"))
    assert judged(one, two).is_grave


def test_a_log_dir_without_a_metadata_log_is_named(tmp_path: Path) -> None:
    home = tmp_path / "broker"
    home.mkdir()
    (home / "meta.properties").write_text("version=1\nnode.id=4\ncluster.id=x\n")
    (problem,) = read_all(home)
    assert isinstance(problem, NothingMatchedError)


def test_voters_are_read_as_they_are_written() -> None:
    value = voters.to_record([voter(1), voter(2)])
    batch = control(0, control_record.KRAFT_VOTERS, value)
    ((kind, message),) = voters.parse_batch(one_batch(memoryview(batch)), 0)
    assert kind == control_record.KRAFT_VOTERS
    assert voters.of_record(message) == (voter(1), voter(2))
    with pytest.raises(FormatError, match="directory id"):
        voters.to_record([Voter(1)])


def test_voters_are_named_with_or_without_their_directory() -> None:
    assert parse_named(f"1@a:9, 2-{directory_id(2)}@[::1]:8") == (
        Voter(1, None, (Endpoint("CONTROLLER", "a", 9),)),
        Voter(2, directory_id(2), (Endpoint("CONTROLLER", "::1", 8),)),
    )
    assert str(Endpoint("CONTROLLER", "::1", 8)) == "[::1]:8"


@pytest.mark.parametrize(
    "text", ["", "1", "1@a", "1@a:0", "1@a:65536", "x@a:1", "1@a:1,1@b:2", "1-short@a:1",
             "2147483648@a:1", f"1-{'A' * 22}@a:1", "1@\udcff:1"],
)  # fmt: skip
def test_what_names_no_voter_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_named(text)


def test_a_copy_without_its_beginning_is_not_kept(tmp_path: Path) -> None:
    cut = log_dir(tmp_path, 1, data(2, NO_OP), data(3, NO_OP), data(4, NO_OP))
    log = cut / DIRECTORY / f"{0:020d}.log"
    log.rename(log.with_name(f"{2:020d}.log"))
    whole = log_dir(tmp_path, 9, BEGIN, data(2, NO_OP), data(3, NO_OP))
    both = judged(cut, whole)
    assert both.copies[0].missing == ((0, 1),)
    assert (both.keep.node, both.majority_offset, both.is_grave) == (9, None, True)
    (loss,) = both.losses
    assert (loss.copy.node, loss.first_offset, loss.last_offset) == (1, 4, 4)
    alone = judged(cut)
    assert alone.keep.node == 1
    assert alone.unknown


def test_the_losses_of_the_kept_copy_include_its_holes(tmp_path: Path) -> None:
    hole = log_dir(tmp_path, 1, BEGIN, data(3, NO_OP), data(4, NO_OP))
    cut = log_dir(tmp_path, 2, data(2, NO_OP))
    log = cut / DIRECTORY / f"{0:020d}.log"
    log.rename(log.with_name(f"{2:020d}.log"))
    both = judged(hole, cut)
    assert (both.keep.node, both.keep.missing) == (1, ((2, 2),))
    assert [(one.first_offset, one.last_offset) for one in both.losses] == [(2, 2)]


@pytest.mark.parametrize("proof", ["snapshot", "epochs"])
def test_an_end_that_another_file_proves_is_missing(tmp_path: Path, proof: str) -> None:
    home = log_dir(tmp_path, 1, BEGIN, data(2, NO_OP))
    assert copies_of(home)[0].is_whole
    if proof == "snapshot":
        (home / DIRECTORY / f"{7:020d}.snapshot").write_bytes(b"")
    else:
        (home / DIRECTORY / "leader-epoch-checkpoint").write_text("0\n2\n1 0\n3 7\n")
    (copy,) = copies_of(home)
    assert copy.missing == ((3, 6),)
    assert judged(home).is_grave


def test_an_epoch_that_begins_at_the_end_proves_no_loss(tmp_path: Path) -> None:
    home = log_dir(tmp_path, 1, BEGIN, data(2, NO_OP))
    (home / DIRECTORY / "leader-epoch-checkpoint").write_text("0\n2\n1 0\n3 3\n")
    assert copies_of(home)[0].is_whole


def test_voters_that_cannot_start_are_behind_an_observer(tmp_path: Path) -> None:
    begin = voters_batch(0, (1,))
    cut = log_dir(tmp_path, 1, voters_batch(2, (1,)), data(4, NO_OP))
    log = cut / DIRECTORY / f"{0:020d}.log"
    log.rename(log.with_name(f"{2:020d}.log"))
    whole = log_dir(tmp_path, 9, begin, voters_batch(2, (1,)))
    assert judged(cut, whole).voters_are_behind
