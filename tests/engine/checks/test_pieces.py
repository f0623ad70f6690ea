"""Segments looked at in pieces: the same is said of them as if they had been looked at whole."""

import random
from pathlib import Path

import pytest
from bench.generate import Spec, generate
from damage import append_to_file, copied, cut, damage_file, flip, overwrite, swap, zero
from verification import assert_same, ignored, logs, verify

from logtool.checks import schedule, segment_ranges
from logtool.checks.report import Level, SegmentReport, SegmentTask
from logtool.checks.segment import check_segment
from logtool.log import opening
from logtool.verify import Budget

BATCH, PIECE = 1024, 16 * 1024


@pytest.fixture(scope="module")
def generated(tmp_path_factory) -> Path:
    return generate(tmp_path_factory.mktemp("made"), Spec(BATCH, 256 * BATCH, producers=3))


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch) -> None:
    monkeypatch.setattr(segment_ranges, "PIECE_BYTES", PIECE)
    monkeypatch.setattr(schedule, "WORTH_A_POOL", 0)


def task_of(directory: Path, level: Level = Level.BATCHES) -> SegmentTask:
    (segment,) = opening.open_partition(directory).segments
    return SegmentTask(segment, level)


def joined(task: SegmentTask) -> SegmentReport | None:
    return segment_ranges.join(
        task, [segment_ranges.check_piece(piece, ignored) for piece in segment_ranges.cut(task)]
    )


@pytest.mark.parametrize("level", [Level.BATCHES, Level.RECORDS])
def test_the_pieces_of_a_sound_segment_show_the_same_as_the_whole(generated, level):
    task = task_of(generated, level)
    parts = segment_ranges.cut(task)
    report = joined(task)

    assert len(parts) == 16
    assert [part.piece.start for part in parts[1:]] == [part.piece.stop for part in parts[:-1]]
    assert report is not None
    assert_same(report, check_segment(task))
    assert report.batches == 256


def test_a_segment_is_not_cut_where_that_is_not_worth_it(generated, tmp_path, monkeypatch):
    task = task_of(generated)
    assert segment_ranges.cut(task_of(generated, Level.QUICK)) == [task_of(generated, Level.QUICK)]

    monkeypatch.setattr(segment_ranges, "PIECE_BYTES", 200 * BATCH)
    assert segment_ranges.cut(task) == [task]

    monkeypatch.setattr(segment_ranges, "PIECE_BYTES", PIECE)
    home = copied(generated, tmp_path / "t-0")
    next(home.glob("*.index")).unlink()
    assert len(segment_ranges.cut(task_of(home))) == 1


DAMAGE = {
    "a bit of the log": ("log", lambda data, at: flip(data, at)),
    "a bit of the offset index": ("index", lambda data, at: flip(data, at % len(data), 1)),
    "a bit of the time index": ("timeindex", lambda data, at: flip(data, at % len(data), 1)),
    "a page of zeros": ("log", lambda data, at: zero(data, at // 512 * 512, 512)),
    "the end of the log": ("log", cut),
    "the end of the offset index": ("index", lambda data, at: cut(data, at % len(data))),
    "the end of the time index": ("timeindex", lambda data, at: cut(data, at % len(data))),
    "entries exchanged": (
        "index", lambda data, at: swap(data, at % (len(data) // 16) * 8, len(data) - 8, 8),
    ),
    "batches exchanged": ("log", lambda data, at: swap(data, at % 100 * BATCH, 200 * BATCH, BATCH)),
    "an offset": ("log", lambda data, at: flip(data, at // BATCH * BATCH + at % 8, 1)),
    "an epoch": ("log", lambda data, at: flip(data, at // BATCH * BATCH + 12 + at % 4, 1)),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(("kind", "damage"), DAMAGE.values(), ids=DAMAGE)
def test_the_pieces_of_a_damaged_segment_show_the_same_or_nothing(
    generated, tmp_path, kind, damage
):
    places = random.Random(4711)
    for number in range(12):
        home = copied(generated, tmp_path / f"t-{number}")
        # Where pieces begin and end, and anywhere.
        at = number % 4 * PIECE + places.randrange(30) if number < 8 else places.randrange(200_000)
        damage_file(next(home.glob(f"*.{kind}")), damage, at)
        task = task_of(home)
        whole, report = check_segment(task), joined(task)

        if report:
            assert_same(report, whole)
        assert verify(home, budget=Budget(jobs=2)).findings == verify(home).findings


def test_what_is_wrong_only_with_both_pieces_is_found(generated, tmp_path):
    """Epochs, timestamps and offsets that are right in each piece and fall at its edge."""
    for number, (field, at) in enumerate([("leader_epoch", 12), ("base_offset", 0)]):
        home = copied(generated, tmp_path / f"t-{number}")
        (log,) = logs(home)
        edge = segment_ranges.cut(task_of(home))[4].piece.start
        data = log.read_bytes()
        for position in range(edge if field == "base_offset" else 0, len(data), BATCH):
            if field == "leader_epoch":
                data = overwrite(data, position + at, bytes([0, 0, 0, 1 + (position < edge)]))
            else:
                offset = int.from_bytes(data[position : position + 8], "big") - 5
                data = overwrite(data, position, offset.to_bytes(8, "big"))
        log.write_bytes(data)
        task = task_of(home)

        assert all(
            segment_ranges.check_piece(part, ignored).ordinary
            for part in segment_ranges.cut(task)[:4]
        )
        assert joined(task) is None
        assert check_segment(task).findings


def test_an_index_of_a_log_that_shrank_or_grew_is_not_held_against_pieces(generated, tmp_path):
    home = copied(generated, tmp_path / "t-0")
    task = task_of(home)
    parts = segment_ranges.cut(task)
    append_to_file(logs(home)[0], b"x")

    assert not any(segment_ranges.check_piece(part, ignored).ordinary for part in parts)


def test_pieces_are_checked_by_several_threads(generated, monkeypatch):
    seen = []
    real = segment_ranges.check_piece
    monkeypatch.setattr(
        segment_ranges, "check_piece", lambda task, b: seen.append(task) or real(task, b)
    )

    outcome = verify(generated, budget=Budget(jobs=3))

    assert len(seen) == 16
    assert outcome.findings == verify(generated).findings
    assert outcome.summary.batches == 256


def test_real_partitions_say_the_same_in_pieces(scenario):
    for name in ("4.3.1/clean", "4.3.1/killed"):
        whole, cut_up = (verify(scenario(name), budget=Budget(jobs=jobs)) for jobs in (1, 2))

        assert cut_up.findings == whole.findings
        assert cut_up.summary.batches == whole.summary.batches
