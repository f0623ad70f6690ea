"""The table ``findings`` of the data source: what ``logtool verify --level records`` reports.

Each partition dir is checked alone, as `verify` checks one that is given without its log dir. So
findings about the files of the log dir itself are not in the table. The checks read the whole
partition; a finding about other offsets than the wanted ones is left out, and one without offsets
is in every selection. An input that cannot be read is a row whose severity is ``unreadable``.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from logtool.disk import files
from logtool.errors import UnreadableError, UsageError
from logtool.findings import Finding
from logtool.log.inputs import PathKind
from logtool.log.selection import OffsetTimeRange
from logtool.schemas import arrow
from logtool.spark.finding_row import finding_row
from logtool.spark.identity import place_of_dir
from logtool.spark.source import listing
from logtool.spark.source.read_tasks import CheckTask
from logtool.spark.source.wanted import RowFilter
from logtool.verify import Level, Verification

NAME: Final = "findings"


_MOST_TASKS: Final = 4000


def plan(paths: Sequence[Path], wanted: RowFilter) -> list[list[CheckTask]]:
    """Return the partition dirs whose findings are wanted, in bundles.

    UnreadableError for a path that does not exist or holds nothing of Kafka, UsageError if no
    partition matches.
    """
    found: dict[tuple[str, Path | None], CheckTask] = {}
    for path in listing.expanded(paths):
        kind, folders = listing.folders(path, wanted)
        log = path if kind is PathKind.FILE else None
        for folder in folders:
            place = place_of_dir(folder)
            span = wanted.span(place.topic, place.partition)
            found.setdefault((files.real(folder), log), CheckTask(folder, span, log))
    if not found and not wanted.takes_all:
        raise UsageError(listing.no_match(paths))
    tasks, size = list(found.values()), len(found) // _MOST_TASKS + 1
    return [tasks[at : at + size] for at in range(0, len(tasks), size)]


def rows_of(task: CheckTask, columns: Sequence[str], limit: int) -> Iterator[Any]:
    """Yield the columns of a task's rows, which are numbered within the directory.

    A batch may decompress to `limit` bytes.
    """
    schema = arrow.schema(NAME)
    chosen = pa.schema([schema.field(name) for name in columns])
    home = frozenset({task.folder.parent})
    items = Verification([task.folder], level=Level.RECORDS, limit=limit)
    rows = [
        {name: row.get(name) for name in columns}
        for number, item in enumerate(items)
        if _is_wanted(item, task) and (row := finding_row(item, number, home))
    ]
    if rows:
        yield pa.RecordBatch.from_pylist(rows, chosen)


def _is_wanted(item: Finding | UnreadableError, task: CheckTask) -> bool:
    """Return whether an item is about the log that is meant, and about wanted offsets."""
    if task.log and (item.path is None or item.path.stem != task.log.stem):
        return False
    return isinstance(item, UnreadableError) or _touches(item, task.span)


def _touches(finding: Finding, span: OffsetTimeRange) -> bool:
    """Return whether a finding is about an offset of `span`, or about none."""
    given = (finding.first_offset, finding.last_offset)
    offsets = [one for one in given if one is not None]
    return not offsets or (min(offsets) <= span.last and max(offsets) >= span.first)
