"""The quick way of building indexes, held against the long one that it goes round."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import SCENARIOS
from tiny_segments import write_log_dir
from verification import log_dirs, small_log_dir

from logtool.formats.names import FileKind
from logtool.rebuild import FileChoice, Indexing, IndexRebuild, fast_path
from logtool.rebuild.partition import PartitionToRebuild
from logtool.running.budget import Budget
from logtool.running.run import Run
from logtool.running.workers import Pace
from logtool.schemas.printed import SUMMARY

BAD, ALL = FileChoice(), FileChoice(everything=True)
OFFSETS = FileChoice(frozenset({FileKind.OFFSET_INDEX}), everything=True)
KEPT = ("empty-topic-0", "index.dense-0", "idempotent_writes-0", "small-segments-0")
"""Partitions that the quick way is for."""
SMALL = (*KEPT, "tx.mixed-0", "codec-none-0")


def said(path: Path, wanted: FileChoice, **more: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return all that a dry run says."""
    job = IndexRebuild([path], wanted, **more)
    items = [item if not isinstance(item, Exception) else str(item) for item in job]
    return items, SUMMARY.row(job.summary) | {"elapsed_s": None}


def agrees(path: Path, monkeypatch: pytest.MonkeyPatch, wanted: FileChoice, **more: Any) -> int:
    """Hold the two ways against each other; returns how many files are to be built."""
    with monkeypatch.context() as patch:
        patch.setattr(fast_path, "looks", lambda *_: None)
        expected = said(path, wanted, **more)
    assert said(path, wanted, **more) == expected
    return len(expected[0])


def asked(path: Path, monkeypatch: pytest.MonkeyPatch, wanted: FileChoice) -> set[str]:
    """Return the partitions for which the long way was taken."""
    names = set()
    actions = PartitionToRebuild.actions

    def noted(subject: PartitionToRebuild, *others: Any) -> Iterator[Any]:
        names.add(subject.partition.path.name)
        return actions(subject, *others)

    with monkeypatch.context() as patch:
        patch.setattr(PartitionToRebuild, "actions", noted)
        list(IndexRebuild([path], wanted))
    return names


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("4.3.1/clean", "3.9.2/torn") else pytest.mark.long)
        for name in SCENARIOS
    ],
)
def test_both_ways_say_the_same_of_what_brokers_wrote(
    scenario: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for home in log_dirs(scenario(name)):
        agrees(home, monkeypatch, ALL)


@pytest.mark.parametrize("lost", [[".index"], [".timeindex"], [".index", ".timeindex"]])
def test_both_ways_build_the_same_indexes(
    scenario: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lost: list[str],
) -> None:
    home = small_log_dir(scenario("4.3.1/clean"), tmp_path / "clean", *SMALL)
    for path in [path for path in home.glob("*-*/*") if path.suffix in lost]:
        path.unlink()
    assert agrees(home, monkeypatch, BAD) > 30
    # Entries for nearly each batch, and room for fewer than there are.
    assert agrees(home, monkeypatch, ALL, indexing=Indexing(interval=1)) > 30
    assert agrees(home, monkeypatch, OFFSETS, indexing=Indexing(interval=1, max_size=48)) > 2
    (home / ".kafka_cleanshutdown").unlink()
    assert agrees(home, monkeypatch, BAD) > 30
    assert asked(home, monkeypatch, BAD) == set(SMALL) - set(KEPT)


def test_a_time_index_that_says_less_is_built_again_if_all_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log_dir(tmp_path, 2, 3, 200)
    home = tmp_path / "bench.0-1"
    (home / f"{2:020d}.timeindex").write_bytes(b"")
    assert agrees(tmp_path, monkeypatch, BAD) == 0
    assert agrees(tmp_path, monkeypatch, ALL) == 1
    assert asked(tmp_path, monkeypatch, ALL) == set()
    (home / f"{0:020d}.timeindex").write_bytes(b"")
    assert agrees(tmp_path, monkeypatch, BAD) == 1
    assert asked(tmp_path, monkeypatch, BAD) == {home.name}, "the rules say why"


def test_snapshots_without_a_producer_are_built_the_quick_way_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log_dir(tmp_path, 2, 3, 200)
    for path in tmp_path.glob("*/*.snapshot"):
        path.unlink()
    assert agrees(tmp_path, monkeypatch, BAD) == 6, "of the last two segments and the end"
    assert asked(tmp_path, monkeypatch, BAD) == set()
    (tmp_path / ".kafka_cleanshutdown").unlink()
    assert agrees(tmp_path, monkeypatch, BAD) == 4


def test_a_run_that_keeps_to_a_budget_takes_the_long_way() -> None:
    assert fast_path.looks(ALL, Run().budget)
    for pace in (Pace(bytes_per_second=1e9), Pace(deadline=1e12)):
        assert fast_path.looks(ALL, Budget(pace=pace)) is None
    assert fast_path.looks(FileChoice(snapshot_every=1), Budget()) is None
