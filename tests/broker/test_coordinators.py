"""`txns` on the disks of killed brokers agrees with their transaction coordinator.

It finds the same hanging transactions as Kafka's tool, and the commands that it prints abort them.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from broker import protocol
from broker.cluster import Cluster
from broker.command import Object, objects, of_type
from broker.conftest import runnable
from broker.install import KAFKA_4, HarnessError
from broker.kafka import run_tool
from broker.topics import Topic

pytestmark = pytest.mark.broker

COORDINATOR, OTHER = 1, 2
STATE = Topic("__transaction_state", "its own", replicas=(COORDINATOR,))
HERE = Topic("on-the-coordinator", "markers are written there", replicas=(COORDINATOR,))
THERE = Topic("elsewhere", "its leader is suspended", replicas=(OTHER,))
CONFIG = {
    "transaction.state.log.num.partitions": "1",
    "auto.leader.rebalance.enable": "false",
    # As before 4.0: a leader accepts batches that the coordinator does not know.
    "transaction.partition.verification.enable": "false",
    # A coordinator of 4.3.1 waits this long for a suspended leader, and then notes the transaction
    # as complete although the log of this leader has no marker. No test takes an hour.
    "request.timeout.ms": "3600000",
    # Kafka's default. A leader that is fenced before the coordinator has decided gets no marker.
    "broker.session.timeout.ms": "9000",
}
# The tool may ask the suspended broker for the coordinator; it soon asks the other broker.
PATIENCE = "request.timeout.ms=5000\ndefault.api.timeout.ms=90000\n"


def codes_of(said: list[Object]) -> list[str]:
    return [one["code"] for one in of_type(said, "finding")]


def transactions(bootstrap: str, *arguments: str) -> list[dict[str, str]]:
    """Return the rows that ``kafka-transactions.sh`` prints, by their titles."""
    tool = "org.apache.kafka.tools.TransactionsCommand"
    shown = run_tool(KAFKA_4, tool, "--bootstrap-server", bootstrap, *arguments)
    titles, *rows = [line.split() for line in shown.splitlines() if line.strip()]
    return [dict(zip(titles, row, strict=False)) for row in rows]


def described(bootstrap: str, name: str, patience: Path) -> dict[str, str]:
    given = ("--command-config", str(patience))
    (row,) = transactions(bootstrap, *given, "describe", "--transactional-id", name)
    return row


def abort(cluster: Cluster, transaction: Object) -> None:
    """Run the command that logtool printed for a transaction."""
    script, _, _, *words = shlex.split(str(transaction["abort"]))
    assert script == "kafka-transactions.sh"
    tool = "org.apache.kafka.tools.TransactionsCommand"
    run_tool(KAFKA_4, tool, "--bootstrap-server", cluster.bootstrap(COORDINATOR), *words)


def wait_for_state(cluster: Cluster, name: str, state: str, committed: int = 0) -> Object:
    """Wait for a state of a transactional id on the coordinator's disk; return its object."""
    from broker import workloads

    seen: list[Object] = []

    def there() -> bool:
        words = ("txns", "--all", cluster.log_dir(COORDINATOR))
        found = of_type(objects(*words, statuses=(0, 1, 4)), "coordinator")
        seen[:] = [one for one in found if one["transactional_id"] == name]
        return any((one["state"], one["committed"]) == (state, committed) for one in seen)

    try:
        workloads.wait_for(there, 120, f"{name} to be in {state}")
    except HarnessError as error:
        raise HarnessError(f"{error}; its coordinator's disk says {seen}") from error
    (found,) = seen
    return found


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    own = {COORDINATOR: {}, OTHER: {}}
    with Cluster(runnable(KAFKA_4), tmp_path / "live", [OTHER], CONFIG, own) as made:
        made.start()
        yield made


def leave_a_fenced_producers_batch(cluster: Cluster) -> None:
    """Have a producer write to a partition after another producer took its transactional id."""
    from broker import workloads

    at = cluster.bootstrap(COORDINATOR)
    first = workloads.transactional(at, "fenced")
    first.producer.begin_transaction()
    first.batch(HERE.name, workloads.messages("fenced", 5, workloads.now_ms()))
    known = wait_for_state(cluster, "fenced", "Ongoing")
    workloads.transactional(at, "fenced")  # aborts it
    bumped = wait_for_state(cluster, "fenced", "Empty")
    assert bumped["producer_id"] == known["producer_id"]
    assert bumped["producer_epoch"] > known["producer_epoch"]
    protocol.produce(cluster.bootstrap(OTHER), THERE.name, "fenced", protocol.batch_of(known))


