"""Producers and transactions, held against the replay of the local commands."""

from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from conftest import SCENARIOS
from staged_tables import Staged
from verification import batches as batches_of
from verification import log_dirs, logs

from logtool import data_dir
from logtool.formats import record_batch
from logtool.formats.names import DirectoryKind
from logtool.formats.record_batch import BatchTable
from logtool.open_transactions import State
from logtool.pipeline import questions
from logtool.pipeline.rows import Place, batch_rows
from logtool.transactions import CommittedTransaction, ProducerState, significant
from logtool.txns import Audit

pytestmark = pytest.mark.spark
NOW = 1_900_000_000_000
PLACE = Place("dir", 1, "orders", 0, "orders-0")
TRANSACTIONAL, CONTROL = 0x10, 0x30


@pytest.fixture(scope="module")
def homes(scenario):
    return [home for name in SCENARIOS for home in log_dirs(scenario(name))]


@pytest.fixture(scope="module")
def frames(spark, homes, tmp_path_factory):
    staged = Staged()
    for home in homes:
        staged.add(home)
    return staged.frames(spark, tmp_path_factory.mktemp("tables"))


def partitions(homes: list[Path]):
    """Yield the partition dirs that are not being deleted, with their batches."""
    for home in homes:
        for folder, directory in data_dir.read(home).partitions:
            if directory.kind is not DirectoryKind.DELETE:
                found = [batches_of(log) for log in logs(folder)]
                yield folder, record_batch.concat(found)


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


def test_transactions_are_those_of_the_local_replay(frames, homes):
    found = questions.transactions(frames["batches"])
    assert Staged.is_table(found, "transactions")
    told, counts = defaultdict(set), {}
    for row in found.collect():
        path = Path(row.log_dir) / row.directory
        told[path].add((row.producer_id, row.first_offset, row.last_offset, row.outcome))
        counts[path, row.producer_id, row.first_offset] = row
    for folder, table in partitions(homes):
        expected = replayed(table)
        assert told.get(folder, set()) == expected, folder
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
            assert row.last_timestamp_ms == known(table.max_timestamp[ends[-1]])
            assert row.coordinator_epoch == (
                None if outcome == "open" else table.coordinator_epoch[ends[-1]]
            )
    assert {row.outcome for row in counts.values()} == {"committed", "aborted", "open"}


def test_the_marker_of_a_transaction_of_version_2_has_the_epoch_behind_its_batches(frames, homes):
    found = {
        (str(Path(row.log_dir) / row.directory), row.producer_id, row.last_offset): row
        for row in questions.transactions(frames["batches"]).collect()
    }
    bumped = 0
    for folder, table in partitions(homes):
        for at in np.flatnonzero(table.is_control).tolist():
            key = str(folder), int(table.producer_id[at]), int(table.base_offset[at])
            if key in found:
                bumped += found[key].producer_epoch != table.producer_epoch[at]
    assert bumped > 0


def test_transactions_are_those_that_txns_tells(frames, homes):
    told = defaultdict(set)
    for row in questions.transactions(frames["batches"]).collect():
        last = None if row.outcome == "open" else row.last_offset
        told[str(Path(row.log_dir) / row.directory)].add(
            (row.producer_id, row.producer_epoch, row.first_offset, last, row.first_timestamp_ms)
        )
    names = {State.HANGING: "open"}
    seen = set()
    for one in Audit(homes, NOW):
        if one.topic is None or not one.transactions:
            continue
        expected = {
            (t.producer_id, t.producer_epoch, t.first_offset, t.last_offset, t.started_ms)
            for t in one.transactions
            if t.first_offset >= one.start_offset
        }
        assert told[str(one.path)] == expected
        seen |= {names.get(t.state, str(t.state)) for t in one.transactions}
    assert seen == {"open", "aborted", "committed"}


