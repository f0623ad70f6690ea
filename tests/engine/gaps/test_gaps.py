"""The ledger of missing offsets, the ghosts that would fill it, and the log that is filled."""

import shutil
import tempfile
from pathlib import Path

import metadata_records as made
import numpy as np
import pytest
from conftest import SCENARIOS
from damage import flip
from hypothesis import example, given
from hypothesis import strategies as st
from verification import batches, has_numbers, log_dirs, logs, numbers_in, segment_at, verify

from logtool.checks.compaction import Cleaning
from logtool.disk import files
from logtool.errors import RefusedError, UsageError
from logtool.formats import record, record_batch
from logtool.gaps import fill, follower_fetches, ghosts
from logtool.gaps import table as gap_table
from logtool.gaps.coverage import CoverageTask, look
from logtool.gaps.evidence import Facts
from logtool.gaps.ledger import build
from logtool.gaps.run import GapOptions, Gaps
from logtool.gaps.table import GapPlace, GapReason
from logtool.log.batches import read_batches
from logtool.log.records import record_offsets
from logtool.metadata.policies import PastPolicies

LARGEST = 2**31 - 1


def batch(first, last, *, epoch=0, offsets=None, **header):
    """Return a batch of those offsets, by default all of them."""
    offsets = range(first, last + 1) if offsets is None else offsets
    payload = record.encode([record.Record(offset - first, value=b"v") for offset in offsets])
    fields = {"record_count": len(offsets), "leader_epoch": epoch, "base_timestamp": 1000,
              "max_timestamp": 1000}  # fmt: skip
    return record_batch.encode(
        payload, base_offset=first, last_offset_delta=last - first, **(fields | header)
    )


def write(folder, *segments):
    """Write segments of (base offset, batches) into a partition dir."""
    folder.mkdir(parents=True, exist_ok=True)
    for base, content in segments:
        (folder / f"{base:020d}.log").write_bytes(b"".join(content))
    return folder


@pytest.fixture
def topic(tmp_path):
    """Return a function that writes a partition dir of segments."""
    return lambda *segments: write(tmp_path / "data" / "orders-0", *segments)


def only(path, **wanted):
    """Return the result for the only partition of a path."""
    (found,) = Gaps([path], GapOptions(**wanted))
    assert not isinstance(found, Exception), found
    return found


def gaps_of(result):
    """Return (first, last, reason) of the gaps."""
    ledger = result.ledger
    last = [None if end < 0 else end for end in ledger.gaps.last_offset.tolist()]
    reasons = [str(ledger.verdicts[number].reason) for number in ledger.verdict]
    return list(zip(ledger.gaps.first_offset.tolist(), last, reasons, strict=True))


def spans(result):
    """Return (first, last, epoch) of the ghosts."""
    found = ghosts.of(result.ledger, result.subject.facts)
    columns = (found.first_offset, found.last_offset, found.epoch)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def gap(first, last, *, epoch=0, before_epoch=-1):
    """Return the table of one gap between batches."""
    return gap_table.make(
        1, first_offset=first, last_offset=last, kind=GapPlace.BATCHES, position=0, epoch=epoch,
        before_epoch=before_epoch,
    )  # fmt: skip


def filled(table, facts=Facts()):  # noqa: B008  (frozen)
    found = ghosts.fill(table, facts)
    columns = (found.first_offset, found.last_offset, found.epoch)
    return list(zip(*(column.tolist() for column in columns), strict=True))


RFC = (batch(0, 10, epoch=1), batch(11, 20, epoch=1), batch(33, 40, epoch=3))


def test_the_gap_of_the_rfc_gets_one_ghost_with_the_term_of_the_batch_that_follows(topic):
    result = only(topic((0, RFC)), policy="compact")
    assert gaps_of(result) == [(21, 32, "compaction")]
    assert spans(result) == [(21, 32, 3)]
    assert result.ledger.missing == 12
    assert (result.ledger.log_start, result.ledger.log_end) == (0, 41)


