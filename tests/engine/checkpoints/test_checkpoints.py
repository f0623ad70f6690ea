"""Checkpoints mended by the logs: a sound one stays as a broker wrote it, byte for byte."""

import shutil
from itertools import pairwise

import pytest
from conftest import SCENARIOS
from hypothesis import example, given
from hypothesis import strategies as st
from verification import (
    batches,
    has_numbers,
    log_dirs,
    numbers_in,
    set_offsets,
    small_log_dir,
    verify,
)

from logtool.actions import FileChange
from logtool.checkpoints import edit, rules
from logtool.checkpoints.edit import Edit, remove, set_row
from logtool.checkpoints.rebuild import CheckpointRebuild
from logtool.checkpoints.rules import LogBounds
from logtool.errors import RefusedError, UnreadableError, UsageError
from logtool.formats import leader_epoch_checkpoint, offset_checkpoint
from logtool.formats.names import FileKind
from logtool.loading.epochs import EpochCache
from logtool.log.selection import Selection
from logtool.running.budget import Budget
from logtool.running.run import Run

EPOCHS = "leader-epoch-checkpoint"
RECOVERY = "recovery-point-offset-checkpoint"
WATERMARK = "replication-offset-checkpoint"
START = "log-start-offset-checkpoint"
CLEANER = "cleaner-offset-checkpoint"
COMPACTED = ("compacted-tx-0", "compacted.keys-0", "compact.", "old-compacted-0")
"""The first batches of their epochs are compacted away: only the file knows where those began."""
DELETED = ("doomed-topic.v1_x-1", "doomed-topic.v1_x-0")


def rebuild(path, **more):
    """Return the edits, by file; nothing may be unreadable."""
    found = list(CheckpointRebuild(path, **more))
    assert all(isinstance(item, Edit) for item in found), found
    return {item.action.path: item for item in found}


def do(*edits):
    """Do what the edits say."""
    for one in edits:
        change = one.action.change
        if change.kind is FileChange.REMOVE:
            change.path.unlink()
        else:
            change.path.write_bytes(change.content)


def with_epochs(home):
    return sorted(path for path in home.rglob(EPOCHS) if "-delete" not in str(path))


def last_batch_offset(directory):
    found = [batches(log) for log in sorted(directory.glob("*.log"))]
    return max((int(table.last_offset[-1]) for table in found if len(table)), default=-1)


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_a_broker_left_stays_as_it_is(scenario, name):
    for home in log_dirs(scenario(name)):
        edits = rebuild(home)
        if name.endswith("/killed"):
            # The next write of that file, seconds later, would have been without them.
            (edit,) = edits.values()
            assert tuple(reason.partition(":")[0] for reason in edit.reasons) == DELETED
        else:
            assert edits == {}


