"""A growing log dir as a stream: the end of each partition, and the pieces between two positions.

This module imports no Spark. A position has, for each partition dir that a broker serves, the
offset behind the last batch that counts: nested dictionaries by log dir and directory, which can be
stored as JSON. Only sound batches count, those with a valid CRC; the batch of a torn tail comes
once it is whole. Sound batches behind damage count, and the damage gives no rows, as in a read that
is no stream.

Two positions give the same rows each time, unless retention or a truncation has removed some of
them. An error or a warning reports that.
"""

import logging
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path

from logtool.disk import files
from logtool.disk.files import text_of
from logtool.errors import UnreadableError, UsageError
from logtool.formats import names
from logtool.formats.names import DirectoryKind, PartitionDirectory
from logtool.lazy_dataclass import dataclass
from logtool.log import inputs, opening
from logtool.log.dir import Partition, Segment
from logtool.log.inputs import PathKind
from logtool.spark.identity import place_of_dir
from logtool.spark.source import kafka_table, kafka_times, listing, loss, reading
from logtool.spark.source.read_tasks import ReadTask
from logtool.spark.source.reading import ReadOptions
from logtool.spark.source.seek import start_of
from logtool.spark.source.wanted import EARLIEST, EVERY_PARTITION, LATEST, Offsets

_log = logging.getLogger("logtool.spark")
Positions = dict[str, dict[str, int]]
"""The offset to go on with, by log dir and directory."""


@dataclass(frozen=True, slots=True)
class Growing:
    """Log dirs, or partition dirs, that grow while they are read."""

    paths: tuple[Path, ...]
    asked: ReadOptions
    bundle_bytes: int | None = None
    fail_on_data_loss: bool = True

    def initial(self) -> Positions:
        """Return the positions at which a new stream begins, by the option startingOffsets."""
        wanted = self.asked.wanted
        given = wanted.starting_offsets
        timed = wanted.times is not None
        if given == EARLIEST and not timed:
            return {}  # Each partition begins with the log that it has when it is first listed.
        if given == LATEST and not timed:
            return self.latest()
        found: Positions = {}
        for home, folder, directory in self._folders():
            offset = _given(given, directory)
            if timed:
                offset = kafka_times.starting_offset(
                    wanted,
                    opening.open_partition(folder),
                    partial(reading.first_offset_at, fails=self.fail_on_data_loss),
                )
            if offset == LATEST:
                offset = log_end(opening.open_partition(folder))
            if offset is not None and offset != EARLIEST:
                found.setdefault(home, {})[directory.name] = offset
        return found

    def latest(self, known: Positions | None = None) -> Positions:
        """Return the ends of the partitions; `known`, from an earlier call, saves reading."""
        found: Positions = {}
        for home, folder, directory in self._folders():
            before = (known or {}).get(home, {}).get(directory.name, 0)
            with suppress(UnreadableError):  # It was just removed; the next call leaves it out.
                found.setdefault(home, {})[directory.name] = log_end(
                    opening.open_partition(folder), before
                )
        return found

    def between(self, start: Positions, end: Positions) -> list[list[ReadTask]]:
        """Return the pieces to read from one position to another, in bundles.

        LostDataError if some of the rows are gone and `fail_on_data_loss` is set.
        """
        bundles: list[list[ReadTask]] = []
        folders = {(home, one.name): folder for home, folder, one in self._folders()}
        for home, directory in _gone(start, end):
            self.report_loss(f"{home}/{directory} is gone")
        for home, some in end.items():
            for directory, stop in some.items():
                first = start.get(home, {}).get(directory)
                if first == stop or (first is None and stop == 0):
                    continue
                folder = folders.get((home, directory))
                if lost := _lost(folder, first, stop):
                    self.report_loss(f"{folder or f'{home}/{directory}'} {lost}")
                if folder is not None and (first is None or first < stop):
                    bundles += self._plan(folder, EARLIEST if first is None else first, stop)
        return bundles

    def _plan(self, folder: Path, first: int, stop: int) -> list[list[ReadTask]]:
        wanted = replace(
            self.asked.wanted,
            selection=EVERY_PARTITION,
            starting_offsets=first,
            ending_offsets=stop,
            topic_pattern=None,
            times=None,
        )
        try:
            return reading.plan([folder], replace(self.asked, wanted=wanted), self.bundle_bytes)
        except UnreadableError as error:
            if not files.has_vanished(error):  # It was just removed: `_lost` finds that next time.
                self.report_loss(str(error))
        return []

    def report_loss(self, what: str) -> None:
        """Raise LostDataError, or log a warning if the stream is to go on."""
        loss.report_loss(what, fails=self.fail_on_data_loss)

    def _folders(self) -> Iterator[tuple[str, Path, PartitionDirectory]]:
        """Yield log dir, path and name of each partition dir that a broker serves."""
        if self.asked.table != kafka_table.NAME:
            yield from self._served()
            return
        found = [(one, place_of_dir(one[1])) for one in self._served()]
        taken = [(one, place) for one, place in found if kafka_table.takes(place)]
        kafka_table.check_copies([place for _, place in taken])
        yield from (one for one, _ in taken)

    def _served(self) -> Iterator[tuple[str, Path, PartitionDirectory]]:
        for path in listing.expanded(self.paths):
            kind = inputs.kind_of(path, lacking="a stream cannot follow a growing Redpanda log")
            if kind is PathKind.FILE:
                raise UsageError(f"{path} is a file; a stream reads log dirs and partition dirs")
            if kind is PathKind.PARTITION_DIR:
                one = names.parse_directory(path.name)
                dirs = [(path, one)] if isinstance(one, PartitionDirectory) else []
            else:
                dirs = list(opening.open_log_dir(path).partitions)
            for folder, directory in dirs:
                live = directory.kind is DirectoryKind.LIVE
                if live and self.asked.wanted.takes_partition(directory):
                    yield text_of(folder.parent), folder, directory


