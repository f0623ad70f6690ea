"""Copies of partitions against each other: what real brokers left, damage, and made-up tables."""

import json
import shutil
import zipfile
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from damage import cut, damage_file, drop, flip, zero
from hypothesis import given
from hypothesis import strategies as st
from verification import batches, logs

from logtool.diff import digest
from logtool.diff.copy import COLUMNS, Batches, Copy, DamagedRange
from logtool.diff.pair import Status, compare
from logtool.diff.run import Comparison
from logtool.diff.verdict import Verdict, judge
from logtool.disk import node_dir
from logtool.disk.node_dir import NodeDir
from logtool.errors import RefusedError, UnreadableError, UsageError
from logtool.running.budget import Budget
from logtool.running.run import Run
from logtool.running.workers import Pace

VERSIONS = ("3.9.0", "3.9.2", "4.3.1")
NODES = ("node-1", "node-2", "node-3")


def run(*sources, **options):
    """Return the verdicts by topic; nothing may be unreadable."""
    items = list(Comparison([node_dir.parse(str(source)) for source in sources], **options))
    assert all(isinstance(item, Verdict) for item in items), items
    return {item.copies[0].topic: item for item in items}


def told(verdict):
    """Return everything that is said of a partition but where it lies."""
    parts = [verdict, *verdict.copies, *verdict.pairs, *verdict.wounds]
    return [{k: v for k, v in part.as_json().items() if k != "path"} for part in parts]


@pytest.mark.parametrize("version", VERSIONS)
def test_three_nodes_of_a_real_cluster(scenario, version):
    home = scenario(f"{version}/replicas")
    found = run(*(home / node for node in NODES))
    assert {topic: str(one.status) for topic, one in found.items()} == {
        "__cluster_metadata": str(found["__cluster_metadata"].status),
        "replica.diverged": "diverged",
        "replica.fetched-at-once": "same",
        "replica.in-sync": "same",
        "replica.lagging": "behind",
    }
    assert not found["__cluster_metadata"].status.is_grave
    lagging = found["replica.lagging"]
    assert (lagging.superset, lagging.behind) == (("2",), ("3",))
    (pair,) = lagging.pairs
    assert pair.right_lacks.behind == 17
    assert not pair.left_lacks


@pytest.mark.parametrize("version", VERSIONS)
def test_the_first_diverging_batch_is_that_of_the_new_leader_epoch(scenario, version):
    home = scenario(f"{version}/replicas")
    (pair,) = run(home / "node-2", home / "node-3")["replica.diverged"].pairs
    won = dict(pair.right.epochs)
    assert pair.diverges_at == pair.epochs_diverge_at == won[max(won)]
    assert pair.left_batch["base_offset"] == pair.right_batch["base_offset"] == pair.diverges_at
    assert pair.left_batch["leader_epoch"] < pair.right_batch["leader_epoch"] == max(won)
    assert pair.left_batch["crc"] != pair.right_batch["crc"]
    theirs = pair.left.batches
    assert pair.equal == (theirs.base_offset < pair.diverges_at).sum()
    assert pair.common_epoch == (pair.left.epochs[0][0], 0)


@pytest.fixture
def nodes(copy_of):
    home = copy_of("4.3.1/replicas")
    return [home / node for node in NODES[1:]]


TOPIC = "replica.fetched-at-once"


def log_of(node):
    return logs(node / f"{TOPIC}-0")[0]


def test_a_flipped_bit_is_damage_that_the_other_copy_fills(nodes):
    log = log_of(nodes[0])
    table = batches(log)
    damage_file(log, flip, int(table.position[5]) + 80)
    verdict = run(*nodes)[TOPIC]
    (wound,) = verdict.wounds
    assert (verdict.status, verdict.superset, verdict.unfilled) == (Status.DAMAGED, ("3",), 0)
    assert (wound.copy.label, wound.filled_by) == ("2", ("3",))
    assert wound.damage.position == table.position[5]
    assert (wound.damage.first_offset, wound.damage.last_offset) == (
        table.base_offset[5], table.last_offset[5],
    )  # fmt: skip


def test_damage_at_one_place_of_all_copies_cannot_be_filled_and_elsewhere_it_can(nodes):
    for node, rows in zip(nodes, ([5, 9], [5, 20]), strict=True):
        log = log_of(node)
        for row in rows:
            damage_file(log, flip, int(batches(log_of(nodes[1])).position[row - 1]) + 80)
    verdict = run(*nodes)[TOPIC]
    assert (verdict.status, verdict.superset) == (Status.DAMAGED, ())
    assert verdict.unfilled == 2
    assert [bool(wound.filled_by) for wound in verdict.wounds] == [False, True, False, True]