def test_producers_add_up_to_what_the_logs_hold(frames, homes):
    found = questions.producers(frames["batches"])
    assert Staged.is_table(found, "producers")
    told = defaultdict(dict)
    for row in found.collect():
        key = row.producer_id, row.producer_epoch
        told[Path(row.log_dir) / row.directory][key] = row
    seen = breaks = 0
    for folder, table in partitions(homes):
        data = table[(table.producer_id >= 0) & ~table.is_control]
        keys = set(zip(data.producer_id.tolist(), data.producer_epoch.tolist(), strict=True))
        assert set(told.get(folder, {})) == keys
        for key in keys:
            own = data[(data.producer_id == key[0]) & (data.producer_epoch == key[1])]
            row = told[folder][key]
            broken = own.base_sequence[1:] != (own.last_sequence[:-1] + 1) % 2**31
            first_ms = None if own.has_delete_horizon[0] else known(own.base_timestamp[0])
            assert (
                row.first_offset, row.last_offset, row.first_sequence, row.last_sequence,
                row.batches, row.records, row.first_timestamp_ms, row.last_timestamp_ms,
                row.sequence_breaks,
            ) == (
                own.base_offset[0], own.last_offset[-1], own.base_sequence[0],
                own.last_sequence[-1], len(own), own.record_count.sum(),
                first_ms, known(own.max_timestamp[-1]), broken.sum(),
            )  # fmt: skip
            seen, breaks = seen + 1, breaks + int(broken.sum())
    assert seen > 20


def known(value: int) -> int | None:
    return None if value == -1 else int(value)


def rows(*given: tuple[int, int, dict[str, int]]) -> pa.Table:
    """Return a table of batches of (base offset, last offset, other header fields)."""
    columns = {name: [] for name in BatchTable.__dataclass_fields__}
    usual = {"magic": 2, "size": 100, "crc": 7, "producer_id": 5, "producer_epoch": 0,
             "attributes": 0, "control_type": -1, "coordinator_epoch": -1}  # fmt: skip
    for number, (first, last, header) in enumerate(given):
        fields = {"position": 100 * number, "base_offset": first, "last_offset": last,
                  "record_count": last - first + 1, "base_sequence": first, "base_timestamp": first,
                  "max_timestamp": last, "leader_epoch": 0}  # fmt: skip
        for name, values in columns.items():
            values.append((usual | fields | header)[name])
    table = BatchTable(*(np.array(values, np.int64) for values in columns.values()))
    batch = batch_rows(PLACE, 0, table)
    schema = batch.schema.set(
        batch.schema.get_field_index("crc"), pa.field("crc", pa.int64())
    )  # fmt: skip
    return pa.Table.from_batches([batch.cast(schema)])


def test_sequences_go_on_with_0_behind_the_largest_and_everything_else_is_a_break(spark):
    end = 2**31 - 1
    table = rows(
        (0, 4, {"base_sequence": end - 4}),  # up to the largest
        (5, 9, {"base_sequence": 0}),
        (10, 14, {"base_sequence": 5}),
        (10, 14, {"base_sequence": 5}),  # the same once more
        (15, 19, {"base_sequence": 12}),  # some are missing
        (20, 24, {"base_sequence": 0, "producer_epoch": 1}),  # a new epoch begins anew
        (25, 29, {"base_sequence": end - 1, "producer_id": 6}),
        (30, 34, {"base_sequence": 3, "producer_id": 6}),  # wrapped inside a batch
        (35, 39, {"producer_id": -1, "producer_epoch": -1, "base_sequence": -1}),
    )  # fmt: skip
    found = questions.producers(spark.createDataFrame(table)).collect()
    assert sorted((r.producer_id, r.producer_epoch, r.sequence_breaks) for r in found) == [
        (5, 0, 2), (5, 1, 0), (6, 0, 0),
    ]  # fmt: skip


def test_a_marker_without_batches_has_no_row_and_one_that_was_emptied_ends_nothing(spark):
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
    found = questions.transactions(spark.createDataFrame(table)).collect()
    assert sorted(
        (r.producer_id, r.producer_epoch, r.first_offset, r.last_offset, r.outcome, r.batches,
         r.records, r.coordinator_epoch) for r in found
    ) == [
        (5, 0, 1, 3, "committed", 1, 2, 3), (5, 0, 5, 10, "aborted", 2, 4, 3),
        (5, 1, 15, 16, "open", 1, 2, None), (6, 0, 13, 14, "open", 1, 2, None),
    ]  # fmt: skip
