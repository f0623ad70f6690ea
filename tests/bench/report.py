"""The report, for people and for programs."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from bench.measure import spread
from bench.rows import KAFKA_OPTIONS, Row

_HEAD = """\
# Benchmark report

Written by `make bench`; `report.json` beside it has every single time. Do not edit.

Inputs are segments that `tests/bench/generate.py` writes, always the same, and a log dir that a
real broker wrote. Every file was read before it was timed, so all of this is with a warm page
cache: no disk is measured, unless a row says so. Ours and theirs run in turns (A B A B ...) in one
run of the harness; each value is the median of the ratios of the pairs, with the smallest and the
largest behind it. Other jobs may have been running. "One pass" is `readinto` of 1 MiB and `crc32c`
over the same file, in the same process. "Whole process" is from the start of a command to its end,
its output sent to /dev/null, the start of Python or Java included.
"""


@dataclass(frozen=True)
class Machine:
    """Where it was measured."""

    processor: str
    cores: int
    system: str
    python: str
    versions: dict[str, str]
    commit: str


def as_json(results: Mapping[str, Sequence[Row]], machine: Machine, arguments: list[str]) -> str:
    """Return everything that was measured."""
    rows = [{"job": job, **_row(row)} for job, found in results.items() for row in found]
    report = {"machine": asdict(machine), "arguments": arguments, "rows": rows}
    return json.dumps(report, indent=1) + "\n"


def as_markdown(
    results: Mapping[str, Sequence[Row]], machine: Machine, arguments: list[str]
) -> str:
    """Return the report as people read it."""
    return "\n".join([_HEAD, *_where(machine), *_table(results), *_repeat(results, arguments)])


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


def _where(machine: Machine) -> Iterator[str]:
    versions = ", ".join(f"{name} {number}" for name, number in machine.versions.items())
    yield f"- Processor: {machine.processor}, {machine.cores} cores, {machine.system}"
    yield f"- Python {machine.python}, {versions}; kernels compiled; commit {machine.commit}"
    yield ""


def _table(results: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    yield "| Job | What | Bar | Median (min .. max) | Pairs | Met | What it is made of |"
    yield "|---|---|---|---|---|---|---|"
    for job, rows in results.items():
        for row in rows:
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


def _repeat(results: Mapping[str, Sequence[Row]], arguments: list[str]) -> Iterator[str]:
    yield "## To repeat it"
    yield ""
    given = f' BENCH_ARGS="{" ".join(arguments)}"' if arguments else ""
    yield f"All of it: `make bench{given}`. One job, into `build/bench/`:"
    yield ""
    for job in results:
        yield f'- `make bench BENCH_ARGS="--only {job}"`'
    yield ""
    yield "Inputs are kept in `build/bench/` (some 10 GiB); `make clean` removes them."
    yield "Kafka's tool is"
    yield f"`java {' '.join(KAFKA_OPTIONS)} org.apache.kafka.tools.DumpLogSegments --files LOG`,"
    yield "with the options that `kafka-dump-log.sh` gives to Java."
    yield ""
