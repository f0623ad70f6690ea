"""Starts after a clean stop that fail at damage in the log.

Such a start compares no CRC, but it reads a part of the log: from the last entry of the offset
index to the end, and the control batches behind the newest producer snapshot.
"""

from collections.abc import Iterator

from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.formats.names import DirectoryKind
from logtool.loading.loader import load
from logtool.loading.result import Outcome, StartConditions
from logtool.log.dir import Partition


def check_clean_start(partition: Partition, log_start: int) -> Iterator[Finding]:
    """Yield a finding if a start after a clean stop fails while it loads a damaged log."""
    is_live = getattr(partition.directory, "kind", None) is DirectoryKind.LIVE
    if not is_live or partition.is_metadata_log:
        return
    try:
        loaded = load(partition, StartConditions(clean=True, log_start=log_start))
    except UnreadableError:
        return  # the check of the file reports it
    if loaded.outcome is Outcome.REFUSES:
        finding = Finding("log/clean-start-fails", loaded.reason, path=partition.path)
        yield finding.placed(partition.path, topic=partition.topic, partition=partition.number)
