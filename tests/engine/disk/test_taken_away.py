"""Segments that a broker deletes while the logs of its partition are read, one by one."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from verification import logs, small_log_dir

from logtool.disk import partition
from logtool.disk.node_dir import NodeDir
from logtool.errors import UnreadableError
from logtool.gaps.run import GapOptions, Gaps
from logtool.running.progress import Progress
from logtool.running.run import Run
from logtool.startup.assumed import Assumed
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
def home(scenario: Callable[[str], Path], tmp_path: Path) -> Path:
    return small_log_dir(scenario("4.3.1/clean"), tmp_path / "clean", TOPIC, "codec-none-0")


def delete(log: Path) -> None:
    """Rename the files of a segment as retention does."""
    for path in log.parent.glob(f"{log.stem}.*index"):
        path.rename(f"{path}.deleted")
    log.rename(f"{log}.deleted")


def told(items: Iterable[Any]) -> list[object]:
    """Return what an engine says, as it can be compared."""
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


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("name", ENGINES)
def test_what_is_left_is_told_as_if_the_rest_had_never_been(
    home: Path, name: str, whole: bool
) -> None:
    path = home if whole else home / TOPIC
    deleted: list[Path] = []

    def once(run: Progress) -> None:
        if not deleted and run.path == home / TOPIC:
            deleted.extend(logs(home / TOPIC)[:5])
            for log in deleted:
                delete(log)

    found = told(ENGINES[name](path, Run(on_progress=once)))
    assert deleted
    assert found == told(ENGINES[name](path, Run()))


def test_a_replica_is_measured_again_where_its_newest_segment_went(home: Path) -> None:
    def replicas() -> list[Replica]:
        found = list(Watermarks([NodeDir(home / TOPIC)], Assumed((4, 3))))
        assert not [item for item in found if isinstance(item, UnreadableError)]
        return [item for item in found if isinstance(item, Replica)]

    before = replicas()
    read, deleted = partition.read, []

    def once(path: Path) -> partition.Partition:
        listed = read(path)
        if not deleted and path.name == TOPIC:
            deleted.append(listed.segments[-1].log.path)
            delete(deleted[0])
        return listed

    with pytest.MonkeyPatch.context() as patch:
        # Behind the look at the size, where it is loaded.
        patch.setattr("logtool.watermark.run._size", lambda path: 0)
        patch.setattr(partition, "read", once)
        found = replicas()
    assert deleted
    assert found == replicas() != before


@pytest.mark.parametrize("name", ENGINES)
def test_a_partition_that_is_never_at_rest_is_given_up_in_the_end(home: Path, name: str) -> None:
    looked = []
    read = partition.read

    def never(path: Path) -> partition.Partition:
        listed = read(path)
        if path.name == TOPIC:
            looked.append(path)
            delete(listed.segments[1].log.path)
        return listed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition, "read", never)
        found = told(ENGINES[name](home, Run()))
    # What stat has measured once it need not find again.
    assert any("No such file" in str(item) for item in found) == (name == "gaps")
    assert 2 <= len(looked) <= partition.MOST_LOOKS + 1


@pytest.mark.parametrize("name", ENGINES)
def test_a_partition_that_is_deleted_meanwhile_is_passed_over(home: Path, name: str) -> None:
    def once(run: Progress) -> None:
        gone = home.parent / "gone"
        if not gone.exists() and run.path == home / TOPIC:
            (home / TOPIC).rename(gone)

    found = told(ENGINES[name](home, Run(on_progress=once)))
    assert (home.parent / "gone").exists()
    assert found == told(ENGINES[name](home, Run()))
