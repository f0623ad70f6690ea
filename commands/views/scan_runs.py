"""How two runs of `scan`, or the history of all, look to a person."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from logtool.commands.output import View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Column, Object, columns
from logtool.commands.views.scan_tables import DOCUMENT, FINDING, GROWTH, HISTORY, REPLICA
from logtool.schemas.columns import Way
from logtool.times import rfc3339

if TYPE_CHECKING:
    from logtool.spark.scan.compare_runs import Comparison

SCHEMA = DOCUMENT.schema
_FINDING_KEYS = tuple(name for name in FINDING.names(Way.CSV) if name not in ("state", "next"))
_SIZES = ("partition_dirs", "segments", "log_bytes", "records")
_KEYS = dict.fromkeys(
    ("type", "state", *_FINDING_KEYS, *REPLICA.names(Way.CSV), *GROWTH.names(Way.CSV))
)
_FINDING = (
    Column("", lambda obj: obj["state"]),
    Column("severity", lambda obj: obj["severity"]),
    Column("code", lambda obj: obj["code"] or ""),
    Column("path", lambda obj: obj["path"] or ""),
    Column("message", lambda obj: obj["message"]),
)
_GROWTH = (
    Column("topic", lambda obj: obj["topic"]),
    Column("partition dirs", lambda obj: _change(obj, "partition_dirs")),
    Column("segments", lambda obj: _change(obj, "segments")),
    Column("records", lambda obj: _change(obj, "records")),
    Column("size", lambda obj: text.size(obj["log_bytes"])),
    Column("grew by", lambda obj: _size_change(obj["log_bytes"] - obj["log_bytes_before"])),
)
_REPLICA = (
    Column("replica", lambda obj: f"{obj['topic']}-{obj['partition']}"),
    Column("log dir", lambda obj: obj["log_dir"]),
    Column("", lambda obj: obj["state"]),
    Column("behind", lambda obj: f"{obj['behind'] or 0:,}"),
    Column("before", lambda obj: f"{obj['behind_before'] or 0:,}"),
    Column("diverges at", lambda obj: "" if obj["diverges_at"] is None else obj["diverges_at"]),
)
_HISTORY_KEYS = HISTORY.names(Way.CSV)
_HISTORY = (
    Column("run", lambda obj: obj["run_id"]),
    Column("at", lambda obj: obj["at"]),
    Column("topic", lambda obj: obj["topic"] or ""),
    Column("segments", lambda obj: f"{obj['segments']:,}"),
    Column("records", lambda obj: f"{obj['records']:,}"),
    Column("size", lambda obj: text.size(obj["log_bytes"])),
    Column("errors", lambda obj: f"{obj['errors']:,}"),
    Column("warnings", lambda obj: f"{obj['warnings']:,}"),
)


def comparison(*, verbose: bool) -> View:
    """Return the view of two runs; findings that are still there are only told with -v."""

    def layout(obj: Object) -> Any:
        if obj["type"] == "finding":
            return _FINDING if verbose or obj["state"] != "still" else None
        if obj["type"] == "growth":
            same = all(obj[name] == obj[f"{name}_before"] for name in _SIZES)
            return _GROWTH if verbose or not same else None
        return {"replica": _REPLICA}.get(obj["type"])

    rows = frozenset({"finding", "growth", "replica"})
    return View(schema=SCHEMA, columns=columns(*_KEYS), layout=layout, row_types=rows, sparse=True)


def history() -> View:
    """Return the view of the history of all runs."""
    return View(
        schema=SCHEMA,
        columns=columns(*_HISTORY_KEYS),
        layout=lambda obj: {"history": _HISTORY}.get(obj["type"]),
        row_types=frozenset({"history"}),
        sparse=True,
    )


def objects(comparison: "Comparison") -> Iterator[Object]:
    """Yield the objects of the findings, topics and replicas of a comparison."""
    for state, row in comparison.findings:
        values = {name: row[name] for name in _FINDING_KEYS}
        yield FINDING.make(state=str(state), **values, next=None)
    for row in comparison.growth:
        yield GROWTH.make(**row)
    for lag, row, known in comparison.replicas:
        yield REPLICA.make(
            state=str(lag),
            log_dir=row["log_dir"],
            topic=row["topic"],
            partition=row["partition"],
            behind=row["behind"],
            behind_before=known and known["behind"],
            diverges_at=row["diverges_at"],
        )


def history_object(row: dict[str, Any]) -> Object:
    """Return the object of a run and topic."""
    times = {
        name.removesuffix("_ms"): rfc3339(row[name]) for name in ("at_ms", "last_timestamp_ms")
    }
    values = {**row, **times}
    return HISTORY.make(**{name: values[name] for name in _HISTORY_KEYS})


def last_line(comparison: "Comparison", before: str, after: str) -> str:
    """Return one line: findings by state, growth, replicas."""
    counts = Counter(str(state) for state, _ in comparison.findings)
    grew = sum(row["log_bytes"] - row["log_bytes_before"] for row in comparison.growth)
    lags = text.count(len(comparison.replicas), "replica")
    return (
        f"{before} to {after}: {text.count(counts['new'], 'finding')} new, {counts['gone']:,} "
        f"gone, {counts['still']:,} still there; {_size_change(grew)} of logs; {lags} fell behind "
        "or diverged"
    )


def _change(obj: Object, name: str) -> str:
    change = obj[name] - obj[f"{name}_before"]
    return f"{obj[name]:,}" + (f" ({change:+,})" if change else "")


def _size_change(size: int) -> str:
    return f"{'-' if size < 0 else '+'}{text.size(abs(size))}"
