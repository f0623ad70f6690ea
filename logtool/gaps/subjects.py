"""What is known of a partition before its batches are read."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from logtool import data_dir, partition
from logtool.checks import small_files
from logtool.checks.indexes import OffsetIndexRules, TimeIndexRules
from logtool.data_dir import PathKind, Selection
from logtool.errors import UnreadableError
from logtool.findings import Severity
from logtool.forecast import Home, Settings
from logtool.formats import names
from logtool.formats.names import DirectoryKind, FileKind, FileState, PartitionDirectory, Reception
from logtool.gaps.coverage import Coverage, Look
from logtool.gaps.evidence import Facts
from logtool.loading.epochs import EpochCache
from logtool.partition import Partition

_KAFKA = (4, 3)
"""The home of a partition is read as a broker of this version would."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of each partition."""

    exact: bool = False
    """Whether batches with holes are decoded."""
    isolation: bool = False
    """Whether what a consumer that reads committed records does not see is listed too."""
    policy: str | None = None
    """``cleanup.policy``, for all; None: as the metadata log says."""


@dataclass(frozen=True, slots=True)
class Subject:
    """One partition before it is read."""

    found: Partition
    facts: Facts

    def looks(self, wanted: Wanted) -> list[Look]:
        """Return what is to be read of it."""
        start = self.facts.log_start
        return [
            Look(segment.log.path, segment.base_offset, start, wanted.exact, size=segment.log.size)
            for segment in self.found.segments
            if segment.next_base_offset is None or segment.next_base_offset > start
        ]


def subjects(
    path: Path, wanted: Wanted, selection: Selection
) -> Iterator[Subject | UnreadableError]:
    """Yield the partitions that a path names, and what of it cannot be read."""
    try:
        kind = data_dir.classify(path)
        if kind is PathKind.FILE:
            yield _single(path, wanted)
            return
        top = path if kind is PathKind.LOG_DIR else path.resolve().parent
        home = Home(data_dir.read(top), Settings(_KAFKA))
    except UnreadableError as error:
        yield error
        return
    chosen = [path]
    if kind is PathKind.LOG_DIR:
        chosen = [folder for folder, directory in home.found.partitions
                  if directory.kind is not DirectoryKind.DELETE
                  and selection.takes(directory)]  # fmt: skip
    for folder in chosen:
        try:
            found = partition.read(folder)
            yield Subject(found, _facts(found, home, wanted))
        except UnreadableError as error:
            yield error


def _single(path: Path, wanted: Wanted) -> Subject:
    """Return a log by itself: all that is asked of its neighbours is where it begins."""
    name = names.parse_partition_file(path.name)
    exact = name.state is FileState.LIVE and name.reception is Reception.EXACT
    if name.kind is not FileKind.LOG or not exact:
        raise UnreadableError(path, "expected a log dir, a partition dir or a .log")
    found = partition.read(path.parent)
    segment = next((one for one in found.segments if one.log.path.name == path.name), None)
    if segment is None:
        raise UnreadableError(path, "No such file or directory", missing=True)
    alone = replace(found, path=path, segments=(replace(segment, next_base_offset=None),))
    base = segment.base_offset
    source = "the command line"
    return Subject(alone, Facts(base, wanted.policy, source, first_base=base,
                                epochs=_epochs(found)))  # fmt: skip


def _facts(found: Partition, home: Home, wanted: Wanted) -> Facts:
    directory = found.directory
    first = found.segments[0].base_offset if found.segments else 0
    key = None
    if isinstance(directory, PartitionDirectory) and directory.kind in data_dir.OF_TODAY:
        key = directory.topic, directory.partition
    row = home.rows(FileKind.LOG_START_CHECKPOINT).get(key) if key else None
    policy, source = wanted.policy, "the command line"
    if policy is None:
        policy, source = _policy(home, found), "the metadata log"
    start = first if row is None else max(row, first)
    if row is not None and row < first and home.clean and not _may_be_remote(home, found):
        start = row
    witnesses = [(file.name.offset or 0, file.name.name, False) for file in found.orphans]
    bases = {segment.base_offset for segment in found.segments}
    witnesses += [(file.name.offset or 0, file.name.name, True) for file in found.snapshots
                  if file.name.offset not in bases]  # fmt: skip
    cleaner = home.rows(FileKind.CLEANER_CHECKPOINT).get(key) if key else None
    return Facts(
        start, policy, source, cleaner, home.clean, first, tuple(sorted(witnesses)),
        epochs=_epochs(found),
    )  # fmt: skip


def _policy(home: Home, found: Partition) -> str | None:
    if found.is_metadata_log:
        return "delete"  # it is never compacted: its snapshots take the place of that
    topic = found.topic
    if not home.image or topic is None:
        return None
    return home.image.topic_config(topic, "cleanup.policy", home.node_id)


def _may_be_remote(home: Home, found: Partition) -> bool:
    """Return whether older segments are in remote storage, or nothing says that they are not."""
    if not home.image or found.topic not in home.image.topics:
        return True
    return home.image.topic_config(found.topic or "", "remote.storage.enable") == "true"


def _epochs(found: Partition) -> tuple[tuple[int, int], ...]:
    """Return the entries of leader-epoch-checkpoint that a broker keeps of those in the file.

    There are none where a broker cannot read it.
    """
    file = found.fixed.get(FileKind.LEADER_EPOCH_CHECKPOINT)
    if file:
        with suppress(UnreadableError):
            value, wrong = small_files.check_file(file)
            if not any(finding.severity is Severity.ERROR for finding in wrong):
                return tuple(EpochCache(value.epochs).rows)
    return ()


def indexed(subject: Subject, segments: Sequence[Coverage]) -> Facts:
    """Return the facts with what the indexes name of segments that a gap follows."""
    ends = {one.base_offset: one.last.offset + 1 if one.last else one.base_offset
            for one in segments}  # fmt: skip
    found: list[tuple[int, int]] = []
    for segment in subject.found.segments:
        end, behind = ends.get(segment.base_offset), segment.next_base_offset
        if end is None or behind is None or end >= behind:
            continue
        highest = -1
        for rules, kind in ((OffsetIndexRules, FileKind.OFFSET_INDEX),
                            (TimeIndexRules, FileKind.TIME_INDEX)):  # fmt: skip
            if file := segment.indexes.get(kind):
                with suppress(UnreadableError):
                    highest = max(highest, rules(segment, file).last_offset)
        found.append((segment.base_offset, highest))
    return replace(subject.facts, indexed=tuple(found))
