"""Files, maps and heap that a broker needs for its logs, against the limits of one process.

=====================  =======================================================================
each segment           one open file, the log; one more if it has a transaction index
each offset or time    no open file: it is mapped and closed again. One map, if it is not empty;
index                  since 2.3 (KAFKA-7283) at the first read, up to 2.2 at the start
each active segment    two maps at every start, because its indexes are extended for appends
each producer id       225 bytes of heap
the broker itself      150 open files and 400 maps, before the first client connects
=====================  =======================================================================

These numbers were measured on processes of Kafka 2.2.2, 3.9.2 and 4.3.1 (``/proc/PID/fd`` and
``/proc/PID/maps`` with 600 logs of 5 segments; the heap of 4.3.1 with and without 200,000 producer
ids). Source of the rest: ``LogSegment.open``, ``TransactionIndex``,
``AbstractIndex.createAndAssignMmap``. A broker at its limit of files fails with "Too many open
files", a broker at its limit of maps with "Map failed".
"""

import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from logtool.findings import Finding
from logtool.formats import producer_snapshot, wording
from logtool.formats.names import FileKind
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import Partition

BROKER_FILES = 150
BROKER_MAPS = 400
PRODUCER_BYTES = 225
DEFAULT_HEAP = 1 << 30
"""Heap that ``kafka-server-start.sh`` gives a broker without ``KAFKA_HEAP_OPTS``, in bytes."""
HEAP_SHARE = 0.5
"""Share of the heap that producer ids may take without a warning."""
_MAPPED_KINDS = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX)
_MOST_MAPS = Path("/proc/sys/vm/max_map_count")


@dataclass(frozen=True, slots=True)
class Needs:
    """The needs of a broker's logs once they are loaded."""

    logs: int = 0
    segments: int = 0
    transaction_indexes: int = 0
    indexes: int = 0
    """Offset and time indexes that are not empty, or are extended: those of active segments."""
    producers: int = 0
    """Entries of the newest producer snapshot of each log."""

    def __add__(self, other: "Needs") -> "Needs":
        return Needs(
            self.logs + other.logs,
            self.segments + other.segments,
            self.transaction_indexes + other.transaction_indexes,
            self.indexes + other.indexes,
            self.producers + other.producers,
        )

    @property
    def open_files(self) -> int:
        """Return the open files of the broker at every start."""
        return BROKER_FILES + self.segments + self.transaction_indexes

    @property
    def lazy_maps(self) -> int:
        """Return the maps of a broker since 2.3 right after its start."""
        return BROKER_MAPS + len(_MAPPED_KINDS) * self.logs

    @property
    def most_maps(self) -> int:
        """Return the maps once every index was read; a broker up to 2.2 has them at its start."""
        return BROKER_MAPS + self.indexes

    @property
    def memory(self) -> int:
        """Return the bytes of heap for the producer ids."""
        return PRODUCER_BYTES * self.producers


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one process; None: no limit, or the system does not report it."""

    open_files: int | None = None
    maps: int | None = None
    heap: int = DEFAULT_HEAP
    """Bytes."""


def needs(partition: Partition) -> Needs:
    """Return the needs of one log, by the names and sizes of its files; no file is opened."""
    if not partition.segments:
        return Needs(logs=1, segments=1, indexes=len(_MAPPED_KINDS))  # a broker makes the first one
    inactive = partition.segments[:-1]
    newest = partition.snapshots[-1].size if partition.snapshots else 0
    entries = max(0, newest - producer_snapshot.HEADER.size) // producer_snapshot.ENTRY_SIZE
    return Needs(
        logs=1,
        segments=len(partition.segments),
        transaction_indexes=sum(
            FileKind.TRANSACTION_INDEX in segment.indexes for segment in partition.segments
        ),
        indexes=len(_MAPPED_KINDS)
        + sum(
            kind in segment.indexes and segment.indexes[kind].size > 0
            for segment in inactive
            for kind in _MAPPED_KINDS
        ),
        producers=entries,
    )


def of_host() -> Limits:
    """Return the limits of a broker that is started from this process.

    A Java machine raises its soft limit of open files to the hard limit, so the hard limit counts.
    """
    return Limits(open_files()[1], most_maps())


def open_files() -> tuple[int | None, int | None]:
    """Return the soft and the hard limit of open files of this process; None: unlimited."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    return None if soft == unlimited else soft, None if hard == unlimited else hard


def most_maps() -> int | None:
    """Return ``vm.max_map_count``; None where the system does not report it."""
    with suppress(OSError, ValueError):
        return int(_MOST_MAPS.read_text())
    return None


def judge(needed: Needs, limits: Limits, path: Path, *, eager: bool = False) -> Iterator[Finding]:
    """Yield a finding for each limit that is too low.

    `eager` says that the broker is of a release up to 2.2; `path` is a log dir.
    """
    files, maps = limits.open_files, limits.maps
    if files is not None and needed.open_files > files:
        indexes = needed.transaction_indexes
        text = (
            f"the start needs {needed.open_files:,} open files "
            f"({wording.count(needed.segments, 'segment')}, "
            f"{wording.count(indexes, 'transaction index', 'transaction indexes')}, "
            f"{BROKER_FILES} for the broker itself), but the limit is {files:,}"
        )
        yield _finding("host/open-files", text, path)
    at_start = needed.most_maps if eager else needed.lazy_maps
    if maps is not None and at_start > maps:
        text = f"the start needs {at_start:,} maps, but vm.max_map_count is {maps:,}"
        yield _finding("host/maps", text, path)
    elif maps is not None and needed.most_maps > maps:
        text = (
            f"the start needs {at_start:,} maps, and {needed.most_maps:,} after every "
            f"index has been used; vm.max_map_count is {maps:,}"
        )
        yield _finding("host/maps-when-read", text, path)
    if needed.memory > limits.heap * HEAP_SHARE:
        text = (
            f"{needed.producers:,} producer ids take {wording.size(needed.memory)} of a heap of "
            f"{wording.size(limits.heap)}"
        )
        yield _finding("host/producer-memory", text, path)


def _finding(code: str, text: str, path: Path) -> Finding:
    return Finding(code, text, path=path, next=f"logtool explain {code}")
