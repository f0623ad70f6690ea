"""Deletions in one partition: files, pairs of them, rows of checkpoints, the directory."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from absences.traffic import GROUPS, TRANSACTIONS

REPLICATION = "replication-offset-checkpoint"
RECOVERY = "recovery-point-offset-checkpoint"
LOG_START = "log-start-offset-checkpoint"
CLEANER = "cleaner-offset-checkpoint"
CHECKPOINTS = (REPLICATION, RECOVERY, LOG_START, CLEANER)
EPOCHS = "leader-epoch-checkpoint"
METADATA = "partition.metadata"

Choice = Callable[[Path], list[Path]]
"""Returns files of a partition dir."""
Step = Callable[[Path], None]
"""Changes a partition dir, or the rows about it."""


def remove_file(path: Path) -> None:
    """Remove a file."""
    path.unlink()


def empty_file(path: Path) -> None:
    """Put a file of 0 bytes in the place of a file: other names of the old one keep its bytes."""
    if path.stat().st_size:
        path.unlink()
        path.touch()


def pattern(text: str) -> Choice:
    """Return a choice of files by a pattern."""
    return lambda folder: sorted(folder.glob(text))


def logs(folder: Path) -> list[Path]:
    """Return the logs of a partition dir in their order."""
    return sorted(folder.glob("[0-9]*.log"))


def segment(*places: int, middle: bool = False, suffixes: Sequence[str] = ()) -> Choice:
    """Return a choice of the files of some segments: those at places, or the one in the middle."""

    def choose(folder: Path) -> list[Path]:
        found = logs(folder)
        if middle:
            wanted = found[len(found) // 2 :][:1] if len(found) > 2 else []
        else:
            wanted = [found[place] for place in places if -len(found) <= place < len(found)]
        names = {path.stem for path in wanted}
        kinds = suffixes or (".log", ".index", ".timeindex", ".txnindex")
        files = sorted(folder.iterdir())
        return [path for path in files if path.stem in names and path.suffix in kinds]

    return choose


def snapshots_of_end(folder: Path) -> list[Path]:
    """Return the snapshots at and behind the first offset of the last segment."""
    last = int(logs(folder)[-1].stem)
    return [path for path in folder.glob("*.snapshot") if int(path.stem) >= last]


def latest(text: str, place: int = -1) -> Choice:
    """Return a choice of the last file of a pattern, or of the one at another place."""
    return lambda folder: sorted(folder.glob(text))[place:][:1]


def gone(*choices: Choice) -> Step:
    """Return a step that removes files."""
    return _each(remove_file, choices)


def emptied(*choices: Choice) -> Step:
    """Return a step that empties files."""
    return _each(empty_file, choices)


def _each(change: Step, choices: Sequence[Choice]) -> Step:
    def step(folder: Path) -> None:
        for path in [path for choice in choices for path in choice(folder)]:
            change(path)

    return step


def no_directory(folder: Path) -> None:
    """Remove the directory."""
    shutil.rmtree(folder)


def no_content(folder: Path) -> None:
    """Remove all files, and keep the directory."""
    shutil.rmtree(folder)
    folder.mkdir()


def no_rows(*files: str) -> Step:
    """Return a step that removes the rows about the partition from checkpoints."""

    def cut(folder: Path) -> None:
        topic, _, number = folder.name.rpartition("-")
        for file in files:
            cut_rows(folder.parent / file, lambda row: row[:2] == [topic, number])

    return cut


def cut_rows(path: Path, chosen: Callable[[list[str]], bool]) -> None:
    """Remove rows of a checkpoint; nothing is written if no row is chosen."""
    if not path.exists():
        return
    version, count, *rows = path.read_text().splitlines()
    kept = [row for row in rows if not chosen(row.split())]
    if len(kept) < len(rows):
        path.unlink()
        path.write_text("\n".join([version, str(int(count) - len(rows) + len(kept)), *kept, ""]))
        # The file is edited some time after the stop.
        later = path.stat().st_mtime + 60
        os.utime(path, (later, later))


SHAPES = ("plain", "segments", "keys", "tx", "idem", "short", "aged", GROUPS, TRANSACTIONS)
COMPACTED = ("keys", GROUPS)


@dataclass(frozen=True)
class Deletion:
    """Something that is removed or emptied in one partition."""

    name: str
    steps: tuple[Step, ...]
    unprovable: tuple[str, ...] = ()
    """Topics in which no file that stays says that something is missing."""

    def apply(self, folder: Path) -> None:
        """Change a partition dir."""
        for step in self.steps:
            step(folder)


def _deletion(name: str, *steps: Step, unprovable: tuple[str, ...] = ()) -> Deletion:
    return Deletion(name, steps, unprovable)


_LOGS, _INDEXES, _TIMES = pattern("*.log"), pattern("*.index"), pattern("*.timeindex")
_TRANSACTIONS, _SNAPSHOTS = pattern("*.txnindex"), pattern("*.snapshot")
_EPOCHS, _METADATA = pattern(EPOCHS), pattern(METADATA)
_FIRST, _MIDDLE, _LAST = segment(0), segment(middle=True), segment(-1)
_ALL = pattern("[0-9]*")
_LOG = (".log",)

DELETIONS = (
    _deletion("directory", no_directory),
    _deletion("all files", no_content),
    _deletion("logs", gone(_LOGS)),
    _deletion("logs emptied", emptied(_LOGS)),
    _deletion("first log", gone(segment(0, suffixes=_LOG))),
    _deletion("first log emptied", emptied(segment(0, suffixes=_LOG))),
    _deletion("middle log", gone(segment(middle=True, suffixes=_LOG))),
    _deletion("middle log emptied", emptied(segment(middle=True, suffixes=_LOG))),
    _deletion("last log", gone(segment(-1, suffixes=_LOG))),
    _deletion("last log emptied", emptied(segment(-1, suffixes=_LOG))),
    _deletion("first segment", gone(_FIRST)),
    _deletion("middle segment", gone(_MIDDLE), unprovable=COMPACTED),
    _deletion("last segment", gone(_LAST)),
    _deletion("all segments", gone(_LOGS, _INDEXES, _TIMES, _TRANSACTIONS)),
    _deletion("snapshots", gone(_SNAPSHOTS)),
    _deletion("snapshots emptied", emptied(_SNAPSHOTS)),
    _deletion("last snapshot", gone(latest("*.snapshot"))),
    _deletion("first snapshot", gone(latest("*.snapshot", 0))),
    _deletion("transaction indexes", gone(_TRANSACTIONS)),
    _deletion("transaction indexes emptied", emptied(_TRANSACTIONS)),
    _deletion("leader epochs", gone(_EPOCHS)),
    _deletion("leader epochs emptied", emptied(_EPOCHS)),
    _deletion("row of the high watermark", no_rows(REPLICATION)),
    _deletion("row of the recovery point", no_rows(RECOVERY)),
    _deletion("row of the log start", no_rows(LOG_START)),
    _deletion("row of the cleaner", no_rows(CLEANER)),
    _deletion("all rows", no_rows(*CHECKPOINTS)),
    _deletion("logs, row of the high watermark", gone(_LOGS), no_rows(REPLICATION)),
    _deletion("logs, leader epochs", gone(_LOGS, _EPOCHS)),
    _deletion("logs, snapshots, leader epochs", gone(_LOGS, _SNAPSHOTS, _EPOCHS)),
    _deletion("segments, snapshots, leader epochs, all rows",
              gone(_ALL, _EPOCHS), no_rows(*CHECKPOINTS), unprovable=SHAPES),
    _deletion("directory, all rows", no_directory, no_rows(*CHECKPOINTS)),
    _deletion("first segment, leader epochs", gone(_FIRST, _EPOCHS)),
    _deletion("first segment, row of the log start", gone(_FIRST), no_rows(LOG_START)),
    _deletion("first two segments, their snapshots", gone(
        segment(0, 1, suffixes=(".log", ".index", ".timeindex", ".txnindex", ".snapshot")))),
    _deletion("middle segment, its snapshot", gone(
        segment(middle=True, suffixes=(".log", ".index", ".timeindex", ".txnindex", ".snapshot"))),
        unprovable=COMPACTED),
    _deletion("last segment, its snapshots", gone(snapshots_of_end, _LAST)),
    _deletion("last segment, its snapshots, row of the high watermark",
              gone(snapshots_of_end, _LAST), no_rows(REPLICATION),
              unprovable=("keys", "tx")),
    _deletion("last segment, its snapshots, all rows",
              gone(snapshots_of_end, _LAST), no_rows(*CHECKPOINTS), unprovable=SHAPES),
    _deletion("snapshots, transaction indexes", gone(_SNAPSHOTS, _TRANSACTIONS)),
    _deletion("indexes", gone(_INDEXES)),
    _deletion("indexes emptied", emptied(_INDEXES)),
    _deletion("time indexes", gone(_TIMES)),
    _deletion("time indexes emptied", emptied(_TIMES)),
    _deletion("indexes, time indexes", gone(_INDEXES, _TIMES)),
    _deletion("partition.metadata", gone(_METADATA)),
    _deletion("partition.metadata emptied", emptied(_METADATA)),
    _deletion("leader epochs, partition.metadata", gone(_EPOCHS, _METADATA)),
    _deletion("snapshots, leader epochs", gone(_SNAPSHOTS, _EPOCHS)),
)  # fmt: skip
BY_NAME = {one.name: one for one in DELETIONS}


@dataclass(frozen=True)
class PartitionCase:
    """A deletion in one partition of a base."""

    partition: str
    deletion: Deletion

    @property
    def shape(self) -> str:
        """The topic."""
        return self.partition.rpartition("-")[0]

    @property
    def name(self) -> str:
        """Name of the case in its base."""
        return f"{self.partition}: {self.deletion.name}"

    def apply(self, log_dirs: Sequence[Path]) -> bool:
        """Change the partition in its log dir; return False if nothing was to be changed."""
        for log_dir in log_dirs:
            folder = log_dir / self.partition
            if folder.is_dir():
                before = _picture(folder)
                self.deletion.apply(folder)
                return _picture(folder) != before
        return False


def _picture(folder: Path) -> dict[str, object]:
    """Return names and sizes of the files of a partition, and the rows about it."""
    found: dict[str, object] = {}
    if folder.is_dir():
        found = {path.name: path.stat().st_size for path in folder.iterdir()}
        found["."] = True
    name = folder.name.rpartition("-")
    for file in CHECKPOINTS:
        path = folder.parent / file
        rows = path.read_text().splitlines() if path.exists() else []
        found[file] = [row for row in rows if row.split()[:2] == [name[0], name[2]]]
    return found


def assigned(
    partitions: Sequence[str], chosen: Sequence[Deletion] = DELETIONS
) -> Iterator[PartitionCase]:
    """Yield a deletion for each partition but the last two of each shape, which do not change."""
    for shape in SHAPES:
        of_shape = sorted(
            (one for one in partitions if one.rpartition("-")[0] == shape),
            key=lambda one: int(one.rpartition("-")[2]),
        )[:-2]
        for name, deletion in zip(of_shape, chosen, strict=False):
            yield PartitionCase(name, deletion)
