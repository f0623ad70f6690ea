"""Copies of partitions compared as the local `diff` compares them."""

import random
from pathlib import Path
from types import SimpleNamespace

import pytest
from crc32c import crc32c
from damage import cut, damage_file, drop, flip, overwrite
from staged_tables import answers
from verification import batches, log_dirs, logs

from logtool.copies.copy_readers import read_groups
from logtool.copies.pair import Status
from logtool.copies.sources import ListedCopy, find
from logtool.copies.verdict import CopiesVerdict
from logtool.diff import Diff
from logtool.formats import record, record_batch
from logtool.log.inputs import NodeDir
from logtool.log.selection import Selection
from logtool.running.run import Run

TOPIC = "replica.fetched-at-once"


def asked(homes, work):
    """Return the rows of the table by (topic, partition) and log dir."""
    rows = {}
    for found in answers(homes, ["replicas"], work)["replicas"]:
        row = SimpleNamespace(**found)
        assert rows.setdefault((row.topic, row.partition), {}).get(row.log_dir) is None
        rows[row.topic, row.partition][row.log_dir] = row
    return rows


def compared(homes):
    """Return the local verdicts on partitions with more than one copy."""
    found = [
        one for one in Diff([NodeDir(home) for home in homes]) if isinstance(one, CopiesVerdict)
    ]
    return {(one.copies[0].topic, one.copies[0].partition): one
            for one in found if len(one.copies) > 1}  # fmt: skip


def table_of(copy):
    """Return the sound batches of a copy that was compared."""
    found = find(Path(copy.path), None, Selection())
    listed = [one for one in found if isinstance(one, ListedCopy)]
    (copies,) = read_groups([listed], Run())
    assert isinstance(copies, list)
    (whole,) = copies
    return whole.batches


def agree(rows, verdict):
    """Hold the rows of a partition against what `diff` says of it."""
    copies = {str(Path(copy.path).parent): copy for copy in verdict.copies}
    assert set(rows) == set(copies)
    furthest = max(copy.log_end for copy in verdict.copies)
    for log_dir, copy in copies.items():
        row, table = rows[log_dir], table_of(copy)
        assert row.copies == len(copies)
        assert row.batches == len(table)
        ends = (table.base_offset[0], table.last_offset[-1]) if len(table) else (None, None)
        assert (row.first_offset, row.last_offset) == ends
        assert row.last_leader_epoch == (table.leader_epoch[-1] if len(table) else None)
        assert row.behind == furthest - copy.log_end
        pairs = [pair for pair in verdict.pairs if copy in (pair.left, pair.right)]
        parts = [pair.diverges_at for pair in pairs if pair.diverges_at is not None]
        assert row.diverges_at == min(parts, default=None)
        if len(copies) > 2:
            continue
        (pair,) = pairs
        if pair.diverges_at is None:
            assert row.shared_batches == pair.equal
            other = pair.right if copy is pair.left else pair.left
            start, end = pair.common or (0, 0)
            inside = table[(table.base_offset >= start) & (table.base_offset < end)]
            theirs = set(table_of(other).base_offset.tolist())
            assert row.only_here == len(set(inside.base_offset.tolist()) - theirs)
        else:
            assert row.shared_batches >= pair.equal


def same_as_diff(homes, work):
    rows, verdicts = asked(homes, work), compared(homes)
    assert set(rows) == set(verdicts)
    for key, verdict in verdicts.items():
        agree(rows[key], verdict)
    return rows, verdicts


@pytest.mark.parametrize("version", ["3.9.0", "3.9.2", "4.3.1"])
def test_three_nodes_of_a_real_cluster(scenario, tmp_path, version):
    _, verdicts = same_as_diff(log_dirs(scenario(f"{version}/replicas")), tmp_path)
    assert {one.status for one in verdicts.values()} >= {
        Status.DIVERGED, Status.BEHIND, Status.SAME,
    }  # fmt: skip


def test_a_partition_in_one_log_dir_alone_has_no_row(scenario, tmp_path):
    home = scenario("4.3.1/two-log-dirs")
    assert {path.name for path in home.glob("*/moving.topic-0*")} != {"moving.topic-0"}
    # What is being moved lies in one of them as -future, which is no copy.
    assert asked(log_dirs(home), tmp_path) == {}


@pytest.fixture
def nodes(copy_of):
    home = copy_of("4.3.1/replicas")
    return [home / node for node in ("node-2", "node-3")]


def repaired(log: Path, row: int) -> None:
    """Change a record of a batch so that the CRC does not show it."""
    table = batches(log)
    start, end = int(table.position[row]), int(table.end_position[row])
    damage_file(log, flip, end - 1, 1)
    crc = crc32c(log.read_bytes()[start + 21 : end])
    damage_file(log, overwrite, start + 17, crc.to_bytes(4, "big"))


