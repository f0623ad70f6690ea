"""Content of the small files of a data directory: entries and findings."""

from collections.abc import Iterator
from pathlib import Path

from logtool.dump.records import Object, error_object
from logtool.findings import Finding, Severity, catalogue
from logtool.formats.names import FileKind
from logtool.lazy_dataclass import dataclass

KIND_NAMES = {
    FileKind.LOG: "log",
    FileKind.KRAFT_SNAPSHOT: "kraft-snapshot",
    FileKind.BOOTSTRAP_CHECKPOINT: "bootstrap-checkpoint",
    FileKind.OFFSET_INDEX: "offset-index",
    FileKind.TIME_INDEX: "time-index",
    FileKind.TRANSACTION_INDEX: "transaction-index",
    FileKind.PRODUCER_SNAPSHOT: "producer-snapshot",
    FileKind.META_PROPERTIES: "meta-properties",
    FileKind.PARTITION_METADATA: "partition-metadata",
    FileKind.CLEAN_SHUTDOWN: "clean-shutdown",
    FileKind.LOCK: "lock",
}
"""Words for kinds of files, for those that are not the file's own name."""


@dataclass(frozen=True, slots=True)
class FileEntries:
    """Content of one small file."""

    entries: Iterator[Object]
    """Fields of the entries, without ``type``, ``path`` and ``kind``."""
    findings: Iterator[Finding]
    count: int
    padding: int | None = None
    """Bytes of preallocated zeros behind the entries; None for files that never have any."""


def kind_name(kind: FileKind) -> str:
    """Return the word for a kind of file, as it stands in ``kind``."""
    return KIND_NAMES.get(kind, str(kind))


def entry(path: Path, kind: FileKind, fields: Object) -> Object:
    """Return an ``entry`` of a file."""
    return {"type": "entry", "path": str(path), "kind": kind_name(kind), **fields}


def problems(path: Path, findings: Iterator[Finding]) -> Iterator[Object]:
    """Yield an ``error`` for each finding of a higher severity than info."""
    known = catalogue()
    for finding in findings:
        rule = known.get(finding.code)
        if rule is None or rule.severity is not Severity.INFO:
            yield error_object(
                path, finding.code, finding.message, finding.position, finding.length
            )