def test_without_the_ghost_the_follower_of_the_rfc_numbers_the_last_batch_from_21(topic):
    result = only(topic((0, RFC)), policy="compact")
    found = ghosts.of(result.ledger, result.subject.facts)
    sent = follower_fetches.stretches(found, leader_start=0, leader_end=41, follower_end=11)
    assert [(s.ghost, s.first_offset, s.last_offset) for s in sent] == [
        (False, 11, 20), (True, 21, 32), (False, 33, 40),
    ]  # fmt: skip
    assert [(s.without_first, s.without_last) for s in sent if not s.ghost] == [(11, 20), (21, 28)]


def test_a_follower_that_ends_inside_a_gap_is_sent_the_rest_of_the_ghost(topic):
    result = only(topic((0, RFC)), policy="compact")
    found = ghosts.of(result.ledger, result.subject.facts)
    sent = follower_fetches.stretches(found, leader_start=0, leader_end=41, follower_end=25)
    assert [(s.ghost, s.first_offset, s.last_offset) for s in sent] == [
        (True, 25, 32), (False, 33, 40),
    ]  # fmt: skip
    assert sent[1].without_first == 25


def test_a_follower_that_has_everything_is_sent_nothing(topic):
    result = only(topic((0, RFC)), policy="compact")
    found = ghosts.of(result.ledger, result.subject.facts)
    assert follower_fetches.stretches(found, leader_start=0, leader_end=41, follower_end=41) == []


def test_a_gap_at_the_head_reaches_from_the_base_to_the_first_batch(topic):
    kept = batch(7164, 7429, offsets=[7200], epoch=1)
    result = only(topic((3676, [kept])), policy="compact")
    assert gaps_of(result) == [
        (0, 3675, "retention"), (3676, 7163, "compaction"), (7164, 7429, "compaction"),
    ]  # fmt: skip
    assert result.ledger.gaps.missing.tolist() == [3676, 3488, 265]
    assert spans(result) == [(3676, 7163, 1)]
    assert (result.ledger.first_visible, result.ledger.last_visible) == (7200, 7200)


def test_a_gap_of_one_offset_is_filled_too(topic):
    result = only(topic((0, [batch(0, 4), batch(6, 9)])), policy="compact")
    assert gaps_of(result) == [(5, 5, "compaction")]
    assert spans(result) == [(5, 5, 0)]


def test_a_gap_between_segments_names_both(topic):
    result = only(topic((0, [batch(0, 9)]), (20, [batch(20, 29)])), policy="compact")
    gaps = result.ledger.gaps
    assert gaps_of(result) == [(10, 19, "compaction")]
    assert gaps.kind.tolist() == [GapPlace.SEGMENTS]
    assert (gaps.before_segment[0], gaps.after_segment[0]) == (0, 20)


def test_a_ghost_is_split_where_the_leader_epochs_of_the_checkpoint_change():
    facts = Facts(epochs=((0, 0), (4, 15), (7, 30)))
    table = gap(10, 34, epoch=7, before_epoch=0)
    assert filled(table, facts) == [(10, 14, 0), (15, 29, 4), (30, 34, 7)]
    assert filled(table) == [(10, 34, 7)]


@pytest.mark.parametrize(
    ("epochs", "before"), [(((0, 0), (4, 15)), 0), (((0, 0), (7, 30)), 3), (((7, 12),), 0)]
)
def test_a_checkpoint_that_the_batches_contradict_or_that_begins_later_is_not_believed(
    epochs, before
):
    table = gap(10, 34, epoch=7, before_epoch=before)
    assert filled(table, Facts(epochs=epochs)) == [(10, 34, 7)]


def test_a_gap_too_long_for_one_ghost_is_cut_so_that_its_count_fits_in_32_bits():
    last = 10 + 3 * LARGEST + 5
    found = filled(gap(10, last))
    assert len(found) == 4
    assert [end - start + 1 for start, end, _ in found] == [LARGEST, LARGEST, LARGEST, 6]
    assert found[-1][1] == last
    assert filled(gap(0, LARGEST - 1)) == [(0, LARGEST - 1, 0)]
    assert len(filled(gap(0, LARGEST))) == 2


