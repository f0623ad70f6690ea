"""Copies of partitions against each other: what real brokers left, damage, and made-up tables."""

import io
import json
import shutil
import threading
import zipfile
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from bad_sectors import SECTOR, bad_sector
from damage import cut, damage_file, drop, flip, zero
from hypothesis import given
from hypothesis import strategies as st
from log_dir_damage import new_batch
from verification import batches, logs

from logtool.commands.views.diff_tables import COPY, DAMAGE, PARTITION
from logtool.copies import digest
from logtool.copies.batches import COLUMNS, NOTHING, CopyBatches, CopyPart, DamagedRange
from logtool.copies.compare import compare
from logtool.copies.copy import BatchTotals, CopyReading, WholeCopy
from logtool.copies.merge import stretches
from logtool.copies.pair import Status
from logtool.copies.segments import parts_of
from logtool.copies.verdict import CopiesVerdict, judge
from logtool.diff import Diff
from logtool.disk.files import LogFile
from logtool.errors import RefusedError, UnreadableError, UsageError
from logtool.log import inputs, opening
from logtool.log.inputs import NodeDir
from logtool.log.walk import scanner
from logtool.running.ahead import OneAhead
from logtool.running.budget import Budget
from logtool.running.run import Run
from logtool.running.workers import Pace
from logtool.schemas.printed import COPY_STATUSES, PAIR

VERSIONS = ("3.9.0", "3.9.2", "4.3.1")
NODES = ("node-1", "node-2", "node-3")


def run(*sources, **options):
    """Return the verdicts by topic; nothing may be unreadable."""
    items = list(Diff([inputs.parse_node_dir(str(source)) for source in sources], **options))
    assert all(isinstance(item, CopiesVerdict) for item in items), items
    return {item.copies[0].topic: item for item in items}


def columns_of(verdict):
    """Return everything that is said of a partition but where it lies."""
    rows = [
        PARTITION.row(verdict),
        *map(COPY.row, verdict.copies),
        *map(PAIR.row, verdict.pairs),
        *map(DAMAGE.row, verdict.wounds),
    ]
    return [{k: v for k, v in row.items() if k != "path"} for row in rows]


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
    assert pair.left_batch.base_offset == pair.right_batch.base_offset == pair.diverges_at
    assert pair.left_batch.leader_epoch < pair.right_batch.leader_epoch == max(won)
    assert pair.left_batch.crc != pair.right_batch.crc
    (theirs,) = (batches(log).base_offset for log in logs(home / "node-2" / "replica.diverged-0"))
    assert pair.equal == (theirs < pair.diverges_at).sum()
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


def without_files(verdict):
    """Return a verdict without what only directories show: metadata, damaged bytes, commands."""
    wounds = tuple(replace(wound, difference=None) for wound in verdict.wounds)
    return replace(verdict, standing=None, wounds=wounds, next_command=None)


def test_a_digest_gives_the_same_comparison(nodes, tmp_path):
    damage_file(log_of(nodes[0]), flip, 4000)
    damage_file(log_of(nodes[1]), cut, 60000)
    saved = []
    for node in nodes:
        saved.append(tmp_path / f"{node.name}.npz")
        run(node, save=saved[-1])
    direct = {k: without_files(verdict) for k, verdict in run(*nodes).items()}
    for sources in (saved, [nodes[0], saved[1]], [saved[0], nodes[1]]):
        found = {k: without_files(verdict) for k, verdict in run(*sources).items()}
        assert {k: columns_of(v) for k, v in found.items()} == {
            k: columns_of(v) for k, v in direct.items()
        }
    with np.load(saved[0], allow_pickle=False) as content:
        assert content["0-0"].shape[0] == len(COLUMNS)


def test_a_digest_is_never_written_over_a_file_or_into_a_log_dir(nodes, tmp_path):
    there = tmp_path / "there"
    there.write_text("kept")
    inside = [nodes[0] / "x.npz", nodes[0] / f"{TOPIC}-0" / "x.npz"]
    for path in (there, *inside):
        with pytest.raises(RefusedError):
            Diff([NodeDir(nodes[0])], save=path)
    assert there.read_text() == "kept"
    with pytest.raises(UsageError):
        Diff([NodeDir(node) for node in nodes], save=tmp_path / "new")


