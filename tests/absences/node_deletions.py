"""Deletions on a node: its metadata log, log dirs, files of a log dir, classes of files."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from absences import deletions
from absences.deletions import CHECKPOINTS, EPOCHS, METADATA, REPLICATION, Choice, Step
from absences.traffic import GROUPS, TRANSACTIONS

LOG = "__cluster_metadata-0"
OTHER_ID = "zzzzzzzzzzzzzzzzzzzzzw"
MARKER = ".kafka_cleanshutdown"
META = "meta.properties"

Change = Callable[[Sequence[Path]], None]
"""Changes the log dirs of a node; the first one has the metadata log."""


@dataclass(frozen=True)
class NodeCase:
    """Something that is removed or emptied on a node."""

    name: str
    changes: tuple[Change, ...]
    of_metadata: bool = False
    """True if it concerns the metadata log, which `quorum` judges."""
    unprovable: bool = False
    of_last_log_dir: bool = False
    """True if the case is the same as another one where a node has one log dir."""

    def apply(self, log_dirs: Sequence[Path]) -> None:
        """Change the log dirs."""
        for change in self.changes:
            change(log_dirs)


def _metadata(step: Step) -> Change:
    return lambda dirs: step(dirs[0] / LOG)


def _partitions(log_dirs: Sequence[Path], topics: Sequence[str] = ()) -> Iterator[Path]:
    """Yield the partition dirs, without that of the metadata log."""
    for log_dir in log_dirs:
        for path in sorted(log_dir.glob("*-*")):
            topic = path.name.rpartition("-")[0]
            if path.is_dir() and path.name != LOG and (not topics or topic in topics):
                yield path


def _each(step: Step, *topics: str) -> Change:
    def change(log_dirs: Sequence[Path]) -> None:
        for path in list(_partitions(log_dirs, topics)):
            step(path)

    return change


def _second_half(step: Step) -> Change:
    """Return a change of every second partition."""

    def change(log_dirs: Sequence[Path]) -> None:
        for path in list(_partitions(log_dirs))[::2]:
            step(path)

    return change


def _files(*names: str, emptied: bool = False, where: slice = slice(None)) -> Change:
    """Return a change of files of log dirs."""

    def change(log_dirs: Sequence[Path]) -> None:
        for log_dir in log_dirs[where]:
            for name in names:
                if (log_dir / name).exists():
                    (deletions.empty_file if emptied else deletions.remove_file)(log_dir / name)

    return change


_LAST, _FIRST = slice(-1, None), slice(0, 1)


def _no_dir(log_dirs: Sequence[Path]) -> None:
    """Remove the last log dir."""
    shutil.rmtree(log_dirs[-1])


def _new_disk(place: int, *, formatted: bool = False, found: bool = False) -> Change:
    """Return a change that leaves an empty log dir, as a new or another disk is."""

    def change(log_dirs: Sequence[Path]) -> None:
        text = (log_dirs[place] / META).read_text()
        shutil.rmtree(log_dirs[place])
        log_dirs[place].mkdir()
        if formatted:
            _write(
                log_dirs[place] / META,
                re.sub("(?m)^directory.id=.*", f"directory.id={OTHER_ID}", text),
            )
        if found:
            (log_dirs[place] / "lost+found").mkdir()

    return change


def _directory_id(place: int, text: str) -> Change:
    def change(log_dirs: Sequence[Path]) -> None:
        path = log_dirs[place] / META
        _write(path, re.sub("(?m)^directory.id=.*\n", text, path.read_text()))

    return change


def _write(path: Path, text: str) -> None:
    """Write a file under a new inode."""
    path.unlink(missing_ok=True)
    path.write_text(text)


def _case(name: str, *changes: Change, unprovable: bool = False) -> NodeCase:
    in_log_dir = name.startswith(("log dir", META, "directory.id", "marker", "all checkpoints"))
    of_last = in_log_dir and ": last" in name
    return NodeCase(name, changes, name.startswith("metadata"), unprovable, of_last)


def _of_metadata(name: str, *choices: Choice, emptied: bool = False) -> NodeCase:
    step = deletions.emptied(*choices) if emptied else deletions.gone(*choices)
    return _case(f"metadata: {name}", _metadata(step))


_SEGMENTS = deletions.pattern("[0-9]*[0-9].[lit]*")
_SNAPSHOTS = deletions.pattern("*.checkpoint")
_LOGS = deletions.pattern("*.log")
_segment = deletions.segment


def cases() -> list[NodeCase]:
    """Return all cases."""
    return [*_metadata_cases(), *_log_dir_cases(), *_class_cases(), *_pairs()]


def _metadata_cases() -> Iterator[NodeCase]:
    yield _case("metadata log", _metadata(deletions.no_directory))
    yield _case("metadata: all files", _metadata(deletions.no_content))
    yield _of_metadata("segments", _SEGMENTS)
    yield _of_metadata("logs", _LOGS)
    yield _of_metadata("logs emptied", _LOGS, emptied=True)
    yield _of_metadata("first segment", _segment(0))
    yield _of_metadata("first two segments", _segment(0, 1))
    yield _of_metadata("middle segment", _segment(middle=True))
    yield _of_metadata("last segment", _segment(-1))
    yield _of_metadata("last log emptied", _segment(-1, suffixes=(".log",)), emptied=True)
    yield _of_metadata("first log emptied", _segment(0, suffixes=(".log",)), emptied=True)
    yield _of_metadata("snapshots", _SNAPSHOTS)
    yield _of_metadata("snapshots emptied", _SNAPSHOTS, emptied=True)
    yield _of_metadata("last snapshot", deletions.latest("*.checkpoint"))
    yield _of_metadata("last snapshot emptied", deletions.latest("*.checkpoint"), emptied=True)
    yield _of_metadata("segments, snapshots", _SEGMENTS, _SNAPSHOTS)
    yield _of_metadata("logs and snapshots emptied", _LOGS, _SNAPSHOTS, emptied=True)
    yield _of_metadata("first segment, snapshots", _segment(0), _SNAPSHOTS)
    yield _of_metadata("last segment, last snapshot", _segment(-1),
                       deletions.latest("*.checkpoint"))  # fmt: skip
    for name in ("quorum-state", EPOCHS, METADATA):
        yield _of_metadata(name, deletions.pattern(name))
        yield _of_metadata(f"{name} emptied", deletions.pattern(name), emptied=True)
    yield _of_metadata("indexes", deletions.pattern("*index"))
    yield _of_metadata("producer snapshots", deletions.pattern("*.snapshot"))
    yield _case("bootstrap.checkpoint", _files("bootstrap.checkpoint"))


def _log_dir_cases() -> Iterator[NodeCase]:
    yield _case("log dir: last one", _no_dir)
    for place, name in ((-1, "last"), (0, "first")):
        yield _case(f"log dir: {name} one empty", _new_disk(place))
        yield _case(f"log dir: {name} one formatted", _new_disk(place, formatted=True))
        yield _case(f"log dir: {name} one with lost+found", _new_disk(place, found=True))
        where = _LAST if place else _FIRST
        yield _case(f"{META}: {name}", _files(META, where=where))
        yield _case(f"{META}: {name} emptied", _files(META, emptied=True, where=where))
        yield _case(f"directory.id: {name} gone", _directory_id(place, ""))
        yield _case(f"directory.id: {name} another",
                    _directory_id(place, f"directory.id={OTHER_ID}\n"))  # fmt: skip
    yield _case(f"{META}: all", _files(META))
    yield _case("marker", _files(MARKER))
    yield _case("marker: last", _files(MARKER, where=_LAST))
    yield _case("marker emptied", _files(MARKER, emptied=True))
    for name in CHECKPOINTS:
        yield _case(name, _files(name))
        yield _case(f"{name} emptied", _files(name, emptied=True))
    yield _case("all checkpoints", _files(*CHECKPOINTS))
    yield _case("all checkpoints: last", _files(*CHECKPOINTS, where=_LAST))


def _class_cases() -> Iterator[NodeCase]:
    """Yield cases that concern all partitions, or those of a topic."""
    for name, glob in (
        ("logs", "*.log"), ("snapshots", "*.snapshot"), ("indexes", "*.index"),
        ("time indexes", "*.timeindex"), ("transaction indexes", "*.txnindex"),
        ("leader epochs", EPOCHS),
    ):  # fmt: skip
        yield _case(f"all partitions: {name}", _each(deletions.gone(deletions.pattern(glob))))
        yield _case(f"all partitions: {name} emptied",
                    _each(deletions.emptied(deletions.pattern(glob))))  # fmt: skip
    yield _case("all partitions: partition.metadata",
                _each(deletions.gone(deletions.pattern(METADATA))))  # fmt: skip
    yield _case("all partitions: first segments", _each(deletions.gone(_segment(0))))
    yield _case("all partitions: last segments", _each(deletions.gone(_segment(-1))))
    for topic in ("plain", "tx", "segments", GROUPS, TRANSACTIONS):
        yield _case(f"topic {topic}", _each(deletions.no_directory, topic))
    yield _case("all topics", _each(deletions.no_directory))
    yield _case("every second partition", _second_half(deletions.no_directory))


def _pairs() -> Iterator[NodeCase]:
    rows = _files(*CHECKPOINTS)
    yield _case("topic segments, all checkpoints", _each(deletions.no_directory, "segments"), rows)
    yield _case("all topics, all checkpoints", _each(deletions.no_directory), rows)
    yield _case("metadata log, all checkpoints", _metadata(deletions.no_directory), rows)
    yield _case("metadata log, topic segments", _metadata(deletions.no_directory),
                _each(deletions.no_directory, "segments"))  # fmt: skip
    yield _case("metadata log, marker", _metadata(deletions.no_directory), _files(MARKER))
    yield _case("snapshots, marker",
                _each(deletions.gone(deletions.pattern("*.snapshot"))), _files(MARKER))  # fmt: skip
    yield _case("logs, marker", _each(deletions.gone(_LOGS)), _files(MARKER))
    yield _case(f"logs, {REPLICATION}", _each(deletions.gone(_LOGS)), _files(REPLICATION))
    yield _case("leader epochs, all checkpoints",
                _each(deletions.gone(deletions.pattern(EPOCHS))), rows)  # fmt: skip
    yield _case("last segments, all checkpoints", _each(deletions.gone(_segment(-1))), rows)
    yield _case("topic __consumer_offsets, topic __transaction_state",
                _each(deletions.no_directory, GROUPS, TRANSACTIONS))  # fmt: skip
