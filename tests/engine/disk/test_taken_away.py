"""Files that a broker deletes, replaces or writes while the logs of its partition are read."""

import os
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from processes import locked_by_a_process
from verification import logs, small_log_dir

from logtool.checks import fast_path
from logtool.errors import UnreadableError
from logtool.gaps.run import GapOptions, Gaps
from logtool.log import opening
from logtool.log.dir import Partition
from logtool.log.inputs import NodeDir
from logtool.node.options import StartOptions
from logtool.running.run import Progress, Run
from logtool.sanity.judging import Seen
from logtool.sanity.run import Procedure, Sanity
from logtool.startup import forecast, loads, plain_partition
from logtool.startup.partition import PartitionForecast
from logtool.stat.run import Survey
from logtool.watermark.replica import Replica
from logtool.watermark.run import Watermarks

TOPIC = "small-segments-0"
Engine = Callable[[Path, Run], Iterable[Any]]
ENGINES: dict[str, Engine] = {
    "stat": lambda path, run: Survey([path], run=run),
    "gaps": lambda path, run: Gaps([path], GapOptions(), run=run),
}


@pytest.fixture
def none_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have all partitions listed first and read later, as large ones are."""
    monkeypatch.setattr(fast_path, "LARGEST", 0)


@pytest.fixture
def home(scenario: Callable[[str], Path], tmp_path: Path) -> Path:
    return small_log_dir(scenario("4.3.1/clean"), tmp_path / "clean", TOPIC, "codec-none-0")


def delete(log: Path) -> None:
    """Rename the files of a segment as retention does."""
    for path in log.parent.glob(f"{log.stem}.*index"):
        path.rename(f"{path}.deleted")
    log.rename(f"{log}.deleted")


def comparable(items: Iterable[Any]) -> list[object]:
    """Return the results of an engine in a form that can be compared."""
    found: list[object] = []
    for item in items:
        if isinstance(item, UnreadableError):
            found.append(str(item))
        elif hasattr(item, "statistics"):
            found.append((item.partition.path, item.statistics.batches, item.statistics.bytes))
        else:
            spans = item.ledger.gaps.first_offset.tolist(), item.ledger.log_start
            found.append((item.subject.partition.path, item.records, item.segments, spans))
    return found


@pytest.mark.usefixtures("none_is_plain")
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("name", ENGINES)
def test_what_is_left_is_reported_as_if_the_rest_had_never_been(
    home: Path, name: str, whole: bool
) -> None:
    path = home if whole else home / TOPIC
    deleted: list[Path] = []

    def once(run: Progress) -> None:
        if not deleted and run.path == home / TOPIC:
            deleted.extend(logs(home / TOPIC)[:5])
            for log in deleted:
                delete(log)

    found = comparable(ENGINES[name](path, Run(on_progress=once)))
    assert deleted
    assert found == comparable(ENGINES[name](path, Run()))


def test_a_replica_is_measured_again_where_its_newest_segment_went(home: Path) -> None:
    def replicas() -> list[Replica]:
        found = list(Watermarks([NodeDir(home / TOPIC)], StartOptions((4, 3))))
        assert not [item for item in found if isinstance(item, UnreadableError)]
        return [item for item in found if isinstance(item, Replica)]

    before = replicas()
    read, deleted = opening.open_partition, []

    def once(path: Path, *more: Any) -> Partition:
        listed = read(path, *more)
        if not deleted and path.name == TOPIC:
            deleted.append(listed.segments[-1].log.path)
            delete(deleted[0])
        return listed

    with pytest.MonkeyPatch.context() as patch:
        # Behind the look at the size, where it is loaded.
        patch.setattr("logtool.watermark.run.bytes_ahead", lambda path: 0)
        patch.setattr(plain_partition, "load", lambda *_: None)  # as for a large partition
        patch.setattr(opening, "open_partition", once)
        found = replicas()
    assert deleted
    assert found == replicas() != before


@pytest.mark.usefixtures("none_is_plain")
@pytest.mark.parametrize("name", ENGINES)
def test_a_partition_that_is_never_at_rest_is_given_up_in_the_end(home: Path, name: str) -> None:
    looked = []
    read = opening.open_partition

    def never(path: Path, *more: Any) -> Partition:
        listed = read(path, *more)
        if path.name == TOPIC:
            looked.append(path)
            delete(listed.segments[1].log.path)
        return listed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "open_partition", never)
        found = comparable(ENGINES[name](home, Run()))
    # What stat has measured once it need not find again.
    assert any("No such file" in str(item) for item in found) == (name == "gaps")
    assert 2 <= len(looked) <= opening.MOST_LOOKS + 1


@pytest.mark.usefixtures("none_is_plain")
@pytest.mark.parametrize("name", ENGINES)
def test_a_partition_that_is_deleted_meanwhile_is_passed_over(home: Path, name: str) -> None:
    def once(run: Progress) -> None:
        gone = home.parent / "gone"
        if not gone.exists() and run.path == home / TOPIC:
            (home / TOPIC).rename(gone)

    found = comparable(ENGINES[name](home, Run(on_progress=once)))
    assert (home.parent / "gone").exists()
    assert found == comparable(ENGINES[name](home, Run()))


def sane(path: Path) -> tuple[list[str], bool]:
    """Return the findings and errors of `sanity`, and whether that is an alarm."""
    job = Sanity([path], Procedure())
    found = [
        str(item) if isinstance(item, UnreadableError) else item.finding.code
        for item in job
        if isinstance(item, UnreadableError | Seen)
    ]
    return found, bool(job.summary.exit_status())


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("at_work", [True, False])
def test_indexes_that_a_broker_deletes_while_they_are_checked_are_no_alarm(
    home: Path, at_work: bool, whole: bool
) -> None:
    path = home if whole else home / TOPIC
    read, deleted = opening.open_partition, list[Path]()

    def once(folder: Path, *more: Any) -> Partition:
        listed = read(folder, *more)
        if not deleted and folder.name == TOPIC:
            deleted.extend(segment.log.path for segment in listed.segments[:5])
            for log in deleted:
                delete(log)
        return listed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "open_partition", once)
        with locked_by_a_process(home / ".lock") if at_work else nullcontext():
            found, alarm = sane(path)
    assert len(deleted) == 5
    assert alarm != at_work
    if at_work:
        assert found == []
    else:
        assert "offset-index/missing" in found
        assert any(str(deleted[0]) in one for one in found)


def test_a_partition_is_passed_over_that_a_broker_deletes_while_its_indexes_are_checked(
    home: Path,
) -> None:
    read = opening.open_partition

    def once(folder: Path, *more: Any) -> Partition:
        listed = read(folder, *more)
        if folder.name == TOPIC:
            folder.rename(home.parent / "gone")
        return listed

    with pytest.MonkeyPatch.context() as patch, locked_by_a_process(home / ".lock"):
        patch.setattr(opening, "open_partition", once)
        assert sane(home) == ([], False)
    assert (home.parent / "gone").exists()


def test_an_index_that_is_missing_under_a_broker_is_an_alarm(home: Path) -> None:
    next((home / TOPIC).glob("*.index")).unlink()
    with locked_by_a_process(home / ".lock"):
        assert sane(home) == (["offset-index/missing"], True)


def test_indexes_to_which_a_broker_appends_are_no_alarm_but_those_of_a_killed_one_are(
    copy_of: Callable[[str], Path],
) -> None:
    home = copy_of("4.3.1/killed")
    found, alarm = sane(home)
    assert alarm
    with locked_by_a_process(home / ".lock"):
        at_work, alarm = sane(home)
    assert (sorted(at_work), alarm) == (sorted(found), False)
    assert set(found) <= {"time-index/preallocated", "offset-index/preallocated"}


class Log:
    """A log that is not all there yet, as one to which a broker appends; and looks at it."""

    def __init__(self, home: Path, change: Callable[["Log"], None]) -> None:
        self.home, self.looks = home, 0
        (self.path,) = logs(home / "codec-none-0")
        self.sound = self.path.read_bytes()
        size = 12 + int.from_bytes(self.sound[8:12], "big")
        assert size < len(self.sound)
        self.path.write_bytes(bytes(size) + self.sound[size:])
        self._change, self._look = change, loads.forecast_partition

    def look(self, request: Any, *more: Any) -> PartitionForecast | UnreadableError:
        found = self._look(request, *more)
        if request.path == self.path.parent:
            self.looks += 1
            self._change(self)
        return found

    def lost(self) -> bool:
        """Return whether `plan` says that records are lost."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loads, "forecast_partition", self.look)
            found = list(
                forecast.Forecast(
                    [self.home], StartOptions((4, 3), clean=False), points=lambda key, row: 0
                )
            )
        assert not [item for item in found if isinstance(item, UnreadableError)]
        return any(item.losses for item in found if isinstance(item, PartitionForecast))