def have_a_marker_refused(cluster: Cluster) -> None:
    """Have a coordinator decide on a transaction whose partition knows a newer epoch."""
    from broker import workloads

    writer = workloads.transactional(cluster.bootstrap(COORDINATOR), "refused")
    writer.producer.begin_transaction()
    writer.batch(HERE.name, workloads.messages("refused", 5, workloads.now_ms()))
    known = wait_for_state(cluster, "refused", "Ongoing")
    at = cluster.bootstrap(COORDINATOR)
    protocol.produce(at, HERE.name, "refused", protocol.batch_of(known, newer=1))
    writer.producer.commit_transaction(30)


@pytest.fixture
def described_states(cluster: Cluster) -> dict[str, dict[str, str]]:
    """Lead transactions into every state, with one leader suspended; return the tool's rows.

    Afterwards both brokers are suspended.
    """
    # Imported here: without confluent-kafka these tests are skipped.
    from broker import workloads

    at = cluster.bootstrap(COORDINATOR)
    workloads.create_topics(at, KAFKA_4, [STATE, HERE, THERE])
    writers = {}
    for name in ("done", "commits", "in version 2", "aborts", "goes on"):
        writer = writers[name] = workloads.transactional(at, name.replace(" ", "-"))
        writer.producer.begin_transaction()
        for topic in (HERE, THERE) if name != "aborts" else (THERE,):
            writer.batch(topic.name, workloads.messages(name, 5, workloads.now_ms()))
        if name == "done":
            writer.producer.commit_transaction(30)
    wait_for_state(cluster, "done", "CompleteCommit")
    leave_a_fenced_producers_batch(cluster)
    have_a_marker_refused(cluster)
    known = wait_for_state(cluster, "in-version-2", "Ongoing")
    cluster.pause(OTHER)
    # The coordinator answers after its decision, before it writes the markers.
    writers["commits"].producer.commit_transaction(30)
    writers["aborts"].producer.abort_transaction(30)
    producer = known["producer_id"], known["producer_epoch"]
    protocol.commit_in_version_2(at, "in-version-2", *producer)
    names = [name.replace(" ", "-") for name in writers]
    patience = cluster.root / "patience.properties"
    patience.write_text(PATIENCE)
    with ThreadPoolExecutor(2) as pool:
        rows = list(pool.map(lambda name: described(at, name, patience), names))
    for name in ("commits", "in-version-2"):
        wait_for_state(cluster, name, "PrepareCommit", 1)
    cluster.pause(COORDINATOR)
    return dict(zip(names, rows, strict=True))


def test_txns_shows_the_states_that_the_coordinator_had(
    cluster: Cluster, described_states: dict[str, dict[str, str]], tmp_path: Path
) -> None:
    cluster.kill()
    homes = [cluster.log_dir(node) for node in (COORDINATOR, OTHER)]
    said = objects("txns", "--all", *homes, statuses=(1,))
    assert codes_of(said) == ["transaction-state/marker-refused"]

    found = {str(one["transactional_id"]): one for one in of_type(said, "coordinator")}
    assert {name: one["state"] for name, one in found.items()} == {
        "done": "CompleteCommit", "commits": "PrepareCommit", "aborts": "PrepareAbort",
        "goes-on": "Ongoing", "in-version-2": "PrepareCommit", "fenced": "Empty",
        "refused": "PrepareCommit",
    }  # fmt: skip
    for name, row in described_states.items():
        one = found[name]
        assert (str(one["state"]), str(one["producer_id"]), str(one["producer_epoch"])) == (
            row["TransactionState"], row["ProducerId"], row["ProducerEpoch"],
        )  # fmt: skip
        assert str(one["timeout_ms"]) == row["TransactionTimeoutMs"]
    parts = {
        name: {part["topic"]: part["state"] for part in one["partitions"]}
        for name, one in found.items()
    }
    assert parts == {
        "done": {},
        "commits": {HERE.name: "committed", THERE.name: "open"},
        "aborts": {THERE.name: "open"},
        "in-version-2": {HERE.name: "committed", THERE.name: "open"},
        "goes-on": {HERE.name: "open", THERE.name: "open"},
        "fenced": {},
        "refused": {HERE.name: "open"},
    }
    versions = {name: one["transaction_version"] for name, one in found.items()}
    assert versions["in-version-2"] == 2 > max(versions[name] for name in ("commits", "aborts"))
    open_ones = [one for one in of_type(said, "transaction") if one["state"] == "open"]
    stuck = {found[name]["producer_id"]: name for name in ("refused", "fenced")}
    ends = [one for one in open_ones if one["producer_id"] not in stuck]
    assert len(ends) == 5
    assert all(one["abort"] is None and one["advice"] for one in ends)
    hang = {stuck[one["producer_id"]]: one for one in open_ones if one not in ends}
    hangs = hang["fenced"]
    assert (hangs["topic"], hangs["advice"]) == (THERE.name, None)
    assert hangs["coordinator"]["relation"] == "not-listed"
    said = objects("txns", "--now", later(), *homes, statuses=(1,))
    assert codes_of(said) == ["transaction-state/abandoned", "transaction-state/marker-refused"]
    again = [one for one in of_type(said, "transaction") if one["state"] == "hanging"]
    assert {one["abort"] for one in hang.values()} == {None}
    assert {one["producer_id"] for one in again} == {one["producer_id"] for one in hang.values()}
    end_as_predicted(cluster, again)
    hang_without_their_coordinator(cluster)