def test_the_overhead_of_2_to_the_40_offsets_is_that_of_its_pieces():
    assert ghosts.fill(gap(0, 2**40 - 1), Facts()).bytes == 513 * 61


def test_nothing_is_filled_behind_the_last_batch(topic):
    result = only(topic((0, [batch(0, 10)]), (21, [])), policy="compact")
    assert gaps_of(result) == [(11, 20, "compaction")]
    assert result.ledger.log_end == 21
    assert spans(result) == []


def test_an_empty_first_segment_moves_nothing(topic):
    result = only(topic((0, []), (5, []), (9, [batch(12, 13)])), policy="compact")
    assert gaps_of(result) == [(0, 11, "compaction")]


def test_batches_that_overlap_count_each_offset_once(topic):
    result = only(topic((0, [batch(0, 9), batch(5, 14)]), (12, [batch(12, 19)])), policy="compact")
    ledger = result.ledger
    assert (ledger.visible, ledger.missing, ledger.offsets) == (20, 0, 20)
    assert ledger.overlaps == 2


def test_a_log_start_inside_a_batch_counts_from_there(topic):
    folder = topic((0, [batch(0, 9, offsets=[1, 5, 9]), batch(12, 14)]))
    (folder.parent / "log-start-offset-checkpoint").write_text("0\n1\norders 0 4\n")
    ledger = only(folder, policy="compact").ledger
    assert (ledger.log_start, ledger.visible, ledger.missing, ledger.offsets) == (4, 5, 6, 11)
    assert ledger.first_visible == 5


def test_records_show_which_offsets_of_a_batch_are_missing(topic):
    folder = topic((0, [batch(0, 9, offsets=[2, 3, 7]), batch(10, 12, offsets=[])]))
    assert gaps_of(only(folder)) == [(0, 9, "compaction"), (10, 12, "compaction")]
    exact = [(0, 1), (4, 6), (8, 9), (10, 12)]
    assert gaps_of(only(folder, exact=True)) == [(*span, "compaction") for span in exact]


# Why


def test_a_single_gap_without_a_sign_of_compaction_is_unknown(topic):
    folder = topic((0, [batch(0, 4), batch(6, 9)]))
    assert gaps_of(only(folder)) == [(5, 5, "unknown")]
    assert gaps_of(only(folder, policy="delete")) == [(5, 5, "unknown")]


def test_gaps_everywhere_are_compaction_unless_the_policy_says_otherwise(topic):
    folder = topic((0, [batch(n, n) for n in (0, 2, 4, 6)]))
    assert {reason for _, _, reason in gaps_of(only(folder))} == {"compaction"}
    assert {reason for _, _, reason in gaps_of(only(folder, policy="delete"))} == {"unknown"}


@pytest.mark.parametrize("trace", [{"attributes": 0x40}, {"offsets": [1]}])
def test_what_only_the_cleaner_writes_shows_that_a_topic_was_compacted_once(topic, trace):
    folder = topic((0, [batch(0, 4, **trace), batch(6, 9)]))
    assert (5, 5, "compaction") in gaps_of(only(folder, policy="delete"))


