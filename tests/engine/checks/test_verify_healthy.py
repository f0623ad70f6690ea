"""Log dirs of real brokers are sound for verify, which counts as Kafka's own tool does."""

import os
import re
import shutil
from copy import copy
from functools import cache
from pathlib import Path

import pytest
from conftest import SCENARIOS, VERSIONS
from thinned import some
from verification import (
    Outcome,
    batches,
    fingerprint,
    kind_of,
    log_dirs,
    logs,
    plain_files,
    verify,
)

from logtool.formats import producer_snapshot
from logtool.formats.names import FileKind
from logtool.verify import Level

# What each kind of stop leaves behind that is legal and worth knowing.
ALWAYS = {
    "partition/leftover-deleted", "partition/pending-delete", "segment/gap",
    "offset-index/preallocated", "time-index/preallocated",
}  # fmt: skip
EXPECTED = {
    "clean": ALWAYS,
    "cleaned": {"partition/leftover-deleted", "segment/gap"},
    "default-settings": ALWAYS | {"checkpoint/empty", "checkpoint/no-recovery-point"},
    "empty": {"checkpoint/empty"},
    "formatted": {"partition/empty"},
    "killed": ALWAYS | {"log/zero-tail"},
    "killed-recovered": ALWAYS,
    "running": ALWAYS | {"log/zero-tail", "offset-index/ahead", "time-index/ahead"},
    "torn": ALWAYS | {"checkpoint/empty", "checkpoint/no-recovery-point", "log/torn-tail"},
    "torn-recovered": set(),
    "java-clients": ALWAYS,
    "two-log-dirs": ALWAYS | {"partition/future"},
    "replicas": ALWAYS | {"checkpoint/empty", "log/zero-tail", "partition/stray"},
    "zookeeper": ALWAYS | {"partition-metadata/not-written"},
    "magic-0": ALWAYS | {"partition-metadata/not-written", "batch/old-format"},
    "magic-1": ALWAYS
    | {
        "partition-metadata/not-written",
        "checkpoint/no-recovery-point",
        "checkpoint/empty",
        "batch/old-format",
    },
}
NEWEST = [name for name in SCENARIOS if name.startswith(VERSIONS[-1])]
STOPPED = ("clean", "empty", "killed", "torn", "torn-recovered", "two-log-dirs")
"""Scenarios that are copied: with and without a clean marker."""
COUNT_LINE = re.compile(r"^baseOffset: .* count: (\d+)", re.MULTILINE)
BATCH_LINE = re.compile(rb"^(?:baseOffset|offset): ", re.MULTILINE)
RECORD_LINE = re.compile(rb"^(?:\| )?offset: .* keysize: ", re.MULTILINE | re.IGNORECASE)


@cache
def counted(expected: Path) -> dict[str, tuple[int, int]]:
    """Return (batches, records) of each log by the name Kafka's dump tool was given."""
    folder = expected / "batches"
    found = {}
    if int(expected.parent.name[0]) < 3:
        # Of magic 0 and 1 no batch line has a count: with --deep-iteration all records stand there.
        for path in folder.rglob("*.log.txt"):
            name = path.relative_to(folder)
            found[str(name).removesuffix(".txt")] = (
                len(BATCH_LINE.findall(path.read_bytes())),
                len(RECORD_LINE.findall((expected / "records" / name).read_bytes())),
            )
        return found
    for path in folder.rglob("*.log.txt"):
        counts = [int(count) for count in COUNT_LINE.findall(path.read_text())]
        found[str(path.relative_to(folder)).removesuffix(".txt")] = len(counts), sum(counts)
    return found


def partition_dirs(home: Path) -> list[Path]:
    return sorted(p for log_dir in log_dirs(home) for p in log_dir.iterdir() if p.is_dir())


def worth_a_look(outcome: Outcome) -> list[str]:
    """Return the findings above info, but for the stray partitions, which are a warning."""
    return [text for text in outcome.above_info() if not text.startswith("partition/stray ")]


def name_of(scenario: str) -> str:
    return scenario.partition("/")[2]


@pytest.mark.parametrize("level", Level)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_log_dir_is_sound_and_left_as_it_was(scenario, name, level):
    home = scenario(name)
    before = fingerprint(home)
    outcome = verify(*log_dirs(home), level=level)
    assert worth_a_look(outcome) == []
    assert outcome.unreadable == []
    assert outcome.exit_status == (1 if outcome.codes["partition/stray"] else 0)
    assert outcome.summary.complete
    assert set(outcome.codes) <= EXPECTED.get(name_of(name), ALWAYS)
    assert fingerprint(home) == before


@pytest.mark.parametrize("level", [Level.BATCHES, Level.RECORDS])
@pytest.mark.parametrize("name", SCENARIOS)
def test_counts_are_those_of_the_dump_tool(scenario, name, level):
    home = scenario(name)
    wanted = counted(scenario(f"{name}.expected"))
    all_logs = [p for p in plain_files(home) if p.name.endswith(".log")]
    assert {str(path.relative_to(home)) for path in all_logs} == set(wanted)
    summary = verify(*log_dirs(home), level=level).summary
    assert summary.partitions == len(partition_dirs(home))
    assert summary.segments == len(wanted)
    assert summary.batches == sum(batches for batches, _ in wanted.values())
    assert summary.records == sum(records for _, records in wanted.values())
    assert summary.bytes == sum(path.stat().st_size for path in all_logs)