@pytest.mark.parametrize("name", SCENARIOS)
def test_epochs_from_batches_alone_are_the_brokers_bytes_but_for_epochs_without_any(copy_of, name):
    compared = 0
    for home in log_dirs(copy_of(name)):
        files = {path: path.read_bytes() for path in with_epochs(home)}
        for path in files:
            path.unlink()
        edits = rebuild(home)
        for path, data in files.items():
            if "-stray" in str(path):
                assert path not in edits
                continue
            rows = leader_epoch_checkpoint.parse(data).epochs
            # What a leader writes at the end when it is elected has no batch yet.
            end = last_batch_offset(path.parent) + 1
            # Batches of magic 0 and 1 have no epochs.
            wanted = [row for row in rows if row[1] < end and "/magic-" not in name]
            if not wanted:
                assert path not in edits
                continue
            if path.parent.name.startswith(COMPACTED):
                found = leader_epoch_checkpoint.parse(edits[path].after).epochs
                # As in a broker that recovers without the file.
                if name.endswith("/cleaned"):
                    # Several rounds of cleaning have left no batch of some of the epochs.
                    wanted = [row for row in wanted if row[0] in dict(found)]
                assert [epoch for epoch, _ in found] == [epoch for epoch, _ in wanted]
                assert all(new[1] >= old[1] for new, old in zip(found, wanted, strict=True))
                continue
            assert edits[path].action.action is FileChange.CREATE
            expected = leader_epoch_checkpoint.build(wanted)
            assert edits[path].after == leader_epoch_checkpoint.encode(expected), path
            compared += edits[path].after == data
    assert compared or name.partition("/")[2] in ("formatted", "magic-0", "magic-1")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: data + b"9 99999999\n",
        lambda data: b"0\n1\n7 0\n",
        lambda data: data.replace(b"0\n", b"1\n", 1),
        lambda data: data[:-3],
        lambda data: b"\xff" * 9,
    ],
    ids=["line ends", "beyond the end", "another epoch", "version", "cut", "noise"],
)
def test_a_damaged_epoch_file_gets_the_brokers_bytes_back(copy_of, spoil):
    home = copy_of("4.3.1/clean")
    files = {
        path: path.read_bytes() for path in with_epochs(home) if path.parent.name not in COMPACTED
    }
    for path, data in files.items():
        path.write_bytes(spoil(data))
    edits = rebuild(home)
    for path, data in files.items():
        end = last_batch_offset(path.parent) + 1
        rows = leader_epoch_checkpoint.parse(data).epochs
        if all(start < end for _, start in rows):
            after = edits[path].after if path in edits else path.read_bytes()
            # Line ends are no damage to a broker: such a file stays.
            assert after.replace(b"\r\n", b"\n") == data, path
    do(*edits.values())
    assert rebuild(home) == {}
    assert not [text for text in verify(home).above_info() if "leader-epoch" in text]


def test_each_row_that_is_lost_and_has_batches_comes_back(copy_of):
    home = copy_of("4.3.1/clean")
    for path in with_epochs(home):
        if path.parent.name in COMPACTED:
            continue
        data = path.read_bytes()
        rows = leader_epoch_checkpoint.parse(data).epochs
        for number in range(len(rows)):
            left = rows[:number] + rows[number + 1 :]
            path.write_bytes(leader_epoch_checkpoint.encode(leader_epoch_checkpoint.build(left)))
            edits = rebuild(path)
            if number == 0 and left and path.parent.name != "__cluster_metadata-0":
                # DeleteRecords removes the first rows too: only this file shows the deletion then.
                assert edits == {}, path
            elif rows[number][1] <= last_batch_offset(path.parent):
                assert edits[path].after == data, path
        path.write_bytes(data)


def test_epochs_of_a_partition_begin_where_its_log_dir_says(copy_of):
    home = copy_of("4.3.1/clean")
    path = home / "deleted-records.mid-0" / EPOCHS
    data = path.read_bytes()
    assert data == b"0\n2\n0 77\n2 300\n"
    path.write_bytes(data.replace(b"0 77", b"0 0"))
    for what in (home, path.parent, path):
        assert rebuild(what)[path].after == data
        removed, begins = rebuild(what)[path].reasons
        assert (numbers_in(removed), numbers_in(begins)) == ([0, 0], [0, 77])
    (home / START).unlink()
    assert path not in rebuild(home)


def test_a_first_row_that_shows_a_deletion_stays(copy_of, tmp_path):
    # Without log-start-offset-checkpoint nothing else shows that 77 records were deleted.
    alone = tmp_path / "alone" / "deleted-records.mid-0"
    shutil.copytree(copy_of("4.3.1/clean") / alone.name, alone)
    assert rebuild(alone) == {}
    for rows in (b"0\n1\n2 77\n", b"0\n1\n1 77\n", b"0\n2\n0 77\nx\n"):
        (alone / EPOCHS).write_bytes(rows)
        assert rebuild(alone)[alone / EPOCHS].after == b"0\n1\n0 0\n", rows


