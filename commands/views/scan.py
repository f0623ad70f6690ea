"""How a run of the pipeline looks to a person."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from logtool.commands.output import View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Column, Object, columns
from logtool.commands.views.scan_tables import DOCUMENT, FILE, RUN, WRITTEN
from logtool.schemas.columns import Way

if TYPE_CHECKING:
    from pathlib import Path

    from logtool.running.summary import Summary
    from logtool.spark.scan.manifest import Manifest
    from logtool.spark.scan.runs import Staged
    from logtool.spark.scan.scan import Scan

SCHEMA = DOCUMENT.schema
_TABLE = (
    Column("table", lambda obj: obj["table"]),
    Column("rows", lambda obj: f"{obj['rows']:,}"),
    Column("size", lambda obj: text.size(obj["bytes"])),
    Column("path", lambda obj: obj["path"]),
)
_RUN = (
    Column("run", lambda obj: obj["run_id"]),
    Column("state", lambda obj: obj["state"]),
    Column("rows", lambda obj: "" if obj["rows"] is None else f"{obj['rows']:,}"),
    Column("size", lambda obj: "" if obj["bytes"] is None else text.size(obj["bytes"])),
    Column("began", lambda obj: obj["began"] or ""),
    Column("process", lambda obj: obj["process"] or ""),
)
_LAYOUTS = {"table": _TABLE, "run": _RUN, "file": _TABLE}
_KEYS = {table.name: table.names(Way.CSV) for table in (WRITTEN, FILE, RUN)}


def make(of: str = "table") -> View:
    """Return the view of `scan`: of the tables of a run, of its files, or of runs."""
    return View(
        schema=SCHEMA,
        columns=columns(*_KEYS[of]),
        layout=lambda obj: _LAYOUTS.get(obj["type"]),
        row_types=frozenset({of}),
        sparse=True,
    )


def run_object(run: "Manifest", *, removed: bool) -> Object:
    """Return the object of a run that is complete, or was until it was removed."""
    return RUN.make(
        run_id=run.run_id,
        state="removed" if removed else "complete",
        rows=sum(run.rows.values()),
        bytes=sum(part.size for part in run.parts),
        began=None,
        process=None,
    )


def file_objects(run: "Manifest", output: str, wanted: Sequence[str]) -> Iterator[Object]:
    """Yield an object for each file of some tables of a complete run."""
    for part in run.parts:
        if part.table in wanted and part.table in run.rows:
            yield FILE.make(
                table=part.table,
                rows=part.rows,
                bytes=part.size,
                path=f"{output.rstrip('/')}/{part.path}",
                run_id=run.run_id,
            )


def staged_object(staged: "Staged", *, removed: bool) -> Object:
    """Return the object of a run that is not complete."""
    state = "under way" if staged.lives else "removed" if removed else "killed"
    began = staged.owner and datetime.fromtimestamp(staged.owner.began, UTC).isoformat(
        "T", "seconds"
    )
    return RUN.make(
        run_id=staged.staging.run_id,
        state=state,
        rows=None,
        bytes=None,
        began=began,
        process=None if staged.owner is None else str(staged.owner),
    )


def objects(job: "Scan") -> Iterator[Object]:
    """Yield an object for each table that was written."""
    for name in job.wanted:
        yield WRITTEN.make(
            table=name,
            rows=job.rows[name],
            bytes=job.sizes[name],
            path=f"{job.output.rstrip('/')}/{job.folder}/{name}",
            run_id=job.run_id,
        )


def reading(summary: "Summary", path: "Path") -> str:
    """Return how far the pass over the bytes is, beside the bytes."""
    return f"{text.count(summary.partitions, 'partition')} read, {path}"


def last_line(job: "Scan") -> str:
    """Return one line: rows, bytes and rate."""
    summary = job.summary
    seconds = summary.elapsed_s
    rate = f" ({text.rate(summary.bytes, seconds)})" if seconds > 0 else ""
    carried = ""
    if job.since:
        carried = f", {text.count(job.carried, 'segment')} taken from run {job.since}"
    return (
        f"{text.state(summary)}run {job.run_id}: {text.count(sum(job.rows.values()), 'row')} in "
        f"{text.count(len(job.rows), 'table')}, {text.size(sum(job.sizes.values()))} written, "
        f"{text.size(summary.bytes)} of logs read in {text.duration(seconds)}{rate}{carried}"
    )