def later() -> int:
    """Return a time at which every transaction of now has exceeded its timeout."""
    from broker import workloads

    return workloads.now_ms() + 16 * 60_000


def end_as_predicted(cluster: Cluster, hang: list[Object]) -> None:
    """Start the brokers, wait for the waiting transactions and abort the hanging ones."""
    cluster.start()
    wait_until_it_leads(cluster)
    with ThreadPoolExecutor(2) as pool:
        aborted = [pool.submit(abort, cluster, one) for one in hang]
        for name in ("commits", "in-version-2"):
            wait_for_state(cluster, name, "CompleteCommit")
        wait_for_state(cluster, "aborts", "CompleteAbort")
        for one in aborted:
            one.result()
    cluster.kill()
    homes = [cluster.log_dir(node) for node in (COORDINATOR, OTHER)]
    ended = of_type(objects("txns", "--all", *homes), "transaction")
    now_aborted = {
        (one["topic"], one["producer_id"], one["first_offset"])
        for one in ended
        if one["state"] == "aborted"
    }
    assert now_aborted >= {(one["topic"], one["producer_id"], one["first_offset"]) for one in hang}
    left = {one["coordinator"]["transactional_id"] for one in ended if one["state"] == "open"}
    # A coordinator that loads before it knows the leaders may note a transaction as complete
    # without a marker, even if the marker would be refused.
    assert "goes-on" in left
    assert not left & {"refused", "fenced"}


def wait_until_it_leads(cluster: Cluster) -> None:
    """Wait until the coordinator knows that the other broker leads again."""
    from broker import workloads

    workloads.wait_for(
        lambda: cluster.leadership(COORDINATOR, [THERE.name])[THERE.name][0] == OTHER,
        60, "the other broker to lead",
    )  # fmt: skip


def hang_without_their_coordinator(cluster: Cluster) -> None:
    """Remove the content of ``__transaction_state``, so no coordinator ends open transactions.

    Without checkpoints nothing shows that the content is lost, which would leave the answer open.
    """
    home = cluster.log_dir(COORDINATOR)
    for log in home.glob("__transaction_state-0/*"):
        if log.suffix in (".log", ".snapshot"):
            log.unlink()
    for name in ("recovery-point", "replication"):
        (home / f"{name}-offset-checkpoint").unlink()
    cluster.start()
    wait_until_it_leads(cluster)
    at = cluster.bootstrap(COORDINATOR)
    asked = ("find-hanging", "--max-transaction-timeout", "0", "--topic")
    with ThreadPoolExecutor(2) as pool:
        rows = list(pool.map(lambda topic: transactions(at, *asked, topic.name), (HERE, THERE)))
    homes = [cluster.log_dir(node) for node in (COORDINATOR, OTHER)]
    said = objects("txns", "--now", later(), *homes, statuses=(1,))
    ones = [one for one in of_type(said, "transaction") if one["state"] == "hanging"]
    hanging = {(one["topic"], str(one["producer_id"]), str(one["first_offset"])) for one in ones}
    assert hanging == {
        (row["Topic"], row["ProducerId"], row["StartOffset"]) for one in rows for row in one
    }
    assert len(hanging) >= 2
    assert codes_of(said) == ["transaction-state/abandoned"] * len(hanging)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda one: abort(cluster, one), ones))
    cluster.kill()
    said = objects("txns", "--now", later(), *homes, statuses=(0,))
    assert all(one["open"] == 0 for one in of_type(said, "partition"))