# Rules of leader epochs, each with runs of batches as (epoch, first, last).
RUNS = [(0, 0, 9), (2, 10, 19), (5, 25, 29)]
RULES = {
    "batches alone": ([], RUNS, 0, 30, [(0, 0), (2, 10), (5, 25)]),
    "an empty epoch between": ([(3, 20)], RUNS, 0, 30, [(0, 0), (2, 10), (3, 20), (5, 25)]),
    "an empty epoch at the end": ([(6, 30)], RUNS, 0, 30, [(0, 0), (2, 10), (5, 25), (6, 30)]),
    "an epoch beyond the end": ([(6, 31)], RUNS, 0, 30, [(0, 0), (2, 10), (5, 25)]),
    "a start that compaction left": ([(5, 22)], RUNS, 0, 30, [(0, 0), (2, 10), (5, 22)]),
    "a start that is too late": ([(5, 26)], RUNS, 0, 30, [(0, 0), (2, 10), (5, 25)]),
    "a start among older batches": ([(5, 19)], RUNS, 0, 30, [(0, 0), (2, 10), (5, 25)]),
    "an epoch out of order": ([(4, 5)], RUNS, 0, 30, [(0, 0), (2, 10), (5, 25)]),
    "an older epoch in a gap": ([(1, 22)], RUNS, 0, 30, [(0, 0), (2, 10), (5, 25)]),
    "an empty epoch where another begins": ([(1, 10)], RUNS, 0, 30, [(0, 0), (2, 10), (5, 25)]),
    "two empty epochs": ([(6, 30), (7, 30)], RUNS, 0, 30, [(0, 0), (2, 10), (5, 25), (7, 30)]),
    "a log that starts later": ([(0, 0)], RUNS, 12, 30, [(2, 12), (5, 25)]),
    "a log that starts in a gap": ([], RUNS, 22, 30, [(2, 22), (5, 25)]),
    "a log that is empty": ([(4, 3), (6, 30)], RUNS, 30, 30, [(6, 30)]),
    "no batch and no row": ([], [], 4, 4, []),
    "no batch, an epoch": ([(3, 4)], [], 4, 4, [(3, 4)]),
    "no batch, a stale epoch": ([(3, 2), (4, 9)], [], 4, 4, [(3, 4)]),
    "an unknown end": ([(6, 99)], RUNS, 0, None, [(0, 0), (2, 10), (5, 25), (6, 99)]),
    "batches without an epoch": ([], [(-1, 0, 9), (1, 10, 19)], 0, 20, [(1, 10)]),
    "negative rows": ([(-1, 0), (3, -5)], RUNS, 0, 30, [(0, 0), (2, 10), (5, 25)]),
    "an epoch that falls": ([], [(0, 0, 9), (5, 10, 19), (3, 20, 29)], 0, 30, [(0, 0), (3, 20)]),
}


@pytest.mark.parametrize("name", RULES)
def test_epochs_follow_the_batches_and_keep_what_they_allow(name):
    rows, runs, start, end, wanted = RULES[name]
    assert rules.epochs(rows, runs, start=start, end=end) == wanted


class Cache:
    """The epochs that a broker keeps while it runs."""

    def __init__(self):
        self.rows, self.runs, self.start, self.end = [], [], 0, 0

    def assign(self, epoch):
        if self.rows and self.rows[-1][0] == epoch:
            return
        while self.rows and (self.rows[-1][0] >= epoch or self.rows[-1][1] >= self.end):
            self.rows.pop()
        self.rows.append((epoch, self.end))

    def append(self, count):
        epoch = self.rows[-1][0]
        if self.runs and self.runs[-1][0] == epoch:
            self.runs[-1] = (epoch, self.runs[-1][1], self.end + count - 1)
        else:
            self.runs.append((epoch, self.end, self.end + count - 1))
        self.end += count

    def truncate(self, end):
        # Not to its very start: that leaves no epoch, where batches before it still name one.
        if not self.start < end < self.end:
            return
        self.end = end
        while self.rows and self.rows[-1][1] >= self.end:
            self.rows.pop()
        self.runs = [(e, f, min(last, self.end - 1)) for e, f, last in self.runs if f < self.end]

    def delete_records(self, start):
        self.start = min(start, self.end)
        gone = [row for row in self.rows if row[1] <= self.start]
        if gone:
            self.rows = [(gone[-1][0], self.start), *self.rows[len(gone) :]]


