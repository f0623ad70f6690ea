"""Holes inside segments: filled, named, or normal, and what `diff` proposes for them."""

import random
from pathlib import Path

import copies_campaign as made
import pytest

from logtool.actions import Action
from logtool.copies.verdict import CopiesVerdict
from logtool.diff import Diff
from logtool.log.chunk import MOST_ROWS
from logtool.log.inputs import NodeDir
from logtool.node.options import StartOptions
from logtool.startup.partition import PartitionForecast
from logtool.startup.recover import ApplyConsent, Recover

LARGE = 2 * (MOST_ROWS + 10)
"""Offsets of a segment whose batches are read in two chunks."""
Copies = tuple[Path, Path, made.Segments]


@pytest.fixture
def copies(tmp_path: Path) -> Copies:
    """Return the log dirs of two sound copies, and the batches of their one segment."""
    rng = random.Random(3)
    batches = [made.batch(2 * at, 2, 0, rng) for at in range(8)]
    for name in ("mine", "theirs"):
        made.write(tmp_path / name, {0: batches}, end=16, point=0)
    return tmp_path / "mine", tmp_path / "theirs", {0: batches}


def put(home: Path, batches: list[bytes]) -> None:
    (home / made.NAME / f"{0:020d}.log").write_bytes(b"".join(batches))


def recover(home: Path, *others: Path, apply: bool = True) -> list[Action]:
    options = StartOptions(fill_from=others, cut_precisely=True)
    items = list(Recover([home / made.NAME], options, ApplyConsent(apply=apply)))
    assert all(isinstance(item, PartitionForecast | Action) for item in items), items
    return [one for item in items if isinstance(item, PartitionForecast) for one in item.actions]


def verdict(*homes: Path) -> CopiesVerdict:
    (found,) = Diff([NodeDir(home, number) for number, home in enumerate(homes)])
    assert isinstance(found, CopiesVerdict)
    return found


@pytest.mark.parametrize("gone", [[0], [1], [3, 4], [1, 3, 6]])
def test_a_hole_is_filled_and_then_nothing_is_proposed(copies: Copies, gone: list[int]) -> None:
    mine, theirs, segments = copies
    put(mine, [one for at, one in enumerate(segments[0]) if at not in gone])
    assert len(verdict(mine, theirs).fixes) == 1
    actions = recover(mine, theirs)
    offsets = [one.offsets[0] for one in actions if one.action == "fill"]
    assert offsets == [2 * at for at in gone if at - 1 not in gone]
    log = f"{made.NAME}/{0:020d}.log"
    assert (mine / log).read_bytes() == (theirs / log).read_bytes()
    assert (verdict(mine, theirs).fixes, verdict(mine, theirs).unfilled) == ((), 0)


def test_a_hole_that_no_copy_fills_as_a_whole_is_named_and_no_command_is_proposed(
    copies: Copies,
) -> None:
    mine, theirs, segments = copies
    put(mine, [one for at, one in enumerate(segments[0]) if at not in (3, 4)])
    put(theirs, [one for at, one in enumerate(segments[0]) if at != 3])
    found = verdict(mine, theirs)
    assert (found.fixes, found.unfilled) == ((), 1)
    (unfilled,) = (one for one in recover(mine, theirs) if one.action == "unfilled")
    assert unfilled.offsets == (6, 9)


@pytest.mark.parametrize("order", [[0, 2, 1, 3, 4, 5, 6, 7], [1, 0, 2, 3, 4, 5, 6, 7]])
def test_batches_that_changed_places_go_back(copies: Copies, order: list[int]) -> None:
    mine, theirs, segments = copies
    put(mine, [segments[0][at] for at in order])
    assert (len(verdict(mine, theirs).fixes), verdict(mine, theirs).unfilled) == (1, 0)
    assert not [one for one in recover(mine, theirs) if one.action == "unfilled" or one.loss]
    log = f"{made.NAME}/{0:020d}.log"
    assert (mine / log).read_bytes() == (theirs / log).read_bytes()


def test_a_batch_that_stands_twice_is_left_out(copies: Copies) -> None:
    mine, theirs, segments = copies
    put(mine, [*segments[0][:4], segments[0][3], *segments[0][4:]])
    assert not [one for one in recover(mine, theirs) if one.action == "unfilled" or one.loss]
    log = f"{made.NAME}/{0:020d}.log"
    assert (mine / log).read_bytes() == (theirs / log).read_bytes()
    assert verdict(mine, theirs).fixes == ()


