"""Recovery of log dirs: what is done, what is refused, what comes back."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from damage import append_to_file, damage_file, overwrite, remove_file

from logtool.actions import Action
from logtool.apply import Journal
from logtool.errors import LogtoolError, RefusedError, UsageError
from logtool.formats import offset_checkpoint
from logtool.log.selection import Selection
from logtool.node.options import StartOptions
from logtool.startup.log_dir_start import Points
from logtool.startup.partition import PartitionForecast
from logtool.startup.recover import ApplyConsent, Recover
from logtool.verify import Verification

Copy = Callable[[str], Path]
KAFKA = StartOptions((4, 3))
POINTS = "recovery-point-offset-checkpoint"


class Run:
    """One recovery and what it yielded."""

    def __init__(
        self, home: Path, *, settings: StartOptions = KAFKA, selection: Selection | None = None,
        points: Points = lambda key, row: row or 0, **consent: Any,
    ) -> None:  # fmt: skip
        self.job = Recover(
            [home],
            settings,
            ApplyConsent(**consent),
            selection or Selection(),
            points,
        )
        items = list(self.job)
        self.partitions = {
            i.request.path.name: i for i in items if isinstance(i, PartitionForecast)
        }
        self.errors = [i for i in items if isinstance(i, LogtoolError)]
        self.actions: list[Action] = []
        for item in items:
            if isinstance(item, Action):
                self.actions.append(item)
            elif isinstance(item, PartitionForecast):
                self.actions += item.actions

    @property
    def changes(self) -> list[tuple[str, str]]:
        return [(str(a.action), a.path.name) for a in self.actions if a.change]


def tree(home: Path) -> dict[str, tuple[int, int, str]]:
    """Return mode, mtime and hash of everything below a directory."""
    found = {}
    for path in sorted([home, *home.rglob("*")]):
        status = path.stat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(home))] = status.st_mode, status.st_mtime_ns, content
    return found


def recovery_points(home: Path) -> dict[tuple[str, int], int]:
    rows = offset_checkpoint.parse((home / POINTS).read_bytes()).rows
    return {(row.topic, row.partition): row.offset for row in rows}


@pytest.fixture
def cut(copy_of: Copy) -> Path:
    """A killed log dir with damage in the third of 69 segments, and nothing flushed."""
    home = copy_of("4.3.1/killed")
    remove_file(home / POINTS)
    damage_file(sorted((home / "small-segments-0").glob("*.log"))[2], overwrite, 70, b"\xff\xff")
    return home


def test_a_dry_run_writes_nothing(cut: Path) -> None:
    before = tree(cut)
    found = Run(cut)
    assert found.changes
    assert found.errors == []
    assert tree(cut) == before
    assert list(cut.parent.glob("*undo*")) == []


def test_without_consent_to_a_loss_nothing_is_done(cut: Path) -> None:
    before = tree(cut)
    found = Run(cut, apply=True)
    assert [type(error) for error in found.errors] == [RefusedError]
    assert "--accept-loss small-segments-0" in str(found.errors[0])
    assert tree(cut) == before
    assert list(cut.parent.glob("*undo*")) == []


def test_what_is_done_is_what_the_broker_would_do_and_comes_back(cut: Path) -> None:
    before = tree(cut)
    predicted = Run(cut).changes
    accepted = frozenset({("small-segments", 0)})
    done = Run(cut, apply=True, accepted=accepted)
    assert done.errors == []
    assert done.changes == predicted
    assert Run(cut).changes == []
    errors = [f for f in Verification([cut]) if getattr(f, "severity", "error") == "error"]
    # What was acknowledged and given up stays gone, until a broker has written high watermarks.
    assert [f.code for f in errors] == ["checkpoint/high-watermark-beyond-end"]
    Journal.open(done.job.undo_dirs[0]).undo()
    assert tree(cut) == before


def test_segments_behind_the_recovery_point_alone_are_recovered(copy_of: Copy) -> None:
    home = copy_of("4.3.1/killed")
    found = Run(home).partitions["small-segments-0"]
    assert 1 <= found.recovered < found.segments


def test_from_an_offset_the_segment_that_holds_it_is_the_first(copy_of: Copy) -> None:
    home = copy_of("4.3.1/clean")
    settings = StartOptions((4, 3), clean=False)
    logs = sorted(int(p.stem) for p in (home / "small-segments-0").glob("*.log"))
    inside = logs[-3] + 1
    found = Run(
        home, settings=settings, points=lambda key, row: inside,
        selection=Selection(keys=frozenset({("small-segments", 0)})),
    )  # fmt: skip
    assert list(found.partitions) == ["small-segments-0"]
    assert found.partitions["small-segments-0"].recovered == 3


def test_a_full_recovery_reads_every_segment(copy_of: Copy) -> None:
    settings = StartOptions((4, 3), clean=False)
    found = Run(copy_of("4.3.1/clean"), settings=settings, points=lambda key, row: 0)
    assert all(
        one.recovered == one.segments
        for name, one in found.partitions.items()
        if not name.endswith("-delete")
    )


def test_a_recovery_point_beyond_the_end_lets_the_last_segment_be_read_and_comes_down(
    copy_of: Copy,
) -> None:
    home = copy_of("4.3.1/killed")
    key = ("small-segments", 0)
    points = recovery_points(home) | {key: 10_000_000}
    (home / POINTS).write_bytes(offset_checkpoint.encode(offset_checkpoint.build(points)))
    found = Run(home, apply=True)
    assert found.errors == []
    assert found.partitions["small-segments-0"].recovered == 1
    assert recovery_points(home)[key] == found.partitions["small-segments-0"].log_end


def test_offsets_that_go_backwards_cost_what_is_behind_and_no_more(copy_of: Copy) -> None:
    home = copy_of("4.3.1/killed")
    remove_file(home / POINTS)
    log = home / "index.dense-0" / "00000000000000000000.log"
    data = log.read_bytes()
    first = int.from_bytes(data[8:12], "big") + 12
    append_to_file(log, data[:first])
    as_broker = Run(home).partitions["index.dense-0"]
    precise = Run(home, settings=StartOptions((4, 3), cut_precisely=True)).partitions[
        "index.dense-0"
    ]
    (emptied,) = [a for a in as_broker.actions if a.action == "truncate"]
    (trimmed,) = [a for a in precise.actions if a.action == "truncate"]
    assert (emptied.position, trimmed.position) == (0, len(data))
    assert emptied.loss.records > trimmed.loss.records


def test_a_clean_mark_is_the_last_thing_and_a_broker_then_has_nothing_to_recover(
    copy_of: Copy,
) -> None:
    home = copy_of("4.3.1/killed")
    found = Run(home, apply=True, mark_clean=True)
    assert found.errors == []
    assert found.changes[-1] == ("create", ".kafka_cleanshutdown")
    ends = {
        (one.request.topic, one.request.partition): one.log_end
        for name, one in found.partitions.items()
        if not name.endswith("-delete")
    }
    assert {key: recovery_points(home)[key] for key in ends} == ends
    again = Run(home)
    assert sum(one.bytes_scanned for one in again.partitions.values()) == 0


def test_a_log_dir_with_damage_in_flushed_segments_is_not_marked_clean(copy_of: Copy) -> None:
    home = copy_of("4.3.1/killed")
    log = sorted((home / "small-segments-0").glob("*.log"))[2]
    damage_file(log, overwrite, 70, b"\xff\xff")
    before = tree(home)
    found = Run(home, apply=True, mark_clean=True)
    assert [type(error) for error in found.errors] == [RefusedError]
    assert log.name in str(found.errors[0])
    assert tree(home) == before


def test_a_part_of_a_log_dir_is_not_marked_clean(copy_of: Copy) -> None:
    home = copy_of("4.3.1/killed")
    with pytest.raises(UsageError, match="--mark-clean"):
        Run(home / "codec-gzip-0", mark_clean=True)


def test_a_log_that_does_not_load_is_left_alone_and_the_rest_is_done(copy_of: Copy) -> None:
    home = copy_of("4.3.1/killed")
    (home / "codec-gzip-0" / "x.log").write_bytes(b"")
    before = tree(home / "codec-gzip-0")
    found = Run(home, apply=True)
    assert found.errors == []
    assert found.partitions["codec-gzip-0"].outcome == "refuses"
    assert tree(home / "codec-gzip-0") == before
    assert [name for name, one in Run(home).partitions.items() if one.actions and one.recovered]
    assert [c for c in Run(home).changes if c[0] != "create"] == []


def test_a_change_that_was_interrupted_is_finished_first(
    cut: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted = frozenset({("small-segments", 0)})
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "carry_out", lambda self, on_action=None: None)
        Run(cut, apply=True, accepted=accepted)
    again = Run(cut, apply=True, accepted=accepted)
    assert [a.action for a in again.actions if not a.topic][:1] == ["finish"]
    assert Run(cut).changes == []


def two_dirs(home: Path, change: Callable[[str], str]) -> tuple[Path, Path]:
    """Return the log dirs of one broker, killed, the second with another meta.properties."""
    first, second = home / "dir-1", home / "dir-2"
    for log_dir in (first, second):
        (log_dir / ".kafka_cleanshutdown").unlink(missing_ok=True)
    meta = second / "meta.properties"
    meta.write_text(change(meta.read_text()))
    return first, second


def test_what_stops_the_broker_in_one_log_dir_keeps_the_others_from_being_marked_clean(
    copy_of: Copy,
) -> None:
    home = copy_of("4.3.1/two-log-dirs")
    dirs = two_dirs(home, lambda text: text.replace("node.id=1", "node.id=2"))
    found = list(Recover(dirs, KAFKA, ApplyConsent(apply=True, mark_clean=True)))
    refused = [str(item) for item in found if isinstance(item, RefusedError)]
    assert len(refused) == 2
    for log_dir, text in zip(dirs, refused, strict=True):
        assert text.startswith(f"{log_dir}: ")
        assert f"{dirs[1]}/meta.properties" in text
        assert "node.id" in text
        assert not (log_dir / ".kafka_cleanshutdown").exists()


def test_a_log_dir_that_goes_offline_is_left_alone_and_the_others_are_marked_clean(
    copy_of: Copy,
) -> None:
    home = copy_of("4.3.1/two-log-dirs")
    dirs = two_dirs(home, lambda text: text.replace("version=1", "version=9"))
    found = list(Recover(dirs, KAFKA, ApplyConsent(apply=True, mark_clean=True)))
    (refused,) = [str(item) for item in found if isinstance(item, RefusedError)]
    assert refused.startswith(f"{dirs[1]}: ")
    assert "meta.properties" in refused
    assert [(path / ".kafka_cleanshutdown").exists() for path in dirs] == [True, False]
    loaded = [item.request.path.parent for item in found if isinstance(item, PartitionForecast)]
    assert set(loaded) == {dirs[0]}