def log_end(found: Partition, known: int = 0) -> int:
    """Return the offset behind the last sound batch; 0 without any.

    `known` is the end that an earlier call found: batches below it are not read again if the
    indexes lead past them.
    """
    for segment in reversed(found.segments):
        last = _last_offset(found.path, segment, known)
        if last is not None:
            return last + 1
    return 0


def _last_offset(folder: Path, segment: Segment, known: int) -> int | None:
    """Return the largest offset of the sound batches of a segment; None without any."""
    piece = ReadTask(
        place=place_of_dir(folder),
        folder=folder,
        log=segment.log,
        segment=segment.base_offset,
        next_segment=segment.next_base_offset,
        index_bytes=(None,) * len(names.INDEX_KINDS),
    )
    largest = -1
    with segment.log.open() as log:
        start = start_of(piece, log, known if known > segment.base_offset else inf, -inf)
        for chunk in segment.batches(log, start=start, payload=False):
            rules = chunk.table.base_offset >= segment.base_offset
            inside = chunk.table.last_offset[rules]
            largest = max(largest, int(inside.max(initial=-1)))
    return None if largest < 0 else largest


def _gone(start: Positions, end: Positions) -> Iterator[tuple[str, str]]:
    for home, some in start.items():
        for directory in some:
            if directory not in end.get(home, {}):
                yield home, directory


def _lost(folder: Path | None, first: int | None, stop: int) -> str | None:
    """Return in words how offsets from `first` to `stop` were lost; None if they were not."""
    if folder is None:
        return "is gone"
    if first is not None and stop < first:
        return f"ends at offset {stop}, but reached {first} before: it was truncated"
    try:
        found = opening.open_partition(folder)
        end = log_end(found, first or 0)
    except UnreadableError as error:
        return f"cannot be read ({error.reason})"
    if end < stop:
        return f"ends at offset {end}, but reached {stop} before: it was truncated"
    begin = found.segments[0].base_offset if found.segments else stop
    if first is not None and first < begin:
        return (
            f"begins at offset {begin}: {first} to {begin - 1} were deleted before the "
            "stream read them"
        )
    return None


def _given(offsets: Offsets, directory: PartitionDirectory) -> int | None:
    """Return the offset that an option gives a partition; None if it does not name it."""
    if isinstance(offsets, int):
        return offsets
    return offsets.get(directory.topic, {}).get(directory.partition)
