"""Fast path for small partitions that are sound except for missing indexes.

This uses the quick check of `verify` for small partitions. If it shows that no rule has a finding,
the same read gives the files that a recovery would write, and neither rules nor a recovery are run.
All other partitions are checked in full (`logtool.rebuild.partition`).
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from logtool.actions import Action, Change, FileChange, Stamp
from logtool.checks import root
from logtool.checks.fast_path import DueIndexes, OtherFile, PlainPartitions
from logtool.checks.indexes import missing_text
from logtool.checks.report import PartitionSummary, SegmentReport
from logtool.errors import UnreadableError
from logtool.formats import names
from logtool.formats.names import BadDirectory, DirectoryKind, FileKind, PartitionDirectory
from logtool.lazy_dataclass import dataclass
from logtool.loading.producers import encode
from logtool.log.flavour import Flavour
from logtool.log.producer_state import ProducerState
from logtool.rebuild import targets
from logtool.rebuild.partition import Build
from logtool.rebuild.scope import PartitionSettings
from logtool.rebuild.targets import FileChoice
from logtool.running.budget import Budget

_SNAPSHOT = FileKind.PRODUCER_SNAPSHOT


@dataclass(frozen=True, slots=True)
class PlainPartition:
    """Result of a quick look, used in place of a `PartitionToRebuild`."""

    path: Path
    directory: PartitionDirectory
    facts: PartitionSummary
    others: Sequence[tuple[OtherFile, str]]
    """The files to be built, each with the reason."""

    def actions(
        self, _reports: Sequence[SegmentReport], _build: Build
    ) -> Iterator[Action | UnreadableError]:
        """Yield the actions, whose files are all built already."""
        for file, why in self.others:
            path, seen = self.path / names.format_partition_file(file.offset, file.kind), file.seen
            change = Change(
                kind=FileChange.REPLACE if seen else FileChange.CREATE,
                path=path,
                seen=Stamp(seen.st_size, seen.st_mtime_ns) if seen else None,
                content=file.content,
            )
            yield Action(
                action=change.kind,
                path=path,
                reason=why,
                topic=self.directory.topic,
                partition=self.directory.partition,
                segment=None if file.kind is _SNAPSHOT else file.offset,
                length=len(file.content),
                change=change,
            )


class QuickLook:
    """Quick look at one partition dir after the other, in one thread."""

    def __init__(self, wanted: FileChoice) -> None:
        self._wanted = wanted
        self._plain = PlainPartitions()

    def look(
        self, path: Path, directory: PartitionDirectory | BadDirectory, settings: PartitionSettings
    ) -> PlainPartition | None:
        """Return the result for a partition; None if it has to be checked in full."""
        if not isinstance(directory, PartitionDirectory) or root.key_of(directory) is None:
            return None
        if directory.kind is not DirectoryKind.LIVE:
            return None
        due = DueIndexes(settings.index_interval, settings.max_index_size)
        facts = self._plain.look(path, settings.log_start, None, due)
        if facts is None:
            return None
        others = [
            (file, targets.OTHERWISE if file.seen else missing_text(file.offset, file.kind))
            for file in due.others
            if file.kind in self._wanted.kinds and (self._wanted.everything or not file.seen)
        ]
        lacking = self._lacking(due, settings, facts.log_end_offset)
        if lacking and due.has_producers:
            return None
        for offset in lacking:
            empty = OtherFile(offset, _SNAPSHOT, encode(ProducerState()), None)
            others.append((empty, targets.no_snapshot_text(offset)))
        return PlainPartition(path, directory, facts, others)

    def _lacking(
        self, due: DueIndexes, settings: PartitionSettings, log_end: int | None
    ) -> list[int]:
        """Return the offsets at which a producer snapshot is to be built, in ascending order."""
        if _SNAPSHOT not in self._wanted.kinds:
            return []
        needed = targets.needed_snapshots(
            due.bases, clean=settings.clean, log_start=settings.log_start, log_end=log_end
        )
        return sorted(set(needed).difference(due.snapshots))


def looks(wanted: FileChoice, budget: Budget, flavour: Flavour | None = None) -> QuickLook | None:
    """Return a `QuickLook`; None if a budget or an option of the run rules it out."""
    pace = budget.pace
    paced = pace.bytes_per_second is not None or pace.deadline is not None
    if paced or budget.drop_cache or wanted.snapshot_every is not None or flavour is not None:
        return None
    return QuickLook(wanted)