STEPS = st.lists(
    st.tuples(st.sampled_from(["elect", "append", "append", "truncate", "delete"]),
              st.integers(1, 9)), max_size=30,
)  # fmt: skip


@given(steps=STEPS)
def test_the_epochs_of_a_running_broker_are_what_is_rebuilt(steps):
    cache, epoch = Cache(), 0
    cache.assign(epoch)
    for what, number in steps:
        if what == "elect":
            epoch += number
            cache.assign(epoch)
        elif what == "append":
            cache.assign(epoch)  # a truncation may have taken it away
            cache.append(number)
        elif what == "truncate":
            cache.truncate(cache.end - number)
        elif cache.end > cache.start:
            cache.delete_records(min(cache.start + number, cache.end))
    extent = {"start": cache.start, "end": cache.end}
    assert rules.epochs(cache.rows, cache.runs, **extent) == cache.rows
    with_batches = [epoch for epoch, _, last in cache.runs if last >= cache.start]
    if cache.start < cache.end:
        known = rules.epochs([], cache.runs, **extent)
        assert known == [row for row in cache.rows if row[0] in with_batches]


PAIRS = st.tuples(st.integers(-2, 12), st.integers(-2, 60))


@given(
    rows=st.lists(PAIRS, max_size=8),
    lengths=st.lists(st.tuples(st.integers(0, 4), st.integers(1, 6), st.integers(0, 3))),
    start=st.integers(0, 30),
)
# A row that begins behind the start with an epoch that batches before the start have already.
@example(rows=[(0, 30)], lengths=[(0, 6, 3)] * 3 + [(1, 6, 0)], start=27)
@example(rows=[(1, 7)], lengths=[(1, 2, 2), (1, 2, 1), (0, 5, 0)], start=6)
@example(rows=[(1, 6)], lengths=[(1, 4, 0), (1, 5, 0)], start=6)
def test_any_rows_become_epochs_that_rise_and_stay(rows, lengths, start):
    runs, offset, epoch = [], 0, 0
    for more, count, gap in lengths:
        epoch = max(0, epoch + more)
        runs.append((epoch, offset, offset + count - 1))
        offset += count + gap
    end = max(offset, start)
    found = rules.epochs(rows, runs, start=start, end=end)
    assert found == rules.epochs(found, runs, start=start, end=end)
    for (epoch, offset), (later, further) in pairwise(found):
        assert epoch < later
        assert offset < further
    assert all(start <= offset <= end for _, offset in found)
    # Every batch is found in its epoch.
    for epoch, first, last in runs:
        if last >= start:
            assert [row for row in found if row[1] <= max(first, start)][-1][0] == epoch


@given(
    lengths=st.lists(st.tuples(st.integers(0, 4), st.integers(1, 6), st.integers(0, 3))),
    start=st.integers(0, 30),
)
def test_batches_alone_give_the_epochs_that_a_broker_makes_of_them(lengths, start):
    runs, offset, epoch = [], 0, 0
    cache = EpochCache()
    for more, count, gap in lengths:
        epoch += more
        runs.append((epoch, offset, offset + count - 1))
        if epoch > (cache.rows[-1][0] if cache.rows else -1):
            cache.assign(epoch, offset)
        offset += count + gap
    cache.truncate_from_start(start)
    assert rules.epochs([], runs, start=start, end=max(offset, start)) == cache.rows


