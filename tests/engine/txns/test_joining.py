"""Open transactions and the entries of their coordinators: real ones, and every odd state."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from transaction_state import FIRST, Keyed, entry, key, log, write

from logtool.disk.files import LogFile
from logtool.log.batches import read_batches
from logtool.log.kafka import KAFKA
from logtool.txns.coordinator import CoordinatorLog, Relation, read_each
from logtool.txns.joining import JoinedEntry, Joining, PartState
from logtool.txns.open_transactions import PartitionTransactions, TransactionState
from logtool.txns.reasons import advice, advice_on
from logtool.txns.run import TransactionsRun

BEGUN = 1_795_224_772_301
"""Start of the oldest open transaction of 4.3.1/killed, by its first record."""
LATER = BEGUN + 3_600_000
OPEN = {"tx.mixed": [0], "tx-interleaved_v2": [0]}
"""The open transaction of producer 1009."""


@dataclass
class Done:
    """A run that has come to its end."""

    joining: Joining
    found: dict[str, PartitionTransactions]
    """By the name of the partition dir."""


def run(*paths: Path, now_ms: int = LATER) -> Done:
    job = TransactionsRun(paths, now_ms)
    found = {one.path.name: one for one in job if isinstance(one, PartitionTransactions)}
    return Done(job.joining, found)


def relations(job: Done) -> dict[int, set[tuple[Relation, TransactionState]]]:
    reported: dict[int, set[tuple[Relation, TransactionState]]] = {}
    for partition in job.found.values():
        for one in partition.open:
            reported.setdefault(one.producer_id, set()).add((one.account.relation, one.state))
    return reported


def codes(job: Done) -> list[str]:
    return [finding.code for finding in job.joining.findings()]


def entries(job: Done) -> dict[str, JoinedEntry]:
    return {one.entry.transactional_id: one for one in job.joining.joined()}


@pytest.fixture
def killed(copy_of) -> Path:
    home: Path = copy_of("4.3.1/killed")
    return home


@pytest.fixture
def coordinated(killed):
    """Return a function that gives the topic these records alone, in its partition 0."""

    # Of the broker's own log of the topic, which was longer.
    (killed / "replication-offset-checkpoint").unlink()
    (killed / "recovery-point-offset-checkpoint").unlink()

    def made(*records: Keyed, number: int = 0) -> Path:
        for other in (0, 1):
            write(killed, *(records if other == number else ()), number=other)
        return killed

    return made


def test_a_real_transaction_that_is_listed_never_hangs_and_says_when_it_ends(scenario):
    job = run(scenario("4.3.1/killed"))
    listed = {(Relation.LISTED, TransactionState.OPEN)}
    assert relations(job) == {1009: listed, 1010: listed}
    assert codes(job) == []
    found = entries(job)
    assert {name: one.entry.state for name, one in found.items()} == {
        "fixture-open-0": "Ongoing", "fixture-open-1": "Ongoing", "fixture-traffic": "Ongoing",
    }  # fmt: skip
    # What its coordinator added last, and its producer has not written to when the broker died.
    assert found["fixture-traffic"].parts == {("tx.mixed", 0): PartState.NOTHING}
    one = job.found["tx.mixed-0"].open[0]
    assert (one.account.transactional_id, one.account.entry.timeout_ms) == (
        "fixture-open-0",
        900_000,
    )
    later, begun = advice(one, LATER), advice(one, BEGUN)
    assert "2026-11-21T01:47:52.303Z" in later and "2026-11-21T01:47:52.303Z" in begun
    assert ("client" in later, "client" in begun) == (False, True)


def test_what_3_9_wrote_is_joined_as_well(scenario):
    job = run(scenario("3.9.2/killed"))
    listed = {(Relation.LISTED, TransactionState.OPEN)}
    assert relations(job) == {1009: listed, 1010: listed, 1011: listed}
    assert codes(job) == []


def test_a_marker_of_transaction_version_2_is_known_by_its_epoch(copy_of):
    # A Java producer's last record is CompleteCommit. Before it the log ends with PrepareCommit.
    home = copy_of("4.3.1/java-clients")
    path = home / "__transaction_state-1" / FIRST
    with LogFile(path) as file:
        last = max(int(chunk.table.position[-1]) for chunk in read_batches(file, base_offset=0))
    path.write_bytes(path.read_bytes()[:last])
    # These know of the record behind it.
    (home / "replication-offset-checkpoint").unlink()
    (home / "recovery-point-offset-checkpoint").unlink()
    for snapshot in path.parent.glob("*.snapshot"):
        snapshot.unlink()
    job = run(home)
    (one,) = job.joining.joined()
    assert (one.entry.state, one.entry.transaction_version) == ("PrepareCommit", 2)
    assert one.parts == {("java-tx", 0): PartState.COMMITTED}
    marker = job.found["java-tx-0"].markers[one.entry.producer_id]
    assert marker.producer_epoch == one.entry.producer_epoch == 7
    assert codes(job) == []


def test_what_no_entry_knows_hangs_once_it_is_old(coordinated):
    home = coordinated()
    assert relations(run(home))[1009] == {(Relation.NO_ENTRY, TransactionState.HANGING)}
    job = run(home, now_ms=BEGUN + 1000)
    assert relations(job)[1009] == {(Relation.NO_ENTRY, TransactionState.OPEN)}
    assert codes(job) == []
    assert codes(run(home)) == ["transaction-state/abandoned"] * 4


@pytest.mark.parametrize("left", ["leader-epoch-checkpoint", "nothing"])
def test_a_log_of_a_coordinator_that_was_emptied_knows_of_no_transaction(coordinated, left):
    home = coordinated()
    for folder in home.glob("__transaction_state-*"):
        (folder / FIRST).write_bytes(b"")
        kept = "0\n2\n0 0\n2 19\n" if left != "nothing" else "0\n0\n"
        (folder / "leader-epoch-checkpoint").write_text(kept)
    job = run(home)
    unknown = {(Relation.NOT_HERE, TransactionState.UNKNOWN)}
    hanging = {(Relation.NO_ENTRY, TransactionState.HANGING)}
    assert relations(job)[1009] == (hanging if left == "nothing" else unknown)
    assert codes(job).count("transaction-state/damaged") == (0 if left == "nothing" else 2)


def test_partitions_of_the_topic_that_are_elsewhere_may_have_the_entry(killed):
    write(killed, number=0)
    (killed / "replication-offset-checkpoint").unlink()  # of the log that was there
    (killed / "recovery-point-offset-checkpoint").unlink()
    for file in (killed / "__transaction_state-1").iterdir():
        file.unlink()
    (killed / "__transaction_state-1").rmdir()
    job = run(killed)
    assert relations(job)[1009] == {(Relation.NOT_HERE, TransactionState.UNKNOWN)}
    assert codes(job) == ["transaction-state/absent-partitions"]


@pytest.mark.parametrize(
    ("records", "why"),
    [
        ([entry("a", "CompleteCommit", 1009)], "is CompleteCommit with producer 1009, epoch 0"),
        ([entry("a", "Ongoing", 1009, partitions={"other": [0]})], "does not list this partition"),
        ([entry("a", "Ongoing", 1009, partitions=OPEN), entry("a", "Empty", 2000)],
         "is Empty with producer 2000, epoch 0"),
        ([entry("a", "Ongoing", 2000, previousProducerId=1009, partitions=OPEN)],
         "is Ongoing with producer 2000"),
        ([entry("a", "Ongoing", 1009, partitions=OPEN), (key("a"), None)], "no longer has"),
    ],
    ids=["complete", "elsewhere", "other-id", "previous-id", "tombstone"],
)  # fmt: skip
def test_a_transaction_that_its_entry_does_not_list_is_abandoned(coordinated, records, why):
    job = run(coordinated(*records))
    assert relations(job)[1009] == {(Relation.NOT_LISTED, TransactionState.HANGING)}
    of_1009 = [f for f in job.joining.findings() if "producer 1009 from" in f.message]
    assert [f.code for f in of_1009] == ["transaction-state/abandoned"] * 2
    assert all(why in f.message and "'a'" in f.message for f in of_1009)


def test_prepared_ones_say_which_markers_are_missing(coordinated):
    # Transaction version 2: the markers will have an epoch that the records do not have yet.
    listed = {"tx.mixed": [0], "codec-lz4": [0], "not-here": [3]}
    home = coordinated(
        entry("a", "PrepareCommit", 1009, 1, partitions=listed, clientTransactionVersion=2)
    )
    job = run(home)
    found = entries(job)["a"]
    assert found.parts == {
        ("tx.mixed", 0): PartState.OPEN,
        ("codec-lz4", 0): PartState.NOTHING,
        ("not-here", 3): PartState.NOT_HERE,
    }
    assert "commits" in advice_on(found.entry, LATER)
    mixed = job.found["tx.mixed-0"].open
    assert [one.account.relation for one in mixed if one.producer_id == 1009] == [Relation.LISTED]


@pytest.mark.parametrize(
    ("state", "began", "part", "found"),
    [
        ("PrepareAbort", 0, PartState.ABORTED, []),
        ("PrepareCommit", 0, PartState.ABORTED, ["transaction-state/outcome"]),
        ("PrepareCommit", BEGUN + 10_000, PartState.NOTHING, []),
    ],
)
def test_a_marker_counts_that_is_of_this_transaction(
    coordinated, scenario, state, began, part, found
):
    of_traffic = run(scenario("4.3.1/killed")).found["tx.mixed-0"].markers[1011]
    assert of_traffic.type == 0
    home = coordinated(
        entry("a", state, 1011, partitions={"tx.mixed": [0]}, transactionStartTimestampMs=began)
    )
    job = run(home)
    assert entries(job)["a"].parts == {("tx.mixed", 0): part}
    assert [code for code in codes(job) if code.endswith("outcome")] == found


@pytest.mark.parametrize(
    ("state", "version", "refused"),
    [("PrepareCommit", 2, True), ("PrepareCommit", 1, False), ("Ongoing", 2, False)],
)
def test_a_marker_with_the_epoch_of_what_is_open_is_refused_in_version_2(
    coordinated, state, version, refused
):
    home = coordinated(
        entry("a", state, 1009, partitions={"tx.mixed": [0]}, clientTransactionVersion=version)
    )
    job = run(home)
    found = [f for f in job.joining.findings() if f.code == "transaction-state/marker-refused"]
    assert len(found) == entries(job)["a"].refused == refused
    (one,) = (one for one in job.found["tx.mixed-0"].open if one.producer_id == 1009)
    assert one.account.relation is Relation.LISTED
    assert (one.state is TransactionState.HANGING, advice(one, LATER) is None) == (
        refused,
        refused,
    )
    if refused:
        assert "336" in found[0].message


@pytest.mark.parametrize(
    ("epoch", "hours", "code"),
    [
        (7, 0, None),
        (7, 2, "transaction-state/marker-repeated"),
        (6, 0, "transaction-state/marker-refused"),
        (8, 2, None),
    ],
)
def test_a_marker_that_is_there_is_reported_once_coordinators_went_on_without_it(
    copy_of, epoch, hours, code
):
    home = copy_of("4.3.1/java-clients")
    producer_id = next(iter(run(home).found["java-tx-0"].markers))
    one = entry(
        "a", "PrepareCommit", producer_id, epoch, partitions={"java-tx": [0]},
        clientTransactionVersion=2,
        transactionLastUpdateTimestampMs=1_795_224_772_300 - hours * 3_600_000,
    )  # fmt: skip
    for number in (0, 1):
        write(home, *([one] if number == 1 else ()), number=number)
    job = run(home)
    found = [f for f in job.joining.findings() if f.topic == "java-tx"]
    assert [f.code for f in found] == ([code] if code else [])
    assert entries(job)["a"].refused is (code == "transaction-state/marker-refused")
    if hours and code:
        assert "2 h" in found[0].message


def test_a_two_phase_commit_never_times_out(coordinated):
    never = entry("a", "Ongoing", 1009, partitions=OPEN, transactionTimeoutMs=2**31 - 1)
    (one,) = run(coordinated(never)).joining.joined()
    assert one.entry.times_out_ms is None
    assert "never" in (advice_on(one.entry, LATER) or "")


def test_of_several_copies_the_furthest_of_the_latest_epoch_counts(tmp_path):
    older = [entry("a", "Ongoing", 1), entry("a", "CompleteCommit", 1)]
    for name, records, epoch in (("x", older, 3), ("y", older[:1], 4), ("z", older[:0], 4)):
        (tmp_path / name).mkdir()
        write(tmp_path / name, *records, epoch=epoch)
    (copy,) = read_each([(tmp_path / name / "__transaction_state-0", KAFKA) for name in "xyz"])
    assert copy.path.parent.name == "y"
    assert [one.state for one in copy.entries()] == ["Ongoing"]


def test_copies_of_a_partition_are_judged_once(killed, coordinated, tmp_path):
    other = tmp_path / "other" / "tx.mixed-0"
    other.mkdir(parents=True)
    (other.parent / "meta.properties").write_text("version=1\n")
    for file in (killed / "tx.mixed-0").glob("*.log"):
        if int(file.stem) < 400:
            (other / file.name).write_bytes(file.read_bytes())
    coordinated()
    job = run(killed, other.parent)
    paths = [f.path for f in job.joining.findings() if f.topic == "tx.mixed"]
    assert paths == [killed / "tx.mixed-0"] * 2


@pytest.mark.parametrize(
    ("change", "code", "whole"),
    [
        (lambda data: data[:70] + b"\xff" + data[71:], "transaction-state/damaged", False),
        (lambda data: data[:-1], None, True),
        (lambda data: data + bytes(5000), None, True),
        (lambda data: data + log([(b"\0\0", b"\0\1")])[:200], "transaction-state/record", False),
        (lambda data: data + log([(b"\0\7x", b"\0\1x")]), "transaction-state/newer", True),
        (lambda data: data + log([(key("c"), b"\0\x63rest")]), "transaction-state/newer", False),
        (lambda data: data + log([(key("c"), b"\0\1rest")]), "transaction-state/record", False),
    ],
    ids=["crc", "torn", "zeros", "key", "new-type", "new-version", "value"],
)  # fmt: skip
def test_what_can_be_decoded_is_decoded_and_the_rest_is_reported(tmp_path, change, code, whole):
    path = write(tmp_path, entry("a", "Ongoing", 1), entry("b", "Ongoing", 2))
    path.write_bytes(change(path.read_bytes()))
    (found,) = read_each([(path.parent, KAFKA)])
    names = {one.transactional_id for one in found.entries()}
    assert isinstance(found, CoordinatorLog)
    job = Done(Joining(logs=[found]), {})
    assert codes(job) == ([code] if code else [])
    assert found.is_whole is whole
    assert "b" in names or change(b"x") == b""
    assert all(f.path in (path, path.parent) for f in job.joining.findings())


def test_version_0_has_no_earlier_ids(tmp_path):
    path = write(tmp_path, entry("a", "Ongoing", 7, 3, version=0, partitions={"t": [1, 0]}))
    assert path.name == FIRST
    (found,) = read_each([(path.parent, KAFKA)])
    (one,) = found.entries()
    assert (one.producer_id, one.producer_epoch, one.previous_producer_id) == (7, 3, -1)
    assert one.partitions == {("t", 0), ("t", 1)}
