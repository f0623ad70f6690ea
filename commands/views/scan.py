"""A run of ``scan``: the tables that it writes."""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from logtool.commands import options
from logtool.commands.output import OutputSettings, Report
from logtool.commands.printing import text
from logtool.commands.printing.writers import Object
from logtool.commands.program.spark_options import Spark
from logtool.commands.views import findings
from logtool.commands.views.scan_tables import WRITTEN, chosen, make
from logtool.disk import shell
from logtool.errors import UsageError
from logtool.exits import Exit
from logtool.log.buckets import plugin_of
from logtool.log.inputs import GivenPaths
from logtool.metadata import automq_tree
from logtool.running.summary import Summary
from logtool.schemas.columns import Payload
from logtool.spark.session import needed, session
from logtool.verify import Level

if TYPE_CHECKING:
    from logtool.spark.scan.scan import Scan


def run(
    inputs: options.Inputs,
    spark: Spark,
    settings: OutputSettings,
    output: str,
    *,
    limit: int,
    tables: str | None,
    payload: str,
    show_secrets: bool,
    level: str,
    run_id: str | None,
    since: str | None,
) -> Exit:
    """Write tables of log dirs below `output`, and print which; return the exit status."""
    given, conf, summary = _given(inputs), spark.settings(), Summary()
    report = Report(settings=settings, view=make(), summary=summary, inputs=given)
    # Not `Report.consume`: the job writes tables, and yields nothing.
    with report:
        needed()
        # These import PyArrow: without it, `needed` says how to install it.
        from logtool.spark.scan.runs import check, check_writable
        from logtool.spark.scan.scan import Scan, check_inputs, check_output, check_since

        names, content, depth = chosen(tables), Payload(payload), Level(level)
        _check_payload(names, content, show_secrets=show_secrets)
        run_id = run_id or f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
        check_output(output, [*given.paths, *given.places_of_buckets])
        check(output, run_id)
        check_since(output, since, names, content, level=depth, show_secrets=show_secrets)
        problems = given.problems_of_all()
        for problem in problems[:-1]:
            report.unreadable(problem)
        if problems:
            raise problems[-1]
        check_inputs(given.paths)
        check_writable(output)
        with session(spark.master, conf, report.starting) as started:
            report.show_progress(0, 0, "Spark lists the partitions", at_once=True)
            job = Scan(
                spark=started,
                paths=given.paths,
                output=output,
                run_id=run_id,
                wanted=names,
                payload=content,
                show_secrets=show_secrets,
                level=depth,
                selection=given.selection,
                limit=limit,
                on_progress=lambda p: report.show_progress(
                    p.bytes_done, p.bytes_total, _reading(summary, p.path)
                ),
                on_step=lambda step: report.note(step) if settings.verbose else None,
                on_wait=lambda step: report.show_progress(
                    summary.bytes, summary.bytes, step, at_once=True
                ),
                on_unreadable=report.unreadable,
                since=since,
                summary=summary,
            )
            job.run()
        for obj in _objects(job):
            report.item(obj)
        if not job.is_found:
            report.note(
                f"run {run_id}: the older run stays, because this run is incomplete; this run is "
                f"kept next to it, and logtool scan --clean --output {output} removes it",
                "warning",
            )
        report.note(_last_line(job), "good" if summary.complete else "warning")
    status = report.exit_status()
    # The table records lacks the records that do not decode: its status is that of verify.
    return Exit.OK if status is Exit.FINDINGS and "records" not in job.wanted else status


def _given(inputs: options.Inputs) -> GivenPaths:
    """Return the inputs; a bucket of AutoMQ and its metadata log are one, for any executor.

    UsageError for objects of tiered storage.
    """
    given = inputs.resolved()
    for path in given.paths:
        if plugin := plugin_of(path):
            paths = [path, *(one for one in given.paths if one != path)]
            named = " ".join(map(shell.path, paths))
            why = "scan does not read objects of tiered storage; to check them"
            raise UsageError(f"{path}: {why}: logtool remote verify --rsm {plugin} {named}")
    if not given.has_bucket_and_more:
        return given
    return automq_tree.join(replace(given, paths=[path.absolute() for path in given.paths]))


def _check_payload(names: Sequence[str], payload: Payload, *, show_secrets: bool) -> None:
    """UsageError for options about a table that is not written, or about values that are not."""
    if payload is not Payload.NONE and "records" not in names:
        raise UsageError("--payload needs the table records: add records to --tables")
    if show_secrets and not ("records" in names and payload.includes(Payload.HASH)):
        values = (
            "the values of the table records: --tables records, with --payload full or --payload "
            "hash"
        )
        raise UsageError(f"--show-secrets needs {values}")


def _objects(job: "Scan") -> Iterator[Object]:
    """Yield an object for each table that was written."""
    for name in job.wanted:
        yield WRITTEN.make(
            table=name,
            rows=job.rows[name],
            bytes=job.sizes[name],
            path=f"{job.output.rstrip('/')}/{job.folder}/{name}",
            run_id=job.run_id,
        )


def _reading(summary: Summary, path: Path) -> str:
    """Return the progress of the pass over the bytes, to print next to the bytes."""
    return f"{text.count(summary.partitions, 'partition')} read, {path}"


def _last_line(job: "Scan") -> str:
    """Return one line: rows, bytes, rate and findings."""
    summary = job.summary
    seconds = summary.elapsed_s
    rate = f" ({text.rate(summary.bytes, seconds)})" if seconds > 0 else ""
    carried = ""
    if job.since:
        carried = f", {text.count(job.carried, 'segment')} taken from run {job.since}"
    return (
        f"{text.state(summary)}run {job.run_id}: {text.count(sum(job.rows.values()), 'row')} in "
        f"{text.count(len(job.rows), 'table')}, {text.size(sum(job.sizes.values()))} written, "
        f"{text.size(summary.bytes)} of logs read in {text.duration(seconds)}{rate}{carried}; "
        f"{findings.found(summary)}"
    )