def test_the_cleaner_checkpoint_shows_that_a_topic_is_compacted(topic):
    folder = topic((0, [batch(0, 4), batch(6, 9), batch(11, 12)]))
    (folder.parent / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 8\n")
    result = only(folder)
    assert gaps_of(result) == [(5, 5, "compaction"), (10, 10, "compaction")]
    said = [result.ledger.verdicts[n].evidence for n in result.ledger.verdict]
    assert "fetched" in said[1]
    assert "fetched" not in said[0]


@pytest.mark.parametrize(
    ("witness", "policy"),
    [("index", "compact"), ("index", "delete"), ("index", None), ("snapshot", "delete"),
     ("snapshot", None)],
)  # fmt: skip
def test_a_file_of_a_segment_that_is_gone_shows_that_it_was_there(topic, witness, policy):
    folder = topic((0, [batch(0, 9)]), (20, [batch(20, 29)]))
    (folder / f"{15:020d}.{witness}").write_bytes(b"")
    assert gaps_of(only(folder, policy=policy)) == [(10, 19, "segment-missing")]


@pytest.mark.parametrize(
    ("cleaned_to", "stopped", "reason"),
    [(None, True, "compaction"), (20, True, "compaction"), (14, True, "segment-missing"),
     (14, False, "compaction")],
)  # fmt: skip
def test_the_snapshot_of_a_stop_shows_something_only_where_nothing_was_cleaned(
    topic, cleaned_to, stopped, reason
):
    """Compaction empties the segment that an earlier stop was in, and leaves the snapshot."""
    folder = topic((0, [batch(0, 9)]), (20, [batch(20, 29)]))
    (folder / f"{15:020d}.snapshot").write_bytes(b"")
    if cleaned_to is not None:
        text = f"0\n1\norders 0 {cleaned_to}\n"
        (folder.parent / "cleaner-offset-checkpoint").write_text(text)
    if stopped:
        (folder.parent / ".kafka_cleanshutdown").write_bytes(b"")
    assert gaps_of(only(folder, policy="compact")) == [(10, 19, reason)]


def test_the_snapshot_of_an_empty_segment_in_a_gap_shows_nothing(topic):
    folder = topic((0, [batch(0, 9)]), (15, []), (20, [batch(20, 29)]))
    (folder / f"{15:020d}.snapshot").write_bytes(b"")
    assert gaps_of(only(folder, policy="compact")) == [(10, 19, "compaction")]


def test_an_index_that_goes_on_behind_its_log_shows_that_the_log_was_cut(topic):
    folder = topic((0, [batch(0, 9)]), (20, [batch(20, 29)]))
    (folder / f"{0:020d}.index").write_bytes((14).to_bytes(4, "big") + (99).to_bytes(4, "big"))
    assert gaps_of(only(folder, policy="compact")) == [(10, 19, "truncation-hole")]


def test_between_segments_of_a_topic_that_is_not_compacted_lies_a_hole(topic):
    folder = topic((0, [batch(0, 9)]), (20, [batch(20, 29)]))
    assert gaps_of(only(folder, policy="delete")) == [(10, 19, "truncation-hole")]
    assert gaps_of(only(folder)) == [(10, 19, "unknown")]


def test_damage_is_the_reason_wherever_it_lies(topic):
    good = [batch(0, 4), batch(5, 9), batch(10, 14)]
    for number, expected in enumerate([(0, 4, "damage"), (5, 9, "damage"), (10, None, "damage")]):
        spoiled = [flip(b, 30) if n == number else b for n, b in enumerate(good)]
        folder = topic((0, spoiled))
        assert gaps_of(only(folder, policy="compact")) == [expected]


def test_damage_at_the_end_of_a_segment_is_the_reason_up_to_the_next(topic):
    folder = topic((0, [batch(0, 4), flip(batch(5, 9), 30)]), (10, [batch(12, 14)]))
    assert gaps_of(only(folder, policy="compact")) == [(5, 11, "damage")]


def test_a_base_offset_that_stands_out_is_damage(topic):
    folder = topic((0, [batch(0, 4), flip(batch(5, 9), 5, 1), batch(10, 14)]))
    assert gaps_of(only(folder, policy="compact")) == [(5, 9, "damage")]


def test_a_torn_tail_is_no_gap_after_an_unclean_stop(topic):
    folder = topic((0, [batch(0, 4), batch(5, 9)[:40]]))
    assert gaps_of(only(folder)) == []
    (folder.parent / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
    assert gaps_of(only(folder)) == [(5, None, "damage")]


def test_a_log_that_began_earlier_when_the_broker_stopped_lost_segments(scenario, tmp_path):
    home = shutil.copytree(scenario("4.3.1/clean"), tmp_path / "clean")
    folder = home / "deleted_segments-0"
    first = logs(folder)[0].name
    (home / "log-start-offset-checkpoint").write_text("0\n1\ndeleted_segments 0 100\n")
    base = int(first[:20])
    assert gaps_of(only(folder)) == [(0, 99, "retention"), (100, base - 1, "segment-missing")]
    (home / ".kafka_cleanshutdown").unlink()
    assert gaps_of(only(folder)) == [(0, base - 1, "retention")]


# Markers and aborted records


def test_read_committed_sees_neither_markers_nor_aborted_records(scenario):
    folder = scenario("4.3.1/clean") / "tx.mixed-0"
    plain, committed = only(folder), only(folder, isolation=True)
    assert gaps_of(plain) == []
    counts = committed.ledger.reasons()
    assert counts[GapReason.CONTROL].offsets == plain.ledger.control == 12
    assert counts[GapReason.ABORTED].offsets == plain.ledger.aborted == 96
    assert committed.ledger.missing == 0


# Real brokers


def offsets_on_disk(folder, start):
    """Return the offsets of data records and of control records, decoded one by one."""
    data, control = set(), set()
    for path in logs(folder):
        with files.LogFile(path) as log:
            for chunk in read_batches(log, base_offset=int(path.name[:20])):
                for row in range(len(chunk.table)):
                    found = record_offsets(chunk, row)
                    assert found is not None
                    into = control if chunk.table.is_control[row] else data
                    into.update(offset for offset in found.tolist() if offset >= start)
    return data, control


@pytest.mark.parametrize("name", SCENARIOS)
def test_each_offset_of_each_partition_is_visible_or_control_or_missing(scenario, name):
    for home in log_dirs(scenario(name)):
        plain = list(Gaps([home], GapOptions()))
        exact = list(Gaps([home], GapOptions(exact=True)))
        for one, other in zip(plain, exact, strict=True):
            ledger = one.ledger
            data, control = offsets_on_disk(one.subject.partition.path, ledger.log_start)
            assert ledger.visible + ledger.control + ledger.missing == ledger.offsets
            assert (ledger.visible, ledger.control) == (len(data), len(control))
            if data:
                assert (ledger.first_visible, ledger.last_visible) == (min(data), max(data))
            everything = set(range(ledger.log_start, ledger.log_end))
            assert covered(other.ledger) == everything - data - control
            assert ledger.losses == 0


def covered(ledger):
    """Return the offsets that the gaps name above the log start."""
    return {
        offset
        for first, last in zip(ledger.gaps.first_offset, ledger.gaps.last_offset, strict=True)
        for offset in range(int(first), int(last) + 1)
        if offset >= ledger.log_start
    }


@pytest.mark.parametrize("name", ["4.3.1/clean", "3.9.2/clean", "3.9.0/compaction"])
def test_the_metadata_log_says_that_the_topic_is_compacted(scenario, name):
    result = only(scenario(name) / "compacted.keys-0")
    assert result.subject.facts.cleaning.policy == "compact"
    assert result.ledger.missing == 960
    assert set(result.ledger.reasons()) == {GapReason.COMPACTION}


def test_a_table_alone_is_enough_for_a_ledger(topic):
    path = logs(topic((0, RFC)))[0]
    ledger = build(
        [look(CoverageTask(segment_at(path)))], Facts(cleaning=Cleaning(policy="compact"))
    )
    assert ledger.missing == 12
    assert np.array_equal(batches(path).base_offset, [0, 11, 33])


# Filled


def written(result, folder):
    """Write the filled log of a partition; returns its path."""
    folder.mkdir(exist_ok=True)
    first = min(result.ledger.log_start, result.first_base)
    target = folder / f"{first:020d}.log"
    size = fill.write(result, ghosts.of(result.ledger, result.subject.facts), target)
    assert size == target.stat().st_size
    assert [path.name for path in folder.iterdir()] == [target.name]
    return target


def raw_batches(folder):
    """Return the bytes of each sound batch of a partition, in order."""
    found = []
    for path in logs(folder):
        data, table = path.read_bytes(), batches(path)
        found += [
            data[start:end] for start, end in zip(table.position, table.end_position, strict=True)
        ]
    return found


def assert_filled(result, target):
    """Check that a filled log has no gap, and each real batch byte by byte."""
    table = batches(target)
    assert (table.base_offset[1:] == table.last_offset[:-1] + 1).all()
    assert int(table.base_offset[0]) == min(result.ledger.log_start, result.first_base)
    assert int(table.last_offset[-1]) == result.ledger.last_offset
    outcome = verify(target)
    assert outcome.above_info() == []
    filling = ghosts.of(result.ledger, result.subject.facts)
    spans = set(zip(filling.first_offset.tolist(), filling.last_offset.tolist(), strict=True))
    data = target.read_bytes()
    real = [
        data[start:end]
        for start, end, first, last in zip(
            table.position, table.end_position, table.base_offset, table.last_offset, strict=True
        )
        if (int(first), int(last)) not in spans
    ]
    folder = result.subject.partition.path
    kept = [raw for raw in raw_batches(folder) if last_offset(raw) >= result.ledger.log_start]
    assert real == kept


def last_offset(raw):
    return int.from_bytes(raw[:8], "big") + int.from_bytes(raw[23:27], "big")


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_filled_log_of_each_real_partition_has_no_gap_and_every_batch(scenario, tmp_path, name):
    for number, home in enumerate(log_dirs(scenario(name))):
        for result in Gaps([home], GapOptions()):
            folder = result.subject.partition.path
            if result.ledger.batches and (name.endswith("clean") or result.ledger.missing):
                target = tmp_path / f"{number}-{folder.name}"
                if "/magic-" in name:
                    with pytest.raises(RefusedError, match="magic 2"):
                        written(result, target)
                else:
                    assert_filled(result, written(result, target))


PIECES = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 1, 2, 7, 1000]),  # offsets missing before it
        st.integers(0, 4),  # last offset delta
        st.integers(0, 31),  # which offsets have a record
        st.sampled_from([0, 0, 0, 1, 3]),  # rise of the leader epoch
        st.booleans(),  # whether a segment begins here
    ),
    min_size=1, max_size=12,
)  # fmt: skip


