"""The partitions of a log dir that a command is to look at, and the offsets and times of one."""

from fnmatch import fnmatchcase
from math import inf
from typing import Final
from zlib import crc32

import numpy as np

from logtool.disk import shell
from logtool.formats.names import PartitionDirectory
from logtool.formats.record_batch import NO_TIMESTAMP, BatchTable, Column
from logtool.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Selection:
    """The partitions of a log dir that are meant; an empty selection means all."""

    topics: tuple[str, ...] = ()
    """Globs of topics to take."""
    exclude_topics: tuple[str, ...] = ()
    """Globs of topics to leave out; these win."""
    partitions: tuple[int, ...] = ()
    keys: frozenset[tuple[str, int]] = frozenset()
    """Exact (topic, partition)."""
    sample: tuple[int, int] | None = None
    """Number of a sample, from 1 on, and the number of samples; each partition is in one of them,
    by the CRC-32 of its name."""

    def takes(self, directory: PartitionDirectory) -> bool:
        """Return whether the partition is among those meant.

        A folder that could not be listed always is: what lies in it is not known, and the error is
        reported when it is read.
        """
        if directory.unlisted:
            return True
        topic = directory.topic
        return (
            (not self.topics or any(fnmatchcase(topic, glob) for glob in self.topics))
            and not any(fnmatchcase(topic, glob) for glob in self.exclude_topics)
            and (not self.partitions or directory.partition in self.partitions)
            and (not self.keys or (topic, directory.partition) in self.keys)
            and self._samples(f"{topic}-{directory.partition}")
        )

    def _samples(self, name: str) -> bool:
        """Return whether a partition is in the sample."""
        if self.sample is None:
            return True
        number, count = self.sample
        return crc32(name.encode(errors="surrogateescape")) % count == number - 1

    def __str__(self) -> str:
        """Return the selection as command-line options."""
        words = [
            *(shell.option("--topic", glob) for glob in self.topics),
            *(shell.option("--exclude-topic", glob) for glob in self.exclude_topics),
            *(f"--partition {number}" for number in self.partitions),
            *(shell.quote(f"{topic}-{number}") for topic, number in sorted(self.keys)),
            *(["--sample {}/{}".format(*self.sample)] if self.sample else []),
        ]
        return " ".join(words)


@dataclass(frozen=True, slots=True)
class OffsetTimeRange:
    """The offsets and times of one partition that are wanted. All four limits are included."""

    first: float = -inf
    """Least offset."""
    last: float = inf
    """Largest offset."""
    since: float = -inf
    """Least timestamp, ms."""
    until: float = inf
    """Largest timestamp, ms."""

    @property
    def timed(self) -> bool:
        """Return whether a row without a timestamp is left out."""
        return self.since > -inf or self.until < inf

    @property
    def limited(self) -> bool:
        """Return whether anything is left out."""
        return self.timed or self.first > -inf or self.last < inf

    def of_batches(self, table: BatchTable) -> BatchTable:
        """Return the batches that hold an offset and have a largest timestamp of the span."""
        mask = self._near(table) & begins_by(table, self.last)
        if self.timed:
            mask &= table.max_timestamp != NO_TIMESTAMP
        return _where(table, mask & (table.max_timestamp <= self.until))

    def of_their_batches(self, table: BatchTable) -> BatchTable:
        """Return the batches that may hold a record of the span."""
        return _where(table, self._near(table) & begins_by(table, self.last, records=True))

    def of_records(self, offsets: Column, timestamps: Column) -> Column | None:
        """Return a mask of the records in the span, None where that is every one."""
        if not self.limited:
            return None
        mask = (offsets >= self.first) & (offsets <= self.last)
        if self.timed:
            mask &= (timestamps != NO_TIMESTAMP) & (timestamps >= self.since)
            mask &= timestamps <= self.until
        return mask

    def _near(self, table: BatchTable) -> Column:
        mask = table.last_offset >= self.first
        # A header with -1 may stand before records with lower times, never before higher ones.
        return mask & (table.max_timestamp >= self.since) if self.timed else mask


WHOLE: Final = OffsetTimeRange()


def begins_by(table: BatchTable, offset: float, *, records: bool = False) -> Column:
    """Return a mask of the batches that may have a record at `offset` or before it.

    A wrapper of magic 0 or 1 that compaction rewrote begins before the offset that its record count
    gives, but behind the batch before it. That batch is not known for the first row of a table: the
    row is taken if `records` are read, so that none is missed.
    """
    firsts = table.first_offset
    wrappers = np.flatnonzero(table.is_wrapper)
    if len(wrappers):
        before = np.concatenate(([-1 if records else firsts[0] - 1], table.last_offset[:-1]))
        firsts[wrappers] = np.minimum(firsts, before + 1)[wrappers]
    begun: Column = firsts <= offset
    return begun


def _where(table: BatchTable, mask: Column) -> BatchTable:
    return table if bool(np.all(mask)) else table[mask]
