"""The replay of producers: the few rows kept of a segment give the state of all rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logtool.formats import record_batch
from logtool.formats.control_record import ABORT, COMMIT
from logtool.formats.record_batch import HEADER, BatchTable
from logtool.log import producer_state
from logtool.log.producer_state import AbortedTransaction, Producer, ProducerState

DATA, TRANSACTIONAL, MARKER = 0, 0x10, 0x30
EMPTY = -2
"""In place of a control type: a data batch that compaction left without records."""


def table(*rows: tuple) -> BatchTable:
    """Return batches of two offsets each: (producer id, epoch, attributes, control type)."""
    headers = np.zeros(len(rows), HEADER)
    for number, (producer_id, epoch, attributes, kind) in enumerate(rows):
        headers[number] = (
            number * 2, 100, 0, 2, 0, attributes, 1, 1000 + number, 1000 + number, producer_id,
            epoch, number * 2 if producer_id >= 0 else -1, 0 if kind == EMPTY else 2,
        )  # fmt: skip
    made = record_batch.from_headers(headers, np.arange(len(rows), dtype=np.int64) * 112)
    made.control_type[:] = [max(kind, -1) for *_, kind in rows]
    return made


def replayed(rows: BatchTable) -> tuple:
    state = ProducerState()
    aborted, intruders = state.apply(rows)
    return state.producers, aborted, [int(rows.base_offset[row]) for row in intruders]


batch_rows = st.lists(
    st.tuples(st.sampled_from([-1, 1, 2, 3]), st.sampled_from([0, 0, 0, 1])).flatmap(
        lambda who: st.sampled_from(
            [
                (*who, DATA, -1),
                (*who, TRANSACTIONAL, -1),
                (*who, TRANSACTIONAL, EMPTY),
                (*who, MARKER, ABORT),
                (*who, MARKER, COMMIT),
                (*who, MARKER, -1),
            ]
        )
    ),
    max_size=30,
)


def of_producers(rows: BatchTable) -> BatchTable:
    """Return all batches of producers and all their markers but those emptied by compaction."""
    emptied = rows.is_control & (rows.control_type < 0)
    return rows[(rows.producer_id >= 0) & ~emptied]


@given(batch_rows)
def test_the_significant_rows_show_the_same(rows):
    every = of_producers(table(*rows))
    kept = producer_state.significant(table(*rows))
    assert len(kept) <= len(every)
    state, aborted, intruders = replayed(every)
    short_state, short_aborted, short_intruders = replayed(kept)
    assert short_state == state
    assert short_aborted == aborted
    assert short_intruders == intruders


@given(batch_rows, st.lists(st.integers(0, 60), max_size=3))
def test_a_cut_gives_the_state_in_between(rows, cuts):
    every = of_producers(table(*rows))
    kept = producer_state.significant(table(*rows), cuts)
    for cut in cuts:
        whole = replayed(every[every.base_offset < cut])
        assert replayed(kept[kept.base_offset < cut])[:2] == whole[:2]


def test_an_abort_ends_a_transaction():
    rows = table((5, 0, TRANSACTIONAL, -1), (5, 0, TRANSACTIONAL, -1), (5, 0, MARKER, ABORT))
    state, aborted, intruders = replayed(rows)
    assert aborted == [AbortedTransaction(5, first_offset=0, last_offset=4, last_stable_offset=5)]
    assert state[5].transaction_first_offset == producer_state.NONE
    assert state[5].last_offset == 3
    assert not intruders


@pytest.mark.parametrize(
    ("kinds", "kept"),
    [((EMPTY,), False), ((EMPTY, EMPTY), False), ((EMPTY, -1), True), ((-1, EMPTY, EMPTY), True)],
)
def test_a_transaction_of_empty_batches_alone_holds_no_records(kinds, kept):
    batches = [(5, 0, TRANSACTIONAL, kind) for kind in kinds]
    rows = producer_state.significant(table(*batches, (5, 0, MARKER, ABORT)))
    (aborted,) = replayed(rows)[1]
    assert aborted.has_records is kept


@pytest.mark.parametrize("kind", [ABORT, COMMIT])
def test_a_marker_without_a_transaction_ends_nothing(kind):
    state, aborted, _ = replayed(table((5, 0, MARKER, kind)))
    assert not aborted
    assert state[5] == Producer(0, timestamp=1000)


def test_a_new_epoch_forgets_the_sequence_and_keeps_the_transaction():
    state, *_ = replayed(table((5, 0, TRANSACTIONAL, -1), (5, 1, MARKER, -1)))
    assert state[5].transaction_first_offset == 0
    state, *_ = replayed(table((5, 0, TRANSACTIONAL, -1), (5, 1, TRANSACTIONAL, -1)))
    assert (state[5].epoch, state[5].last_sequence, state[5].last_offset) == (1, 3, 3)


def test_a_plain_batch_in_a_transaction_is_named():
    _, _, intruders = replayed(table((5, 0, TRANSACTIONAL, -1), (6, 0, DATA, -1), (5, 0, DATA, -1)))
    assert intruders == [4]


def test_a_marker_emptied_by_compaction_is_none():
    _, aborted, _ = replayed(
        producer_state.significant(table((5, 0, TRANSACTIONAL, -1), (5, 0, MARKER, -1)))
    )
    assert not aborted