@given(PIECES, st.integers(0, 100), st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3000))))
# A broker drops the first row when it reads the second.
@example([(0, 0, 0, 0, False)] * 2 + [(1, 0, 0, 0, False)], 0, [(1, 0), (0, 3)])
def test_any_log_is_filled_without_a_gap_and_keeps_each_batch(pieces, start, rows):
    segments, offset, epoch = [(start, [])], start, 0
    for gap, delta, mask, rise, roll in pieces:
        offset, epoch = offset + gap, epoch + rise
        if roll and offset > segments[-1][0]:
            segments.append((offset, []))
        kept = [offset + n for n in range(delta + 1) if mask >> n & 1]
        segments[-1][1].append(batch(offset, offset + delta, epoch=epoch, offsets=kept))
        offset += delta + 1
    with tempfile.TemporaryDirectory() as home:
        folder = write(Path(home) / "data" / "orders-0", *segments)
        lines = [f"{first} {second}" for first, second in rows]
        text = "\n".join(["0", str(len(lines)), *lines, ""])
        (folder / "leader-epoch-checkpoint").write_text(text)
        result = only(folder, policy="compact")
        ledger = result.ledger
        assert ledger.visible + ledger.control + ledger.missing == ledger.offsets
        filled = written(result, Path(home) / "filled")
        assert_filled(result, filled)
        again = only(filled)
        assert again.ledger.visible == ledger.visible
        assert (
            again.ledger.gaps.kind[again.ledger.gaps.missing > 0] == GapPlace.RECORDS
        ).all() or (start > 0)


