"""The objects that `scan` prints of tables, runs, their comparison and history: logtool.scan/1."""

from dataclasses import replace
from typing import Final

from logtool.commands.output import View
from logtool.commands.printing import text
from logtool.commands.printing.writers import TableColumn as Cell
from logtool.commands.printing.writers import columns
from logtool.errors import UsageError
from logtool.schemas import tables
from logtool.schemas.columns import EVERY_WAY, PRINTED, Column, Kind, Table, Way
from logtool.schemas.document import Document

_TABLE_NAMES = tuple(name for name, table in tables.ALL.items() if Way.SCAN in table.ways)
_RUN_ID = Column("run_id", Kind.STRING, "id of the run")
_TABLE_NAME = Column("table", Kind.STRING, "name of the table", words=_TABLE_NAMES)
WRITTEN: Final = Table("table", "table that a run has written", (
    _TABLE_NAME,
    Column("rows", Kind.INT64, "rows of the table", "count"),
    Column("bytes", Kind.INT64, "size of the Parquet files of the table", "bytes"),
    Column("path", Kind.STRING, "the directory of the Parquet files; the manifest of the run lists "
           "the valid files"),
    _RUN_ID,
), note="One complete table of the run.", type="table")  # fmt: skip
FILE: Final = Table("file", "file of a table of a complete run", (
    _TABLE_NAME,
    Column("rows", Kind.INT64, "rows in the file", "count"),
    Column("bytes", Kind.INT64, "size of the file", "bytes"),
    Column("path", Kind.STRING, "the file, or its URL"),
    _RUN_ID,
), note="One file of a table of a complete run, with --list and --tables.",
    type="file")  # fmt: skip

_UNFINISHED = "the run is under way, or its process was killed"
_KILLED = "the run came to its end, or the process is not known"
RUN: Final = Table("run", "run in the output", (
    _RUN_ID,
    Column("state", Kind.STRING, "state of the run; incomplete: the run did not read all of its "
           "inputs, or no segment; killed: the process of the run no longer exists; removed: this "
           "command removed the run",
           words=("complete", "incomplete", "under way", "killed", "removed")),
    Column("rows", Kind.INT64, "rows of all tables of the run", "count", _UNFINISHED),
    Column("bytes", Kind.INT64, "size of all files of the run", "bytes", _UNFINISHED),
    Column("began", Kind.STRING, "time at which the run began, to the second", "UTC", _KILLED),
    Column("process", Kind.STRING, "the process of the run", null=_KILLED),
), note="A run in the output, with --list, --clean or --remove.", type="run")  # fmt: skip

FINDING: Final = replace(
    tables.ALL["findings"], name="finding", ways=PRINTED, columns=(
        Column("state", Kind.STRING, "new: only the later run has the finding; gone: only the "
               "earlier run; still: both runs", words=("new", "gone", "still")),
        *tables.ALL["findings"].by(Way.NDJSON),
    ),
    note="With --compare: a finding of one or both runs. unreadable: an input that could not be "
                         "read.",
)  # fmt: skip


def _size(name: str, meaning: str, unit: str) -> tuple[Column, Column]:
    before = Column(f"{name}_before", Kind.INT64, f"{meaning}, in the earlier run", unit)
    return Column(name, Kind.INT64, f"{meaning}, in the later run", unit), before


_SIZES, _SIZES_BEFORE = zip(
    _size("partition_dirs", "partition dirs of the topic; each copy counts", "count"),
    _size("segments", "segments in the partition dirs", "count"),
    _size("log_bytes", "size of the .log files of the segments", "bytes"),
    _size("records", "records in sound batches of the segments", "count"),
    strict=True,
)
GROWTH: Final = Table("growth", "topic of one or both runs", (
    Column("topic", Kind.STRING, "name of the topic"), *_SIZES, *_SIZES_BEFORE,
), note="With --compare: a topic of one or both runs; 0 if a run does not have the topic. "
        "log_bytes are bytes.",
    type="growth")  # fmt: skip
REPLICA: Final = Table("replica", "copy of a partition in a worse state than before", (
    Column("state", Kind.STRING, "how the state of the copy became worse",
           words=("fell-behind", "diverged")),
    Column("log_dir", Kind.STRING, "the log dir that holds the copy"),
    Column("topic", Kind.STRING, "name of the topic"),
    Column("partition", Kind.INT32, "number of the partition"),
    Column("behind", Kind.INT64, "offsets by which the copy is behind the largest log end, in the "
           "later run", "count"),
    Column("behind_before", Kind.INT64, "offsets by which the copy is behind the largest log end, "
           "in the earlier run", "count", "the earlier run does not have the copy"),
    Column("diverges_at", Kind.INT64, "first offset at which another copy differs, in the later "
           "run", "offset", "nowhere"),
), note="With --compare: a copy that is more offsets behind the largest log end than before, or "
        "that diverges and did not diverge before.",
    type="replica")  # fmt: skip
HISTORY: Final = replace(
    tables.ALL["history"], type="history", ways=PRINTED,
    columns=tuple(replace(column, ways=EVERY_WAY) for column in tables.ALL["history"].columns),
    note="With --history: the totals of a topic in a run. at_ms: the time when the logs had been "
                         "read, in milliseconds since 1970.",
)  # fmt: skip

DOCUMENT: Final = Document(
    name="scan",
    title="Objects that logtool scan prints",
    tables=(WRITTEN, FILE, RUN, FINDING, GROWTH, REPLICA, HISTORY),
)

_TABLE = (
    Cell("table", lambda obj: obj["table"]),
    Cell("rows", lambda obj: f"{obj['rows']:,}"),
    Cell("size", lambda obj: text.size(obj["bytes"])),
    Cell("path", lambda obj: obj["path"]),
)
_RUN = (
    Cell("run", lambda obj: obj["run_id"]),
    Cell("state", lambda obj: obj["state"]),
    Cell("rows", lambda obj: "" if obj["rows"] is None else f"{obj['rows']:,}"),
    Cell("size", lambda obj: "" if obj["bytes"] is None else text.size(obj["bytes"])),
    Cell("began", lambda obj: obj["began"] or ""),
    Cell("process", lambda obj: obj["process"] or ""),
)
_LAYOUTS = {"table": _TABLE, "run": _RUN, "file": _TABLE}
_KEYS = {table.name: table.names(Way.CSV) for table in (WRITTEN, FILE, RUN)}


def make(of: str = "table") -> View:
    """Return the view of `scan`: of the tables of a run, of its files, or of runs."""
    return View(
        schema=DOCUMENT.schema,
        columns=columns(*_KEYS[of]),
        layout=lambda obj: _LAYOUTS.get(obj["type"]),
        row_types=frozenset({of}),
        sparse=True,
    )


def chosen(names: str | None) -> tuple[str, ...]:
    """Return the tables that --tables names, all but records without it.

    UsageError for one that there is not. PyArrow must be installed.
    """
    from logtool.schemas import arrow  # it imports PyArrow, which may be missing

    if names is None:
        return arrow.DEFAULT
    wanted = tuple(dict.fromkeys(names.split(",")))
    for name in wanted:
        if name not in arrow.NAMES:
            raise UsageError(f"--tables {name}: expected some of {', '.join(arrow.NAMES)}")
    return wanted