EXTENT = LogBounds(10, 100)
OFFSETS = {
    "a recovery point stays": (FileKind.RECOVERY_POINT_CHECKPOINT, 50, 50),
    "a recovery point never rises": (FileKind.RECOVERY_POINT_CHECKPOINT, 3, 3),
    "a recovery point comes down to the end": (FileKind.RECOVERY_POINT_CHECKPOINT, 101, 100),
    "a high watermark is at least the start": (FileKind.REPLICATION_CHECKPOINT, 3, 20),
    "a high watermark stays": (FileKind.REPLICATION_CHECKPOINT, 100, 100),
    "a high watermark comes down to the end": (FileKind.REPLICATION_CHECKPOINT, 150, 100),
    "a log start stays": (FileKind.LOG_START_CHECKPOINT, 20, 20),
    "a log start of tiered storage stays": (FileKind.LOG_START_CHECKPOINT, 5, 5),
    "a log start beyond the end would empty the log": (FileKind.LOG_START_CHECKPOINT, 101, 100),
    "a cleaner offset stays": (FileKind.CLEANER_CHECKPOINT, 20, 20),
    "a cleaner offset before the start": (FileKind.CLEANER_CHECKPOINT, 19, 20),
    "a cleaner offset beyond the end": (FileKind.CLEANER_CHECKPOINT, 101, 20),
}


@pytest.mark.parametrize("name", OFFSETS)
def test_offsets_are_what_a_broker_makes_of_them(name):
    kind, row, wanted = OFFSETS[name]
    assert rules.offset(kind, row, EXTENT, 20) == wanted
    assert rules.offset(kind, row, LogBounds(10, None), 20) == row


@pytest.mark.parametrize(("row", "start"), [(None, 10), (-1, 10), (30, 30), (101, 100)])
def test_a_log_starts_with_its_row_or_its_first_segment(row, start):
    assert rules.log_start(EXTENT, row) == start


@pytest.fixture
def small(scenario, tmp_path):
    """Return a log dir of two partitions, stopped cleanly: orders end at 360 and 500."""
    return small_log_dir(scenario("4.3.1/clean"), tmp_path / "d", "codec-zstd-0", "mixed_codecs-0")


def test_rows_that_no_log_allows_are_changed_in_place(small):
    before = (small / WATERMARK).read_bytes()
    set_offsets(small / WATERMARK, {("codec-zstd", 0): 9360, ("gone", 4): 5})
    set_offsets(small / RECOVERY, {("codec-zstd", 0): 361})
    edits = rebuild(small)
    assert edits[small / WATERMARK].after == before
    lowered, removed = edits[small / WATERMARK].reasons
    assert lowered.startswith("codec-zstd-0: ")
    assert has_numbers(lowered, 9360, 360)
    assert removed.startswith("gone-4: ")
    assert edits[small / RECOVERY].after.endswith(b"codec-zstd 0 360\nmixed_codecs 0 500\n")
    action = edits[small / WATERMARK].action
    assert lowered in action.reason
    assert numbers_in(action.reason) == [*numbers_in(lowered), 1]
    assert action.change.seen.size == (small / WATERMARK).stat().st_size
    assert action.length == len(before)
    do(*edits.values())
    assert rebuild(small) == {}
    assert verify(small).above_info() == []


def test_rows_that_are_missing_are_not_made_up(small):
    (small / RECOVERY).write_bytes(b"0\n0\n")
    (small / WATERMARK).unlink()
    (small / CLEANER).write_bytes(b"")
    assert rebuild(small) == {}


def test_lines_that_cannot_be_read_are_dropped(small):
    (small / RECOVERY).write_bytes(b"0\n3\ncodec-zstd 0 360\nmixed_codecs zero 500\n\n")
    one = rebuild(small)[small / RECOVERY]
    assert one.after == b"0\n1\ncodec-zstd 0 360\n"
    assert "line 4: " in one.action.reason