@pytest.mark.parametrize("name", SCENARIOS)
def test_each_partition_by_itself_is_sound(scenario, name):
    wanted = counted(scenario(f"{name}.expected"))
    home = scenario(name)
    for directory in partition_dirs(home):
        outcome = verify(directory)
        here = str(directory.relative_to(home))
        mine = [count for path, count in wanted.items() if str(Path(path).parent) == here]
        assert worth_a_look(outcome) == [], directory
        assert outcome.summary.complete
        assert outcome.summary.partitions == 1
        assert outcome.summary.segments == len(mine)
        assert outcome.summary.batches == sum(batches for batches, _ in mine)
        assert outcome.summary.records == sum(records for _, records in mine)


@pytest.mark.parametrize("name", some(NEWEST, 4))
def test_each_file_by_itself_is_sound(scenario, name):
    home = scenario(name)
    wanted = counted(scenario(f"{name}.expected"))
    for path in plain_files(home):
        outcome = verify(path)
        assert outcome.above_info() == [], path
        assert outcome.exit_status == 0, path
        summary = outcome.summary
        assert summary.partitions == 0
        if path.name.endswith(".log"):
            count = wanted[str(path.relative_to(home))]
            assert (summary.segments, summary.batches, summary.records) == (1, *count)
            assert summary.bytes == path.stat().st_size


def test_files_of_every_kind_were_checked_by_themselves(scenario):
    kinds = {kind_of(path) for name in SCENARIOS for path in plain_files(scenario(name))}
    of_others = {
        FileKind.REDPANDA_SEGMENT,
        FileKind.REDPANDA_BASE_INDEX,
        FileKind.AUTOMQ_OBJECT,
    }
    assert kinds >= set(FileKind) - {FileKind.UNKNOWN} - of_others


@pytest.mark.parametrize("name", [name for name in NEWEST if name_of(name) in STOPPED])
@pytest.mark.parametrize("order", ["forwards", "backwards", "all at once"])
def test_a_copy_without_time_stamps_is_sound(scenario, name, order, tmp_path):
    home = scenario(name)
    copied = tmp_path / name_of(name)
    entries = sorted(home.rglob("*"), reverse=order == "backwards")
    for entry in entries:
        target = copied / entry.relative_to(home)
        if entry.is_dir():
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(entry, target)
    when = 1_800_000_000_000_000_000
    for number, entry in enumerate(entries):
        # A large directory takes minutes to copy: half a minute for each file.
        later = 0 if order == "all at once" else number * 30_000_000_000
        os.utime(copied / entry.relative_to(home), ns=(when + later, when + later))
    outcome = verify(*log_dirs(copied))
    assert worth_a_look(outcome) == []
    assert outcome.places == verify(*log_dirs(home)).places


@pytest.mark.parametrize("name", ["4.3.1/clean", "4.3.1/killed", "3.9.2/torn"])
def test_levels_only_add_findings(scenario, name):
    home = scenario(name)
    quick, all_batches, records = (verify(home, level=level).places for level in Level)
    assert quick <= all_batches <= records


def test_a_quick_look_reads_little(scenario):
    home = scenario("4.3.1/clean")
    quick, deep = verify(home, level=Level.QUICK).summary, verify(home).summary
    assert quick.partitions == deep.partitions
    assert quick.segments == deep.segments
    assert quick.bytes < deep.bytes / 2


def test_progress_ends_at_the_total(scenario):
    home = scenario("4.3.1/clean")
    for level in (Level.BATCHES, Level.RECORDS):
        seen = []
        outcome = verify(home, level=level, on_progress=lambda now, to=seen: to.append(copy(now)))
        assert [p.bytes_done for p in seen] == sorted(p.bytes_done for p in seen)
        assert seen[-1].bytes_done == seen[-1].bytes_total == outcome.summary.bytes
        assert all(p.bytes_done <= p.bytes_total for p in seen)


def test_the_scenarios_hold_what_makes_them_worth_testing(scenario):
    """A new set of test data must still show the legal oddities that verify has to accept."""
    home = scenario("4.3.1/clean")
    codes = verify(home).codes
    assert codes["segment/gap"] and codes["partition/leftover-deleted"]
    table = batches(logs(home / "compacted.keys-0")[3])
    assert (table.record_count == 0).any()
    assert any(batches(log).has_delete_horizon.any() for log in logs(home / "compacted.keys-0"))
    assert logs(home / "deleted_segments-0")[0].name != f"{0:020d}.log"


@pytest.mark.parametrize("version", ["3.9.2", "4.3.1"])
def test_compaction_took_what_producer_snapshots_of_earlier_stops_have(scenario, version):
    home = scenario(f"{version}/cleaned")
    gaps = [f for f in verify(home).findings if f.code == "segment/gap" and f.path]
    inside = {
        path
        for gap in gaps
        for path in gap.path.parent.glob("*.snapshot")
        if gap.first_offset < int(path.stem) <= gap.last_offset
    }
    bases = {log.with_suffix(".snapshot") for log in home.glob("compact.*/*.log")}
    assert inside - bases
    begun = [
        (path.parent, int(first))
        for path in home.glob("compact.tx*/*.snapshot")
        for first in snapshot(path).entries["current_txn_first_offset"]
        if first >= 0
    ]
    assert any(not holds(folder, first) for folder, first in begun)


def snapshot(path: Path) -> producer_snapshot.ProducerSnapshot:
    return producer_snapshot.parse(path.read_bytes())


def holds(folder: Path, base_offset: int) -> bool:
    """Return whether a partition has a batch that begins at an offset."""
    return any(base_offset in batches(log).base_offset for log in logs(folder))
