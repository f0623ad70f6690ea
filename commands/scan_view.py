"""How a run of the pipeline looks to a person."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from logtool.commands import text
from logtool.commands.output import View
from logtool.commands.writers import Column, Object, columns

if TYPE_CHECKING:
    from logtool.pipeline.scan import Scan

SCHEMA = "logtool.scan/1"
_TABLE = (
    Column("table", lambda obj: obj["table"]),
    Column("rows", lambda obj: f"{obj['rows']:,}"),
    Column("size", lambda obj: text.size(obj["bytes"])),
    Column("path", lambda obj: obj["path"]),
)


def make() -> View:
    """Return the view of `scan`."""
    return View(
        SCHEMA,
        columns("table", "rows", "bytes", "path", "run_id"),
        lambda obj: _TABLE if obj["type"] == "table" else None,
        row_types=frozenset({"table"}),
    )


def objects(job: "Scan") -> Iterator[Object]:
    """Yield an object for each table that was written."""
    for name in job.wanted:
        yield {
            "type": "table", "table": name, "rows": job.rows[name], "bytes": job.sizes[name],
            "path": f"{job.output.rstrip('/')}/{name}/run_id={job.run_id}", "run_id": job.run_id,
        }  # fmt: skip


def last_line(job: "Scan") -> str:
    """Return one line: rows, bytes and rate."""
    summary = job.summary
    seconds = summary.elapsed_s
    rate = f" ({text.size(summary.bytes / seconds)}/s)" if seconds > 0 else ""
    state = "" if summary.complete else (
        f"incomplete, {text.count(summary.unreadable, 'input')} could not be read: "
    )  # fmt: skip
    return (
        f"{state}run {job.run_id}: {text.count(sum(job.rows.values()), 'row')} in "
        f"{text.count(len(job.rows), 'table')}, {text.size(sum(job.sizes.values()))} written, "
        f"{text.size(summary.bytes)} of logs read in {text.duration(seconds)}{rate}"
    )