def test_only_what_is_selected_is_changed(small):
    set_offsets(small / WATERMARK, {("codec-zstd", 0): 999, ("mixed_codecs", 0): 999})
    set_offsets(small / WATERMARK, {("gone", 0): 1, ("mixed_gone", 0): 1})
    one = rebuild(small, selection=Selection(topics=("mixed*",)))[small / WATERMARK]
    assert offset_checkpoint.parse(one.after).offsets == {
        ("codec-zstd", 0): 999, ("mixed_codecs", 0): 500, ("gone", 0): 1,
    }  # fmt: skip


def test_one_checkpoint_by_itself_needs_only_the_ends_of_the_logs(small):
    set_offsets(small / WATERMARK, {("codec-zstd", 0): 999})
    set_offsets(small / RECOVERY, {("codec-zstd", 0): 999})
    (small / "codec-zstd-0" / EPOCHS).unlink()
    assert list(rebuild(small / WATERMARK)) == [small / WATERMARK]
    assert set(rebuild(small)) == {
        small / WATERMARK, small / RECOVERY, small / "codec-zstd-0" / EPOCHS,
    }  # fmt: skip


def test_several_processes_find_the_same(copy_of, monkeypatch):
    monkeypatch.setattr("logtool.checks.schedule.WORTH_A_POOL", 0)
    home = copy_of("4.3.1/clean")
    for path in with_epochs(home):
        path.unlink()
    assert rebuild(home, run=Run(budget=Budget(jobs=3))) == rebuild(home)


def test_a_log_whose_end_is_not_known_leaves_its_rows_alone(small):
    log = next((small / "codec-zstd-0").glob("*.log"))
    data = bytearray(log.read_bytes())
    data[int(batches(log).position[-1]) + 70] ^= 1
    log.write_bytes(data)
    set_offsets(small / WATERMARK, {("codec-zstd", 0): 999})
    assert rebuild(small) == {}


def test_a_partition_that_cannot_be_read_is_reported_and_left_alone(small):
    log = next((small / "codec-zstd-0").glob("*.log"))
    log.rename(log.with_suffix(".moved"))
    log.symlink_to(log.with_suffix(".moved"))
    set_offsets(small / WATERMARK, {("codec-zstd", 0): 999, ("mixed_codecs", 0): 999})
    found = list(CheckpointRebuild(small))
    problems = [item for item in found if isinstance(item, UnreadableError)]
    assert [problem.path for problem in problems] == [log]
    (one,) = (item for item in found if isinstance(item, Edit))
    assert offset_checkpoint.parse(one.after).offsets[("codec-zstd", 0)] == 999
    assert offset_checkpoint.parse(one.after).offsets[("mixed_codecs", 0)] == 500


def test_a_file_that_is_no_checkpoint_cannot_be_rebuilt(small):
    for name in ("meta.properties", "codec-zstd-0/00000000000000000000.index"):
        with pytest.raises(UsageError, match=name):
            CheckpointRebuild(small / name)


@pytest.mark.parametrize("name", ["4.3.1/clean", "3.9.2/clean", "4.3.1/replicas", "3.9.2/running"])
def test_a_row_set_to_what_a_broker_wrote_gives_the_bytes_it_wrote(copy_of, name):
    for path in copy_of(name).rglob("*-checkpoint"):
        data = path.read_bytes()
        if path.name == EPOCHS:
            for epoch, offset in leader_epoch_checkpoint.parse(data).epochs:
                assert set_row(path, str(epoch), str(offset)) is None
                if len(data.splitlines()) > 3:
                    do(set_row(path, str(epoch), None))
                    do(set_row(path, str(epoch), str(offset)))
                assert path.read_bytes() == data
            continue
        for (topic, number), offset in offset_checkpoint.parse(data).offsets.items():
            key = f"{topic}-{number}"
            do(set_row(path, key, str(offset + 1)))
            do(set_row(path, key, str(offset)))
            assert path.read_bytes() == data
            assert set_row(path, key, str(offset)) is None