def change_nothing(log: Path) -> None:
    del log


def change_a_record(log: Path) -> None:
    repaired(log, 5)


def change_a_leader_epoch(log: Path) -> None:
    damage_file(log, flip, int(batches(log).position[6]) + 15, 1)


def lag(log: Path) -> None:
    damage_file(log, cut, int(batches(log).position[-3]))


def lose_batches(log: Path) -> None:
    table = batches(log)
    damage_file(log, drop, int(table.position[7]), int(table.size[7:9].sum()))


def damage_a_batch(log: Path) -> None:
    damage_file(log, flip, int(batches(log).position[4]) + 80)


def compact(log: Path) -> None:
    """Leave of every third batch half of its records, and of some nothing, as the cleaner does."""
    table, content = batches(log), log.read_bytes()
    parts = []
    for row in range(len(table)):
        batch = content[int(table.position[row]) : int(table.end_position[row])]
        if row % 3 == 1:
            batch = record_batch.encode(
                b"", base_offset=int(table.base_offset[row]),
                last_offset_delta=int(table.last_offset[row] - table.base_offset[row]),
                record_count=0, leader_epoch=int(table.leader_epoch[row]),
                attributes=int(table.attributes[row]),
                producer_id=int(table.producer_id[row]),
                producer_epoch=int(table.producer_epoch[row]),
                base_sequence=int(table.base_sequence[row]),
            )  # fmt: skip
        if row % 5 or row == len(table) - 1:
            parts.append(batch)
    log.write_bytes(b"".join(parts))


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (change_nothing, Status.SAME),
        (change_a_record, Status.DIVERGED),
        (change_a_leader_epoch, Status.DIVERGED),
        (lag, Status.BEHIND),
        (lose_batches, Status.MISSING),
        (damage_a_batch, Status.DAMAGED),
        (compact, Status.COMPACTED),
    ],
)
def test_what_diff_calls_it_and_what_the_columns_say(nodes, tmp_path, change, status):
    log = logs(nodes[0] / f"{TOPIC}-0")[0]
    before = batches(log)
    change(log)
    rows, verdicts = same_as_diff(nodes, tmp_path / "work")
    verdict = verdicts[TOPIC, 0]
    assert verdict.status is status
    left, right = (rows[TOPIC, 0][str(node)] for node in nodes)
    assert left.only_here == 0
    assert (left.behind > 0) == (status is Status.BEHIND)
    assert (right.only_here > 0) == (status in (Status.MISSING, Status.DAMAGED, Status.COMPACTED))
    if status is Status.DIVERGED:
        assert left.diverges_at in before.base_offset[5:7]
        assert left.shared_batches == len(before) - 1


def history(dice: random.Random, at: int, end: int, epoch: int) -> list[tuple[int, int, bytes]]:
    """Return batches (first, last, bytes) of a leader from an offset to about another."""
    found = []
    while at < end:
        last = at + dice.choice([0, 1, 4])
        values = [record.Record(n, value=dice.randbytes(3)) for n in range(last - at + 1)]
        found.append((at, last, record_batch.encode(
            record.encode(values), base_offset=at, last_offset_delta=last - at,
            record_count=len(values), leader_epoch=epoch,
        )))  # fmt: skip
        at = last + 1
    return found


@pytest.mark.parametrize("copies", [2, 3, 4])
def test_any_copies_diverge_where_diff_says(tmp_path, copies):
    dice = random.Random(copies)
    homes = [tmp_path / f"node-{number}" for number in range(copies)]
    for number in range(60):
        whole = history(dice, 0, 40, 0)
        for home in homes:
            batches_here = list(whole)
            what = dice.choice(["same", "same", "same", "lags", "parts", "lacks", "begins"])
            place = dice.randrange(1, len(whole))
            if what == "lags":
                batches_here = whole[:place]
            elif what == "parts":
                batches_here = [
                    *whole[:place], *history(dice, whole[place][0], dice.choice([20, 40, 50]), 1)
                ]  # fmt: skip
            elif what == "lacks":
                del batches_here[place : place + 2]
            elif what == "begins":
                batches_here = whole[place:]
            folder = home / f"t-{number}"
            folder.mkdir(parents=True)
            first = batches_here[0][0] if batches_here else 0
            content = b"".join(data for _, _, data in batches_here)
            (folder / f"{first:020d}.log").write_bytes(content)
    _, verdicts = same_as_diff(homes, tmp_path / "work")
    parted = [one for one in verdicts.values() if one.status is Status.DIVERGED]
    assert 10 < len(parted) < 60
