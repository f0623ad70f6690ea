"""The partitions, segments and bytes of log dirs, and the needs of a broker on its host."""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from logtool.checks.partition_numbers import PartitionNumbers, numbers_of
from logtool.errors import UnreadableError
from logtool.lazy_dataclass import dataclass
from logtool.log import opening
from logtool.log.dir import LogDir
from logtool.log.flavour import Flavour
from logtool.log.selection import Selection
from logtool.node.host_limits import Needs


@dataclass(slots=True)
class LogDirNumbers:
    """The numbers of a log dir, or of a partition dir alone."""

    path: Path
    flavour: Flavour
    partitions: list[tuple[str | None, int | None]] = field(default_factory=list)
    """Topic and number of each partition that could be listed."""
    segments: int = 0
    log_bytes: int = 0
    """Bytes of the logs alone."""
    bytes: int = 0
    """Bytes of all files of its partitions."""
    needs: Needs = field(default_factory=Needs)

    def add(self, topic: str | None, number: int | None, numbers: PartitionNumbers) -> None:
        """Add the numbers of a partition."""
        self.partitions.append((topic, number))
        self.segments += numbers.segments
        self.log_bytes += numbers.log_bytes
        self.bytes += numbers.bytes
        self.needs += numbers.needs


def of_log_dir(
    root: LogDir, selection: Selection, known: Mapping[Path, PartitionNumbers]
) -> LogDirNumbers:
    """Return the numbers of a log dir; a partition is listed only if its numbers are not known.

    One that cannot be listed is left out.
    """
    found = LogDirNumbers(root.path, root.flavour)
    for path, directory in filter(lambda entry: selection.takes(entry[1]), root.partitions):
        numbers = known.get(path)
        if numbers is None:
            listed = opening.try_partition(path, root.flavour)
            numbers = None if isinstance(listed, UnreadableError) else numbers_of(listed)
        if numbers:
            found.add(directory.topic, directory.partition, numbers)
    return found


def of_partition_dir(path: Path, flavour: Flavour | None) -> LogDirNumbers:
    """Return the numbers of a partition dir that was given alone; UnreadableError."""
    listed = opening.open_partition(path, flavour)
    found = LogDirNumbers(path, listed.flavour)
    found.add(listed.topic, listed.number, numbers_of(listed))
    return found
