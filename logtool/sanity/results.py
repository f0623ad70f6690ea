"""The results for one log dir, as plain data."""

from enum import StrEnum
from pathlib import Path

from logtool.formats.names import FileKind
from logtool.lazy_dataclass import dataclass
from logtool.sanity.measuring import Cache, TimedStart


class Mode(StrEnum):
    """Kind of start, or of the work that follows one."""

    EAGER = "eager"
    LAZY = "lazy"
    FIRST_ACCESS = "first-access"
    BECOME_LEADER = "become-leader"
    BACKGROUND = "background"


@dataclass(frozen=True, slots=True)
class MeasuredDir:
    """Counts and sizes of the files to check."""

    path: Path
    partitions: int
    segments: int
    index_files: int
    index_bytes: int
    maps: int
    """Maps that an eager broker keeps: the offset and the time index of every segment."""
    most_maps: int | None
    """Maps that one process may have, ``vm.max_map_count``; None if the system does not say."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One kind of start, or what it left to others: the run of median time."""

    path: Path
    mode: Mode
    threads: int
    repeat: int
    run: TimedStart
    cache: Cache | None = None
    """State of the page cache; None if it was left as it was."""
    speed_up: float | None = None
    """Quotient of the time until clients are served by an eager start and by this one."""
    seen: int = 0
    missed: int | None = None
    """Findings that this start does not see; None if they were not looked for."""

    @property
    def offset_index_seconds(self) -> float:
        """Return the time spent on offset indexes."""
        return self.run.cost.seconds_of(FileKind.OFFSET_INDEX)

    @property
    def time_index_seconds(self) -> float:
        """Return the time spent on time indexes."""
        return self.run.cost.seconds_of(FileKind.TIME_INDEX)

    @property
    def transaction_index_seconds(self) -> float:
        """Return the time spent on transaction indexes."""
        return self.run.cost.seconds_of(FileKind.TRANSACTION_INDEX)

    @property
    def seconds_per_segment(self) -> float | None:
        """Return the time for each segment opened; None if no segment was opened."""
        segments = self.run.cost.segments
        return self.run.seconds / segments if segments else None

    @property
    def reader_count(self) -> int | None:
        """Return how many first readers were timed; None if readers were not asked for."""
        return None if self.run.readers is None else self.run.readers.count

    @property
    def reader_mean_seconds(self) -> float | None:
        """Return how long a first reader waits on average; None without first readers."""
        readers = self.run.readers
        return None if readers is None else readers.seconds / readers.count

    @property
    def reader_max_seconds(self) -> float | None:
        """Return how long a first reader waits at most; None without first readers."""
        return None if self.run.readers is None else self.run.readers.longest
