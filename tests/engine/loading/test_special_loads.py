"""Loads that `tests/broker/test_loads_agree.py` compares with those of brokers, rule by rule."""

import dataclasses
from pathlib import Path

import loadable
import pytest

from logtool.formats import names
from logtool.loading.actions import actions
from logtool.loading.loader import load
from logtool.loading.result import LoadResult, Outcome, StartConditions
from logtool.log import opening
from logtool.metadata.releases import NEWEST


def _load(
    home: Path, *, clean: bool = True, kafka: tuple[int, int] = NEWEST, cut_precisely: bool = False
) -> LoadResult:
    start = StartConditions(clean=clean, now_ms=1, kafka=kafka, cut_precisely=cut_precisely)
    return load(opening.open_partition(home), start)


@pytest.mark.parametrize(
    ("where", "entry", "kafka", "outcome"),
    [
        (0, None, (4, 3), Outcome.REFUSES),
        (0, None, (4, 1), Outcome.REFUSES),
        (0, None, (4, 0), Outcome.LOADS),
        (0, None, (3, 9), Outcome.LOADS),
        # The search begins at an entry, and ends at the first batch with a higher base offset.
        (1, None, (4, 3), Outcome.LOADS),
        (0, 1, (4, 3), Outcome.LOADS),
        (1, 1, (4, 3), Outcome.REFUSES),
        (2, 1, (4, 3), Outcome.REFUSES),
        (3, 1, (4, 3), Outcome.LOADS),
    ],
)
def test_a_magic_byte_that_reads_as_0_stops_a_start_where_the_search_for_the_end_begins(
    tmp_path: Path, where: int, entry: int | None, kafka: tuple[int, int], outcome: Outcome
) -> None:
    loadable.write_flipped(tmp_path / "t-0", where=where, magic=0, codec=6, entry=entry)
    assert _load(tmp_path / "t-0", kafka=kafka).outcome is outcome


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize(("codec", "outcome"), [(0, Outcome.LOADS), (1, Outcome.REFUSES)])
def test_only_messages_that_read_as_compressed_are_decompressed(
    tmp_path: Path, magic: int, codec: int, outcome: Outcome
) -> None:
    loadable.write_flipped(tmp_path / "t-0", where=0, magic=magic, codec=codec)
    assert _load(tmp_path / "t-0").outcome is outcome


@pytest.mark.parametrize(
    ("tail", "outcome"),
    [
        (b"", Outcome.LOADS),
        (b"torn", Outcome.REFUSES),
        (loadable.batch(loadable.FAR + 2)[:-3], Outcome.REFUSES),
    ],
)
def test_a_segment_with_an_unfinished_batch_cannot_be_split(
    tmp_path: Path, tail: bytes, outcome: Outcome
) -> None:
    loadable.write_far(tmp_path / "t-0", tail)
    assert _load(tmp_path / "t-0", clean=False).outcome is outcome
    mended = _load(tmp_path / "t-0", clean=False, cut_precisely=True)
    assert (mended.outcome, mended.log_end) == (Outcome.LOADS, loadable.FAR + 2)


def test_a_committed_swap_takes_every_file_with_an_offset_in_front_of_its_first_dot(
    tmp_path: Path,
) -> None:
    loadable.write_swap(tmp_path / "t-0")
    loaded = _load(tmp_path / "t-0")
    assert set(loadable.KEPT) <= set(loaded.shadow)
    assert not set(loadable.FOREIGN) & set(loaded.shadow)
    found = [action for action in actions(loaded, None) if action.action == "erase"]
    assert {action.path.name for action in found} == set(loadable.FOREIGN)
    assert all(action.is_grave and action.change for action in found)


def test_a_swap_that_was_not_committed_takes_no_file_of_others(tmp_path: Path) -> None:
    loadable.write_swap(tmp_path / "t-0")
    (tmp_path / "t-0" / f"{2:020d}.log.cleaned").touch()
    loaded = _load(tmp_path / "t-0")
    assert set(loadable.FOREIGN) <= set(loaded.shadow)
    assert not any(action.action == "erase" for action in actions(loaded, None))


@pytest.mark.parametrize(
    ("suffix", "made"), [("-delete", {".log"}), ("-stray", {".log", ".index", ".timeindex"})]
)
def test_a_directory_to_be_deleted_gets_no_indexes(
    tmp_path: Path, suffix: str, made: set[str]
) -> None:
    home = tmp_path / f"t-0.{'0' * 32}{suffix}"
    home.mkdir()
    found = opening.open_partition(home)
    found = dataclasses.replace(found, directory=names.parse_directory(home.name))
    loaded = load(found, StartConditions(clean=False, now_ms=1))
    assert {Path(name).suffix for name in loaded.shadow if name.startswith("0")} == made


@pytest.mark.parametrize(
    ("count", "snapshot", "clean", "outcome"),
    [
        (-7, 2, True, Outcome.REFUSES),
        (-7, 3, True, Outcome.LOADS),
        (-7, 2, False, Outcome.LOADS),
        (0, 2, True, Outcome.LOADS),
    ],
)
def test_a_bad_record_count_stops_a_clean_start_that_rebuilds_the_producer_state(
    tmp_path: Path, count: int, snapshot: int, clean: bool, outcome: Outcome
) -> None:
    loadable.write_bad_count(tmp_path / "t-0", count, snapshot)
    assert _load(tmp_path / "t-0", clean=clean).outcome is outcome
