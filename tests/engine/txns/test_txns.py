"""Producers and transactions of logs that brokers wrote, held against their other files."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from damage import copied

from logtool.disk.files import LogFile
from logtool.errors import UnreadableError
from logtool.formats import producer_snapshot, transaction_index
from logtool.formats.names import DirectoryKind
from logtool.log import opening
from logtool.log.batches import read_batches
from logtool.log.selection import Selection
from logtool.txns.open_transactions import (
    MAX_AGE_MS,
    TransactionState,
    abort_command,
    terminate_command,
)
from logtool.txns.run import TransactionsRun

NOW = 1_900_000_000_000
TX_TOPICS = ("tx.mixed", "tx-interleaved_v2", "java-tx")
SCENARIOS = [
    f"{version}/{name}"
    for version in ("3.9.2", "4.3.1")
    for name in ("clean", "killed", "java-clients")
]
_BATCH = re.compile(
    rb"^baseOffset: (\d+) lastOffset: \d+ .* producerId: (-?\d+) .*isTransactional: (\w+) "
    rb"isControl: (\w+)",
    re.MULTILINE,
)
_MARKER = re.compile(rb"^\| offset: (\d+) .*endTxnMarker: (\w+)", re.MULTILINE)


def audited(*paths: Path, now_ms: int = NOW, **more) -> dict:
    found = list(TransactionsRun(paths, now_ms, **more))
    assert not [one for one in found if isinstance(one, UnreadableError)]
    return {one.path.name: one for one in found}


def transactional_dirs(log_dir: Path) -> list[str]:
    return [
        path.name
        for path, directory in opening.open_log_dir(log_dir).partitions
        if directory.topic in TX_TOPICS and directory.kind is DirectoryKind.LIVE
    ]


def dumped(folder: Path) -> tuple[set, set, set]:
    """Return (producer, first, last) of aborted and committed, (producer, first) of open ones, as
    the batches in Kafka's own dump show."""
    still, ended = {}, {b"ABORT": set(), b"COMMIT": set()}
    for file in sorted(folder.glob("*.log.txt")):
        text = file.read_bytes()
        markers = {int(offset): kind for offset, kind in _MARKER.findall(text)}
        for offset, producer, is_transactional, is_control in _BATCH.findall(text):
            if is_control == b"true":
                first = still.pop(int(producer), None)
                if first is not None:
                    ended[markers[int(offset)]].add((int(producer), first, int(offset)))
            elif is_transactional == b"true":
                still.setdefault(int(producer), int(offset))
    return ended[b"ABORT"], ended[b"COMMIT"], set(still.items())


def ended(one, state: TransactionState) -> set:
    return {(t.producer_id, t.first_offset, t.last_offset)
            for t in one.transactions if t.state is state}  # fmt: skip


@pytest.mark.parametrize("name", SCENARIOS)
def test_transactions_are_those_of_the_batches_that_kafka_dumps(scenario, name):
    log_dir = scenario(name)
    found = audited(log_dir)
    seen = set()
    for folder in transactional_dirs(log_dir):
        one = found[folder]
        aborted, committed, still = dumped(scenario(f"{name}.expected") / "records" / folder)
        assert ended(one, TransactionState.ABORTED) == aborted
        assert ended(one, TransactionState.COMMITTED) == committed
        assert {(t.producer_id, t.first_offset) for t in one.open} == still
        expected = min((first for _, first in still), default=one.end_offset)
        assert one.last_stable_offset == expected
        assert [t.pins for t in one.open] == [True, *[False] * (len(still) - 1)][: len(still)]
        seen |= {bool(aborted), bool(committed), bool(still)}
    assert True in seen


@pytest.mark.parametrize("name", SCENARIOS)
def test_aborted_ones_are_those_of_the_transaction_indexes(scenario, name):
    log_dir = scenario(name)
    found = audited(log_dir)
    for folder in transactional_dirs(log_dir):
        entries = set()
        for file in (log_dir / folder).glob("*.txnindex"):
            index = transaction_index.parse(file.read_bytes())
            columns = index.producer_ids, index.first_offsets, index.last_offsets
            entries |= set(zip(*(column.tolist() for column in columns), strict=True))
        assert ended(found[folder], TransactionState.ABORTED) == entries


@pytest.mark.parametrize("name", ["3.9.2/clean", "4.3.1/clean"])
def test_producers_are_those_that_a_broker_saved_when_it_stopped(scenario, name):
    log_dir = scenario(name)
    compared = 0
    for folder, one in audited(log_dir).items():
        file = log_dir / folder / f"{one.end_offset:020d}.snapshot"
        # A cleaned log may have lost the marker that a snapshot remembers.
        if not file.exists() or folder.startswith("compacted"):
            continue
        saved = {
            row[0]: tuple(row)[1:]
            for row in producer_snapshot.parse(file.read_bytes()).entries.tolist()
        }
        replayed = {
            producer_id: (p.epoch, p.last_sequence, p.last_offset, p.offset_delta, p.timestamp,
                          p.coordinator_epoch, p.transaction_first_offset)
            for producer_id, p in one.producers.items()
        }  # fmt: skip
        assert replayed == saved
        compared += len(saved)
    assert compared > 8


def test_a_log_with_nothing_transactional_is_stable_up_to_its_end(scenario):
    one = audited(scenario("4.3.1/clean") / "codec-lz4-0")["codec-lz4-0"]
    assert (one.open, one.producers, one.damaged) == ([], {}, False)
    assert one.last_stable_offset == one.end_offset == one.high_watermark == 300