def test_a_new_row_goes_last_and_an_old_one_goes(small):
    path = small / RECOVERY
    one = set_row(path, "my-topic-12", "4711")
    assert one.after == path.read_bytes().replace(b"0\n2\n", b"0\n3\n") + b"my-topic 12 4711\n"
    (reason,) = one.reasons
    assert reason.startswith("my-topic-12: ")
    assert "4711" in reason
    gone = set_row(path, "codec-zstd-0", None)
    assert gone.after == b"0\n1\nmixed_codecs 0 500\n"
    assert "unclean" in gone.action.reason


def test_the_first_row_makes_a_file(small):
    path = small / "new" / CLEANER
    path.parent.mkdir()
    one = set_row(path, "a-0", "3")
    assert (one.action.action, one.before, one.after) == (FileChange.CREATE, b"", b"0\n1\na 0 3\n")
    assert set_row(path, "a-0", None) is None
    with pytest.raises(UnreadableError, match=str(small / "missing")):
        set_row(small / "missing" / CLEANER, "a-0", None)


def test_a_row_that_is_not_there_needs_no_removing(small):
    assert set_row(small / RECOVERY, "gone-0", None) is None
    assert set_row(small / "mixed_codecs-0" / EPOCHS, "7", None) is None


def test_epochs_are_set_in_their_order(small):
    path = small / "mixed_codecs-0" / EPOCHS
    assert path.read_bytes() == b"0\n2\n0 0\n2 500\n"
    one = set_row(path, "1", "300")
    assert one.after == b"0\n3\n0 0\n1 300\n2 500\n"
    assert (one.action.topic, one.action.partition) == ("mixed_codecs", 0)
    with pytest.raises(RefusedError, match=r"\b1\b.*\b500\b"):
        set_row(path, "1", "500")


WRONG = {
    "no partition": (RECOVERY, "topic", "1"),
    "no number": (RECOVERY, "topic-x", "1"),
    "a leading zero": (RECOVERY, "topic-01", "1"),
    "a space": (RECOVERY, "a b-0", "1"),
    "a directory that is going": (RECOVERY, f"a-0.{'0' * 32}-delete", "1"),
    "a negative offset": (RECOVERY, "a-0", "-1"),
    "no offset": (RECOVERY, "a-0", "x"),
    "too large an offset": (RECOVERY, "a-0", str(2**63)),
    "digits of another script": (RECOVERY, "a-0", "\u0663"),
    "too large an epoch": (f"mixed_codecs-0/{EPOCHS}", str(2**31), "1"),
    "a partition for an epoch": (f"mixed_codecs-0/{EPOCHS}", "a-0", "1"),
    "another file": ("meta.properties", "a-0", "1"),
    "a temporary file": (f"{RECOVERY}.tmp", "a-0", "1"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_makes_no_sense_is_refused(small, name):
    file, key, value = WRONG[name]
    with pytest.raises(UsageError):
        set_row(small / file, key, value)


def test_a_file_that_a_broker_cannot_read_is_not_changed_row_by_row(small):
    (small / RECOVERY).write_bytes(b"0\n2\ncodec-zstd 0 360\n")
    with pytest.raises(RefusedError, match="checkpoint rebuild"):
        set_row(small / RECOVERY, "codec-zstd-0", None)


def test_a_file_that_a_broker_does_without_can_go(small):
    for path in (small / RECOVERY, small / ".kafka_cleanshutdown"):
        one = remove(path)
        assert (one.action.action, one.after) == (FileChange.REMOVE, b"")
        assert one.before == path.read_bytes()
        assert one.action.change.seen.size == len(one.before)
    with pytest.raises(UsageError):
        remove(small / "meta.properties")
    with pytest.raises(UnreadableError):
        remove(small / "elsewhere" / RECOVERY)


def test_every_removable_file_has_a_consequence():
    assert set(edit.REMOVABLE) == set(edit._WITHOUT)
