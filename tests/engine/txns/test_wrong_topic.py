"""Batches that a client wrote to the wrong topic."""

import pytest

from logtool.formats import record, record_batch
from logtool.log import opening
from logtool.log.selection import Selection
from logtool.txns.wrong_topic import WrongTopics

START_MS = 1_700_000_000_000


def batch(offset, producer, sequence, text, *, epoch=0, time=None, count=1):
    records = [record.Record(at, at, None, text.encode()) for at in range(count)]
    stamp = START_MS + (offset if time is None else time)
    return record_batch.encode(
        record.encode(records),
        base_offset=offset,
        last_offset_delta=count - 1,
        record_count=count,
        leader_epoch=0,
        base_timestamp=stamp,
        max_timestamp=stamp + count - 1,
        producer_id=producer,
        producer_epoch=epoch if producer >= 0 else -1,
        base_sequence=sequence,
    )


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a partition of the log dir from its batches."""

    def written(name, *batches):
        home = tmp_path / "data" / name
        home.mkdir(parents=True)
        (home / f"{0:020d}.log").write_bytes(b"".join(batches))
        return home

    return written


def found(tmp_path, **options):
    return [
        (one.code, f"{one.topic}-{one.partition}", one.first_offset, one.position)
        for one in WrongTopics([tmp_path / "data"], **options)
    ]


def own(*sequences, producer=5, first=0):
    """Return batches of a producer, one record each, at rising offsets."""
    return [
        batch(first + at, producer, sequence, f"own {producer} {sequence}")
        for at, sequence in enumerate(sequences)
    ]


def astray(offset, sequence, producer=5):
    """Return the batch of `own` with a sequence, as another partition stored it."""
    return batch(offset, producer, sequence, f"own {producer} {sequence}", time=sequence)


def test_the_only_batch_of_its_producer_is_found_where_it_does_not_belong(write, tmp_path):
    write("orders-0", *own(0, 1, 2, 3))
    other = [batch(at, 9, at, f"payment {at}", time=-10 + at) for at in range(3)]
    write("payments-0", *other, astray(3, 2), batch(4, 9, 3, "payment 3"))
    position = len(b"".join(other))
    assert found(tmp_path) == [("batch/other-topic", "payments-0", 3, position)]


def test_a_batch_that_breaks_the_sequence_of_its_producer_is_found(write, tmp_path):
    write("orders-0", *own(0, 1, 2, 3))
    write("payments-0", batch(0, 5, 7, "a", time=-5), astray(1, 2), batch(2, 5, 9, "b"))
    assert [one[1:3] for one in found(tmp_path)] == [("payments-0", 1)]
    assert found(tmp_path, selection=Selection(topics=("orders",))) == []


@pytest.mark.parametrize("sequences", [(0, 1, 2, 3), (0,)])
def test_the_same_records_in_two_topics_are_no_fault(write, tmp_path, sequences):
    write("orders-0", *own(*sequences))
    write("audit-0", *own(*sequences))
    write("audit-1", *own(*sequences, producer=6))
    assert found(tmp_path) == []


def test_partitions_of_one_topic_and_batches_without_a_producer_are_not_judged(write, tmp_path):
    write("orders-0", *own(0, 1, 2), *own(-1, first=3, producer=-1))
    write("orders-1", astray(0, 2))
    write("payments-0", *own(-1, first=3, producer=-1))
    assert found(tmp_path) == []


def test_where_retention_or_compaction_may_have_removed_batches_nothing_is_said(write, tmp_path):
    write("orders-0", *own(0, 1, 2, 3))
    # The log begins after the batch before the suspect, or lacks offsets before it.
    write("late-0", astray(7, 2))
    write("compacted-0", batch(0, 9, 0, "x", time=-5), astray(7, 2), batch(8, 9, 1, "y"))
    assert found(tmp_path) == []


def test_a_batch_that_a_log_has_twice_is_found(write, tmp_path):
    home = write("orders-0", *own(0, 1, 2), astray(3, 1), *own(3, 4, first=4), astray(6, 1))
    write("audit-0", *own(0, 1, 2, 3, 4))
    size = len(own(0)[0])
    assert found(tmp_path) == [
        ("batch/twice", "orders-0", 3, 3 * size), ("batch/twice", "orders-0", 6, 6 * size),
    ]  # fmt: skip
    assert [one.segment for one in WrongTopics([home])] == [0, 0]


def appended(offset, sequence, at, text="x", time=0):
    """Return a batch with LogAppendTime, appended at a time."""
    return record_batch.encode(
        record.encode([record.Record(0, 0, None, text.encode())]),
        base_offset=offset, last_offset_delta=0, record_count=1, leader_epoch=0,
        base_timestamp=START_MS + time, max_timestamp=START_MS + at, attributes=0x08,
        producer_id=5, producer_epoch=0, base_sequence=sequence,
    )  # fmt: skip


def test_a_batch_that_a_log_has_twice_is_found_although_the_append_time_differs(write, tmp_path):
    batches = [appended(0, 0, 10), appended(1, 1, 20), appended(2, 0, 30), appended(3, 2, 40)]
    write("orders-0", *batches)
    assert found(tmp_path) == [("batch/twice", "orders-0", 2, 2 * len(batches[0]))]


def test_other_records_of_the_same_size_are_not_the_same_batch(write, tmp_path):
    other = [appended(2, 0, 30, "y"), appended(3, 1, 40, time=1)]
    write("orders-0", appended(0, 0, 10), appended(1, 1, 20), *other)
    assert found(tmp_path) == []


def test_equal_records_that_a_producer_may_write_twice_are_no_fault(write, tmp_path):
    plain = [batch(at, -1, -1, "x", time=0) for at in range(2)]
    # After its state was removed with the records, an old client begins again at sequence 0.
    again = [batch(2, 5, 0, "own 5 0", time=9), batch(3, 5, 0, "own 5 0", epoch=1, time=9)]
    write("orders-0", *plain, *again)
    # A crash may leave two segments with the same offsets.
    home = write("overlap-0", *own(0, 1, 2))
    (home / f"{1:020d}.log").write_bytes(b"".join(own(0, 1, 2)[1:]))
    assert found(tmp_path) == []


def test_a_producer_that_begins_a_new_epoch_continues(write, tmp_path):
    bumped = batch(2, 5, 0, "again", epoch=1)
    write("orders-0", *own(0, 1), bumped)
    write("audit-0", *own(0, 1), bumped)
    assert found(tmp_path) == []


def test_after_the_largest_sequence_number_comes_zero(write, tmp_path):
    last = 2**31 - 1
    write("orders-0", batch(0, 5, last - 1, "a", count=2), batch(2, 5, 0, "b"))
    write("audit-0", batch(0, 5, last - 1, "a", count=2), batch(2, 5, 0, "b"))
    assert found(tmp_path) == []


def test_damage_hides_no_other_batch(write, tmp_path):
    write("orders-0", *own(0, 1, 2, 3))
    before = [batch(at, 9, at, f"payment {at}", time=-10 + at) for at in range(3)]
    home = write("payments-0", *before, astray(3, 2))
    log = home / f"{0:020d}.log"
    log.write_bytes(log.read_bytes() + b"\xff" * 100)
    assert [one[1:3] for one in found(tmp_path)] == [("payments-0", 3)]


def test_real_brokers_wrote_no_batch_to_a_wrong_topic(scenario):
    for name in ("4.3.1/clean", "4.3.1/killed", "3.9.2/clean"):
        home = scenario(name)
        assert list(WrongTopics([home])) == [], name
        assert len(opening.open_log_dir(home).partitions) > 10
