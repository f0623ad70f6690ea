"""Producers and transactions, compared with the replay of the local commands."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import SCENARIOS
from hypothesis import given
from hypothesis import strategies as st
from staged_tables import answers
from verification import batches as batches_of
from verification import log_dirs, logs

from logtool.formats import record_batch
from logtool.formats.names import DirectoryKind
from logtool.formats.record_batch import BatchTable
from logtool.log import opening
from logtool.log.chunk import Chunk
from logtool.log.producer_state import CommittedTransaction, ProducerState, significant
from logtool.spark.questions.producer_rows import (
    ProducerRows,
    joined,
    producers,
    producers_of,
    transactions,
    transactions_of,
)
from logtool.spark.segment_totals import SegmentTotals
from logtool.txns.open_transactions import TransactionState
from logtool.txns.run import TransactionsRun

NOW = 1_900_000_000_000
TRANSACTIONAL, CONTROL = 0x10, 0x30


@pytest.fixture(scope="module")
def homes(scenario):
    return [home for name in SCENARIOS for home in log_dirs(scenario(name))]


@pytest.fixture(
    scope="module",
    params=[False, pytest.param(True, marks=pytest.mark.long)],
    ids=["whole", "in pieces"],
)
def asked(homes, tmp_path_factory, request):
    """Return the rows of the tables."""
    work = tmp_path_factory.mktemp("tables")
    found = answers(homes, ["producers", "transactions"], work, cut=request.param)
    return {name: [SimpleNamespace(**row) for row in rows] for name, rows in found.items()}


@pytest.fixture(scope="module")
def partitions(homes):
    """Return the partition dirs that are not being deleted, with their batches."""
    return [
        (folder, record_batch.concat([batches_of(log) for log in logs(folder)]))
        for home in homes
        for folder, directory in opening.open_log_dir(home).partitions
        if directory.kind is not DirectoryKind.DELETE
    ]


def replayed(table: BatchTable) -> set[tuple]:
    """Return (producer, first, last, outcome) as the replay of the local commands has them."""
    committed: list[CommittedTransaction] = []
    state = ProducerState(committed=committed)
    aborted, _ = state.apply(significant(table))
    found = {(one.producer_id, one.first_offset, one.last_offset, outcome)
             for outcome, ones in (("aborted", aborted), ("committed", committed))
             for one in ones}  # fmt: skip
    for producer_id, one in state.producers.items():
        first = one.transaction_first_offset
        if first >= 0:
            own = (table.producer_id == producer_id) & table.is_transactional
            own &= ~table.is_control & (table.base_offset >= first)
            found.add((producer_id, first, int(table.last_offset[own].max()), "open"))
    return found


def test_transactions_are_those_of_the_local_replay(asked, partitions):
    listed, counts = defaultdict(set), {}
    for row in asked["transactions"]:
        path = Path(row.log_dir) / row.directory
        listed[path].add((row.producer_id, row.first_offset, row.last_offset, row.outcome))
        counts[path, row.producer_id, row.first_offset] = row
    for folder, table in partitions:
        expected = replayed(table)
        assert listed.get(folder, set()) == expected, folder
        for producer_id, first, last, outcome in expected:
            row = counts[folder, producer_id, first]
            own = (table.producer_id == producer_id) & ~table.is_control
            own &= (table.base_offset >= first) & (table.last_offset <= last)
            own &= table.is_transactional
            assert row.batches == own.sum()
            assert row.records == table.record_count[own].sum()
            assert row.producer_epoch == table.producer_epoch[own][0]
            marker = table.is_control & (table.base_offset == last)
            ends = np.flatnonzero(own if outcome == "open" else marker)
            assert row.first_timestamp_ms == times(table[own])[0]
            assert row.last_timestamp_ms == times(table[own | marker])[1]
            assert row.coordinator_epoch == (
                None if outcome == "open" else table.coordinator_epoch[ends[-1]]
            )
    assert {row.outcome for row in counts.values()} == {"committed", "aborted", "open"}


def test_the_marker_of_a_transaction_of_version_2_has_the_epoch_behind_its_batches(
    asked, partitions
):
    found = {
        (str(Path(row.log_dir) / row.directory), row.producer_id, row.last_offset): row
        for row in asked["transactions"]
    }
    bumped = 0
    for folder, table in partitions:
        for at in np.flatnonzero(table.is_control).tolist():
            key = str(folder), int(table.producer_id[at]), int(table.base_offset[at])
            if key in found:
                bumped += found[key].producer_epoch != table.producer_epoch[at]
    assert bumped > 0


def test_transactions_are_those_of_txns(asked, homes):
    listed = defaultdict(set)
    for row in asked["transactions"]:
        listed[str(Path(row.log_dir) / row.directory)].add(
            (row.producer_id, row.producer_epoch, row.first_offset, row.last_offset)
        )
    names = {TransactionState.HANGING: "open"}
    seen = set()
    for one in TransactionsRun(homes, NOW):
        if one.topic is None or not one.transactions:
            continue
        expected = {
            (t.producer_id, t.producer_epoch, t.first_offset, t.last_offset)
            for t in one.transactions
            if t.first_offset >= one.start_offset
        }
        assert listed[str(one.path)] == expected
        seen |= {names.get(t.state, str(t.state)) for t in one.transactions}
    assert seen == {"open", "aborted", "committed"}


def test_producers_add_up_to_what_the_logs_hold(asked, partitions):
    listed = defaultdict(dict)
    for row in asked["producers"]:
        key = row.producer_id, row.producer_epoch
        listed[Path(row.log_dir) / row.directory][key] = row
    seen = breaks = 0
    for folder, table in partitions:
        data = table[(table.producer_id >= 0) & ~table.is_control]
        keys = set(zip(data.producer_id.tolist(), data.producer_epoch.tolist(), strict=True))
        assert set(listed.get(folder, {})) == keys
        for key in keys:
            own = data[(data.producer_id == key[0]) & (data.producer_epoch == key[1])]
            row = listed[folder][key]
            broken = own.base_sequence[1:] != (own.last_sequence[:-1] + 1) % 2**31
            assert (
                row.first_offset, row.last_offset, row.first_sequence, row.last_sequence,
                row.batches, row.records, row.first_timestamp_ms, row.last_timestamp_ms,
                row.sequence_breaks,
            ) == (
                own.base_offset[0], own.last_offset[-1], own.base_sequence[0],
                own.last_sequence[-1], len(own), own.record_count.sum(),
                *times(own), broken.sum(),
            )  # fmt: skip
            seen, breaks = seen + 1, breaks + int(broken.sum())
    assert seen > 20


def times(table: BatchTable) -> tuple[int | None, int | None]:
    """Return the least and the largest time of batches, as the table ``segments`` has it."""
    totals = SegmentTotals()
    totals.count(Chunk(table, memoryview(b""), 0, None, []), active=False)
    return totals.first_timestamp_ms, totals.last_timestamp_ms


def rows(*given: tuple[int, int, dict[str, int]]) -> BatchTable:
    """Return a table of batches of (base offset, last offset, other header fields)."""
    columns = {name: [] for name in BatchTable.__dataclass_fields__}
    usual = {"magic": 2, "size": 100, "crc": 7, "producer_id": 5, "producer_epoch": 0,
             "attributes": 0, "batch_type": -1, "control_type": -1,
             "coordinator_epoch": -1}  # fmt: skip
    for number, (first, last, header) in enumerate(given):
        fields = {"position": 100 * number, "base_offset": first, "last_offset": last,
                  "record_count": last - first + 1, "base_sequence": first, "base_timestamp": first,
                  "max_timestamp": last, "leader_epoch": 0}  # fmt: skip
        for name, values in columns.items():
            values.append((usual | fields | header)[name])
    return BatchTable(*(np.array(values, np.int64) for values in columns.values()))


def summed(table: BatchTable, cuts: Sequence[int] = ()) -> tuple[list, list]:
    """Return the rows of both sums, of stretches that end at the cuts."""
    edges = [0, *sorted(cuts), len(table)]
    found = []
    for start, stop in pairwise(edges):
        one = ProducerRows()
        one.add_data(table[start:stop])
        one.add_transactions(table[start:stop])
        found.append(one.finish())

    def added(add: Callable[[Any], Any], parts: list[Any]) -> list:
        columns = add(joined(parts)) if parts else ()
        return list(zip(*(column.tolist() for column in columns), strict=True))

    return (
        added(producers, [one for one, _ in found if one]),
        added(transactions, [one for _, one in found if one]),
    )


def test_sequences_go_on_with_0_behind_the_largest_and_everything_else_is_a_break():
    end = 2**31 - 1
    table = rows(
        (0, 4, {"base_sequence": end - 4}),  # up to the largest
        (5, 9, {"base_sequence": 0}),
        (10, 14, {"base_sequence": 5}),
        (10, 14, {"base_sequence": 5}),  # the same once more
        (15, 19, {"base_sequence": 12}),  # some are missing
        (20, 24, {"base_sequence": 0, "producer_epoch": 1}),  # a new epoch begins at 0
        (25, 29, {"base_sequence": end - 1, "producer_id": 6}),
        (30, 34, {"base_sequence": 3, "producer_id": 6}),  # wrapped inside a batch
        (35, 39, {"producer_id": -1, "producer_epoch": -1, "base_sequence": -1}),
    )  # fmt: skip
    found = producers_of(table)
    listed = zip(found.producer_id, found.producer_epoch, found.sequence_breaks, strict=True)
    assert list(listed) == [(5, 0, 2), (5, 1, 0), (6, 0, 0)]


def test_a_marker_without_batches_has_no_row_and_one_that_was_emptied_ends_nothing():
    marker = {"attributes": CONTROL, "base_sequence": -1, "record_count": 1, "control_type": 1,
              "coordinator_epoch": 3}  # fmt: skip
    data = {"attributes": TRANSACTIONAL}
    table = rows(
        (0, 0, marker),  # its batches are gone
        (1, 2, data), (3, 3, marker), (4, 4, marker),  # twice
        (5, 6, data), (7, 7, marker | {"control_type": -1, "record_count": 0}), (8, 9, data),
        (10, 10, marker | {"control_type": 0, "producer_epoch": 1}),
        (11, 12, {}),  # outside of any
        (13, 14, data | {"producer_id": 6}), (15, 16, data | {"producer_epoch": 1}),
    )  # fmt: skip
    found = transactions_of(table)
    listed = [
        (producer, epoch, first, marker if kind >= 0 else last, kind, count, records, coordinator)
        for producer, epoch, first, last, count, records, kind, marker, coordinator in zip(
            found.producer_id, found.producer_epoch, found.first_offset, found.last_offset,
            found.batches, found.records, found.marker, found.marker_offset,
            found.coordinator_epoch, strict=True,
        ) if count
    ]  # fmt: skip
    assert sorted(listed) == [
        (5, 0, 1, 3, 1, 1, 2, 3), (5, 0, 5, 10, 0, 2, 4, 3), (5, 1, 15, 16, -1, 1, 2, -1),
        (6, 0, 13, 14, -1, 1, 2, -1),
    ]  # fmt: skip


BATCH = st.tuples(
    st.integers(0, 2), st.integers(0, 1), st.integers(0, 3),
    st.sampled_from([0, 0, TRANSACTIONAL, TRANSACTIONAL, CONTROL]), st.sampled_from([-1, 0, 1]),
)  # fmt: skip


@given(batches=st.lists(BATCH, min_size=1, max_size=20), cuts=st.lists(st.integers(0, 20)))
def test_stretches_that_end_anywhere_add_up_to_the_whole(batches, cuts):
    table = rows(*(
        (10 * at, 10 * at + size, {
            "producer_id": producer, "producer_epoch": epoch, "attributes": attributes,
            "control_type": kind if attributes == CONTROL else -1,
        })
        for at, (producer, epoch, size, attributes, kind) in enumerate(batches)
    ))  # fmt: skip
    assert summed(table, [min(cut, len(table)) for cut in cuts]) == summed(table)
