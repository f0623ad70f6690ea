"""The runs in the output of ``scan``: listed, removed, compared, and the history of all.

The modules that read them import PyArrow. Functions import these modules, behind
`needed_for_runs`, which says how to install it.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from logtool.commands.output import OutputSettings, Printer, Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Columns, Object, TableColumn, columns
from logtool.commands.views.rows import RowPrinter
from logtool.commands.views.scan_tables import (
    DOCUMENT,
    FILE,
    FINDING,
    GROWTH,
    HISTORY,
    REPLICA,
    RUN,
    chosen,
    make,
)
from logtool.exits import Exit
from logtool.running.summary import ActionSummary
from logtool.schemas.columns import Way
from logtool.spark.session import needed_for_runs
from logtool.times import rfc3339

if TYPE_CHECKING:
    from logtool.spark.scan.compare_runs import RunComparison
    from logtool.spark.scan.manifest import Manifest, TableFile
    from logtool.spark.scan.runs import Staged

_FINDING_KEYS = tuple(name for name in FINDING.names(Way.CSV) if name not in ("state", "next"))
_SIZES = ("partition_dirs", "segments", "log_bytes", "records")
_KEYS = dict.fromkeys(
    ("type", "state", *_FINDING_KEYS, *REPLICA.names(Way.CSV), *GROWTH.names(Way.CSV))
)
_FINDING = (
    TableColumn("", lambda obj: obj["state"]),
    TableColumn("severity", lambda obj: obj["severity"]),
    TableColumn("code", lambda obj: obj["code"] or ""),
    TableColumn("path", lambda obj: obj["path"] or ""),
    TableColumn("message", lambda obj: obj["message"]),
)
_GROWTH = (
    TableColumn("topic", lambda obj: obj["topic"]),
    TableColumn("partition dirs", lambda obj: _change(obj, "partition_dirs")),
    TableColumn("segments", lambda obj: _change(obj, "segments")),
    TableColumn("records", lambda obj: _change(obj, "records")),
    TableColumn("size", lambda obj: text.size(obj["log_bytes"])),
    TableColumn("grew by", lambda obj: _size_change(obj["log_bytes"] - obj["log_bytes_before"])),
)
_REPLICA = (
    TableColumn("replica", lambda obj: f"{obj['topic']}-{obj['partition']}"),
    TableColumn("log dir", lambda obj: obj["log_dir"]),
    TableColumn("", lambda obj: obj["state"]),
    TableColumn("behind", lambda obj: f"{obj['behind'] or 0:,}"),
    TableColumn("before", lambda obj: f"{obj['behind_before'] or 0:,}"),
    TableColumn(
        "diverges at", lambda obj: "" if obj["diverges_at"] is None else obj["diverges_at"]
    ),
)
_HISTORY_KEYS = HISTORY.names(Way.CSV)
_HISTORY = (
    TableColumn("run", lambda obj: obj["run_id"]),
    TableColumn("at", lambda obj: obj["at"]),
    TableColumn("topic", lambda obj: obj["topic"] or ""),
    TableColumn("segments", lambda obj: f"{obj['segments']:,}"),
    TableColumn("records", lambda obj: f"{obj['records']:,}"),
    TableColumn("size", lambda obj: text.size(obj["log_bytes"])),
    TableColumn("errors", lambda obj: f"{obj['errors']:,}"),
    TableColumn("warnings", lambda obj: f"{obj['warnings']:,}"),
)


def run(
    settings: OutputSettings,
    output: str,
    *,
    tables: str | None,
    run_id: str | None,
    is_listed: bool,
    removed: str | None,
    compared: tuple[str, str] | None,
    has_history: bool,
) -> Exit:
    """Print the requested facts of the runs in `output`, or remove runs; return the exit status."""
    summary = ActionSummary()
    if compared:
        report = Report(settings, _view_of_comparison(verbose=settings.verbose), summary)
        return report.consume(
            _comparison(output, *compared), ComparisonPrinter(report, summary, *compared)
        )
    if has_history:
        report = Report(settings, _view_of_history(), summary)
        return report.consume(_history(output), RowPrinter(report, _history_object))
    if is_listed and tables:
        report = Report(settings, make("file"), summary)
        printer = RowPrinter(report, partial(_file_object, output))
        return report.consume(_files(output, tables, run_id), printer)
    report = Report(settings, make("run"), summary)
    if is_listed:
        return report.consume(_listed(output), RunPrinter(report, nothing=None))
    return report.consume(
        _removed(output, removed), RunPrinter(report, nothing="nothing to remove")
    )


def _listed(output: str) -> Iterator[Object]:
    """Yield the runs that readers find by their id, then the others."""
    needed_for_runs()
    from logtool.spark.scan import manifest, runs

    runs.check_exists(output)
    for run in (*manifest.complete(output), *manifest.incomplete(output)):
        yield _run_object(run, removed=False)
    for staged in runs.staged(output):
        yield _staged_object(staged, removed=False)


def _removed(output: str, run_id: str | None) -> Iterator[Object]:
    """Remove a run, or killed runs and incomplete runs next to older ones, and yield these."""
    needed_for_runs()
    from logtool.spark.scan import manifest, runs

    if run_id is None:
        runs.check_exists(output)
        for run in runs.remove_incomplete(output):
            yield _run_object(run, removed=True)
        for staged in runs.clean(output):
            yield _staged_object(staged, removed=True)
        return
    known = manifest.find(output, run_id)
    runs.remove(output, run_id)
    yield _run_object(known, removed=True)


def _files(output: str, tables: str, run_id: str | None) -> "Iterator[tuple[Manifest, TableFile]]":
    """Yield the files of some tables, each with its run; of all complete runs without `run_id`."""
    needed_for_runs()
    from logtool.spark.scan import manifest, runs

    wanted = chosen(tables)
    runs.check_exists(output)
    for one in manifest.complete(output) if run_id is None else [manifest.find(output, run_id)]:
        for part in one.parts:
            if part.table in wanted and part.table in one.rows:
                yield one, part


def _comparison(output: str, before: str, after: str) -> "Iterator[RunComparison]":
    needed_for_runs()
    from logtool.spark.scan import compare_runs

    yield compare_runs.compare(output, before, after)


def _history(output: str) -> Iterator[dict[str, Any]]:
    needed_for_runs()
    from logtool.spark.scan import history, runs

    runs.check_exists(output)
    yield from history.history(output)


class RunPrinter(Printer[Object]):
    """Prints the objects of runs, and notes what a killed process left."""

    def __init__(self, report: Report, *, nothing: str | None) -> None:
        """Begin; with `nothing` as the note where there is no run."""
        self._report = report
        self._nothing = nothing
        self._states: Counter[str] = Counter()
        self._seen: set[str] = set()
        self._hidden: dict[str, None] = {}
        """Ids of incomplete runs that readers do not find."""

    def show(self, item: Object) -> None:
        """Print one run."""
        self._states[item["state"]] += 1
        if item["state"] == "incomplete" and item["run_id"] in self._seen:
            self._hidden.setdefault(item["run_id"])
        self._seen.add(item["run_id"])
        self._report.item(item)

    def finish(self) -> None:
        """Print notes on incomplete runs and on killed processes, or that no run was found."""
        for run_id in self._hidden:
            self._report.note(
                f"run {run_id}: readers still find the older run, because a later run is "
                f"incomplete; a complete run {run_id} replaces both, and logtool scan --clean "
                "--output removes the incomplete run",
                "warning",
            )
        if self._states["killed"]:
            self._report.note(
                "a killed process left files; logtool scan --clean --output removes them"
            )
        if self._nothing and not self._states:
            self._report.note(self._nothing)


class ComparisonPrinter(Printer["RunComparison"]):
    """Prints how two runs differ."""

    def __init__(self, report: Report, summary: ActionSummary, before: str, after: str) -> None:
        self._report = report
        self._summary = summary
        self._before, self._after = before, after

    def show(self, item: "RunComparison") -> None:
        """Print the findings, topics and replicas of a comparison, and one line about all of it."""
        report = self._report
        self._summary.to_do |= item.is_worse
        for state, row in item.findings:
            values = {
                name: row.get(name) for name in _FINDING_KEYS
            }  # an earlier release wrote fewer
            report.item(FINDING.make(state=str(state), **values, next=None))
        for row in item.growth:
            report.item(GROWTH.make(**row))
        for lag, row, known in item.replicas:
            made = REPLICA.make(
                state=str(lag),
                log_dir=row["log_dir"],
                topic=row["topic"],
                partition=row["partition"],
                behind=row["behind"],
                behind_before=known and known["behind"],
                diverges_at=row["diverges_at"],
            )
            report.item(made)
        for table in item.skipped:
            report.note(
                f"table {table} was not compared: one of the runs does not have this table",
                "warning",
            )
        report.note(self._line(item), "warning" if item.is_worse else "good")

    def _line(self, item: "RunComparison") -> str:
        """Return one line: findings by state, growth, replicas."""
        counts = Counter(str(state) for state, _ in item.findings)
        grew = sum(row["log_bytes"] - row["log_bytes_before"] for row in item.growth)
        lags = text.count(len(item.replicas), "replica")
        return (
            f"{self._before} to {self._after}: {text.count(counts['new'], 'finding')} new, "
            f"{counts['gone']:,} gone, {counts['still']:,} still there; {_size_change(grew)} of "
            f"logs; {lags} fell behind or diverged"
        )


def _view_of_comparison(*, verbose: bool) -> View:
    """Return the view of two runs; findings that are still there are shown only with -v."""

    def layout(obj: Object) -> Columns | None:
        if obj["type"] == "finding":
            return _FINDING if verbose or obj["state"] != "still" else None
        if obj["type"] == "growth":
            same = all(obj[name] == obj[f"{name}_before"] for name in _SIZES)
            return _GROWTH if verbose or not same else None
        return {"replica": _REPLICA}.get(obj["type"])

    rows = frozenset({"finding", "growth", "replica"})
    return View(
        schema=DOCUMENT.schema, columns=columns(*_KEYS), layout=layout, row_types=rows, sparse=True
    )


def _view_of_history() -> View:
    """Return the view of the history of all runs."""
    return View(
        schema=DOCUMENT.schema,
        columns=columns(*_HISTORY_KEYS),
        layout=lambda obj: {"history": _HISTORY}.get(obj["type"]),
        row_types=frozenset({"history"}),
        sparse=True,
    )


def _run_object(run: "Manifest", *, removed: bool) -> Object:
    """Return the object of a run that has a manifest, or had one until it was removed."""
    state = "complete" if run.is_whole else "incomplete"
    return RUN.make(
        run_id=run.run_id,
        state="removed" if removed else state,
        rows=sum(run.rows.values()),
        bytes=sum(part.size for part in run.parts),
        began=None,
        process=None,
    )


def _staged_object(staged: "Staged", *, removed: bool) -> Object:
    """Return the object of a run without a manifest."""
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


def _file_object(output: str, item: "tuple[Manifest, TableFile]") -> Object:
    """Return the object of a file of a complete run."""
    run, part = item
    return FILE.make(
        table=part.table,
        rows=part.rows,
        bytes=part.size,
        path=f"{output.rstrip('/')}/{part.path}",
        run_id=run.run_id,
    )


def _history_object(row: dict[str, Any]) -> Object:
    """Return the object of a run and topic."""
    times = {
        name.removesuffix("_ms"): rfc3339(row[name]) for name in ("at_ms", "last_timestamp_ms")
    }
    values = {**row, **times}
    return HISTORY.make(**{name: values[name] for name in _HISTORY_KEYS})


def _change(obj: Object, name: str) -> str:
    change = obj[name] - obj[f"{name}_before"]
    return f"{obj[name]:,}" + (f" ({change:+,})" if change else "")


def _size_change(size: int) -> str:
    return f"{'-' if size < 0 else '+'}{text.size(abs(size))}"
