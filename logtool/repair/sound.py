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
    """Yield the errors in a partition dir; none if it is sound.

    A topic id is missing where the source has none.
    """
    listed, request = opening.open_partition(folder, flavour), CheckRequest()
    reports = [check_segment(task) for task in plan(listed, request)]
    for item in check_partition(listed, request, PartitionSummary(), reports):
        if isinstance(item, UnreadableError) or _is_fault(item):
            yield item


def _is_fault(finding: Finding) -> bool:
    return finding.severity is Severity.ERROR and finding.code != "partition-metadata/missing"