def test_an_append_that_was_not_finished_is_behind_and_not_damage(nodes):
    log = log_of(nodes[0])
    table = batches(log)
    # Of the file, which may be preallocated, only this much is there.
    log.write_bytes(log.read_bytes()[: int(table.position[-1]) + 40])
    verdict = run(*nodes)[TOPIC]
    assert (verdict.status, verdict.behind) == (Status.BEHIND, ("2",))
    (wound,) = verdict.wounds
    assert wound.damage.tail
    assert wound.filled_by == ("3",)


def test_zeros_in_the_middle_are_damage_and_bytes_that_are_gone_a_hole(nodes):
    log = log_of(nodes[0])
    table = batches(log)
    damage_file(log, zero, int(table.position[7]), int(table.size[7]))
    assert run(*nodes)[TOPIC].status is Status.DAMAGED
    shutil.copy(log_of(nodes[1]), log)
    damage_file(log, drop, int(table.position[7]), int(table.size[7:9].sum()))
    verdict = run(*nodes)[TOPIC]
    (pair,) = verdict.pairs
    assert (verdict.status, verdict.superset) == (Status.MISSING, ("3",))
    assert pair.left_lacks.missing == ((table.base_offset[7], table.last_offset[8]),)


def test_a_batch_that_compaction_took_is_no_hole(copy_of, tmp_path):
    left = copy_of("4.3.1/clean")
    right = tmp_path / "right"
    shutil.copytree(left, right)
    log = logs(right / "compacted.keys-0")[2]
    table = batches(log)
    damage_file(log, drop, int(table.position[0]), int(table.size[0]))
    (verdict,) = run(left / "compacted.keys-0", right / "compacted.keys-0").values()
    assert verdict.status is Status.COMPACTED
    assert verdict.superset == (str(left / "compacted.keys-0"),)
    assert verdict.pairs[0].right_lacks.compacted == 1


def test_partition_dirs_alone_are_copies_whatever_they_are_called(nodes, tmp_path):
    other = tmp_path / "from-elsewhere"
    shutil.copytree(nodes[0] / f"{TOPIC}-0", other)
    (verdict,) = run(nodes[0] / f"{TOPIC}-0", f"9={other}").values()
    assert [copy.label for copy in verdict.copies] == ["2", "9"]
    assert verdict.status is Status.SAME


def test_two_copies_of_one_broker_are_called_by_their_paths(scenario):
    home = scenario("4.3.1/two-log-dirs")
    found = run(home / "dir-1", home / "dir-2")
    moving = found.pop("moving.topic")
    assert moving.status is Status.BEHIND
    assert all("moving.topic-0" in copy.label for copy in moving.copies)
    assert {one.status for one in found.values()} == {Status.ALONE}


def test_copies_of_topics_with_other_ids_are_not_compared(nodes):
    path = nodes[0] / f"{TOPIC}-0" / "partition.metadata"
    path.write_text("version: 0\ntopic_id: J8aAPcfLQt2bqs1JT_rMgQ")
    verdict = run(*nodes)[TOPIC]
    assert (verdict.status, verdict.superset) == (Status.OTHER_TOPIC, ())


def test_a_digest_gives_the_same_comparison(nodes, tmp_path):
    damage_file(log_of(nodes[0]), flip, 4000)
    damage_file(log_of(nodes[1]), cut, 60000)
    saved = []
    for node in nodes:
        saved.append(tmp_path / f"{node.name}.npz")
        run(node, save=saved[-1])
    # A digest has no metadata log to say who may lead.
    direct = {k: replace(verdict, standing=None) for k, verdict in run(*nodes).items()}
    for sources in (saved, [nodes[0], saved[1]], [saved[0], nodes[1]]):
        found = {k: replace(verdict, standing=None) for k, verdict in run(*sources).items()}
        assert {k: told(v) for k, v in found.items()} == {k: told(v) for k, v in direct.items()}
    with np.load(saved[0], allow_pickle=False) as content:
        assert content["0.npy" if "0.npy" in content else "0"].shape[0] == len(COLUMNS)


