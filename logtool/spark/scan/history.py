"""One row for each run and topic: the sums at the time of the run, for trends over runs.

Every run has the table ``_history``, even if it is not among the tables asked for.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, Final

import pyarrow as pa
from pyarrow import parquet

from logtool.findings import Severity
from logtool.lazy_dataclass import dataclass
from logtool.schemas import arrow
from logtool.schemas.columns import Way
from logtool.spark.scan import manifest, store
from logtool.spark.scan.manifest import Manifest

TABLE: Final = "_history"
HISTORY: Final = arrow.schema("history", way=Way.HISTORY)
_SUMS: Final = ("log_bytes", "records", "damaged_bytes")
_COUNTED: Final = ("partition_dirs", "segments", *_SUMS, "errors", "warnings")


@dataclass(slots=True)
class RunHistory:
    """The sums over the rows of a run."""

    _topics: dict[str | None, dict[str, Any]] = field(default_factory=dict)
    _dirs: set[tuple[str, str]] = field(default_factory=set)

    def add_segment(self, row: Mapping[str, Any]) -> None:
        """Take a row of the table ``segments``."""
        known = self._of(row["topic"])
        known["segments"] += 1
        place = row["log_dir"], row["directory"]
        known["partition_dirs"] += place not in self._dirs
        self._dirs.add(place)
        for name in _SUMS:
            known[name] += row[name]
        times = (known["last_timestamp_ms"], row["last_timestamp_ms"])
        known["last_timestamp_ms"] = max((one for one in times if one is not None), default=None)

    def add_finding(self, row: Mapping[str, Any]) -> None:
        """Take a row of the table ``findings``."""
        known = self._of(row.get("topic"))
        known["errors"] += row["severity"] == Severity.ERROR
        known["warnings"] += row["severity"] == Severity.WARNING

    def rows(self, run_id: str) -> Any:
        """Return a `pyarrow.RecordBatch` of `HISTORY`."""
        same = {"run_id": run_id, "at_ms": time.time_ns() // 1_000_000}
        order = sorted(self._topics, key=lambda topic: topic or "")
        rows = [
            arrow.with_timestamps({**same, "topic": topic, **self._topics[topic]})
            for topic in order
        ]
        return pa.RecordBatch.from_pylist(rows, HISTORY)

    def _of(self, topic: str | None) -> dict[str, Any]:
        empty = dict.fromkeys(_COUNTED, 0) | {"last_timestamp_ms": None}
        return self._topics.setdefault(topic, empty)


def rows_of(output: str, run: Manifest, table: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table of a run; UnwritableError where a file cannot be read."""
    for part in run.parts:
        if part.table == table:
            found, path = store.filesystem(f"{output.rstrip('/')}/{part.path}")
            with store.translated(output), parquet.ParquetFile(found.open_input_file(path)) as file:
                for rows in file.iter_batches():
                    yield from rows.to_pylist()


def history(output: str, topics: frozenset[str] | None = None) -> list[dict[str, Any]]:
    """Return the rows of all complete runs, the oldest run first; with `topics` only theirs."""
    rows = [row for run in manifest.complete(output) for row in rows_of(output, run, TABLE)]
    chosen = [row for row in rows if topics is None or row["topic"] in topics]
    return sorted(chosen, key=lambda row: (row["at_ms"], row["run_id"], row["topic"] or ""))
