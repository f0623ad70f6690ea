"""The statistics of log dirs, partition dirs and logs: segment by segment, in several threads."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from logtool.checks import old_formats
from logtool.checks.fast_path import PlainPartitions, may_look
from logtool.checks.plain_segment import PlainSegment
from logtool.disk import files
from logtool.errors import BatchTooLargeError, UnreadableError
from logtool.findings import Finding
from logtool.formats import compression
from logtool.formats.names import PartitionDirectory
from logtool.lazy_dataclass import dataclass
from logtool.log import inputs, opening
from logtool.log.dir import Partition, Segment, without_files
from logtool.log.flavour import Flavour
from logtool.log.inputs import PathKind
from logtool.log.kafka import KAFKA
from logtool.log.selection import Selection
from logtool.node import settings
from logtool.node.settings import Settings
from logtool.running.run import Run
from logtool.running.windows import in_windows
from logtool.running.workers import OutOfTimeError, Workers
from logtool.stat.statistics import MeasureTask, Statistics, measure, merged, of_plain, unread

_Measured = Statistics | UnreadableError
_Found = _Measured | OutOfTimeError
_PARTITIONS_AT_ONCE = 64
"""Partitions of a topic whose statistics are kept separately before they are added up."""


@dataclass(frozen=True, slots=True)
class MeasuredSegment:
    """The statistics of one segment."""

    log: Path
    base_offset: int
    statistics: Statistics


@dataclass(frozen=True, slots=True)
class Surveyed:
    """The statistics of one partition."""

    partition: Partition
    """The partition; its files were not listed if it is plain."""
    segments: tuple[MeasuredSegment, ...]
    """The segments asked for: all, unless a path named a log."""

    @property
    def findings(self) -> Iterator[Finding]:
        """Yield the findings about timestamps and old message formats, each with its location."""
        for segment in self.segments:
            for finding in segment.statistics.odd:
                yield finding.placed(
                    segment.log,
                    topic=self.partition.topic,
                    partition=self.partition.number,
                    segment=segment.base_offset,
                )
        parts = (one for segment in self.segments for one in segment.statistics.old_formats)
        for finding in old_formats.findings(parts):
            yield finding.placed(
                self.partition.path, topic=self.partition.topic, partition=self.partition.number
            )

    @property
    def statistics(self) -> Statistics:
        """Return the statistics of all these segments together."""
        return merged([segment.statistics for segment in self.segments])


_Chosen = tuple[Partition, tuple[Segment, ...]] | Surveyed
"""A partition, and the segments of it that are asked for; or the result, if it is plain."""


class TopicTotal:
    """The statistics of a topic, which are added up while its partitions are read."""

    def __init__(self) -> None:
        self.partitions = 0
        """Number of partitions that were added."""
        self._parts: list[Statistics] = []

    def add(self, part: Statistics) -> None:
        """Add one partition."""
        self.partitions += 1
        self._parts.append(part)
        if len(self._parts) >= _PARTITIONS_AT_ONCE:
            self._parts = [merged(self._parts)]

    @property
    def statistics(self) -> Statistics:
        """Return the sum of the partitions."""
        return merged(self._parts)


class Survey:
    """One run over paths: iterate over partitions in the order given, and errors of reading."""

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        unpack: bool = False,
        limit: int = compression.DEFAULT_LIMIT,
        static: Mapping[str, str] | None = None,
        selection: Selection | None = None,
        run: Run | None = None,
        flavour: Flavour | None = None,
    ) -> None:
        self._paths, self._flavour = paths, flavour
        self._unpack, self._limit = unpack, limit
        self._selection = selection or Selection()
        self._static = static or {}
        """Settings in the broker's own properties file."""
        self._run = run or Run()
        self._settings: dict[Path, Settings] = {}
        """Settings of the topics, by log dir."""
        self._ahead: dict[tuple[Path, str | None], int | None] = {}
        """Largest distance of a timestamp into the future, in ms, by log dir and topic."""

    def __iter__(self) -> Iterator[Surveyed | UnreadableError]:
        for window in in_windows(self._chosen(), _segments):
            yield from (one for one in window if isinstance(one, UnreadableError))
            chosen = [one for one in window if not isinstance(one, UnreadableError)]
            if not (yield from self._measured(chosen)):
                return

    def _chosen(self) -> Iterator[_Chosen | UnreadableError]:
        """Yield the partitions of all paths, each with the segments that are asked for."""
        for path in files.each_once(self._paths):
            try:
                yield from self._choose(path)
            except UnreadableError as error:
                yield error

    def _measured(
        self, chosen: Sequence[_Chosen]
    ) -> Generator[Surveyed | UnreadableError, None, bool]:
        """Yield the statistics of partitions; return False once time ran out."""
        listings = (one for one in chosen if not isinstance(one, Surveyed))
        tasks = [self._task(listed, segment) for listed, some in listings for segment in some]
        self._run.bytes_total += sum(task.segment.log.size for task in tasks)
        with self._run.workers(measure) as workers:
            # One thread works in order, so that finished partitions are printed at once.
            results = workers.run(tasks, lambda t: -t.segment.log.size if workers.jobs > 1 else 0)
            for one in chosen:
                if isinstance(one, Surveyed):
                    self._run.advance(one.statistics.bytes, one.partition.path)
                    yield one
                    continue
                listed, segments = one
                self._run.path = listed.path
                found = list(islice(results, len(segments)))
                try:
                    if segments is listed.segments:
                        listed, found = self._settled(listed, found, workers)
                        segments = listed.segments
                except UnreadableError as error:
                    if listed.path in self._paths or not files.has_vanished(error):
                        yield error
                    continue
                yield from self._partition(listed, segments, found)
                if any(isinstance(result, OutOfTimeError) for result in found):
                    return False
        return True

    def _settled(
        self, listed: Partition, found: list[_Found], workers: Workers[MeasureTask, _Measured]
    ) -> tuple[Partition, list[_Found]]:
        """Return a partition and the results for its segments, without segments that have vanished.

        A broker deletes and cleans segments while others are read. Then the directory is listed
        again (UnreadableError if that is not possible), and new or changed segments are read.
        """
        for _ in range(opening.MOST_LOOKS):
            errors = [one for one in found if isinstance(one, UnreadableError)]
            if not any(map(files.has_vanished, errors)):
                break
            known = {
                segment.log: one
                for segment, one in zip(listed.segments, found, strict=True)
                if not isinstance(one, UnreadableError)
            }
            listed = opening.open_partition(listed.path, listed.flavour)
            found = [
                known.get(segment.log) or workers.again(self._task(listed, segment))
                for segment in listed.segments
            ]
        return listed, found

    def _task(self, listed: Partition, segment: Segment) -> MeasureTask:
        return MeasureTask(segment, self._unpack, self._limit, self._ahead_ms(listed))

    def _ahead_ms(self, listed: Partition) -> int | None:
        """Return how many ms ahead the topic allows timestamps; each topic is asked about once."""
        key = home, topic = listed.path.parent, listed.topic
        if key not in self._ahead:
            if home not in self._settings:
                self._settings[home] = settings.around(listed.path, self._static)
            self._ahead[key] = self._settings[home].ahead_ms(topic)
        return self._ahead[key]

    def _partition(
        self,
        listed: Partition,
        segments: Sequence[Segment],
        results: Sequence[_Found],
    ) -> Iterator[Surveyed | UnreadableError]:
        measured = []
        for segment, result in zip(segments, results, strict=True):
            if isinstance(result, UnreadableError):
                yield result
            for position in result.too_large if isinstance(result, Statistics) else ():
                yield BatchTooLargeError(segment.log.path, position, self._limit)
            known = result if isinstance(result, Statistics) else unread(segment)
            measured.append(MeasuredSegment(segment.log.path, segment.base_offset, known))
        yield Surveyed(listed, tuple(measured))

    def _choose(self, path: Path) -> Iterator[_Chosen | UnreadableError]:
        """Yield the partitions of a path, each with the segments that are asked for."""
        kind = inputs.kind_of(path, self._flavour, redpanda=True)
        if kind is PathKind.LOG_DIR:
            root = opening.open_log_dir(path, self._flavour)
            may = root.flavour.has_checkpoints and may_look(path, self._run.budget, self._flavour)
            looks = PlainPartitions() if may and not self._unpack else None
            for folder, directory in root.partitions:
                if self._selection.takes(directory):
                    if looks and (plain := self._plain(looks, folder, directory)):
                        yield plain
                        continue
                    found = opening.try_partition(folder, root.flavour)
                    if isinstance(found, Partition):
                        yield found, found.segments
                    elif not files.has_vanished(found):
                        yield found
            return
        home = path if kind is PathKind.PARTITION_DIR else path.parent
        listed = opening.open_partition(home, self._flavour)
        meant = listed.segments
        if kind is PathKind.FILE:
            meant = tuple(segment for segment in meant if segment.log.path.name == path.name)
            if not meant:
                raise UnreadableError(path, "expected a log dir, a partition dir or a .log")
        yield listed, meant

    def _plain(
        self, looks: PlainPartitions, folder: Path, directory: PartitionDirectory
    ) -> Surveyed | None:
        """Return the statistics of a plain partition; None for any other."""
        listed = without_files(folder, KAFKA, directory)
        measured: list[tuple[PlainSegment, Statistics | None]] = []
        found = looks.look(
            folder, 0, self._ahead_ms(listed),
            on_segment=lambda segment: measured.append((segment, _of_plain(segment))),
        )  # fmt: skip
        segments = tuple(
            MeasuredSegment(Path(segment.log), segment.base_offset, statistics)
            for segment, statistics in measured
            if statistics
        )
        if not found or len(segments) < len(measured):
            return None
        self._run.bytes_total += found.bytes
        return Surveyed(listed, segments)


def _of_plain(segment: PlainSegment) -> Statistics | None:
    """Return the statistics of a plain segment; None if one of its batches has no time."""
    table, totals = segment.table, segment.totals
    size, index_size = segment.bytes, segment.index_bytes
    if not totals:
        return Statistics(segments=1, bytes=size, index_bytes=index_size)
    return of_plain(
        table,
        totals,
        segments=1,
        bytes=size,
        index_bytes=index_size,
        first_offset=int(table.base_offset[0]),
        last_offset=int(table.last_offset[-1]),
    )


def _segments(item: _Chosen | UnreadableError) -> int:
    if isinstance(item, UnreadableError):
        return 0
    return len(item.segments if isinstance(item, Surveyed) else item[1])