def test_what_is_damaged_is_left_out_and_filled(topic, tmp_path):
    folder = topic((0, [batch(0, 4), flip(batch(5, 9), 30), batch(10, 14)]))
    result = only(folder, policy="compact")
    target = written(result, tmp_path / "filled")
    assert batches(target).base_offset.tolist() == [0, 5, 10]
    assert_filled(result, target)


def test_a_ghost_has_no_records_no_producer_and_no_time():
    raw = ghosts.encode(21, 32, 3)
    assert len(raw) == 61
    table = record_batch.parse(memoryview(raw), [0])
    row = table.row(0)
    assert (row["base_offset"], row["last_offset"], row["leader_epoch"]) == (21, 32, 3)
    assert row["record_count"] == row["attributes"] == 0
    for name in ("producer_id", "producer_epoch", "base_sequence", "base_timestamp",
                 "max_timestamp"):  # fmt: skip
        assert row[name] == -1


def test_a_log_that_overlaps_itself_is_not_written(topic, tmp_path):
    result = only(topic((0, [batch(0, 9), batch(5, 14)])), policy="compact")
    with pytest.raises(RefusedError, match="overlap"):
        written(result, tmp_path / "filled")


def test_more_offsets_than_a_segment_can_hold_are_not_written(topic, tmp_path):
    folder = topic((0, [batch(0, 9)]), (2**31 + 5, [batch(2**31 + 5, 2**31 + 9)]))
    with pytest.raises(RefusedError, match=f"{2**31 + 10:,}"):
        written(only(folder, policy="compact"), tmp_path / "filled")