def test_a_digest_is_never_written_over_a_file_or_into_a_log_dir(nodes, tmp_path):
    there = tmp_path / "there"
    there.write_text("kept")
    inside = [nodes[0] / "x.npz", nodes[0] / f"{TOPIC}-0" / "x.npz"]
    for path in (there, *inside):
        with pytest.raises(RefusedError):
            Comparison([NodeDir(nodes[0])], save=path)
    assert there.read_text() == "kept"
    with pytest.raises(UsageError):
        Comparison([NodeDir(node) for node in nodes], save=tmp_path / "new")


def test_a_digest_that_is_not_finished_is_not_there(nodes, tmp_path):
    job = Comparison(
        [NodeDir(nodes[0])],
        save=tmp_path / "x.npz",
        run=Run(budget=Budget(pace=Pace.starting_now(None, 1e-9))),
    )
    assert list(job) == []
    assert job.out_of_time
    assert not list(tmp_path.glob("x.npz*"))


def copies(path):
    """Read a digest whole."""
    found = digest.read(path)
    return [found.copy(number) for number in range(len(found.partitions))]


def rewritten(path, target, header):
    """Copy a digest with another header."""
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w") as archive:
        archive.writestr("0.npy", source.read("0.npy"))
        archive.writestr("header.json", json.dumps(header))


def test_any_other_file_is_no_digest_and_every_cut_of_one_is_said(nodes, tmp_path):
    path = tmp_path / "x.npz"
    run(nodes[0], save=path)
    content = path.read_bytes()
    broken = tmp_path / "broken.npz"
    for size in range(0, len(content), 1499):
        broken.write_bytes(content[:size])
        with pytest.raises(UnreadableError, match="sound digest"):
            copies(broken)
    for at in range(0, len(content), 499):
        broken.write_bytes(flip(content, at))
        with suppress(UnreadableError):  # and nothing else
            copies(broken)
    with zipfile.ZipFile(path) as archive:
        header = json.loads(archive.read("header.json"))
    for key in header["partitions"][0]:
        for value in ([], "x", {}, 1.5, [{}]):
            first = header["partitions"][0] | {key: value}
            rewritten(path, broken, {**header, "partitions": [first]})
            with suppress(UnreadableError):
                judge(copies(broken))
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("header.json", "{}")
    with pytest.raises(UnreadableError):
        digest.read(tmp_path / "other.zip")


def test_a_segment_that_cannot_be_read_is_damage_that_others_fill(nodes):
    log = log_of(nodes[0])
    log.unlink()
    log.mkdir()
    items = list(Comparison([NodeDir(node) for node in nodes]))
    assert all(not isinstance(item, UnreadableError) for item in items)
    log.rmdir()
    log.symlink_to(log_of(nodes[1]))
    items = list(Comparison([NodeDir(node) for node in nodes]))
    assert [type(item) for item in items if not isinstance(item, Verdict)] == [UnreadableError]
    (found,) = [v for v in items if isinstance(v, Verdict) and v.copies[0].topic == TOPIC]
    assert [wound.filled_by for wound in found.wounds] == [("3",)]


# Made-up tables.


def copy_with(rows, *, node=1, start=0, damages=(), topic_id=None, cleaner=None):
    """Return a copy of batches (base, offsets, records, epoch, crc)."""
    columns = {name: np.zeros(len(rows), np.int64) for name in COLUMNS}
    columns["magic"][:] = 2
    columns["size"][:] = 100
    for at, (base, count, records, epoch, crc) in enumerate(rows):
        columns["base_offset"][at], columns["last_offset"][at] = base, base + count - 1
        columns["record_count"][at], columns["leader_epoch"][at] = records, epoch
        columns["crc"][at], columns["position"][at] = crc, 100 * at
    batches = Batches(*(columns[name] for name in COLUMNS))
    end = int(batches.last_offset[-1]) + 1 if rows else start
    return Copy("t", 0, f"/{node}", node, topic_id, start, end, 1, 100 * len(rows), None, cleaner,
                (), batches, tuple(damages), str(node))  # fmt: skip


@st.composite
def histories(draw):
    """Draw the batches of a log, none of them compacted."""
    rows, base, epoch = [], 0, 0
    for count, step in draw(st.lists(st.tuples(st.integers(1, 5), st.booleans()), max_size=20)):
        epoch += step
        rows.append((base, count, count, epoch, draw(st.integers(0, 2**32 - 1))))
        base += count
    return rows


