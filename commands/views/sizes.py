"""Output of sizes: a row for each topic, the largest on disk first, and the sum."""

from typing import Any

from logtool.commands import options
from logtool.commands.output import Printer, Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Object, TableColumn, columns, keep
from logtool.commands.views.stat_tables import (
    DOCUMENT,
    PARTITION_SIZE,
    TOPIC_SIZE,
    TOTAL_SIZE,
)
from logtool.errors import UsageError
from logtool.exits import Exit
from logtool.log.dir import Partition
from logtool.running.summary import Summary
from logtool.schemas.columns import Way
from logtool.stat.sizes import FileSizes, SizesOf, Weighing, merged

_KEYS = {"path": "disk_bytes", "size": "bytes", "segments": "segments"}
"""By what is sorted, the largest first, by the words of --sort: `path` is the default."""


def run(
    inputs: options.AnyInputs,
    running: options.Running,
    printing: options.Printing,
    *,
    sort: str,
    top: int | None,
    segments: bool,
) -> Exit:
    """Print disk usage from names and sizes; UsageError for `segments` and some `sort`."""
    settings, given = printing.settings(), inputs.resolved()
    if segments or sort not in _KEYS:
        raise UsageError(
            "--level quick does not support --segments, and only --sort size or --sort segments"
        )
    report = Report(settings=settings, view=_view(), summary=Summary(), inputs=given)
    weighing = Weighing(given.paths, given.selection, running.run(report), given.flavour)
    return report.consume(weighing, SizePrinter(report, sort, top))


def _view() -> View:
    """Return the view of ``stat --level quick``: the rows of CSV and TSV are topics."""
    shown = keep(
        (
            TableColumn(
                "topic", lambda obj: "in all" if obj["type"] == "total_size" else obj["topic"]
            ),
            TableColumn("on disk", lambda obj: _size(obj["disk_bytes"])),
            TableColumn("share", lambda obj: obj.get("share")),
            TableColumn("size", lambda obj: _size(obj["bytes"])),
            TableColumn("partitions", lambda obj: obj["partitions"]),
            TableColumn("segments", lambda obj: obj["segments"]),
            TableColumn("logs", lambda obj: _size(obj["log_bytes"])),
            TableColumn("indexes", lambda obj: _size(obj["index_bytes"])),
            TableColumn("to be deleted", lambda obj: _size(obj["going_bytes"])),
        ),
        "topic",
        "on disk",
        "share",
        "size",
    )
    return View(
        schema=DOCUMENT.schema,
        columns=columns(*TOPIC_SIZE.names(Way.CSV)),
        layout=lambda obj: shown if obj["type"] in ("topic_size", "total_size") else None,
        row_types=frozenset({"topic_size"}),
        sparse=True,
    )


class SizePrinter(Printer[tuple[Partition, FileSizes]]):
    """Takes partitions, and prints them, their topics and the sum once all are there."""

    def __init__(self, report: Report, sort: str, top: int | None) -> None:
        self._report = report
        self._key, self._top = _KEYS[sort], top
        self._rows: list[dict[str, Any]] = []
        self._topics: dict[str | None, list[FileSizes]] = {}

    def show(self, item: tuple[Partition, FileSizes]) -> None:
        """Hold back one partition."""
        found, sizes = item
        self._report.summary.partitions += 1
        self._report.summary.segments += sizes.segments
        self._topics.setdefault(found.topic, []).append(sizes)
        of = SizesOf(sizes, path=found.path, topic=found.topic, partition=found.number)
        self._rows.append(PARTITION_SIZE.row(of))

    def finish(self) -> None:
        """Print the largest partitions, the largest topics and the sum of all."""
        topics = {name: merged(parts) for name, parts in self._topics.items()}
        whole = merged(topics.values())
        rows = [
            TOPIC_SIZE.row(SizesOf(sizes, topic=name, partitions=len(self._topics[name])))
            for name, sizes in topics.items()
        ]
        partitions = sum(map(len, self._topics.values()))
        total = TOTAL_SIZE.row(SizesOf(whole, topics=len(topics), partitions=partitions))
        for obj in (*self._largest(self._rows), *self._largest(rows)):
            self._report.item(self._with_share(obj, whole.disk_bytes))
        self._report.item(self._with_share(total, whole.disk_bytes))

    def _largest(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        # Behind a URL no blocks are known.
        chosen = sorted(rows, key=lambda row: -(row[self._key] or row["bytes"]))
        return chosen[: self._top]

    def _with_share(self, obj: dict[str, Any], whole: int) -> Object:
        """Return the object for a table, with its share of what is on the disk."""
        if self._report.settings.format not in ("table", "markdown") or not whole:
            return obj
        return {**obj, "share": f"{(obj['disk_bytes'] or 0) * 100 / whole:.1f} %"}


def _size(value: int | None) -> str:
    return "" if value is None else text.size(value)
