"""The check of a partition dir that was just written, by the rules of `verify`."""

from collections.abc import Iterator
from pathlib import Path

from logtool.checks.partition import CheckRequest, check_partition, plan
from logtool.checks.report import PartitionSummary
from logtool.checks.segment import check_segment
from logtool.errors import UnreadableError
from logtool.findings import Finding, Severity
from logtool.log import opening
from logtool.log.flavour import Flavour


def faults(folder: Path, flavour: Flavour) -> Iterator[Finding | UnreadableError]:
    """Yield the errors in a partition dir; none if it is sound."""
    listed, request = opening.open_partition(folder, flavour), CheckRequest()
    reports = [check_segment(task) for task in plan(listed, request)]
    for item in check_partition(listed, request, PartitionSummary(), reports):
        if isinstance(item, UnreadableError) or item.severity is Severity.ERROR:
            yield item