@given(histories(), st.integers(0, 20))
def test_a_prefix_is_behind_and_the_whole_a_superset(rows, size):
    whole, part = copy_with(rows), copy_with(rows[:size], node=2)
    verdict = judge([whole, part])
    assert "1" in verdict.superset
    if size >= len(rows):
        assert verdict.status is Status.SAME
    elif size:
        assert (verdict.status, verdict.behind) == (Status.BEHIND, ("2",))


@given(histories(), st.integers(0, 20), histories())
def test_two_tails_diverge_where_they_part(rows, size, tail):
    at = rows[min(size, len(rows)) - 1] if rows and size else None
    start = at[0] + at[1] if at else 0
    other = [*rows[:size], *((start + b, n, r, e + 99, c) for b, n, r, e, c in tail)]
    pair = compare(copy_with(rows), copy_with(other, node=2))
    parts = size < len(rows) and len(tail) > 0
    assert pair.diverges_at == (start if parts else None)
    assert (pair.status is Status.DIVERGED) == parts
    back = compare(pair.right, pair.left)
    assert (back.diverges_at, back.equal, back.status) == (
        pair.diverges_at, pair.equal, pair.status,
    )  # fmt: skip


@given(histories(), st.data())
def test_compaction_is_never_taken_for_divergence(rows, data):
    kept = []
    for base, count, records, epoch, crc in rows[:-1]:
        left = data.draw(st.integers(-1, records))
        if left == records:
            kept.append((base, count, records, epoch, crc))
        elif left >= 0:
            kept.append((base, count, left, epoch, crc ^ 1))
    full = copy_with(rows, cleaner=7)
    compacted = copy_with(kept + rows[-1:], node=2, cleaner=9)
    pair = compare(full, compacted)
    assert pair.status in (Status.SAME, Status.COMPACTED)
    assert not pair.left_lacks
    assert (pair.status is Status.SAME) == (kept == rows[:-1])


@given(histories(), st.integers(0, 19), st.integers(0, 2**32 - 1))
def test_other_content_at_the_same_offsets_is_divergence(rows, at, crc):
    if at >= len(rows) or rows[at][4] == crc:
        return
    other = [*rows]
    other[at] = (*rows[at][:4], crc)
    pair = compare(copy_with(rows), copy_with(other, node=2))
    assert pair.diverges_at == rows[at][0]
    assert (pair.left_batch["crc"], pair.right_batch["crc"]) == (rows[at][4], crc)


def test_a_batch_of_other_bounds_is_divergence_at_its_first_offset():
    left = copy_with([(0, 5, 5, 0, 1), (5, 5, 5, 0, 2)])
    right = copy_with([(0, 5, 5, 0, 1), (5, 3, 3, 0, 3), (8, 2, 2, 0, 4)], node=2)
    assert compare(left, right).diverges_at == 5
    shifted = copy_with([(0, 3, 3, 0, 1), (3, 7, 7, 0, 2)], node=3)
    assert compare(left, shifted).diverges_at == 0


def test_what_diverged_before_the_damage_cannot_fill_it():
    damage = DamagedRange(0, 100, 100, "crc", "", 5, 9)
    hurt = copy_with([(0, 5, 5, 0, 1), (10, 5, 5, 0, 3)], damages=[damage])
    good = copy_with([(0, 5, 5, 0, 1), (5, 5, 5, 0, 2), (10, 5, 5, 0, 3)], node=2)
    other = copy_with([(0, 5, 5, 1, 9), (5, 5, 5, 1, 8), (10, 5, 5, 1, 7)], node=3)
    short = copy_with([(0, 5, 5, 0, 1), (5, 3, 3, 0, 4)], node=4)
    (wound,) = judge([hurt, good, other, short]).wounds
    assert (wound.filled_by, wound.partly_by) == (("2",), ("4",))


def test_logs_with_no_offset_in_common_are_neither_the_same_nor_diverged():
    left = copy_with([(0, 5, 5, 0, 1)])
    right = copy_with([(50, 5, 5, 0, 1)], node=2, start=50)
    assert compare(left, right).status is Status.DISJOINT
    assert judge([left, right]).superset == ()


def test_a_copy_alone_has_everything():
    verdict = judge([replace(copy_with([(0, 5, 5, 0, 1)]), label="")])
    assert (verdict.status, verdict.superset) == (Status.ALONE, ("1",))