@pytest.mark.parametrize(
    ("after", "state"), [(0, TransactionState.OPEN), (1, TransactionState.UNKNOWN)]
)
def test_an_open_transaction_hangs_once_its_first_record_is_older_than_allowed(
    scenario, tmp_path, after, state
):
    # Alone, without coordinators next to it.
    folder = copied(scenario("4.3.1/killed") / "tx.mixed-0", tmp_path / "alone" / "tx.mixed-0")
    begun = audited(folder)["tx.mixed-0"].open[0].started_ms
    now = begun + MAX_AGE_MS + after
    oldest = audited(folder, now_ms=now)["tx.mixed-0"].open[0]
    assert (oldest.state, oldest.age_ms, oldest.pins) == (state, MAX_AGE_MS + after, True)


def test_a_selection_and_a_partition_dir_give_the_same(copy_of):
    log_dir = copy_of("4.3.1/killed")
    for coordinators in log_dir.glob("__transaction_state-*"):
        shutil.rmtree(coordinators)
    chosen = audited(log_dir, selection=Selection(("tx-inter*",), partitions=(1,)))
    assert chosen == audited(log_dir / "tx-interleaved_v2-1")


def test_a_single_log_is_judged_by_itself_and_by_the_snapshot_at_its_start(scenario):
    folder = scenario("4.3.1/clean") / "tx.mixed-0"
    (last,) = audited(folder / f"{416:020d}.log").values()
    assert (last.start_offset, last.last_stable_offset) == (416, 416)
    assert [t.first_offset for t in last.open] == [336, 351]
    assert last.open[0].started_ms is None
    (first,) = audited(folder / f"{0:020d}.log").values()
    assert (first.end_offset, first.findings) == (140, [])


def test_what_retention_took_is_known_from_the_newest_snapshot(copy_of):
    folder = copy_of("4.3.1/clean") / "tx.mixed-0"
    whole = audited(folder)["tx.mixed-0"]
    for file in folder.iterdir():
        if file.name.split(".")[0].isdigit() and int(file.name.split(".")[0]) < 416:
            file.unlink()
    one = audited(folder)["tx.mixed-0"]
    assert [t.first_offset for t in one.open] == [t.first_offset for t in whole.open] == [336, 351]
    assert one.producers == whole.producers
    assert one.last_stable_offset == one.start_offset == 416


def test_damage_may_hide_a_marker_and_that_is_said(copy_of):
    folder = copy_of("4.3.1/clean") / "tx-interleaved_v2-0"
    log = folder / f"{0:020d}.log"
    before = audited(folder)["tx-interleaved_v2-0"]
    marker = max(t.last_offset for t in before.transactions if t.state is TransactionState.ABORTED)
    with LogFile(log) as file:
        table = np.concatenate([
            np.stack([c.table.position, c.table.base_offset, c.table.size])
            for c in read_batches(file, base_offset=0)
        ], axis=1)  # fmt: skip
    position, _, size = table[:, table[1] == marker][:, 0].tolist()
    data = bytearray(log.read_bytes())
    data[position + size - 1] ^= 1
    log.write_bytes(data)
    after = audited(folder)["tx-interleaved_v2-0"]
    assert after.damaged
    assert not before.damaged
    assert len(after.open) == len(before.open) + 1


def test_a_snapshot_that_contradicts_the_log_is_a_finding(copy_of):
    folder = copy_of("4.3.1/clean") / "tx.mixed-0"
    file = folder / f"{486:020d}.snapshot"
    entries = producer_snapshot.parse(file.read_bytes()).entries.copy()
    entries["current_txn_first_offset"] = -1
    file.write_bytes(producer_snapshot.encode(producer_snapshot.build(entries)))
    one = audited(folder)["tx.mixed-0"]
    assert {f.code for f in one.findings} == {"producer-snapshot/mismatch"}
    assert [t.first_offset for t in one.open] == [336, 351]


def test_a_damaged_snapshot_is_a_finding_and_an_older_one_is_believed(copy_of):
    folder = copy_of("4.3.1/clean") / "tx.mixed-0"
    file = folder / f"{486:020d}.snapshot"
    file.write_bytes(file.read_bytes()[:-1])
    one = audited(folder / f"{416:020d}.log")["tx.mixed-0"]
    assert "producer-snapshot/count" in {f.code for f in one.findings}
    assert [t.first_offset for t in one.open] == [336, 351]


def test_what_cannot_be_read_is_said_and_the_rest_is_looked_at(scenario, tmp_path):
    folder = scenario("4.3.1/clean") / "tx.mixed-0"
    found = list(TransactionsRun([tmp_path / "none", folder / "partition.metadata", folder], NOW))
    assert [type(one).__name__ for one in found] == [
        "UnreadableError", "UnreadableError", "PartitionTransactions",
    ]  # fmt: skip
    assert found[1].path == folder / "partition.metadata"


def test_the_command_is_safe_for_a_shell():
    assert abort_command("a:1", "orders", 3, 9) == (
        "kafka-transactions.sh --bootstrap-server a:1 abort --topic orders --partition 3 "
        "--start-offset 9"
    )
    assert "'a b'" in abort_command("a b", "orders", 3, 9)
    assert terminate_command("a b", "-x y").endswith("--transactionalId='-x y'")
