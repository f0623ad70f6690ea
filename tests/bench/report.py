"""The report as Markdown and JSON: the results of each job, with date, machine and commit."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bench.measure import Timing, spread
from bench.rows import KAFKA_OPTIONS, Bar, Row

_HEAD = """\
# Benchmark report

Written by `make bench`; `report.json` has every single time. Do not edit.

Inputs are segments that `tests/bench/generate.py` writes, always the same, and a log dir that a
real broker wrote. Every file was read before it was timed, so the page cache is warm and no disk is
measured, unless a row says so. Ours and theirs run in turns (A B A B ...) in one run of the
harness. Each value is the median of the ratios of the pairs, with the smallest and the largest.
Other processes may have been running. "One pass" is `readinto` of 1 MiB and `crc32c` over the same
file, in the same process. "Whole process" is the time from the start of a command to its end, with
its output sent to /dev/null and with the start of Python or Java.
"""


@dataclass(frozen=True)
class Machine:
    """The machine and the commit of a measurement."""

    processor: str
    cores: int
    system: str
    python: str
    versions: dict[str, str]
    commit: str


@dataclass(frozen=True)
class Measured:
    """The results of one job."""

    machine: Machine
    date: str
    """The day, as 2026-01-31."""
    rows: list[Row]


Report = dict[str, Measured]
"""Results by job, in the order of the report."""


def updated(before: Report, new: Report, jobs: Mapping[str, object]) -> Report:
    """Return a report whose jobs are replaced by those of `new`.

    The order is that of `jobs`; jobs that do not exist any more are omitted.
    """
    both = before | new
    return {job: both[job] for job in jobs if job in both}


def as_json(report: Report) -> str:
    """Return the report as JSON."""
    jobs = [
        {
            "job": job,
            "date": one.date,
            "machine": asdict(one.machine),
            "rows": [_row(row) for row in one.rows],
        }
        for job, one in report.items()
    ]
    return json.dumps({"jobs": jobs}, indent=1) + "\n"


def from_json(text: str) -> Report:
    """Return the report from the text of `as_json`."""
    return {
        one["job"]: Measured(
            Machine(**one["machine"]), one["date"], [_parsed(r) for r in one["rows"]]
        )
        for one in json.loads(text)["jobs"]
    }


def as_markdown(report: Report) -> str:
    """Return the report as Markdown."""
    return "\n".join([_HEAD, *_where(report), *_table(report), *_repeat(report)])


def _row(row: Row) -> dict[str, object]:
    middle, low, high = spread(row.values) if row.values else (None, None, None)
    return {
        "title": row.title,
        "unit": row.unit,
        "median": middle,
        "min": low,
        "max": high,
        "values": row.values,
        "at_least": row.bar.at_least if row.bar else None,
        "at_most": row.bar.at_most if row.bar else None,
        "met": row.met,
        "note": row.note,
        "skipped": row.skipped or None,
        "seconds_ours": row.timing.ours if row.timing else None,
        "seconds_theirs": row.timing.theirs if row.timing else None,
    }


def _parsed(row: dict[str, Any]) -> Row:
    bar = Bar(row["at_least"], row["at_most"])
    ours, theirs = row["seconds_ours"], row["seconds_theirs"]
    return Row(
        title=row["title"],
        values=row["values"],
        bar=None if bar == Bar() else bar,
        unit=row["unit"],
        note=row["note"],
        timing=None if ours is None else Timing(ours, theirs),
        skipped=row["skipped"] or "",
    )


def _where(report: Report) -> Iterator[str]:
    """Yield a line for each date, commit and machine, with its jobs."""
    yield "| Measured | Commit | Jobs | Where |"
    yield "|---|---|---|---|"
    jobs: dict[tuple[str, str, str], list[str]] = {}
    for job, one in report.items():
        machine = one.machine
        versions = ", ".join(f"{name} {number}" for name, number in machine.versions.items())
        where = (
            f"{machine.processor}, {machine.cores} cores, {machine.system}; "
            f"Python {machine.python}, {versions}; kernels compiled"
        )
        jobs.setdefault((one.date, machine.commit, where), []).append(f"`{job}`")
    for (date, commit, where), names in jobs.items():
        yield f"| {date} | {commit} | {', '.join(names)} | {where} |"
    yield ""


def _table(report: Report) -> Iterator[str]:
    yield "| Job | What | Bar | Median (min .. max) | Pairs | Met | Note |"
    yield "|---|---|---|---|---|---|---|"
    for job, one in report.items():
        for row in one.rows:
            bar = str(row.bar) if row.bar else ""
            if row.skipped:
                yield f"| {job} | {row.title} | {bar} | | | skipped | {row.skipped} |"
                continue
            middle, low, high = (f"{value:.3g}" for value in spread(row.values))
            met = {None: "for information", True: "yes", False: "**no**"}[row.met]
            value = f"{middle} ({low} .. {high}) {row.unit}"
            count = len(row.values)
            yield f"| {job} | {row.title} | {bar} | {value} | {count} | {met} | {row.note} |"
    yield ""


def _repeat(report: Report) -> Iterator[str]:
    yield "## To repeat it"
    yield ""
    yield "All jobs: `make bench`. One job, into `build/bench/` or, by `--update`, this report:"
    yield ""
    for job in report:
        yield f'- `make bench BENCH_ARGS="--only {job}"`'
    yield ""
    yield "Inputs are kept in `build/bench/` (some 10 GiB); `make clean` removes them."
    yield "Kafka's tool is"
    yield f"`java {' '.join(KAFKA_OPTIONS)} org.apache.kafka.tools.DumpLogSegments --files LOG`,"
    yield "with the options that `kafka-dump-log.sh` gives to Java."
    yield ""
