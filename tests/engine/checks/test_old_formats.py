"""Batches of magic 0 and 1: their number, offsets and times, in `verify` and in `stat`."""

from pathlib import Path

import numpy as np
import pytest
from log_dir_damage import in_batch
from verification import small_log_dir, verify

from logtool.checks import old_formats
from logtool.checks.old_formats import FormatExtent
from logtool.copies.segments import scan_segment
from logtool.disk.files import LogFile
from logtool.errors import UnreadableError
from logtool.formats.record_batch import MAGIC
from logtool.log import opening
from logtool.log.damaged_bytes import DamagedBytes, chunks_and_damage
from logtool.log.records import counts_and_bases
from logtool.running.budget import Budget
from logtool.stat.run import Survey
from logtool.verify import Level


def expected(folder: Path) -> list[tuple[int, int, int, int, int | None]]:
    """Return (magic, batches, first and last offset, last time) of each old format, batch by batch.

    The time is None without one.
    """
    found: dict[int, list[tuple[int, int, int]]] = {}
    for segment in opening.open_partition(folder).segments:
        for chunk in segment.batches():
            table, firsts = chunk.table, counts_and_bases(chunk)[1]
            columns = table.magic, firsts, table.last_offset, table.max_timestamp
            for magic, first, last, time in zip(*map(np.ndarray.tolist, columns), strict=True):
                if magic < MAGIC:
                    found.setdefault(magic, []).append((first, last, time))
    return [
        (magic, len(rows), rows[0][0], max(row[1] for row in rows),
         max(row[2] for row in rows) if magic else None)
        for magic, rows in sorted(found.items())
    ]  # fmt: skip


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("name", ["2.8.2/magic-0", "2.8.2/magic-1", "4.3.1/clean"])
def test_verify_and_stat_name_the_offsets_of_old_formats(scenario, name, jobs):
    home = scenario(name)
    wanted = {
        (path.name, *one[:4])
        for path in home.iterdir()
        if path.is_dir() and path.name != "__cluster_metadata-0"
        for one in expected(path)
    }
    assert bool(wanted) == ("magic" in name)
    findings = verify(home, level=Level.BATCHES, budget=Budget(jobs=jobs)).findings
    spans = {
        (one.path.name, one.first_offset, one.last_offset)
        for one in findings if one.code == "batch/old-format" and one.path
    }  # fmt: skip
    assert spans == {(path, first, last) for path, _, _, first, last in wanted}
    measured = set()
    for one in Survey([home]):
        assert not isinstance(one, UnreadableError)
        for extent in one.statistics.old_formats:
            place = one.partition.path.name, extent.magic, extent.batches
            measured.add((*place, extent.first_offset, extent.last_offset))
        codes = [finding.code for finding in one.findings]
        assert codes.count("batch/old-format") == len(one.statistics.old_formats)
    assert measured == wanted


def test_magic_0_has_no_time_and_magic_1_has_the_largest_of_its_batches(scenario):
    for name in ("2.8.2/magic-0", "2.8.2/magic-1"):
        for one in Survey([scenario(name)]):
            assert not isinstance(one, UnreadableError)
            wanted = {row[0]: row[4] for row in expected(one.partition.path)}
            times = {each.magic: each.last_timestamp_ms for each in one.statistics.old_formats}
            assert times == wanted


def test_extents_of_parts_add_up():
    one = FormatExtent(1, 2, 10, 19, 100, 200)
    assert old_formats.merged([one, FormatExtent(0, 1, 0, 9, None, None)]) == (
        FormatExtent(0, 1, 0, 9, None, None), one,
    )  # fmt: skip
    assert old_formats.merged([one, FormatExtent(1, 1, 30, 30, None, None)]) == (
        FormatExtent(1, 3, 10, 30, 100, 200),
    )


def test_a_quick_look_names_no_formats(scenario):
    assert "batch/old-format" not in verify(scenario("2.8.2/magic-1"), level=Level.QUICK).codes


def test_a_damaged_batch_is_not_counted(scenario, tmp_path):
    home = small_log_dir(scenario("2.8.2/magic-1"), tmp_path / "home", "old-none-0")
    whole = expected(home / "old-none-0")
    in_batch(0, 30)(home)
    (finding,) = [one for one in verify(home).findings if one.code == "batch/old-format"]
    (one,) = expected(home / "old-none-0")
    assert (finding.first_offset, finding.last_offset) == one[2:4]
    assert one[2] > whole[0][2]


def test_a_wrapper_begins_behind_the_batch_before_it_in_every_answer(scenario, tmp_path):
    home = small_log_dir(scenario("2.8.2/magic-1"), tmp_path / "home", "old-gzip-0")
    (whole,) = expected(home / "old-gzip-0")
    assert whole[2] == 0
    (segment,) = opening.open_partition(home / "old-gzip-0").segments
    (chunk,) = segment.batches()
    firsts, lasts = counts_and_bases(chunk)[1].tolist(), chunk.table.last_offset.tolist()
    assert firsts[1:] == [last + 1 for last in lasts[:-1]]
    assert firsts != chunk.table.base_offset.tolist()
    in_batch(1, 30)(home)
    (damage,) = [one for one in verify(home).findings if one.code == "batch/crc"]
    assert (damage.first_offset, damage.last_offset) == (firsts[1], lasts[1])
    (one,) = Survey([home])
    assert not isinstance(one, UnreadableError)
    assert (one.statistics.first_offset, one.statistics.last_offset) == (0, lasts[-1])
    part = scan_segment(segment, lambda _: None)
    spans = [(each.first_offset, each.last_offset) for each in part.damages]
    assert spans == [(firsts[1], lasts[1])]
    assert part.batches.first_offset.tolist() == firsts[:1] + firsts[2:]
    with LogFile(segment.log.path) as log:
        found = [each for each in chunks_and_damage(segment, log) if isinstance(each, DamagedBytes)]
    assert [(each.first_offset, each.last_offset) for each in found] == spans
