"""The log dirs and partition dirs given, listed before anything is timed."""

from collections.abc import Sequence
from pathlib import Path

from logtool.checks.root import check_in_use
from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.formats.names import INDEX_KINDS, FileKind
from logtool.lazy_dataclass import dataclass
from logtool.log import inputs, opening
from logtool.log.dir import Partition
from logtool.log.flavour import Flavour
from logtool.log.inputs import PathKind
from logtool.log.kafka import KAFKA
from logtool.log.selection import Selection
from logtool.node import host_limits
from logtool.running.workers import Pace
from logtool.sanity.indexes import MAPPED_KINDS
from logtool.sanity.results import MeasuredDir


@dataclass(frozen=True, slots=True)
class Listing:
    """A log dir, or a partition dir alone."""

    path: Path
    partitions: Sequence[Partition]
    unread: Sequence[UnreadableError]
    """Partitions that could not be listed."""
    clean: bool
    in_use: Finding | None
    """Finding that a broker holds the log dir; None if no broker does."""
    flavour: Flavour = KAFKA

    @property
    def segments(self) -> int:
        """Return the number of segments."""
        return sum(len(partition.segments) for partition in self.partitions)

    @property
    def needs(self) -> host_limits.Needs:
        """Return the needs of a broker on its host for these logs."""
        return sum(map(host_limits.needs, self.partitions), host_limits.Needs())

    def described(self) -> MeasuredDir:
        """Return counts and sizes of the files to check."""
        segments = [segment for partition in self.partitions for segment in partition.segments]
        files = [
            segment.indexes[kind]
            for segment in segments
            for kind in (*INDEX_KINDS, FileKind.REDPANDA_BASE_INDEX)
            if kind in segment.indexes
        ]
        return MeasuredDir(
            self.path,
            partitions=len(self.partitions),
            segments=len(segments),
            index_files=len(files),
            index_bytes=sum(file.size for file in files),
            maps=sum(file.size > 0 and file.name.kind in MAPPED_KINDS for file in files),
            most_maps=host_limits.most_maps(),
        )


def read(path: Path, selection: Selection, pace: Pace, flavour: Flavour | None = None) -> Listing:
    """List a path; UnreadableError if a broker cannot start from it.

    `flavour` overrules the names of files and directories.
    """
    kind = inputs.kind_of(path, flavour, redpanda=True)
    if kind is PathKind.FILE:
        raise UnreadableError(path, "expected a log dir or a partition dir")
    if kind is PathKind.PARTITION_DIR:
        listed = opening.open_partition(path, flavour)
        return Listing(
            path=path,
            partitions=[listed],
            unread=[],
            clean=False,
            in_use=next(
                check_in_use(inputs.root_of(path.resolve(), flavour), listed.flavour), None
            ),
            flavour=listed.flavour,
        )
    root = opening.open_log_dir(path, flavour)
    partitions: list[Partition] = []
    unread: list[UnreadableError] = []
    for folder, directory in root.partitions:
        if not selection.takes(directory):
            continue
        pace.spend(0)
        try:
            partitions.append(opening.open_partition(folder, root.flavour))
        except UnreadableError as error:
            if not files.has_vanished(error):
                unread.append(error)
    return Listing(
        path=path,
        partitions=partitions,
        unread=unread,
        clean=root.is_clean,
        in_use=next(check_in_use(inputs.root_of(path, flavour), root.flavour), None),
        flavour=root.flavour,
    )