def test_a_filled_log_is_called_by_its_first_offset(topic, tmp_path):
    result = only(topic((3, [batch(5, 9)])), policy="compact")
    with pytest.raises(UsageError, match=f"{3:020d}.log"):
        fill.write(result, ghosts.of(result.ledger, Facts()), tmp_path / f"{5:020d}.log")


def test_whatever_byte_is_flipped_or_cut_the_sums_hold(topic):
    sound = b"".join([batch(0, 4, offsets=[0, 3]), batch(7, 9, epoch=1), batch(12, 14, epoch=2)])
    variants = [flip(sound, at, (0x01, 0x80)[at // 2 % 2]) for at in range(len(sound))]
    variants += [sound[:size] for size in range(len(sound))]
    for number, data in enumerate(variants):
        folder = topic((0, [data]), (20, [batch(20, 22, epoch=3)]))
        ledger = only(folder, policy="compact", exact=number % 2 > 0).ledger
        assert ledger.visible + ledger.control + ledger.missing == ledger.offsets
        assert (ledger.gaps.missing >= 0).all()
        assert (ledger.gaps.first_offset >= 0).all()


TOPIC, BROKER = 2, 4
OLD, NEW = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"
POLICY, DEFAULT = "cleanup.policy", "log.cleanup.policy"
MADE = (made.topic("orders", OLD), made.partition(OLD, 0, [1]))
HOLED = (0, [batch(0, 4), batch(8, 9)])


TORN = (0, [batch(0, 4)]), (8, [batch(8, 9)])


def verdict(home):
    """Return the reason and the evidence of the only gap of orders-0; `verify` says the same."""
    result = only(write(home / "orders-0", HOLED))
    ((first, last, reason),) = gaps_of(result)
    assert (first, last) == (5, 7)
    evidence = result.ledger.verdicts[0].evidence
    found = holes(home)
    assert found == holes(home / "orders-0")
    assert list(found) == ([("batch/hole", 5, 7)] if reason == "unknown" else [])
    assert all(text.endswith(evidence) for text in found.values())
    shutil.rmtree(home / "orders-0")
    write(home / "orders-0", *TORN)
    ((place, text),) = holes(home).items()
    assert holes(home / "orders-0") == {place: text}
    assert place == (f"segment/{'hole' if reason == 'unknown' else 'gap'}", 5, 7)
    assert text.endswith(evidence)
    return reason, evidence


def holes(path):
    """Return the findings of `verify` on missing offsets."""
    wanted = ("batch/hole", "segment/hole", "segment/gap")
    return {
        (finding.code, finding.first_offset, finding.last_offset): finding.message
        for finding in verify(path).findings
        if finding.code in wanted
    }


@pytest.mark.parametrize(
    ("values", "at"),
    [
        ([(*MADE, made.config(TOPIC, "orders", POLICY, "compact")),
          (made.config(TOPIC, "orders", POLICY, "delete"),)], 2),
        ([(*MADE, made.config(TOPIC, "orders", POLICY, "compact,delete")),
          (made.config(TOPIC, "orders", POLICY, None),)], 2),
        ([(made.config(BROKER, "", DEFAULT, "compact"), *MADE),
          (made.config(BROKER, "", DEFAULT, "delete"),)], 2),
        ([MADE, (made.config(BROKER, "7", DEFAULT, "compact"),
                 made.config(BROKER, "7", DEFAULT, None))], 2),
    ],
)  # fmt: skip
def test_what_was_compacted_once_has_lawful_gaps(tmp_path, values, at):
    made.log_dir_of(tmp_path, *values)
    reason, evidence = verdict(tmp_path)
    assert reason == "compaction"
    assert numbers_in(evidence) == [at]


@pytest.mark.parametrize(
    "values",
    [
        [MADE, (made.config(TOPIC, "orders", POLICY, "delete"),)],
        # Another topic, the topic's own value before the default, and a namesake that was deleted.
        [MADE, (made.config(TOPIC, "others", POLICY, "compact"),)],
        [(made.config(BROKER, "", DEFAULT, "compact"), made.topic("orders", OLD),
          made.config(TOPIC, "orders", POLICY, "delete"), made.partition(OLD, 0, [1]))],
        [(*MADE, made.config(TOPIC, "orders", POLICY, "compact"), made.remove_topic(OLD)),
         (made.topic("orders", NEW), made.partition(NEW, 0, [1]),
          made.config(TOPIC, "orders", POLICY, "delete"))],
    ],
)  # fmt: skip
def test_what_was_never_compacted_has_none(tmp_path, values):
    made.log_dir_of(tmp_path, *values)
    reason, evidence = verdict(tmp_path)
    assert reason == "unknown"
    assert "metadata log" in evidence
    assert numbers_in(evidence) == []


def test_what_was_before_the_oldest_snapshot_is_not_known(tmp_path):
    inner = made.log_dir_of(tmp_path)
    (inner / f"{0:020d}.log").unlink()
    made.snapshot(inner, 40, *MADE, made.config(TOPIC, "orders", POLICY, "delete"))
    reason, evidence = verdict(tmp_path)
    assert reason == "unknown"
    assert numbers_in(evidence) == [40]


def of_topic(home, name, topic_id):
    """Write a partition dir with a gap, and partition.metadata with the id of its topic."""
    folder = write(home / name, HOLED)
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
    return folder


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [("delete", "compact", "unknown"), ("compact", "delete", "compaction")],
)
@pytest.mark.parametrize("name", ["orders-0", f"orders-0.{'0' * 32}-stray"])
def test_a_deleted_topic_is_not_judged_by_its_successor(tmp_path, name, old, new, reason):
    first = (*MADE, made.config(TOPIC, "orders", POLICY, old), made.remove_topic(OLD))
    second = (made.topic("orders", NEW), made.config(TOPIC, "orders", POLICY, new),
              made.partition(NEW, 0, [1]))  # fmt: skip
    made.log_dir_of(tmp_path, first, second)
    assert gaps_of(only(of_topic(tmp_path, name, OLD))) == [(5, 7, reason)]
    assert gaps_of(only(of_topic(tmp_path, name, NEW)))[0][2] != reason


def test_many_gaps_do_not_make_a_topic_compacted_that_never_was(tmp_path):
    made.log_dir_of(tmp_path, MADE)
    many = (0, [batch(n, n) for n in range(0, 14, 2)])
    result = only(write(tmp_path / "orders-0", many))
    assert {reason for _, _, reason in gaps_of(result)} == {"unknown"}
    unknown = only(write(tmp_path / "others-0", many))  # which the metadata log does not know
    assert {reason for _, _, reason in gaps_of(unknown)} == {"compaction"}
    ((place, text),) = holes(tmp_path).items()
    assert place == ("batch/hole", 1, 1)
    assert has_numbers(text, 1, 5, 6)


def test_the_metadata_log_is_read_again_only_where_offsets_are_missing(tmp_path, monkeypatch):
    made.log_dir_of(tmp_path, MADE)
    asked = []
    monkeypatch.setattr(PastPolicies, "of", lambda self, topic_id: asked.append(topic_id))
    only(write(tmp_path / "orders-0", (0, [batch(0, 4), batch(5, 9)])))
    verify(tmp_path)
    assert asked == []
    only(write(tmp_path / "orders-0", HOLED))
    assert asked == [OLD]
    verify(tmp_path)
    assert asked == [OLD, OLD]
