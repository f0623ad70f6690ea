"""A start of Redpanda on the indexes of one partition.

It reads each base index whole and checks its CRC, after any kind of stop: there is no lazy start.
A segment whose index it cannot read is replayed; other faults of an index it does not notice.
Source: ``storage/segment_set.cc``, ``storage/segment_index.cc`` (Redpanda 1c6cff34ea).
"""

from collections.abc import Iterator
from dataclasses import replace

from logtool.checks.base_index import BaseIndexRules
from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.formats.names import FileKind
from logtool.log.dir import Partition
from logtool.sanity.indexes import Cost, Item

UNREADABLE = "base-index/unreadable"
"""Code of the only finding that a start sees."""


def start(partition: Partition, cost: Cost) -> list[Item]:
    """Read and check every base index; faults of one that can be read are left to `passed_over`."""
    items: list[Item] = []
    for segment in partition.segments:
        file = segment.indexes.get(FileKind.REDPANDA_BASE_INDEX)
        if file is None:
            continue
        try:
            fault = BaseIndexRules(segment, file).fault
        except UnreadableError as error:
            items.append(error)
            continue
        cost.segments += 1
        cost.files += 1
        cost.filled += file.size > 0
        cost.bytes += file.size
        if fault:
            items.append(Finding(UNREADABLE, fault, path=file.path, segment=segment.base_offset))
    return items


def passed_over(partitions: Iterator[Partition]) -> Iterator[tuple[Finding, Partition]]:
    """Yield the faults of base indexes that a start does not notice."""
    for partition in partitions:
        for segment in partition.segments:
            file = segment.indexes.get(FileKind.REDPANDA_BASE_INDEX)
            if file is None:
                continue
            try:
                findings = list(BaseIndexRules(segment, file).alone())
            except UnreadableError:
                continue  # The start has reported it.
            for finding in findings:
                if finding.code != UNREADABLE:
                    yield replace(finding, segment=segment.base_offset), partition