def test_a_digest_that_is_not_finished_is_not_there(nodes, tmp_path):
    limited = Run(budget=Budget(pace=Pace.starting_now(None, 1e-9)))
    job = Diff([NodeDir(nodes[0])], save=tmp_path / "x.npz", run=limited)
    assert list(job) == []
    assert limited.ran_out
    assert not list(tmp_path.glob("x.npz*"))


def copies(path):
    """Read a digest whole."""
    found = digest.read(path)
    return [found.reading(number).whole() for number in range(len(found.partitions))]


def rewritten(path, target, header):
    """Copy a digest with another header."""
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w") as archive:
        archive.writestr("0-0.npy", source.read("0-0.npy"))
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
                judged(copies(broken))
        first = {name: value for name, value in header["partitions"][0].items() if name != key}
        rewritten(path, broken, {**header, "partitions": [first]})
        with pytest.raises(UnreadableError, match="sound digest"):
            copies(broken)
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("header.json", "{}")
    with pytest.raises(UnreadableError):
        digest.read(tmp_path / "other.zip")


def test_a_segment_that_cannot_be_read_is_damage_that_others_fill(nodes):
    log = log_of(nodes[0])
    log.unlink()
    log.mkdir()
    items = list(Diff([NodeDir(node) for node in nodes]))
    assert all(not isinstance(item, UnreadableError) for item in items)
    log.rmdir()
    log.symlink_to(log_of(nodes[1]))
    items = list(Diff([NodeDir(node) for node in nodes]))
    assert [type(item) for item in items if not isinstance(item, CopiesVerdict)] == [
        UnreadableError
    ]
    (found,) = [v for v in items if isinstance(v, CopiesVerdict) and v.copies[0].topic == TOPIC]
    assert [wound.filled_by for wound in found.wounds] == [("3",)]


def test_large_copies_are_read_in_threads_of_their_own_with_the_same_answer(nodes, monkeypatch):
    damage_file(log_of(nodes[0]), flip, 4000)
    alone = {topic: columns_of(verdict) for topic, verdict in run(*nodes).items()}
    begun = []
    begin = OneAhead.begin

    def counted(ahead, work):
        begun.append(work)
        begin(ahead, work)

    monkeypatch.setattr(OneAhead, "begin", counted)
    monkeypatch.setattr("logtool.copies.copy_readers.WORTH_A_POOL", 0)
    for jobs in (1, 2, 8):
        found = run(*nodes, run=Run(budget=Budget(jobs=jobs)))
        assert {topic: columns_of(verdict) for topic, verdict in found.items()} == alone
        assert bool(begun) == (jobs > 1)
    before = threading.active_count()
    limited = Run(budget=Budget(jobs=2, pace=Pace.starting_now(None, 1e-9)))
    job = Diff([NodeDir(node) for node in nodes], run=limited)
    assert (list(job), limited.ran_out) == ([], True)
    assert threading.active_count() == before


def test_a_digest_that_turns_out_to_be_broken_is_left_out(nodes, tmp_path):
    path, broken = tmp_path / "x.npz", tmp_path / "broken.npz"
    run(nodes[0], save=path)
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(broken, "w") as archive:
        header = json.loads(source.read("header.json"))
        for name in source.namelist():
            last = f"{header['partitions'][-1]['number']}-0.npy"
            content = source.read(name)
            archive.writestr(name, content[:-8] if name == last else content)
    items = list(Diff([NodeDir(broken), NodeDir(nodes[0]), NodeDir(nodes[1])]))
    errors = [item for item in items if isinstance(item, UnreadableError)]
    assert [error.path for error in errors] == [broken]
    # What is left is compared as if it had not been given.
    topic = header["partitions"][-1]["topic"]
    (found,) = [v for v in items if isinstance(v, CopiesVerdict) and v.copies[0].topic == topic]
    assert columns_of(found) == columns_of(run(*nodes)[topic])
    again = list(Diff([NodeDir(broken)], save=tmp_path / "new.npz"))
    assert [item.path for item in again if isinstance(item, UnreadableError)] == [broken]
    saved = {place["topic"] for place in digest.read(tmp_path / "new.npz").partitions}
    assert saved == {place["topic"] for place in header["partitions"]} - {topic}
    assert run(tmp_path / "new.npz", nodes[1]).keys() >= saved