@pytest.mark.parametrize("base", [0, 8])
@pytest.mark.parametrize("place", [0, 2, 4])
@pytest.mark.parametrize("spare", [bytes(70), b"\xa5" * 200], ids=["zeros", "garbage"])
def test_damage_is_left_out_where_no_offset_is_missing(
    tmp_path: Path, base: int, place: int, spare: bytes
) -> None:
    # Behind an inactive segment too: a broker that recovers it deletes all later segments there.
    rng = random.Random(5)
    segments = {at: [made.batch(at + 2 * one, 2, 0, rng) for one in range(4)] for at in (0, 8, 16)}
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    for home in (mine, theirs):
        made.write(home, segments, end=24, point=24)
    log = f"{made.NAME}/{base:020d}.log"
    batches = segments[base]
    (mine / log).write_bytes(b"".join([*batches[:place], spare, *batches[place:]]))
    actions = recover(mine, theirs)
    assert [one.target for one in actions if one.action == "fill"] == [mine / log]
    assert not [one for one in actions if one.action == "unfilled" or one.loss]
    assert (mine / log).read_bytes() == (theirs / log).read_bytes()


@pytest.mark.parametrize("cleaned", ["mine", "theirs"])
def test_a_log_that_was_compacted_lacks_offsets_on_purpose(copies: Copies, cleaned: str) -> None:
    mine, theirs, segments = copies
    put(mine, segments[0][:3] + segments[0][4:])
    (mine.parent / cleaned / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 16\n")
    assert not [one for one in recover(mine, theirs) if one.action in ("fill", "unfilled")]
    assert verdict(mine, theirs).fixes == ()


def test_a_hole_in_every_copy_is_no_reason_for_a_command(copies: Copies) -> None:
    mine, theirs, segments = copies
    for home in (mine, theirs):
        put(home, segments[0][:3] + segments[0][4:])
    assert not [one for one in recover(mine, theirs) if one.action in ("fill", "unfilled")]
    assert verdict(mine, theirs).fixes == ()


def test_an_empty_log_is_not_filled_from_a_copy_that_lacks_its_first_batch(copies: Copies) -> None:
    mine, theirs, segments = copies
    third = mine.parent / "third"
    made.write(third, {0: segments[0][1:]}, end=16, point=0)
    put(mine, [])
    assert [one.target for one in recover(mine, third, theirs) if one.action == "fill"] == [
        theirs / made.NAME
    ]


def test_an_empty_log_is_filled_from_a_copy_that_begins_later(copies: Copies) -> None:
    mine, _, segments = copies
    third = mine.parent / "third"
    made.write(third, {4: segments[0][2:]}, end=16, point=0)
    put(mine, [])
    assert [one.action for one in recover(mine, third) if one.action in ("fill", "unfilled")] == [
        "fill"
    ]


@pytest.mark.parametrize("gone", [[0, 2], [2], [2, LARGE + 2]], ids=["begin", "middle", "end"])
def test_a_lost_segment_of_several_reads_comes_back_as_one(tmp_path: Path, gone: list[int]) -> None:
    rng, count = random.Random(3), LARGE // 2
    segments = {
        0: [made.batch(0, 2, 0, rng)],
        2: [made.batch(2 + 2 * at, 2, 0, rng) for at in range(count)],
        LARGE + 2: [made.batch(LARGE + 2, 2, 0, rng)],
        LARGE + 4: [made.batch(LARGE + 4, 2, 0, rng)],
    }
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    for home in (mine, theirs):
        made.write(home, segments, end=LARGE + 6, point=LARGE + 6)
        (home / made.NAME / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    end = [LARGE + 4] if gone[-1] > 2 else []
    for base in (*gone, *end):
        for path in (mine / made.NAME).glob(f"{base:020d}.*"):
            path.unlink()
    assert [one.action for one in recover(mine, theirs) if one.action in ("fill", "unfilled")] == [
        "fill"
    ]
    logs = [{path.name: path.read_bytes() for path in (home / made.NAME).glob("*.log")}
            for home in (mine, theirs)]  # fmt: skip
    assert logs[0] == logs[1]