def written(log: Log) -> None:
    log.path.write_bytes(log.sound)


def touched(log: Log) -> None:
    os.utime(log.path, ns=(log.looks, log.looks))


def test_zeros_that_a_broker_fills_meanwhile_are_no_loss(home: Path) -> None:
    log = Log(home, written)
    with locked_by_a_process(home / ".lock"):
        assert not log.lost()
    assert log.looks == 2


@pytest.mark.parametrize(
    ("change", "at_work", "looks"),
    [
        (written, False, 1),
        (lambda log: None, True, 2),
        (touched, True, opening.MOST_LOOKS),
    ],
    ids=["no-writer", "stands-still", "never-in-order"],
)
def test_zeros_that_stay_are_a_loss(
    home: Path, change: Callable[[Log], None], at_work: bool, looks: int
) -> None:
    log = Log(home, change)
    with locked_by_a_process(home / ".lock") if at_work else nullcontext():
        assert log.lost()
    assert log.looks == looks


@pytest.mark.parametrize("whole", [True, False])
def test_a_partition_that_is_deleted_meanwhile_is_not_planned(home: Path, whole: bool) -> None:
    look = loads.forecast_partition

    def late(request: Any, *more: Any) -> PartitionForecast | UnreadableError:
        if request.path.name == TOPIC:
            request.path.rename(home.parent / "gone")
        return look(request, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain_partition, "load", lambda *_: None)  # as for a large partition
        patch.setattr(loads, "forecast_partition", late)
        found = list(forecast.Forecast([home if whole else home / TOPIC], StartOptions((4, 3))))
    assert (home.parent / "gone").exists()
    errors = [item for item in found if isinstance(item, UnreadableError)]
    loaded = [item.request.path.name for item in found if isinstance(item, PartitionForecast)]
    assert len(errors) == (not whole)
    assert loaded == (["codec-none-0"] if whole else [])