def test_a_digest_holds_each_copy_that_a_source_has_of_a_partition(nodes, tmp_path, monkeypatch):
    monkeypatch.setattr("logtool.copies.segments.BLOCK_ROWS", 4)
    monkeypatch.setattr("logtool.copies.copy.BLOCK_ROWS", 4)
    source = nodes[0] / f"{TOPIC}-0"
    future = nodes[0] / f"{TOPIC}-0.{'ab' * 16}-future"
    shutil.copytree(source, future)
    log = logs(future)[0]
    table = batches(log)
    damage_file(log, cut, int(table.position[len(table) // 2]))
    run(nodes[0], save=tmp_path / "x.npz")
    direct, saved = run(*nodes)[TOPIC], run(tmp_path / "x.npz", nodes[1])[TOPIC]
    assert len(saved.copies) == 3
    assert columns_of(replace(saved, standing=None)) == columns_of(replace(direct, standing=None))


def test_damage_that_shows_late_is_known_where_the_others_are_held_against_it(
    tmp_path, monkeypatch
):
    """Segments that overlap: what the later one lost lies below what the former one has."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for home in (ours, theirs):
        home.mkdir()
    all_batches = [new_batch(n, b"value") for n in range(20)]
    (theirs / f"{0:020d}.log").write_bytes(b"".join(all_batches))
    (ours / f"{0:020d}.log").write_bytes(b"".join(all_batches[:15]))
    (ours / f"{10:020d}.log").write_bytes(b"".join([flip(all_batches[10], 75), *all_batches[11:]]))
    (whole,) = run(ours, theirs).values()
    assert [wound.filled_by for wound in whole.wounds] == [(str(theirs),), ()]
    monkeypatch.setattr("logtool.copies.segments.BLOCK_ROWS", 4)
    monkeypatch.setattr("logtool.copies.copy.BLOCK_ROWS", 4)
    monkeypatch.setattr(scanner, "MOST_ROWS", 2)
    monkeypatch.setattr("logtool.copies.copy_readers.WORTH_A_POOL", 0)
    size = sum(path.stat().st_size for path in tmp_path.rglob("*.log"))
    for jobs in (1, 2):
        progress = Run(budget=Budget(jobs=jobs))
        (found,) = run(ours, theirs, run=progress).values()
        assert columns_of(found) == columns_of(whole)
        assert progress.bytes_done == size


def test_blocks_end_where_many_bytes_were_read_too(nodes, monkeypatch):
    segment = opening.open_partition(log_of(nodes[0]).parent).segments[0]
    (whole,) = parts_of(segment, lambda _: None)
    monkeypatch.setattr("logtool.copies.segments.BLOCK_BYTES", 4096)
    monkeypatch.setattr(scanner, "MOST_ROWS", 2)
    parts = list(parts_of(segment, lambda _: None))
    assert len(parts) > 5
    assert sum(part.size for part in parts) == whole.size == segment.log.size
    assert sum(len(part.batches) for part in parts) == len(whole.batches)


def test_a_digest_of_the_first_version_is_read(nodes, tmp_path):
    path, first = tmp_path / "x.npz", tmp_path / "first.npz"
    run(nodes[0], save=path)
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(first, "w") as archive:
        header = json.loads(source.read("header.json"))
        for number, place in enumerate(header["partitions"]):
            blocks = range(place.pop("blocks"))
            names = [f"{place['number']}-{block}.npy" for block in blocks]
            columns = [np.load(io.BytesIO(source.read(name))) for name in names]
            content = io.BytesIO()
            np.save(content, np.concatenate(columns, axis=1))
            archive.writestr(f"{number}.npy", content.getvalue())
            del place["number"]
        header["schema"] = "logtool.digest/1"
        archive.writestr("header.json", json.dumps(header))
    new, old = (run(one, nodes[1]) for one in (path, first))
    assert {topic: columns_of(verdict) for topic, verdict in new.items()} == {
        topic: columns_of(verdict) for topic, verdict in old.items()
    }


def test_where_a_log_cannot_be_read_any_further_its_damage_begins(tmp_path, monkeypatch):
    """More batches than a chunk of a scan has: what was read of a chunk is not counted."""
    content = b"".join(new_batch(n, b"value") for n in range(scanner.MOST_ROWS + 5000))
    for name in ("t-0", "u-0"):
        log = tmp_path / name / f"{0:020d}.log"
        log.parent.mkdir()
        log.write_bytes(content)
    # As on a file system that maps no files.
    monkeypatch.setattr(LogFile, "map_range", lambda *_: None)
    position = int(batches(log).position[-1000])
    with bad_sector(log, position // SECTOR * SECTOR) as met:
        items = list(Diff([NodeDir(tmp_path / "t-0"), NodeDir(tmp_path / "u-0")]))
    assert met
    assert [error.path for error in items if isinstance(error, UnreadableError)] == [log]
    (found,) = (item for item in items if isinstance(item, CopiesVerdict))
    (wound,) = found.wounds
    damage = wound.damage
    assert (damage.reason, wound.filled_by) == ("unreadable", (str(tmp_path / "t-0"),))
    assert damage.position == batches(log).position[scanner.MOST_ROWS]
    assert damage.position + damage.length == log.stat().st_size
    assert found.pairs[0].equal == damage.first_offset == scanner.MOST_ROWS


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
    batches = CopyBatches(*(columns[name] for name in COLUMNS))
    end = int(batches.last_offset[-1]) + 1 if rows else start
    return WholeCopy(
        "t",
        0,
        f"/{node}",
        node,
        topic_id,
        start,
        end,
        1,
        100 * len(rows),
        None,
        cleaner,
        (),
        BatchTotals(batches),
        tuple(damages),
        str(node),
        batches,
    )


class Blocks(CopyReading):
    """Gives each part as a block, however small."""

    def __iter__(self):
        for part in self._parts:
            self.damages += part.damages
            self._bytes += part.size
            if len(part.batches):
                yield self._added(part.batches)


def reading(copy, rows=None, *, at_once=True):
    """Return a copy as one that is still to be read, in parts of so many rows.

    Damage comes with the first part behind it, and with the last one, or else `at_once`.
    """
    names = ("topic", "partition", "path", "node", "topic_id", "high_watermark", "cleaner_offset",
             "epochs")  # fmt: skip
    step = rows or max(len(copy.batches), 1)
    left = list(copy.damages)

    def known(end):
        found = [damage for damage in left if at_once or end is None or damage.first_offset < end]
        left[:] = [damage for damage in left if damage not in found]
        return tuple(found)

    def parts():
        for at in range(0, len(copy.batches), step):
            block = copy.batches[at : at + step]
            yield CopyPart(block, known(int(block.last_offset[-1])))
        yield CopyPart(NOTHING, known(None), copy.bytes)

    return Blocks(
        {name: getattr(copy, name) for name in names}, parts(),
        segments=copy.segments, log_start=copy.log_start, least_end=copy.log_end,
    )  # fmt: skip


def judged(copies, rows=None):
    return judge([reading(copy, rows) for copy in copies])


@st.composite
def histories(draw):
    """Draw the batches of a log, none of them compacted."""
    rows, base, epoch = [], 0, 0
    for count, step in draw(st.lists(st.tuples(st.integers(1, 5), st.booleans()), max_size=20)):
        epoch += step
        rows.append((base, count, count, epoch, draw(st.integers(0, 2**32 - 1))))
        base += count
    return rows


@st.composite
def edited(draw, rows):
    """Draw a copy of a history: compacted, damaged, cut, rotten, with another tail."""
    kept, damages = [], []
    for at, (base, count, records, epoch, crc) in enumerate(rows):
        what = draw(st.sampled_from(["", "", "", "", "gone", "fewer", "hurt", "rot"]))
        if what == "hurt":
            damages.append(DamagedRange(0, 100 * at, 100, "crc", "", base, base + count - 1))
        elif what == "fewer":
            kept.append((base, count, records - 1, epoch, crc ^ 1))
        elif what == "rot" and draw(st.booleans()):
            kept.append((base, count, records, epoch, crc ^ 2))
        elif what != "gone":
            kept.append((base, count, records, epoch, crc))
    return kept, damages


@given(histories(), st.data())
def test_where_blocks_end_makes_no_difference(rows, data):
    drawn = [data.draw(edited(rows)) for _ in range(data.draw(st.integers(1, 3)))]
    copies = [
        copy_with(kept, node=node, damages=damages, start=data.draw(st.sampled_from([0, 0, 4])))
        for node, (kept, damages) in enumerate(drawn)
    ]
    whole = columns_of(judged(copies))
    for count in (1, 2, 7):
        assert columns_of(judge([reading(copy, count, at_once=False) for copy in copies])) == whole
    if len(copies) == 2:
        pair = PAIR.row(compare(*copies))
        assert {**pair, "left": 0, "right": 0} == {**whole[3], "left": 0, "right": 0}


def test_no_more_than_two_blocks_of_a_copy_are_held():
    rows = [(n, 1, 1, 0, n) for n in range(100)]
    asked = [0, 0]

    def blocks(number, size):
        table = copy_with(rows).batches
        for at in range(0, len(table), size):
            asked[number] += 1
            yield table[at : at + size]

    done = 0
    for tables, _ in stretches([blocks(0, 10), blocks(1, 7)]):
        assert np.array_equal(tables[0].base_offset, tables[1].base_offset)
        done += len(tables[0])
        assert asked[0] * 10 - done <= 20
        assert asked[1] * 7 - done <= 14
    assert done == 100


def test_a_stretch_ends_inside_no_batch():
    one = copy_with([(n, 1, 1, 0, n) for n in range(40)]).batches
    other = copy_with([(0, 3, 3, 0, 1), (3, 30, 30, 0, 2), (33, 7, 7, 0, 3)], node=2).batches
    found = list(stretches([[one[at : at + 4] for at in range(0, 40, 4)],
                            [other[at : at + 1] for at in range(3)]]))  # fmt: skip
    ends = [int(table.last_offset[-1]) for tables, _ in found for table in tables if len(table)]
    assert sum(len(tables[0]) for tables, _ in found) == 40
    assert set(ends) <= {2, 32, 39}


@given(histories(), st.integers(0, 20))
def test_a_prefix_is_behind_and_the_whole_a_superset(rows, size):
    whole, part = copy_with(rows), copy_with(rows[:size], node=2)
    verdict = judged([whole, part])
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
    left, right = copy_with(rows), copy_with(other, node=2)
    pair, back = compare(left, right), compare(right, left)
    parts = size < len(rows) and len(tail) > 0
    assert pair.diverges_at == (start if parts else None)
    assert (pair.status is Status.DIVERGED) == parts
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
    assert (pair.left_batch.crc, pair.right_batch.crc) == (rows[at][4], crc)


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
    (wound,) = judged([hurt, good, other, short]).wounds
    assert (wound.filled_by, wound.partly_by) == (("2",), ("4",))


def test_logs_with_no_offset_in_common_are_neither_the_same_nor_diverged():
    left = copy_with([(0, 5, 5, 0, 1)])
    right = copy_with([(50, 5, 5, 0, 1)], node=2, start=50)
    assert compare(left, right).status is Status.DISJOINT
    assert judged([left, right]).superset == ()


def test_a_copy_alone_has_everything():
    verdict = judged([replace(copy_with([(0, 5, 5, 0, 1)]), label="")])
    assert (verdict.status, verdict.superset) == (Status.ALONE, ("1",))


def test_the_schema_has_every_status_in_its_order():
    assert tuple(Status) == COPY_STATUSES
